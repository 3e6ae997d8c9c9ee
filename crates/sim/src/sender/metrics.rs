//! What a host remembers of its connections to another one (Linux 6.12 `net/ipv4/tcp_metrics.c`): what a new connection takes
//! from it (`tcp_init_metrics`), and what one that has ended leaves (`tcp_update_metrics`).
//!
//! An entry is used for an hour in Linux, and after that filled from the route again. Here it stays.

use std::sync::{Arc, Mutex, PoisonError};

use fullpipe_cc::{CaState, Limits};
use fullpipe_record::Metrics;
use fullpipe_scenario::metrics::{Metric, MetricsSpec};
use fullpipe_units::{Duration, Time};

use super::rack::REORDERING;
use super::rtt::RTO_MIN_US;
use crate::clock::HZ;

/// The entry of a pair of hosts, which all connections between them share.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<Mutex<Entry>>);

impl Shared {
    pub(crate) fn new(spec: &MetricsSpec) -> Shared {
        Shared(Arc::new(Mutex::new(Entry::new(spec))))
    }

    /// What a connection begins with.
    pub(crate) fn begin(&self, srtt_x8: u32) -> Beginning {
        self.with(|entry| entry.begin(srtt_x8))
    }

    /// A connection has ended, or the run has while it goes on. Returns what is then known.
    pub(crate) fn update(&self, now: Time, ended: &Ended) -> Metrics {
        self.with(|entry| {
            entry.update(ended);
            entry.shown(now)
        })
    }

    fn with<T>(&self, what: impl FnOnce(&mut Entry) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The values, in Linux's units: segments, and microseconds times 8 and times 4.
#[derive(Clone, Copy, Debug)]
struct Entry {
    ssthresh: u32,
    cwnd: u32,
    reordering: u32,
    rtt_x8: u32,
    rttvar_x4: u32,
    saves_ssthresh: bool,
    locked: Locked,
}

/// The values that connections leave as they are (Linux: `tcpm_lock`): a bit for each [`Metric`].
#[derive(Clone, Copy, Debug)]
struct Locked(u8);

impl Locked {
    fn new(metrics: &[Metric]) -> Locked {
        Locked(metrics.iter().fold(0, |bits, metric| bits | 1 << *metric as u8))
    }

    fn has(self, metric: Metric) -> bool {
        self.0 & 1 << metric as u8 != 0
    }
}

/// What a connection takes from an entry. `None`: it keeps its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// A cap on its window.
    pub(crate) clamp: Option<u32>,
    pub(crate) ssthresh: Option<u32>,
    pub(crate) reordering: Option<u32>,
    /// The first retransmission timeout; the first sample replaces it.
    pub(crate) rto_us: Option<u32>,
}

/// A connection at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// It waits for an answer to what timed out (Linux: `icsk_backoff`).
    pub(crate) backed_off: bool,
    /// Linux: `srtt_us`, `mdev_us`.
    pub(crate) srtt_x8: u32,
    pub(crate) mdev_x4: u32,
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    pub(crate) state: CaState,
    pub(crate) reordering: u32,
}

impl Entry {
    fn new(spec: &MetricsSpec) -> Entry {
        let units = |time: Duration, nanos: u64| (time.as_nanos() / nanos).min(u32::MAX as u64) as u32;
        Entry {
            ssthresh: spec.ssthresh,
            cwnd: spec.cwnd,
            reordering: spec.reordering,
            rtt_x8: units(spec.rtt_ns, 125),
            rttvar_x4: units(spec.rttvar_ns, 250),
            saves_ssthresh: spec.save_ssthresh,
            locked: Locked::new(&spec.locked),
        }
    }

    /// Linux: `tcp_init_metrics`.
    fn begin(&self, srtt_x8: u32) -> Beginning {
        let known = |value: u32| (value > 0).then_some(value);
        let clamp = self.locked.has(Metric::Cwnd).then_some(self.cwnd);
        let ssthresh = known(self.ssthresh).filter(|_| self.saves_ssthresh);
        // In jiffies, as the timer of the handshake is.
        let rto_us = (self.rtt_x8 > srtt_x8).then(|| {
            let per_jiffy = 1_000_000 / HZ;
            let rtt = self.rtt_x8 / (8 * per_jiffy);
            (rtt + (2 * rtt).max(RTO_MIN_US / per_jiffy)) * per_jiffy
        });
        Beginning {
            clamp,
            ssthresh: ssthresh.map(|value| value.min(clamp.unwrap_or(u32::MAX))),
            reordering: known(self.reordering),
            rto_us,
        }
    }

