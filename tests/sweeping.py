"""What tests of stores, sweeps and engines share: small runs, a scripted engine, and ways to harm files."""

import json
import os
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from fullpipe.runs.engines import Done, Ended, Failed
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from fullpipe.runs.worlds import sim
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.world import Stop
from fullpipe.scenario import scenario


def job(seed: int = 1, *, name: str = "a", rate: str = "5 Mbit/s", duration: str = "200 ms") -> Job:
    loaded = scenario.from_document(
        {
            "name": name,
            "duration": duration,
            "path": {"rate": rate, "rtt": "10 ms"},
            "flows": [{"controller": "reno"}],
        }
    )
    return Job(loaded.alternatives[0], seed)


def tasks(count: int, world: str = sim.NAME) -> list[Task]:
    return [Task(world, job(seed)) for seed in range(1, count + 1)]


def logged(folder: Path, event: str = "ran") -> Counter[str]:
    path = folder / "log.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return Counter(one["key"] for one in map(json.loads, lines) if one["event"] == event)


def kept_in(folder: Path) -> Counter[str]:
    """How many records each run has whose newest one is undamaged."""
    store = Store(folder)
    assert store._known() is not None
    return Counter({key: len(places) for key, places in store._known().items() if places})


class Scripted:
    """An engine that simulates, with the given doubts and failures, and remembers its tasks.

    All of its tasks end `together`, or each alone.
    """

    def __init__(self, doubts: int = 0, failing: Iterable[int] = (), *, together: bool = False) -> None:
        self.given: list[Task] = []
        self._doubts, self._failing, self._together = doubts, set(failing), together

    def cost(self, task: Task) -> float:
        return 1.0

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        tasks = list(tasks)
        for number, task in enumerate(tasks, 1):
            more = self._together and number < len(tasks)
            self.given.append(task)
            if task.job.seed in self._failing:
                yield Failed(task, "it broke", more)
                continue
            run = sim.WORLD.run(task.job, Stop())
            often = sum(one.key == task.key for one in self.given)
            if often <= self._doubts:
                run.summary["provenance"]["untrustworthy"] = ["late"]
            yield Done(task, run, 0.1, more)


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in (folder / "runs").iterdir())


def damage(path: Path, at: int) -> None:
    """Flips a bit."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def flipped_bits(path: Path) -> Iterator[None]:
    """Flips each bit of a file in turn."""
    file = os.open(path, os.O_RDWR)
    for bit in range(8 * os.fstat(file).st_size):
        (before,) = os.pread(file, 1, bit // 8)
        os.pwrite(file, bytes([before ^ 1 << bit % 8]), bit // 8)
        yield
        os.pwrite(file, bytes([before]), bit // 8)
    os.close(file)
