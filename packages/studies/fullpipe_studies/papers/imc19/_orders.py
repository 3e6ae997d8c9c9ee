"""Replays the orders in which the paper's runs may have been made, and writes what they leave (`_metrics`).

* repetitions innermost: all runs of BBR on a path, all of CUBIC, then the next path
* grid innermost: every path with BBR and with CUBIC once, then all of them again
* random

Paths come in the order in which the paper lists their values: RTTs outermost, then rates, then buffers.

`python -m fullpipe_studies.papers.imc19._orders` runs each order over the 320 paths, with two repetitions of
30 s on the paper's test bed, and writes `thresholds.json`: what CUBIC's second repetition on each path began
with.
"""

import itertools
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fullpipe.measures.run import left_metrics
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.world import Stop, run_one
from fullpipe.scenario.scenario import from_document
from fullpipe_studies.papers.imc19 import _grid, _metrics, _testbed

_REPETITIONS, _SECONDS = 2, 30


class Place(NamedTuple):
    """A path of the grid."""

    rate_mbps: int
    rtt_ms: int
    buffer_kb: int


def paths() -> list[Place]:
    """The paths in the order in which the paper lists their values."""
    nested = itertools.product(_grid.RTTS_MS, _grid.RATES_MBPS, _grid.BUFFERS_KB)
    return [Place(rate, rtt, buffer) for rtt, rate, buffer in nested]


def sequence(order: str) -> list[tuple[Place, str]]:
    """The runs in that order: path and controller."""
    grid = list(itertools.product(paths(), _grid.CONTROLLERS))
    if order == _metrics.GRID:
        return grid * _REPETITIONS
    runs = [run for run in grid for _ in range(_REPETITIONS)]
    if order == _metrics.RANDOM:
        Random(1).shuffle(runs)
    return runs


def replay(order: str) -> dict[str, int]:
    """What CUBIC's last repetition began with on each path."""
    began: dict[str, int] = {}
    entry: dict[str, Any] = {}
    for place, name in sequence(order):
        document = _grid.document(name, *place, _grid.MAX, _SECONDS, _testbed.TESTBED)
        document["hosts"]["metrics"] = {"save_ssthresh": True, **entry}
        if name == "cubic":
            began[_metrics.place(*place)] = int(entry.get("ssthresh", 0))
        job = Job(from_document(document).alternatives[0], 1)
        entry = left_metrics(run_one(registry.named(registry.DEFAULT), job, Stop())) or entry
    return {place: began[place] for place in (_metrics.place(*one) for one in paths())}


def main() -> None:
    """Replays all orders, and writes what they leave beside this file."""
    with ProcessPoolExecutor() as pool:
        found = dict(zip(_metrics.ORDERS, pool.map(replay, _metrics.ORDERS), strict=True))
    lines = ",\n".join(f" {json.dumps(order)}: {json.dumps(left)}" for order, left in found.items())
    Path(__file__).with_name(_metrics.FILE).write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
