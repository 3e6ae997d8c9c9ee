"""The 320 paths that figures 4, 5 and 6 share (section 4.1), and how BBR and CUBIC compare on each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from fullpipe.text import counted
from fullpipe_studies import take
from fullpipe_studies.claim import Data, Grid, Row, Trial, Values, number
from fullpipe_studies.papers.imc19 import _metrics, _testbed

RTTS_MS = (5, 10, 25, 50, 75, 100, 150, 200)
RATES_MBPS = (10, 20, 50, 100, 250, 500, 750, 1000)
SHALLOW_KB, DEEP_KB, DEEPEST_KB = 100, 10_000, 50_000
BUFFERS_KB = (SHALLOW_KB, 1000, DEEP_KB, 20_000, DEEPEST_KB)
CONTROLLERS = ("bbr1", "cubic")
# TCP memory: the maximum, as in all of the paper's figures; and the system's defaults, for comparison.
MAX, DEFAULT = "max", "ubuntu-18.10"
PATH = ("rate_mbps", "rtt_ms", "buffer_kb")
# Repetitions in the paper, and seeds here.
SEEDS, QUICK_SEEDS = 5, 3

# Every rate, so that the row in which the hosts' interface is the bottleneck has its share of the paths.
QUICK: Mapping[str, Sequence[Any]] = {
    "rtt_ms": (5, 25, 75, 200),
    "seconds": (30,),
    "setup": (_testbed.TESTBED,),
}
_TINY: Mapping[str, Sequence[Any]] = {"rtt_ms": (25,), "rate_mbps": (10, 50), "seconds": (2,)}


def document(
    controller: str,
    rate_mbps: int,
    rtt_ms: int,
    buffer_kb: int,
    memory: str,
    seconds: int,
    setup: str,
    linux: str = _testbed.PAPERS,
) -> dict[str, Any]:
    """One controller alone on one path. Claims that need the same path share its run."""
    path = {"rate": f"{rate_mbps} Mbit/s", "rtt": f"{rtt_ms} ms", "buffer": f"{buffer_kb} KB"}
    hosts: dict[str, Any] = {"tcp_memory": memory}
    if _testbed.SETUPS[setup].sender:
        hosts["model"] = "linux"
    order = _testbed.SETUPS[setup].order if linux == _testbed.PAPERS else _metrics.NONE
    assert order == _metrics.NONE or memory == MAX, "the orders were replayed with the maximum memory"
    if left := _metrics.begun(order, controller, _metrics.place(rate_mbps, rtt_ms, buffer_kb)):
        hosts["metrics"] = {"save_ssthresh": True, "ssthresh": left}
    facts = [
        controller,
        f"{rate_mbps} Mbit/s",
        f"{rtt_ms} ms",
        f"{buffer_kb} KB",
        f"{seconds} s",
        memory,
        setup,
    ]
    return {
        # All factors would be longer than a name may be.
        "name": ", ".join(facts),
        "duration": f"{seconds} s",
        "path": {**path, **_testbed.path(setup, rate_mbps)},
        "hosts": hosts,
        "flows": [{"controller": _testbed.controller(setup, controller, linux)}],
        "record": {"series": False},
    }


def grid(
    buffers_kb: Sequence[int],
    *,
    memories: Sequence[str] = (MAX,),
    tiny: Mapping[str, Sequence[Any]] | None = None,
) -> Grid:
    """The paths with some of the buffers."""
    return Grid(
        factors={
            "controller": CONTROLLERS,
            "rate_mbps": RATES_MBPS,
            "rtt_ms": RTTS_MS,
            "buffer_kb": tuple(buffers_kb),
            "memory": tuple(memories),
            "seconds": (60,),
            "setup": _testbed.LAN,
        },
        quick=QUICK,
        tiny={**_TINY, **(tiny or {})},
        document=document,
        only=is_there,
    )


def is_there(setup: str, memory: str, **_factors: Any) -> bool:
    """Other set-ups are run with the maximum memory only."""
    return setup == _testbed.TESTBED or memory == MAX


def of_same_seeds(data: Data) -> dict[str, Data]:
    """The set-ups that have runs, each with the seeds that all of them have.

    Otherwise seeds would look like what a set-up does. Nothing if they have no seed in common.
    """
    there = {name: part for name, part in data.setups.items() if part.runs.height}
    if not there:
        return {}
    each = pl.concat(part.runs.select("world", "seed").unique() for part in there.values())
    # The kernel world may have run fewer set-ups.
    setups = pl.concat(part.runs.select("world").unique() for part in there.values())
    common = (
        each.group_by("world", "seed")
        .agg(pl.len().alias("having"))
        .join(setups.group_by("world").agg(pl.len().alias("all")), on="world")
        .filter(pl.col("having") == pl.col("all"))
    )
    cut = {name: part.runs.join(common, on=("world", "seed"), how="semi") for name, part in there.items()}
    return {name: replace(there[name], runs=runs) for name, runs in cut.items() if runs.height}


def titled(setup: str, data: Data) -> str:
    """A set-up at the start of a sentence, with its seeds: the judged one has more than the others."""
    seeds = data.runs["seed"].n_unique()
    return f"{setup[0].upper()}{setup[1:]} ({counted(seeds, 'seed')})"


def measure(trial: Trial) -> Row:
    """Goodput and retransmissions, as a count and in per cent of all segments sent.

    As iperf3's receiver reports it, or as its sender does, for the set-up that is about that.
    """
    flow = take.flow(trial.run)
    sender = _testbed.SETUPS[trial.factors["setup"]].sender
    return {
        "goodput_mbps": float(flow["write_bps"] or 0.0) / 1e6 if sender else take.goodput_mbps(trial.run),
        "retransmits": flow["retransmits"],
        "loss_pct": 100 * float(flow["loss_ratio"] or 0.0),
    }


def pairs(frame: pl.DataFrame, column: str, by: Sequence[str] = PATH) -> pl.DataFrame:
    """Means over seeds on each path, BBR's and CUBIC's side by side; only paths with both.

    Adds `bdp_kb`, and the buffer in BDP as `buffer_bdp`.
    """
    means = frame.group_by(*by, maintain_order=True).agg(
        pl.col(column).filter(pl.col("controller") == name).mean().alias(name) for name in CONTROLLERS
    )
    bdp = pl.col("rate_mbps") * pl.col("rtt_ms") / 8
    return means.drop_nulls(CONTROLLERS).with_columns(
        bdp.alias("bdp_kb"), (pl.col("buffer_kb") / bdp).alias("buffer_bdp")
    )


def gains(frame: pl.DataFrame, beside: Sequence[str] = ()) -> pl.DataFrame:
    """`pairs` of goodput on each path, and for each value of the columns `beside`.

    Adds `gain_pct`, BBR's gain over CUBIC by formula (1) of the paper, and `cubic_gain_pct`, CUBIC's gain
    over BBR by the same formula.
    """
    bbr, cubic = pl.col("bbr1"), pl.col("cubic")
    by = (*PATH, *(name for name in beside if name not in PATH))
    return pairs(frame, "goodput_mbps", by).with_columns(
        ((bbr - cubic) / cubic * 100).alias("gain_pct"), ((cubic - bbr) / bbr * 100).alias("cubic_gain_pct")
    )


def each_seed(frame: pl.DataFrame, value: Callable[[pl.DataFrame], float]) -> Values:
    """A number computed from the whole grid, once per seed; NaN without runs."""
    return Data(frame, pl.DataFrame()).each_seed(value)


def share(frame: pl.DataFrame, of: pl.Expr) -> float:
    """The share of rows that meet a condition; NaN, which meets no criterion, without rows."""
    return frame.select(of.cast(pl.Float64).mean()).item() if frame.height else float("nan")


def percent(part: float | None) -> str:
    """A share in per cent; "none" without a value."""
    return "none" if part is None else f"{number(100 * part)} %"


def only(data: Data, **where: Any) -> pl.DataFrame:
    """The runs whose factors have these values."""
    return data.runs.filter(*(pl.col(name) == value for name, value in where.items()))
