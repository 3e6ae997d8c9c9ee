//! The summary of a run as one JSON object, for people, scripts and Python.
//!
//! ```json
//! {
//!   "provenance": {"world": "sim", "seed": 1, "spec_json": "…", "version": "…", "host": "", "kernel": "",
//!                  "sysctls": [["name", "value"]], "lateness": null, "untrustworthy": []},    // kernel world: "processor", too
//!   "flows": [{"label": "a", "controller": "bbr1",
//!              "start_ns": 0, "end_ns": 0, "completed": false, "delivered_bytes": 0,
//!              "segments_sent": 0, "retransmits": 0, "timeouts": 0, "undos": 0, "written_bytes": 0, "written_ns": 0,
//!              "goodput_bps": 0.0, "loss_ratio": 0.0,
//!              "rtt_ms": {"mean": 0.0, "p50": 0.0, "p95": 0.0, "min": 0.0, "max": 0.0}, "completion_ms": null,
//!              "write_ms": 0.0, "write_bps": 0.0,
//!              "transfers_ms": [0.0],
//!              "fct_ms": {"mean": 0.0, "p50": 0.0, "p95": 0.0, "min": 0.0, "max": 0.0}, "rebuffer_ms": null}],
//!   "links": [{"name": "bottleneck",
//!              "arrived_packets": 0, "dropped_packets": 0, "accepted_bytes": 0, "departed_bytes": 0,
//!              "capacity_bytes": null, "early_packets": 1, "marked_packets": 1,
//!              "queue_delay_ms": {"mean": 0.0, "p50": 0.0, "p95": 0.0, "min": 0.0, "max": 0.0},
//!              "utilisation": null, "drop_ratio": 0.0}],
//!   "total_goodput_bps": 0.0,
//!   "fct_ms": {"mean": 0.0, "p50": 0.0, "p95": 0.0, "min": 0.0, "max": 0.0},
//!   "fairness": {"jain_index": 1.0, "shares": [{"label": "a", "share": 1.0}]}
//! }
//! ```
//!
//! A flow that is a program also has `seen`, behind `written_ns`: `{"payload": "tcp", "rtt_source": "sequence_numbers", "rtt_samples": 0,
//! "connections": 0, "packets": 0, "lost_packets": 0, "returned_packets": 0, "returned_lost_packets": 0, "sent_bytes": 0,
//! "returned_bytes": 0, "delay": {"min_ns": 0, "mean_ns": 0, "p50_ns": 0, "p95_ns": 0, "max_ns": 0}, "returned_delay": null}`. Its
//! `timeouts`, `undos` and, unless it is TCP, `retransmits` are null. So are those that the stack of a flow does not tell.
//! A flow with `hosts.metrics` also has `metrics`, behind `written_ns`: `{"at_ns": 0, "ssthresh": 0, "cwnd": 0, "reordering": 0, "rtt_ns": 0,
//! "rttvar_ns": 0}`. A flow of media has `frames` there: `{"sent": 0, "in_time": 0, "late": 0, "lost": 0, "lost_packets": 0}`,
//! and ends with `missed_frames`. Keys are in this order. A measure that cannot be computed from the record is null; [`crate::measures`] defines each.
//! `early_packets` and `marked_packets` are left out where they are 0, and what an application wrote where it is not known:
//! `written_ns` and `write_ms` of a flow that has not written everything, and everywhere if the world does not count it.
//! A flow whose data went over the path back also has `"reverse": true`, before `start_ns`. The provenance ends with `unsupported`, a list of sentences, unless it is empty.

use serde::Serialize;

use crate::measures::{Fairness, FlowMeasures, LinkMeasures, TotalMeasures};
use crate::run::{FlowTotals, LinkTotals, Provenance, Run};

/// Everything about a run except its time series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Where it came from.
    pub provenance: Provenance,
    /// One for each flow, in the order of the run.
    pub flows: Vec<FlowSummary>,
    /// One for each link, in the order of the run.
    pub links: Vec<LinkSummary>,
    /// What all flows achieved together.
    #[serde(flatten)]
    pub total: TotalMeasures,
    /// How evenly the flows shared the path.
    pub fairness: Fairness,
}

