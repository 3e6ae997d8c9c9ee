//! A fault of noq-proto 1.4.0 that a finite flow meets after thousands of losses, shown by noq-proto alone: two connections, and
//! datagrams that are handed from one to the other.
//!
//! The sender writes 60 messages of 7 bytes, whose datagrams are lost, and behind each one of 50 bytes, whose datagrams arrive and
//! are read without order. The 60 lost pieces are sent again in one datagram. `Assembler::insert` counts that datagram as the
//! allocation of each of its frames, takes the sum for waste, and calls `Assembler::defragment`, which drops everything before the
//! offset `bytes_read`. That is right for ordered reads. With unordered ones, `bytes_read` is a number of bytes and no offset: the
//! pieces lie before it, and nobody has read them. They have been acknowledged, so that they never come again.
//! docs/explanation/quic/noq-stream-hole.toml is the scenario.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
// Only for the source of randomness that this workspace is built with (src/random.rs).
use fullpipe_quic as _;
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    FourTuple, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use rustls::pki_types::PrivateKeyDer;

const ONE_WAY: Duration = Duration::from_millis(50);
const PAIRS: usize = 60;
const LOST: usize = 7;
const ARRIVES: usize = 50;
const TOTAL: usize = PAIRS * (LOST + ARRIVES);

fn address(host: u8) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, host), 443).into()
}

struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
}

impl End {
    fn new(server: Option<ServerConfig>, peer: SocketAddr) -> End {
        let mut config = EndpointConfig::default();
        config.rng_seed(Some([1; 32]));
        End { endpoint: Endpoint::new(Arc::new(config), server.map(Arc::new), false), connection: None, peer }
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("it has begun").1
    }

    fn receive(&mut self, now: Instant, datagrams: Vec<BytesMut>) {
        for datagram in datagrams {
            let from = FourTuple::new(self.peer, None);
            let mut answer = Vec::new();
            match self.endpoint.handle(now, from, None, datagram, &mut answer) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => self.connection().handle_event(event),
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                    self.connection = Some(accepted.unwrap_or_else(|error| panic!("{}", error.cause)));
                }
                Some(DatagramEvent::Response(_)) => panic!("a datagram without a connection"),
                None => {}
            }
        }
    }

    /// The datagrams that it sends now, if its timers fire first.
    fn send(&mut self, now: Instant) -> Vec<BytesMut> {
        let Some((handle, connection)) = &mut self.connection else { return Vec::new() };
        connection.handle_timeout(now);
        let mut sent = Vec::new();
        loop {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            let mut buffer = Vec::new();
            if connection.poll_transmit(now, NonZeroUsize::MIN, &mut buffer).is_none() {
                return sent;
            }
            sent.push(BytesMut::from(&buffer[..]));
        }
    }

    fn events(&mut self) -> Vec<Event> {
        let Some((_, connection)) = &mut self.connection else { return Vec::new() };
        std::iter::from_fn(|| connection.poll()).collect()
    }
}

/// A sender and a receiver before their handshake.
fn ends(now: Instant) -> (End, End) {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let der = certificate.der().clone();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der.clone()).unwrap();
    let server = ServerConfig::with_single_cert(vec![der], PrivateKeyDer::Pkcs8(key.serialize_der().into()));
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    let mut transport = TransportConfig::default();
    transport.mtu_discovery_config(None);
    client.transport_config(Arc::new(transport));
    let mut sender = End::new(None, address(2));
    sender.connection = Some(sender.endpoint.connect(now, client, address(2), "localhost").unwrap());
    (sender, End::new(Some(server.unwrap()), address(1)))
}

/// Hands datagrams over in both directions until there are none.
fn exchange(now: &mut Instant, sender: &mut End, receiver: &mut End) {
    loop {
        let there = sender.send(*now);
        let back = receiver.send(*now);
        if there.is_empty() && back.is_empty() {
            return;
        }
        *now += ONE_WAY;
        receiver.receive(*now, there);
        sender.receive(*now, back);
    }
}

/// Reads what has arrived, in any order, and marks it.
fn read(receiver: &mut End, stream: StreamId, seen: &mut [bool]) {
    let mut stream = receiver.connection().recv_stream(stream);
    let Ok(mut chunks) = stream.read(false) else { return };
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        let begin = chunk.offset as usize;
        seen[begin..begin + chunk.bytes.len()].fill(true);
    }
    let _ = chunks.finalize();
}

/// Writes a message; returns its datagrams, sent once the pacer lets them go.
fn send_message(now: &mut Instant, sender: &mut End, stream: StreamId, bytes: usize) -> Vec<BytesMut> {
    let written = sender.connection().send_stream(stream).write(&[0; ARRIVES][..bytes]);
    assert_eq!(written, Ok(bytes));
    loop {
        let sent = sender.send(*now);
        if !sent.is_empty() {
            return sent;
        }
        *now = sender.connection().poll_timeout().expect("the pacer's timer");
    }
}

#[test]
fn noq_drops_small_frames_behind_unordered() {
    #[expect(
        clippy::disallowed_methods,
        reason = "noq-proto needs an `Instant`; only differences to it matter"
    )]
    let mut now = Instant::now();
    let (mut sender, mut receiver) = ends(now);
    exchange(&mut now, &mut sender, &mut receiver);
    assert!(sender.events().iter().any(|event| matches!(event, Event::Connected)));

    let stream = sender.connection().streams().open(Dir::Uni).unwrap();
    let mut seen = [false; TOTAL];
    let mut acks = Vec::new();
    for pair in 0..PAIRS {
        send_message(&mut now, &mut sender, stream, LOST); // and nobody gets it
        let message = send_message(&mut now, &mut sender, stream, ARRIVES);
        receiver.receive(now, message);
        if pair == 0 {
            assert_eq!(receiver.connection().streams().accept(Dir::Uni), Some(stream));
        }
        read(&mut receiver, stream, &mut seen);
        acks.extend(receiver.send(now));
    }
    assert_eq!(seen.iter().filter(|seen| **seen).count(), PAIRS * ARRIVES);
    sender.connection().send_stream(stream).finish().unwrap();

    // Now the sender hears of all losses at once.
    now += ONE_WAY;
    sender.receive(now, acks);
    let mut finished = false;
    for _ in 0..100 {
        let there = sender.send(now);
        now += ONE_WAY;
        receiver.receive(now, there);
        read(&mut receiver, stream, &mut seen);
        let back = receiver.send(now);
        now += ONE_WAY;
        sender.receive(now, back);
        finished |= sender
            .events()
            .iter()
            .any(|event| matches!(event, Event::Stream(StreamEvent::Finished { id }) if *id == stream));
    }
    assert!(finished, "the receiver has acknowledged every byte and the end");
    let missing = seen.iter().filter(|seen| !**seen).count();
    assert_ne!(
        missing, 0,
        "noq-proto no longer has the fault: turn this into `assert_eq!(missing, 0)`, and delete \
         docs/explanation/quic/noq-stream-hole.toml and what docs/explanation/quic.md and src/app.rs say of it"
    );
}
