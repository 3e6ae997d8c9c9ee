//! From the kernel's numbers to those of the controllers: wrapping counters, clocks, the connection.

use super::Call;
use super::plausible::in_flight;
use fullpipe_cc::controller::{CaState, Connection};
use fullpipe_units::{Duration, Time};

/// A counter that is 32 bits wide in the kernel and 64 here. It starts one turn above zero, so that it can also go back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unwrapped(Option<u64>);

impl Unwrapped {
    /// Follows the counter to `raw`, the shorter way round.
    pub(super) fn follow(&mut self, raw: u32) -> u64 {
        let value = self.near(raw);
        self.0 = Some(value);
        value
    }

    /// The value nearest to the present one that ends in `raw`.
    pub(super) fn near(&self, raw: u32) -> u64 {
        let base = self.0.unwrap_or(1 << 32 | raw as u64);
        base.wrapping_add_signed(raw.wrapping_sub(base as u32) as i32 as i64)
    }
}

/// A stamp of the kernel in microseconds.
pub(super) fn micros(us: u64) -> Time {
    Time::from_nanos(us.saturating_mul(1_000))
}

/// The counters that a connection unwraps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) delivered: Unwrapped,
    lost: Unwrapped,
}

impl Counters {
    /// The connection as a controller sees it. `random` is what it shall draw.
    pub(super) fn connection(&mut self, call: &Call, random: u32) -> Connection {
        let socket = &call.socket;
        Connection {
            now: Time::from_nanos(socket.tcp_clock_cache),
            jiffies: socket.jiffies32,
            delivered: self.delivered.follow(socket.delivered),
            delivered_time: micros(socket.delivered_mstamp),
            lost: self.lost.follow(socket.lost),
            packets_out: socket.packets_out,
            in_flight: in_flight(socket),
            // The kernel keeps eighths of a microsecond: 125 ns.
            srtt: Duration::from_nanos(socket.srtt_us as u64 * 125),
            min_rtt: Duration::from_micros(socket.min_rtt_us as u64),
            departure: Time::from_nanos(socket.tcp_wstamp_ns),
            state: CaState::from_code(socket.ca_state as i64).unwrap_or_default(),
            app_limited: socket.app_limited != 0,
            random,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_follow_wrap_both_directions() {
        let mut counter = Unwrapped::default();
        let start = counter.follow(u32::MAX);
        assert_eq!(start as u32, u32::MAX);
        assert_eq!(counter.follow(3), start + 4);
        assert_eq!(counter.near(u32::MAX - 1), start - 1);
        assert_eq!(counter.follow(3), start + 4, "looking does not move it");
        assert_eq!(Unwrapped::default().follow(0), 1 << 32);
    }
}
