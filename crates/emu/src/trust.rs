//! Why a run cannot be trusted, by the ferry's own record and by what the hosts got of the machine's processors.

use fullpipe_path::rates;
use fullpipe_record::ProcessorTime;
use fullpipe_units::{Bytes, Duration};

use crate::ferry::FerryReport;
use crate::path::Path;

/// A run is untrustworthy if more than one packet in a hundred left later than this, or than
/// [`LATENESS_SHARE`] of the base RTT if that is more.
pub(crate) const LATENESS_LIMIT: Duration = Duration::from_millis(1);
/// A run is untrustworthy if the ferry fell behind by longer than this, or by longer than it takes to fill half of the
/// smallest buffer. The packets that the senders sent meanwhile then reached the path in one burst, and the path would not
/// have dropped them otherwise. The same holds for packets that gathered during a stall. A delay below [`LATENESS_LIMIT`]
/// does not matter. Nor does a delay that is shorter than the slowest link takes for a packet: a sender that is driven by
/// ACKs can then have sent at most one packet in response.
const STALL_LIMIT: Duration = Duration::from_millis(10);
/// A run is untrustworthy if the path's time stopped for longer than this at once. It is half of the minimum
/// retransmission timeout of Linux (`TCP_RTO_MIN`), so that no timer expires because of the stall.
const STANDSTILL_LIMIT: Duration = Duration::from_millis(100);
/// A run is untrustworthy if the path's time stopped for more than one part in this many of the run: goodput is measured by
/// the machine's clock, which keeps running.
const STANDSTILL_SHARE: u64 = 100;
/// A run is untrustworthy if one of its hosts waited for a processor for more than one part in this many of the run, as with
/// [`STANDSTILL_SHARE`]: the path goes on meanwhile, so that goodput can be lower by that share, which is a third of what
/// `fullpipe agree` tolerates. Where nothing else competes, hosts waited 0.05 to 0.84 % at 200 Mbit/s to 2 Gbit/s on two processors, and
/// at 500 Mbit/s on busy ones 2.6 to 12 %.
const WAIT_SHARE: u64 = 100;
/// A run is untrustworthy if the machine's own host took more than one part in this many of its processors' time: a thread that is
/// on a processor then does not see that it waits.
const STEAL_SHARE: u64 = 100;
/// One in this many: 5 %.
const LATENESS_SHARE: u64 = 20;
/// A run is untrustworthy if more than one pass of the ferry in this many was late.
const OVERRUN_SHARE: u64 = 100;

impl Path {
    /// The RTT of the empty path for the class with the lowest.
    pub fn base_rtt(&self) -> Duration {
        base_rtt(self)
    }

    /// Why a run over this path cannot be trusted, as the ferry recorded it; empty when it can.
    pub fn doubts(&self, ferried: &FerryReport) -> Vec<String> {
        doubts(self, ferried)
    }

    /// The same for a run whose hosts got this much of the machine's processors.
    pub fn doubts_of_hosts(ferried: &FerryReport, processor: &ProcessorTime) -> Vec<String> {
        starved(processor, ferried.carried)
    }
}

/// The reasons why a run over `path` is untrustworthy, as the ferry recorded them.
fn doubts(path: &Path, ferried: &FerryReport) -> Vec<String> {
    let mut reasons = Vec::new();
    let lateness = ferried.lateness.lateness();
    let limit = LATENESS_LIMIT.as_nanos().max(base_rtt(path).as_nanos() / LATENESS_SHARE);
    if lateness.p99_ns > limit {
        reasons.push(format!(
            "1 % of packets left more than {} late (limit {})",
            Duration::from_nanos(lateness.p99_ns),
            Duration::from_nanos(limit)
        ));
    }
    if let Some(why) = &ferried.no_realtime {
        reasons.push(format!(
            "the emulator could not get real-time priority ({why}), so other load on the machine can delay packets; \
             run as root or raise `ulimit -r`"
        ));
    }
    if ferried.failed_writes > 0 {
        reasons.push(format!("the kernel refused {} frames at the end of the path", ferried.failed_writes));
    }
    let stall_limit = stall_limit(path);
    if lateness.max_ns > stall_limit.as_nanos() {
        reasons.push(format!(
            "the emulator fell {} behind at least once, so packets reached the path in a burst (limit {})",
            Duration::from_nanos(lateness.max_ns),
            stall_limit
        ));
    }
    let paused = ferried.paused;
    if paused.burst > stall_limit {
        reasons.push(format!(
            "the host stalled; packets left in a burst of {} (limit {})",
            paused.burst, stall_limit
        ));
    }
    if paused.longest > STANDSTILL_LIMIT {
        reasons.push(format!("the host stalled for {} at once (limit {})", paused.longest, STANDSTILL_LIMIT));
    }
    let share = Duration::from_nanos(ferried.carried.as_nanos() / STANDSTILL_SHARE);
    if paused.total > share {
        reasons.push(format!("the host stalled for {} in total (limit {})", paused.total, share));
    }
    if ferried.overruns * OVERRUN_SHARE > ferried.passes {
        reasons.push(format!(
            "the emulator woke more than 1 ms late {} times out of {}",
            ferried.overruns, ferried.passes
        ));
    }
    reasons
}

