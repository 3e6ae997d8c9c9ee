"""How far the simulator and the kernel are apart on one scenario, and whether that is tolerable.

A measure agrees when the difference of the means is within its tolerance, or the simulator's mean lies within
the range that the kernel's own repetitions span. Several flows must also divide the goodput alike.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fullpipe.measures import BY_NAME, Measure, shares
from fullpipe.results import Group, Results
from fullpipe.stats import Estimate, estimate

GOODPUT_TOLERANCE = 0.03
RTT_TOLERANCE = 0.05
RETRANSMITS_FACTOR = 1.5
# Below this many retransmissions a factor says nothing.
RETRANSMITS_THAT_COUNT = 50
SHARE_TOLERANCE = 0.08


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
    reason: str  # Why it agrees although the tolerance is exceeded; empty otherwise.


def checks(results: Results) -> list[Check]:
    """Every check, alternative by alternative. Expects runs from both worlds."""
    by_world = {(group.world, group.label): group for group in results.groups}
    found: list[Check] = []
    for label in results.labels:
        sim, kernel = by_world[("sim", label)], by_world[("kernel", label)]
        found += _measure_checks(label, sim, kernel)
        if len(sim.runs[0].summary["flows"]) > 1:
            found += _share_checks(label, sim, kernel)
    return found


def _measure_checks(label: str, sim: Group, kernel: Group) -> Iterator[Check]:
    for name, tolerance in (("goodput_bps", GOODPUT_TOLERANCE), ("rtt_mean_ms", RTT_TOLERANCE)):
        ours, theirs = sim.measures[name], kernel.measures[name]
        if ours is None or theirs is None:
            continue
        apart = ours.mean / theirs.mean - 1 if theirs.mean else math.inf * (ours.mean > 0)
        within = abs(apart) <= tolerance
        said = (f"{apart:+.1%}", f"{tolerance:.0%}")
        yield _check(label, BY_NAME[name], ours, theirs, said, within)
    ours, theirs = sim.measures["retransmits"], kernel.measures["retransmits"]
    if ours is not None and theirs is not None:
        yield _retransmits_check(label, ours, theirs)


def _retransmits_check(label: str, ours: Estimate, theirs: Estimate) -> Check:
    less, more = sorted((ours.mean, theirs.mean))
    few = more <= RETRANSMITS_THAT_COUNT
    factor = more / less if less else math.inf
    said = ("few" if few else f"x {factor:.2f}", f"x {RETRANSMITS_FACTOR:g}")
    return _check(label, BY_NAME["retransmits"], ours, theirs, said, few or factor <= RETRANSMITS_FACTOR)


def _share_checks(label: str, sim: Group, kernel: Group) -> Iterator[Check]:
    ours = [shares(run.summary) for run in sim.runs]
    theirs = [shares(run.summary) for run in kernel.runs]
    for flow in ours[0]:
        mine, other = estimate([one[flow] for one in ours]), estimate([one[flow] for one in theirs])
        apart = mine.mean - other.mean
        measure = Measure("share", f"Share of {flow}", "%", 0.01, 1, lambda _summary: None)
        said = (f"{apart * 100:+.1f} points", f"{SHARE_TOLERANCE * 100:.0f} points")
        yield _check(label, measure, mine, other, said, abs(apart) <= SHARE_TOLERANCE)


def _check(
    label: str, measure: Measure, ours: Estimate, theirs: Estimate, said: tuple[str, str], within: bool
) -> Check:
    in_range = theirs.least <= ours.mean <= theirs.most
    difference, tolerance = said
    return Check(
        alternative=label,
        measure=f"{measure.title}, {measure.unit}",
        sim=measure.show(ours.mean),
        kernel=f"{measure.show(theirs.mean)} ({measure.show(theirs.least)} to {measure.show(theirs.most)})",
        difference=difference,
        tolerance=tolerance,
        agrees=within or in_range,
        reason="" if within or not in_range else "within the kernel's own range",
    )
