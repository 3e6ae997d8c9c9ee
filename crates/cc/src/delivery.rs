//! The delivery-rate sampler of Linux (`net/ipv4/tcp_rate.c`) and draft-ietf-ccwg-bbr section 4.1.2.
//!
//! The transport keeps one [`TxState`] for each transmitted segment and passes it again when that segment is delivered. Counts are in
//! the transport's units ([`Config::unit`](crate::Config::unit)): one for each segment, or the bytes of a packet.

use crate::controller::RateSample;
use fullpipe_units::{Duration, Time};

/// The values that a sender notes when a segment leaves. Times are wrapping microseconds and counters wrap too: differences are
/// taken modulo 2^32, which is exact while a segment is outstanding for less than 35 minutes, and while less than 2^32 units are
/// delivered or lost meanwhile; not more than 2^31 - 1 are ever in flight ([`Config::MOST_IN_FLIGHT`](crate::Config::MOST_IN_FLIGHT)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxState {
    /// When it left.
    pub sent_us: u32,
    /// Start of the send interval that it will end (Linux: `tx.first_tx_mstamp`).
    pub first_sent_us: u32,
    /// Connection's `delivered_time` when it left (Linux: `tx.delivered_mstamp`).
    pub delivered_us: u32,
    /// Connection's `delivered` when it left.
    pub delivered: u32,
    /// Connection's `lost` when it left.
    pub lost: u32,
    /// Units delivered with a mark when it left (Google's kernel: `tx.delivered_ce`).
    pub marked: u32,
    /// Units in flight when it left, itself included, and in the top bit whether the application limited the sender.
    pub in_flight_and_app_limited: u32,
}

/// The top bit of [`TxState::in_flight_and_app_limited`].
const APP_LIMITED: u32 = 1 << 31;

impl TxState {
    /// Units in flight when it left, itself included.
    #[inline]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight_and_app_limited & !APP_LIMITED
    }

    /// Whether the application limited the sender when it left.
    #[inline]
    pub const fn app_limited(&self) -> bool {
        self.in_flight_and_app_limited & APP_LIMITED != 0
    }
}

/// The connection's side of the sampler.
///
/// Order of calls: [`Sampler::on_sent`] for each burst; for each ACK [`Sampler::begin_ack`], then
/// [`Sampler::on_delivered`] and [`Sampler::count_delivered`] for what it newly delivered, then [`Sampler::end_ack`].
/// [`Sampler::on_discarded`] when packets leave the flight that are neither delivered nor lost.
///
/// ```
/// use fullpipe_cc::delivery::Sampler;
/// use fullpipe_units::{Duration, Time};
///
/// let mut sampler = Sampler::new(Time::ZERO);
/// let first = sampler.on_sent(Time::ZERO, 0, 1, 0);
/// sampler.begin_ack();
/// sampler.on_delivered(&first, 1, false);
/// sampler.count_delivered(1);
/// let sample = sampler.end_ack(Time::from_micros(10_000), 1, Duration::from_millis(10), 0);
/// assert_eq!((sample.delivered, sample.interval), (Some(1), Some(Duration::from_millis(10))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    delivered: u64,
    delivered_time: Time,
    /// `delivered_time` in wrapping microseconds (Linux: `tp->delivered_mstamp`).
    delivered_us: u32,
    /// When the newest delivered segment was sent, or the first after idle (Linux: `tp->first_tx_mstamp`).
    first_sent_us: u32,
    /// `delivered` that ends the application-limited phase, zero outside one (Linux: `tp->app_limited`).
    app_limited_until: u64,
    /// Units delivered with a mark (Linux: `tp->delivered_ce`).
    marked: u32,
    /// The newest segment that the present ACK delivered; the other fields of the basis count only if this is set.
    has_basis: bool,
    basis_retransmitted: bool,
    basis: TxState,
    basis_end_seq: u64,
}

impl Sampler {
    /// A connection that has delivered nothing.
    pub const fn new(now: Time) -> Sampler {
        Sampler::resume(now, 0)
    }

