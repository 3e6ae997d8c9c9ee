"""How far apart the worlds are on one cell.

A measure agrees when the first world's range, from least to most over its seeds, overlaps the reference's,
from least to most over its repetitions. Both are ranges of single runs. If the worlds were the same, 10
seeds and 3 repetitions would not overlap in 2 of 286 cases (all 3 below or above all 10). The confidence
interval of the mean is unsuitable: it shrinks with every seed, and the mean of a symmetric distribution lies
outside the range of 3 draws in a quarter of all cases.

In addition, each difference has a tolerance: the limit for nine tenths of a grid (shares: four fifths).
`differences` tells why one scenario is judged by another rule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.agreement import differences
from fullpipe.agreement.agreement import RETRANSMITS_THAT_COUNT
from fullpipe.agreement.differences import Difference
from fullpipe.agreement.grid.document import Cell
from fullpipe.agreement.grid.rules import (
    GOODPUT_TOLERANCE,
    RETRANSMITS_FACTOR,
    RTT_P95_TOLERANCE,
    RTT_TOLERANCE,
    SHARE_TOLERANCE,
)
from fullpipe.measures.measures import BY_NAME, SHARE, Quantity, known, shares
from fullpipe.measures.statistics import Estimate
from fullpipe.runs.store import Stored


@dataclass(frozen=True)
class Measured:
    """One measure of one cell in both worlds."""

    name: str
    quantity: Quantity
    ours: Estimate
    theirs: Estimate  # The reference's.
    difference: Difference
    overlaps: bool

    @property
    def apart(self) -> float | None:
        """The signed difference; None if it is meaningless."""
        return self.difference.apart

    @property
    def of_tolerance(self) -> float | None:
        """The difference in tolerances: beyond -1 and 1 it is not tolerable."""
        apart = self.difference.apart
        return None if apart is None else apart / self.difference.tolerance

    @property
    def tolerable(self) -> bool:
        """Whether it is within its tolerance."""
        return self.difference.tolerable

    @property
    def message(self) -> str:
        """The difference in words."""
        return self.difference.message


@dataclass(frozen=True)
class Compared:
    """A cell with its results."""

    cell: Cell
    ours: list[Stored]  # Trustworthy ones, like the reference's.
    theirs: list[Stored]
    doubted: list[Stored]  # The others, of both worlds.
    measured: dict[str, Measured]  # By name, in the order of `NAMES`.
    one_sided: tuple[str, ...] = ()  # Measures that only one of the worlds has.

    @property
    def judged(self) -> bool:
        """Whether both worlds have results."""
        return bool(self.ours and self.theirs)

    @property
    def agrees(self) -> bool:
        """Whether in every measure the ranges of both worlds overlap."""
        return _agrees(self.one_sided, self.measured)

    @property
    def verdict(self) -> str:
        """A word or two."""
        return word((len(self.ours), len(self.theirs)), len(self.doubted), self.one_sided, self.measured)


def word(
    runs: Sequence[int], untrusted: int, one_sided: Sequence[str], measured: Mapping[str, Measured]
) -> str:
    """The verdict on a cell, in a word or two. `runs` are those of each world that can be trusted."""
    if not all(runs):
        return "no run" if not untrusted else "untrusted"
    if _agrees(one_sided, measured):
        return "agrees"
    if one_sided or "goodput_bps" not in measured:
        return "differs"
    return "close" if all(one.tolerable for one in measured.values()) else "differs"


def _agrees(one_sided: Sequence[str], measured: Mapping[str, Measured]) -> bool:
    # Without goodput there is nothing to compare.
    overlap = all(one.overlaps for one in measured.values())
    return not one_sided and "goodput_bps" in measured and overlap


_JUDGED = (
    ("goodput_bps", differences.relative(GOODPUT_TOLERANCE)),
    ("rtt_mean_ms", differences.relative(RTT_TOLERANCE)),
    ("rtt_p95_ms", differences.relative(RTT_P95_TOLERANCE)),
    ("retransmits", differences.factor(RETRANSMITS_FACTOR, few=RETRANSMITS_THAT_COUNT, directed=True)),
)
_POINTS = differences.points(SHARE_TOLERANCE)
# How each measure is compared, and what it is.
COMPARES = {**dict(_JUDGED), "share": _POINTS}
QUANTITIES: dict[str, Quantity] = {**{name: BY_NAME[name] for name, _ in _JUDGED}, "share": SHARE}
NAMES = tuple(COMPARES)


def compare(cell: Cell, ours: Sequence[Stored], theirs: Sequence[Stored]) -> Compared:
    """Compares the worlds' results on a cell. Untrustworthy runs are left out."""
    trusted, reference = ([one for one in of if not one.untrustworthy] for of in (ours, theirs))
    doubted = [one for one in [*ours, *theirs] if one.untrustworthy]
    measured: dict[str, Measured] = {}
    one_sided: list[str] = []
    if trusted and reference:
        for name, compared in _JUDGED:
            measure = BY_NAME[name]
            mine, other = (known([measure.take(one.summary) for one in of]) for of in (trusted, reference))
            if mine is not None and other is not None:
                found = compared(mine.mean, other.mean)
                measured[name] = Measured(name, measure, mine, other, found, overlap(mine, other))
            elif (mine is None) != (other is None):
                one_sided.append(name)
        if cell.competing:
            share = _share(cell, trusted, reference)
            if isinstance(share, Measured):
                measured["share"] = share
            elif share:
                one_sided.append("share")
    return Compared(cell, trusted, reference, doubted, measured, tuple(one_sided))


