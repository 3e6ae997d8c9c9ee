//! Parameters of controllers: how they are defined, described, set and read.
//!
//! A controller defines each of its parameters in one line of `parameters!`. `registry.rs` sets
//! and reads them by name. Every value is turned into the controller's integer unit here, once.

use core::fmt;
use core::ops::RangeInclusive;

pub use crate::decimal::Decimal;
use crate::gain::Gain;

/// How a parameter is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Whole,
    /// 0 or 1.
    Switch,
    /// A fraction, stored as the nearest multiple of `denominator / numerator`.
    Fraction {
        /// Stored units per `denominator`.
        numerator: u32,
        /// See `numerator`.
        denominator: u32,
    },
    /// One of these names, stored as its place among them (`Params::choose`).
    Choice(&'static [&'static str]),
}

impl Kind {
    /// The value as it is stored.
    pub(crate) const fn stored(self, value: Decimal) -> u32 {
        match self {
            Kind::Whole | Kind::Switch | Kind::Choice(_) => value.scaled(1, 1),
            Kind::Fraction { numerator, denominator } => value.scaled(numerator, denominator),
        }
    }

    /// The value that is stored so.
    pub(crate) const fn value(self, stored: u32) -> Decimal {
        match self {
            Kind::Whole | Kind::Switch | Kind::Choice(_) => Decimal::from_ratio(stored, 1),
            Kind::Fraction { numerator, denominator } => Decimal::from_ratio(stored * denominator, numerator),
        }
    }
}

/// The description of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Its value unless set.
    pub default: Decimal,
    /// The least it may be.
    pub min: Decimal,
    /// The most it may be.
    pub max: Decimal,
    /// Its unit; empty for pure numbers.
    pub unit: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
    /// How it is stored.
    pub kind: Kind,
    /// The profile to which it belongs, in a controller that follows one of several specifications; `None` if it has it in each.
    pub profile: Option<&'static str>,
}

impl ParameterInfo {
    /// Whether a controller with this profile has the parameter. `repaired` has those of `draft`, with other defaults.
    pub fn is_in(&self, profile: &str) -> bool {
        self.profile.is_none_or(|own| own == profile || (own, profile) == ("draft", "repaired"))
    }
}

/// The description of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// The specification that it follows.
    pub source: &'static str,
    /// The name under which Linux has the same algorithm (`net.ipv4.tcp_congestion_control`), if it has.
    pub linux_name: Option<&'static str>,
    /// Whether it takes any delay for congestion, so that the law of jitter in slow start does not bind it.
    pub answers_delay: bool,
    /// Its parameters.
    pub parameters: &'static [ParameterInfo],
}

