"""What the results of an experiment show: whether the arms are comparable, and how far they are apart."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.advisor.plan.results import Arm, Results
from fullpipe.errors import mistake
from fullpipe.measures import statistics
from fullpipe.measures.statistics import Estimate
from fullpipe.text import counted, joined, shown

POWER = 0.9
# Fewer in an arm show little; a pilot has more.
LEAST = 10
# Chance alone makes arms that were drawn at random look so different in one of a thousand experiments.
_CHANCE = 0.001
# If more values are missing, those that are there may be no fair sample.
_MOST_MISSING = 0.05
# Durations within this factor of each other, but for a tenth at each end, were set beforehand.
_SAME_DURATION = 1.1
# Of segments, which the results do not have: Ethernet's frames with timestamps.
_SEGMENT_BYTES = 1448
_MOST_PERCENT = 1e6

Row = Mapping[str, float]


@dataclass(frozen=True)
class Measure:
    """A measure of a connection."""

    name: str
    title: str
    unit: str
    columns: tuple[str, ...]
    take: Callable[[Row], float]
    more_is_better: bool = False
    # Whether arms are compared by the ratio of geometric means; if not, by the difference of means.
    ratio: bool = True

    @property
    def middle(self) -> str:
        """What an arm's value is."""
        return "geometric mean" if self.ratio else "mean"

    def of(self, arm: Arm) -> list[float]:
        """The values of an arm, one for each connection, or for each unit; without those that are missing."""
        taken: list[tuple[str, float]] = []
        columns = [arm.columns[name] for name in self.columns]
        for at, row in enumerate(zip(*columns, strict=True)):
            value = self.take(dict(zip(self.columns, row, strict=True)))
            if math.isfinite(value) and (value > 0 or not self.ratio):
                taken.append((arm.units[at] if arm.units else "", value))
        if not arm.units:
            return [value for _, value in taken]
        return _by_unit(taken, ratio=self.ratio)

    def better(self, difference: float) -> bool:
        """Whether a difference is to the good."""
        return difference > 0 if self.more_is_better else difference < 0


def _by_unit(taken: Sequence[tuple[str, float]], *, ratio: bool) -> list[float]:
    """The mean of each unit, as connections of one unit are no independent values."""
    units: dict[str, list[float]] = {}
    for unit, value in taken:
        units.setdefault(unit, []).append(math.log(value) if ratio else value)
    means = [math.fsum(values) / len(values) for values in units.values()]
    return [math.exp(mean) for mean in means] if ratio else means


def _goodput_mbps(row: Row) -> float:
    return row["bytes"] * 8e-6 / row["seconds"] if row["seconds"] > 0 else math.nan


def _retransmitted_percent(row: Row) -> float:
    """The share of sent segments that were retransmissions; the others are full, but for the last."""
    first = math.ceil(row["bytes"] / _SEGMENT_BYTES) if row["bytes"] > 0 else math.nan
    return 100 * row["retransmits"] / (row["retransmits"] + first)


MEASURES = {
    one.name: one
    for one in (
        Measure("goodput", "goodput", "Mbit/s", ("bytes", "seconds"), _goodput_mbps, more_is_better=True),
        Measure("completion", "completion time", "s", ("bytes", "seconds"), lambda row: row["seconds"]),
        Measure("rtt", "RTT", "ms", ("bytes", "rtt_ms"), lambda row: row["rtt_ms"]),
        Measure(
            "retransmissions",
            "share of retransmissions",
            "%",
            ("bytes", "retransmits"),
            _retransmitted_percent,
            ratio=False,
        ),
    )
}


@dataclass(frozen=True)
class Effect:
    """A measure of both arms, and how far the treatment is above the control."""

    measure: Measure
    treatment: float
    control: float
    # In per cent of the control; of a share, in percentage points.
    difference: Estimate
    # The standard deviation within an arm: of logarithms, or in percentage points.
    spread: float
    # How many there are in each arm.
    counts: tuple[int, int]

    @property
    def unit(self) -> str:
        """Of the difference."""
        return "%" if self.measure.ratio else "percentage points"

    @property
    def verdict(self) -> str:
        """better, worse or undecided."""
        low, high = self.difference.low, self.difference.high
        if low is None or high is None or low <= 0 <= high:
            return "undecided"
        return "better" if self.measure.better(self.difference.mean) else "worse"

    def needed(self, percent: float) -> int | None:
        """How many there must be in each arm to see a difference with a power of 90 %; None to see none."""
        apart = math.log1p(percent / 100) if self.measure.ratio else percent
        return statistics.needed(apart, self.spread, POWER) if apart else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "measure": self.measure.name,
            "unit": self.measure.unit,
            "middle": self.measure.middle,
            "treatment": self.treatment,
            "control": self.control,
            "difference": self.difference.mean,
            "ci95": [self.difference.low, self.difference.high],
            "difference_unit": self.unit,
            "counts": list(self.counts),
        }