    /// Linux: `tcp_update_metrics`.
    fn update(&mut self, ended: &Ended) {
        let locked = self.locked;
        let free = |metric: Metric| !locked.has(metric);
        if ended.backed_off || ended.srtt_x8 == 0 {
            if free(Metric::Rtt) {
                self.rtt_x8 = 0;
            }
            return;
        }
        let above = self.rtt_x8 as i64 - ended.srtt_x8 as i64;
        if free(Metric::Rtt) {
            // An RTT that is too long does less harm than one that is too short.
            self.rtt_x8 = if above <= 0 { ended.srtt_x8 } else { self.rtt_x8 - (above >> 3) as u32 };
        }
        if free(Metric::Rttvar) {
            let deviation = ((above.abs() >> 1) as u32).max(ended.mdev_x4);
            if deviation >= self.rttvar_x4 {
                self.rttvar_x4 = deviation;
            } else {
                self.rttvar_x4 -= (self.rttvar_x4 - deviation) >> 2;
            }
        }
        let saves_ssthresh = self.saves_ssthresh && free(Metric::Ssthresh);
        if ended.ssthresh >= Limits::INFINITE {
            // Slow start went on to the end.
            if saves_ssthresh && self.ssthresh > 0 {
                self.ssthresh = self.ssthresh.max(ended.cwnd >> 1);
            }
            if free(Metric::Cwnd) {
                self.cwnd = self.cwnd.max(ended.cwnd);
            }
        } else if ended.cwnd >= ended.ssthresh && ended.state == CaState::Open {
            if saves_ssthresh {
                self.ssthresh = (ended.cwnd >> 1).max(ended.ssthresh);
            }
            if free(Metric::Cwnd) {
                self.cwnd = mean(self.cwnd, ended.cwnd);
            }
        } else {
            // In recovery, or in slow start after it: the window says nothing.
            if free(Metric::Cwnd) {
                self.cwnd = mean(self.cwnd, ended.ssthresh);
            }
            if saves_ssthresh && self.ssthresh > 0 {
                self.ssthresh = self.ssthresh.max(ended.ssthresh);
            }
            if free(Metric::Reordering) && ended.reordering != REORDERING {
                self.reordering = self.reordering.max(ended.reordering);
            }
        }
    }

    fn shown(&self, now: Time) -> Metrics {
        Metrics {
            at_ns: now.as_nanos(),
            ssthresh: self.ssthresh,
            cwnd: self.cwnd,
            reordering: self.reordering,
            rtt_ns: self.rtt_x8 as u64 * 125,
            rttvar_ns: self.rttvar_x4 as u64 * 250,
        }
    }
}

