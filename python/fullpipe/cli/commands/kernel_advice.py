"""`fullpipe kernel advice`."""

import math
import time
from pathlib import Path
from typing import Annotated

import typer

from fullpipe.cli.options import DISAGREE, AsJson, ReplaceLarger, check_folder, console, path, say
from fullpipe.cli.other_results import ADVICE, refuse_others
from fullpipe.runs import limits

# That of `fullpipe.advisor.kernel_check`, which takes a while to import; a test compares them.
PATHS = 120
_MOST_MINUTES = 10_000


def advice(
    paths: Annotated[int, typer.Option(help="How many random paths.")] = PATHS,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the paths.", show_default="from Fullpipe's version")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and runs.", show_default="out/advice", parser=path),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            help="Begin no run after this time, and report on those that are finished.",
            show_default="no limit",
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="In a checkout: put the results into results/advice.jsonl.")
    ] = False,
    replace_larger: ReplaceLarger = False,
    as_json: AsJson = False,
) -> None:
    """Test `fullpipe advise` against this kernel, on random paths.

    Every path is answered by simulation; then all candidates run over the kernel's TCP, in the same
    scenarios, two to five times. Each path is asked with one of the goals of `advise --for`, by
    which candidates get scores. An answer is right if the score of the advised one in the kernel is at most
    2 % below the best. The targets:
    of the answers that say "sure", 95 % are right; of those that say "likely", 80 %.
    docs/explanation/advisor-kernel.md has the criterion and a result. The 120 paths take an hour on an idle
    machine; an interrupted command resumes. Exit code 1: a target is not met.
    """
    from fullpipe import __version__, files
    from fullpipe.advisor import kernel_check, kernel_lines
    from fullpipe.cli.sweep_progress import Watched
    from fullpipe.errors import mistake
    from fullpipe.runs.store import Store

    if paths < 1:
        raise mistake("paths", paths, "a whole number from 1", f"e.g. {PATHS}")
    if minutes is not None and not 0 <= minutes <= _MOST_MINUTES:
        raise mistake("minutes", minutes, f"a number from 0 to {_MOST_MINUTES}", "e.g. 30")
    until_s = math.inf if minutes is None else time.monotonic() + 60 * minutes
    limits.check_runs(
        "paths", paths, len(kernel_check.CANDIDATES) * kernel_check.REPETITIONS[-1], limits.MOST_STORED_RUNS
    )
    if record:
        kernel_lines.check()
    folder = out or Path("out") / "advice"
    check_folder(folder)
    refuse_others(folder, ADVICE, lambda: "advice")
    files.make_folder(folder)
    try:
        with files.runs_kept(folder), Watched(console(stderr=True), say, "kernel") as watch:
            cases = kernel_check.draw(paths, kernel_check.seed_of(__version__) if seed is None else seed)
            found = kernel_check.hold(cases, Store(folder), until_s=until_s, say=watch.say, watch=watch)
    except KeyboardInterrupt:
        say(f"fullpipe: finished runs are kept in {folder}; the same command resumes")
        raise
    with files.runs_kept(folder):
        kernel_check.write(found, folder)
        if record:
            recorded = kernel_lines.record(found, kernel_lines.set_of(seed), larger=replace_larger)
            say(f"Recorded: {recorded}; `make docs` puts it into the page")
    print(found.to_json() if as_json else found.to_markdown().rstrip())
    say(f"Tables: {folder}")
    if not found.passed:
        raise typer.Exit(DISAGREE)
