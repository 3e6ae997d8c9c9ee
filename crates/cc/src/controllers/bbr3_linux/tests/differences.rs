//! Where the draft's BBRv3 and Google's differ: both see the same events, and each test shows what either makes of them.
//!
//! The rows are those of the table in docs/explanation/bbr3.md, "Google's kernel". Each pair is the draft's first, then the kernel's.

extern crate std;
use crate::controller::*;
use crate::testing::{CONFIG, Flow};
use crate::{Any, Decimal, Params};
use core::ops::{Deref, DerefMut};
use fullpipe_units::Duration;
use std::format;
use std::string::String;

/// A flow on a path of `segments` in 100 ms, and one of the two controllers.
struct Driven {
    flow: Flow,
    controller: Any,
    /// What the path delivers in a round trip, in segments.
    segments: u32,
    /// Segments that an ACK delivers.
    each: u32,
}

impl Deref for Driven {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.flow.connection
    }
}

impl DerefMut for Driven {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.flow.connection
    }
}

/// What either made of the script.
fn both<T>(script: impl Fn(&mut Driven) -> T) -> [T; 2] {
    both_with(&[], script)
}

/// The same, for a kernel with these parameters.
fn both_with<T>(parameters: &[(&str, i32)], script: impl Fn(&mut Driven) -> T) -> [T; 2] {
    let short = parameters.contains(&("on 1 ms", 1));
    ["draft", "linux"].map(|profile| {
        let mut params = Params::by_name("bbr3").unwrap();
        params.choose("profile", profile).unwrap();
        for (name, value) in parameters.iter().filter(|(name, _)| profile == "linux" && *name != "on 1 ms") {
            params.set(name, Decimal::from_integer(*value)).unwrap();
        }
        let mut flow = Flow::new();
        if short {
            flow.connection.srtt = Duration::from_millis(1);
            flow.connection.min_rtt = Duration::from_millis(1);
        }
        flow.connection.delivered = 1_000;
        flow.connection.lost = 1_000;
        flow.connection.in_flight = 150;
        let controller = Any::new(&params, &CONFIG, &flow.connection);
        script(&mut Driven { flow, controller, segments: 100, each: 1 })
    })
}

impl Driven {
    /// The next ACK, of a segment that left a round before, with a sample of the path's rate; `change` makes it another.
    fn ack(&mut self, change: impl FnOnce(&mut Ack)) {
        self.flow
            .pass(Duration::from_nanos(self.min_rtt.as_nanos() * self.each as u64 / self.segments as u64));
        let mut ack = self.flow.ack(self.each);
        ack.sample.delivered = Some(self.segments);
        ack.sample.tx_in_flight = 100;
        ack.cwnd_limited = false;
        change(&mut ack);
        self.controller.on_ack(&ack);
    }

    /// ACKs that begin no round.
    fn fill(&mut self, acks: usize) {
        (0..acks).for_each(|_| self.ack(|ack| ack.sample.prior_delivered = 0));
    }

    /// ACKs, and time if asked for, until the flow is in this phase.
    fn until(&mut self, phase: Phase, pass: Duration) {
        for _ in 0..1_000 {
            if self.phase() == phase {
                return;
            }
            self.flow.pass(pass);
            self.ack(|_| {});
        }
        panic!("the flow never came to {phase:?}: {:?}", self.controller);
    }

    /// In ProbeBW, at the given phase, with a full window and a half more in flight than the path holds.
    fn probe_bw(&mut self, phase: Phase) {
        self.until(Phase::Drain, Duration::ZERO);
        self.in_flight = self.segments / 2;
        self.until(Phase::ProbeBwCruise, Duration::ZERO);
        self.in_flight = self.segments * 3 / 2;
        self.fill(400);
        if phase == Phase::ProbeBwCruise {
            return;
        }
        self.until(Phase::ProbeBwRefill, Duration::from_millis(100));
        if phase == Phase::ProbeBwRefill {
            return;
        }
        self.until(Phase::ProbeBwUp, Duration::ZERO);
        if phase == Phase::ProbeBwDown {
            self.until(phase, Duration::ZERO);
        }
    }

    fn lose(&mut self, units: u32, since: u32, new_range: bool) {
        self.lost += units as u64;
        let lost = Lost {
            now: self.now,
            delivered: self.delivered,
            units,
            new_range,
            tx_in_flight: 100,
            tx_delivered: self.delivered,
            tx_lost: self.lost - since as u64,
            lost: self.lost,
            app_limited: false,
        };
        self.controller.on_lost(&lost);
    }

    fn mark(&mut self) {
        let Connection { delivered, .. } = self.flow.connection;
        self.controller.on_ce(&CeMarks { echoed: true, units: 1, delivered, ..CeMarks::default() });
    }

