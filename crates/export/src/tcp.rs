//! Events as Ethernet frames with IPv4 and TCP, as they would pass the sender's interface.
//!
//! The addresses are those that the emulator uses: 100.64.0.1 sends to 100.64.0.2, and flow `i` has port 10000 + `i` at both ends.
//! Both streams begin at sequence number 1, behind the SYN. The payload is zeros.

use crate::event::{Acknowledgement, Event, Flow, Sent, Why};

/// Length of an Ethernet header.
pub const ETHERNET_BYTES: usize = 14;
/// Ethernet header of a packet from the sender, then of one to it: locally administered addresses, and IPv4.
const ETHERNET: [[u8; ETHERNET_BYTES]; 2] =
    [[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]];

const NEAR: [u8; 4] = [100, 64, 0, 1];
const FAR: [u8; 4] = [100, 64, 0, 2];
const FIRST_PORT: u32 = 10_000;
/// Flows that share a pair of addresses.
const PORTS: u32 = 50_000;

const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const TTL: u8 = 64;
const TCP: u8 = 6;
/// Do not fragment.
const DF: u16 = 0x4000;

const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// What the sender's own window shows: it receives next to nothing.
const SENDERS_WINDOW: u16 = 502;
/// The window in a SYN, which is not scaled.
const UNSCALED_WINDOW: u16 = 64_240;
const SENDERS_SCALE: u8 = 7;

/// The Ethernet header before an IPv4 packet from the sender, or to it if `inbound`.
pub fn ethernet(inbound: bool) -> &'static [u8; ETHERNET_BYTES] {
    &ETHERNET[inbound as usize]
}

/// Composes the frames of a run's flows.
#[derive(Debug)]
pub struct Addresses {
    flows: Vec<Ends>,
    snaplen: usize,
    frame: Vec<u8>,
}

/// What the frames of a flow have in common.
#[derive(Debug)]
struct Ends {
    addresses: [[u8; 4]; 2],
    port: u16,
    mss: u16,
    window_scale: u8,
    /// Packets sent by each end, for their identification.
    packets: [u16; 2],
}

/// A frame: its first bytes, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// As many as the file keeps, at most.
    pub bytes: &'a [u8],
    /// All bytes.
    pub length: u32,
    /// Whether it arrives at the sender.
    pub inbound: bool,
    /// What its headers do not show: that it is a retransmission, and why.
    pub comment: Option<&'static str>,
}

/// A TCP segment to be composed.
struct Segment {
    flags: u8,
    sequence: u32,
    acknowledgement: u32,
    window: u16,
    codepoint: u8,
    payload: usize,
    comment: Option<&'static str>,
}

impl Addresses {
    /// Of these flows; `snaplen` is how much of a frame is kept.
    pub fn of(flows: &[Flow], snaplen: u32) -> Addresses {
        let ends = |(index, flow): (usize, &Flow)| {
            let (host, port) = (index as u32 / PORTS, index as u32 % PORTS);
            let host = |[a, b, _, d]: [u8; 4]| [a, b, host as u8, d];
            Ends {
                addresses: [host(NEAR), host(FAR)],
                port: (FIRST_PORT + port) as u16,
                // The option says what fits without options; a segment has less by those for timestamps.
                mss: (flow.mss + 12).min(u16::MAX as u32) as u16,
                window_scale: flow.window_scale.min(14),
                packets: [0; 2],
            }
        };
        let flows = flows.iter().enumerate().map(ends).collect();
        Addresses { flows, snaplen: snaplen as usize, frame: Vec::new() }
    }

    /// The frame of an event that is a packet at the sender.
    pub fn frame(&mut self, flow: u32, event: &Event<'_>) -> Option<Frame<'_>> {
        match event {
            Event::Sent(sent) => Some(self.sent(flow as usize, sent)),
            Event::Acknowledged(ack) => Some(self.acknowledged(flow as usize, ack)),
            _ => None,
        }
    }

    fn sent(&mut self, flow: usize, sent: &Sent) -> Frame<'_> {
        let mut options = Vec::with_capacity(20);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let echoes = flag(sent.ece, ECE) | flag(sent.cwr, CWR);
        let segment = if sent.syn {
            self.syn_options(&mut options, flow, SENDERS_SCALE, [sent.stamp, 0]);
            Segment {
                flags: SYN | echoes,
                sequence: 0,
                acknowledgement: 0,
                window: UNSCALED_WINDOW,
                codepoint: sent.codepoint.0,
                payload: 0,
                comment: retransmission(sent),
            }
        } else {
            stamps(&mut options, sent.stamp, sent.echo);
            Segment {
                flags: ACK | echoes,
                sequence: number(sent.start),
                acknowledgement: number(sent.requests),
                window: SENDERS_WINDOW,
                codepoint: sent.codepoint.0,
                payload: sent.payload as usize,
                comment: retransmission(sent),
            }
        };
        self.compose(flow, false, &segment, &options)
    }

