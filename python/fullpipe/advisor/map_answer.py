"""A decision map in plain values: the answer at every point of two quantities."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from fullpipe.advisor import goals
from fullpipe.advisor.question import Numbers, Question, percent, shown
from fullpipe.advisor.ranking import Ranking
from fullpipe.advisor.tree import Tree
from fullpipe.scenario.path import OPTIONS
from fullpipe.text import joined

UNCLEAR = "no clear winner"
_UNITS = {"rate": "bit/s", "duration": "ms", "size": "bytes", "probability": "probability"}
UNITS = {one.name: _UNITS[one.shape] for one in OPTIONS if one.range}


@dataclass(frozen=True)
class Point:
    """The answer at one place of the map."""

    x: int
    y: int
    path: Numbers
    ranking: Ranking

    @property
    def winner(self) -> str | None:
        """Who is clearly best there, if anybody."""
        return self.ranking.winner

    @property
    def ahead(self) -> float:
        """By how much of its score the first one is ahead of the next."""
        return self._part(self.ranking.places[1].behind.mean)

    @property
    def ahead_ci95(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of `ahead`; None with one seed."""
        behind = self.ranking.places[1].behind
        if behind.low is None or behind.high is None:
            return None
        return self._part(behind.low), self._part(behind.high)

    @property
    def verdict(self) -> str:
        """Who is best and by how much, or that nobody is and how far apart the leaders are."""
        if self.winner is not None:
            return f"{self.winner} by {percent(self.ahead)}"
        return f"{UNCLEAR} between {joined(list(self.ranking.leaders))}, within {percent(self.apart)}"

    @property
    def apart(self) -> float:
        """By how much of its score the first one is ahead of the last that nobody clearly beats."""
        return max(self._part(self.ranking.place(name).behind.mean) for name in self.ranking.leaders)

    def _part(self, score: float) -> float:
        best = self.ranking.places[0].score.mean
        return score / best if best else 0.0


@dataclass(frozen=True)
class MapAnswer:
    """Who is best where, in plain values.

    Values of the axes are in the units of `Numbers`, those of a buffer in BDP if it is `relative`.
    """

    question: Question
    goal: goals.Goal
    world: str
    x: str
    y: str
    x_values: tuple[float, ...]
    y_values: tuple[float, ...]
    points: tuple[Point, ...]
    seeds: int
    relative: bool = False
    tree: Tree | None = None  # If it was asked for.

    def unit(self, quantity: str) -> str:
        """The unit of an axis."""
        return "BDP" if self.relative and quantity == "buffer" else UNITS[quantity]

    def shown(self, quantity: str) -> list[str]:
        """The values of an axis for people, with as many digits as it takes to tell them apart."""
        values = self.x_values if quantity == self.x else self.y_values
        message: list[str] = []
        for digits in range(2, 8):
            message = [self._shown(quantity, value, digits) for value in values]
            if len(set(message)) == len(message):
                break
        return message

    def _shown(self, quantity: str, value: float, digits: int) -> str:
        if self.unit(quantity) == "BDP":
            return f"{float(f'{value:.{digits}g}'):g} BDP"
        return shown(quantity, value, digits)

    def share(self, candidate: str) -> float:
        """The share of the points where a candidate is the clear winner."""
        return sum(point.winner == candidate for point in self.points) / len(self.points)

    @property
    def unclear(self) -> float:
        """The share of the points without a clear winner."""
        return sum(point.winner is None for point in self.points) / len(self.points)

    def __str__(self) -> str:
        shares = {name: self.share(name) for name in self.question.candidates}
        message = [
            f"{name} {100 * shares[name]:.0f} %" for name in sorted(shares, key=lambda one: -shares[one])
        ]
        unclear = f"none {100 * self.unclear:.0f} %"
        buffer = "" if self.question.buffer is not None else f" Buffer: {self.question.buffer_text}."
        return f"Clear winner on {len(self.points)} paths: {', '.join(message)}; {unclear}.{buffer}"

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        reported = {
            "answer": str(self),
            "shares": {name: self.share(name) for name in self.question.candidates},
            "unclear": self.unclear,
            "goal": self.goal.name,
            "world": self.world,
            "seeds": self.seeds,
            "x": {"quantity": self.x, "unit": self.unit(self.x), "values": list(self.x_values)},
            "y": {"quantity": self.y, "unit": self.unit(self.y), "values": list(self.y_values)},
            "points": [
                {
                    self.x: self.x_values[point.x],
                    self.y: self.y_values[point.y],
                    "path": asdict(point.path),
                    "winner": point.winner,
                    "leaders": list(point.ranking.leaders),
                    "ahead": point.ahead,
                    "ahead_ci95": point.ahead_ci95,
                    "verdict": point.verdict,
                    "settled": point.ranking.settled,
                    "scores": {place.candidate: place.score.mean for place in point.ranking.places},
                }
                for point in self.points
            ],
        }
        return reported if self.tree is None else reported | {"tree": self.tree.to_dict()}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1)
