//! What this machine can do for the kernel world, and how to fix what is missing.

use fullpipe_emu::Check;
use fullpipe_emu::sysctl::sysctl;
use fullpipe_replay::Ops;

use crate::KernelError;
use crate::bbr;
use crate::recorder;
use crate::sys;

/// Looks at everything the kernel world needs: the path, then TCP. Call it in a process of its own that has only one
/// thread: without root it enters a user namespace.
pub fn doctor() -> Vec<Check> {
    // Before a user namespace is entered, in which the process looks as if it might do anything.
    let recorder = recorder();
    let mut checks = fullpipe_emu::doctor();
    checks.extend(["bbr", "cubic", "reno"].map(algorithm));
    checks.push(version_of_bbr(&bbr::Machine));
    checks.push(optional_algorithm("dctcp"));
    checks.extend([default_algorithm(), timer_frequency(), recorder]);
    checks
}

/// Which of our controllers the kernel's `bbr` is.
fn version_of_bbr(shown: &impl bbr::Shown) -> Check {
    let name = "version of bbr";
    let and_bbr3 = match bbr::version(shown, "bbr3") {
        Ok(Some(version)) => format!("; its bbr3 is version {version}"),
        Ok(None) => "; its bbr3 does not tell its version".to_owned(),
        Err(_) => String::new(),
    };
    let found = format!("{}{and_bbr3}", bbr::described(shown));
    match bbr::version(shown, "bbr") {
        Ok(Some(1)) => Check::well(name, format!("{found}; runs as bbr1")),
        Ok(Some(3)) => Check::well(name, format!("{found}; runs as bbr3:profile=linux, never as bbr1")),
        _ => Check::ill(name, found, "run bbr1 in the simulator (--world sim)"),
    }
}

fn algorithm(name: &str) -> Check {
    let label = format!("congestion control {name}");
    let available = sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    if available.split_whitespace().any(|known| known == name) {
        return Check::well(&label, "available");
    }
    Check::ill(&label, format!("not among: {available}"), format!("as root: `modprobe tcp_{name}`"))
}

/// One that only the runs that name it need.
fn optional_algorithm(name: &str) -> Check {
    let found = algorithm(name);
    let message = if found.ok { found.found } else { format!("{}; {}", found.found, found.fix) };
    Check::well(&format!("congestion control {name} (optional)"), message)
}

/// Only `fullpipe kernel record` needs it.
fn recorder() -> Check {
    let name = "recorder of decisions (optional)";
    match Ops::ALL.into_iter().try_for_each(recorder::try_out) {
        Ok(()) => Check::well(name, "loads; bbr and cubic can be recorded"),
        Err(KernelError::Emu(error)) => Check::of(name, Err(error)),
        Err(error) => Check::ill(name, error.to_string(), error.fix()),
    }
}

fn default_algorithm() -> Check {
    let name = "default congestion control";
    let found = sysctl("net.ipv4.tcp_congestion_control").unwrap_or_else(|| "unknown".to_owned());
    // No harm: runs set the namespace's default to reno and each socket's own before it connects.
    Check::well(name, found)
}

/// TCP's own timers tick at this rate.
fn timer_frequency() -> Check {
    Check::well("timer frequency", format!("{} Hz", sys::ticks_per_second()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bbr::tests::Pretended;

    #[test]
    fn bbr_version_is_reported_correctly() {
        let reported = |shown: &Pretended| {
            let check = version_of_bbr(shown);
            (check.ok, check.found)
        };
        let (ok, found) = reported(&Pretended(&[("bbr", &[0; 20], None)]));
        assert!(ok && found == "its bbr is Linux's BBR version 1; runs as bbr1", "{found}");
        let (ok, found) = reported(&Pretended(&[("bbr", &[], Some("3"))]));
        assert!(
            ok && found.starts_with("its bbr is BBR version 3, Google's; runs as bbr3:profile=linux"),
            "{found}"
        );
        let (ok, found) = reported(&Pretended(&[("bbr", &[0; 20], None), ("bbr3", &[], Some("3"))]));
        assert!(ok && found.contains("; its bbr3 is version 3; runs as bbr1"), "{found}");
        let (ok, found) = reported(&Pretended(&[("bbr", &[], None)]));
        assert!(!ok && found == "its bbr does not tell its version", "{found}");
    }
}
