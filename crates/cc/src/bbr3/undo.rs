//! What to return to if a loss recovery proves spurious.

use super::State;

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
    /// These are of the present episode, which is not over (docs/bbr3.md, defect 10).
    pub(crate) in_episode: bool,
    /// Nothing proves that the episode was due.
    pub(crate) is_allowed: bool,
}
