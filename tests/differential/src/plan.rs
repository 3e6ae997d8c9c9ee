//! What happens to a flow: its path, its application and its luck, and the ACKs that come of them.

use crate::linux::{LossPlan, Plan, View};
use crate::random::Random;

/// What does not change while a flow lives. Chances are of 10,000.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    pub base_rtt_us: u64,
    /// What the path takes for a segment.
    segment_us: f64,
    jitter_us: u64,
    loss: u32,
    reordering: u32,
    spurious: u32,
    marks: u32,
    pub timeouts: u32,
    pub reordering_timeouts: u32,
    pub probes: u32,
    pub app_limited: u32,
    pub pauses: u32,
    pub mss_changes: u32,
    /// Chance of ACKs of many segments.
    stretched: u32,
    pub most_out: u32,
}

impl Profile {
    pub fn draw(random: &mut Random) -> Profile {
        let base_rtt_us = random.magnitude(50, 500_000);
        let rate = |random: &mut Random, choices: &[u32]| random.one_of(choices);
        Profile {
            base_rtt_us,
            segment_us: random.magnitude(1, 20_000) as f64 / 4.0,
            jitter_us: random.one_of(&[0, 10, 1_000, 5_000, base_rtt_us]),
            loss: rate(random, &[0, 0, 5, 50, 300, 2_000]),
            reordering: rate(random, &[0, 20, 500]),
            spurious: rate(random, &[0, 500, 5_000]),
            marks: rate(random, &[0, 0, 0, 20, 500]),
            timeouts: rate(random, &[0, 2, 20, 200]),
            reordering_timeouts: rate(random, &[0, 10, 200]),
            probes: rate(random, &[0, 10, 200]),
            app_limited: rate(random, &[0, 10, 500, 3_000]),
            pauses: rate(random, &[0, 2, 50]),
            mss_changes: rate(random, &[0, 0, 0, 5]),
            stretched: rate(random, &[0, 200, 3_000]),
            most_out: random.one_of(&[20, 200, 2_000, 20_000]),
        }
    }
}

impl Profile {
    /// Half the flows get the RTT of a data centre, and some get marks all the time or in bursts, which Google's BBR tells apart.
    pub fn make_short_or_marked(&mut self, random: &mut Random) {
        if random.chance(5_000) {
            self.base_rtt_us = random.between(50, 4_000);
        }
        if random.chance(5_000) {
            self.marks = random.one_of(&[50, 2_000, 5_000, 9_000]);
        }
    }
}

/// The estimates of the transport, which the plan gives to both sides.
#[derive(Clone, Copy, Debug)]
pub struct Rtts {
    /// Eight times the smoothed RTT.
    pub srtt_us8: u32,
    pub min_us: u32,
}

/// An ACK for a connection in this state.
pub fn ack(profile: &Profile, random: &mut Random, view: &View, rtts: &mut Rtts) -> Plan {
    let mut plan = Plan::default();
    if view.packets_out > 0 {
        acknowledge(profile, random, view, &mut plan);
    }
    let duplicates = random.chance(30 + profile.spurious / 10);
    plan.duplicates = if duplicates { random.between(1, 3) as u32 } else { 0 };
    plan.ece = random.chance(profile.marks) as u32;
    plan.original = random.chance(2_000) as u32;
    plan.packet_delayed = random.chance(profile.spurious) as u32;
    plan.duplicate_of_probe = random.chance(3_000) as u32;
    plan.any_retrans = random.chance(3_000) as u32;
    plan.window_update = random.chance(300) as u32;
    plan.maybe_delayed = (plan.acked == 1 && random.chance(500)) as u32;
    measure(profile, random, view, &mut plan, rtts);
    sample(profile, random, view, &mut plan);
    plan
}

/// What it acknowledges, SACKs and shows to be lost; never more than there is.
fn acknowledge(profile: &Profile, random: &mut Random, view: &View, plan: &mut Plan) {
    let (mut sacked, mut lost, mut retrans) = (view.sacked_out, view.lost_out, view.retrans_out);
    let mut plain = view.packets_out - sacked - lost;
    let holes = sacked + lost > 0;
    let out_of_order = random.chance(profile.loss + profile.reordering) || (holes && random.chance(6_000));
    plan.old = random.chance(20) as u32;
    if plan.old == 0 && !out_of_order {
        let most = if random.chance(profile.stretched) { view.packets_out } else { view.packets_out.min(2) };
        let acked = if holes && random.chance(3_000) {
            view.packets_out
        } else {
            random.between(1, most as u64) as u32
        };
        let of_sacked = spread(random, acked, view.packets_out, sacked);
        let of_lost = spread(random, acked - of_sacked, view.packets_out - sacked, lost);
        // What is neither has to come of what is left.
        let of_plain = (acked - of_sacked - of_lost).min(plain);
        let short = acked - of_sacked - of_lost - of_plain;
        let more_sacked = short.min(sacked - of_sacked);
        (plan.acked, plan.acked_sacked) = (acked, of_sacked + more_sacked);
        plan.acked_lost = of_lost + short - more_sacked;
        plan.acked_retrans = if acked == view.packets_out {
            retrans
        } else {
            spread(random, acked, view.packets_out, retrans)
        };
        sacked -= plan.acked_sacked;
        lost -= plan.acked_lost;
        retrans -= plan.acked_retrans;
        plain -= of_plain;
    }
    // The first segment that is out cannot be SACKed.
    let may_be_sacked = (plain + lost).saturating_sub(1);
    if may_be_sacked > 0 && (out_of_order || plan.old != 0 || random.chance(100)) {
        plan.sacked = random.between(1, may_be_sacked.min(4) as u64) as u32;
        plan.sacked_lost =
            spread(random, plan.sacked, plain + lost, lost).max(plan.sacked.saturating_sub(plain));
        plan.sacked_retrans = spread(random, plan.sacked, plain + lost, retrans.min(plan.sacked_lost));
        sacked += plan.sacked;
        lost -= plan.sacked_lost;
        retrans -= plan.sacked_retrans;
        plain -= plan.sacked - plan.sacked_lost;
    }
    if sacked > 0 && plain > 0 && random.chance(500 + profile.loss * 4) {
        let most = if random.chance(1_000) { plain } else { plain.min(3) };
        plan.lost = random.between(1, most as u64) as u32;
    }
    if retrans > 0 && lost > 0 && random.chance(300) {
        plan.lost_retrans = random.between(1, retrans.min(3) as u64) as u32;
    }
    // In the end there are no fewer lost than retransmitted, but after an undo, and nothing in flight is negative.
    debug_assert!(sacked + lost <= view.packets_out);
}

