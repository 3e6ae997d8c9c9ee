"""Delivery traces of a plausible cellular link, made and not recorded, in Mahimahi's form.

The rate changes every 100 ms. Its logarithm walks at random and is drawn back to where it began, so that the
rate varies by a factor of about two within seconds; it is bounded to a quarter and four times its middle.
Every 20 s on average there is an outage, which ends at a rate of once a second. Within the rates so drawn,
deliveries are a Poisson process. That shape, a Poisson process of wandering rate with outages that last, is
the one by which Sprout forecasts cellular links (Winstein, Sivaraman, Balakrishnan, NSDI 2013); the numbers
here are Fullpipe's own, and fitted to no operator. Where it matters how a certain network behaves, record it.

The number of deliveries is not left to chance: the mean rate is what was asked for, to an opportunity.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from fullpipe._native import ScenarioError
from fullpipe.errors import mistake
from fullpipe.scenario import Amount, from_document

# What one opportunity carries, in bits.
OPPORTUNITY_BITS = 1500 * 8
# The most that one trace may hold: eight minutes at 100 Mbit/s, some 25 MB.
MAX_OPPORTUNITIES = 4_000_000

# The rate changes this often, in milliseconds.
_STEP_MS = 100
# The share of its way back that the logarithm of the rate goes in a step: 5 s.
_REVERSION = 0.02
# Standard deviation of the logarithm in the long run, and where it is cut off.
_SPREAD = 0.6
_BOUND = math.log(4)
# How likely an outage begins in a step, and ends in one.
_OUTAGE_BEGINS = _STEP_MS / 20_000
_OUTAGE_ENDS = _STEP_MS / 1_000


def generate(*, mean: Amount, duration: Amount, seed: int = 1) -> list[int]:
    """The milliseconds of all opportunities of a trace. Same arguments, same trace.

    Args:
        mean: The mean rate over the whole trace, e.g. "10 Mbit/s".
        duration: How long the trace is before it repeats, e.g. "60 s"; a multiple of 100 ms.
        seed: Which of all such traces.
    """
    rate_bps, steps = _rate_bps(mean, duration), _steps(mean, duration)
    count = round(rate_bps * steps * _STEP_MS / 1000 / OPPORTUNITY_BITS)
    if not 1 <= count <= MAX_OPPORTUNITIES:
        expected = f"1 to {MAX_OPPORTUNITIES} opportunities of 1500 bytes, these would be {count}"
        raise mistake("mean", mean, expected, "choose another mean rate or duration")
    # Only `random()` gives the same numbers in every version of Python.
    draw = random.Random(seed).random
    ends = list(accumulate(_weights(steps, draw)))
    # Arrivals of a Poisson process whose number is known fall independently of each other. The last ends it.
    times = sorted(_time_ms((1 - draw()) * ends[-1], ends) for _ in range(count - 1))
    return [*times, steps * _STEP_MS]


def text(opportunities_ms: list[int]) -> str:
    """A trace in the form that Mahimahi reads: a line an opportunity."""
    return "".join(f"{time}\n" for time in opportunities_ms)


def _weights(steps: int, draw: Callable[[], float]) -> Iterator[float]:
    """The rate in each step, as a multiple of its middle."""
    shock = _SPREAD * math.sqrt(1 - (1 - _REVERSION) ** 2)
    logarithm, outage = 0.0, False
    for _ in range(steps):
        yield 0.0 if outage else math.exp(logarithm)
        outage = draw() >= _OUTAGE_ENDS if outage else draw() < _OUTAGE_BEGINS
        # Nearly normal: twelve uniform draws have a variance of one.
        normal = math.fsum(draw() for _ in range(12)) - 6
        logarithm = (1 - _REVERSION) * logarithm + shock * normal
        logarithm = min(max(logarithm, -_BOUND), _BOUND)


def _time_ms(part: float, ends: list[float]) -> int:
    """The whole millisecond by which this much of the sum of all steps has gone by."""
    step = bisect_left(ends, part)
    begin = ends[step - 1] if step else 0.0
    within = (part - begin) / (ends[step] - begin)
    return step * _STEP_MS + max(1, math.ceil(within * _STEP_MS))


def _rate_bps(mean: Amount, duration: Amount) -> int:
    try:
        return int(_spec(mean, duration)["forward"][0]["rate_bps"]["initial"])
    except ScenarioError as error:
        if error.field != "path.rate":
            raise
        raise mistake("mean", mean, error.expected or "a rate", 'write for example "10 Mbit/s"') from None


def _steps(mean: Amount, duration: Amount) -> int:
    steps, rest = divmod(int(_spec(mean, duration)["duration_ns"]), _STEP_MS * 1_000_000)
    if rest or not steps:
        raise mistake("duration", duration, f"a multiple of {_STEP_MS} ms", 'write for example "60 s"')
    return steps


def _spec(mean: Amount, duration: Amount) -> dict[str, Any]:
    """Amounts are read where those of scenarios are."""
    path = {"rate": mean, "rtt": "1 ms", "buffer": "1 MB"}
    return from_document({"duration": duration, "path": path, "compare": ["reno"]}).alternatives[0].spec
