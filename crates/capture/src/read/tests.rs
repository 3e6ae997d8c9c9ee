//! Captures written here, whole and spoiled.

use super::*;
use etherparse::PacketBuilder;
use proptest::prelude::*;

/// Reads a whole capture.
fn read(source: impl Read + Send) -> Result<Capture, CaptureError> {
    super::read(source, &AtomicBool::new(false))
}

#[test]
fn stopped_reader_ends_on_endless_file() {
    let stop = AtomicBool::new(false);
    /// Sets the flag once much of it has been read.
    struct Endless<'a, I>(&'a AtomicBool, I, usize);
    impl<I: Iterator<Item = u8>> Read for Endless<'_, I> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.2 += buffer.len();
            self.0.store(self.2 > 10_000_000, Ordering::Relaxed);
            for (byte, next) in buffer.iter_mut().zip(&mut self.1) {
                *byte = next;
            }
            Ok(buffer.len())
        }
    }
    let file = classic(Order::Little, MICROS, 1, &[(1, 0)]);
    let (header, record) = file.split_at(24);
    let bytes = header.iter().chain(record.iter().cycle()).copied();
    let endless = Endless(&stop, bytes, 0);
    assert!(matches!(super::read(endless, &stop), Err(CaptureError::Stopped { .. })));
}

const HEADERS: usize = 96;

/// A packet of 1000 bytes of payload on Ethernet, cut to its headers; and how long it was.
fn packet(sequence: u32) -> (Vec<u8>, u32) {
    let step = PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(1000, 80, sequence, 65_535);
    let mut bytes = Vec::new();
    step.write(&mut bytes, &[0; 1000]).expect("a packet");
    let length = bytes.len() as u32;
    bytes.truncate(HEADERS);
    (bytes, length)
}

/// A byte order of numbers in a file.
#[derive(Clone, Copy, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, number: u16) -> [u8; 2] {
        match self {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        }
    }

    fn u32(self, number: u32) -> [u8; 4] {
        match self {
            Order::Little => number.to_le_bytes(),
            Order::Big => number.to_be_bytes(),
        }
    }
}

/// A classic file with packets at these times (seconds, fraction), each following the one before in sequence.
fn classic(order: Order, magic: u32, link: u32, times: &[(u32, u32)]) -> Vec<u8> {
    let mut file = order.u32(magic).to_vec();
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    for field in [0, 0, HEADERS as u32, link] {
        file.extend(order.u32(field));
    }
    for (index, (seconds, fraction)) in times.iter().enumerate() {
        let (bytes, length) = packet(1000 * index as u32);
        for field in [*seconds, *fraction, bytes.len() as u32, length] {
            file.extend(order.u32(field));
        }
        file.extend(bytes);
    }
    file
}

fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = order.u32(12 + body.len() as u32);
    [&order.u32(kind), &length, body, &length].concat()
}

/// A pcapng file; time stamps count `10^-digits` s.
fn next_generation(order: Order, digits: u8, stamps: &[u64]) -> Vec<u8> {
    let section = [&order.u32(0x1a2b_3c4d)[..], &order.u16(1), &order.u16(0), &[0xff; 8]].concat();
    let resolution = [&order.u16(9)[..], &order.u16(1), &[digits, 0, 0, 0], &[0; 4]].concat();
    let interface = [&order.u16(1)[..], &order.u16(0), &order.u32(96), &resolution].concat();
    let mut file = [block(order, 0x0a0d_0d0a, &section), block(order, 1, &interface)].concat();
    for (index, stamp) in stamps.iter().enumerate() {
        let (bytes, length) = packet(1000 * index as u32);
        let fields = [0, (stamp >> 32) as u32, *stamp as u32, bytes.len() as u32, length];
        let body = [fields.map(|field| order.u32(field)).concat(), bytes].concat();
        file.extend(block(order, 6, &body));
    }
    file
}

