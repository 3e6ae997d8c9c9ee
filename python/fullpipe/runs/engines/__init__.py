"""Engines execute the runs of a sweep. An engine decides where and in which order, which changes no result.

An engine knows nothing about stores and resuming. It takes tasks and yields each of them once, when it ends.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from fullpipe.measures.run import Run
from fullpipe.runs.engines.task import Task


@dataclass(frozen=True)
class Done:
    """A task and its result."""

    task: Task
    run: Run
    seconds: float
    # Whether another task ended already and is yielded at once, so that both can be stored together.
    more: bool = False


@dataclass(frozen=True)
class Failed:
    """A task that failed, and why."""

    task: Task
    reason: str
    more: bool = False  # As in `Done`.


Ended: TypeAlias = Done | Failed


class Engine(Protocol):
    """The interface of an engine."""

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        """Yields every task when it ends, in any order.

        An engine does one of two things with a task that fails, and its docstring says which. It yields
        `Failed` and goes on with the others, as engines for sweeps do. Or it raises the error unchanged and
        yields no other task, as `Single` does for callers that run few.

        Closing the generator, or an exception in it, ends the runs in progress.
        """
        ...

    def cost(self, task: Task) -> float:
        """How much of the engine's time a task takes, in any unit. Only estimates use it."""
        ...
