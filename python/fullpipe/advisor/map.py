"""A decision map: the answer at every point of two quantities, as who is best and by how much.

Runs are kept in a folder: an interrupted map resumes, and a map of the same points runs nothing again.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullpipe import files
from fullpipe.advisor import goals, ranking
from fullpipe.advisor import tree as trees
from fullpipe.advisor.advice import with_candidates
from fullpipe.advisor.map_answer import MapAnswer, Point
from fullpipe.advisor.question import QUANTITIES, Question, parsed
from fullpipe.advisor.tree import Try
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
from fullpipe.scenario.path_fields import Range

if TYPE_CHECKING:
    import altair as alt

SEEDS = 3
STEPS = 12
_MOST_STEPS = 100
# Round values of a decade.
_ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


@dataclass(frozen=True)
class DecisionMap(MapAnswer):
    """Who is best where.

    Values of the axes are in the units of `Numbers`, those of a buffer in BDP if it is `relative`.
    """

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

    def planned(self) -> list[tuple[Question, Plan, list[Task]]]:
        """The question, plan and runs of every point, and then of every random path."""
        (world,) = registry.chosen(self.world)
        questions = [question for *_, question in self.questions()]
        questions += trees.unseen(self.question, self.unseen)
        plans = [(question, Plan(question, self.goal.needs)) for question in questions]
        seeds = range(1, self.seeds + 1)
        return [
            (question, plan, [Task(world.name, job) for job in plan.jobs(seeds)]) for question, plan in plans
        ]

    def tasks(self) -> list[Task]:
        """Every run."""
        return [task for *_, own in self.planned() for task in own]


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
    seeds = range(1, asked.seeds + 1)
    places, planned = asked.questions(), asked.planned()
    outcome = sweep.carry_out(
        [task for *_, own in planned for task in own],
        store,
        engine or Local(),
        watch=watch,
        begin=lambda _found, pending: begin(pending),
    )
    if outcome.failed:
        raise SweepError(f"{len(outcome.failed)} runs failed, the first because {outcome.failed[0].reason}")
    judged = []
    for question, plan, own in planned:
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
