"""A qlog for each stage of a result: its record has all changes of the path, so that it can run again."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fullpipe import files
from fullpipe._native import WorldError
from fullpipe.conformance.results import CaseResults, Played, Result
from fullpipe.runs.engines import pool
from fullpipe.runs.worlds import log_size, registry
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.logs import LIMIT, Logs


def check(name: str) -> None:
    """Raises `WorldError` if a world writes no logs. Called before the cases are played."""
    world = registry.named(name)
    if not world.writes_logs:
        raise WorldError(f"the {world.place} writes no logs of packets; leave out --qlog")


def write(
    report: CaseResults,
    folder: Path,
    results: Sequence[Result] | None = None,
    *,
    log_limit: str | int = LIMIT,
    begin: Callable[[float], None] | None = None,
) -> tuple[list[Path], list[str]]:
    """Writes the files; returns their paths, and the cases that have none although they were played.

    `begin` is called with their estimated size before. A size above `log_limit` raises `ScenarioError`.
    Those of all its results, or of these. Their names have the controller, so that a folder can hold the logs
    of several.
    """
    check(report.world)
    world = registry.named(report.world)
    logs = Logs(qlog=folder)
    jobs, without, size = [], [], 0.0
    for one in report.results if results is None else results:
        for number, played in enumerate(one.played):
            if not played.repeatable:
                without.append(one.case.name)
                continue
            name = f"{files.shortened(report.controller)}-{one.case.name}"
            name = name if len(one.played) == 1 else f"{name}-{number + 1}"
            jobs.append(_job(played, logs.named(name)))
            size += log_size.of_runs(played.runs.runs, logs)
    log_size.check(size, log_limit)
    if begin is not None and jobs:
        begin(size)
    runs = pool.run(world, jobs)
    return [path for run in runs for path in run.logs], list(dict.fromkeys(without))


def _job(played: Played, logs: Logs) -> Job:
    (run,) = played.runs.runs
    return Job(run.alternative, run.seed, logs)
