"""One run of a sweep, and the address under which its result is kept."""

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cached_property

from fullpipe import _native
from fullpipe.worlds import kernel
from fullpipe.worlds.job import Job

# Part of every address: to be raised when a stored run is written differently.
FORMAT = 1


@dataclass(frozen=True)
class Task:
    """One run to do. In the kernel world each repetition has a seed of its own, which also numbers it."""

    world: str
    job: Job
    alone: bool = False  # Whether nothing else may run beside it.

    @property
    def cell(self) -> str:
        """What the sweep calls the place this run belongs to."""
        return self.job.alternative.label

    @property
    def name(self) -> str:
        """What to call it in a sentence."""
        return f"{self.cell}, {self.world}, seed {self.job.seed}"

    @cached_property
    def key(self) -> str:
        """The address: a hash of what was asked, of who answers, and in which version."""
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
        """The highest rate of the path, which decides how much work carrying its packets is."""
        elements = [*self.job.alternative.spec["forward"], *self.job.alternative.spec["reverse"]]
        rates = [element["rate_bps"] for element in elements if element["kind"] == "link"]
        if not rates or any(element["kind"] == "delivery_trace" for element in elements):
            return float("inf")  # Unknown: as if it needed the machine for itself.
        changes = [change for rate in rates for _, change in rate.get("changes", [])]
        return float(max([*(rate["initial"] for rate in rates), *changes]))
