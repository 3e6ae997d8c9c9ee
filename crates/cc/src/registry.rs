//! The registry of built-in controllers: one line each, and everything else follows.
//!
//! [`CATALOGUE`] lists them, [`Params::by_name`] gives the parameters of one with Linux's defaults, and [`Any`] is each of
//! them behind one type, without dynamic dispatch. `README.md` of this crate says how to add one.

use crate::controller::*;
use crate::controllers::profiles::PROFILES;
use crate::controllers::{bbr3, bbr3_linux, cubic9438, dctcp, fixed, newreno, reno};
use crate::parameter::{ControllerInfo, Decimal, Kind, ParamError, ParameterInfo, Slot};

/// Calls a method of the variant.
macro_rules! each {
    ($self:ident, [$($Type:ident)+], $controller:ident => $call:expr) => {
        match $self {
            $(Any::$Type($controller) => $call,)+
        }
    };
}

/// The codepoint that a rule gives to the packets of a controller with these parameters; none without a rule.
macro_rules! codepoint {
    ($params:ident,) => {{
        let _ = $params;
        None
    }};
    ($params:ident, $rule:expr) => {
        Option::<Ect>::from($rule($params))
    };
}

/// Tells the variant of a frequent event, in a copy of its own: if a reference to the event reached a controller that is not
/// inlined, every ACK of every other one would write its event to memory too, a tenth of a simulation.
macro_rules! report {
    ($self:ident, [$($Type:ident)+], $method:ident($event:ident)) => {
        each!($self, [$($Type)+], controller => {
            let event = *$event;
            controller.$method(&event)
        })
    };
}

/// Whether a controller with these parameters counts bytes; without a rule it counts segments.
macro_rules! bytes {
    ($params:ident,) => {{
        let _ = $params;
        false
    }};
    ($params:ident, $rule:expr) => {
        $rule($params)
    };
}

/// How many windows the send buffer of a controller's host is to hold; two without a number, as in Linux without the hook.
macro_rules! windows {
    () => {
        2
    };
    ($windows:expr) => {
        $windows
    };
}

