//! Parses TOML or JSON text into a document; errors have the path of the field.
//!
//! serde's derived code asks a deserialiser for values and reports mismatches. The existing deserialisers lose the path of
//! the field, and their messages are for programmers. [`Node`] is the parsed text, and a deserialiser with our error type.
//! It treats two things specially:
//!
//! * a table that is read as an enum chooses the variant by its key `kind`, so that errors inside keep their path;
//! * `null` in JSON is an absent key, so that keyword arguments may be `None`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _,
    IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde::ser::{Serialize, SerializeMap, Serializer};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{self, Place, ScenarioError};
use crate::format::Format;
use crate::key;
use crate::place::position;

/// The key that chooses between variants.
const KIND: &str = "kind";

/// Reads `text` as a `T`; errors name the line.
pub(crate) fn read<T: DeserializeOwned>(text: &str, format: Format) -> Result<T, ScenarioError> {
    T::deserialize(Node::read(text, format)?).map_err(|error| error.within(text, format))
}

/// The document in JSON, its keys in their order. Numbers that JSON does not have are strings.
pub(crate) fn to_json(text: &str, format: Format) -> Result<String, ScenarioError> {
    let node = Node::read(text, format)?;
    Ok(serde_json::to_string(&node).expect("a node is plain JSON: its keys are texts"))
}

/// A parsed text, without its format.
#[derive(Clone, Debug)]
enum Node {
    Null,
    Bool(bool),
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    /// In the order of the document; each key once.
    Table(Vec<(String, Node)>),
}

impl Node {
    fn read(text: &str, format: Format) -> Result<Node, ScenarioError> {
        match format {
            Format::Toml => Node::from_toml(text),
            Format::Json => Node::from_json(text),
        }
    }

    fn from_toml(text: &str) -> Result<Node, ScenarioError> {
        let table = DeTable::parse(text).map_err(|error| {
            let position = error.span().map(|span| position(text, span.start));
            syntax_error(text, position, error.message(), "TOML")
        })?;
        Node::from_table(text, table.into_inner())
    }

    fn from_table(text: &str, table: DeTable<'_>) -> Result<Node, ScenarioError> {
        // The parser sorts keys by name.
        let mut entries: Vec<_> = table.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entries = entries
            .into_iter()
            .map(|(key, value)| Ok((key.into_inner().into_owned(), Node::from_value(text, value)?)));
        Ok(Node::Table(entries.collect::<Result<_, ScenarioError>>()?))
    }

    fn from_value(text: &str, value: Spanned<DeValue<'_>>) -> Result<Node, ScenarioError> {
        let start = value.span().start;
        let too_large = || syntax_error(text, Some(position(text, start)), "the number is too large", "TOML");
        Ok(match value.into_inner() {
            DeValue::String(content) => Node::Text(Cow::into_owned(content)),
            DeValue::Integer(number) => {
                let read = i64::from_str_radix(number.as_str(), number.radix());
                Node::Integer(read.map_err(|_| too_large())?)
            }
            DeValue::Float(number) => Node::Float(number.as_str().parse().map_err(|_| too_large())?),
            DeValue::Boolean(value) => Node::Bool(value),
            DeValue::Datetime(time) => Node::Text(time.to_string()),
            DeValue::Array(items) => Node::List(
                items.into_iter().map(|item| Node::from_value(text, item)).collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => Node::from_table(text, table)?,
        })
    }

    fn from_json(text: &str) -> Result<Node, ScenarioError> {
        serde_json::from_str(text).map_err(|error| {
            // Its text ends in " at line 1 column 2", which the field already contains.
            let message = error.to_string();
            let message = message.rsplit_once(" at line").map_or(message.as_str(), |(message, _)| message);
            syntax_error(text, Some((error.line(), error.column().max(1))), message, "JSON")
        })
    }

    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Node::Null => Unexpected::Unit,
            Node::Bool(value) => Unexpected::Bool(*value),
            Node::Integer(value) => Unexpected::Signed(*value),
            Node::Unsigned(value) => Unexpected::Unsigned(*value),
            Node::Float(value) => Unexpected::Float(*value),
            Node::Text(value) => Unexpected::Str(value),
            Node::List(_) => Unexpected::Other("a list"),
            Node::Table(_) => Unexpected::Other("a table"),
        }
    }
}

fn syntax_error(text: &str, position: Option<(usize, usize)>, message: &str, format: &str) -> ScenarioError {
    let message = message.lines().collect::<Vec<_>>().join(", ");
    let (line, column) = position.unwrap_or((1, 1));
    let given = text.lines().nth(line - 1).unwrap_or_default();
    ScenarioError::new(
        &format!("line {line}, column {column}"),
        given.trim(),
        format!("is not {format}: {message}"),
    )
    .expected(format!("valid {format}"))
    .fix("fix that line")
    .placed(Place { file: None, line: Some(line), column: Some(column) })
}

