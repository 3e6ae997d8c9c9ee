"""Compares the result of a case with its baseline, and with its promises.

* `exact`: any difference of a record is a change. It is worse, or better, if every measure that moved, as
  printed, moved that way; otherwise it is only a change.
* `within`: a measure that moved by more than its tolerance is worse, better or changed.
* Promises (`at_least`, `at_most`, `not_worse_than`, `must_pass`) are about the new values alone.

Means over the seeds are judged. In worlds of wall time, a mean has a 95 % interval, and a comparison that
the intervals leave open is undecided.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fullpipe.conformance.results import FAIL, PASS
from fullpipe.gate.cases import Case
from fullpipe.gate.measured import Measured, Value
from fullpipe.gate.quantities import MEASURES, direction
from fullpipe.measures.measures import Quantity
from fullpipe.text import joined

# Statuses of a case. From `BROKEN` on, each is worse for the exit code than those before.
EQUAL, BETTER, UNDECIDED, CHANGED, WORSE, BROKEN = (
    "equal", "better", "undecided", "changed", "worse", "broken",
)  # fmt: skip
# What could not be compared: it failed, has no line in the baseline, or had another setting there.
FAILED = "failed"
# What of a case may be another one than in the baseline.
_UNLIKE = "its path, duration, seeds or criteria"


@dataclass(frozen=True)
class Row:
    """A measure that changed, or that breaks a promise."""

    measure: str  # With its unit.
    before: str
    after: str
    change: str
    promise: str
    status: str
    name: str = ""


@dataclass(frozen=True)
class Verdict:
    """A case's status, what changed, and why in a sentence where the rows do not show it."""

    name: str
    world: str
    subject: str
    status: str
    rows: tuple[Row, ...] = ()
    reason: str = ""
    command: str = ""
    # Where the runs part: a sentence.
    parts: str = ""
    # Whether any difference counts, also one for the better.
    exact: bool = False
    # The file and the line of the case.
    place: str = ""

    @property
    def title(self) -> str:
        """The case and its world."""
        return f"{self.name}, {self.world}"


def judged(case: Case, before: Measured | None, after: Measured, reference: Measured | None) -> Verdict:
    """The verdict of a case; without a line in the baseline, only its promises are judged."""
    promises = [*_promises(case, before, after), *_references(case, after, reference)]
    judgement = case.judgement
    rows, reason, status = promises, "", EQUAL
    if before is None:
        status, reason = FAILED, "the baseline has no line of it; `fullpipe gate record --only` adds one"
    elif before.setting != after.setting:
        status = FAILED
        reason = f"{_UNLIKE} are not those of the baseline; record it again"
    elif judgement.exact:
        moved = list(_moved(before, after))
        rows, status = [*_telling(moved), *promises], _direction(before, after, moved)
        reason = "" if status == EQUAL else _seeds(before, after, moved)
    elif judgement.within:
        moved = list(_beyond(case, before, after))
        rows, status = [*moved, *promises], _worst(moved)
    if status != FAILED and _worst(promises) in (BROKEN, UNDECIDED):
        status = max(status, _worst(promises), key=_ORDER.index)
    return Verdict(
        case.name,
        case.world,
        case.subject,
        status,
        tuple(rows),
        reason,
        case.command,
        exact=judgement.exact,
        place=case.place,
    )


def differing(before: Measured, after: Measured) -> Verdict:
    """The verdict on two lines of baselines, without promises: any difference counts."""
    if before.setting != after.setting:
        status, moved, reason = FAILED, [], f"{_UNLIKE} differ"
    else:
        moved = list(_moved(before, after))
        status = _direction(before, after, moved)
        reason = "" if status == EQUAL else _seeds(before, after, moved)
        moved = _telling(moved)
    return Verdict(after.name, after.world, after.subject, status, tuple(moved), reason, exact=True)


_ORDER = (EQUAL, BETTER, UNDECIDED, CHANGED, WORSE, BROKEN, FAILED)


def _worst(rows: list[Row]) -> str:
    return max((row.status for row in rows), key=_ORDER.index, default=EQUAL)