fn transfers(file: &[u8]) -> Vec<(u64, u64, u64)> {
    let capture = read(file).expect("a capture");
    capture.transfers.iter().map(|transfer| (transfer.start_ns, transfer.pause_ns, transfer.bytes)).collect()
}

const MICROS: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;

#[test]
fn formats_byte_orders_and_units_agree() {
    let expected = [(0, 0, 2000), (1_050_000_000, 1_000_000_000, 1000)];
    for order in [Order::Little, Order::Big] {
        let micros = classic(order, MICROS, 1, &[(9, 900_000), (9, 950_000), (10, 950_000)]);
        assert_eq!(transfers(&micros), expected, "{order:?}");
        let nanos = classic(order, NANO, 1, &[(9, 900_000_000), (9, 950_000_000), (10, 950_000_000)]);
        assert_eq!(transfers(&nanos), expected, "{order:?}");
        for digits in [3, 6, 9] {
            let unit = 10u64.pow(u32::from(digits));
            let stamps = [9_900, 9_950, 10_950].map(|ms| ms * unit / 1000);
            assert_eq!(transfers(&next_generation(order, digits, &stamps)), expected, "{order:?} {digits}");
        }
    }
}

#[test]
fn counts_and_duration() {
    let capture = read(&classic(Order::Little, MICROS, 1, &[(1, 0), (3, 5)])[..]).expect("a capture");
    assert_eq!((capture.packets, capture.segments, capture.duration_ns), (2, 2, 2_000_005_000));
}

fn sentence(file: &[u8]) -> String {
    read(file).expect_err("an error").to_string()
}

#[test]
fn non_capture_is_reported_as_such() {
    for file in [&b""[..], b"not a capture", &[0x1f, 0x8b, 8, 0], b"abc"] {
        assert!(sentence(file).starts_with("it is no packet capture"), "{file:?}");
    }
}

#[test]
fn truncated_record_keeps_earlier_packets() {
    let whole = classic(Order::Little, MICROS, 1, &[(0, 0), (1, 0)]);
    let one = whole.len() - (16 + HEADERS);
    for kept in [one + 1, one + 15, one + 16, whole.len() - 1] {
        let capture = read(&whole[..kept]).expect("a capture");
        assert_eq!((capture.packets, capture.segments, capture.cut_off), (1, 1, true), "{kept}");
        assert!(capture.notes[0].contains("ends within a record") && capture.notes[0].contains("1 packets"));
    }
    assert!(!read(&whole[..one]).expect("a capture").cut_off);
    for order in [Order::Little, Order::Big] {
        let whole = next_generation(order, 6, &[0, 1]);
        let capture = read(&whole[..whole.len() - 1]).expect("a capture");
        assert_eq!((capture.packets, capture.cut_off), (1, true));
    }
    // Without a packet, there is nothing to say.
    let header = classic(Order::Little, MICROS, 1, &[]);
    for kept in [4, 5, 23] {
        assert!(sentence(&header[..kept]).contains("cut off before its first packet"), "{kept}");
    }
    for kept in [4, 11, 27, 40] {
        let begun = &next_generation(Order::Big, 6, &[0])[..kept];
        assert!(sentence(begun).contains("cut off before its first packet"), "{kept}");
    }
}

#[test]
fn contradictory_record_is_not_truncation() {
    for order in [Order::Little, Order::Big] {
        let mut file = next_generation(order, 6, &[0, 1]);
        let last = file.len() - next_generation(order, 6, &[0]).len() + next_generation(order, 6, &[]).len();
        // More of the packet than its block has room for.
        let kept = last + 20;
        file[kept..kept + 4].copy_from_slice(&order.u32(5000));
        assert!(sentence(&file).contains("record 3 is damaged"), "{}", sentence(&file));
        let mut file = classic(order, MICROS, 1, &[(0, 0), (1, 0)]);
        let kept = file.len() - HEADERS - 8;
        file[kept..kept + 4].copy_from_slice(&order.u32(MAXIMUM_SNAPLEN + 1));
        assert!(sentence(&file).contains("record 2 is damaged"), "{}", sentence(&file));
    }
}

