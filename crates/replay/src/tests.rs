//! A kernel that runs our controllers, its record as it is and changed, and noise.

extern crate std;
use super::testing::*;
use super::*;
use proptest::prelude::*;
use std::format;
use std::string::ToString;
use std::vec::Vec;

/// Replays one flow of these calls.
fn replay_flow(ops: Ops, hz: u32, calls: &[Call], flow: u32) -> Replayed {
    let of_flow = (0..).zip(calls).filter(|(_, call)| call.flow == flow);
    super::replay_flow(ops, hz, of_flow)
}

/// Startup, a queue, ProbeBW, a lossy round, its undo, a timeout, idleness, ProbeRTT.
fn bbr_flow() -> Vec<Call> {
    let mut kernel = FakeKernel::new(Ops::Bbr);
    let mut calls = std::vec![kernel.init()];
    for round in 0..30 {
        kernel.pass_us(50_000);
        kernel.socket.packets_out = if round < 8 { 40 } else { 10 };
        calls.push(kernel.ack(20 + round % 2, |_| {}));
    }
    calls.extend(kernel.enter_recovery());
    kernel.socket.lost += 3;
    calls.push(kernel.ack(4, |call| call.rate_sample.losses = 3));
    calls.push(kernel.call(Hook::Undo, |_| {}));
    kernel.socket.snd_ssthresh = kernel.socket.snd_ssthresh.max(kernel.socket.prior_ssthresh);
    calls.push(kernel.change(0));
    kernel.pass_us(50_000);
    calls.push(kernel.ack(10, |_| {}));
    calls.extend(kernel.enter_loss());
    kernel.socket.lost_out = 0;
    kernel.pass_us(400_000);
    calls.push(kernel.ack(1, |_| {}));
    calls.push(kernel.change(0));
    calls.push(kernel.ack(9, |_| {}));
    kernel.socket.packets_out = 0;
    kernel.socket.app_limited = kernel.socket.delivered;
    kernel.pass_us(3_000_000);
    calls.push(kernel.call(Hook::CwndEvent, |_| {}));
    kernel.socket.packets_out = 3;
    for _ in 0..20 {
        kernel.pass_us(600_000);
        calls.push(kernel.ack(2, |call| call.rate_sample.rtt_us = 60_000));
        // The core marks the sampler where BBR told it to.
        kernel.socket.app_limited = kernel.socket.delivered + 3;
    }
    calls
}

/// Slow start up to HyStart's end, a loss, two curves, idleness, an undo, a timeout.
fn cubic_flow() -> Vec<Call> {
    let mut kernel = FakeKernel::new(Ops::Cubic);
    let mut calls = std::vec![kernel.init()];
    let rounds = |kernel: &mut FakeKernel, calls: &mut Vec<Call>, count: u32, rtt_us: i64| {
        for _ in 0..count {
            kernel.pass_us(5_000);
            // Ten ACKs make a round.
            kernel.socket.snd_una = kernel.socket.snd_una.wrapping_add(1448);
            kernel.socket.snd_nxt = kernel.socket.snd_nxt.wrapping_add(1448);
            calls.push(kernel.call(Hook::PktsAcked, |call| call.arguments = [4, 0, rtt_us]));
            calls.push(kernel.call(Hook::CongAvoid, |call| call.arguments = [0, 4, 0]));
        }
    };
    rounds(&mut kernel, &mut calls, 20, 50_000);
    rounds(&mut kernel, &mut calls, 40, 70_000);
    for _ in 0..2 {
        calls.push(kernel.call(Hook::Ssthresh, |_| {}));
        kernel.socket.prior_cwnd = kernel.socket.snd_cwnd;
        kernel.socket.snd_ssthresh = calls.last().unwrap().returned;
        kernel.socket.snd_cwnd = kernel.socket.snd_ssthresh;
        calls.push(kernel.change(3));
        calls.push(kernel.change(0));
        rounds(&mut kernel, &mut calls, 100, 50_000);
    }
    kernel.pass_us(2_000_000);
    calls.push(kernel.call(Hook::CwndEvent, |call| {
        let epoch = get(Ops::Cubic, &call.private_before, "epoch_start");
        set(Ops::Cubic, &mut call.private_after, "epoch_start", epoch + 500);
    }));
    rounds(&mut kernel, &mut calls, 10, 50_000);
    calls.push(kernel.call(Hook::Undo, |_| {}));
    calls.push(kernel.call(Hook::Ssthresh, |_| {}));
    kernel.socket.snd_ssthresh = calls.last().unwrap().returned;
    kernel.socket.snd_cwnd = 1;
    calls.push(kernel.change(4));
    rounds(&mut kernel, &mut calls, 10, 50_000);
    calls
}

