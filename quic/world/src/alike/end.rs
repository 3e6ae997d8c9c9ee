//! Both ends of a connection, as each of the stacks makes them.
//!
//! noq-proto began as a fork of quinn-proto, and most of what is used here has the same names in both. This file is compiled once
//! for each, as a module of `crate::noq` and of `crate::quinn`: `proto` is the stack, and what differs is in those two.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use fullpipe_cc::Phase;
use fullpipe_path::Ecn;
use fullpipe_units::Time;

use super::proto::congestion::{Controller, ControllerFactory};
use super::proto::crypto::{CryptoError, HmacKey};
use super::proto::{
    self, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir,
    EcnCodepoint, EndpointConfig, ReadError, Side, StreamEvent, StreamId, TimeSource, TransportConfig,
    VarInt, WriteError,
};
use super::{Factory, Peer, keys};
use crate::chunk::{CHUNK, epoch, since, then};
use crate::endpoint::{
    Counted, Endpoint, Event, Piece, ReadEnd, Recovery, Setup, State, Stream, Tally, Transmit,
};
use crate::tls::SERVER;

const CLIENT_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 50_000);
const SERVER_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// Both ends of a connection: the sender, which is the client, and the receiver.
pub(crate) fn pair(setup: &Setup, controller: Factory) -> (End, End) {
    let watched =
        Arc::new(Watching { inner: controller, tally: setup.tally.clone(), max_window: setup.max_window });
    let sender = transport(setup, Some(watched));
    let receiver = transport(setup, None);

    let (client, server) = keys::configs(setup);
    let mut client_config = proto::ClientConfig::new(client);
    let first = setup.cid(0, u64::MAX);
    client_config
        .transport_config(Arc::new(sender))
        .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first)));
    let mut server_config = proto::ServerConfig::new(server, Arc::new(super::NoTokens));
    let mut tokens = proto::ValidationTokenConfig::default();
    tokens.sent(0);
    server_config
        .transport_config(Arc::new(receiver))
        .validation_token_config(tokens)
        .time_source(Arc::new(Epoch));

    let epoch = epoch();
    let end = |config, server, client, peer| End {
        endpoint: super::endpoint(config, server),
        client,
        connection: None,
        epoch,
        peer: super::peer(peer),
        failed: None,
    };
    (
        end(endpoint_config(setup, 0), None, Some(client_config), SERVER_ADDRESS),
        end(endpoint_config(setup, 1), Some(Arc::new(server_config)), None, CLIENT_ADDRESS),
    )
}

fn transport(setup: &Setup, controller: Option<Arc<Watching>>) -> TransportConfig {
    let window = VarInt::from_u64(setup.receive_window).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(setup.payload)
        // The path carries packets of this size, and nobody looks for another one. Without this, a few bursts of losses would be
        // taken for a path that no longer does (`BlackHoleDetector`), and all later packets would have 1200 bytes.
        .min_mtu(setup.payload)
        .mtu_discovery_config(None)
        // A path may be silent for longer than the default of 30 s.
        .max_idle_timeout(None)
        .send_window(setup.send_window)
        .receive_window(window)
        .stream_receive_window(window)
        .send_fairness(false);
    if let Some(controller) = controller {
        transport.congestion_controller_factory(controller);
    }
    transport
}

fn endpoint_config(setup: &Setup, end: usize) -> Arc<EndpointConfig> {
    let mut config = EndpointConfig::new(Arc::new(ResetKey(setup.seeds[end])));
    let ids = setup.clone();
    super::generate_ids(&mut config, move || Box::new(Ids { setup: ids.clone(), end, number: 0 }));
    config
        .rng_seed(Some(setup.seed_bytes(end)))
        .max_udp_payload_size(setup.payload.max(1472))
        .expect("at least 1200 bytes, and at most 65507: `refuses`");
    Arc::new(config)
}

/// One end.
pub(crate) struct End {
    endpoint: proto::Endpoint,
    client: Option<proto::ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    epoch: Instant,
    peer: Peer,
    /// Why it could not begin.
    failed: Option<String>,
}

impl End {
    fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }
}

fn id(stream: Stream) -> StreamId {
    let side = if stream.is_of_server() { Side::Server } else { Side::Client };
    StreamId::new(side, dir(stream.is_uni()), stream.index())
}

