//! The sender's half of ECN (RFC 3168 section 6.1; Linux 6.12 `tcp_ecn_send`, `tcp_ecn_queue_cwr`): the codepoints of what
//! leaves, and CWR, which tells the receiver of a reduction.

use fullpipe_path::Ecn;
use fullpipe_scenario::spec::EcnUse;

/// What a sender knows of ECN, in one byte: two codepoints and a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marking(u8);

impl Marking {
    const REPEATED_SHIFT: u32 = 2;
    const CWR: u8 = 0b1_0000;

    pub(super) const fn new(ecn: EcnUse) -> Marking {
        let (new, repeated) = match ecn {
            EcnUse::None => (Ecn::NotEct, Ecn::NotEct),
            EcnUse::Classic => (Ecn::Ect0, Ecn::NotEct),
            EcnUse::Exact(codepoint) => (codepoint, codepoint),
        };
        Marking(new as u8 | (repeated as u8) << Marking::REPEATED_SHIFT)
    }

    /// The codepoint of new data.
    pub(super) const fn of_new(self) -> Ecn {
        Ecn::from_bits(self.0)
    }

    /// The codepoint of retransmissions.
    pub(super) const fn of_repeated(self) -> Ecn {
        Ecn::from_bits(self.0 >> Marking::REPEATED_SHIFT)
    }

    /// Whether ECN was negotiated.
    #[inline]
    pub(super) const fn is_on(self) -> bool {
        self.0 != 0
    }

    /// Whether the controller has to hear of every ACK (Linux: `TCP_CONG_NEEDS_ECN`).
    pub(super) const fn is_exact(self) -> bool {
        self.of_repeated().is_capable()
    }

    /// A reduction begins: the next new data has CWR (Linux: `tcp_ecn_queue_cwr`).
    pub(super) fn queue_cwr(&mut self) {
        if self.is_on() {
            self.0 |= Marking::CWR;
        }
    }

    /// The reduction was undone (Linux: `tcp_ecn_withdraw_cwr`).
    pub(super) fn withdraw_cwr(&mut self) {
        self.0 &= !Marking::CWR;
    }

    /// Whether the next new data has CWR; no other has.
    pub(super) fn take_cwr(&mut self) -> bool {
        let queued = self.0 & Marking::CWR != 0;
        self.withdraw_cwr();
        queued
    }
}
