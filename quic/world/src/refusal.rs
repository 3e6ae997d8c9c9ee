//! What this world cannot run.

use fullpipe_scenario::ControllerChoice;
use fullpipe_scenario::bounds::MAX_MTU;
use fullpipe_scenario::spec::Spec;
use fullpipe_units::Duration;

use crate::cc::{self, Own};
use crate::options::{HEADER_BYTES, STACKS};
use crate::outside;

/// The smallest payload of UDP that a QUIC path carries (RFC 9000, section 14).
const LEAST_PAYLOAD: u32 = 1200;

/// What this world cannot do of a scenario: a sentence that says what to change. `None` if it can run it.
pub fn refuses(spec: &Spec) -> Option<String> {
    refuses_with(spec, &[])
}

/// The same, where the program brings controllers of its own.
pub fn refuses_with(spec: &Spec, own: &[Own]) -> Option<String> {
    // A scenario's largest MTU leaves less payload than the 65527 bytes that a stack can be given.
    let (least, most) = (LEAST_PAYLOAD + HEADER_BYTES, MAX_MTU);
    if !(least..=most).contains(&spec.mtu_bytes) {
        return Some(format!(
            "hosts.mtu: {} bytes; QUIC needs {least} to {most} bytes (RFC 9000, section 14): choose such an MTU",
            spec.mtu_bytes
        ));
    }
    if spec.hosts.gro_ns != Duration::ZERO {
        let behind = |stack: &str| own.iter().any(|one| one.stack() == stack && one.in_outside().is_some());
        let outside =
            spec.flows.iter().any(|flow| flow.controller.stack().is_some_and(|(stack, _)| behind(stack)));
        let who = if outside { "an adapter takes" } else { "QUIC endpoints take" };
        return Some(format!(
            "hosts.gro: {who} each datagram as it arrives; leave hosts.gro out, or choose another world"
        ));
    }
    if spec.hosts.metrics.is_some() {
        return Some(
            "hosts.metrics: QUIC connections begin without what earlier TCP connections left; leave it out"
                .into(),
        );
    }
    let place = "the world quic";
    let checked = spec
        .check_no_program(place)
        .and_then(|()| spec.check_no_lie(place))
        .and_then(|()| spec.check_no_media(place))
        .and_then(|()| spec.check_no_reverse(place));
    if let Err(error) = checked {
        return Some(error.to_string());
    }
    spec.flows.iter().enumerate().find_map(|(index, flow)| {
        let problem = refuses_controller(&flow.controller, own).or_else(|| {
            let (stack, name) = flow.controller.stack()?;
            let brought = own.iter().find(|one| one.stack() == stack && one.name() == name)?;
            outside::refuses(brought.in_outside()?, &flow.workload)
        })?;
        Some(format!("flows[{index}].controller: {problem}"))
    })
}

fn refuses_controller(choice: &ControllerChoice, own: &[Own]) -> Option<String> {
    if let Some((stack, name)) = choice.stack() {
        let shipped = STACKS.iter().filter(|one| one.name == stack).flat_map(|one| one.controllers);
        let brought = own.iter().filter(|one| one.stack() == stack).map(Own::name);
        let names: Vec<&str> = shipped.map(|one| one.0).chain(brought).collect();
        if names.is_empty() {
            let mut known: Vec<&str> = STACKS.iter().map(|one| one.name).collect();
            own.iter().for_each(|one| {
                if !known.contains(&one.stack()) {
                    known.push(one.stack());
                }
            });
            return Some(format!(
                "{stack} is not a stack of this world; it has {}. An adapter brings another: --stack {stack}=./adapter",
                known.join(", ")
            ));
        }
        return (!names.contains(&name)).then(|| {
            let names: Vec<String> = names.iter().map(|name| format!("{stack}:{name}")).collect();
            let names = names.join(", ");
            if own.is_empty() {
                // The program is the one that `make quic` builds: most likely another one was meant.
                return format!(
                    "{stack} has no controller {name}; choose {names}, or let FULLPIPE_QUIC name a program that has {name}"
                );
            }
            format!("{stack} has no controller {name}; choose {names}")
        });
    }
    let Some(params) = choice.params() else {
        return Some(format!(
            "{choice} runs in the simulator only; for a QUIC stack, build it into the program of this world"
        ));
    };
    cc::refuses(params)
}
