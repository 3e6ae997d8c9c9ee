"""Proportional Rate Reduction: what leaves during a recovery."""

from collections.abc import Sequence
from itertools import pairwise

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import lose, repaired, roomy, threshold, to_avoidance
from fullpipe.conformance.stage import Lab, Look, Stage

_NEEDS = ("prr",)


def _recovery(lab: Lab, packets: int, name: str) -> tuple[Stage, Sequence[Look]]:
    """The looks of a recovery from so many losses in a row, in congestion avoidance on a full path."""
    stage = roomy(lab, 110, 40, name=name)
    to_avoidance(stage, 80)
    stage.until_above("cwnd", 114, 20, "a window that fills the path")
    lose(stage, packets)
    before, after = repaired(stage)
    return stage, [look for look in stage.looks if before.time_s <= look.time_s <= after.time_s]


@LossCase.of(
    """
    window [0.97 to 1.03]: window at the end of the recovery, of the threshold
        1; ours: three packets
    """,
    source="RFC 9937 5 (at the end of recovery, cwnd is set to ssthresh)",
    needs=_NEEDS,
)
def prr_ends_at_threshold(lab: Lab) -> Measured:
    """A recovery ends with a window that is the threshold.

    One packet is lost at about 110 packets, on 33 Mbit/s and 40 ms, which
    hold as many.
    """
    stage, looks = _recovery(lab, 1, "one packet is lost")
    found = threshold(stage)
    return {"window": looks[-1].cwnd / found if found else None}


@LossCase.of(
    """
    silence [at most 0.2]: longest time without a packet in the recovery, in round trips
        ours: halving the window at once is silent for half a round trip, or for 0.3 with beta
    """,
    source="RFC 9937 1, 5",
    needs=_NEEDS,
)
def prr_no_silence(lab: Lab) -> Measured:
    """A recovery spreads its packets over the round trip.

    As prr-ends-at-threshold.
    """
    stage, looks = _recovery(lab, 1, "one packet is lost")
    longest, last = 0.0, looks[0]
    for look in looks:
        if look.sent > last.sent:
            last = look
        longest = max(longest, look.time_s - last.time_s)
    return {"silence": longest / stage.rtt_s}


@LossCase.of(
    """
    lost [70 to 140]: packets lost
        ours: the case is what it says
    burst [at most 12 packets]: most packets sent in a fortieth of a round trip in the recovery
        ours: an ACK for two packets brings three, thrice; a window refilled at once is 20 or more
    """,
    source="RFC 9937 5 (PRR-CRB, PRR-SSRB)",
    needs=_NEEDS,
    main="burst",
)
def prr_no_burst(lab: Lab) -> Measured:
    """Heavy losses are not answered by a burst.

    80 packets in a row are lost of about 115, so that less is in flight than the threshold allows.
    """
    stage, looks = _recovery(lab, 80, "eighty packets are lost")
    bursts = [later.sent - look.sent for look, later in pairwise(looks)]
    return {"lost": stage.now.lost - looks[0].lost, "burst": max(bursts)}


CASES: tuple[Case, ...] = (prr_ends_at_threshold, prr_no_silence, prr_no_burst)
