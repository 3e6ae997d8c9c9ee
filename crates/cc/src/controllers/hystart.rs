//! HyStart: ends slow start when the round's ACKs, or its RTTs, show that the pipe is full.
//!
//! Specification: Linux 6.12 `net/ipv4/tcp_cubic.c` (`hystart_update`), which differs from RFC 9406 (HyStart++): it never
//! returns to slow start. Deviations: docs/reference/deviations.md#cubic.

use crate::controller::Config;
use crate::controllers::segment_window::{Pacing, Sampled};
use crate::parameter::parameters;

/// RTT samples of a round before its minimum counts (Linux: `HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// The RTT's rise that counts is an eighth of the minimum, within these bounds (Linux: `HYSTART_DELAY_MIN`, `_MAX`).
const DELAY_MIN_US: u32 = 4_000;
const DELAY_MAX_US: u32 = 16_000;
/// The most that bursts add to the length of an ACK train (Linux: `hystart_ack_delay`).
const CUSHION_MAX_US: u32 = 1_000;

parameters! {
    /// HyStart's parameters, Linux's module parameters of CUBIC.
    pub struct Params from "Linux 6.12 net/ipv4/tcp_cubic.c";
    enabled as "hystart": bool = switch(true), "end slow start before loss does";
    /// Linux: bit 0 of `hystart_detect`.
    ack_train as "hystart_ack_train": bool = switch(true),
        "HyStart watches how long a round's ACKs arrive close together";
    /// Linux: bit 1 of `hystart_detect`.
    delay as "hystart_delay": bool = switch(true), "HyStart watches the RTT rise";
    low_window as "hystart_low_window": u32 = whole(16, 0..=1_000_000, "segments"),
        "HyStart keeps still below this window";
    ack_delta_us as "hystart_ack_delta_us": u32 = whole(2_000, 0..=1_000_000, "µs"),
        "ACKs at most this far apart are close together";
}

/// What HyStart knows about the present round; the fields have the kernel's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// RTT samples so far.
    pub sample_cnt: u32,
    /// The end was found.
    pub found: bool,
    /// When the round began, in wrapping microseconds.
    pub round_start: u32,
    /// The segment that ends it.
    pub end_seq: u64,
    /// When the last ACK of the train arrived.
    pub last_ack: u32,
    /// The least RTT of the round.
    pub curr_rtt: u32,
}

impl Round {
    /// Whether its least RTT is more than an eighth above the minimum.
    #[inline]
    pub fn is_delay_high(&self, delay_min: u32) -> bool {
        self.curr_rtt > delay_min.wrapping_add((delay_min >> 3).clamp(DELAY_MIN_US, DELAY_MAX_US))
    }

    fn begin(&mut self, now_us: u32, snd_nxt: u64) {
        *self = Round {
            sample_cnt: 0,
            found: self.found,
            round_start: now_us,
            end_seq: snd_nxt,
            last_ack: now_us,
            curr_rtt: u32::MAX,
        };
    }
}

/// The detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HyStart {
    params: Params,
    pub(crate) round: Round,
    gso_max: u32,
    paced: bool,
}

impl HyStart {
    pub(crate) fn new(params: &Params, config: &Config, now_us: u32, snd_nxt: u64) -> HyStart {
        let mut round = Round::default();
        if params.enabled {
            round.begin(now_us, snd_nxt);
        }
        HyStart { params: *params, round, gso_max: config.gso_max, paced: config.paced }
    }

    pub(crate) fn set_host(&mut self, gso_max: u32, paced: bool) {
        (self.gso_max, self.paced) = (gso_max, paced);
    }

    /// The round.
    pub const fn round(&self) -> &Round {
        &self.round
    }

    /// Whether it still looks for the end of slow start.
    #[inline]
    pub(crate) const fn is_searching(&self) -> bool {
        !self.round.found && self.params.enabled
    }

    /// A timeout starts over.
    pub(crate) fn reset(&mut self, now_us: u32, snd_nxt: u64) {
        self.round.found = false;
        self.round.begin(now_us, snd_nxt);
    }

    /// Takes in an RTT; returns whether slow start ends now.
    #[inline]
    pub(crate) fn on_rtt(
        &mut self,
        cwnd: u32,
        delay: u32,
        delay_min: u32,
        now_us: u32,
        sampled: &Sampled,
    ) -> bool {
        if sampled.snd_una > self.round.end_seq {
            self.round.begin(now_us, sampled.snd_nxt);
        }
        if cwnd < self.params.low_window {
            return false;
        }
        if self.params.ack_train {
            self.round.found |= self.is_train_long(delay_min, now_us, &sampled.pacing);
        }
        if self.params.delay {
            self.round.found |= self.is_delay_high(delay, delay_min);
        }
        self.round.found
    }

