//! The applications at both ends of a flow.
//!
//! The sender of the data is the QUIC client, so that it can send one round trip after it began to connect, as a TCP sender can.
//!
//! * A bulk or finite flow is one unidirectional stream. Of a bulk flow all bytes count that have arrived: nothing waits for those
//!   before them. (noq 1.4.0 can leave a hole of a few bytes in a stream for good, after thousands of losses; see docs/explanation/quic.md.)
//! * Transfers have a stream each. What the sender writes by itself (a burst, or the first transfer, which connecting asks for) is
//!   a unidirectional stream. What is requested is the answer on a bidirectional stream that the receiver opens; its request has
//!   [`REQUEST_BYTES`] bytes.
//! * Streams are written, and sent, in the order of their transfers: without fairness among them. A transfer counts as complete
//!   when it and all before it have arrived, as over one TCP connection.

use std::collections::VecDeque;

use fullpipe_scenario::spec::Workload;
use fullpipe_scenario::transfers::{Client, Server};
use fullpipe_units::{Bytes, Time};

use crate::endpoint::{Endpoint, Event, Piece, ReadEnd, Stream};

/// The length of a request.
pub(crate) const REQUEST_BYTES: u64 = 100;

/// More streams than a peer allows to be open at a time, by the defaults of both stacks (100 in each direction).
const MOST_OPEN: usize = 256;

/// Something to write: where, and how much of it is left.
#[derive(Debug)]
struct Outgoing {
    /// `None` until a stream is opened.
    stream: Option<Stream>,
    /// `None` for as much as fits.
    left: Option<u64>,
}

/// The application that sends the data.
#[derive(Debug)]
pub(crate) struct Source {
    server: Option<Server>,
    /// The size of a burst.
    burst: Option<u64>,
    queue: VecDeque<Outgoing>,
    /// The latest streams that were written to.
    opened: VecDeque<Stream>,
    /// Requests that are being read.
    asking: Vec<Stream>,
    connected: bool,
    /// Whether a write is worth trying.
    writable: bool,
    stopped: bool,
    /// Bytes that the stack has taken.
    pub(crate) written: u64,
    /// All that it will ever write.
    total: Option<u64>,
    /// When it had written all.
    pub(crate) written_at: Option<Time>,
}

impl Source {
    pub(crate) fn new(workload: &Workload, start: Time) -> Source {
        Source {
            server: Server::new(workload, start),
            burst: match workload {
                Workload::Bursts { size_bytes, .. } => Some(size_bytes.as_u64()),
                _ => None,
            },
            queue: match workload {
                Workload::Bulk => [Outgoing { stream: None, left: None }].into(),
                Workload::Finite { size_bytes } => {
                    [Outgoing { stream: None, left: Some(size_bytes.as_u64()) }].into()
                }
                _ => VecDeque::new(),
            },
            opened: VecDeque::new(),
            asking: Vec::new(),
            connected: false,
            writable: true,
            stopped: false,
            written: 0,
            total: workload.total_bytes().map(Bytes::as_u64),
            written_at: None,
        }
    }

    /// When it next writes by itself.
    pub(crate) fn due(&self) -> Time {
        match &self.server {
            Some(server) if self.connected && !self.stopped => server.due(),
            _ => Time::NEVER,
        }
    }

    /// An event of the sender's end.
    pub(crate) fn on_event(&mut self, event: &Event, end: &mut dyn Endpoint) {
        match *event {
            Event::Connected => self.connected = true,
            Event::Writable | Event::MoreStreams => self.writable = true,
            Event::Opened { uni: false } => {
                while let Some(stream) = end.accept(false) {
                    self.asking.push(stream);
                    self.read_request(stream, end);
                }
            }
            Event::Readable(stream) => self.read_request(stream, end),
            Event::Opened { uni: true } | Event::Lost(_) => {}
        }
    }

    fn read_request(&mut self, stream: Stream, end: &mut dyn Endpoint) {
        if end.read(stream, &mut |_| ()) != ReadEnd::Finished {
            return;
        }
        let Some(place) = self.asking.iter().position(|one| *one == stream) else { return };
        self.asking.remove(place);
        let Some(server) = &mut self.server else { return };
        if !self.stopped {
            let left = Some(server.on_request().as_u64());
            self.queue.push_back(Outgoing { stream: Some(stream), left });
            self.writable = true;
        }
    }

