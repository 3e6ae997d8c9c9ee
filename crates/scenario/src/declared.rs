//! Elements that `fullpipe-path` declares, as people write them: tables with their `kind`, and keys of a path.
//!
//! Nothing here names an element. [`ELEMENTS`] says which fields each has and which keys of a path put it there; keys, schema,
//! resolution, bounds and the options of commands follow.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use fullpipe_path::config::{ElementConfig, Probability};
use fullpipe_path::element::{ElementInfo, FieldInfo, OptionInfo, Shape, Side, Value};
use fullpipe_path::{ELEMENTS, element};
use fullpipe_units::{Duration, Rate};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Map, json};

use crate::bounds;
use crate::check;
use crate::error::ScenarioError;
use crate::quantity::{Quantity, QuantityText, Size};
use crate::resolve::builder::Builder;
use crate::resolve::values::required;
use crate::unit::Unit;

/// What is given for a field, not yet read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    Text(String),
    Flag(bool),
    Unit(Unit),
}

/// Reads what is given for a field of this shape.
struct Reading(Shape);

impl<'de> DeserializeSeed<'de> for Reading {
    type Value = Given;

    fn deserialize<D: Deserializer<'de>>(self, node: D) -> Result<Given, D::Error> {
        fn text<'de, T: Quantity, D: Deserializer<'de>>(node: D) -> Result<Given, D::Error> {
            QuantityText::<T>::deserialize(node).map(|written| Given::Text(written.text().to_owned()))
        }
        match self.0 {
            Shape::Name => String::deserialize(node).map(Given::Text),
            Shape::Rate => text::<Rate, D>(node),
            Shape::Bytes => text::<Size, D>(node),
            Shape::Duration => text::<Duration, D>(node),
            Shape::Probability => text::<Probability, D>(node),
            Shape::Flag => bool::deserialize(node).map(Given::Flag),
            Shape::Unit => Unit::deserialize(node).map(Given::Unit),
        }
    }
}

/// The schema of a value of this shape.
fn schema_of(shape: Shape, must: bool, generator: &mut SchemaGenerator) -> Schema {
    fn of<T: JsonSchema>(must: bool, generator: &mut SchemaGenerator) -> Schema {
        if must { T::json_schema(generator) } else { generator.subschema_for::<Option<T>>() }
    }
    match shape {
        Shape::Name => of::<String>(must, generator),
        Shape::Rate => of::<QuantityText<Rate>>(must, generator),
        Shape::Bytes => of::<QuantityText<Size>>(must, generator),
        Shape::Duration => of::<QuantityText<Duration>>(must, generator),
        Shape::Probability => of::<QuantityText<Probability>>(must, generator),
        Shape::Flag => of::<bool>(must, generator),
        Shape::Unit => of::<Unit>(must, generator),
    }
}

fn must(field: &FieldInfo) -> bool {
    field.default.is_none() && !matches!(field.shape, Shape::Name | Shape::Flag | Shape::Unit)
}

fn lines(summary: &[&str]) -> String {
    summary.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Serde's error for a key that is not `known`. Serde wants a list that lives as long as the program, so each list is kept once.
fn unknown_field<E: de::Error>(key: &str, known: Vec<&'static str>) -> E {
    static KEPT: Mutex<BTreeSet<&'static [&'static str]>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let list = kept.get(known.as_slice()).copied().unwrap_or_else(|| {
        let list = &*known.leak();
        kept.insert(list);
        list
    });
    E::unknown_field(key, list)
}

/// A declared element in a list of a path.
#[derive(Clone, Debug)]
pub struct Declared {
    info: &'static ElementInfo,
    given: BTreeMap<&'static str, Given>,
}

impl Declared {
    /// The element in numbers. `at` is the place of a key in the document.
    pub(crate) fn resolve(
        &self,
        at: &dyn Fn(&str) -> String,
        builder: &mut Builder<'_>,
    ) -> Result<ElementConfig, ScenarioError> {
        let mut values = Vec::new();
        // A bandwidth-delay product is of the element's own rate.
        let mut rate = Rate::ZERO;
        for field in self.info.fields {
            let value = self.value(field, &at(field.name), rate, builder)?;
            if let Value::Rate(own) = value {
                rate = own;
            }
            values.push(value);
        }
        let config = ElementConfig::of(self.info.kind, values);
        match config.conflict() {
            None => Ok(config),
            Some((wrong, given, expected)) => {
                let key =
                    self.info.fields.iter().find(|field| field.field == wrong).map_or(wrong, |it| it.name);
                let error = ScenarioError::new(&at(key), &given, "does not fit");
                Err(error.expected(expected).fix("change one of the two"))
            }
        }
    }

