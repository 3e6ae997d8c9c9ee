//! A flow, as the main loop sees it: both ends of a connection, and both applications.
//!
//! There are two kinds: a stack that is [linked in](crate::linked), and one in a [process of its own](crate::outside).

use bytes::BytesMut;
use fullpipe_path::Ecn;
use fullpipe_record::Sample;
use fullpipe_scenario::spec::{FlowSpec, Spec};
use fullpipe_units::{Duration, Time};

use crate::options::HEADER_BYTES;
use crate::wire::Wire;

/// Datagrams at the ends of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
}

/// What a flow had done when its measures ended. Counts that its stack does not tell are `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) at: Time,
    pub(crate) completed: bool,
    pub(crate) delivered_bytes: u64,
    pub(crate) datagrams: u64,
    pub(crate) lost: Option<u64>,
    pub(crate) collapses: Option<u64>,
    pub(crate) undone: Option<u64>,
    pub(crate) written: u64,
    pub(crate) written_at: Option<Time>,
}

/// The sample before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    delivered: u64,
    at: Time,
    /// How long after the one before it was taken.
    after: Duration,
    delivery_bps: u64,
}

impl Sampled {
    /// None, of a flow that starts then.
    pub(crate) fn new(start: Time) -> Sampled {
        Sampled { delivered: 0, at: start, after: Duration::ZERO, delivery_bps: 0 }
    }

    /// The rate of delivery since the sample before, or that of the sample before if it is too recent to tell.
    pub(crate) fn delivery_bps(&self, delivered: u64, now: Time) -> u64 {
        let elapsed = now.saturating_since(self.at);
        if elapsed == Duration::ZERO || elapsed < self.after {
            return self.delivery_bps;
        }
        let bits = u128::from(delivered - self.delivered) * 8_000_000_000;
        (bits / u128::from(elapsed.as_nanos())) as u64
    }

    /// The sampler has taken a sample now.
    pub(crate) fn on_sampled(&mut self, delivered: u64, now: Time) {
        let delivery_bps = self.delivery_bps(delivered, now);
        *self = Sampled { delivered, at: now, after: now.saturating_since(self.at), delivery_bps };
    }
}

/// Bytes of UDP payload in a full datagram.
pub(crate) fn payload(spec: &Spec) -> u64 {
    u64::from(spec.mtu_bytes - HEADER_BYTES)
}

/// The most bytes of a flow's window, if its scenario limits it.
pub(crate) fn max_window(spec: &Spec, flow: &FlowSpec) -> Option<u64> {
    flow.max_cwnd.map(|segments| u64::from(segments) * payload(spec))
}

/// What a flow does when its time comes, and what it shows of itself.
pub(crate) trait Flow {
    /// Its name in records.
    fn label(&self) -> &str;

    /// When it starts.
    fn start(&self) -> Time;

    /// When its measures ended; `None` while they go on.
    fn ended(&self) -> Option<Ended>;

    /// When it next has something to do by itself.
    fn next(&self) -> Time;

    /// A time from [`Flow::next`] has come. Nothing is changed, and nobody looks, before `horizon`.
    fn on_timer(
        &mut self,
        now: Time,
        horizon: Time,
        forward: &mut Wire,
        reverse: &mut Wire,
        scratch: &mut Vec<u8>,
    ) -> Result<(), String>;

    /// A datagram has come to the receiver's end of the path.
    fn on_forward(
        &mut self,
        now: Time,
        ecn: Ecn,
        datagram: BytesMut,
        reverse: &mut Wire,
        scratch: &mut Vec<u8>,
    );

    /// A datagram has come to the sender's end of the path.
    fn on_reverse(
        &mut self,
        now: Time,
        ecn: Ecn,
        datagram: BytesMut,
        forward: &mut Wire,
        scratch: &mut Vec<u8>,
    );

    /// Lets the sender do what follows from what has happened to it.
    fn drive_sender(&mut self, now: Time, forward: &mut Wire, scratch: &mut Vec<u8>) -> Result<(), String>;

    /// Lets the receiver do what follows from what has happened to it.
    fn drive_receiver(&mut self, now: Time, reverse: &mut Wire, scratch: &mut Vec<u8>) -> Result<(), String>;

    /// What a sample at this instant shows; `None` until it is connected.
    fn sample(&mut self, now: Time) -> Option<Sample>;

    /// The sampler has taken a sample now.
    fn on_sampled(&mut self, now: Time);

    /// What it has done by now.
    fn measured(&mut self, at: Time, completed: bool) -> Ended;

    /// Packets of the sender's that were acknowledged.
    fn acked(&self) -> u64;

    /// How long each transfer of its application took that is complete.
    fn transfers_ns(&self) -> &[u64];

    /// How long playback had stalled by `now`; `None` unless it is a video.
    fn rebuffered_ns(&self, now: Time) -> Option<u64>;

    /// Datagrams at the ends of the path to the receiver, and of the way back.
    fn ends(&self) -> [Ends; 2];

    /// Panics when what its ends count does not agree.
    fn check(&mut self);

    /// The path's delay behind everything else has changed, of one direction. Only where this flow does that delay by itself.
    fn set_delay(&mut self, forward: bool, delay: Duration);

    /// All datagrams that its ends have sent, if it was asked to note them: 16 bytes each, as departures of the protocol.
    fn trace(&self) -> &[u8] {
        &[]
    }
}
