//! What the kernel keeps of the sending host's connections (`tcp_metrics`), as `ip tcp_metrics show` prints it.

use std::net::Ipv4Addr;
use std::process::Command;

use fullpipe_record::Metrics;
use fullpipe_units::Time;

/// The entry for `peer` in the calling thread's namespace; `None` if there is none, or no `ip` to ask.
pub(super) fn entry(peer: Ipv4Addr, now: Time) -> Option<Metrics> {
    let shown = Command::new("ip").args(["-4", "tcp_metrics", "show", &peer.to_string()]).output().ok()?;
    parse(&String::from_utf8_lossy(&shown.stdout), peer, now)
}

/// A line has the peer's address, then names and values: `100.64.0.1 age 0.9sec cwnd 18 rtt 46648us rttvar 46648us source ...`.
fn parse(shown: &str, peer: Ipv4Addr, now: Time) -> Option<Metrics> {
    let line = shown.lines().find(|line| line.split_whitespace().next() == Some(&peer.to_string()))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let value = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1)?.trim_end_matches("us").parse::<u64>().ok()
    };
    let count = |name: &str| value(name).and_then(|value| u32::try_from(value).ok()).unwrap_or(0);
    Some(Metrics {
        at_ns: now.as_nanos(),
        ssthresh: count("ssthresh"),
        cwnd: count("cwnd"),
        reordering: count("reordering"),
        rtt_ns: value("rtt").unwrap_or(0).saturating_mul(1_000),
        rttvar_ns: value("rttvar").unwrap_or(0).saturating_mul(1_000),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_entry_is_read_by_name() {
        let peer = Ipv4Addr::new(100, 64, 0, 2);
        let shown = "100.64.0.20 age 1sec cwnd 7\n\
            100.64.0.2 age 0.96sec ssthresh 84 cwnd 18 reordering 9 rtt 46648us rttvar 23us source 100.64.0.1\n";
        let (at_ns, rtt_ns, rttvar_ns) = (5_000, 46_648_000, 23_000);
        let expected = Metrics { at_ns, ssthresh: 84, cwnd: 18, reordering: 9, rtt_ns, rttvar_ns };
        assert_eq!(parse(shown, peer, Time::from_micros(5)), Some(expected));
        let few = Metrics { at_ns: 0, cwnd: 18, ..Metrics::default() };
        assert_eq!(parse("100.64.0.2 age 1sec cwnd 18 source 100.64.0.1", peer, Time::ZERO), Some(few));
        for none in ["", "100.64.0.20 age 1sec cwnd 7", "Error: no such object"] {
            assert_eq!(parse(none, peer, Time::ZERO), None);
        }
    }
}