    fn value(
        &self,
        field: &FieldInfo,
        place: &str,
        rate: Rate,
        builder: &mut Builder<'_>,
    ) -> Result<Value, ScenarioError> {
        let given = self.given.get(field.name);
        let text = match given {
            Some(Given::Text(text)) => Some(text.clone()),
            _ => field.default.map(str::to_owned),
        };
        fn written<T>(text: Option<String>) -> Option<QuantityText<T>> {
            text.map(QuantityText::new)
        }
        Ok(match (field.shape, given) {
            (Shape::Name, _) => Value::Name(builder.name(place, &text, self.info.kind)?),
            (Shape::Rate, _) => {
                let limits = bounds::MIN_RATE..=bounds::MAX_RATE;
                Value::Rate(required(place, &written(text))?.read_within(place, limits)?)
            }
            (Shape::Bytes, _) => {
                Value::Bytes(builder.sizes().burst(place, required(place, &written(text))?, rate)?)
            }
            (Shape::Duration, _) => {
                let limits = Duration::from_nanos(field.least)..=bounds::MAX_DELAY;
                Value::Duration(required(place, &written(text))?.read_within(place, limits)?)
            }
            (Shape::Probability, _) => Value::Probability(required(place, &written(text))?.read(place)?),
            (Shape::Flag, given) => Value::Flag(given == Some(&Given::Flag(true))),
            (Shape::Unit, Some(Given::Unit(unit))) => Value::Unit(Unit::config(Some(*unit))),
            (Shape::Unit, _) => Value::Unit(Unit::config(None)),
        })
    }

    /// The schema of the table of this kind.
    pub(crate) fn schema(info: &ElementInfo, generator: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        properties.insert("kind".into(), json!({ "type": "string", "const": info.kind }));
        for field in info.fields {
            let mut schema = schema_of(field.shape, must(field), generator);
            schema.insert("description".into(), lines(field.summary).into());
            properties.insert(field.name.into(), schema.into());
        }
        let needed = info.fields.iter().filter(|field| must(field)).map(|field| field.name);
        let required: Vec<&str> = std::iter::once("kind").chain(needed).collect();
        json_schema!({
            "description": lines(info.summary),
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
            "required": required,
        })
    }
}

