//! The records of a pcap or pcapng file.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapHeader, create_reader};

use crate::error::CaptureError;
use crate::flows::{Flows, Transfer};
use crate::segment::{Link, segment};

/// The most that a record may have, bytes: four of the largest packets (`MAXIMUM_SNAPLEN` of libpcap is 262 144).
const MOST: usize = 1 << 20;
const NANOS: u128 = 1_000_000_000;

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
    let mut reader = create_reader(MOST, source).map_err(|_| CaptureError::Foreign)?;
    let mut walk = Walk::default();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(CaptureError::Stopped { records: walk.records });
        }
        match reader.next() {
            Ok((offset, block)) => {
                walk.block(&block)?;
                reader.consume(offset);
                walk.records += 1;
            }
            Err(PcapError::Eof) => return Ok(walk.end()),
            Err(PcapError::Incomplete(_)) => {
                let before = reader.data().len();
                reader.refill().map_err(|_| CaptureError::Refused { records: walk.records })?;
                if reader.data().len() == before && !reader.reader_exhausted() {
                    // Nothing was missing, and yet it was incomplete.
                    return Err(CaptureError::Damaged { records: walk.records });
                }
            }
            Err(PcapError::UnexpectedEof) => return Err(CaptureError::CutOff { records: walk.records }),
            Err(PcapError::BufferTooSmall) => {
                return Err(CaptureError::TooLong { records: walk.records, most: MOST });
            }
            Err(PcapError::ReadError) => return Err(CaptureError::Refused { records: walk.records }),
            Err(_) => return Err(CaptureError::Damaged { records: walk.records }),
        }
    }
}

/// An interface of the file: what its packets begin with, and how many time stamps it counts in a second.
#[derive(Clone, Copy)]
struct Interface {
    link: Link,
    a_second: u64,
}

/// What is known on the way through a file.
#[derive(Default)]
struct Walk {
    records: u64,
    interfaces: Vec<Interface>,
    flows: Flows,
    packets: u64,
    segments: u64,
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
                self.interface(header.network.0, a_second)
            }
            PcapBlockOwned::Legacy(packet) => {
                let interface = self.described(0)?;
                if u64::from(packet.ts_usec) >= interface.a_second {
                    return Err(CaptureError::Damaged { records });
                }
                let fraction = u128::from(packet.ts_usec) * NANOS / u128::from(interface.a_second);
                self.packet(interface, u128::from(packet.ts_sec) * NANOS + fraction, packet.data)
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                // Interfaces are numbered anew in each section.
                self.interfaces.clear();
                Ok(())
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                let a_second = described.ts_resolution().ok_or(CaptureError::Resolution { records })?;
                self.interface(described.linktype.0, a_second)
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.described(packet.if_id)?;
                // An interface's offset (if_tsoffset) is left out: only differences count.
                let stamp = u128::from(packet.ts_high) << 32 | u128::from(packet.ts_low);
                self.packet(interface, stamp * NANOS / u128::from(interface.a_second), packet.packet_data())
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => Err(CaptureError::Untimed { records }),
            PcapBlockOwned::NG(_) => Ok(()),
        }
    }

    fn interface(&mut self, link: i32, a_second: u64) -> Result<(), CaptureError> {
        let link = Link::of(link).ok_or(CaptureError::LinkType { found: link })?;
        self.interfaces.push(Interface { link, a_second });
        Ok(())
    }

    fn described(&self, number: u32) -> Result<Interface, CaptureError> {
        let found = self.interfaces.get(number as usize).copied();
        found.ok_or(CaptureError::Interface { records: self.records, interface: number })
    }

    fn packet(&mut self, interface: Interface, at_ns: u128, bytes: &[u8]) -> Result<(), CaptureError> {
        // What is beyond the year 2500 is no time; it stays within what differences can say.
        let at_ns = at_ns.min(u128::from(u64::MAX)) as u64;
        let now_ns = at_ns.saturating_sub(*self.first_ns.get_or_insert(at_ns));
        self.packets += 1;
        self.duration_ns = self.duration_ns.max(now_ns);
        let Some(segment) = segment(interface.link, bytes) else { return Ok(()) };
        self.segments += 1;
        self.flows.take(now_ns, &segment)
    }

    fn end(self) -> Capture {
        Capture {
            transfers: self.flows.transfers(),
            packets: self.packets,
            segments: self.segments,
            duration_ns: self.duration_ns,
        }
    }
}

#[cfg(test)]
mod tests;