/// Builds the registry from its lines, `Type in module, paced: rule;`. The module has the type with its constructor, its
/// `Params` and its `INFO`; the rule says whether a controller with these parameters works only if the host paces. A second one,
/// `ecn: rule`, makes it need ECN, and says with which codepoint its packets leave. A third one, `bytes: rule`, says whether it
/// counts bytes. `windows: number` says how many windows the host's send buffer is to hold.
///
/// Lines in brackets after them are other profiles of controllers that have several: a parameter chooses them ([`Params::profile`]),
/// and no list has them.
macro_rules! controllers {
    (
        $($(#[$about:meta])* $Type:ident in $module:ident, paced: $paced:expr $(, ecn: $ecn:expr)? $(, bytes: $bytes:expr)?
            $(, windows: $windows:expr)?;)+
        [$($(#[$note:meta])* $Profile:ident in $place:ident, paced: $paces:expr $(, ecn: $marks:expr)?
            $(, windows: $buffered:expr)?;)*]
    ) => {
        /// Every controller, in the order in which they should be listed.
        pub const CATALOGUE: &[ControllerInfo] = &[$($crate::controllers::$module::INFO),+];

        /// A controller with its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant, reason = "parameters are copied once a flow")]
        pub enum Params {
            $($(#[$about])* $Type($crate::controllers::$module::Params),)+
            $($(#[$note])* $Profile($crate::controllers::$place::Params),)*
        }

        impl Params {
            /// The defaults of the controller called `name`, its own or Linux's.
            pub fn by_name(name: &str) -> Option<Params> {
                let is = |info: &ControllerInfo| info.name == name || info.linux_name == Some(name);
                $(if is(&$crate::controllers::$module::INFO) {
                    return Some(Params::$Type($crate::controllers::$module::Params::default()));
                })+
                None
            }

            /// The description of the controller.
            pub const fn info(&self) -> &'static ControllerInfo {
                match self {
                    $(Params::$Type(_) => &$crate::controllers::$module::INFO,)+
                    $(Params::$Profile(_) => &$crate::controllers::$place::INFO,)*
                }
            }

            /// Whether the controller works only if the host paces ([`Config::paced`]).
            pub fn needs_pacing(&self) -> bool {
                match self {
                    $(Params::$Type(params) => $paced(params),)+
                    $(Params::$Profile(params) => $paces(params),)*
                }
            }

            /// Whether the controller needs ECN, and the codepoint with which all its packets leave if so (Linux:
            /// `TCP_CONG_NEEDS_ECN`). Where ECN cannot be negotiated, [`Params::without_ecn`] runs instead.
            pub fn ecn(&self) -> Option<Ect> {
                match self {
                    $(Params::$Type(params) => codepoint!(params, $($ecn)?),)+
                    $(Params::$Profile(params) => codepoint!(params, $($marks)?),)*
                }
            }

            /// Whether the controller counts bytes, so that it is exact in units of one byte and of a segment
            /// ([`Config::unit`]). If not, it counts segments, and needs [`Segments`](crate::Segments) where units are bytes.
            pub fn counts_bytes(&self) -> bool {
                match self {
                    $(Params::$Type(params) => bytes!(params, $($bytes)?),)+
                    $(Params::$Profile(_) => false,)*
                }
            }

            /// How many congestion windows a host that grows its send buffers lets one hold for this controller: two, or as
            /// many as the controller asks for because it may send more than its window soon (Linux: `sndbuf_expand`).
            pub const fn send_windows(&self) -> u64 {
                match self {
                    $(Params::$Type(_) => windows!($($windows)?),)+
                    $(Params::$Profile(_) => windows!($($buffered)?),)*
                }
            }

            pub(crate) fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
                match self {
                    $(Params::$Type(params) => params.slot(name),)+
                    $(Params::$Profile(params) => params.slot(name),)*
                }
            }
        }

        /// One of the built-in controllers.
        #[derive(Clone, Copy, Debug)]
        #[repr(u8)] // A separate tag is faster to read than one hidden in a variant's bool.
        #[allow(clippy::large_enum_variant, reason = "one a flow; a box would need an allocator")]
        pub enum Any {
            $($(#[$about])* $Type($crate::controllers::$module::$Type),)+
            $($(#[$note])* $Profile($crate::controllers::$place::$Profile),)*
        }

        impl Any {
            /// The controller that `params` names, for a connection whose handshake is done.
            pub fn new(params: &Params, config: &Config, connection: &Connection) -> Any {
                match params {
                    $(Params::$Type(params) => Any::$Type($crate::controllers::$module::$Type::new(params, config, connection)),)+
                    $(Params::$Profile(params) => {
                        Any::$Profile($crate::controllers::$place::$Profile::new(params, config, connection))
                    })*
                }
            }
        }

        impl Controller for Any {
            fn on_transmit_start(&mut self, start: &TransmitStart) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_transmit_start(start))
            }
            fn on_window_unused(&mut self, unused: &WindowUnused) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_window_unused(unused))
            }
            #[inline]
            fn on_sent(&mut self, sent: &Sent) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_sent(sent))
            }
            /// Called once per ACK, and half of them do nothing: inlined, it costs those no call.
            #[inline(always)]
            fn on_rtt(&mut self, sample: &RttSample) {
                report!(self, [$($Type)+ $($Profile)*], on_rtt(sample))
            }
            #[inline]
            fn on_lost(&mut self, lost: &Lost) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_lost(lost))
            }
            fn on_ce(&mut self, marks: &CeMarks) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_ce(marks))
            }
            fn on_tail_repair(&mut self, repair: &TailRepair) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_tail_repair(repair))
            }
            fn on_discarded(&mut self, discarded: &Discarded) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_discarded(discarded))
            }
            fn on_state(&mut self, change: &StateChange) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_state(change))
            }
            fn on_undo(&mut self, undo: &Undo) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_undo(undo))
            }
            #[inline]
            fn on_ack(&mut self, ack: &Ack) {
                report!(self, [$($Type)+ $($Profile)*], on_ack(ack))
            }
            fn on_mss(&mut self, mss: u32) {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.on_mss(mss))
            }
            /// Inlined for the same reason.
            #[inline(always)]
            fn limits(&self) -> Limits {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.limits())
            }
            fn snapshot(&self) -> Snapshot {
                each!(self, [$($Type)+ $($Profile)*], controller => controller.snapshot())
            }
        }
    };
}

controllers! {
    /// Reno: halves on loss.
    Reno in reno, paced: never;
    /// CUBIC, with HyStart.
    Cubic in cubic, paced: never;
    /// NewReno by QUIC's rules.
    NewReno in newreno, paced: newreno::Params::is_paced, bytes: always;
    /// CUBIC by its RFC.
    Cubic9438 in cubic9438, paced: cubic9438::Params::is_paced, bytes: always;
    /// BBR version 1.
    Bbr1 in bbr1, paced: always, windows: 3;
    /// BBR version 3.
    Bbr3 in bbr3, paced: always, bytes: always, windows: 3;
    /// Vegas: answers delay.
    Vegas in vegas, paced: never;
    /// Copa: answers delay by a target rate.
    Copa in copa, paced: always;
    /// DCTCP: answers the share of marked segments.
    Dctcp in dctcp, paced: never, ecn: dctcp::Params::codepoint;
    /// A fixed window or rate.
    Fixed in fixed, paced: fixed::Params::is_paced;
    [
        /// BBR version 3 as Google's kernel has it.
        Bbr3Linux in bbr3_linux, paced: always, ecn: bbr3_linux::Params::codepoint, windows: 3;
    ]
}

