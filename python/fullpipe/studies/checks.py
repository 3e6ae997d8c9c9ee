"""Checks: one statement of a paper each, compared with our value. A claim's verdict follows from them.

What to call for what:

    within(what, data.values("x", ...))     a number, over seeds of one scenario
    more(what, larger, smaller)             an ordering: ratios seed by seed, their geometric mean
    within(what, data.values("x", ...))     over seeds of unlike scenarios too: see `Values`
    within(..., over=Over.POPULATION)       over scenarios that were drawn at random, e.g. paths
    within(..., over=Over.NOTHING)          a number without chance, e.g. one that is computed from a model
    within(..., middle=median)              a median instead of the mean; `geometric` for ratios
    share(what, [value > 1 for value ...])  the share of runs that do something, e.g. that are in one mode
    covers(what, {protocol: value}, 81.3)   a range over protocols, of which the paper does not name its own
    own(check, ...)                         the same check where the paper gives no result: our expectation

A check is met or missed if all that is known about its value is on one side of the limit: the 95 % confidence
interval, for unlike scenarios the values of nine tenths of the seeds, for two modes every value. Else it is
undecided. So it is with fewer than `FEWEST` seeds or repetitions, unless there is no chance: every seed gives
the same value.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from fullpipe.results import statistics
from fullpipe.results.statistics import Estimate, Modes, estimate, geometric, median
from fullpipe.system.words import counted

__all__ = ["estimate", "geometric", "median"]  # The middles that `within` takes.

Middle: TypeAlias = Callable[[Sequence[float]], Estimate]

# With fewer seeds or repetitions, nothing is known about chance.
FEWEST = 3
# A ratio to zero, and one of zero.
_FAR = 1e6
# Of seeds that give values of unlike scenarios: how many have to agree. Of less than ten, all.
_NEARLY_ALL = 0.9
_FEW = f"fewer than {FEWEST}"


class Over(Enum):
    """What the values of a check differ in, and thus what their spread means."""

    SEEDS = "seeds"  # Runs of one scenario: chance, so the mean has an interval.
    CONDITIONS = "conditions"  # One value a seed, each over unlike scenarios: their mean has none.
    POPULATION = "population"  # Scenarios drawn at random: the mean has an interval.
    RUNS = "runs"  # Yes or no for each run: a share, with Wilson's interval.
    PROTOCOLS = "protocols"  # Ways to compute a number of which the paper does not name its own: a range.
    NOTHING = "nothing"  # A number without chance.


class Outcome(Enum):
    """What a check says."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"


class Values(list[float]):
    """Values of runs, each with the seed (or the repetition) that it is from.

    If a seed has several values, they are of unlike scenarios, and no interval can be given for their mean.
    """

    def __init__(self, values: Iterable[float], seeds: Iterable[int], *, conditions: bool = False) -> None:
        super().__init__(values)
        self.seeds = list(seeds)
        # Whether each value is one over several unlike scenarios.
        self.conditions = conditions

    @property
    def mixed(self) -> bool:
        """Whether some seed has several values."""
        return len(set(self.seeds)) < len(self.seeds)

    def minus(self, other: "Values") -> "Values":
        """The differences from another's values, seed by seed; none if these have other seeds."""
        if self.seeds != other.seeds:
            return Values([], [])
        differences = (one - less for one, less in zip(self, other, strict=True))
        return Values(differences, self.seeds, conditions=self.conditions or other.conditions)

    def over(self, other: "Values", times: float = 1.0) -> "Values":
        """The ratios to another's values, seed by seed; none if seeds differ or a divisor is not positive."""
        if self.seeds != other.seeds or min(other, default=0.0) <= 0:
            return Values([], [])
        ratios = (times * one / under for one, under in zip(self, other, strict=True))
        return Values(ratios, self.seeds, conditions=self.conditions or other.conditions)

    def only(self, keep: Iterable[bool]) -> "Values":
        """Those of its values for which this is true."""
        kept = [(one, seed) for one, seed, held in zip(self, self.seeds, keep, strict=True) if held]
        return Values((one for one, _ in kept), (seed for _, seed in kept), conditions=self.conditions)

    def by_seed(self, middle: Middle = estimate) -> "Values":
        """One value for each seed: the middle of its values."""
        found: dict[int, list[float]] = {}
        for seed, value in zip(self.seeds, self, strict=True):
            found.setdefault(seed, []).append(value)
        unlike = self.mixed or self.conditions
        return Values([middle(each).mean for each in found.values()], found, conditions=unlike)


