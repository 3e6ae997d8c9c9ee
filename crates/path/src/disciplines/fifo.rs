//! First in, first out: the discipline that a plain queue computes without a gate.
//!
//! Source: Linux `net/sched/sch_fifo.c` (`bfifo`, `pfifo`). The path uses it behind a gate only where a test compares the two.

use crate::discipline::{Discipline, Dropped, Line, Room, Setup, Waiting};
use crate::packet::Tally;
use crate::settings::{DisciplineInfo, settings};
use fullpipe_units::{Bytes, Time};

settings! {
    /// A FIFO has no settings: its limit is the queue's.
}

pub(crate) const INFO: DisciplineInfo = DisciplineInfo {
    name: "fifo",
    summary: "first in, first out; drops what does not fit",
    source: "Linux 6.12 net/sched/sch_fifo.c",
    linux_name: Some("bfifo"),
    settings: Settings::INFO,
};

/// A FIFO.
#[derive(Debug)]
pub(crate) struct Fifo {
    limit: Room,
    line: Line,
}

impl Fifo {
    pub(crate) fn new(_: &Settings, setup: Setup) -> Fifo {
        Fifo { limit: setup.limit, line: Line::default() }
    }
}

impl Discipline for Fifo {
    fn enqueue(&mut self, _: Time, waiting: Waiting, dropped: &mut Dropped) {
        if self.limit.takes(self.line.backlog(), &waiting) {
            self.line.push(waiting);
        } else {
            dropped.overflow(waiting);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut Dropped) -> Option<Waiting> {
        self.line.pop()
    }

    fn backlog(&self) -> Tally {
        self.line.backlog()
    }

    fn set_limit(&mut self, bytes: Bytes) {
        self.limit = Room { bytes, packets: None };
    }
}
