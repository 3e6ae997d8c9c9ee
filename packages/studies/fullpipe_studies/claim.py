"""A claim: a grid of scenarios, what to measure in each run, a figure, and checks.

A claim's verdict follows from its checks alone (`checks`), by one rule (`Finding.verdict`); no claim states
its own. So it follows from what is stored of checks, too (`judge`).
"""

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from importlib.util import find_spec
from typing import Any, TypeAlias

import polars as pl

from fullpipe.measures.run import Run
from fullpipe.runs.worlds import registry
from fullpipe.text import counted, joined
from fullpipe_studies.checks import (
    FEWEST,
    RULE,
    Asked,
    Check,
    Outcome,
    Over,
    Rule,
    Statement,
    Values,
    covers,
    geometric,
    median,
    more,
    number,
    own,
    share,
    within,
)
from fullpipe_studies.later import alt

# What the files of claims import from here.
__all__ = [
    "Check",
    "Over",
    "Statement",
    "Values",
    "covers",
    "geometric",
    "median",
    "more",
    "number",
    "own",
    "share",
    "within",
]

# A row of a tidy table: names and plain values. None means no value.
Row: TypeAlias = dict[str, Any]
Factors: TypeAlias = Mapping[str, Any]


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
    take wall time. In a short form, such a world keeps the values that `in_wall_time` has, too, or all if
    it has none of them. `only` says which combinations are scenarios, where not all of them are.
    """

    factors: Mapping[str, Sequence[Any]]
    document: Callable[..., dict[str, Any]]
    quick: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    tiny: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    in_wall_time: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    only: Callable[..., bool] = lambda **_factors: True

    def cells(self, size: Size = Size.FULL, world: str = registry.DEFAULT) -> list[Cell]:
        """The scenarios of that size in that world."""
        carried = self.in_wall_time if registry.named(world).wall_time else {}
        short = {Size.FULL: {}, Size.QUICK: self.quick, Size.TINY: {**self.quick, **self.tiny}}[size]
        chosen = {**self.factors, **carried, **short}
        for name in carried.keys() & short.keys():
            chosen[name] = [one for one in short[name] if one in carried[name]] or short[name]
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

    Both have the columns world and seed and one for each factor, before those of the claim. If the claim has
    several set-ups, these are of the one that is judged, and `setups` has all of them by name.
    """

    runs: pl.DataFrame
    series: pl.DataFrame
    setups: Mapping[str, "Data"] = field(default_factory=dict)
    factors: Sequence[str] = ()  # The columns of `runs` that tell scenarios apart, as far as known.

    def of(self, world: str) -> "Data":
        """The part from one world."""
        setups = {name: data.of(world) for name, data in self.setups.items()}
        return replace(self, runs=_only(self.runs, world), series=_only(self.series, world), setups=setups)

    @property
    def worlds(self) -> list[str]:
        """The worlds that have data, in the order of the registry."""
        if "world" not in self.runs.columns:
            return []
        there: list[str] = self.runs["world"].unique(maintain_order=True).to_list()
        order = registry.known()
        return sorted(there, key=lambda world: order.index(world) if world in order else len(order))

    def values(self, column: str, **where: Any) -> Values:
        """A column of `runs` where factors have the given values: one number for each run that has one.

        Several values of a factor are given as a tuple. It says how many runs have no number (`without`).
        What did not happen while a run lasted is infinite.
        """
        if column not in self.runs.columns:
            return Values([], [])
        asked = _matching(self.runs, where)
        frame = asked.drop_nulls(column).filter(pl.col(column).cast(pl.Float64).is_not_nan())
        seeds = frame["seed"].to_list() if "seed" in frame.columns else range(frame.height)
        # A factor with one value is what the values have in common, or are compared by.
        fixed = {name for name, value in where.items() if not isinstance(value, tuple)}
        free = [name for name in self.factors if name in frame.columns and name not in fixed]
        scenarios = map(str, frame.select(free).iter_rows()) if free else ()
        return Values(
            map(float, frame[column]), seeds, scenarios=scenarios, without=asked.height - frame.height
        )

    def each_seed(self, statistic: Callable[[pl.DataFrame], float], **where: Any) -> Values:
        """One number for each seed: a statistic of its rows, e.g. a share of the paths, or a ratio of means.

        Its spread over seeds has no interval, because the rows are of unlike scenarios.
        """
        if "seed" not in self.runs.columns:
            return Values([], [])
        parts = _matching(self.runs, where).partition_by("seed", maintain_order=True)
        return Values(map(statistic, parts), (part["seed"][0] for part in parts), conditions=True)

    def mean(self, column: str, **where: Any) -> float:
        """The mean of these values; without values NaN, which meets no criterion."""
        values = self.values(column, **where)
        return math.fsum(values) / len(values) if values else math.nan

    def means(self, *columns: str, **where: Any) -> list[float]:
        """The means of several columns."""
        return [self.mean(column, **where) for column in columns]

    def most(self, column: str) -> float:
        """The largest value of a column of `runs`, e.g. of a factor; NaN if there is none."""
        return max(self.values(column), default=math.nan)


