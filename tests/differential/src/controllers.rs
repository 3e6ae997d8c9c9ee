//! Our controllers in the comparison: how each is made, and which of its fields Linux has, too.

use crate::linux::{Setup, View};
use crate::plan::Profile;
use crate::random::Random;
use fullpipe_cc::controller::{Config, Connection, Controller};
use fullpipe_cc::controllers::bbr1::{self, Bbr1};
use fullpipe_cc::controllers::bbr3_linux::{self, Bbr3Linux};
use fullpipe_cc::controllers::cubic::{self, Cubic};
use fullpipe_cc::controllers::dctcp::{self, Dctcp};
use fullpipe_cc::controllers::reno::{self, Reno};
use fullpipe_cc::controllers::segment_window::{Algorithm, CoreParams, LossBased};
use fullpipe_cc::controllers::vegas::{self, Vegas};

/// A field that differs: its name, ours, Linux's.
pub type Differs = Option<(&'static str, u64, u64)>;

/// A controller that Linux has, too.
pub trait Compared: Controller + Sized {
    /// The number of Linux's in `c/core.c`.
    const CONTROL: u32;
    /// The sender always runs into its window: with an unfilled one, ours is not meant to be Linux's.
    const FILLS_ITS_WINDOW: bool = false;
    /// It reads what a lost or sampled segment was sent with, which only Google's core knows.
    const READS_LOSSES: bool = false;
    /// What [`Compared::signs`] may show.
    const SIGNS: &[&str] = &[];
    /// What the flow has come to that a comparison has to reach, a bit for each of [`Compared::SIGNS`].
    fn signs(&self) -> u32 {
        0
    }
    /// Changes what happens to the flow.
    fn tune(_: &mut Random, _: &mut Profile) {}
    /// Draws its parameters.
    fn draw(random: &mut Random, setup: &mut Setup);
    /// Makes ours.
    fn new(setup: &Setup, config: &Config, connection: &Connection) -> Self;
    /// The first field that differs; `setup` has what Linux's sequence numbers began with.
    fn differs(&self, view: &View, setup: &Setup) -> Differs;
}

fn first(fields: &[(&'static str, u64, u64)]) -> Differs {
    fields.iter().copied().find(|(_, ours, linux)| ours != linux)
}

fn core(setup: &Setup) -> CoreParams {
    CoreParams {
        pacing_ss_ratio: setup.pacing_ss_ratio,
        pacing_ca_ratio: setup.pacing_ca_ratio,
        slow_start_after_idle: setup.slow_start_after_idle != 0,
    }
}

fn core_differs<A: Algorithm>(ours: &LossBased<A>, view: &View) -> Differs {
    let window = ours.window();
    let (prr_delivered, prr_out) = ours.reduction();
    first(&[
        ("snd_cwnd_cnt", window.cwnd_cnt as u64, view.cwnd_cnt as u64),
        ("prior_cwnd", window.prior_cwnd as u64, view.prior_cwnd as u64),
        ("prior_ssthresh", ours.prior_ssthresh().unwrap_or(0) as u64, view.prior_ssthresh as u64),
        ("prr_delivered", prr_delivered as u64, view.prr_delivered as u64),
        ("prr_out", prr_out as u64, view.prr_out as u64),
    ])
}

impl Compared for Reno {
    const CONTROL: u32 = 0;

    fn draw(_: &mut Random, _: &mut Setup) {}

    fn new(setup: &Setup, config: &Config, connection: &Connection) -> Reno {
        Reno::new(&reno::Params { core: core(setup) }, config, connection)
    }

    fn differs(&self, view: &View, _: &Setup) -> Differs {
        core_differs(self, view)
    }
}

impl Compared for Cubic {
    const CONTROL: u32 = 1;

    fn draw(random: &mut Random, setup: &mut Setup) {
        setup.hystart = !random.chance(1_000) as i32;
        setup.hystart_detect = random.one_of(&[3, 3, 3, 1, 2]);
        setup.hystart_low_window = random.one_of(&[16, 16, 2, 100]);
        setup.hystart_ack_delta_us = random.one_of(&[2_000, 2_000, 100, 20_000]);
        setup.fast_convergence = !random.chance(1_000) as i32;
        setup.tcp_friendliness = !random.chance(1_000) as i32;
        // Below a half Linux may not end its loop (docs/reference/deviations.md#cubic).
        setup.beta = random.one_of(&[717, 717, 512, 819, 1_000]);
        setup.bic_scale = random.one_of(&[41, 41, 1, 1_024]);
    }

    fn new(setup: &Setup, config: &Config, connection: &Connection) -> Cubic {
        let params = cubic::Params {
            beta: setup.beta as u32,
            bic_scale: setup.bic_scale as u32,
            fast_convergence: setup.fast_convergence != 0,
            tcp_friendliness: setup.tcp_friendliness != 0,
            initial_ssthresh: 0,
            hystart: fullpipe_cc::controllers::hystart::Params {
                enabled: setup.hystart != 0,
                ack_train: setup.hystart_detect & 1 != 0,
                delay: setup.hystart_detect & 2 != 0,
                low_window: setup.hystart_low_window as u32,
                ack_delta_us: setup.hystart_ack_delta_us as u32,
            },
            core: core(setup),
        };
        Cubic::new(&params, config, connection)
    }

    fn differs(&self, view: &View, setup: &Setup) -> Differs {
        let (curve, round) = (self.algorithm().curve(), self.algorithm().hystart().round());
        let end_seq = (round.end_seq as u32).wrapping_add(setup.seq);
        let names = [
            "cnt",
            "last_max_cwnd",
            "last_cwnd",
            "last_time",
            "bic_origin_point",
            "bic_K",
            "delay_min",
            "epoch_start",
            "ack_cnt",
            "tcp_cwnd",
            "sample_cnt",
            "found",
            "round_start",
            "end_seq",
            "last_ack",
            "curr_rtt",
        ];
        let ours = [
            curve.cnt,
            curve.last_max_cwnd,
            curve.last_cwnd,
            curve.last_time,
            curve.bic_origin_point,
            curve.bic_k,
            curve.delay_min,
            curve.epoch_start,
            curve.ack_cnt,
            curve.tcp_cwnd,
            round.sample_cnt,
            round.found as u32,
            round.round_start,
            // Without HyStart no round begins, until a timeout begins one.
            if setup.hystart == 0 && view.private[13] == 0 { 0 } else { end_seq },
            round.last_ack,
            round.curr_rtt,
        ];
        core_differs(self, view).or_else(|| {
            let fields = names.iter().zip(ours).zip(view.private);
            fields
                .map(|((name, ours), linux)| (*name, ours as u64, linux))
                .find(|(_, ours, linux)| ours != linux)
        })
    }
}

impl Compared for Vegas {
    const CONTROL: u32 = 3;
    // docs/reference/deviations.md#vegas.
    const FILLS_ITS_WINDOW: bool = true;

    fn draw(random: &mut Random, setup: &mut Setup) {
        (setup.vegas_alpha, setup.vegas_beta) = random.one_of(&[(2, 4), (2, 4), (1, 3), (10, 20)]);
        setup.vegas_gamma = random.one_of(&[1, 1, 5]);
    }

    fn new(setup: &Setup, config: &Config, connection: &Connection) -> Vegas {
        let params = vegas::Params {
            alpha: setup.vegas_alpha as u32,
            beta: setup.vegas_beta as u32,
            gamma: setup.vegas_gamma as u32,
            core: core(setup),
        };
        Vegas::new(&params, config, connection)
    }

    fn differs(&self, view: &View, _: &Setup) -> Differs {
        let base_rtt = self.snapshot().min_rtt.map_or(0x7fff_ffff, |rtt| rtt.as_micros() + 1);
        core_differs(self, view).or_else(|| first(&[("baseRTT", base_rtt, view.private[0])]))
    }
}

impl Compared for Dctcp {
    const CONTROL: u32 = 4;

    fn draw(random: &mut Random, setup: &mut Setup) {
        setup.dctcp_shift_g = random.one_of(&[4, 4, 4, 0, 1, 10]);
        setup.dctcp_alpha_on_init = random.one_of(&[1024, 1024, 0, 15, 700]);
    }

    fn new(setup: &Setup, config: &Config, connection: &Connection) -> Dctcp {
        let params = dctcp::Params {
            shift_g: setup.dctcp_shift_g,
            alpha_on_init: setup.dctcp_alpha_on_init,
            ect1: false,
            core: core(setup),
        };
        Dctcp::new(&params, config, connection)
    }

    fn differs(&self, view: &View, setup: &Setup) -> Differs {
        let (alpha, round) = (self.algorithm().alpha(), self.algorithm().round());
        let next_seq = (round.end as u32).wrapping_add(setup.seq);
        core_differs(self, view).or_else(|| {
            first(&[
                ("dctcp_alpha", alpha as u64, view.private[0]),
                ("next_seq", next_seq as u64, view.private[1]),
                ("old_delivered", round.delivered as u64, view.private[2]),
                ("delivered_ce - old_delivered_ce", round.marked as u64, view.private[3]),
            ])
        })
    }
}

impl Compared for Bbr1 {
    const CONTROL: u32 = 2;

    fn draw(_: &mut Random, setup: &mut Setup) {
        setup.paced = 1;
    }

    fn new(_: &Setup, config: &Config, connection: &Connection) -> Bbr1 {
        Bbr1::new(&bbr1::Params::default(), config, connection)
    }

    fn differs(&self, view: &View, _: &Setup) -> Differs {
        let s = self.state();
        let [s0, s1, s2] = s.bw.candidates();
        let ours: [(&'static str, u64); 39] = [
            ("min_rtt_us", s.min_rtt_us as u64),
            ("min_rtt_stamp", s.min_rtt_stamp as u64),
            ("probe_rtt_done_stamp", s.probe_rtt_done_stamp as u64),
            ("bw.s[0].t", s0.time as u64),
            ("bw.s[0].v", s0.value as u64),
            ("bw.s[1].t", s1.time as u64),
            ("bw.s[1].v", s1.value as u64),
            ("bw.s[2].t", s2.time as u64),
            ("bw.s[2].v", s2.value as u64),
            ("rtt_cnt", s.rtt_cnt as u64),
            ("next_rtt_delivered", s.next_rtt_delivered as u64),
            ("cycle_mstamp", s.cycle_mstamp),
            ("mode", s.mode as u64),
            ("prev_ca_state", s.prev_ca_state as u64),
            ("packet_conservation", s.packet_conservation as u64),
            ("round_start", s.round_start as u64),
            ("idle_restart", s.idle_restart as u64),
            ("probe_rtt_round_done", s.probe_rtt_round_done as u64),
            ("lt_is_sampling", s.lt_is_sampling as u64),
            ("lt_rtt_cnt", s.lt_rtt_cnt as u64),
            ("lt_use_bw", s.lt_use_bw as u64),
            ("lt_bw", s.lt_bw as u64),
            ("lt_last_delivered", s.lt_last_delivered as u64),
            ("lt_last_stamp", s.lt_last_stamp as u64),
            ("lt_last_lost", s.lt_last_lost as u64),
            ("pacing_gain", s.pacing_gain as u64),
            ("cwnd_gain", s.cwnd_gain as u64),
            ("full_bw_reached", s.full_bw_reached as u64),
            ("full_bw_cnt", s.full_bw_cnt as u64),
            ("cycle_idx", s.cycle_idx as u64),
            ("has_seen_rtt", s.has_seen_rtt as u64),
            ("prior_cwnd", s.prior_cwnd as u64),
            ("full_bw", s.full_bw as u64),
            ("ack_epoch_mstamp", s.ack_epoch_mstamp),
            ("extra_acked[0]", s.extra_acked[0] as u64),
            ("extra_acked[1]", s.extra_acked[1] as u64),
            ("ack_epoch_acked", s.ack_epoch_acked as u64),
            ("extra_acked_win_rtts", s.extra_acked_win_rtts as u64),
            ("extra_acked_win_idx", s.extra_acked_win_idx as u64),
        ];
        let fields = ours.into_iter().zip(view.private);
        let mut fields = fields.map(|((name, ours), linux)| (name, ours, linux));
        fields
            .find(|(_, ours, linux)| ours != linux)
            .or_else(|| first(&[("prior_ssthresh", s.prior_ssthresh as u64, view.prior_ssthresh as u64)]))
    }
}

impl Compared for Bbr3Linux {
    const CONTROL: u32 = 5;
    const READS_LOSSES: bool = true;
    const SIGNS: &[&str] = &[
        "marks count",
        "inflight_lo set",
        "bw_lo set",
        "Startup ended by loss or marks",
        "of those by marks",
        "probe too high",
        "probe stopped for risk",
        "probe right after marks",
        "fast path possible",
    ];

    fn signs(&self) -> u32 {
        use bbr3_linux::{Mode, Phase};
        let s = self.state();
        let in_startup = matches!(s.mode, Mode::Startup | Mode::Drain);
        let signs = [
            s.ecn_eligible,
            s.inflight_lo != u32::MAX,
            s.bw_lo != u32::MAX,
            in_startup && s.full_bw_reached && s.inflight_hi != u32::MAX,
            in_startup && s.full_bw_reached && s.startup_ecn_rounds >= 2,
            s.prev_probe_too_high,
            s.stopped_risky_probe,
            s.mode == Mode::ProbeBw && s.cycle_idx == Phase::Refill && s.bw_probe_up_rounds > 0,
            s.try_fast_path,
        ];
        signs.iter().enumerate().map(|(place, sign)| (*sign as u32) << place).sum()
    }

    fn tune(random: &mut Random, profile: &mut Profile) {
        profile.make_short_or_marked(random);
    }

    fn draw(random: &mut Random, setup: &mut Setup) {
        setup.paced = 1;
        setup.ecn_low = random.chance(6_000) as u32;
    }

    fn new(setup: &Setup, config: &Config, connection: &Connection) -> Bbr3Linux {
        let params = bbr3_linux::Params { ecn: setup.ecn_low != 0, ..bbr3_linux::Params::default() };
        Bbr3Linux::new(&params, config, connection)
    }

    fn differs(&self, view: &View, _: &Setup) -> Differs {
        let s = self.state();
        let ours: [(&'static str, u64); 61] = [
            ("min_rtt_us", s.min_rtt_us as u64),
            ("min_rtt_stamp", s.min_rtt_stamp as u64),
            ("probe_rtt_done_stamp", s.probe_rtt_done_stamp as u64),
            ("probe_rtt_min_us", s.probe_rtt_min_us as u64),
            ("probe_rtt_min_stamp", s.probe_rtt_min_stamp as u64),
            ("next_rtt_delivered", s.next_rtt_delivered as u64),
            ("cycle_mstamp", s.cycle_mstamp),
            ("mode", s.mode as u64),
            ("prev_ca_state", s.prev_ca_state as u64),
            ("round_start", s.round_start as u64),
            ("bw_probe_up_rounds", s.bw_probe_up_rounds as u64),
            ("try_fast_path", s.try_fast_path as u64),
            ("idle_restart", s.idle_restart as u64),
            ("probe_rtt_round_done", s.probe_rtt_round_done as u64),
            ("init_cwnd", s.init_cwnd as u64),
            ("pacing_gain", s.pacing_gain as u64),
            ("cwnd_gain", s.cwnd_gain as u64),
            ("full_bw_reached", s.full_bw_reached as u64),
            ("full_bw_cnt", s.full_bw_cnt as u64),
            ("cycle_idx", s.cycle_idx as u64),
            ("has_seen_rtt", s.has_seen_rtt as u64),
            ("prior_cwnd", s.prior_cwnd as u64),
            ("full_bw", s.full_bw as u64),
            ("ack_epoch_mstamp", s.ack_epoch_mstamp),
            ("extra_acked[0]", s.extra_acked[0] as u64),
            ("extra_acked[1]", s.extra_acked[1] as u64),
            ("ack_epoch_acked", s.ack_epoch_acked as u64),
            ("extra_acked_win_rtts", s.extra_acked_win_rtts as u64),
            ("extra_acked_win_idx", s.extra_acked_win_idx as u64),
            ("full_bw_now", s.full_bw_now as u64),
            ("startup_ecn_rounds", s.startup_ecn_rounds as u64),
            ("loss_in_cycle", s.loss_in_cycle as u64),
            ("ecn_in_cycle", s.ecn_in_cycle as u64),
            ("loss_round_delivered", s.loss_round_delivered as u64),
            ("undo_bw_lo", s.undo_bw_lo as u64),
            ("undo_inflight_lo", s.undo_inflight_lo as u64),
            ("undo_inflight_hi", s.undo_inflight_hi as u64),
            ("bw_latest", s.bw_latest as u64),
            ("bw_lo", s.bw_lo as u64),
            ("bw_hi[0]", s.bw_hi[0] as u64),
            ("bw_hi[1]", s.bw_hi[1] as u64),
            ("inflight_latest", s.inflight_latest as u64),
            ("inflight_lo", s.inflight_lo as u64),
            ("inflight_hi", s.inflight_hi as u64),
            ("bw_probe_up_cnt", s.bw_probe_up_cnt as u64),
            ("bw_probe_up_acks", s.bw_probe_up_acks as u64),
            ("probe_wait_us", s.probe_wait_us as u64),
            ("ecn_eligible", s.ecn_eligible as u64),
            ("ecn_alpha", s.ecn_alpha as u64),
            ("bw_probe_samples", s.bw_probe_samples as u64),
            ("prev_probe_too_high", s.prev_probe_too_high as u64),
            ("stopped_risky_probe", s.stopped_risky_probe as u64),
            ("rounds_since_probe", s.rounds_since_probe as u64),
            ("loss_round_start", s.loss_round_start as u64),
            ("loss_in_round", s.loss_in_round as u64),
            ("ecn_in_round", s.ecn_in_round as u64),
            ("ack_phase", s.ack_phase as u64),
            ("loss_events_in_round", s.loss_events_in_round as u64),
            ("alpha_last_delivered", s.alpha_last_delivered as u64),
            ("alpha_last_delivered_ce", s.alpha_last_delivered_ce as u64),
            ("bbr_tso_segs_goal", self.burst_goal() as u64),
        ];
        let fields = ours.into_iter().zip(view.private);
        let mut fields = fields.map(|((name, ours), linux)| (name, ours, linux));
        fields
            .find(|(_, ours, linux)| ours != linux)
            .or_else(|| first(&[("prior_ssthresh", s.prior_ssthresh as u64, view.prior_ssthresh as u64)]))
    }
}
