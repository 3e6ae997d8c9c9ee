"""How far two values of a measure are apart: the arithmetic that every comparison of two worlds uses.

The second value is the reference. Each comparison has its own tolerances and its own rule for the verdict:

* `agreement` judges one scenario, usually with few runs. Its verdict must not depend on how many: a measure
  agrees if the means are within a narrow tolerance, or the mean lies in the range of the reference's runs.
* `grid.compare` judges some hundred scenarios, each with enough runs for a range of either world. A measure
  agrees if the ranges overlap. The wider tolerances are limits for most of a grid, not for each cell.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Difference:
    """A difference, and whether it is tolerable."""

    # Signed: relative, the logarithm of a factor, or a difference of shares; None if it is meaningless.
    apart: float | None
    tolerance: float  # In the same unit.
    tolerable: bool
    message: str  # In words, with its direction.
    limit: str  # The tolerance in words.


# The difference in words where a factor is meaningless.
FEW = "few"

# Compares a value with that of the reference.
Compare: TypeAlias = Callable[[float, float], Difference]


def relative(tolerance: float) -> Compare:
    """The difference as a part of the reference."""

    def compare(ours: float, theirs: float) -> Difference:
        apart = ours / theirs - 1 if theirs else math.inf if ours else 0.0
        message = f"{apart:+.1%}".replace("-0.0%", "+0.0%")
        return Difference(apart, tolerance, abs(apart) <= tolerance, message, f"{tolerance:.0%}")

    return compare


def factor(most: float, *, few: float, directed: bool) -> Compare:
    """How many times one value is the other. If neither is over `few`, a factor is meaningless.

    `directed`: the words have the reference below the line, whichever is larger; else the smaller value.
    """

    def compare(ours: float, theirs: float) -> Difference:
        tolerance, limit = math.log(most), f"x {most:g}"
        less, more = sorted((ours, theirs))
        if more <= few:
            return Difference(None, tolerance, True, FEW, limit)
        if not less:
            apart = math.copysign(math.inf, ours - theirs)
            return Difference(apart, tolerance, False, "x inf", limit)
        message = f"x {ours / theirs if directed else more / less:.2f}"
        return Difference(math.log(ours / theirs), tolerance, more / less <= most, message, limit)

    return compare


def points(tolerance: float) -> Compare:
    """The difference of two shares."""

    def compare(ours: float, theirs: float) -> Difference:
        apart = ours - theirs
        message, limit = f"{100 * apart:+.1f} points", f"{100 * tolerance:.0f} points"
        return Difference(apart, tolerance, abs(apart) <= tolerance, message, limit)

    return compare