class Verdict(Enum):
    """The verdict on a claim."""

    REPRODUCED = "reproduced"
    IN_SHAPE = "reproduced in shape"
    NOT = "not reproduced"
    DEPENDS = "depends on what the paper omits"
    INCONCLUSIVE = "inconclusive"
    OWN_MET = "own expectation met"
    OWN_IN_SHAPE = "own expectation met in shape"
    OWN_NOT = "own expectation not met"
    INCOMPLETE = "incomplete"
    WAITING = "waiting"
    NOT_RUN = "not run"
    NOT_BUILT = "not built"
    CANNOT = "cannot run"


_OWN = "The paper gives no result, so the criterion is our expectation."
# What each word means, for pages and documents; the rule itself is `Finding.verdict`.
_MEANINGS: Mapping[Verdict, str] = {
    Verdict.REPRODUCED: "every check is met.",
    Verdict.IN_SHAPE: "every check of shape (direction, ordering, crossover) is met; one of a number is "
    "missed or undecided.",
    Verdict.NOT: "a check of shape is missed. If the claim has no checks of shape: any check is missed.",
    Verdict.DEPENDS: "the claim is reproduced, at least in shape, but not in another set-up, in which only "
    "what the paper leaves open differs; or the reverse.",
    Verdict.INCONCLUSIVE: "no check of shape is missed, but one is undecided. If the claim has no checks of "
    "shape, the same of all checks.",
    Verdict.OWN_MET: f"every check is met. {_OWN}",
    Verdict.OWN_IN_SHAPE: f"as for “{Verdict.IN_SHAPE.value}”. {_OWN}",
    Verdict.OWN_NOT: f"as for “{Verdict.NOT.value}”. {_OWN}",
    Verdict.INCOMPLETE: "a scenario has no trustworthy run.",
    Verdict.WAITING: "the paper is about a controller or a feature that was not run, whatever others did.",
}


def meanings(used: Collection[str]) -> list[tuple[str, str]]:
    """The words among these that a reader needs to be told, with its meaning; once what several share."""
    reported: list[tuple[str, str]] = []
    facts = False
    for verdict, meaning in _MEANINGS.items():
        if verdict.value in used:
            reported.append((verdict.value, meaning.replace(f" {_OWN}", "") if facts else meaning))
            facts = facts or _OWN in meaning
    return reported


DECIDED = (
    "A check is met or missed only if all that is known about its value is on one side of its limit. Of runs "
    "that differ by chance, this is the 95 % confidence interval. Of means over unlike scenarios, which have "
    "no interval, it is the values of nine tenths of the seeds. Of runs with two modes, it is every run’s "
    f"value. With fewer than {FEWEST} seeds or repetitions the check is undecided, and so it is if a run "
    "has no value. If the paper gives results for some checks, only these make the verdict."
)


# The verdicts by which a paper's statement holds.
_HOLDS = (Verdict.REPRODUCED, Verdict.IN_SHAPE)


