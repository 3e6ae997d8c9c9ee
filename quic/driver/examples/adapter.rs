//! The whole adapter of an invented QUIC stack: what to copy for a real one. docs/how-to/quic-stacks.md walks through it.
//!
//! The stack names packets by numbers, and reports losses and marks after the packets that an ACK acknowledged.

use fullpipe_cc::Params;
use fullpipe_quic_driver::{Driver, InBytes, Start};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use std::collections::VecDeque;

/// What the stack calls.
struct Adapter {
    driver: Driver<InBytes>,
}

impl Adapter {
    fn new(controller: &str, now: Time, mtu: u16, seed: u64) -> Option<Adapter> {
        let params = Params::by_name(controller)?;
        let start = Start { now, mtu, seed };
        let mut driver = Driver::new(InBytes::new(&params, &start), &start);
        // DCTCP wants to hear of ACKs without marks, too.
        driver.events_mut().set_needs_ecn(params.ecn().is_some());
        Some(Adapter { driver })
    }

    /// Each packet that elicits an ACK, when it leaves.
    fn on_packet_sent(&mut self, now: Time, number: u64, bytes: u32) {
        self.driver.sent(now, number, bytes, None);
    }

    /// The window, and not the pacer, held back a packet that was ready.
    fn on_window_full(&mut self) {
        self.driver.events_mut().cwnd_limited();
    }

    /// An ACK, and what loss detection makes of it. `app_limited`: nothing was ready when the ACK arrived, and nothing held back.
    fn on_ack(&mut self, now: Time, acked: &[u64], lost: &[u64], mtu: u32, app_limited: bool) {
        for number in acked {
            self.driver.acked(now, *number, None, mtu, app_limited);
        }
        self.driver.events_mut().end_acked();
        for number in lost {
            self.driver.lost(now, *number, mtu);
        }
        // Also here, before anything else happens: `persistent_congestion` and `marked`.
    }

    /// Before each packet: the window in bytes, and the pacing rate in bytes a second.
    fn limits(&mut self) -> (u64, u64) {
        let limits = self.driver.limits();
        (limits.cwnd as u64, limits.pacing_rate.as_bytes_per_sec())
    }
}

/// Bytes of each packet, which take a millisecond at 10 Mbit/s.
const MTU: u32 = 1_250;
const SERVICE: Duration = Duration::from_millis(1);
const RTT: Duration = Duration::from_millis(40);

/// A path of 10 Mbit/s and 40 ms that loses each hundredth packet. Prints window and rate every quarter of a second.
pub(crate) fn main() {
    let start = Time::from_micros(1_000_000);
    let mut adapter = Adapter::new("bbr3", start, MTU as u16, 1).expect("bbr3 is built in");
    let (mut now, mut link_free, mut may_send, mut report) = (start, start, start, start);
    let (mut next, mut in_flight, mut acks) = (0, 0_u64, VecDeque::new());
    let mut limits = adapter.limits();
    while now < start + Duration::from_secs(3) {
        let (window, rate) = limits;
        let has_room = in_flight + MTU as u64 <= window;
        if has_room && may_send <= now {
            adapter.on_packet_sent(now, next, MTU);
            link_free = link_free.max(now) + SERVICE;
            acks.push_back((link_free + RTT, next));
            may_send = now + Rate::from_bytes_per_sec(rate).time_for(Bytes::new(MTU as u64));
            (next, in_flight) = (next + 1, in_flight + MTU as u64);
            continue;
        }
        if !has_room {
            adapter.on_window_full();
        }
        let ack = acks.front().map_or(Time::NEVER, |(at, _)| *at);
        now = if has_room { ack.min(may_send) } else { ack };
        if now < ack {
            continue;
        }
        // Of each hundred packets the last is lost, which the third after it shows (RFC 9002 section 6.1.1).
        match acks.pop_front() {
            Some((_, number)) if number % 100 == 99 => continue,
            Some((_, number)) if number > 99 && number % 100 == 2 => {
                adapter.on_ack(now, &[number], &[number - 3], MTU, false);
                in_flight -= 2 * MTU as u64;
            }
            Some((_, number)) => {
                adapter.on_ack(now, &[number], &[], MTU, false);
                in_flight -= MTU as u64;
            }
            None => break,
        }
        limits = adapter.limits();
        if report <= now {
            report = now + Duration::from_millis(250);
            let (ms, (window, rate)) = (now.saturating_since(start).as_millis(), limits);
            println!("{ms:4} ms: window {window:6} bytes, rate {:5.2} Mbit/s", rate as f64 * 8e-6);
        }
    }
    let rate = limits.1 * 8;
    assert!((8_000_000..13_000_000).contains(&rate), "BBRv3 finds the bottleneck's rate: {rate} bit/s");
}
