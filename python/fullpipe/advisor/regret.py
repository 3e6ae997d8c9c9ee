"""What each candidate loses over a range, against the best one on each path: its regret."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fullpipe.advisor.goals import Goal
from fullpipe.advisor.ranking import Ranking


@dataclass(frozen=True)
class Regret:
    """How much worse than the best one a candidate is over the paths of a range, in `unit`."""

    candidate: str
    mean: float
    worst: float
    worst_path: int  # Its number among the paths, from zero.
    unit: str

    def shown(self, value: float) -> str:
        """A regret in its unit: scores with three digits, others with two."""
        return f"{value:.3f}" if self.unit == "score" else f"{value:,.2f} {self.unit}"


def of(goal: Goal, rankings: Sequence[Ranking]) -> tuple[Regret, ...]:
    """The regrets of all candidates, those with the least worst one first.

    They are in the goal's unit. If a candidate has no value in it, as where its flows did not complete, they
    are in the score.
    """
    names = [place.candidate for place in rankings[0].places]
    unit, lost = goal.unit, [_lost(goal, one) for one in rankings]
    if not all(math.isfinite(value) for one in lost for value in one.values()):
        unit, lost = "score", [_by_score(one) for one in rankings]
    found = []
    for name in names:
        values = [one[name] for one in lost]
        worst = max(range(len(values)), key=lambda at: values[at])
        found.append(Regret(name, math.fsum(values) / len(values), values[worst], worst, unit))
    return tuple(sorted(found, key=lambda one: (one.worst, one.mean)))


def least(found: Sequence[Regret]) -> str:
    """The choice of least regret, in a sentence without its full stop."""
    by_worst = [one for one in found if one.worst == found[0].worst]
    by_mean = min(found, key=lambda one: one.mean)
    first = min(by_worst, key=lambda one: one.mean)
    shown = f"{first.shown(first.mean)} on average, {first.shown(first.worst)} at worst"
    if by_mean.candidate == first.candidate:
        return f"Least regret: {first.candidate} ({shown})"
    other = f"{by_mean.shown(by_mean.mean)} on average, {by_mean.shown(by_mean.worst)} at worst"
    return f"Least regret at worst: {first.candidate} ({shown}); on average: {by_mean.candidate} ({other})"


def _lost(goal: Goal, found: Ranking) -> dict[str, float]:
    """What each candidate loses on a path, in the goal's unit."""
    if goal.value is None:
        return _by_score(found)
    values = {}
    for place in found.places:
        each = [goal.value(trial) for trial in place.trials]
        known = [value for value in each if value is not None]
        values[place.candidate] = math.fsum(known) / len(known) if len(known) == len(each) else math.inf
    best = min(values.values()) if goal.smaller else max(values.values())
    return {name: abs(value - best) for name, value in values.items()}


def _by_score(found: Ranking) -> dict[str, float]:
    best = found.places[0].score.mean
    return {place.candidate: best - place.score.mean for place in found.places}
