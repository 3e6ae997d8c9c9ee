//! One run of a scenario over the machine's own TCP.
//!
//! Three threads (`threads.rs`): the sending host and the receiving host, each in a network namespace of its own, and the
//! ferry that carries packets between their TUN devices. Everything belongs to the process, so however it ends, nothing
//! remains.

use std::io;
use std::sync::atomic::AtomicBool;

use fullpipe_path::config::ElementConfig;
use fullpipe_record::{Provenance, Run, World};
use fullpipe_scenario::spec::{FlowSpec, Spec};
use fullpipe_units::{Bytes, Duration, Rate};

use crate::EmuError;
use crate::ferry::FerryReport;
use crate::host::receiver::Receiver;
use crate::host::sender::{Sender, SenderReport, set_algorithm};
use crate::host::{MAX_FLOWS, Progress};
use crate::namespace::{ask_to_die_with_parent, become_capable, sysctl};
use crate::path_clock::Standstill;
use crate::sys;
use crate::tap::Tapped;
use crate::threads::{self, Carried, Ready};

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
/// One in this many: 5 %.
const LATENESS_SHARE: u64 = 20;
/// A run is untrustworthy if more than one pass of the ferry in this many was late.
const OVERRUN_SHARE: u64 = 100;

/// Runs `spec` over the kernel's TCP. Call it in a process of its own that has only one thread: without root it
/// enters a user namespace, which the kernel refuses to several threads.
///
/// `seed` drives the path's random elements and the flows' start jitter. Takes the scenario's duration, less if all
/// flows end earlier.
pub fn run(spec: &Spec, seed: u64) -> Result<Run, EmuError> {
    run_tapped(spec, seed, None)
}

/// The same, with flows that are recorded.
pub(crate) fn run_tapped(spec: &Spec, seed: u64, tapped: Option<&Tapped>) -> Result<Run, EmuError> {
    check(spec)?;
    become_capable()?;
    ask_to_die_with_parent();
    let abort = AtomicBool::new(false);
    let abort = tapped.map_or(&abort, |tapped| &tapped.abort);
    let progress = Progress::of(spec, seed);
    let sending = |host: Ready<'_>| {
        if let Some(tapped) = tapped {
            tapped.is_here();
        }
        let names: Vec<&str> = spec.flows.iter().filter_map(|flow| algorithm_of(flow, tapped)).collect();
        check_algorithms(&names)?;
        let clock = host.start()?;
        Sender::new(spec, seed, clock, &progress)?.with_algorithms(&names).run(abort)
    };
    let receiving = |host: Ready<'_>| {
        let receiver = Receiver::listen(spec)?;
        let stop = host.stop;
        let clock = host.start()?;
        receiver.run(spec, clock, &progress, stop)
    };
    Ok(record(spec, seed, threads::carry(spec, seed, Standstill::Stops, abort, sending, receiving)?))
}

/// The congestion control that a flow sets. The scenario has been checked, so each flow has one.
fn algorithm_of(flow: &FlowSpec, tapped: Option<&Tapped>) -> Option<&'static str> {
    tapped.map_or_else(|| flow.controller.linux_name(), |tapped| tapped.name_for(flow))
}

/// Refuses scenarios that the kernel world cannot run, before anything is set up.
pub(crate) fn check(spec: &Spec) -> Result<(), EmuError> {
    let unsupported = |field: String, reason: String, fix: &str| {
        Err(EmuError::Unsupported { field, reason, fix: fix.to_owned() })
    };
    if spec.flows.is_empty() || spec.flows.len() > MAX_FLOWS {
        return unsupported(
            "flows".to_owned(),
            format!("the kernel world runs 1 to {MAX_FLOWS} flows, the scenario has {}", spec.flows.len()),
            "change the number of flows",
        );
    }
    if !(68..=65_535).contains(&spec.mtu_bytes) {
        return unsupported(
            "mtu_bytes".to_owned(),
            format!("an IPv4 device takes 68 to 65535, not {}", spec.mtu_bytes),
            "choose an MTU in that range",
        );
    }
    for (number, flow) in spec.flows.iter().enumerate() {
        if flow.controller.linux_name().is_none() {
            return unsupported(
                format!("flows[{number}].controller"),
                format!("Linux has no {:?}", flow.controller.text()),
                "use a controller of Linux without changed parameters (`fullpipe controllers` lists them), or the \
                 simulator (--world sim)",
            );
        }
        if flow.max_cwnd.is_some() {
            return unsupported(
                format!("flows[{number}].max_cwnd"),
                "the kernel world cannot cap cwnd".to_owned(),
                "leave max_cwnd out, limit the window by tcp_wmem or tcp_rmem, or use the simulator (--world sim)",
            );
        }
    }
    Ok(())
}

