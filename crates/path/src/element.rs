//! Elements that are declared once: how an element states its words, numbers and options, and what it does to packets.
//!
//! An element's file has one [`element!`], from which everything follows that a user sees: the table of a scenario with this
//! `kind`, its schema, the keys of a path with the option and the argument of the same name, bounds, and texts in reports.

use std::fmt;

use crate::check::Check;
use crate::config::{AdmissionUnit, Probability};
use crate::error::ConfigError;
use crate::packet::{BurstFate, Fate, Moment, Packet};
use crate::queue::QueueView;
use crate::rng::Stream;
use fullpipe_units::{Bytes, Duration, Rate};

/// What a field of an element counts, and so how people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A name in records, unique; by default the kind, numbered.
    Name,
    /// A rate.
    Rate,
    /// An amount of data that holds at least one packet.
    Bytes,
    /// A time.
    Duration,
    /// A probability.
    Probability,
    /// Whether something holds.
    Flag,
    /// What is taken or dropped as one.
    Unit,
}

/// A value of a field, one variant for each [`Shape`].
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "they are those of `Shape`")]
pub enum Value {
    Name(String),
    Rate(Rate),
    Bytes(Bytes),
    Duration(Duration),
    Probability(Probability),
    Flag(bool),
    Unit(AdmissionUnit),
}

/// The description of a field.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    /// Its name in configurations, with the unit.
    pub field: &'static str,
    /// Its key in scenarios.
    pub name: &'static str,
    /// What it is, in lines.
    pub summary: &'static [&'static str],
    /// What it counts.
    pub shape: Shape,
    /// Its value unless given, as people write it; `None` if it must be given. Names, flags and units need not be given.
    pub default: Option<&'static str>,
    /// The shortest time, nanoseconds.
    pub least: u64,
}

/// Where the element of an option is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Right before the link.
    Before,
    /// Behind the link and its loss.
    After,
}

/// A key of a path that puts the element there, and the option and argument of this name.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    /// The key.
    pub name: &'static str,
    /// The fields that its value gives, in order and separated by commas, and the default of those that may be left out.
    pub fields: &'static [(&'static str, Option<&'static str>)],
    /// Where the element is.
    pub side: Side,
    /// What it does, in a sentence without a full stop.
    pub summary: &'static str,
    /// A value, as people write it.
    pub example: &'static str,
    /// A range of values, if it may be one where the answer is over all of it.
    pub range: Option<&'static str>,
}

/// The description of an element.
#[derive(Clone, Copy, Debug)]
pub struct ElementInfo {
    /// Its kind in scenarios.
    pub kind: &'static str,
    /// What it does, in lines.
    pub summary: &'static [&'static str],
    /// What it has to know.
    pub fields: &'static [FieldInfo],
    /// Its keys in the table of a path.
    pub options: &'static [OptionInfo],
}

impl ElementInfo {
    /// The field with this key.
    pub fn field(&self, name: &str) -> Option<&'static FieldInfo> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// What makes an element besides its configuration.
pub(crate) struct Setup {
    pub(crate) random: Stream,
    /// An element before it in its stage takes time, so packets are announced before they arrive.
    pub(crate) announced: bool,
}

/// A transit function from arrival to departure.
pub(crate) trait Transit {
    type Config;
    /// Whether a packet may leave later than it arrives.
    const TAKES_TIME: bool;

    fn new(config: &Self::Config, setup: Setup) -> Self;

    /// Decides the fate of a packet. Elements that do not reorder return times that never go back.
    fn admit(&mut self, moment: Moment, packet: &Packet) -> Fate;

    /// Decides the fate of a burst, for elements that may have the unit `burst`.
    fn admit_burst(&mut self, _moment: Moment, _burst: &[Packet]) -> BurstFate {
        unreachable!("it takes single packets")
    }

    /// Whether a packet may leave before an earlier one.
    fn reorders(&self) -> bool {
        false
    }

    /// The queue in it, if it has one.
    fn queue(&self) -> Option<QueueView<'_>> {
        None
    }
}

/// The configuration of a declared element.
pub trait Declared: fmt::Display {
    /// Its description.
    fn info(&self) -> &'static ElementInfo;

    /// Its values in the order of the descriptions.
    fn values(&self) -> Vec<Value>;

    /// Its name in records and reports, if it has one.
    fn name(&self) -> Option<&str>;

    /// In a few words for a prompt, which are letters, digits, spaces and `/%.`; `None` if it is not mentioned there.
    fn brief(&self) -> Option<String>;

    /// Whether its values fit together: the field that does not, its value, and what is expected of it.
    fn conflict(&self) -> Option<(&'static str, String, &'static str)>;
}

pub(crate) fn check(config: &dyn Declared, check: &Check) -> Result<(), ConfigError> {
    for (info, value) in config.info().fields.iter().zip(config.values()) {
        match value {
            Value::Probability(value) => check.probability(info.field, value)?,
            Value::Rate(rate) => check.that(rate > Rate::ZERO, info.field, rate, "a rate above 0")?,
            Value::Bytes(size) => {
                check.that(size > Bytes::ZERO, info.field, size, "room for at least one packet")?;
            }
            Value::Duration(time) => {
                let right = info.least == 0 || time > Duration::ZERO;
                check.that(right, info.field, time, "an interval above 0")?;
            }
            Value::Name(_) | Value::Flag(_) | Value::Unit(_) => {}
        }
    }
    match config.conflict() {
        None => Ok(()),
        Some((field, given, expected)) => check.that(false, field, given, expected),
    }
}