/// The host need not pace.
const fn never<P>(_: &P) -> bool {
    false
}

/// The host must pace, the controller counts bytes.
const fn always<P>(_: &P) -> bool {
    true
}

impl Params {
    /// Sets one parameter. Nothing changes if it is rejected.
    ///
    /// # Errors
    /// When there is no parameter of this name, or the value is not one that it takes.
    pub fn set(&mut self, name: &str, value: Decimal) -> Result<(), ParamError> {
        let parameter = self.parameter(name)?;
        let &ParameterInfo { name: field, min, max, kind, .. } = parameter;
        if value < min || value > max {
            return Err(ParamError::OutOfRange { field, given: value, min, max });
        }
        if !matches!(kind, Kind::Fraction { .. }) && !value.is_whole() {
            return Err(ParamError::NotWhole { field, given: value, min, max });
        }
        let stored = kind.stored(value);
        match self.slot(field) {
            Some(Slot::Number(number)) => *number = stored,
            Some(Slot::Switch(switch)) => *switch = stored != 0,
            None => self.take_profile(stored),
        }
        Ok(())
    }

    /// Sets a parameter of [`Kind::Choice`] by name. A change of the profile sets all its parameters to their defaults: choose it
    /// first.
    ///
    /// # Errors
    /// When there is no parameter of this name, it is no choice, or this is none of its names.
    pub fn choose(&mut self, name: &str, choice: &str) -> Result<(), ParamError> {
        let parameter = self.parameter(name)?;
        let expected = if let Kind::Choice(names) = parameter.kind { names } else { &[] };
        let Some(place) = expected.iter().position(|name| *name == choice) else {
            return Err(ParamError::NotAChoice { field: parameter.name, expected });
        };
        self.set(parameter.name, Decimal::from_integer(place as i32))
    }

    /// The value of one parameter, as stored.
    ///
    /// # Errors
    /// When there is no parameter of this name.
    pub fn get(&self, name: &str) -> Result<Decimal, ParamError> {
        let parameter = self.parameter(name)?;
        let mut copy = *self;
        let stored = match copy.slot(parameter.name) {
            Some(Slot::Number(number)) => *number,
            Some(Slot::Switch(switch)) => *switch as u32,
            None => self.profile().map_or(0, |(place, _)| place),
        };
        Ok(parameter.kind.value(stored))
    }

    fn parameter(&self, name: &str) -> Result<&'static ParameterInfo, ParamError> {
        let info = self.info();
        let unknown = ParamError::Unknown { controller: info.name, expected: info.parameters };
        let parameter = info.parameters.iter().find(|parameter| parameter.name == name).ok_or(unknown)?;
        match (parameter.profile, self.profile()) {
            (Some(needed), Some((_, chosen))) if needed != chosen => {
                Err(ParamError::OtherProfile { field: parameter.name, needed, chosen })
            }
            _ => Ok(parameter),
        }
    }
}

impl Params {
    /// The defaults of every controller, in each of its profiles.
    pub fn all() -> impl Iterator<Item = Params> {
        CATALOGUE.iter().filter_map(|info| Params::by_name(info.name)).flat_map(|params| {
            let profiles = params.profile().map_or(1, |_| PROFILES.len() as u32);
            (0..profiles).map(move |place| {
                let mut params = params;
                params.take_profile(place);
                params
            })
        })
    }