    /// Writes what is due and what fits.
    pub(crate) fn write(&mut self, now: Time, end: &mut dyn Endpoint) -> Result<(), String> {
        if !self.connected || self.stopped {
            return Ok(());
        }
        if let Some(server) = &mut self.server
            && server.due() <= now
        {
            let mut bytes = server.take(now).as_u64();
            // Bursts that are due together are transfers of their own.
            while let Some(burst) = self.burst.filter(|burst| bytes > *burst) {
                self.queue.push_back(Outgoing { stream: None, left: Some(burst) });
                bytes -= burst;
            }
            self.queue.push_back(Outgoing { stream: None, left: Some(bytes) });
            self.writable = true;
        }
        while self.writable
            && let Some(first) = self.queue.front_mut()
        {
            let stream = match first.stream {
                Some(stream) => stream,
                None => {
                    let Some(stream) = end.open(true) else {
                        self.writable = false;
                        break;
                    };
                    first.stream = Some(stream);
                    stream
                }
            };
            if self.opened.back() != Some(&stream) {
                if self.opened.len() == MOST_OPEN {
                    self.opened.pop_front();
                }
                self.opened.push_back(stream);
            }
            let wanted = first.left.unwrap_or(u64::MAX);
            let taken = if wanted == 0 { 0 } else { end.write(stream, wanted)? };
            self.written += taken;
            if taken < wanted {
                first.left = first.left.map(|left| left - taken);
                self.writable = false;
            } else {
                end.finish(stream);
                self.queue.pop_front();
            }
        }
        if self.written_at.is_none() && self.total.is_some_and(|total| self.written >= total) {
            self.written_at = Some(now);
        }
        Ok(())
    }

    /// The application stops: what has not been delivered is abandoned, so that the connection falls silent.
    pub(crate) fn stop(&mut self, end: &mut dyn Endpoint) {
        self.stopped = true;
        self.queue.clear();
        // Of streams that are delivered, nothing is left to abandon.
        for stream in self.opened.drain(..) {
            end.reset(stream);
        }
    }
}

/// The application that receives the data.
#[derive(Debug)]
pub(crate) struct Sink {
    client: Option<Client>,
    /// Transfers that are not complete, the first of them with number `first`.
    transfers: VecDeque<Arriving>,
    first: u64,
    /// Bytes of transfers that are complete.
    complete: u64,
    /// Requests that no stream could be opened for.
    unasked: u32,
    stopped: bool,
    /// Whether bytes count before those in front of them have arrived.
    any_order: bool,
    /// How long each transfer took.
    pub(crate) transfers_ns: Vec<u64>,
}

impl Sink {
    pub(crate) fn new(workload: &Workload, start: Time) -> Sink {
        Sink {
            client: Client::new(workload, start),
            transfers: VecDeque::new(),
            first: 0,
            complete: 0,
            unasked: 0,
            stopped: false,
            any_order: *workload == Workload::Bulk,
            transfers_ns: Vec::new(),
        }
    }

    /// When it next asks.
    pub(crate) fn due(&self) -> Time {
        match &self.client {
            Some(client) if !self.stopped => client.due(),
            _ => Time::NEVER,
        }
    }

    /// Bytes that have arrived: in order, or in any for a bulk flow.
    pub(crate) fn delivered(&self) -> u64 {
        let counted = if self.any_order { Arriving::in_any_order } else { Arriving::in_order };
        self.complete + self.transfers.front().map_or(0, counted)
    }

    /// How long playback had stalled by `now`; `None` unless it is a video.
    pub(crate) fn rebuffered_ns(&self, now: Time) -> Option<u64> {
        Some(self.client.as_ref()?.rebuffered(now)?.as_nanos())
    }

    /// The application stops.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// An event of the receiver's end.
    pub(crate) fn on_event(&mut self, now: Time, event: &Event, end: &mut dyn Endpoint) {
        match *event {
            Event::Opened { uni: true } => {
                while let Some(stream) = end.accept(true) {
                    self.read(now, stream, end);
                }
            }
            Event::Readable(stream) => self.read(now, stream, end),
            Event::MoreStreams => self.open_requests(end),
            Event::Connected | Event::Opened { uni: false } | Event::Writable | Event::Lost(_) => {}
        }
    }

