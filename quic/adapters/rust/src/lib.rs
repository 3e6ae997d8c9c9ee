//! What an adapter needs besides its stack: the protocol on standard input and output, and the loop of a turn.
//!
//! An adapter brings a transport stack into Fullpipe's virtual time (`quic/adapters/PROTOCOL.md`). Its process has both ends of a
//! connection. Implement [`Stack`], and call [`serve`]:
//!
//! ```no_run
//! use fullpipe_stack::{About, App, Sent, Setup, Stack, State, serve};
//!
//! struct Silent;
//!
//! impl Stack for Silent {
//!     fn receive(&mut self, _end: usize, _now: u64, _ecn: u8, _datagram: &mut [u8]) {}
//!     fn timeout(&mut self, _end: usize) -> u64 { fullpipe_stack::NEVER }
//!     fn on_timeout(&mut self, _end: usize, _now: u64) {}
//!     fn application(&mut self, _end: usize, _now: u64, _app: &App) {}
//!     fn transmit(&mut self, _end: usize, _now: u64, _out: &mut Vec<u8>) -> Option<Sent> { None }
//!     fn delivered(&self) -> u64 { 0 }
//!     fn state(&mut self) -> State { State::default() }
//! }
//!
//! let about = About { name: "silent", version: "1.0", licence: "MIT", controllers: &["none"], ..About::default() };
//! serve(&about, |_: &Setup| Ok(Silent)).expect("the world reads what we write");
//! ```
//!
//! Times are nanoseconds of the run. End 0 is the client, which sends the data; end 1 is the server.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::{Value, json};

/// A time that never comes, and a number that is not known.
pub const NEVER: u64 = u64::MAX;
/// The version of the protocol.
const PROTOCOL: u64 = 1;

/// What an adapter says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// The stack, and its version.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its licence, as an SPDX expression.
    pub licence: &'a str,
    /// Its congestion controllers.
    pub controllers: &'a [&'a str],
    /// Whether a datagram is a whole IP packet, rather than the payload of UDP.
    pub is_ip: bool,
    /// Which fields of [`State`] it fills, by their names in the protocol.
    pub tells: &'a [&'a str],
    /// What the adapter decides for the stack: pacing, sizes of writes, acknowledgements.
    pub policy: &'a str,
    /// The largest datagram that it sends, where that is less than what a path carries.
    pub most_datagram: Option<u16>,
}

/// What a connection is made from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Everything random follows from it.
    pub seed: u64,
    /// One of [`About::controllers`].
    pub controller: String,
    /// The longest datagram, bytes: of UDP payload, or of a whole IP packet.
    pub mtu: usize,
    /// Bytes that the receiver allows to be under way.
    pub receive_window: u64,
    /// Bytes that may wait for their acknowledgement.
    pub send_window: u64,
    /// Whether packets keep the ECN codepoint that they are given.
    pub ecn: bool,
}

/// What the sending application wants by now.
#[derive(Clone, Copy, Debug, Default)]
pub struct App {
    /// Bytes to send since the start, after which it closes; [`NEVER`] without end, 0 before it starts.
    pub total: u64,
    /// It has stopped: what is not delivered is abandoned.
    pub stopped: bool,
}

/// What a connection says of itself; [`NEVER`] for what it does not know.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "named as in the protocol; volumes are bytes")]
pub struct State {
    /// The client's handshake is complete, and data may be sent; without a handshake, set it from the start. Cases count from it.
    pub connected: bool,
    /// It has ended, and nobody wanted it to.
    pub failed: bool,
    pub window: u64,
    pub ssthresh: u64,
    pub in_flight: u64,
    pub srtt_ns: u64,
    pub min_rtt_ns: u64,
    /// Bits a second of datagrams.
    pub pacing_bps: u64,
    pub bandwidth_bps: u64,
    /// Packets.
    pub lost: u64,
    pub acked: u64,
    pub timeouts: u64,
    /// The protocol's code of a phase.
    pub phase: u64,
}

impl Default for State {
    fn default() -> State {
        State {
            connected: false,
            failed: false,
            window: NEVER,
            ssthresh: NEVER,
            in_flight: NEVER,
            srtt_ns: NEVER,
            min_rtt_ns: NEVER,
            pacing_bps: NEVER,
            bandwidth_bps: NEVER,
            lost: NEVER,
            acked: NEVER,
            timeouts: NEVER,
            phase: NEVER,
        }
    }
}

/// Datagrams in one go.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When they leave: now, or later if the stack leaves pacing to its caller.
    pub at: u64,
    /// The ECN codepoint, the two bits of the IP header.
    pub ecn: u8,
    /// Bytes of all.
    pub bytes: usize,
    /// Bytes of each but the last; at least 1.
    pub each: usize,
}

