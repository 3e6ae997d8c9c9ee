use fullpipe_record::{Payload, RttSource};

use super::packet::Segment;
use super::packet::testing::{packet_header, tcp, udp};
use super::*;
use crate::frame::flag;
use crate::frame::testing::Sample;

const PORT: u16 = 10_000;

fn ms(given: u64) -> Time {
    Time::ZERO + Duration::from_millis(given)
}

/// The packets of a path of 10 ms each way.
struct Played {
    flows: Flows,
    trip: Duration,
}

impl Played {
    fn new() -> Played {
        let (_, meter) = meter(1, PORT, Some(Duration::from_millis(10)));
        Played { flows: meter.flows, trip: Duration::from_millis(10) }
    }

    fn see(&mut self, ip: &[u8], way: Way, stage: Stage, at: Time) {
        let delay = if stage == Stage::Left { self.trip } else { Duration::ZERO };
        self.flows.see(&packet_header(ip, way, stage, at, delay));
    }

    /// A packet enters at `at` and leaves 10 ms later.
    fn passes(&mut self, ip: &[u8], way: Way, at: Time) {
        self.see(ip, way, Stage::Entered, at);
        self.see(ip, way, Stage::Left, at + self.trip);
    }

    /// It ends with the last packet.
    fn end(mut self) -> Metered {
        self.flows.each.remove(0).finish()
    }

    fn end_at(self, end: Time) -> Metered {
        self.flows.finish(end).remove(0)
    }
}

/// The other way, ports are the other way round.
fn back(mut ip: Vec<u8>) -> Vec<u8> {
    ip[20..24].rotate_left(2);
    ip
}

#[test]
fn tcp_transfer_is_measured_by_sequence() {
    let mut path = Played::new();
    let syn = Segment { sequence: 999, flags: flag::SYN, ..Segment::default() };
    path.passes(&tcp(syn), Way::Forward, ms(0));
    path.passes(
        &back(tcp(Segment { sequence: 9, flags: flag::SYN, ack: Some(1000), ..Segment::default() })),
        Way::Back,
        ms(10),
    );
    let data = |number: u32| Segment {
        sequence: 1000 + number * 100,
        ack: Some(10),
        payload: 100,
        ..Segment::default()
    };
    path.passes(&tcp(data(0)), Way::Forward, ms(20));
    // Lost, and sent again.
    path.see(&tcp(data(1)), Way::Forward, Stage::Entered, ms(21));
    let ack = |number: u32| Segment { sequence: 10, ack: Some(1000 + number * 100), ..Segment::default() };
    path.passes(&back(tcp(ack(1))), Way::Back, ms(30));
    path.passes(&tcp(data(1)), Way::Forward, ms(60));
    path.passes(&back(tcp(ack(2))), Way::Back, ms(70));
    // One is still on its way.
    path.see(&tcp(data(2)), Way::Forward, Stage::Entered, ms(80));
    path.see(&tcp(data(2)), Way::Forward, Stage::Remained, ms(85));
    let metered = path.end();
    assert_eq!((metered.began, metered.last_payload, metered.on_its_way), (Some(ms(0)), ms(70), 100));
    assert_eq!((metered.delivered_bytes, metered.segments, metered.retransmits), (200, 4, Some(1)));
    let seen = metered.seen;
    assert_eq!(
        (seen.payload, seen.rtt_source, seen.rtt_samples),
        (Payload::Tcp, RttSource::SequenceNumbers, 1)
    );
    assert_eq!(
        (seen.packets, seen.lost_packets, seen.returned_packets, seen.returned_lost_packets),
        (5, 1, 3, 0)
    );
    assert_eq!((seen.sent_bytes, seen.connections), (400, 1));
    assert_eq!(seen.delay.unwrap().max_ns, 10_000_000);
    // Samples at 10, 20, ..., 80 ms.
    let series = &metered.series;
    assert_eq!((series.len(), series.time_ns[0]), (8, 10_000_000));
    assert_eq!(
        (series.delivered_bytes[2], series.delivered_bytes[3], series.delivered_bytes[7]),
        (0, 100, 200)
    );
    assert_eq!((series.srtt_ns[2], series.srtt_ns[7]), (u64::MAX, 20_000_000));
    assert_eq!((series.retransmits[4], series.retransmits[7]), (0, 1));
}

