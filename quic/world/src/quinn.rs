//! quinn: what differs from [noq](crate::noq). What is alike is in `alike/`.

#[allow(clippy::duplicate_mod, reason = "the stacks are alike: each compiles it with its own types")]
#[path = "alike/end.rs"]
mod end;
#[allow(clippy::duplicate_mod, reason = "as above")]
#[path = "alike/keys.rs"]
mod keys;

pub(crate) use end::pair;

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use fullpipe_cc::{CaState, Phase};
use fullpipe_units::Duration;
use quinn_proto as proto;
use quinn_proto::congestion::{Bbr, Controller, ControllerMetrics};
use quinn_proto::crypto::{
    self, AeadKey, CryptoError, HandshakeTokenKey, Keys, PacketKey, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{
    ConnectError, Connection, ConnectionId, ConnectionIdGenerator, DatagramEvent, EcnCodepoint,
    EndpointConfig, RttEstimator, SendStream, ServerConfig, WriteError,
};

use self::end::Watched;
use self::keys::{NullPacketKey, Sessions, TappedKey};
use crate::cc;
use crate::chunk::paced_by_window;
use crate::endpoint::{Counted, State, finite};
use crate::unfilled::QUINN as UNFILLED;

type Factory = cc::QuinnFactory;
/// Who is at the other end.
type Peer = SocketAddr;
/// How a connection id is handed to keys.
type Cid<'a> = &'a ConnectionId;

fn peer(address: SocketAddr) -> Peer {
    address
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> proto::Endpoint {
    proto::Endpoint::new(config, server, false, None)
}

fn generate_ids(
    config: &mut EndpointConfig,
    make: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(make);
}

fn handle(
    endpoint: &mut proto::Endpoint,
    now: Instant,
    peer: Peer,
    ecn: Option<EcnCodepoint>,
    datagram: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, peer, None, ecn, datagram, answer)
}

fn poll_transmit(
    connection: &mut Connection,
    now: Instant,
    most: usize,
    out: &mut Vec<u8>,
) -> Option<proto::Transmit> {
    connection.poll_transmit(now, most.max(1), out)
}

/// Returns how many bytes were taken.
fn write(stream: &mut SendStream<'_>, piece: Bytes) -> Result<usize, WriteError> {
    stream.write_chunks(&mut [piece]).map(|taken| taken.bytes)
}

fn state(connection: &mut Connection) -> Option<State> {
    let srtt = connection.rtt();
    let metrics = connection.congestion_state().metrics();
    Some(State {
        window: metrics.congestion_window,
        ssthresh: finite(metrics.ssthresh),
        pacing: paced_by_window(metrics.congestion_window, srtt),
        bandwidth_bps: None,
        srtt: Duration::from_nanos(srtt.as_nanos() as u64),
    })
}

fn counted(connection: &mut Connection) -> Counted {
    let stats = connection.stats();
    Counted { lost_packets: stats.path.lost_packets, datagrams: stats.udp_tx.datagrams }
}

fn is_bbr(copy: Box<dyn Controller>) -> bool {
    copy.into_any().is::<Bbr>()
}

/// From a copy: quinn's controllers do not write what they are, and its BBR has no list of packets that a copy would cost.
fn phase_of_bbr(connection: &mut Connection) -> Option<Phase> {
    let watched = connection.congestion_state().clone_box().into_any().downcast::<Watched>().ok()?;
    let bbr = watched.inner.into_any().downcast::<Bbr>().ok()?;
    Some(cc::phase_of_quinn(&bbr))
}

/// Which calls there are, and what they tell, is the stack's own.
impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.tally.on_sent(bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
        self.cap.see(&*self.inner);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.tally.on_acked(now.saturating_duration_since(sent));
        self.recovery.on_acked(sent, &self.tally);
        self.inner.on_ack(now, sent, bytes, app_limited || self.cap.binds(), rtt);
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
        let to = match (is_persistent_congestion, lost_bytes) {
            (true, _) => CaState::Loss,
            // Marks come without losses.
            (false, 0) => CaState::Cwr,
            (false, _) => CaState::Recovery,
        };
        self.recovery.on_congestion(now, sent, to, &self.tally);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.cap.grant(self.inner.window())
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        metrics.congestion_window = self.cap.bound(metrics.congestion_window);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let (tally, cap, recovery) = (self.tally.clone(), self.cap, self.recovery);
        Box::new(Watched { inner: self.inner.clone_box(), tally, cap, recovery })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl PacketKey for NullPacketKey {
    fn encrypt(&self, number: u64, packet: &mut [u8], _: usize) {
        self.seal(number, packet);
    }

    fn decrypt(&self, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        if self.open(number, payload) { Ok(()) } else { Err(CryptoError) }
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

impl PacketKey for TappedKey {
    fn encrypt(&self, number: u64, packet: &mut [u8], header: usize) {
        self.tap.sealed(self.space, number, packet, header, self.inner.tag_len());
        self.inner.encrypt(number, packet, header);
    }

    fn decrypt(&self, number: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = header.len() + payload.len();
        self.inner.decrypt(number, header, payload)?;
        self.tap.opened(self.space, number, length, payload);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

impl crypto::ClientConfig for Sessions<crypto::rustls::QuicClientConfig> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        self.config.clone().start_session(version, server_name, params).map(|session| self.over(session))
    }
}

impl crypto::ServerConfig for Sessions<crypto::rustls::QuicServerConfig> {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.config.initial_keys(version, dst_cid).map(|keys| self.initial(keys))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.config.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.over(self.config.clone().start_session(version, params))
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