    fn enter(&mut self, state: CaState, reduce: bool) {
        let Driven { flow, controller, .. } = self;
        flow.change(controller, state, reduce);
    }

    fn phase(&self) -> Phase {
        self.controller.snapshot().phase
    }

    fn cwnd(&self) -> u32 {
        self.controller.limits().cwnd
    }

    /// Kilobytes a second.
    fn rate(&self) -> u64 {
        self.controller.limits().pacing_rate.as_bytes_per_sec() / 1_000
    }

    fn has(&self, text: &str) -> bool {
        format!("{:?}", self.controller).contains(text)
    }

    /// A field that no interface shows.
    fn field(&self, name: &str) -> String {
        let text = format!("{:?}", self.controller);
        let start = text.find(&format!(" {name}: ")).unwrap_or_else(|| panic!("no {name} in {text}"));
        let value = &text[start + name.len() + 3..];
        value[..value.find([',', ' ']).unwrap()].into()
    }
}

const NONE: Duration = Duration::ZERO;

#[test]
fn drain_gain_and_duration_differ() {
    let drained = both(|flow| {
        flow.until(Phase::Drain, NONE);
        let rate = flow.rate();
        (0..10).for_each(|_| flow.ack(|_| {}));
        (rate, flow.phase())
    });
    assert_eq!(drained, [(716, Phase::ProbeBwDown), (492, Phase::Drain)]);
}

#[test]
fn down_pacing_gain_differs() {
    let rates = both(|flow| {
        flow.probe_bw(Phase::ProbeBwDown);
        flow.rate()
    });
    assert_eq!(rates, [1_290, 1_299]);
}

#[test]
fn growth_counts_per_round_or_sample() {
    let phases = both(|flow| {
        (0..3).for_each(|_| flow.ack(|_| {}));
        // 130 segments, of one sent before the round began.
        flow.ack(|ack| {
            ack.sample.delivered = Some(130);
            ack.sample.prior_delivered -= 1;
        });
        flow.ack(|_| {});
        flow.phase()
    });
    assert_eq!(phases, [Phase::Drain, Phase::Startup]);
}

#[test]
fn startup_target_overshoot_limits_differ() {
    let windows = both(|flow| {
        (flow.segments, flow.each) = (1, 4);
        flow.fill(6);
        flow.cwnd()
    });
    assert_eq!(windows, [18, 22]);
}

#[test]
fn sampled_loss_ends_only_linux_probe() {
    let phases = both(|flow| {
        flow.probe_bw(Phase::ProbeBwUp);
        flow.ack(|ack| ack.sample.lost_since_sent = 10);
        flow.phase()
    });
    assert_eq!(phases, [Phase::ProbeBwUp, Phase::ProbeBwDown]);
}

#[test]
fn startup_counts_loss_ranges_or_acks() {
    // Six holes in one ACK, then six ACKs with a loss each that widen one hole.
    for (holes, expected) in [(true, [Phase::Drain, Phase::Startup]), (false, [Phase::Startup, Phase::Drain])]
    {
        let phases = both(|flow| {
            flow.ack(|_| {});
            flow.enter(CaState::Recovery, true);
            for loss in 0..6 {
                flow.lose(1, loss + 1, holes || loss == 0);
                if !holes {
                    // Sent before the loss.
                    flow.ack(|ack| {
                        ack.newly_lost = 1;
                        ack.sample.prior_delivered = 0;
                    });
                }
            }
            flow.ack(|ack| {
                ack.newly_lost = if holes { 6 } else { 0 };
                ack.sample.lost_since_sent = 6;
            });
            flow.phase()
        });
        assert_eq!(phases, expected, "holes: {holes}");
    }
}

#[test]
fn loss_ended_startup_bounds_differ() {
    // 10 segments in 1 ms, of which bursts are larger than the product.
    let bounds = both_with(&[("on 1 ms", 1)], |flow| {
        flow.segments = 10;
        let sampled = |ack: &mut Ack| ack.sample.interval = Some(Duration::from_millis(1));
        flow.ack(sampled);
        flow.enter(CaState::Recovery, true);
        for loss in 0..6 {
            flow.lose(1, loss + 1, true);
            flow.ack(|ack| {
                sampled(ack);
                ack.newly_lost = 1;
                ack.sample.prior_delivered = 0;
            });
        }
        flow.ack(|ack| {
            sampled(ack);
            ack.sample.lost_since_sent = 6;
        });
        flow.field(if flow.has("inflight_hi") { "inflight_hi" } else { "inflight_longterm" })
    });
    assert_eq!(bounds, ["14480", "135"].map(String::from), "10 segments in bytes, and three bursts of 45");
}

