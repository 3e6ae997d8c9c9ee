//! The log that writes files.

use std::io::{self, Write};

use fullpipe_units::Time;

use crate::event::{Event, Header, Log};
use crate::pcapng::Pcapng;
use crate::qlog::Qlog;
use crate::quic;
use crate::tcp::Addresses;

/// Writes what it is told: a qlog in both forms, a pcapng file, or all of them.
///
/// After an error, and once its most packets are written, it writes nothing more. What it has written by then is complete when
/// it is [finished](Files::finish).
#[derive(Debug)]
pub struct Files<W: Write> {
    qlog: Option<Qlog<W>>,
    pcapng: Option<(Pcapng<W>, Addresses)>,
    /// Packets that may still be written.
    room: u64,
    full_at: Option<Time>,
    error: Option<io::Error>,
    title: String,
}

/// What a file says that ends because it has the most packets.
pub fn full_note(at: Time) -> String {
    format!("the log ends here, at {at}, because it has as many packets as it may")
}

/// What became of the files of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// When the most packets were written, if the files end there.
    pub full_at: Option<Time>,
}

impl<W: Write> Files<W> {
    /// Files that hold at most `most` packets each.
    pub fn new(qlog: Option<Qlog<W>>, pcapng: Option<Pcapng<W>>, header: &Header, most: u64) -> Files<W> {
        let pcapng = pcapng.map(|pcapng| {
            let addresses = Addresses::of(&header.flows, pcapng.snaplen());
            (pcapng, addresses)
        });
        Files { qlog, pcapng, room: most, full_at: None, error: None, title: header.title.clone() }
    }

    /// Writes nothing more: at this time the most packets were written, by whoever counted them before.
    pub fn end_at(&mut self, at: Time) {
        self.full_at.get_or_insert(at);
    }

    /// The first error, if there was one.
    pub fn failed(&self) -> bool {
        self.error.is_some()
    }

    fn write(&mut self, at: Time, flow: u32, event: &Event<'_>) -> io::Result<()> {
        if let Some(qlog) = &mut self.qlog {
            qlog.take(at, flow, event)?;
        }
        if let Some((pcapng, addresses)) = &mut self.pcapng
            && let Some(frame) = addresses.frame(flow, event)
        {
            pcapng.packet(at, frame)?;
        }
        Ok(())
    }

    /// Ends the files.
    ///
    /// # Errors
    /// The first error that any of them had.
    pub fn finish(mut self) -> io::Result<Written> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let note = self.full_at.map(|at| format!("{}: {}", self.title, full_note(at)));
        let at = self.full_at.unwrap_or(Time::ZERO);
        if let Some(qlog) = self.qlog {
            qlog.finish(note.as_deref().map(|note| (at, note)))?;
        }
        if let Some((pcapng, _)) = self.pcapng {
            pcapng.finish(note.as_deref())?;
        }
        Ok(Written { full_at: self.full_at })
    }
}

impl<W: Write> Log for Files<W> {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        if self.error.is_some() || self.full_at.is_some() {
            return;
        }
        let of_quic = matches!(event, Event::Quic(quic::Event::Sent(_) | quic::Event::Received(_)));
        if of_quic || matches!(event, Event::Sent(_) | Event::Acknowledged(_)) {
            if self.room == 0 {
                self.full_at = Some(at);
                return;
            }
            self.room -= 1;
        }
        if let Err(error) = self.write(at, flow, event) {
            self.error = Some(error);
        }
    }
}
