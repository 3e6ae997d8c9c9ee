//! Packets of QUIC, as they are.

use std::io::{self, Write};

use fullpipe_units::Time;

use super::{Form, Qlog, direction, header_in, json, raw};
use crate::quic::{Ack, Event, Frame, Packet, Trigger, frames};

const FORMS: [Form; 2] = [Form::Sequence, Form::Contained];

impl<W: Write> Qlog<W> {
    pub(super) fn of_quic(&mut self, at: Time, flow: u32, event: &Event<'_>) -> io::Result<()> {
        match event {
            Event::Sent(packet) => {
                self.packet(at, flow, ["quic:packet_sent", "transport:packet_sent"], packet)
            }
            Event::Received(packet) => {
                let group = &mut self.groups[flow as usize];
                group.latest_rtt_ns = packet.rtt_ns.or(group.latest_rtt_ns);
                self.packet(at, flow, ["quic:packet_received", "transport:packet_received"], packet)
            }
            Event::Lost(loss) => {
                for form in FORMS {
                    self.begin(form, at, flow, ["quic:packet_lost", "recovery:packet_lost"][form as usize]);
                    header_in(&mut self.line, loss.space, loss.number);
                    let trigger = match loss.trigger {
                        Trigger::Packets => "reordering_threshold",
                        Trigger::Time => "time_threshold",
                    };
                    json::word(&mut self.line, "trigger", trigger);
                    self.end(form)?;
                }
                Ok(())
            }
            Event::Arrived(arrival) => self.of_path(at, flow, "path:packet_arrived", |data| {
                header_in(data, arrival.space, arrival.number);
                direction(data, false);
                json::word(data, "ecn", arrival.codepoint.name());
            }),
            Event::Dropped(drop) => self.of_path(at, flow, "path:packet_dropped", |data| {
                header_in(data, drop.space, drop.number);
                direction(data, drop.to_sender);
                if let Some(queue) = drop.queue {
                    json::text(data, "queue", queue);
                }
                json::word(data, "cause", drop.cause);
            }),
        }
    }

    fn packet(&mut self, at: Time, flow: u32, names: [&str; 2], packet: &Packet<'_>) -> io::Result<()> {
        for form in FORMS {
            self.begin(form, at, flow, names[form as usize]);
            let line = &mut self.line;
            header_in(line, packet.space, packet.number);
            json::key(line, "frames");
            line.push('[');
            for one in frames(packet.payload) {
                json::comma(line);
                line.push('{');
                frame(line, form, &one);
                line.push('}');
            }
            line.push(']');
            raw(line, packet.length, packet.payload.len() as u32);
            self.end(form)?;
        }
        Ok(())
    }
}

/// The fields of a frame.
fn frame(line: &mut String, form: Form, frame: &Frame<'_>) {
    let kind = |line: &mut String, name: &str| json::word(line, "frame_type", name);
    match *frame {
        Frame::Padding(bytes) => {
            kind(line, "padding");
            match form {
                Form::Sequence => lengths(line, None, bytes),
                Form::Contained => json::number(line, "payload_length", bytes),
            }
        }
        Frame::Ping => kind(line, "ping"),
        Frame::Ack(ref one) => {
            kind(line, "ack");
            ack(line, one);
        }
        Frame::ResetStream { stream, error: number, final_size } => {
            kind(line, "reset_stream");
            json::number(line, "stream_id", stream);
            error(line, form, number);
            json::number(line, "final_size", final_size);
        }
        Frame::StopSending { stream, error: number } => {
            kind(line, "stop_sending");
            json::number(line, "stream_id", stream);
            error(line, form, number);
        }
        Frame::Crypto { offset, length } => {
            kind(line, "crypto");
            json::number(line, "offset", offset);
            match form {
                Form::Sequence => lengths(line, Some(length), length),
                Form::Contained => json::number(line, "length", length),
            }
        }
        Frame::Stream { stream, offset, length, explicit, fin } => {
            kind(line, "stream");
            json::number(line, "stream_id", stream);
            json::number(line, "offset", offset);
            if fin {
                json::key(line, "fin");
                line.push_str("true");
            }
            match form {
                Form::Sequence => lengths(line, explicit.then_some(length), length),
                Form::Contained => json::number(line, "length", length),
            }
        }
        Frame::MaxData(maximum) => {
            kind(line, "max_data");
            json::number(line, "maximum", maximum);
        }
        Frame::MaxStreamData { stream, maximum } => {
            kind(line, "max_stream_data");
            json::number(line, "stream_id", stream);
            json::number(line, "maximum", maximum);
        }
        Frame::MaxStreams { uni, maximum } => {
            kind(line, "max_streams");
            stream_type(line, uni);
            json::number(line, "maximum", maximum);
        }
        Frame::DataBlocked(limit) => {
            kind(line, "data_blocked");
            json::number(line, "limit", limit);
        }
        Frame::StreamDataBlocked { stream, limit } => {
            kind(line, "stream_data_blocked");
            json::number(line, "stream_id", stream);
            json::number(line, "limit", limit);
        }
        Frame::StreamsBlocked { uni, limit } => {
            kind(line, "streams_blocked");
            stream_type(line, uni);
            json::number(line, "limit", limit);
        }
        Frame::NewConnectionId { sequence, retire_prior_to, id } => {
            kind(line, "new_connection_id");
            json::number(line, "sequence_number", sequence);
            json::number(line, "retire_prior_to", retire_prior_to);
            json::hexadecimal(line, "connection_id", id);
        }
        Frame::RetireConnectionId(sequence) => {
            kind(line, "retire_connection_id");
            json::number(line, "sequence_number", sequence);
        }
        Frame::PathChallenge => kind(line, "path_challenge"),
        Frame::PathResponse => kind(line, "path_response"),
        Frame::ConnectionClose { by_application, error: number } => {
            kind(line, "connection_close");
            json::word(line, "error_space", if by_application { "application" } else { "transport" });
            error(line, form, number);
        }
        Frame::HandshakeDone => kind(line, "handshake_done"),
        Frame::Unknown(number) => {
            kind(line, "unknown");
            json::number(line, ["frame_type_bytes", "raw_frame_type"][form as usize], number);
        }
    }
}

fn ack(line: &mut String, ack: &Ack<'_>) {
    json::millis(line, "ack_delay", ack.delay_ns());
    json::key(line, "acked_ranges");
    line.push('[');
    for (lowest, highest) in ack.ranges() {
        json::comma(line);
        line.push('[');
        json::digits(line, lowest);
        line.push(',');
        json::digits(line, highest);
        line.push(']');
    }
    line.push(']');
    for (name, count) in ["ect0", "ect1", "ce"].into_iter().zip(ack.marks.unwrap_or_default()) {
        if ack.marks.is_some() {
            json::number(line, name, count);
        }
    }
}

/// A length that the wire has, and that of the data.
fn lengths(line: &mut String, length: Option<u64>, payload: u64) {
    json::key(line, "raw");
    line.push('{');
    if let Some(length) = length {
        json::number(line, "length", length);
    }
    json::number(line, "payload_length", payload);
    line.push('}');
}

/// An error, which only its number tells.
fn error(line: &mut String, form: Form, number: u64) {
    if form == Form::Sequence {
        json::word(line, "error", "unknown");
    }
    json::number(line, "error_code", number);
}

fn stream_type(line: &mut String, uni: bool) {
    json::word(line, "stream_type", if uni { "unidirectional" } else { "bidirectional" });
}