fn stream(id: StreamId) -> Stream {
    Stream(VarInt::from(id).into_inner())
}

fn dir(uni: bool) -> Dir {
    if uni { Dir::Uni } else { Dir::Bi }
}

impl Endpoint for End {
    fn connect(&mut self, now: Time) -> Result<(), String> {
        let client = self.client.take().ok_or("it connects once")?;
        let connection = self
            .endpoint
            .connect(then(self.epoch, now), client, SERVER_ADDRESS, SERVER)
            .map_err(|error| error.to_string())?;
        self.connection = Some(connection);
        Ok(())
    }

    fn receive(&mut self, now: Time, ecn: Ecn, datagram: BytesMut, answer: &mut Vec<u8>) -> Option<usize> {
        let at = then(self.epoch, now);
        let ecn = EcnCodepoint::from_bits(ecn as u8);
        match super::handle(&mut self.endpoint, at, self.peer, ecn, datagram, answer)? {
            DatagramEvent::ConnectionEvent(_, event) => {
                if let Some(connection) = self.connection() {
                    connection.handle_event(event);
                }
                None
            }
            DatagramEvent::NewConnection(incoming) => {
                match self.endpoint.accept(incoming, at, answer, None) {
                    Ok(connection) => {
                        self.connection = Some(connection);
                        None
                    }
                    Err(error) => {
                        self.failed = Some(error.cause.to_string());
                        error.response.map(|response| response.size)
                    }
                }
            }
            DatagramEvent::Response(response) => Some(response.size),
        }
    }

    fn poll(&mut self) -> Option<Event> {
        if let Some(reason) = self.failed.take() {
            return Some(Event::Lost(reason));
        }
        let connection = self.connection()?;
        loop {
            return Some(match connection.poll()? {
                proto::Event::Connected => Event::Connected,
                proto::Event::ConnectionLost { reason } => Event::Lost(reason.to_string()),
                proto::Event::Stream(StreamEvent::Opened { dir }) => Event::Opened { uni: dir == Dir::Uni },
                proto::Event::Stream(StreamEvent::Readable { id }) => Event::Readable(stream(id)),
                proto::Event::Stream(StreamEvent::Writable { .. }) => Event::Writable,
                proto::Event::Stream(StreamEvent::Available { .. }) => Event::MoreStreams,
                _ => continue,
            });
        }
    }

    fn transmit(&mut self, now: Time, most: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let at = then(self.epoch, now);
        let transmit = super::poll_transmit(self.connection()?, at, most, out)?;
        Some(Transmit {
            bytes: transmit.size,
            each: transmit.segment_size.unwrap_or(transmit.size),
            ecn: Ecn::from_bits(transmit.ecn.map_or(0, |ecn| ecn as u8)),
        })
    }

    fn exchange(&mut self) -> bool {
        let Some((handle, connection)) = &mut self.connection else { return false };
        let mut any = false;
        while let Some(event) = connection.poll_endpoint_events() {
            any = true;
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        any
    }

    fn timeout(&mut self) -> Time {
        let epoch = self.epoch;
        self.connection().and_then(|one| one.poll_timeout()).map_or(Time::NEVER, |at| since(epoch, at))
    }

    fn on_timeout(&mut self, now: Time) {
        let at = then(self.epoch, now);
        if let Some(connection) = self.connection() {
            connection.handle_timeout(at);
        }
    }

    fn open(&mut self, uni: bool) -> Option<Stream> {
        self.connection()?.streams().open(dir(uni)).map(stream)
    }

    fn accept(&mut self, uni: bool) -> Option<Stream> {
        self.connection()?.streams().accept(dir(uni)).map(stream)
    }

    fn write(&mut self, stream: Stream, bytes: u64) -> Result<u64, String> {
        let Some(connection) = self.connection() else { return Ok(0) };
        let mut send = connection.send_stream(id(stream));
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(CHUNK.len() as u64) as usize;
            match super::write(&mut send, Bytes::from_static(&CHUNK[..piece])) {
                Ok(taken) => left -= taken as u64,
                Err(WriteError::Blocked) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(bytes - left)
    }

    fn finish(&mut self, stream: Stream) {
        if let Some(connection) = self.connection() {
            // It fails only for streams that are finished or reset.
            let _ = connection.send_stream(id(stream)).finish();
        }
    }

    fn reset(&mut self, stream: Stream) {
        if let Some(connection) = self.connection() {
            // It fails only for streams of which nothing is left.
            let _ = connection.send_stream(id(stream)).reset(VarInt::from_u32(0));
        }
    }

    fn read(&mut self, stream: Stream, each: &mut dyn FnMut(Piece)) -> ReadEnd {
        let Some(connection) = self.connection() else { return ReadEnd::Open };
        let mut receive = connection.recv_stream(id(stream));
        // All of it has been read before.
        let Ok(mut chunks) = receive.read(false) else { return ReadEnd::Open };
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => each(Piece { offset: chunk.offset, bytes: chunk.bytes.len() as u64 }),
                Ok(None) => break ReadEnd::Finished,
                Err(ReadError::Blocked) => break ReadEnd::Open,
                Err(ReadError::Reset(_)) => break ReadEnd::Reset,
            }
        };
        // What it has to tell the peer is sent when this end next transmits, which it does after each event.
        let _ = chunks.finalize();
        end
    }

