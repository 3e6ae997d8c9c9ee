//! The records of a pcap or pcapng file.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_files::Kind;
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    Block, InterfaceDescriptionBlock, OptionCode, PcapBlockOwned, PcapError, PcapHeader, create_reader,
};

use crate::error::CaptureError;
use crate::flows::{Flows, Transfer};
use crate::link::Link;
use crate::segment::Segments;
use crate::skip::{Skip, Skipped};

/// The most that libpcap keeps of a packet, bytes.
const MAXIMUM_SNAPLEN: u32 = 262_144;
/// The most that a record may have, bytes: four of the largest packets.
const MOST: usize = 4 * MAXIMUM_SNAPLEN as usize;
/// The longest header of a file, without options (pcapng's section header block), bytes.
const LONGEST_HEADER: usize = 28;
const NANOS: u128 = 1_000_000_000;
/// The most interfaces of a section.
const MOST_INTERFACES: usize = 10_000;
/// The type of pcapng's packet block, which enhanced packet blocks replaced.
const OBSOLETE_PACKET: u32 = 2;

/// What a capture holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// In the order in which they began.
    pub transfers: Vec<Transfer>,
    /// Packets of any kind.
    pub packets: u64,
    /// Of these, TCP segments.
    pub segments: u64,
    /// From its first packet to its last.
    pub duration_ns: u64,
    /// The packets that are no TCP segments or could not be read: kinds and how many of each, most packets first.
    pub skipped: Vec<(String, u64)>,
    /// Whether the file ends within a record, e.g. because the capture was killed.
    pub cut_off: bool,
    /// What a reader of the numbers should know, in sentences without a final stop.
    pub notes: Vec<String>,
}

impl Capture {
    /// Checks what holds for every capture, of a file of so many bytes. For tests and fuzzing.
    ///
    /// # Panics
    /// When something does not hold.
    #[doc(hidden)]
    pub fn check(&self, file_bytes: usize) {
        // The shortest record has 12 bytes.
        assert!(self.packets as usize <= file_bytes / 12);
        let skipped: u64 = self.skipped.iter().map(|(_, packets)| packets).sum();
        assert_eq!(self.segments + skipped, self.packets);
        assert!(self.transfers.len() as u64 <= self.segments);
        let mut flows = 0;
        for transfer in &self.transfers {
            assert!(transfer.flow <= flows && transfer.bytes > 0);
            assert!(transfer.start_ns <= self.duration_ns && transfer.pause_ns <= transfer.start_ns);
            flows = flows.max(transfer.flow + 1);
        }
        assert!(self.notes.iter().all(|note| note.len() < 400 && !note.contains(char::is_control)));
    }
}

/// Reads the regular file at `path`. Setting `stop` ends it soon.
///
/// # Errors
/// The file cannot be opened, is no capture or is damaged; or it was stopped.
pub fn read_file(path: &Path, stop: &AtomicBool) -> Result<Capture, CaptureError> {
    // However long: it is read in a buffer of fixed size.
    read(fullpipe_files::open(path, u64::MAX).map_err(CaptureError::Open)?, stop)
}