/// Both ends of a connection.
pub trait Stack {
    /// A datagram arrives.
    fn receive(&mut self, end: usize, now: u64, ecn: u8, datagram: &mut [u8]);
    /// When [`Stack::on_timeout`] is to be called; [`NEVER`] if nothing is due.
    fn timeout(&mut self, end: usize) -> u64;
    /// That time has come.
    fn on_timeout(&mut self, end: usize, now: u64);
    /// The application of this end writes, or reads, what it can. Called after anything has happened to the end.
    fn application(&mut self, end: usize, now: u64, app: &App);
    /// What the end sends now, into `out`, which is empty; called until it returns `None`.
    fn transmit(&mut self, end: usize, now: u64, out: &mut Vec<u8>) -> Option<Sent>;
    /// Bytes that the receiving application has, in order.
    fn delivered(&self) -> u64;
    /// What the sending end says of itself.
    fn state(&mut self) -> State;
}

static NOW: AtomicU64 = AtomicU64::new(0);

/// The time of the run, for [`virtual_clock!`].
pub fn now() -> u64 {
    NOW.load(Relaxed)
}

/// Defines `clock_gettime` in a program, where it comes before that of libc: for a stack that reads the clock by itself.
#[macro_export]
macro_rules! virtual_clock {
    () => {
        /// # Safety
        /// `out` may be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn clock_gettime(_: i32, out: *mut [i64; 2]) -> i32 {
            let now = $crate::now();
            // 2026-01-01, for certificates.
            unsafe { *out = [(1_767_225_600 + now / 1_000_000_000) as i64, (now % 1_000_000_000) as i64] };
            0
        }
    };
}

static RANDOM: AtomicU64 = AtomicU64::new(0);

/// Fills with what follows from the seed (SplitMix64; Steele, Lea and Flood 2014), for what a stack draws.
pub fn fill_random(out: &mut [u8]) {
    for piece in out.chunks_mut(8) {
        let mut z = RANDOM.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        piece.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..piece.len()]);
    }
}

fn read_frame(input: &mut impl Read, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
        other => other?,
    }
    into.resize(u32::from_le_bytes(length) as usize, 0);
    input.read_exact(into)?;
    Ok(true)
}

unsafe extern "C" {
    fn dup2(from: i32, to: i32) -> i32;
}

