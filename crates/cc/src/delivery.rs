//! The delivery-rate sampler of Linux (`net/ipv4/tcp_rate.c`) and draft-ietf-ccwg-bbr section 4.5.2.
//!
//! The transport keeps one [`TxState`] a transmitted segment and shows it again when that segment is delivered.

/// What a sender notes when a segment leaves. Times are wrapping microseconds and counters wrap too: differences are
/// taken modulo 2^32, which is exact while a segment is outstanding for less than 35 minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxState {
    /// When it left.
    pub sent_us: u32,
    /// Start of the send interval that it will end (Linux: `tx.first_tx_mstamp`).
    pub first_sent_us: u32,
    /// Connection's `delivered_time` when it left (Linux: `tx.delivered_mstamp`).
    pub delivered_us: u32,
    /// Connection's `delivered` when it left.
    pub delivered: u32,
    /// Connection's `lost` when it left.
    pub lost: u32,
    /// Segments in flight when it left, itself included, and in the top bit whether the application limited the sender.
    pub in_flight_and_app_limited: u32,
}
