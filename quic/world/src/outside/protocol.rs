//! What travels between this world and an adapter: `quic/adapters/PROTOCOL.md`, version 1.
//!
//! Nothing that an adapter sends is trusted: every number is checked against what was asked before anything is done with it.

use fullpipe_cc::Phase;
use fullpipe_path::Ecn;
use fullpipe_units::Time;

/// The version of the protocol.
pub(crate) const VERSION: u32 = 1;
/// No frame of an adapter is longer: what it sends in a turn at 10 Gbit/s and 50 ms.
pub(crate) const MOST_BYTES: usize = 64 << 20;
/// What is not known.
const UNKNOWN: u64 = u64::MAX;
/// Bytes of an answer in front of its departures.
const HEAD: usize = 8 * WORDS + 4;
/// Numbers of an answer.
const WORDS: usize = 16;
/// Bytes of an arrival, or of a departure, in front of its datagram.
const PACKET: usize = 16;

/// What happens in a turn, as the adapter is asked.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) now: Time,
    pub(crate) until: Time,
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) events: Vec<Event>,
}

/// A datagram that arrives.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Time,
    /// 0: at the client, which sends the data; 1: at the server.
    pub(crate) end: u8,
    pub(crate) ecn: Ecn,
    pub(crate) datagram: bytes::BytesMut,
}

/// Something that the sending application does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It writes so many bytes and then closes; `u64::MAX`: without end.
    Send { at: Time, bytes: u64 },
    /// It abandons what has not been delivered.
    Stop { at: Time },
}

impl Turn {
    /// As a frame's content.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend(self.now.as_nanos().to_le_bytes());
        out.extend(self.until.as_nanos().to_le_bytes());
        out.extend((self.arrivals.len() as u32).to_le_bytes());
        out.extend((self.events.len() as u32).to_le_bytes());
        for one in &self.arrivals {
            out.extend(one.at.as_nanos().to_le_bytes());
            out.extend([one.end, one.ecn as u8, 0, 0]);
            out.extend((one.datagram.len() as u32).to_le_bytes());
            out.extend_from_slice(&one.datagram);
        }
        for one in &self.events {
            let (at, kind, bytes) = match *one {
                Event::Send { at, bytes } => (at, 0u8, bytes),
                Event::Stop { at } => (at, 1, 0),
            };
            out.extend(at.as_nanos().to_le_bytes());
            out.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
            out.extend(bytes.to_le_bytes());
        }
    }
}

/// What an adapter says of its connection at the end of a turn. `None`: it does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reported {
    pub(crate) connected: bool,
    /// It has ended, and nobody wanted it to.
    pub(crate) failed: bool,
    /// Bytes that the receiving application has, in order.
    pub(crate) delivered: u64,
    /// When it got the latest of them.
    pub(crate) delivered_at: Option<Time>,
    /// Bytes, as all of its volumes.
    pub(crate) window: Option<u64>,
    pub(crate) ssthresh: Option<u64>,
    pub(crate) in_flight: Option<u64>,
    pub(crate) srtt_ns: Option<u64>,
    pub(crate) min_rtt_ns: Option<u64>,
    /// Bits a second of datagrams.
    pub(crate) pacing_bps: Option<u64>,
    pub(crate) bandwidth_bps: Option<u64>,
    pub(crate) lost: Option<u64>,
    pub(crate) acked: Option<u64>,
    pub(crate) timeouts: Option<u64>,
    pub(crate) phase: Option<Phase>,
}

/// The numbers that an adapter may know, by their names in `about`.
pub(crate) const TELLS: [&str; 11] = [
    "window",
    "ssthresh",
    "in_flight",
    "srtt",
    "min_rtt",
    "pacing_rate",
    "bandwidth",
    "lost",
    "acked",
    "timeouts",
    "phase",
];

/// A datagram that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) at: Time,
    pub(crate) end: u8,
    pub(crate) ecn: Ecn,
    pub(crate) datagram: std::ops::Range<usize>,
}