    /// A connection that has delivered `delivered` units. Linux counts the SYN, so its data starts at one.
    pub const fn resume(now: Time, delivered: u64) -> Sampler {
        let now_us = now.as_micros() as u32;
        Sampler {
            delivered,
            delivered_time: now,
            delivered_us: now_us,
            first_sent_us: now_us,
            app_limited_until: 0,
            marked: 0,
            has_basis: false,
            basis_retransmitted: false,
            basis: TxState {
                sent_us: 0,
                first_sent_us: 0,
                delivered_us: 0,
                delivered: 0,
                lost: 0,
                marked: 0,
                in_flight_and_app_limited: 0,
            },
            basis_end_seq: 0,
        }
    }

    /// Units delivered so far.
    #[inline]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When that last grew, or when sending restarted from idle if that is later.
    #[inline]
    pub const fn delivered_time(&self) -> Time {
        self.delivered_time
    }

    /// Whether samples are marked application-limited.
    #[inline]
    pub const fn app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Notes that a burst leaves at `departure` (Linux: `tcp_rate_skb_sent`). `packets_out` is what was sent and not
    /// cumulatively acknowledged before it: the flight would be a guess that losses distort. `in_flight_after` counts
    /// the burst itself; `lost` is the connection's count.
    // draft 4.1.2.2: OnPacketSent, OnPacketSent.{first_send_time, first_send_time.2, delivered_time}
    // draft 4.1.2.2: OnPacketSent.{is_app_limited, tx_in_flight}
    // draft 5.5.1: steps.delivered
    // draft 4.1.2.1.2#c5b85b: one state for a burst
    // draft 4.1.3.1#87dd4c: likewise
    #[inline]
    pub fn on_sent(&mut self, departure: Time, packets_out: u32, in_flight_after: u32, lost: u64) -> TxState {
        debug_assert!(in_flight_after < APP_LIMITED, "{in_flight_after} in flight reach into the flag");
        let departure_us = departure.as_micros() as u32;
        if packets_out == 0 {
            self.first_sent_us = departure_us;
            self.delivered_us = departure_us;
            self.delivered_time = departure;
        }
        TxState {
            sent_us: departure_us,
            first_sent_us: self.first_sent_us,
            delivered_us: self.delivered_us,
            delivered: self.delivered as u32,
            lost: lost as u32,
            marked: self.marked,
            in_flight_and_app_limited: in_flight_after | if self.app_limited() { APP_LIMITED } else { 0 },
        }
    }

    /// An ACK arrives.
    // draft 4.1.2.3: InitRateSample, InitRateSample.has_data
    #[inline]
    pub fn begin_ack(&mut self) {
        self.has_basis = false;
    }

    /// Offers a newly delivered segment as the basis of the sample (Linux: `tcp_rate_skb_delivered`): the one sent last
    /// wins, and of those sent at the same instant the one that ends highest. `end_seq` may count anything that orders them.
    // draft 4.1.2.3: UpdateRateSample, IsNewestPacket, UpdateRateSample.{has_data, prior_delivered, prior_time}
    // draft 4.1.2.3: UpdateRateSample.{is_app_limited, last_acked_packet_id, first_send_time}
    #[inline]
    pub fn on_delivered(&mut self, tx: &TxState, end_seq: u64, retransmitted: bool) {
        let later = tx.sent_us.wrapping_sub(self.first_sent_us) as i32;
        if self.has_basis && !(later > 0 || later == 0 && end_seq > self.basis_end_seq) {
            return;
        }
        self.has_basis = true;
        self.basis = *tx;
        self.basis_end_seq = end_seq;
        self.basis_retransmitted = retransmitted;
        self.first_sent_us = tx.sent_us;
    }

    /// Counts newly delivered units. The time stamp follows in [`Sampler::end_ack`], as in Linux.
    // draft 4.1.2.3: UpdateRateSample.delivered
    // draft 5.5.1: steps.delivered.2
    #[inline]
    pub fn count_delivered(&mut self, units: u32) {
        self.delivered += units as u64;
    }

    /// Counts those of them that [`CeMarks::units`](crate::CeMarks::units) reports as marked; before the ACK ends.
    #[inline]
    pub fn count_marked(&mut self, units: u32) {
        self.marked = self.marked.wrapping_add(units);
    }

