"""What would change the answer: the nearest value of each quantity from which another candidate is best.

Each quantity moves by factors of two in both directions, to 16 times and a sixteenth of its value, until a
candidate that was behind is clearly ahead of all that led. Bisection then narrows the place. All other
quantities stay as they are; a buffer in bandwidth-delay products moves with the path.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

from fullpipe.advisor.goals import Goal
from fullpipe.advisor.question import Question, shown
from fullpipe.advisor.ranking import FIRST, Ranking, ranked
from fullpipe.advisor.trials import Bench

_FACTORS = (2.0, 4.0, 8.0, 16.0)
_HALVINGS = 3
# Where a path without loss begins to have some.
_LEAST_LOSS = 1e-5
_MOST_LOSS = 0.2
_LEAST = {"rate": 1e5, "rtt": 0.1, "buffer": 3_000.0, "loss": 1e-6}
_MOST = {"rate": 4e10, "rtt": 2_000.0, "buffer": 1e9, "loss": _MOST_LOSS}


@dataclass(frozen=True)
class Crossing:
    """From `value` on, `ahead` is better than `behind`."""

    quantity: str
    below: bool  # Whether it is below `value`, not above.
    value: float
    ahead: str
    behind: str
    # How much of the new leader's score the old one lacks, where it was seen.
    lacks: float
    seen_at: float

    def __str__(self) -> str:
        side = "below" if self.below else "above"
        name = {"rtt": "round-trip time", "loss": "random loss"}.get(self.quantity, self.quantity)
        there = shown(self.quantity, self.seen_at)
        return (
            f"{side} {shown(self.quantity, self.value)} of {name}, {self.ahead} is ahead: "
            f"{self.behind} scores {100 * self.lacks:.0f} % less at {there}"
        )


def nearest(bench: Bench, question: Question, goal: Goal, now: Ranking, *, until_s: float) -> list[Crossing]:
    """The nearest crossing in each quantity and direction, as far as there is one and time to find it."""
    found: list[Crossing] = []
    path = question.numbers()
    for quantity in ("buffer", "rtt", "rate", "loss"):
        value = path.of(quantity)
        for below in (True, False):
            if quantity == "loss" and value == 0 and below:
                continue
            if time.monotonic() > until_s:
                return found
            crossing = _along(bench, question, goal, now, quantity, value, below=below)
            if crossing is not None:
                found.append(crossing)
    return found


def _steps(quantity: str, value: float, *, below: bool) -> Iterator[float]:
    start = value or _LEAST_LOSS / 2
    for factor in (*_FACTORS, *(2.0**power for power in range(5, 15) if quantity == "loss" and value == 0)):
        step = start / factor if below else start * factor
        if not _LEAST[quantity] <= step <= _MOST[quantity]:
            return
        yield step


def _along(
    bench: Bench, question: Question, goal: Goal, now: Ranking, quantity: str, value: float, *, below: bool
) -> Crossing | None:
    inside = value
    for outside in _steps(quantity, value, below=below):
        there = _ranking(bench, question, goal, quantity, outside)
        if _is_changed(now, there):
            break
        inside = outside
    else:
        return None
    seen = outside
    for _ in range(_HALVINGS):
        middle = math.sqrt(max(inside, _LEAST_LOSS / 4) * outside)
        ranking = _ranking(bench, question, goal, quantity, middle)
        if _is_changed(now, ranking):
            outside, there = middle, ranking
        else:
            inside = middle
    there = _ranking(bench, question, goal, quantity, seen)
    old = there.place(now.places[0].candidate)
    lacks = old.behind.mean / there.places[0].score.mean
    return Crossing(quantity, below, outside, there.places[0].candidate, old.candidate, lacks, seen)


def _ranking(bench: Bench, question: Question, goal: Goal, quantity: str, value: float) -> Ranking:
    (trials,) = bench.run([question.moved(quantity, value)], range(1, FIRST + 1), goal.needs)
    return ranked(goal, trials)


def _is_changed(now: Ranking, there: Ranking) -> bool:
    """Whether all that led are behind there."""
    return not set(now.leaders) & set(there.leaders)
