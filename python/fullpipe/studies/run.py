"""Carries out claims: their scenarios through a sweep, what was measured into a finding a world."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from fullpipe._native import ScenarioError
from fullpipe.engines import Engine
from fullpipe.engines.local import Local
from fullpipe.figures.theme import world_title
from fullpipe.grid.run import counted, try_kernel
from fullpipe.scenario import from_document
from fullpipe.studies.catalogue import Built
from fullpipe.studies.claim import Claim, Data, Factors, Finding, Row, Size, Trial
from fullpipe.sweeps import sweep
from fullpipe.sweeps.store import Store, Stored
from fullpipe.sweeps.sweep import Progress
from fullpipe.sweeps.task import Task
from fullpipe.sweeps.watched import minutes
from fullpipe.worlds import kernel, sim
from fullpipe.worlds.job import Job

REPETITIONS = 3
# For estimates: a packet with its share of samples and losses (bench/README.md), and what each run adds.
_PACKET_S = 120e-9
_RUN_S = 0.01


@dataclass(frozen=True)
class Planned:
    """A run of a claim: the task, and the factors of its cell."""

    task: Task
    factors: Factors


@dataclass(frozen=True)
class Plan:
    """What a claim asks for. `worlds` are those to run; from others it takes the runs that there are."""

    claim: Built
    size: Size
    worlds: tuple[str, ...]
    seeds: int
    repetitions: int

    @cached_property
    def _planned(self) -> tuple[list[Planned], str | None]:
        counts = {sim.NAME: self.seeds, kernel.NAME: self.repetitions}
        planned = []
        for world in self.claim.claim.worlds:
            for cell in self.claim.claim.grid.cells(self.size, world):
                document = {"name": f"{self.claim.id} {cell.name}".strip(), **cell.document}
                try:
                    alternative = from_document(document).alternatives[0]
                except ScenarioError as error:
                    if self.claim.claim.needs is None:
                        raise
                    return [], f"{self.claim.claim.needs} is missing ({error})"
                for seed in range(1, counts[world] + 1):
                    planned.append(Planned(Task(world, Job(alternative, seed)), cell.factors))
        return planned, None

    @property
    def planned(self) -> list[Planned]:
        """Every run, of all worlds."""
        return self._planned[0]

    @property
    def waiting(self) -> str | None:
        """What the claim waits for, None when it can run."""
        return self._planned[1]

    @property
    def tasks(self) -> list[Task]:
        """The runs to do."""
        return [one.task for one in self.planned if one.task.world in self.worlds]


@dataclass(frozen=True)
class Result:
    """A claim that was carried out."""

    plan: Plan
    data: Data
    findings: Sequence[Finding]
    notes: Sequence[str] = field(default_factory=list)
    because: Sequence[str] = field(default_factory=list)  # What the data show of what was missed.


def carry_out(
    plans: Sequence[Plan],
    store: Store,
    *,
    engine: Engine | None = None,
    attempts: int = sweep.ATTEMPTS,
    say: Callable[[str], None] = lambda _line: None,
    watch: Callable[[Progress], None] = lambda _progress: None,
) -> sweep.Outcome:
    """Runs what the store does not have, an untrustworthy kernel run up to `attempts` times."""
    engine = engine or Local()

    def begin(outcome: sweep.Outcome, pending: list[Task]) -> None:
        for note in store.damaged:
            say(note)
        found = f"; {outcome.found} runs were found in {store.folder}" if outcome.found else ""
        say(f"{len(pending)} runs to do, about {minutes(expected_s(pending))}{found}")
        if any(task.world == kernel.NAME for task in pending):
            try_kernel()

    tasks = [task for plan in plans for task in plan.tasks]
    return sweep.carry_out(tasks, store, engine, attempts=attempts, watch=watch, begin=begin)


def examine(plan: Plan, store: Store, outcome: sweep.Outcome) -> Result:
    """Measures a claim's runs and checks them, world by world."""
    rows: list[Row] = []
    series: list[pl.DataFrame] = []
    notes: list[str] = []
    seen: set[tuple[str, str]] = set()
    measured_cells: set[tuple[str, str]] = set()
    doubted: list[Stored] = []
    for one, stored in _found(plan, store, outcome):
        if stored.untrustworthy:
            doubted.append(stored)
            continue
        trial = Trial(one.factors, stored.run())
        named = {"world": one.task.world, "seed": one.task.job.seed, **one.factors}
        measured = plan.claim.claim.measure(trial)
        rows += [{**named, **row} for row in ([measured] if isinstance(measured, dict) else measured)]
        cell = (one.task.world, one.task.cell)
        measured_cells.add(cell)
        if plan.claim.claim.series is not None and cell not in seen:
            seen.add(cell)
            series.append(_named(plan.claim.claim.series(trial), named))
    failed = {one.task.key for one in outcome.failed}
    for task in (one.task for one in plan.planned if one.task.key in failed):
        reason = next(one.reason for one in outcome.failed if one.task.key == task.key)
        notes.append(f"{task.name} failed: {reason}")
    if doubted:
        first = doubted[0]
        notes.append(
            f"{len(doubted)} kernel runs are untrustworthy and left out; the first, {first.task.name}, "
            f"tried {counted(first.attempts, 'time')}: {first.untrustworthy[0]}"
        )
    data = Data(
        pl.DataFrame(rows, infer_schema_length=None),
        pl.concat(series, how="diagonal_relaxed") if series else pl.DataFrame(),
    )
    findings = [
        Finding(
            world,
            plan.claim.claim.judge(data.of(world)),
            _missing(plan, world, measured_cells),
            _awaits(plan),
        )
        for world in data.worlds
    ]
    return Result(plan, data, findings, notes, _because(plan.claim.claim, data, findings))


