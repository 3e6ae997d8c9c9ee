"""Beside a flow of Linux's CUBIC, and beside one of its own kind."""

from fullpipe.conformance.case import Measured
from fullpipe.conformance.programs.case import OutsideCase
from fullpipe.conformance.programs.packets import Seen
from fullpipe.conformance.programs.phases import BESIDE_CUBIC, TWO_OF_A_KIND

_FROM_S = 10.0


@OutsideCase.of(
    """
    cubic [at least 33.3 %]: CUBIC's share of the goodput
        ours: within a factor of two is what RFC 5348 calls reasonably fair
    own [at least 10 %]: its own share
        ours: a fifth of a fair share is no starvation
    """,
    source="RFC 5348 section 1; RFC 9743 section 5",
    course=BESIDE_CUBIC,
)
def beside_cubic(seen: Seen) -> Measured:
    """A CUBIC flow beside it keeps a third, and it keeps a tenth.

    One flow of CUBIC beside it on 20 Mbit/s, 40 ms and 2 BDP of buffer, from 10 to 30 s.
    """
    own, cubic = seen.shares_of_all(_FROM_S, BESIDE_CUBIC.lasts_s)
    return {"cubic": cubic, "own": own}


@OutsideCase.of(
    """
    jain [at least 0.9]: Jain's index of the two goodputs
        ours: 0.9 is twice the rate of the other, the factor that RFC 5348 calls reasonably fair
    """,
    source="RFC 5348 section 1; draft 3.1",
    course=TWO_OF_A_KIND,
)
def two_of_a_kind(seen: Seen) -> Measured:
    """Two of the same kind share.

    Two at once on 20 Mbit/s, 40 ms and 2 BDP of buffer, from 10 to 30 s.
    """
    shares = seen.shares_of_all(_FROM_S, TWO_OF_A_KIND.lasts_s)
    squares = sum(share * share for share in shares)
    return {"jain": sum(shares) ** 2 / (len(shares) * squares) if squares else None}


CASES = (beside_cubic, two_of_a_kind)
