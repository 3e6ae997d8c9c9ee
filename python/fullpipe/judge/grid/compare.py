"""How far apart the worlds are on one cell.

A measure agrees when the simulator's range, from least to most over its seeds, overlaps the kernel's, from
least to most over its repetitions. Both are ranges of single runs. If the worlds were the same, 10 seeds and
3 repetitions would not overlap in 2 of 286 cases (all 3 below or above all 10). The confidence interval of
the mean is unsuitable: it shrinks with every seed, and the mean of a symmetric distribution lies outside the
range of 3 draws in a quarter of all cases.

In addition, each difference has a tolerance: the limit for nine tenths of a grid, or for four fifths of it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.judge.agreement import RETRANSMITS_FACTOR, RETRANSMITS_THAT_COUNT
from fullpipe.judge.grid.document import Cell
from fullpipe.results.measures import BY_NAME, SHARE, Quantity, known, shares
from fullpipe.results.statistics import Estimate
from fullpipe.sweeps.store import Stored

GOODPUT_TOLERANCE = 0.08
RTT_TOLERANCE = 0.10
SHARE_TOLERANCE = 0.05


@dataclass(frozen=True)
class Difference:
    """One measure of one cell in both worlds."""

    name: str
    quantity: Quantity
    sim: Estimate
    kernel: Estimate
    # Signed: relative, the logarithm of a factor, or a difference of shares; None if it is meaningless.
    apart: float | None
    tolerance: float
    said: str
    overlaps: bool

    @property
    def of_tolerance(self) -> float | None:
        """The difference in tolerances: beyond -1 and 1 it is not tolerable."""
        return None if self.apart is None else self.apart / self.tolerance

    @property
    def tolerable(self) -> bool:
        """Whether it is within its tolerance."""
        return self.apart is None or abs(self.apart) <= self.tolerance


@dataclass(frozen=True)
class Compared:
    """A cell with its results."""

    cell: Cell
    sim: list[Stored]
    kernel: list[Stored]  # Trustworthy ones.
    doubted: list[Stored]
    differences: dict[str, Difference]  # By name, in the order of `NAMES`.
    one_sided: tuple[str, ...] = ()  # Measures that only one of the worlds has.

    @property
    def judged(self) -> bool:
        """Whether both worlds have results."""
        return bool(self.sim and self.kernel)

    @property
    def agrees(self) -> bool:
        """Whether in every measure the simulator's interval overlaps the kernel's own range."""
        # Without goodput there is nothing to compare.
        return (
            not self.one_sided
            and "goodput_bps" in self.differences
            and all(one.overlaps for one in self.differences.values())
        )

    @property
    def verdict(self) -> str:
        """A word or two."""
        if not self.judged:
            return "no run" if not self.doubted else "untrusted"
        if self.agrees:
            return "agrees"
        if self.one_sided or "goodput_bps" not in self.differences:
            return "differs"
        return "close" if all(one.tolerable for one in self.differences.values()) else "differs"


def _relative(ours: float, theirs: float) -> tuple[float, str]:
    apart = ours / theirs - 1 if theirs else math.inf if ours else 0.0
    return apart, f"{apart:+.1%}".replace("-0.0%", "+0.0%")


def _factor(ours: float, theirs: float) -> tuple[float | None, str]:
    if max(ours, theirs) <= RETRANSMITS_THAT_COUNT:
        return None, "few"
    if not ours or not theirs:
        return math.copysign(math.inf, ours - theirs), "x inf"
    return math.log(ours / theirs), f"x {ours / theirs:.2f}"


_JUDGED: tuple[tuple[str, Callable[[float, float], tuple[float | None, str]], float], ...] = (
    ("goodput_bps", _relative, GOODPUT_TOLERANCE),
    ("rtt_mean_ms", _relative, RTT_TOLERANCE),
    ("rtt_p95_ms", _relative, RTT_TOLERANCE),
    ("retransmits", _factor, math.log(RETRANSMITS_FACTOR)),
)
VERDICTS = (
    "agrees: in every measure the ranges of the runs of both worlds overlap; close: they do not, but each "
    "difference is within its tolerance; differs: some difference is not; untrusted: no kernel run can be "
    "trusted."
)
NAMES = (*(name for name, _, _ in _JUDGED), "share")


def compare(cell: Cell, sim: Sequence[Stored], kernel: Sequence[Stored]) -> Compared:
    """Compares the worlds' results on a cell. Untrustworthy runs are left out."""
    trusted = [one for one in kernel if not one.untrustworthy]
    doubted = [one for one in kernel if one.untrustworthy]
    differences: dict[str, Difference] = {}
    one_sided: list[str] = []
    if sim and trusted:
        for name, apart_of, tolerance in _JUDGED:
            ours, theirs = (known([BY_NAME[name].take(one.summary) for one in of]) for of in (sim, trusted))
            if ours is not None and theirs is not None:
                apart, said = apart_of(ours.mean, theirs.mean)
                differences[name] = Difference(
                    name, BY_NAME[name], ours, theirs, apart, tolerance, said, overlap(ours, theirs)
                )
            elif (ours is None) != (theirs is None):
                one_sided.append(name)
        if cell.competing:
            found = _share(cell, sim, trusted)
            if isinstance(found, Difference):
                differences["share"] = found
            elif found:
                one_sided.append("share")
    return Compared(cell, list(sim), trusted, doubted, differences, tuple(one_sided))


def overlap(sim: Estimate, kernel: Estimate) -> bool:
    """Whether the runs of both worlds have a point of their ranges in common."""
    return sim.least <= kernel.most and kernel.least <= sim.most


def _share(cell: Cell, sim: Sequence[Stored], kernel: Sequence[Stored]) -> Difference | bool:
    """The flow whose shares are furthest apart; all must overlap.

    If a share is unknown: whether one of the worlds knows it.
    """
    flows = cell.alternative.spec["flows"]
    ours, theirs = ([ranked_shares(flows, one.summary) for one in of] for of in (sim, kernel))
    both = [
        (known([run[number] for run in ours]), known([run[number] for run in theirs]))
        for number in range(len(flows))
    ]
    pairs = [(mine, other) for mine, other in both if mine is not None and other is not None]
    if len(pairs) < len(flows):
        return any((mine is None) != (other is None) for mine, other in both)
    furthest, other = max(pairs, key=lambda pair: abs(pair[0].mean - pair[1].mean))
    apart = furthest.mean - other.mean
    overlaps = all(overlap(*pair) for pair in pairs)
    said = f"{100 * apart:+.1f} points"
    return Difference("share", SHARE, furthest, other, apart, SHARE_TOLERANCE, said, overlaps)


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
    """The releases of Linux that the runs used."""
    runs = [run for cell in cells for run in [*cell.kernel, *cell.doubted]]
    return sorted({run.summary["provenance"]["kernel"] for run in runs})
