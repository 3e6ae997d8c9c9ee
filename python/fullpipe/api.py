"""The verbs of the Python interface: compare controllers on a path, run a scenario, ask what there is."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fullpipe import _native, scenario
from fullpipe.errors import mistake
from fullpipe.results import Comparison, Results, Run
from fullpipe.scenario import Amount, Scenario
from fullpipe.worlds import kernel, sim
from fullpipe.worlds.job import jobs

WORLDS = ("sim", "kernel", "all")
SEEDS = 5
REPETITIONS = 3

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
) -> Comparison:
    """Puts each controller alone on one path and measures it.

    Sizes are words with units: `rate="100 Mbit/s"`, `rtt="40 ms"`, `buffer="1 bdp"` or `"100 KB"`, `loss="0.1
    %"`, `duration="20 s"`. A controller may carry parameters: `"bbr1:probe_gain=1.5"`. `flows` of the same
    controller share the path. `seeds` is how many (or which) the simulator runs; the kernel world runs
    `repetitions`, in wall time. `world` is `"sim"`, `"kernel"` or `"all"`; with `"all"`, a kernel world that
    cannot run is a note in the result.

    Raises `ScenarioError` for what cannot be run and `WorldError` for a world that cannot run it.
    """
    what = scenario.comparison(
        controllers, rate=rate, rtt=rtt, buffer=buffer, loss=loss, duration=duration, flows=flows
    )
    runs, notes = execute(what, world=world, seeds=seeds, repetitions=repetitions, watch=watch)
    return Comparison(what, runs, notes)


def run(
    what: str | Path | Mapping[str, Any],
    *,
    world: str = "sim",
    seed: int = 1,
    watch: Watcher | None = None,
) -> Results:
    """Runs a scenario, from a file or a dict of the same shape, once for each world and alternative."""
    return run_loaded(load(what), world=world, seed=seed, watch=watch)


def run_loaded(what: Scenario, *, world: str = "sim", seed: int = 1, watch: Watcher | None = None) -> Results:
    """`run` for a scenario that is loaded already."""
    runs, notes = execute(what, world=world, seeds=[seed], repetitions=[seed], watch=watch)
    return Results(what, runs, notes)


def load(what: str | Path | Mapping[str, Any]) -> Scenario:
    """A scenario from a file or a dict."""
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
    sim_jobs = jobs(what.alternatives, _numbers("seeds", seeds))
    kernel_jobs = jobs(what.alternatives, _numbers("repetitions", repetitions))
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


def _numbers(name: str, given: int | Sequence[int]) -> list[int]:
    """`5` means 1 to 5; a sequence is taken as it is."""
    numbers = range(1, given + 1) if isinstance(given, int) else given
    try:
        chosen = [int(number) for number in numbers]
    except (TypeError, ValueError):
        chosen = []
    if not chosen or any(not 0 <= number < 2**64 for number in chosen) or len(set(chosen)) != len(chosen):
        raise mistake(name, given, "how many (from 1) or a list of different whole numbers", "e.g. 5")
    return chosen


def _progress(watch: Watcher | None, name: str, total: int) -> Callable[[float], None]:
    return lambda done: watch(name, done, total) if watch is not None else None