/// Checks that the kernel has every algorithm in the calling thread's namespace. As root, the check loads the module.
fn check_algorithms(names: &[&str]) -> Result<(), EmuError> {
    let socket = sys::socket(libc::SOCK_STREAM).map_err(|error| EmuError::system("open a socket", error))?;
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup();
    for name in names {
        set_algorithm(&socket, name).map_err(|error| no_algorithm(name, error))?;
    }
    Ok(())
}

/// Why a socket does not take an algorithm.
pub(crate) fn no_algorithm(name: &str, error: io::Error) -> EmuError {
    if error.raw_os_error() != Some(libc::ENOENT) {
        return EmuError::system(format!("use congestion control {name}"), error);
    }
    let available = sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    EmuError::NoAlgorithm {
        name: name.to_owned(),
        available: available.split_whitespace().map(str::to_owned).collect(),
    }
}

/// Puts the threads' reports together.
fn record(spec: &Spec, seed: u64, carried: Carried<SenderReport, ()>) -> Run {
    let Carried { sent, hosts, ferried, .. } = carried;
    let mut lateness = ferried.lateness.lateness();
    // By the machine's clock, packets on the path arrived later by the longest stall.
    lateness.max_ns = lateness.max_ns.max(ferried.stood.longest.as_nanos());
    let mut untrustworthy = sent.failures;
    let mut sysctls = Vec::new();
    for host in hosts {
        untrustworthy.extend(host.untrustworthy);
        sysctls.extend(host.settings);
    }
    untrustworthy.extend(judge_ferry(spec, &ferried));
    let (host, kernel) = sys::host_and_kernel();
    Run {
        provenance: Provenance {
            world: World::Kernel,
            seed,
            spec_json: serde_json::to_string(spec).expect("a spec is plain data"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host,
            kernel,
            sysctls,
            lateness: Some(lateness),
            untrustworthy,
        },
        flows: sent.flows,
        links: ferried.links,
    }
}

/// The reasons why a run is untrustworthy, as the ferry recorded them.
pub(crate) fn judge_ferry(spec: &Spec, ferried: &FerryReport) -> Vec<String> {
    let mut reasons = Vec::new();
    let lateness = ferried.lateness.lateness();
    let limit = LATENESS_LIMIT.as_nanos().max(base_rtt(spec).as_nanos() / LATENESS_SHARE);
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
    let stall_limit = stall_limit(spec);
    if lateness.max_ns > stall_limit.as_nanos() {
        reasons.push(format!(
            "the emulator fell {} behind at least once, so packets reached the path in a burst (limit {})",
            Duration::from_nanos(lateness.max_ns),
            stall_limit
        ));
    }
    let stood = ferried.stood;
    if stood.burst > stall_limit {
        reasons.push(format!(
            "the host stalled; packets left in a burst of {} (limit {})",
            stood.burst, stall_limit
        ));
    }
    if stood.longest > STANDSTILL_LIMIT {
        reasons.push(format!("the host stalled for {} at once (limit {})", stood.longest, STANDSTILL_LIMIT));
    }
    let share = Duration::from_nanos(ferried.carried.as_nanos() / STANDSTILL_SHARE);
    if stood.total > share {
        reasons.push(format!("the host stalled for {} in total (limit {})", stood.total, share));
    }
    if ferried.overruns * OVERRUN_SHARE > ferried.passes {
        reasons.push(format!(
            "the emulator woke more than 1 ms late {} times out of {}",
            ferried.overruns, ferried.passes
        ));
    }
    reasons
}

fn stall_limit(spec: &Spec) -> Duration {
    let buffers = [&spec.forward, &spec.reverse].map(|elements| fullpipe_path::shortest_buffer(elements));
    let half = Duration::from_nanos(buffers[0].min(buffers[1]).as_nanos() / 2);
    half.clamp(LATENESS_LIMIT, STALL_LIMIT.max(longest_transmission(spec)))
}

/// How long the slowest link takes for a full packet at its highest rate.
fn longest_transmission(spec: &Spec) -> Duration {
    let packet = Bytes::new(spec.mtu_bytes as u64);
    let times = spec.forward.iter().chain(&spec.reverse).filter_map(|element| match element {
        ElementConfig::Link { rate_bps, .. } => {
            let fastest = rate_bps.changes.iter().map(|(_, rate)| *rate).fold(rate_bps.initial, Rate::max);
            Some(fastest.time_for(packet))
        }
        _ => None,
    });
    times.max().unwrap_or(Duration::ZERO)
}

/// The RTT of the empty path for the flow with the lowest RTT.
fn base_rtt(spec: &Spec) -> Duration {
    let delay = |elements: &[ElementConfig]| {
        let delays = elements.iter().map(|element| match element {
            ElementConfig::Delay { delay_ns } => {
                delay_ns.changes.iter().map(|(_, delay)| *delay).fold(delay_ns.initial, Duration::min)
            }
            _ => Duration::ZERO,
        });
        delays.fold(Duration::ZERO, |sum, delay| sum + delay)
    };
    let extra = spec.flows.iter().map(|flow| flow.extra_forward_ns + flow.extra_reverse_ns).min();
    delay(&spec.forward) + delay(&spec.reverse) + extra.unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::path_clock::Stood;
    use crate::threads::HostReport;
    use fullpipe_path::config::{QueueLimit, Schedule};
    use fullpipe_scenario::controller::ControllerChoice;
    use fullpipe_scenario::spec::{HostSpec, Workload};
    use fullpipe_units::Time;

    fn spec(buffer_bytes: u64) -> Spec {
        let delay =
            |millis| ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(millis)) };
        let link = ElementConfig::Link {
            name: "bottleneck".to_owned(),
            rate_bps: Schedule::constant(Rate::from_bits_per_sec(100_000_000)),
            queue: QueueLimit { bytes: Bytes::new(buffer_bytes), packets: None },
        };
        let flow = FlowSpec {
            label: "a".to_owned(),
            controller: ControllerChoice::parse("reno").unwrap(),
            start_ns: Time::ZERO,
            start_jitter_ns: Duration::ZERO,
            stop_ns: None,
            workload: Workload::Bulk,
            extra_forward_ns: Duration::from_millis(5),
            extra_reverse_ns: Duration::ZERO,
            max_cwnd: None,
        };
        Spec {
            name: "test".to_owned(),
            duration_ns: Duration::from_secs(1),
            mtu_bytes: 1500,
            forward: vec![link, delay(20)],
            reverse: vec![delay(15)],
            hosts: HostSpec {
                tcp_rmem_bytes: [4096, 131_072, 6_291_456].map(Bytes::new),
                tcp_wmem_bytes: [4096, 16_384, 4_194_304].map(Bytes::new),
                pacing: false,
                gro_ns: Duration::ZERO,
            },
            flows: vec![flow],
            sample_interval_ns: None,
            sample_flows: true,
            keep_series: true,
            seed: 1,
        }
    }

    fn report(late: Duration) -> FerryReport {
        let mut lateness = Histogram::default();
        lateness.record(late);
        FerryReport {
            links: vec![],
            counts: Default::default(),
            lateness,
            failed_writes: 0,
            passes: 1000,
            overruns: 0,
            stood: Stood::default(),
            carried: Duration::from_secs(10),
            no_realtime: None,
        }
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused_by_field() {
        assert!(check(&spec(100_000)).is_ok());
        let mut capped = spec(100_000);
        capped.flows[0].max_cwnd = Some(10);
        let error = check(&capped).unwrap_err();
        assert_eq!(error.to_string(), "flows[0].max_cwnd: the kernel world cannot cap cwnd");
        assert!(error.fix().contains("--world sim"));
        let mut none = spec(100_000);
        none.flows.clear();
        assert!(check(&none).unwrap_err().to_string().starts_with("flows: "));
    }

    #[test]
    fn a_run_is_judged_by_the_ferry_that_carried_it() {
        let spec = spec(100_000);
        assert_eq!(base_rtt(&spec), Duration::from_millis(40));
        assert!(judge_ferry(&spec, &report(Duration::from_micros(900))).is_empty());
        // More than 5 % of 40 ms.
        assert_eq!(judge_ferry(&spec, &report(Duration::from_micros(2_500))).len(), 1);
        // More than half of the 8 ms that the buffer holds, too.
        assert_eq!(judge_ferry(&spec, &report(Duration::from_micros(4_500))).len(), 2);
        let troubled = FerryReport {
            failed_writes: 1,
            overruns: 11,
            no_realtime: Some("EPERM".to_owned()),
            ..report(Duration::ZERO)
        };
        assert_eq!(judge_ferry(&spec, &troubled).len(), 3);
    }

    #[test]
    fn a_stall_is_judged_by_its_effect() {
        let spec = spec(100_000);
        let judge = |stood: Stood| judge_ferry(&spec, &FerryReport { stood, ..report(Duration::ZERO) });
        let ms = Duration::from_millis;
        // Nothing gathered: the end hosts stalled as well.
        assert!(judge(Stood { total: ms(100), longest: ms(100), burst: Duration::ZERO }).is_empty());
        let reasons = judge(Stood { total: ms(5), longest: ms(5), burst: ms(5) });
        assert!(
            matches!(&reasons[..], [one] if one == "the host stalled; packets left in a burst of 5 ms (limit 4 ms)"),
            "{reasons:?}"
        );
        let reasons = judge(Stood { total: ms(101), longest: ms(101), burst: Duration::ZERO });
        assert!(matches!(&reasons[..], [at_once, in_all]
            if at_once.contains("101 ms at once (limit 100 ms)") && in_all.contains("101 ms in total (limit 100 ms)")));
    }

    #[test]
    fn the_longest_standstill_is_in_the_record() {
        let spec = spec(100_000);
        let stood =
            Stood { total: Duration::from_millis(9), longest: Duration::from_millis(7), ..Stood::default() };
        let host = || HostReport { settings: vec![], untrustworthy: vec![], dropped_frames: 0 };
        let carried = Carried {
            sent: SenderReport { flows: vec![], failures: vec![] },
            received: (),
            hosts: [host(), host()],
            ferried: FerryReport { stood, ..report(Duration::from_millis(1)) },
        };
        let run = record(&spec, 1, carried);
        assert_eq!(run.provenance.lateness.unwrap().max_ns, 7_000_000);
        assert!(run.provenance.untrustworthy.is_empty());
    }

    #[test]
    fn large_buffers_do_not_excuse_long_stalls() {
        assert_eq!(stall_limit(&spec(100_000)), Duration::from_millis(4));
        assert_eq!(stall_limit(&spec(10_000_000)), STALL_LIMIT);
        assert_eq!(stall_limit(&spec(3_000)), LATENESS_LIMIT);
    }

    #[test]
    fn a_link_that_sends_a_packet_in_94_ms_excuses_a_stall_as_long() {
        let at_rates = |changes: &[(Time, Rate)]| {
            let mut spec = spec(100_000);
            let initial = Rate::from_bits_per_sec(128_000);
            let ElementConfig::Link { rate_bps, .. } = &mut spec.forward[0] else { unreachable!() };
            *rate_bps = Schedule { initial, changes: changes.to_vec() };
            stall_limit(&spec)
        };
        assert_eq!(at_rates(&[]), Duration::from_micros(93_750));
        let faster = Rate::from_bits_per_sec(100_000_000);
        assert_eq!(at_rates(&[(Time::from_micros(1), faster)]), Duration::from_millis(4));
    }
}
