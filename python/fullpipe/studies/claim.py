"""A claim: a grid of scenarios, what to measure in each run, a figure, and checks.

A claim's verdict follows from its checks alone, by one rule (`Finding.verdict`); no claim states its own.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib.util import find_spec
from typing import Any, TypeAlias

import altair as alt
import polars as pl

from fullpipe.results.runs import Run
from fullpipe.results.statistics import Estimate, estimate
from fullpipe.system.words import joined
from fullpipe.worlds import registry

# A row of a tidy table: names and plain values. None means no value.
Row: TypeAlias = dict[str, Any]
Factors: TypeAlias = Mapping[str, Any]

# A ratio to zero.
_FAR = 1e6


class Size(Enum):
    """How much of a grid is run: as in the paper, enough for a verdict in minutes, or just enough to run."""

    FULL = "full"
    QUICK = "quick"
    TINY = "tiny"


@dataclass(frozen=True)
class Cell:
    """One scenario of a grid, its factors, and as text those in which other scenarios differ."""

    factors: Factors
    document: dict[str, Any]
    name: str


@dataclass(frozen=True)
class Grid:
    """Scenarios as data: every combination of the factors, each turned into a scenario document.

    `quick`, `tiny` and `in_wall_time` replace the values of some factors: in short forms, and in worlds that
    take wall time. `only` says which combinations are scenarios, where not all of them are.
    """

    factors: Mapping[str, Sequence[Any]]
    document: Callable[..., dict[str, Any]]
    quick: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    tiny: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    in_wall_time: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    only: Callable[..., bool] = lambda **_factors: True

    def cells(self, size: Size = Size.FULL, world: str = registry.DEFAULT) -> list[Cell]:
        """The scenarios of that size in that world."""
        chosen = dict(self.factors)
        if registry.named(world).wall_time:
            chosen |= self.in_wall_time
        if size is not Size.FULL:
            chosen |= self.quick
        if size is Size.TINY:
            chosen |= self.tiny
        assert chosen.keys() == self.factors.keys(), "short forms replace factors and do not add any"
        combined = [dict(zip(chosen, values, strict=True)) for values in itertools.product(*chosen.values())]
        combined = [factors for factors in combined if self.only(**factors)]
        # Factors that no form of the grid varies would only make names too long for a document.
        varied = [name for name, values in chosen.items() if max(len(values), len(self.factors[name])) > 1]
        return [
            Cell(factors, self.document(**factors), " ".join(f"{name}={factors[name]}" for name in varied))
            for factors in combined
        ]


@dataclass(frozen=True)
class Trial:
    """One run of one cell."""

    factors: Factors
    run: Run

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of the run, in numbers."""
        return self.run.alternative.spec


@dataclass(frozen=True)
class Data:
    """What a claim measured: `runs` has its rows run by run, `series` those of the run that figures show.

    Both have the columns world and seed and one for each factor, before those of the claim.
    """

    runs: pl.DataFrame
    series: pl.DataFrame

    def of(self, world: str) -> "Data":
        """The part from one world."""
        return Data(*(_only(frame, world) for frame in (self.runs, self.series)))

    @property
    def worlds(self) -> list[str]:
        """The worlds that have data, in the order of the registry."""
        if "world" not in self.runs.columns:
            return []
        there: list[str] = self.runs["world"].unique(maintain_order=True).to_list()
        order = registry.known()
        return sorted(there, key=lambda world: order.index(world) if world in order else len(order))

    def values(self, column: str, **where: Any) -> list[float]:
        """A column of `runs` where factors have the given values: one number for each run that has one."""
        if column not in self.runs.columns:
            return []
        frame = self.runs.filter(*(pl.col(name) == value for name, value in where.items()))
        return [float(value) for value in frame[column].drop_nulls() if math.isfinite(float(value))]

    def mean(self, column: str, **where: Any) -> float:
        """The mean of these values; without values NaN, which meets no criterion."""
        values = self.values(column, **where)
        return math.fsum(values) / len(values) if values else math.nan

    def most(self, column: str) -> float:
        """The largest value of a column of `runs`, e.g. of a factor; NaN if there is none."""
        return max(self.values(column), default=math.nan)


