"""Runs jobs of a world in virtual time: every core runs one at a time. compare, run and agree use it.

Results are in the order of the jobs, whatever order they finish in. Ctrl-C, or the first error, stops all of
them. The error is raised unchanged.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from fullpipe.measures.run import Run
from fullpipe.runs import machine
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe.runs.worlds.world import Stop, World, run_one

_TICK_S = 0.1


def run(
    world: World, jobs: Sequence[Job], progress: Progress = ignore_progress, workers: int | None = None
) -> list[Run]:
    """Runs the jobs and returns one run for each, in their order."""
    stop = Stop()
    pool = ThreadPoolExecutor(workers or machine.cores(), thread_name_prefix=f"fullpipe-{world.name}")
    futures = [pool.submit(run_one, world, job, stop) for job in jobs]
    try:
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=_TICK_S, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            progress(len(futures) - len(pending))
    finally:
        stop.set()
        # After Ctrl-C a run may still be encoding its record, which takes seconds if it is long.
        pool.shutdown(wait=not sys.exc_info()[0], cancel_futures=True)
    return [future.result() for future in futures]
