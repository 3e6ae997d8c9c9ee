//! Two parts of BBR's input that each recorded ACK can check for itself, from what the kernel had before it.

use super::bbr;
use super::difference::{Difference, Moment};
use super::plausible::{self, Unequal, unequal};
use super::unwrapped::{Unwrapped, micros};
use super::{Call, Hook, Ops};
use fullpipe_cc::controller::RateSample;
use fullpipe_cc::controllers::bbr1::Params;
use fullpipe_cc::delivery::{Sampler, TxState};
use fullpipe_units::Duration;

/// Feeds the sample of one ACK to [`fullpipe_cc::windowed::WindowedMax`] as the kernel had it before, and compares all three
/// candidates with the kernel's after it (Linux: `minmax_running_max` in `lib/win_minmax.c`, with the condition of
/// `bbr_update_bw`). Returns whether there was a sample to feed.
///
/// # Errors
/// When a candidate differs.
pub fn filter_step(ops: Ops, call: &Call) -> Result<bool, Difference> {
    if !(ops == Ops::Bbr && call.hook == Hook::Main) {
        return Ok(false);
    }
    let (Some(before), Some(after)) = (bbr::state(&call.private_before), bbr::state(&call.private_after))
    else {
        return Ok(false);
    };
    let sample = &call.rate_sample;
    let (Ok(delivered), Ok(interval_us)) =
        (u64::try_from(sample.delivered), u64::try_from(sample.interval_us))
    else {
        return Ok(false);
    };
    if interval_us == 0 {
        return Ok(false);
    }
    let mut filter = before.bw;
    let bw = (delivered << 24) / interval_us;
    if !sample.is_app_limited || bw >= filter.get() as u64 {
        filter.update(Params::default().bw_window_rounds, after.rtt_cnt, bw as u32);
    }
    let ([s0, s1, s2], [k0, k1, k2]) = (filter.candidates(), after.bw.candidates());
    compare(
        call,
        &[
            ("bw_s0_t", s0.time as u64, k0.time as u64),
            ("bw_s0_v", s0.value as u64, k0.value as u64),
            ("bw_s1_t", s1.time as u64, k1.time as u64),
            ("bw_s1_v", s1.value as u64, k1.value as u64),
            ("bw_s2_t", s2.time as u64, k2.time as u64),
            ("bw_s2_v", s2.value as u64, k2.value as u64),
        ],
    )
}

/// Makes the delivery-rate sample of one ACK from the segment that the kernel chose as its basis, and compares it with
/// the kernel's (Linux: `tcp_rate_gen` in `net/ipv4/tcp_rate.c`). Returns whether the ACK could be checked; one that
/// came while the receiver reneged on its SACKs cannot, because [`Sampler`] knows no such receiver.
///
/// A record has the basis of each sample, but not the state that each segment took along when it was sent. So this checks
/// the arithmetic of a sample and that the application-limited mark stays while it has to. It does not check which
/// segment becomes the basis (`tcp_rate_skb_delivered`), what a sent segment notes (`tcp_rate_skb_sent`), nor when the
/// mark is set (`tcp_rate_check_app_limited`).
///
/// # Errors
/// When the sample differs.
pub fn sampler_step(ops: Ops, call: &Call) -> Result<bool, Difference> {
    let (socket, rs) = (&call.socket, &call.rate_sample);
    let reneged = rs.prior_mstamp != 0 && rs.delivered < 0;
    if !(ops == Ops::Bbr && call.hook == Hook::Main) || reneged || plausible::check(ops, call).is_err() {
        return Ok(false);
    }
    let mut delivered = Unwrapped::default();
    let before = delivered.follow(socket.delivered.wrapping_sub(rs.acked_sacked));
    // The stamp of the last delivery is only known if this ACK made it.
    let mut sampler = Sampler::resume(micros(socket.delivered_mstamp.saturating_sub(1)), before);
    let marked_for = socket.app_limited.wrapping_sub(before as u32);
    let marked = socket.app_limited != 0 && marked_for as i32 >= 0;
    if marked {
        sampler.mark_app_limited(marked_for);
    }
    sampler.begin_ack();
    if rs.prior_mstamp != 0 {
        let sent_us = socket.first_tx_mstamp as u32;
        let tx = TxState {
            sent_us,
            first_sent_us: sent_us.wrapping_sub(rs.snd_interval_us),
            delivered_us: rs.prior_mstamp as u32,
            delivered: rs.prior_delivered,
            lost: 0,
            marked: 0,
            in_flight_and_app_limited: (rs.is_app_limited as u32) << 31,
        };
        sampler.on_delivered(&tx, rs.last_end_seq as u64, rs.is_retrans);
    }
    let now = micros(socket.tcp_mstamp);
    sampler.count_delivered(rs.acked_sacked);
    let min_rtt = Duration::from_micros(socket.min_rtt_us as u64);
    let sample = sampler.end_ack(now, rs.acked_sacked, min_rtt, socket.lost as u64);
    let none = |value: Option<u64>| value.unwrap_or(u64::MAX);
    let mut pairs = [("", 0, 0); 7];
    pairs[0] = ("rs_delivered", none(sample.delivered.map(u64::from)), rs.delivered as i64 as u64);
    pairs[1] = ("rs_interval_us", none(sample.interval.map(Duration::as_micros)), rs.interval_us as u64);
    pairs[2] = ("delivered", sampler.delivered() as u32 as u64, socket.delivered as u64);
    if rs.acked_sacked > 0 {
        pairs[3] = ("delivered_mstamp", sampler.delivered_time().as_micros(), socket.delivered_mstamp);
    }
    if sample != RateSample::NONE {
        pairs[4] = ("rs_prior_delivered", sample.prior_delivered as u32 as u64, rs.prior_delivered as u64);
        pairs[5] = ("rs_is_app_limited", sample.app_limited as u64, rs.is_app_limited as u64);
    }
    if marked {
        pairs[6] = ("app_limited", sampler.app_limited() as u64, 1);
    }
    compare(call, &pairs)
}

