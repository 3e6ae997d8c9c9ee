//! Paced sending and stamped receiving on connected sockets, within limits.
//!
//! The sockets are connected, so that the kernel drops what others send, and sends to nobody else. Every byte that leaves,
//! answers included, is taken from one budget of bytes and rate before it is sent; nothing leaves after the deadline. An answer
//! is never longer than what it answers.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::budget::{Budget, Short};
use crate::rule::{Rule, Seen, Watch};
use crate::schedule::{MOST_BYTES, Piece, bounded, packets};
use crate::sys::{self, Arrived};
use crate::wire::{BYTES, Head, Kind};

/// How often what has arrived is reported, at most.
const REPORT_EVERY_NS: i64 = 10_000_000;
/// Waits of less are not slept.
const SPIN_NS: i64 = 20_000;
/// An idle sender looks this often whether it is to end.
const LOOK_EVERY_NS: i64 = 20_000_000;

/// What one end allows, whatever the other one asks for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of IP packets that leave.
    pub sent_bytes: u64,
    /// Bytes of IP packets that are taken.
    pub received_bytes: u64,
    /// The highest rate at which bytes leave, in bits a second.
    pub rate_bps: f64,
    /// How long after the start packets are sent and taken, in nanoseconds.
    pub time_ns: i64,
    /// How many packets are remembered of each kind.
    pub records: usize,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Number in its stage.
    pub seq: u32,
    /// Number of its stage.
    pub stream: u16,
    /// The bits of ECN.
    pub ecn: u8,
    /// When, by the kernel's stamp.
    pub at_ns: i64,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub at_ns: i64,
    /// Bytes of IP.
    pub bytes: u16,
    /// 0, or 1 for the thin flow.
    pub flow: u8,
    /// The bits of ECN.
    pub ecn: u8,
}

/// Why sending ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All was sent.
    Whole,
    /// The rule.
    Rule,
    /// The other end has reported nothing for too long.
    Silence,
    /// The bytes or the time are used up.
    Limit,
    /// Somebody stopped it.
    Stopped,
}

/// A request and its answer: sent, arrived, answered, and back here.
pub type Exchange = [i64; 4];

#[derive(Default)]
struct Inbox {
    records: Vec<Record>,
    requests: Requests,
    report: Option<(u16, Seen)>,
    heard_ns: i64,
}

/// The requests of the latest stage of echoes, and their answers.
#[derive(Default)]
struct Requests {
    stream: u16,
    /// When each was sent; `None` once it is answered.
    sent_ns: Vec<Option<i64>>,
    exchanges: Vec<Exchange>,
}

impl Requests {
    /// Takes an answer, if it is the first one to a request. When that was sent, the other end need not say.
    fn answered(&mut self, head: &Head, at_ns: i64) {
        if head.stream != self.stream {
            return;
        }
        if let Some(sent_ns) = self.sent_ns.get_mut(head.seq as usize).and_then(Option::take) {
            self.exchanges.push([sent_ns, head.arrived_ns, head.answered_ns, at_ns]);
        }
    }
}

struct Shared {
    sockets: Vec<OwnedFd>,
    v6: bool,
    cookie: u64,
    limits: Limits,
    until_ns: i64,
    budget: Mutex<Budget>,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    /// Bytes beyond what a datagram has: the headers of IP and UDP.
    overhead: u16,
    end: AtomicBool,
    inbox: Mutex<Inbox>,
}

/// One end of the measurement.
pub struct Plane {
    shared: Arc<Shared>,
    receiver: Option<JoinHandle<()>>,
}

