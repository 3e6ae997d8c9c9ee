//! `path.router`: the words of a router, which are those of `tc`.

use super::sizes::Counted;
use crate::document::{PathDocument, Router};
use crate::error::ScenarioError;
use crate::quantity::Size;
use crate::queue;
use crate::unit::Unit;

/// What the bottleneck and the loss behind it take or drop as one.
pub(super) fn unit(document: &PathDocument) -> Option<Unit> {
    document.unit.or(document.router.map(|Router::Tbf| Unit::Burst))
}

/// What the bottleneck counts of a packet.
pub(super) fn counted(document: &PathDocument) -> Counted {
    document.router.map_or(Counted::Packet, |Router::Tbf| Counted::Frame)
}

/// A router's queue is described by `rate`, `burst` and `buffer`, as that of `tc`.
pub(super) fn check(Router::Tbf: Router, document: &PathDocument) -> Result<(), ScenarioError> {
    const FIELD: &str = "path.router";
    let with = |problem: &str| ScenarioError::new(FIELD, "tbf", problem);
    if document.deliveries.is_some() {
        return Err(with("is given together with deliveries")
            .expected("router together with rate, burst and buffer")
            .fix("remove router"));
    }
    if document.burst.is_none() {
        return Err(ScenarioError::missing("path.burst")
            .expected("the depth of the router's bucket (burst of tc-tbf)")
            .write("\"32 KB\""));
    }
    if let Some(written) = &document.buffer
        && let Size::Packets(_) = written.read("path.buffer")?
    {
        return Err(written
            .error("path.buffer", "is a number of packets")
            .expected("bytes or bandwidth-delay products: the limit of tc-tbf is in bytes")
            .write("\"100 KB\""));
    }
    if !queue::read("path.queue", &document.queue)?.is_fifo() {
        let given = document.queue.as_deref().unwrap_or_default();
        return Err(ScenarioError::new("path.queue", given, "is not the queue of a router with tbf")
            .expected("fifo, which tc-tbf has by itself")
            .fix("remove queue, or remove router"));
    }
    Ok(())
}
