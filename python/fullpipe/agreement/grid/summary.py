"""Compares a grid with its targets."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fullpipe.agreement.agreement import RETRANSMITS_THAT_COUNT
from fullpipe.agreement.grid.compare import Compared
from fullpipe.agreement.grid.document import Limit
from fullpipe.agreement.grid.rules import (
    GOODPUT_TOLERANCE,
    RETRANSMITS_FACTOR,
    RTT_P95_TOLERANCE,
    RTT_TOLERANCE,
    SHARE_TOLERANCE,
)
from fullpipe.text import counted


@dataclass(frozen=True)
class Target:
    """One target, and the measured value."""

    title: str
    measured: float | None  # None if no cell has a value for it.
    limit: float
    at_least: bool  # Whether the limit is a minimum or a maximum.
    cells: int
    # Whether the grid has cells for this target: then there must be a measured value.
    expected: bool

    @property
    def counts(self) -> bool:
        """Whether it can be met or missed at all."""
        return self.expected or self.measured is not None

    @property
    def met(self) -> bool:
        """Whether it is met. A target for which the grid has no cell is not missed."""
        if self.measured is None:
            return not self.expected
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    @property
    def word(self) -> str:
        """The verdict."""
        return "no cell" if self.measured is None else "met" if self.met else "missed"

    @property
    def message(self) -> str:
        """The limit in words."""
        return f"{'at least' if self.at_least else 'at most'} {percent(self.limit)}"

    @property
    def measured_text(self) -> str:
        """The measured value in words."""
        return "–" if self.measured is None else f"{self.measured:.1%}"


def targets(cells: Sequence[Compared]) -> list[Target]:
    """The targets over a whole grid."""
    few, share = _within("retransmits", cells), _within("share", cells)
    return [
        _median("Goodput", "goodput_bps", cells, 0.005),
        _ninetieth("Goodput", "goodput_bps", cells, GOODPUT_TOLERANCE),
        _median("Mean RTT", "rtt_mean_ms", cells, 0.01),
        _ninetieth("Mean RTT", "rtt_mean_ms", cells, RTT_TOLERANCE),
        _ninetieth("p95 RTT", "rtt_p95_ms", cells, RTT_P95_TOLERANCE),
        Target(
            f"Retransmissions within a factor of {RETRANSMITS_FACTOR:g}, of cells with over "
            f"{RETRANSMITS_THAT_COUNT}",
            *_part(few, 0.9),
            cells=len(few),
            expected=False,  # Whether a cell has many is not known before it has run.
        ),
        Target(
            f"Shares within {100 * SHARE_TOLERANCE:.0f} percentage points, of competing cells",
            *_part(share, 0.8),
            cells=len(share),
            expected=any(cell.cell.competing for cell in cells),
        ),
        Target(
            "Cells that agree: the ranges of both worlds overlap in every measure",
            *_part([cell.agrees for cell in cells if cell.judged], 2 / 3),
            cells=sum(cell.judged for cell in cells),
            expected=True,
        ),
    ]


# The share of a grid that must have been compared for it to pass: the rest could differ.
LEAST_JUDGED = 0.9
# The share for a quick grid, which is for any machine: on a busy one, some runs are untrustworthy.
LEAST_JUDGED_QUICK = 0.5
# The verdicts on cells for which both worlds have results.
JUDGED = ("agrees", "close", "differs")


def enough(judged: int, cells: int, *, quick: bool) -> bool:
    """Whether enough of a grid was compared to judge it."""
    return judged >= (LEAST_JUDGED_QUICK if quick else LEAST_JUDGED) * cells


def verdict(words: Sequence[str], targets: Sequence[Target], failed: int, *, quick: bool) -> str:
    """A grid in a sentence or two. `words` are the verdicts on its cells, `failed` counts its failed runs."""
    judged = sum(one in JUDGED for one in words)
    unknown, differing = len(words) - judged, words.count("differs")
    whole = enough(judged, len(words), quick=quick)
    count = [target for target in targets if target.counts]
    too_many = "" if whole else ", too many for the grid to pass"
    left_out = f"; {unknown} of {counted(len(words), 'cell')} could not be compared{too_many}"
    failures = f"; {counted(failed, 'run')} failed" if failed else ""
    message = (
        f"{words.count('agrees')} of {judged} cells agree; "
        f"{sum(target.met for target in count)} of {len(count)} targets are met"
        f"{left_out if unknown else ''}{failures}."
    )
    if not differing or failed or not whole or not all(target.met for target in targets):
        return message
    # It passes although cells differ.
    of = "the median cell" if quick else "nine tenths of the cells"
    return f"{message} Targets are about {of}, not about each: {counted(differing, 'cell')} may differ."


_NAMES = {
    "goodput": ("Goodput", "goodput_bps"),
    "rtt": ("Mean RTT", "rtt_mean_ms"),
    "rtt_p95": ("p95 RTT", "rtt_p95_ms"),
}


def own_targets(cells: Sequence[Compared], limits: Sequence[Limit]) -> list[Target]:
    """The targets that a grid states itself."""
    judges = {"median": _median, "p90": _ninetieth}
    return [judges[one.part](*_NAMES[one.measure], cells, one.most) for one in limits]


def quick_targets(cells: Sequence[Compared]) -> list[Target]:
    """Targets for a few short cells on any machine: limits that only a mistake exceeds.

    Results of a few seconds with three repetitions scatter by some per cent, too much for the targets of the
    whole grid.
    """
    return [
        _median("Goodput", "goodput_bps", cells, 0.05),
        _median("Mean RTT", "rtt_mean_ms", cells, 0.10),
    ]


def percent(limit: float) -> str:
    """A limit in words: 0.5 %, 3 %, 67 %."""
    return f"{limit:.1%}" if 0 < limit < 0.01 else f"{limit:.0%}"


def percentile(values: Sequence[float], part: float) -> float | None:
    """The quantile of these values, interpolated linearly between two neighbours."""
    if not values:
        return None
    ordered = sorted(values)
    at = part * (len(ordered) - 1)
    low, high = ordered[math.floor(at)], ordered[math.ceil(at)]
    # Infinite values cannot be interpolated.
    return low if low == high else low + (high - low) * (at - math.floor(at))


def _apart(name: str, cells: Sequence[Compared]) -> list[float]:
    found = (cell.measured.get(name) for cell in cells)
    return [abs(one.apart) for one in found if one is not None and one.apart is not None]


def _ninetieth(title: str, name: str, cells: Sequence[Compared], limit: float) -> Target:
    apart = _apart(name, cells)
    return Target(f"{title}: 90th percentile", percentile(apart, 0.9), limit, False, len(apart), True)


def _median(title: str, name: str, cells: Sequence[Compared], limit: float) -> Target:
    apart = _apart(name, cells)
    return Target(f"{title}: median difference", percentile(apart, 0.5), limit, False, len(apart), True)


def _within(name: str, cells: Sequence[Compared]) -> list[bool]:
    found = (cell.measured.get(name) for cell in cells)
    return [one.tolerable for one in found if one is not None and one.apart is not None]


def _part(within: list[bool], least: float) -> tuple[float | None, float, bool]:
    """The measured share, the limit, and that the limit is a minimum."""
    return (sum(within) / len(within) if within else None), least, True
