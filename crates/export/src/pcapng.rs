//! pcapng files (draft-ietf-opsawg-pcapng): one section, one interface, little-endian, times in nanoseconds.

use std::io::{self, Write};

use fullpipe_units::Time;

use crate::tcp::Frame;

/// Ethernet (`LINKTYPE_ETHERNET`).
const ETHERNET: u16 = 1;
/// Of `if_tsresol`: powers of ten.
const NANOSECONDS: u8 = 9;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

/// Writes packets as they are told.
#[derive(Debug)]
pub struct Pcapng<W: Write> {
    out: W,
    snaplen: u32,
    packets: u64,
    latest: Time,
    block: Vec<u8>,
}

/// An option of a block: its code and its value.
type Field<'a> = (u16, &'a [u8]);

impl<W: Write> Pcapng<W> {
    /// Begins a file whose packets are cut behind `snaplen` bytes. `application` wrote it, `name` is the place where the packets
    /// were seen.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(out: W, snaplen: u32, application: &str, name: &str) -> io::Result<Pcapng<W>> {
        let mut file = Pcapng { out, snaplen, packets: 0, latest: Time::ZERO, block: Vec::new() };
        let mut section = Vec::new();
        section.extend(0x1a2b_3c4d_u32.to_le_bytes());
        section.extend(1u16.to_le_bytes());
        section.extend(0u16.to_le_bytes());
        // The length of the section is not known.
        section.extend((-1i64).to_le_bytes());
        file.block(SECTION, &section, &[], &[(4, application.as_bytes())])?;
        let mut interface = Vec::new();
        interface.extend(ETHERNET.to_le_bytes());
        interface.extend(0u16.to_le_bytes());
        interface.extend(snaplen.to_le_bytes());
        file.block(INTERFACE, &interface, &[], &[(2, name.as_bytes()), (9, &[NANOSECONDS])])?;
        Ok(file)
    }

    /// How much it keeps of a packet.
    pub fn snaplen(&self) -> u32 {
        self.snaplen
    }

    /// A packet of which `frame.bytes` are known: at least what the file keeps of it, or all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn packet(&mut self, at: Time, frame: Frame<'_>) -> io::Result<()> {
        let Frame { bytes, length, inbound, comment } = frame;
        let kept = bytes.len().min(self.snaplen as usize);
        let mut head = [0; 20];
        let words = [0, (at.as_nanos() >> 32) as u32, at.as_nanos() as u32, kept as u32, length];
        for (place, word) in head.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let direction = if inbound { 1u32 } else { 2 };
        self.packets += 1;
        self.latest = self.latest.max(at);
        let direction = direction.to_le_bytes();
        let fields: [Field<'_>; 2] = [(2, &direction), (1, comment.unwrap_or_default().as_bytes())];
        self.block(PACKET, &head, &bytes[..kept], &fields[..1 + usize::from(comment.is_some())])
    }

    /// Ends the file with the number of packets, and a comment.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, comment: Option<&str>) -> io::Result<W> {
        let nanos = self.latest.as_nanos();
        let mut head = Vec::new();
        for word in [0, (nanos >> 32) as u32, nanos as u32] {
            head.extend(word.to_le_bytes());
        }
        let received = self.packets.to_le_bytes();
        let fields: &[Field<'_>] = match comment {
            Some(comment) => &[(1, comment.as_bytes()), (4, &received)],
            None => &[(4, &received)],
        };
        self.block(STATISTICS, &head, &[], fields)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// A block: its fixed part, data, and options.
    fn block(&mut self, kind: u32, head: &[u8], data: &[u8], fields: &[Field<'_>]) -> io::Result<()> {
        let block = &mut self.block;
        block.clear();
        block.extend(kind.to_le_bytes());
        block.extend([0; 4]);
        block.extend(head);
        block.extend(data);
        pad(block);
        for (code, value) in fields {
            // An option has 16 bits for its length.
            let value = &value[..value.len().min(u16::MAX as usize)];
            block.extend(code.to_le_bytes());
            block.extend((value.len() as u16).to_le_bytes());
            block.extend_from_slice(value);
            pad(block);
        }
        if !fields.is_empty() {
            block.extend([0; 4]);
        }
        let length = (block.len() as u32 + 4).to_le_bytes();
        block[4..8].copy_from_slice(&length);
        block.extend(length);
        self.out.write_all(block)
    }
}

/// Fills up to a multiple of four bytes.
fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}