def _by_checks(checks: Sequence[Check], *, own: bool = False) -> Verdict:
    """The one rule by which checks make a verdict; `_MEANINGS` has it in words."""
    shapes, numbers = ({one.outcome for one in checks if one.shape is kind} for kind in (True, False))
    decisive = shapes or numbers
    if Outcome.MISSED in decisive:
        return Verdict.OWN_NOT if own else Verdict.NOT
    if Outcome.UNDECIDED in decisive or not decisive:
        return Verdict.INCONCLUSIVE
    if numbers - {Outcome.MET}:
        return Verdict.OWN_IN_SHAPE if own else Verdict.IN_SHAPE
    return Verdict.OWN_MET if own else Verdict.REPRODUCED


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
    # The checks of every set-up of the claim, by its name, if it has several; and the names of those that
    # differ from the judged one in nothing but what the paper leaves open.
    setups: Mapping[str, Sequence[Check]] = field(default_factory=dict)
    left_open: Collection[str] = ()
    waits: str | None = None  # Why nothing could be run.

    @property
    def verdict(self) -> Verdict:
        """What follows from its checks, and from those of other set-ups."""
        if self.missing is not None:
            return Verdict.INCOMPLETE
        if self.awaits is not None or self.waits is not None:
            return Verdict.WAITING
        if self.contrary:
            return Verdict.DEPENDS
        return _by_checks(self.deciding, own=self.own)

    @property
    def contrary(self) -> list[str]:
        """The set-ups left open in which the claim holds, if it does not here; or does not, if it does."""
        if self.own:
            return []
        here = _by_checks(self.deciding)
        contrary = _HOLDS if here is Verdict.NOT else (Verdict.NOT,) if here in _HOLDS else ()
        there = {
            name: _by_checks([one for one in checks if not one.own]) for name, checks in self.setups.items()
        }
        return [name for name in self.left_open if there.get(name) in contrary]

    @property
    def own(self) -> bool:
        """Whether the paper gives no result for any check."""
        return bool(self.checks) and all(one.own for one in self.checks)

    @property
    def deciding(self) -> Sequence[Check]:
        """The checks that make the verdict: those for which the paper gives a result, if there are any."""
        return self.checks if self.own else [one for one in self.checks if not one.own]

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
            return self.waits or "There is nothing to check."
        if self.awaits is not None:
            return f"{self.awaits} was not run yet. {self._found(self.checks, self.others)}."
        facts = f"{self._found(self.deciding)}."
        if self.contrary:
            holds = _by_checks(self.deciding) in _HOLDS
            how = "it is not reproduced" if holds else "it is reproduced, at least in shape"
            facts = f"With {joined([f'“{name}”' for name in self.contrary])}, {how}; here: {facts}"
        beside = [one for one in self.checks if one not in self.deciding and not one.met]
        if beside:
            facts += f" Beside the paper’s results, an expectation of our own: {self._reported(beside)}."
        return facts

    def _found(self, checks: Sequence[Check], controllers: Sequence[str] = ()) -> str:
        failed = [one for one in checks if not one.met]
        if not failed:
            return _all_pass(len(checks), controllers)
        # If a check of shape fails, only those matter; among them, those that are missed.
        matter = [one for one in failed if one.shape] or failed
        if any(one.shape for one in matter):
            matter = [one for one in matter if one.outcome is Outcome.MISSED] or matter
        return self._reported(sorted(matter, key=lambda one: one.outcome is Outcome.UNDECIDED))

    def _reported(self, checks: Sequence[Check]) -> str:
        """Each failed check with what was expected; those that have too few runs are only counted."""
        noun = self.noun
        few = [one for one in checks if one.few]
        reported = [
            f"{one.what}: {one.reported(noun)} (expected {one.expected}{'; undecided' if one.why else ''})"
            for one in checks
            if one not in few
        ]
        if few:
            runs = max(one.ours.count for one in few if one.ours is not None)
            reported.append(f"{counted(len(few), 'check')} undecided with {counted(runs, noun)}")
        return "; ".join(reported)

    @property
    def noun(self) -> str:
        """What runs of a scenario differ by in this world: a seed, or a repetition."""
        world = registry.find(self.world)
        return "seed" if world is None else world.noun

    def data(self) -> dict[str, Any]:
        """As JSON, without the checks and what follows from them."""
        return {name: getattr(self, name) for name in _PARTS} | {"others": list(self.others)}


_PARTS = ("missing", "awaits", "waits", "others", "fewer")


def judge(
    data: Mapping[str, Any],
    checks: Sequence[Mapping[str, Any]],
    rule: Rule = RULE,
    setups: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    left_open: Collection[str] = (),
) -> Finding:
    """The finding that follows from what is stored, by a rule.

    `data` is what `Finding.data` made, with the world. `checks` are what `Asked.data` made, each with `own`;
    `setups` has those of each set-up, and `left_open` is what its `Setups` say.
    """
    of_setup = {name: judged(each, rule) for name, each in (setups or {}).items()}
    parts = {name: data[name] for name in _PARTS}
    return Finding(data["world"], judged(checks, rule), **parts, setups=of_setup, left_open=left_open)


def judged(checks: Sequence[Mapping[str, Any]], rule: Rule = RULE) -> list[Check]:
    """The checks that are stored, judged by a rule."""
    return [replace(Asked.read(one).judge(rule), own=one["own"]) for one in checks]