/// What a turn came to.
#[derive(Debug)]
pub(crate) struct Answer {
    /// When it wants a turn although nothing arrives.
    pub(crate) next: Time,
    pub(crate) reported: Reported,
    /// With the places of their datagrams in the frame.
    pub(crate) departures: Vec<Departure>,
}

fn word(frame: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&frame[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn known(number: u64) -> Option<u64> {
    (number != UNKNOWN).then_some(number)
}

/// Reads the answer to a turn. `most` is the longest datagram that the path carries.
///
/// # Errors
/// What is wrong with it, in words that go on behind the adapter's name.
pub(crate) fn read(frame: &[u8], turn: &Turn, before: &Reported, most: usize) -> Result<Answer, String> {
    let Turn { now, until, .. } = turn;
    if frame.len() < HEAD {
        return Err(format!(
            "answers a turn with {} bytes; an answer has at least {HEAD} (PROTOCOL.md)",
            frame.len()
        ));
    }
    let words: [u64; WORDS] = std::array::from_fn(|index| word(frame, 8 * index));
    if words[0] != until.as_nanos() {
        return Err(format!(
            "answers for {} ns when it was asked until {} ns; an answer repeats the turn's end",
            words[0],
            until.as_nanos()
        ));
    }
    let reported = Reported {
        connected: words[2] & 1 != 0,
        failed: words[2] & 2 != 0,
        delivered: words[3],
        delivered_at: known(words[4]).map(Time::from_nanos),
        window: known(words[5]),
        ssthresh: known(words[6]),
        in_flight: known(words[7]),
        srtt_ns: known(words[8]),
        min_rtt_ns: known(words[9]),
        pacing_bps: known(words[10]),
        bandwidth_bps: known(words[11]),
        lost: known(words[12]),
        acked: known(words[13]),
        timeouts: known(words[14]),
        phase: known(words[15]).and_then(|code| Phase::ALL.get(usize::try_from(code).ok()?).copied()),
    };
    if reported.delivered < before.delivered {
        return Err(format!(
            "takes back delivered bytes: {} after {}; they are all since the start",
            reported.delivered, before.delivered
        ));
    }
    if reported.delivered_at.is_some_and(|at| at > *until) {
        return Err(format!(
            "has delivered at {}, behind the turn's end {until}",
            reported.delivered_at.unwrap_or_default()
        ));
    }
    let count = u32::from_le_bytes([frame[HEAD - 4], frame[HEAD - 3], frame[HEAD - 2], frame[HEAD - 1]]);
    let mut departures = Vec::new();
    let mut place = HEAD;
    for index in 0..count {
        if frame.len() - place < PACKET {
            return Err(format!("says that {count} datagrams leave, and its answer ends after {index}"));
        }
        let at = Time::from_nanos(word(frame, place));
        let (end, codepoint) = (frame[place + 8], frame[place + 9]);
        let length =
            u32::from_le_bytes([frame[place + 12], frame[place + 13], frame[place + 14], frame[place + 15]])
                as usize;
        place += PACKET;
        if end > 1 {
            return Err(format!("sends from end {end}; there are 0, the client, and 1, the server"));
        }
        if at < *now {
            return Err(format!("sends at {at}, before its turn, which begins at {now}"));
        }
        if length == 0 || length > most {
            return Err(format!(
                "sends a datagram of {length} bytes; the path carries 1 to {most} (hosts.mtu)"
            ));
        }
        if frame.len() - place < length {
            return Err(format!(
                "says that a datagram has {length} bytes, and its answer ends after {}",
                frame.len() - place
            ));
        }
        let ecn = match codepoint {
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            3 => Ecn::Ce,
            _ => Ecn::NotEct,
        };
        departures.push(Departure { at, end, ecn, datagram: place..place + length });
        place += length;
    }
    if place != frame.len() {
        return Err(format!("has {} bytes behind the last datagram of its answer", frame.len() - place));
    }
    Ok(Answer { next: Time::from_nanos(words[1]), reported, departures })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_micros(millis * 1000)
    }

    /// An answer for [`turn`] with a datagram of three bytes.
    fn answer(change: impl FnOnce(&mut [u64; WORDS]), packet: (u64, u8, u32), bytes: &[u8]) -> Vec<u8> {
        let mut words = [UNKNOWN; WORDS];
        (words[0], words[1], words[2], words[3]) = (at(20).as_nanos(), at(30).as_nanos(), 1, 7);
        change(&mut words);
        let mut frame: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        frame.extend(1u32.to_le_bytes());
        frame.extend(packet.0.to_le_bytes());
        frame.extend([packet.1, 2, 0, 0]);
        frame.extend(packet.2.to_le_bytes());
        frame.extend(bytes);
        frame
    }

    fn turn() -> Turn {
        Turn { now: at(10), until: at(20), ..Turn::default() }
    }

    fn problem(frame: &[u8]) -> String {
        read(frame, &turn(), &Reported { delivered: 5, ..Reported::default() }, 1472).unwrap_err()
    }

    #[test]
    fn a_whole_answer_is_read() {
        let frame = answer(|words| words[15] = 4, (at(15).as_nanos(), 1, 3), b"abc");
        let answer = read(&frame, &turn(), &Reported::default(), 1472).unwrap();
        assert_eq!((answer.next, answer.reported.delivered, answer.reported.connected), (at(30), 7, true));
        assert_eq!((answer.reported.window, answer.reported.phase), (None, Some(Phase::Startup)));
        let [departure] = &answer.departures[..] else { panic!("{answer:?}") };
        assert_eq!((departure.at, departure.end, departure.ecn), (at(15), 1, Ecn::Ect0));
        assert_eq!(&frame[departure.datagram.clone()], b"abc");
    }

    #[test]
    fn what_cannot_be_is_a_sentence() {
        let good = (at(15).as_nanos(), 0, 3);
        let cases: [(Vec<u8>, &str); 10] = [
            (vec![0; 20], "answers a turn with 20 bytes"),
            (answer(|words| words[0] += 1, good, b"abc"), "an answer repeats the turn's end"),
            (answer(|words| words[3] = 4, good, b"abc"), "takes back delivered bytes: 4 after 5"),
            (answer(|words| words[4] = at(21).as_nanos(), good, b"abc"), "behind the turn's end"),
            (answer(|_| (), (at(9).as_nanos(), 0, 3), b"abc"), "before its turn, which begins at"),
            (answer(|_| (), (good.0, 2, 3), b"abc"), "sends from end 2"),
            (
                answer(|_| (), (good.0, 0, 1473), b"abc"),
                "sends a datagram of 1473 bytes; the path carries 1 to 1472",
            ),
            (answer(|_| (), (good.0, 0, 0), b""), "sends a datagram of 0 bytes"),
            (
                answer(|_| (), (good.0, 0, 4), b"abc"),
                "says that a datagram has 4 bytes, and its answer ends after 3",
            ),
            (answer(|_| (), good, b"abcd"), "has 1 bytes behind the last datagram"),
        ];
        for (frame, expected) in cases {
            let found = problem(&frame);
            assert!(found.contains(expected), "{found}");
        }
        let mut many = answer(|_| (), good, b"abc");
        many[HEAD - 4] = 9;
        assert!(problem(&many).contains("says that 9 datagrams leave, and its answer ends after 1"));
    }

    #[test]
    fn a_turn_is_written_as_the_protocol_says() {
        let turn = Turn {
            arrivals: vec![Arrival { at: at(12), end: 1, ecn: Ecn::Ce, datagram: (&b"xy"[..]).into() }],
            events: vec![Event::Send { at: at(11), bytes: u64::MAX }],
            ..turn()
        };
        let mut frame = Vec::new();
        turn.write(&mut frame);
        assert_eq!((word(&frame, 0), word(&frame, 8)), (at(10).as_nanos(), at(20).as_nanos()));
        assert_eq!(frame[16..24], [1, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(
            (word(&frame, 24), &frame[32..42]),
            (at(12).as_nanos(), &[1, 3, 0, 0, 2, 0, 0, 0, b'x', b'y'][..])
        );
        assert_eq!((word(&frame, 42), frame[50], word(&frame, 58)), (at(11).as_nanos(), 0, u64::MAX));
        assert_eq!(frame.len(), 66);
    }
}