def overlap(ours: Estimate, theirs: Estimate) -> bool:
    """Whether the runs of both worlds have a point of their ranges in common."""
    return ours.least <= theirs.most and theirs.least <= ours.most


def _share(cell: Cell, ours: Sequence[Stored], theirs: Sequence[Stored]) -> Measured | bool:
    """The flow whose shares are furthest apart; all must overlap.

    If a share is unknown: whether one of the worlds knows it.
    """
    flows = cell.alternative.spec["flows"]
    mine, others = ([ranked_shares(flows, one.summary) for one in of] for of in (ours, theirs))
    both = [
        (known([run[number] for run in mine]), known([run[number] for run in others]))
        for number in range(len(flows))
    ]
    pairs = [(one, other) for one, other in both if one is not None and other is not None]
    if len(pairs) < len(flows):
        return any((one is None) != (other is None) for one, other in both)
    furthest, other = max(pairs, key=lambda pair: abs(pair[0].mean - pair[1].mean))
    found = _POINTS(furthest.mean, other.mean)
    return Measured("share", SHARE, furthest, other, found, all(overlap(*pair) for pair in pairs))


def ranked_shares(flows: Sequence[dict[str, Any]], summary: dict[str, Any]) -> list[float | None]:
    """Each flow's share; among flows that are alike, the largest first.

    Which of two equal flows gets more is chance, in either world. How much more it gets is not.
    """
    share = shares(summary)
    own = [share[flow["label"]] for flow in flows]
    kinds: dict[str, list[int]] = {}
    for number, flow in enumerate(flows):
        kind = repr(sorted((key, value) for key, value in flow.items() if key != "label"))
        kinds.setdefault(kind, []).append(number)
    ranked = list(own)
    for numbers in kinds.values():
        best = sorted((own[number] for number in numbers), key=lambda one: -1.0 if one is None else one)
        for number, value in zip(numbers, reversed(best), strict=True):
            ranked[number] = value
    return ranked


def kernels(cells: Sequence[Compared]) -> list[str]:
    """What ran the runs: releases of Linux, QUIC stacks with their versions."""
    runs = [run for cell in cells for run in [*cell.ours, *cell.theirs, *cell.doubted]]
    releases = (run.summary["provenance"].get("kernel") for run in runs)
    return sorted({release for release in releases if release})
