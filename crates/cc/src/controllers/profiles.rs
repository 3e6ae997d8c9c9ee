//! The profiles of BBRv3, of which a parameter chooses one: the draft ([`bbr3`]), Google's kernel ([`bbr3_linux`]), and the draft
//! with the changes that our measurements favour ([`bbr3::Params::repaired`]), which has the draft's parameters.

use crate::controllers::{bbr3, bbr3_linux};
use crate::parameter::{ControllerInfo, ParameterInfo, choice, joined, of_profile, total};

/// The profiles of which `bbr3` follows one; the names are those of the choices.
pub(crate) const PROFILES: &[&str] = &["draft", "linux", "repaired"];

const PROFILE: ParameterInfo = ParameterInfo {
    name: "profile",
    summary: "which BBRv3: the IETF's draft; Google's kernel, exact to its integers; or the draft, repaired for falling rates",
    source: "",
    ..choice(PROFILES, 0)
};

/// What `bbr3` has: the choice of the profile, then the parameters of each.
const BOTH: &[ParameterInfo] = {
    const PARTS: &[&[ParameterInfo]] = &[
        &[PROFILE],
        &of_profile::<{ bbr3::Params::PARAMETERS.len() }>(bbr3::Params::PARAMETERS, PROFILES[0]),
        &of_profile::<{ bbr3_linux::Params::PARAMETERS.len() }>(bbr3_linux::Params::PARAMETERS, PROFILES[1]),
    ];
    &joined::<{ total(PARTS) }>(PARTS)
};

/// BBRv3 as the draft has it.
pub(crate) const BBR3: ControllerInfo = ControllerInfo {
    name: "bbr3",
    summary: "paces at the measured bandwidth and bounds the flight by what earlier probes lost",
    source: bbr3::DRAFT,
    linux_name: None,
    answers_delay: false,
    parameters: BOTH,
};

/// As Google's kernel has it.
pub(crate) const BBR3_LINUX: ControllerInfo = ControllerInfo { source: bbr3_linux::SOURCE, ..BBR3 };
