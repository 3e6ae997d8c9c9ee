//! s2n-quic in virtual time. Its endpoints are taken from it by an IO provider, and driven from here.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use fullpipe_stack::{About, App, NEVER, Sent, Setup, Stack, State, fill_random, serve};
use s2n_quic::client::{Connect, ConnectionAttempt};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};
use s2n_quic::provider::{congestion_controller as cc, io, limits::Limits, random};
use s2n_quic::stream::{ReceiveStream, SendStream};
use s2n_quic::{Client, Connection, Server};
use s2n_quic_core::endpoint::Endpoint;
use s2n_quic_core::inet::{ExplicitCongestionNotification as Ecn, SocketAddress, datagram::Header};
use s2n_quic_core::io::{rx, tx};
use s2n_quic_core::path::{Tuple, mtu};
use s2n_quic_core::time::Timestamp;

// For TLS, and for certificates.
fullpipe_stack::virtual_clock!();

/// s2n-quic's times have no zero.
const ORIGIN: Duration = Duration::from_secs(1);

fn at(now: u64) -> Timestamp {
    // SAFETY: this is the source of time, which is what is asked for.
    unsafe { Timestamp::from_duration(ORIGIN + Duration::from_nanos(now)) }
}

fn address(host: usize) -> SocketAddress {
    std::net::SocketAddr::from(([10, 0, 0, host as u8 + 1], 1000)).into()
}

/// A datagram for [`Endpoint::receive`].
struct Came<'a>(Option<(Header<Tuple>, &'a mut [u8])>);

