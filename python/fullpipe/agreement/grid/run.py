"""Runs a grid in two worlds and stores the results in a folder, in which it can be resumed."""

import fnmatch
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fullpipe import files
from fullpipe.agreement.grid.compare import Compared, compare
from fullpipe.agreement.grid.document import Cell, Grid
from fullpipe.agreement.grid.summary import Target, enough, own_targets, quick_targets, targets, verdict
from fullpipe.errors import mistake
from fullpipe.runs import sweep
from fullpipe.runs.engines import Engine, Failed
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task, check_ready
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import Progress
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.world import World
from fullpipe.text import counted, joined, minutes

SEEDS = 10
REPETITIONS = 3


@dataclass(frozen=True)
class Plan:
    """The runs that a grid needs."""

    grid: Grid
    seeds: int
    repetitions: int
    attempts: int = sweep.ATTEMPTS
    # As given by the user, for the command that repeats the grid.
    named: str = ""
    only: str | None = None
    worlds: tuple[str, str] = registry.PAIR  # The second is the reference.
    hosts: str | None = None  # The model of hosts that the grid was loaded with.
    record: bool = False  # Whether its results are put into `results/`.

    @property
    def pair(self) -> tuple[World, World]:
        """The two worlds."""
        return registry.pair(self.worlds)

    @property
    def name(self) -> str:
        """The name of the grid, and whether it is quick."""
        return f"{self.grid.name}{', quick' if self.grid.quick else ''}"

    @property
    def command(self) -> str:
        """The command that repeats the grid, without options that have their defaults."""
        words = ["fullpipe", "agree", "--grid", self.named or self.grid.name]
        words += ["--quick"] if self.grid.quick else []
        words += [] if self.only is None else ["--only", self.only]
        words += [] if self.worlds == registry.PAIR else ["--worlds", ",".join(self.worlds)]
        words += [] if self.hosts is None else ["--hosts", self.hosts]
        for name, given, default in (
            ("seeds", self.seeds, SEEDS),
            ("repetitions", self.repetitions, REPETITIONS),
            ("attempts", self.attempts, sweep.ATTEMPTS),
        ):
            words += [] if given == default else [f"--{name}", str(given)]
        words += ["--record"] if self.record else []
        return shlex.join(words)

    @property
    def tasks(self) -> list[Task]:
        """Every run of every cell."""
        return [task for cell in self.grid.cells for name in self.worlds for task in self.of(name, cell)]

    def count(self, world: World) -> int:
        """How often each cell runs in a world."""
        return self.seeds if world.deterministic else self.repetitions

    def of(self, name: str, cell: Cell) -> list[Task]:
        """A cell's runs in one of the worlds."""
        world = registry.named(name)
        seeds = range(cell.seed, cell.seed + self.count(world))
        return [Task(name, Job(cell.run_in(world), seed)) for seed in seeds]

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the hosts, in the worlds without real ones."""
        modelled = [world for world in self.pair if not world.real_hosts]
        specs = [cell.run_in(world).spec for world in modelled for cell in self.grid.cells]
        return tuple(sorted({spec["hosts"].get("model", "ideal") for spec in specs}))

    def message(self, pending: Sequence[Task]) -> str:
        """What will run and how long that takes, in a sentence."""
        runs = [(world, [task for task in pending if task.world == world.name]) for world in self.pair]
        wall = [task for world, own in runs if world.wall_time for task in own]
        hosts = f", {joined(self.models)} hosts" if self.models else ""
        to_do = f"{self.name}: {counted(len(self.grid.cells), 'cell')}{hosts}; "
        about = f"{minutes(Local().takes_s(pending))} with several at a time"
        # Worlds in wall time are left out when they have nothing to do.
        shown = [counted(len(own), f"{world.short} run") for world, own in runs if own or not world.wall_time]
        if not wall:
            return f"{to_do}{joined(shown)} to do, {about}"
        wall_s = sum(task.job.alternative.duration_s for task in wall)
        which = "the latter" if self.pair[1].wall_time and not self.pair[0].wall_time else "in wall time"
        return f"{to_do}{joined(shown)} to do, {which} {minutes(wall_s)} in all, {about}"


@dataclass(frozen=True)
class Found:
    """The result of a grid."""

    plan: Plan
    cells: list[Compared]
    targets: list[Target]
    failed: list[Failed]
    notes: list[str]

    @property
    def judged(self) -> int:
        """How many cells could be compared."""
        return sum(cell.judged for cell in self.cells)

    @property
    def met(self) -> bool:
        """Whether every target is met, over enough of the grid, and nothing failed."""
        judged = enough(self.judged, len(self.cells), quick=self.plan.grid.quick)
        return not self.failed and judged and all(target.met for target in self.targets)

    @property
    def verdict(self) -> str:
        """A sentence or two."""
        words = [cell.verdict for cell in self.cells]
        return verdict(words, self.targets, len(self.failed), quick=self.plan.grid.quick)


def only(grid: Grid, pattern: str | None) -> Grid:
    """The cells whose names match a pattern with * and ?; without a pattern, all."""
    if pattern is None:
        return grid
    cells = tuple(cell for cell in grid.cells if fnmatch.fnmatchcase(cell.name, pattern))
    if not cells:
        raise mistake("only", pattern, "a pattern that some cell's name matches", "see the names with --list")
    return replace(grid, cells=cells)


def carry_out(
    plan: Plan,
    folder: Path,
    *,
    engine: Engine | None = None,
    say: Callable[[str], None] = lambda _line: None,
    watch: Callable[[Progress], None] = lambda _progress: None,
) -> Found:
    """Runs what the folder does not have yet, and compares the worlds cell by cell."""
    engine = engine or Local()
    store = Store(folder)

    def begin(outcome: sweep.Outcome, pending: list[Task]) -> None:
        for note in store.damaged:
            say(note)
        if not pending:
            say(f"{plan.name}: all {counted(len(plan.tasks), 'run')} are already in {folder}")
        else:
            if outcome.found:
                say(f"{counted(outcome.found, 'run')} found in {folder}")
            say(plan.message(pending))
        check_ready(pending)
        # The folder is locked here, so these do not replace the scenarios of another sweep.
        for cell in plan.grid.cells:
            path = scenario_path(folder, cell).relative_to(folder)
            files.write(folder, str(path), json.dumps(cell.document, indent=1).encode())

    outcome = sweep.carry_out(plan.tasks, store, engine, attempts=plan.attempts, watch=watch, begin=begin)
    cells = [
        compare(cell, *(outcome.of(plan.of(name, cell)) for name in plan.worlds)) for cell in plan.grid.cells
    ]
    by_name = {cell.name: cell for cell in plan.grid.cells}
    failures = [
        f"{one.task.name} failed: {one.reason}; repeat it with: "
        f"{repeating(folder, by_name[one.task.cell], one.task)}"
        for one in outcome.failed
    ]
    judge = quick_targets if plan.grid.quick else targets
    limits = plan.grid.limits
    judged = own_targets(cells, limits) if limits else judge(cells)
    return Found(plan, cells, judged, outcome.failed, [*failures, *_doubts(cells, plan), *store.damaged])


def repeating(folder: Path, cell: Cell, task: Task) -> str:
    """The command that repeats one run."""
    path = shlex.quote(str(scenario_path(folder, cell)))
    return f"fullpipe run {path} --world {task.world} --seed {task.job.seed}"


def scenario_path(folder: Path, cell: Cell) -> Path:
    """The path of a cell's scenario."""
    return folder / "scenarios" / f"{cell.slug}.json"


def _doubts(cells: Sequence[Compared], plan: Plan) -> list[str]:
    """The runs left out because they cannot be trusted, one line for each cell and world."""
    notes = []
    for world in plan.pair:
        runs, without = 0, 0
        for cell in cells:
            doubted = [one for one in cell.doubted if one.task.world == world.name]
            if not doubted:
                continue
            trusted = cell.ours if world.name == plan.worlds[0] else cell.theirs
            runs, without = runs + len(doubted), without + (not trusted)
            notes.append(
                f"{cell.cell.name}: {len(doubted)} of {len(doubted) + len(trusted)} {world.short} runs are "
                f"untrustworthy after {max(one.attempts for one in doubted)} attempts and left out; the "
                f"first: {doubted[0].untrustworthy[0]}"
            )
        if runs:
            left_out, unjudged = counted(runs, f"{world.short} run"), counted(without, "cell")
            notes.append(
                f"Left out: {left_out}. Without a {world.short} run that can be trusted: {unjudged}."
            )
    return notes
