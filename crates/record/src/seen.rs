//! What was seen of a flow from outside: by its packets on the path, without a word from its hosts.
//!
//! Where nothing more is known of a flow, as of a program's, its totals hold what packets tell, and counts that only a host
//! knows are null in JSON ([`UNKNOWN`]), not zero.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A count that is not known.
pub const UNKNOWN: u64 = u64::MAX;

/// What was seen of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Which bytes count as delivered.
    pub payload: Payload,
    /// What its round-trip times are from.
    pub rtt_source: RttSource,
    /// How many round-trip times were measured.
    pub rtt_samples: u64,
    /// TCP connections, and pairs of UDP ports.
    pub connections: u64,
    /// IP packets that entered the forward path.
    pub packets: u64,
    /// Of these, packets that the path dropped.
    pub lost_packets: u64,
    /// IP packets that entered the path back.
    pub returned_packets: u64,
    /// Of these, packets that the path dropped.
    pub returned_lost_packets: u64,
    /// Payload that entered the forward path, retransmissions included.
    pub sent_bytes: u64,
    /// Payload that was delivered the other way.
    pub returned_bytes: u64,
    /// From entering the forward path to leaving it, of the packets that left it.
    pub delay: Option<Delay>,
    /// The same of the path back.
    pub returned_delay: Option<Delay>,
}

/// The payload of a flow: that of the protocol that carried most of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// Of TCP: each byte of a stream once, when the receiver acknowledges it.
    Tcp,
    /// Of UDP datagrams with QUIC in them: what QUIC adds and what it sends again count, too. Its streams are encrypted.
    QuicUdp,
    /// Of other UDP datagrams.
    #[default]
    Udp,
}

/// What round-trip times are from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RttSource {
    /// From a TCP segment that was sent once to the acknowledgement that covers it, at the sender's end of the path.
    SequenceNumbers,
    /// From one change of QUIC's spin bit to the next (RFC 9000 section 17.4), at the sender's end of the path.
    SpinBit,
    /// There are none: neither is TCP there nor a bit that spins.
    #[default]
    None,
}

/// One-way delays. Percentiles are exact to one part in 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// The shortest.
    pub min_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Writes [`UNKNOWN`] as null.
pub(crate) mod or_null {
    use super::{Deserialize, Deserializer, Serialize, Serializer, UNKNOWN};

    pub(crate) fn serialize<S: Serializer>(count: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        (*count != UNKNOWN).then_some(*count).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or(UNKNOWN))
    }
}