fn flow_of(ops: Ops) -> Vec<Call> {
    match ops {
        Ops::Bbr => bbr_flow(),
        Ops::Cubic => cubic_flow(),
    }
}

fn first_difference(ops: Ops, calls: &[Call]) -> Option<Difference> {
    replay_flow(ops, HZ, calls, 0).difference
}

#[test]
fn own_calls_replay_without_difference() {
    for (ops, branches) in [
        (
            Ops::Bbr,
            &[
                "startup_to_drain",
                "to_recovery",
                "undo",
                "timeout",
                "idle_restart_probe_bw",
                "probe_bw_to_probe_rtt",
                "probe_rtt_to_probe_bw",
            ][..],
        ),
        (
            Ops::Cubic,
            &[
                "hystart_delay_ends",
                "epoch_below_origin",
                "fast_convergence",
                "undo_raises",
                "idle_shifts",
                "timeout",
                "reno_grows",
            ],
        ),
    ] {
        let calls = flow_of(ops);
        let report = replay_flow(ops, HZ, &calls, 0);
        assert_eq!(report.difference, None, "{}", report.difference.unwrap());
        assert_eq!((report.replayed, report.skipped), (calls.len() as u64, 0));
        assert_eq!((report.filter.differences, report.sampler.first), (0, None));
        for branch in branches {
            assert!(report.coverage.count(branch).unwrap() > 0, "{branch}: {:?}", report.coverage);
        }
    }
}

#[test]
fn changed_field_is_reported_as_difference() {
    for ops in Ops::ALL {
        let calls = flow_of(ops);
        let at = calls.iter().rposition(|call| ops.has(Hook::Main) == (call.hook == Hook::Main)).unwrap();
        for field in ops.fields() {
            let mut changed = calls.clone();
            let ours = field.get(&changed[at].private_after);
            field.set(&mut changed[at].private_after, ours ^ 1);
            let found = first_difference(ops, &changed).unwrap();
            let expected = Difference {
                call: at as u64,
                flow: 0,
                hook: calls[at].hook,
                moment: Moment::After,
                field: field.name,
                ours,
                kernel: ours ^ 1,
            };
            assert_eq!(found, expected);
        }
    }
}

type Change = fn(&mut Call);

#[test]
fn changed_output_is_reported_as_difference() {
    let changes: [(Ops, &str, Change); 6] = [
        (Ops::Bbr, "snd_cwnd", |call| call.after.snd_cwnd += 1),
        (Ops::Bbr, "snd_ssthresh", |call| call.after.snd_ssthresh += 1),
        (Ops::Bbr, "sk_pacing_rate", |call| call.after.sk_pacing_rate += 1),
        (Ops::Cubic, "snd_cwnd", |call| call.after.snd_cwnd += 1),
        (Ops::Cubic, "snd_cwnd_cnt", |call| call.after.snd_cwnd_cnt += 1),
        (Ops::Cubic, "returned", |call| call.returned += 1),
    ];
    for (ops, field, change) in changes {
        let mut calls = flow_of(ops);
        change(calls.last_mut().unwrap());
        let found = first_difference(ops, &calls).unwrap();
        assert_eq!((found.field, found.moment, found.call + 1), (field, Moment::After, calls.len() as u64));
        assert_eq!(found.kernel, found.ours + 1);
    }
}

