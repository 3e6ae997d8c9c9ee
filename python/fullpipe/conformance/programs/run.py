"""Runs the courses with a program, and judges the cases by what the path saw.

Each course runs several times, because real programs over real packets are never twice the same. A criterion
is met if it is met in more than half of the repetitions. Runs that the emulator could not carry on time are
repeated, and left out if they stay untrustworthy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe._native import ScenarioError, WorldError
from fullpipe.api import ATTEMPTS, Watcher
from fullpipe.conformance.case import Criterion, Measured
from fullpipe.conformance.conformance_report import ConformanceReport
from fullpipe.conformance.programs import registry
from fullpipe.conformance.programs.case import (
    BEGINS_BY_S,
    LIKES,
    OF_LIKE,
    Course,
    OutsideCase,
    name_of,
)
from fullpipe.conformance.programs.packets import NotJudgedError, Seen
from fullpipe.conformance.results import (
    FAIL,
    NOT_APPLICABLE,
    NOT_JUDGED,
    PASS,
    Check,
    Played,
    Result,
)
from fullpipe.errors import mistake, renamed
from fullpipe.measures.run import Run, Runs
from fullpipe.runs import machine, sweep
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.single import Single
from fullpipe.runs.engines.task import Task
from fullpipe.runs.limits import check_runs
from fullpipe.runs.memory import Memory
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.kernel_trust import Load
from fullpipe.scenario.scenario import Scenario, from_document

# The world that runs programs.
WORLD = "kernel"
REPETITIONS = 3
SENDERS = ("client", "server")
# In commands: a port that is a flow's own, without which two programs cannot share a path.
_PORT = "{port}"


def conform_program(
    client: str,
    server: str,
    *,
    sender: str = "client",
    name: str | None = None,
    like: str = "any",
    cases: Sequence[str] | str | None = None,
    repetitions: int = REPETITIONS,
    attempts: int = ATTEMPTS,
    at_once: int | None = None,
    watch: Watcher | None = None,
) -> ConformanceReport:
    """Holds a program against the cases that can be judged from outside, over real packets.

    `client` and `server` are command lines; `{server}` in them is the server's address, `{port}` a port of
    the flow's own. `sender` says which of them sends the data. It has to send for as long as the longest case
    lasts, 30 s. `like` is what its congestion control is: `"bbr3"`, `"cubic"` or `"any"`; it decides which
    cases apply. `at_once` is how many runs share the machine, by default one. The machine has to be idle:
    a program that waits for a core sends late, which nothing marks. `result.program["load_a_core"]` is the
    load average of a core before the first run.

    Raises `ScenarioError` for an argument that cannot be used, and `WorldError` if the kernel world or the
    program fails in the first run. What fails later leaves the case without a verdict.
    """
    if sender not in SENDERS:
        raise mistake("sender", sender, "client or server", "name the side that sends the data")
    flow = {"client": client, "server": server, "sender": sender}
    return judge(
        flow,
        Subject(name or name_of(client), {**flow, "like": like}, _PORT in client and _PORT in server),
        world=WORLD,
        like=like,
        cases=cases,
        repetitions=repetitions,
        attempts=attempts,
        at_once=at_once,
        watch=watch,
    )


@dataclass(frozen=True)
class Subject:
    """Who is judged."""

    name: str
    # What pages and JSON say of it.
    message: Mapping[str, Any]
    # Whether it can run beside another one.
    sociable: bool = True


def judge(
    flow: Mapping[str, Any],
    subject: Subject,
    *,
    world: str,
    like: str = "any",
    cases: Sequence[str] | str | None = None,
    repetitions: int = REPETITIONS,
    attempts: int = ATTEMPTS,
    at_once: int | None = None,
    watch: Watcher | None = None,
) -> ConformanceReport:
    """Judges any flow from outside: a table `flows` of a scenario, in any world that can run it."""
    if like not in LIKES:
        raise mistake("like", like, f"one of {', '.join(LIKES)}", "say what the congestion control is like")
    for key, count in (("repetitions", repetitions), ("at_once", 1 if at_once is None else at_once)):
        if isinstance(count, bool) or count < 1:
            raise mistake(key, count, "a whole number from 1", "e.g. 3")
    chosen = registry.chosen([cases] if isinstance(cases, str) else cases)
    barred = {case.name: _barred(case, like, subject) for case in chosen}
    courses = {case.on.name: case.on for case in chosen if barred[case.name] is None}
    check_runs("repetitions", repetitions, max(1, len(courses)))
    load = round(Load().average / machine.cores(), 2)
    outings = _carry_out(courses, flow, world, repetitions, attempts, at_once or 1, watch)
    results = [
        _judged(case, outings[case.on.name], repetitions)
        if (why := barred[case.name]) is None
        else Result(case, why[0], why[1])
        for case in chosen
    ]
    message = {**subject.message, "repetitions": repetitions, "at_once": at_once or 1, "load_a_core": load}
    return ConformanceReport(subject.name, world, tuple(results), message)


def _barred(case: OutsideCase, like: str, subject: Subject) -> tuple[str, str] | None:
    """The verdict and the reason of a case that is not run; None if it is."""
    if not case.speaks_of(like):
        return NOT_APPLICABLE, f"it is about {OF_LIKE[case.like]}"
    if not case.on.is_alone and not subject.sociable:
        return NOT_JUDGED, "two programs at once need a port each: write {port} in both commands"
    return None


@dataclass
class _Outing:
    """What the runs of a course came to."""

    course: Course
    scenario: Scenario
    runs: list[Run]
    failed: list[str]

    def seen(self, run: Run) -> Seen:
        return Seen(run, mbps=self.course.mbps, ms=self.course.ms)


def _carry_out(
    courses: Mapping[str, Course],
    flow: Mapping[str, Any],
    world: str,
    repetitions: int,
    attempts: int,
    at_once: int,
    watch: Watcher | None,
) -> dict[str, _Outing]:
    """Runs every course. The first run is alone: if it fails, all would, and its error is raised."""
    outings = {name: _Outing(course, _scenario(course, flow), [], []) for name, course in courses.items()}
    tasks = {
        (name, seed): Task(world, Job(outing.scenario.alternatives[0], seed))
        for name, outing in outings.items()
        for seed in range(1, repetitions + 1)
    }
    if not tasks:
        return outings
    # The longest shows at once whether the program sends for long enough; one that is alone is the plainest.
    first = max(tasks, key=lambda of: (courses[of[0]].is_alone, courses[of[0]].lasts_s, -of[1]))
    store = Memory()
    done = sweep.carry_out([tasks[first]], store, Single(1), attempts=attempts).of([tasks[first]])
    needed_s = max(course.lasts_s for course in courses.values())
    _check_first(outings[first[0]].seen(done[0].run()), outings[first[0]].course, needed_s)

    def report(progress: sweep.Progress) -> None:
        if watch is not None:
            watch(world, 1 + progress.runs, len(tasks))

    rest = [task for of, task in tasks.items() if of != first]
    outcome = sweep.carry_out(rest, store, Local(at_most=at_once), attempts=attempts, watch=report)
    runs = {one.task.key: one.run() for one in [*done, *outcome.of(rest)]}
    reasons = {failed.task.key: failed.reason for failed in outcome.failed}
    for (name, _), task in tasks.items():
        if task.key in runs:
            outings[name].runs.append(runs[task.key])
        elif task.key in reasons:
            outings[name].failed.append(reasons[task.key])
    return outings


def _scenario(course: Course, flow: Mapping[str, Any]) -> Scenario:
    try:
        return from_document(course.document(flow))
    except ScenarioError as error:
        names = {"client": "program", "server": "server", "sender": "sender"}
        raise renamed(error, {f"flows[0].{key}": name for key, name in names.items()}) from None


def _check_first(seen: Seen, course: Course, needed_s: float) -> None:
    """Raises `WorldError` if the first run shows that no case could be judged."""
    if seen.run.untrustworthy:
        return
    try:
        seen.check(until_s=course.lasts_s, begins_by_s=BEGINS_BY_S)
    except NotJudgedError as error:
        raise WorldError(f"{error} (the longest case needs {needed_s:g} s)") from None


def _judged(case: OutsideCase, outing: _Outing, repetitions: int) -> Result:
    """The verdict of a case by the trusted runs of its course."""
    reasons = list(outing.failed)
    measured: list[tuple[Run, Measured]] = []
    for run in outing.runs:
        if run.untrustworthy:
            reasons.append(f"the emulator was late: {run.untrustworthy[0]}")
            continue
        seen = outing.seen(run)
        try:
            seen.check(until_s=outing.course.lasts_s, begins_by_s=BEGINS_BY_S)
            measured.append((run, case.play(seen)))
        except NotJudgedError as error:
            reasons.append(str(error))
    why = "; ".join(dict.fromkeys(reasons))
    shown = [run for run, _ in measured] or outing.runs
    played = (
        (Played(outing.course.name, Runs(outing.scenario, shown), outing.course.marks, repeatable=True),)
        if shown
        else ()
    )
    if not measured:
        return Result(case, NOT_JUDGED, why or "it did not run", played=played)
    if why:
        why = f"{len(measured)} of {repetitions} repetitions count: {why}"
    checks = tuple(_checked(criterion, measured) for criterion in case.criteria)
    verdict = PASS if all(check.met for check in checks) else FAIL
    return Result(case, verdict, why, checks, played)


def _checked(criterion: Criterion, measured: Sequence[tuple[Run, Measured]]) -> Check:
    """The middle one of the repetitions, from best to worst; of two, the worse."""
    values = [
        (criterion.excess(of.get(criterion.key)), of.get(criterion.key), run.seed) for run, of in measured
    ]
    values.sort(key=lambda one: one[0])
    _, value, seed = values[len(values) // 2]
    return Check(criterion, value, seed, tuple(one[1] for one in values))
