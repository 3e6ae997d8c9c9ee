//! Captures written here, whole and spoiled.

use super::*;
use etherparse::PacketBuilder;
use proptest::prelude::*;

/// Reads a whole capture.
fn read(source: impl Read + Send) -> Result<Capture, CaptureError> {
    super::read(source, &AtomicBool::new(false))
}

#[test]
fn a_stopped_reader_ends_within_a_file_that_does_not() {
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
fn both_formats_in_both_byte_orders_and_all_units_of_time_say_the_same() {
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
fn what_is_no_capture_is_said_to_be_none() {
    for file in [&b""[..], b"not a capture", &[0x1f, 0x8b, 8, 0], &MICROS.to_le_bytes()] {
        assert!(sentence(file).starts_with("it is no packet capture"), "{file:?}");
    }
}

#[test]
fn a_file_that_ends_too_soon_is_said_to_be_cut_off() {
    let whole = classic(Order::Little, MICROS, 1, &[(0, 0), (1, 0)]);
    for kept in [30, 41, whole.len() - 1] {
        assert!(sentence(&whole[..kept]).contains("was cut off"), "{kept}");
    }
    let whole = next_generation(Order::Big, 6, &[0, 1]);
    assert!(sentence(&whole[..whole.len() - 1]).contains("was cut off"));
}

#[test]
fn an_absurd_length_is_refused_without_memory_for_it() {
    let mut file = classic(Order::Little, MICROS, 1, &[(0, 0)]);
    file[32..36].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    assert!(sentence(&file).contains("over 1048576 bytes"), "{}", sentence(&file));
}

#[test]
fn a_fraction_of_a_whole_second_is_damage() {
    let file = |micros| classic(Order::Little, MICROS, 1, &[(1, 0), (2, micros)]);
    assert!(read(&file(999_999)[..]).is_ok());
    assert!(sentence(&file(1_000_000)).contains("is damaged"));
}

#[test]
fn an_unknown_link_type_and_what_is_missing_are_named() {
    assert!(sentence(&classic(Order::Little, MICROS, 105, &[(0, 0)])).contains("link type is 105"));
    let mut strange = next_generation(Order::Little, 6, &[0]);
    let packet = next_generation(Order::Little, 6, &[]).len();
    strange[packet + 8] = 7; // The interface, after type and length.
    assert!(sentence(&strange).contains("interface 7"), "{}", sentence(&strange));
    assert!(sentence(&next_generation(Order::Little, 99, &[0])).contains("fraction of a second"));
}

#[test]
fn empty_captures_have_nothing() {
    assert_eq!(read(&classic(Order::Big, NANO, 101, &[])[..]).expect("a capture"), Capture::default());
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
