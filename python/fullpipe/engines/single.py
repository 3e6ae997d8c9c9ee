"""Runs kernel tasks one after the other, with nothing in parallel. compare, run and agree use it."""

import time
from collections.abc import Generator, Iterable

from fullpipe.engines import Done, Ended
from fullpipe.engines.task import Task
from fullpipe.worlds import kernel
from fullpipe.worlds.job import Progress, ignore_progress


class Single:
    """Runs kernel tasks alone. The first error ends the sweep and is raised unchanged."""

    def __init__(self, in_all: int, progress: Progress = ignore_progress) -> None:
        self._in_all, self._progress = in_all, progress

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        """Yields every task as it ends."""
        waiting = list(tasks)
        # Fewer tasks than in all: the others are done, and these are repetitions.
        done = self._in_all - len(waiting)
        for number, task in enumerate(waiting, done):
            self._progress(number)
            began = time.monotonic()
            run = kernel.run_one(task.job, lambda part, number=number: self._progress(number + part))  # type: ignore[misc]
            yield Done(task, run, time.monotonic() - began)
        self._progress(self._in_all)

    def cost(self, task: Task) -> float:
        """Runs."""
        del task
        return 1.0
