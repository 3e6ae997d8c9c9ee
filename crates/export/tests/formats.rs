//! The files of a short connection, as text that a person can read, and read back.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use fullpipe_export::pcapng::Pcapng;
use fullpipe_export::qlog::Qlog;
use fullpipe_export::tcp::{Addresses, ETHERNET_BYTES};
use fullpipe_export::{
    Acknowledgement, Arrival, Codepoint, Drop, Event, Files, Flow, Header, Log, Loss, Protocol, Reader, Sent,
    State, Trigger, Why, Written, quic,
};
use fullpipe_units::Time;
use proptest::prelude::*;

const MSS: u32 = 1448;

fn header(flows: usize) -> Header {
    let flow =
        |index| Flow { label: format!("f{index}"), controller: "cubic".into(), mss: MSS, window_scale: 7 };
    Header {
        title: "a \"short\" run".into(),
        world: "sim".into(),
        seed: 7,
        clock: "virtual",
        protocol: Protocol::Tcp,
        flows: (0..flows).map(flow).collect(),
    }
}

fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1_000 + 1)
}

fn data(number: u64, segment: u64) -> Sent {
    Sent {
        number,
        start: segment * MSS as u64,
        payload: MSS,
        length: 1500,
        codepoint: Codepoint(2),
        stamp: 40,
        echo: 20,
        ..Sent::default()
    }
}

/// A handshake with ECN, three segments of which the second is lost and sent again, and their acknowledgements.
fn short(log: &mut dyn Log) {
    let syn = Sent { syn: true, ece: true, cwr: true, length: 60, stamp: 1, ..Sent::default() };
    log.take(at(0), 0, &Event::Sent(&syn));
    let answer = Acknowledgement {
        syn: true,
        ece: true,
        edge: 65_535,
        length: 60,
        stamp: 20,
        echo: 1,
        ..Acknowledgement::default()
    };
    log.take(at(40_000), 0, &Event::Acknowledged(&answer));
    for number in 0..3 {
        log.take(at(40_000), 0, &Event::Sent(&data(number, number)));
    }
    let drop = Drop {
        number: 1,
        acknowledgement: false,
        syn: false,
        queue: Some("bottleneck"),
        cause: "queue_full",
    };
    log.take(at(40_000), 0, &Event::Dropped(&drop));
    let state = State {
        cwnd: Some(14_480),
        in_flight: Some(4_344),
        segments_in_flight: Some(3),
        srtt_ns: Some(40_000_000),
        min_rtt_ns: Some(40_000_000),
        phase: Some("slow_start"),
        recovery: Some("open"),
        ..State::default()
    };
    log.take(at(40_000), 0, &Event::State(&state));
    log.take(at(60_000), 0, &Event::Arrived(&Arrival { number: 0, syn: false, codepoint: Codepoint(3) }));
    let ack = Acknowledgement { length: 52, stamp: 60, echo: 40, edge: 65_535, ..Acknowledgement::default() };
    let first = Acknowledgement { ack: 1448, ece: true, ..ack };
    log.take(at(80_000), 0, &Event::Acknowledged(&first));
    let mut second = Acknowledgement { number: 1, ack: 1448, blocks: 1, length: 64, ..ack };
    second.sack[0] = (2896, 4344);
    log.take(at(80_100), 0, &Event::Acknowledged(&second));
    let loss = Loss { number: 1, start: 1448, payload: MSS, trigger: Some(Trigger::Reordering) };
    log.take(at(80_100), 0, &Event::Lost(&loss));
    let again = Sent {
        again: Some(Why::Lost),
        codepoint: Codepoint(0),
        cwr: true,
        stamp: 80,
        echo: 60,
        ..data(3, 1)
    };
    log.take(at(80_100), 0, &Event::Sent(&again));
    let state = State { cwnd: Some(10_136), ssthresh: Some(10_136), recovery: Some("recovery"), ..state };
    log.take(at(80_100), 0, &Event::State(&state));
    let mut third = Acknowledgement { number: 2, ack: 4344, blocks: 1, duplicate: true, length: 65, ..ack };
    // A duplicate, and a request in the same packet.
    third.sack[0] = (1448, 2896);
    third.payload = 1;
    log.take(at(120_100), 0, &Event::Acknowledged(&third));
}

