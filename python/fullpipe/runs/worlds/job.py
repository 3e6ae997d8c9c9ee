"""The request to a world, and how it reports progress."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from fullpipe import files
from fullpipe.runs.worlds.logs import Logs
from fullpipe.scenario import path_facts
from fullpipe.scenario.scenario import Alternative

# Called with runs done (a fraction while one is in progress), from the thread that started the world.
Progress: TypeAlias = Callable[[float], None]


@dataclass(frozen=True)
class Job:
    """One run to do."""

    alternative: Alternative
    # A world that is not deterministic gives each repetition its own: its number.
    seed: int
    # Where its packets are logged. A log changes nothing about the run, and so not its address either.
    logs: Logs | None = None

    @cached_property
    def rate_bps(self) -> float:
        """The highest rate of the path, which determines how much work its packets are."""
        facts = path_facts.of(self.alternative)
        # A path of unknown rate counts as if it needed the whole machine.
        return max(facts.forward_bps or 0.0, facts.reverse_bps or 0.0) or math.inf


def jobs(alternatives: Sequence[Alternative], seeds: Sequence[int]) -> list[Job]:
    """Every alternative with every seed, in the order that results keep."""
    return [Job(alternative, seed) for alternative in alternatives for seed in seeds]


def logged(wanted: Sequence[Job], logs: Logs | None) -> list[Job]:
    """The same jobs, each with files of its own."""
    if logs is None:
        return list(wanted)
    names = files.file_names(job.alternative.label for job in wanted)
    return [replace(job, logs=logs.named(names[job.alternative.label])) for job in wanted]


def ignore_progress(_done: float) -> None:
    """For callers that do not show progress."""
