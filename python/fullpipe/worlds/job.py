"""The request to a world, and how it reports progress."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fullpipe.ask.scenario import Alternative

# Called with runs done (a fraction while one is in progress), from the thread that started the world.
Progress: TypeAlias = Callable[[float], None]


@dataclass(frozen=True)
class Job:
    """One run to do."""

    alternative: Alternative
    seed: int


def jobs(alternatives: Sequence[Alternative], seeds: Sequence[int]) -> list[Job]:
    """Every alternative with every seed, in the order that results keep."""
    return [Job(alternative, seed) for alternative in alternatives for seed in seeds]


def ignore_progress(_done: float) -> None:
    """For callers that do not show progress."""
