"""Runs claims: runs their scenarios in a sweep, and turns the measures into a finding for each world."""

import random
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from fullpipe._native import ScenarioError
from fullpipe.report.figures.theme import world_title
from fullpipe.runs import sweep
from fullpipe.runs.engines import Engine
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task, check_ready
from fullpipe.runs.store import Store, Stored
from fullpipe.runs.sweep import Progress
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.job import Job
from fullpipe.scenario.scenario import from_document
from fullpipe.text import capitalised, counted, joined, minutes, ran_by
from fullpipe_studies import costs
from fullpipe_studies.catalogue import Built, papers
from fullpipe_studies.claim import Cell, Claim, Control, Data, Factors, Finding, Row, Size, Trial

REPETITIONS = 3
# So many scenarios say how long a large grid takes, to about a tenth.
_SAMPLE = 500
# Characters that a scenario's name may have.
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Planned:
    """A run of a claim: the task, and the factors and the name of its cell."""

    task: Task
    factors: Factors
    cell: str  # In full: a long one is cut in the task, where two may then be equal.


@dataclass(frozen=True)
class Plan:
    """The runs that a claim needs. `worlds` are those to run; from others, existing runs are used."""

    claim: Built
    size: Size
    worlds: tuple[str, ...]
    seeds: int
    repetitions: int
    control: Control | None = None  # What runs in place of the claim's own controller.

    def judged(self, factors: Factors) -> bool:
        """Whether a scenario is of the set-up that the verdict is about."""
        setups = self.claim.claim.setups
        return setups is None or factors[setups.factor] == setups.judged

    def _times(self, count: int, factors: Factors) -> int:
        """How often a scenario runs: those of other set-ups less often."""
        setups = self.claim.claim.setups
        return count if setups is None or self.judged(factors) else min(count, setups.seeds)

    @cached_property
    def _planned(self) -> tuple[list[Planned], str | None]:
        planned: list[Planned] = []
        try:
            for world in self.claim.claim.runs_in(registry.names()):
                planned += self._in_world(world, self.claim.claim.grid.cells(self.size, world))
        except ScenarioError as error:
            if self.claim.claim.needs is None:
                raise
            return [], f"{self.claim.claim.needs} is missing ({error})"
        return planned, None

    def _in_world(self, world: str, cells: Sequence[Cell]) -> list[Planned]:
        count = self.seeds if registry.named(world).deterministic else self.repetitions
        planned = []
        for cell in cells:
            document = cell.document if self.control is None else self.control.replaced(cell.document)
            control = "" if self.control is None else f" with {self.control.name}"
            name = f"{self.claim.id}{control} {cell.name}".strip()
            document = {"name": name[:_LONGEST_NAME], **document}
            alternative = from_document(document).alternatives[0]
            for seed in range(1, self._times(count, cell.factors) + 1):
                planned.append(Planned(Task(world, Job(alternative, seed)), cell.factors, name))
        return planned

    def expected_s(self, world: str) -> float | None:
        """About how long the runs in a world take on this machine's cores; None if it cannot run.

        What the simulator needs is stored (`costs`).
        """
        if world not in self.claim.claim.runs_in(registry.names()):
            return None
        own = self.seeds == self.claim.claim.seeds_of(self.size)
        if world == registry.DEFAULT and own and (known := costs.known(self.claim.id, self.size)):
            return known.takes_s(Local().cores)
        tasks, scale = self.sample(world)
        return expected_s(tasks) * scale if tasks else None

    def sample(self, world: str) -> tuple[list[Task], float]:
        """Some of the runs in a world, and how many times as many there are; of a small grid all.

        There are none if the claim waits for a feature.
        """
        cells = self.claim.claim.grid.cells(self.size, world)
        some = random.Random(0).sample(cells, min(len(cells), _SAMPLE))
        try:
            return [one.task for one in self._in_world(world, some)], len(cells) / max(len(some), 1)
        except ScenarioError:
            if self.claim.claim.needs is None:
                raise
            return [], 1.0

    @property
    def planned(self) -> list[Planned]:
        """Every run, of all worlds."""
        return self._planned[0]

    @property
    def waiting(self) -> str | None:
        """What the claim waits for; None if it can run."""
        return self._planned[1]

    @property
    def command(self) -> str:
        """The command that repeats these runs, without options that have their defaults."""
        words = ["fullpipe", "study", "run", self.claim.id]
        words += ["--quick"] if self.size is Size.QUICK else []
        if self.worlds != (registry.DEFAULT,):
            words += ["--world", registry.ALL if len(self.worlds) > 1 else self.worlds[0]]
        if self.seeds != self.claim.claim.seeds_of(self.size):
            words += ["--seeds", str(self.seeds)]
        if self.repetitions != REPETITIONS:
            words += ["--repetitions", str(self.repetitions)]
        return shlex.join(words)

    @property
    def tasks(self) -> list[Task]:
        """The runs to do."""
        return [one.task for one in self.planned if one.task.world in self.worlds]