    /// Ends the ACK and returns its sample (Linux: `tcp_rate_gen`). `newly_delivered` is what this ACK counted, `lost`
    /// the connection's count after marking losses.
    // draft 4.1.2.3: GenerateRateSample.app_limited, UpdateRateSample.delivered_time
    #[inline]
    pub fn end_ack(&mut self, now: Time, newly_delivered: u32, min_rtt: Duration, lost: u64) -> RateSample {
        if self.app_limited() && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let now_us = now.as_micros();
        if newly_delivered > 0 {
            self.delivered_time = now;
            self.delivered_us = now_us as u32;
        }
        if !self.has_basis {
            // draft 4.1.2.3: InitRateSample.{prior_time, interval, delivery_rate}
            return RateSample::NONE;
        }
        self.sample(now_us, &self.basis, self.basis_retransmitted, min_rtt, lost)
    }

    /// All of the above for an ACK that only acknowledges in order segments of `units` that were sent once: the last of them,
    /// with the state `tx`, was sent last and is the basis.
    #[inline]
    pub fn take_in_order(
        &mut self,
        now: Time,
        units: u32,
        tx: &TxState,
        min_rtt: Duration,
        lost: u64,
    ) -> RateSample {
        self.delivered += units as u64;
        if self.app_limited() && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let now_us = now.as_micros();
        self.delivered_time = now;
        self.delivered_us = now_us as u32;
        self.first_sent_us = tx.sent_us;
        self.sample(now_us, tx, false, min_rtt, lost)
    }

    // draft 4.1.2.3: GenerateRateSample, GenerateRateSample.interval, UpdateRateSample.{send_elapsed, ack_elapsed}
    // draft 4.1.3.5#a9e6d6: an interval below the minimum RTT is none
    #[inline]
    fn sample(
        &self,
        now_us: u64,
        basis: &TxState,
        retransmitted: bool,
        min_rtt: Duration,
        lost: u64,
    ) -> RateSample {
        let delivered = (self.delivered as u32).wrapping_sub(basis.delivered);
        // Sending and acknowledging are two stages of a pipeline; the slower one shows the bottleneck.
        let send_us = (basis.sent_us.wrapping_sub(basis.first_sent_us) as i32).max(0) as u32;
        let since_prior_us = (now_us as u32).wrapping_sub(basis.delivered_us) as i32;
        let interval_us = send_us.max(since_prior_us.max(0) as u32) as u64;
        RateSample {
            delivered: Some(delivered),
            // Shorter than the path's round trip: the sample cannot be trusted.
            interval: (interval_us >= min_rtt.as_micros()).then(|| Duration::from_micros(interval_us)),
            prior_delivered: self.delivered - delivered as u64,
            prior_delivered_time: Time::from_micros(now_us.saturating_add_signed(-(since_prior_us as i64))),
            app_limited: basis.app_limited(),
            retransmitted,
            tx_in_flight: basis.in_flight(),
            lost_since_sent: (lost as u32).wrapping_sub(basis.lost),
            marked_since_sent: self.marked.wrapping_sub(basis.marked),
        }
    }