@dataclass(frozen=True)
class Analysis:
    """What the results show of two arms. Without comparable arms there is no effect."""

    treatment: str
    control: str
    measure: Measure
    counts: tuple[int, int]  # Connections, or units, in each arm.
    noun: str  # What is counted: connection or unit.
    # Why the arms cannot be compared; empty if they can.
    reasons: tuple[str, ...]
    effects: tuple[Effect, ...]  # That of the measure first.
    difference: float | None  # What was predicted, in the effect's unit.
    notes: tuple[str, ...]
    # The values of the measure in both arms, for the figure.
    values: tuple[tuple[float, ...], tuple[float, ...]]

    @property
    def verdict(self) -> str:
        """better, worse, undecided or not comparable."""
        return "not comparable" if self.reasons else self.effects[0].verdict

    @property
    def needed(self) -> int | None:
        """How many there must be in each arm for the predicted difference, or else for the one that is seen."""
        if self.reasons:
            return None
        return self.effects[0].needed(
            self.effects[0].difference.mean if self.difference is None else self.difference
        )

    @property
    def answer(self) -> str:
        """The verdict in a sentence."""
        if self.reasons:
            return f"Not comparable: {'; '.join(self.reasons)}."
        found = self.effects[0]
        side = "higher" if found.difference.mean >= 0 else "lower"
        low, high = found.difference.low or 0.0, found.difference.high or 0.0
        seen = (
            f"the {self.measure.title} of {self.treatment} is {_shown(abs(found.difference.mean))} {found.unit} "
            f"{side} than that of {self.control} (95 % confidence interval {_shown(low)} to {_shown(high)})"
        )
        if self.verdict != "undecided":
            return f"{self.verdict.capitalize()}: {seen}."
        return f"Undecided: {seen}; {self._to_decide()}."

    def _to_decide(self) -> str:
        """How many would decide it."""
        needed, unit = self.needed, self.effects[0].unit
        if needed is None:
            return "to see none takes no number: give --difference"
        if self.difference is None:
            what = f"to see so small a difference takes {counted(needed, self.noun)} an arm"
            return f"{what}; --difference names the one that you look for"
        looked = f"a difference of {_shown(self.difference)} {unit}"
        if needed > min(self.counts):
            return f"to see {looked} takes {counted(needed, self.noun)} an arm"
        return f"as {needed} an arm are enough to see {looked}, it is probably smaller"

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values, but those of each connection."""
        return {
            "answer": self.answer,
            "verdict": self.verdict,
            "treatment": self.treatment,
            "control": self.control,
            "measure": self.measure.name,
            "counts": list(self.counts),
            "counted": f"{self.noun}s",
            "not_comparable": list(self.reasons),
            "effects": [one.to_dict() for one in self.effects],
            "predicted_difference": self.difference,
            "needed_per_arm": self.needed,
            "power": POWER,
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)


def _shown(number: float) -> str:
    return f"{number:.3g}" if abs(number) < 1000 else f"{number:,.0f}"


def percent_of(option: str, given: str, least: float) -> float:
    """A number in per cent, with or without the sign. Raises `ScenarioError` if it is none above `least`."""
    try:
        value = float(given.strip().removesuffix("%").strip())
    except ValueError:
        value = math.nan
    if not least < value <= _MOST_PERCENT or value == 0:
        raise mistake(option, given, f"per cent above {least:g}, and not 0", "e.g. 12 or -30")
    return value


def analyse(
    results: Results,
    *,
    control: str | None = None,
    measure: str | None = None,
    difference: float | None = None,
    share: float = 0.5,
) -> Analysis:
    """Compares the arms of an experiment.

    `control` names that arm; by default the one called so. `measure` decides, one of `MEASURES`: by default
    the first for which the results have the columns. `difference` is what was predicted, in per cent (of a
    share: percentage points). `share` of the connections were to be in the treatment.

    Raises:
        ScenarioError: An arm or a measure is unknown, or the results lack its columns.
    """
    treated, controlled = results.split(control)
    able = [one for one in MEASURES.values() if results.columns.issuperset(one.columns)]
    chosen = _chosen(measure, able, results)
    if difference is not None and chosen.ratio and difference <= -100:
        raise mistake("difference", difference, "per cent above -100", "e.g. -30")
    values = (chosen.of(treated), chosen.of(controlled))
    noun = "unit" if treated.units else "connection"
    reasons = _reasons(treated, controlled, chosen, values, noun, share)
    effects = [] if reasons else [_effect(chosen, *values)]
    if effects:
        others = [(one, one.of(treated), one.of(controlled)) for one in able if one is not chosen]
        effects += [_effect(one, *both) for one, *both in others if min(map(len, both)) >= LEAST]
    notes = [*results.notes]
    if _set_beforehand(treated, controlled):
        notes.append("all connections have the same duration, so that their sizes are a result, not compared")
    return Analysis(
        treated.name,
        controlled.name,
        chosen,
        (len(values[0]), len(values[1])),
        noun,
        tuple(reasons),
        tuple(effects),
        difference,
        tuple(notes),
        (tuple(values[0]), tuple(values[1])),
    )


def _chosen(name: str | None, able: Sequence[Measure], results: Results) -> Measure:
    if name is not None and name not in MEASURES:
        raise mistake("measure", name, f"one of {', '.join(MEASURES)}", "choose one of these")
    if name is None and able:
        return able[0]
    if name is None:
        raise mistake(
            "results", results.file, "a column to compare", "add seconds, rtt_ms or retransmits for each row"
        )
    measure = MEASURES[name]
    if measure not in able:
        lacks = joined([one for one in measure.columns if one not in results.columns])
        has = joined([one.name for one in able], "or") or "a file that has it"
        raise mistake("measure", name, f"the column {lacks} in {results.file}", f"add it, or choose {has}")
    return measure


def _effect(measure: Measure, treatment: Sequence[float], control: Sequence[float]) -> Effect:
    counts = (len(treatment), len(control))
    if not measure.ratio:
        means = (statistics.estimate(treatment).mean, statistics.estimate(control).mean)
        apart = statistics.difference(treatment, control)
        return Effect(measure, *means, apart, statistics.spread(treatment, control), counts)
    middles = (statistics.geometric(treatment).mean, statistics.geometric(control).mean)
    ratio = statistics.ratio(treatment, control)
    logarithms = ([math.log(value) for value in values] for values in (treatment, control))
    return Effect(measure, *middles, _percent(ratio), statistics.spread(*logarithms), counts)


def _percent(ratio: Estimate) -> Estimate:
    """A ratio as a difference in per cent."""
    numbers = (ratio.mean, ratio.low, ratio.high, ratio.least, ratio.most)
    mean, low, high, least, most = (None if one is None else 100 * (one - 1) for one in numbers)
    return Estimate(mean or 0.0, low, high, least or 0.0, most or 0.0, ratio.count, "difference")


def _reasons(
    treated: Arm,
    controlled: Arm,
    measure: Measure,
    values: tuple[Sequence[float], Sequence[float]],
    noun: str,
    share: float,
) -> list[str]:
    """Why the arms cannot be compared."""
    reasons = []
    arms = (treated, controlled)
    for arm, own in zip(arms, values, strict=True):
        if len(own) < LEAST:
            has = counted(len(own), noun) + (" with a value" if arm.units or len(own) < arm.count else "")
            reasons.append(f"{arm.name} has {has}, and {LEAST} are the least")
        missing = arm.count - _complete(measure, arm)
        if missing > _MOST_MISSING * arm.count:
            part = f"{100 * missing / arm.count:.0f} % of the connections of {arm.name}"
            reasons.append(f"{part} have no {measure.title}: those that have may be no fair sample")
    counts = tuple(len({*arm.units}) if arm.units else arm.count for arm in arms)
    if statistics.same_share(counts[0], sum(counts), share) < _CHANCE:
        reasons.append(
            f"{counts[0]} of {counted(sum(counts), noun)} are in {treated.name}, and {100 * share:g} % were to be, "
            "which chance does not explain: the assignment or the log is biased (--share names another part)"
        )
    if not _set_beforehand(treated, controlled):
        sizes = [_sizes(arm) for arm in arms]
        if statistics.same_distribution(*sizes) < _CHANCE:
            middles = [statistics.median(own).mean for own in sizes]
            sentence = joined(
                [f"{_size(middle)} in {arm.name}" for middle, arm in zip(middles, arms, strict=True)]
            )
            reasons.append(f"the sizes differ, by the median {sentence}: compare what transfers the same")
    if "time" in treated.columns:
        times = [_known(arm, "time") for arm in arms]
        if all(times) and statistics.same_distribution(*times) < _CHANCE:
            reasons.append("they ran at different times: alternate between the arms, and keep what overlaps")
    return reasons


def _complete(measure: Measure, arm: Arm) -> int:
    """How many connections have a value."""
    return len(measure.of(Arm(arm.name, arm.columns)))


def _sizes(arm: Arm) -> list[float]:
    """The sizes of the connections, or of each unit."""
    size = Measure("size", "size", "bytes", ("bytes",), lambda row: row["bytes"])
    return size.of(arm)


def _known(arm: Arm, column: str) -> list[float]:
    """The values of a column, or the mean of each unit."""
    own = [(unit, one) for unit, one in zip(arm.units or [""] * arm.count, arm.columns[column], strict=True)]
    known = [(unit, one) for unit, one in own if math.isfinite(one)]
    return _by_unit(known, ratio=False) if arm.units else [one for _, one in known]


def _set_beforehand(*arms: Arm) -> bool:
    """Whether all connections have the same duration, e.g. that of a speed test."""
    if "seconds" not in arms[0].columns:
        return False
    ordered = sorted(one for arm in arms for one in arm.columns["seconds"] if one > 0)
    if not ordered:
        return False
    tenth = len(ordered) // 10
    return ordered[-1 - tenth] <= _SAME_DURATION * ordered[tenth]


def _size(size_bytes: float) -> str:
    return shown(
        next(
            (
                f"{size_bytes / scale:.3g} {unit}"
                for scale, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
                if size_bytes >= scale
            ),
            f"{size_bytes:g} B",
        )
    )