/// The reasons why a run that was carried for so long is untrustworthy because its hosts could not run when they were to.
fn starved(processor: &ProcessorTime, carried: Duration) -> Vec<String> {
    let mut reasons = Vec::new();
    let limit = Duration::from_nanos(carried.as_nanos() / WAIT_SHARE);
    for (host, waited_ns) in ["sender", "receiver"].iter().zip(processor.waited_ns.unwrap_or_default()) {
        if waited_ns > limit.as_nanos() {
            reasons.push(format!(
                "the {host} waited for a processor for {} in total (limit {limit})",
                Duration::from_nanos(waited_ns)
            ));
        }
    }
    let limit = Duration::from_nanos(carried.as_nanos().saturating_mul(processor.processors) / STEAL_SHARE);
    if processor.stolen_ns > limit.as_nanos() {
        reasons.push(format!(
            "the host of this virtual machine took {} of its processors' time (limit {limit})",
            Duration::from_nanos(processor.stolen_ns)
        ));
    }
    reasons
}

fn stall_limit(path: &Path) -> Duration {
    let ways = [&path.forward.elements, &path.reverse.elements];
    let packet = Bytes::new(path.mtu_bytes as u64);
    let [buffer, other] = ways.map(|elements| rates::shortest_buffer(elements));
    let half = Duration::from_nanos(buffer.min(other).as_nanos() / 2);
    let [transmission, other] = ways.map(|elements| rates::longest_transmission(elements, packet));
    half.clamp(LATENESS_LIMIT, STALL_LIMIT.max(transmission).max(other))
}

