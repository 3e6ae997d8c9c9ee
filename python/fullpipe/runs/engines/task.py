"""One run of a sweep, and the address under which its result is kept."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.job import Job

# Part of every address. Raise it when the format of stored runs changes.
FORMAT = 1


@dataclass(frozen=True)
class Task:
    """One run to do, in the world of that name."""

    world: str
    job: Job
    alone: bool = False  # Whether no other run may use the machine at the same time.

    @property
    def cell(self) -> str:
        """The name of the cell that this run belongs to."""
        return self.job.alternative.label

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{self.cell}, {self.world}, seed {self.job.seed}"

    @cached_property
    def key(self) -> str:
        """The address: a hash of the request, the world and its build."""
        world = registry.named(self.world)
        decisive = {
            **world.surroundings(),
            "format": FORMAT,
            "world": self.world,
            "spec": self.job.alternative.digest,
            "seed": self.job.seed,
            "build": world.build(),
        }
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def check_ready(tasks: Iterable[Task]) -> None:
    """Raises the error that keeps a world from running here, before the runs of the others."""
    for name in dict.fromkeys(task.world for task in tasks):
        registry.named(name).ready()
