//! The two end hosts: the machine's own TCP in two network namespaces, driven by our own traffic generator.
//!
//! `sender` opens the connections, writes zeros and samples `TCP_INFO`. `receiver` discards and counts what arrives, and
//! requests more by sending a byte.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use fullpipe_scenario::spec::{FlowSpec, HostSpec, Spec};
use fullpipe_scenario::transfers::Client;
use fullpipe_units::{Bytes, Time};

use fullpipe_emu::FIRST_PORT;
use fullpipe_emu::settings::{apply, tcp_settings};
use fullpipe_emu::sysctl::sysctl;

use crate::KernelError;

mod metrics;
pub(crate) mod receiver;
pub(crate) mod sender;

/// The maximum number of flows of a run.
pub(crate) const MAX_FLOWS: usize = 50_000;

/// The port of a flow.
pub(crate) fn port(flow: usize) -> u16 {
    FIRST_PORT + flow as u16
}

/// What a receiver has received so far; written by it, read by the sampler.
#[derive(Debug)]
pub(crate) struct Progress {
    bytes: AtomicU64,
    completed_ns: AtomicU64,
    transfers: Mutex<Transfers>,
}

/// Transfers that have arrived.
#[derive(Debug, Default)]
struct Transfers {
    /// The client that waits for them; `None` unless the flow sends one after another.
    client: Option<Client>,
    took_ns: Vec<u64>,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            bytes: AtomicU64::new(0),
            completed_ns: AtomicU64::new(u64::MAX),
            transfers: Mutex::default(),
        }
    }
}

impl Progress {
    /// Counters for every flow.
    pub(crate) fn of(spec: &Spec, seed: u64) -> Vec<Progress> {
        let progress = |(number, flow): (usize, &FlowSpec)| {
            let client = Client::new(&flow.workload, flow.start_time(number, seed));
            let transfers = Mutex::new(Transfers { client, took_ns: Vec::new() });
            Progress { transfers, ..Progress::default() }
        };
        spec.flows.iter().enumerate().map(progress).collect()
    }

    /// Counts bytes that the application read; returns the new total.
    fn add(&self, bytes: u64) -> u64 {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    fn complete(&self, at: Time) {
        self.completed_ns.store(at.as_nanos(), Ordering::Release);
    }

    /// Notes that `total` bytes have arrived; returns when the client requests more.
    fn on_delivered(&self, total: u64, now: Time) -> Time {
        let mut transfers = self.transfers.lock().expect("nobody panics while holding it");
        let Transfers { client: Some(client), took_ns } = &mut *transfers else { return Time::NEVER };
        client.on_delivered(Bytes::new(total), now, |took| took_ns.push(took.as_nanos()));
        client.due()
    }

    /// The client requests the next transfer.
    fn ask(&self, now: Time) {
        let mut transfers = self.transfers.lock().expect("nobody panics while holding it");
        if let Some(client) = &mut transfers.client {
            client.ask(now);
        }
    }

    /// How long each transfer took.
    fn transfers_ns(&self) -> Vec<u64> {
        self.transfers.lock().expect("nobody panics while holding it").took_ns.clone()
    }

    /// How long playback had stalled by `at`; `None` unless the flow is a video.
    fn rebuffered_ns(&self, at: Time) -> Option<u64> {
        let transfers = self.transfers.lock().expect("nobody panics while holding it");
        Some(transfers.client.as_ref()?.rebuffered(at)?.as_nanos())
    }

    /// Bytes that the application read.
    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// When the last byte of all that a flow sends was read.
    fn completed(&self) -> Option<Time> {
        let at = self.completed_ns.load(Ordering::Acquire);
        (at != u64::MAX).then_some(Time::from_nanos(at))
    }
}

/// Settings that affect results; read back and recorded.
const RECORDED: [&str; 25] = [
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_no_ssthresh_metrics_save",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_tso_rtt_log",
    "net.ipv4.tcp_autocorking",
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
];

/// What a host reports about itself.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Settings in force; names are prefixed with the host.
    pub(crate) settings: Vec<(String, String)>,
    /// Why its results cannot be trusted.
    pub(crate) untrustworthy: Vec<String>,
}

impl Host {
    /// Applies the scenario's settings to the calling thread's namespace, which is to be the host called `name`.
    pub(crate) fn tune(name: &str, hosts: &HostSpec) -> Host {
        let mut wanted = tcp_settings(hosts);
        // A socket stays paced once it has used bbr, so no socket begins with bbr.
        wanted.push(("net.ipv4.tcp_congestion_control", "reno".to_owned()));
        Host::with(name, &wanted)
    }

    /// The same for programs, whose congestion control is this machine's default unless they choose another.
    pub(crate) fn tune_without_default(name: &str, hosts: &HostSpec) -> Host {
        Host::with(name, &tcp_settings(hosts))
    }

    fn with(name: &str, wanted: &[(&'static str, String)]) -> Host {
        let untrustworthy = apply(wanted);
        let settings =
            RECORDED.iter().filter_map(|setting| Some((format!("{name}:{setting}"), sysctl(setting)?)));
        Host { settings: settings.collect(), untrustworthy }
    }
}

/// Reductions that TCP undid as spurious, of all sockets of the calling thread's namespace.
fn undone_reductions() -> u64 {
    let counters = std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default();
    parse_undone_reductions(&counters)
}

/// `netstat` has pairs of lines: names, then values.
fn parse_undone_reductions(counters: &str) -> u64 {
    const UNDONE: [&str; 4] = ["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"];
    let mut rows = counters.lines().filter(|line| line.starts_with("TcpExt:"));
    let (Some(names), Some(values)) = (rows.next(), rows.next()) else { return 0 };
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.filter(|(name, _)| UNDONE.contains(name)).filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

/// An error of a host thread.
fn failed(attempted: impl Into<String>) -> impl FnOnce(std::io::Error) -> KernelError {
    let attempted = attempted.into();
    move |error| KernelError::system(attempted, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undone_reductions_are_summed_by_name() {
        let counters =
            "TcpExt: TCPFullUndo Other TCPLossUndo\nTcpExt: 3 100 4\nIpExt: TCPFullUndo\nIpExt: 9\n";
        assert_eq!(parse_undone_reductions(counters), 7);
        assert_eq!(parse_undone_reductions(""), 0);
    }
}