/// When samples were taken, in ms, and the bytes of each: of one datagram of 100 bytes at 105 ms, if samples are 100 ms apart.
fn samples(end: Time) -> (Vec<u64>, Vec<u64>) {
    let (_, meter) = meter(1, PORT, Some(Duration::from_millis(100)));
    let mut path = Played { flows: meter.flows, trip: Duration::from_millis(10) };
    path.passes(&udp(&[0; 100]), Way::Forward, ms(95));
    let metered = path.end_at(end);
    assert_eq!(metered.delivered_bytes, 100);
    (metered.series.time_ns.iter().map(|ns| ns / 1_000_000).collect(), metered.series.delivered_bytes)
}

#[test]
fn samples_continue_to_path_end() {
    assert_eq!(samples(ms(500)), (vec![100, 200, 300, 400, 500], vec![0, 100, 100, 100, 100]));
}

#[test]
fn partial_last_interval_is_sampled() {
    assert_eq!(samples(ms(250)), (vec![100, 200, 250], vec![0, 100, 100]));
    assert_eq!(samples(ms(170)), (vec![100, 170], vec![0, 100]));
    // Not in one of its own if it is short.
    assert_eq!(samples(ms(249)), (vec![100, 249], vec![0, 100]));
    assert_eq!(samples(ms(106)), (vec![106], vec![100]));
}

#[test]
fn never_started_flow_has_no_samples() {
    let (_, meter) = meter(2, 1, Some(Duration::from_millis(100)));
    let mut flows = meter.flows;
    let mut ip = udp(&[0; 10]);
    ip[22..24].copy_from_slice(&2_u16.to_be_bytes());
    flows.see(&packet_header(&ip, Way::Forward, Stage::Left, ms(1), Duration::ZERO));
    let lengths: Vec<usize> = flows.finish(ms(350)).iter().map(|flow| flow.series.len()).collect();
    assert_eq!(lengths, [0, 4]);
}

#[test]
fn returning_data_is_reverse_payload() {
    let mut path = Played::new();
    path.passes(&tcp(Segment { sequence: 1, flags: flag::SYN, ..Segment::default() }), Way::Forward, ms(0));
    path.passes(
        &back(tcp(Segment { sequence: 50, payload: 700, ack: Some(2), ..Segment::default() })),
        Way::Back,
        ms(10),
    );
    path.passes(&tcp(Segment { sequence: 2, ack: Some(750), ..Segment::default() }), Way::Forward, ms(20));
    let metered = path.end();
    assert_eq!((metered.delivered_bytes, metered.seen.returned_bytes, metered.seen.sent_bytes), (0, 700, 0));
}

/// A QUIC connection whose client sends; `bit` is that of datagram number i, 5 ms after the one before.
fn quic(bit: impl Fn(u64) -> bool) -> Metered {
    let mut path = Played::new();
    let mut initial = vec![0; 1200];
    initial[..6].copy_from_slice(&[0xc0, 0, 0, 0, 1, 8]);
    path.passes(&udp(&initial), Way::Forward, ms(0));
    path.passes(&back(udp(&[0x40; 30])), Way::Back, ms(1));
    for number in 0..200 {
        let mut datagram = vec![0x40; 100];
        datagram[0] |= if bit(number) { 0x20 } else { 0 };
        path.passes(&udp(&datagram), Way::Forward, ms(10 + 5 * number));
    }
    path.end()
}

#[test]
fn spin_bit_gives_quic_rtt() {
    // It changes every 30 ms.
    let metered = quic(|number| number / 6 % 2 == 1);
    assert_eq!((metered.seen.payload, metered.seen.rtt_source), (Payload::QuicUdp, RttSource::SpinBit));
    assert_eq!(metered.series.srtt_ns.last(), Some(&30_000_000));
    assert_eq!((metered.delivered_bytes, metered.retransmits), (1200 + 200 * 100, None));
    assert_eq!(metered.series.retransmits[0], fullpipe_record::UNKNOWN);
    assert_eq!((metered.segments, metered.seen.returned_bytes), (201, 30));
}

#[test]
fn non_spinning_bit_gives_no_rtt() {
    for metered in [quic(|_| false), quic(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1)] {
        assert_eq!((metered.seen.rtt_source, metered.seen.rtt_samples), (RttSource::None, 0));
        assert!(metered.series.srtt_ns.iter().all(|srtt| *srtt == u64::MAX));
    }
}

#[test]
fn remaining_datagrams_are_in_flight() {
    let mut path = Played::new();
    path.passes(&udp(&[0; 100]), Way::Forward, ms(0));
    // One is lost.
    for (number, stage) in [(1, None), (2, Some(Stage::Remained))] {
        path.see(&udp(&[0; 30]), Way::Forward, Stage::Entered, ms(number));
        stage.into_iter().for_each(|stage| path.see(&udp(&[0; 30]), Way::Forward, stage, ms(5)));
    }
    let metered = path.end();
    assert_eq!((metered.delivered_bytes, metered.on_its_way, metered.seen.lost_packets), (100, 30, 1));
}

