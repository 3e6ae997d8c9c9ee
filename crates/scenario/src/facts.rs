//! What a path allows, computed from its spec alone: the reference lines for results.
//!
//! Figures, studies and schedulers all use these, so that a line in a figure and a number in a table agree.

use fullpipe_path::config::Schedule;
use fullpipe_path::rates;
use fullpipe_units::{Duration, Rate, Time};
use serde::Serialize;

use crate::spec::{FlowSpec, Spec};

/// A value over time: (start time, value), in order; the first time is zero.
pub type Steps = Vec<(u64, u64)>;

/// What a path allows. Times are nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathFacts {
    /// Headers of a packet from IP upwards, bytes.
    pub header_bytes: u32,
    /// The share of a full-sized packet that is payload.
    pub payload_share: f64,
    /// The highest rate that the path to the receivers ever has, bits per second; `None` if nothing limits it.
    pub forward_bps: Option<u64>,
    /// The same of the path back.
    pub reverse_bps: Option<u64>,
    /// The round trips of the empty path, one for each direction of data and each delay that flows have of their own: those of forward
    /// flows first, and of these the shortest.
    pub round_trips: Vec<RoundTrip>,
    /// For each flow of the spec, the number of its round trip.
    pub flows: Vec<usize>,
}

/// The round trip of an empty path, with what it allows to data in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundTrip {
    /// The highest rate at which data can pass that direction of the path over time, bits per second with headers
    /// ([`rates::ceiling`]); `None` if nothing limits it.
    pub rate_bps: Option<Steps>,
    /// How long it takes over time.
    pub rtt_ns: Steps,
    /// The bandwidth-delay product over time, bytes with headers; `None` if nothing limits the rate.
    pub bdp_bytes: Option<Steps>,
}

impl PathFacts {
    /// As JSON, for other languages.
    #[expect(clippy::missing_panics_doc, reason = "facts are plain data, which JSON can always hold")]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("facts are plain data")
    }
}

impl Spec {
    /// What the path allows.
    #[expect(clippy::missing_panics_doc, reason = "every flow's delay is in the list that was made of them")]
    pub fn path_facts(&self) -> PathFacts {
        let rate = |elements| rates::ceiling(elements, Time::ZERO + self.duration_ns);
        let rates = [rate(&self.forward), rate(&self.reverse)];
        let shared =
            rates::combined(&rates::delay(&self.forward), &rates::delay(&self.reverse), |a, b| a + b);
        let own = |flow: &FlowSpec| (flow.is_reverse(), flow.extra_forward_ns + flow.extra_reverse_ns);
        let mut trips: Vec<(bool, Duration)> = self.flows.iter().map(own).collect();
        trips.sort_unstable();
        trips.dedup();
        let place = |flow: &FlowSpec| trips.binary_search(&own(flow)).expect("every delay is in the list");
        let round_trip = |&(reverse, extra): &(bool, Duration)| {
            round_trip(&shared, extra, rates[reverse as usize].as_ref())
        };
        PathFacts {
            header_bytes: Spec::HEADER_BYTES,
            payload_share: f64::from(self.mss()) / f64::from(self.mtu_bytes),
            forward_bps: finite(rates::highest_rate(&self.forward)),
            reverse_bps: finite(rates::highest_rate(&self.reverse)),
            round_trips: trips.iter().map(round_trip).collect(),
            flows: self.flows.iter().map(place).collect(),
        }
    }
}

fn round_trip(shared: &Schedule<Duration>, extra: Duration, rate: Option<&Schedule<Rate>>) -> RoundTrip {
    let bdp = |rate: &Schedule<Rate>| {
        rates::combined(rate, shared, |rate, delay| rate.bytes_in(delay + extra).as_u64())
    };
    RoundTrip {
        rate_bps: rate.map(|rate| steps(rate, Rate::as_bits_per_sec)),
        rtt_ns: steps(shared, |delay| (delay + extra).as_nanos()),
        bdp_bytes: rate.map(|rate| steps(&bdp(rate), |bytes| bytes)),
    }
}

fn steps<T: Copy>(schedule: &Schedule<T>, number: impl Fn(T) -> u64) -> Steps {
    let changes = schedule.changes.iter().map(|&(at, value)| (at.as_nanos(), number(value)));
    std::iter::once((0, number(schedule.initial))).chain(changes).collect()
}

fn finite(rate: Rate) -> Option<u64> {
    (rate != Rate::MAX).then(|| rate.as_bits_per_sec())
}

#[cfg(test)]
mod tests {
    use crate::format::Format;
    use crate::resolve::resolve;

    #[test]
    fn constant_path_has_single_step_schedules() {
        let text = "[path]\nrate = \"12 Mbit/s\"\nrtt = \"20 ms\"\n[[flows]]\ncontroller = \"reno\"\n[[flows]]\n\
                    controller = \"bbr1\"\nrtt = \"50 ms\"\n[[flows]]\ncontroller = \"reno\"\n";
        let facts = resolve(text, Format::Toml, None).unwrap().path_facts();
        assert!(facts.round_trips.iter().all(|trip| trip.rate_bps == Some(vec![(0, 12_000_000)])));
        assert_eq!((facts.forward_bps, facts.reverse_bps), (Some(12_000_000), None));
        assert_eq!((facts.header_bytes, facts.payload_share), (52, 1448.0 / 1500.0));
        assert_eq!(facts.flows, [0, 1, 0]);
        let rtts: Vec<_> = facts.round_trips.iter().map(|trip| trip.rtt_ns.clone()).collect();
        assert_eq!(rtts, [[(0, 20_000_000)], [(0, 50_000_000)]]);
        let products: Vec<_> = facts.round_trips.iter().map(|trip| trip.bdp_bytes.clone().unwrap()).collect();
        assert_eq!(products, [[(0, 30_000)], [(0, 75_000)]]);
    }

    #[test]
    fn reverse_flow_has_rate_of_reverse_path() {
        let text = "[path]\nrate = \"12 Mbit/s\"\nrtt = \"20 ms\"\nreverse = { rate = \"1 Mbit/s\" }\n[[flows]]\n\
                    controller = \"reno\"\ndirection = \"reverse\"\n[[flows]]\ncontroller = \"bbr1\"\nrtt = \"50 ms\"\n";
        let facts = resolve(text, Format::Toml, None).unwrap().path_facts();
        assert_eq!(facts.flows, [1, 0]);
        let rates: Vec<_> =
            facts.round_trips.iter().map(|trip| trip.rate_bps.clone().unwrap()[0].1).collect();
        assert_eq!(rates, [12_000_000, 1_000_000]);
        assert_eq!(facts.round_trips[1].bdp_bytes, Some(vec![(0, 2_500)]));
    }
}