/// Reads the fields of a table of this kind.
pub(crate) struct Fields(pub(crate) &'static ElementInfo);

impl<'de> Visitor<'de> for Fields {
    type Value = Declared;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Declared, A::Error> {
        let mut given = BTreeMap::new();
        while let Some(key) = entries.next_key::<String>()? {
            let Some(field) = self.0.field(&key) else {
                return Err(unknown_field(&key, self.0.fields.iter().map(|field| field.name).collect()));
            };
            given.insert(field.name, entries.next_value_seed(Reading(field.shape))?);
        }
        Ok(Declared { info: self.0, given })
    }
}

/// All elements that a key of a path puts there, each with its key.
fn options() -> impl Iterator<Item = (&'static ElementInfo, &'static OptionInfo)> {
    ELEMENTS.iter().flat_map(|info| info.options.iter().map(move |option| (info, option)))
}

/// The shape of the one field that an option gives; none if it gives several.
fn shape(info: &ElementInfo, option: &OptionInfo) -> Option<Shape> {
    match option.fields {
        [(field, _)] => info.field(field).map(|field| field.shape),
        _ => None,
    }
}

/// The elements that keys of a path put there.
#[derive(Clone, Debug, Default)]
pub struct Options(BTreeMap<&'static str, Given>);

impl Options {
    /// How many elements they are on this side of the link.
    pub(crate) fn count(&self, side: Side) -> usize {
        ELEMENTS.iter().filter(|info| !self.of(info, side).is_empty()).count()
    }

    fn of(&self, info: &'static ElementInfo, side: Side) -> Vec<&'static OptionInfo> {
        info.options.iter().filter(|option| option.side == side && self.0.contains_key(option.name)).collect()
    }

    /// These elements in numbers. `field` is the place of the path in the document.
    pub(crate) fn resolve(
        &self,
        field: &str,
        side: Side,
        builder: &mut Builder<'_>,
    ) -> Result<Vec<ElementConfig>, ScenarioError> {
        let mut elements = Vec::new();
        for info in ELEMENTS {
            let given = self.of(info, side);
            if let Some(first) = given.first() {
                elements.push(self.element(info, &given, first, field, builder)?);
            }
        }
        Ok(elements)
    }

    fn element(
        &self,
        info: &'static ElementInfo,
        options: &[&'static OptionInfo],
        first: &OptionInfo,
        field: &str,
        builder: &mut Builder<'_>,
    ) -> Result<ElementConfig, ScenarioError> {
        let mut given = BTreeMap::new();
        let place = |option: &OptionInfo| format!("{field}.{}", option.name);
        for option in options {
            match (&self.0[option.name], option.fields) {
                (value, [(name, _)]) => {
                    given.insert(*name, value.clone());
                }
                (Given::Text(text), names) => {
                    let mut parts = text.split(',').map(str::trim);
                    for (name, default) in names {
                        let part = parts.next().filter(|part| !part.is_empty()).or(*default);
                        let part = part.ok_or_else(|| incomplete(&place(option), text, option))?;
                        given.insert(*name, Given::Text(part.to_owned()));
                    }
                    if parts.next().is_some() {
                        return Err(incomplete(&place(option), text, option));
                    }
                }
                (Given::Flag(_) | Given::Unit(_), _) => unreachable!("several fields are one text"),
            }
        }
        let gives = |name: &str| {
            let gives = |option: &&OptionInfo| option.fields.iter().any(|(field, _)| *field == name);
            info.options.iter().find(gives)
        };
        if let Some(missing) = info.fields.iter().find(|one| must(one) && !given.contains_key(one.name))
            && let Some(option) = gives(missing.name)
        {
            return Err(ScenarioError::missing(&place(option))
                .expected(format!("a {}, because {} is given", info.kind, first.name))
                .write(format!("\"{}\"", option.example)));
        }
        let at = |name: &str| gives(name).map_or_else(|| format!("{field}.{name}"), place);
        Declared { info, given }.resolve(&at, builder).map_err(|error| {
            let several = |option: &&&OptionInfo| option.fields.len() > 1 && place(option) == error.field;
            match options.iter().find(several) {
                Some(option) => error.write(format!("\"{}\"", option.example)),
                None => error,
            }
        })
    }
}

fn incomplete(place: &str, text: &str, option: &OptionInfo) -> ScenarioError {
    let names: Vec<&str> = option.fields.iter().map(|(name, _)| *name).collect();
    ScenarioError::new(place, text, format!("is not {}", names.join(", ")))
        .expected(format!("values with commas between them, such as \"{}\"", option.example))
        .write(format!("\"{}\"", option.example))
}

/// A path with its own keys and those of [`Options`].
#[derive(Clone, Debug, Default)]
pub struct WithOptions<T> {
    own: T,
    /// The others.
    pub options: Options,
}

impl<T> Deref for WithOptions<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.own
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for WithOptions<T> {
    fn deserialize<D: Deserializer<'de>>(node: D) -> Result<WithOptions<T>, D::Error> {
        let mut options = Options::default();
        let own = T::deserialize(Sorted { node, known: &[], options: &mut options })?;
        Ok(WithOptions { own, options })
    }
}

impl<T: JsonSchema> JsonSchema for WithOptions<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        for (info, option) in options() {
            let shape = shape(info, option).unwrap_or(Shape::Name);
            let mut property = schema_of(shape, false, generator);
            property.insert("description".into(), format!("{}.", option.summary).into());
            if option.fields.len() > 1 {
                property.insert("examples".into(), json!([option.example]));
            }
            if let Some(properties) = schema.get_mut("properties").and_then(|one| one.as_object_mut()) {
                properties.insert(option.name.into(), property.into());
            }
        }
        schema
    }
}

/// A table, or its reader, or its entries, without the keys of [`Options`], which go there.
struct Sorted<'a, N> {
    node: N,
    /// The keys that the table has besides.
    known: &'static [&'static str],
    options: &'a mut Options,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Sorted<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.node.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.node.deserialize_struct(name, known, Sorted { node: visitor, known, options: self.options })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Sorted<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        let Sorted { node, known, options } = self;
        node.visit_map(Sorted { node: entries, known, options })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Sorted<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.node.next_key::<String>()? {
            let option = options().find(|(_, option)| option.name == key);
            match option {
                Some((info, option)) => {
                    let shape = shape(info, option).unwrap_or(Shape::Name);
                    let given = self.node.next_value_seed(Reading(shape))?;
                    self.options.0.insert(option.name, given);
                }
                None if self.known.contains(&key.as_str()) => {
                    return seed.deserialize(key.into_deserializer()).map(Some);
                }
                None => {
                    let all = self.known.iter().copied().chain(options().map(|(_, option)| option.name));
                    return Err(unknown_field(&key, all.collect()));
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.node.next_value_seed(seed)
    }
}

/// Whether every world can run a declared element with these numbers.
pub(crate) fn check<'a>(
    config: &'a dyn element::Declared,
    mtu: u32,
    names: &mut BTreeSet<&'a str>,
) -> check::Result {
    if let Some(name) = config.name() {
        check::unique(name, names)?;
    }
    for (info, value) in config.info().fields.iter().zip(config.values()) {
        match value {
            Value::Rate(rate) => check::rate(info.field, rate)?,
            Value::Bytes(size) => check::burst(size, mtu)?,
            Value::Duration(time) => {
                check::within(info.field, time, Duration::from_nanos(info.least), bounds::MAX_DELAY)?;
            }
            Value::Probability(share) => check::probability(info.field, share)?,
            Value::Name(_) | Value::Flag(_) | Value::Unit(_) => {}
        }
    }
    config.conflict().map_or(Ok(()), |(field, given, expected)| check::demand(false, field, given, expected))
}

