//! The handshake of a flow: SYNs until one is answered, and then the connection's sender.

use fullpipe_cc::Limits;
use fullpipe_scenario::spec::{EcnUse, Randomness};
use fullpipe_units::{Duration, Time};

use super::{Flow, ReturnWire, Settings};
use crate::packet::{AckKind, Acknowledgement, Echo, Segment, stamp_ms};
use crate::receiver::Receiver;
use crate::sender::{Sender, SenderConfig, Wire};
use crate::workload::ByteStream;

/// A SYN is repeated after 1 s (Linux: `TCP_TIMEOUT_INIT`) ...
pub(super) const SYN_TIMEOUT: Duration = Duration::from_secs(1);
/// ... this many times; then the time doubles (Linux: `net.ipv4.tcp_syn_linear_timeouts`).
const SYN_LINEAR_TIMEOUTS: u64 = 4;
impl Flow {
    pub(super) fn send_syn(&mut self, now: Time, out: &mut impl Wire) {
        self.syns_sent += 1;
        self.syn_sent = now;
        // A path may drop SYNs that offer ECN: the repeated ones do not (Linux: `tcp_ecn_fallback`; RFC 3168 section 6.1.1.1).
        let ecn = self.settings.sender.ecn != EcnUse::None && self.syns_sent == 1;
        out.send(now, self.index, Segment::syn(stamp_ms(now), ecn), self.settings.codepoint_of_others());
        self.syn_due = now + self.syn_timeout;
        if self.syns_sent > SYN_LINEAR_TIMEOUTS {
            self.syn_timeout = self.syn_timeout + self.syn_timeout;
        }
    }

    /// The first SYN that arrives decides on ECN.
    #[cold]
    pub(super) fn on_syn(&mut self, now: Time, segment: &Segment, ecn: bool, back: &mut impl ReturnWire) {
        self.syns_arrived += 1;
        let late = self.late();
        let Settings { sender, rmem, lie, .. } = &*self.settings;
        let ecn = if ecn { sender.ecn } else { EcnUse::None };
        let receiver =
            self.receiver.get_or_insert_with(|| Receiver::new(sender.controller.mss, *rmem, ecn, *lie, now));
        if let Some(late) = late {
            receiver.behave_as_linux(late.ack_timer);
        }
        let agreed = Echo::new(self.settings.codepoint_of_others()).echoing(receiver.uses_ecn());
        let answer = Acknowledgement::new(AckKind::Syn, segment.stamp_ms, 0, receiver.window_edge());
        self.answer(now, answer.with_echo(agreed), back);
    }

    #[cold]
    pub(super) fn on_syn_answered(&mut self, now: Time, ack: &Acknowledgement, out: &mut impl Wire) {
        // A flow that stopped while it was connecting stays silent.
        if ack.kind != AckKind::Syn || self.has_ended {
            return;
        }
        // A repeated SYN makes its own time ambiguous; the echoed timestamp, in milliseconds, does not.
        let rtt = if self.syns_sent == 1 {
            now.saturating_since(self.syn_sent)
        } else {
            Duration::from_millis(stamp_ms(now).wrapping_sub(ack.echo_ms).max(1) as u64)
        };
        let mut config = SenderConfig {
            flow: self.index,
            random_seed: Randomness::Controller(self.index as usize).seed(self.settings.seed),
            pacing_timer: self.late().map(|late| late.pacing_timer),
            ..self.settings.sender
        };
        if self.syns_sent == 1 {
            // The receiver measures this from its answer to the first data, over the same path.
            self.receiver.as_mut().expect("it has answered").on_established(rtt);
        }
        if let Some(metrics) = &self.settings.metrics {
            config.beginning = metrics.begin((rtt.as_micros() as u32).max(1) << 3);
            config.controller.cwnd_clamp =
                config.beginning.clamp.unwrap_or(u32::MAX).min(config.controller.cwnd_clamp);
            config.controller.ssthresh = config.beginning.ssthresh.unwrap_or(Limits::INFINITE);
        }
        if self.syns_sent > 2 {
            // Linux: `tcp_init_transfer`; RFC 5681 section 3.1.
            config.controller.initial_cwnd = 1;
        }
        self.syn_due = Time::NEVER;
        let mut stream = self.stream;
        if let Some(application) = &mut self.application {
            stream = ByteStream::empty(config.controller.mss);
            stream.extend(application.server.take(now));
            self.write_due = application.server.due();
        }
        self.update_own_due();
        let own = self.rare.as_mut().and_then(|rare| rare.own.take());
        let mut sender = Sender::establish(&config, own, stream, now, rtt, ack);
        sender.push(now, out);
        self.sender = Some(sender);
    }
}