/// Reads a capture to its end. Setting `stop` ends it soon.
///
/// # Errors
/// It is no capture or is damaged; or it was stopped.
pub fn read(source: impl Read + Send, stop: &AtomicBool) -> Result<Capture, CaptureError> {
    let mut source = BufReader::with_capacity(MOST, source);
    let begun = source.fill_buf().map_err(|_| CaptureError::Refused { records: 0 })?;
    let foreign = match Kind::of_bytes(begun) {
        Some(Kind::Capture) if begun.len() < LONGEST_HEADER => CaptureError::CutOff,
        Some(Kind::Capture) => CaptureError::Damaged { records: 0 },
        _ => CaptureError::Foreign,
    };
    let mut reader = create_reader(MOST, source).map_err(|_| foreign)?;
    let mut walk = Walk::default();
    loop {
        let records = walk.records;
        if stop.load(Ordering::Relaxed) {
            return Err(CaptureError::Stopped { records });
        }
        match reader.next() {
            Ok((offset, block)) => {
                walk.block(&block)?;
                reader.consume(offset);
                walk.records += 1;
            }
            Err(PcapError::Eof) => return walk.end(false),
            Err(PcapError::Incomplete(_)) => {
                let before = reader.data().len();
                reader.refill().map_err(|_| CaptureError::Refused { records })?;
                if reader.data().len() == before && !reader.reader_exhausted() {
                    // Nothing was missing, and yet it was incomplete.
                    return Err(CaptureError::Damaged { records });
                }
            }
            Err(PcapError::UnexpectedEof) => {
                let cut_off = walk.is_cut_off(reader.data());
                return if cut_off { walk.end(true) } else { Err(CaptureError::Damaged { records }) };
            }
            Err(PcapError::BufferTooSmall) => return Err(CaptureError::TooLong { records, most: MOST }),
            Err(PcapError::ReadError) => return Err(CaptureError::Refused { records }),
            Err(_) => return Err(CaptureError::Damaged { records }),
        }
    }
}

/// An interface of the file: what its packets begin with, and how many time stamps it counts in a second.
#[derive(Clone, Copy)]
struct Interface {
    /// A link type that is not read is an error of each packet.
    link: Result<Link, i32>,
    a_second: u64,
    /// What its time stamps count from, after 1970.
    offset_ns: i128,
}

/// How many time stamps an interface counts in a second, from its option `if_tsresol`.
fn a_second(resolution: u8) -> Option<u64> {
    let exponent = u32::from(resolution & 0x7f);
    if resolution & 0x80 == 0 { 10u64.checked_pow(exponent) } else { 1u64.checked_shl(exponent) }
}

/// The option `if_tsoffset`, seconds, in the byte order of its section.
fn offset_s(interface: &InterfaceDescriptionBlock<'_>) -> i64 {
    let option = interface.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
    let bytes = option.and_then(|option| option.value.first_chunk::<8>().copied()).unwrap_or_default();
    // Its own type is 1.
    if interface.block_type == 1 { i64::from_le_bytes(bytes) } else { i64::from_be_bytes(bytes) }
}

/// A packet of an interface.
struct Packet<'a> {
    interface: u32,
    at_ns: u128,
    kept: &'a [u8],
    /// Its length when it was whole.
    length: u32,
}

/// What is known on the way through a file.
#[derive(Default)]
struct Walk {
    records: u64,
    interfaces: Vec<Interface>,
    find: Segments,
    flows: Flows,
    packets: u64,
    segments: u64,
    skipped: Skipped,
    /// The byte order of the section, in pcapng.
    big_endian: Option<bool>,
    /// Since 1970.
    first_ns: Option<u64>,
    duration_ns: u64,
}