/// The RTT of the empty path for the class with the lowest RTT.
fn base_rtt(path: &Path) -> Duration {
    let [forward, reverse] = [&path.forward, &path.reverse];
    let extra =
        forward.class_delays.iter().zip(&reverse.class_delays).map(|(one, other)| *one + *other).min();
    rates::shortest_delay(&forward.elements)
        + rates::shortest_delay(&reverse.elements)
        + extra.unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::path::OneWay;
    use crate::path_clock::Paused;
    use fullpipe_path::config::{ElementConfig, QueueConfig, Schedule};
    use fullpipe_units::{Rate, Time};

    fn path(buffer_bytes: u64) -> Path {
        let delay =
            |millis| ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(millis)) };
        let link = ElementConfig::Link {
            name: "bottleneck".to_owned(),
            rate_bps: Schedule::constant(Rate::from_bits_per_sec(100_000_000)),
            queue: QueueConfig::drop_tail(Bytes::new(buffer_bytes), None),
        };
        let [mut forward, mut reverse] =
            [vec![link, delay(20)], vec![delay(15)]].map(|elements| OneWay::new(elements, 1));
        forward.class_delays = vec![Duration::from_millis(5)];
        reverse.class_delays = vec![Duration::ZERO];
        Path::new(forward, reverse)
    }

    fn report(late: Duration) -> FerryReport {
        let mut lateness = Histogram::default();
        lateness.record(late);
        FerryReport {
            links: vec![],
            counts: Default::default(),
            marked: [0; 2],
            lateness,
            failed_writes: 0,
            passes: 1000,
            overruns: 0,
            paused: Paused::default(),
            stalls: vec![],
            carried: Duration::from_secs(10),
            ended: Time::ZERO + Duration::from_secs(10),
            no_realtime: None,
        }
    }

    #[test]
    fn run_is_judged_by_its_ferry() {
        let path = path(100_000);
        assert_eq!(base_rtt(&path), Duration::from_millis(40));
        assert!(doubts(&path, &report(Duration::from_micros(900))).is_empty());
        // More than 5 % of 40 ms.
        assert_eq!(doubts(&path, &report(Duration::from_micros(2_500))).len(), 1);
        // More than half of the 8 ms that the buffer holds, too.
        assert_eq!(doubts(&path, &report(Duration::from_micros(4_500))).len(), 2);
        let troubled = FerryReport {
            failed_writes: 1,
            overruns: 11,
            no_realtime: Some("EPERM".to_owned()),
            ..report(Duration::ZERO)
        };
        assert_eq!(doubts(&path, &troubled).len(), 3);
    }

    #[test]
    fn cpu_starved_hosts_spoil_run() {
        let carried = Duration::from_secs(4);
        let ms = 1_000_000;
        let idle = ProcessorTime {
            waited_ns: Some([9 * ms, 40 * ms]),
            softirq_waited_ns: Some(500 * ms),
            stolen_ns: 80 * ms,
            pressure_ns: Some(4000 * ms),
            processors: 2,
            ..ProcessorTime::default()
        };
        assert!(starved(&idle, carried).is_empty(), "{:?}", starved(&idle, carried));
        let reasons = starved(&ProcessorTime { waited_ns: Some([41 * ms, 472 * ms]), ..idle }, carried);
        assert!(
            matches!(&reasons[..], [sender, receiver]
                if sender.starts_with("the sender waited for a processor for 41 ms in total (limit 40 ms)")
                    && receiver.starts_with("the receiver waited for a processor for 472 ms")),
            "{reasons:?}"
        );
        let reasons = starved(&ProcessorTime { stolen_ns: 90 * ms, ..idle }, carried);
        assert!(
            matches!(&reasons[..], [one] if one.contains("took 90 ms") && one.contains("(limit 80 ms)")),
            "{reasons:?}"
        );
        // A kernel that counts nothing gives no reason.
        assert!(starved(&ProcessorTime::default(), carried).is_empty());
    }

    #[test]
    fn stall_is_judged_by_effect() {
        let path = path(100_000);
        let judge = |paused: Paused| doubts(&path, &FerryReport { paused, ..report(Duration::ZERO) });
        let ms = Duration::from_millis;
        // Nothing gathered: the end hosts stalled as well.
        assert!(judge(Paused { total: ms(100), longest: ms(100), burst: Duration::ZERO }).is_empty());
        let reasons = judge(Paused { total: ms(5), longest: ms(5), burst: ms(5) });
        assert!(
            matches!(&reasons[..], [one] if one == "the host stalled; packets left in a burst of 5 ms (limit 4 ms)"),
            "{reasons:?}"
        );
        let reasons = judge(Paused { total: ms(101), longest: ms(101), burst: Duration::ZERO });
        assert!(matches!(&reasons[..], [at_once, in_all]
            if at_once.contains("101 ms at once (limit 100 ms)") && in_all.contains("101 ms in total (limit 100 ms)")));
    }

    #[test]
    fn large_buffers_excuse_no_long_stalls() {
        assert_eq!(stall_limit(&path(100_000)), Duration::from_millis(4));
        assert_eq!(stall_limit(&path(10_000_000)), STALL_LIMIT);
        assert_eq!(stall_limit(&path(3_000)), LATENESS_LIMIT);
    }

    #[test]
    fn slow_link_excuses_longer_stalls() {
        let at_rates = |changes: &[(Time, Rate)]| {
            let mut path = path(100_000);
            let initial = Rate::from_bits_per_sec(128_000);
            let ElementConfig::Link { rate_bps, .. } = &mut path.forward.elements[0] else { unreachable!() };
            *rate_bps = Schedule { initial, changes: changes.to_vec() };
            stall_limit(&path)
        };
        assert_eq!(at_rates(&[]), Duration::from_micros(93_750));
        let faster = Rate::from_bits_per_sec(100_000_000);
        assert_eq!(at_rates(&[(Time::from_micros(1), faster)]), Duration::from_millis(4));
    }
}
