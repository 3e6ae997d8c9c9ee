"""Runs simulations on a Ray cluster, one on each core of all its machines. Needs the extra `ray`.

Workers simulate with their own Fullpipe: they get specs and seeds and return records. A worker with another
build is refused, because its records might differ. Passing something to a worker takes a millisecond, so
short tasks are passed in batches. If a worker dies, its batch is repeated on another one. The kernel world
does not run on clusters, because it measures wall time.
"""

import math
import os
import socket
import time
from collections.abc import Generator, Iterable
from typing import Any, TypeAlias

from fullpipe import _native
from fullpipe.engines import Done, Ended, Failed
from fullpipe.engines.task import Task
from fullpipe.errors import SweepError, mistake
from fullpipe.results.runs import Run
from fullpipe.worlds import sim

# How often a batch is repeated after its worker died. Then each of its tasks is tried alone, as often. A task
# that still has no result counts as failed, because it may kill workers.
RETRIES = 3
# Batches given to the cluster at a time for each core: enough that no core waits for this process.
_AHEAD_A_CORE = 4
# The work in a batch: long beside what passing it takes, and little to repeat.
_BATCH_S = 0.2
_MOST_IN_BATCH = 256
# For estimates: the time of a packet, with its losses (bench/README.md), and that of each run.
_PACKET_S = 100e-9
_RUN_S = 2e-4
# The bytes of a packet.
_PACKET_BYTES = 1500
_TICK_S = 1.0
_TIMEOUT_S = 10.0
# Summary, flows, links and seconds of a run, or why there is none.
_Answer: TypeAlias = tuple[str, bytes, bytes, float] | str
_INSTALL = "install it with: pip install 'ray>=2.48'"


class Ray:
    """Runs simulations on the cluster at `address`, or on a new one on this machine."""

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
        self._cores = cores or sim.cores()

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        """Yields every task when it ends."""
        # The longest first, so that no long one is left for the end.
        waiting = sorted(tasks, key=lambda task: -self.cost(task))
        if foreign := [task for task in waiting if task.world != sim.NAME]:
            raise SweepError(
                f"{foreign[0].name} cannot run on a cluster; use --engine local for the kernel world"
            )
        if own := [task for task in waiting if task.job.alternative.own]:
            raise SweepError(
                f"{own[0].name} has a controller that is not built in, which workers do not have; "
                "use --engine local"
            )
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
                    asked = [(task.job.alternative.spec_json, task.job.seed) for task in batch]
                    running[simulate.remote(_native.build(sim.NAME), asked)] = batch
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
        """Simulated time."""
        return task.job.alternative.duration_s

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
    """The time of a core, if the path is always full; of long tasks, only that they fill a batch."""
    packets = task.rate_bps * task.job.alternative.duration_s / 8 / _PACKET_BYTES
    return _RUN_S + min(packets * _PACKET_S, _BATCH_S)


def _ended(task: Task, answer: _Answer, *, more: bool) -> Ended:
    if isinstance(answer, str):
        return Failed(task, answer, more)
    summary, flows, links, seconds = answer
    run = Run.of(task.job.alternative, sim.NAME, task.job.seed, summary, flows, links)
    return Done(task, run, seconds, more)


def _knock(address: str) -> None:
    """Raises an `OSError` if nothing listens there. Ray itself would wait forever."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_TIMEOUT_S).close()


def _simulate(build: str, asked: list[tuple[str, int]]) -> list[_Answer]:
    """On a worker: the answer to each spec and seed."""
    there = _native.build(sim.NAME)
    if there != build:
        other = f"a worker has another build of Fullpipe ({there}, here {build}); install the same everywhere"
        return [other] * len(asked)
    return [_answer(spec_json, seed) for spec_json, seed in asked]


def _answer(spec_json: str, seed: int) -> _Answer:
    began = time.monotonic()
    try:
        summary, flows, links = _native.simulate(spec_json, seed)
    except Exception as error:
        return str(error) or type(error).__name__
    except BaseException as error:
        # A broken invariant of the native half. Ray would treat it as the death of the worker.
        if type(error).__name__ != "PanicException":
            raise
        return f"a broken invariant, which is a mistake in Fullpipe: {error}"
    return summary, flows, links, time.monotonic() - began