/// One flow's totals and measures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Its label in the scenario.
    pub label: String,
    /// The controller as the scenario names it.
    pub controller: String,
    /// Totals.
    #[serde(flatten)]
    pub totals: FlowTotals,
    /// Measures.
    #[serde(flatten)]
    pub measures: FlowMeasures,
}

/// One link's totals and measures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Its name in the scenario.
    pub name: String,
    /// Totals.
    #[serde(flatten)]
    pub totals: LinkTotals,
    /// Measures.
    #[serde(flatten)]
    pub measures: LinkMeasures,
}

impl Run {
    /// Everything except the time series.
    pub fn summary(&self) -> Summary {
        let flows = self.flows.iter().map(|flow| FlowSummary {
            label: flow.label.clone(),
            controller: flow.controller.clone(),
            totals: flow.totals,
            measures: FlowMeasures::of(flow),
        });
        let links = self.links.iter().map(|link| LinkSummary {
            name: link.name.clone(),
            totals: link.totals,
            measures: LinkMeasures::of(link),
        });
        Summary {
            provenance: self.provenance.clone(),
            flows: flows.collect(),
            links: links.collect(),
            total: TotalMeasures::of(&self.flows),
            fairness: Fairness::of(self),
        }
    }

    /// [`Run::summary`] as JSON, in the shape that the module's documentation shows.
    #[expect(clippy::missing_panics_doc, reason = "a summary holds nothing that JSON cannot say")]
    pub fn summary_json(&self) -> String {
        serde_json::to_string(&self.summary()).expect("a summary holds nothing that JSON cannot say")
    }
}

#[cfg(test)]
mod tests {
    use crate::run::{FlowTotals, Frames, Provenance, example};
    use crate::seen::{Delay, Payload, RttSource, Seen, UNKNOWN};

    #[test]
    fn the_json_reads_as_documented() {
        let expected = concat!(
            r#"{"provenance":{"world":"sim","seed":7,"spec_json":"{\"name\":\"example\"}","version":"0.1.0","host":"","#,
            r#""kernel":"","sysctls":[],"lateness":null,"untrustworthy":[]},"#,
            r#""flows":[{"label":"a","controller":"bbr1","start_ns":0,"end_ns":1000000000,"completed":true,"#,
            r#""delivered_bytes":75000,"segments_sent":100,"retransmits":5,"timeouts":1,"undos":0,"#,
            r#""written_bytes":75000,"written_ns":800000000,"#,
            r#""goodput_bps":600000.0,"loss_ratio":0.05,"#,
            r#""rtt_ms":{"mean":40.5,"p50":40.5,"p95":40.5,"min":40.5,"max":40.5},"completion_ms":1000.0,"#,
            r#""write_ms":800.0,"write_bps":750000.0,"transfers_ms":[],"#,
            r#""fct_ms":{"mean":1000.0,"p50":1000.0,"p95":1000.0,"min":1000.0,"max":1000.0},"rebuffer_ms":null},"#,
            r#"{"label":"b","controller":"reno","start_ns":0,"end_ns":1000000000,"completed":false,"#,
            r#""delivered_bytes":25000,"segments_sent":0,"retransmits":0,"timeouts":0,"undos":0,"#,
            r#""goodput_bps":200000.0,"loss_ratio":null,"#,
            r#""rtt_ms":{"mean":50.0,"p50":50.0,"p95":50.0,"min":50.0,"max":50.0},"completion_ms":null,"transfers_ms":[20.0,30.5],"#,
            r#""fct_ms":{"mean":25.25,"p50":25.25,"p95":29.975,"min":20.0,"max":30.5},"rebuffer_ms":1.5}],"#,
            r#""links":[{"name":"bottleneck","arrived_packets":10,"dropped_packets":3,"accepted_bytes":10500,"#,
            r#""departed_bytes":9000,"capacity_bytes":12000,"#,
            r#""queue_delay_ms":{"mean":0.6,"p50":0.6,"p95":1.14,"min":0.0,"max":1.2},"#,
            r#""utilisation":0.75,"drop_ratio":0.3}],"#,
            r#""total_goodput_bps":800000.0,"#,
            r#""fct_ms":{"mean":350.1666666666667,"p50":30.5,"p95":903.0499999999998,"min":20.0,"max":1000.0},"#,
            r#""fairness":{"jain_index":0.8,"shares":[{"label":"a","share":0.75},{"label":"b","share":0.25}]}}"#,
        );
        assert_eq!(example().summary_json(), expected);
    }

