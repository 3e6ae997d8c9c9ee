//! Replays a whole recording: every flow once, with work that grows only with the number of calls.

use alloc::vec;
use alloc::vec::Vec;

use crate::{Call, Ops, Replayed, replay_flow};

/// Replays every flow of a recording of `ops`. The flows of `calls` are numbered below `flows`; `hz` is the kernel's
/// `CONFIG_HZ`.
pub fn replay_all(ops: Ops, hz: u32, flows: u32, calls: &[Call]) -> Replayed {
    let mut all = replay_flow(ops, hz, []);
    for positions in positions(flows, calls).iter() {
        all.add(&replay_flow(
            ops,
            hz,
            positions.iter().map(|&index| (u64::from(index), &calls[index as usize])),
        ));
    }
    all
}

/// The positions of each flow's calls, in order.
struct Positions {
    /// All positions, one flow after the other.
    all: Vec<u32>,
    /// Where each flow begins in `all`, and the end.
    begins: Vec<usize>,
}

impl Positions {
    fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.begins.windows(2).map(|ends| &self.all[ends[0]..ends[1]])
    }
}

/// Visits each call twice, however many flows there are.
///
/// # Panics
/// When the flow of a call is not below `flows`.
fn positions(flows: u32, calls: &[Call]) -> Positions {
    let mut begins = vec![0; flows as usize + 1];
    for call in calls {
        begins[call.flow as usize + 1] += 1;
    }
    for flow in 0..flows as usize {
        begins[flow + 1] += begins[flow];
    }
    let mut next = begins.clone();
    let mut all = vec![0; calls.len()];
    for (position, call) in calls.iter().enumerate() {
        let place = &mut next[call.flow as usize];
        all[*place] = position as u32;
        *place += 1;
    }
    Positions { all, begins }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::Hook;
    use proptest::prelude::*;

    fn of_flow(flow: u32) -> Call {
        Call { flow, hook: Hook::SetState, ..Call::default() }
    }

    /// A search through all calls for every flow would be 10^11 steps here, which takes minutes.
    #[test]
    fn many_flows_cost_only_their_calls() {
        let flows = 300_000;
        let calls: Vec<Call> = (0..flows).map(of_flow).collect();
        let found = replay_all(Ops::Cubic, 250, flows, &calls);
        assert_eq!(found.replayed + found.skipped, u64::from(flows));
    }

    proptest! {
        #[test]
        fn calls_stay_ordered_within_their_flow(flows in prop::collection::vec(0..5_u32, 0..50)) {
            let calls: Vec<Call> = flows.iter().map(|&flow| of_flow(flow)).collect();
            let positions = positions(5, &calls);
            for (flow, found) in positions.iter().enumerate() {
                let expected: Vec<u32> =
                    (0..flows.len() as u32).filter(|&at| flows[at as usize] as usize == flow).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }
}
