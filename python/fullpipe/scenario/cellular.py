"""Delivery traces of a plausible cellular link, generated and not recorded, in Mahimahi's format.

The rate changes every 100 ms. Its logarithm is a random walk that is pulled back to its start, so that the
rate varies by a factor of about two within seconds; it is bounded to a quarter and four times its middle.
Every 20 s on average there is an outage, which ends at a rate of once a second. At the resulting rates,
deliveries are a Poisson process. This model, a Poisson process of varying rate with lasting outages, is the
one by which Sprout forecasts cellular links (Winstein, Sivaraman, Balakrishnan, NSDI 2013); the numbers here
are Fullpipe's own, and not fitted to any operator. To study a particular network, record it.

The number of deliveries is not random: the mean rate is exact to one opportunity.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any

from fullpipe.errors import mistake
from fullpipe.scenario.path_fields import Amount
from fullpipe.scenario.scenario import from_document

# Bits that one opportunity carries.
OPPORTUNITY_BITS = 1500 * 8
# The most that one delivery trace may hold: eight minutes at 100 Mbit/s, some 25 MB.
MAX_OPPORTUNITIES = 4_000_000

# The rate changes this often, in milliseconds.
_STEP_MS = 100
# How much of its distance to the middle the logarithm of the rate returns in a step: 5 s.
_REVERSION = 0.02
# Standard deviation of the logarithm in the long run, and where it is cut off.
_SPREAD = 0.6
_BOUND = math.log(4)
# The probability that an outage begins in a step, and that it ends in one.
_OUTAGE_BEGINS = _STEP_MS / 20_000
_OUTAGE_ENDS = _STEP_MS / 1_000


def generate(*, mean: Amount, duration: Amount, seed: int = 1) -> list[int]:
    """The milliseconds of all opportunities of a trace. The same arguments give the same trace.

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
    # Given their number, arrivals of a Poisson process are independent of each other. The last ends it.
    times = sorted(_time_ms((1 - draw()) * ends[-1], ends) for _ in range(count - 1))
    return [*times, steps * _STEP_MS]


def text(opportunities_ms: list[int]) -> str:
    """A trace in Mahimahi's format: one line for each opportunity."""
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
    """The whole millisecond at which the sum of the steps has reached this value."""
    step = bisect_left(ends, part)
    begin = ends[step - 1] if step else 0.0
    within = (part - begin) / (ends[step] - begin)
    return step * _STEP_MS + max(1, math.ceil(within * _STEP_MS))


def _rate_bps(mean: Amount, duration: Amount) -> int:
    return int(_spec(mean, duration)["forward"][0]["rate_bps"]["initial"])


def _steps(mean: Amount, duration: Amount) -> int:
    steps, rest = divmod(int(_spec(mean, duration)["duration_ns"]), _STEP_MS * 1_000_000)
    if rest or not steps:
        raise mistake("duration", duration, f"a multiple of {_STEP_MS} ms", 'write for example "60 s"')
    return steps


def _spec(mean: Amount, duration: Amount) -> dict[str, Any]:
    """A spec with these amounts, so that they are parsed like those of scenarios."""
    path = {"rate": mean, "rtt": "1 ms", "buffer": "1 MB"}
    document = {"duration": duration, "path": path, "compare": ["reno"]}
    return from_document(document, parameters={"path.rate": "mean"}).alternatives[0].spec
