"""Engines carry out the runs of a sweep. Where and in which order is theirs to decide; what comes out is not.

An engine knows nothing of stores and resuming: it takes tasks and yields each of them once, as it ends.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from fullpipe.results import Run
from fullpipe.sweeps.task import Task


@dataclass(frozen=True)
class Done:
    """A task and what it gave."""

    task: Task
    run: Run
    seconds: float


@dataclass(frozen=True)
class Failed:
    """A task that gave nothing, and why."""

    task: Task
    reason: str


Ended: TypeAlias = Done | Failed


class Engine(Protocol):
    """What a sweep asks of an engine."""

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        """Yields every task as it ends, in any order; a failed one does not stop the others.

        Closing the iterator, or an exception raised in it, ends the runs that are under way.
        """
        ...

    def cost(self, task: Task) -> float:
        """How much of the engine's time a task takes, in any unit: for estimates."""
        ...
