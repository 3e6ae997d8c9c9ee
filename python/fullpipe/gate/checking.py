"""Records a baseline and checks against one: what the commands call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fullpipe.gate import baseline as baselines
from fullpipe.gate import run, traces
from fullpipe.gate.cases import Case
from fullpipe.gate.judge import (
    BETTER,
    BROKEN,
    CHANGED,
    EQUAL,
    FAILED,
    UNDECIDED,
    WORSE,
    Verdict,
    counts,
    differing,
)
from fullpipe.gate.measured import Measured, plain_series
from fullpipe.gate.options import Options
from fullpipe.measures.run import Run
from fullpipe.text import shown

_MOVED = (CHANGED, WORSE, BETTER, BROKEN)
# Exit codes.
KEPT, MOVED, COULD_NOT = 0, 1, 2


@dataclass(frozen=True)
class Answer:
    """The verdict of each case, notes about the whole, and what decides the exit code."""

    verdicts: tuple[Verdict, ...]
    baseline: str
    notes: tuple[str, ...] = ()
    allow_better: bool = False
    strict: bool = False
    # The runs of the cases that are not equal, for figures.
    runs: Mapping[tuple[str, str], list[Run]] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The first line."""
        found: dict[str, int] = {}
        for one in self.verdicts:
            found[one.status] = found.get(one.status, 0) + 1
        return counts(found)

    @property
    def code(self) -> int:
        """0: as before, all promises kept; 1: changed, worse, or a promise broken; 2: could not compare."""
        if any(one.status == FAILED for one in self.verdicts):
            return COULD_NOT
        return MOVED if any(map(self.fails, self.verdicts)) else KEPT

    def fails(self, one: Verdict) -> bool:
        """Whether a verdict makes the gate fail. A better case of `exact` has changed, and fails."""
        if one.status == BETTER:
            return one.exact or not self.allow_better
        return one.status in (CHANGED, WORSE, BROKEN, FAILED) or (one.status == UNDECIDED and self.strict)

    @property
    def shown(self) -> list[Verdict]:
        """The verdicts to show: all that are not equal."""
        return [one for one in self.verdicts if one.status != EQUAL]


@dataclass(frozen=True)
class Recorded:
    """What `record` wrote, or why it wrote nothing; and promises that are broken already."""

    cases: int
    failed: Mapping[str, str]
    broken: tuple[Verdict, ...] = ()


def record(
    cases: Sequence[Case], path: Path, options: Options, *, only: str | None = None, with_traces: bool = False
) -> Recorded:
    """Runs the cases and writes the baseline; deterministic cases run twice with their first seed.

    Nothing is written if a case could not run, or is not deterministic.

    Raises:
        OutputError: The baseline cannot be written.
    """
    outcome = run.carry_out(cases, options, {})
    different = run.not_deterministic(cases, outcome, options)
    titles = {case.key: case.title for case in cases}
    failed = {titles[key]: why for key, why in {**outcome.failed, **different}.items()}
    if failed:
        return Recorded(0, failed)
    measured = list(outcome.measured.values())
    baselines.write(path, measured, only)
    if with_traces:
        traces.write(path, outcome.runs, alone=only is not None)
    as_written = {one.key: one for one in measured}
    found = run.verdicts(cases, outcome, as_written)
    return Recorded(len(measured), {}, tuple(one for one in found if one.status not in (EQUAL, UNDECIDED)))


def check(
    cases: Sequence[Case],
    path: Path,
    options: Options,
    *,
    only: str | None = None,
    allow_better: bool = False,
    strict: bool = False,
) -> Answer:
    """Runs the cases again and compares them with the baseline.

    Raises:
        ScenarioError: The baseline is missing, damaged, or of another version.
    """
    before = baselines.read(path)
    outcome = run.carry_out(cases, options, before)
    found = run.verdicts(cases, outcome, before)
    moved = [case for case, one in zip(cases, found, strict=True) if one.status in _MOVED]
    different = run.not_deterministic(moved, outcome, options)
    explained = [
        _explained(case, one, outcome, before, different, path)
        for case, one in zip(cases, found, strict=True)
    ]
    keys = {(one.name, one.world) for one in explained if one.status not in (EQUAL, FAILED)}
    runs = {key: own for key, own in outcome.runs.items() if key in keys}
    return Answer(
        tuple(explained), str(path), _notes(cases, before, only, explained, path), allow_better, strict, runs
    )


def diff(first: Path, second: Path) -> Answer:
    """Compares two baselines, the first as what was before.

    Raises:
        ScenarioError: One is missing, damaged, or of another version.
    """
    old, new = baselines.read(first), baselines.read(second)
    found = [
        differing(old[key], new[key])
        if key in old and key in new
        else _alone(key, (old | new)[key], str(first if key in old else second))
        for key in sorted({**old, **new})
    ]
    return Answer(tuple(found), str(first))


def _alone(key: tuple[str, str], line: Measured, where: str) -> Verdict:
    return Verdict(*key, line.subject, CHANGED, reason=f"only {where} has it", exact=True)


def _explained(
    case: Case,
    one: Verdict,
    outcome: run.Outcome,
    before: Mapping[tuple[str, str], Measured],
    different: Mapping[tuple[str, str], str],
    path: Path,
) -> Verdict:
    """The verdict with where the runs part; failed if two runs of the same seed differ."""
    if case.key in different:
        return replace(one, status=FAILED, reason=different[case.key], rows=())
    line = before.get(case.key)
    runs = outcome.runs.get(case.key)
    if one.status in (EQUAL, FAILED) or line is None or not runs:
        return one
    trace = traces.find(path, line)
    where = None if trace is None else traces.first_difference(trace, plain_series(runs[0]))
    return one if where is None else replace(one, parts=f"seed {runs[0].seed}: {where.sentence()}")


def _notes(
    cases: Sequence[Case],
    before: Mapping[tuple[str, str], Measured],
    only: str | None,
    verdicts: Sequence[Verdict],
    path: Path,
) -> tuple[str, ...]:
    notes = []
    gone = [] if only is not None else sorted({key[0] for key in before} - {case.name for case in cases})
    if gone:
        names = shown(", ".join(gone))
        notes.append(f"The baseline has cases that the gate file does not have: {names}; record it again.")
    lines = [(case.subject, before[case.key].subject) for case in cases if case.key in before]
    if different := list(dict.fromkeys(f"{old}, not {new}" for new, old in lines if new != old)):
        notes.append(f"The baseline is of another subject: {shown('; '.join(different))}.")
    if any(one.status in _MOVED for one in verdicts) and not traces.folder_of(path).is_dir():
        notes.append("A baseline recorded with --traces also shows where runs part.")
    return tuple(notes)