@dataclass(frozen=True)
class Check:
    """One statement of the paper, compared with our value.

    A check of shape is about direction, ordering or crossover; the others are about numbers.
    """

    what: str
    paper: str
    criterion: str
    ours: Estimate | None
    unit: str
    met: bool
    shape: bool

    @property
    def said(self) -> str:
        """Our value with its interval, as text."""
        if self.ours is None:
            return "no value"
        shown = number(self.ours.mean)
        for digits in range(4, 16):
            # Rounded, a value that barely misses a limit would seem to meet it.
            if self.met or shown not in self.criterion.split():
                break
            shown = number(self.ours.mean, digits)
        if self.ours.half_width is not None and self.ours.count > 1:
            shown += f" ± {number(self.ours.half_width, 2)}"
        return f"{shown} {self.unit}".strip()

    @property
    def expected(self) -> str:
        """The criterion, without the unit that our value is shown with."""
        return self.criterion.removesuffix(f" {self.unit}") if self.unit else self.criterion


class Verdict(Enum):
    """The verdict on a claim."""

    REPRODUCED = "reproduced"
    IN_SHAPE = "reproduced in shape"
    NOT = "not reproduced"
    INCOMPLETE = "incomplete"
    WAITING = "waiting"
    NOT_RUN = "not run"
    NOT_BUILT = "not built"


@dataclass(frozen=True)
class Finding:
    """The checks of a claim in one world."""

    world: str
    checks: Sequence[Check]
    missing: str | None = None  # Cells that were not run, or have no trustworthy run.
    awaits: str | None = None  # The controller that the paper is about, if it was not run.
    others: Sequence[str] = ()  # The controllers that were checked instead.
    # If scenarios have fewer trusted runs than were asked for: how many, e.g. "1 to 3 of 3 repetitions".
    fewer: str | None = None

    @property
    def verdict(self) -> Verdict:
        """Reproduced if every check is met, in shape if every check of shape is.

        Checks of controllers other than the paper's can refute the claim, but not reproduce it.
        """
        if self.missing is not None:
            return Verdict.INCOMPLETE
        if not self.checks:
            return Verdict.NOT
        met = all(check.met for check in self.checks)
        shapes = [check.met for check in self.checks if check.shape]
        if not met and not (shapes and all(shapes)):
            return Verdict.NOT
        if self.awaits is not None:
            return Verdict.WAITING
        return Verdict.REPRODUCED if met else Verdict.IN_SHAPE

    @property
    def reason(self) -> str:
        """Why, in a sentence: which checks failed, or that all passed. And on how many runs it rests."""
        if self.fewer is None or not self.checks:
            return self._reason
        return f"{self._reason} Only {self.fewer} of each scenario can be trusted."

    @property
    def _reason(self) -> str:
        if self.missing is not None:
            return f"{self.missing[0].upper()}{self.missing[1:]}."
        if not self.checks:
            return "There is nothing to check."
        if self.awaits is not None:
            return f"{self.awaits} was not run yet. {self._found(self.others)}."
        return f"{self._found()}."

    def _found(self, controllers: Sequence[str] = ()) -> str:
        missed = [check for check in self.checks if not check.met]
        if not missed:
            return _all_pass(len(self.checks), controllers)
        # If a check of shape fails, only those matter.
        said = [check for check in missed if check.shape] or missed
        return "; ".join(f"{one.what}: {one.said} (expected {one.expected})" for one in said)


