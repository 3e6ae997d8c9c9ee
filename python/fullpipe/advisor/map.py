"""A decision map: the answer at every point of two quantities, as who is best and by how much.

Runs are kept in a folder: an interrupted map resumes, and a map of the same points runs nothing again.
"""

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fullpipe.advisor import goals, ranking
from fullpipe.advisor.advice import with_candidates
from fullpipe.advisor.question import QUANTITIES, Numbers, Question, parsed
from fullpipe.advisor.ranking import Ranking
from fullpipe.advisor.trials import Plan
from fullpipe.engines import Engine
from fullpipe.engines.local import Local
from fullpipe.engines.task import Task
from fullpipe.errors import SweepError, mistake
from fullpipe.sweeps import sweep
from fullpipe.sweeps.store import Store
from fullpipe.sweeps.sweep import Progress
from fullpipe.system.limits import MOST_STORED_RUNS
from fullpipe.worlds import registry

SEEDS = 3
STEPS = 12
_MOST_STEPS = 100


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
        first, second = self.ranking.places[:2]
        return second.behind.mean / first.score.mean if first.score.mean else 0.0


@dataclass(frozen=True)
class DecisionMap:
    """Who is best where. Values of the axes are in the units of `Numbers`."""

    question: Question
    goal: goals.Goal
    world: str
    x: str
    y: str
    x_values: tuple[float, ...]
    y_values: tuple[float, ...]
    points: tuple[Point, ...]
    seeds: int

    def share(self, candidate: str) -> float:
        """The share of the points where a candidate is the clear winner."""
        return sum(point.winner == candidate for point in self.points) / len(self.points)

    @property
    def unclear(self) -> float:
        """The share of the points without a clear winner."""
        return sum(point.winner is None for point in self.points) / len(self.points)

    def __str__(self) -> str:
        shares = {name: self.share(name) for name in self.question.candidates}
        said = [f"{name} {100 * shares[name]:.0f} %" for name in sorted(shares, key=lambda one: -shares[one])]
        return (
            f"Clear winner on {len(self.points)} paths: {', '.join(said)}; none {100 * self.unclear:.0f} %."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            "answer": str(self),
            "goal": self.goal.name,
            "world": self.world,
            "seeds": self.seeds,
            "x": {"quantity": self.x, "values": list(self.x_values)},
            "y": {"quantity": self.y, "values": list(self.y_values)},
            "points": [
                {
                    self.x: self.x_values[point.x],
                    self.y: self.y_values[point.y],
                    "winner": point.winner,
                    "leaders": list(point.ranking.leaders),
                    "ahead": point.ahead,
                    "scores": {place.candidate: place.score.mean for place in point.ranking.places},
                }
                for point in self.points
            ],
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1)


@dataclass(frozen=True)
class Asked:
    """The question of a map: a question with two axes that replace its values."""

    question: Question
    x: str
    y: str
    goal: goals.Goal
    world: str
    steps: int
    seeds: int

    def values(self, axis: str) -> tuple[float, ...]:
        """The values of an axis, evenly on a logarithmic scale."""
        ends = [
            self.question.at([place] * len(self.question.ranges)).numbers().of(axis) for place in (0.0, 1.0)
        ]
        low, high = ends
        return tuple(
            low * (high / low) ** (step / (self.steps - 1)) if self.steps > 1 else low
            for step in range(self.steps)
        )

    def questions(self) -> list[tuple[int, int, Question]]:
        """Every point's place and question."""
        columns, rows = range(self.steps), range(self.steps)
        return [
            (column, row, self.question.at(self._place(column, row)))
            for row, column in itertools.product(rows, columns)
        ]

    def _place(self, column: int, row: int) -> list[float]:
        parts = {self.x: column, self.y: row}
        return [parts[name] / max(1, self.steps - 1) for name in self.question.ranges]


def axis(name: str, given: str) -> tuple[str, Any]:
    """An axis as typed, `rate=1mbit..1gbit`: the quantity, and its range."""
    quantity, separator, values = given.partition("=")
    quantity = quantity.strip()
    if quantity not in QUANTITIES or not separator:
        raise mistake(
            name, given, f"a quantity ({', '.join(QUANTITIES)}) and its range", "e.g. rate=1mbit..1gbit"
        )
    found = parsed(name, values.strip())
    if isinstance(found, str):
        raise mistake(name, given, "a range", f"e.g. {quantity}=LOW..HIGH")
    return quantity, found


def ask(
    question: Question,
    x: str,
    y: str,
    *,
    goal: str = goals.DEFAULT,
    world: str = registry.DEFAULT,
    steps: int = STEPS,
    seeds: int = SEEDS,
) -> Asked:
    """A map's question. Raises `ScenarioError` for what cannot be asked."""
    if x == y:
        raise mistake(
            "y", y, f"another quantity than x, which is {x}", f"e.g. {'rtt' if x != 'rtt' else 'rate'}=..."
        )
    for name, number, most in (("steps", steps, _MOST_STEPS), ("seeds", seeds, 1_000)):
        if not 1 <= number <= most or (name == "steps" and number < 2):
            raise mistake(
                name, number, f"a whole number from {2 if name == 'steps' else 1} to {most}", "e.g. 12"
            )
    if set(question.ranges) != {x, y}:
        other = next(name for name in question.ranges if name not in (x, y))
        raise mistake(
            other, str(getattr(question, other)), "a single value: a map has two axes", "give one value"
        )
    question = with_candidates(question)
    asked = Asked(
        question, x, y, goals.named(goal, sized=question.flow_size is not None), world, steps, seeds
    )
    for corner in itertools.product((0.0, 1.0), repeat=2):
        question.at(corner).alone()
    if (runs := steps * steps * seeds * len(question.candidates)) > MOST_STORED_RUNS:
        raise mistake(
            "steps", steps, f"at most {MOST_STORED_RUNS} runs in all", f"fewer than the {runs} of these"
        )
    return asked


def draw(
    asked: Asked,
    store: Store,
    engine: Engine | None = None,
    *,
    watch: Callable[[Progress], None] = lambda _progress: None,
    begin: Callable[[list[Task]], None] = lambda _pending: None,
) -> DecisionMap:
    """Runs what the store does not have, and judges every point.

    Raises:
        SweepError: A run failed, or another command uses the folder.
    """
    (world,) = registry.chosen(asked.world)
    seeds = range(1, asked.seeds + 1)
    places = [(x, y, question, Plan(question, asked.goal.needs)) for x, y, question in asked.questions()]
    tasks = {id(plan): [Task(world.name, job) for job in plan.jobs(seeds)] for *_, plan in places}
    outcome = sweep.carry_out(
        [task for own in tasks.values() for task in own],
        store,
        engine or Local(),
        watch=watch,
        begin=lambda _found, pending: begin(pending),
    )
    if outcome.failed:
        raise SweepError(f"{len(outcome.failed)} runs failed, the first because {outcome.failed[0].reason}")
    points = []
    for x, y, question, plan in places:
        summaries = {
            (task.job.alternative.digest, task.job.seed): outcome.stored[task.key].summary
            for task in tasks[id(plan)]
        }
        points.append(
            Point(x, y, question.numbers(), ranking.ranked(asked.goal, plan.trials(seeds, summaries)))
        )
    return DecisionMap(
        asked.question,
        asked.goal,
        asked.world,
        asked.x,
        asked.y,
        asked.values(asked.x),
        asked.values(asked.y),
        tuple(points),
        asked.seeds,
    )
