//! The receiver's own estimate of the round trip, which paces its window autotuning (Linux 6.18: `tcp_rcv_rtt_update`).
//!
//! A receiver of bulk data sends nothing that is acknowledged. It learns the round trip from the echoed
//! timestamps, in whole milliseconds, and from how long the sender takes to fill a window.

use fullpipe_units::{Duration, Time};

use crate::packet::stamp_ms;

/// Estimates of one receiver.
#[derive(Debug)]
pub(crate) struct RoundTrip {
    /// The RTT of the handshake; zero if it was ambiguous (Linux: `srtt_us`, which is not updated afterwards).
    handshake: Duration,
    /// Eight times the smoothed estimate, microseconds; zero before the first sample (Linux: `rcv_rtt_est.rtt_us`).
    smoothed_x8_us: u32,
    /// The timestamp that gave the last sample (Linux: `rcv_rtt_last_tsecr`).
    last_echo: Option<u16>,
    /// The byte that ends the window being timed, and when timing began (Linux: `rcv_rtt_est.seq` and `time`).
    window_end: u64,
    window_start: Time,
}

impl RoundTrip {
    pub(crate) fn new() -> RoundTrip {
        RoundTrip {
            handshake: Duration::ZERO,
            smoothed_x8_us: 0,
            last_echo: None,
            window_end: 0,
            window_start: Time::NEVER,
        }
    }

    /// The handshake took `rtt`.
    pub(crate) fn on_established(&mut self, rtt: Duration) {
        self.handshake = rtt;
    }

    /// Data arrived that echoes the time at which an ACK left, the low 16 bits of milliseconds. Only full segments
    /// count (Linux: `tcp_rcv_rtt_measure_ts`), and each echo once.
    #[inline]
    pub(crate) fn on_echo(&mut self, now: Time, echo: u16, full: bool) {
        if self.last_echo == Some(echo) {
            return;
        }
        self.last_echo = Some(echo);
        let millis = (stamp_ms(now) as u16).wrapping_sub(echo);
        if full && millis > 0 {
            self.sample(millis as u32 * 1000);
        }
    }

    /// Data up to byte `next` is in order, and `window` bytes may follow. Filling a window takes a round trip or longer,
    /// so it can only lower the estimate (Linux: `tcp_rcv_rtt_measure`).
    #[inline]
    pub(crate) fn on_in_order(&mut self, now: Time, next: u64, window: u64) {
        if next < self.window_end {
            return;
        }
        if self.window_start != Time::NEVER {
            let micros = now.saturating_since(self.window_start).as_micros().clamp(1, u32::MAX as u64 >> 3);
            if self.smoothed_x8_us == 0 || (micros as u32) << 3 < self.smoothed_x8_us {
                self.sample(micros as u32);
            }
        }
        self.window_end = next + window;
        self.window_start = now;
    }

    /// Takes a lower value at once, a higher one by an eighth.
    fn sample(&mut self, micros: u32) {
        let sample = micros << 3;
        self.smoothed_x8_us = if self.smoothed_x8_us == 0 || sample < self.smoothed_x8_us {
            sample
        } else {
            self.smoothed_x8_us - (self.smoothed_x8_us >> 3) + micros
        };
    }

    /// The smoothed estimate; zero before the first sample.
    #[inline]
    pub(crate) fn smoothed(&self) -> Duration {
        Duration::from_nanos(self.smoothed_x8_us as u64 * 125)
    }

    /// The RTT of the handshake; zero if unknown.
    #[inline]
    pub(crate) fn handshake(&self) -> Duration {
        self.handshake
    }

    /// The lower of the two, which times compressed ACKs (Linux: `__tcp_ack_snd_check`).
    pub(crate) fn least(&self) -> Duration {
        if self.handshake == Duration::ZERO { self.smoothed() } else { self.smoothed().min(self.handshake) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(millis: u64) -> Time {
        Time::from_micros(millis * 1000 + 700)
    }

    #[test]
    fn lower_sample_replaces_higher_averages() {
        let mut round_trip = RoundTrip::new();
        for (now, echo, expected_us) in [(40, 0, 40_000), (130, 50, 45_000), (190, 150, 40_000)] {
            round_trip.on_echo(at_ms(now), echo, true);
            assert_eq!(round_trip.smoothed(), Duration::from_micros(expected_us), "at {now} ms");
        }
    }

    #[test]
    fn echo_counts_once_for_full_segments() {
        let mut round_trip = RoundTrip::new();
        round_trip.on_echo(at_ms(10), 10, true);
        round_trip.on_echo(at_ms(30), 20, false);
        round_trip.on_echo(at_ms(40), 20, true);
        assert_eq!(round_trip.smoothed(), Duration::ZERO);
        round_trip.on_echo(at_ms(50), 30, true);
        assert_eq!(round_trip.smoothed(), Duration::from_millis(20));
    }

    #[test]
    fn the_clock_wraps() {
        let mut round_trip = RoundTrip::new();
        round_trip.on_echo(at_ms(65_536 + 5), 65_531, true);
        assert_eq!(round_trip.smoothed(), Duration::from_millis(10));
    }

    #[test]
    fn slow_window_gives_no_sample() {
        let mut round_trip = RoundTrip::new();
        round_trip.on_echo(at_ms(40), 0, true);
        round_trip.on_in_order(at_ms(40), 1000, 60_000);
        round_trip.on_in_order(at_ms(60), 61_000, 60_000);
        assert_eq!(round_trip.smoothed(), Duration::from_millis(20), "a window in 20 ms");
        round_trip.on_in_order(at_ms(200), 121_000, 60_000);
        assert_eq!(round_trip.smoothed(), Duration::from_millis(20));
    }
}
