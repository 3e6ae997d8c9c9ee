//! Real connections of a stack in virtual time: a bottleneck with a short queue between two endpoints, and a controller of ours.
//!
//! Tests of an adapter include this file; their module `stack` has the adapter, and all of the stack: noq-proto is a fork of
//! quinn-proto, so that their names are equal. What is called in another way is a function there.

use bytes::BytesMut;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::stack::{self, *};

/// 10 Mbit/s, 20 ms each way, a queue of 40 packets.
pub(crate) const RATE: u64 = 10_000_000;
const DELAY: Duration = Duration::from_millis(20);
pub(crate) const QUEUE: usize = 40;
const MTU: u16 = 1400;

struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// What is on its way to the other side, and when it arrives.
    path: VecDeque<(Instant, BytesMut)>,
    timeout: Option<Instant>,
    peer: SocketAddr,
}

/// What became of a transfer.
pub(crate) struct Outcome {
    pub(crate) received: usize,
    pub(crate) took: Duration,
    pub(crate) dropped: usize,
    pub(crate) view: View,
    pub(crate) stats: PathStats,
}

impl Outcome {
    /// Whatever the adapter guesses: no byte is counted twice, and what the stack found lost is lost.
    pub(crate) fn check(&self) {
        let Outcome { view, stats, .. } = self;
        let counts = &view.counts;
        let gone = counts.delivered + counts.lost + counts.discarded;
        assert_eq!(counts.sent, gone + view.in_flight as u64);
        // What the driver knows of losses is what the stack does: packets of 1,400 bytes at most.
        assert!(counts.lost <= stats.lost_bytes, "{counts:?} {stats:?}");
        assert!(counts.lost + 3 * 1_452 >= stats.lost_bytes, "{counts:?} {stats:?}");
        let rtt_ms = view.min_rtt.as_millis();
        assert!((40..=45).contains(&rtt_ms), "{rtt_ms} ms, of a path of 40 ms");
    }

    /// Payload, bits a second.
    pub(crate) fn goodput(&self) -> f64 {
        self.received as f64 * 8.0 / self.took.as_secs_f64()
    }
}

fn side(seed: u8, server: Option<Arc<ServerConfig>>, peer: &str) -> Side {
    let mut config = EndpointConfig::default();
    config.rng_seed(Some([seed; 32]));
    let endpoint = stack::endpoint(config, server, seed);
    Side { endpoint, connection: None, path: VecDeque::new(), timeout: None, peer: peer.parse().unwrap() }
}

fn transport(factory: &Arc<Factory>, mtud: bool) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.initial_mtu(MTU).congestion_controller_factory(factory.clone());
    if !mtud {
        config.mtu_discovery_config(None);
    }
    Arc::new(config)
}

/// Sends `bytes` from the client to the server. With `mtud`, packets above 1,430 bytes disappear, and both sides look for the limit.
pub(crate) fn transfer(name: &str, bytes: usize, mtud: bool) -> Outcome {
    transfer_with(Params::by_name(name).unwrap(), bytes, mtud)
}

