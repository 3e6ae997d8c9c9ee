"""One run of a sweep, and the address under which its result is kept."""

import hashlib
import json
import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fullpipe import _native
from fullpipe.cellular import OPPORTUNITY_BITS
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
        """The most that the path can carry, which decides how much work carrying its packets is."""
        spec = self.job.alternative.spec
        # Where it is unknown: as if it needed the machine for itself.
        return max(_rate_bps(spec["forward"]), _rate_bps(spec["reverse"])) or math.inf


def _rate_bps(elements: list[dict[str, Any]]) -> float:
    """The rate of the slowest link in a row, each at its fastest; zero where there is none."""
    return min((rate for element in elements for rate in _fastest_bps(element)), default=0.0)


def _fastest_bps(element: dict[str, Any]) -> list[float]:
    """The highest rate of a link, or the mean of one that follows a trace; none of other elements."""
    match element["kind"]:
        case "link":
            rate = element["rate_bps"]
            return [float(max(rate["initial"], *(change for _, change in rate.get("changes", [])), 0))]
        case "token_bucket":
            return [float(element["rate_bps"])]
        case "delivery_trace":
            times_ms = element["opportunities_ms"]
            return [len(times_ms) * OPPORTUNITY_BITS * 1e3 / times_ms[-1]]
    return []