#[test]
fn core_actions_are_compared_at_entry() {
    let calls = bbr_flow();
    let undo = calls.iter().position(|call| call.hook == Hook::Undo).unwrap();
    let mut changed = calls.clone();
    // The kernel did not raise the threshold after the undo.
    changed[undo + 1].socket.snd_ssthresh = calls[undo].socket.snd_ssthresh;
    let found = first_difference(Ops::Bbr, &changed).unwrap();
    assert_eq!((found.field, found.moment, found.call), ("snd_ssthresh", Moment::Before, undo as u64 + 1));
    let mut changed = calls;
    changed[5].socket.snd_cwnd += 1;
    let found = first_difference(Ops::Bbr, &changed).unwrap();
    assert_eq!((found.field, found.moment, found.call), ("snd_cwnd", Moment::Before, 5));
}

#[test]
fn missing_call_shows_at_next() {
    for ops in Ops::ALL {
        let mut calls = flow_of(ops);
        let changes = |call: &Call| call.private_before != call.private_after;
        let gap = 10 + calls[10..].iter().position(changes).unwrap();
        calls.remove(gap);
        let found = first_difference(ops, &calls).unwrap();
        assert_eq!((found.moment, found.call), (Moment::Gap, gap as u64), "{found}");
    }
}

#[test]
fn flow_without_init_differs_immediately() {
    for ops in Ops::ALL {
        let found = first_difference(ops, &flow_of(ops)[1..]).unwrap();
        assert_eq!((found.moment, found.call), (Moment::Gap, 0));
    }
}

#[test]
fn flow_of_another_layout_is_refused() {
    for ops in Ops::ALL {
        let mut calls = flow_of(ops);
        calls[0].private_before[12] = 1 << 63;
        let found = first_difference(ops, &calls).unwrap();
        assert_eq!((found.moment, found.call), (Moment::Record, 0));
        assert!(
            found
                .to_string()
                .ends_with("BBR version 1 and CUBIC can be replayed, and BBRv3's state has another layout")
        );
        // The next init starts over.
        calls.extend(flow_of(ops));
        assert_eq!(replay_flow(ops, HZ, &calls, 0).replayed, 1 + calls.len() as u64 / 2);
    }
}

#[test]
fn unrecorded_change_or_reduction_is_gap() {
    let of = |calls: &[Call], hook: Hook| calls.iter().position(|call| call.hook == hook).unwrap();
    for ops in Ops::ALL {
        let calls = flow_of(ops);
        let (state, ssthresh) = (of(&calls, Hook::SetState), of(&calls, Hook::Ssthresh));
        // A recorder that was not called leaves no trace in the private state either.
        let mut changed = calls.clone();
        changed[state + 1].socket.ca_state = 4;
        let found = first_difference(ops, &changed).unwrap();
        assert_eq!((found.moment, found.field, found.kernel), (Moment::Gap, "ca_state", 4));
        let mut changed = calls.clone();
        // Another event in the place of ssthresh.
        let event = &mut changed[ssthresh];
        (event.hook, event.arguments, event.returned) = (Hook::CwndEvent, [1, 0, 0], 0);
        event.private_after = event.private_before;
        event.socket.prior_ssthresh = calls[ssthresh - 1].socket.prior_ssthresh;
        changed[ssthresh + 1].private_before = changed[ssthresh].private_after;
        let found = first_difference(ops, &changed).unwrap();
        assert_eq!((found.moment, found.field, found.call), (Moment::Gap, "hook", ssthresh as u64 + 1));
    }
}