@dataclass(frozen=True)
class Setups:
    """Variants of a claim's test bed of which the paper does not tell its own, e.g. a bucket's size.

    They are the values of one factor of the grid. The verdict is about the declared one, unless one of
    `left_open` has the opposite: they differ from it in nothing but what the paper leaves open. The report
    has a table of the checks' values for each, which shows how much they owe to what is not known.
    """

    factor: str
    judged: str
    seeds: int = FEWEST  # How many the other set-ups have, at most.
    left_open: tuple[str, ...] = ()


# What stands in for a claim's own controller, unless the claim names others.
WRONG = ("vegas", "cubic")


@dataclass(frozen=True)
class Control:
    """A wrong controller, or queue discipline, in place of a claim's own: its checks must reject these runs.

    Of the same controller with other parameters, only these change.
    """

    name: str
    instead_of: Sequence[str]

    def replaced(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The scenario with it. Flows keep their labels, by which measures find them."""
        flows, path = document["flows"], dict(document["path"])
        swapped = [
            {"label": one["controller"], **one, "controller": self._for(one["controller"])}
            if self._stands_for(one["controller"])
            else one
            for one in flows
        ]
        if self._stands_for(path.get("queue", "")):
            path["queue"] = self.name
        return {**document, "path": path, "flows": swapped}

    def _stands_for(self, name: str) -> bool:
        return name.partition(":")[0] in self.instead_of

    def _for(self, own: str) -> str:
        (base, _, changed), (same, _, kept) = self.name.partition(":"), own.partition(":")
        if base != same:
            return self.name
        parameters = dict(one.split("=") for one in (*kept.split(","), *changed.split(",")) if one)
        return f"{base}:{','.join(f'{name}={value}' for name, value in parameters.items())}"


_FUNCTIONS = ("measure", "figure", "judge", "series", "explain", "texts")


def _of_its_file(*_given: Any) -> Any:
    raise NotImplementedError("the catalogue takes this function from the claim's file")


@dataclass(frozen=True)
class Claim:
    """A claim of a paper. Its file's docstring is its title, question, method and prediction.

    `measure`, `figure` and `judge`, and where it has them `series`, `explain` and `texts`, are the functions
    with these names in its file, unless they are given here.
    """

    source: str  # Where in the paper, e.g. "figure 8".
    says: str  # In the paper's words, possibly shortened.
    grid: Grid
    look_at: str  # What to look for in the figure.
    # Where its scenarios were made for; another world in virtual time runs them if it is asked to.
    worlds: tuple[str, ...] = ("sim",)
    measure: Callable[[Trial], Row | Sequence[Row]] = _of_its_file
    figure: "Callable[[Data], alt.TopLevelMixin]" = _of_its_file
    judge: Callable[[Data], Sequence[Check]] = _of_its_file
    # What the figure shows of one run over time.
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
    # The controller that the paper is about. If no scenario that ran has it, there is no verdict.
    about: str | None = None
    # Variants of the test bed, if it is not known to the letter.
    setups: Setups | None = None
    seeds: int = 10  # The default number of seeds,
    quick_seeds: int = 3  # and in short forms.
    # The controllers, or queue disciplines, in whose place controls put wrong ones: `about`, or BBRv1.
    subject: Sequence[str] = ()
    # The wrong ones, which the paper's statement excludes.
    wrong: Sequence[str] = WRONG
    # Why there are fewer than two, or why it cannot reject them.
    uncontrolled: str = ""
    # Worlds that cannot carry it, and why.
    cannot: Mapping[str, str] = field(default_factory=dict)

    def completed(self, functions: Mapping[str, Any]) -> "Claim":
        """The claim with the functions of its file, by name, for those that it does not name itself."""
        absent = [name for name in _FUNCTIONS if getattr(self, name) in (None, _of_its_file)]
        made = replace(self, **{name: functions[name] for name in absent if name in functions})
        if lacking := [name for name in absent if getattr(made, name) is _of_its_file]:
            raise ValueError(f"the file of a claim lacks the function {joined(lacking)}")
        return made

    @property
    def controls(self) -> list[Control]:
        """Wrong controllers in place of its own."""
        return [Control(name, self.subject or (self.about or "bbr1",)) for name in self.wrong]

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


def _matching(frame: pl.DataFrame, where: Mapping[str, Any]) -> pl.DataFrame:
    wanted = {name: value if isinstance(value, tuple) else (value,) for name, value in where.items()}
    return frame.filter(
        *(pl.any_horizontal(pl.col(name) == one for one in each) for name, each in wanted.items())
    )


def _only(frame: pl.DataFrame, world: str) -> pl.DataFrame:
    return frame.filter(pl.col("world") == world) if "world" in frame.columns else frame