    /// The controller's name.
    pub const fn name(&self) -> &'static str {
        self.info().name
    }

    /// What a connection runs with that has not negotiated ECN: Reno instead of DCTCP (Linux: `dctcp_reno`), Google's BBRv3
    /// without ECN, and any other itself.
    pub const fn without_ecn(&self) -> Params {
        match self {
            Params::Dctcp(params) => Params::Reno(reno::Params { core: params.core }),
            Params::Bbr3Linux(params) => Params::Bbr3Linux(bbr3_linux::Params { ecn: false, ..*params }),
            params => *params,
        }
    }

    /// The specification that is followed, of a controller that has several: its place among the choices of the parameter `profile`,
    /// and its name.
    pub const fn profile(&self) -> Option<(u32, &'static str)> {
        match self {
            Params::Bbr3(_) => Some((0, PROFILES[0])),
            Params::Bbr3Linux(_) => Some((1, PROFILES[1])),
            _ => None,
        }
    }

    /// Takes the profile at this place; if it is another one, with its defaults.
    pub(crate) fn take_profile(&mut self, place: u32) {
        if self.profile().is_some_and(|(present, _)| present != place) {
            *self = match place {
                0 => Params::Bbr3(bbr3::Params::default()),
                _ => Params::Bbr3Linux(bbr3_linux::Params::default()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn dctcp_without_ecn_is_reno() {
        for info in CATALOGUE {
            let params = Params::by_name(info.name).unwrap();
            assert_eq!(params.ecn(), (info.name == "dctcp").then_some(Ect::Zero), "{}", info.name);
            assert_eq!(params.without_ecn() == params, params.ecn().is_none(), "{}", info.name);
            assert_eq!(params.without_ecn().ecn(), None, "{}", info.name);
        }
        let mut params = Params::by_name("dctcp").unwrap();
        params.set("ect1", crate::Decimal::ONE).unwrap();
        params.set("pacing_ca_ratio", crate::Decimal::from_integer(150)).unwrap();
        assert_eq!(params.ecn(), Some(Ect::One));
        let reno = params.without_ecn();
        assert_eq!(
            (reno.name(), reno.get("pacing_ca_ratio")),
            ("reno", Ok(crate::Decimal::from_integer(150)))
        );
    }

    #[test]
    fn google_bbr3_negotiates_ecn_if_enabled() {
        let mut params = Params::by_name("bbr3").unwrap();
        params.choose("profile", "linux").unwrap();
        assert_eq!((params.ecn(), params.without_ecn()), (None, params));
        params.set("ecn", crate::Decimal::ONE).unwrap();
        assert_eq!(params.ecn(), Some(Ect::Zero));
        assert_eq!(params.without_ecn().get("ecn"), Ok(crate::Decimal::from_integer(0)));
    }

    #[test]
    fn controller_state_fits_512_bytes() {
        assert!(size_of::<Any>() <= 512, "{} bytes", size_of::<Any>());
    }

    #[test]
    fn every_parameter_has_its_listed_default() {
        for info in CATALOGUE {
            let mut params = Params::by_name(info.name).unwrap();
            assert_eq!(params.info(), info);
            for parameter in info.parameters {
                let ParameterInfo { name, default, min, max, profile, .. } = *parameter;
                if let Some(profile) = profile {
                    params.choose("profile", profile).unwrap();
                }
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
            if params.profile().is_some() {
                params.set("profile", Decimal::from_integer(0)).unwrap();
            }
            assert_eq!(params, Params::by_name(info.name).unwrap());
        }
    }

    #[test]
    fn profile_has_its_own_parameters() {
        let mut params = Params::by_name("bbr3").unwrap();
        assert_eq!(params.get("profile"), Ok(Decimal::from_integer(0)));
        let error = params.set("fast_path", Decimal::from_integer(0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "fast_path exists only with profile=linux, and profile=draft is chosen"
        );
        let error = params.choose("profile", "lunix").unwrap_err();
        assert_eq!(error.to_string(), "profile is none of its choices; expected one of: draft, linux");
        let error = params.choose("beta", "large").unwrap_err();
        assert_eq!(error.to_string(), "beta takes a number");
        params.choose("profile", "linux").unwrap();
        assert_eq!((params.name(), params.get("profile")), ("bbr3", Ok(Decimal::ONE)));
        params.set("fast_path", Decimal::from_integer(0)).unwrap();
        params.choose("profile", "linux").unwrap();
        assert_eq!(
            params.get("fast_path"),
            Ok(Decimal::from_integer(0)),
            "the same profile again changes nothing"
        );
        let error = params.set("beta", Decimal::ONE).unwrap_err();
        assert_eq!(error.to_string(), "beta exists only with profile=draft, and profile=linux is chosen");
        assert_eq!(params.info().parameters, Params::by_name("bbr3").unwrap().info().parameters);
        assert_ne!(params.info().source, Params::by_name("bbr3").unwrap().info().source);
    }

    #[test]
    fn linux_names_work_too() {
        assert_eq!(Params::by_name("bbr").unwrap().name(), "bbr1");
        assert_eq!(Params::by_name("westwood"), None);
    }

    #[test]
    fn errors_name_field_value_and_expectation() {
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
