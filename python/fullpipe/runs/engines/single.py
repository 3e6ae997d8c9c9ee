"""Runs tasks one after the other, with nothing in parallel.

compare, run and agree use it for worlds in wall time, and for those in which no two runs are alike.
"""

import time
from collections.abc import Generator, Iterable
from functools import partial

from fullpipe.runs.engines import Done
from fullpipe.runs.engines.task import Task
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.job import Progress, ignore_progress
from fullpipe.runs.worlds.world import Stop, run_one


class Single:
    """Runs tasks alone. It yields no `Failed`: the first error ends the sweep and is raised unchanged."""

    def __init__(self, in_all: int, progress: Progress = ignore_progress) -> None:
        self._in_all, self._progress = in_all, progress

    def run(self, tasks: Iterable[Task]) -> Generator[Done, None, None]:
        """Yields every task as it ends, in the given order."""
        waiting = list(tasks)
        # Fewer tasks than in all: the others are done, and these are repetitions.
        done = self._in_all - len(waiting)
        for number, task in enumerate(waiting, done):
            self._progress(number)
            began = time.monotonic()
            report = partial(self._report, number)
            run = run_one(registry.named(task.world), task.job, Stop(), report)
            yield Done(task, run, time.monotonic() - began)
        self._progress(self._in_all)

    def cost(self, task: Task) -> float:
        """One: it counts runs."""
        del task
        return 1.0

    def _report(self, before: int, part: float) -> None:
        self._progress(before + part)