@dataclass(frozen=True)
class Check:
    """One statement of the paper, compared with our value.

    A check of shape is about direction, ordering or crossover; the others are about numbers. `own`: the paper
    gives no result, the criterion is our expectation.
    """

    what: str
    paper: str
    criterion: str
    ours: Estimate | None
    unit: str
    outcome: Outcome
    shape: bool
    own: bool = False
    over: Over = Over.SEEDS
    modes: Modes | None = None  # Of the values, if one middle does not describe them.
    same: bool = False  # Whether there are several values, all equal.
    why: str = ""  # If it is undecided.

    @property
    def met(self) -> bool:
        """Whether it surely is."""
        return self.outcome is Outcome.MET

    @property
    def chance(self) -> bool:
        """Whether its interval means something: its values differ by chance, around one middle."""
        return not self.same and self.modes is None and self.over not in (Over.CONDITIONS, Over.NOTHING)

    @property
    def few(self) -> bool:
        """Whether it is undecided because there are too few seeds or repetitions."""
        return self.why.startswith(_FEW)

    @property
    def said(self) -> str:
        """Our value with what is known about its chance, as text."""
        return self.told("seed")

    def told(self, noun: str) -> str:
        """The same in a world whose runs differ by this: a seed, or a repetition."""
        if self.ours is None:
            return "no value"
        tail = f" {self.unit}" if self.unit else ""
        if self.over is Over.PROTOCOLS:
            shown = f"{number(self.ours.least)} to {number(self.ours.most)}{tail}"
            return f"{shown} over {counted(self.ours.count, 'protocol')}"
        if self.modes is not None:
            return self._two_modes(tail)
        shown = self._middle()
        if self.ours.kind == "median" and self.over is not Over.CONDITIONS:
            tail = f"{tail} (median)"
        if self.same:
            return f"{shown}{tail}, the same for every {noun}"
        if self.ours.count < 2 or self.over is Over.NOTHING:
            return f"{shown}{tail}"
        least, most = number(self.ours.least), number(self.ours.most)
        if self.over is Over.CONDITIONS:
            return f"{shown}{tail}, {least} to {most} over {counted(self.ours.count, noun)}"
        if self.ours.low is None or self.ours.high is None or not self.chance:
            return f"{shown}{tail}"
        if self.ours.kind == "mean":
            return f"{shown} ± {number(self.ours.high - self.ours.mean, 2)}{tail}"
        return f"{shown}{tail} ({number(self.ours.low)} to {number(self.ours.high)})"

    @property
    def expected(self) -> str:
        """The criterion, without the unit that our value is shown with."""
        return self.criterion.removesuffix(f" {self.unit}") if self.unit else self.criterion

    def _middle(self) -> str:
        assert self.ours is not None
        shown = self._number(self.ours.mean)
        for digits in range(4, 16):
            # Rounded, a value that barely misses a limit would seem to meet it.
            if self.met or shown not in self.criterion.split():
                break
            shown = number(self.ours.mean, digits)
        return shown

    def _number(self, value: float) -> str:
        """A value; a ratio to zero is infinite."""
        assert self.ours is not None
        return "∞" if self.ours.kind == "geometric mean" and value > _FAR / 2 else number(value)

    def _two_modes(self, tail: str) -> str:
        assert self.modes is not None
        lower, upper = self.modes.lower, self.modes.upper
        low, high = (self._number(math.fsum(part) / len(part)) for part in (lower, upper))
        runs = len(lower) + len(upper)
        return f"two modes: {low}{tail} in {len(lower)} of {runs} runs, {high}{tail} in {len(upper)}"