@dataclass(frozen=True)
class Result:
    """The result of a claim."""

    plan: Plan
    data: Data
    findings: Sequence[Finding]
    notes: Sequence[str] = field(default_factory=list)
    because: Sequence[str] = field(default_factory=list)  # What the data show about failed checks.
    machines: Sequence[str] = field(default_factory=list)  # Of runs that depend on them.


def carry_out(
    tasks: Sequence[Task],
    store: Store,
    *,
    engine: Engine | None = None,
    attempts: int = sweep.ATTEMPTS,
    say: Callable[[str], object] = lambda _line: None,
    watch: Callable[[Progress], None] = lambda _progress: None,
) -> sweep.Outcome:
    """Runs what the store does not have, an untrustworthy run up to `attempts` times."""
    engine = engine or Local()

    def begin(outcome: sweep.Outcome, pending: list[Task]) -> None:
        for note in store.damaged:
            say(note)
        found = f"; {counted(outcome.found, 'run')} found in {store.folder}" if outcome.found else ""
        time = f"about {minutes(expected_s(pending))} on an idle machine"
        say(f"{counted(len(pending), 'run')} to do, {time}{found}")
        check_ready(pending)

    return sweep.carry_out(tasks, store, engine, attempts=attempts, watch=watch, begin=begin)


def examine(plan: Plan, store: Store, outcome: sweep.Outcome) -> Result:
    """Measures a claim's runs and checks them, world by world."""
    rows: list[Row] = []
    series: list[pl.DataFrame] = []
    notes: list[str] = []
    seen: set[tuple[str, str]] = set()
    trusted: Counter[tuple[str, str]] = Counter()
    doubted: list[Stored] = []
    machines: set[str] = set()
    for one, stored in _found(plan, store, outcome):
        if stored.untrustworthy:
            doubted.append(stored)
            continue
        machines |= _machine(stored)
        trial = Trial(one.factors, stored.run())
        named = {"world": one.task.world, "seed": one.task.job.seed, **one.factors}
        measured = plan.claim.claim.measure(trial)
        rows += [{**named, **row} for row in ([measured] if isinstance(measured, dict) else measured)]
        cell = (one.task.world, one.cell)
        trusted[cell] += 1
        if plan.claim.claim.series is not None and cell not in seen:
            seen.add(cell)
            series.append(_named(plan.claim.claim.series(trial), named))
    failed = {one.task.key for one in outcome.failed}
    for task in (one.task for one in plan.planned if one.task.key in failed):
        reason = next(one.reason for one in outcome.failed if one.task.key == task.key)
        notes.append(f"{task.name} failed: {reason}")
    if doubted:
        first = doubted[0]
        runs = counted(len(doubted), f"{_short(first)} run")
        notes.append(
            f"{runs} left out as untrustworthy; the first, {first.task.name}, "
            f"tried {counted(first.attempts, 'time')}: {first.untrustworthy[0]}"
        )
    every = Data(
        pl.DataFrame(rows, infer_schema_length=None),
        pl.concat(series, how="diagonal_relaxed") if series else pl.DataFrame(),
        factors=tuple(plan.claim.claim.grid.factors),
    )
    data = by_setup(plan.claim.claim, every)
    findings = [
        _finding(plan, data.of(world), world, trusted)
        if world in data.worlds
        # A world that was asked for and has no data is not left out without a word.
        else Finding(world, [], _missing(plan, world, trusted))
        for world in _shown(plan, data)
    ]
    return Result(plan, data, findings, notes, _because(plan.claim.claim, data, findings), sorted(machines))


def _shown(plan: Plan, data: Data) -> list[str]:
    """The worlds that were asked for and those that have data, in the order of the registry."""
    there = {*data.worlds, *(world for world in plan.worlds if _judged(plan, world))}
    return [world for world in registry.known() if world in there]


def by_setup(claim: Claim, every: Data) -> Data:
    """The data of the set-up that is judged, with those of the others beside it."""
    if claim.setups is None or not every.runs.height:
        return every
    factor = claim.setups.factor
    names = every.runs[factor].unique(maintain_order=True).to_list()
    parts = {
        name: replace(
            every, runs=_of_setup(every.runs, factor, name), series=_of_setup(every.series, factor, name)
        )
        for name in names
    }
    none = replace(every, runs=every.runs.clear(), series=every.series.clear())
    return replace(parts.get(claim.setups.judged, none), setups=parts)


def _of_setup(frame: pl.DataFrame, factor: str, name: str) -> pl.DataFrame:
    return frame.filter(pl.col(factor) == name) if factor in frame.columns else frame


def _finding(plan: Plan, data: Data, world: str, trusted: Mapping[tuple[str, str], int]) -> Finding:
    judge = plan.claim.claim.judge
    there = {name: part for name, part in data.setups.items() if part.runs.height}
    return Finding(
        world,
        judge(data),
        _missing(plan, world, trusted),
        _awaits(plan, world),
        _others(plan, world),
        _fewer(plan, world, trusted),
        {name: judge(part) for name, part in there.items()} if len(there) > 1 else {},
        () if plan.claim.claim.setups is None else plan.claim.claim.setups.left_open,
    )


