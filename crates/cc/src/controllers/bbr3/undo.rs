//! What to return to if a loss recovery proves spurious.

use super::State;

/// The losses that one reduction answers (docs/explanation/bbr3.md, defect 10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Episode {
    /// There is none.
    #[default]
    None,
    /// It is not over.
    Present,
    /// Its recovery has ended. QUIC may find more losses of packets that left before it began, which begin no other (RFC 9002 7.3.2).
    Over,
}

/// The state before the recovery (draft section 5.5.11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Undo {
    /// The window, bytes.
    pub(crate) prior_cwnd: u64,
    pub(crate) bw_shortterm: u64,
    pub(crate) inflight_shortterm: u64,
    pub(crate) inflight_longterm: u64,
    /// The state that a loss ended.
    pub(crate) state: Option<State>,
    /// That of the others.
    pub(crate) episode: Episode,
    /// Nothing proves that the episode was due.
    pub(crate) is_allowed: bool,
}
