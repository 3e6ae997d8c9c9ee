//! qlog: the current form and the older one that qvis reads.
//!
//! - [`Form::Sequence`]: draft-ietf-quic-qlog-main-schema-14 with draft-ietf-quic-qlog-quic-events-13, as JSON text sequences
//!   (RFC 7464): `.sqlog`. What TCP has and QUIC has not is in extensions of ours, [`SCHEMAS`].
//! - [`Form::Contained`]: qlog version 0.3 (draft-ietf-quic-qlog-main-schema-03) as one JSON text: `.qlog`.
//!
//! Both are written while the run goes on, and hold the same packets. The flows of a run are the groups of one trace. docs/how-to/export.md
//! says how TCP is mapped.

mod json;
mod quic;

use std::io::{self, Write};

use fullpipe_units::Time;

use crate::event::{Acknowledgement, Event, Header, Loss, Protocol, Sent, State, Trigger, Why};
use crate::quic::Space;
use crate::window::Window;

/// Event schemas in the current form: QUIC's as of its draft 13; our extension of it, `tcp` in the data of packets and
/// `recovery_state` in that of a congestion state; and our own events of what happens beyond the sender.
pub const SCHEMAS: [&str; 4] = [
    "urn:ietf:params:qlog:events:quic-13",
    "urn:ietf:params:qlog:events:loglevel",
    TCP_SCHEMA,
    "x-fullpipe:qlog:events:path",
];

/// Of runs over TCP only.
const TCP_SCHEMA: &str = "x-fullpipe:qlog:events:quic#tcp";

/// RFC 7464: before each text of a sequence.
const RECORD_SEPARATOR: char = '\x1e';

/// A form of qlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The current one.
    Sequence,
    /// The older one.
    Contained,
}

/// Writes both forms.
#[derive(Debug)]
pub struct Qlog<W: Write> {
    sequence: W,
    contained: W,
    groups: Vec<Group>,
    /// No event is written yet.
    empty: bool,
    line: String,
}

/// A flow.
#[derive(Debug)]
struct Group {
    label: String,
    mss: u32,
    window: Window,
    /// What was told last.
    state: State,
    rtt_ns: Option<u64>,
    edge: u64,
    /// The largest number and the latest RTT that are not told yet.
    latest_rtt_ns: Option<u64>,
}

