"""The three ways in which `ccwg25` replays a list of flows.

* `paused`: transfers with their pauses; each is requested its pause after the previous one has arrived.
* `collapsed`: no pauses; a flow sends all its data at once.
* `synthetic`: collapsed, with inter-arrival times and volumes each shuffled, independently of each other and
  of the original order.
"""

import random
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import polars as pl

from fullpipe.scenario.flow_lists.flow_list import SCHEMA

PAUSED, COLLAPSED, SYNTHETIC = "paused", "collapsed", "synthetic"
MODELS = (PAUSED, COLLAPSED, SYNTHETIC)


def apply(frame: pl.DataFrame, model: str, seed: int = 1) -> pl.DataFrame:
    """The list as the model replays it."""
    if model == PAUSED:
        return frame
    collapsed = (
        frame.group_by("flow", maintain_order=True)
        .agg(pl.col("start_ns").first(), pl.lit(0, pl.Int64).alias("pause_ns"), pl.col("bytes").sum())
        .sort("start_ns", maintain_order=True)
    )
    if model == COLLAPSED:
        return collapsed
    assert model == SYNTHETIC, "one of the three"
    # Uses every gap and every volume once, so that the load is that of the list.
    uniform = random.Random(seed).random
    starts = collapsed["start_ns"].to_list()
    gaps = [later - before for before, later in pairwise([0, *starts])]
    drawn = accumulate(shuffled(gaps, uniform))
    sizes = shuffled(collapsed["bytes"].to_list(), uniform)
    rows = [(flow, start, 0, size) for flow, (start, size) in enumerate(zip(drawn, sizes, strict=True))]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def flows(frame: pl.DataFrame, *, before_s: float, **more: Any) -> list[dict[str, Any]]:
    """The flows of a scenario that start before a time; `more` has further keys for each."""
    by_flow = (
        frame.group_by("flow", maintain_order=True)
        .agg("start_ns", "pause_ns", "bytes")
        .filter(pl.col("start_ns").list.first() < before_s * 1e9)
    )
    return [
        {"label": str(flow), "start": f"{starts[0] / 1e9:.9f} s", **_sent(pauses, sizes), **more}
        for flow, starts, pauses, sizes in by_flow.iter_rows()
    ]


def _sent(pauses_ns: list[int], sizes: list[int]) -> dict[str, Any]:
    if len(sizes) == 1:
        return {"size": f"{sizes[0]} B"}
    transfers = [
        {"size": f"{size} B", "pause": f"{pause / 1e9:.9f} s"}
        for pause, size in zip(pauses_ns, sizes, strict=True)
    ]
    return {"transfers": transfers}


def shuffled(values: list[int], uniform: Callable[[], float]) -> list[int]:
    """The same values in random order (Fisher and Yates)."""
    mixed = list(values)
    for last in range(len(mixed) - 1, 0, -1):
        other = int(uniform() * (last + 1))
        mixed[last], mixed[other] = mixed[other], mixed[last]
    return mixed
