//! One flow: random events to Linux's core, what the core makes of them to our controller, and a comparison after each.

use crate::controllers::{Compared, Differs};
use crate::linux::{self, Core, Entry, Setup, View};
use crate::plan::{self, Profile, Rtts};
use crate::random::Random;
use crate::report::{Difference, Report};
use fullpipe_cc::Ordered;
use fullpipe_cc::controller::*;
use fullpipe_units::{Duration, Rate as Bits, Time};

const STEPS: u64 = 5_000;

/// Runs flow `number` of the seed, to its end or its first difference.
pub fn compare<C: Compared>(core: &mut Core, seed: u64, number: u64, report: &mut Report) {
    let mut flow = Flow::<C>::open(core, Random::of(seed, number));
    let mut differs = flow.compare(core);
    let mut event = "open";
    let mut signs = 0;
    for step in 0..STEPS {
        if let Some((field, ours, linux)) = differs {
            return report.note(Difference { flow: number, step, event, field: field.into(), ours, linux });
        }
        let phase = flow.ours.snapshot().phase;
        event = flow.step(core, report);
        report.events += 1;
        let now = flow.ours.snapshot().phase;
        if now != phase {
            report.count(now.name());
        }
        let now = flow.ours.controller().signs();
        C::SIGNS.iter().enumerate().filter(|(place, _)| (now & !signs) >> place & 1 != 0).for_each(
            |(_, sign)| {
                report.count(sign);
            },
        );
        signs = now;
        differs = flow.compare(core);
    }
}

struct Flow<C> {
    random: Random,
    profile: Profile,
    setup: Setup,
    ours: Ordered<C>,
    view: View,
    rtts: Rtts,
    now_us: u64,
    start_us: u64,
    last_sent_us: u64,
    /// What the sampler has to be marked with after the last event.
    app_limited: u32,
    /// Of Linux's sequence numbers, which wrap: those that ours has counted.
    counted: u64,
    /// Segments marked lost, likewise.
    lost: u64,
}

fn state(code: u32) -> CaState {
    [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss][code as usize]
}

fn micros(value: u32) -> Duration {
    if value == u32::MAX { Duration::MAX } else { Duration::from_micros(value as u64) }
}

impl<C: Compared> Flow<C> {
    fn open(core: &mut Core, mut random: Random) -> Flow<C> {
        let mut profile = Profile::draw(&mut random);
        C::tune(&mut random, &mut profile);
        let measured = !random.chance(300);
        let rtt_us = (profile.base_rtt_us + random.below(1_000)) as u32;
        let now_us = random.magnitude(1, 1 << 44);
        let setup = draw_setup::<C>(&mut random, now_us, if measured { rtt_us } else { 0 });
        let rtts = Rtts { srtt_us8: setup.srtt_us, min_us: setup.min_rtt_us };
        let config = Config {
            mss: setup.mss,
            unit: setup.mss,
            initial_cwnd: 10,
            cwnd_clamp: setup.cwnd_clamp,
            max_pacing_rate: Bits::from_bytes_per_sec(setup.max_pacing_rate),
            gso_max: setup.gso_max,
            max_tcp_header: 192,
            paced: setup.paced != 0,
            hz: setup.hz,
            ssthresh: Limits::INFINITE,
        };
        core.open(&setup);
        let connection = Connection {
            now: Time::from_micros(now_us),
            jiffies: setup.jiffies,
            delivered: setup.delivered as u64,
            delivered_time: Time::from_micros(now_us),
            lost: setup.lost as u64,
            srtt: Duration::from_nanos(setup.srtt_us as u64 * 125),
            min_rtt: micros(setup.min_rtt_us),
            departure: Time::from_micros(now_us),
            ..Connection::default()
        };
        let ours = Ordered::new(C::new(&setup, &config, &connection), CaState::Open);
        let view = View::new();
        let (start_us, last_sent_us) = (now_us, now_us);
        Flow {
            random,
            profile,
            setup,
            ours,
            view,
            rtts,
            now_us,
            start_us,
            last_sent_us,
            app_limited: 0,
            counted: 0,
            lost: setup.lost as u64,
        }
    }