#[test]
fn absurd_length_is_refused_without_allocation() {
    let mut file = classic(Order::Little, MICROS, 1, &[(0, 0)]);
    file[32..36].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    assert!(sentence(&file).contains("over 1048576 bytes"), "{}", sentence(&file));
}

#[test]
fn full_second_fraction_is_damage() {
    let file = |micros| classic(Order::Little, MICROS, 1, &[(1, 0), (2, micros)]);
    assert!(read(&file(999_999)[..]).is_ok());
    assert!(sentence(&file(1_000_000)).contains("is damaged"));
}

#[test]
fn unsupported_link_type_names_remedy() {
    let of = |link| sentence(&classic(Order::Little, MICROS, link, &[(0, 0)]));
    assert!(of(105).contains("IEEE 802.11, link type 105") && of(105).contains("without monitor mode"));
    assert!(of(127).contains("radiotap"));
    assert!(of(195).contains("IEEE 802.15.4") && of(195).contains("tcpdump -i eth0"));
    assert!(of(299).contains("link type 299"));
    // The upper bits say that frames end with a check sequence of four bytes.
    assert_eq!(read(&classic(Order::Big, MICROS, 0x5000_0001, &[(0, 0)])[..]).expect("read").segments, 1);
}

#[test]
fn interface_description_errors_are_named() {
    let mut strange = next_generation(Order::Little, 6, &[0]);
    let packet = next_generation(Order::Little, 6, &[]).len();
    strange[packet + 8] = 7; // The interface, after type and length.
    assert!(sentence(&strange).contains("interface 7"), "{}", sentence(&strange));
    assert!(sentence(&next_generation(Order::Little, 99, &[0])).contains("fraction of a second"));
    let interfaces = next_generation(Order::Little, 6, &[])[28..].repeat(10_001);
    let many = [&next_generation(Order::Little, 6, &[])[..28], &interfaces].concat();
    assert!(sentence(&many).contains("describes interface 10000"), "{}", sentence(&many));
}

/// An interface block: its link type and options.
fn interface(order: Order, link: u16, options: &[u8]) -> Vec<u8> {
    block(order, 1, &[&order.u16(link)[..], &order.u16(0), &order.u32(0), options].concat())
}

/// A packet block of an interface at a time.
fn enhanced(order: Order, interface: u32, stamp: u32, bytes: &[u8]) -> Vec<u8> {
    let fields = [interface, 0, stamp, bytes.len() as u32, bytes.len() as u32];
    let padding = vec![0; bytes.len().next_multiple_of(4) - bytes.len()];
    block(order, 6, &[&fields.map(|field| order.u32(field)).concat(), bytes, &padding].concat())
}

fn section(order: Order) -> Vec<u8> {
    next_generation(order, 6, &[])[..28].to_vec()
}

#[test]
fn packets_of_unsupported_interfaces_are_counted() {
    let order = Order::Little;
    let file = [
        section(order),
        interface(order, 1, &[]),
        interface(order, 127, &[]),
        enhanced(order, 1, 5, &[0; 40]),
        enhanced(order, 0, 10, &packet(0).0),
        enhanced(order, 1, 20, &[0; 40]),
        // Packet blocks without a time, and in the obsolete form.
        block(order, 3, &[0; 24]),
        block(order, 2, &[0; 24]),
    ];
    let capture = read(&file.concat()[..]).expect("a capture");
    assert_eq!((capture.packets, capture.segments), (5, 1));
    assert_eq!(
        capture.skipped,
        [
            ("of interface 1 (IEEE 802.11 with a radiotap header, link type 127)".to_owned(), 2),
            ("without a time stamp".to_owned(), 1),
            ("in pcapng's obsolete form".to_owned(), 1),
        ]
    );
    assert!(capture.notes[0].starts_with("4 packets were skipped: 2 of interface 1 (IEEE 802.11"));
    assert!(capture.notes[1].ends_with("so that packets have Ethernet headers"), "{:?}", capture.notes);
    // Without the Ethernet interface, nothing is readable.
    let foreign = [section(order), interface(order, 127, &[]), enhanced(order, 0, 5, &[0; 40])].concat();
    assert!(sentence(&foreign).contains("radiotap"));
}

