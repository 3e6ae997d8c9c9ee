"""The cases of the suite `loss`: `CASES` of each module in `cases/`."""

from collections.abc import Sequence
from functools import cache

from fullpipe.conformance import catalogue
from fullpipe.conformance.loss import cases
from fullpipe.conformance.loss.case import LossCase

# The texts that the cases follow.
TEXT = (
    "RFC 9438 (CUBIC), RFC 5681 (Reno), RFC 9002 (QUIC), RFC 9406 (HyStart++), RFC 9937 (PRR), "
    "RFC 3168 and 8511 (ECN), draft-ietf-ccwg-ratelimited-increase"
)
# Files whose cases come first; others follow by their names.
_ORDER = (
    "slow_start",
    "decrease",
    "reno",
    "curve",
    "convergence",
    "friendly",
    "limited",
    "idle",
    "timeouts",
    "undo",
    "marks",
    "prr",
    "hystartpp",
)


@cache
def every() -> tuple[LossCase, ...]:
    """Every case, in the order of tables."""
    found: tuple[LossCase, ...] = catalogue.of_package(cases, _ORDER)
    return found


def chosen(names: Sequence[str] | None) -> tuple[LossCase, ...]:
    """The cases of these names, in the order of tables; all without any.

    Raises:
        ScenarioError: A name is not one of a case.
    """
    return catalogue.of_names(every(), names, "`fullpipe conform --suite loss --list` has them")
