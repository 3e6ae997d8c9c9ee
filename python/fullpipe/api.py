"""The verbs of the Python interface: compare controllers on a path, run a scenario, ask what there is."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fullpipe import _native, scenario
from fullpipe.agreement import Agreement
from fullpipe.errors import mistake
from fullpipe.results import Results, Run
from fullpipe.scenario import Amount, Scenario
from fullpipe.worlds import kernel, sim
from fullpipe.worlds.job import jobs

WORLDS = ("sim", "kernel", "all")
SEEDS = 5
REPETITIONS = 3

# What to run: a file, a dict of the same shape, or what `load` made of either.
Runnable: TypeAlias = str | Path | Mapping[str, Any] | Scenario
# Called with the world's name, runs done (fractional) and runs in all.
Watcher: TypeAlias = Callable[[str, float, int], None]


def compare(
    controllers: str | Sequence[str],
    *,
    rate: Amount,
    rtt: Amount,
    buffer: Amount = "1 bdp",
    loss: Amount | None = None,
    duration: Amount | None = None,
    flows: int = 1,
    seeds: int | Sequence[int] = SEEDS,
    repetitions: int = REPETITIONS,
    world: str = "sim",
    watch: Watcher | None = None,
) -> Results:
    """Puts each controller alone on one path and measures it.

    Sizes are words with units: `rate="100 Mbit/s"`, `rtt="40 ms"`, `buffer="1 bdp"` or `"100 KB"`, `loss="0.1
    %"`, `duration="20 s"`. A controller may carry parameters: `"bbr1:probe_gain=1.5"`. `flows` of the same
    controller share the path. `seeds` is how many (from 1) or which the simulator runs; the kernel world runs
    `repetitions`, in wall time. `world` is `"sim"`, `"kernel"` or `"all"`; with `"all"`, a kernel world that
    cannot run is a note in the result.

    Raises `ScenarioError` for what cannot be run and `WorldError` for a world that cannot run it.
    """
    what = scenario.comparison(
        controllers, rate=rate, rtt=rtt, buffer=buffer, loss=loss, duration=duration, flows=flows
    )
    runs, notes = execute(what, world=world, seeds=seeds, repetitions=repetitions, watch=watch)
    return Results(what, runs, notes)


def run(
    what: Runnable,
    *,
    world: str = "sim",
    seed: int | None = None,
    watch: Watcher | None = None,
) -> Results:
    """Runs a scenario, from a file or a dict of the same shape, once for each world and alternative.

    Without `seed` it is the scenario's own.
    """
    loaded = load(what)
    seeds = [loaded.seed if seed is None else seed]
    runs, notes = execute(loaded, world=world, seeds=seeds, repetitions=seeds, watch=watch)
    return Results(loaded, runs, notes)


def agree(
    what: Runnable,
    *,
    seeds: int | Sequence[int] = SEEDS,
    repetitions: int | Sequence[int] = REPETITIONS,
    watch: Watcher | None = None,
) -> Agreement:
    """Runs a scenario in the simulator and over the kernel, and judges how far they are apart.

    A number of seeds counts upwards from the scenario's own. `fullpipe.agreement` states the tolerances.
    """
    loaded = load(what)
    kernel_runs, sim_runs = (
        execute(loaded, world=world, seeds=seeds, repetitions=repetitions, watch=watch)[0]
        # The kernel first: where it cannot run, there is nothing to compare.
        for world in (kernel.NAME, sim.NAME)
    )
    return Agreement.of(Results(loaded, sim_runs + kernel_runs))


def load(what: Runnable) -> Scenario:
    """A scenario from a file or a dict."""
    if isinstance(what, Scenario):
        return what
    if isinstance(what, Mapping):
        return scenario.from_document(what)
    return scenario.from_file(what)


def execute(
    what: Scenario,
    *,
    world: str,
    seeds: int | Sequence[int],
    repetitions: int | Sequence[int] = REPETITIONS,
    watch: Watcher | None = None,
) -> tuple[list[Run], list[str]]:
    """Runs every alternative in the world or worlds; returns the runs and notes on what could not be run."""
    if world not in WORLDS:
        raise mistake("world", world, "sim, kernel or all", "name one of the three")
    sim_jobs = jobs(what.alternatives, _numbers("seeds", seeds, what.seed))
    kernel_jobs = jobs(what.alternatives, _numbers("repetitions", repetitions, what.seed))
    runs: list[Run] = []
    notes: list[str] = []
    if world in ("sim", "all"):
        runs += sim.run(sim_jobs, _progress(watch, sim.NAME, len(sim_jobs)))
    if world in ("kernel", "all"):
        try:
            runs += kernel.run(kernel_jobs, _progress(watch, kernel.NAME, len(kernel_jobs)))
        except _native.WorldError as error:
            if world == "kernel":
                raise
            notes.append(f"The kernel world did not run. {error}")
    return runs, notes


def controllers() -> list[dict[str, Any]]:
    """The congestion controllers there are: name, summary, source, the name in Linux, parameters."""
    found: list[dict[str, Any]] = json.loads(_native.controllers())
    return found


def schema() -> dict[str, Any]:
    """JSON Schema of a scenario document."""
    found: dict[str, Any] = json.loads(_native.schema())
    return found


def _numbers(name: str, given: int | Sequence[int], first: int) -> list[int]:
    """A number means that many from `first` upwards; a sequence is taken as it is."""
    numbers = range(first, first + given) if isinstance(given, int) else given
    try:
        chosen = [int(number) for number in numbers]
    except (TypeError, ValueError):
        chosen = []
    if not chosen or any(not 0 <= number < 2**64 for number in chosen) or len(set(chosen)) != len(chosen):
        raise mistake(name, given, "how many (from 1) or a list of different whole numbers", "e.g. 5")
    return chosen


def _progress(watch: Watcher | None, name: str, total: int) -> Callable[[float], None]:
    return lambda done: watch(name, done, total) if watch is not None else None
