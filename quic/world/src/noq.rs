//! noq: what differs from [quinn](crate::quinn). What is alike is in `alike/`.

#[allow(clippy::duplicate_mod, reason = "the stacks are alike: each compiles it with its own types")]
#[path = "alike/end.rs"]
mod end;
#[allow(clippy::duplicate_mod, reason = "as above")]
#[path = "alike/keys.rs"]
mod keys;

pub(crate) use end::pair;

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use fullpipe_cc::{CaState, Phase};
use fullpipe_units::Duration;
use noq_proto as proto;
use noq_proto::congestion::{Bbr3, Controller, ControllerMetrics};
use noq_proto::crypto::{self, CryptoError, HandshakeTokenKey, Keys, PacketKey, Session, UnsupportedVersion};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{
    ConnectError, Connection, ConnectionId, ConnectionIdGenerator, DatagramEvent, EcnCodepoint,
    EndpointConfig, FourTuple, PathId, RttEstimator, SendStream, ServerConfig, WriteError,
};

use self::end::Watched;
use self::keys::{NullPacketKey, Sessions, TappedKey};
use crate::cc;
use crate::chunk::paced_by_window;
use crate::endpoint::{Counted, State, finite};
use crate::unfilled::NOQ as UNFILLED;

type Factory = cc::NoqFactory;
/// Who is at the other end.
type Peer = FourTuple;
/// How a connection id is handed to keys.
type Cid<'a> = ConnectionId;

fn peer(address: SocketAddr) -> Peer {
    FourTuple::new(address, None)
}

fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> proto::Endpoint {
    proto::Endpoint::new(config, server, false)
}

fn generate_ids(
    config: &mut EndpointConfig,
    make: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(Arc::new(make));
}

fn handle(
    endpoint: &mut proto::Endpoint,
    now: Instant,
    peer: Peer,
    ecn: Option<EcnCodepoint>,
    datagram: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, peer, ecn, datagram, answer)
}

fn poll_transmit(
    connection: &mut Connection,
    now: Instant,
    most: usize,
    out: &mut Vec<u8>,
) -> Option<proto::Transmit> {
    connection.poll_transmit(now, NonZeroUsize::new(most).unwrap_or(NonZeroUsize::MIN), out)
}

/// Returns how many bytes were taken.
fn write(stream: &mut SendStream<'_>, piece: Bytes) -> Result<usize, WriteError> {
    stream.write_chunks(&mut &mut [piece][..])
}

fn state(connection: &mut Connection) -> Option<State> {
    let srtt = connection.rtt(PathId::ZERO).unwrap_or_default();
    let metrics = connection.congestion_state(PathId::ZERO)?.metrics();
    Some(State {
        window: metrics.congestion_window,
        ssthresh: finite(metrics.ssthresh),
        pacing: metrics.pacing_rate.or_else(|| paced_by_window(metrics.congestion_window, srtt)),
        bandwidth_bps: metrics.bandwidth_estimate,
        srtt: Duration::from_nanos(srtt.as_nanos() as u64),
    })
}

fn counted(connection: &mut Connection) -> Counted {
    let stats = connection.stats();
    Counted { lost_packets: stats.lost_packets, datagrams: stats.udp_tx.datagrams }
}

fn is_bbr(copy: Box<dyn Controller>) -> bool {
    copy.into_any().is::<Bbr3>()
}

/// Without a copy, which would have all that is in flight in it.
fn phase_of_bbr(connection: &mut Connection) -> Option<Phase> {
    connection.congestion_state(PathId::ZERO).map(|watched| cc::phase_of_noq(&watched))
}

impl Watched {
    /// What an undo may give back: window, threshold, pacing rate, and what noq's BBRv3 has besides.
    fn undoable(&self) -> (u64, Option<u64>, Option<u64>, Option<[String; 4]>) {
        let metrics = self.inner.metrics();
        let of_bbr = self.tally.is_bbr().then(|| cc::undoable_of_noq(&self.inner));
        (metrics.congestion_window, metrics.ssthresh, metrics.pacing_rate, of_bbr)
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Which calls there are, and what they tell, is the stack's own.
impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.inner.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.tally.on_sent(bytes.into());
        self.inner.on_packet_sent(now, bytes, pn);
        self.cap.see(&*self.inner);
    }

    fn on_cwnd_limited(&mut self) {
        if !self.cap.binds() {
            self.inner.on_cwnd_limited();
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.tally.on_acked(now.saturating_duration_since(sent));
        self.recovery.on_acked(sent, &self.tally);
        self.inner.on_ack(now, sent, bytes, pn, app_limited || self.cap.binds(), rtt);
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
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        if is_persistent_congestion {
            self.tally.on_collapse();
        }
        let to = match (is_ecn, is_persistent_congestion) {
            (true, _) => CaState::Cwr,
            (false, true) => CaState::Loss,
            (false, false) => CaState::Recovery,
        };
        self.recovery.on_congestion(now, sent, to, &self.tally);
        self.inner.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.tally.on_lost(lost_bytes.into());
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    /// What the stack found is not what the controller makes of it: noq's NewReno does nothing here, and its CUBIC nothing when its
    /// window has grown back. Ours count by themselves, too ([`View::undone`](fullpipe_noq::View::undone)).
    fn on_spurious_congestion_event(&mut self) {
        let before = self.undoable();
        self.inner.on_spurious_congestion_event();
        if self.undoable() != before {
            self.tally.on_undone();
            self.recovery.on_undone(&self.tally);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, requested_max_ack_delay: std::time::Duration) {
        self.inner.on_ack_frequency_update(threshold, requested_max_ack_delay);
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

/// A connection has one path here.
impl PacketKey for NullPacketKey {
    fn encrypt(&self, _: PathId, number: u64, packet: &mut [u8], _: usize) {
        self.seal(number, packet);
    }

    fn decrypt(&self, _: PathId, number: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
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
    fn encrypt(&self, path: PathId, number: u64, packet: &mut [u8], header: usize) {
        self.tap.sealed(self.space, number, packet, header, self.inner.tag_len());
        self.inner.encrypt(path, number, packet, header);
    }

    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = header.len() + payload.len();
        self.inner.decrypt(path, number, header, payload)?;
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
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        self.config.start_session(version, server_name, params).map(|session| self.over(session))
    }
}

impl crypto::ServerConfig for Sessions<crypto::rustls::QuicServerConfig> {
    fn initial_keys(&self, version: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.config.initial_keys(version, dst_cid).map(|keys| self.initial(keys))
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.config.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        self.over(self.config.start_session(version, params))
    }
}

/// Address validation tokens are not handed out.
struct NoTokens;

impl HandshakeTokenKey for NoTokens {
    fn seal(&self, _: u128, _: &mut Vec<u8>) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn open<'a>(&self, _: u128, _: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        Err(CryptoError)
    }
}
