"""Plays cases, as many at a time as there are cores."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from fullpipe import plugins
from fullpipe._native import Cancelled, ControllerError, ScenarioError, WorldError
from fullpipe.api import Watcher
from fullpipe.conformance import suites
from fullpipe.conformance.case import Case, Measured, NotApplicableError, NotReachedError
from fullpipe.conformance.conformance_report import ConformanceReport
from fullpipe.conformance.loss.case import LossCase, check_kind, traits
from fullpipe.conformance.results import (
    BBR3,
    FAIL,
    LOSS,
    NOT_APPLICABLE,
    NOT_JUDGED,
    PASS,
    SUITES,
    Check,
    Played,
    Result,
)
from fullpipe.conformance.runners import BEDS, broken, too_slow, world_of
from fullpipe.conformance.stage import STARTUP, Lab
from fullpipe.errors import mistake, renamed
from fullpipe.runs import machine
from fullpipe.runs.worlds import registry as worlds
from fullpipe.scenario.controllers import Chosen, Own, is_of_stack, place_of
from fullpipe.scenario.programs import Program

_TICK_S = 0.1
# Long enough to see Startup, which is how a controller shows that it is a BBR.
_SURVEY_S = 1.0
# How long a stage goes on when its play is over, of what it took and at most.
_AFTER_SHARE, _AFTER_S = 0.3, 1.0


def conform(
    controller: Chosen | Program,
    cases: Sequence[str] | None = None,
    *,
    world: str | None = None,
    like: str = "any",
    suite: str = BBR3,
    watch: Watcher | None = None,
    workers: int | None = None,
    judged: Callable[[Result], None] | None = None,
) -> ConformanceReport:
    """Holds a controller against the cases of BBRv3, all of them or those that are named.

    `controller` is a name, `"bbr3:loss_thresh=0.1"`, `"mine.py:MyController"`, `"noq:bbr3"` or a class that
    extends `Controller`. `world` is `"sim"`, or `"quic"` for real QUIC endpoints, which is where controllers
    inside a QUIC stack are played anyhow. Cases that speak of BBR's phases are not applicable to a controller
    that shows none. The result prints as a table; `result.passed` says whether every applicable case passes.

    `suite="loss"` has the cases of loss-based controllers instead. Each is for CUBIC, Reno, HyStart++ or
    all of them. What a controller of your own or of an adapter is, `like` says: `"cubic"`, `"reno"` or
    `"cubic,hystartpp"`.

    A `Program` is judged from outside, over real packets: by the cases for any sender, and by those for its
    kind, `like="bbr3"`, `"cubic"` or `"reno"` (docs/how-to/programs-conform.md). `workers` is then how many
    runs share the machine. `judged` is called with each result of a controller while other cases are played.

    Raises `ScenarioError` for a case or a controller that is not known, `WorldError` if the world cannot run
    it, and `ControllerError` for one that fails from the start.
    """
    if isinstance(cases, str):
        cases = [cases]
    if suite not in SUITES:
        raise mistake("suite", suite, f"one of {', '.join(SUITES)}", "choose one of these")
    if isinstance(controller, Program):
        if suite != BBR3:
            raise mistake("suite", suite, "for a controller, whose window is seen", "leave it out")
        return _of_program(controller, cases, world, like, watch, workers)
    suites.check_like(suite, like)
    chosen = suites.CHOSEN[suite](cases)
    world = world_of(controller) if world is None else world
    if world not in BEDS:
        raise mistake("world", world, f"one of {', '.join(BEDS)}", "choose a world that runs step by step")
    played_by = worlds.named(world).versions()
    name = _name(controller)
    shortfall = _shortfall(controller, name, world)
    if suite == LOSS:
        check_kind(name, like)
    has = traits(name, like, own=not isinstance(controller, str) or ".py:" in name)
    stop = threading.Event()

    def lab(seed: int) -> Lab:
        return Lab(controller, seed, BEDS[world], broken, stop.is_set, world)

    barred = {case.name: _barred(case, name, world, shortfall, has) for case in chosen}
    jobs = [(case, seed) for case in chosen if barred[case.name] is None for seed in case.seeds]
    played: dict[tuple[str, int], _Attempt] = {}
    results: dict[str, Result] = {}
    for (case, seed), attempt in _carry_out(jobs, lab, stop, world, watch, workers):
        played[case.name, seed] = attempt
        if all((case.name, one) in played for one in case.seeds):
            results[case.name] = _judged(case, [played.pop((case.name, one)) for one in case.seeds])
            if judged is not None:
                judged(results[case.name])
    report = tuple(
        Result(case, NOT_APPLICABLE, reason)
        if (reason := barred[case.name]) is not None
        else results[case.name]
        for case in chosen
    )
    return ConformanceReport(name, world, report, versions=played_by, suite=suite)


def _of_program(
    program: Program,
    cases: Sequence[str] | None,
    world: str | None,
    like: str,
    watch: Watcher | None,
    workers: int | None,
) -> ConformanceReport:
    from fullpipe.conformance.programs.run import WORLD, conform_program

    if world not in (None, WORLD):
        raise mistake("world", world, f'"{WORLD}", which alone runs programs', "leave it out")
    return conform_program(
        program.client,
        program.server,
        sender=program.sender,
        name=program.label,
        like=like,
        cases=cases,
        at_once=workers,
        watch=watch,
    )


def _name(controller: Chosen) -> str:
    if isinstance(controller, str):
        return controller
    return controller.text if isinstance(controller, Own) else controller.__name__


def _barred(case: Case, name: str, world: str, shortfall: str | None, has: frozenset[str]) -> str | None:
    """Why a case is not applicable to a controller; None if it is.

    `lacks`: why none of BBR's phases is. `has`: its traits.
    """
    if isinstance(case, LossCase) and (why := case.unusable(name, has)) is not None:
        return why
    if (why := case.not_in.get(world)) is not None:
        return why
    if case.phases and shortfall is not None:
        return shortfall
    for other, why in case.differs.items():
        if _is_variant(name, other):
            return why
    return None


def _is_variant(name: str, other: str) -> bool:
    """Whether a controller is another one with further parameters, in any order."""
    algorithm, _, message = name.partition(":")
    others, _, wanted = other.partition(":")
    return algorithm == others and set(wanted.split(",")) <= {one.strip() for one in message.split(",")}


def _shortfall(controller: Chosen, name: str, world: str) -> str | None:
    """What a controller lacks of what cases of BBR's phases look at; None for a BBR.

    A BBR shows Startup at its beginning. What is inside a QUIC stack may not show its estimate.
    """
    try:
        looks = Lab(controller, 1, BEDS[world], broken).stage(name="survey").run(_SURVEY_S)
    except ScenarioError as error:
        raise renamed(error, {"flows[0].controller": "controller"}) from None
    except NotApplicableError as error:
        # What it refuses of a plain path is the controller.
        raise WorldError(str(error)) from None
    except WorldError as error:
        if (late := too_slow(name, error)) is None:
            raise
        raise WorldError(late) from None
    if not any(look.phase == STARTUP for look in looks):
        return f"{name} {'shows' if is_of_stack(name) else 'has'} no phases of BBR"
    if is_of_stack(name) and not any(look.bandwidth_bps for look in looks):
        return f"{name} shows no estimate of the bandwidth, at which cases of BBR's phases look"
    return None


@dataclass(frozen=True)
class _Attempt:
    """What one seed of a case came to."""

    seed: int
    measured: Measured = field(default_factory=dict)
    # Why it was not measured, or cannot be.
    reason: str = ""
    applicable: bool = True
    # A limit of real time ended it, which says nothing about the controller.
    broken_off: bool = False
    played: tuple[Played, ...] = ()


def _carry_out(
    jobs: Sequence[tuple[Case, int]],
    lab: Callable[[int], Lab],
    stop: threading.Event,
    world: str,
    watch: Watcher | None,
    workers: int | None,
) -> Iterator[tuple[tuple[Case, int], _Attempt]]:
    pool = ThreadPoolExecutor(workers or machine.cores(), thread_name_prefix="fullpipe-conform")
    futures: dict[Future[_Attempt], tuple[Case, int]] = {
        pool.submit(_attempt, case, lab(seed)): (case, seed) for case, seed in jobs
    }
    try:
        pending = set(futures)
        while pending:
            finished, pending = wait(pending, timeout=_TICK_S, return_when=FIRST_EXCEPTION)
            for future in finished:
                yield futures[future], future.result()
            if watch is not None:
                watch(world, len(futures) - len(pending), len(futures))
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _attempt(case: Case, lab: Lab) -> _Attempt:
    """Plays a case once. What a controller or a case raises costs that case only."""
    measured: Measured = {}
    reason, applicable, broken_off = "", True, False
    try:
        measured = case.play(lab)
        reason = "; ".join(lab.notes)
    except NotApplicableError as error:
        reason, applicable = str(error), False
    except NotReachedError as error:
        reason = str(error)
    except ControllerError as error:
        reason = f"{place_of(error)}{error}"
    except (Cancelled, ScenarioError):
        raise
    except WorldError as error:
        late = too_slow(_name(lab.controller), error)
        # E.g. a connection that ended with an error of its own.
        reason, broken_off = late or str(error), late is not None
    # A broken invariant of a built-in controller is a `PanicException`, which is no `Exception`.
    except BaseException as error:
        if plugins.is_interrupt(error):
            raise
        reason = plugins.described(error)
    played = () if broken_off else tuple(_played(lab))
    return _Attempt(lab.seed, measured, reason, applicable, broken_off, played)


def _played(lab: Lab) -> Iterator[Played]:
    for stage in lab.stages:
        try:
            # What comes next, for the figures.
            stage.run(min(stage.end_ns / 1e9 * _AFTER_SHARE, _AFTER_S))
            runs = stage.bed.record()
        # One whose controller raised or panicked has none.
        except BaseException as error:
            if plugins.is_interrupt(error):
                raise
            continue
        yield Played(stage.name, runs, tuple(stage.marks), stage.repeatable, tuple(stage.changes))


def _judged(case: Case, attempts: Sequence[_Attempt]) -> Result:
    """The worst of each criterion over the seeds, and the stages of the seed that is worst."""
    late = [one for one in attempts if one.broken_off]
    applicable = [one for one in attempts if one.applicable and not one.broken_off]
    if not applicable and not late:
        return Result(case, NOT_APPLICABLE, attempts[0].reason)
    checks = []
    for criterion in case.criteria if applicable else ():
        worst = max(
            applicable,
            key=lambda one, of=criterion: of.excess(one.measured.get(of.key)),  # type: ignore[misc]
        )
        checks.append(Check(criterion, worst.measured.get(criterion.key), worst.seed))
    unmet = [check for check in checks if not check.met]
    if late and not unmet:
        return Result(case, NOT_JUDGED, late[0].reason, reason_seed=late[0].seed)
    shown = unmet[0].seed if unmet else applicable[0].seed
    reported = next(one for one in applicable if one.seed == shown)
    because = next((one for one in [reported, *applicable] if one.reason), None)
    reason, seed = (because.reason, because.seed) if because is not None else ("", None)
    return Result(case, FAIL if unmet else PASS, reason, tuple(checks), reported.played, seed)
