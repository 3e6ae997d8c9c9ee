//! quinn: its endpoints, with a session whose keys can be null, and a controller that is watched.

use std::any::Any;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use fullpipe_path::Ecn;
use fullpipe_units::{Duration, Time};
use quinn_proto::congestion::{Bbr, Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::crypto::{
    self, AeadKey, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair,
    Keys, PacketKey, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{
    ConnectError, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir,
    EcnCodepoint, EndpointConfig, ReadError, RttEstimator, Side, StreamEvent, StreamId, TimeSource,
    TransportConfig, TransportError, VarInt, WriteError,
};

use crate::cc::{self, QuinnFactory};
use crate::chunk::{CHUNK, epoch, paced_by_window, since, then};
use crate::endpoint::{Endpoint, Event, Piece, ReadEnd, Setup, State, Stream, Tally, Transmit};
use crate::null::Nonce;
use crate::options::Crypto;
use crate::tls::{SERVER, TLS};

const CLIENT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 50_000);
const SERVER_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 443);

/// Both ends of a connection: the sender, which is the client, and the receiver.
pub(crate) fn pair(setup: &Setup, controller: QuinnFactory) -> (Quinn, Quinn) {
    let watched = Arc::new(Watching {
        inner: controller,
        tally: setup.tally.clone(),
        max_window: setup.max_window.unwrap_or(u64::MAX),
    });
    let sender = transport(setup, Some(watched));
    let receiver = transport(setup, None);

    let client =
        crypto::rustls::QuicClientConfig::try_from(TLS.client.clone()).expect("TLS 1.3 with AES-128");
    let server =
        crypto::rustls::QuicServerConfig::try_from(TLS.server.clone()).expect("TLS 1.3 with AES-128");
    let mut client_config = quinn_proto::ClientConfig::new(match setup.crypto {
        Crypto::Real => Arc::new(client),
        Crypto::Null => Arc::new(NullClient(Arc::new(client))),
    });
    let first = setup.cid(0, u64::MAX);
    client_config
        .transport_config(Arc::new(sender))
        .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first)));
    let mut server_config = quinn_proto::ServerConfig::new(
        match setup.crypto {
            Crypto::Real => Arc::new(server),
            Crypto::Null => Arc::new(NullServer(Arc::new(server))),
        },
        Arc::new(NoTokens),
    );
    let mut tokens = quinn_proto::ValidationTokenConfig::default();
    tokens.sent(0);
    server_config
        .transport_config(Arc::new(receiver))
        .validation_token_config(tokens)
        .time_source(Arc::new(Epoch));

    let epoch = epoch();
    let end = |config, server, client, peer| Quinn {
        endpoint: quinn_proto::Endpoint::new(config, server, false, None),
        client,
        connection: None,
        epoch,
        peer,
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
    config
        .rng_seed(Some(setup.seed_bytes(end)))
        .cid_generator(move || Box::new(Ids { setup: ids.clone(), end, number: 0 }))
        .max_udp_payload_size(setup.payload.max(1472))
        .expect("at least 1200 bytes, and at most 65527: `refuses`");
    Arc::new(config)
}

/// One end.
pub(crate) struct Quinn {
    endpoint: quinn_proto::Endpoint,
    client: Option<quinn_proto::ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    epoch: Instant,
    peer: SocketAddr,
    /// Why it could not begin.
    failed: Option<String>,
}

