"""What the results of an experiment show: whether the arms are comparable, and how far they are apart."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fullpipe.advisor.plan.results import Arm, Results
from fullpipe.advisor.question import shown
from fullpipe.errors import mistake
from fullpipe.measures import statistics
from fullpipe.measures.statistics import Estimate
from fullpipe.text import capitalised, counted, joined

POWER = 0.9
# Fewer in an arm show little; a pilot has more.
LEAST = 10
# Chance alone makes arms that were drawn at random look so different in one of a thousand experiments.
_CHANCE = 0.001
# If more values are missing, those that are there may be no fair sample.
_MOST_MISSING = 0.05
# Durations within this factor of each other, but for a tenth at each end, were set, e.g. by a speed test.
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
        Measure("completion", "completion time", "s", ("seconds",), lambda row: row["seconds"]),
        Measure("rtt", "RTT", "ms", ("rtt_ms",), lambda row: row["rtt_ms"]),
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
        """How many there must be in each arm for the predicted difference, or else for the one seen."""
        if self.reasons:
            return None
        found = self.effects[0]
        return found.needed(found.difference.mean if self.difference is None else self.difference)

    @property
    def answer(self) -> str:
        """The verdict in a sentence."""
        if self.reasons:
            return f"Not comparable: {'; '.join(self.reasons)}."
        found = self.effects[0]
        side = "higher" if found.difference.mean >= 0 else "lower"
        low, high = found.difference.low or 0.0, found.difference.high or 0.0
        apart = f"{_shown(abs(found.difference.mean))} {found.unit} {side} than that of {self.control}"
        interval = f"95 % confidence interval: {_shown(low)} to {_shown(high)}"
        seen = f"the {self.measure.title} of {self.treatment} is {apart} ({interval})"
        if self.verdict != "undecided":
            return f"{capitalised(self.verdict)}: {seen}."
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

    @property
    def rows(self) -> list[list[str]]:
        """A row of a table for each effect: measure, treatment, control, difference, interval."""
        found = []
        for one in self.effects:
            unit = "%" if one.measure.ratio else "pp"
            low, high = one.difference.low or 0.0, one.difference.high or 0.0
            title = f"{capitalised(one.measure.title)}, {one.measure.unit} ({one.measure.middle})"
            interval = f"{_shown(low, '+')} to {_shown(high, '+')} {unit}"
            apart = f"{_shown(one.difference.mean, '+')} {unit}"
            found.append([title, _shown(one.treatment), _shown(one.control), apart, interval])
        return found

    @property
    def remarks(self) -> list[str]:
        """What there is to know about the answer, in sentences."""
        counts = zip((self.treatment, self.control), self.counts, strict=True)
        remarks = [f"Results: {joined([f'{counted(count, self.noun)} of {arm}' for arm, count in counts])}."]
        if self.needed is not None and self.difference is not None:
            looked = f"a difference of {_shown(self.difference)} {self.effects[0].unit}"
            what = (
                f"{counted(self.needed, self.noun)} an arm show {looked} with a power of {100 * POWER:.0f} %"
            )
            remarks.append(f"With the spread of these results, {what} (two-sided test at 5 %).")
        if len(self.effects) > 1:
            remarks.append(
                f"Only the first measure decides; of {len(self.effects)}, one may differ by chance."
            )
        return [*remarks, *(f"{capitalised(one)}." for one in self.notes)]

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


def _shown(number: float, sign: str = "") -> str:
    return f"{number:{sign}.3g}" if abs(number) < 1000 else f"{number:{sign},.0f}"


def percent_of(option: str, given: str) -> float:
    """A number in per cent, with or without the sign. Raises `ScenarioError` if it is none, or zero."""
    try:
        value = float(given.strip().removesuffix("%").strip())
    except ValueError:
        value = math.nan
    if not 0 < abs(value) <= _MOST_PERCENT:
        raise mistake(option, given, "per cent other than 0", "e.g. 12 or -30")
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
    arms = (treated, controlled)
    values = (chosen.of(treated), chosen.of(controlled))
    reasons, notes = _reasons(arms, chosen, share)
    effects = [] if reasons else [_effect(chosen, *values)]
    if effects:
        others = [(one, one.of(treated), one.of(controlled)) for one in able if one is not chosen]
        effects += [_effect(one, *both) for one, *both in others if min(map(len, both)) >= LEAST]
        planned = None if difference is None else effects[0].needed(difference)
        if planned is not None and min(map(len, values)) < planned and effects[0].verdict != "undecided":
            sentence = (
                f"{planned} {_noun(treated)}s an arm are needed to see {difference:g} {effects[0].unit}"
            )
            notes.append(f"{sentence}; who stops as soon as there is a difference often sees one by chance")
    return Analysis(
        treatment=treated.name,
        control=controlled.name,
        measure=chosen,
        counts=(len(values[0]), len(values[1])),
        noun=_noun(treated),
        reasons=tuple(reasons),
        effects=tuple(effects),
        difference=difference,
        notes=(*results.notes, *notes),
        values=(tuple(values[0]), tuple(values[1])),
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


def _reasons(arms: tuple[Arm, Arm], measure: Measure, share: float) -> tuple[list[str], list[str]]:
    """Why the arms, of which the first is the treatment, cannot be compared; and notes about that."""
    reasons, notes = [], []
    for arm in arms:
        if len(own := measure.of(arm)) < LEAST:
            has = f"{counted(len(own), _noun(arm))} with {measure.title}"
            reasons.append(f"{arm.name} has {has}, and {LEAST} are the least")
        missing = arm.count - len(measure.of(Arm(arm.name, arm.columns)))
        if missing > _MOST_MISSING * arm.count:
            part = f"{100 * missing / arm.count:.0f} % of the connections of {arm.name}"
            reasons.append(f"{part} have no {measure.title}, and those that have may be no fair sample")
    counts = [len({*arm.units}) if arm.units else arm.count for arm in arms]
    if statistics.same_share(counts[0], sum(counts), share) < _CHANCE:
        part = f"{counts[0]} of {counted(sum(counts), _noun(arms[0]))} are in {arms[0].name}"
        expected = f"with {100 * share:g} % expected (--share), chance does not explain that"
        reasons.append(f"{part}; {expected}: the assignment or the log is biased")
    sizes = [_known(arm, "bytes") for arm in arms]
    if all(sizes) and statistics.same_distribution(*sizes) < _CHANCE:
        middles = zip(map(median, sizes), arms, strict=True)
        listed = joined([f"{shown('buffer', middle, 3)} in {arm.name}" for middle, arm in middles])
        sentence = f"the distributions of sizes differ (medians: {listed})"
        if measure.name != "completion" and _set_beforehand(arms):
            notes.append(f"{sentence}, as they do where all connections have the same duration")
        else:
            reasons.append(f"{sentence}: compare connections that transfer the same")
    if "time" in arms[0].columns:
        times = [_known(arm, "time") for arm in arms]
        if all(times) and statistics.same_distribution(*times) < _CHANCE:
            reasons.append("they ran at different times: draw the arm at random, or alternate")
    return reasons, notes


def _noun(arm: Arm) -> str:
    """What is counted."""
    return "unit" if arm.units else "connection"


def _known(arm: Arm, column: str) -> list[float]:
    """The values of a column, or the mean of each unit."""
    own = [(unit, one) for unit, one in zip(arm.units or [""] * arm.count, arm.columns[column], strict=True)]
    known = [(unit, one) for unit, one in own if math.isfinite(one)]
    return _by_unit(known, ratio=False) if arm.units else [one for _, one in known]


def _set_beforehand(arms: Sequence[Arm]) -> bool:
    """Whether all connections have the same duration, e.g. that of a speed test."""
    ordered = sorted(one for arm in arms for one in arm.columns.get("seconds", ()) if one > 0)
    tenth = len(ordered) // 10
    return bool(ordered) and ordered[-1 - tenth] <= _SAME_DURATION * ordered[tenth]
