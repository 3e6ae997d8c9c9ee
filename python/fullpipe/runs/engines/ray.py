"""Runs simulations on a Ray cluster, one on each core of all its machines. Needs the extra `ray`.

Workers simulate with their own Fullpipe: they get specs and seeds and return records. A worker with another
build is refused, because its records might differ. Passing something to a worker takes a millisecond, so
short tasks are passed in batches. If a worker dies, its batch is repeated on another one. Each world
says whether it runs on clusters; the kernel world does not, because it measures wall time.
"""

import math
import os
import socket
import time
from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from fullpipe import plugins
from fullpipe.errors import SweepError, mistake
from fullpipe.measures.run import Run
from fullpipe.runs import machine
from fullpipe.runs.engines import Done, Ended, Failed
from fullpipe.runs.engines.task import Task
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.world import Stop, run_one
from fullpipe.scenario.scenario import Alternative

# How often a batch is repeated after its worker died. Then each of its tasks is tried alone, as often. A task
# that still has no result counts as failed, because it may kill workers.
RETRIES = 3
# Batches given to the cluster at a time for each core: enough that no core waits for this process.
_AHEAD_A_CORE = 4
# The work in a batch: long beside what passing it takes, and little to repeat.
_BATCH_S = 0.2
_MOST_IN_BATCH = 256
_TICK_S = 1.0
_TIMEOUT_S = 10.0
# A run without its alternative, which this process has, and its seconds; or why there is none.
_Answer: TypeAlias = tuple[Run, float] | str
_INSTALL = "install it with: pip install 'ray>=2.48'"


class Ray:
    """Runs simulations on the cluster at `address`, or on a new one on this machine.

    A task that fails is yielded, and the others go on.
    """

    def __init__(self, address: str | None = None, cores: int | None = None) -> None:
        # By default, Ray reports its usage to its makers.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError:
            raise mistake("engine", "ray", "an engine that is installed", _INSTALL) from None
        self._ray = ray
        self._address = address
        self._cores = cores or machine.cores()

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        """Yields every task when it ends."""
        # The longest first, so that no long one is left for the end.
        waiting = sorted(tasks, key=lambda task: -self.cost(task))
        for task in waiting:
            if not (world := registry.named(task.world)).on_clusters:
                raise SweepError(
                    f"{task.name} cannot run on a cluster; use --engine local for the {world.place}"
                )
            if task.job.alternative.own:
                raise SweepError(
                    f"{task.name} has a controller that is not built in, which workers do not have; "
                    "use --engine local"
                )
        builds = {name: registry.named(name).build() for name in {task.world for task in waiting}}
        waiting.reverse()
        self._connect()
        simulate = self._ray.remote(num_cpus=1, max_retries=RETRIES)(_simulate)
        cores = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        left_s = math.fsum(map(_expected_s, waiting))
        alone: list[Task] = []
        running: dict[Any, list[Task]] = {}
        try:
            while waiting or alone or running:
                while (waiting or alone) and len(running) < _AHEAD_A_CORE * cores:
                    # The last batches are small, so that all cores end together.
                    batch = [alone.pop()] if alone else _batch(waiting, left_s / (2 * cores))
                    left_s -= math.fsum(map(_expected_s, batch))
                    asked = [(task.world, task.job.alternative.spec_json, task.job.seed) for task in batch]
                    running[simulate.remote(builds, asked)] = batch
                ended, _ = self._ray.wait(list(running), timeout=_TICK_S)
                for reference in ended:
                    batch = running.pop(reference)
                    try:
                        answers = self._ray.get(reference)
                    except self._ray.exceptions.RayError as error:
                        if len(batch) > 1:
                            # One of them may be the cause, and the others are not to fail with it.
                            alone += batch
                            continue
                        answers = [self._reason(error)]
                    for number, (task, answer) in enumerate(zip(batch, answers, strict=True), 1):
                        yield _ended(task, answer, more=number < len(batch))
        finally:
            for reference in running:
                self._ray.cancel(reference, force=True)
            self._ray.shutdown()

    def cost(self, task: Task) -> float:
        """Seconds of a core."""
        return registry.named(task.world).cost_s(task.job, 1)

    def _connect(self) -> None:
        more: dict[str, Any] = {"address": self._address}
        if self._address is None:
            more = {"address": "local", "num_cpus": self._cores, "include_dashboard": False}
        try:
            if self._address is not None:
                _knock(self._address)
            self._ray.init(log_to_driver=False, logging_level="error", **more)
        # Ray raises errors of many kinds.
        except Exception as error:
            where = self._address or "a cluster on this machine"
            raise SweepError(
                f"cannot connect to {where}: {error}; check --ray-address and that Ray runs there"
            ) from None

    def _reason(self, error: Exception) -> str:
        if isinstance(error, self._ray.exceptions.WorkerCrashedError):
            return f"its worker died {RETRIES + 1} times"
        return str(error).splitlines()[0]


def _batch(waiting: list[Task], most_s: float) -> list[Task]:
    """Takes the next tasks: at least one, and as many as are little work together."""
    batch = [waiting.pop()]
    work_s = _expected_s(batch[0])
    while waiting and len(batch) < _MOST_IN_BATCH:
        work_s += _expected_s(waiting[-1])
        if work_s > min(_BATCH_S, most_s):
            break
        batch.append(waiting.pop())
    return batch


def _expected_s(task: Task) -> float:
    """The time of a core; of long tasks, only that they fill a batch."""
    return min(registry.named(task.world).cost_s(task.job, 1), _BATCH_S)


def _ended(task: Task, answer: _Answer, *, more: bool) -> Ended:
    if isinstance(answer, str):
        return Failed(task, answer, more)
    run, seconds = answer
    return Done(task, replace(run, alternative=task.job.alternative), seconds, more)


def _knock(address: str) -> None:
    """Raises an `OSError` if nothing listens there. Ray itself would wait forever."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_TIMEOUT_S).close()


def _simulate(builds: dict[str, str], asked: list[tuple[str, str, int]]) -> list[_Answer]:
    """On a worker: the answer to each world, spec and seed."""
    return [_answer(world, builds[world], spec_json, seed) for world, spec_json, seed in asked]


def _answer(name: str, build: str, spec_json: str, seed: int) -> _Answer:
    began = time.monotonic()
    try:
        world = registry.named(name)
        if (there := world.build()) != build:
            mismatch = f"{there}, here {build}"
            return f"a worker has another build of Fullpipe ({mismatch}); install the same everywhere"
        run = run_one(world, Job(Alternative("", spec_json), seed), Stop())
    except Exception as error:
        return plugins.message(error)
    except BaseException as error:
        # A broken invariant of the native half. Ray would treat it as the death of the worker.
        if type(error).__name__ != "PanicException":
            raise
        return f"a broken invariant, which is a mistake in Fullpipe: {plugins.message(error)}"
    return replace(run, alternative=Alternative("", "")), time.monotonic() - began