    /// Whole ticks up to a time, as [`fullpipe_cc::controllers::segment_window`] counts idle time.
    fn ticks(&self, us: u64) -> u64 {
        (us as u128 * self.setup.hz as u128 / 1_000_000) as u64
    }

    fn pass(&mut self, core: &mut Core) {
        let rtt_us = self.profile.base_rtt_us;
        let pause = match self.random.below(100) {
            _ if self.random.chance(self.profile.pauses) => self.random.magnitude(100_000, 15_000_000),
            0..50 => self.random.below(rtt_us / 16 + 2),
            50..80 => self.random.below(2_000),
            80..99 => self.random.below(rtt_us / 2 + 2),
            _ => self.random.below(rtt_us * 3),
        };
        self.now_us += pause.max(1);
        let ticks = self.ticks(self.now_us) - self.ticks(self.start_us);
        let jiffies = self.setup.jiffies.wrapping_add(ticks as u32);
        let wait_ns = if self.random.chance(5_000) { 0 } else { self.random.below(2_000_000) };
        core.now(self.now_us, jiffies, wait_ns, self.random.draw() as u32);
    }

    /// Makes one event of both.
    fn step(&mut self, core: &mut Core, report: &mut Report) -> &'static str {
        self.pass(core);
        let view = self.view;
        let Profile { timeouts, reordering_timeouts, probes, app_limited, mss_changes, .. } = self.profile;
        self.app_limited = view.app_limited;
        if C::READS_LOSSES {
            core.losses(&plan::losses(&mut self.random, &view));
        }
        if self.random.chance(mss_changes) {
            return self.change_mss(core);
        }
        if self.random.chance(app_limited / 4) {
            core.app_limited();
            let mark = view.delivered.wrapping_add(view.in_flight);
            self.app_limited = mark.max(1);
            return "application-limited";
        }
        if view.packets_out == 0 {
            return if self.random.chance(9_500) {
                self.send(core, report)
            } else {
                self.acknowledge(core, report)
            };
        }
        if self.random.chance(timeouts) {
            return self.time_out(core, report);
        }
        if self.random.chance(reordering_timeouts) {
            return self.time_out_reordering(core, report);
        }
        let cwr = view.ca_state <= CaState::Cwr as u32;
        if view.tlp_high_seq == 0 && cwr && self.random.chance(probes) {
            core.probe(self.random.chance(7_000));
            return "tail loss probe";
        }
        let room = view.cwnd.saturating_sub(view.in_flight);
        match self.random.below(100) {
            0..45 if room > 0 && view.lost_out > view.retrans_out => self.retransmit(core, report),
            0..45 if room > 0 && view.packets_out < self.profile.most_out => self.send(core, report),
            _ => self.acknowledge(core, report),
        }
    }

    fn rto(&mut self) -> u32 {
        let rto_us = (self.rtts.srtt_us8 as u64 / 4).max(200_000);
        let rto_us = rto_us * if self.random.chance(100) { self.random.between(1, 8) } else { 1 };
        (rto_us * self.setup.hz as u64 / 1_000_000).max(1) as u32
    }

    fn send(&mut self, core: &mut Core, report: &mut Report) -> &'static str {
        let room = self.view.cwnd.saturating_sub(self.view.in_flight).max(1);
        let room = room.min(self.profile.most_out.saturating_sub(self.view.packets_out).max(1));
        let burst =
            if self.random.chance(1_000) { room } else { room.min(self.random.between(1, 44) as u32) };
        let rto = self.rto();
        let limited = C::FILLS_ITS_WINDOW || self.view.in_flight + burst >= self.view.cwnd;
        core.send(burst, limited, rto);
        let before = self.view;
        self.replay(core, report, Some((burst, false, before)));
        "send"
    }

    fn retransmit(&mut self, core: &mut Core, report: &mut Report) -> &'static str {
        let room = self.view.cwnd.saturating_sub(self.view.in_flight).max(1);
        let burst =
            self.random.between(1, room.min(self.view.lost_out - self.view.retrans_out) as u64) as u32;
        let rto = self.rto();
        core.retransmit(burst, rto);
        let before = self.view;
        self.replay(core, report, Some((burst, true, before)));
        "retransmission"
    }

    fn acknowledge(&mut self, core: &mut Core, report: &mut Report) -> &'static str {
        let mut plan = plan::ack(&self.profile, &mut self.random, &self.view, &mut self.rtts);
        if C::READS_LOSSES {
            plan::add_losses(&self.profile, &mut self.random, &self.view, &mut plan);
        }
        core.ack(&plan);
        self.replay(core, report, None);
        "ACK"
    }

    fn time_out(&mut self, core: &mut Core, report: &mut Report) -> &'static str {
        let plain = self.view.packets_out - self.view.sacked_out - self.view.lost_out;
        // All that is out, or what left an RTT ago.
        let lost = if self.random.chance(7_000) { plain } else { self.random.upto(plain) };
        core.timeout(lost, self.view.retrans_out);
        report.count("timeouts");
        self.replay(core, report, None);
        "retransmission timeout"
    }

    fn time_out_reordering(&mut self, core: &mut Core, report: &mut Report) -> &'static str {
        let plain = self.view.packets_out - self.view.sacked_out - self.view.lost_out;
        let lost = self.random.upto(plain.min(10));
        let again = self.random.upto(self.view.retrans_out.min(2));
        let any = self.random.chance(3_000);
        if self.view.ca_state == CaState::Cwr as u32 && lost > 0 {
            report.count("reordering timers in CWR");
        }
        core.reordering_timeout(lost, again, any);
        self.replay(core, report, None);
        "reordering timer"
    }

    fn change_mss(&mut self, core: &mut Core) -> &'static str {
        let mss = self.random.one_of(&[1448, 1448, 1186, 1420, 536, 8948]);
        core.mss(mss);
        self.ours.on_mss(mss);
        "segment size"
    }

    // ---- what Linux's core did, to ours ----

    fn connection(&mut self, at: &linux::Snapshot) -> Connection {
        let lost = (self.lost as i64 + at.lost.wrapping_sub(self.lost as u32) as i32 as i64) as u64;
        self.lost = self.lost.max(lost);
        Connection {
            now: Time::from_micros(at.tcp_mstamp),
            jiffies: at.jiffies,
            delivered: at.delivered as u64,
            delivered_time: Time::from_micros(at.delivered_mstamp),
            lost,
            packets_out: at.packets_out,
            in_flight: at.in_flight,
            srtt: Duration::from_nanos(at.srtt_us as u64 * 125),
            min_rtt: micros(at.min_rtt_us),
            departure: Time::from_nanos(at.tcp_wstamp_ns),
            state: state(at.ca_state),
            app_limited: at.app_limited != 0,
            random: at.random,
        }
    }

    /// A sequence number of Linux's, counted from the flow's first segment.
    fn count(&mut self, sequence: u32) -> u64 {
        let near = (self.counted as u32).wrapping_add(self.setup.seq);
        let counted = (self.counted as i64 + sequence.wrapping_sub(near) as i32 as i64) as u64;
        self.counted = self.counted.max(counted);
        counted
    }

    fn replay(&mut self, core: &Core, report: &mut Report, sent: Option<(u32, bool, View)>) {
        let mut sent = sent;
        // Linux looks at marks after it has answered a tail probe, but knows their number before; ours gets both first.
        let marks = |entry: &&Entry| entry.kind == linux::LOG_CE;
        let rtt = |entry: &&Entry| entry.kind == linux::LOG_RTT;
        let log = core.log();
        let rest = log.iter().filter(|entry| !rtt(entry) && !marks(entry));
        for entry in log.iter().filter(rtt).chain(log.iter().filter(marks)).chain(rest) {
            if entry.kind != linux::LOG_TX_START {
                self.report_sent(&mut sent);
            }
            self.replay_entry(entry, report);
        }
        self.report_sent(&mut sent);
    }

    fn report_sent(&mut self, sent: &mut Option<(u32, bool, View)>) {
        let Some((segments, retransmission, before)) = sent.take() else { return };
        self.last_sent_us = self.now_us;
        self.ours.on_sent(&Sent {
            departure: Time::from_micros(self.now_us),
            units: segments,
            prior_in_flight: before.in_flight,
            prior_packets_out: before.packets_out,
            retransmission,
        });
    }

    fn replay_entry(&mut self, entry: &Entry, report: &mut Report) {
        let connection = self.connection(&entry.at);
        match entry.kind {
            linux::LOG_TX_START => {
                let last_sent = Time::from_micros(self.last_sent_us);
                let rto = Duration::from_nanos(entry.rto as u64 * (1_000_000_000 / self.setup.hz as u64));
                self.ours.on_transmit_start(&TransmitStart { connection, last_sent, rto });
            }
            linux::LOG_UNUSED => {
                report.count("windows left unfilled");
                self.ours.on_window_unused(&WindowUnused { connection, used: entry.used });
            }
            linux::LOG_RTT => {
                let before = self.ours.limits().ssthresh;
                let sample = RttSample {
                    now: connection.now,
                    jiffies: connection.jiffies,
                    rtt: Duration::from_micros(entry.rtt_us as u64),
                    snd_una: self.count(entry.at.snd_una),
                    snd_nxt: self.count(entry.at.snd_nxt),
                };
                self.ours.on_rtt(&sample);
                if self.ours.limits().ssthresh != before {
                    report.count("slow starts that HyStart ended");
                }
            }
            linux::LOG_CE => self.replay_marks(entry),
            linux::LOG_UNDO => {
                report.count("undos");
                self.ours.on_undo(&Undo { connection });
            }
            linux::LOG_STATE => self.replay_state(entry, connection, report),
            linux::LOG_ACK => self.replay_ack(entry, connection),
            linux::LOG_LOST => self.ours.on_lost(&Lost {
                now: connection.now,
                delivered: connection.delivered,
                units: entry.acked,
                new_range: true,
                tx_in_flight: entry.tx_in_flight,
                // The log does not have it, and BBR does not ask for it.
                tx_delivered: 0,
                tx_lost: connection.lost.wrapping_sub(entry.lost_since as u64),
                lost: connection.lost,
                app_limited: entry.is_app_limited != 0,
            }),
            linux::LOG_REPAIR => {
                report.count("losses repaired by a tail probe");
                self.ours.on_tail_repair(&TailRepair {
                    now: connection.now,
                    delivered: connection.delivered,
                    units: 1,
                    app_limited: entry.is_app_limited != 0,
                });
            }
            kind => unreachable!("c/api.h knows no entry {kind}"),
        }
    }

    fn replay_marks(&mut self, entry: &Entry) {
        let (snd_una, snd_nxt) = (self.count(entry.at.snd_una), self.count(entry.at.snd_nxt));
        self.ours.on_ce(&CeMarks {
            echoed: entry.proven != 0,
            units: entry.acked_sacked,
            delivered: entry.at.delivered as u64,
            snd_una,
            snd_nxt,
        });
    }

    fn replay_state(&mut self, entry: &Entry, connection: Connection, report: &mut Report) {
        let to = state(entry.to);
        match (to, entry.timer) {
            (CaState::Recovery, 0) => report.count("recoveries"),
            (CaState::Recovery, _) => report.count("recoveries by timer"),
            (CaState::Cwr, _) => report.count("CWR"),
            _ => {}
        }
        let (reduce, proven) = (entry.reduce != 0, entry.proven != 0);
        let trigger = if entry.timer != 0 { Trigger::Timer } else { Trigger::Ack };
        self.ours.on_state(&StateChange { connection, to, reduce, proven, trigger });
    }

    fn replay_ack(&mut self, entry: &Entry, connection: Connection) {
        let positive = |value: i64| u64::try_from(value).ok();
        let ack = Ack {
            connection,
            prior_in_flight: entry.prior_in_flight,
            newly_delivered: entry.acked_sacked,
            newly_lost: entry.losses,
            newly_acked: entry.acked,
            rtt: positive(entry.rtt_us).map(Duration::from_micros),
            maybe_delayed: entry.is_ack_delayed != 0,
            una_advanced: entry.una_advanced != 0,
            snd_una: self.count(entry.at.snd_una),
            snd_nxt: self.count(entry.at.snd_nxt),
            sample: RateSample {
                delivered: positive(entry.delivered).map(|delivered| delivered as u32),
                interval: positive(entry.interval_us).map(Duration::from_micros),
                prior_delivered: entry.prior_delivered as u64,
                prior_delivered_time: Time::from_micros(entry.prior_mstamp),
                app_limited: entry.is_app_limited != 0,
                retransmitted: entry.is_retrans != 0,
                tx_in_flight: entry.tx_in_flight,
                lost_since_sent: entry.lost_since,
                marked_since_sent: entry.marked_since,
            },
            cwnd_limited: entry.is_cwnd_limited != 0,
            max_packets_out: entry.max_packets_out,
            may_raise_cwnd: entry.may_raise != 0,
            may_answer_probe: entry.may_answer_probe != 0,
        };
        self.ours.on_ack(&ack);
        self.app_limited = entry.at.app_limited;
        if self.ours.limits().mark_app_limited {
            let mark = entry.at.delivered.wrapping_add(connection.in_flight);
            self.app_limited = mark.max(1);
        }
    }

    fn compare(&mut self, core: &Core) -> Differs {
        core.view(&mut self.view);
        let (view, limits) = (&self.view, self.ours.limits());
        let unequal = |field, ours: u64, linux: u64| (ours != linux).then_some((field, ours, linux));
        if let Err(broken) = self.ours.verdict() {
            return Some(("the order of events", broken.seen as u64, broken.expected as u64));
        }
        // Our rates count bits, in 64 of them.
        let linux_rate = Bits::from_bytes_per_sec(view.pacing_rate);
        unequal("snd_cwnd", limits.cwnd as u64, view.cwnd as u64)
            .or_else(|| unequal("snd_ssthresh", limits.ssthresh as u64, view.ssthresh as u64))
            .or_else(|| {
                let rates = (limits.pacing_rate.as_bytes_per_sec(), linux_rate.as_bytes_per_sec());
                unequal("sk_pacing_rate", rates.0, rates.1)
            })
            .or_else(|| unequal("min_tso_segs", limits.min_burst as u64, view.min_tso_segs as u64))
            .or_else(|| unequal("app_limited", self.app_limited as u64, view.app_limited as u64))
            .or_else(|| self.ours.controller().differs(view, &self.setup))
    }
}

