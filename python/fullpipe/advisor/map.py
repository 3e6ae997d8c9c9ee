"""A decision map: the answer at every point of two quantities, as who is best and by how much.

Runs are kept in a folder: an interrupted map resumes, and a map of the same points runs nothing again.
"""

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullpipe import files
from fullpipe.advisor import goals, ranking
from fullpipe.advisor import tree as trees
from fullpipe.advisor.advice import with_candidates
from fullpipe.advisor.question import QUANTITIES, Numbers, Question, Range, parsed, percent, shown
from fullpipe.advisor.ranking import Ranking
from fullpipe.advisor.tree import Tree, Try
from fullpipe.advisor.trials import Plan
from fullpipe.errors import SweepError, mistake
from fullpipe.runs import sweep
from fullpipe.runs.engines import Engine
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task
from fullpipe.runs.limits import MOST_STORED_RUNS
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import Progress
from fullpipe.runs.worlds import registry
from fullpipe.text import joined

if TYPE_CHECKING:
    import altair as alt

SEEDS = 3
STEPS = 12
_MOST_STEPS = 100
# Round values of a decade.
_ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
UNCLEAR = "no clear winner"
UNITS = {"rate": "bit/s", "rtt": "ms", "buffer": "bytes", "loss": "probability", "jitter": "ms"}


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
class DecisionMap:
    """Who is best where.

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
        said: list[str] = []
        for digits in range(2, 8):
            said = [self._shown(quantity, value, digits) for value in values]
            if len(set(said)) == len(said):
                break
        return said

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

    def plot(self) -> "alt.TopLevelMixin":
        """The map as a figure."""
        from fullpipe.advisor import map_page

        return map_page.chart(self)

    def report(self, path: str | Path) -> Path:
        """Writes one HTML file that needs no network, and returns its path."""
        from fullpipe.advisor import map_page

        return map_page.report(self, Path(path))

    def write(self, folder: str | Path) -> Path:
        """Writes index.html, map.json, map.csv, map.svg and map.png into a folder; returns the page."""
        from fullpipe.advisor import map_page

        folder = Path(folder)
        files.make_folder(folder)
        return map_page.write(self, folder)

    def _repr_html_(self) -> str:
        from fullpipe.advisor import map_page

        return map_page.notebook(self)

    def __str__(self) -> str:
        shares = {name: self.share(name) for name in self.question.candidates}
        said = [f"{name} {100 * shares[name]:.0f} %" for name in sorted(shares, key=lambda one: -shares[one])]
        return (
            f"Clear winner on {len(self.points)} paths: {', '.join(said)}; none {100 * self.unclear:.0f} %."
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        told = {
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
        return told if self.tree is None else told | {"tree": self.tree.to_dict()}

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
    relative: bool = False  # Whether the axis of the buffer is in BDP, which the other axis changes.
    # Random paths that a tree is held against; 0 for no tree.
    unseen: int = 0

    def values(self, axis: str) -> tuple[float, ...]:
        """The values of an axis: round ones, about evenly on a logarithmic scale; the ends are as given."""
        first, last = (
            self.question.at([place] * len(self.question.ranges)).numbers() for place in (0.0, 1.0)
        )
        low, high = first.of(axis), last.of(axis)
        if axis == "buffer" and self.relative:
            low, high = low / first.bdp_bytes, high / last.bdp_bytes
        return _rounded([low * (high / low) ** (step / (self.steps - 1)) for step in range(self.steps)])

    def questions(self) -> list[tuple[int, int, Question]]:
        """Every point's place and question."""
        places = {axis: _places(self.values(axis)) for axis in (self.x, self.y)}
        found = []
        for row, column in itertools.product(range(self.steps), repeat=2):
            at = {self.x: places[self.x][column], self.y: places[self.y][row]}
            found.append((column, row, self.question.at([at[name] for name in self.question.ranges])))
        return found


def _places(values: Sequence[float]) -> list[float]:
    """Where values are between the first and the last, on a logarithmic scale from 0 to 1."""
    low, high = values[0], values[-1]
    return [math.log(value / low) / math.log(high / low) for value in values]


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    """The values with those between the ends rounded, as long as they remain different."""
    inner = [min(_round_near(value), key=lambda one: abs(math.log(one / value))) for value in values[1:-1]]
    rounded = (values[0], *inner, values[-1])
    different = all(one < other for one, other in itertools.pairwise(rounded))
    return rounded if different else tuple(values)


def _round_near(value: float) -> list[float]:
    decade = 10.0 ** math.floor(math.log10(value))
    return [float(f"{digits * decade:.6g}") for digits in _ROUND]


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


def _relative(question: Question) -> bool:
    given = question.buffer
    if not isinstance(given, Range):
        return False
    low, high = (end.lower().rstrip("s").endswith("bdp") for end in (given.low, given.high))
    if low != high:
        raise mistake("buffer", str(given), "both ends in bdp, or none", "e.g. 0.5..8 bdp")
    return low


def ask(
    question: Question,
    x: str,
    y: str,
    *,
    goal: str | None = None,
    world: str = registry.DEFAULT,
    steps: int = STEPS,
    seeds: int = SEEDS,
    tree: bool = False,
) -> Asked:
    """A map's question. Raises `ScenarioError` for what cannot be asked."""
    if tree:
        trees.check()
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
    chosen = goals.named(goal, sized=question.flow_size is not None)
    unseen = trees.UNSEEN if tree else 0
    asked = Asked(question, x, y, chosen, world, steps, seeds, _relative(question), unseen)
    for corner in itertools.product((0.0, 1.0), repeat=2):
        question.at(corner).alone()
    if (runs := (steps * steps + unseen) * seeds * len(question.candidates)) > MOST_STORED_RUNS:
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
    places = asked.questions()
    questions = [question for *_, question in places] + trees.unseen(asked.question, asked.unseen)
    plans = [Plan(question, asked.goal.needs) for question in questions]
    tasks = [[Task(world.name, job) for job in plan.jobs(seeds)] for plan in plans]
    outcome = sweep.carry_out(
        list(itertools.chain(*tasks)),
        store,
        engine or Local(),
        watch=watch,
        begin=lambda _found, pending: begin(pending),
    )
    if outcome.failed:
        raise SweepError(f"{len(outcome.failed)} runs failed, the first because {outcome.failed[0].reason}")
    judged = []
    for question, plan, own in zip(questions, plans, tasks, strict=True):
        summaries = {
            (task.job.alternative.digest, task.job.seed): outcome.stored[task.key].summary for task in own
        }
        judged.append((question.numbers(), ranking.ranked(asked.goal, plan.trials(seeds, summaries))))
    seen, unseen = judged[: len(places)], judged[len(places) :]
    found = DecisionMap(
        asked.question,
        asked.goal,
        asked.world,
        asked.x,
        asked.y,
        asked.values(asked.x),
        asked.values(asked.y),
        tuple(Point(x, y, path, ranks) for (x, y, _), (path, ranks) in zip(places, seen, strict=True)),
        asked.seeds,
        asked.relative,
    )
    if not asked.unseen:
        return found
    tree = trees.grow(seen, asked.question.candidates)
    tries = tuple(Try(path, ranks, tree.decide(path)) for path, ranks in unseen)
    return replace(found, tree=replace(tree, tries=tries))
