//! Rejects values that no kernel records. Controllers may rely on it, so that none of their arithmetic overflows.

use super::{Call, Hook, Ops, Socket};
use fullpipe_cc::controller::CaState;

/// No flow has this many segments out: six gigabytes.
const MAX_SEGMENTS: u32 = 1 << 22;
/// Credit towards an increase, of which CUBIC demands up to 100 windows.
const MAX_CREDIT: u32 = 1 << 31;
/// Microseconds in 285 years.
const MAX_STAMP: u64 = 1 << 53;

/// The field that stands for private state of another layout.
pub(super) const OUTSIDE: &str = "icsk_ca_priv outside its fields";
/// What may be the cause of that.
pub(super) const SUPPORTED: &str =
    "; only Linux's own BBR version 1 and CUBIC can be replayed, and BBRv3's state has another layout";

/// A wrong number. `ours` is the value by the kernel's invariant or our controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unequal {
    pub(super) field: &'static str,
    pub(super) ours: u64,
    pub(super) kernel: u64,
}

/// The first of `pairs` (field, ours, kernel) that disagrees.
pub(super) fn unequal(pairs: &[(&'static str, u64, u64)]) -> Result<(), Unequal> {
    match pairs.iter().find(|(_, ours, kernel)| ours != kernel) {
        Some(&(field, ours, kernel)) => Err(Unequal { field, ours, kernel }),
        None => Ok(()),
    }
}

/// Segments believed in the network (Linux: `tcp_packets_in_flight`).
pub(super) const fn in_flight(socket: &Socket) -> u32 {
    socket
        .packets_out
        .wrapping_sub(socket.sacked_out.wrapping_add(socket.lost_out))
        .wrapping_add(socket.retrans_out)
}

/// Whether a kernel can have recorded this call of `ops`. A violated bound is reported as our value.
pub(super) fn check(ops: Ops, call: &Call) -> Result<(), Unequal> {
    let (socket, sample) = (&call.socket, &call.rate_sample);
    if !ops.has(call.hook) {
        return Err(Unequal { field: "hook", ours: Hook::Init as u64, kernel: call.hook as u64 });
    }
    for private in [&call.private_before, &call.private_after] {
        if !ops.owns(private) {
            return Err(Unequal { field: OUTSIDE, ours: 0, kernel: 1 });
        }
    }
    let to = if call.hook == Hook::SetState { call.arguments[0] } else { 0 };
    for (field, state) in [("ca_state", socket.ca_state as i64), ("new_state", to)] {
        if CaState::from_code(state).is_none() {
            return Err(Unequal { field, ours: 4, kernel: state as u64 });
        }
    }
    let acked = if call.hook == Hook::CongAvoid { call.arguments[1] } else { 0 };
    let segments = MAX_SEGMENTS as u64;
    let bounds = [
        ("mss_cache", socket.mss_cache as u64, 1, u16::MAX as u64),
        ("snd_cwnd", socket.snd_cwnd as u64, 1, segments),
        ("after_snd_cwnd", call.after.snd_cwnd as u64, 1, segments),
        ("snd_cwnd_clamp", socket.snd_cwnd_clamp as u64, 1, u32::MAX as u64),
        ("snd_cwnd_cnt", socket.snd_cwnd_cnt as u64, 0, MAX_CREDIT as u64),
        ("prior_cwnd", socket.prior_cwnd as u64, 0, segments),
        ("packets_out", socket.packets_out as u64, 0, segments),
        ("in_flight", in_flight(socket) as u64, 0, segments),
        ("max_packets_out", socket.max_packets_out as u64, 0, segments),
        ("acked", acked as u64, 0, segments),
        ("rs_acked_sacked", sample.acked_sacked as u64, 0, segments),
        ("rs_losses", sample.losses as u64, 0, segments),
        ("rs_prior_in_flight", sample.prior_in_flight as u64, 0, segments),
        ("rs_prior_mstamp", sample.prior_mstamp, 0, MAX_STAMP),
        ("tcp_mstamp", socket.tcp_mstamp, 0, MAX_STAMP),
        ("delivered_mstamp", socket.delivered_mstamp, 0, MAX_STAMP),
        ("first_tx_mstamp", socket.first_tx_mstamp, 0, MAX_STAMP),
    ];
    for (field, value, least, most) in bounds {
        if value < least || value > most {
            return Err(Unequal { field, ours: if value < least { least } else { most }, kernel: value });
        }
    }
    // tcp_mstamp_refresh writes both.
    unequal(&[("tcp_mstamp", socket.tcp_clock_cache / 1_000, socket.tcp_mstamp)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call;

    #[test]
    fn what_breaks_a_bound_is_named() {
        let good = call(Hook::Main);
        assert_eq!(check(Ops::Bbr, &good), Ok(()));
        let broken = |change: fn(&mut Call)| {
            let mut call = good;
            change(&mut call);
            check(Ops::Bbr, &call).unwrap_err().field
        };
        assert_eq!(broken(|call| call.socket.mss_cache = 0), "mss_cache");
        assert_eq!(broken(|call| call.after.snd_cwnd = u32::MAX), "after_snd_cwnd");
        assert_eq!(broken(|call| call.socket.lost_out = 1_000), "in_flight");
        assert_eq!(broken(|call| call.socket.ca_state = 5), "ca_state");
        assert_eq!(broken(|call| call.rate_sample.losses = -1), "rs_losses");
        assert_eq!(broken(|call| call.socket.tcp_clock_cache += 1_000), "tcp_mstamp");
        assert_eq!(broken(|call| call.hook = Hook::CongAvoid), "hook");
        assert_eq!(broken(|call| call.private_before[5] = 1 << 32), OUTSIDE);
    }
}
