//! From TOML or JSON text into a document, with the path of whatever is wrong.
//!
//! serde's derived code asks a deserialiser for values and reports what does not fit; the ready deserialisers lose the
//! path of the field and print expectations for programmers. [`Node`] is the parsed text, and a deserialiser whose error
//! is ours. It treats two things specially:
//!
//! * a table that is read as an enum chooses the variant by its key `kind`, so that errors inside keep their path;
//! * `null` in JSON is an absent key, so that keyword arguments may be `None`.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _,
    IntoDeserializer, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::error::{self, ScenarioError};
use crate::resolve::Format;

/// The key that chooses between variants.
const KIND: &str = "kind";

/// Reads `text` as a `T`.
pub(crate) fn read<T: DeserializeOwned>(text: &str, format: Format) -> Result<T, ScenarioError> {
    let node = match format {
        Format::Toml => Node::from_toml(text)?,
        Format::Json => Node::from_json(text)?,
    };
    T::deserialize(node)
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
    Table(BTreeMap<String, Node>),
}

impl Node {
    fn from_toml(text: &str) -> Result<Node, ScenarioError> {
        let table = text.parse::<toml::Table>().map_err(|error| {
            let position = error.span().map(|span| position(text, span.start));
            syntax_error(text, position, error.message(), "TOML")
        })?;
        Ok(Node::from(toml::Value::Table(table)))
    }

    fn from_json(text: &str) -> Result<Node, ScenarioError> {
        serde_json::from_str(text).map_err(|error| {
            // Its text ends in " at line 1 column 2", which the field says already.
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

/// Line and column of a byte of `text`, both from one.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before: String = text.bytes().take(byte).map(char::from).collect();
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = text.get(line_start..byte).map_or(1, |line| line.chars().count() + 1);
    (line, column)
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
    .mend("mend that line")
}

impl From<toml::Value> for Node {
    fn from(value: toml::Value) -> Node {
        match value {
            toml::Value::String(text) => Node::Text(text),
            toml::Value::Integer(number) => Node::Integer(number),
            toml::Value::Float(number) => Node::Float(number),
            toml::Value::Boolean(value) => Node::Bool(value),
            toml::Value::Datetime(time) => Node::Text(time.to_string()),
            toml::Value::Array(items) => Node::List(items.into_iter().map(Node::from).collect()),
            toml::Value::Table(table) => {
                Node::Table(table.into_iter().map(|(key, value)| (key, Node::from(value))).collect())
            }
        }
    }
}

/// For JSON. Unlike `serde_json::Value` it refuses a key that is given twice.
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
                let mut table = BTreeMap::new();
                while let Some((key, value)) = entries.next_entry::<String, Node>()? {
                    if table.contains_key(&key) {
                        return Err(A::Error::custom(format!("key {key:?} is given twice")));
                    }
                    table.insert(key, value);
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
            Node::Table(mut table) => match table.remove(KIND) {
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
                Err(error.expected(error::one_of(variants)).mend("write one of these"))
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
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
    entries: std::collections::btree_map::IntoIter<String, Node>,
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
        seed.deserialize(value).map_err(|error| error.inside(&error::key(&key)))
    }
}

/// A table without its `kind`.
struct Tagged {
    kind: String,
    content: BTreeMap<String, Node>,
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
