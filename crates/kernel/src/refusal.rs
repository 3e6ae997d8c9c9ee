//! Why a scenario cannot run in the kernel world.

use std::io;

use fullpipe_emu::sysctl::sysctl;
use fullpipe_emu::{EmuError, Path};
use fullpipe_scenario::spec::{HostSpec, Spec};

use crate::KernelError;
use crate::bbr;
use crate::congestion::is_ours;
use crate::host::MAX_FLOWS;

/// The settings of the hosts, which all connections share.
///
/// # Errors
/// When some flows are to negotiate ECN and others are not, a receiver is to lie, or a flow is media or goes the other way.
pub(crate) fn hosts_of(spec: &Spec) -> Result<HostSpec, KernelError> {
    let place = "the kernel";
    spec.check_no_lie(place)
        .and_then(|()| spec.check_no_media(place))
        .and_then(|()| spec.check_no_reverse(place))
        .map_err(|error| unsupported_field(error.field, &error.given, &error.problem, error.fix))?;
    match spec.shared_ecn() {
        Ok(ecn) => Ok(HostSpec { ecn, ..spec.hosts.clone() }),
        Err(number) => Err(KernelError::from(EmuError::Unsupported {
            field: format!("flows[{number}].ecn"),
            reason: "Linux negotiates ECN for all connections of a host, or for none".to_owned(),
            fix: "give all flows the same ecn, or use the simulator (--world sim)".to_owned(),
        })),
    }
}

/// Refuses programs where they do not run.
pub(crate) fn check_no_program(spec: &Spec, place: &str) -> Result<(), KernelError> {
    spec.check_no_program(place)
        .map_err(|error| unsupported_field(error.field, &error.given, &error.problem, error.fix))
}

fn unsupported_field(field: String, given: &str, problem: &str, fix: impl Into<String>) -> KernelError {
    EmuError::Unsupported { field, reason: format!("{given} {problem}"), fix: fix.into() }.into()
}

/// Refuses scenarios that the kernel world cannot run, before anything is set up.
pub(crate) fn check(spec: &Spec) -> Result<(), KernelError> {
    check_no_program(spec, "the recorder")?;
    let unsupported = |field: String, reason: String, fix: &str| {
        Err(EmuError::Unsupported { field, reason, fix: fix.to_owned() }.into())
    };
    if spec.flows.is_empty() || spec.flows.len() > MAX_FLOWS {
        return unsupported(
            "flows".to_owned(),
            format!("the kernel world runs 1 to {MAX_FLOWS} flows, the scenario has {}", spec.flows.len()),
            "change the number of flows",
        );
    }
    if spec.hosts.metrics.as_ref().is_some_and(|metrics| !metrics.is_empty()) {
        return unsupported(
            "hosts.metrics".to_owned(),
            "Linux does not let anybody write its metrics".to_owned(),
            "begin with an earlier flow that leaves them, or use the simulator (--world sim)",
        );
    }
    hosts_of(spec)?;
    Path::of(spec, spec.seed).with_router()?.check()?;
    for (number, flow) in spec.flows.iter().enumerate() {
        if flow.controller.stack().is_some() {
            return unsupported(
                format!("flows[{number}].controller"),
                format!("only the world quic runs {}", flow.controller),
                "use a controller of Linux (`fullpipe controllers` lists them), or the world quic (--world quic)",
            );
        }
        if !bbr::is_in_a_kernel(&flow.controller) && !is_ours(&flow.controller) {
            return unsupported(
                format!("flows[{number}].controller"),
                format!("Linux has no {:?}, and no object of ours has it", flow.controller.text()),
                "use a controller of Linux without changed parameters (`fullpipe controllers` lists them), bbr1 or bbr3 \
                 with any, or the simulator (--world sim)",
            );
        }
        if flow.max_cwnd.is_some() {
            return unsupported(
                format!("flows[{number}].max_cwnd"),
                "the kernel world cannot cap cwnd".to_owned(),
                "leave max_cwnd out, limit the window by tcp_wmem or tcp_rmem, or use the simulator (--world sim)",
            );
        }
    }
    Ok(())
}

/// Why a socket does not take an algorithm.
pub(crate) fn no_algorithm(name: &str, error: io::Error) -> KernelError {
    if error.raw_os_error() != Some(libc::ENOENT) {
        return KernelError::system(format!("use congestion control {name}"), error);
    }
    let available = sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    KernelError::NoAlgorithm {
        name: name.to_owned(),
        available: available.split_whitespace().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::spec;
    use fullpipe_scenario::controller::ControllerChoice;
    use fullpipe_scenario::spec::{Direction, Lie};

    #[test]
    fn kernel_limitations_are_refused_by_field() {
        assert!(check(&spec(100_000)).is_ok());
        let mut capped = spec(100_000);
        capped.flows[0].max_cwnd = Some(10);
        let error = check(&capped).unwrap_err();
        assert_eq!(error.to_string(), "flows[0].max_cwnd: the kernel world cannot cap cwnd");
        assert!(error.fix().contains("--world sim"));
        // What is wrong with the hosts comes before what is wrong with a flow of theirs.
        capped.hosts.metrics =
            Some(fullpipe_scenario::metrics::MetricsSpec { cwnd: 10, ..Default::default() });
        assert!(check(&capped).unwrap_err().to_string().starts_with("hosts.metrics: "));
        let mut lying = spec(100_000);
        lying.flows[0].receiver = Some(Lie::HidesLoss);
        let expected =
            "flows[0].receiver: \"hides_loss\" is a lie, and the receivers of the kernel tell none";
        assert_eq!(check(&lying).unwrap_err().to_string(), expected);
        let text = "path = { rate = \"9 Mbit/s\", rtt = \"9 ms\" }\n[[flows]]\nmedia = { frame = \"9 kB\", every = \"9 ms\" }";
        let media = fullpipe_scenario::resolve(text, fullpipe_scenario::Format::Toml, None).unwrap();
        let expected = "flows[0].media: \"media\" is a flow that only the simulator runs, not the kernel";
        assert_eq!(check(&media).unwrap_err().to_string(), expected);
        let mut other_way = spec(100_000);
        other_way.flows[0].direction = Direction::Reverse;
        let expected = "flows[0].direction: \"reverse\" is a direction in which the kernel sends no data";
        assert_eq!(check(&other_way).unwrap_err().to_string(), expected);
        let mut of_a_stack = spec(100_000);
        of_a_stack.flows[0].controller = ControllerChoice::parse("quinn:bbr").unwrap();
        let error = check(&of_a_stack).unwrap_err();
        assert_eq!(error.to_string(), "flows[0].controller: only the world quic runs quinn:bbr");
        assert!(error.fix().contains("--world quic"));
        let mut none = spec(100_000);
        none.flows.clear();
        assert!(check(&none).unwrap_err().to_string().starts_with("flows: "));
    }
}