/// A type of fields.
pub trait Field: Clone {
    /// What it counts.
    const SHAPE: Shape;

    /// Of a value of its shape.
    ///
    /// # Panics
    /// If the value has another shape.
    fn of(value: Value) -> Self;

    /// As a value.
    fn value(&self) -> Value;

    /// It, if it is a name.
    fn name(&self) -> Option<&str> {
        None
    }
}

macro_rules! fields {
    ($($Shape:ident: $Type:ty $(, $more:item)?;)+) => {
        $(impl Field for $Type {
            const SHAPE: Shape = Shape::$Shape;

            fn of(value: Value) -> $Type {
                match value {
                    Value::$Shape(value) => value,
                    other => panic!("{other:?} is no {:?}", Shape::$Shape),
                }
            }

            fn value(&self) -> Value {
                Value::$Shape(self.clone())
            }

            $($more)?
        })+
    };
}

fields! {
    Name: String, fn name(&self) -> Option<&str> { Some(self) };
    Rate: Rate;
    Bytes: Bytes;
    Duration: Duration;
    Probability: Probability;
    Flag: bool;
    Unit: AdmissionUnit;
}

/// Declares an element:
///
/// ```text
/// element! {
///     /// What it does, for users.
///     "kind", shown as |this| "text in reports {}", this.field_ns;
///     /// What the field is, for users.
///     field_ns as "key": Duration;                   // required
///     other as "other": Probability = "100 %";       // with a default, as people write it
///     every_ns as "every": Duration, least 1_000;    // at least, nanoseconds
///     prompt |this| "{} kind", this.field_ns;                                  // optional
///     expects |this| this.every_ns > this.field_ns, every_ns, "longer than key";  // optional, any number
///     option "kind" = ["key", "other" = "1 %"], After, "5 ms, 2 %", "What it does";  // any number
///     option "key" = ["key"], After, "5 ms", "What it does", over "1..5ms";    // may be a range
/// }
/// ```
///
/// The structure `Config`, its descriptions, checks and texts follow.
macro_rules! element {
    (
        $(#[doc = $about:literal])+
        $kind:literal, shown as |$shown:pat_param| $($words:expr),+;
        $(
            $(#[doc = $summary:literal])+
            $(#[serde($($serde:tt)+)])?
            $field:ident as $name:literal: $Type:ty $(= $default:literal)? $(, least $least:expr)?;
        )*
        $(prompt |$brief:pat_param| $($briefly:expr),+;)?
        $(expects |$it:ident| $right:expr, $wrong:ident, $expected:literal;)*
        $(option $option:literal = [$($part:literal $(= $unless:literal)?),+], $Side:ident, $example:literal,
            $help:literal $(, over $range:literal)?;)*
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct Config {
            $($(#[doc = $summary])+ $(#[serde($($serde)+)])? pub $field: $Type,)*
        }

        impl Config {
            pub(crate) const INFO: $crate::element::ElementInfo = $crate::element::ElementInfo {
                kind: $kind,
                summary: &[$($about),+],
                fields: &[$($crate::element::FieldInfo {
                    field: stringify!($field),
                    name: $name,
                    summary: &[$($summary),+],
                    shape: <$Type as $crate::element::Field>::SHAPE,
                    default: $crate::element::optional!($($default)?),
                    least: 0 $(+ $least)?,
                },)*],
                options: &[$($crate::element::OptionInfo {
                    name: $option,
                    fields: &[$(($part, $crate::element::optional!($($unless)?))),+],
                    side: $crate::element::Side::$Side,
                    summary: $help,
                    example: $example,
                    range: $crate::element::optional!($($range)?),
                },)*],
            };

            #[allow(clippy::allow_attributes, unused_mut, unused_variables, reason = "some have no fields")]
            pub(crate) fn of(mut values: impl Iterator<Item = $crate::element::Value>) -> Config {
                Config {
                    $($field: $crate::element::Field::of(values.next().expect("a value for each field")),)*
                }
            }
        }

        impl $crate::element::Declared for Config {
            fn info(&self) -> &'static $crate::element::ElementInfo {
                &Config::INFO
            }

            fn values(&self) -> Vec<$crate::element::Value> {
                vec![$($crate::element::Field::value(&self.$field)),*]
            }

            fn name(&self) -> Option<&str> {
                None$(.or($crate::element::Field::name(&self.$field)))*
            }

            fn brief(&self) -> Option<String> {
                $(let $brief = self; return Some(format!($($briefly),+));)?
                #[allow(clippy::allow_attributes, unreachable_code, reason = "some have a text")]
                None
            }

            fn conflict(&self) -> Option<(&'static str, String, &'static str)> {
                $(
                    let $it = self;
                    if !$right {
                        return Some((stringify!($wrong), self.$wrong.to_string(), $expected));
                    }
                )*
                None
            }
        }

        impl std::fmt::Display for Config {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $shown = self;
                write!(f, $($words),+)
            }
        }
    };
}
pub(crate) use element;

macro_rules! optional {
    () => {
        None
    };
    ($some:expr) => {
        Some($some)
    };
}
pub(crate) use optional;