/// Half of the sum, as 32 bits hold it.
fn mean(old: u32, new: u32) -> u32 {
    old.wrapping_add(new) >> 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OPEN: Ended = Ended {
        backed_off: false,
        srtt_x8: 8 * 40_000,
        mdev_x4: 4 * 500,
        cwnd: 100,
        ssthresh: 80,
        state: CaState::Open,
        reordering: 3,
    };

    fn entry(spec: MetricsSpec) -> Entry {
        Entry::new(&spec)
    }

    fn saving() -> MetricsSpec {
        MetricsSpec { save_ssthresh: true, ..MetricsSpec::default() }
    }

    fn with_rtt(rtt_us: u64, rttvar_us: u64) -> MetricsSpec {
        let micros = Duration::from_micros;
        MetricsSpec { rtt_ns: micros(rtt_us), rttvar_ns: micros(rttvar_us), ..saving() }
    }

    #[test]
    fn first_connection_saves_rtt_and_rttvar() {
        // `ip tcp_metrics show` after one: "rtt 46648us rttvar 46648us". srtt_us is in eighths, half of it in quarters.
        let mut entry = entry(saving());
        entry.update(&OPEN);
        assert_eq!((entry.rtt_x8, entry.rttvar_x4), (320_000, 160_000));
        let shown = entry.shown(Time::ZERO);
        assert_eq!((shown.rtt_ns, shown.rttvar_ns), (40_000_000, 40_000_000));
    }

    #[test]
    fn longer_rtt_replaces_shorter_averages() {
        let mut slower = entry(with_rtt(80_000, 1_000));
        slower.update(&OPEN);
        // 640000 - (320000 >> 3); the deviation is 320000 >> 1.
        assert_eq!((slower.rtt_x8, slower.rttvar_x4), (600_000, 160_000));
        let mut faster = entry(with_rtt(30_000, 90_000));
        faster.update(&OPEN);
        // The deviation, 80000 >> 1, is below 360000: less a quarter of what lies between.
        assert_eq!((faster.rtt_x8, faster.rttvar_x4), (320_000, 360_000 - (320_000 >> 2)));
    }

    #[test]
    fn each_phase_leaves_what_it_knows() {
        let left = |old: (u32, u32), ended: Ended| {
            let mut entry = entry(MetricsSpec { ssthresh: old.0, cwnd: old.1, ..saving() });
            entry.update(&ended);
            (entry.ssthresh, entry.cwnd)
        };
        // The first slow start: a threshold rises, and is not set; a window rises.
        let start = Ended { ssthresh: Limits::INFINITE, ..OPEN };
        assert_eq!(
            [left((0, 0), start), left((40, 90), start), left((60, 200), start)],
            [(0, 100), (50, 100), (60, 200)]
        );
        // Congestion avoidance: the larger of half the window and the threshold; the mean of the windows.
        assert_eq!([left((0, 0), OPEN), left((500, 60), OPEN)], [(80, 50), (80, 80)]);
        assert_eq!(left((0, 0), Ended { cwnd: 300, ..OPEN }), (150, 150));
        // Slow start after a timeout, and recovery: the threshold stands for the window.
        for ended in [Ended { cwnd: 20, ..OPEN }, Ended { state: CaState::Recovery, ..OPEN }] {
            assert_eq!(
                [left((0, 60), ended), left((50, 60), ended), left((90, 60), ended)],
                [(0, 70), (80, 70), (90, 70)]
            );
        }
    }

    #[test]
    fn only_disordered_connection_saves_reordering() {
        let reordered = Ended { reordering: 20, ..OPEN };
        let left = |old: u32, ended: Ended| {
            let mut entry = entry(MetricsSpec { reordering: old, ..saving() });
            entry.update(&ended);
            entry.reordering
        };
        assert_eq!(left(0, reordered), 0);
        let disturbed = Ended { state: CaState::Disorder, ..reordered };
        assert_eq!([left(0, disturbed), left(10, disturbed), left(30, disturbed)], [20, 20, 30]);
        assert_eq!(left(0, Ended { reordering: 3, ..disturbed }), 0);
    }

    #[test]
    fn backed_off_connection_forgets_only_rtt() {
        let mut entry = entry(MetricsSpec { ssthresh: 7, cwnd: 9, ..with_rtt(80_000, 1_000) });
        entry.update(&Ended { backed_off: true, ..OPEN });
        assert_eq!((entry.rtt_x8, entry.rttvar_x4, entry.ssthresh, entry.cwnd), (0, 4_000, 7, 9));
    }

    #[test]
    fn ssthresh_is_ignored_without_setting() {
        let mut entry = entry(MetricsSpec { save_ssthresh: false, ssthresh: 30, ..saving() });
        assert_eq!(entry.begin(1).ssthresh, None);
        entry.update(&OPEN);
        assert_eq!((entry.ssthresh, entry.cwnd), (30, 50));
    }

    #[test]
    fn locked_window_caps_ssthresh() {
        let locked = vec![Metric::Cwnd];
        let mut entry = entry(MetricsSpec { ssthresh: 30, cwnd: 20, locked, ..saving() });
        let begun = entry.begin(1);
        assert_eq!((begun.clamp, begun.ssthresh), (Some(20), Some(20)));
        entry.update(&OPEN);
        assert_eq!((entry.cwnd, entry.ssthresh), (20, 80));
    }

    #[test]
    fn lock_covers_only_its_metric() {
        let all = [Metric::Ssthresh, Metric::Cwnd, Metric::Reordering, Metric::Rtt, Metric::Rttvar];
        for metric in all {
            let locked = Locked::new(&[metric]);
            assert_eq!(all.map(|one| locked.has(one)), all.map(|one| one == metric));
        }
        assert!(all.iter().all(|metric| Locked::new(&all).has(*metric) && !Locked::new(&[]).has(*metric)));
    }

    #[test]
    fn longer_cached_rtt_sets_initial_rto() {
        let kept = entry(with_rtt(99_000, 0));
        // 24 jiffies of 4 ms, and twice that or 50 of them.
        assert_eq!(kept.begin(8 * 40_000).rto_us, Some((24 + 50) * 4_000));
        assert_eq!(kept.begin(8 * 99_000).rto_us, None);
        assert_eq!(entry(with_rtt(400_000, 0)).begin(8).rto_us, Some(300 * 4_000));
    }

    proptest! {
        /// Whatever connections leave, a locked value stays, and the next can begin.
        #[test]
        fn locks_hold_whatever_happens(
            ended in prop::collection::vec((any::<bool>(), 0u32..1 << 30, 0u32..1 << 30, 0u32..=0x7fff_ffff, 0u32..=0x7fff_ffff, 0usize..5, 0u32..=300), 1..20),
            spec in (0u32..1 << 30, 1u32..1 << 30, 0u32..=300),
        ) {
            let states = [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss];
            let all = vec![Metric::Ssthresh, Metric::Cwnd, Metric::Reordering, Metric::Rtt, Metric::Rttvar];
            let spec = MetricsSpec { ssthresh: spec.0, cwnd: spec.1, reordering: spec.2, ..with_rtt(50_000, 700) };
            let (mut free, mut locked) = (entry(spec.clone()), entry(MetricsSpec { locked: all, ..spec }));
            let before = locked.shown(Time::ZERO);
            for (backed_off, srtt_x8, mdev_x4, cwnd, ssthresh, state, reordering) in ended {
                let ended = Ended { backed_off, srtt_x8, mdev_x4, cwnd, ssthresh, state: states[state], reordering };
                let was = free.rtt_x8;
                free.update(&ended);
                locked.update(&ended);
                prop_assert!(free.rtt_x8 <= was.max(srtt_x8));
                prop_assert!(free.begin(srtt_x8).ssthresh != Some(0));
            }
            prop_assert_eq!(locked.shown(Time::ZERO), before);
        }
    }
}