impl Quinn {
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

impl Endpoint for Quinn {
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
        match self.endpoint.handle(at, self.peer, None, ecn, datagram, answer)? {
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
                quinn_proto::Event::Connected => Event::Connected,
                quinn_proto::Event::ConnectionLost { reason } => Event::Lost(reason.to_string()),
                quinn_proto::Event::Stream(StreamEvent::Opened { dir }) => {
                    Event::Opened { uni: dir == Dir::Uni }
                }
                quinn_proto::Event::Stream(StreamEvent::Readable { id }) => Event::Readable(stream(id)),
                quinn_proto::Event::Stream(StreamEvent::Writable { .. }) => Event::Writable,
                quinn_proto::Event::Stream(StreamEvent::Available { .. }) => Event::MoreStreams,
                _ => continue,
            });
        }
    }

    fn transmit(&mut self, now: Time, most: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let at = then(self.epoch, now);
        let transmit = self.connection()?.poll_transmit(at, most.max(1), out)?;
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
            match send.write_chunks(&mut [Bytes::from_static(&CHUNK[..piece])]) {
                Ok(taken) => left -= taken.bytes as u64,
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
        let Some(connection) = self.connection() else { return State::default() };
        let stats = connection.stats();
        let srtt = connection.rtt();
        let controller = connection.congestion_state();
        let metrics = controller.metrics();
        let phase = || {
            let watched = controller.clone_box().into_any().downcast::<Watched>().ok()?;
            let bbr = watched.inner.into_any().downcast::<Bbr>().ok()?;
            Some(cc::phase_of_quinn(&bbr))
        };
        State {
            window: metrics.congestion_window,
            ssthresh: metrics.ssthresh,
            pacing: paced_by_window(metrics.congestion_window, srtt),
            bandwidth_bps: None,
            srtt: Duration::from_nanos(srtt.as_nanos() as u64),
            phase: phase()
                .unwrap_or_else(|| cc::phase_by_threshold(metrics.congestion_window, metrics.ssthresh)),
            lost_packets: stats.path.lost_packets,
            datagrams: stats.udp_tx.datagrams,
        }
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

/// Address validation tokens are not handed out.
struct NoTokens;

impl HandshakeTokenKey for NoTokens {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(NoTokens)
    }
}

impl AeadKey for NoTokens {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}

struct Epoch;

impl TimeSource for Epoch {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Wraps a controller, counts what the stack tells it, and bounds its window.
struct Watched {
    inner: Box<dyn Controller>,
    tally: Arc<Tally>,
    max_window: u64,
}

struct Watching {
    inner: QuinnFactory,
    tally: Arc<Tally>,
    max_window: u64,
}

impl ControllerFactory for Watching {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Watched {
            inner: self.inner.clone().build(now, current_mtu),
            tally: self.tally.clone(),
            max_window: self.max_window,
        })
    }
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.tally.on_sent(bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.tally.on_acked(rtt.min());
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.tally.on_in_flight(in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        if is_persistent_congestion {
            self.tally.on_collapse();
        }
        self.tally.on_lost(lost_bytes);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window().min(self.max_window)
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        metrics.congestion_window = metrics.congestion_window.min(self.max_window);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Watched {
            inner: self.inner.clone_box(),
            tally: self.tally.clone(),
            max_window: self.max_window,
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The keys of a packet space that hide nothing, with the lengths and limits of the real ones. They open what real ones open: see
/// [`null`](crate::null).
struct NullPacketKey {
    update: u64,
    tag_len: usize,
    confidentiality_limit: u64,
    integrity_limit: u64,
}

impl NullPacketKey {
    fn like(key: &dyn PacketKey, update: u64) -> Box<dyn PacketKey> {
        Box::new(NullPacketKey {
            update,
            tag_len: key.tag_len(),
            confidentiality_limit: key.confidentiality_limit(),
            integrity_limit: key.integrity_limit(),
        })
    }

    fn like_both(keys: &KeyPair<Box<dyn PacketKey>>, update: u64) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair {
            local: NullPacketKey::like(&*keys.local, update),
            remote: NullPacketKey::like(&*keys.remote, update),
        }
    }

    fn nonce(&self, number: u64) -> Nonce {
        Nonce { number, update: self.update }
    }
}

impl PacketKey for NullPacketKey {
    fn encrypt(&self, number: u64, packet: &mut [u8], _: usize) {
        self.nonce(number).seal(packet, self.tag_len);
    }

    fn decrypt(&self, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let opened = self.nonce(number).open(payload, self.tag_len);
        if opened { Ok(()) } else { Err(CryptoError) }
    }

    fn tag_len(&self) -> usize {
        self.tag_len
    }

    fn confidentiality_limit(&self) -> u64 {
        self.confidentiality_limit
    }

    fn integrity_limit(&self) -> u64 {
        self.integrity_limit
    }
}

struct NullHeaderKey(usize);

impl HeaderKey for NullHeaderKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        self.0
    }
}

/// A session whose keys are null once the handshake is complete.
struct NullSession {
    inner: Box<dyn Session>,
    /// Whether the keys of the handshake have been handed out: the next are those of data.
    in_handshake: bool,
    /// How often the keys of data have been updated.
    updates: u64,
}

impl NullSession {
    fn over(inner: Box<dyn Session>) -> Box<dyn Session> {
        Box::new(NullSession { inner, in_handshake: false, updates: 0 })
    }
}

impl Session for NullSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        if !std::mem::replace(&mut self.in_handshake, true) {
            return Some(keys);
        }
        let header =
            |key: &dyn HeaderKey| -> Box<dyn HeaderKey> { Box::new(NullHeaderKey(key.sample_size())) };
        Some(Keys {
            header: KeyPair { local: header(&*keys.header.local), remote: header(&*keys.header.remote) },
            packet: NullPacketKey::like_both(&keys.packet, 0),
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        self.updates += 1;
        Some(NullPacketKey::like_both(&keys, self.updates))
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

struct NullClient(Arc<crypto::rustls::QuicClientConfig>);

impl crypto::ClientConfig for NullClient {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        self.0.clone().start_session(version, server_name, params).map(NullSession::over)
    }
}

struct NullServer(Arc<crypto::rustls::QuicServerConfig>);

impl crypto::ServerConfig for NullServer {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.0.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.0.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        NullSession::over(self.0.clone().start_session(version, params))
    }
}