#[test]
fn reduction_is_compared_after_both_calls() {
    let calls = bbr_flow();
    let at = calls.iter().position(|call| call.hook == Hook::Ssthresh).unwrap();
    // The kernel saves the window at once, ours with the change of state.
    let saved = |call: &Call| get(Ops::Bbr, &call.private_after, "prior_cwnd");
    let mut changed = calls.clone();
    let mut early = changed[at].private_after;
    set(Ops::Bbr, &mut early, "prior_cwnd", saved(&calls[at + 1]));
    changed[at].private_after = early;
    changed[at + 1].private_before = early;
    assert_eq!(first_difference(Ops::Bbr, &changed), None);
    let mut wrong = calls.clone();
    set(Ops::Bbr, &mut wrong[at + 1].private_after, "prior_cwnd", 1);
    let found = first_difference(Ops::Bbr, &wrong).unwrap();
    assert_eq!((found.field, found.kernel, found.hook), ("prior_cwnd", 1, Hook::SetState));
    // Nothing may come between the two.
    let mut torn = calls;
    torn[at + 1].hook = Hook::Undo;
    let found = first_difference(Ops::Bbr, &torn).unwrap();
    assert_eq!((found.field, found.moment), ("hook", Moment::Gap));
}

#[test]
fn core_must_use_returned_threshold() {
    for ops in Ops::ALL {
        let mut calls = flow_of(ops);
        let at = calls.iter().position(|call| call.hook == Hook::Ssthresh).unwrap();
        calls[at + 1].socket.snd_ssthresh += 1;
        let found = first_difference(ops, &calls).unwrap();
        assert_eq!((found.moment, found.field, found.call), (Moment::Before, "snd_ssthresh", at as u64 + 1));
    }
}

#[test]
fn timeout_window_precedes_state_change() {
    let mut calls = bbr_flow();
    let at = calls.iter().position(|call| call.hook == Hook::SetState && call.arguments[0] == 4).unwrap();
    assert_eq!((calls[at].socket.snd_cwnd, calls[at].after.snd_cwnd), (1, 1));
    calls[at].after.snd_cwnd = 2;
    assert_eq!(first_difference(Ops::Bbr, &calls).unwrap().field, "snd_cwnd");
}

#[test]
fn handshake_gains_survive_init() {
    let mut kernel = FakeKernel::new(Ops::Bbr);
    // The SYN's ACK, which Linux shows to a control that it has not initialised.
    let mut calls = std::vec![kernel.ack(1, |_| {})];
    assert_eq!(get(Ops::Bbr, &calls[0].private_after, "pacing_gain"), 256, "an RTT of zero has expired");
    kernel.socket.snd_cwnd = 10;
    calls.push(kernel.init());
    assert_eq!(get(Ops::Bbr, &calls[1].private_after, "pacing_gain"), 256);
    kernel.pass_us(50_000);
    calls.push(kernel.ack(10, |_| {}));
    let report = replay_flow(Ops::Bbr, HZ, &calls, 0);
    assert_eq!(report.difference, None);
    assert_eq!(report.coverage.count("before_init"), Some(1));
}

#[test]
fn one_jiffies_tick_is_tolerated() {
    let mut kernel = FakeKernel::new(Ops::Cubic);
    let mut calls = std::vec![kernel.init()];
    kernel.socket.snd_ssthresh = 5;
    calls.push(kernel.call(Hook::CongAvoid, |call| call.arguments = [0, 4, 0]));
    assert_eq!(get(Ops::Cubic, &calls[1].private_after, "last_time"), kernel.socket.jiffies32 as u64);
    calls[1].socket.jiffies32 -= 1;
    let report = replay_flow(Ops::Cubic, HZ, &calls, 0);
    assert_eq!((report.difference, report.late, report.replayed), (None, 1, 2));
    assert_eq!(report.coverage.count("evaluated"), Some(1));
    // Two flows with one such call each.
    let other = calls.iter().map(|call| Call { flow: 1, ..*call });
    let all = replay_all(Ops::Cubic, HZ, 2, &calls.iter().copied().chain(other).collect::<Vec<_>>());
    assert_eq!((all.difference, all.late, all.replayed), (None, 2, 4));
    calls[1].socket.jiffies32 -= 1;
    let found = first_difference(Ops::Cubic, &calls).unwrap();
    assert_eq!((found.field, found.ours + 2), ("last_time", found.kernel));
}