fn compare(call: &Call, pairs: &[(&'static str, u64, u64)]) -> Result<bool, Difference> {
    unequal(pairs).map(|()| true).map_err(|Unequal { field, ours, kernel }| Difference {
        call: 0,
        flow: call.flow,
        hook: call.hook,
        moment: Moment::After,
        field,
        ours,
        kernel,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    /// A kernel after some ACKs, and its next one.
    fn ack(prepare: impl FnOnce(&mut Call)) -> Call {
        let mut kernel = FakeKernel::new(Ops::Bbr);
        kernel.init();
        for _ in 0..3 {
            kernel.pass_us(50_000);
            kernel.ack(20, |_| {});
        }
        kernel.pass_us(50_000);
        kernel.ack(30, prepare)
    }

    #[test]
    fn filter_step_uses_kernel_state() {
        let mut call = ack(|_| {});
        assert_eq!(filter_step(Ops::Bbr, &call), Ok(true));
        let bw = get(Ops::Bbr, &call.private_after, "bw_s0_v");
        set(Ops::Bbr, &mut call.private_after, "bw_s0_v", bw - 1);
        let found = filter_step(Ops::Bbr, &call).unwrap_err();
        assert_eq!((found.field, found.ours, found.kernel), ("bw_s0_v", bw, bw - 1));
    }

    #[test]
    fn only_large_app_limited_samples_count() {
        for (delivered, taken) in [(1, false), (60, true)] {
            let call = ack(|call| {
                call.rate_sample.is_app_limited = true;
                call.rate_sample.delivered = delivered;
            });
            assert_eq!(filter_step(Ops::Bbr, &call), Ok(true));
            let maximum = |private| get(Ops::Bbr, private, "bw_s0_v");
            assert_eq!(maximum(&call.private_before) != maximum(&call.private_after), taken);
        }
    }

    #[test]
    fn calls_without_sample_check_nothing() {
        let none = ack(|call| (call.rate_sample.delivered, call.rate_sample.interval_us) = (-1, -1));
        assert_eq!(filter_step(Ops::Bbr, &none), Ok(false));
        assert_eq!(
            sampler_step(Ops::Bbr, &none),
            Ok(false),
            "a basis without a sample: the receiver reneged"
        );
        assert_eq!(filter_step(Ops::Cubic, &ack(|_| {})), Ok(false));
        assert_eq!(sampler_step(Ops::Bbr, &call(Hook::Init)), Ok(false));
    }

    #[test]
    fn a_sample_follows_from_its_basis() {
        assert_eq!(sampler_step(Ops::Bbr, &ack(|_| {})), Ok(true));
        let found = |change: fn(&mut Call)| sampler_step(Ops::Bbr, &ack(change)).unwrap_err().field;
        assert_eq!(found(|call| call.rate_sample.delivered += 1), "rs_delivered");
        // The longer one of both intervals counts.
        assert_eq!(found(|call| call.rate_sample.snd_interval_us += 1), "rs_interval_us");
        assert_eq!(found(|call| call.rate_sample.prior_mstamp -= 1), "rs_interval_us");
        assert_eq!(found(|call| call.socket.delivered_mstamp -= 1), "delivered_mstamp");
        assert_eq!(found(|call| call.rate_sample.interval_us = -1), "rs_interval_us");
    }

    #[test]
    fn interval_below_min_rtt_is_none() {
        let short = |call: &mut Call| call.socket.min_rtt_us = 50_001;
        assert_eq!(sampler_step(Ops::Bbr, &ack(short)).unwrap_err().field, "rs_interval_us");
        let call = ack(|call| {
            short(call);
            call.rate_sample.interval_us = -1;
        });
        assert_eq!(sampler_step(Ops::Bbr, &call), Ok(true));
    }

    #[test]
    fn app_limited_ends_when_mark_passed() {
        let marked = |beyond: i64| {
            let call = ack(|call| {
                call.socket.app_limited = call.socket.delivered.wrapping_add_signed(beyond as i32);
            });
            sampler_step(Ops::Bbr, &call).map_err(|found| found.field)
        };
        assert_eq!(marked(0), Ok(true));
        assert_eq!(marked(5), Ok(true));
        assert_eq!(marked(-1), Err("app_limited"));
    }
}