@dataclass(frozen=True)
class Limits:
    """What a check asks of a value."""

    least: float | None = None
    most: float | None = None
    above: bool = False  # Whether the value has to be above `least`, instead of at least that.

    def said(self, unit: str) -> str:
        """The limits as text."""
        tail = f" {unit}" if unit else ""
        if self.least is not None and self.most is not None:
            return f"{number(self.least)} to {number(self.most)}{tail}"
        if self.least is not None:
            return f"at least {number(self.least)}{tail}"
        assert self.most is not None, "a check has a limit"
        return f"at most {number(self.most)}{tail}"

    def hold(self, value: float) -> bool:
        """Whether a value is within."""
        low = self.least is None or (self._over(value) if self.above else value >= self.least)
        return low and (self.most is None or value <= self.most)

    def _over(self, value: float) -> bool:
        """Whether it is above `least`; logarithms and back, an equal one may seem to be."""
        assert self.least is not None
        return value > self.least and not math.isclose(value, self.least, rel_tol=1e-9)

    def judge(self, values: Sequence[float], low: float, high: float) -> Outcome:
        """Met if all these values are within, missed if none is and no value between `low` and `high`."""
        if all(map(self.hold, values)):
            return Outcome.MET
        outside = (self.least is not None and high < self.least) or (
            self.most is not None and low > self.most
        )
        if self.above and self.least is not None and not self._over(high):
            outside = True
        return Outcome.MISSED if outside else Outcome.UNDECIDED


def within(
    what: str,
    values: Sequence[float] | float,
    *,
    paper: str,
    least: float | None = None,
    most: float | None = None,
    unit: str = "",
    shape: bool = False,
    over: Over | None = None,
    middle: Middle = estimate,
) -> Check:
    """A check that the mean over seeds is within limits; or another middle, or over something else.

    Without a value it is missed. Values of unlike scenarios give the middle of each seed.
    """
    if isinstance(values, Values):
        if middle is geometric and min(values, default=1.0) <= 0:
            values = Values([], [])  # They have no logarithms.
        if values.mixed:
            values = values.by_seed(middle)
            middle = estimate
        over = over or (Over.CONDITIONS if values.conditions else Over.SEEDS)
    given = [values] if isinstance(values, int | float) else list(values)
    return _check(what, given, Limits(least, most), paper, unit, shape, over or Over.SEEDS, middle)


def more(
    what: str,
    larger: Sequence[float],
    smaller: Sequence[float],
    *,
    paper: str,
    least: float = 1.0,
    most: float | None = None,
    shape: bool = True,
    over: Over | None = None,
) -> Check:
    """A check of an ordering: one value is over `least` times another, seed by seed where seeds match.

    Ratios are averaged by their logarithms: a half and two are one on average. An equal value is not over it.
    If either side is missing, there is no value.
    """
    limits = Limits(least, most, above=True)
    chosen = over or _over(larger, smaller)
    if (pairs := _pairs(larger, smaller)) is None:
        return _unpaired(what, larger, smaller, limits, paper, shape, chosen)
    ratios = [_ratio(above, below) for above, below in pairs]
    if isinstance(larger, Values) and larger.mixed and all(map(math.isfinite, ratios)):
        ratios = Values(ratios, larger.seeds).by_seed(geometric)
    return _check(what, ratios, limits, paper, "times", shape, chosen, geometric)


def share(
    what: str,
    hits: Sequence[bool],
    *,
    paper: str,
    least: float | None = None,
    most: float | None = None,
    unit: str = "of runs",
    shape: bool = False,
) -> Check:
    """A check that a share of the runs does something, e.g. is in one mode. Without runs it is missed."""
    limits = Limits(least, most)
    ours = statistics.share(hits) if hits else None
    outcome, why = _by_interval(ours, limits)
    return Check(what, paper, limits.said(unit), ours, unit, outcome, shape, over=Over.RUNS, why=why)


def covers(
    what: str, values: Mapping[str, float], value: float, *, paper: str, unit: str = "", shape: bool = False
) -> Check:
    """A check that the paper's value lies in a range over protocols, since it does not name its own.

    Such a range says that the paper's number can come out, not that it must.
    """
    given = list(values.values())
    finite = bool(given) and all(map(math.isfinite, given))
    ours = replace(estimate(given), low=None, high=None) if finite else None
    there = ours is not None and ours.least <= value <= ours.most
    tail = f" {unit}" if unit else ""
    return Check(
        what,
        paper,
        f"a range that includes {number(value)}{tail}",
        ours,
        unit,
        Outcome.MET if there else Outcome.MISSED,
        shape,
        over=Over.PROTOCOLS,
    )


def own(*checks: Check) -> list[Check]:
    """The checks as our own expectations: the paper asks the question and gives no result."""
    return [replace(check, own=True) for check in checks]