def _direction(before: Measured, after: Measured, moved: list[Row]) -> str:
    """The status of a case in which any difference counts."""
    if before.records == after.records and before.verdict == after.verdict and before.records:
        return EQUAL
    if not before.records and not moved:
        return EQUAL  # Runs of wall time, all of whose measures are equal.
    if before.verdict != after.verdict and PASS in (before.verdict, after.verdict):
        return BETTER if after.verdict == PASS else WORSE
    ways = {row.status for row in moved} - {CHANGED}
    return ways.pop() if len(ways) == 1 else CHANGED


def _telling(moved: list[Row]) -> list[Row]:
    """The rows without medians, which move with the means beside them; all if there are no others."""
    return [row for row in moved if "_p50_" not in row.name] or moved


def _seeds(before: Measured, after: Measured, moved: list[Row]) -> str:
    """What the rows of a case do not show: that there is none, or that only some seeds differ."""
    parts = [] if moved else ["no measure differs as printed, but the records of the runs do"]
    pairs = zip(after.seeds, before.records, after.records, strict=False)
    different = [str(seed) for seed, old, new in pairs if old != new]
    if not after.verdict and 0 < len(different) < len(after.records):
        one = len(different) == 1
        parts.append(f"only seed{'' if one else 's'} {joined(different)} differ{'s' if one else ''}")
    return "; ".join(parts)


def _moved(before: Measured, after: Measured) -> Iterator[Row]:
    """The measures whose values differ as printed, and a verdict that changed."""
    if before.verdict != after.verdict:
        status = BETTER if after.verdict == PASS else WORSE if after.verdict == FAIL else CHANGED
        yield Row("verdict", before.verdict, after.verdict, "", "as before", status, "verdict")
    for name in dict.fromkeys([*before.measures, *after.measures]):
        old, new = before.measures.get(name), after.measures.get(name)
        quantity = _quantity(name, after)
        texts = [quantity.show(None if one is None else one.mean) for one in (old, new)]
        if texts[0] != texts[1]:
            yield _row(name, quantity, old, new, "no difference", _way(name, old, new, after))


def _beyond(case: Case, before: Measured, after: Measured) -> Iterator[Row]:
    """The measures that moved beyond their tolerance, or for which that is not decided."""
    for name, tolerance in case.judgement.within.items():
        old, new = before.measures.get(name), after.measures.get(name)
        quantity, promise = MEASURES[name], f"within {tolerance.text}"
        if old is None and new is None:
            yield _row(name, quantity, old, new, f"{promise}; no run has it", BROKEN)
        elif old is None or new is None:
            yield _row(name, quantity, old, new, promise, CHANGED)
        else:
            moved, limit = abs(new.mean - old.mean), tolerance.of(old.mean)
            unsure = math.hypot(old.half, new.half)
            if moved - unsure > limit:
                yield _row(name, quantity, old, new, promise, _way(name, old, new, after))
            elif moved + unsure > limit:
                yield _row(name, quantity, old, new, promise, UNDECIDED)


def _promises(case: Case, before: Measured | None, after: Measured) -> Iterator[Row]:
    """The promises that are broken, or not decided."""
    if case.judgement.must_pass and after.verdict != PASS:
        was = "" if before is None else before.verdict
        yield Row("verdict", was, after.verdict, "", "must pass", BROKEN, "verdict")
    for words, sign, bounds in (
        ("at least", 1, case.judgement.at_least),
        ("at most", -1, case.judgement.at_most),
    ):
        for name, bound in bounds.items():
            assert case.scenario is not None
            limit = bound.value(case.scenario.alternatives[0])
            text = MEASURES[name].show(limit)
            promise = f"{words} {bound.text}" + (f" ({text})" if bound.of_path else "")
            yield from _promise(name, promise, before, after, lambda value: sign * (value - limit))  # noqa: B023