    fn acknowledged(&mut self, flow: usize, ack: &Acknowledgement) -> Frame<'_> {
        let mut options = Vec::with_capacity(40);
        let scale = self.flows[flow].window_scale;
        let echo = if ack.ece { ECE } else { 0 };
        let segment = if ack.syn {
            self.syn_options(&mut options, flow, scale, [ack.stamp, ack.echo]);
            Segment {
                flags: SYN | ACK | echo,
                sequence: 0,
                acknowledgement: 1,
                window: ack.edge.min(u16::MAX as u64) as u16,
                codepoint: ack.codepoint.0,
                payload: 0,
                comment: None,
            }
        } else {
            stamps(&mut options, ack.stamp, ack.echo);
            let blocks = &ack.sack[..ack.blocks as usize];
            if !blocks.is_empty() {
                options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
                for (start, end) in blocks {
                    options.extend(number(*start).to_be_bytes());
                    options.extend(number(*end).to_be_bytes());
                }
            }
            let window = ack.edge.saturating_sub(ack.ack) >> scale;
            Segment {
                flags: ACK | echo | if ack.payload > 0 { PSH } else { 0 },
                sequence: number(ack.start),
                acknowledgement: number(ack.ack),
                window: window.min(u16::MAX as u64) as u16,
                codepoint: ack.codepoint.0,
                payload: ack.payload as usize,
                comment: None,
            }
        };
        self.compose(flow, true, &segment, &options)
    }

    /// The options of a SYN or its answer, in Linux's order: MSS, SACK permitted, timestamps, window scale.
    fn syn_options(&self, options: &mut Vec<u8>, flow: usize, scale: u8, [stamp, echo]: [u32; 2]) {
        let [high, low] = self.flows[flow].mss.to_be_bytes();
        options.extend([2, 4, high, low, 4, 2, 8, 10]);
        options.extend(stamp.to_be_bytes());
        options.extend(echo.to_be_bytes());
        options.extend([1, 3, 3, scale]);
    }

    fn compose(&mut self, flow: usize, inbound: bool, segment: &Segment, options: &[u8]) -> Frame<'_> {
        let ends = &mut self.flows[flow];
        let headers = IP_BYTES + TCP_BYTES + options.len();
        let length = headers + segment.payload;
        let identification = ends.packets[inbound as usize];
        ends.packets[inbound as usize] = identification.wrapping_add(1);
        let [mut from, mut to] = ends.addresses;
        if inbound {
            (from, to) = (to, from);
        }
        let frame = &mut self.frame;
        frame.clear();
        frame.extend(ethernet(inbound));
        frame.extend([0x45, segment.codepoint & 3]);
        frame.extend((length as u16).to_be_bytes());
        frame.extend(identification.to_be_bytes());
        frame.extend(DF.to_be_bytes());
        frame.extend([TTL, TCP, 0, 0]);
        frame.extend(from);
        frame.extend(to);
        let check = checksum(sum(&frame[ETHERNET_BYTES..], 0));
        frame[ETHERNET_BYTES + 10..ETHERNET_BYTES + 12].copy_from_slice(&check);
        let tcp = frame.len();
        frame.extend(ends.port.to_be_bytes());
        frame.extend(ends.port.to_be_bytes());
        frame.extend(segment.sequence.to_be_bytes());
        frame.extend(segment.acknowledgement.to_be_bytes());
        frame.extend([(((TCP_BYTES + options.len()) / 4) << 4) as u8, segment.flags]);
        frame.extend(segment.window.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(options);
        // Zeros add nothing but their length.
        let pseudo = TCP as u32 + (length - IP_BYTES) as u32;
        let check = checksum(sum(&frame[tcp..], sum(&from, sum(&to, pseudo))));
        frame[tcp + 16..tcp + 18].copy_from_slice(&check);
        let length = ETHERNET_BYTES + length;
        frame.resize(length.min(self.snaplen.max(frame.len())), 0);
        Frame { bytes: frame, length: length as u32, inbound, comment: segment.comment }
    }
}

/// Wireshark finds retransmissions by its own rule, which calls most of a recovery with SACK out of order.
fn retransmission(sent: &Sent) -> Option<&'static str> {
    sent.again.map(|why| match why {
        Why::Lost => "retransmission: lost",
        Why::TimedOut => "retransmission: timeout",
        Why::Probe => "retransmission: tail loss probe",
        Why::Unknown => "retransmission",
    })
}

/// The sequence number of byte `byte` of a stream, which begins behind the SYN.
fn number(byte: u64) -> u32 {
    byte.wrapping_add(1) as u32
}

fn stamps(options: &mut Vec<u8>, stamp: u32, echo: u32) {
    options.extend([1, 1, 8, 10]);
    options.extend(stamp.to_be_bytes());
    options.extend(echo.to_be_bytes());
}

/// Adds 16-bit words to a sum (RFC 1071). `bytes` are even.
pub fn sum(bytes: &[u8], before: u32) -> u32 {
    let words = bytes.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]) as u32);
    words.fold(before, u32::wrapping_add)
}

/// The checksum of a sum.
pub fn checksum(sum: u32) -> [u8; 2] {
    let once = (sum & 0xffff) + (sum >> 16);
    let twice = (once & 0xffff) + (once >> 16);
    (!(twice as u16)).to_be_bytes()
}
