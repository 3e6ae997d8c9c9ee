"""What `fullpipe agree --grid` does."""

import json
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from fullpipe.engines.local import Local
from fullpipe.errors import mistake
from fullpipe.grid import document, run, tables, write
from fullpipe.sweeps import sweep
from fullpipe.sweeps.watched import Watched

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
        with Watched(errors, say, "both worlds") as watch:
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
        print(json.dumps(write.plan_as_dict(plan, Local().takes_s(plan.tasks)), indent=2))
        return
    console.print(tables.listing(plan.grid))
    print(plan.said(plan.tasks))