    #[test]
    fn unknown_program_values_are_null() {
        let mut run = example();
        let totals = &mut run.flows[1].totals;
        (totals.retransmits, totals.timeouts, totals.undos) = (UNKNOWN, UNKNOWN, UNKNOWN);
        totals.seen = Some(Seen {
            payload: Payload::QuicUdp,
            rtt_source: RttSource::None,
            rtt_samples: 0,
            connections: 1,
            packets: 200,
            lost_packets: 3,
            returned_packets: 9,
            returned_lost_packets: 0,
            sent_bytes: 26_000,
            returned_bytes: 900,
            delay: Some(Delay { min_ns: 1, mean_ns: 2, p50_ns: 2, p95_ns: 3, max_ns: 4 }),
            returned_delay: None,
        });
        let json = run.summary_json();
        assert!(
            json.contains(r#""retransmits":null,"timeouts":null,"undos":null,"seen":{"payload":"quic_udp","#),
            "{json}"
        );
        assert!(json.contains(r#""rtt_source":"none","#) && json.contains(r#""loss_ratio":0.015"#), "{json}");
        let written = serde_json::to_string(&run.flows[1].totals).unwrap();
        assert_eq!(serde_json::from_str::<FlowTotals>(&written).unwrap(), run.flows[1].totals);
    }

    #[test]
    fn frames_appear_if_flow_is_media() {
        let mut run = example();
        assert!(!run.summary_json().contains("frames"));
        let frames = Frames { sent: 9, in_time: 6, late: 2, lost: 0, lost_packets: 0 };
        run.flows[1].totals.frames = Some(frames);
        let json = run.summary_json();
        let written =
            r#""undos":0,"frames":{"sent":9,"in_time":6,"late":2,"lost":0,"lost_packets":0},"goodput_bps""#;
        assert!(
            json.contains(written) && json.contains(r#""rebuffer_ms":1.5,"missed_frames":0.25}]"#),
            "{json}"
        );
        let written = serde_json::to_string(&run.flows[1].totals).unwrap();
        assert_eq!(serde_json::from_str::<FlowTotals>(&written).unwrap(), run.flows[1].totals);
    }

    #[test]
    fn unsupported_settings_appear_if_any() {
        let mut run = example();
        assert!(!run.summary_json().contains("unsupported"));
        run.provenance.unsupported = vec!["hosts.pacing is ignored.".to_owned()];
        let json = run.summary_json();
        assert!(
            json.contains(r#""untrustworthy":[],"unsupported":["hosts.pacing is ignored."]},"flows""#),
            "{json}"
        );
        let written = serde_json::to_string(&run.provenance).unwrap();
        assert_eq!(serde_json::from_str::<Provenance>(&written).unwrap(), run.provenance);
    }

    #[test]
    fn marks_and_drops_appear_if_any() {
        let mut run = example();
        assert!(!run.summary_json().contains("marked") && !run.summary_json().contains("early"));
        run.links[0].totals.marked_packets = 7;
        let json = run.summary_json();
        assert!(json.contains(r#""capacity_bytes":12000,"marked_packets":7,"queue_delay_ms""#), "{json}");
        run.links[0].totals.early_packets = 2;
        let json = run.summary_json();
        assert!(json.contains(r#""capacity_bytes":12000,"early_packets":2,"marked_packets":7,"#), "{json}");
    }
}
