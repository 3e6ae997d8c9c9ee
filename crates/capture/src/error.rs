//! Why a capture could not be read.

use thiserror::Error;

use crate::link::Link;

/// Why a capture could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file could not be opened.
    #[error("it {0}")]
    Open(fullpipe_files::FileError),
    /// It does not begin as a capture does.
    #[error(
        "it is no packet capture; expected pcap or pcapng; convert other formats with `editcap -F pcap IN OUT`"
    )]
    Foreign,
    /// Reading stopped with an error of the operating system.
    #[error("it cannot be read beyond record {records}")]
    Refused {
        /// Records read until then.
        records: u64,
    },
    /// It ends before its first packet.
    #[error("it was cut off before its first packet; copy it again, or capture again")]
    CutOff,
    /// A record is longer than any packet.
    #[error("record {records} says that it is over {most} bytes long: the file is damaged")]
    TooLong {
        /// The record.
        records: u64,
        /// What a record may have.
        most: usize,
    },
    /// A record contradicts itself.
    #[error("record {records} is damaged")]
    Damaged {
        /// The record.
        records: u64,
    },
    /// Its packets begin with a header that is not read.
    #[error("its packets are of {}, which is not read; {}", Link::name(*found), Link::way_out(*found))]
    LinkType {
        /// As in <https://www.tcpdump.org/linktypes.html>.
        found: i32,
    },
    /// More interfaces than any machine has.
    #[error("record {records} describes interface {most}; expected fewer: the file is damaged")]
    Interfaces {
        /// The record.
        records: u64,
        /// How many may be described.
        most: usize,
    },
    /// Time stamps in a unit that does not exist.
    #[error("record {records} says that time stamps count an impossible fraction of a second")]
    Resolution {
        /// The record.
        records: u64,
    },
    /// A packet of an interface that the file does not describe.
    #[error("record {records} is of interface {interface}, which the file does not describe")]
    Interface {
        /// The record.
        records: u64,
        /// Its number.
        interface: u32,
    },
    /// The caller wanted no more of it.
    #[error("reading was stopped after record {records}")]
    Stopped {
        /// Records read until then.
        records: u64,
    },
    /// More than memory is meant for.
    #[error("it holds over {most} transfers; split it with editcap -i and read a part")]
    TooMany {
        /// What may be held.
        most: usize,
    },
}