#[test]
fn skipped_packets_are_counted_by_kind() {
    let order = Order::Big;
    let arp = [&[1; 12], &[8, 6][..], &[0; 46]].concat();
    let mut file = [section(order), interface(order, 1, &[])].concat();
    file.extend(enhanced(order, 0, 1, &packet(0).0));
    (0..3).for_each(|at| file.extend(enhanced(order, 0, at, &arp)));
    for number in 0..7u8 {
        let other = [&[1; 12], &[9, number][..], &[0; 46]].concat();
        file.extend(enhanced(order, 0, 1, &other));
    }
    let notes = read(&file[..]).expect("a capture").notes;
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with("10 packets were skipped: 3 ARP, 1 of EtherType 0x0900, "), "{notes:?}");
    assert!(notes[0].ends_with(", 3 others") && notes[0].len() < 200, "{notes:?}");
}

#[test]
fn counted_packet_kinds_are_bounded() {
    let order = Order::Little;
    let mut file = [section(order), interface(order, 1, &[])].concat();
    for number in 0x0900..0x1900u16 {
        let other = [&[1; 12], &number.to_be_bytes()[..], &[0; 2]].concat();
        file.extend(enhanced(order, 0, 1, &other));
    }
    let skipped = read(&file[..]).expect("a capture").skipped;
    assert_eq!(skipped.len(), 1001);
    assert_eq!(skipped[0], ("of other kinds".to_owned(), 0x1000 - 1000));
}

#[test]
fn timestamps_use_interface_unit_and_offset() {
    for order in [Order::Little, Order::Big] {
        let offset: Vec<u8> = match order {
            Order::Little => 10i64.to_le_bytes().to_vec(),
            Order::Big => 10i64.to_be_bytes().to_vec(),
        };
        // In parts of 2^-10 s; in microseconds after 10 s.
        let binary = [&order.u16(9)[..], &order.u16(1), &[0x8a, 0, 0, 0]].concat();
        let later = [&order.u16(14)[..], &order.u16(8), &offset].concat();
        let file = [
            section(order),
            interface(order, 1, &binary),
            interface(order, 1, &later),
            enhanced(order, 0, 512, &packet(0).0),
            enhanced(order, 1, 1, &packet(1000).0),
        ];
        let found = transfers(&file.concat());
        assert_eq!(found, [(0, 0, 1000), (9_500_001_000, 9_500_001_000, 1000)], "{order:?}");
    }
}

#[test]
fn a_modified_classic_file_is_read() {
    // Kuznetzov's: eight bytes more in each record.
    let mut file = classic(Order::Little, 0xa1b2_cd34, 1, &[]);
    for index in 0..2 {
        let (bytes, length) = packet(1000 * index);
        for field in [index, 0, bytes.len() as u32, length, 0, 0] {
            file.extend(Order::Little.u32(field));
        }
        file.extend(bytes);
    }
    assert_eq!(transfers(&file), [(0, 0, 1000), (1_000_000_000, 1_000_000_000, 1000)]);
}

#[test]
fn empty_captures_have_nothing() {
    assert_eq!(read(&classic(Order::Big, NANO, 101, &[])[..]).expect("a capture"), Capture::default());
}