#[test]
fn mark_is_inferred_from_cleared_threshold() {
    let mut kernel = FakeKernel::new(Ops::Bbr);
    let mut calls = std::vec![kernel.init()];
    calls.extend(kernel.enter_recovery());
    kernel.socket.prior_ssthresh = 0;
    calls.push(kernel.ack(1, |_| {}));
    let report = replay_flow(Ops::Bbr, HZ, &calls, 0);
    assert_eq!(report.difference, None);
    assert_eq!(report.coverage.count("mark_forbids_undo"), Some(1));
    // But it cannot come back.
    kernel.socket.prior_ssthresh = 7;
    calls.push(kernel.ack(1, |_| {}));
    assert_eq!(first_difference(Ops::Bbr, &calls).unwrap().field, "prior_ssthresh");
}

#[test]
fn probe_rtt_must_mark_sampler() {
    let calls = bbr_flow();
    let mode = |call: &Call| get(Ops::Bbr, &call.private_after, "mode");
    let at = calls.iter().rposition(|call| mode(call) == 3).unwrap();
    let mut changed = calls;
    changed[at + 1].socket.delivered = changed[at].socket.delivered;
    changed[at + 1].socket.app_limited = 0;
    let found = first_difference(Ops::Bbr, &changed).unwrap();
    assert_eq!((found.field, found.moment, found.call), ("app_limited", Moment::Before, at as u64 + 1));
}

#[test]
fn mss_may_change_pacing_limit_not() {
    let mut kernel = FakeKernel::new(Ops::Bbr);
    let mut calls = std::vec![kernel.init()];
    kernel.socket.mss_cache = 1_000;
    kernel.pass_us(50_000);
    calls.push(kernel.ack(10, |_| {}));
    let report = replay_flow(Ops::Bbr, HZ, &calls, 0);
    assert_eq!((report.difference, report.coverage.count("segment_size")), (None, Some(1)));
    kernel.socket.sk_max_pacing_rate = 1_000_000;
    calls.push(kernel.ack(10, |_| {}));
    assert_eq!(first_difference(Ops::Bbr, &calls).unwrap().field, "sk_max_pacing_rate");
}

#[test]
fn after_difference_calls_skip_until_init() {
    for ops in Ops::ALL {
        let mut calls = flow_of(ops);
        let at = 20;
        calls[at].after.snd_cwnd += 7;
        let report = replay_flow(ops, HZ, &calls, 0);
        assert_eq!((report.replayed, report.skipped), (21, calls.len() as u64 - 21));
        let mut replay = Replay::new(ops, HZ);
        for (index, call) in calls.iter().enumerate() {
            let result = replay.step(index as u64, call);
            assert_eq!(result.is_err(), index == at);
            if result.is_err() {
                let rows: Vec<Row> = replay.side_by_side(call).filter(|row| row.ours != row.kernel).collect();
                assert_eq!(rows.iter().map(|row| row.field).collect::<Vec<_>>(), ["snd_cwnd"]);
            }
        }
        // A second connection in the same flow starts over.
        let mut twice = calls.clone();
        twice.extend(flow_of(ops));
        let report = replay_flow(ops, HZ, &twice, 0);
        assert_eq!(report.replayed, 21 + calls.len() as u64);
    }
}

#[test]
fn only_requested_flow_is_replayed() {
    let mut calls = bbr_flow();
    let other: Vec<Call> = calls.iter().map(|call| Call { flow: 1, ..*call }).collect();
    calls.extend(other.iter().take(3));
    let report = replay_flow(Ops::Bbr, HZ, &calls, 1);
    assert_eq!((report.replayed, report.difference), (3, None));
    assert_eq!(replay_flow(Ops::Bbr, HZ, &calls, 2).replayed, 0);
}

