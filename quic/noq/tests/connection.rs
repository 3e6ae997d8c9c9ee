//! Real connections of noq in virtual time, with a controller of ours.

#[path = "../../tests/connection.rs"]
mod connection;

use connection::{Outcome, QUEUE, RATE, transfer};

/// What `connection` needs of noq.
mod stack {
    pub(crate) use fullpipe_noq::{Factory, Params, View};
    pub(crate) use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
    pub(crate) use noq_proto::*;

    use bytes::BytesMut;
    use std::net::SocketAddr;
    use std::num::NonZeroUsize;
    use std::sync::Arc;
    use std::time::Instant;

    pub(crate) fn endpoint(config: EndpointConfig, server: Option<Arc<ServerConfig>>, _seed: u8) -> Endpoint {
        Endpoint::new(Arc::new(config), server, true)
    }

    pub(crate) fn transmit(
        connection: &mut Connection,
        now: Instant,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        connection.poll_transmit(now, NonZeroUsize::new(4).unwrap(), buffer)
    }

    pub(crate) fn handle(
        endpoint: &mut Endpoint,
        now: Instant,
        peer: SocketAddr,
        datagram: BytesMut,
        buffer: &mut Vec<u8>,
    ) -> Option<DatagramEvent> {
        endpoint.handle(now, FourTuple::from_remote(peer), None, datagram, buffer)
    }

    pub(crate) fn stats(connection: &mut Connection) -> PathStats {
        connection.path_stats(PathId::ZERO).unwrap()
    }
}

#[test]
fn every_controller_delivers_everything() {
    connection::every_controller_delivers_everything(Outcome::check);
}

#[test]
fn bbr3_estimates_bandwidth_and_rtt() {
    let outcome = transfer("bbr3", 8_000_000, false);
    outcome.check();
    let bandwidth = outcome.view.snapshot.bandwidth.unwrap().as_bits_per_sec();
    assert!((RATE * 9 / 10..=RATE * 101 / 100).contains(&bandwidth), "{bandwidth} bit/s of {RATE}");
    let goodput = outcome.goodput();
    assert!(goodput > 0.85 * RATE as f64, "{goodput} bit/s of {RATE}");
}

/// CUBIC fills the queue, loses, and recovers.
#[test]
fn losses_are_found_and_repaired() {
    let outcome = transfer("cubic9438", 4_000_000, false);
    outcome.check();
    assert!(outcome.dropped > 0 && outcome.view.counts.lost > 0, "the queue holds {QUEUE} packets");
    assert_ne!(outcome.view.limits.ssthresh, fullpipe_cc::Limits::INFINITE);
}

/// Probes of the MTU that get lost are reported as sent and never as lost: the flight does not keep them.
#[test]
fn lost_mtu_probes_leave_flight() {
    let outcome = transfer("newreno", 1_000_000, true);
    assert!(outcome.stats.lost_plpmtud_probes > 0, "{:?}", outcome.stats);
    outcome.check();
    assert!(outcome.view.counts.discarded >= 1_430, "{:?}", outcome.view.counts);
    assert!(outcome.view.in_flight <= 2 * 1_452, "{:?}", outcome.view);
}
