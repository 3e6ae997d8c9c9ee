"""Generates flows from what `ccwg25` states about a MAWI capture (2020/06/10, 15 minutes at 10 Gbit/s).

It states three numbers: 890 000 TCP flows; 90 % of them smaller than 18.2 KB; a byte chosen at random belongs
with 90 % probability to a flow over 6.4 MB. They leave the shape open, and thus the mean load. Chosen here:

* Arrivals are a Poisson process.
* Sizes below 18.2 KB are log-uniform from 100 bytes on. The largest tenth is a bounded Pareto distribution
  from 18.2 KB on, the usual shape of what is sent over the Internet (Crovella and Bestavros, "Self-similarity
  in World Wide Web traffic", IEEE/ACM ToN 5(6), 1997).
* The mean load is 2 Gbit/s of payload, two thirds of the 3 Gbit/s of the replay: queues form, and the link is
  not overloaded. Exponent and largest size of the Pareto distribution then follow from the stated numbers
  (`fit`): 0.66 and 5.9 GB.
* Nothing is stated about pauses. A flow has one more transfer for each head in a row of coin tosses, cut at
  places that are uniform over its segments, after pauses that are log-uniform from 100 ms to 10 s.

Sizes are not random: the distribution is divided into as many equally likely classes as there are flows, and
each flow has the mean size of one class. So a short slice of arrivals also has the stated mean load; in a
sample of independent draws, the load would depend on the few largest flows.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import polars as pl

from fullpipe.scenario.flow_lists.flow_list import SCHEMA
from fullpipe.scenario.flow_lists.models import shuffled

FLOWS, SECONDS = 890_000, 900
SMALL_BYTES, SMALL_PART = 18_200, 0.9
LARGE_BYTES, LARGE_PART = 6_400_000, 0.9
LOAD_BPS = 2e9

_LEAST_BYTES = 100
_SEGMENT_BYTES = 1448
_PAUSE_S = (0.1, 10.0)


@dataclass(frozen=True)
class Sizes:
    """The distribution of flow sizes."""

    exponent: float
    largest: float

    @property
    def mean(self) -> float:
        """Bytes."""
        return self.bytes_below(1.0)

    def bytes_below(self, part: float) -> float:
        """The contribution to the mean of the smallest flows, which are this share of all."""
        ratio = SMALL_BYTES / _LEAST_BYTES
        small = min(part, SMALL_PART) / SMALL_PART
        mice: float = SMALL_PART * _LEAST_BYTES * (ratio**small - 1) / math.log(ratio)
        return mice if part <= SMALL_PART else mice + self._tail_below(self.quantile(part))

    def byte_part_above(self, size: float) -> float:
        """The share of all bytes in flows over a size, which is at least 18.2 KB."""
        return (self._tail_below(self.largest) - self._tail_below(size)) / self.mean

    def quantile(self, part: float) -> float:
        """The size below which this share of the flows is."""
        if part < SMALL_PART:
            return float(_LEAST_BYTES * (SMALL_BYTES / _LEAST_BYTES) ** (part / SMALL_PART))
        inner = (part - SMALL_PART) / (1 - SMALL_PART)
        return float(SMALL_BYTES * (1 - inner * self._cut) ** (-1 / self.exponent))

    @property
    def _cut(self) -> float:
        """The share of an unbounded Pareto distribution that is within the bound."""
        return float(1 - (SMALL_BYTES / self.largest) ** self.exponent)

    def _tail_below(self, size: float) -> float:
        """The contribution to the mean of the flows from 18.2 KB up to a size."""
        rest = 1 - self.exponent
        grown = (size / SMALL_BYTES) ** rest - 1
        return float((1 - SMALL_PART) * self.exponent / rest * SMALL_BYTES * grown / self._cut)


@cache
def fit() -> Sizes:
    """The distribution that has the stated numbers and the chosen load."""
    mean = LOAD_BPS * SECONDS / 8 / FLOWS

    def with_mean(exponent: float) -> Sizes:
        return Sizes(exponent, _root(lambda most: Sizes(exponent, most).mean - mean, SMALL_BYTES * 2, 1e15))

    exponent = _root(lambda one: with_mean(one).byte_part_above(LARGE_BYTES) - LARGE_PART, 0.5, 0.8)
    return with_mean(exponent)


def seconds(flows: float) -> float:
    """How long the capture took for that many flows."""
    return flows * SECONDS / FLOWS


def draw(*, flows: int, seconds: float, seed: int = 1) -> pl.DataFrame:
    """A list of that many flows over that time. The same arguments give the same list."""
    # Only `random()` gives the same numbers in every version of Python.
    uniform = random.Random(seed).random
    sizes = fit()
    below = [flows * sizes.bytes_below(number / flows) for number in range(flows + 1)]
    drawn = shuffled([max(1, round(after - before)) for before, after in pairwise(below)], uniform)
    # Given their number, arrivals of a Poisson process are independent of each other.
    starts_ns = sorted(round(uniform() * seconds * 1e9) for _ in range(flows))
    rows: list[tuple[int, int, int, int]] = []
    for flow, (start_ns, size) in enumerate(zip(starts_ns, drawn, strict=True)):
        at_ns, pause_ns = start_ns, 0
        for part in _parts(size, uniform):
            at_ns += pause_ns
            rows.append((flow, at_ns, pause_ns, part))
            least, most = _PAUSE_S
            pause_ns = round(least * (most / least) ** uniform() * 1e9)
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _parts(size: int, uniform: Callable[[], float]) -> list[int]:
    """A flow's transfers."""
    segments = -(-size // _SEGMENT_BYTES)
    pauses = 0
    while pauses < segments - 1 and uniform() < 0.5:
        pauses += 1
    cuts = sorted({1 + int(uniform() * (segments - 1)) for _ in range(pauses)})
    ends = [*(cut * _SEGMENT_BYTES for cut in cuts), size]
    return [end - begin for begin, end in pairwise([0, *ends])]


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """The only zero of a function between two positive numbers, by bisection of logarithms."""
    rising = function(high) > 0
    assert rising != (function(low) > 0), "the root is within the bounds"
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if (function(middle) > 0) == rising else (middle, high)
    return math.sqrt(low * high)