/// As JSON.
impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null => serializer.serialize_unit(),
            Node::Bool(value) => serializer.serialize_bool(*value),
            Node::Integer(number) => serializer.serialize_i64(*number),
            Node::Unsigned(number) => serializer.serialize_u64(*number),
            Node::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            Node::Float(number) => serializer.collect_str(number),
            Node::Text(text) => serializer.serialize_str(text),
            Node::List(items) => serializer.collect_seq(items),
            Node::Table(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}

/// For JSON. Unlike `serde_json::Value`, it rejects a duplicate key.
impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        struct AnyNode;

        impl<'de> Visitor<'de> for AnyNode {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
                Ok(Node::Null)
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
                Ok(Node::Bool(value))
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
                Ok(Node::Integer(value))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
                Ok(Node::Unsigned(value))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
                Ok(Node::Float(value))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Node, E> {
                Ok(Node::Text(value.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(Node::List(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
                let mut table = Vec::new();
                let mut keys = BTreeSet::new();
                while let Some((key, value)) = entries.next_entry::<String, Node>()? {
                    if !keys.insert(key.clone()) {
                        return Err(A::Error::custom(format!("key {key:?} is given twice")));
                    }
                    table.push((key, value));
                }
                Ok(Node::Table(table))
            }
        }

        deserializer.deserialize_any(AnyNode)
    }
}

impl<'de> Deserializer<'de> for Node {
    type Error = ScenarioError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        match self {
            Node::Null => visitor.visit_unit(),
            Node::Bool(value) => visitor.visit_bool(value),
            Node::Integer(value) => visitor.visit_i64(value),
            Node::Unsigned(value) => visitor.visit_u64(value),
            Node::Float(value) => visitor.visit_f64(value),
            Node::Text(value) => visitor.visit_string(value),
            Node::List(items) => visitor.visit_seq(Items { items: items.into_iter(), index: 0 }),
            Node::Table(table) => visitor.visit_map(Entries { entries: table.into_iter(), entry: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ScenarioError> {
        match self {
            Node::Null => visitor.visit_none(),
            node => visitor.visit_some(node),
        }
    }

    /// Only from a table: derived code would read a list as the fields in their order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ScenarioError> {
        match self {
            Node::Table(_) => self.deserialize_any(visitor),
            other => Err(ScenarioError::invalid_type(other.unexpected(), &"a table")),
        }
    }

    /// A text names a variant without content; a table names its variant under `kind`.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ScenarioError> {
        match self {
            Node::Text(name) => {
                let name: StrDeserializer<'_, ScenarioError> = name.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            Node::Table(mut table) => match take(&mut table, KIND) {
                Some(Node::Text(kind)) => visitor.visit_enum(Tagged { kind, content: table }),
                Some(other) => {
                    let error = ScenarioError::invalid_type(other.unexpected(), &"the name of a kind");
                    Err(error.inside(KIND).expected(error::one_of(variants)))
                }
                None => {
                    let error = ScenarioError::missing(KIND).expected(error::one_of(variants));
                    Err(error.write(format!("\"{}\"", variants.first().copied().unwrap_or_default())))
                }
            },
            other => {
                let error = ScenarioError::invalid_type(other.unexpected(), &"a name");
                Err(error.expected(error::one_of(variants)).fix("write one of these"))
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// Removes a key from a table.
fn take(table: &mut Vec<(String, Node)>, key: &str) -> Option<Node> {
    let index = table.iter().position(|(known, _)| known == key)?;
    Some(table.remove(index).1)
}

/// The items of a list; an error inside one gets its index.
struct Items {
    items: std::vec::IntoIter<Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items {
    type Error = ScenarioError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ScenarioError> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(item).map(Some).map_err(|error| error.inside(&format!("[{index}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The entries of a table; an error inside a value gets its key.
struct Entries {
    entries: std::vec::IntoIter<(String, Node)>,
    entry: Option<(String, Node)>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = ScenarioError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ScenarioError> {
        self.entry = self.entries.by_ref().find(|(_, value)| !matches!(value, Node::Null));
        let Some((key, _)) = &self.entry else { return Ok(None) };
        let key: StrDeserializer<'_, ScenarioError> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ScenarioError> {
        let (key, value) = self.entry.take().expect("serde asks for a value only after its key");
        seed.deserialize(value).map_err(|error| error.inside(&key::key(&key)))
    }
}

/// A table without its `kind`.
struct Tagged {
    kind: String,
    content: Vec<(String, Node)>,
}

impl<'de> EnumAccess<'de> for Tagged {
    type Error = ScenarioError;
    type Variant = Tagged;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Tagged), ScenarioError> {
        let kind: StrDeserializer<'_, ScenarioError> = self.kind.as_str().into_deserializer();
        let variant = seed.deserialize(kind).map_err(|error| error.inside(KIND))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Tagged {
    type Error = ScenarioError;

    fn unit_variant(self) -> Result<(), ScenarioError> {
        Err(ScenarioError::invalid_type(Unexpected::Other("a table"), &"a name"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ScenarioError> {
        seed.deserialize(Node::Table(self.content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, ScenarioError> {
        Node::Table(self.content).deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ScenarioError> {
        Node::Table(self.content).deserialize_any(visitor)
    }
}
