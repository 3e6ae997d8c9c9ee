//! Controllers and their parameters by name, for scenarios.
//!
//! [`CATALOGUE`] lists them all, [`Params::by_name`] gives the defaults, which are Linux's, and [`Params::set`]
//! overrides one parameter after checking its range. Every value is turned into the controller's integer unit here,
//! once; [`Params::get`] returns the stored value.

use core::fmt;

pub use crate::decimal::Decimal;
use crate::{bbr1, cubic, fixed, reno, vegas};

/// A controller with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "parameters are copied once a flow")]
pub enum Params {
    /// Reno.
    Reno(reno::Params),
    /// CUBIC.
    Cubic(cubic::Params),
    /// BBR version 1.
    Bbr1(bbr1::Params),
    /// Vegas.
    Vegas(vegas::Params),
    /// A fixed window or rate.
    Fixed(fixed::Params),
}

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
}

impl Kind {
    /// A gain in Q8, as BBR keeps them.
    pub const Q8: Kind = Kind::Fraction { numerator: 256, denominator: 1 };
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

/// Every controller, in the order in which they should be listed.
pub const CATALOGUE: &[ControllerInfo] = &[reno::INFO, cubic::INFO, bbr1::INFO, vegas::INFO, fixed::INFO];

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
        }
    }
}

impl core::error::Error for ParamError {}

/// Where a parameter is stored.
pub(crate) enum Slot<'a> {
    Number(&'a mut u32),
    Switch(&'a mut bool),
}

impl Params {
    /// The defaults of the controller called `name`, its own or Linux's.
    pub fn by_name(name: &str) -> Option<Params> {
        let info = CATALOGUE.iter().find(|info| info.name == name || info.linux_name == Some(name))?;
        match info.name {
            "reno" => Some(Params::Reno(reno::Params::default())),
            "cubic" => Some(Params::Cubic(cubic::Params::default())),
            "bbr1" => Some(Params::Bbr1(bbr1::Params::default())),
            "vegas" => Some(Params::Vegas(vegas::Params::default())),
            "fixed" => Some(Params::Fixed(fixed::Params::default())),
            _ => None,
        }
    }

    /// The description of the controller.
    pub const fn info(&self) -> &'static ControllerInfo {
        match self {
            Params::Reno(_) => &reno::INFO,
            Params::Cubic(_) => &cubic::INFO,
            Params::Bbr1(_) => &bbr1::INFO,
            Params::Vegas(_) => &vegas::INFO,
            Params::Fixed(_) => &fixed::INFO,
        }
    }

    /// The controller's name.
    pub const fn name(&self) -> &'static str {
        self.info().name
    }

    /// Whether the controller works only if the host paces ([`Config::paced`](crate::Config::paced)).
    pub const fn needs_pacing(&self) -> bool {
        match self {
            Params::Bbr1(_) => true,
            Params::Fixed(params) => params.is_paced(),
            Params::Reno(_) | Params::Cubic(_) | Params::Vegas(_) => false,
        }
    }

    /// Sets one parameter. Nothing changes if it is rejected.
    pub fn set(&mut self, name: &str, value: Decimal) -> Result<(), ParamError> {
        let parameter = self.parameter(name)?;
        let &ParameterInfo { name: field, min, max, kind, .. } = parameter;
        if value < min || value > max {
            return Err(ParamError::OutOfRange { field, given: value, min, max });
        }
        let stored = match kind {
            Kind::Whole | Kind::Switch if !value.is_whole() => {
                return Err(ParamError::NotWhole { field, given: value, min, max });
            }
            Kind::Whole | Kind::Switch => value.scaled(1, 1),
            Kind::Fraction { numerator, denominator } => value.scaled(numerator, denominator),
        };
        match self.slot(field) {
            Some(Slot::Number(number)) => *number = stored,
            Some(Slot::Switch(switch)) => *switch = stored != 0,
            None => unreachable!("every listed parameter has a slot"),
        }
        Ok(())
    }

    /// The value of one parameter, as stored.
    pub fn get(&self, name: &str) -> Result<Decimal, ParamError> {
        let parameter = self.parameter(name)?;
        let mut copy = *self;
        let stored = match copy.slot(parameter.name) {
            Some(Slot::Number(number)) => *number,
            Some(Slot::Switch(switch)) => *switch as u32,
            None => unreachable!("every listed parameter has a slot"),
        };
        Ok(match parameter.kind {
            Kind::Whole | Kind::Switch => Decimal::from_millionths(stored as i64 * 1_000_000),
            Kind::Fraction { numerator, denominator } => Decimal::from_ratio(stored * denominator, numerator),
        })
    }

    fn parameter(&self, name: &str) -> Result<&'static ParameterInfo, ParamError> {
        let info = self.info();
        let unknown = ParamError::Unknown { controller: info.name, expected: info.parameters };
        info.parameters.iter().find(|parameter| parameter.name == name).ok_or(unknown)
    }

    fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        match self {
            Params::Reno(params) => params.slot(name),
            Params::Cubic(params) => params.slot(name),
            Params::Bbr1(params) => params.slot(name),
            Params::Vegas(params) => params.slot(name),
            Params::Fixed(params) => params.slot(name),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_listed_controller_and_parameter_can_be_reached_and_holds_its_stated_default() {
        for info in CATALOGUE {
            let mut params = Params::by_name(info.name).unwrap();
            assert_eq!(params.info(), info);
            for parameter in info.parameters {
                let ParameterInfo { name, default, min, max, .. } = *parameter;
                assert_eq!(params.get(name).unwrap(), default, "{} {name}", info.name);
                assert!(min <= default && default <= max, "{} {name}", info.name);
                let before = params;
                params.set(name, default).unwrap();
                assert_eq!(params, before, "{} {name}: setting the default changes nothing", info.name);
                for extreme in [min, max] {
                    params.set(name, extreme).unwrap();
                }
                params.set(name, default).unwrap();
            }
            assert_eq!(params, Params::by_name(info.name).unwrap());
        }
    }

    #[test]
    fn linux_names_work_too() {
        assert_eq!(Params::by_name("bbr").unwrap().name(), "bbr1");
        assert_eq!(Params::by_name("westwood"), None);
    }

    #[test]
    fn refusals_name_the_field_what_was_given_and_what_was_expected() {
        let mut params = Params::by_name("bbr1").unwrap();
        let before = params;
        let error = params.set("probe_gain", Decimal::from_integer(9)).unwrap_err();
        assert_eq!(error.to_string(), "probe_gain is 9; expected 1 to 3.996094");
        let error = params.set("full_bw_cnt", Decimal::from_millionths(2_500_000)).unwrap_err();
        assert_eq!(error.to_string(), "full_bw_cnt is 2.5; expected a whole number from 1 to 1000");
        let error = Params::by_name("reno").unwrap().set("beta", Decimal::ONE).unwrap_err();
        assert!(error.to_string().starts_with("no such parameter of reno; expected one of: "), "{error}");
        assert_eq!(params, before);
    }
}
