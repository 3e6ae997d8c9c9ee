"""How far apart the simulator and the kernel are on one scenario, and whether that is tolerable.

A measure agrees when the difference of the means is within its tolerance, or the simulator's mean lies
within the range that the kernel's own repetitions span. The shares of several flows must agree, too.
Untrustworthy runs are left out; an alternative without a trusted run in both worlds cannot be judged.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from fullpipe.results.measures import BY_NAME, SHARE, Quantity, known, shares
from fullpipe.results.statistics import Estimate

if TYPE_CHECKING:
    from fullpipe.results.runs import Group, Runs

R = TypeVar("R", bound="Runs")

GOODPUT_TOLERANCE = 0.03
RTT_TOLERANCE = 0.05
RETRANSMITS_FACTOR = 1.5
# Up to this many retransmissions, a factor is meaningless.
RETRANSMITS_THAT_COUNT = 50
SHARE_TOLERANCE = 0.08

TOLERANCES = (
    f"goodput {GOODPUT_TOLERANCE:.0%}, mean RTT {RTT_TOLERANCE:.0%}, retransmissions a factor of "
    f"{RETRANSMITS_FACTOR:g} (above {RETRANSMITS_THAT_COUNT}), shares of several flows "
    f"{SHARE_TOLERANCE * 100:.0f} percentage points"
)

RANGE_COUNTS = "The simulator's mean within the range of the kernel's own repetitions counts as agreement."


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
    reason: str  # The reason, if the verdict does not follow from the tolerance; else empty.

    @property
    def verdict(self) -> str:
        """In words."""
        verdict = "agrees" if self.agrees else "differs"
        return f"{verdict}, {self.reason}" if self.reason else verdict


@dataclass(frozen=True)
class Agreement(Generic[R]):
    """The verdict: every check, and the runs of both worlds that were judged."""

    results: R
    checks: tuple[Check, ...]
    # Why alternatives cannot be judged, by label.
    unjudged: dict[str, str]

    @staticmethod
    def of(results: R) -> "Agreement[R]":
        """Judges runs from both worlds, alternative by alternative."""
        by_world = {(group.world, group.label): group for group in results.groups}
        checks: list[Check] = []
        unjudged: dict[str, str] = {}
        for label in results.labels:
            groups = [by_world.get((world, label)) for world in _WORLDS]
            missing = [world for world, group in zip(_WORLDS, groups, strict=True) if group is None]
            doubted = [_WORLDS[group.world] for group in groups if group and not group.trusted]
            if missing:
                unjudged[label] = f"did not run in the {_WORLDS[missing[0]]}"
            elif doubted:
                unjudged[label] = f"has no trusted run in the {doubted[0]}"
            else:
                sim, kernel = groups
                assert sim is not None and kernel is not None
                checks += _checks(sim, kernel)
        return Agreement(results, tuple(checks), unjudged)

    @staticmethod
    def between(results: R) -> "Agreement[R] | None":
        """The same, or None unless both worlds ran."""
        return Agreement.of(results) if set(_WORLDS) <= set(results.worlds) else None

    @property
    def conclusive(self) -> bool:
        """Whether there is a verdict: some check differs, or every alternative was judged."""
        return any(not check.agrees for check in self.checks) or bool(self.checks and not self.unjudged)

    @property
    def agrees(self) -> bool:
        """Whether every alternative was judged, and every check agrees."""
        return self.conclusive and all(check.agrees for check in self.checks)

    @property
    def verdict(self) -> str:
        """A sentence or two."""
        counted = f"{sum(check.agrees for check in self.checks)} of {len(self.checks)} measures agree"
        why = "; ".join(f"{label} {reason}" for label, reason in self.unjudged.items())
        if not self.conclusive:
            rest = f" Of what could be judged, {counted}." if self.checks else ""
            return f"Inconclusive: {why or 'there is nothing to compare'}.{rest}"
        not_judged = f" Not judged: {why}." if why else ""
        return f"The worlds {'agree' if self.agrees else 'do not agree'}: {counted}.{not_judged}"

    def to_dict(self) -> dict[str, Any]:
        """The verdict and all checks in plain values; `agrees` is None when inconclusive."""
        return {
            "agrees": self.agrees if self.conclusive else None,
            "verdict": self.verdict,
            "tolerances": TOLERANCES,
            "unjudged": self.unjudged,
            "checks": [asdict(check) for check in self.checks],
        }


# Names for messages.
_WORLDS = {"sim": "simulator", "kernel": "kernel world"}


@dataclass(frozen=True)
class _Difference:
    """How far two means are apart, in words, and whether that is tolerable."""

    words: str
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
    words = "few" if few else f"x {factor:.2f}"
    return _Difference(words, f"x {RETRANSMITS_FACTOR:g}", few or factor <= RETRANSMITS_FACTOR)


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
    ours, theirs = ([shares(run.summary) for run in group.trusted] for group in (sim, kernel))
    flows = list(ours[0])
    for flow in flows if len(flows) > 1 else []:
        share = replace(SHARE, title=f"{SHARE.title} of {flow}")
        mine, other = (known([run[flow] for run in runs]) for runs in (ours, theirs))
        yield from _check(sim.label, share, mine, other, _points)


def _check(
    label: str, quantity: Quantity, ours: Estimate | None, theirs: Estimate | None, compare: _Compare
) -> Iterator[Check]:
    """The check of one quantity; none if neither world has a value."""
    title = f"{quantity.title}, {quantity.unit}"
    if ours is not None and theirs is not None:
        difference = compare(ours.mean, theirs.mean)
        in_range = theirs.least <= ours.mean <= theirs.most
        mean, least, most = map(quantity.show, (theirs.mean, theirs.least, theirs.most))
        yield Check(
            alternative=label,
            measure=title,
            sim=quantity.show(ours.mean),
            kernel=f"{mean} ({least} to {most})" if theirs.count > 1 else mean,
            difference=difference.words,
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