/// The same with any parameters.
pub(crate) fn transfer_with(params: Params, bytes: usize, mtud: bool) -> Outcome {
    #[allow(clippy::disallowed_methods, reason = "the start of a count, whatever it is")]
    let start = Instant::now();
    let factory = Arc::new(Factory::new(params).seed(1));
    let watch = factory.watch();
    let other = Arc::new(Factory::new(Params::by_name("newreno").unwrap()).seed(2));
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server).unwrap()));
    server.transport_config(transport(&other, mtud));
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client).unwrap()));
    client.transport_config(transport(&factory, mtud));
    let mut sides = [side(1, None, "10.0.0.2:4433"), side(2, Some(Arc::new(server)), "10.0.0.1:1000")];
    let peer = sides[0].peer;
    sides[0].connection = Some(sides[0].endpoint.connect(start, client, peer, "localhost").unwrap());

    let (mut now, mut left, mut received, mut dropped) = (start, bytes, 0, 0);
    let (mut stream, mut buffer, mut busy) = (None, Vec::new(), start);
    let mut queue = VecDeque::new();
    loop {
        for (index, side) in sides.iter_mut().enumerate() {
            let Side { endpoint, connection, path, timeout, .. } = side;
            let Some((handle, connection)) = connection else { continue };
            while let Some(event) = connection.poll() {
                match event {
                    Event::Connected if index == 0 => stream = connection.streams().open(Dir::Uni),
                    Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                        stream = connection.streams().accept(Dir::Uni).or(stream);
                    }
                    Event::ConnectionLost { reason } => panic!("{reason}"),
                    _ => {}
                }
            }
            if let Some(id) = stream {
                let chunk = [0x5a; 16 * 1_024];
                while index == 0 && left > 0 {
                    let Ok(written) = connection.send_stream(id).write(&chunk[..left.min(chunk.len())])
                    else {
                        break;
                    };
                    left -= written;
                }
                if index == 1
                    && let Ok(mut chunks) = connection.recv_stream(id).read(false)
                {
                    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                        assert!(chunk.bytes.iter().all(|byte| *byte == 0x5a));
                        received += chunk.bytes.len();
                    }
                    let _ = chunks.finalize();
                }
            }
            buffer.clear();
            while let Some(transmit) = stack::transmit(connection, now, &mut buffer) {
                for datagram in buffer.chunks(transmit.segment_size.unwrap_or(transmit.size)) {
                    let mut arrives = now + DELAY;
                    if index == 0 {
                        queue.retain(|left: &Instant| *left > now);
                        if queue.len() >= QUEUE || (mtud && datagram.len() > 1430) {
                            dropped += 1;
                            continue;
                        }
                        busy = busy.max(now)
                            + Duration::from_nanos(datagram.len() as u64 * 8_000_000_000 / RATE);
                        queue.push_back(busy);
                        arrives = busy + DELAY;
                    }
                    path.push_back((arrives, BytesMut::from(datagram)));
                }
                buffer.clear();
            }
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = endpoint.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            *timeout = connection.poll_timeout();
        }
        if received == bytes && sides[0].path.is_empty() && sides[1].path.is_empty() {
            break;
        }
        let arrivals = sides.iter().filter_map(|side| side.path.front().map(|(at, _)| *at));
        let next = arrivals.chain(sides.iter().filter_map(|side| side.timeout)).min();
        now = next.expect("something is due").max(now);
        assert!(now < start + Duration::from_secs(60), "{received} of {bytes} bytes arrived in a minute");
        for index in 0..2 {
            if sides[index].timeout.is_some_and(|timeout| timeout <= now) {
                sides[index].connection.as_mut().unwrap().1.handle_timeout(now);
            }
            while sides[1 - index].path.front().is_some_and(|(at, _)| *at <= now) {
                let (_, datagram) = sides[1 - index].path.pop_front().unwrap();
                let Side { endpoint, connection, peer, .. } = &mut sides[index];
                buffer.clear();
                match stack::handle(endpoint, now, *peer, datagram, &mut buffer) {
                    Some(DatagramEvent::NewConnection(incoming)) => {
                        let accepted = endpoint.accept(incoming, now, &mut buffer, None);
                        *connection = Some(accepted.map_err(|error| error.cause).unwrap());
                    }
                    Some(DatagramEvent::ConnectionEvent(_, event)) => {
                        connection.as_mut().unwrap().1.handle_event(event);
                    }
                    Some(DatagramEvent::Response(_)) => panic!("a response without a connection"),
                    None => {}
                }
            }
        }
    }
    let view = watch.view().unwrap();
    let stats = stack::stats(&mut sides[0].connection.as_mut().unwrap().1);
    Outcome { received, took: now - start, dropped, view, stats }
}

/// Every controller delivers all bytes, and knows of its packets what the stack knows; `check` receives each transfer.
pub(crate) fn every_controller_delivers_everything(check: impl Fn(&Outcome)) {
    for info in fullpipe_cc::CATALOGUE {
        let outcome = transfer(info.name, 1_000_000, false);
        assert_eq!(outcome.received, 1_000_000, "{}", info.name);
        check(&outcome);
        assert!(outcome.view.counts.delivered >= 1_000_000, "{}: {:?}", info.name, outcome.view);
    }
}