/// Why a parameter was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamError {
    /// The controller has no such parameter.
    Unknown {
        /// The controller.
        controller: &'static str,
        /// The parameters that it has.
        expected: &'static [ParameterInfo],
    },
    /// The value lies outside its range.
    OutOfRange {
        /// The parameter.
        field: &'static str,
        /// The value.
        given: Decimal,
        /// The least it may be.
        min: Decimal,
        /// The most it may be.
        max: Decimal,
    },
    /// The parameter belongs to a profile that is not chosen.
    OtherProfile {
        /// The parameter.
        field: &'static str,
        /// Its profile.
        needed: &'static str,
        /// The profile that is chosen.
        chosen: &'static str,
    },
    /// The parameter takes one of some names and was given another, or is a number and was given a name.
    NotAChoice {
        /// The parameter.
        field: &'static str,
        /// The names; none if it is a number.
        expected: &'static [&'static str],
    },
    /// The parameter is a whole number and the value is not.
    NotWhole {
        /// The parameter.
        field: &'static str,
        /// The value.
        given: Decimal,
        /// The least it may be.
        min: Decimal,
        /// The most it may be.
        max: Decimal,
    },
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamError::Unknown { controller, expected } => {
                write!(f, "no such parameter of {controller}; expected one of:")?;
                for (index, parameter) in expected.iter().enumerate() {
                    write!(f, "{} {}", if index == 0 { "" } else { "," }, parameter.name)?;
                }
                Ok(())
            }
            ParamError::OutOfRange { field, given, min, max } => {
                write!(f, "{field} is {given}; expected {min} to {max}")
            }
            ParamError::NotWhole { field, given, min, max } => {
                write!(f, "{field} is {given}; expected a whole number from {min} to {max}")
            }
            ParamError::OtherProfile { field, needed, chosen } => {
                write!(f, "{field} exists only with profile={needed}, and profile={chosen} is chosen")
            }
            ParamError::NotAChoice { field, expected: [] } => write!(f, "{field} takes a number"),
            ParamError::NotAChoice { field, expected } => {
                write!(f, "{field} is none of its choices; expected one of:")?;
                for (index, name) in expected.iter().enumerate() {
                    write!(f, "{} {name}", if index == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

impl core::error::Error for ParamError {}

/// Where a parameter is stored.
pub(crate) enum Slot<'a> {
    Number(&'a mut u32),
    Switch(&'a mut bool),
}

/// What a parameter can be stored as.
pub(crate) trait Stored {
    fn from_stored(stored: u32) -> Self;
    fn slot(&mut self) -> Slot<'_>;
}

impl Stored for u32 {
    fn from_stored(stored: u32) -> u32 {
        stored
    }

    fn slot(&mut self) -> Slot<'_> {
        Slot::Number(self)
    }
}

impl Stored for bool {
    fn from_stored(stored: u32) -> bool {
        stored != 0
    }

    fn slot(&mut self) -> Slot<'_> {
        Slot::Switch(self)
    }
}

impl Stored for Gain {
    fn from_stored(stored: u32) -> Gain {
        Gain(stored)
    }

    fn slot(&mut self) -> Slot<'_> {
        Slot::Number(&mut self.0)
    }
}

/// Defines the parameters of a controller, each in one place:
///
/// ```text
/// parameters! {
///     /// What they are.
///     pub struct Params from "where the defaults come from";
///     /// More than the summary says, for readers of the code.
///     field: u32 = whole(10, 1..=1000, "rounds"), "the summary, for users";
///     other as "name_in_scenarios": u32 = whole(0, 0..=9, "ms") from "elsewhere", "its summary";
///     ..nested: Others;
/// }
/// ```
///
/// The structure, its defaults, the list of descriptions (`Params::PARAMETERS`) and the way from a name to a field all
/// follow. Defaults and ranges are given as stored: see [`whole`], [`switch`], [`gain`] and [`fraction`].
macro_rules! parameters {
    (
        $(#[$about:meta])*
        pub struct $Params:ident from $source:expr;
        $(
            $(#[$note:meta])*
            $field:ident $(as $name:literal)?: $Type:ty = $shape:ident($($given:expr),*) $(from $own:expr)?, $summary:literal;
        )*
        $(..$nested:ident: $Nested:ty;)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $Params {
            $(
                #[doc = concat!($summary, ".")]
                $(#[$note])*
                pub $field: $Type,
            )*
            $(
                #[doc = concat!("The parameters of [`", stringify!($Nested), "`].")]
                pub $nested: $Nested,
            )*
        }

        impl Default for $Params {
            #[inline]
            fn default() -> $Params {
                $Params {
                    $($field: <$Type as $crate::parameter::Stored>::from_stored(const {
                        let shape = $crate::parameter::$shape($($given),*);
                        shape.kind.stored(shape.default)
                    }),)*
                    $($nested: <$Nested>::default(),)*
                }
            }
        }

        impl $Params {
            /// The descriptions, in the order in which they should be listed.
            pub(crate) const PARAMETERS: &'static [$crate::parameter::ParameterInfo] = {
                use $crate::parameter::{self, ParameterInfo};
                const PARTS: &[&[ParameterInfo]] = &[
                    &[$(
                        ParameterInfo {
                            name: parameter::either!($(($name))? (stringify!($field))),
                            summary: $summary,
                            source: parameter::either!($(($own))? ($source)),
                            ..parameter::$shape($($given),*)
                        },
                    )*],
                    $(<$Nested>::PARAMETERS,)*
                ];
                &parameter::joined::<{ parameter::total(PARTS) }>(PARTS)
            };

            /// Where the parameter of this name is stored.
            pub(crate) fn slot(&mut self, name: &str) -> Option<$crate::parameter::Slot<'_>> {
                $(
                    if name == $crate::parameter::either!($(($name))? (stringify!($field))) {
                        return Some($crate::parameter::Stored::slot(&mut self.$field));
                    }
                )*
                None$(.or_else(|| self.$nested.slot(name)))*
            }
        }
    };
}
pub(crate) use parameters;

/// The first of one or two.
macro_rules! either {
    (($first:expr) $(($second:expr))?) => {
        $first
    };
}
pub(crate) use either;

/// A whole number.
pub(crate) const fn whole(default: u32, range: RangeInclusive<u32>, unit: &'static str) -> ParameterInfo {
    described(Kind::Whole, default, range, unit)
}

/// One of some names; the default is a place among them.
pub(crate) const fn choice(names: &'static [&'static str], default: u32) -> ParameterInfo {
    described(Kind::Choice(names), default, 0..=names.len() as u32 - 1, "")
}

/// 0 or 1.
pub(crate) const fn switch(default: bool) -> ParameterInfo {
    described(Kind::Switch, default as u32, 0..=1, "")
}

/// A gain in 1/256.
pub(crate) const fn gain(default: Gain, range: RangeInclusive<u32>) -> ParameterInfo {
    described(Kind::Fraction { numerator: 256, denominator: 1 }, default.q8(), range, "")
}

/// A fraction that is stored as multiples of `per.1 / per.0`.
pub(crate) const fn fraction(
    per: (u32, u32),
    default: u32,
    range: RangeInclusive<u32>,
    unit: &'static str,
) -> ParameterInfo {
    described(Kind::Fraction { numerator: per.0, denominator: per.1 }, default, range, unit)
}

const fn described(
    kind: Kind,
    default: u32,
    range: RangeInclusive<u32>,
    unit: &'static str,
) -> ParameterInfo {
    ParameterInfo {
        name: "",
        summary: "",
        default: kind.value(default),
        min: kind.value(*range.start()),
        max: kind.value(*range.end()),
        unit,
        source: "",
        kind,
        profile: None,
    }
}

/// These descriptions, as those of one profile of a controller.
pub(crate) const fn of_profile<const N: usize>(
    parameters: &[ParameterInfo],
    profile: &'static str,
) -> [ParameterInfo; N] {
    let mut own = joined::<N>(&[parameters]);
    let mut index = 0;
    while index < N {
        own[index].profile = Some(profile);
        index += 1;
    }
    own
}

/// How many descriptions these lists have.
pub(crate) const fn total(parts: &[&[ParameterInfo]]) -> usize {
    let (mut total, mut part) = (0, 0);
    while part < parts.len() {
        total += parts[part].len();
        part += 1;
    }
    total
}

/// These lists as one of `N` descriptions.
pub(crate) const fn joined<const N: usize>(parts: &[&[ParameterInfo]]) -> [ParameterInfo; N] {
    let mut joined = [switch(false); N];
    let (mut next, mut part) = (0, 0);
    while part < parts.len() {
        let mut index = 0;
        while index < parts[part].len() {
            joined[next] = parts[part][index];
            next += 1;
            index += 1;
        }
        part += 1;
    }
    joined
}
