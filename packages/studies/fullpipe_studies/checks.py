"""Checks: one statement of a paper each, compared with our value. A claim's verdict follows from them.

What to call for what; `Statement` has the same as methods, for the checks of one statement of the paper:

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
undecided. So it is with fewer than `FEWEST` seeds or repetitions, equal ones too, because counts
are equal by chance. And so it is if a run has no value: a mean over the others is about those that did well.

Such a function only gathers what a check asks and the values that it asks about (`Asked`). The outcome
follows from these by a rule (`Asked.judge`), so that what was once measured can be judged by another one.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias, TypedDict, Unpack

from fullpipe.measures import statistics
from fullpipe.measures.statistics import Estimate, Modes, estimate, geometric, median
from fullpipe.text import counted

__all__ = ["estimate", "geometric", "median"]  # The middles that `within` takes.

Middle: TypeAlias = Callable[[Sequence[float]], Estimate]

# With fewer seeds or repetitions, nothing is known about chance.
FEWEST = 3
# Stands for a ratio to zero, and its inverse for one of zero: no two measures are so far apart.
_FAR = 1e12
_LARGEST, _SMALLEST = _FAR / 1e3, 1e3 / _FAR
# Of seeds that give values of unlike scenarios: how many have to agree. Of less than ten, all.
_NEARLY_ALL = 0.9
_FEW = "fewer than "
_NO_VALUE = "no value"
_ZEROS = "both sides are zero"
# More than any claim has.
_MOST_RUNS = 10_000


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

    def __init__(
        self,
        values: Iterable[float],
        seeds: Iterable[int],
        *,
        conditions: bool = False,
        scenarios: Iterable[Hashable] = (),
        without: int = 0,
    ) -> None:
        super().__init__(values)
        self.seeds = list(seeds)
        # Whether each value is one over several unlike scenarios.
        self.conditions = conditions
        # What tells the values of one seed apart, where this is known.
        self.scenarios = list(scenarios) or [None] * len(self)
        # How many runs have no value.
        self.without = without

    @property
    def mixed(self) -> bool:
        """Whether some seed has several values."""
        return len(set(self.seeds)) < len(self.seeds)

    def minus(self, other: "Values") -> "Values":
        """The differences from another's values, seed by seed; none if these have other seeds."""
        if self.seeds != other.seeds:
            return Values([], [])
        return self._with((one - less for one, less in zip(self, other, strict=True)), other)

    def over(self, other: "Values", times: float = 1.0) -> "Values":
        """The ratios to another's values, seed by seed; none if seeds differ or a divisor is not positive."""
        if self.seeds != other.seeds or min(other, default=0.0) <= 0:
            return Values([], [])
        return self._with((times * one / under for one, under in zip(self, other, strict=True)), other)

    def only(self, keep: Iterable[bool]) -> "Values":
        """Those of its values for which this is true."""
        kept = [place for place, held in enumerate(keep) if held]
        return Values(
            (self[place] for place in kept),
            (self.seeds[place] for place in kept),
            conditions=self.conditions,
            scenarios=[self.scenarios[place] for place in kept],
            without=self.without,
        )

    def by_seed(self, middle: Middle = estimate) -> "Values":
        """One value for each seed: the middle of its values."""
        found: dict[int, list[float]] = {}
        for seed, value in zip(self.seeds, self, strict=True):
            found.setdefault(seed, []).append(value)
        different = self.mixed or self.conditions
        middles = [middle(each).mean for each in found.values()]
        return Values(middles, found, conditions=different, without=self.without)

    @property
    def places(self) -> dict[tuple[int, Hashable], int] | None:
        """Where the value of a seed and a scenario is; None if several have the same."""
        found = {key: place for place, key in enumerate(zip(self.seeds, self.scenarios, strict=True))}
        return found if len(found) == len(self) else None

    def _with(self, values: Iterable[float], other: "Values") -> "Values":
        """Values that are computed from its own and another's."""
        return Values(
            values,
            self.seeds,
            conditions=self.conditions or other.conditions,
            scenarios=self.scenarios,
            without=self.without + other.without,
        )


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
    far: bool = False  # Whether some of its values are infinite, or ratios to or of zero: no mean tells them.
    why: str = ""  # If it is undecided.
    needs: int = FEWEST  # How many seeds, repetitions or runs it takes to meet it.
    asked: "Asked | None" = None  # What all of this follows from.

    @property
    def met(self) -> bool:
        """Whether it surely is."""
        return self.outcome is Outcome.MET

    @property
    def chance(self) -> bool:
        """Whether its interval means something: its values differ by chance, around one middle."""
        one_middle = not self.same and not self.far and self.modes is None
        return one_middle and self.over not in (Over.CONDITIONS, Over.NOTHING)

    @property
    def few(self) -> bool:
        """Whether it is undecided because there are too few seeds or repetitions."""
        return self.why.startswith(f"{_FEW}{FEWEST}:")

    @property
    def facts(self) -> str:
        """Our value with what is known about its chance, as text."""
        return self.reported("seed")

    def reported(self, noun: str) -> str:
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
        if self.far and self.ours.count > 1:
            least, most = (self._number(value) for value in (self.ours.least, self.ours.most))
            return f"{least} to {most}{tail}"
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

    def exact(self, value: float) -> float:
        """A value as it is: a ratio to zero is infinite, and one of zero is zero."""
        ratios = self.ours is not None and self.ours.kind == "geometric mean"
        if not self.far or not ratios or _SMALLEST < value < _LARGEST:
            return value
        return math.inf if value > 1 else 0.0

    def _number(self, value: float) -> str:
        shown = self.exact(value)
        return "∞" if shown == math.inf else number(shown)

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

    def facts(self, unit: str) -> str:
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

    Values of unlike scenarios give the middle of each seed.
    """
    without, seeds = 0, []
    if isinstance(values, Values):
        without = values.without
        if values.mixed and not (middle is geometric and min(values) <= 0):
            values = values.by_seed(middle)
            middle = estimate
        over, seeds = over or _over(values), values.seeds
    given = [values] if isinstance(values, int | float) else list(values)
    asked = Asked(what, paper, Limits(least, most), unit, shape, over or Over.SEEDS, _name(middle))
    return asked.of(given, seeds, without=without).judge()


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
    asked = Asked(
        what, paper, Limits(least, most, above=True), "times", shape, over or _over(larger, smaller), "ratio"
    )
    without = sum(one.without for one in (larger, smaller) if isinstance(one, Values))
    if not larger or not smaller:
        return asked.judge()
    pairs = None if without else _pairs(larger, smaller)
    if pairs is None:
        other = not without and asked.over is Over.CONDITIONS
        lacks = "the runs of the two sides are of other scenarios" if other else ""
        return asked.of(larger, under=smaller, without=without, lacks=lacks).judge()
    if least >= 1 and all(above == 0 and below == 0 for above, below in pairs):
        return replace(asked, lacks=_ZEROS).judge()
    ratios = Values((_ratio(above, below) for above, below in pairs), pairs.seeds)
    if isinstance(larger, Values) and larger.mixed and all(map(math.isfinite, ratios)):
        ratios = ratios.by_seed(_ratios)
    return asked.of(ratios, ratios.seeds).judge()


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
    """A check that a share of the runs does something, e.g. is in one mode.

    With too few runs it cannot be met, even by all: nine tenths take 35, four fifths 16, a half 4. No
    form of a claim may have fewer runs than its shares take.
    """
    asked = Asked(what, paper, Limits(least, most), unit, shape, Over.RUNS)
    return asked.of(list(map(float, hits))).judge()


def fewest_for(limits: Limits, fewest: int = FEWEST) -> int:
    """How many runs it takes at least that a share can be met: if all, or none, of them do it."""
    count = fewest
    while not any(_met_by(limits, hits, count) for hits in range(count + 1)):
        count += 1
        assert count < _MOST_RUNS, "a share that no number of runs can show"
    return count


def _met_by(limits: Limits, hits: int, count: int) -> bool:
    low, high = statistics.share_interval(hits, count)
    return limits.judge([low, high], low, high) is Outcome.MET


def covers(
    what: str, values: Mapping[str, float], value: float, *, paper: str, unit: str = "", shape: bool = False
) -> Check:
    """A check that the paper's value lies in a range over protocols, since it does not name its own.

    Such a range says that the paper's number can come out, not that it must.
    """
    asked = Asked(what, paper, Limits(value, value), unit, shape, Over.PROTOCOLS)
    return asked.of(list(values.values())).judge()


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


@dataclass(frozen=True)
class Rule:
    """By what the outcome of a check follows from its values."""

    fewest: int = FEWEST
    nearly_all: float = _NEARLY_ALL


RULE = Rule()


@dataclass(frozen=True)
class Asked:
    """What a check asks, and the values that it asks about: all that its outcome follows from.

    Over protocols, the limits are the paper's value, which the range of the values is to include.
    """

    what: str
    paper: str
    limits: Limits
    unit: str
    shape: bool
    over: Over
    middle: str = "mean"  # A key of `MIDDLES`.
    values: Sequence[float] = ()
    seeds: Sequence[int] = ()  # Of the values, where they are known.
    # The other side of an ordering, if runs cannot be paired; else the values are ratios.
    under: Sequence[float] = ()
    without: int = 0  # How many runs have no value.
    lacks: str = ""  # Why the values cannot be compared.

    def of(
        self,
        given: Sequence[float],
        seeds: Sequence[int] = (),
        *,
        under: Sequence[float] = (),
        without: int = 0,
        lacks: str = "",
    ) -> "Asked":
        """The same of these values; further runs may have none."""
        there = [not math.isnan(value) for value in given]
        kept = [value for value, held in zip(given, there, strict=True) if held]
        if len(seeds) == len(given):
            seeds = [seed for seed, held in zip(seeds, there, strict=True) if held]
        below = [value for value in under if not math.isnan(value)]
        missing = len(given) + len(under) - len(kept) - len(below)
        return replace(self, values=kept, seeds=seeds, under=below, without=without + missing, lacks=lacks)

    def judge(self, rule: Rule = RULE) -> Check:
        """The check with its outcome by a rule."""
        needs = fewest_for(self.limits, rule.fewest) if self.over is Over.RUNS else rule.fewest
        return replace(self._judged(rule), asked=self, needs=needs)

    def _judged(self, rule: Rule) -> Check:
        if self.lacks:
            # Not a ratio, but surely not more.
            return self._none(Outcome.MISSED) if self.lacks == _ZEROS else self._undecided(self.lacks)
        if self.over is Over.PROTOCOLS:
            return self._range()
        if self.without or not self.values:
            return self._lacking(self.without, len(self.values) + len(self.under) + self.without)
        if self.over is Over.RUNS:
            return self._share(rule)
        return self._unpaired(rule) if self.under else self._middle(rule)

    def _none(self, outcome: Outcome, why: str = "") -> Check:
        """The check without a value."""
        facts = self.limits.facts(self.unit)
        if self.over is Over.PROTOCOLS:
            facts = f"a range that includes {facts.partition(' to ')[2]}"
        return Check(
            self.what, self.paper, facts, None, self.unit, outcome, self.shape, over=self.over, why=why
        )

    def _undecided(self, why: str) -> Check:
        """The check of a value that is not known, for this reason."""
        return self._none(Outcome.UNDECIDED, why)

    def _lacking(self, without: int, count: int) -> Check:
        """The check of runs of which so many have no value, which is no evidence of anything."""
        return self._undecided(_NO_VALUE if without == count else f"no value in {without} of {count}")

    def _share(self, rule: Rule) -> Check:
        ours = statistics.share(list(map(bool, self.values)))
        outcome, why = _by_interval(ours, self.limits, rule)
        fewest = fewest_for(self.limits, rule.fewest)
        if outcome is Outcome.UNDECIDED and ours.count < fewest:
            why = f"{_FEW}{fewest}: {ours.count}"
        return replace(self._none(outcome, why), ours=ours)

    def _range(self) -> Check:
        if self.without or not self.values or not all(map(math.isfinite, self.values)):
            return self._undecided(_NO_VALUE)
        assert self.limits.least is not None
        ours = replace(estimate(self.values), low=None, high=None)
        there = ours.least <= self.limits.least <= ours.most
        return replace(self._none(Outcome.MET if there else Outcome.MISSED), ours=ours)

    def _middle(self, rule: Rule) -> Check:
        given, middle = self.values, MIDDLES[self.middle]
        if middle is geometric and min(given) <= 0:
            return self._undecided("no geometric mean, because a value is not above zero")
        infinite = not all(map(math.isfinite, given))
        ours = _infinite(given) if infinite else middle(given)
        if self.over is Over.CONDITIONS:
            # Each value is a mean over scenarios that somebody chose: no interval.
            ours = replace(ours, low=None, high=None)
        logarithms = ours.kind == "geometric mean"
        far = infinite or (logarithms and _is_far(given))
        same = self.over not in (Over.POPULATION, Over.NOTHING) and statistics.same(given)
        made = replace(self._undecided(""), ours=ours, same=same, far=far)
        if self.over is Over.NOTHING:
            return replace(made, outcome=Outcome.MET if self.limits.hold(ours.mean) else Outcome.MISSED)
        if ours.count < rule.fewest:
            return replace(made, why=f"{_FEW}{rule.fewest}: {ours.count}")
        if same:
            return replace(made, outcome=Outcome.MET if self.limits.hold(ours.mean) else Outcome.MISSED)
        logs = [math.log(value) for value in given] if logarithms else given
        modes = None if infinite or self.over is Over.POPULATION else statistics.modes(logs)
        if modes is not None:
            if logarithms:
                modes = Modes(*(tuple(map(math.exp, part)) for part in (modes.lower, modes.upper)))
            why = "two modes, on both sides of the limit"
            return self._by_values(replace(made, modes=modes), 1.0, why)
        if self.over is Over.CONDITIONS:
            return self._by_values(made, rule.nearly_all, "seeds on both sides of the limit")
        if far:
            return self._by_values(made, 1.0, "infinite or zero, and on both sides of the limit")
        outcome, why = _by_interval(ours, self.limits, rule)
        return replace(made, outcome=outcome, why=why)

    def _by_values(self, made: Check, part: float, why: str) -> Check:
        """Met if that part of the values is within, missed if that part is not."""
        count = len(self.values)
        held = sum(map(self.limits.hold, self.values))
        if held >= part * count:
            return replace(made, outcome=Outcome.MET)
        if count - held >= part * count:
            return replace(made, outcome=Outcome.MISSED)
        return replace(made, why=why)

    def _unpaired(self, rule: Rule) -> Check:
        """The ordering of two samples of one scenario each; their seeds differ where runs were left out."""
        larger, smaller = self.values, self.under
        every = [*larger, *smaller]
        if lacking := sum(not math.isfinite(value) for value in every):
            return self._lacking(lacking, len(every))
        if min(every) > 0:
            ours = statistics.ratio(larger, smaller)
            outcome, why = _by_interval(ours, self.limits, rule)
            return replace(self._none(outcome, why), ours=ours, over=Over.SEEDS)
        # Zeros have no logarithms: what is known is between which ratios all of them are.
        ends = _ratio(min(larger), max(smaller)), _ratio(max(larger), min(smaller))
        count = min(len(larger), len(smaller))
        if count < rule.fewest:
            return self._undecided(f"{_FEW}{rule.fewest}: {count}")
        if not all(map(math.isfinite, ends)):
            return self._undecided("ratios to or of zero")
        outcome = self.limits.judge(ends, *ends)
        why = "ratios to or of zero, on both sides of the limit" if outcome is Outcome.UNDECIDED else ""
        ours = replace(_ratios(ends), count=count, low=None, high=None)
        same = ends[0] == ends[1]
        return replace(self._none(outcome, why), ours=ours, over=Over.SEEDS, far=True, same=same)

    def data(self) -> dict[str, Any]:
        """As JSON, which has no infinite numbers: null is one."""
        return {
            **{name: getattr(self, name) for name in _PARTS},
            **vars(self.limits),
            "over": self.over.value,
            "values": [value if math.isfinite(value) else None for value in self.values],
            "under": [value if math.isfinite(value) else None for value in self.under],
        }

    @staticmethod
    def read(data: Mapping[str, Any]) -> "Asked":
        """What `data` made."""
        return Asked(
            **{name: data[name] for name in _PARTS},
            limits=Limits(data["least"], data["most"], data["above"]),
            over=Over(data["over"]),
            values=[math.inf if value is None else value for value in data["values"]],
            under=[math.inf if value is None else value for value in data["under"]],
        )


_PARTS = ("what", "paper", "unit", "shape", "middle", "seeds", "without", "lacks")


def _by_interval(ours: Estimate, limits: Limits, rule: Rule) -> tuple[Outcome, str]:
    """What an interval decides, and why not, if it does not."""
    if ours.count < rule.fewest:
        return Outcome.UNDECIDED, f"{_FEW}{rule.fewest}: {ours.count}"
    if ours.low is None or ours.high is None:
        return Outcome.UNDECIDED, f"no interval from {ours.count} values"
    outcome = limits.judge([ours.low, ours.high], ours.low, ours.high)
    return outcome, "the interval spans the limit" if outcome is Outcome.UNDECIDED else ""


class Limited(TypedDict, total=False):
    """What `within` can be asked, but for the statement and whether it is about shape."""

    least: float | None
    most: float | None
    unit: str
    over: Over | None
    middle: Middle


@dataclass(frozen=True)
class Statement:
    """What the paper says, in its words or shortened; its methods compare our values with that."""

    words: str

    def within(self, what: str, values: Sequence[float] | float, **how: Unpack[Limited]) -> Check:
        """A check of a number."""
        return within(what, values, paper=self.words, **how)

    def shape(self, what: str, values: Sequence[float] | float, **how: Unpack[Limited]) -> Check:
        """A check of a direction, an ordering or a crossover by a number."""
        return within(what, values, paper=self.words, shape=True, **how)

    def both(
        self,
        what: str,
        values: Sequence[float] | float,
        *,
        direction: float | tuple[float, float],
        **how: Unpack[Limited],
    ) -> tuple[Check, Check]:
        """A check of the direction, by a weaker limit on the same side or by two, and one of the number."""
        weaker = how.copy()
        if isinstance(direction, tuple):
            weaker["least"], weaker["most"] = direction
        else:
            lower = "least" in how
            weaker["least"], weaker["most"] = (direction, None) if lower else (None, direction)
        return self.shape(f"{what} (direction)", values, **weaker), self.within(what, values, **how)

    def more(
        self,
        what: str,
        larger: Sequence[float],
        smaller: Sequence[float],
        *,
        least: float = 1.0,
        most: float | None = None,
        shape: bool = True,
    ) -> Check:
        """A check of an ordering."""
        return more(what, larger, smaller, paper=self.words, least=least, most=most, shape=shape)

    def share(
        self,
        what: str,
        hits: Sequence[bool],
        *,
        least: float | None = None,
        shape: bool = False,
        unit: str = "of runs",
    ) -> Check:
        """A check of a share of the runs, or of what `unit` says."""
        return share(what, hits, paper=self.words, least=least, shape=shape, unit=unit)


def _over(*sides: Sequence[float]) -> Over:
    different = any(isinstance(side, Values) and (side.mixed or side.conditions) for side in sides)
    return Over.CONDITIONS if different else Over.SEEDS


class _Pairs(list[tuple[float, float]]):
    """Pairs of two sides, each with the seed that it is from."""

    def __init__(self, pairs: Iterable[tuple[float, float]], seeds: Iterable[int]) -> None:
        super().__init__(pairs)
        self.seeds = list(seeds)


def _pairs(larger: Sequence[float], smaller: Sequence[float]) -> _Pairs | None:
    """The pairs of two sides, by their seeds and scenarios; None if they cannot be paired."""
    if not isinstance(larger, Values) or not isinstance(smaller, Values):
        same = len(larger) == len(smaller)
        return _Pairs(zip(larger, smaller, strict=True), range(len(larger))) if same else None
    different = _over(larger, smaller) is Over.CONDITIONS
    # Where the scenarios themselves are compared, the order of the grid tells which belong together.
    if larger.seeds == smaller.seeds and (not different or larger.scenarios == smaller.scenarios):
        return _Pairs(zip(larger, smaller, strict=True), larger.seeds)
    if different and set(larger.scenarios) == set(smaller.scenarios):
        one, other = larger.places, smaller.places
        if one is not None and other is not None:
            both = [key for key in one if key in other]
            pairs = ((larger[one[key]], smaller[other[key]]) for key in both)
            return _Pairs(pairs, (seed for seed, _ in both)) if both else None
    if larger.seeds == smaller.seeds and set(larger.scenarios) != set(smaller.scenarios):
        return _Pairs(zip(larger, smaller, strict=True), larger.seeds)
    return None


def _infinite(values: Sequence[float]) -> Estimate:
    """The estimate of values of which some are infinite: their range."""
    least, most = min(values), max(values)
    return Estimate(most if most == math.inf else least, None, None, least, most, len(values))


def _is_far(ratios: Sequence[float]) -> bool:
    """Whether some ratio is to zero or of zero."""
    return max(ratios) > _LARGEST or min(ratios) < _SMALLEST


def _ratios(values: Sequence[float]) -> Estimate:
    """The geometric mean of ratios; of some to zero it is infinite, of some of zero zero, of both none.

    Otherwise it would depend on what stands for infinity.
    """
    ours = geometric(values)
    if not _is_far(values):
        return ours
    least, most = min(values) < _SMALLEST, max(values) > _LARGEST
    return replace(ours, mean=math.nan if least and most else 1 / _FAR if least else _FAR)


def _ratio(over: float, under: float) -> float:
    if math.isnan(over) or math.isnan(under) or (over <= 0 and under <= 0):
        return math.nan  # Zero over zero is not a ratio.
    # The ratio of anything else to zero is infinite, and has a logarithm here.
    return min(max(over / under, 1 / _FAR), _FAR) if under > 0 else _FAR


# What a value is the middle of the given ones by.
MIDDLES: Mapping[str, Middle] = {
    "mean": estimate,
    "geometric mean": geometric,
    "median": median,
    "ratio": _ratios,
}


def _name(middle: Middle) -> str:
    return next(name for name, one in MIDDLES.items() if one is middle)
