//! A congestion controller for noq, written outside of it, and Fullpipe's program that runs it in virtual time. After `make quic` and
//! `. .venv/bin/activate` in the checkout, in this folder:
//!
//! ```sh
//! cargo build --release
//! export FULLPIPE_QUIC=$PWD/target/release/my-quic-controller
//! fullpipe compare noq:mine noq:newreno bbr3 --world quic --rate 20mbit --rtt 40ms
//! fullpipe conform noq:mine
//! ```
//!
//! docs/how-to/quic-developers.md explains each step.

use std::any::Any;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use fullpipe_quic::{Own, program};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory};

/// The window grows by one datagram a round trip. After a loss it is seven tenths of what it was.
#[derive(Clone, Debug)]
struct Mine {
    /// Bytes.
    window: u64,
    /// Bytes of a datagram.
    mtu: u64,
    /// Whether nothing was lost yet: the window then grows by what is acknowledged.
    starting: bool,
    /// When the window was last reduced. The loss of a packet sent before causes no other reduction.
    reduced: Instant,
}

impl Controller for Mine {
    fn on_ack(&mut self, _: Instant, sent: Instant, bytes: u64, _: u64, app_limited: bool, _: &RttEstimator) {
        if app_limited || sent <= self.reduced {
            return;
        }
        self.window += if self.starting { bytes } else { bytes * self.mtu / self.window };
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, _: bool, _: bool, _: u64, _: u64) {
        if sent > self.reduced {
            self.window = (self.window * 7 / 10).max(2 * self.mtu);
            self.starting = false;
            self.reduced = now;
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu.into();
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn initial_window(&self) -> u64 {
        10 * self.mtu
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes one for each connection.
struct Maker;

impl ControllerFactory for Maker {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let mtu = mtu.into();
        Box::new(Mine { window: 10 * mtu, mtu, starting: true, reduced: now })
    }
}

fn main() -> ExitCode {
    program::main(vec![Own::noq("mine", Arc::new(Maker))])
}