    fn read(&mut self, now: Time, stream: Stream, end: &mut dyn Endpoint) {
        // The first transfer is the sender's own stream, and those behind it are answers; or all are the sender's own.
        let number = stream.index() + u64::from(stream.is_of_server());
        if number < self.first {
            return;
        }
        let place = (number - self.first) as usize;
        if self.transfers.len() <= place {
            self.transfers.resize_with(place + 1, Arriving::default);
        }
        let transfer = &mut self.transfers[place];
        transfer.finished |= end.read(stream, &mut |piece| transfer.on_piece(piece)) == ReadEnd::Finished;
        while self.transfers.front().is_some_and(|first| first.finished)
            && let Some(done) = self.transfers.pop_front()
        {
            self.complete += done.in_order();
            self.first += 1;
        }
        if self.client.is_none() || self.stopped {
            return;
        }
        let delivered = self.delivered();
        if let Some(client) = &mut self.client {
            let took = |took: fullpipe_units::Duration| self.transfers_ns.push(took.as_nanos());
            client.on_delivered(Bytes::new(delivered), now, took);
        }
    }

    /// Asks for what is due.
    pub(crate) fn ask(&mut self, now: Time, end: &mut dyn Endpoint) {
        if let Some(client) = &mut self.client
            && !self.stopped
            && client.due() <= now
        {
            client.ask(now);
            self.unasked += 1;
            self.open_requests(end);
        }
    }

    fn open_requests(&mut self, end: &mut dyn Endpoint) {
        while self.unasked > 0
            && let Some(stream) = end.open(false)
        {
            // The windows of the way back are as large as those of the way there: a request always fits.
            let written = end.write(stream, REQUEST_BYTES);
            debug_assert_eq!(written, Ok(REQUEST_BYTES));
            end.finish(stream);
            self.unasked -= 1;
        }
    }
}

/// What has arrived of a stream that is read out of order.
#[derive(Debug, Default)]
struct Arriving {
    /// Everything before this has arrived.
    edge: u64,
    /// What lies beyond: begin and end of each range, in order.
    beyond: VecDeque<(u64, u64)>,
    finished: bool,
}

impl Arriving {
    fn in_order(&self) -> u64 {
        self.edge
    }

    fn in_any_order(&self) -> u64 {
        self.edge + self.beyond.iter().map(|(begin, end)| end - begin).sum::<u64>()
    }

    fn on_piece(&mut self, piece: Piece) {
        let (begin, end) = (piece.offset, piece.offset + piece.bytes);
        if begin > self.edge {
            return self.insert(begin, end);
        }
        self.edge = self.edge.max(end);
        while let Some(&(begin, end)) = self.beyond.front()
            && begin <= self.edge
        {
            self.edge = self.edge.max(end);
            self.beyond.pop_front();
        }
    }

    fn insert(&mut self, begin: u64, end: u64) {
        // Most pieces follow the last.
        if let Some(last) = self.beyond.back_mut()
            && last.1 == begin
        {
            last.1 = end;
            return;
        }
        let from = self.beyond.partition_point(|range| range.1 < begin);
        let to = self.beyond.partition_point(|range| range.0 <= end);
        if from == to {
            return self.beyond.insert(from, (begin, end));
        }
        let merged = (begin.min(self.beyond[from].0), end.max(self.beyond[to - 1].1));
        self.beyond[from] = merged;
        self.beyond.drain(from + 1..to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reordered_data_counts_after_hole_fills() {
        let mut arriving = Arriving::default();
        let mut on = |offset, bytes| {
            arriving.on_piece(Piece { offset, bytes });
            (arriving.edge, arriving.beyond.len())
        };
        assert_eq!(on(0, 10), (10, 0));
        assert_eq!(on(20, 10), (10, 1));
        assert_eq!(on(30, 10), (10, 1), "joined with the range before it");
        assert_eq!(on(60, 10), (10, 2));
        assert_eq!(on(45, 5), (10, 3));
        assert_eq!(on(40, 5), (10, 2), "joined with both neighbours");
        assert_eq!(on(5, 20), (50, 1));
        assert_eq!(on(50, 10), (70, 0));
        assert_eq!(on(0, 70), (70, 0), "all of it once more");
    }

    #[test]
    fn data_beyond_hole_counts_once() {
        let mut arriving = Arriving::default();
        let mut on = |offset, bytes| {
            arriving.on_piece(Piece { offset, bytes });
            (arriving.in_order(), arriving.in_any_order())
        };
        assert_eq!(on(0, 10), (10, 10));
        assert_eq!(on(17, 20), (10, 30));
        assert_eq!(on(30, 10), (10, 33), "seven of these had arrived");
        assert_eq!(on(10, 7), (40, 40));
    }
}
