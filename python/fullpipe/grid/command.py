"""What `fullpipe agree --grid` does."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rich.console import Console

from fullpipe.engines.local import Local
from fullpipe.errors import mistake
from fullpipe.grid import document, run, tables, write
from fullpipe.sweeps import sweep
from fullpipe.sweeps.sweep import Progress
from fullpipe.watching import Watching

# Without a terminal, a line this often.
_LINE_EVERY_S = 60.0
# Wide enough for every cell in a line where nobody's window limits it.
_WIDTH = 220


def agree(
    plan: run.Plan,
    folder: Path,
    *,
    console: Console,
    errors: Console,
    say: Callable[[str], None],
    table: Path | None = None,
    as_json: bool = False,
) -> bool:
    """Carries the grid out, prints and writes what came out; whether every target is met."""
    if table is not None:
        write.check_markers(table)
    try:
        with _Progress(errors, say) as watch:
            found = run.carry_out(plan, folder, say=watch.say, watch=watch)
    except KeyboardInterrupt:
        say(f"fullpipe: what was run is kept in {folder}; the same command goes on from there")
        raise
    if as_json:
        print(json.dumps(write.as_dict(found), indent=2))
    else:
        if not console.is_terminal:
            console.width = _WIDTH
        console.print(tables.cells(found.cells))
        for note in found.notes:
            print(note)
        print()
        console.print(tables.targets(found.targets))
        print(found.verdict)
    with errors.status("Drawing the page"):
        page = write.everything(found, folder)
    say(f"Report: {page}")
    if table is not None:
        write.put_table(found, table)
        say(f"Table: {table}")
    return found.met


def plan(
    grid: str,
    *,
    quick: bool,
    only: str | None,
    seeds: int | None,
    repetitions: int | None,
    attempts: int | None,
) -> run.Plan:
    """What is to be run; mistakes in the numbers are found here."""
    seeds = run.SEEDS if seeds is None else seeds
    repetitions = run.REPETITIONS if repetitions is None else repetitions
    attempts = sweep.ATTEMPTS if attempts is None else attempts
    for name, given in {"seeds": seeds, "repetitions": repetitions, "attempts": attempts}.items():
        if given < 1:
            raise mistake(name, given, "a whole number from 1", "e.g. 3")
    loaded = run.only(document.load(grid, quick=quick), only)
    return run.Plan(loaded, seeds, repetitions, attempts, named=grid, only=only)


def listing(plan: run.Plan, console: Console, *, as_json: bool = False) -> None:
    """Prints the cells and how long they take, and runs nothing."""
    if as_json:
        print(json.dumps(write.plan_as_dict(plan, sum(map(Local().cost, plan.tasks))), indent=2))
        return
    console.print(tables.listing(plan.grid))
    print(plan.said(plan.tasks, Local()))


class _Progress:
    """A bar on a terminal; elsewhere a line now and then, for whoever reads the log."""

    def __init__(self, errors: Console, say: Callable[[str], None]) -> None:
        self._errors, self._line = errors, say
        self._watching = Watching(errors, patience_s=0)
        self._began = self._told = time.monotonic()

    def __enter__(self) -> "_Progress":
        self._watching.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watching.__exit__(kind, error, trace)

    def say(self, line: str) -> None:
        """Says something before the runs."""
        self._line(f"fullpipe: {line}")

    def __call__(self, progress: Progress) -> None:
        """Shows how far the sweep is."""
        count = f"{progress.runs} of {progress.runs_in_all} runs"
        if progress.again:
            count += f", {progress.again} to repeat"
        if progress.failed:
            count += f", {progress.failed} failed"
        if self._errors.is_terminal:
            self._watching.show("both worlds", progress.cost, progress.cost_in_all, count)
            return
        now = time.monotonic()
        if now - self._told >= _LINE_EVERY_S:
            self._told = now
            # Runs cost what they cost on a machine of one's own; this one may be slower.
            pace = (now - self._began) / progress.cost_here if progress.cost_here else 1.0
            left = run.minutes(pace * max(0.0, progress.cost_in_all - progress.cost))
            self._line(f"fullpipe: {count}, about {left} left")
