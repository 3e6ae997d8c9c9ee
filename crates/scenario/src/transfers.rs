//! Applications that send one transfer after another over one connection: the same in every world.
//!
//! The sending end is a [`Server`], the receiving end a [`Client`]. The server writes bursts at its own times, whether or not
//! the previous one has arrived. Everything else is requested: a client requests the next transfer some time after the
//! previous one has completely arrived, and the server writes it when the request arrives, a round trip later. The first
//! needs no request: connecting is one.
//!
//! * requests: the pause is always the same;
//! * video: the pause lasts while the player's buffer has no room for another chunk (`transfers/playback.rs`);
//! * a script: each transfer has its own pause.

mod playback;

use fullpipe_units::{Bytes, Duration, Time};

use crate::spec::Workload;
use playback::Playback;

/// The sending end: what it writes, and when.
#[derive(Clone, Debug)]
pub struct Server {
    workload: Workload,
    /// Transfers written.
    written: usize,
    due: Time,
}

impl Server {
    /// Of a flow that starts at `start`; `None` unless it sends one transfer after another.
    pub fn new(workload: &Workload, start: Time) -> Option<Server> {
        let due = start.saturating_add(pause_before(workload, 0)?);
        Some(Server { workload: workload.clone(), written: 0, due })
    }

    /// When it next writes without a request.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }

    /// Takes the bytes that are due by `now` without a request.
    pub fn take(&mut self, now: Time) -> Bytes {
        if now < self.due {
            return Bytes::ZERO;
        }
        let Workload::Bursts { size_bytes, every_ns } = self.workload else {
            self.due = Time::NEVER;
            return self.on_request();
        };
        let writes = 1 + now.saturating_since(self.due).as_nanos() / every_ns.as_nanos();
        self.due = self.due.saturating_add(Duration::from_nanos(writes.saturating_mul(every_ns.as_nanos())));
        Bytes::new(writes.saturating_mul(size_bytes.as_u64()))
    }

    /// A request has arrived. Returns how much it writes now.
    pub fn on_request(&mut self) -> Bytes {
        let size = size_of(&self.workload, self.written);
        self.written += 1;
        size
    }
}

/// The receiving end: what it waits for, and when it requests more.
#[derive(Clone, Debug)]
pub struct Client {
    workload: Workload,
    /// Transfers that have arrived.
    arrived: usize,
    /// Bytes of all transfers requested so far.
    expected: Bytes,
    /// Since when it has waited for the last of them; `None` while it waits for none.
    asked: Option<Time>,
    due: Time,
    playback: Option<Playback>,
}

impl Client {
    /// Of a flow that starts at `start`; `None` unless it sends one transfer after another.
    pub fn new(workload: &Workload, start: Time) -> Option<Client> {
        let asked = start.saturating_add(pause_before(workload, 0)?);
        let playback = match *workload {
            Workload::Video { chunk_ns, buffer_ns, .. } => Some(Playback::new(chunk_ns, buffer_ns)),
            _ => None,
        };
        Some(Client {
            workload: workload.clone(),
            arrived: 0,
            expected: size_of(workload, 0),
            asked: Some(asked),
            due: Time::NEVER,
            playback,
        })
    }

    /// When it requests the next transfer; never while it waits for one, nor after the last.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }

    /// Whether it waits for a transfer: always true if transfers are not requested.
    pub fn waits(&self) -> bool {
        self.asked.is_some()
    }

    /// It requests the next transfer at `now`.
    pub fn ask(&mut self, now: Time) {
        self.due = Time::NEVER;
        self.wait_since(now);
    }

    /// `delivered` bytes have arrived by `now`. Returns how long each newly completed transfer took since it was requested
    /// or due.
    pub fn on_delivered(&mut self, delivered: Bytes, now: Time, mut took: impl FnMut(Duration)) {
        while delivered >= self.expected
            && let Some(asked) = self.asked.take()
        {
            took(now.saturating_since(asked));
            self.arrived += 1;
            if let Workload::Bursts { every_ns, .. } = self.workload {
                self.wait_since(asked.saturating_add(every_ns));
                continue;
            }
            let pause = pause_before(&self.workload, self.arrived);
            let after = pause.map_or(Time::NEVER, |pause| now.saturating_add(pause));
            self.due = self.playback.as_mut().map_or(after, |playback| playback.on_chunk(now));
        }
    }

    /// How long playback had stalled by `now` since it began; `None` unless it is a video.
    pub fn rebuffered(&self, now: Time) -> Option<Duration> {
        self.playback.map(|playback| playback.stalled(now))
    }

    fn wait_since(&mut self, asked: Time) {
        let size = size_of(&self.workload, self.arrived);
        self.expected = Bytes::new(self.expected.as_u64().saturating_add(size.as_u64()));
        self.asked = Some(asked);
    }
}

/// From the start, or from when the transfer before has arrived, to the request for transfer `number`; `None` if there is
/// no such transfer. A player may have to wait longer.
fn pause_before(workload: &Workload, number: usize) -> Option<Duration> {
    match workload {
        Workload::Bulk | Workload::Finite { .. } | Workload::Media { .. } => None,
        Workload::Requests { pause_ns, .. } if number > 0 => Some(*pause_ns),
        Workload::Bursts { .. } | Workload::Requests { .. } | Workload::Video { .. } => Some(Duration::ZERO),
        Workload::Script { transfers } => transfers.get(number).map(|transfer| transfer.pause_ns),
    }
}

