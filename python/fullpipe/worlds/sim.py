"""The simulator: every core runs one job at a time, because the native half releases the GIL.

Results are in the order of the jobs, whatever order they finish in. Ctrl-C, or the first error, stops all of
them.
"""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from fullpipe import _native
from fullpipe.ask.controllers import Brought
from fullpipe.ask.scenario import Alternative
from fullpipe.results.runs import Run
from fullpipe.worlds.job import Job, Progress, ignore_progress

NAME = "sim"
_TICK_S = 0.1


def run(jobs: Sequence[Job], progress: Progress = ignore_progress, workers: int | None = None) -> list[Run]:
    """Runs the jobs and returns one run for each, in their order."""
    cancel = _native.Cancel()
    pool = ThreadPoolExecutor(workers or cores(), thread_name_prefix="fullpipe-sim")
    futures = [pool.submit(run_one, job, cancel) for job in jobs]
    try:
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=_TICK_S, return_when=FIRST_EXCEPTION)
            for future in finished:
                future.result()
            progress(len(futures) - len(pending))
    finally:
        cancel.set()
        # After Ctrl-C a run may still be encoding its record, which takes seconds if it is long.
        pool.shutdown(wait=not sys.exc_info()[0], cancel_futures=True)
    return [future.result() for future in futures]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_one(job: Job, cancel: _native.Cancel) -> Run:
    """Runs one job on the calling thread, until it is done or cancelled."""
    alternative = job.alternative
    if alternative.own:
        answer = _native.simulate_with(alternative.spec_json, job.seed, brought(alternative), cancel)
    else:
        answer = _native.simulate(alternative.spec_json, job.seed, cancel)
    summary, flows, links = answer
    return Run.of(job.alternative, NAME, job.seed, summary, flows, links)


def brought(alternative: Alternative) -> list[Brought]:
    """A new controller for each flow whose controller is not built in."""
    own = {one.text: one for one in alternative.own}
    if not own:
        return []
    texts = [flow["controller"] for flow in alternative.spec["flows"]]
    return [own[text].plug(flow) for flow, text in enumerate(texts) if text in own]