def _promise(
    name: str, promise: str, before: Measured | None, after: Measured, spare: Callable[[float], float]
) -> Iterator[Row]:
    """The row of a promise that is not kept. `spare`: how far a value is within the bound."""
    old = None if before is None else before.measures.get(name)
    new = after.measures.get(name)
    if new is None:
        yield _row(name, MEASURES[name], old, new, f"{promise}; no run has it", BROKEN)
        return
    left = spare(new.mean)
    if left + new.half < 0 or (left < 0 and new.half == 0):
        yield _row(name, MEASURES[name], old, new, promise, BROKEN)
    elif left - new.half < 0:
        yield _row(name, MEASURES[name], old, new, promise, UNDECIDED)


def _references(case: Case, after: Measured, reference: Measured | None) -> Iterator[Row]:
    """The measures in which the subject is worse than the other controller; `before` is that one's value."""
    other = case.judgement.not_worse_than
    if other is None or reference is None:
        return
    for name, tolerance in other.within.items():
        theirs, ours = reference.measures.get(name), after.measures.get(name)
        promise = f"not worse than {other.controller} by {tolerance.text}"
        if theirs is None or ours is None:
            yield _row(name, MEASURES[name], theirs, ours, f"{promise}; no run has it", BROKEN)
            continue
        behind = direction(name) * (theirs.mean - ours.mean) - tolerance.of(theirs.mean)
        unsure = math.hypot(theirs.half, ours.half)
        if behind > 0 and behind > unsure:
            yield _row(name, MEASURES[name], theirs, ours, promise, BROKEN)
        elif behind + unsure > 0:
            yield _row(name, MEASURES[name], theirs, ours, promise, UNDECIDED)


def _quantity(name: str, measured: Measured) -> Quantity:
    """How to show a measure; a criterion of a conformance case has no unit of its own."""
    if measured.verdict:
        return Quantity(name.replace("_", " "), "", 1, 4)
    return MEASURES.get(name, Quantity(name, "", 1, 3))


def _way(name: str, old: Value | None, new: Value | None, after: Measured) -> str:
    """Whether a measure moved for the worse or for the better; changed if neither."""
    if after.verdict or old is None or new is None or name not in MEASURES:
        return CHANGED
    moved = direction(name) * (new.mean - old.mean)
    return BETTER if moved > 0 else WORSE if moved < 0 else CHANGED


def _row(
    name: str, quantity: Quantity, old: Value | None, new: Value | None, promise: str, status: str
) -> Row:
    before, after = (_shown(quantity, one) for one in (old, new))
    title = f"{quantity.title}, {quantity.unit}" if quantity.unit else quantity.title
    return Row(title, before, after, _change(old, new), promise, status, name)


def _shown(quantity: Quantity, value: Value | None) -> str:
    text = quantity.show(None if value is None else value.mean)
    known = value is not None and value.half and math.isfinite(value.half)
    return f"{text} ± {quantity.show(value.half)}" if known and value is not None else text


def _change(old: Value | None, new: Value | None) -> str:
    """The relative change; empty where it means nothing."""
    if old is None or new is None or not old.mean:
        return ""
    share = (new.mean - old.mean) / abs(old.mean)
    return f"{share:+z.{1 if abs(share) >= 0.01 else 2}%}".replace("%", " %")


def counts(verdicts: Mapping[str, int]) -> str:
    """The first line of an answer: "12 cases equal, 2 changed: 1 worse, 1 better"."""
    equal = verdicts.get(EQUAL, 0)
    parts = [f"{equal} case{'' if equal == 1 else 's'} equal"]
    names = {WORSE: "worse", BETTER: "better", CHANGED: "neither"}
    moved = {name: verdicts[one] for one, name in names.items() if verdicts.get(one)}
    if moved:
        how = ", ".join(f"{count} {name}" for name, count in moved.items())
        parts.append(f"{sum(moved.values())} changed: {how}")
    if count := verdicts.get(BROKEN, 0):
        parts.append(f"{count} break{'s' if count == 1 else ''} a promise")
    if count := verdicts.get(UNDECIDED, 0):
        parts.append(f"{count} undecided")
    if count := verdicts.get(FAILED, 0):
        parts.append(f"{count} could not be compared")
    return ", ".join(parts)
