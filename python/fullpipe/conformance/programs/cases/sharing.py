"""Beside a flow of Linux's CUBIC, and beside one of its own kind."""

from fullpipe.conformance.case import Criterion, Measured
from fullpipe.conformance.programs.case import OutsideCase
from fullpipe.conformance.programs.packets import Seen
from fullpipe.conformance.programs.phases import BESIDE_CUBIC, TWO_OF_A_KIND

_FROM_S = 10.0


def _beside(seen: Seen) -> Measured:
    own, cubic = seen.shares_of_all(_FROM_S, BESIDE_CUBIC.lasts_s)
    return {"cubic": cubic, "own": own}


BESIDE = OutsideCase(
    name="outside.beside-cubic",
    title="A CUBIC flow beside it keeps a third, and it keeps a tenth",
    source="RFC 5348 section 1; RFC 9743 section 5",
    about="One flow of CUBIC beside it on 20 Mbit/s, 40 ms and 2 BDP of buffer, from 10 to 30 s.",
    criteria=(
        Criterion(
            "cubic",
            "CUBIC's share of the goodput",
            low=33.3,
            unit="%",
            source="ours: within a factor of two is what RFC 5348 calls reasonably fair",
        ),
        Criterion(
            "own", "its own share", low=10, unit="%", source="ours: a fifth of a fair share is no starvation"
        ),
    ),
    play=_beside,
    course=BESIDE_CUBIC,
)


def _two(seen: Seen) -> Measured:
    shares = seen.shares_of_all(_FROM_S, TWO_OF_A_KIND.lasts_s)
    squares = sum(share * share for share in shares)
    return {"jain": sum(shares) ** 2 / (len(shares) * squares) if squares else None}


TWO = OutsideCase(
    name="outside.two-of-a-kind",
    title="Two of the same kind share",
    source="RFC 5348 section 1; draft 3.1",
    about="Two at once on 20 Mbit/s, 40 ms and 2 BDP of buffer, from 10 to 30 s.",
    criteria=(
        Criterion(
            "jain",
            "Jain's index of the two goodputs",
            low=0.9,
            source="ours: 0.9 is twice the rate of the other, the factor that RFC 5348 calls reasonably fair",
        ),
    ),
    play=_two,
    course=TWO_OF_A_KIND,
)

CASES = (BESIDE, TWO)
