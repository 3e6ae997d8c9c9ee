"""How far the simulator and the kernel are apart on one scenario, and whether that is tolerable.

A measure agrees when the difference of the means is within its tolerance, or the simulator's mean lies within
the range that the kernel's own repetitions span. Several flows must also divide the goodput alike.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from fullpipe.measures import BY_NAME, SHARE, Quantity, known, shares
from fullpipe.stats import Estimate

if TYPE_CHECKING:
    from fullpipe.results import Group, Results

GOODPUT_TOLERANCE = 0.03
RTT_TOLERANCE = 0.05
RETRANSMITS_FACTOR = 1.5
# Up to this many retransmissions a factor says nothing.
RETRANSMITS_THAT_COUNT = 50
SHARE_TOLERANCE = 0.08

TOLERANCES = (
    f"goodput {GOODPUT_TOLERANCE:.0%}, mean RTT {RTT_TOLERANCE:.0%}, retransmissions a factor of "
    f"{RETRANSMITS_FACTOR:g} (above {RETRANSMITS_THAT_COUNT}), shares of several flows "
    f"{SHARE_TOLERANCE * 100:.0f} percentage points"
)


@dataclass(frozen=True)
class Check:
    """One measure of one alternative in both worlds."""

    alternative: str
    measure: str
    sim: str
    kernel: str
    difference: str
    tolerance: str
    agrees: bool
    reason: str  # Where the verdict does not follow from the tolerance; else empty.


@dataclass(frozen=True)
class Agreement:
    """The verdict: every check, and the runs of both worlds that were judged."""

    results: "Results"
    checks: tuple[Check, ...]

    @staticmethod
    def of(results: "Results") -> "Agreement":
        """Judges runs from both worlds, alternative by alternative."""
        by_world = {(group.world, group.label): group for group in results.groups}
        return Agreement(
            results,
            tuple(
                check
                for label in results.labels
                for check in _checks(by_world["sim", label], by_world["kernel", label])
            ),
        )

    @property
    def agrees(self) -> bool:
        """Whether every check does."""
        return all(check.agrees for check in self.checks)

    @property
    def verdict(self) -> str:
        """One sentence."""
        counted = f"{sum(check.agrees for check in self.checks)} of {len(self.checks)} measures agree"
        return f"The worlds {'agree' if self.agrees else 'do not agree'}: {counted}."


@dataclass(frozen=True)
class _Difference:
    """How far two means are apart, in words, and whether that is tolerable."""

    said: str
    tolerance: str
    within: bool


# Compares the simulator's mean with the kernel's.
_Compare: TypeAlias = Callable[[float, float], _Difference]


def _relative(tolerance: float) -> _Compare:
    def compare(ours: float, theirs: float) -> _Difference:
        apart = ours / theirs - 1 if theirs else math.inf if ours else 0.0
        return _Difference(f"{apart:+.1%}", f"{tolerance:.0%}", abs(apart) <= tolerance)

    return compare


def _factor(ours: float, theirs: float) -> _Difference:
    less, more = sorted((ours, theirs))
    few = more <= RETRANSMITS_THAT_COUNT
    factor = more / less if less else math.inf
    said = "few" if few else f"x {factor:.2f}"
    return _Difference(said, f"x {RETRANSMITS_FACTOR:g}", few or factor <= RETRANSMITS_FACTOR)


def _points(ours: float, theirs: float) -> _Difference:
    apart = 100 * (ours - theirs)
    tolerance = 100 * SHARE_TOLERANCE
    return _Difference(f"{apart:+.1f} points", f"{tolerance:.0f} points", abs(apart) <= tolerance)


_JUDGED: tuple[tuple[str, _Compare], ...] = (
    ("goodput_bps", _relative(GOODPUT_TOLERANCE)),
    ("rtt_mean_ms", _relative(RTT_TOLERANCE)),
    ("retransmits", _factor),
)


def _checks(sim: "Group", kernel: "Group") -> Iterator[Check]:
    for name, compare in _JUDGED:
        yield from _check(sim.label, BY_NAME[name], sim.measures[name], kernel.measures[name], compare)
    ours, theirs = ([shares(run.summary) for run in group.runs] for group in (sim, kernel))
    flows = list(ours[0])
    for flow in flows if len(flows) > 1 else []:
        share = replace(SHARE, title=f"{SHARE.title} of {flow}")
        mine, other = (known([run[flow] for run in runs]) for runs in (ours, theirs))
        yield from _check(sim.label, share, mine, other, _points)


def _check(
    label: str, quantity: Quantity, ours: Estimate | None, theirs: Estimate | None, compare: _Compare
) -> Iterator[Check]:
    """The check of one quantity; none where neither world has a value."""
    title = f"{quantity.title}, {quantity.unit}"
    if ours is not None and theirs is not None:
        difference = compare(ours.mean, theirs.mean)
        in_range = theirs.least <= ours.mean <= theirs.most
        mean, least, most = map(quantity.show, (theirs.mean, theirs.least, theirs.most))
        yield Check(
            alternative=label,
            measure=title,
            sim=quantity.show(ours.mean),
            kernel=f"{mean} ({least} to {most})",
            difference=difference.said,
            tolerance=difference.tolerance,
            agrees=difference.within or in_range,
            reason="" if difference.within or not in_range else "within the kernel's own range",
        )
    elif ours is not theirs:
        yield Check(
            alternative=label,
            measure=title,
            sim=quantity.show(ours.mean if ours else None),
            kernel=quantity.show(theirs.mean if theirs else None),
            difference="–",
            tolerance="–",
            agrees=False,
            reason="known in one world only",
        )
