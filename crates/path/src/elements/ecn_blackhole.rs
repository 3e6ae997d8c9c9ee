//! An ECN black hole: a middlebox that drops packets of transports that understand marks.
//!
//! Source: "Measuring the State of ECN Readiness in Servers, Clients, and Routers" (IMC 2011) and "Enabling Internet-Wide
//! Deployment of Explicit Congestion Notification" (PAM 2015) find paths on which connections fail only with ECN, and the reason
//! why RFC 3168 (section 6.1.1.1) has a sender try again without it. Some of these paths drop SYN segments that ask for ECN. Such
//! a segment asks in its TCP header and is itself not ECN-capable (RFC 3168, section 6.1.1), so that an element, which sees the IP
//! header alone, lets it through: the connection is made, and its data does not arrive.

use crate::packet::{Cause, Ecn, Fate};
use fullpipe_units::Time;

/// What becomes of a packet with this codepoint.
#[inline]
pub(crate) fn admit(now: Time, ecn: Ecn) -> Fate {
    if ecn.is_capable() { Fate::Dropped(Cause::Lost) } else { Fate::Leaves(now) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_capable_passes() {
        let now = Time::from_nanos(5);
        let fates = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce].map(|ecn| admit(now, ecn));
        let lost = Fate::Dropped(Cause::Lost);
        assert_eq!(fates, [Fate::Leaves(now), lost, lost, lost]);
    }
}