/// Standard output for the protocol alone: what the stack prints goes to standard error from here on.
fn take_stdout() -> io::Result<File> {
    io::stdout().flush()?;
    let ours = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // SAFETY: `dup2` takes no memory, and nobody owns the descriptor that it closes.
    match unsafe { dup2(io::stderr().as_raw_fd(), io::stdout().as_raw_fd()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(ours),
    }
}

fn write_frame(output: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    output.write_all(&(frame.len() as u32).to_le_bytes())?;
    output.write_all(frame)?;
    output.flush()
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

fn half(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize
}

/// Speaks the protocol on standard input and output until the input ends. `make` makes the connection. From its call on, what is written to
/// standard output goes to standard error.
///
/// # Errors
/// When input or output fails, or [`Sent`] is not what it may be.
pub fn serve<S: Stack>(about: &About<'_>, make: impl FnOnce(&Setup) -> Result<S, String>) -> io::Result<()> {
    converse(about, make, &mut io::stdin().lock(), &mut BufWriter::new(take_stdout()?))
}

fn converse<S: Stack>(
    about: &About<'_>,
    make: impl FnOnce(&Setup) -> Result<S, String>,
    input: &mut impl Read,
    output: &mut impl Write,
) -> io::Result<()> {
    let mut asked = Vec::new();
    if !read_frame(input, &mut asked)? {
        return Ok(());
    }
    let layer = if about.is_ip { "ip" } else { "udp" };
    let reported = json!({
        "protocol": PROTOCOL, "name": about.name, "version": about.version, "licence": about.licence,
        "controllers": about.controllers, "layer": layer, "tells": about.tells, "policy": about.policy,
        "most_datagram": about.most_datagram,
    });
    write_frame(output, reported.to_string().as_bytes())?;
    if !read_frame(input, &mut asked)? {
        return Ok(());
    }
    let message: Value = serde_json::from_slice(&asked).unwrap_or_default();
    let number = |name: &str| message[name].as_u64().unwrap_or(0);
    let setup = Setup {
        seed: number("seed"),
        controller: message["controller"].as_str().unwrap_or_default().to_owned(),
        mtu: number("mtu") as usize,
        receive_window: number("receive_window"),
        send_window: number("send_window"),
        ecn: message["ecn"] == true,
    };
    RANDOM.store(setup.seed, Relaxed);
    let made = make(&setup);
    let answer = match &made {
        Ok(_) => json!({"ok": true}),
        Err(why) => json!({"ok": false, "message": why}),
    };
    write_frame(output, answer.to_string().as_bytes())?;
    let Ok(mut stack) = made else { return Ok(()) };
    let mut connection = Ends { app: App::default(), touched: [true; 2], delivered: (0, NEVER) };
    let mut answer = Vec::new();
    while read_frame(input, &mut asked)? {
        answer.clear();
        connection.turn(&mut stack, &mut asked, &mut answer)?;
        write_frame(output, &answer)?;
    }
    Ok(())
}

/// What a turn leaves for the next.
struct Ends {
    app: App,
    /// Which ends something has happened to.
    touched: [bool; 2],
    /// Bytes, and when the latest came.
    delivered: (u64, u64),
}

/// Bytes of an answer in front of its departures.
const HEAD: usize = 16 * 8 + 4;

impl Ends {
    fn turn<S: Stack>(&mut self, stack: &mut S, asked: &mut [u8], answer: &mut Vec<u8>) -> io::Result<()> {
        let (mut now, until) = (word(asked, 0), word(asked, 8));
        let (mut arrivals, mut events) = (half(asked, 16), half(asked, 20));
        let (mut at, mut event) = (24, 24);
        for _ in 0..arrivals {
            event += 16 + half(asked, event + 12);
        }
        answer.resize(HEAD, 0);
        let mut out = Vec::with_capacity(1 << 16);
        let mut count = 0u32;
        loop {
            NOW.store(now, Relaxed);
            while arrivals > 0 && word(asked, at) <= now {
                let (end, ecn, length) = (usize::from(asked[at + 8]), asked[at + 9], half(asked, at + 12));
                stack.receive(end, now, ecn, &mut asked[at + 16..at + 16 + length]);
                self.touched[end] = true;
                (at, arrivals) = (at + 16 + length, arrivals - 1);
            }
            while events > 0 && word(asked, event) <= now {
                match asked[event + 8] {
                    0 => self.app.total = word(asked, event + 16),
                    _ => self.app.stopped = true,
                }
                self.touched[0] = true;
                (event, events) = (event + 24, events - 1);
            }
            for end in [1, 0] {
                if stack.timeout(end) <= now {
                    stack.on_timeout(end, now);
                    self.touched[end] = true;
                }
                if !std::mem::take(&mut self.touched[end]) {
                    continue;
                }
                stack.application(end, now, &self.app);
                out.clear();
                while let Some(sent) = stack.transmit(end, now, &mut out) {
                    if sent.each == 0 || sent.bytes > out.len() {
                        return Err(io::Error::other(format!(
                            "transmit() writes {} bytes and returns {sent:?}; `bytes` is at most that, `each` at least 1",
                            out.len()
                        )));
                    }
                    for datagram in out[..sent.bytes].chunks(sent.each) {
                        answer.extend(sent.at.to_le_bytes());
                        answer.extend([end as u8, sent.ecn & 3, 0, 0]);
                        answer.extend((datagram.len() as u32).to_le_bytes());
                        answer.extend_from_slice(datagram);
                        count += 1;
                    }
                    out.clear();
                }
            }
            let delivered = stack.delivered();
            if delivered != self.delivered.0 {
                self.delivered = (delivered, now);
            }
            let arrival = if arrivals > 0 { word(asked, at) } else { NEVER };
            let of_app = if events > 0 { word(asked, event) } else { NEVER };
            // A timer of now has been handled.
            let timer = stack.timeout(0).min(stack.timeout(1)).max(now.saturating_add(1));
            let next = arrival.min(of_app).min(timer);
            if next > until {
                break;
            }
            now = next;
        }
        let state = stack.state();
        let next = stack.timeout(0).min(stack.timeout(1)).max(until.saturating_add(1));
        let flags = u64::from(state.connected) | u64::from(state.failed) << 1;
        let words = [
            until,
            next,
            flags,
            self.delivered.0,
            self.delivered.1,
            state.window,
            state.ssthresh,
            state.in_flight,
            state.srtt_ns,
            state.min_rtt_ns,
            state.pacing_bps,
            state.bandwidth_bps,
            state.lost,
            state.acked,
            state.timeouts,
            state.phase,
        ];
        for (place, word) in answer.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        answer[HEAD - 4..HEAD].copy_from_slice(&count.to_le_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Echoes what the other end sent, two milliseconds later.
    #[derive(Default)]
    struct Echo {
        due: [Option<u64>; 2],
        got: u64,
        wants: u64,
        /// How long before now it says that it sends, and bytes of each datagram.
        early: u64,
        each: usize,
    }

    impl Stack for Echo {
        fn receive(&mut self, end: usize, now: u64, _: u8, datagram: &mut [u8]) {
            self.got += datagram.len() as u64;
            self.due[end] = Some(now + 2_000_000);
        }
        fn timeout(&mut self, end: usize) -> u64 {
            self.due[end].unwrap_or(NEVER)
        }
        fn on_timeout(&mut self, _: usize, _: u64) {}
        fn application(&mut self, _: usize, _: u64, app: &App) {
            self.wants = app.total;
        }
        fn transmit(&mut self, end: usize, now: u64, out: &mut Vec<u8>) -> Option<Sent> {
            self.due[end].take_if(|due| *due <= now)?;
            out.extend([7; 5]);
            Some(Sent { at: now - self.early, ecn: 2, bytes: 5, each: self.each })
        }
        fn delivered(&self) -> u64 {
            self.got
        }
        fn state(&mut self) -> State {
            State { connected: true, window: self.wants, ..State::default() }
        }
    }

    fn frame(content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32).to_le_bytes(), content].concat()
    }

    fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut one = Vec::new();
        while read_frame(&mut bytes, &mut one).unwrap() {
            all.push(one.clone());
        }
        all
    }

    #[test]
    fn a_conversation_is_as_the_protocol_says() {
        let about = About { name: "echo", version: "1", controllers: &["none"], ..About::default() };
        // A turn of ten milliseconds: a datagram of three bytes arrives in its middle, and the application wants 9 bytes.
        let mut turn = Vec::new();
        turn.extend(1_000_000u64.to_le_bytes());
        turn.extend(11_000_000u64.to_le_bytes());
        turn.extend([1, 0, 0, 0, 1, 0, 0, 0]);
        turn.extend(5_000_000u64.to_le_bytes());
        turn.extend([1, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3]);
        turn.extend(1_000_000u64.to_le_bytes());
        turn.extend([0; 8]);
        turn.extend(9u64.to_le_bytes());
        let setup = json!({"seed": 5, "controller": "none", "mtu": 1472, "receive_window": 1}).to_string();
        let input = [frame(br#"{"protocol": 1}"#), frame(setup.as_bytes()), frame(&turn)].concat();
        let mut output = Vec::new();
        let make = |setup: &Setup| {
            assert_eq!((setup.seed, setup.mtu, setup.controller.as_str()), (5, 1472, "none"));
            Ok(Echo { each: 2, ..Echo::default() })
        };
        converse(&about, make, &mut &input[..], &mut output).unwrap();
        let frames = frames(&output);
        assert_eq!(frames.len(), 3);
        let reported: Value = serde_json::from_slice(&frames[0]).unwrap();
        assert_eq!((&reported["protocol"], &reported["layer"]), (&json!(1), &json!("udp")));
        assert_eq!(frames[1], br#"{"ok":true}"#);
        let answer = &frames[2];
        let words: Vec<u64> = (0..16).map(|index| word(answer, 8 * index)).collect();
        assert_eq!(words[..6], [11_000_000, NEVER, 1, 3, 5_000_000, 9]);
        // Five bytes in datagrams of two.
        assert_eq!(half(answer, HEAD - 4), 3);
        assert_eq!((word(answer, HEAD), answer[HEAD + 8], answer[HEAD + 9]), (7_000_000, 1, 2));
        assert_eq!(answer.len(), HEAD + 3 * 16 + 5);
    }

    /// The answer to a turn in which a datagram leaves at 2 ms.
    fn answer(mut stack: Echo) -> io::Result<Vec<u8>> {
        stack.due[1] = Some(2_000_000);
        let turn = [0, 3_000_000, 0].map(u64::to_le_bytes).concat();
        let input = [frame(b"{}"), frame(b"{}"), frame(&turn)].concat();
        let mut output = Vec::new();
        converse(&About::default(), |_| Ok(stack), &mut &input[..], &mut output)?;
        Ok(frames(&output)[2].clone())
    }

    #[test]
    fn a_time_in_the_past_is_left_for_the_world_to_refuse() {
        let answer = answer(Echo { early: 1_500_000, each: 5, ..Echo::default() }).unwrap();
        assert_eq!(word(&answer, HEAD), 500_000);
    }

    #[test]
    fn datagrams_of_no_bytes_are_an_error() {
        let error = answer(Echo::default()).unwrap_err().to_string();
        assert!(error.contains("each: 0 }; `bytes` is at most that, `each` at least 1"), "{error}");
    }

    #[test]
    fn what_cannot_be_made_is_said() {
        let input = [frame(b"{}"), frame(b"{}")].concat();
        let mut output = Vec::new();
        let make = |_: &Setup| Err::<Echo, _>("no such controller".to_owned());
        converse(&About::default(), make, &mut &input[..], &mut output).unwrap();
        assert_eq!(frames(&output)[1], br#"{"message":"no such controller","ok":false}"#);
    }
}
