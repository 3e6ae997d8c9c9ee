//! Settings of a network namespace, written.

use std::fs;

use fullpipe_scenario::spec::HostSpec;
use fullpipe_units::Bytes;

use crate::EmuError;
use crate::sysctl::{self, sysctl};

/// Writes a setting of the calling thread's namespace.
///
/// # Errors
/// When the kernel has no such setting or refuses the value.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), EmuError> {
    fs::write(sysctl::path(name), value)
        .map_err(|error| EmuError::system(format!("set {name} to {value:?}"), error))
}

/// Settings of a host's TCP that a scenario asks for, name and value: limits of its windows, no memory of earlier
/// connections, and ECN. A host that does not ask for ECN keeps Linux's default, 2: it agrees if the other asks.
pub fn tcp_settings(hosts: &HostSpec) -> Vec<(&'static str, String)> {
    let triple = |sizes: &[Bytes; 3]| {
        // The kernel's limit is a signed 32-bit integer.
        sizes.map(|size| size.as_u64().min(i32::MAX as u64).to_string()).join(" ")
    };
    let mut settings = vec![
        ("net.ipv4.tcp_rmem", triple(&hosts.tcp_rmem_bytes)),
        ("net.ipv4.tcp_wmem", triple(&hosts.tcp_wmem_bytes)),
        ("net.ipv4.tcp_no_metrics_save", u8::from(hosts.metrics.is_none()).to_string()),
    ];
    if let Some(metrics) = &hosts.metrics {
        let not = u8::from(!metrics.save_ssthresh).to_string();
        settings.push(("net.ipv4.tcp_no_ssthresh_metrics_save", not));
    }
    if hosts.ecn {
        settings.push(("net.ipv4.tcp_ecn", "1".to_owned()));
    }
    settings
}

/// Applies settings to the calling thread's namespace. Returns a sentence for each that is not in force then.
pub fn apply(settings: &[(&str, String)]) -> Vec<String> {
    let mut reasons = Vec::new();
    for (name, value) in settings {
        let outcome = set_sysctl(name, value);
        let found = sysctl(name);
        if found.as_ref() != Some(value) {
            let why = outcome.err().map_or(String::new(), |error| format!(" ({error})"));
            reasons.push(format!("{name} is {found:?} (expected {value:?}){why}"));
        }
    }
    reasons
}