/// A key of a path itself: name, shape, summary, example, example of a range, default in words, and whether only the way to the
/// receivers has it (`forward`), each way (`both`), or the path as a whole (`path`).
type Own = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
);

const OWN: &[Own] = &[
    ("rate", "rate", "Rate of the bottleneck", "100 Mbit/s", Some("20..100mbit"), "", "both"),
    (
        "deliveries",
        "file",
        "Instead of a rate: the times at which the link can send a packet, in Mahimahi's format",
        "",
        None,
        "none",
        "both",
    ),
    ("rtt", "duration", "Round-trip time of the empty path", "40 ms", Some("20..80ms"), "", "path"),
    (
        "buffer",
        "size",
        "Size of the bottleneck's queue; with --deliveries, a bdp is of their mean rate",
        "2 bdp",
        Some("0.5..4bdp"),
        "1 bdp, at least 10 packets",
        "both",
    ),
    ("queue", "queue", "Discipline of the bottleneck; see `fullpipe queues`", "codel", None, "fifo", "both"),
    ("loss", "probability", "Random loss", "0.1 %", Some("0.01..1%"), "none", "both"),
    (
        "router",
        "text",
        "\"tbf\": the link is Linux's tc-tbf, which takes or drops a TSO burst whole; needs --burst, its bucket's size",
        "",
        None,
        "none",
        "forward",
    ),
    (
        "burst",
        "size",
        "The link is a token bucket of this size, filled at --rate",
        "32 KB",
        None,
        "none",
        "forward",
    ),
];

/// The keys of a path that are options of commands and arguments of functions, as JSON: its own, then those of [`ELEMENTS`].
#[must_use]
pub fn path_options() -> serde_json::Value {
    let own = OWN.iter().map(|(name, shape, summary, example, range, default, ways)| {
        json!({ "name": name, "shape": shape, "summary": summary, "example": example, "range": range,
            "default": default, "ways": ways, "element": null, "field": null })
    });
    let of_elements = options().map(|(info, option)| {
        let field = if let [(name, _)] = option.fields { info.field(name) } else { None };
        let shape = match field.map(|field| field.shape) {
            Some(Shape::Rate) => "rate",
            Some(Shape::Bytes) => "size",
            Some(Shape::Duration) => "duration",
            Some(Shape::Probability) => "probability",
            Some(Shape::Flag) => "flag",
            Some(Shape::Name | Shape::Unit) | None => "text",
        };
        json!({ "name": option.name, "shape": shape, "summary": option.summary, "example": option.example,
            "range": option.range, "default": "none", "ways": "both", "element": info.kind,
            "field": field.map(|field| field.field) })
    });
    own.chain(of_elements).collect()
}
