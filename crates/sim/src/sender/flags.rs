//! What an ACK did, for the steps after it.

/// What an ACK did (Linux: `FLAG_*` in `tcp_input.c`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) una_advanced: bool,
    pub(super) window_updated: bool,
    pub(super) data_acked: bool,
    pub(super) data_sacked: bool,
    pub(super) retransmitted_acked: bool,
    pub(super) original_delivered: bool,
    pub(super) duplicate_reported: bool,
    pub(super) duplicate_of_probe: bool,
    /// It echoes congestion marks.
    pub(super) echoed: bool,
    pub(super) retransmission_lost: bool,
    pub(super) maybe_delayed: bool,
    pub(super) set_timer: bool,
}