def number(value: float, digits: int = 3) -> str:
    """A number with its significant digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    shown = f"{value:,.{min(digits + 3, max(0, decimals))}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _check(
    what: str,
    given: Sequence[float],
    limits: Limits,
    paper: str,
    unit: str,
    shape: bool,
    over: Over,
    middle: Middle,
) -> Check:
    said = limits.said(unit)
    if not given or not all(map(math.isfinite, given)) or (middle is geometric and min(given) <= 0):
        return Check(what, paper, said, None, unit, Outcome.MISSED, shape, over=over)
    ours = middle(given)
    if over is Over.CONDITIONS:
        # Each value is a mean over scenarios that somebody chose: no interval.
        ours = replace(ours, low=None, high=None)
    made = Check(what, paper, said, ours, unit, Outcome.UNDECIDED, shape, over=over)
    if over is Over.NOTHING or (over is not Over.POPULATION and statistics.same(given)):
        outcome = Outcome.MET if limits.hold(ours.mean) else Outcome.MISSED
        return replace(made, outcome=outcome, same=over is not Over.NOTHING)
    modes = statistics.modes([math.log(value) for value in given] if middle is geometric else given)
    if modes is not None and over is not Over.POPULATION:
        if middle is geometric:
            modes = Modes(*(tuple(map(math.exp, part)) for part in (modes.lower, modes.upper)))
        outcome = _by_values(given, limits)
        why = "two modes, on both sides of the limit" if outcome is Outcome.UNDECIDED else ""
        return replace(made, outcome=outcome, modes=modes, why=why)
    if over is Over.CONDITIONS and ours.count >= FEWEST:
        outcome = _by_values(given, limits, _NEARLY_ALL)
        why = "seeds on both sides of the limit" if outcome is Outcome.UNDECIDED else ""
        return replace(made, outcome=outcome, why=why)
    outcome, why = _by_interval(ours, limits)
    return replace(made, outcome=outcome, why=why)


def _by_values(given: Sequence[float], limits: Limits, part: float = 1.0) -> Outcome:
    """Met if that part of the values is within, missed if that part is not."""
    held = sum(map(limits.hold, given))
    if held >= part * len(given):
        return Outcome.MET
    return Outcome.MISSED if len(given) - held >= part * len(given) else Outcome.UNDECIDED


def _by_interval(ours: Estimate | None, limits: Limits) -> tuple[Outcome, str]:
    """What an interval decides, and why not, if it does not."""
    if ours is None:
        return Outcome.MISSED, ""
    if ours.count < FEWEST:
        return Outcome.UNDECIDED, f"{_FEW}: {ours.count}"
    if ours.low is None or ours.high is None:
        return Outcome.UNDECIDED, f"no interval from {ours.count} values"
    outcome = limits.judge([ours.low, ours.high], ours.low, ours.high)
    return outcome, "the interval spans the limit" if outcome is Outcome.UNDECIDED else ""


def _over(*sides: Sequence[float]) -> Over:
    unlike = any(isinstance(side, Values) and (side.mixed or side.conditions) for side in sides)
    return Over.CONDITIONS if unlike else Over.SEEDS


def _pairs(larger: Sequence[float], smaller: Sequence[float]) -> list[tuple[float, float]] | None:
    """The pairs of two sides, by their seeds; None if they cannot be paired."""
    if isinstance(larger, Values) and isinstance(smaller, Values) and larger.seeds != smaller.seeds:
        return None
    return list(zip(larger, smaller, strict=True)) if len(larger) == len(smaller) else None


def _unpaired(
    what: str,
    larger: Sequence[float],
    smaller: Sequence[float],
    limits: Limits,
    paper: str,
    shape: bool,
    over: Over,
) -> Check:
    """The ordering of two samples that have no seeds in common, e.g. because some runs were left out."""
    above, below = (
        one.by_seed() if isinstance(one, Values) and one.mixed else one for one in (larger, smaller)
    )
    if not above or not below or not all(math.isfinite(value) and value > 0 for value in (*above, *below)):
        ratio = _ratio(_mean(above), _mean(below))
        return _check(what, [ratio], limits, paper, "times", shape, over, geometric)
    ours = statistics.ratio(above, below)
    outcome, why = _by_interval(ours, limits)
    return Check(what, paper, limits.said("times"), ours, "times", outcome, shape, over=Over.SEEDS, why=why)


def _ratio(over: float, under: float) -> float:
    if math.isnan(over) or math.isnan(under) or (over <= 0 and under <= 0):
        return math.nan  # Zero over zero is not a ratio.
    # The ratio of anything else to zero is infinite, and has a logarithm here.
    return min(max(over / under, 1 / _FAR), _FAR) if under > 0 else _FAR


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
