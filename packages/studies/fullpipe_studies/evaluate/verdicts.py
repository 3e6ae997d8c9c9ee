"""The rules: a measure of one scene, over seeds, becomes better, as, worse or flag.

A candidate is compared with each standard controller on the same paths, seed by seed. It is worse if it is
worse than both: of each difference, the 95 % interval (Student's t) excludes zero, and the mean exceeds 10 %
of the standard's value and the measure's own least difference. It is better if it is better than both, and
else as the standards. If its values have two modes, the seeds of the worse one are judged apart, and the
worse verdict counts. A flag follows from a rule that the measure states.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from fullpipe.measures import statistics
from fullpipe.measures.statistics import Estimate, Modes
from fullpipe_studies.evaluate.measures import Take

# The standard controllers that decide: RFC 9438 and RFC 5681 (and, with it, RFC 9002).
STANDARDS = ("cubic", "reno")
# Widely deployed: shown beside them, and decides nothing.
BESIDE = "bbr1"
# With fewer seeds, no difference has an interval.
FEWEST = 3
_RELATIVE = 0.10

Values = Mapping[int, float]  # By seed.
# The candidate's mean and those of the standards -> why there is a flag; "" for none.
Flag = Callable[[float, Mapping[str, float]], str]


class Verdict(Enum):
    """What a row says. There is no "pass": the RFC has no thresholds."""

    FLAG = "flag"
    WORSE = "worse"
    BETTER = "better"
    AS = "as"
    NOT_RUN = "not run"
    FORM = "for the author"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Measure:
    """One number of a run, and how a difference in it counts."""

    name: str
    unit: str
    take: Take
    more: bool  # Whether more is better.
    least: float = 0.0  # Smaller differences do not count.
    flag: Flag | None = None
    flagged: str = ""  # The flag's rule in words.
    needs: str = ""  # A fact that a scene must have for this measure.


@dataclass(frozen=True)
class Cell:
    """A measure of one scene: the verdict, and each controller's values."""

    scene: str
    measure: Measure
    verdict: Verdict
    values: Mapping[str, Values]  # By controller.
    differences: Mapping[str, Estimate] = field(default_factory=dict)  # Candidate minus standard.
    modes: Modes | None = None  # Of the candidate.
    reason: str = ""  # Of a flag, or of what was not run.
    outdone: bool = False  # Whether it is worse than `BESIDE`, which is no verdict.

    def estimate(self, controller: str) -> Estimate | None:
        """A controller's mean and interval over its seeds."""
        values = list(self.values.get(controller, {}).values())
        return statistics.estimate(values) if values else None


def judge(scene: str, measure: Measure, candidate: str, values: Mapping[str, Values]) -> Cell:
    """The verdict on one measure of one scene."""
    ours = values.get(candidate, {})
    standards = {name: values[name] for name in STANDARDS if values.get(name)}
    if not ours or not standards:
        lacking = candidate if not ours else " and ".join(STANDARDS)
        return Cell(scene, measure, Verdict.NOT_RUN, values, reason=f"{lacking} has no value")
    means = {name: _mean(theirs.values()) for name, theirs in standards.items()}
    differences = _differences(ours, standards)
    direction = _direction(differences, means, measure)
    modes = statistics.modes(list(ours.values()))
    if modes is not None:
        worse = modes.lower if measure.more else modes.upper
        ours = {seed: value for seed, value in ours.items() if value in worse}
        direction = min(direction, _direction(_differences(ours, standards), means, measure))
    verdict = {1: Verdict.BETTER, -1: Verdict.WORSE, 0: Verdict.AS}[direction]
    reason = measure.flag(_mean(ours.values()), means) if measure.flag is not None else ""
    if reason:
        verdict = Verdict.FLAG
    beside = _differences(values[candidate], {BESIDE: values.get(BESIDE, {})})
    outdone = any(_one_direction(one, _mean(values[BESIDE].values()), measure) < 0 for one in beside.values())
    return Cell(scene, measure, verdict, values, differences, modes, reason, outdone)


def _differences(ours: Values, standards: Mapping[str, Values]) -> dict[str, Estimate]:
    """The candidate's values minus those of each standard on the same seeds."""
    pairs = {
        name: [ours[seed] - theirs[seed] for seed in ours if seed in theirs]
        for name, theirs in standards.items()
    }
    return {name: statistics.estimate(found) for name, found in pairs.items() if found}


def _direction(differences: Mapping[str, Estimate], means: Mapping[str, float], measure: Measure) -> int:
    """1 if the candidate is better than every standard, -1 if it is worse than every one, else 0."""
    directions = {_one_direction(one, means[name], measure) for name, one in differences.items()}
    return directions.pop() if len(directions) == 1 else 0


def _one_direction(difference: Estimate, standard: float, measure: Measure) -> int:
    """1 if the candidate is better than that standard, -1 if it is worse, 0 if nobody can say."""
    if difference.count < FEWEST or difference.low is None or difference.high is None:
        return 0
    if difference.low <= 0 <= difference.high:
        return 0
    if abs(difference.mean) <= max(_RELATIVE * abs(standard), measure.least):
        return 0
    return 1 if (difference.mean > 0) is measure.more else -1


def _mean(values: Iterable[float]) -> float:
    there = list(values)
    return math.fsum(there) / len(there)


# The order in which verdicts of cells decide a row's.
_ORDER = (Verdict.FLAG, Verdict.WORSE, Verdict.BETTER, Verdict.AS)


def overall(cells: Sequence[Cell]) -> Verdict:
    """A row's verdict: flag before worse before better before as."""
    found = {one.verdict for one in cells}
    return next((one for one in _ORDER if one in found), Verdict.NOT_RUN)


# Flags.


def above(limit: float, what: str) -> Flag:
    """A flag on a mean above a limit."""
    return lambda ours, _standards: f"{what}: {ours:.3g}, above {limit:g}" if ours > limit else ""


def below(limit: float, what: str) -> Flag:
    """A flag on a mean below a limit."""
    return lambda ours, _standards: f"{what}: {ours:.3g}, below {limit:g}" if ours < limit else ""


def above_or_times(limit: float, times: float, least: float, what: str) -> Flag:
    """A flag on a mean above a limit, or above so many times the larger standard's and above `least`."""

    def flag(ours: float, standards: Mapping[str, float]) -> str:
        if ours > limit:
            return f"{what}: {ours:.3g}, above {limit:g}"
        most = max(standards.values())
        if ours > max(times * most, least):
            return f"{what}: {ours:.3g}, more than {times:g} times the standards' {most:.3g}"
        return ""

    return flag


def standing(limit_ms: float, part: float) -> Flag:
    """A flag on a queue above a limit that is nearly CUBIC's, which fills any buffer."""

    def flag(ours: float, standards: Mapping[str, float]) -> str:
        cubic = standards.get(STANDARDS[0], math.inf)
        if ours <= max(limit_ms, part * cubic):
            return ""
        return f"the queue follows the buffer as CUBIC's does: {ours:.0f} ms, CUBIC {cubic:.0f} ms"

    return flag
