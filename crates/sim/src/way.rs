//! One direction of a path, as a run sees it.

use fullpipe_path::{Carrier, Chain, Hops};
use fullpipe_units::Time;

use crate::flow::Flow;
use crate::packet::Load;

/// What carries one direction, and looks on while a run goes on. What nobody logs costs nothing: the paths of such runs do
/// nothing then.
pub(crate) trait Way: Carrier<Self::Load> {
    type Load: Load;

    /// An event of this flow is over. Only the forward path is told.
    #[inline(always)]
    fn after_event(&mut self, _now: Time, _flow: &Flow) {}
}

impl<L: Load> Way for Chain<L> {
    type Load = L;
}

impl<L: Load> Way for Hops<L> {
    type Load = L;
}
