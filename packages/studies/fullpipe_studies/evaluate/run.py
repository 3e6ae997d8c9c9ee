"""Carries out the scenes for a candidate and the standards, and judges what they measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from fullpipe._native import ScenarioError, WorldError
from fullpipe.errors import mistake, renamed
from fullpipe.runs import sweep
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.world import refusal
from fullpipe.scenario.scenario import from_document
from fullpipe.text import counted
from fullpipe_studies.evaluate.criteria import Criterion, every
from fullpipe_studies.evaluate.scene import Made, Scene, Seen
from fullpipe_studies.evaluate.verdicts import BESIDE, STANDARDS, Cell, Verdict, judge, overall

# In full and in short; a run in a stack takes twenty times as long.
_SEEDS, _SEEDS_OF_STACKS = (12, 8), (5, 4)
_ONLY_FULL = "only in the full form, without --quick"


def seeds_of(world: str, quick: bool) -> int:
    """How many seeds there are, unless somebody says it."""
    full, short = _SEEDS if world == registry.DEFAULT else _SEEDS_OF_STACKS
    return short if quick else full


@dataclass(frozen=True)
class Planned:
    """A run of a scene by one controller."""

    scene: str
    controller: str
    seed: int
    made: Made
    task: Task


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    candidate: str
    world: str
    seeds: int
    quick: bool = False
    criteria: Sequence[Criterion] = field(default_factory=every)

    @property
    def controllers(self) -> tuple[str, ...]:
        """The candidate, and what it is compared with, each once."""
        return tuple(dict.fromkeys((self.candidate, *STANDARDS, BESIDE)))

    def check(self) -> None:
        """Raises an error if the world is unsuitable or cannot run the candidate."""
        world = registry.chosen(self.world)
        virtual = [one for one in registry.names() if registry.named(one).deterministic]
        if len(world) > 1 or not world[0].deterministic:
            expected = f"one world in virtual time ({' or '.join(virtual)})"
            raise mistake("world", self.world, expected, "leave it out, or name one of these")
        document = {"path": {"rate": "10 Mbit/s", "rtt": "20 ms"}, "flows": [{"controller": self.candidate}]}
        try:
            (alternative,) = from_document(document).alternatives
        except ScenarioError as error:
            raise renamed(error, {"flows[0].controller": "controller"}) from None
        if (reason := refusal(world[0], alternative)) is not None:
            raise WorldError(reason.removeprefix("flows[0].controller: "))

    def skipped(self, scene: Scene) -> str:
        """Why a scene is not run; empty if it is."""
        if self.quick and not scene.quick:
            return _ONLY_FULL
        return scene.only_sim if self.world != registry.DEFAULT else ""

    @cached_property
    def planned(self) -> list[Planned]:
        """Every run. A scene of several criteria runs once."""
        scenes = {one.name: one for row in self.criteria for one in row.scenes if not self.skipped(one)}
        return [
            self._run(scene, controller, seed)
            for scene in scenes.values()
            for seed in range(1, self.seeds + 1)
            for controller in self.controllers
        ]

    def _run(self, scene: Scene, controller: str, seed: int) -> Planned:
        made = scene.made(controller, seed)
        name = f"{scene.name}, {controller}"
        (alternative,) = from_document({"name": name, **made.document}).alternatives
        return Planned(scene.name, controller, seed, made, Task(self.world, Job(alternative, seed)))


@dataclass(frozen=True)
class Row:
    """A criterion with its cells."""

    criterion: Criterion
    cells: Sequence[Cell]
    left_out: Mapping[str, Sequence[str]]  # Why scenes were not run, and which.

    @property
    def verdict(self) -> Verdict:
        """The worst of its cells' verdicts."""
        return overall(self.cells) if self.cells else self.criterion.without

    def count(self, verdict: Verdict) -> int:
        """How many cells have that verdict."""
        return sum(one.verdict is verdict for one in self.cells)

    @property
    def deciding(self) -> Cell | None:
        """The first of the cells that decide the verdict."""
        return next((one for one in self.cells if one.verdict is self.verdict), None)


@dataclass(frozen=True)
class Result:
    """The rows of a report, in the RFC's order, and notes on runs that are missing."""

    plan: Plan
    rows: Sequence[Row]
    notes: Sequence[str]
    caveats: Sequence[str] = ()  # What the world did not do as asked, e.g. what a stack does not tell.

    def data(self) -> pl.DataFrame:
        """Every value: section, scene, measure, unit, controller, seed, value."""
        rows = [
            (row.criterion.section, cell.scene, cell.measure.name, cell.measure.unit, name, seed, value)
            for row in self.rows
            for cell in row.cells
            for name, values in cell.values.items()
            for seed, value in values.items()
        ]
        columns = ("section", "scene", "measure", "unit", "controller", "seed", "value")
        return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)


def examine(plan: Plan, store: Store, outcome: sweep.Outcome, watch: Callable[[int, int], object]) -> Result:
    """Measures the runs and judges them. `watch` gets how many runs of how many were measured."""
    wanted: dict[str, list[Any]] = {}
    for row in plan.criteria:
        for scene in row.scenes:
            wanted.setdefault(scene.name, []).extend(
                one for one in row.measures if one not in wanted.get(scene.name, [])
            )
    values: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    notes: dict[str, int] = {}
    caveats: dict[str, None] = {}
    for number, one in enumerate(plan.planned):
        watch(number, len(plan.planned))
        stored = outcome.stored.get(one.task.key) or store.find(one.task)
        if stored is None or stored.untrustworthy:
            reason = stored.untrustworthy[0] if stored is not None else _failure(outcome, one.task)
            notes[f"{one.controller}: {reason}"] = notes.get(f"{one.controller}: {reason}", 0) + 1
            continue
        seen = Seen(stored.run(), one.made.facts)
        caveats |= dict.fromkeys(seen.run.unsupported)
        for measure in wanted[one.scene]:
            if measure.needs and measure.needs not in one.made.facts:
                continue
            by_name = values.setdefault((one.scene, measure.name), {})
            ours = by_name.setdefault(one.controller, {})
            if (value := measure.take(seen)) is not None:
                ours[one.seed] = value
    rows = [row_of(plan, criterion, values) for criterion in plan.criteria]
    told = [f"{reason} ({counted(count, 'run')})" for reason, count in notes.items()]
    return Result(plan, rows, told, list(caveats))


def row_of(
    plan: Plan,
    criterion: Criterion,
    values: Mapping[tuple[str, str], Mapping[str, Mapping[int, float]]],
) -> Row:
    """A criterion with its cells; `values` are by scene and measure, then by controller and seed."""
    left_out: dict[str, list[str]] = {}
    cells = []
    for scene in criterion.scenes:
        if reason := plan.skipped(scene):
            left_out.setdefault(reason, []).append(scene.name)
            continue
        for measure in criterion.measures:
            found = values.get((scene.name, measure.name))
            if found is not None:
                # The candidate is the first, also if its first run failed.
                ordered = {name: found[name] for name in plan.controllers if name in found}
                cells.append(judge(scene.name, measure, plan.candidate, ordered))
    return Row(criterion, cells, left_out)


def _failure(outcome: sweep.Outcome, task: Task) -> str:
    return next((one.reason for one in outcome.failed if one.task.key == task.key), "was not run")
