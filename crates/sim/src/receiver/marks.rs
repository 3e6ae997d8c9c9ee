//! What a receiver knows of congestion marks, and echoes (Linux 6.12 `tcp_input.c`: `tcp_ecn_check_ce`, `tcp_ecn_accept_cwr`;
//! `tcp_dctcp.h`).

use fullpipe_path::Ecn;
use fullpipe_scenario::spec::EcnUse;

use crate::packet::Echo;

/// The receiver's half of ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    mode: Mode,
    /// What the next ACK says (Linux: `TCP_ECN_DEMAND_CWR`).
    echo: Echo,
    /// A packet that could be marked has arrived (Linux: `TCP_ECN_SEEN`).
    seen: bool,
    /// The last one was (Linux: DCTCP's `ce_state`).
    last_was_marked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Off,
    Classic,
    Exact,
}

/// How soon a packet has to be acknowledged because of its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// No sooner than without.
    None,
    /// This and the next one at once: the sender may have little in flight.
    Quickly,
    /// At once, and before that what waits for its ACK, with this echo.
    Now(Echo),
}

impl Marks {
    pub(super) const fn new(ecn: EcnUse) -> Marks {
        let (mode, codepoint) = match ecn {
            EcnUse::None => (Mode::Off, Ecn::NotEct),
            EcnUse::Classic => (Mode::Classic, Ecn::NotEct),
            EcnUse::Exact(codepoint) => (Mode::Exact, codepoint),
        };
        Marks { mode, echo: Echo::new(codepoint), seen: false, last_was_marked: false }
    }

    /// Whether ECN was negotiated.
    #[inline]
    pub(super) fn is_on(self) -> bool {
        self.mode != Mode::Off
    }

    /// What an ACK says now.
    #[inline]
    pub(super) const fn echo(self) -> Echo {
        self.echo
    }

    /// The sender has heard the echo, and reduced its window.
    pub(super) fn stop_echo(&mut self) {
        self.echo = self.echo.echoing(false);
    }

    /// A packet with this codepoint arrived.
    pub(super) fn on_packet(&mut self, codepoint: Ecn) -> Answer {
        if self.mode == Mode::Off {
            return Answer::None;
        }
        if !codepoint.is_capable() {
            // Probably a retransmission.
            return if self.seen { Answer::Quickly } else { Answer::None };
        }
        self.seen = true;
        let marked = codepoint == Ecn::Ce;
        if self.mode == Mode::Exact {
            let before = self.echo.echoing(self.last_was_marked);
            let changed = marked != self.last_was_marked;
            self.last_was_marked = marked;
            self.echo = before.echoing(marked);
            return if changed { Answer::Now(before) } else { Answer::None };
        }
        if marked && !self.echo.echoes() {
            self.echo = self.echo.echoing(true);
            return Answer::Quickly;
        }
        Answer::None
    }
}
