"""A store that keeps runs in memory, for sweeps that are never resumed."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fullpipe.measures.run import Run
from fullpipe.runs.engines import Done
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Place, Store, Stored


@dataclass(frozen=True)
class _Held(Stored):
    whole: Run

    def run(self) -> Run:
        return replace(self.whole, alternative=self.task.job.alternative)


class Memory(Store):
    """Finished runs in memory. It begins empty."""

    def __init__(self) -> None:
        super().__init__(Path())

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Locks nothing: no other sweep can use this store."""
        yield

    def find(self, task: Task) -> None:
        """Always None: nothing was kept before."""
        del task

    def keep(self, ended: Sequence[tuple[Done, int]], *, left: int = 1) -> list[Stored]:
        """Keeps runs, in place of earlier attempts at them."""
        del left
        return [
            _Held(done.task, Place(Path()), attempts, done.seconds, done.run.summary, done.run)
            for done, attempts in ended
        ]

    def log(self, event: str, task: Task, **more: object) -> None:
        """Does nothing: this store has no log."""
