"""Runs simulations on a Ray cluster, one on each core of all its machines. Needs the extra `ray`.

Workers simulate with their own Fullpipe: they get a spec and a seed and return a record. A worker with
another build is refused, because its records might differ. A task whose worker dies is repeated on another
one. The kernel world does not run on clusters, because it measures wall time.
"""

import os
import socket
import time
from collections.abc import Generator, Iterable
from typing import Any

from fullpipe import _native
from fullpipe.engines import Done, Ended, Failed
from fullpipe.engines.task import Task
from fullpipe.errors import SweepError, mistake
from fullpipe.results.runs import Run
from fullpipe.worlds import sim

# How often a task is repeated after its worker died. Then it counts as failed, because it may kill workers.
RETRIES = 3
# Tasks given to the cluster at a time for each core: enough that no core waits for this process.
_AHEAD_A_CORE = 4
_TICK_S = 1.0
_TIMEOUT_S = 10.0
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
        most = _AHEAD_A_CORE * max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        running: dict[Any, Task] = {}
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    task = waiting.pop()
                    asked = task.job.alternative.spec_json, task.job.seed, _native.build(sim.NAME)
                    running[simulate.remote(*asked)] = task
                ended, _ = self._ray.wait(list(running), timeout=_TICK_S)
                for reference in ended:
                    yield self._ended(running.pop(reference), reference)
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

    def _ended(self, task: Task, reference: Any) -> Ended:
        try:
            answer = self._ray.get(reference)
        except self._ray.exceptions.WorkerCrashedError:
            return Failed(task, f"its worker died {RETRIES + 1} times")
        except self._ray.exceptions.RayError as error:
            return Failed(task, str(error).splitlines()[0])
        if isinstance(answer, str):
            return Failed(task, answer)
        summary, flows, links, seconds = answer
        alternative, seed = task.job.alternative, task.job.seed
        return Done(task, Run.of(alternative, sim.NAME, seed, summary, flows, links), seconds)


def _knock(address: str) -> None:
    """Raises an `OSError` if nothing listens there. Ray itself would wait forever."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_TIMEOUT_S).close()


def _simulate(spec_json: str, seed: int, build: str) -> tuple[str, bytes, bytes, float] | str:
    """One run on a worker: summary, flows, links and seconds, or why there is none."""
    there = _native.build(sim.NAME)
    if there != build:
        return f"a worker has another build of Fullpipe ({there}, here {build}); install the same everywhere"
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