    /// A train of ACKs as long as the path means a pipe full of data. Pacing alone can stretch a train to half the RTT,
    /// so without pacing half the length suffices.
    pub fn is_train_long(&mut self, delay_min: u32, now_us: u32, pacing: &Pacing) -> bool {
        if now_us.wrapping_sub(self.round.last_ack) as i32 > self.params.ack_delta_us as i32 {
            return false;
        }
        self.round.last_ack = now_us;
        let length = now_us.wrapping_sub(self.round.round_start);
        let halved = !self.paced as u32;
        // The cushion needs two divisions and decides only between these bounds.
        if length <= delay_min >> halved {
            return false;
        }
        length > delay_min.wrapping_add(CUSHION_MAX_US) >> halved
            || length > delay_min.wrapping_add(self.cushion_us(pacing)) >> halved
    }

    /// The time of four bursts of the largest size, for bursts delay ACKs at both ends.
    fn cushion_us(&self, pacing: &Pacing) -> u32 {
        match pacing.bytes_per_sec() {
            0 => 0,
            rate => (self.gso_max as u64 * 4 * 1_000_000 / rate).min(CUSHION_MAX_US as u64) as u32,
        }
    }

    /// The least RTT of the round rose by more than an eighth.
    fn is_delay_high(&mut self, delay: u32, delay_min: u32) -> bool {
        self.round.curr_rtt = self.round.curr_rtt.min(delay);
        if self.round.sample_cnt < MIN_SAMPLES {
            self.round.sample_cnt += 1;
            return false;
        }
        self.round.is_delay_high(delay_min)
    }
}

#[cfg(test)]
mod tests {
    use crate::controller::{Ack, Config, Controller, Limits};
    use crate::controllers::cubic::{self, Cubic};
    use crate::testing::{CONFIG, Flow, deliver};
    use fullpipe_units::Duration;

    /// A flow in slow start at a window of 40, at the beginning of a round; its RTT is 100 ms.
    fn in_slow_start(flow: &mut Flow, config: &Config) -> Cubic {
        let mut cubic = Cubic::new(&cubic::Params::default(), config, &flow.connection);
        flow.snd_nxt = 30;
        deliver(&mut cubic, &flow.ack(30));
        flow.snd_nxt = 1_000_000;
        deliver(&mut cubic, &flow.ack(1));
        cubic
    }

    /// Milliseconds until slow start ends, with an ACK each `gap_ms`.
    fn ends_after(config: &Config, gap_ms: u64, rtt: impl Fn(u64) -> Duration) -> Option<u64> {
        let mut flow = Flow::new();
        let mut cubic = in_slow_start(&mut flow, config);
        let end = (1..200).map(|ack| ack * gap_ms).find(|&ms| {
            flow.pass(Duration::from_millis(gap_ms));
            deliver(&mut cubic, &Ack { rtt: Some(rtt(ms)), cwnd_limited: false, ..flow.ack(1) });
            cubic.limits().ssthresh != Limits::INFINITE
        });
        assert!(end.is_none() || cubic.limits().ssthresh == cubic.limits().cwnd);
        end
    }

    #[test]
    fn ack_train_ends_slow_start() {
        let steady = |_| Duration::from_millis(100);
        // The cushion is 1 ms, so the thresholds are 50.5 and 101 ms.
        assert_eq!(ends_after(&CONFIG, 1, steady), Some(51));
        assert_eq!(ends_after(&Config { paced: true, ..CONFIG }, 1, steady), Some(102));
        assert_eq!(ends_after(&CONFIG, 2, steady), Some(52));
    }

    #[test]
    fn acks_over_2ms_are_no_train() {
        assert_eq!(ends_after(&CONFIG, 3, |_| Duration::from_millis(100)), None);
    }

    #[test]
    fn eighth_rtt_rise_ends_slow_start() {
        let risen = |by_us: u64| move |_| Duration::from_micros(100_000 + by_us);
        // The samples at the beginning of the round were of 100 ms, so the rise shows in the next round only.
        assert_eq!(ends_after(&CONFIG, 3, risen(12_501)), None);
        let in_next_round = |by_us: u64| {
            let mut flow = Flow::new();
            let mut cubic = in_slow_start(&mut flow, &CONFIG);
            flow.snd_una = 1_000_001;
            (1..20).find(|_| {
                flow.pass(Duration::from_millis(3));
                let rtt = Some(Duration::from_micros(100_000 + by_us));
                deliver(&mut cubic, &Ack { rtt, cwnd_limited: false, snd_nxt: 2_000_000, ..flow.ack(1) });
                cubic.limits().ssthresh != Limits::INFINITE
            })
        };
        assert_eq!(in_next_round(12_500), None);
        assert_eq!(in_next_round(12_501), Some(9));
    }

    #[test]
    fn small_windows_are_left_alone() {
        let mut flow = Flow::new();
        let mut cubic = Cubic::new(&cubic::Params::default(), &CONFIG, &flow.connection);
        for _ in 0..200 {
            flow.pass(Duration::from_millis(1));
            deliver(&mut cubic, &Ack { cwnd_limited: false, snd_nxt: 1_000, ..flow.ack(1) });
        }
        assert_eq!(cubic.limits().ssthresh, Limits::INFINITE);
    }
}