def _machine(stored: Stored) -> set[str]:
    """The machine of a run, as far as its record says."""
    about = stored.summary["provenance"]
    return {ran_by(about["kernel"])} if about.get("kernel") else set()


def _because(claim: Claim, data: Data, findings: Sequence[Finding]) -> list[str]:
    """The cause of failed checks, and what the data show about them in each world that has some."""
    # An undecided check asks for an explanation, too.
    failed = [one.world for one in findings if not all(check.met for check in one.checks)]
    cause = [claim.cause] if failed and claim.cause else []
    if claim.explain is None:
        return cause
    facts: dict[str, list[str]] = {}
    for world in failed:
        for sentence in claim.explain(data.of(world)):
            facts.setdefault(sentence, []).append(world)
    if len(findings) == 1:
        return [*cause, *facts]
    return [*cause, *(f"{_named_worlds(worlds)}: {sentence}" for sentence, worlds in facts.items())]


def _short(stored: Stored) -> str:
    return registry.named(stored.task.world).short


def _named_worlds(worlds: Sequence[str]) -> str:
    return capitalised(joined([world_title(world) for world in worlds]))


def cost(claim: Built, size: Size) -> costs.Cost | None:
    """What the scenarios of a claim cost in the simulator; None if it does not run there."""
    if registry.DEFAULT not in claim.claim.worlds:
        return None
    plan = Plan(claim, size, (registry.DEFAULT,), claim.claim.seeds_of(size), REPETITIONS)
    tasks, scale = plan.sample(registry.DEFAULT)
    runs = {(task.job.alternative.digest, task.job.seed): task for task in tasks}
    each = [Local().cost(task) for task in runs.values()]
    return costs.Cost(round(sum(each) * scale, 2), round(max(each), 2)) if each else None


def cost_file() -> str:
    """The file with the costs of all claims, made anew."""
    found: dict[str, dict[Size, costs.Cost]] = {}
    for one in (one for study in papers() for one in study.claims):
        sizes = {size: cost(one, size) for size in (Size.FULL, Size.QUICK)}
        found[one.id] = {size: known for size, known in sizes.items() if known is not None}
    return costs.text({claim: sizes for claim, sizes in found.items() if sizes})


def expected_s(tasks: Iterable[Task]) -> float:
    """How long runs take on this machine's cores, each counted once."""
    once = {(task.world, task.job.alternative.digest, task.job.seed): task for task in tasks}
    return Local().takes_s(once.values())


def _fewer(plan: Plan, world: str, trusted: Mapping[tuple[str, str], int]) -> str | None:
    """How many runs of a scenario are trusted, as text; None if all that were asked for are."""
    asked = Counter(one.cell for one in _judged(plan, world))
    counts = [trusted.get((world, cell), 0) for cell in asked]
    most = max(asked.values(), default=0)
    if all(trusted.get((world, cell), 0) == count for cell, count in asked.items()):
        return None
    least, largest = min(counts), max(counts)
    facts = str(least) if least == largest else f"{least} to {largest}"
    return f"{facts} of {counted(most, registry.named(world).noun)}"


def _missing(plan: Plan, world: str, trusted: Mapping[tuple[str, str], int]) -> str | None:
    """The cells without a run in a world, as text; None if every cell has one."""
    cells = {one.cell for one in _judged(plan, world)}
    lacking = [cell for cell in sorted(cells) if (world, cell) not in trusted]
    if not lacking:
        return None
    return f"{len(lacking)} of {len(cells)} cells have no trustworthy run, e.g. {lacking[0]}"


def _judged(plan: Plan, world: str) -> list[Planned]:
    """The runs in a world that the verdict is about."""
    return [one for one in plan.planned if one.task.world == world and plan.judged(one.factors)]


def _awaits(plan: Plan, world: str) -> str | None:
    """The controller that the claim is about, if no scenario of this size and world uses it."""
    about = plan.claim.claim.about
    return about if about is not None and about not in _others(plan, world) else None


def _others(plan: Plan, world: str) -> tuple[str, ...]:
    """The controllers that the claim's scenarios use."""
    named = (str(one.factors["controller"]) for one in _judged(plan, world) if "controller" in one.factors)
    return tuple(dict.fromkeys(named))


def _found(plan: Plan, store: Store, outcome: sweep.Outcome) -> Iterable[tuple[Planned, Stored]]:
    """The existing runs, including those of worlds that were not requested."""
    for one in plan.planned:
        stored = outcome.stored.get(one.task.key) or store.find(one.task)
        if stored is not None:
            yield one, replace(stored, task=one.task)


def _named(frame: pl.DataFrame, named: dict[str, Any]) -> pl.DataFrame:
    return frame.select(*(pl.lit(value).alias(name) for name, value in named.items()), pl.all())