@dataclass(frozen=True)
class Claim:
    """A claim of a paper. Its file's docstring is its title, question, method and prediction."""

    source: str  # Where in the paper, e.g. "figure 8".
    says: str  # In the paper's words, possibly shortened.
    # Where its scenarios were made for; another world in virtual time runs them if it is asked to.
    worlds: tuple[str, ...]
    grid: Grid
    measure: Callable[[Trial], Row | Sequence[Row]]
    figure: Callable[[Data], alt.TopLevelMixin]
    judge: Callable[[Data], Sequence[Check]]
    look_at: str  # What to look for in the figure.
    series: Callable[[Trial], pl.DataFrame] | None = None
    needs: str | None = None  # A feature that is not built yet, without which its scenarios may be rejected.
    # Modules that only this claim imports, and how to install each.
    modules: Mapping[str, str] = field(default_factory=dict)
    # Further files, for people and programs: Data -> text by name, e.g. "rules.txt".
    texts: Callable[[Data], Mapping[str, str]] | None = None
    # If a check failed: sentences on what the data show about it.
    explain: Callable[[Data], Sequence[str]] | None = None
    # If a check failed: where that comes from, as far as somebody looked into it.
    cause: str = ""
    # The controller that the paper is about. If the factor `controller` lacks it, there is no verdict.
    about: str | None = None
    seeds: int = 10  # The default number of seeds,
    quick_seeds: int = 3  # and in short forms.
    # Seconds on two cores in these forms, for claims where computing the estimate would take long.
    takes_s: Mapping[Size, float] = field(default_factory=dict)

    @property
    def not_installed(self) -> dict[str, str]:
        """The modules of `modules` that are not installed."""
        return {name: fix for name, fix in self.modules.items() if find_spec(name) is None}

    def seeds_of(self, size: Size) -> int:
        """How many seeds it has in that form."""
        return self.seeds if size is Size.FULL else self.quick_seeds

    def runs_in(self, asked: Sequence[str]) -> tuple[str, ...]:
        """The worlds in which it can run: its own, and if one of these has virtual time, others with it."""
        virtual = any(_virtual(name) for name in self.worlds)
        others = [name for name in asked if virtual and name not in self.worlds and _virtual(name)]
        return (*(name for name in self.worlds if name in asked), *others)


@dataclass(frozen=True)
class Paper:
    """A paper. Its package's docstring is its study's question, method and prediction."""

    title: str
    cite: str


def within(
    what: str,
    values: Sequence[float] | float,
    *,
    paper: str,
    least: float | None = None,
    most: float | None = None,
    unit: str = "",
    shape: bool = False,
) -> Check:
    """A check that the mean over runs is within limits. Without a value it fails."""
    given = [values] if isinstance(values, int | float) else list(values)
    finite = bool(given) and all(math.isfinite(value) for value in given)
    ours = estimate(given) if finite else None
    met = ours is not None and (least is None or ours.mean >= least) and (most is None or ours.mean <= most)
    return Check(what, paper, _limits(least, most, unit), ours, unit, met, shape)


def more(
    what: str,
    larger: Sequence[float],
    smaller: Sequence[float],
    *,
    paper: str,
    least: float = 1.0,
    most: float | None = None,
    shape: bool = True,
) -> Check:
    """A check of an ordering: one value is over `least` times another, seed by seed where seeds match.

    An equal value is not over it. If either side is missing, there is no value.
    """
    if len(larger) == len(smaller):
        pairs = list(zip(larger, smaller, strict=True))
    else:
        pairs = [(_mean(larger), _mean(smaller))]
    ratios = [_ratio(over, under) for over, under in pairs]
    check = within(what, ratios, paper=paper, least=least, most=most, unit="times", shape=shape)
    return replace(check, met=check.met and check.ours is not None and check.ours.mean > least)


def number(value: float, digits: int = 3) -> str:
    """A number with its significant digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    shown = f"{value:,.{min(digits + 3, max(0, decimals))}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _virtual(name: str) -> bool:
    world = registry.find(name)
    return world is not None and not world.wall_time


def _all_pass(count: int, controllers: Sequence[str]) -> str:
    of = f" of {joined(controllers)}" if controllers else ""
    match count:
        case 1:
            return f"The only check{of} passes"
        case 2:
            return f"Both checks{of} pass"
    return f"All {count} checks{of} pass"


def _ratio(over: float, under: float) -> float:
    if math.isnan(over) or math.isnan(under) or (over <= 0 and under <= 0):
        return math.nan  # Zero over zero is not a ratio.
    # The ratio of anything else to zero is infinite.
    return min(over / under, _FAR) if under > 0 else _FAR


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def _limits(least: float | None, most: float | None, unit: str) -> str:
    tail = f" {unit}" if unit else ""
    if least is not None and most is not None:
        return f"{number(least)} to {number(most)}{tail}"
    if least is not None:
        return f"at least {number(least)}{tail}"
    assert most is not None, "a check has a limit"
    return f"at most {number(most)}{tail}"


def _only(frame: pl.DataFrame, world: str) -> pl.DataFrame:
    return frame.filter(pl.col("world") == world) if "world" in frame.columns else frame