fn draw_setup<C: Compared>(random: &mut Random, now_us: u64, rtt_us: u32) -> Setup {
    let mut setup = Setup {
        control: C::CONTROL,
        mss: random.one_of(&[1448, 1448, 1186, 1420, 536, 8948]),
        cwnd_clamp: random.one_of(&[u32::MAX, u32::MAX, 10_000, 100]),
        hz: random.one_of(&[1_000, 250, 100]),
        gso_max: random.one_of(&[65_343, 65_343, 16_191]),
        paced: random.below(2) as u32,
        slow_start_after_idle: !random.chance(2_000) as u32,
        pacing_ss_ratio: random.one_of(&[200, 200, 120]),
        pacing_ca_ratio: random.one_of(&[120, 120, 200]),
        delivered: random.one_of(&[1, u32::MAX - 1_000]),
        lost: random.one_of(&[0, u32::MAX - 20]),
        // Linux takes the number zero for none (docs/reference/deviations.md#loss-based).
        seq: random.one_of(&[1, (1 << 31) - 1_000]),
        srtt_us: rtt_us * 8,
        min_rtt_us: if rtt_us == 0 { u32::MAX } else { rtt_us },
        reordering: random.one_of(&[3, 3, 10]),
        // Coarse clocks of a kernel begin five minutes before they wrap.
        jiffies: random.one_of(&[1, 1_000_000, u32::MAX - 1_000]),
        max_pacing_rate: random.one_of(&[u64::MAX >> 3, u64::MAX >> 3, 1_000_000]),
        now_us,
        ..Setup::default()
    };
    C::draw(random, &mut setup);
    setup
}