fn written(most: u64, report: impl FnOnce(&mut dyn Log)) -> (String, String, Vec<u8>, Written) {
    let header = header(1);
    let (mut sequence, mut contained, mut pcap) = (Vec::new(), Vec::new(), Vec::new());
    let qlog = Qlog::new(&mut sequence, &mut contained, &header).unwrap();
    let pcapng = Pcapng::new(&mut pcap, 96, "Fullpipe", "sender").unwrap();
    let mut files = Files::new(Some(qlog), Some(pcapng), &header, most);
    report(&mut files);
    let written = files.finish().unwrap();
    (String::from_utf8(sequence).unwrap(), String::from_utf8(contained).unwrap(), pcap, written)
}

/// Compares with a file in `tests/golden`; `UPDATE_GOLDEN=1` writes it anew.
fn assert_golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "{path}");
}

#[test]
fn a_sequence_is_as_it_was() {
    let (sequence, ..) = written(100, short);
    assert!(sequence.split_inclusive('\n').all(|text| text.starts_with('\x1e')));
    // Record separators are no text that a person can read.
    assert_golden("short.sqlog.txt", &sequence.replace('\x1e', "<RS>"));
}

#[test]
fn older_form_is_unchanged() {
    let (_, contained, ..) = written(100, short);
    let whole: serde_json::Value = serde_json::from_str(&contained).unwrap();
    assert_eq!(whole["traces"][0]["events"].as_array().unwrap().len(), 15);
    assert_golden("short.qlog", &contained);
}

#[test]
fn a_capture_is_as_it_was() {
    let (_, _, pcap, _) = written(100, short);
    let mut text = String::new();
    let mut rest = &pcap[..];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[4..8].try_into().unwrap()) as usize;
        let (block, after) = rest.split_at(length);
        assert_eq!(block[length - 4..], block[4..8]);
        writeln!(text, "block {:x}, {length} bytes", u32::from_le_bytes(block[..4].try_into().unwrap()))
            .unwrap();
        for line in block[8..length - 4].chunks(16) {
            let words: Vec<String> =
                line.chunks(4).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
            writeln!(text, "  {}", words.join(" ")).unwrap();
        }
        rest = after;
    }
    assert_golden("short.pcapng.txt", &text);
}

#[test]
fn exported_capture_reads_as_flow() {
    let (_, _, pcap, _) = written(100, short);
    let capture = fullpipe_capture::read(&pcap[..], &AtomicBool::new(false)).unwrap();
    assert_eq!((capture.packets, capture.segments), (9, 9));
    assert_eq!(capture.duration_ns, 120_100_000);
    // The stream, and the request that came back.
    let transfers: Vec<u64> = capture.transfers.iter().map(|transfer| transfer.bytes).collect();
    assert_eq!(transfers, [3 * MSS as u64, 1]);
}

#[test]
fn full_log_is_valid_with_note() {
    let (sequence, contained, pcap, written) = written(4, short);
    assert_eq!(written.full_at, Some(at(40_000)));
    let last = sequence.lines().last().unwrap();
    assert!(last.contains("loglevel:warning") && last.contains("ends here, at 40 ms"), "{last}");
    let whole: serde_json::Value = serde_json::from_str(&contained).unwrap();
    let events = whole["traces"][0]["events"].as_array().unwrap();
    assert_eq!(events.last().unwrap()["name"], "generic:warning");
    let capture = fullpipe_capture::read(&pcap[..], &AtomicBool::new(false)).unwrap();
    assert_eq!(capture.packets, 4);
    assert!(pcap.windows(9).any(|part| part == b"ends here"));
}

#[test]
fn a_log_without_flows_is_whole() {
    let (mut sequence, mut contained) = (Vec::new(), Vec::new());
    Qlog::new(&mut sequence, &mut contained, &header(0)).unwrap().finish(None).unwrap();
    let whole: serde_json::Value = serde_json::from_slice(&contained).unwrap();
    assert_eq!(whole["traces"][0]["events"], serde_json::json!([]));
}

/// Fails after some bytes, as a full disk does.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn first_error_stops_all_writing() {
    let header = header(1);
    let pcapng = Pcapng::new(Full(400), 96, "Fullpipe", "sender").unwrap();
    let mut files = Files::new(None, Some(pcapng), &header, 100);
    short(&mut files);
    assert!(files.failed());
    assert_eq!(files.finish().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
}