impl rx::Queue for Came<'_> {
    type Handle = Tuple;

    fn for_each<F: FnMut(Header<Tuple>, &mut [u8])>(&mut self, mut take: F) {
        if let Some((header, datagram)) = self.0.take() {
            take(header, datagram);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// What [`Endpoint::transmit`] sends.
#[derive(Default)]
struct Leaves(VecDeque<(u8, Vec<u8>)>);

impl tx::Queue for Leaves {
    type Handle = Tuple;
    const SUPPORTS_ECN: bool = true;

    fn push<M: tx::Message<Handle = Tuple>>(&mut self, mut message: M) -> Result<tx::Outcome, tx::Error> {
        let mut datagram = vec![0; 1 << 16];
        let len = message.write_payload(tx::PayloadBuffer::new(&mut datagram), 0)?;
        datagram.truncate(len);
        self.0.push_back((message.ecn() as u8, datagram));
        Ok(tx::Outcome { len, index: 0 })
    }

    fn capacity(&self) -> usize {
        usize::MAX
    }
}

/// An endpoint, whatever its providers are.
trait Driven: Send {
    fn receive(&mut self, now: Timestamp, came: &mut Came<'_>);
    fn transmit(&mut self, now: Timestamp, leaves: &mut Leaves);
    fn timeout(&self) -> Option<Timestamp>;
}

impl<E: Endpoint<PathHandle = Tuple>> Driven for E {
    fn receive(&mut self, now: Timestamp, came: &mut Came<'_>) {
        Endpoint::receive(self, came, &now);
    }

    fn transmit(&mut self, now: Timestamp, leaves: &mut Leaves) {
        // What the application has asked for.
        while let Poll::Ready(Ok(1..)) = self.poll_wakeups(&mut Context::from_waker(Waker::noop()), &now) {}
        Endpoint::transmit(self, leaves, &now);
    }

    fn timeout(&self) -> Option<Timestamp> {
        Endpoint::timeout(self)
    }
}

/// Where an endpoint is put when it starts.
#[derive(Clone, Default)]
struct Io(Arc<Mutex<Option<Box<dyn Driven>>>>, usize, mtu::Config);

impl io::Provider for Io {
    type PathHandle = Tuple;
    type Error = Infallible;

    fn start<E: Endpoint<PathHandle = Tuple>>(self, mut endpoint: E) -> Result<SocketAddress, Infallible> {
        endpoint.set_mtu_config(self.2);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(endpoint));
        Ok(address(self.1))
    }
}

/// Random numbers of both endpoints. TLS draws its own, of constant lengths.
struct Drawn;

impl random::Generator for Drawn {
    fn public_random_fill(&mut self, out: &mut [u8]) {
        fill_random(out);
    }

    fn private_random_fill(&mut self, out: &mut [u8]) {
        fill_random(out);
    }
}

impl random::Provider for Drawn {
    type Generator = Drawn;
    type Error = Infallible;

    fn start(self) -> Result<Drawn, Infallible> {
        Ok(self)
    }
}

/// What the sender's events say.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<State>>);

impl Told {
    fn note(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Subscriber for Told {
    type ConnectionContext = ();

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) {}

    fn on_recovery_metrics(&mut self, (): &mut (), _: &ConnectionMeta, now: &events::RecoveryMetrics<'_>) {
        self.note(|state| {
            (state.window, state.in_flight) = (now.congestion_window.into(), now.bytes_in_flight.into());
            (state.srtt_ns, state.min_rtt_ns) =
                (now.smoothed_rtt.as_nanos() as u64, now.min_rtt.as_nanos() as u64);
        });
    }

    fn on_packet_lost(&mut self, (): &mut (), _: &ConnectionMeta, _: &events::PacketLost<'_>) {
        self.note(|state| state.lost += 1);
    }

    fn on_pacing_rate_updated(&mut self, (): &mut (), _: &ConnectionMeta, now: &events::PacingRateUpdated) {
        self.note(|state| {
            state.pacing_bps = 8 * now.bytes_per_second;
            state.bandwidth_bps =
                (state.pacing_bps as f64 / f64::from(now.pacing_gain) / BELOW_BANDWIDTH) as u64;
        });
    }

    fn on_bbr_state_changed(&mut self, (): &mut (), _: &ConnectionMeta, now: &events::BbrStateChanged) {
        use events::BbrState as Bbr;
        self.note(|state| {
            state.phase = match now.state {
                Bbr::Startup { .. } => 4,
                Bbr::Drain { .. } => 5,
                Bbr::ProbeBwUp { .. } => 6,
                Bbr::ProbeBwDown { .. } => 7,
                Bbr::ProbeBwCruise { .. } => 8,
                Bbr::ProbeRtt { .. } => 9,
                Bbr::ProbeBwRefill { .. } => 10,
                _ => NEVER,
            }
        });
    }
}

struct S2n {
    ends: [Box<dyn Driven>; 2],
    leaves: [Leaves; 2],
    told: Told,
    client: Client,
    server: Server,
    attempt: Option<ConnectionAttempt>,
    connections: [Option<Connection>; 2],
    sends: Option<SendStream>,
    receives: Option<ReceiveStream>,
    written: u64,
    delivered: u64,
    failed: bool,
}

impl S2n {
    fn new<C: cc::Provider>(setup: &Setup, controller: C) -> Result<S2n, Box<dyn Error>> {
        // IP and UDP are part of s2n-quic's MTU. Smaller datagrams are not tried first.
        let mtu = u16::try_from(setup.mtu + 28)?;
        let mtu = mtu::Config::builder().with_max_mtu(mtu)?.with_initial_mtu(mtu)?.build()?;
        let ios = [0, 1].map(|end| Io(Arc::default(), end, mtu));
        let window = setup.receive_window.min(u32::MAX.into());
        let limits = Limits::new()
            .with_data_window(window)?
            .with_unidirectional_data_window(window)?
            .with_max_send_buffer_size(u32::try_from(setup.send_window).unwrap_or(u32::MAX))?;
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
        let certificate = rcgen::CertificateParams::new(vec!["localhost".into()])?.self_signed(&key)?.pem();
        let told = Told::default();
        told.note(|state| state.lost = 0);
        let client = Client::builder()
            .with_tls(certificate.as_str())?
            .with_io(ios[0].clone())?
            .with_random(Drawn)?
            .with_limits(limits)?
            .with_event(told.clone())?
            .with_congestion_controller(controller)?
            .start()?;
        let server = Server::builder()
            .with_tls((certificate.as_str(), key.serialize_pem().as_str()))?
            .with_io(ios[1].clone())?
            .with_random(Drawn)?
            .with_limits(limits)?
            .start()?;
        let [first, second] = ios.map(|io| io.0.lock().unwrap_or_else(PoisonError::into_inner).take());
        let ends = [first.ok_or("the client has no endpoint")?, second.ok_or("the server has no endpoint")?];
        Ok(S2n {
            ends,
            leaves: Default::default(),
            told,
            client,
            server,
            attempt: None,
            connections: [None, None],
            sends: None,
            receives: None,
            written: 0,
            delivered: 0,
            failed: false,
        })
    }

    fn send(&mut self, cx: &mut Context<'_>, app: &App) -> Result<(), Box<dyn Error>> {
        if app.total > 0 && self.attempt.is_none() && self.connections[0].is_none() {
            self.attempt = Some(self.client.connect(Connect::new(address(1)).with_server_name("localhost")));
        }
        if let Some(attempt) = &mut self.attempt
            && let Poll::Ready(connection) = Pin::new(attempt).poll(cx)
        {
            (self.connections[0], self.attempt) = (Some(connection?), None);
        }
        if let Some(connection) = &mut self.connections[0]
            && self.sends.is_none()
            && let Poll::Ready(stream) = connection.poll_open_send_stream(cx)
        {
            self.sends = Some(stream?);
        }
        let Some(stream) = &mut self.sends else { return Ok(()) };
        if app.stopped {
            return Ok(stream.reset(0u32.into())?);
        }
        while self.written < app.total
            && let Poll::Ready(room) = stream.poll_send_ready(cx)
        {
            let piece =
                room?.min(ZEROS.len()).min(usize::try_from(app.total - self.written).unwrap_or(usize::MAX));
            stream.send_data(Bytes::from_static(&ZEROS[..piece]))?;
            self.written += piece as u64;
            if self.written == app.total {
                stream.finish()?;
            }
        }
        Ok(())
    }

    fn take(&mut self, cx: &mut Context<'_>) -> Result<(), Box<dyn Error>> {
        if self.connections[1].is_none()
            && let Poll::Ready(connection) = self.server.poll_accept(cx)
        {
            self.connections[1] = connection;
        }
        if let Some(connection) = &mut self.connections[1]
            && self.receives.is_none()
            && let Poll::Ready(stream) = connection.poll_accept_receive_stream(cx)
        {
            self.receives = stream?;
        }
        let Some(stream) = &mut self.receives else { return Ok(()) };
        while let Poll::Ready(Some(piece)) = stream.poll_receive(cx)? {
            self.delivered += piece.len() as u64;
        }
        Ok(())
    }
}

/// BBR paces so much below its bandwidth (`recovery/bbr/pacing.rs`).
const BELOW_BANDWIDTH: f64 = 0.99;
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl Stack for S2n {
    fn receive(&mut self, end: usize, now: u64, ecn: u8, datagram: &mut [u8]) {
        let path = Tuple { remote_address: address(1 - end).into(), local_address: address(end).into() };
        let mut came = Came(Some((Header { path, ecn: Ecn::new(ecn) }, datagram)));
        self.ends[end].receive(at(now), &mut came);
    }

    fn timeout(&mut self, end: usize) -> u64 {
        let due = self.ends[end].timeout();
        due.map_or(NEVER, |due| due.saturating_duration_since(at(0)).as_nanos() as u64)
    }

    fn on_timeout(&mut self, _: usize, _: u64) {}

    fn application(&mut self, end: usize, _: u64, app: &App) {
        let mut cx = Context::from_waker(Waker::noop());
        let done = if end == 0 { self.send(&mut cx, app) } else { self.take(&mut cx) };
        if let Err(error) = done
            && !app.stopped
        {
            eprintln!("end {end}: {error}");
            self.failed = true;
        }
    }

    fn transmit(&mut self, end: usize, now: u64, out: &mut Vec<u8>) -> Option<Sent> {
        let leaves = &mut self.leaves[end];
        if leaves.0.is_empty() {
            self.ends[end].transmit(at(now), leaves);
        }
        let (ecn, datagram) = leaves.0.pop_front()?;
        *out = datagram;
        Some(Sent { at: now, ecn, bytes: out.len(), each: out.len() })
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }

    fn state(&mut self) -> State {
        let told = *self.told.0.lock().unwrap_or_else(PoisonError::into_inner);
        State { connected: self.connections[0].is_some(), failed: self.failed, ..told }
    }
}

fn main() -> std::io::Result<()> {
    let about = About {
        name: "s2n-quic",
        version: "1.91.0",
        licence: "Apache-2.0",
        controllers: &["cubic", "bbr"],
        tells: &["window", "in_flight", "srtt", "min_rtt", "pacing_rate", "bandwidth", "lost", "phase"],
        policy: "its own pacer, whose timers are as fine as a millisecond; writes fill the send buffer",
        ..About::default()
    };
    serve(&about, |setup| {
        let made = match setup.controller.as_str() {
            "cubic" => S2n::new(setup, cc::Cubic::default()),
            "bbr" => S2n::new(setup, cc::Bbr::default()),
            other => return Err(format!("s2n-quic has no controller {other}")),
        };
        made.map_err(|error| error.to_string())
    })
}