#[test]
fn earlier_losses_lower_bound_or_not() {
    let bounds = both(|flow| {
        flow.probe_bw(Phase::ProbeBwUp);
        flow.lose(10, 23, true);
        flow.ack(|ack| ack.sample.tx_in_flight = 0);
        (flow.phase(), flow.cwnd())
    });
    assert_eq!(bounds, [(Phase::ProbeBwDown, 78), (Phase::ProbeBwDown, 90)]);
}

#[test]
fn tail_repair_counts_only_in_linux() {
    let phases = both(|flow| {
        flow.segments = 40;
        flow.probe_bw(Phase::ProbeBwUp);
        let Connection { now, delivered, .. } = flow.flow.connection;
        flow.controller.on_tail_repair(&TailRepair { now, delivered, units: 1, app_limited: false });
        flow.phase()
    });
    assert_eq!(phases, [Phase::ProbeBwUp, Phase::ProbeBwDown], "one of 41 is more than 5 of 256");
}

#[test]
fn one_or_many_marks_end_probe() {
    let phases = |marked_of_100: u32| {
        both_with(&[("ecn", 1), ("ecn_max_rtt_us", 0)], |flow| {
            flow.probe_bw(Phase::ProbeBwUp);
            flow.mark();
            flow.ack(|ack| ack.sample.marked_since_sent = marked_of_100);
            flow.phase()
        })
    };
    assert_eq!(phases(50), [Phase::ProbeBwDown, Phase::ProbeBwUp]);
    assert_eq!(phases(51), [Phase::ProbeBwDown, Phase::ProbeBwDown]);
}

#[test]
fn marks_cut_like_loss_or_proportionally() {
    let windows = |kernel: &[(&str, i32)]| {
        both_with(kernel, |flow| {
            flow.probe_bw(Phase::ProbeBwCruise);
            let before = flow.cwnd();
            flow.enter(CaState::Cwr, true);
            for _ in 0..4 {
                flow.mark();
                flow.ack(|ack| ack.sample.marked_since_sent = 1);
            }
            (before, flow.cwnd())
        })
    };
    // As a loss, four marked rounds cut to what a round delivered. In the kernel each takes a third of the share of marks.
    assert_eq!(windows(&[("ecn", 1), ("ecn_max_rtt_us", 0)]), [(201, 100), (202, 70)]);
    assert_eq!(windows(&[])[1], (202, 202), "a kernel whose route does not ask for it");
    assert_eq!(windows(&[("ecn", 1)])[1], (202, 202), "nor at an RTT above 5 ms");
}

#[test]
fn timeout_in_cruise_bounds_only_linux() {
    let windows = both(|flow| {
        flow.probe_bw(Phase::ProbeBwCruise);
        let before = flow.cwnd();
        flow.in_flight = 0;
        flow.enter(CaState::Loss, true);
        let timed_out = flow.cwnd();
        flow.enter(CaState::Open, false);
        // The path got faster.
        flow.segments = 200;
        flow.fill(400);
        (before, timed_out, flow.cwnd())
    });
    assert_eq!(windows, [(201, 1, 401), (202, 1, 202)]);
}

#[test]
fn undo_resumes_probe_or_restores_bounds() {
    let after = both(|flow| {
        flow.probe_bw(Phase::ProbeBwUp);
        let before = flow.cwnd();
        flow.lose(10, 10, true);
        flow.enter(CaState::Recovery, true);
        flow.ack(|_| {});
        let cut = flow.cwnd();
        let connection = flow.flow.connection;
        flow.controller.on_undo(&Undo { connection });
        (before > cut, flow.cwnd() == before, flow.phase())
    });
    assert_eq!(after, [(true, true, Phase::ProbeBwRefill), (true, true, Phase::ProbeBwDown)]);
}

#[test]
fn cruise_keeps_or_lowers_short_bound() {
    let bounds = both(|flow| {
        flow.probe_bw(Phase::ProbeBwUp);
        // The long-term bound becomes 92 segments, the short-term one 100.
        flow.lose(10, 10, true);
        flow.ack(|ack| ack.sample.tx_in_flight = 0);
        flow.lose(1, 1, true);
        (0..2).for_each(|_| flow.ack(|ack| ack.sample.tx_in_flight = 0));
        flow.in_flight = 50;
        flow.ack(|ack| {
            ack.prior_in_flight = 50;
            ack.sample.tx_in_flight = 0;
        });
        assert_eq!(flow.phase(), Phase::ProbeBwCruise);
        // A flight of 200 without loss lifts the long-term one.
        flow.ack(|ack| ack.sample.tx_in_flight = 200);
        flow.fill(400);
        flow.cwnd()
    });
    assert_eq!(bounds, [100, 92]);
}