/// A client's first packets, one of which is dropped, and one taken for lost.
fn over_quic(log: &mut dyn Log) {
    use quic::Space;
    let packet = |space, number, payload| {
        let length = 30 + <[u8]>::len(payload) as u32;
        quic::Packet { space, number, length, payload, rtt_ns: None }
    };
    let mut take = |micros, event: quic::Event<'_>| log.take(at(micros), 0, &Event::Quic(&event));
    // CRYPTO and padding; a stream frame with a length and one without; frames of every other kind.
    take(0, quic::Event::Sent(packet(Space::Initial, 0, &[0x06, 0, 2, 9, 9, 0, 0, 0])));
    take(1, quic::Event::Sent(packet(Space::Data, 0, &[0x0a, 2, 1, 9, 0x0d, 6, 40, 9, 9])));
    let (queue, cause) = (Some("bottleneck"), "queue_full");
    take(
        1,
        quic::Event::Dropped(quic::Drop { space: Space::Data, number: 0, to_sender: false, queue, cause }),
    );
    take(
        20_000,
        quic::Event::Arrived(quic::Arrival { space: Space::Initial, number: 0, codepoint: Codepoint(3) }),
    );
    let answer = quic::Packet {
        rtt_ns: Some(40_000_000),
        ..packet(Space::Handshake, 7, &[0x03, 9, 25, 1, 1, 3, 2, 7, 8, 9, 0x1e, 0x01])
    };
    take(40_000, quic::Event::Received(answer));
    let trigger = quic::Trigger::Packets;
    take(40_000, quic::Event::Lost(quic::Loss { space: Space::Data, number: 0, trigger }));
    take(
        40_000,
        quic::Event::Lost(quic::Loss { space: Space::Data, number: 1, trigger: quic::Trigger::Time }),
    );
    let mut rest = vec![
        0x04, 4, 1, 6, 0x05, 8, 2, 0x10, 37, 0x11, 4, 38, 0x13, 9, 0x14, 1, 0x15, 4, 3, 0x16, 2, 0x19, 6,
    ];
    rest.extend([0x18, 1, 0, 2, 0xab, 0x0d]);
    rest.extend([7; 16]);
    rest.extend([0x1a; 9]);
    rest.extend([0x1b; 9]);
    rest.extend([0x1c, 1, 2, 1, b'x', 0x40, 0xac, 1]);
    take(50_000, quic::Event::Received(packet(Space::Data, 8, &rest)));
    let state = State {
        cwnd: Some(12_000),
        in_flight: Some(0),
        srtt_ns: Some(40_000_000),
        phase: Some("slow_start"),
        ..State::default()
    };
    log.take(at(50_000), 0, &Event::State(&state));
}

#[test]
fn quic_packets_are_unchanged() {
    let header = Header { protocol: Protocol::Quic, world: "quic".into(), ..header(1) };
    let (mut sequence, mut contained) = (Vec::new(), Vec::new());
    let qlog = Qlog::new(&mut sequence, &mut contained, &header).unwrap();
    // The file holds as many packets as there are: what else happened does not count.
    let mut files = Files::new(Some(qlog), None, &header, 4);
    over_quic(&mut files);
    assert_eq!(files.finish().unwrap(), Written { full_at: None });
    let (sequence, contained) = (String::from_utf8(sequence).unwrap(), String::from_utf8(contained).unwrap());
    let whole: serde_json::Value = serde_json::from_str(&contained).unwrap();
    assert_eq!(whole["traces"][0]["common_fields"]["protocol_type"], serde_json::json!(["QUIC"]));
    for text in sequence.split_terminator('\n') {
        serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\x1e')).unwrap();
    }
    assert_golden("quic.sqlog.txt", &sequence.replace('\x1e', "<RS>"));
    assert_golden("quic.qlog", &contained);
}

#[test]
fn quic_packets_are_not_tcp_segments() {
    let mut read = there_and_back(1);
    over_quic(&mut read);
    assert_eq!(read.gathered.0, <[String; 0]>::default());
}

/// Gathers events as text.
#[derive(Default)]
struct Gathered(Vec<String>);

impl Log for Gathered {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        self.0.push(format!("{at} {flow} {event:?}"));
    }
}

/// Makes frames of events, and events of those.
struct ThereAndBack {
    addresses: Addresses,
    reader: Reader,
    gathered: Gathered,
}

