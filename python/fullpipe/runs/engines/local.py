"""Runs tasks on this machine: first those in virtual time, one on each core, then those in wall time.

How many of the latter fit on the machine at once, their world says. Nothing of another world runs meanwhile.
"""

import contextlib
import heapq
import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Semaphore

import fullpipe._native as _native
from fullpipe import plugins
from fullpipe.runs import machine
from fullpipe.runs.engines import Done, Ended, Failed
from fullpipe.runs.engines.task import Task
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.world import Stop, run_one

_TICK_S = 0.1
# The most runs in virtual time that may have ended without being stored.
_AHEAD = 256
# Threads for each core: more than any world wants to run at once.
_THREADS_A_CORE = 64


class Local:
    """Runs tasks on this machine's cores. A task that fails is yielded, and the others go on."""

    def __init__(
        self,
        cores: int | None = None,
        *,
        at_most: int | None = None,
        limit_s: Callable[[Task], float] = lambda _task: math.inf,
    ) -> None:
        self.cores = cores or machine.cores()
        # How long a task may take, in seconds of real time. One that takes longer is ended, and fails.
        self._limit_s = limit_s
        # How many runs in wall time share the machine, besides what their world says.
        self._at_most = at_most

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        """Yields every task when it ends."""
        waiting = self._in_order(tasks)
        virtual = [task for task in waiting if not _wall_time(task)]
        del waiting[: len(virtual)]
        yield from self._in_virtual_time(virtual)
        stop = Stop()
        running: dict[Future[Ended], Task] = {}
        pool = ThreadPoolExecutor(self.cores * _THREADS_A_CORE, thread_name_prefix="fullpipe-run")
        try:
            while waiting or running:
                while (chosen := self._next(waiting, list(running.values()))) is not None:
                    waiting.remove(chosen)
                    running[pool.submit(_carry_out, chosen, stop, self._limit_s(chosen))] = chosen
                ended, _ = wait(running, timeout=_TICK_S, return_when=FIRST_COMPLETED)
                for future in ended:
                    del running[future]
                    yield future.result()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _in_virtual_time(self, tasks: Sequence[Task]) -> Generator[Ended, None, None]:
        """Runs tasks in virtual time, one on each core.

        Threads take the next task themselves. So the cores work while the caller stores what ended before.
        """
        waiting = deque(tasks)
        ended: SimpleQueue[Ended | BaseException] = SimpleQueue()
        # A sweep that is killed repeats the runs that ended and are not stored yet, so these are limited.
        room = Semaphore(_AHEAD)
        stop = Stop()

        def work() -> None:
            while room.acquire() and not stop.is_set:
                try:
                    task = waiting.popleft()
                except IndexError:
                    return
                try:
                    ended.put(_carry_out(task, stop, self._limit_s(task)))
                except BaseException as error:
                    ended.put(error)

        pool = ThreadPoolExecutor(self.cores, thread_name_prefix="fullpipe-virtual")
        try:
            for _ in range(min(self.cores, len(tasks))):
                pool.submit(work)
            left = len(tasks)
            while left:
                together = _all_of(ended)
                left -= len(together)
                for number, one in enumerate(together, 1):
                    if isinstance(one, BaseException):
                        raise one
                    more = number < len(together) and not isinstance(together[number], BaseException)
                    yield replace(one, more=more) if more else one
                # The caller comes back for more when it has stored these.
                room.release(len(together))
        finally:
            stop.set()
            room.release(self.cores)
            pool.shutdown(wait=True, cancel_futures=True)

    def cost(self, task: Task) -> float:
        """Seconds of a core, or in wall time of the machine if it were always as busy as allowed."""
        if task.alone and _wall_time(task):
            return task.job.alternative.duration_s
        return registry.named(task.world).cost_s(task.job, self.cores)

    def takes_s(self, tasks: Iterable[Task]) -> float:
        """How long the tasks take here, in seconds."""
        by_cost = self._by_cost(tasks)
        waiting = [task for task, _ in by_cost]
        virtual = [cost for task, cost in by_cost if not _wall_time(task)]
        # A sweep takes at least as long as its longest run.
        now_s = max(math.fsum(virtual) / self.cores, max(virtual, default=0.0))
        del waiting[: len(virtual)]
        # A run in wall time starts when the machine has capacity for it, and takes its duration.
        running: list[tuple[float, int, Task]] = []
        while waiting or running:
            while (chosen := self._next(waiting, [task for _, _, task in running])) is not None:
                waiting.remove(chosen)
                heapq.heappush(running, (now_s + chosen.job.alternative.duration_s, len(waiting), chosen))
            now_s, _, _ = heapq.heappop(running)
        return now_s

    def _in_order(self, tasks: Iterable[Task]) -> list[Task]:
        """Virtual time before wall time, and the longest first, so that no long one is left for the end."""
        return [task for task, _ in self._by_cost(tasks)]

    def _by_cost(self, tasks: Iterable[Task]) -> list[tuple[Task, float]]:
        costs = [(task, self.cost(task)) for task in tasks]
        return sorted(costs, key=lambda one: (_wall_time(one[0]), -one[1]))

    def _next(self, waiting: Sequence[Task], running: Sequence[Task]) -> Task | None:
        """The first task that may run next to the running ones."""
        refused = None
        for task in waiting:
            # The next one is often a repetition of it, which fits no better.
            if task.job.alternative is not refused:
                if self._fits(task, running):
                    return task
                refused = task.job.alternative
        return None

    def _fits(self, task: Task, running: Sequence[Task]) -> bool:
        if not running:
            return True
        if any(other.world != task.world or other.alone for other in running) or task.alone:
            return False
        if self._at_most is not None and len(running) >= self._at_most:
            return False
        return registry.named(task.world).fits(task.job, [other.job for other in running], self.cores)


def _all_of(ended: "SimpleQueue[Ended | BaseException]") -> list[Ended | BaseException]:
    """What ended so far; waits until something has."""
    together: list[Ended | BaseException] = []
    while not together:
        # With a limit, because polars' own handler of an interrupt does not wake who waits.
        with contextlib.suppress(Empty):
            together.append(ended.get(timeout=_TICK_S))
    with contextlib.suppress(Empty):
        while True:
            together.append(ended.get_nowait())
    return together


def _wall_time(task: Task) -> bool:
    return registry.named(task.world).wall_time


def _carry_out(task: Task, stop: Stop, limit_s: float) -> Ended:
    """Runs one task on a thread of the pool."""
    began = time.monotonic()
    try:
        with stop.within(limit_s) as own:
            run = run_one(registry.named(task.world), task.job, own)
    except _native.Cancelled:
        if stop.is_set:
            raise
        if time.monotonic() - began >= limit_s:
            return Failed(task, f"it ran for more than {limit_s:g} s, its time limit")
        return Failed(task, "it was cancelled, which nobody asked for")
    # Only this run fails, whatever a controller or a world of the user's own raises.
    except BaseException as error:
        if plugins.is_interrupt(error):
            raise
        if type(error).__name__ == "PanicException":
            reason = f"a broken invariant, which is a mistake in Fullpipe: {plugins.message(error)}"
        else:
            reason = plugins.message(error) if isinstance(error, Exception) else plugins.described(error)
        return Failed(task, reason)
    return Done(task, run, time.monotonic() - began)
