//! Settings of queue disciplines: how they are defined, described, set and read.
//!
//! A discipline defines each of its settings in one line of `settings!`. Every value is stored as a whole number of its unit
//! ([`Unit`]), so that two configurations are equal exactly if they act alike.

use std::ops::RangeInclusive;

/// What a setting counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// A number of something, which the summary names.
    Count,
    /// Millionths.
    Share,
    /// 0 or 1.
    Switch,
}

/// The description of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// Its value unless set.
    pub default: u64,
    /// The values it may have.
    pub range: RangeInclusive<u64>,
}

/// The description of a discipline.
#[derive(Clone, Copy, Debug)]
pub struct DisciplineInfo {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// The specification that it follows.
    pub source: &'static str,
    /// What Linux's `tc` calls it, if Linux has it.
    pub linux_name: Option<&'static str>,
    /// Its settings.
    pub settings: &'static [SettingInfo],
}

/// Defines the settings of a discipline, each in one line:
///
/// ```text
/// settings! {
///     /// What they are.
///     target_ns as "target": Time = 5_000_000, 1..=10_000_000_000, "the summary, for users";
/// }
/// ```
///
/// The structure `Settings`, its defaults, its descriptions and the way from a name to a field follow.
macro_rules! settings {
    ($(#[$about:meta])* $($field:ident as $name:literal: $Unit:ident = $default:expr, $range:expr, $summary:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct Settings {
            $(#[doc = $summary] pub $field: u64,)*
        }

        impl Default for Settings {
            fn default() -> Settings {
                Settings { $($field: $default,)* }
            }
        }

        impl Settings {
            pub(crate) const INFO: &'static [$crate::settings::SettingInfo] = &[$($crate::settings::SettingInfo {
                name: $name,
                summary: $summary,
                unit: $crate::settings::Unit::$Unit,
                default: $default,
                range: $range,
            },)*];

            /// The values in the order of the descriptions.
            #[allow(clippy::allow_attributes, unused_mut, unused_variables, reason = "some have no settings")]
            pub(crate) fn values(&self) -> Vec<u64> {
                vec![$(self.$field,)*]
            }

            pub(crate) fn value(&mut self, name: &str) -> Option<&mut u64> {
                match name {
                    $($name => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use settings;
