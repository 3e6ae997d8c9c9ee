"""Runs tasks on this machine: first the simulations, one on each core, then the kernel runs, a few at a time.

A kernel run takes wall time. Several share the machine as long as the emulator can release all their packets
on time. The sum of their rates predicts that; the emulator's record of lateness decides. No simulation runs
at the same time.
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

from fullpipe import _native
from fullpipe.engines import Done, Ended, Failed
from fullpipe.engines.task import Task
from fullpipe.worlds import kernel, sim

_TICK_S = 0.1
# What the emulator released on time on each core: on two cores, two runs of 100 Mbit/s or sixteen slow ones.
# Of 129 runs, most of them next to another one of 100 Mbit/s, 106 were trustworthy at the first attempt, on a
# host that stalled now and then.
RATE_BPS_A_CORE = 100e6
RUNS_A_CORE = 8
# The most simulations that may have ended without being stored.
_AHEAD = 256
# Approximate wall time of a simulated second. Only estimates use it.
_SIMULATED_COST = 0.002


class Local:
    """Runs tasks on this machine's cores."""

    def __init__(self, cores: int | None = None) -> None:
        self._cores = cores or sim.cores()

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        """Yields every task when it ends."""
        waiting = self._in_order(tasks)
        simulated = [task for task in waiting if task.world == sim.NAME]
        del waiting[: len(simulated)]
        yield from self._simulate(simulated)
        cancel = _native.Cancel()
        stop: list[bool] = []
        running: dict[Future[Ended], Task] = {}
        pool = ThreadPoolExecutor(self._cores * RUNS_A_CORE, thread_name_prefix="fullpipe-run")
        try:
            while waiting or running:
                while (chosen := self._next(waiting, list(running.values()))) is not None:
                    waiting.remove(chosen)
                    running[pool.submit(_carry_out, chosen, cancel, stop)] = chosen
                ended, _ = wait(running, timeout=_TICK_S, return_when=FIRST_COMPLETED)
                for future in ended:
                    del running[future]
                    yield future.result()
        finally:
            cancel.set()
            stop.append(True)
            pool.shutdown(wait=True, cancel_futures=True)

    def _simulate(self, tasks: Sequence[Task]) -> Generator[Ended, None, None]:
        """Runs simulations, one on each core.

        Threads take the next task themselves. So the cores work while the caller stores what ended before.
        """
        waiting = deque(tasks)
        ended: SimpleQueue[Ended | BaseException] = SimpleQueue()
        # A sweep that is killed repeats the runs that ended and are not stored yet, so these are limited.
        room = Semaphore(_AHEAD)
        cancel = _native.Cancel()
        stop: list[bool] = []

        def work() -> None:
            while room.acquire() and not stop:
                try:
                    task = waiting.popleft()
                except IndexError:
                    return
                try:
                    ended.put(_carry_out(task, cancel, stop))
                except BaseException as error:
                    ended.put(error)

        pool = ThreadPoolExecutor(self._cores, thread_name_prefix="fullpipe-sim")
        try:
            for _ in range(min(self._cores, len(tasks))):
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
            cancel.set()
            stop.append(True)
            room.release(self._cores)
            pool.shutdown(wait=True, cancel_futures=True)

    def cost(self, task: Task) -> float:
        """Seconds of the machine, if it were always as busy as allowed."""
        length = task.job.alternative.duration_s
        if task.world == sim.NAME:
            return length * _SIMULATED_COST
        part = max(1 / (RUNS_A_CORE * self._cores), task.rate_bps / (RATE_BPS_A_CORE * self._cores))
        return length * (1.0 if task.alone else min(1.0, part))

    def takes_s(self, tasks: Iterable[Task], simulated_s: Callable[[Task], float] | None = None) -> float:
        """How long the tasks take here, in seconds. `simulated_s` may replace `cost` for simulations."""
        waiting = self._in_order(tasks)
        simulated = [(simulated_s or self.cost)(task) for task in waiting if task.world == sim.NAME]
        # A sweep takes at least as long as its longest run.
        now_s = max(math.fsum(simulated) / self._cores, max(simulated, default=0.0))
        del waiting[: len(simulated)]
        # A kernel run starts when the machine has capacity for it, and takes its duration.
        running: list[tuple[float, int, Task]] = []
        while waiting or running:
            while (chosen := self._next(waiting, [task for _, _, task in running])) is not None:
                waiting.remove(chosen)
                heapq.heappush(running, (now_s + chosen.job.alternative.duration_s, len(waiting), chosen))
            now_s, _, _ = heapq.heappop(running)
        return now_s

    def _in_order(self, tasks: Iterable[Task]) -> list[Task]:
        """Simulations before kernel runs, and the longest first, so that no long one is left for the end."""
        return sorted(tasks, key=lambda task: (task.world != sim.NAME, -self.cost(task)))

    def _next(self, waiting: Sequence[Task], running: Sequence[Task]) -> Task | None:
        """The first task that may run next to the running ones."""
        return next((task for task in waiting if self._fits(task, running)), None)

    def _fits(self, task: Task, running: Sequence[Task]) -> bool:
        if not running:
            return True
        if any(other.world != task.world for other in running):
            return False
        if task.world == sim.NAME:
            return len(running) < self._cores
        if task.alone or any(other.alone for other in running):
            return False
        carried = task.rate_bps + sum(other.rate_bps for other in running)
        return len(running) < RUNS_A_CORE * self._cores and carried <= RATE_BPS_A_CORE * self._cores


def _all_of(ended: "SimpleQueue[Ended | BaseException]") -> list[Ended | BaseException]:
    """What ended so far; waits until something has."""
    together = [ended.get()]
    with contextlib.suppress(Empty):
        while True:
            together.append(ended.get_nowait())
    return together


def _carry_out(task: Task, cancel: _native.Cancel, stop: list[bool]) -> Ended:
    """Runs one task on a thread of the pool."""

    def look_up(_done: float) -> None:
        if stop:
            raise _native.Cancelled

    began = time.monotonic()
    try:
        run = sim.run_one(task.job, cancel) if task.world == sim.NAME else kernel.run_one(task.job, look_up)
    except _native.Cancelled:
        raise
    except Exception as error:
        return Failed(task, str(error) or type(error).__name__)
    except BaseException as error:
        # A broken invariant of the native half. Only this run fails.
        if type(error).__name__ != "PanicException":
            raise
        return Failed(task, f"a broken invariant, which is a mistake in Fullpipe: {error}")
    return Done(task, run, time.monotonic() - began)
