"""One run of a sweep, and the address under which its result is kept."""

import hashlib
import json
import math
import os
from dataclasses import dataclass
from functools import cached_property

from fullpipe import _native
from fullpipe.ask import path_facts
from fullpipe.worlds import kernel
from fullpipe.worlds.job import Job

# Part of every address. Raise it when the format of stored runs changes.
FORMAT = 1


@dataclass(frozen=True)
class Task:
    """One run to do. In the kernel world, each repetition has its own seed, which is also its number."""

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
        decisive = {
            "format": FORMAT,
            "world": self.world,
            "spec": self.job.alternative.digest,
            "seed": self.job.seed,
            "build": _native.build(self.world),
        }
        if self.world == kernel.NAME:
            decisive["kernel"] = os.uname().release
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    @property
    def rate_bps(self) -> float:
        """The highest rate of the path, which determines how much work its packets are."""
        facts = path_facts.of(self.job.alternative)
        # A path of unknown rate counts as if it needed the whole machine.
        return max(facts.forward_bps or 0.0, facts.reverse_bps or 0.0) or math.inf