impl Plane {
    /// Begins to receive on connected sockets: the first is for the stages, the second for thin flows.
    ///
    /// # Errors
    /// A socket is none of UDP, or no thread can be started.
    pub fn new(sockets: &[BorrowedFd<'_>], v6: bool, cookie: u64, limits: Limits) -> io::Result<Plane> {
        let sockets = sockets.iter().map(|one| sys::prepared(*one, v6)).collect::<io::Result<Vec<_>>>()?;
        let now_ns = sys::steady_ns();
        let shared = Arc::new(Shared {
            sockets,
            v6,
            cookie,
            limits,
            until_ns: now_ns.saturating_add(limits.time_ns),
            budget: Mutex::new(Budget::new(limits.sent_bytes, limits.rate_bps, now_ns)),
            sent_bytes: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            overhead: if v6 { 48 } else { 28 },
            end: AtomicBool::new(false),
            inbox: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let receiver =
            thread::Builder::new().name("fullpipe-probe".to_owned()).spawn(move || own.receive())?;
        Ok(Plane { shared, receiver: Some(receiver) })
    }

    /// Sends a stage's packets as its pieces say, or requests of `echo`, until the rule, silence or a limit ends it. `stop` ends it at once.
    ///
    /// # Errors
    /// The network refuses a packet for a reason that does not pass.
    pub fn send(
        &self,
        (stream, echo): (u16, bool),
        pieces: &[Piece],
        rule: Rule,
        silence_ns: i64,
        stop: &AtomicBool,
    ) -> io::Result<(Vec<Sent>, End, i64)> {
        let shared = &*self.shared;
        let pieces: Vec<Piece> =
            pieces.iter().map(|one| bounded(*one, shared.limits.rate_bps, shared.overhead)).collect();
        let kind = if echo { Kind::Echo } else { Kind::Data };
        let (mut sent, mut watch, mut latest_ns) = (Vec::new(), Watch::new(rule), 0);
        let mut datagram = [0; MOST_BYTES as usize];
        if echo {
            shared.inbox().requests = Requests { stream, ..Requests::default() };
        }
        sys::sleep_exactly();
        let begun_ns = sys::steady_ns();
        for (seq, due) in packets(&pieces).enumerate() {
            let due_ns = begun_ns.saturating_add_unsigned(due.at_ns);
            let mut free_ns = due_ns;
            loop {
                let now_ns = sys::steady_ns();
                if let Some(end) = shared.ends(stream, &mut watch, begun_ns, now_ns, silence_ns, stop) {
                    return Ok((sent, end, latest_ns));
                }
                if now_ns >= free_ns {
                    if free_ns == due_ns {
                        latest_ns = latest_ns.max(now_ns - due_ns);
                    }
                    match shared.spend(due.bytes.into(), false) {
                        Ok(()) if sent.len() < shared.limits.records => break,
                        Err(Short::Wait(wait_ns)) => free_ns = now_ns.saturating_add(wait_ns),
                        _ => return Ok((sent, End::Limit, latest_ns)),
                    }
                }
                if free_ns - now_ns > SPIN_NS {
                    sys::sleep_until_ns(free_ns.min(now_ns + LOOK_EVERY_NS));
                }
            }
            let at_ns = sys::now_ns();
            if echo {
                shared.inbox().requests.sent_ns.push(Some(at_ns));
            }
            let head = shared.head(kind, stream, seq as u32, at_ns);
            if let Some(place) = datagram.first_chunk_mut() {
                head.write(place);
            }
            let socket = &shared.sockets[usize::from(due.flow) % shared.sockets.len()];
            let bytes = &datagram[..usize::from(due.bytes - shared.overhead)];
            shared.put(socket, bytes, due.ecn, stop)?;
            sent.push(Sent { at_ns, bytes: due.bytes, flow: due.flow, ecn: due.ecn });
        }
        Ok((sent, End::Whole, latest_ns))
    }

    /// Takes out the records of a stage.
    pub fn arrived(&self, stream: u16) -> Vec<Record> {
        let mut inbox = self.shared.inbox();
        let (mine, others) =
            std::mem::take(&mut inbox.records).into_iter().partition(|one| one.stream == stream);
        inbox.records = others;
        mine
    }

    /// The exchanges of the latest stage of echoes until now, one for each request at most.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.inbox().requests.exchanges.clone()
    }

    /// Bytes that left and that arrived until now.
    pub fn bytes(&self) -> (u64, u64) {
        let shared = &self.shared;
        (shared.sent_bytes.load(Ordering::Relaxed), shared.received_bytes.load(Ordering::Relaxed))
    }

    /// Takes bytes that something else is to send from the budget; `line`: for the control connection.
    ///
    /// # Errors
    /// They are not there, or not yet.
    pub fn spend(&self, bytes: u64, line: bool) -> Result<(), Short> {
        self.shared.spend(bytes, line)
    }

    /// Bytes that may still leave, without those of the control connection.
    pub fn left(&self) -> u64 {
        self.shared.budget().left()
    }

    /// Datagrams that this machine dropped because nobody read them.
    pub fn dropped_here(&self) -> u64 {
        self.shared.sockets.iter().map(|one| u64::from(sys::receive_drops(one))).sum()
    }

    /// Ends everything, now and later.
    pub fn end(&self) {
        self.shared.end.store(true, Ordering::Relaxed);
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.end();
        if let Some(receiver) = self.receiver.take() {
            // It ends within 50 ms. If it panicked, nothing depends on it any more.
            let _ = receiver.join();
        }
    }
}

impl Shared {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn head(&self, kind: Kind, stream: u16, seq: u32, sent_ns: i64) -> Head {
        Head { cookie: self.cookie, kind, stream, seq, sent_ns, arrived_ns: 0, answered_ns: 0, count: 0 }
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spend(&self, bytes: u64, line: bool) -> Result<(), Short> {
        self.budget().take(bytes, line, sys::steady_ns())?;
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Why sending is to end, if it is.
    fn ends(
        &self,
        stream: u16,
        watch: &mut Watch,
        begun_ns: i64,
        now_ns: i64,
        silence_ns: i64,
        stop: &AtomicBool,
    ) -> Option<End> {
        if stop.load(Ordering::Relaxed) || self.end.load(Ordering::Relaxed) {
            return Some(End::Stopped);
        }
        if now_ns > self.until_ns {
            return Some(End::Limit);
        }
        let (heard_ns, report) = {
            let mut inbox = self.inbox();
            (inbox.heard_ns, inbox.report.take_if(|one| one.0 == stream))
        };
        if now_ns - heard_ns.max(begun_ns) > silence_ns {
            return Some(End::Silence);
        }
        report.filter(|one| watch.stops(one.1)).map(|_| End::Rule)
    }

    /// Sends a datagram that is paid for; waits while the device is full.
    fn put(&self, socket: &OwnedFd, bytes: &[u8], ecn: u8, stop: &AtomicBool) -> io::Result<()> {
        let until_ns = sys::steady_ns() + REPORT_EVERY_NS;
        while let Err(error) = sys::send(socket, self.v6, bytes, ecn) {
            match error.raw_os_error() {
                // What an earlier one met; if nobody is there any more, silence says so. Or it is too long for the path.
                Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EMSGSIZE) => {
                    return Ok(());
                }
                Some(libc::ENOBUFS | libc::EAGAIN)
                    if !stop.load(Ordering::Relaxed) && sys::steady_ns() < until_ns =>
                {
                    sys::sleep_until_ns(sys::steady_ns() + SPIN_NS);
                }
                // The device stays full; the packet counts as lost.
                Some(libc::ENOBUFS | libc::EAGAIN) => return Ok(()),
                _ => return Err(error),
            }
        }
        Ok(())
    }

    /// The receiver's thread.
    fn receive(&self) {
        let mut memory = sys::Inbox::new();
        let mut report = Reporter::default();
        while !self.end.load(Ordering::Relaxed) && sys::steady_ns() < self.until_ns {
            sys::wait(&self.sockets);
            for socket in &self.sockets {
                memory.receive(socket, |arrived| self.take(socket, &arrived, &mut report));
            }
        }
        self.end.store(true, Ordering::Relaxed);
    }

    fn take(&self, socket: &OwnedFd, arrived: &Arrived<'_>, reporter: &mut Reporter) {
        // What others send, with the peer's address on it, uses up nothing.
        let Some(head) = Head::read(arrived.bytes, self.cookie) else { return };
        let bytes = arrived.length as u64 + u64::from(self.overhead);
        if self.received_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > self.limits.received_bytes {
            self.end.store(true, Ordering::Relaxed);
            return;
        }
        let at_ns = arrived.stamped_ns.unwrap_or_else(sys::now_ns);
        match head.kind {
            Kind::Data => {
                let record = Record { seq: head.seq, stream: head.stream, ecn: arrived.ecn, at_ns };
                let mut inbox = self.inbox();
                if inbox.records.len() < self.limits.records {
                    inbox.records.push(record);
                }
                drop(inbox);
                if let Some(answer) = reporter.take(&head, at_ns, sys::steady_ns()) {
                    self.answer(socket, &Head { cookie: self.cookie, ..answer }, BYTES);
                }
            }
            Kind::Echo => {
                let answered_ns = sys::now_ns();
                let answer = Head { kind: Kind::Reply, arrived_ns: at_ns, answered_ns, ..head };
                self.answer(socket, &answer, arrived.bytes.len());
            }
            Kind::Reply => {
                let mut inbox = self.inbox();
                inbox.heard_ns = sys::steady_ns();
                inbox.requests.answered(&head, at_ns);
            }
            Kind::Report => {
                let mut inbox = self.inbox();
                inbox.heard_ns = sys::steady_ns();
                let late_ns = head.arrived_ns.wrapping_sub(head.sent_ns);
                let sent = head.seq.saturating_add(1);
                inbox.report =
                    Some((head.stream, Seen { at_ns: inbox.heard_ns, count: head.count, sent, late_ns }));
            }
        }
    }

    /// Answers with a head and zeros. An answer that cannot be sent or paid now is left out, as one that the path loses.
    fn answer(&self, socket: &OwnedFd, head: &Head, bytes: usize) {
        let mut datagram = [0; MOST_BYTES as usize];
        head.write((&mut datagram[..BYTES]).try_into().expect("a head fits"));
        if self.spend(bytes as u64 + u64::from(self.overhead), false).is_ok() {
            let _ = sys::send(socket, self.v6, &datagram[..bytes], 0);
        }
    }
}

/// What has arrived of the stage that runs.
#[derive(Default)]
struct Reporter {
    stream: u16,
    count: u32,
    top: u32,
    reported_ns: i64,
}

impl Reporter {
    /// Counts a packet; returns a report if one is due.
    fn take(&mut self, head: &Head, at_ns: i64, now_ns: i64) -> Option<Head> {
        if self.stream != head.stream {
            *self = Reporter { stream: head.stream, reported_ns: self.reported_ns, ..Reporter::default() };
        }
        self.count = self.count.saturating_add(1);
        self.top = self.top.max(head.seq);
        if now_ns - self.reported_ns < REPORT_EVERY_NS {
            return None;
        }
        self.reported_ns = now_ns;
        Some(Head { kind: Kind::Report, seq: self.top, arrived_ns: at_ns, count: self.count, ..*head })
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    const COOKIE: u64 = 77;
    const LIMITS: Limits = Limits {
        sent_bytes: 1 << 20,
        received_bytes: 1 << 20,
        rate_bps: 1e9,
        time_ns: 60_000_000_000,
        records: 1000,
    };
    const PIECE: Piece = Piece { rate_bps: 1e8, packets: 20, bytes: 500, ecn: true, thin_every_ns: 0 };

    fn pair() -> (UdpSocket, UdpSocket) {
        pair_at("127.0.0.1:0").unwrap()
    }

    fn pair_at(address: &str) -> io::Result<(UdpSocket, UdpSocket)> {
        let one = UdpSocket::bind(address)?;
        let other = UdpSocket::bind(address)?;
        one.connect(other.local_addr().unwrap()).unwrap();
        other.connect(one.local_addr().unwrap()).unwrap();
        Ok((one, other))
    }

    fn request(seq: u32, kind: Kind, sent_ns: i64) -> [u8; 1000] {
        let mut datagram = [0; 1000];
        Head { cookie: COOKIE, kind, stream: 1, seq, sent_ns, arrived_ns: 6, answered_ns: 7, count: 0 }
            .write((&mut datagram[..BYTES]).try_into().unwrap());
        datagram
    }

    fn plane(socket: &UdpSocket, limits: Limits) -> Plane {
        Plane::new(&[socket.as_fd()], false, COOKIE, limits).unwrap()
    }

    /// Waits for something that comes soon.
    fn wait_for<T>(mut what: impl FnMut() -> Option<T>) -> T {
        for _ in 0..5000 {
            if let Some(found) = what() {
                return found;
            }
            sys::sleep_until_ns(sys::steady_ns() + 1_000_000);
        }
        panic!("it never came")
    }

    fn send(plane: &Plane, echo: bool) -> (Vec<Sent>, End) {
        let no = AtomicBool::new(false);
        let (sent, end, _) = plane.send((1, echo), &[PIECE], Rule::Whole, 10_000_000_000, &no).unwrap();
        (sent, end)
    }

    #[test]
    fn packets_arrive_with_their_marks() {
        let (a, b) = pair();
        let (near, far) = (plane(&a, LIMITS), plane(&b, LIMITS));
        let (sent, end) = send(&near, false);
        assert_eq!((sent.len(), end), (20, End::Whole));
        let mut records = Vec::new();
        wait_for(|| {
            records.extend(far.arrived(1));
            (records.len() == 20).then_some(())
        });
        for (record, sent) in records.iter().zip(&sent) {
            assert!(record.at_ns >= sent.at_ns);
            assert_eq!(record.ecn, sent.ecn);
        }
    }

    #[test]
    fn echoes_have_four_times_in_order() {
        let (a, b) = pair();
        let (near, _far) = (plane(&a, LIMITS), plane(&b, LIMITS));
        send(&near, true);
        let found = wait_for(|| Some(near.exchanges()).filter(|all| all.len() == 20));
        assert!(found.iter().all(|times| times.is_sorted()));
    }

    #[test]
    fn nothing_leaves_beyond_the_budget() {
        let (a, b) = pair();
        let near = plane(&a, Limits { sent_bytes: 1700, ..LIMITS });
        let (sent, end) = send(&near, false);
        assert_eq!((sent.len(), end), (3, End::Limit));
        assert_eq!(near.bytes().0, 1500);
        b.set_nonblocking(true).unwrap();
        let mut room = [0; 2000];
        assert_eq!((0..9).filter(|_| b.recv(&mut room).is_ok()).count(), 3);
    }

    #[test]
    fn a_silent_peer_ends_it() {
        let (a, _b) = pair();
        let near = plane(&a, LIMITS);
        let long = Piece { rate_bps: 1e6, packets: 100_000, ..PIECE };
        let no = AtomicBool::new(false);
        let (_, end, _) = near.send((1, false), &[long], Rule::Whole, 20_000_000, &no).unwrap();
        assert_eq!(end, End::Silence);
    }

    #[test]
    fn answers_are_no_longer_than_requests_and_none_is_for_garbage() {
        let (a, b) = pair();
        let _far = plane(&b, LIMITS);
        let mut datagram = [0; 60];
        for cookie in [COOKIE ^ 1, COOKIE] {
            let kind = Kind::Echo;
            Head { cookie, kind, stream: 3, seq: 1, sent_ns: 5, arrived_ns: 0, answered_ns: 0, count: 0 }
                .write((&mut datagram[..BYTES]).try_into().unwrap());
            a.send(&datagram[..20]).unwrap();
            a.send(&datagram).unwrap();
        }
        let mut room = [0; 2000];
        assert_eq!(a.recv(&mut room).unwrap(), 60);
        assert_eq!(Head::read(&room, COOKIE).unwrap().kind, Kind::Reply);
        a.set_nonblocking(true).unwrap();
        assert!(a.recv(&mut room).is_err());
    }

    #[test]
    fn a_flood_ends_the_session_and_fills_no_memory() {
        let (a, b) = pair();
        let far = plane(&b, Limits { received_bytes: 5000, records: 3, ..LIMITS });
        send(&plane(&a, LIMITS), false);
        wait_for(|| far.shared.end.load(Ordering::Relaxed).then_some(()));
        assert!(far.arrived(1).len() <= 3);
        assert_eq!(send(&far, false).1, End::Stopped);
    }

    #[test]
    fn ipv6_shows_marks_too() {
        let Ok((a, b)) = pair_at("[::1]:0") else {
            eprintln!("not tested: this machine has no IPv6");
            return;
        };
        let plane = |one: &UdpSocket| Plane::new(&[one.as_fd()], true, COOKIE, LIMITS).unwrap();
        let (near, far) = (plane(&a), plane(&b));
        send(&near, false);
        let mut records = Vec::new();
        wait_for(|| {
            records.extend(far.arrived(1));
            (records.len() == 20).then_some(())
        });
        assert_eq!(records.iter().filter(|one| one.ecn == 2).count(), 10);
    }

    #[test]
    fn a_flood_of_requests_is_answered_at_the_highest_rate() {
        let answers = |rate_bps: f64| {
            let (a, b) = pair();
            let _far = plane(&b, Limits { rate_bps, ..LIMITS });
            let begun_ns = sys::steady_ns();
            for seq in 0..60 {
                a.send(&request(seq, Kind::Echo, 5)).unwrap();
            }
            a.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
            let mut room = [0; 2000];
            let count = (0..60).take_while(|_| a.recv(&mut room).is_ok()).count();
            (count as f64, (sys::steady_ns() - begun_ns) as f64 / 1e9)
        };
        // The bucket, and a packet that it goes into debt with.
        let (count, seconds) = answers(1e5);
        assert!(count * 1028.0 * 8.0 <= 32_000.0 + 2.0 * 8224.0 + 1e5 * seconds, "{count} in {seconds} s");
        assert_eq!(answers(1e10).0, 60.0);
    }

    #[test]
    fn a_request_has_one_answer_and_its_own_time() {
        let (a, b) = pair();
        let near = plane(&a, LIMITS);
        send(&near, true);
        for seq in [3, 3, 3, 5, 20, u32::MAX] {
            b.send(&request(seq, Kind::Reply, -9)).unwrap();
        }
        // What follows is taken after what was sent before.
        b.send(&request(0, Kind::Data, 0)).unwrap();
        wait_for(|| (!near.arrived(1).is_empty()).then_some(()));
        let found = near.exchanges();
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|times| times[0] > 0 && times[1..3] == [6, 7]));
    }

    #[test]
    fn what_others_send_uses_up_nothing_and_long_datagrams_count_whole() {
        let (a, b) = pair();
        let far = plane(&b, LIMITS);
        a.send(&[7; 5000]).unwrap();
        let mut long = request(1, Kind::Data, 0).to_vec();
        long.resize(5000, 0);
        a.send(&long).unwrap();
        wait_for(|| (!far.arrived(1).is_empty()).then_some(()));
        assert_eq!(far.bytes().1, 5028);
    }
}