impl<W: Write> Qlog<W> {
    /// Begins both files.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn new(mut sequence: W, mut contained: W, header: &Header) -> io::Result<Qlog<W>> {
        let mut line = String::new();
        begin_sequence(&mut line, header);
        sequence.write_all(line.as_bytes())?;
        line.clear();
        begin_contained(&mut line, header);
        contained.write_all(line.as_bytes())?;
        let group = |flow: &crate::event::Flow| Group {
            label: flow.label.clone(),
            mss: flow.mss,
            window: Window::default(),
            state: State::default(),
            rtt_ns: None,
            edge: 0,
            latest_rtt_ns: None,
        };
        let mut qlog = Qlog {
            sequence,
            contained,
            groups: header.flows.iter().map(group).collect(),
            empty: true,
            line: String::new(),
        };
        for flow in 0..header.flows.len() as u32 {
            qlog.parameters(flow)?;
        }
        Ok(qlog)
    }

    /// Writes an event.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Sent(sent) => self.sent(at, flow, sent),
            Event::Acknowledged(ack) => self.acknowledged(at, flow, ack),
            Event::Lost(loss) => self.lost(at, flow, loss),
            Event::State(state) => self.state(at, flow, state),
            Event::Quic(event) => self.of_quic(at, flow, event),
            Event::Arrived(arrival) => self.of_path(at, flow, "path:packet_arrived", |data| {
                numbered(data, arrival.syn, arrival.number, false);
                json::word(data, "ecn", arrival.codepoint.name());
            }),
            Event::Dropped(drop) => self.of_path(at, flow, "path:packet_dropped", |data| {
                numbered(data, drop.syn, drop.number, drop.acknowledgement);
                if let Some(queue) = drop.queue {
                    json::text(data, "queue", queue);
                }
                json::word(data, "cause", drop.cause);
            }),
        }
    }

    /// Ends both files, after a warning if there is one.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(mut self, warning: Option<(Time, &str)>) -> io::Result<(W, W)> {
        if let Some((at, warning)) = warning {
            for form in [Form::Sequence, Form::Contained] {
                let name = ["loglevel:warning", "generic:warning"][form as usize];
                self.begin(form, at, 0, name);
                json::text(&mut self.line, "message", warning);
                self.end(form)?;
            }
        }
        self.contained.write_all(b"\n]}]}\n")?;
        self.sequence.flush()?;
        self.contained.flush()?;
        Ok((self.sequence, self.contained))
    }

    /// `recovery:parameters_set`: the size of segments and the timer's granularity.
    fn parameters(&mut self, flow: u32) -> io::Result<()> {
        for form in [Form::Sequence, Form::Contained] {
            let name = ["quic:recovery_parameters_set", "recovery:parameters_set"][form as usize];
            self.begin(form, Time::ZERO, flow, name);
            json::number(&mut self.line, "timer_granularity", 1);
            let mss = self.groups[flow as usize].mss;
            json::number(&mut self.line, "max_datagram_size", mss as u64);
            self.end(form)?;
        }
        Ok(())
    }

    fn sent(&mut self, at: Time, flow: u32, sent: &Sent) -> io::Result<()> {
        for form in [Form::Sequence, Form::Contained] {
            self.begin(form, at, flow, ["quic:packet_sent", "transport:packet_sent"][form as usize]);
            let line = &mut self.line;
            header(line, sent.syn, sent.number);
            json::key(line, "frames");
            line.push('[');
            if sent.payload > 0 {
                stream(line, form, sent.start, sent.payload);
            }
            line.push(']');
            raw(line, sent.length, sent.payload);
            let trigger = match sent.again {
                None | Some(Why::Unknown) => None,
                Some(Why::Lost) => Some("retransmit_reordered"),
                Some(Why::TimedOut) => Some("retransmit_timeout"),
                Some(Why::Probe) => Some("pto_probe"),
            };
            if let Some(trigger) = trigger {
                json::word(line, "trigger", trigger);
            }
            if form == Form::Sequence {
                json::key(line, "tcp");
                line.push('{');
                json::word(line, "ecn", sent.codepoint.name());
                json::number(line, "ts_val", sent.stamp as u64);
                json::number(line, "ts_ecr", sent.echo as u64);
                flags(line, [("syn", sent.syn), ("ece", sent.ece), ("cwr", sent.cwr)]);
                line.push('}');
            }
            self.end(form)?;
        }
        if sent.payload > 0 {
            self.groups[flow as usize].window.sent(at, sent);
        }
        Ok(())
    }

    fn acknowledged(&mut self, at: Time, flow: u32, ack: &Acknowledgement) -> io::Result<()> {
        let group = &mut self.groups[flow as usize];
        let reported = group.window.acknowledged(at, ack);
        group.latest_rtt_ns = reported.rtt_ns.or(group.latest_rtt_ns);
        let mut frames = String::new();
        if ack.syn {
            frames.push_str(r#"{"frame_type":"ack","acked_ranges":[[0,0]]}"#);
        } else if !reported.numbers.is_empty() {
            frames.push_str(r#"{"frame_type":"ack","acked_ranges":["#);
            for range in reported.numbers.chunk_by(|one, next| one + 1 == *next) {
                json::comma(&mut frames);
                frames.push('[');
                json::digits(&mut frames, range[0]);
                frames.push(',');
                json::digits(&mut frames, range[range.len() - 1]);
                frames.push(']');
            }
            frames.push_str("]}");
        }
        let window_moved = ack.edge > group.edge;
        group.edge = group.edge.max(ack.edge);
        for form in [Form::Sequence, Form::Contained] {
            self.begin(form, at, flow, ["quic:packet_received", "transport:packet_received"][form as usize]);
            let line = &mut self.line;
            header(line, ack.syn, ack.number);
            json::key(line, "frames");
            line.push('[');
            line.push_str(&frames);
            if window_moved {
                json::comma(line);
                line.push_str(r#"{"frame_type":"max_data","maximum":"#);
                json::digits(line, ack.edge);
                line.push('}');
            }
            if ack.payload > 0 {
                json::comma(line);
                stream(line, form, ack.start, ack.payload);
            }
            line.push(']');
            raw(line, ack.length, ack.payload);
            if form == Form::Sequence {
                json::key(line, "tcp");
                line.push('{');
                json::word(line, "ecn", ack.codepoint.name());
                json::number(line, "ts_val", ack.stamp as u64);
                json::number(line, "ts_ecr", ack.echo as u64);
                flags(line, [("syn", ack.syn), ("ece", ack.ece), ("dsack", ack.duplicate)]);
                json::number(line, "ack", ack.ack);
                json::number(line, "window", ack.edge.saturating_sub(ack.ack));
                if ack.blocks > 0 {
                    json::key(line, "sack");
                    line.push('[');
                    for (start, end) in &ack.sack[..ack.blocks as usize] {
                        json::comma(line);
                        line.push('[');
                        json::digits(line, *start);
                        line.push(',');
                        json::digits(line, *end);
                        line.push(']');
                    }
                    line.push(']');
                }
                line.push('}');
            }
            self.end(form)?;
        }
        Ok(())
    }

    fn lost(&mut self, at: Time, flow: u32, loss: &Loss) -> io::Result<()> {
        for form in [Form::Sequence, Form::Contained] {
            self.begin(form, at, flow, ["quic:packet_lost", "recovery:packet_lost"][form as usize]);
            let line = &mut self.line;
            header(line, false, loss.number);
            json::key(line, "frames");
            line.push('[');
            stream(line, form, loss.start, loss.payload);
            line.push(']');
            match loss.trigger {
                None => {}
                Some(Trigger::Reordering) => json::word(line, "trigger", "time_threshold"),
                Some(Trigger::Timeout) => json::word(line, "trigger", "pto_expired"),
            }
            self.end(form)?;
        }
        Ok(())
    }

    /// `metrics_updated` with what has changed, and `congestion_state_updated` if the phase or the recovery state has.
    fn state(&mut self, at: Time, flow: u32, state: &State) -> io::Result<()> {
        let group = &mut self.groups[flow as usize];
        let before = std::mem::replace(&mut group.state, *state);
        let rtt_before = std::mem::replace(&mut group.rtt_ns, group.latest_rtt_ns);
        let rtt = group.rtt_ns;
        let changed = |pick: fn(&State) -> Option<u64>| pick(state).filter(|_| pick(&before) != pick(state));
        let times = [
            ("min_rtt", changed(|state| state.min_rtt_ns)),
            ("smoothed_rtt", changed(|state| state.srtt_ns)),
            ("latest_rtt", rtt.filter(|_| rtt != rtt_before)),
        ];
        let numbers = [
            ("congestion_window", changed(|state| state.cwnd)),
            ("bytes_in_flight", changed(|state| state.in_flight)),
            ("ssthresh", changed(|state| state.ssthresh)),
            ("packets_in_flight", changed(|state| state.segments_in_flight)),
            ("pacing_rate", changed(|state| state.pacing_bps)),
        ];
        if times.iter().chain(&numbers).any(|(_, value)| value.is_some()) {
            for form in [Form::Sequence, Form::Contained] {
                let name = ["quic:recovery_metrics_updated", "recovery:metrics_updated"][form as usize];
                self.begin(form, at, flow, name);
                for (name, value) in times {
                    value.into_iter().for_each(|value| json::millis(&mut self.line, name, value));
                }
                for (name, value) in numbers {
                    value.into_iter().for_each(|value| json::number(&mut self.line, name, value));
                }
                self.end(form)?;
            }
        }
        if (before.phase, before.recovery) != (state.phase, state.recovery)
            && let Some(phase) = state.phase
        {
            for form in [Form::Sequence, Form::Contained] {
                let name = ["quic:congestion_state_updated", "recovery:congestion_state_updated"];
                self.begin(form, at, flow, name[form as usize]);
                if let Some(before) = before.phase {
                    json::word(&mut self.line, "old", before);
                }
                json::word(&mut self.line, "new", phase);
                if let (Form::Sequence, Some(recovery)) = (form, state.recovery) {
                    json::word(&mut self.line, "recovery_state", recovery);
                }
                self.end(form)?;
            }
        }
        Ok(())
    }

    /// An event of ours, which only the current form can have.
    fn of_path(&mut self, at: Time, flow: u32, name: &str, data: impl FnOnce(&mut String)) -> io::Result<()> {
        self.begin(Form::Sequence, at, flow, name);
        data(&mut self.line);
        self.end(Form::Sequence)
    }

    /// Begins an event, up to its data.
    fn begin(&mut self, form: Form, at: Time, flow: u32, name: &str) {
        let line = &mut self.line;
        line.clear();
        match form {
            Form::Sequence => line.push(RECORD_SEPARATOR),
            Form::Contained if self.empty => line.push('\n'),
            Form::Contained => line.push_str(",\n"),
        }
        line.push('{');
        json::key(line, "time");
        json::milliseconds(line, at.as_nanos());
        json::word(line, "name", name);
        // Without flows there is no event but a warning.
        if let Some(group) = self.groups.get(flow as usize) {
            json::text(line, "group_id", &group.label);
        }
        json::key(line, "data");
        line.push('{');
    }

    /// Ends it, and writes it.
    fn end(&mut self, form: Form) -> io::Result<()> {
        self.line.push_str("}}");
        match form {
            Form::Sequence => {
                self.line.push('\n');
                self.sequence.write_all(self.line.as_bytes())
            }
            Form::Contained => {
                self.empty = false;
                self.contained.write_all(self.line.as_bytes())
            }
        }
    }
}

fn begin_sequence(line: &mut String, header: &Header) {
    line.push(RECORD_SEPARATOR);
    line.push('{');
    json::word(line, "file_schema", "urn:ietf:params:qlog:file:sequential");
    json::word(line, "serialization_format", "application/qlog+json-seq");
    json::text(line, "title", &header.title);
    json::key(line, "trace");
    line.push('{');
    json::text(line, "description", &description(header));
    json::key(line, "common_fields");
    line.push_str(r#"{"time_format":"relative_to_epoch","reference_time":{"#);
    json::word(line, "clock_type", header.clock);
    json::word(line, "epoch", "unknown");
    line.push_str("}}");
    vantage(line);
    json::key(line, "event_schemas");
    line.push('[');
    let has = |schema: &&str| header.protocol == Protocol::Tcp || *schema != TCP_SCHEMA;
    for schema in SCHEMAS.into_iter().filter(has) {
        json::comma(line);
        line.push('"');
        line.push_str(schema);
        line.push('"');
    }
    line.push_str("]}}\n");
}

fn begin_contained(line: &mut String, header: &Header) {
    line.push('{');
    json::word(line, "qlog_version", "0.3");
    json::word(line, "qlog_format", "JSON");
    json::text(line, "title", &header.title);
    json::key(line, "traces");
    line.push_str("[{");
    json::text(line, "title", &header.title);
    json::text(line, "description", &description(header));
    vantage(line);
    json::key(line, "common_fields");
    line.push_str(r#"{"protocol_type":[""#);
    line.push_str(header.protocol.name());
    line.push_str(r#""],"time_format":"relative","reference_time":0}"#);
    json::key(line, "events");
    line.push('[');
}

/// The run, and the controller of each flow.
fn description(header: &Header) -> String {
    let flows = header.flows.iter().map(|flow| format!("{}: {}", flow.label, flow.controller));
    let flows = flows.collect::<Vec<_>>().join(", ");
    format!("world {}, seed {}; {flows}", header.world, header.seed)
}

/// Everything is seen at the sender, which opens the connection.
fn vantage(line: &mut String) {
    json::key(line, "vantage_point");
    line.push_str(r#"{"name":"sender","type":"client"}"#);
}

/// The header of a packet. A SYN and its answer have numbers of their own.
fn header(line: &mut String, syn: bool, number: u64) {
    header_in(line, if syn { Space::Initial } else { Space::Data }, number);
}

/// The header of a packet of QUIC.
fn header_in(line: &mut String, space: Space, number: u64) {
    json::key(line, "header");
    line.push('{');
    json::word(line, "packet_type", space.packet_type());
    json::number(line, "packet_number", number);
    line.push('}');
}

/// Which packet, in an event of ours.
fn numbered(line: &mut String, syn: bool, number: u64, acknowledgement: bool) {
    header(line, syn, number);
    direction(line, acknowledgement);
}

fn direction(line: &mut String, to_sender: bool) {
    json::word(line, "direction", if to_sender { "to_sender" } else { "to_receiver" });
}

fn raw(line: &mut String, length: u32, payload: u32) {
    json::key(line, "raw");
    line.push('{');
    json::number(line, "length", length as u64);
    json::number(line, "payload_length", payload as u64);
    line.push('}');
}

/// A stream frame.
fn stream(line: &mut String, form: Form, offset: u64, length: u32) {
    line.push('{');
    json::word(line, "frame_type", "stream");
    json::number(line, "stream_id", 0);
    json::number(line, "offset", offset);
    match form {
        Form::Sequence => {
            json::key(line, "raw");
            line.push('{');
            json::number(line, "payload_length", length as u64);
            line.push('}');
        }
        Form::Contained => json::number(line, "length", length as u64),
    }
    line.push('}');
}

/// Names of flags that are set.
fn flags(line: &mut String, flags: [(&str, bool); 3]) {
    for (name, _) in flags.into_iter().filter(|(_, set)| *set) {
        json::key(line, name);
        line.push_str("true");
    }
}
