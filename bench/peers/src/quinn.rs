//! quinn-proto's BBR and CUBIC, told what quinn-proto's connection tells them, in its order (`Connection::on_ack_received`,
//! `Connection::poll_transmit`): `on_ack` for each packet, then `on_end_acks`, `window`, and `on_sent` for the burst.

use std::hint::black_box;
use std::mem::size_of_val;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Bbr, BbrConfig, Controller, Cubic, CubicConfig};

use crate::controllers::{BURST, MSS, Subject, Tick};
use crate::rtt;

pub(crate) const BBR: &str = "quinn-proto bbr";
pub(crate) const CUBIC: &str = "quinn-proto cubic";

const BURST_BYTES: u64 = (BURST * MSS) as u64;

pub(crate) fn all() -> Vec<Box<dyn Subject>> {
    let rtt = rtt::estimator();
    let start = Instant::now();
    let bbr = Bbr::new(Arc::new(BbrConfig::default()), MSS as u16);
    let cubic = Cubic::new(Arc::new(CubicConfig::default()), start, MSS as u16);
    vec![
        Box::new(Theirs::new(BBR, bbr, false, start, rtt)),
        Box::new(Theirs::new(CUBIC, cubic, true, start, rtt)),
    ]
}

struct Theirs<C> {
    name: &'static str,
    controller: C,
    loses: bool,
    /// Of the stream's clock.
    start: Instant,
    rtt: RttEstimator,
    events: Vec<Event>,
}

/// One ACK and the burst after it, in quinn-proto's terms.
struct Event {
    now: Instant,
    sent: Instant,
    departure: Instant,
    tick: Tick,
    largest_acked: u64,
    largest_sent: u64,
}

impl<C: Controller> Theirs<C> {
    fn new(name: &'static str, controller: C, loses: bool, start: Instant, rtt: RttEstimator) -> Theirs<C> {
        Theirs { name, controller, loses, start, rtt, events: Vec::new() }
    }
}

impl<C: Controller> Subject for Theirs<C> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn state_bytes(&self) -> usize {
        size_of_val(&self.controller)
    }

    fn prepare(&mut self, ticks: &[Tick]) {
        self.events.clear();
        for tick in ticks {
            let at = |time: fullpipe_units::Time| self.start + Duration::from_nanos(time.as_nanos());
            self.events.push(Event {
                now: at(tick.now),
                sent: at(tick.sent),
                departure: at(tick.departure),
                tick: *tick,
                largest_acked: tick.acked() - 1,
                largest_sent: tick.sent_after() - 1,
            });
        }
    }

    fn replay(&mut self) {
        let mut window = self.controller.window();
        for event in &self.events {
            for _ in 0..BURST {
                self.controller.on_ack(event.now, event.sent, MSS.into(), false, &self.rtt);
            }
            let flight = event.tick.flight((window / u64::from(MSS)) as u32) as u64 * u64::from(MSS);
            self.controller.on_end_acks(event.now, flight, false, Some(event.largest_acked));
            window = black_box(self.controller.window());
            self.controller.on_sent(event.departure, BURST_BYTES, event.largest_sent);
        }
    }

    fn lose(&mut self) {
        if let Some(event) = self.events.last().filter(|_| self.loses) {
            self.controller.on_congestion_event(event.now, event.now, false, MSS.into());
        }
    }
}
