"""Runs a gate's cases: those of `compare` and `run` together, as one sweep; conformance cases by subject.

Runs of deterministic worlds come from a store that is keyed by the fingerprint of scenario, subject and
engine (`runs/store.py`). Runs in wall time are repeated until their intervals decide, and never stored.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from fullpipe.errors import OutputError, SweepError, mistake
from fullpipe.gate import conforming
from fullpipe.gate.baseline import rounded
from fullpipe.gate.cases import CONFORM, Case, Gate
from fullpipe.gate.document import LEAST_REPETITIONS
from fullpipe.gate.judge import FAILED, UNDECIDED, Verdict, judged
from fullpipe.gate.measured import Measured, of_runs, plain_series, record_of
from fullpipe.gate.options import Options, Watch
from fullpipe.gate.traces import first_difference
from fullpipe.measures.run import Run
from fullpipe.runs import sweep
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task
from fullpipe.runs.memory import Memory
from fullpipe.runs.store import Store
from fullpipe.runs.worlds import registry, stacks
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.world import refusal
from fullpipe.scenario.scenario import Scenario

# A store that is larger is emptied. A gate of 20 cases with three seeds keeps about 2 MB for each build.
_MOST_STORED_BYTES = 1 << 29


@dataclass
class Outcome:
    """The results of cases, by case and world."""

    measured: dict[tuple[str, str], Measured] = field(default_factory=dict)
    # The results of the controller of `not_worse_than`.
    references: dict[tuple[str, str], Measured] = field(default_factory=dict)
    # Why a case could not be run.
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    # The runs of a case, for figures and traces.
    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)


def chosen(gate: Gate, only: str | None) -> list[Case]:
    """The cases whose name matches a pattern; all without one.

    Raises:
        ScenarioError: There is none.
    """
    found = [case for case in gate.cases if only is None or fnmatchcase(case.name, only)]
    if not found:
        names = ", ".join(dict.fromkeys(case.name for case in gate.cases))
        raise mistake("only", only, f"a pattern that matches one of {names}", "correct it")
    return found


def carry_out(
    cases: Sequence[Case], options: Options, baseline: Mapping[tuple[str, str], Measured]
) -> Outcome:
    """Runs the cases. `baseline` is what decides whether more repetitions in wall time are needed."""
    outcome = Outcome()
    runnable = []
    for case in cases:
        if case.scenario is None or (reason := _refused(case)) is None:
            runnable.append(case)
        else:
            outcome.failed[case.key] = reason
    fixed = [case for case in runnable if case.kind != CONFORM and _deterministic(case)]
    _take(outcome, fixed, _swept({case.key: case.seeds for case in fixed}, fixed, options, options.store))
    conforming.play(
        [case for case in runnable if case.kind == CONFORM], outcome.measured, outcome.failed, options
    )
    for case in runnable:
        if case.kind != CONFORM and not _deterministic(case):
            _repeated(outcome, case, options, baseline.get(case.key))
    return outcome


def not_deterministic(
    cases: Sequence[Case], outcome: Outcome, options: Options
) -> dict[tuple[str, str], str]:
    """Runs deterministic cases again with their first seed; returns how those that differ do so."""
    fixed = [case for case in cases if case.key in outcome.measured and _deterministic(case)]
    ran = [case for case in fixed if case.kind != CONFORM]
    again = _swept({case.key: case.seeds[:1] for case in ran}, ran, options, None)
    found: dict[tuple[str, str], str] = {}
    for case in ran:
        first = outcome.runs[case.key][0]
        second = again.runs.get((case.key, False), [])
        if not second:
            found[case.key] = f"its second run failed: {again.failed.get(case.key, 'unknown')}"
        elif record_of(first) != record_of(second[0]):
            found[case.key] = _different(first, second[0])
    played: dict[tuple[str, str], Measured] = {}
    conforming.play(
        [case for case in fixed if case.kind == CONFORM], played, {}, replace(options, store=None)
    )
    for key, one in played.items():
        if one.records != outcome.measured[key].records:
            found[key] = "not deterministic: two plays of the same seed have different values"
    return found


def _different(first: Run, second: Run) -> str:
    where = first_difference(plain_series(first), plain_series(second))
    how = "" if where is None else f"; {where.sentence('the first run', 'the second')}"
    return f"not deterministic: two runs with seed {first.seed} differ{how}"


@dataclass
class _Swept:
    """Runs by case and whether they are of the reference, and reasons of cases that failed."""

    runs: dict[tuple[tuple[str, str], bool], list[Run]] = field(default_factory=dict)
    failed: dict[tuple[str, str], str] = field(default_factory=dict)


def _swept(
    seeds: Mapping[tuple[str, str], Sequence[int]],
    cases: Sequence[Case],
    options: Options,
    store: Path | None,
) -> _Swept:
    """Runs cases with these seeds, in the store if one is given."""
    wanted: dict[tuple[tuple[str, str], bool], list[Task]] = {}
    limits: dict[str, float] = {}
    for case in cases:
        for scenario, of_reference in ((case.scenario, False), (case.reference, True)):
            if scenario is not None:
                tasks = _tasks(case, scenario, seeds[case.key])
                wanted[case.key, of_reference] = tasks
                limits |= {task.key: max(_limit_s(case, task), limits.get(task.key, 0.0)) for task in tasks}
    swept = _Swept()
    if not wanted:
        return swept
    tasks = [task for own in wanted.values() for task in own]
    outcome = _sweep(tasks, store, options, Local(options.jobs, limit_s=lambda task: limits[task.key]))
    reasons = {failure.task.key: failure.reason for failure in outcome.failed}
    for (key, of_reference), own in wanted.items():
        _sort(swept, key, of_reference, own, outcome, reasons)
    return swept


def _sort(
    swept: _Swept,
    key: tuple[str, str],
    of_reference: bool,
    tasks: Sequence[Task],
    outcome: sweep.Outcome,
    reasons: Mapping[str, str],
) -> None:
    """Takes the runs of a case out of a sweep, or the reason why it has none."""
    who = "the controller of not_worse_than" if of_reference else "its run"
    for task in tasks:
        if task.key in reasons:
            swept.failed.setdefault(key, f"{who} with seed {task.job.seed} failed: {reasons[task.key]}")
    swept.runs[key, of_reference] = [one.run() for one in outcome.of(tasks) if not one.untrustworthy]


def _tasks(case: Case, scenario: Scenario, seeds: Sequence[int]) -> list[Task]:
    alone = registry.named(case.world).wall_time
    return [Task(case.world, Job(scenario.alternatives[0], seed), alone=alone) for seed in seeds]


def _sweep(tasks: Sequence[Task], folder: Path | None, options: Options, engine: Local) -> sweep.Outcome:
    """Runs tasks; without the store where there is none, or where it cannot be used now."""
    watch = partial(_report, options.watch)
    _bound(folder)
    if folder is not None and not any(map(_changes, tasks)):
        # Another gate may use it, or the disk may be full: neither is a reason to fail.
        with contextlib.suppress(OutputError, SweepError):
            return sweep.carry_out(tasks, Store(folder), engine, watch=watch)
    return sweep.carry_out(tasks, Memory(), engine, watch=watch)


def _changes(task: Task) -> bool:
    """Whether no fingerprint says all that decides a run: an adapter loads what its command does not name."""
    alternative = task.job.alternative
    return any(own.not_plain for own in alternative.own) or bool(stacks.requested(alternative.spec_json))


def _bound(folder: Path | None) -> None:
    """Empties a store that has grown large: its runs are of builds that nobody has any more."""
    if folder is None:
        return
    packs = [one for one in (folder / "runs").glob("*.pack") if one.is_file() and not one.is_symlink()]
    with contextlib.suppress(OSError):
        if sum(one.stat().st_size for one in packs) > _MOST_STORED_BYTES:
            for one in packs:
                one.unlink()


def _report(watch: Watch, progress: sweep.Progress) -> None:
    watch("cases", progress.cost, progress.cost_in_all, f"{progress.runs} of {progress.runs_in_all} runs")


def _take(outcome: Outcome, cases: Sequence[Case], swept: _Swept) -> None:
    """Adds what a sweep of deterministic cases gave."""
    for case in cases:
        if (reason := swept.failed.get(case.key) or _doubted(case, swept)) is None:
            _measure(outcome, case, swept, exact=True)
        else:
            outcome.failed[case.key] = reason


def _doubted(case: Case, swept: _Swept) -> str | None:
    """Why a case has no result although its runs ended; None if it has one."""
    wanted = [(case.key, False), *([(case.key, True)] if case.reference is not None else [])]
    empty = any(not swept.runs.get(key) for key in wanted)
    return "every run of it is untrustworthy, because the machine is too busy" if empty else None


def _measure(outcome: Outcome, case: Case, swept: _Swept, *, exact: bool) -> None:
    runs = swept.runs[case.key, False]
    outcome.runs[case.key] = runs
    outcome.measured[case.key] = rounded(of_runs(case, runs, exact=exact))
    if case.reference is not None:
        theirs = swept.runs[case.key, True]
        outcome.references[case.key] = rounded(of_runs(case, theirs, exact=exact))


def _repeated(outcome: Outcome, case: Case, options: Options, before: Measured | None) -> None:
    """Repeats a case in wall time until its verdict is decided, or the most repetitions are done."""
    together = _Swept()
    seeds = list(case.seeds) + [max(case.seeds) + more for more in range(1, case.repetitions + 1)]
    done, wanted = 0, LEAST_REPETITIONS
    while done < case.repetitions:
        swept = _swept({case.key: seeds[done:wanted]}, [case], options, None)
        if case.key in swept.failed:
            outcome.failed[case.key] = swept.failed[case.key]
            return
        for key, runs in swept.runs.items():
            together.runs.setdefault(key, []).extend(runs)
        done, wanted = wanted, min(wanted + 2, case.repetitions)
        if (reason := _doubted(case, together)) is not None:
            outcome.failed[case.key] = reason
            continue
        outcome.failed.pop(case.key, None)
        _measure(outcome, case, together, exact=False)
        now = outcome.measured[case.key]
        # A baseline has to be so narrow that equal runs are found to be equal.
        if judged(case, before or now, now, outcome.references.get(case.key)).status != UNDECIDED:
            return


def verdicts(
    cases: Sequence[Case], outcome: Outcome, baseline: Mapping[tuple[str, str], Measured]
) -> list[Verdict]:
    """The verdict of each case, in the gate file's order."""
    found = []
    for case in cases:
        if case.key in outcome.failed:
            found.append(
                Verdict(
                    case.name,
                    case.world,
                    case.subject,
                    FAILED,
                    reason=outcome.failed[case.key],
                    command=case.command,
                    place=case.place,
                )
            )
        else:
            reference = outcome.references.get(case.key)
            found.append(judged(case, baseline.get(case.key), outcome.measured[case.key], reference))
    return found


def _limit_s(case: Case, task: Task) -> float:
    """How long a run may take, in seconds: in wall time, it lasts as long as its scenario says besides."""
    lasts_s = task.job.alternative.duration_s if registry.named(case.world).wall_time else 0.0
    return case.limit_s + lasts_s


def _refused(case: Case) -> str | None:
    world = registry.named(case.world)
    for scenario in (case.scenario, case.reference):
        if scenario is not None and (reason := refusal(world, scenario.alternatives[0])) is not None:
            return reason
    return None


def _deterministic(case: Case) -> bool:
    return registry.named(case.world).deterministic