    fn state(&mut self) -> State {
        self.connection().and_then(super::state).unwrap_or_default()
    }

    fn counted(&mut self) -> Counted {
        self.connection().map(super::counted).unwrap_or_default()
    }

    fn phase_of_bbr(&mut self) -> Option<Phase> {
        self.connection().and_then(super::phase_of_bbr)
    }
}

/// Connection ids from the seed.
struct Ids {
    setup: Setup,
    end: usize,
    number: u64,
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.number += 1;
        ConnectionId::new(&self.setup.cid(self.end, self.number))
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

/// Makes the tokens of stateless resets; nobody attacks them here.
struct ResetKey(u64);

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        crate::chunk::sign(self.0, data, out);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        self.sign(data, &mut expected);
        if expected == signature { Ok(()) } else { Err(CryptoError) }
    }
}

struct Epoch;

impl TimeSource for Epoch {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Wraps a controller, counts what the stack tells it, and bounds its window.
pub(super) struct Watched {
    pub(super) inner: Box<dyn Controller>,
    pub(super) tally: Arc<Tally>,
    pub(super) cap: Cap,
    pub(super) recovery: Recovery,
}

struct Watching {
    inner: Factory,
    tally: Arc<Tally>,
    max_window: Option<u64>,
}

impl ControllerFactory for Watching {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = self.inner.clone().build(now, current_mtu);
        let mut cap = Cap { most: self.max_window, binds: false };
        cap.see(&*inner);
        self.tally.on_made(super::is_bbr(inner.clone_box()));
        Box::new(Watched { inner, tally: self.tally.clone(), cap, recovery: Recovery::default() })
    }
}

/// The limit of a window whose controller does not know of it.
///
/// An application that never has more under way, or that asks for the data piece by piece, limits a sender in the same way: the
/// window stays unfilled, the stack says that the application is the limit, and the window does not grow (RFC 9002 section 7.8).
/// The stack cannot say so here, because a bounded window is full. So while the controller allows at least as much as the limit,
/// it is told with each acknowledged packet that the application limits it, and not that the window does. The end of an ACK says
/// what the stack says: noq's BBRv3 takes its state from there, and would never leave Startup if every ACK were limited so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cap {
    /// Bytes in flight; `None` if there is no limit.
    most: Option<u64>,
    /// Whether the limit is what binds, as of the last packet sent. A controller may settle an ACK when it is asked for its
    /// window, so that it is asked only where its stack has just done so.
    binds: bool,
}

impl Cap {
    /// Looks at the controller, which was just notified of a packet that was sent.
    pub(super) fn see(&mut self, controller: &dyn Controller) {
        self.binds = self.granted().is_some_and(|granted| controller.window() >= granted);
    }

    /// Whether it binds.
    pub(super) fn binds(&self) -> bool {
        self.binds
    }

    /// The window with which the stack lets no more be in flight than is allowed.
    fn granted(&self) -> Option<u64> {
        self.most.map(|most| most.saturating_add(super::UNFILLED))
    }

    /// What the stack learns of a window.
    pub(super) fn grant(&self, window: u64) -> u64 {
        self.granted().map_or(window, |granted| window.min(granted))
    }

    /// What is shown of a window.
    pub(super) fn bound(&self, window: u64) -> u64 {
        self.most.map_or(window, |most| window.min(most))
    }
}
