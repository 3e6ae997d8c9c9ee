"""Which candidate is best, with as many seeds as it takes to know, or as the time or their number allows.

Candidates meet the same seeds, so they are compared by the differences of their scores, seed by seed. A
candidate is *behind* the first one if the 95 % confidence interval of the difference is above `ALIKE` of
the first one's score, *level* if it is within, and *undecided* if it is neither. The ranking is settled
when none is undecided.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from fullpipe.advisor.goals import Goal, Trial
from fullpipe.advisor.question import Question
from fullpipe.advisor.trials import EXTRAS, Bench, Trials
from fullpipe.measures.statistics import Estimate, estimate

# Scores that differ by less than this share of the best one count as equal.
ALIKE = 0.01
# Seeds of the first round, and of all rounds unless another number is given. Each round doubles them.
FIRST, MOST = 4, 256

Standing = Literal["first", "level", "behind", "undecided"]


@dataclass(frozen=True)
class Place:
    """A candidate in a ranking."""

    candidate: str
    trials: Sequence[Trial]
    score: Estimate
    # Compared with the first: how much of its score this one lacks, seed by seed.
    behind: Estimate
    standing: Standing

    def measure(self, take: Callable[[Trial], float | None]) -> Estimate | None:
        """The estimate of a measure; None if a trial does not have it."""
        values = [take(trial) for trial in self.trials]
        known = [value for value in values if value is not None]
        return estimate(known) if len(known) == len(values) else None


@dataclass(frozen=True)
class Ranking:
    """The candidates of one path, the best first."""

    goal: Goal
    places: tuple[Place, ...]
    seeds: int

    @property
    def leaders(self) -> tuple[str, ...]:
        """The first, and those that cannot be told from it or are as good."""
        return tuple(place.candidate for place in self.places if place.standing != "behind")

    @property
    def winner(self) -> str | None:
        """The only leader; None if there is no clear winner."""
        leaders = self.leaders
        return leaders[0] if len(leaders) == 1 else None

    @property
    def settled(self) -> bool:
        """Whether more seeds would say nothing new."""
        return all(place.standing != "undecided" for place in self.places)

    def place(self, candidate: str) -> Place:
        """A candidate's place."""
        return next(place for place in self.places if place.candidate == candidate)


def phases(found: Ranking) -> tuple[Ranking, Ranking] | None:
    """The rankings of start-up and of what came after it; None if the trials do not have them."""
    parts = []
    for number in range(2):
        trials = {
            place.candidate: [trial.phases[number] for trial in place.trials if trial.phases]
            for place in found.places
        }
        if any(len(own) < found.seeds for own in trials.values()):
            return None
        parts.append(ranked(found.goal, trials))
    return parts[0], parts[1]


def ranked(goal: Goal, trials: Trials) -> Ranking:
    """The ranking that these trials give."""
    scores = {name: [goal.score(trial) for trial in own] for name, own in trials.items()}
    # Candidates with equal scores keep the order in which they were named.
    order = sorted(scores, key=lambda name: -sum(scores[name]))
    first = scores[order[0]]
    places = []
    for name in order:
        differences = [best - own for best, own in zip(first, scores[name], strict=True)]
        own, behind = estimate(scores[name]), estimate(differences)
        standing: Standing = "first" if name == order[0] else _standing(behind, estimate(first).mean)
        places.append(Place(name, trials[name], own, behind, standing))
    return Ranking(goal, tuple(places), len(first))


def _standing(behind: Estimate, best: float) -> Standing:
    equal = ALIKE * best
    low = behind.mean if behind.low is None else behind.low
    high = behind.mean if behind.high is None else behind.high
    if low > equal:
        return "behind"
    return "level" if -equal <= low and high <= equal else "undecided"


def rank(
    bench: Bench,
    question: Question,
    goal: Goal,
    *,
    until_s: float = math.inf,
    first: int = FIRST,
    most: int = MOST,
    begin: Callable[[int, int], None] = lambda _done, _wanted: None,
    extras: frozenset[str] = EXTRAS,
) -> Ranking:
    """Runs up to `most` seeds until the ranking is settled, or the next round would end after `until_s`.

    `until_s` is a time of `time.monotonic`. The first round, of `first` seeds, runs in any case. `begin` is
    told before each round how many seeds are done, and how many will be after it.
    """
    trials: Trials = {name: [] for name in question.candidates}
    done, wanted = 0, min(first, most)
    while True:
        begin(done, wanted)
        began_s = time.monotonic()
        (more,) = bench.run([question], range(done + 1, wanted + 1), extras | goal.needs)
        for name, own in more.items():
            trials[name] += own
        took_s = (time.monotonic() - began_s) / (wanted - done)
        ranking = ranked(goal, trials)
        done, wanted = wanted, min(2 * wanted, most)
        if ranking.settled or done == most or time.monotonic() + took_s * (wanted - done) > until_s:
            return ranking