def _because(claim: Claim, data: Data, findings: Sequence[Finding]) -> list[str]:
    """What the data of each world in which something was missed show of it, each sentence once."""
    if claim.explain is None:
        return []
    said: dict[str, list[str]] = {}
    for finding in findings:
        if not all(check.met for check in finding.checks):
            for sentence in claim.explain(data.of(finding.world)):
                said.setdefault(sentence, []).append(finding.world)
    if len(findings) == 1:
        return list(said)
    return [f"{_named_worlds(worlds)}: {sentence}" for sentence, worlds in said.items()]


def _named_worlds(worlds: Sequence[str]) -> str:
    named = " and ".join(map(world_title, worlds))
    return named[0].upper() + named[1:]


def expected_s(tasks: Iterable[Task]) -> float:
    """How long runs take on this machine's cores, from the packets that their paths can carry at most."""
    return Local().takes_s({task.key: task for task in tasks}.values(), _simulated_s)


def _simulated_s(task: Task) -> float:
    rate_bps = task.rate_bps if math.isfinite(task.rate_bps) else 1e8
    seconds = task.job.alternative.duration_s
    carried = rate_bps * seconds / 8
    offered = math.fsum(_offered(flow["workload"], seconds) for flow in task.job.alternative.spec["flows"])
    return _RUN_S + min(carried, offered) / 1500 * _PACKET_S


def _offered(workload: Row, seconds: float) -> float:
    """The most bytes that an application sends; without limit where the path decides."""
    match workload["kind"]:
        case "finite":
            return float(workload["size_bytes"])
        case "script":
            return math.fsum(one["size_bytes"] for one in workload["transfers"])
        case "bursts":
            return float(workload["size_bytes"] * (1 + seconds * 1e9 // workload["every_ns"]))
        case "video":
            played = (seconds * 1e9 + workload["buffer_ns"]) / workload["chunk_ns"]
            return float(workload["chunk_bytes"] * (1 + played))
    return math.inf


def _missing(plan: Plan, world: str, measured: set[tuple[str, str]]) -> str | None:
    """What a world has no run of, in words; None where every cell has one."""
    cells = {one.task.cell for one in plan.planned if one.task.world == world}
    lacking = [cell for cell in sorted(cells) if (world, cell) not in measured]
    if not lacking:
        return None
    return f"{len(lacking)} of {len(cells)} cells have no run that can be trusted, e.g. {lacking[0]}"


def _awaits(plan: Plan) -> str | None:
    """The controller that the claim is about, if none of its scenarios has it."""
    claim = plan.claim.claim
    lacking = claim.about is not None and claim.about not in claim.grid.factors["controller"]
    return claim.about if lacking else None


def _found(plan: Plan, store: Store, outcome: sweep.Outcome) -> Iterable[tuple[Planned, Stored]]:
    """The runs there are, those of worlds that were not asked for too."""
    for one in plan.planned:
        stored = outcome.stored.get(one.task.key) or store.find(one.task)
        if stored is not None:
            yield one, replace(stored, task=one.task)


def _named(frame: pl.DataFrame, named: dict[str, Any]) -> pl.DataFrame:
    return frame.select(*(pl.lit(value).alias(name) for name, value in named.items()), pl.all())