impl Walk {
    fn block(&mut self, block: &PcapBlockOwned<'_>) -> Result<(), CaptureError> {
        let records = self.records;
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let a_second =
                    if PcapHeader::is_nanosecond_precision(header) { 1_000_000_000 } else { 1_000_000 };
                // The upper bits say how long a frame's check sequence is.
                self.interface(header.network.0 & 0xffff, a_second)
            }
            PcapBlockOwned::Legacy(packet) => {
                let interface = self.described(0)?;
                if u64::from(packet.ts_usec) >= interface.a_second {
                    return Err(CaptureError::Damaged { records });
                }
                let fraction = u128::from(packet.ts_usec) * NANOS / u128::from(interface.a_second);
                let at_ns = u128::from(packet.ts_sec) * NANOS + fraction;
                self.packet(&Packet { interface: 0, at_ns, kept: packet.data, length: packet.origlen })
            }
            PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                // Interfaces are numbered anew in each section.
                self.interfaces.clear();
                self.big_endian = Some(header.big_endian());
                Ok(())
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                let a_second = a_second(described.if_tsresol).ok_or(CaptureError::Resolution { records })?;
                self.interface(described.linktype.0, a_second)?;
                if let Some(last) = self.interfaces.last_mut() {
                    last.offset_ns = i128::from(offset_s(described)) * NANOS as i128;
                }
                Ok(())
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.described(packet.if_id)?;
                let stamp = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                let at_ns = (stamp * NANOS / u128::from(interface.a_second)) as i128 + interface.offset_ns;
                self.packet(&Packet {
                    interface: packet.if_id,
                    at_ns: at_ns.max(0) as u128,
                    kept: packet.packet_data(),
                    length: packet.origlen,
                })
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                self.skip(Skip::Untimed);
                Ok(())
            }
            PcapBlockOwned::NG(Block::Unknown(block)) if block.block_type == OBSOLETE_PACKET => {
                self.skip(Skip::Obsolete);
                Ok(())
            }
            PcapBlockOwned::NG(_) => Ok(()),
        }
    }

    fn interface(&mut self, link: i32, a_second: u64) -> Result<(), CaptureError> {
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(CaptureError::Interfaces { records: self.records, most: MOST_INTERFACES });
        }
        self.interfaces.push(Interface { link: Link::of(link).ok_or(link), a_second, offset_ns: 0 });
        Ok(())
    }

    fn described(&self, number: u32) -> Result<Interface, CaptureError> {
        let found = self.interfaces.get(number as usize).copied();
        found.ok_or(CaptureError::Interface { records: self.records, interface: number })
    }

    fn skip(&mut self, why: Skip) {
        self.packets += 1;
        self.skipped.count(why);
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), CaptureError> {
        // What is beyond the year 2500 is no time; it stays within what differences can say.
        let at_ns = packet.at_ns.min(u128::from(u64::MAX)) as u64;
        let now_ns = at_ns.saturating_sub(*self.first_ns.get_or_insert(at_ns));
        self.duration_ns = self.duration_ns.max(now_ns);
        let found = match self.interfaces[packet.interface as usize].link {
            Ok(link) => self.find.find(link, packet.kept, packet.length as usize),
            Err(number) => Err(Skip::Interface(packet.interface, number)),
        };
        match found {
            Ok(segment) => {
                self.packets += 1;
                self.segments += 1;
                segment.map_or(Ok(()), |segment| self.flows.take(now_ns, &segment))
            }
            Err(why) => {
                self.skip(why);
                Ok(())
            }
        }
    }

    /// Whether a record is incomplete because the file ends, and not because it contradicts itself.
    fn is_cut_off(&self, record: &[u8]) -> bool {
        let number = |at: usize| record.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        match self.big_endian {
            Some(true) => number(4).is_none_or(|length| u32::from_be_bytes(length) as usize > record.len()),
            Some(false) => number(4).is_none_or(|length| u32::from_le_bytes(length) as usize > record.len()),
            // The smaller of a length and the same with its bytes swapped is the length.
            None => number(8).is_none_or(|length| {
                u32::from_le_bytes(length).min(u32::from_be_bytes(length)) <= MAXIMUM_SNAPLEN
            }),
        }
    }

    fn end(self, cut_off: bool) -> Result<Capture, CaptureError> {
        if cut_off && self.packets == 0 {
            return Err(CaptureError::CutOff);
        }
        if let (0, Some(found)) = (self.segments, self.skipped.only_link()) {
            return Err(CaptureError::LinkType { found });
        }
        let ends = cut_off.then(|| {
            format!(
                "the file ends within a record, e.g. because the capture was killed: {} packets are read",
                self.packets
            )
        });
        Ok(Capture {
            transfers: self.flows.transfers(),
            packets: self.packets,
            segments: self.segments,
            duration_ns: self.duration_ns,
            skipped: self.skipped.kinds(),
            cut_off,
            notes: ends.into_iter().chain(self.skipped.notes()).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
