//! The registry of queue disciplines: one line each, and everything else follows.

mod codel;
mod dualpi2;
mod fifo;
mod fq_codel;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod laws;
#[cfg(test)]
mod linux;
mod pie;
mod red;
mod step;
mod updates;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::discipline::{Discipline, Setup};
use crate::settings::{DisciplineInfo, SettingInfo, Unit};
use fullpipe_units::{Bytes, Duration};

/// Builds the registry from its lines, `Type in module;`. The module has the type with its constructor
/// `new(settings, setup)`, its `Settings` and its `INFO`.
macro_rules! disciplines {
    ($($(#[$about:meta])* $Type:ident in $module:ident;)+) => {
        /// Every discipline, in the order in which they should be listed.
        pub const DISCIPLINES: &[DisciplineInfo] = &[$($module::INFO),+];

        /// A discipline with its settings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum DisciplineConfig {
            $($(#[$about])* $Type($module::Settings),)+
        }

        impl DisciplineConfig {
            /// The discipline of this name with its defaults.
            pub fn by_name(name: &str) -> Option<DisciplineConfig> {
                $(if $module::INFO.name == name {
                    return Some(DisciplineConfig::$Type($module::Settings::default()));
                })+
                None
            }

            /// Its description.
            pub const fn info(&self) -> &'static DisciplineInfo {
                match self {
                    $(DisciplineConfig::$Type(_) => &$module::INFO,)+
                }
            }

            fn values(&self) -> Vec<u64> {
                match self {
                    $(DisciplineConfig::$Type(settings) => settings.values(),)+
                }
            }

            fn value(&mut self, name: &str) -> Option<&mut u64> {
                match self {
                    $(DisciplineConfig::$Type(settings) => settings.value(name),)+
                }
            }

            /// The discipline, empty.
            pub(crate) fn build(&self, setup: Setup) -> Box<dyn Discipline> {
                match self {
                    $(DisciplineConfig::$Type(settings) => Box::new($module::$Type::new(settings, setup)),)+
                }
            }
        }
    };
}

disciplines! {
    /// First in, first out; what does not fit is dropped.
    Fifo in fifo;
    /// Controlled delay (RFC 8289).
    Codel in codel;
    /// A line for each flow, each with CoDel (RFC 8290).
    FqCodel in fq_codel;
    /// Marks above a threshold (RFC 8257).
    Step in step;
    /// Proportional Integral controller Enhanced (RFC 8033).
    Pie in pie;
    /// Random Early Detection, also adaptive.
    Red in red;
    /// The coupled dual queue for low-latency and classic traffic (RFC 9332).
    Dualpi2 in dualpi2;
}

impl Default for DisciplineConfig {
    fn default() -> DisciplineConfig {
        DisciplineConfig::FIFO
    }
}

impl DisciplineConfig {
    /// Drop-tail.
    pub const FIFO: DisciplineConfig = DisciplineConfig::Fifo(fifo::Settings {});

    /// Whether it is drop-tail, which needs no gate.
    pub fn is_fifo(&self) -> bool {
        matches!(self, DisciplineConfig::Fifo(_))
    }

    /// Its settings with their values.
    pub fn settings(&self) -> impl Iterator<Item = (&'static SettingInfo, u64)> {
        self.info().settings.iter().zip(self.values())
    }

    /// Settings that do not fit together: the name of one, and what is expected of it.
    pub fn conflict(&self) -> Option<(&'static str, &'static str)> {
        match self {
            DisciplineConfig::Red(settings) => settings.conflict(),
            _ => None,
        }
    }

    /// Sets the setting called `name`, in its unit.
    ///
    /// # Errors
    /// The description of the setting, if the value is outside its range.
    ///
    /// # Panics
    /// If there is no such setting ([`DisciplineInfo::settings`]).
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), &'static SettingInfo> {
        let info = self.info().settings.iter().find(|info| info.name == name);
        let info = info.unwrap_or_else(|| panic!("{} has no setting {name}", self.info().name));
        if !info.range.contains(&value) {
            return Err(info);
        }
        *self.value(name).expect("the list names settings only") = value;
        Ok(())
    }
}

/// As people write it, with the settings that differ from the defaults: `codel:target=1 ms`.
impl fmt::Display for DisciplineConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.info().name)?;
        let changed = self.settings().filter(|(info, value)| info.default != *value);
        for (index, (info, value)) in changed.enumerate() {
            write!(f, "{}{}=", if index == 0 { ':' } else { ',' }, info.name)?;
            match info.unit {
                Unit::Time => write!(f, "{}", Duration::from_nanos(value)),
                Unit::Bytes => write!(f, "{}", Bytes::new(value)),
                Unit::Count | Unit::Switch => write!(f, "{value}"),
                Unit::Share => write!(f, "{} %", value as f64 / 1e4),
            }?;
        }
        Ok(())
    }
}
