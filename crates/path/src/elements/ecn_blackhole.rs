//! An ECN black hole: a middlebox that drops packets of transports that understand marks.
//!
//! Source: "Measuring the State of ECN Readiness in Servers, Clients, and Routers" (IMC 2011) and "Enabling Internet-Wide
//! Deployment of Explicit Congestion Notification" (PAM 2015) find paths on which connections fail only with ECN, and the reason
//! why RFC 3168 (section 6.1.1.1) has a sender try again without it. Some of these paths drop SYN segments that ask for ECN. Such
//! a segment asks in its TCP header and is itself not ECN-capable (RFC 3168, section 6.1.1), so that an element, which sees the IP
//! header alone, lets it through: the connection is made, and its data does not arrive.

use crate::element::{Setup, Transit, element};
use crate::packet::{Cause, Fate, Moment, Packet};

element! {
    /// Drops ECN-capable packets, as some middleboxes do. A SYN that asks for ECN is not itself capable and passes.
    "ecn_blackhole", shown as |_| "ECN black hole";
}

/// It needs to know nothing.
#[derive(Debug)]
pub(crate) struct EcnBlackhole;

impl Transit for EcnBlackhole {
    type Config = Config;
    const TAKES_TIME: bool = false;

    fn new(_: &Config, _: Setup) -> EcnBlackhole {
        EcnBlackhole
    }

    #[inline]
    fn admit(&mut self, moment: Moment, packet: &Packet) -> Fate {
        if packet.ecn.is_capable() { Fate::Dropped(Cause::Lost) } else { Fate::Leaves(moment.arrival) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Ecn;
    use fullpipe_units::Time;

    #[test]
    fn only_what_is_not_capable_passes() {
        let now = Time::from_nanos(5);
        let fates = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]
            .map(|ecn| EcnBlackhole.admit(Moment::at(now), &Packet { ecn, ..Packet::new(1500, 0) }));
        let lost = Fate::Dropped(Cause::Lost);
        assert_eq!(fates, [Fate::Leaves(now), lost, lost, lost]);
    }
}
