//! Looking ahead: with many flows, what the next events need is fetched into the caches while earlier ones are handled.
//!
//! The paths know which packets arrive next, the agenda which timer is next. Each of them is looked at several times,
//! the nearer the deeper: the packet itself, then its flow, then the windows that the flow points to. No result depends on it.

use crate::flow::Flow;
use crate::packet::Load;
use crate::way::Way;

/// Flows that the caches of a core hold, about.
const FEW: usize = 128;
/// How many arrivals ahead a packet is fetched, ...
const PACKET: usize = 12;
/// ... its flow ...
const FLOW: usize = 6;
/// ... and the windows that the flow points to.
const WINDOW: usize = 3;

/// What has been fetched.
#[derive(Debug)]
pub(crate) struct Lookahead {
    many: bool,
    /// The flows whose timers are first and second.
    first: usize,
    second: usize,
}

impl Lookahead {
    pub(crate) fn new(flows: usize) -> Lookahead {
        Lookahead { many: flows > FEW, first: 0, second: 0 }
    }

    /// Whether there is anything to do. The rest is out of line, so that it costs few flows nothing.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.many
    }

    /// A segment is about to be taken from the path.
    #[inline(never)]
    pub(crate) fn at_segment(path: &impl Way, flows: &[Flow]) {
        path.prefetch(PACKET);
        if let Some((packet, _)) = path.ahead(FLOW) {
            flows[packet.class as usize].prefetch_receiver();
        }
        if let Some((packet, _)) = path.ahead(WINDOW) {
            flows[packet.class as usize].prefetch_waiting();
        }
    }

    /// An acknowledgement is about to be taken from the path.
    #[inline(never)]
    pub(crate) fn at_acknowledgement(path: &impl Way, flows: &[Flow]) {
        path.prefetch(PACKET);
        if let Some((packet, _)) = path.ahead(FLOW) {
            flows[packet.class as usize].prefetch_sender();
        }
        if let Some((packet, load)) = path.ahead(WINDOW)
            && let Some(ack) = load.acknowledgement()
        {
            flows[packet.class as usize].prefetch_window(ack);
        }
    }

    /// After an event: timers of these flows are next.
    #[inline(never)]
    pub(crate) fn at_timers(&mut self, [first, second]: [usize; 2], flows: &[Flow]) {
        if first != self.first
            && let Some(flow) = flows.get(first)
        {
            if first != self.second {
                flow.prefetch_sending();
            }
            flow.prefetch_for_timer();
            self.first = first;
        }
        if second != self.second
            && let Some(flow) = flows.get(second)
        {
            flow.prefetch_sending();
            self.second = second;
        }
    }
}