/// Small whole files with every link type, tunnel and fragment, in both formats and byte orders.
fn corpus() -> Vec<Vec<u8>> {
    let packets = crate::segment::tests::samples();
    let in_classic = |order: Order, magic: u32, link: u16, packet: &[u8]| {
        let mut file = classic(order, magic, link.into(), &[]);
        let length = packet.len() as u32;
        for second in 0..2 {
            for field in [second, 7, length, length] {
                file.extend(order.u32(field));
            }
            file.extend(packet);
        }
        file
    };
    let mut files: Vec<Vec<u8>> = packets
        .iter()
        .enumerate()
        .map(|(index, (link, packet))| match index % 3 {
            0 => in_classic(Order::Little, MICROS, *link, packet),
            1 => in_classic(Order::Big, NANO, *link, packet),
            _ => {
                let order = if index % 2 == 0 { Order::Little } else { Order::Big };
                [section(order), interface(order, *link, &[]), enhanced(order, 0, 5, packet).repeat(2)]
                    .concat()
            }
        })
        .collect();
    // One with all of them, each on an interface of its own.
    let order = Order::Little;
    let mut all = section(order);
    packets.iter().for_each(|(link, _)| all.extend(interface(order, *link, &[])));
    for (number, (_, packet)) in packets.iter().enumerate() {
        all.extend(enhanced(order, number as u32, 100 * number as u32, packet));
    }
    files.push(all);
    files
}

#[test]
fn every_corpus_file_is_read_completely() {
    for file in corpus() {
        let capture = read(&file[..]).expect("a capture");
        capture.check(file.len());
        assert!(!capture.cut_off && capture.packets > 0);
        // Alone in its file, a fragment lacks its first one.
        let whole = capture.skipped.iter().all(|(kind, _)| kind == "IP fragments without their first one");
        assert!(whole, "{:?}", capture.skipped);
    }
}

/// Mutates the corpus as often as `FULLPIPE_FUZZ_RUNS` says. With `FULLPIPE_CORPUS`, writes it there, too.
#[test]
fn fuzzed_files_are_read_or_refused() {
    let corpus = corpus();
    if let Some(folder) = std::env::var_os("FULLPIPE_CORPUS") {
        std::fs::create_dir_all(&folder).expect("a folder");
        for (number, file) in corpus.iter().enumerate() {
            std::fs::write(Path::new(&folder).join(format!("{number}")), file).expect("a file");
        }
    }
    let runs = std::env::var("FULLPIPE_FUZZ_RUNS").map_or(20_000, |runs| runs.parse().expect("a number"));
    // xorshift64*, so that each run repeats.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    };
    let mut readable = 0u64;
    for _ in 0..runs {
        let mut file = corpus[below(corpus.len())].clone();
        for _ in 0..=below(4) {
            let at = below(file.len());
            match below(6) {
                0 => file[at] = below(256) as u8,
                1 => file[at] ^= 1 << below(8),
                2 => file[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
                3 => file.truncate(at.max(1)),
                4 => {
                    let end = file.len().min(at + below(40));
                    let part = file[at..end].to_vec();
                    let to = below(file.len());
                    file.splice(to..to, part);
                }
                _ => {
                    let other = &corpus[below(corpus.len())];
                    let from = below(other.len());
                    file.truncate(at.max(1));
                    file.extend(&other[from..]);
                }
            }
        }
        if let Ok(capture) = read(&file[..]) {
            capture.check(file.len());
            readable += 1;
        }
    }
    // Most mutations leave something to read: else this would test the first bytes alone.
    assert!(readable > runs / 3, "{readable} of {runs}");
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), as_ng: bool) {
        let start = if as_ng { next_generation(Order::Little, 6, &[5]) } else { classic(Order::Little, MICROS, 1, &[]) };
        let file = [start, bytes].concat();
        if let Ok(capture) = read(&file[..]) {
            // The shortest record has 16 bytes.
            prop_assert!(capture.packets as usize <= file.len() / 16);
        }
    }

    #[test]
    fn a_spoiled_byte_never_panics(at in 0usize..500, value: u8, as_ng: bool) {
        let mut file = if as_ng {
            next_generation(Order::Big, 6, &[1, 2, 3])
        } else {
            classic(Order::Big, MICROS, 1, &[(0, 1), (0, 2), (0, 3)])
        };
        let at = at % file.len();
        file[at] = value;
        if let Ok(capture) = read(&file[..]) {
            prop_assert!(capture.packets <= 3);
        }
    }
}
