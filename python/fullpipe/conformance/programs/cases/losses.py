"""Losses that are no congestion, and an outage."""

from fullpipe.conformance.case import Measured
from fullpipe.conformance.programs.case import OutsideCase
from fullpipe.conformance.programs.packets import Seen
from fullpipe.conformance.programs.phases import OUTAGE, OUTAGE_S, RANDOM_LOSS

_FROM_S = 4.0


@OutsideCase.of(
    """
    goodput [at least 8 %]: goodput, of the path's rate
        ours: half of what the TCP throughput equation gives, which is 3.25 Mbit/s or 16 %; RFC 5348 calls
        within a factor of two reasonable
    """,
    source="RFC 5348 sections 1 and 3.1",
    course=RANDOM_LOSS,
)
def random_loss(seen: Seen) -> Measured:
    """Random loss of 1 % does not stop it.

    20 Mbit/s, 40 ms, 1 BDP of buffer and 1 % of random loss, from 4 to 15 s.
    """
    return {"goodput": seen.share(_FROM_S, RANDOM_LOSS.lasts_s)}


@OutsideCase.of(
    """
    resumes [at most 5 s]: time from the end of the outage to the first delivery
        ours: a timeout of 1 s that doubles ends after 1, 3 and 7 s, so 4 s after the outage; 1 s in reserve
    half [at most 8 s]: time from the end of the outage until five round trips deliver half of the path's rate
        ours: 5 s until it resumes, and 3 s to grow from a window of one or two packets
    """,
    source="RFC 6298 section 5; RFC 9002 section 6.2.1",
    course=OUTAGE,
)
def outage(seen: Seen) -> Measured:
    """It comes back after an outage of three seconds.

    20 Mbit/s, 40 ms and 1 BDP of buffer. From 6 to 9 s every packet to the receiver is lost.
    """
    ends_s = OUTAGE_S[1]
    return {
        "resumes": seen.resumes(ends_s),
        "half": seen.reaches(seen.rate_bps / 2, ends_s, OUTAGE.lasts_s),
    }


CASES = (random_loss, outage)
