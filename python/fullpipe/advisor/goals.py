"""What a path can be for, and how well a candidate serves it: a score from 0 to 1 for each run.

`used` is the candidate's goodput over its fair part of what the path carries: all of it alone, a third of
it beside two others. `short` is the ratio of the empty path's round-trip time to the 95th percentile of
what the flow measured.

* throughput: `used`; beside competitors it may exceed one. With short flows of a given size: the time on an
  ideal path over their mean completion time.
* delay: `short`, as long as at least 80 % is used; below, less in proportion.
* balance: `used`, at most one, times `short`, the quotient of throughput and delay that Kleinrock calls
  power.
* neighbours: one minus the harm to a neighbour, as long as at least 80 % is used; below, less in
  proportion.

Harm is that of Ware et al., "Beyond Jain's Fairness Index" (HotNets 2019): the share of its goodput alone
that a neighbour loses beside the candidate.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fullpipe.text import joined

# Below this part of the path, a short queue and a kind neighbour are no merit.
ENOUGH = 0.8


@dataclass(frozen=True)
class Trial:
    """What one candidate did with one seed."""

    goodput_bps: float
    rtt_p95_ms: float
    loss_ratio: float
    # Mean completion time of short flows; None if some did not complete, or if they did not run.
    fct_ms: float | None
    harm: float | None  # None if no neighbour ran.
    used: float
    short: float
    ideal_fct_ms: float
    # The same flow in start-up, and after it; None if nobody asked. Other flows' part is that of the whole.
    phases: "tuple[Trial, Trial] | None" = None

    @property
    def quick(self) -> float:
        """How close short flows come to an ideal path."""
        return 0.0 if self.fct_ms is None else min(1.0, self.ideal_fct_ms / self.fct_ms)

    @property
    def enough(self) -> float:
        """One if the flow uses enough of the path, else less in proportion."""
        return min(1.0, self.used / ENOUGH)


@dataclass(frozen=True)
class Goal:
    """What a path is for."""

    name: str
    brief: str  # What it is about, in help.
    means: str  # What its score is, for people.
    score: Callable[[Trial], float]
    needs: frozenset[str] = frozenset()  # Which scenarios besides the flow itself: "short", "duel".
    why: str = ""  # Why a flow has to use `ENOUGH` of its share, if it has to.
    # What a worse choice loses, where that is no score: the value of a trial, and if less of it is better.
    unit: str = "score"
    value: Callable[[Trial], float | None] | None = None
    smaller: bool = False


BULK = Goal(
    "throughput",
    "",
    "goodput over the flow's fair share of what the path can carry",
    lambda trial: trial.used,
    unit="Mbit/s",
    value=lambda trial: trial.goodput_bps / 1e6,
)
QUICK = Goal(
    "throughput",
    "",
    "the completion time on an ideal path over the flows' mean completion time",
    lambda trial: trial.quick,
    frozenset({"short"}),
    unit="ms",
    value=lambda trial: trial.fct_ms,
    smaller=True,
)
GOALS: Mapping[str, Goal] = {
    "throughput": BULK,
    "delay": Goal(
        "delay",
        "a short queue",
        "the empty path's round-trip time over the flow's 95th percentile; in proportion less if the flow "
        "uses below 80 % of its fair share",
        lambda trial: trial.short * trial.enough,
        why="a flow that sends little has a short delay whatever it does",
    ),
    "balance": Goal(
        "balance",
        "much throughput with a short queue",
        "the used part of the flow's fair share, at most 1, times the empty path's round-trip time over the "
        "flow's 95th percentile",
        lambda trial: min(1.0, trial.used) * trial.short,
    ),
    "neighbours": Goal(
        "neighbours",
        "how much goodput the first flow of --competitors keeps beside the candidate; if there is none, a "
        "CUBIC flow is added",
        "the part of its goodput that a neighbour keeps; in proportion less if the flow, without that "
        "neighbour, uses below 80 % of its fair share",
        lambda trial: (1 - (trial.harm or 0.0)) * trial.enough,
        frozenset({"duel"}),
        why="a flow that sends little leaves its neighbour much whatever it does",
    ),
}
DEFAULT = "balance"
# Where the user's flows have a size: how soon they complete.
DEFAULT_SIZED = "throughput"
# As the options name them.
NAMES = joined([f"{one.name} ({one.brief})" if one.brief else one.name for one in GOALS.values()], "or")


def named(name: str | None, *, sized: bool) -> Goal:
    """A goal by its name, or the default; `sized` if the user's flows have a size.

    Raises `ScenarioError` for others.
    """
    from fullpipe.errors import mistake

    name = name or (DEFAULT_SIZED if sized else DEFAULT)
    if name not in GOALS:
        raise mistake("goal", name, f"one of {', '.join(GOALS)}", "choose one of these")
    return QUICK if name == "throughput" and sized else GOALS[name]
