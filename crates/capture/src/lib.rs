//! Packet captures as lists of TCP flows: what each flow sent, when, and where it paused.
//!
//! In reading order: [`read()`] walks the records of a pcap or pcapng file; `link` has the link types; `segment` finds the
//! TCP header in each packet, also in tunnels and where only the first bytes were kept; `skip` counts what has none; `flows`
//! puts segments together to flows.
//!
//! Made for traces of a backbone link such as MAWI's: headers only, tens of millions of packets, flows that began before
//! the capture or go on after it, packets that the capture lost. A file is read once, in a buffer of fixed size; memory
//! grows with flows and transfers only, up to [`MAX_TRANSFERS`].
#![forbid(unsafe_code)]

mod error;
mod flows;
mod link;
mod read;
mod segment;
mod skip;

pub use error::CaptureError;
pub use flows::{MAX_TRANSFERS, PAUSE_NS, Transfer};
pub use read::{Capture, read, read_file};