impl Log for ThereAndBack {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        if let Some(frame) = self.addresses.frame(flow, event) {
            let ip = &frame.bytes[ETHERNET_BYTES..];
            let length = frame.length - ETHERNET_BYTES as u32;
            self.reader.packet(at, frame.inbound, ip, length, &mut self.gathered);
        }
    }
}

fn there_and_back(flows: usize) -> ThereAndBack {
    // Scaled windows lose their lowest bits.
    let mut header = header(flows);
    header.flows.iter_mut().for_each(|flow| flow.window_scale = 0);
    let addresses = Addresses::of(&header.flows, 96);
    ThereAndBack { addresses, reader: Reader::new(10_000, flows), gathered: Gathered::default() }
}

#[test]
fn frames_read_back_as_events() {
    let mut reported = Gathered::default();
    short(&mut reported);
    let mut read = there_and_back(1);
    short(&mut read);
    // What only the sender knows is not in packets: states, drops, and when and why something was taken for lost.
    let of_packets = |events: Vec<String>| -> Vec<String> {
        let kept =
            events.into_iter().filter(|event| event.contains("Sent") || event.contains("Acknowledged"));
        kept.map(|event| event.replace("Some(Lost)", "Some(Unknown)")).collect()
    };
    assert_eq!(of_packets(read.gathered.0), of_packets(reported.0));
}

proptest! {
    /// Whatever bytes a packet has, nothing panics.
    #[test]
    fn any_bytes_are_read(packets in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..120)), 0..30)) {
        let mut read = there_and_back(2);
        short(&mut read);
        for (inbound, mut bytes) in packets {
            if bytes.len() >= 24 {
                (bytes[0], bytes[9]) = (0x45, 6);
                bytes[22..24].copy_from_slice(&10_000u16.to_be_bytes());
            }
            let length = bytes.len() as u32;
            read.reader.packet(at(1), inbound, &bytes, length, &mut read.gathered);
        }
    }

    /// Every transmission is acknowledged at most once, and those that are not sent again exactly once.
    #[test]
    fn ack_is_for_last_transmission(steps in prop::collection::vec((0u64..40, 0u64..40, any::<bool>()), 1..200)) {
        let (mut sequence, mut contained) = (Vec::new(), Vec::new());
        let mut qlog = Qlog::new(&mut sequence, &mut contained, &header(1)).unwrap();
        let (mut next, mut number, mut acked) = (0u64, 0u64, 0u64);
        let mut last = std::collections::BTreeMap::new();
        for (one, other, repeats) in steps {
            if repeats && acked < next {
                let seq = acked + one % (next - acked);
                last.insert(seq, number);
                qlog.take(at(number), 0, &Event::Sent(&Sent { again: Some(Why::Lost), ..data(number, seq) })).unwrap();
                number += 1;
            } else {
                last.insert(next, number);
                qlog.take(at(number), 0, &Event::Sent(&data(number, next))).unwrap();
                (next, number) = (next + 1, number + 1);
            }
            let from = acked + one % (next - acked + 1);
            let to = (from + other).min(next);
            let mut ack = Acknowledgement { ack: acked * MSS as u64, ..Acknowledgement::default() };
            if from > acked && to > from {
                ack.blocks = 1;
                ack.sack[0] = (from * MSS as u64, to * MSS as u64);
            } else if from == acked && to > from {
                acked = to;
                ack.ack = acked * MSS as u64;
            }
            qlog.take(at(number), 0, &Event::Acknowledged(&ack)).unwrap();
        }
        let all = Acknowledgement { ack: next * MSS as u64, ..Acknowledgement::default() };
        qlog.take(at(number), 0, &Event::Acknowledged(&all)).unwrap();
        qlog.finish(None).unwrap();
        let whole: serde_json::Value = serde_json::from_slice(&contained).unwrap();
        let mut reported = std::collections::BTreeSet::new();
        for event in whole["traces"][0]["events"].as_array().unwrap() {
            for frame in event["data"]["frames"].as_array().unwrap_or(&vec![]) {
                for range in frame["acked_ranges"].as_array().unwrap_or(&vec![]) {
                    let [first, last] = [0, 1].map(|place| range[place].as_u64().unwrap());
                    for number in first..=last {
                        prop_assert!(reported.insert(number), "{number} twice");
                    }
                }
            }
        }
        // A segment that was reported and then sent again in vain is told once.
        prop_assert!(reported.len() <= last.len());
        prop_assert!(reported.iter().all(|one| *one < number));
    }
}
