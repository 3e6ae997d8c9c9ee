//! The applications at both ends of a flow that sends one transfer after another.
//!
//! A request is data sent by the receiver: it leaves with an ACK, and is repeated until it is answered. The ACK confirms
//! that everything before it has arrived, so its number is where the answer begins, and distinguishes a repeated request
//! from a new one.

use fullpipe_scenario::spec::Workload;
use fullpipe_scenario::transfers::{Client, Server};
use fullpipe_units::{Bytes, Duration, Time};

/// A request is repeated after the round-trip time and this (Linux: `TCP_RTO_MIN`, the variation of a steady round trip) ...
const RTO_MIN: Duration = Duration::from_millis(200);
/// ... and then after twice as long each time, up to this (Linux: `TCP_RTO_MAX`).
const RTO_MAX: Duration = Duration::from_secs(120);

/// Both ends.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) server: Server,
    client: Client,
    /// Bytes that the client has received.
    delivered: u64,
    /// When the client asks next, or again.
    ask_due: Time,
    timeout: Duration,
    /// How long each transfer took.
    pub(crate) transfers_ns: Vec<u64>,
}

impl Application {
    /// Of a flow that starts at `start`; `None` unless it sends one transfer after another.
    pub(crate) fn new(workload: &Workload, start: Time) -> Option<Box<Application>> {
        Some(Box::new(Application {
            server: Server::new(workload, start)?,
            client: Client::new(workload, start)?,
            delivered: 0,
            ask_due: Time::NEVER,
            timeout: RTO_MIN,
            transfers_ns: Vec::new(),
        }))
    }

    /// Whether the client waits for data.
    pub(crate) fn waits(&self) -> bool {
        self.client.waits()
    }

    /// When the client asks next, or again.
    pub(crate) fn ask_due(&self) -> Time {
        self.ask_due
    }

    /// Bytes in order at the client. Anything new answers its request.
    pub(crate) fn on_delivered(&mut self, now: Time, delivered: u64) {
        if delivered > self.delivered {
            self.delivered = delivered;
            let took = |took: Duration| self.transfers_ns.push(took.as_nanos());
            self.client.on_delivered(Bytes::new(delivered), now, took);
            self.ask_due = self.client.due();
        }
    }

    /// The client requests, for the first time or again.
    pub(crate) fn ask(&mut self, now: Time, rtt: Duration) {
        if self.client.due() <= now {
            self.client.ask(now);
            self.timeout = rtt + RTO_MIN;
        } else {
            self.timeout = (self.timeout + self.timeout).min(RTO_MAX);
        }
        self.ask_due = now + self.timeout;
    }

    /// How long the client's playback stalled.
    pub(crate) fn rebuffered(&self, now: Time) -> Option<Duration> {
        self.client.rebuffered(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_repeats_until_data_arrives() {
        let workload = Workload::Requests { size_bytes: Bytes::new(3000), pause_ns: Duration::ZERO };
        let at = |millis: u64| Time::from_micros(millis * 1000);
        let rtt = Duration::from_millis(50);
        let mut application = Application::new(&workload, at(0)).unwrap();
        assert_eq!(application.ask_due(), Time::NEVER, "connecting is the first request");
        application.on_delivered(at(100), 2999);
        assert_eq!(application.ask_due(), Time::NEVER);
        application.on_delivered(at(101), 3000);
        let mut asked = Vec::new();
        for _ in 0..4 {
            let due = application.ask_due();
            asked.push(due);
            application.ask(due, rtt);
        }
        assert_eq!(asked, [at(101), at(351), at(851), at(1851)]);
        application.on_delivered(at(1900), 3000);
        assert_eq!(application.ask_due(), at(3851), "a duplicate is no answer");
        application.on_delivered(at(1900), 4448);
        assert_eq!(application.ask_due(), Time::NEVER);
        application.on_delivered(at(1950), 6000);
        assert_eq!((application.ask_due(), application.transfers_ns.len()), (at(1950), 2));
    }
}