/// A fragment with so many bytes behind its header.
fn fragment(body: usize) -> Vec<u8> {
    let mut ip = udp(&vec![0; body - 8]);
    ip[6] = 0x20;
    ip
}

#[test]
fn fragments_are_not_counted_and_said() {
    let mut path = Played::new();
    for number in 0..100 {
        path.passes(&udp(&[0; 200]), Way::Forward, ms(number));
    }
    path.passes(&fragment(200), Way::Forward, ms(101));
    // What comes back is in no measure of the sender.
    path.passes(&back(fragment(1480)), Way::Back, ms(102));
    let metered = path.end();
    assert_eq!((metered.delivered_bytes, metered.uncounted.fragments), (20_000, 200));
    assert_eq!(metered.doubts("a"), [""; 0], "a hundredth may be left out");

    let mut path = Played::new();
    path.passes(&udp(&[0; 200]), Way::Forward, ms(1));
    path.passes(&fragment(200), Way::Forward, ms(2));
    let doubts = path.end().doubts("a");
    assert!(
        doubts.len() == 1 && doubts[0].contains("200 bytes") && doubts[0].contains("fragments"),
        "{doubts:?}"
    );
}

#[test]
fn second_protocol_is_reported_as_uncounted() {
    let metered = tcp_beside_quic(false);
    assert_eq!(metered.uncounted.of_other_kinds, 2_000);
    assert_eq!(metered.doubts("a"), [""; 0]);

    let mut path = Played::new();
    let syn = Segment { sequence: 0, flags: flag::SYN, ..Segment::default() };
    path.passes(&tcp(syn), Way::Forward, ms(0));
    path.passes(&tcp(Segment { sequence: 1, payload: 100, ..Segment::default() }), Way::Forward, ms(1));
    path.passes(&udp(&[0; 1000]), Way::Forward, ms(2));
    let doubts = path.end().doubts("a");
    assert!(
        doubts.len() == 1 && doubts[0].contains("100 bytes") && doubts[0].contains("protocol"),
        "{doubts:?}"
    );
}

/// A connection by TCP and one by QUIC, which is larger. TCP tells 20 ms, and QUIC 30 ms if its bit spins.
fn tcp_beside_quic(spins: bool) -> Metered {
    let mut path = Played::new();
    let syn = Segment { sequence: 0, flags: flag::SYN, ..Segment::default() };
    path.passes(&tcp(syn), Way::Forward, ms(0));
    let mut initial = vec![0; 1200];
    initial[..6].copy_from_slice(&[0xc0, 0, 0, 0, 1, 8]);
    path.passes(&udp(&initial), Way::Forward, ms(0));
    for number in 0..20_u32 {
        let at = ms(100 * u64::from(number));
        let sequence = 1 + 100 * number;
        path.passes(&tcp(Segment { sequence, payload: 100, ..Segment::default() }), Way::Forward, at);
        let ack = Segment { ack: Some(sequence + 100), ..Segment::default() };
        path.passes(&back(tcp(ack)), Way::Back, at + Duration::from_millis(10));
        for step in 0..20 {
            let mut datagram = vec![0x40; 1000];
            let at = at + Duration::from_millis(5 * step);
            let bit = spins && (at.as_nanos() / 30_000_000) % 2 == 1;
            datagram[0] |= if bit { 0x20 } else { 0 };
            path.passes(&udp(&datagram), Way::Forward, at);
        }
    }
    path.end()
}

#[test]
fn tcp_rtt_is_not_quic_rtt() {
    let metered = tcp_beside_quic(false);
    assert_eq!((metered.seen.payload, metered.seen.rtt_source), (Payload::QuicUdp, RttSource::None));
    assert!(metered.series.srtt_ns.iter().all(|srtt| *srtt == u64::MAX));
    let metered = tcp_beside_quic(true);
    assert_eq!(metered.seen.rtt_source, RttSource::SpinBit);
    assert_eq!(metered.series.srtt_ns.last(), Some(&30_000_000));
    assert_eq!(metered.series.min_rtt_ns.last(), Some(&30_000_000));
}

#[test]
fn other_datagrams_are_no_quic() {
    let mut path = Played::new();
    for number in 0..10 {
        path.passes(&udp(&[0xc0; 100]), Way::Forward, ms(number));
    }
    let metered = path.end();
    assert_eq!((metered.seen.payload, metered.delivered_bytes), (Payload::Udp, 1000));
    assert_eq!((metered.retransmits, metered.seen.rtt_source), (None, RttSource::None));
}

