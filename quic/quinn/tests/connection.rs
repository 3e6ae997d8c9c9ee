//! Real connections of quinn in virtual time, with a controller of ours.

#[path = "../../tests/connection.rs"]
mod connection;

use connection::{Outcome, QUEUE, RATE, transfer, transfer_with};
use stack::Params;

/// What `connection` needs of quinn.
mod stack {
    pub(crate) use fullpipe_quinn::{Factory, Params, View};
    pub(crate) use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
    pub(crate) use quinn_proto::*;

    use bytes::BytesMut;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::time::Instant;

    pub(crate) fn endpoint(config: EndpointConfig, server: Option<Arc<ServerConfig>>, seed: u8) -> Endpoint {
        Endpoint::new(Arc::new(config), server, true, Some([seed; 32]))
    }

    pub(crate) fn transmit(
        connection: &mut Connection,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        connection.poll_transmit(now, 4, buffer)
    }

    pub(crate) fn handle(
        endpoint: &mut Endpoint,
        now: Instant,
        peer: SocketAddr,
        datagram: BytesMut,
        buffer: &mut Vec<u8>,
    ) -> Option<DatagramEvent> {
        endpoint.handle(now, peer, None, None, datagram, buffer)
    }

    pub(crate) fn stats(connection: &mut Connection) -> PathStats {
        connection.stats().path
    }
}

/// Some packets of a handshake elicit no ACK.
fn check(outcome: &Outcome) {
    outcome.check();
    let counts = &outcome.view.counts;
    assert!(counts.discarded <= 1_500, "{counts:?}");
}

#[test]
fn every_controller_delivers_everything() {
    connection::every_controller_delivers_everything(check);
}

#[test]
fn losses_are_found_and_repaired() {
    let outcome = transfer("cubic9438", 4_000_000, false);
    check(&outcome);
    assert!(outcome.dropped > 0 && outcome.view.counts.lost > 0, "the queue holds {QUEUE} packets");
    let goodput = outcome.goodput();
    assert!(goodput > 0.8 * RATE as f64, "{goodput} bit/s of {RATE}");
}

/// quinn does not report probes of the MTU when it sends them, but when they are acknowledged.
#[test]
fn mtu_probes_stay_outside_flight() {
    let outcome = transfer("newreno", 1_000_000, true);
    assert!(outcome.stats.sent_plpmtud_probes > 0, "{:?}", outcome.stats);
    check(&outcome);
    assert!(outcome.view.in_flight <= 2 * 1_452, "{:?}", outcome.view);
}

/// Why [`fullpipe_quinn::unsupported`] names the pacer first: a fixed rate of half the bottleneck's is not kept.
#[test]
fn the_pacer_takes_no_rate() {
    assert!(fullpipe_quinn::unsupported()[0].contains("pacer takes no rate"));
    let mut params = Params::by_name("fixed").unwrap();
    params.set("rate", fullpipe_cc::Decimal::from_integer(5)).unwrap();
    params.set("cwnd", fullpipe_cc::Decimal::from_integer(60)).unwrap();
    let outcome = transfer_with(params, 1_000_000, false);
    check(&outcome);
    let asked = outcome.view.limits.pacing_rate.as_bits_per_sec();
    assert_eq!(asked, 5_000_000);
    let goodput = outcome.goodput();
    assert!(goodput > 1.2 * asked as f64, "{goodput} bit/s");
}