    /// Marks the samples of everything in flight, and of what is sent before that is delivered, application-limited.
    // draft 4.1.2.4: MarkConnectionAppLimited, MarkConnectionAppLimited.app_limited
    #[inline]
    pub fn mark_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + in_flight as u64).max(1);
    }

    /// Packets left the flight that are neither delivered nor lost, and `in_flight` units are left. The application-limited mark waits
    /// for no more than these: what was discarded would not come.
    pub fn on_discarded(&mut self, in_flight: u32) {
        if self.app_limited() {
            self.app_limited_until = self.app_limited_until.min(self.delivered + in_flight as u64).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000;

    fn at(us: u64) -> Time {
        Time::from_micros(us)
    }

    /// One ACK that delivers one segment.
    fn ack(sampler: &mut Sampler, now: Time, tx: &TxState, end_seq: u64) -> RateSample {
        sampler.begin_ack();
        sampler.on_delivered(tx, end_seq, false);
        sampler.count_delivered(1);
        sampler.end_ack(now, 1, Duration::ZERO, 0)
    }

    // draft 4.1.2.3: UpdateRateSample, UpdateRateSample.{has_data, send_elapsed, ack_elapsed, delivered}
    // draft 4.1.2.3: GenerateRateSample, GenerateRateSample.{interval, delivered}
    #[test]
    fn compressed_acks_use_send_interval() {
        let mut sampler = Sampler::new(at(0));
        let tx: [TxState; 3] =
            core::array::from_fn(|i| sampler.on_sent(at(i as u64 * 10 * MS), i as u32, i as u32 + 1, 0));
        // All three ACKs arrive at once, 1 ms before the first could: the send phase of 20 ms is the honest interval.
        sampler.begin_ack();
        for (i, tx) in tx.iter().enumerate() {
            sampler.on_delivered(tx, i as u64 + 1, false);
        }
        sampler.count_delivered(3);
        let sample = sampler.end_ack(at(20 * MS), 3, Duration::ZERO, 0);
        assert_eq!(sample.delivered, Some(3));
        assert_eq!(sample.interval, Some(Duration::from_millis(20)));
    }

    /// Random sends and ACKs in order: the one step and the four it stands for leave the same sampler and sample.
    #[test]
    fn one_step_ack_matches_four_steps() {
        let mut seed = 1u64;
        let mut below = |bound: u64| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (seed >> 33) % bound
        };
        let mut sampler = Sampler::new(at(0));
        // The states of the segments out: the first `out` places, in order.
        let (mut sent, mut out, mut now) = ([TxState::default(); 64], 0usize, 0);
        for step in 0..20_000 {
            now += below(3) * below(30_000);
            let room = 64 - out;
            if out == 0 || (room > 4 && below(2) == 0) {
                let burst = 1 + below(4) as usize;
                let tx = sampler.on_sent(at(now), out as u32, (out + burst) as u32, step / 100);
                sent[out..out + burst].fill(tx);
                out += burst;
                continue;
            }
            if below(10) == 0 {
                sampler.mark_app_limited(out as u32);
            }
            let acked = 1 + below(out as u64) as usize;
            let (min_rtt, lost) = (Duration::from_micros(below(20_000)), step / 90);
            let mut plainly = sampler;
            plainly.begin_ack();
            for (index, tx) in sent[..acked].iter().enumerate() {
                plainly.on_delivered(tx, index as u64, false);
            }
            plainly.count_delivered(acked as u32);
            let expected = plainly.end_ack(at(now), acked as u32, min_rtt, lost);
            let sample = sampler.take_in_order(at(now), acked as u32, &sent[acked - 1], min_rtt, lost);
            assert_eq!(sample, expected, "step {step}");
            // What is left of the basis counts for nothing after the ACK.
            plainly.begin_ack();
            sampler.begin_ack();
            (plainly.basis, plainly.basis_end_seq) = (sampler.basis, sampler.basis_end_seq);
            assert_eq!(sampler, plainly, "step {step}");
            sent.copy_within(acked..out, 0);
            out -= acked;
        }
    }

    // draft 4.1.2.2: OnPacketSent
    // draft 4.1.2.3: UpdateRateSample
    // draft 5.5.1: steps.{delivered, delivered.2}
    #[test]
    fn ack_counts_from_counters_at_send() {
        let mut sampler = Sampler::resume(at(0), 7);
        let tx = sampler.on_sent(at(0), 0, 2, 3);
        assert_eq!((tx.delivered, tx.lost), (7, 3));
        sampler.begin_ack();
        sampler.on_delivered(&tx, 1, false);
        sampler.count_delivered(2);
        let sample = sampler.end_ack(at(10 * MS), 2, Duration::ZERO, 5);
        assert_eq!((sample.delivered, sample.prior_delivered, sample.lost_since_sent), (Some(2), 7, 2));
        assert_eq!(sampler.delivered(), 9);
    }

    // draft 4.1.2.2: OnPacketSent, OnPacketSent.{first_send_time, first_send_time.2, delivered_time}
    // draft 4.1.2.3: UpdateRateSample.{delivered_time, prior_time, first_send_time}
    #[test]
    fn only_truly_idle_send_restarts_stamps() {
        let mut sampler = Sampler::new(at(0));
        let first = sampler.on_sent(at(0), 0, 1, 0);
        assert_eq!(ack(&mut sampler, at(10 * MS), &first, 1).interval, Some(Duration::from_millis(10)));
        // Everything out is marked lost, so nothing is in flight, but two segments are still out.
        let retransmitted = sampler.on_sent(at(500 * MS), 2, 1, 2);
        assert_eq!(retransmitted.delivered_us, 10_000);
        // Truly idle.
        let restarted = sampler.on_sent(at(900 * MS), 0, 1, 2);
        assert_eq!((restarted.first_sent_us, restarted.delivered_us), (900_000, 900_000));
        assert_eq!(sampler.delivered_time(), at(900 * MS));
    }

    // draft 4.1.2.3: IsNewestPacket, UpdateRateSample.last_acked_packet_id
    // draft 4.1.2.1.2#c5b85b: one state for a burst
    // draft 4.1.3.1#87dd4c: likewise
    // draft 4.1.2.2: OnPacketSent
    #[test]
    fn newest_by_send_time_is_basis() {
        let mut sampler = Sampler::new(at(0));
        let old = sampler.on_sent(at(0), 0, 1, 0);
        let retransmission = sampler.on_sent(at(30 * MS), 5, 3, 2);
        sampler.begin_ack();
        sampler.on_delivered(&retransmission, 1, true);
        sampler.on_delivered(&old, 6, false);
        sampler.count_delivered(2);
        let sample = sampler.end_ack(at(40 * MS), 2, Duration::ZERO, 2);
        assert!(sample.retransmitted);
        assert_eq!(sample.tx_in_flight, 3);
        // Of a burst, the one that ends highest.
        let burst = sampler.on_sent(at(50 * MS), 5, 3, 2);
        sampler.begin_ack();
        sampler.on_delivered(&burst, 8, false);
        sampler.on_delivered(&burst, 9, true);
        sampler.on_delivered(&burst, 7, false);
        assert_eq!(sampler.basis_end_seq, 9);
        assert!(sampler.basis_retransmitted);
    }

    #[test]
    fn marks_count_since_sampled_segment_sent() {
        let mut sampler = Sampler::new(at(0));
        let mut acked = |marked, tx: &TxState| {
            sampler.begin_ack();
            sampler.on_delivered(tx, 1, false);
            sampler.count_delivered(1);
            sampler.count_marked(marked);
            let sample = sampler.end_ack(at(10 * MS), 1, Duration::ZERO, 0);
            (sample.marked_since_sent, sampler.on_sent(at(10 * MS), 3, 3, 0))
        };
        let (_, first) = acked(5, &TxState::default());
        let (since, second) = acked(1, &first);
        assert_eq!((since, first.marked, second.marked), (1, 5, 6));
        assert_eq!(acked(0, &first).0, 1, "an older segment: what was marked since it left");
    }

    // draft 4.1.2.2: OnPacketSent.{is_app_limited, tx_in_flight}
    // draft 4.1.2.3: UpdateRateSample.is_app_limited, GenerateRateSample.app_limited
    // draft 4.1.2.4: MarkConnectionAppLimited, MarkConnectionAppLimited.app_limited
    #[test]
    fn app_limited_ends_after_inflight_delivered() {
        let mut sampler = Sampler::new(at(0));
        let tx = sampler.on_sent(at(0), 0, 2, 0);
        sampler.mark_app_limited(2);
        ack(&mut sampler, at(10 * MS), &tx, 1);
        ack(&mut sampler, at(10 * MS), &tx, 2);
        assert!(sampler.app_limited(), "delivered equals the mark; the kernel's test is strict");
        let next = sampler.on_sent(at(11 * MS), 0, 1, 0);
        assert!(next.app_limited());
        assert_eq!(next.in_flight(), 1);
        assert!(ack(&mut sampler, at(21 * MS), &next, 3).app_limited);
        assert!(!sampler.app_limited());
    }

    // draft 4.1.2.4: MarkConnectionAppLimited
    #[test]
    fn app_limited_mark_ignores_discarded_data() {
        for discards in [false, true] {
            let mut sampler = Sampler::new(at(0));
            sampler.on_sent(at(0), 0, 1_200, 0);
            let kept = sampler.on_sent(at(0), 1_200, 1_237, 0);
            sampler.mark_app_limited(1_237);
            if discards {
                sampler.on_discarded(37);
            }
            // The packet of 37 bytes is all that can arrive of what the mark counts; it needs one byte more.
            sampler.begin_ack();
            sampler.on_delivered(&kept, 1, false);
            sampler.count_delivered(37);
            sampler.end_ack(at(10 * MS), 37, Duration::ZERO, 0);
            assert!(sampler.app_limited());
            let next = sampler.on_sent(at(11 * MS), 0, 500, 0);
            sampler.begin_ack();
            sampler.on_delivered(&next, 2, false);
            sampler.count_delivered(500);
            sampler.end_ack(at(21 * MS), 500, Duration::ZERO, 0);
            assert_eq!(sampler.app_limited(), !discards);
        }
        let mut unmarked = Sampler::new(at(0));
        unmarked.on_discarded(0);
        assert!(!unmarked.app_limited());
    }

    /// 2^31 - 1 bytes in flight, of counts just below the wrap.
    #[test]
    fn largest_flight_fits_beside_flag() {
        let most = crate::Config::MOST_IN_FLIGHT;
        for start in [0, u32::MAX as u64, 7 * (1 << 32) - 3] {
            let mut sampler = Sampler::resume(at(0), start);
            sampler.mark_app_limited(0);
            let tx = sampler.on_sent(at(0), 0, most, start);
            assert_eq!((tx.in_flight(), tx.app_limited()), (most, true));
            sampler.begin_ack();
            sampler.on_delivered(&tx, 1, false);
            sampler.count_delivered(most);
            let sample = sampler.end_ack(at(10 * MS), most, Duration::ZERO, start + most as u64);
            assert_eq!((sample.delivered, sample.prior_delivered), (Some(most), start));
            assert_eq!((sample.tx_in_flight, sample.lost_since_sent, sample.app_limited), (most, most, true));
        }
    }

    #[test]
    fn idle_connection_can_be_marked_early() {
        let mut sampler = Sampler::new(at(0));
        sampler.mark_app_limited(0);
        assert!(sampler.app_limited());
    }

    // draft 4.1.2.3: GenerateRateSample
    // draft 4.1.3.5#a9e6d6: filtered out
    #[test]
    fn short_interval_still_counts_delivery() {
        let mut sampler = Sampler::new(at(0));
        let tx = sampler.on_sent(at(0), 0, 1, 0);
        sampler.begin_ack();
        sampler.on_delivered(&tx, 1, false);
        sampler.count_delivered(1);
        let sample = sampler.end_ack(at(9 * MS), 1, Duration::from_millis(10), 0);
        assert_eq!((sample.delivered, sample.interval), (Some(1), None));
    }

    // draft 4.1.2.3: InitRateSample, InitRateSample.{has_data, prior_time, interval, delivery_rate}
    #[test]
    fn ack_without_data_gives_no_sample() {
        let mut sampler = Sampler::new(at(0));
        sampler.on_sent(at(5 * MS), 0, 1, 0);
        sampler.begin_ack();
        assert_eq!(sampler.end_ack(at(9 * MS), 0, Duration::ZERO, 0), RateSample::NONE);
        assert_eq!(sampler.delivered_time(), at(5 * MS));
    }

    #[test]
    fn clock_and_counters_wrap_together() {
        let wrap = 1u64 << 32;
        let mut near = Sampler::resume(at(wrap - 5 * MS), wrap - 1);
        let mut far = Sampler::resume(at(0), 0);
        for (sampler, base) in [(&mut near, wrap - 5 * MS), (&mut far, 0)] {
            let first = sampler.on_sent(at(base), 0, 2, 0);
            let second = sampler.on_sent(at(base + MS), 1, 2, 0);
            ack(sampler, at(base + 8 * MS), &first, 1);
            let sample = ack(sampler, at(base + 12 * MS), &second, 2);
            assert_eq!(sample.delivered, Some(2));
            assert_eq!(sample.interval, Some(Duration::from_micros(12 * MS)));
            assert_eq!(sample.prior_delivered_time, at(base));
        }
    }
}