#[test]
fn a_difference_reads_as_a_sentence() {
    let mut calls = bbr_flow();
    set(Ops::Bbr, &mut calls[1].private_after, "full_bw_cnt", 2);
    let text = first_difference(Ops::Bbr, &calls).unwrap().to_string();
    assert_eq!(text, "call 1 (cong_control, flow 0): after it full_bw_cnt is 0 here and 2 in the kernel");
    calls[1].socket.mss_cache = 0;
    let text = first_difference(Ops::Bbr, &calls).unwrap().to_string();
    assert_eq!(text, "call 1 (cong_control, flow 0) cannot have happened: mss_cache is 0, expected 1");
}

#[test]
fn branches_are_named_once() {
    for ops in Ops::ALL {
        let coverage = replay_flow(ops, HZ, &[], 0).coverage;
        let branches = coverage.branches();
        assert_eq!(coverage.counts().len(), branches.len());
        for (position, branch) in branches.iter().enumerate() {
            assert!(branches[..position].iter().all(|other| other.name != branch.name), "{}", branch.name);
            assert!(!branch.summary.is_empty());
        }
        let mut sum = coverage;
        sum.add(&replay_flow(ops, HZ, &flow_of(ops), 0).coverage);
        assert!(format!("{sum:?}").contains("\"init\": 1"));
    }
}

/// Puts `value` into the field of a call that `place` picks.
fn disturb(call: &mut Call, place: usize, value: u64) {
    let (narrow, byte) = (value as u32, value as u8);
    let (rs, socket, after) = (&mut call.rate_sample, &mut call.socket, &mut call.after);
    match place % 76 {
        0 => call.hook = Hook::ALL[byte as usize % 8],
        1..=3 => call.arguments[place % 3] = value as i64,
        4 => call.returned = narrow,
        5 => rs.prior_mstamp = value,
        6 => rs.prior_delivered = narrow,
        7 => rs.delivered = narrow as i32,
        8 => rs.interval_us = value as i64,
        9 => rs.snd_interval_us = narrow,
        10 => rs.rcv_interval_us = narrow,
        11 => rs.rtt_us = value as i64,
        12 => rs.losses = narrow as i32,
        13 => rs.acked_sacked = narrow,
        14 => rs.prior_in_flight = narrow,
        15 => rs.last_end_seq = narrow,
        16 => rs.is_app_limited = byte & 1 != 0,
        17 => rs.is_ack_delayed = byte & 1 != 0,
        18 => socket.ca_state = byte % 6,
        19 => socket.jiffies32 = narrow,
        20 | 21 => (socket.tcp_clock_cache, socket.tcp_mstamp) = (value, value / 1_000),
        22 => socket.delivered_mstamp = value,
        23 => socket.first_tx_mstamp = value,
        24 => socket.tcp_wstamp_ns = value,
        25 => socket.delivered = narrow,
        26 => socket.lost = narrow,
        27 => socket.app_limited = narrow,
        28 => socket.packets_out = narrow,
        29 => socket.sacked_out = narrow,
        30 => socket.lost_out = narrow,
        31 => socket.retrans_out = narrow,
        32 => socket.srtt_us = narrow,
        33 => socket.min_rtt_us = narrow,
        34 => socket.mss_cache = narrow,
        35 => socket.snd_una = narrow,
        36 => socket.snd_nxt = narrow,
        37 => socket.snd_cwnd = narrow,
        38 => socket.snd_ssthresh = narrow,
        39 => socket.snd_cwnd_clamp = narrow,
        40 => socket.snd_cwnd_cnt = narrow,
        41 => socket.prior_cwnd = narrow,
        42 => socket.prior_ssthresh = narrow,
        43 => socket.max_packets_out = narrow,
        44 => socket.is_cwnd_limited = byte & 1 != 0,
        45 => socket.sk_pacing_rate = value,
        46 => socket.sk_max_pacing_rate = value,
        47 => socket.sk_pacing_status = narrow,
        48 => socket.sk_gso_max_size = narrow,
        49 => (after.snd_cwnd, after.sk_pacing_rate) = (narrow, value),
        50..=62 => call.private_before[place % 13] = value,
        _ => call.private_after[place % 13] = value,
    }
}