/// The bytes of transfer `number`; none if there is no such transfer.
fn size_of(workload: &Workload, number: usize) -> Bytes {
    match workload {
        Workload::Bulk | Workload::Finite { .. } | Workload::Media { .. } => Bytes::ZERO,
        Workload::Bursts { size_bytes, .. } | Workload::Requests { size_bytes, .. } => *size_bytes,
        Workload::Video { chunk_bytes, .. } => *chunk_bytes,
        Workload::Script { transfers } => {
            transfers.get(number).map_or(Bytes::ZERO, |transfer| transfer.size_bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Transfer;

    fn at(millis: u64) -> Time {
        Time::from_micros(millis * 1000)
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn bursts() -> Workload {
        Workload::Bursts { size_bytes: Bytes::new(3000), every_ns: millis(100) }
    }

    fn script(transfers: &[(u64, u64)]) -> Workload {
        let transfer =
            |&(size, pause): &(u64, u64)| Transfer { size_bytes: Bytes::new(size), pause_ns: millis(pause) };
        Workload::Script { transfers: transfers.iter().map(transfer).collect() }
    }

    /// What the client says to each arrival of (bytes so far, ms): the times taken, and when it asks next.
    fn arrivals(client: &mut Client, arrivals: &[(u64, u64)]) -> (Vec<u64>, Time) {
        let mut times = Vec::new();
        for &(delivered, millis) in arrivals {
            client.on_delivered(Bytes::new(delivered), at(millis), |took| times.push(took.as_millis()));
        }
        (times, client.due())
    }

    #[test]
    fn bursts_due_together_are_written_together() {
        let mut server = Server::new(&bursts(), at(50)).unwrap();
        let taken = [49, 50, 51, 149, 150, 420, 449, 450].map(|millis| server.take(at(millis)).as_u64());
        assert_eq!(taken, [0, 3000, 0, 0, 3000, 6000, 0, 3000]);
        assert_eq!(server.due(), at(550));
    }

    #[test]
    fn burst_time_counts_from_due_time() {
        let mut client = Client::new(&bursts(), at(50)).unwrap();
        let seen = arrivals(&mut client, &[(2999, 60), (3000, 70), (5999, 160), (9000, 400), (9001, 401)]);
        assert_eq!(seen, (vec![20, 250, 150], Time::NEVER));
    }

    #[test]
    fn request_follows_answer_after_pause() {
        let workload = Workload::Requests { size_bytes: Bytes::new(3000), pause_ns: millis(100) };
        let (mut server, mut client) =
            (Server::new(&workload, at(50)).unwrap(), Client::new(&workload, at(50)).unwrap());
        // The first is written at once, the second when it is asked for.
        assert_eq!(
            (server.due(), server.take(at(90)), server.due()),
            (at(50), Bytes::new(3000), Time::NEVER)
        );
        assert_eq!(arrivals(&mut client, &[(2999, 110), (3000, 120)]), (vec![70], at(220)));
        assert_eq!(arrivals(&mut client, &[(3000, 130)]), (vec![], at(220)), "a duplicate changes nothing");
        client.ask(at(220));
        assert_eq!((client.due(), server.on_request()), (Time::NEVER, Bytes::new(3000)));
        assert_eq!(arrivals(&mut client, &[(5999, 300), (6000, 320)]), (vec![100], at(420)));
    }

    #[test]
    fn script_runs_once_with_own_sizes() {
        let workload = script(&[(10, 30), (20, 0), (30, 400)]);
        let mut server = Server::new(&workload, at(50)).unwrap();
        assert_eq!((server.take(at(79)), server.take(at(80))), (Bytes::ZERO, Bytes::new(10)));
        assert_eq!([0; 3].map(|_| server.on_request().as_u64()), [20, 30, 0]);
        let mut client = Client::new(&workload, at(50)).unwrap();
        assert_eq!(
            arrivals(&mut client, &[(10, 100)]),
            (vec![20], at(100)),
            "asked for at 80 ms, as it says"
        );
        client.ask(at(100));
        assert_eq!(arrivals(&mut client, &[(30, 150)]), (vec![50], at(550)));
        client.ask(at(550));
        assert_eq!(arrivals(&mut client, &[(60, 560)]), (vec![10], Time::NEVER));
    }

    #[test]
    fn video_requests_when_chunk_fits() {
        let workload =
            Workload::Video { chunk_bytes: Bytes::new(10), chunk_ns: millis(400), buffer_ns: millis(1000) };
        let mut client = Client::new(&workload, at(0)).unwrap();
        assert_eq!(client.rebuffered(at(99)), Some(Duration::ZERO));
        // 400 ms of media: another chunk fits. Then 700 ms: it fits when 100 ms more have been played.
        assert_eq!(arrivals(&mut client, &[(10, 100)]), (vec![100], at(100)));
        client.ask(at(100));
        assert_eq!(arrivals(&mut client, &[(20, 200)]), (vec![100], at(300)));
    }

    #[test]
    fn bulk_and_finite_have_no_endpoints() {
        for workload in [Workload::Bulk, Workload::Finite { size_bytes: Bytes::new(1) }] {
            assert!(Server::new(&workload, Time::ZERO).is_none());
            assert!(Client::new(&workload, Time::ZERO).is_none());
        }
    }
}
