"""What would change the answer: the nearest value of each quantity from which another candidate is best.

Each quantity moves by factors of two in both directions, to 16 times and a sixteenth of its value, until a
candidate that was behind is ahead of the winner; if nobody wins, until somebody does. Bisection then narrows
the place, unless the time is over. All other quantities stay as they are; a buffer in bandwidth-delay
products moves with the path.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fullpipe._native import ScenarioError
from fullpipe.advisor.goals import Goal
from fullpipe.advisor.question import Question, percent, shown
from fullpipe.advisor.ranking import FIRST, Ranking, ranked
from fullpipe.advisor.trials import Bench

_FACTORS = (2.0, 4.0, 8.0, 16.0)
# Paths that are this much more effort than the question, or the longest runs by default, are not tried.
_MOST_EFFORT = 4.0
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
            f"{side} about {shown(self.quantity, self.value)} of {name}, {self.ahead} is ahead: "
            f"{self.behind} scores {percent(self.lacks)} less at {there}"
        )


def nearest(
    bench: Bench,
    question: Question,
    goal: Goal,
    now: Ranking,
    *,
    until_s: float = math.inf,
    seeds: int = FIRST,
    begin: Callable[[str, float], None] = lambda _quantity, _done: None,
) -> tuple[list[Crossing], bool]:
    """The nearest crossing in each quantity and direction; and whether all of it was searched.

    Every path on the way has `seeds` seeds. `begin` is told of each quantity, and of the part that is done.
    """
    found: list[Crossing] = []
    path = question.numbers()
    directions = [
        (quantity, below)
        for quantity in ("buffer", "rtt", "rate", "loss")
        for below in (True, False)
        if not (quantity == "loss" and path.loss == 0 and below)
    ]
    seek = _Seek(bench, question, goal, now, range(1, seeds + 1), until_s)
    complete = True
    for number, (quantity, below) in enumerate(directions):
        begin(quantity, number / len(directions))
        try:
            crossing = seek.along(quantity, path.of(quantity), below=below)
        except _TooLong:
            complete = False
            continue
        if crossing is not None:
            found.append(crossing)
    return found, complete


class _TooLong(Exception):
    """A search would take too long."""


def _steps(quantity: str, value: float, *, below: bool) -> Iterator[float]:
    start = value or _LEAST_LOSS / 2
    for factor in (*_FACTORS, *(2.0**power for power in range(5, 15) if quantity == "loss" and value == 0)):
        step = start / factor if below else start * factor
        if not _LEAST[quantity] <= step <= _MOST[quantity]:
            return
        yield step


@dataclass(frozen=True)
class _Seek:
    """A search for crossings around one answer."""

    bench: Bench
    question: Question
    goal: Goal
    now: Ranking
    seeds: Sequence[int]
    until_s: float

    def along(self, quantity: str, value: float, *, below: bool) -> Crossing | None:
        """The nearest crossing in one direction; None without one. Raises `_TooLong` if it cannot know."""
        inside = value
        for outside in _steps(quantity, value, below=below):
            if self._over():
                raise _TooLong
            there = self._ranking(quantity, outside)
            if there is None:
                return None
            if self._is_changed(there):
                break
            inside = outside
        else:
            return None
        seen, new = outside, there
        for _ in range(_HALVINGS):
            if self._over():
                break
            middle = math.sqrt(max(inside, _LEAST_LOSS / 4) * outside)
            there = self._ranking(quantity, middle)
            if there is not None and self._is_changed(there):
                outside = middle
            else:
                inside = middle
        ahead = new.places[0].candidate
        old = new.place(next(name for name in self.now.leaders if name != ahead))
        lacks = old.behind.mean / new.places[0].score.mean
        return Crossing(quantity, below, outside, ahead, old.candidate, lacks, seen)

    def _over(self) -> bool:
        return time.monotonic() > self.until_s

    def _ranking(self, quantity: str, value: float) -> Ranking | None:
        """The ranking with another value; None if there cannot be such a path."""
        moved = self.question.moved(quantity, value)
        try:
            if moved.effort > _MOST_EFFORT * max(1.0, self.question.effort):
                raise _TooLong
            (trials,) = self.bench.run([moved], self.seeds, self.goal.needs)
        except ScenarioError:
            return None
        return ranked(self.goal, trials)

    def _is_changed(self, there: Ranking) -> bool:
        """Whether the winner is behind there; if nobody wins, whether somebody does there."""
        if self.now.winner is None:
            return there.winner is not None
        return self.now.winner not in there.leaders