/// Numbers that break things, and others.
fn numbers() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u32::MAX as u64),
        Just(u64::MAX),
        Just(i64::MAX as u64),
        1u64..1 << 22,
        any::<u32>().prop_map(u64::from),
        any::<u64>(),
    ]
}

/// Replays all of it.
fn survive(ops: Ops, calls: &[Call]) {
    let mut replay = Replay::new(ops, HZ);
    for (index, call) in calls.iter().enumerate() {
        let _ = (filter_step(ops, call), sampler_step(ops, call));
        if replay.step(index as u64, call).is_err() {
            let _ = replay.side_by_side(call).count();
        }
    }
}

fn ops() -> impl Strategy<Value = Ops> {
    prop_oneof![Just(Ops::Bbr), Just(Ops::Cubic)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_record_of_noise_panics(
        ops in ops(),
        hz in numbers(),
        calls in prop::collection::vec(prop::collection::vec((any::<usize>(), numbers()), 0..80), 1..40),
    ) {
        let calls: Vec<Call> = calls
            .iter()
            .map(|places| {
                let mut call = call(Hook::Main);
                places.iter().for_each(|&(place, value)| disturb(&mut call, place, value));
                call
            })
            .collect();
        survive(ops, &calls);
        let _ = replay_flow(ops, hz as u32, &calls, 0);
    }

    #[test]
    fn no_disturbed_record_panics(
        ops in ops(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<usize>(), numbers()), 1..12),
    ) {
        let mut calls = flow_of(ops);
        for (call, place, value) in places {
            let call = call.index(calls.len());
            disturb(&mut calls[call], place, value);
        }
        survive(ops, &calls);
    }

    /// Whatever inputs come, replaying what our controllers made of them finds the same.
    #[test]
    fn any_own_flow_replays_without_difference(
        steps in prop::collection::vec((0..9u32, 1..60u32, 1..400_000u64, 0..64u32), 1..120),
    ) {
        let mut kernel = FakeKernel::new(Ops::Bbr);
        let mut calls = std::vec![kernel.init()];
        for (kind, segments, us, more) in steps {
            kernel.pass_us(us);
            (kernel.socket.packets_out, kernel.socket.lost_out) = (more, 0);
            match kind {
                0 => calls.extend(kernel.enter_recovery()),
                1 => calls.extend(kernel.enter_loss()),
                2 => {
                    let idle = (kernel.socket.delivered + more) * (more & 1);
                    kernel.socket.app_limited = kernel.socket.app_limited.max(idle);
                    calls.push(kernel.call(Hook::CwndEvent, |_| {}));
                }
                3 => calls.push(kernel.change(0)),
                4 if kernel.socket.prior_ssthresh != 0 => {
                    calls.push(kernel.call(Hook::Undo, |_| {}));
                    let socket = &mut kernel.socket;
                    socket.snd_ssthresh = socket.snd_ssthresh.max(socket.prior_ssthresh);
                }
                _ => {
                    kernel.socket.lost += more / 8;
                    calls.push(kernel.ack(segments, |call| {
                        let sample = &mut call.rate_sample;
                        sample.losses = more as i32 / 8;
                        sample.is_app_limited = us % 7 == 0;
                        sample.interval_us = if us % 11 == 0 { -1 } else { us as i64 };
                        sample.rtt_us = if us % 5 == 0 { -1 } else { us as i64 };
                        set(Ops::Bbr, &mut call.private_after, "cycle_idx", us % 8);
                    }));
                    // The ACK that ends ProbeRTT marks as well.
                    let last = calls.last().unwrap();
                    let mode = |private| get(Ops::Bbr, private, "mode");
                    if mode(&last.private_before) == 3 || mode(&last.private_after) == 3 {
                        kernel.socket.app_limited = kernel.socket.delivered + more;
                    }
                }
            }
        }
        let found = first_difference(Ops::Bbr, &calls);
        // The phase that cannot be drawn.
        let undrawable = found.is_some_and(|found| found.field == "cycle_idx" && found.kernel == 1);
        prop_assert!(found.is_none() || undrawable, "{}", found.unwrap());
    }
}