#[test]
fn probe_keeps_or_restarts_cycle_clock() {
    let clocks = both(|flow| {
        flow.probe_bw(Phase::ProbeBwRefill);
        flow.flow.pass(Duration::from_millis(7));
        flow.until(Phase::ProbeBwUp, NONE);
        let now = flow.now.as_micros();
        let name = if flow.has("cycle_mstamp") { "cycle_mstamp" } else { "cycle_stamp" };
        flow.field(name).parse::<u64>().unwrap() == now
    });
    // Nothing reads it until DOWN starts it again.
    assert_eq!(clocks, [false, true]);
}

#[test]
fn flight_is_current_or_at_departure() {
    let phases = both(|flow| {
        flow.probe_bw(Phase::ProbeBwDown);
        flow.in_flight = 90;
        flow.ack(|ack| ack.prior_in_flight = 150);
        flow.phase() == Phase::ProbeBwCruise
    });
    assert_eq!(phases, [true, false], "90 are left of the 150 that the ACK found");
    let phases = both(|flow| {
        flow.probe_bw(Phase::ProbeBwDown);
        flow.in_flight = 150;
        flow.departure = flow.now + Duration::from_millis(60);
        flow.ack(|ack| ack.prior_in_flight = 150);
        flow.phase() == Phase::ProbeBwCruise
    });
    assert_eq!(phases, [false, true], "but of those 60 will have left when the next departs");
}

#[test]
fn aggregation_window_and_cap_differ() {
    let windows = both(|flow| {
        flow.probe_bw(Phase::ProbeBwCruise);
        // 190 segments at once.
        flow.each = 190;
        flow.ack(|ack| ack.connection.delivered_time = ack.connection.now);
        flow.each = 1;
        flow.fill(400);
        flow.cwnd()
    });
    assert_eq!(windows, [390, 301], "of them the kernel takes what 100 ms deliver");
}

#[test]
fn expired_minimum_replacement_rules_differ() {
    let minima = both(|flow| {
        flow.ack(|_| {});
        flow.flow.pass(Duration::from_millis(10_001));
        flow.ack(|ack| {
            ack.rtt = Some(Duration::from_millis(140));
            ack.maybe_delayed = true;
        });
        flow.controller.snapshot().min_rtt.unwrap().as_micros()
    });
    assert_eq!(minima, [140_000, 100_000]);
    // An equal RTT renews the kernel's minimum, once the shorter window has passed.
    let renewed = both(|flow| {
        let before = flow.field("min_rtt_stamp");
        flow.flow.pass(Duration::from_millis(6_000));
        flow.ack(|_| {});
        flow.field("min_rtt_stamp") != before
    });
    assert_eq!(renewed, [false, true]);
}

#[test]
fn burst_sizes_differ_at_short_rtt() {
    // Where the path holds 10 segments, the window is three bursts: of 10, or of 32.
    let windows = both_with(&[("on 1 ms", 1)], |flow| {
        flow.segments = 10;
        flow.probe_bw(Phase::ProbeBwCruise);
        flow.cwnd()
    });
    assert_eq!(windows, [29, 96]);
}

#[test]
fn probe_rtt_uses_gain_or_cap() {
    let windows = both(|flow| {
        flow.probe_bw(Phase::ProbeBwCruise);
        flow.flow.pass(Duration::from_millis(5_001));
        flow.ack(|_| {});
        (flow.phase(), flow.cwnd(), flow.has("cwnd_gain: Gain(256)"))
    });
    assert_eq!(windows, [(Phase::ProbeRtt, 50, false), (Phase::ProbeRtt, 51, true)]);
}

#[test]
fn sample_is_exact_or_rounded_up() {
    let bandwidths = both(|flow| {
        flow.segments = 1;
        flow.ack(|ack| ack.sample.interval = Some(Duration::from_micros(100_003)));
        flow.controller.snapshot().bandwidth.unwrap().as_bytes_per_sec()
    });
    assert_eq!(bandwidths, [14_479, 14_499], "168 and not 167.8 times 2^-24 segments a microsecond");
}

#[test]
fn both_probe_within_63_rounds() {
    let rounds = |random: u32| {
        both(|flow| {
            flow.random = random;
            flow.probe_bw(Phase::ProbeBwCruise);
            let before = flow.field("rtt_cnt").parse::<u32>().unwrap();
            flow.until(Phase::ProbeBwRefill, NONE);
            flow.field("rtt_cnt").parse::<u32>().unwrap() - before
        })
    };
    assert_eq!(rounds(0), [63, 63]);
    assert_eq!(rounds(1), [62, 62]);
}