#[test]
fn flows_are_distinguished_by_port() {
    let (_, meter) = meter(2, 1, None);
    let mut flows = meter.flows;
    let mut ip = udp(&[0; 10]);
    let mut see = |from: u16, to: u16| {
        ip[20..22].copy_from_slice(&from.to_be_bytes());
        ip[22..24].copy_from_slice(&to.to_be_bytes());
        flows.see(&packet_header(&ip, Way::Forward, Stage::Left, ms(1), Duration::ZERO));
    };
    see(40_000, 2);
    see(2, 40_000);
    see(40_001, 1);
    // Nobody's.
    see(40_000, 40_001);
    assert_eq!(flows.stray_bytes, 0, "it is counted where it enters");
    let counts: Vec<u64> = flows.each.into_iter().map(|flow| flow.finish().delivered_bytes).collect();
    assert_eq!(counts, [10, 20]);
}

#[test]
fn packets_of_no_flow_are_said() {
    for (strays, message) in [(1, 0), (2, 1)] {
        let (metering, meter) = meter(2, 1, None);
        drop(metering);
        let mut flows = meter.flows;
        let mut see = |from: u16, to: u16| {
            let mut ip = udp(&[0; 10]);
            ip[20..22].copy_from_slice(&from.to_be_bytes());
            ip[22..24].copy_from_slice(&to.to_be_bytes());
            flows.see(&packet_header(&ip, Way::Forward, Stage::Entered, ms(1), Duration::ZERO));
        };
        (0..99).for_each(|_| see(40_000, 2));
        (0..strays).for_each(|_| see(40_000, 40_001));
        let measured = Watched { flows, missed: 0 }.until(ms(2));
        assert_eq!(measured.stray_bytes, 10 * strays);
        let doubts = measured.doubts();
        assert_eq!(doubts.len(), message, "{doubts:?}");
        assert!(doubts.iter().all(|doubt| doubt.contains("of no flow")));
    }
}

#[test]
fn connections_are_bounded_hostile_packets_counted() {
    let mut path = Played::new();
    let mut ip = udp(&[0; 10]);
    for port in 0..5000_u16 {
        ip[20..22].copy_from_slice(&port.to_be_bytes());
        path.see(&ip, Way::Forward, Stage::Entered, ms(1));
    }
    for hostile in [&[][..], &[0x45], &[0x60; 50], &[0xff; 120]] {
        path.see(hostile, Way::Forward, Stage::Entered, ms(1));
    }
    let metered = path.end();
    let seen = metered.seen;
    assert_eq!((seen.connections, seen.packets, seen.lost_packets), (4096, 5004, 5004));
    assert_eq!(seen.sent_bytes + metered.uncounted.beyond, 5000 * 10);
    let doubts = metered.doubts("a");
    assert_eq!(doubts.len(), 1);
    assert!(
        doubts[0].starts_with("a: 9040 bytes") && doubts[0].contains("behind the first 4096"),
        "{doubts:?}"
    );
}

#[test]
fn frame_segments_keep_own_numbers() {
    let (metering, meter) = meter(1, PORT, None);
    let mut tap = Tap::new(&metering);
    for unit in Sample::data(1000, 3 * 1448 - 1).units() {
        tap.see((Way::Forward, Stage::Entered), ms(1), Duration::ZERO, &unit);
    }
    drop(tap);
    let measured = meter.run().until(ms(1));
    assert_eq!(measured.missed, 0);
    let metered = &measured.flows[0];
    assert_eq!((metered.segments, metered.retransmits), (3, Some(0)));
    assert_eq!(metered.seen.sent_bytes, 3 * 1448 - 1);
}

#[test]
fn unconsumed_data_is_counted_without_blocking() {
    let (metering, meter) = meter(1, PORT, None);
    let mut tap = Tap::new(&metering);
    let unit = Sample::data(1, 100).units().remove(0);
    let packets = (MOST_WAITING + 2) * BATCH;
    for _ in 0..packets {
        tap.see((Way::Forward, Stage::Entered), ms(1), Duration::ZERO, &unit);
    }
    let taken = std::thread::spawn(move || meter.run());
    drop(tap);
    let measured = taken.join().unwrap().until(ms(1));
    assert_eq!(measured.missed, 2 * BATCH as u64);
    assert_eq!(measured.flows[0].seen.packets, (packets - 2 * BATCH) as u64);
}
