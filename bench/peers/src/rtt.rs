//! quinn-proto's RTT estimator, which its controllers want to see and which only its connections can make.
//!
//! So two endpoints in this process begin a handshake, without a network, and a controller that listens copies the
//! estimator that the first ACK brings. It holds the initial RTT, which we choose.

use std::any::Any;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::congestion::{Controller, ControllerFactory};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, DatagramEvent, Endpoint, EndpointConfig, RttEstimator, ServerConfig, TransportConfig,
};

use crate::controllers;

/// An estimator that believes in the stream's RTT.
pub(crate) fn estimator() -> RttEstimator {
    let rtt = Duration::from_nanos(controllers::RTT.as_nanos());
    let estimator = first_seen(rtt);
    assert_eq!((estimator.get(), estimator.min()), (rtt, rtt), "the estimator holds the initial RTT");
    estimator
}

fn first_seen(rtt: Duration) -> RttEstimator {
    let now = Instant::now();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 4433));
    let seen = Seen::default();
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_string()]).expect("a certificate");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.cert.der().clone()).expect("a root");

    let mut transport = TransportConfig::default();
    transport.initial_rtt(rtt).congestion_controller_factory(Arc::new(Listener(seen.clone())));
    let tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("TLS 1.3")));
    client.transport_config(Arc::new(transport));
    let mut near = Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
    let (_, mut connection) = near.connect(now, client, address, "localhost").expect("a client");

    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der());
    let tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key.into())
        .expect("a key");
    let server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).expect("TLS 1.3")));
    let mut far = Endpoint::new(Arc::new(EndpointConfig::default()), Some(Arc::new(server)), true, None);

    let mut buffer = Vec::new();
    let hello = connection.poll_transmit(now, 1, &mut buffer).expect("a first flight");
    let datagram = BytesMut::from(&buffer[..hello.size]);
    buffer.clear();
    let Some(DatagramEvent::NewConnection(incoming)) =
        far.handle(now, address, None, None, datagram, &mut buffer)
    else {
        panic!("the server refuses the first flight");
    };
    let (_, mut answering) = far.accept(incoming, now, &mut buffer, None).expect("a connection");
    buffer.clear();
    let answer = answering.poll_transmit(now, 1, &mut buffer).expect("an answer");
    let datagram = BytesMut::from(&buffer[..answer.size]);
    buffer.clear();
    let Some(DatagramEvent::ConnectionEvent(_, event)) =
        near.handle(now, address, None, None, datagram, &mut buffer)
    else {
        panic!("the client does not know the answer");
    };
    connection.handle_event(event);
    let estimator = *seen.0.lock().expect("one thread");
    estimator.expect("the answer acknowledges the first flight")
}

/// What the listener saw.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Option<RttEstimator>>>);

/// A controller that only listens.
struct Listener(Seen);

impl ControllerFactory for Listener {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Listener(self.0.clone()))
    }
}

impl Controller for Listener {
    fn on_ack(&mut self, _: Instant, _: Instant, _: u64, _: bool, rtt: &RttEstimator) {
        *self.0.0.lock().expect("one thread") = Some(*rtt);
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.initial_window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Listener(self.0.clone()))
    }

    fn initial_window(&self) -> u64 {
        12_000
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
