"""Runs a grid in both worlds and stores the results in a folder, in which it can be resumed."""

import fnmatch
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fullpipe.ask.scenario import from_document
from fullpipe.engines import Engine, Failed
from fullpipe.engines.local import Local
from fullpipe.engines.task import Task
from fullpipe.errors import mistake
from fullpipe.judge.grid.compare import Compared, compare
from fullpipe.judge.grid.document import Cell, Grid
from fullpipe.judge.grid.summary import Target, quick_targets, targets
from fullpipe.sweeps import sweep
from fullpipe.sweeps.store import Store
from fullpipe.sweeps.sweep import Progress
from fullpipe.system import files
from fullpipe.system.words import counted, minutes
from fullpipe.worlds import kernel, sim
from fullpipe.worlds.job import Job

SEEDS = 10
REPETITIONS = 3

# The share of a grid that must have been compared for it to pass: the rest could differ.
LEAST_JUDGED = 0.9
# The share for a quick grid, which is for any machine: on a busy one, some runs are untrustworthy.
LEAST_JUDGED_QUICK = 0.5


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
        for name, given, default in (
            ("seeds", self.seeds, SEEDS),
            ("repetitions", self.repetitions, REPETITIONS),
            ("attempts", self.attempts, sweep.ATTEMPTS),
        ):
            words += [] if given == default else [f"--{name}", str(given)]
        return shlex.join(words)

    @property
    def tasks(self) -> list[Task]:
        """Every run of every cell."""
        return [task for cell in self.grid.cells for task in [*self.sim(cell), *self.kernel(cell)]]

    def sim(self, cell: Cell) -> list[Task]:
        """A cell's simulator runs."""
        return self._tasks(cell, sim.NAME, self.seeds)

    def kernel(self, cell: Cell) -> list[Task]:
        """A cell's kernel runs."""
        return self._tasks(cell, kernel.NAME, self.repetitions)

    def said(self, pending: Sequence[Task]) -> str:
        """What will run and how long that takes, in a sentence."""
        by_world = {
            world: [task for task in pending if task.world == world] for world in (sim.NAME, kernel.NAME)
        }
        wall_s = sum(task.job.alternative.duration_s for task in by_world[kernel.NAME])
        about = minutes(Local().takes_s(pending))
        simulated, measured = (
            counted(len(by_world[world]), noun)
            for world, noun in ((sim.NAME, "simulator run"), (kernel.NAME, "kernel run"))
        )
        to_do = f"{self.name}: {counted(len(self.grid.cells), 'cell')}; {simulated}"
        if not by_world[kernel.NAME]:
            return f"{to_do} to do, {about} with several at a time"
        return (
            f"{to_do} and {measured} to do, the latter {minutes(wall_s)} in all, "
            f"{about} with several at a time"
        )

    def _tasks(self, cell: Cell, world: str, count: int) -> list[Task]:
        seeds = range(cell.seed, cell.seed + count)
        return [Task(world, Job(cell.alternative, seed)) for seed in seeds]


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
    def enough(self) -> bool:
        """Whether enough of the grid was compared to judge it."""
        least = LEAST_JUDGED_QUICK if self.plan.grid.quick else LEAST_JUDGED
        return self.judged >= least * len(self.cells)

    @property
    def met(self) -> bool:
        """Whether every target is met, over enough of the grid, and nothing failed."""
        return not self.failed and self.enough and all(target.met for target in self.targets)

    @property
    def verdict(self) -> str:
        """One sentence."""
        agreeing, unknown = sum(cell.agrees for cell in self.cells), len(self.cells) - self.judged
        count = [target for target in self.targets if target.counts]
        met = sum(target.met for target in count)
        too_many = "" if self.enough else ", too many for the grid to pass"
        left_out = f"; {unknown} of {counted(len(self.cells), 'cell')} could not be compared{too_many}"
        failed = f"; {counted(len(self.failed), 'run')} failed" if self.failed else ""
        return (
            f"{agreeing} of {self.judged} cells agree; {met} of {len(count)} targets are met"
            f"{left_out if unknown else ''}{failed}."
        )


def only(grid: Grid, pattern: str | None) -> Grid:
    """The cells whose names match a pattern with * and ?; without a pattern, all."""
    if pattern is None:
        return grid
    cells = tuple(cell for cell in grid.cells if fnmatch.fnmatchcase(cell.name, pattern))
    if not cells:
        raise mistake("only", pattern, "a pattern that some cell's name matches", "see the names with --list")
    return Grid(grid.name, grid.path, grid.quick, cells)


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
            say(plan.said(pending))
        if any(task.world == kernel.NAME for task in pending):
            try_kernel()
        # The folder is locked here, so these do not replace the scenarios of another sweep.
        for cell in plan.grid.cells:
            path = scenario_path(folder, cell).relative_to(folder)
            files.write(folder, str(path), json.dumps(cell.document, indent=1).encode())

    outcome = sweep.carry_out(plan.tasks, store, engine, attempts=plan.attempts, watch=watch, begin=begin)
    cells = [
        compare(cell, outcome.of(plan.sim(cell)), outcome.of(plan.kernel(cell))) for cell in plan.grid.cells
    ]
    by_name = {cell.name: cell for cell in plan.grid.cells}
    failures = [
        f"{one.task.name} failed: {one.reason}; repeat it with: "
        f"{repeating(folder, by_name[one.task.cell], one.task)}"
        for one in outcome.failed
    ]
    judge = quick_targets if plan.grid.quick else targets
    return Found(plan, cells, judge(cells), outcome.failed, [*failures, *_doubts(cells), *store.damaged])


def try_kernel() -> None:
    """Raises the error that keeps the kernel world from running here, before the long simulations."""
    document = {
        "duration": "100 ms",
        "path": {"rate": "1 Mbit/s", "rtt": "2 ms", "buffer": "10 KB"},
        "flows": [{"controller": "reno"}],
    }
    kernel.run_one(Job(from_document(document).alternatives[0], 1))


def repeating(folder: Path, cell: Cell, task: Task) -> str:
    """The command that repeats one run."""
    path = shlex.quote(str(scenario_path(folder, cell)))
    return f"fullpipe run {path} --world {task.world} --seed {task.job.seed}"


def scenario_path(folder: Path, cell: Cell) -> Path:
    """The path of a cell's scenario."""
    return folder / "scenarios" / f"{cell.slug}.json"


def _doubts(cells: Sequence[Compared]) -> list[str]:
    """The runs left out because they cannot be trusted, one line for each cell."""
    notes = [
        f"{cell.cell.name}: {len(cell.doubted)} of {len(cell.doubted) + len(cell.kernel)} kernel runs are "
        f"untrustworthy after {max(one.attempts for one in cell.doubted)} attempts and left out; the first: "
        f"{cell.doubted[0].untrustworthy[0]}"
        for cell in cells
        if cell.doubted
    ]
    if notes:
        runs = sum(len(cell.doubted) for cell in cells)
        unjudged = sum(bool(cell.doubted) and not cell.kernel for cell in cells)
        left_out, without = counted(runs, "kernel run"), counted(unjudged, "cell")
        notes.append(f"Left out: {left_out}. Without a kernel run that can be trusted: {without}.")
    return notes
