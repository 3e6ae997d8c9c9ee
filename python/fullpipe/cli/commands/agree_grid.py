"""Implements `fullpipe agree --grid`."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from fullpipe import files
from fullpipe.agreement.grid import document, lines, run
from fullpipe.agreement.grid.rules import VERDICTS
from fullpipe.cli.sweep_progress import Watched
from fullpipe.errors import mistake
from fullpipe.report.grid import tables, write
from fullpipe.runs import sweep
from fullpipe.runs.engines.local import Local
from fullpipe.runs.limits import MOST_STORED_RUNS, check_runs
from fullpipe.runs.worlds import registry


def agree(
    plan: run.Plan,
    folder: Path,
    *,
    console: Console,
    errors: Console,
    say: Callable[[str], None],
    record: bool = False,
    larger: bool = False,
    as_json: bool = False,
) -> bool:
    """Runs the grid, prints and writes its results, and returns whether every target is met."""
    if record:
        lines.check()
        plan = replace(plan, record=True)
    try:
        with files.runs_kept(folder), Watched(errors, say, " and ".join(plan.worlds)) as watch:
            found = run.carry_out(plan, folder, say=watch.say, watch=watch)
    except KeyboardInterrupt:
        say(f"fullpipe: finished runs are kept in {folder}; the same command resumes")
        raise
    if as_json:
        print(json.dumps(write.as_dict(found), indent=2))
    else:
        console.print(tables.cells(found.cells, plan.worlds))
        print(VERDICTS)
        for note in found.notes:
            print(note)
        print()
        console.print(tables.targets(found.targets))
        print(found.verdict)
    with files.runs_kept(folder), errors.status("Drawing the page"):
        page = write.everything(found, folder)
    say(f"Report: {page}")
    if record:
        with files.runs_kept(folder):
            say(f"Recorded: {lines.record(found, larger=larger)}; `make docs` puts it into the pages")
    return found.met


def plan(
    grid: str,
    *,
    worlds: tuple[str, str] = registry.PAIR,
    quick: bool,
    only: str | None,
    seeds: int | None,
    repetitions: int | None,
    attempts: int | None,
    hosts: str | None = None,
) -> run.Plan:
    """The plan of a grid. Raises `ScenarioError` for invalid numbers."""
    seeds = run.SEEDS if seeds is None else seeds
    repetitions = run.REPETITIONS if repetitions is None else repetitions
    attempts = sweep.ATTEMPTS if attempts is None else attempts
    for name, given in {"seeds": seeds, "repetitions": repetitions, "attempts": attempts}.items():
        if given < 1:
            raise mistake(name, given, "a whole number from 1", "e.g. 3")
    loaded = run.only(document.load(grid, quick=quick, hosts=hosts), only)
    for name, given in {"seeds": seeds, "repetitions": repetitions}.items():
        check_runs(name, given, len(loaded.cells), MOST_STORED_RUNS, "cells")
    return run.Plan(loaded, seeds, repetitions, attempts, named=grid, only=only, worlds=worlds, hosts=hosts)


def listing(plan: run.Plan, console: Console, *, as_json: bool = False) -> None:
    """Prints the cells and how long they take. Runs nothing."""
    if as_json:
        print(json.dumps(write.plan_as_dict(plan, Local().takes_s(plan.tasks)), indent=2))
        return
    console.print(tables.listing(plan.grid))
    print(plan.message(plan.tasks))
