//! What a controller of ours does in the kernel's place.

use super::Call;
use super::coverage::Coverage;
use super::plausible::Unequal;

/// Fields of the largest private state.
pub(super) const MOST_FIELDS: usize = 39;
pub(super) type Fields = [u64; MOST_FIELDS];

/// A controller of ours in the kernel's place.
pub(super) trait Machine: Copy {
    /// Takes the place of a control whose memory was just cleared, on this call's connection.
    fn clear(&mut self, call: &Call);
    /// `init`: keeps of the state before it what the kernel keeps.
    fn init(&mut self, call: &Call);
    /// The values in which our socket and the kernel's must agree before the call.
    fn before(&self, call: &Call) -> Result<(), Unequal>;
    /// The connection is not established: the core may set the window freely.
    fn follow_socket(&mut self, call: &Call);
    /// Makes the call.
    fn make(&mut self, call: &Call, coverage: &mut Coverage);
    /// What the call had to return; zero if nothing.
    fn returned(&self, call: &Call) -> u32;
    /// Whether everything is comparable now, and not halfway between two calls of the kernel that are one here.
    fn is_settled(&self) -> bool;
    /// The private state, in the order of [`Ops::fields`](super::Ops::fields).
    fn fields(&self) -> Fields;
    /// What the call left of the socket: ours and the kernel's.
    fn outcome(&self, call: &Call) -> [(&'static str, u64, u64); 4];
}
