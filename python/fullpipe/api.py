"""The Python interface: compare controllers on a path, run a scenario, list controllers."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import fullpipe._native as _native
from fullpipe.agreement.agreement import Agreement
from fullpipe.errors import mistake
from fullpipe.measures.run import Run, left_metrics
from fullpipe.report.results import Results
from fullpipe.runs import sweep
from fullpipe.runs.engines import pool
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.single import Single
from fullpipe.runs.engines.task import Task
from fullpipe.runs.limits import check_runs
from fullpipe.runs.memory import Memory
from fullpipe.runs.worlds import log_size, registry
from fullpipe.runs.worlds.job import Job, Progress, jobs, logged
from fullpipe.runs.worlds.logs import LIMIT, SNAPLEN, Logs
from fullpipe.runs.worlds.world import World, refusal
from fullpipe.scenario import scenario
from fullpipe.scenario.controllers import Chosen
from fullpipe.scenario.path_fields import Amount, PathFields
from fullpipe.scenario.programs import Program
from fullpipe.scenario.scenario import Scenario

# How often an untrustworthy run is tried in all.
ATTEMPTS = sweep.ATTEMPTS

# Where the document of `compare` has a controller. Nobody wrote that document, and its errors quote the name.
_CONTROLLER = "flows[0].controller: "

# What to run: a file, a dict of the same shape, or the `Scenario` that `load` returned.
Runnable: TypeAlias = str | Path | Mapping[str, Any] | Scenario
# Called with the world's name, runs done (fractional) and runs in all.
Watcher: TypeAlias = Callable[[str, float, int], None]
# Called before the first run, with the runs to do and how many seconds they take, about.
Beginner: TypeAlias = Callable[[int, float], None]
# Called before the first run, with about how many bytes all logs will have, if there are logs.
LogBeginner: TypeAlias = Callable[[float], None]


@dataclass(frozen=True)
class Repeats:
    """How often a scenario runs.

    `seeds` is for worlds where a seed repeats a run, `repetitions` for others: how many, counted upwards from
    the scenario's seed, or a list of them, or None for the world's own number. Untrustworthy runs are tried
    up to `attempts` times.
    """

    seeds: int | Sequence[int] | None = None
    repetitions: int | Sequence[int] | None = None
    attempts: int = ATTEMPTS


@dataclass(frozen=True)
class Observer:
    """Who is told about the work: before it, and during it."""

    watch: Watcher | None = None
    begin: Beginner | None = None
    begin_logs: LogBeginner | None = None


_NOBODY = Observer()


def compare(
    controllers: Chosen | Program | Sequence[Chosen | Program],
    *,
    duration: Amount | None = None,
    flows: int = 1,
    ecn: bool = False,
    seeds: int | Sequence[int] | None = None,
    repetitions: int | None = None,
    attempts: int = ATTEMPTS,
    world: str = registry.DEFAULT,
    qlog: str | Path | None = None,
    pcap: str | Path | None = None,
    snaplen: int = SNAPLEN,
    log_limit: str | int = LIMIT,
    watch: Watcher | None = None,
    begin: Beginner | None = None,
    begin_logs: LogBeginner | None = None,
    **path: Unpack[PathFields],
) -> Results:
    """Puts each controller alone on one path and measures it.

    The path is given by its keys (`PathFields`): `rate` or `deliveries`, `rtt`, and what else it has, such as
    `jitter="2 ms"` or `reorder="1 %, 5 ms"`. Sizes are strings with units: `rate="100 Mbit/s"`,
    `rtt="40 ms"`, `buffer="1 bdp"` or `"100 KB"`, `loss="0.1 %"`, `duration="20 s"`. Without `buffer`, the
    queue holds one bandwidth-delay product, but at
    least 10 packets. `queue` is its discipline: `"fifo"` by default; `queues()` lists them. With `ecn`,
    connections negotiate ECN, as those of
    controllers that need it always do. A controller may carry parameters: `"bbr1:probe_gain=1.5"`. It may
    be one of your own: a class that extends `Controller`, or `"mine.py:MyController"`. A `Program` is
    measured by its packets, in the kernel world. `flows` of the same controller share the path. `seeds` is
    the number of seeds (from 1) or a list of them, for worlds where a seed repeats a run: by default 5 in
    the simulator. Others run `repetitions`: by default 3 in the kernel world, where they take real time.
    Untrustworthy runs are tried up to `attempts` times. `world` is `"sim"`, `"kernel"`, the name of another
    world that is installed, or `"all"`; with `"all"`, a world that cannot run is a note in the result. So
    is a controller that a world does not have, as long as others can run there. `qlog` and `pcap` are
    folders for logs of each run's packets, as qlog and as pcapng, which keeps `snaplen` bytes of each
    (docs/how-to/export.md). Logs that would be larger than `log_limit` in all, by an estimate, are an error
    before the first run. `watch`, `begin` and `begin_logs` are called with the progress, with the work before
    it, and with the estimated size of the logs (`Watcher`, `Beginner`, `LogBeginner`).

    Raises `ScenarioError` for an invalid scenario and `WorldError` for a world that cannot run it.
    """
    what = scenario.comparison(controllers, duration=duration, flows=flows, ecn=ecn, **path)
    try:
        runs, notes = execute(
            what,
            world,
            Repeats(seeds, repetitions, attempts),
            _logs(qlog, pcap, snaplen, log_limit),
            Observer(watch, begin, begin_logs),
        )
    except _native.WorldError as error:
        refused = _native.WorldError(str(error).removeprefix(_CONTROLLER))
        refused.fix = error.fix
        raise refused from None
    notes = [note.replace(f" {_CONTROLLER}", " ") for note in notes]
    return Results(what, runs, [*what.notes, *notes])


def run(
    what: Runnable,
    *,
    world: str = registry.DEFAULT,
    seed: int | None = None,
    seeds: int | Sequence[int] = 1,
    repetitions: int | Sequence[int] = 1,
    attempts: int = ATTEMPTS,
    qlog: str | Path | None = None,
    pcap: str | Path | None = None,
    snaplen: int = SNAPLEN,
    log_limit: str | int = LIMIT,
    watch: Watcher | None = None,
    begin: Beginner | None = None,
    begin_logs: LogBeginner | None = None,
) -> Results:
    """Runs a scenario, from a file or a dict of the same shape, in one world or all.

    By default it runs once for each world and alternative. `seeds` and `repetitions` count upwards from
    `seed`, by default the scenario's own. The other arguments are those of `compare`.
    """
    loaded = load(what)
    first = loaded.seed if seed is None else _seed("seed", seed)
    repeats = Repeats(
        _numbers("seeds", seeds, first, len(loaded.alternatives)),
        _numbers("repetitions", repetitions, first, len(loaded.alternatives)),
        attempts,
    )
    logs = _logs(qlog, pcap, snaplen, log_limit)
    runs, notes = execute(loaded, world, repeats, logs, Observer(watch, begin, begin_logs))
    return Results(loaded, runs, [*loaded.notes, *notes])


def run_in_order(
    what: Sequence[Runnable],
    *,
    world: str = registry.DEFAULT,
    seeds: int | Sequence[int] | None = None,
    watch: Watcher | None = None,
) -> list[Results]:
    """Runs scenarios one after the other between the same two hosts, which remember (Linux's tcp_metrics).

    Each begins with the entry that the one before has left; the first with its own `hosts.metrics`, or none.
    Whether slow-start thresholds are kept is up to each scenario (`save_ssthresh`). What a run leaves is the
    entry after the last of its connections has ended, at the end of the run for those that have not. Each
    scenario has one alternative. `seeds` is the seed of all, or a list with one for each; by default the
    scenarios' own. `left_metrics` has the entry that a run left.

    Raises `WorldError` before the first run in a world that cannot begin with an entry, as the kernel's.
    """
    if isinstance(what, str | Path | Mapping | Scenario) or not isinstance(what, Sequence):
        raise mistake("what", what, "a list of scenarios", "write [scenario, scenario]")
    loaded = [load(one) for one in what]
    if several := next((one for one in loaded if len(one.alternatives) != 1), None):
        raise mistake("what", several.name, "scenarios with one alternative each", "leave compare out")
    chosen = _seeds_in_order(seeds, loaded)
    if len(loaded) > 1:
        _check_inherits(world)
    entry: dict[str, Any] = {}
    done = []
    for one, plain, seed in zip(what, loaded, chosen, strict=True):
        hosts = plain.document.get("hosts") or {}
        metrics = {**(hosts.get("metrics") or {}), **entry}
        document = {**plain.document, "hosts": {**hosts, "metrics": metrics}}
        folder = Path(one).parent if isinstance(one, str | Path) else None
        begun = scenario.from_document(document, folder)
        runs, notes = execute(begun, world, Repeats([seed], [seed]), observer=Observer(watch))
        # The notes of what was written: nobody wrote what it has inherited.
        results = Results(begun, runs, [*plain.notes, *notes])
        entry = left_metrics(results.runs[0]) or entry
        done.append(results)
    return done


def _seeds_in_order(given: Any, loaded: Sequence[Scenario]) -> list[int]:
    """A seed for each scenario."""
    if given is None:
        return [one.seed for one in loaded]
    if isinstance(given, str) or not isinstance(given, Sequence):
        return [_seed("seeds", given)] * len(loaded)
    if len(given) != len(loaded):
        raise mistake("seeds", given, f"one for each of the {len(loaded)} scenarios", "leave it out")
    return [_seed("seeds", one) for one in given]


def _check_inherits(world: str) -> None:
    """Checks that a run in this world can begin with what another one has left."""
    chosen = registry.chosen(world)
    if len(chosen) > 1:
        raise mistake(
            "world", world, "one world: each run begins with what the one before has left", 'e.g. "sim"'
        )
    if chosen[0].real_hosts:
        fix = 'use world="sim"'
        why = "the hosts are real, and no system lets anybody write what they remember"
        refused = _native.WorldError(
            f"the {chosen[0].place} cannot begin with what an earlier run has left: {why}; {fix}"
        )
        refused.fix = fix
        raise refused


def agree(
    what: Runnable,
    *,
    worlds: Sequence[str] = registry.PAIR,
    seeds: int | Sequence[int] | None = None,
    repetitions: int | Sequence[int] | None = None,
    attempts: int = ATTEMPTS,
    watch: Watcher | None = None,
    begin: Beginner | None = None,
) -> Agreement[Results]:
    """Runs a scenario in two worlds, and judges how far they are apart.

    The second world is the reference: the range of its runs counts. By default these are the simulator and
    the kernel. A number of seeds counts upwards from the scenario's own. Untrustworthy runs are tried up to
    `attempts` times, and then left out. `fullpipe.agreement.agreement` states the tolerances.
    """
    loaded = load(what)
    ours, theirs = registry.pair(worlds)
    # Wall time first, and else the reference: if it cannot run, there is nothing to compare.
    order = (ours, theirs) if ours.wall_time and not theirs.wall_time else (theirs, ours)
    planned = _planned(loaded, order, Repeats(seeds, repetitions, attempts))
    _report(begin, planned)
    done = {world.name: _carry_out([(world, wanted)], attempts, watch) for world, wanted in planned}
    (our_runs, our_notes), (their_runs, their_notes) = done[ours.name], done[theirs.name]
    notes = [*loaded.notes, *our_notes, *their_notes]
    return Agreement.of(Results(loaded, our_runs + their_runs, notes), worlds)


def load(what: Runnable, *, code: bool = False, programs: bool = False) -> Scenario:
    """A scenario from a file or a dict.

    With `code`, a file may name controllers in Python, which are run; with `programs`, its flows may be
    programs, whose commands are run.
    """
    if isinstance(what, Scenario):
        return what
    if isinstance(what, Mapping):
        return scenario.from_document(what)
    return scenario.from_file(what, code=code, programs=programs)


def execute(
    what: Scenario,
    world: str,
    repeats: Repeats,
    logs: Logs | None = None,
    observer: Observer = _NOBODY,
) -> tuple[list[Run], list[str]]:
    """Runs every alternative in the world or worlds; returns the runs and notes on what could not be run."""
    planned = _planned(what, registry.chosen(world), repeats)
    planned = [(one, logged(wanted, logs)) for one, wanted in planned]
    if logs is not None:
        _check_logs(observer.begin_logs, planned, logs.limit)
    _report(observer.begin, planned)
    runs, notes = _carry_out(planned, repeats.attempts, observer.watch)
    return runs, [*notes, *(note for run in runs for note in run.log_notes)]


def _logs(qlog: str | Path | None, pcap: str | Path | None, snaplen: int, limit: str | int) -> Logs | None:
    log_size.in_bytes(limit)  # One that cannot be used is an error also without logs.
    return Logs.of(qlog, pcap, snaplen, limit)


def _planned(what: Scenario, worlds: Sequence[World], repeats: Repeats) -> list[tuple[World, list[Job]]]:
    """The runs of each world. Raises `ScenarioError` for numbers that cannot be used."""
    if isinstance(repeats.attempts, bool) or repeats.attempts < 1:
        raise mistake("attempts", repeats.attempts, "a whole number from 1", "e.g. 3")
    numbers = {
        name: None if count is None else _numbers(name, count, what.seed, len(what.alternatives))
        for name, count in (("seeds", repeats.seeds), ("repetitions", repeats.repetitions))
    }
    planned = []
    for world in worlds:
        given = numbers["seeds" if world.deterministic else "repetitions"]
        planned.append((world, jobs(what.alternatives, given or range(what.seed, what.seed + world.runs))))
    return planned


def _report(begin: Beginner | None, planned: Sequence[tuple[World, list[Job]]]) -> None:
    """Tells how many runs there are, and how long they take if none is repeated."""
    if begin is None:
        return
    tasks = [
        Task(world.name, job, alone=not _side_by_side(world))
        for world, wanted in planned
        for job in wanted
        if refusal(world, job.alternative) is None
    ]
    begin(len(tasks), Local().takes_s(tasks))


def _check_logs(
    begin: LogBeginner | None, planned: Sequence[tuple[World, list[Job]]], limit: str | int
) -> None:
    """Reports how large the logs become, before the first run. Raises `ScenarioError` if that is too much."""
    wanted = [
        job
        for world, jobs_of_world in planned
        for job in jobs_of_world
        if world.writes_logs and refusal(world, job.alternative) is None
    ]
    if (size := log_size.estimate(wanted)) > 0:
        log_size.check(size, limit)
        if begin is not None:
            begin(size)


def _side_by_side(world: World) -> bool:
    """Whether its runs share the cores. In the others, one at a time can be repeated until it is trusted."""
    return world.deterministic and not world.wall_time


def _carry_out(
    planned: Sequence[tuple[World, list[Job]]], attempts: int, watch: Watcher | None
) -> tuple[list[Run], list[str]]:
    """The runs, and notes on what could not be run. Raises the first error if nothing could."""
    runs: list[Run] = []
    notes: list[str] = []
    errors: list[_native.WorldError] = []
    for world, wanted in planned:
        try:
            more, left_out = _in_world(world, wanted, attempts, watch)
            runs, notes = runs + more, notes + left_out
        except _native.WorldError as error:
            errors.append(error)
            notes.append(f"The {world.place} did not run. {error}")
    if not runs:
        raise errors[0]
    return runs, notes


def _in_world(
    world: World, wanted: list[Job], attempts: int, watch: Watcher | None
) -> tuple[list[Run], list[str]]:
    """The runs of a world, alternative by alternative, and notes on those that it cannot run.

    Raises the first alternative's error when it can run none.
    """
    notify = _progress(watch, world.name, len(wanted))
    runs: list[Run] = []
    refused: dict[str, _native.WorldError] = {}
    by_label: dict[str, list[Job]] = {}
    for job in wanted:
        by_label.setdefault(job.alternative.label, []).append(job)
    for label, own in list(by_label.items()):
        if (reason := refusal(world, own[0].alternative)) is not None:
            refused[label] = _native.WorldError(reason)
            del by_label[label]
    if _side_by_side(world):
        runs = pool.run(world, [job for own in by_label.values() for job in own], notify)
    else:
        done = 0
        for label, own in by_label.items():
            try:
                runs += _trusted(world, own, attempts, lambda part, before=done: notify(before + part))  # type: ignore[misc]
            except _native.WorldError as error:
                refused[label] = error
            done += len(own)
    if refused and not runs:
        raise next(iter(refused.values()))
    return runs, [f"{label} did not run in the {world.place}: {error}" for label, error in refused.items()]


def _trusted(world: World, wanted: list[Job], attempts: int, progress: Progress) -> list[Run]:
    """One run for each job; an untrustworthy one is repeated, as in a grid."""
    tasks = [Task(world.name, job, alone=True) for job in wanted]
    outcome = sweep.carry_out(tasks, Memory(), Single(len(tasks), progress), attempts=attempts)
    return [stored.run() for stored in outcome.of(tasks)]


def controllers() -> list[dict[str, Any]]:
    """The available congestion controllers: name, summary, source, the name in Linux, parameters.

    Those inside QUIC stacks come last, if the program with the stacks is there. Only the world `quic` runs
    them, and they have no parameters.
    """
    found: list[dict[str, Any]] = json.loads(_native.controllers())
    return [*found, *map(dict, registry.controllers())]


def queues() -> list[dict[str, Any]]:
    """The available queue disciplines: name, summary, source, the name in Linux, settings."""
    found: list[dict[str, Any]] = json.loads(_native.queues())
    return found


def schema() -> dict[str, Any]:
    """JSON Schema of a scenario document."""
    found: dict[str, Any] = json.loads(_native.schema())
    return found


def _numbers(name: str, given: int | Sequence[int], first: int, alternatives: int) -> list[int]:
    """A number means that many from `first` upwards; a sequence is used as it is."""
    check_runs(name, given if isinstance(given, int) else len(given), alternatives)
    if isinstance(given, int) and given >= 1 and first + given > 2**64:
        raise mistake(
            "seed", first, f"at most {2**64 - given}: {given} {name} count upwards from it", "e.g. 1"
        )
    numbers = range(first, first + given) if isinstance(given, int) else given
    try:
        chosen = [int(number) for number in numbers]
    except (TypeError, ValueError):
        chosen = []
    if not chosen or any(not 0 <= number < 2**64 for number in chosen) or len(set(chosen)) != len(chosen):
        expected = "a whole number from 1" if isinstance(given, int) else "a list of different whole numbers"
        raise mistake(name, given, expected, "e.g. 5" if isinstance(given, int) else "e.g. [1, 2, 3]")
    return chosen


def _seed(name: str, given: Any) -> int:
    """One seed."""
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**64:
        raise mistake(name, given, "a whole number from 0 to 2^64 - 1", "e.g. 1")
    return given


def _progress(watch: Watcher | None, name: str, total: int) -> Callable[[float], None]:
    return lambda done: watch(name, done, total) if watch is not None else None