/// How many of `chosen` among `all` are of the `marked`, about as many as chance would have.
fn spread(random: &mut Random, chosen: u32, all: u32, marked: u32) -> u32 {
    if all == 0 || marked == 0 || chosen == 0 {
        return 0;
    }
    let expected = (chosen as u64 * marked as u64).div_ceil(all as u64) as u32;
    random.upto(expected + 1).min(marked).min(chosen)
}

fn measure(profile: &Profile, random: &mut Random, view: &View, plan: &mut Plan, rtts: &mut Rtts) {
    let measured = plan.acked + plan.sacked > 0 && plan.old == 0 && !random.chance(300);
    plan.rtt_us = -1;
    if measured {
        let queue = view.in_flight as f64 * profile.segment_us - profile.base_rtt_us as f64;
        let jitter = random.below(profile.jitter_us + 1);
        let rtt = profile.base_rtt_us + queue.clamp(0.0, 2e6) as u64 + jitter;
        plan.rtt_us = if random.chance(20) { random.below(2 * rtt) as i32 } else { rtt as i32 };
        let rtt = plan.rtt_us as u32;
        rtts.srtt_us8 = if rtts.srtt_us8 == 0 { rtt * 8 } else { rtts.srtt_us8 - rtts.srtt_us8 / 8 + rtt };
        rtts.min_us = if random.chance(2) { rtt } else { rtts.min_us.min(rtt) };
    }
    (plan.srtt_us, plan.min_rtt_us) = (rtts.srtt_us8, rtts.min_us);
}

/// The delivery-rate sample: about what the path can do, and what a sampler gives besides.
fn sample(profile: &Profile, random: &mut Random, view: &View, plan: &mut Plan) {
    let newly = plan.acked - plan.acked_sacked + plan.sacked + plan.duplicates;
    let after = view.delivered.wrapping_add(newly);
    plan.is_retrans = random.chance(500) as u32;
    plan.is_app_limited = (view.app_limited != 0 && random.chance(7_000)) as u32;
    if newly == 0 || random.chance(200) {
        (plan.delivered, plan.interval_us) = (-1, -1);
        plan.prior_delivered = if random.chance(5_000) { 0 } else { view.delivered };
        return;
    }
    let most = (view.packets_out + newly).min(1 << 20) as u64;
    let delivered = if random.chance(6_000) { most } else { random.between(1, most) };
    let exact = delivered as f64 * profile.segment_us;
    let interval = (exact * random.between(800, 1_300) as f64 / 1_000.0).max(1.0) as u64;
    plan.interval_us = match random.below(200) {
        0..6 => -1,
        6 => 0,
        7 => random.magnitude(1, 10_000_000) as i64,
        _ => interval.max(profile.base_rtt_us) as i64,
    };
    plan.delivered = delivered as i32;
    plan.prior_delivered = after.wrapping_sub(delivered as u32);
    plan.prior_mstamp = view.now_us.saturating_sub(interval);
}

/// What the losses of an event were sent with: mostly a plausible flight of which few were lost, at times nonsense.
pub fn losses(random: &mut Random, view: &View) -> LossPlan {
    let out = view.packets_out.max(1);
    let tx_in_flight = match random.below(20) {
        0 => random.upto(3),
        1 => random.magnitude(1, 1 << 20) as u32,
        _ => random.between(out as u64 / 2 + 1, out as u64 + out as u64 / 2 + 1) as u32,
    };
    let since = match random.below(10) {
        0..5 => random.upto(3),
        5..9 => random.upto(tx_in_flight / 4 + 1),
        _ => random.magnitude(1, 1 << 20) as u32,
    };
    LossPlan {
        tx_in_flight,
        since,
        app_limited: random.chance(1_000) as u32,
        runs: random.between(1, 3) as u32,
    }
}

/// What Google's sampler adds to a sample; nothing to none.
pub fn add_losses(profile: &Profile, random: &mut Random, view: &View, plan: &mut Plan) {
    if plan.delivered < 0 {
        return;
    }
    let losses = losses(random, view);
    plan.tx_in_flight = losses.tx_in_flight;
    plan.lost_since = if random.chance(profile.loss.saturating_mul(4) + 100) { losses.since } else { 0 };
    if profile.marks > 0 {
        let delivered = plan.delivered as u32;
        plan.marked_since = if random.chance(profile.marks) { random.upto(delivered) } else { 0 };
    }
}
