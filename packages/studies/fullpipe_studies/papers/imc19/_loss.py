"""The lossy path of figure 7, and the loss rate at which goodput collapses (section 4.2).

BBR_1.1 and BBR_1.5 are BBR with another gain in ProbeBW's probing phase and the same gain in Startup. To
check the cause that the paper names, BBR and BBR_1.5 also run without the policer detector. The path has
100 Mbit/s, 25 ms and a buffer of 10 MB, as Mininet has them, and Linux is 4.15 (`_testbed`): what is lost at
random is a burst of the host.
"""

from itertools import pairwise
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe_studies import charts, take
from fullpipe_studies.claim import Data, Grid, Row, Trial
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _testbed

RATE_MBPS = 100.0
NAMES = {
    "reno": "Reno",
    "cubic": "CUBIC",
    "bbr1": "BBR",
    "bbr1:probe_gain=1.1": "BBR_1.1",
    "bbr1:probe_gain=1.5": "BBR_1.5",
    "bbr1:lt_bw=0": "BBR without the detector",
    "bbr1:probe_gain=1.5,lt_bw=0": "BBR_1.5 without the detector",
}
GAINS = {"bbr1": 1.25, "bbr1:probe_gain=1.1": 1.1, "bbr1:probe_gain=1.5": 1.5}
# The detector assumes a policer when losses reach 50/256 of deliveries (tcp_bbr.c, bbr_lt_loss_thresh).
# Relative to the segments sent, that is this loss rate, in per cent.
DETECTED_PCT = 100 * 50 / (50 + 256)
# Beyond the cliff, goodput is below this share of what the link can deliver, which is its rate times (1 - p).
_FALLEN = 0.5

_LOSSES_PCT = (
    *(0, 0.01, 0.1, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30),
    *(32, 33, 34, 36, 40, 45, 50),
)


def cliff_pct(gain: float) -> float:
    """The cliff by equation (3) of the paper: the loss rate at which probes find no more bandwidth."""
    return 100 * (1 - 1 / gain)


def _document(controller: str, loss_pct: float, seconds: int, setup: str, linux: str) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{RATE_MBPS} Mbit/s",
            "rtt": "25 ms",
            "buffer": "10 MB",
            "loss": f"{loss_pct} %",
            **_testbed.mininet(setup, int(RATE_MBPS)),
        },
        "hosts": _testbed.memory(setup),
        "flows": [{"controller": _testbed.controller(setup, controller, linux)}],
        "record": {"series": False},
    }


# Figures 7(a) and 7(b) are the same runs.
GRID = Grid(
    factors={
        "controller": tuple(NAMES),
        "loss_pct": _LOSSES_PCT,
        "seconds": (60,),
        "setup": _testbed.MININETS,
        "linux": (_testbed.PAPERS,),
    },
    quick={"loss_pct": (0, 0.1, 1, 3, 5, 7, 9, 11, 13, 16, 18, 20, 22, 24, 28, 33, 40, 50), "seconds": (30,)},
    tiny={"loss_pct": (1, 30), "seconds": (2,)},
    # Only the algorithms of a stock kernel; fewer values, because the runs take wall time.
    in_wall_time={
        "controller": ("reno", "cubic", "bbr1"),
        "loss_pct": (0, 1, 10, 13, 15, 17, 19, 21, 30),
        "seconds": (20,),
        "setup": (_testbed.MININET,),
        "linux": (_testbed.HERE,),
    },
    document=_document,
)


def measure(trial: Trial) -> Row:
    """Goodput, absolute and relative to what the link can deliver at that loss rate, and retransmissions."""
    goodput = take.goodput_mbps(trial.run)
    ceiling = RATE_MBPS * take.payload_share(trial) * (1 - trial.factors["loss_pct"] / 100)
    return {
        "goodput_mbps": goodput,
        "of_ceiling": goodput / ceiling,
        "retransmits": take.flow(trial.run)["retransmits"],
    }


def cliffs_pct(data: Data, controller: str) -> list[float]:
    """The lowest loss rate at which goodput is below half of what the link can deliver, for each seed.

    It is interpolated between two points of the sweep; NaN if there is none, or if it is the first point.
    """
    part = data.runs.filter(pl.col("controller") == controller)
    return [_crossing(runs.sort("loss_pct")) for _, runs in part.group_by("seed", maintain_order=True)]


def _crossing(runs: pl.DataFrame) -> float:
    points = runs.select("loss_pct", "of_ceiling").drop_nulls().rows()
    for (before, high), (after, low) in pairwise(points):
        if high >= _FALLEN > low:
            return float(before + (after - before) * (high - _FALLEN) / (high - low))
    return float("nan")


def peaks_pct(data: Data, controller: str) -> list[float]:
    """The loss rate with the most retransmissions, for each seed."""
    part = data.runs.filter(pl.col("controller") == controller)
    return [
        float(runs.sort("retransmits", descending=True)["loss_pct"][0])
        for _, runs in part.group_by("seed", maintain_order=True)
    ]


def drawn(data: Data, column: str) -> pl.DataFrame:
    """Means over seeds of every controller at every loss, with the paper's name for it."""
    return charts.means(data, ["controller", "loss_pct", "seconds"], column).with_columns(
        pl.col("controller").replace(NAMES).alias("name")
    )


def colours(frame: pl.DataFrame) -> "alt.Color":
    """Each controller in its colour, under the paper's name."""
    chosen = theme.controller_colours(_controllers(frame))
    scale = alt.Scale(domain=[NAMES[name] for name in chosen], range=list(chosen.values()))
    return alt.Color("name:N", scale=scale, legend=_legend())


def dashes(frame: pl.DataFrame) -> "alt.StrokeDash":
    """Each controller's dashes, under the paper's name."""
    chosen = theme.controller_dashes(_controllers(frame))
    scale = alt.Scale(domain=[NAMES[name] for name in chosen], range=list(chosen.values()))
    return alt.StrokeDash("name:N", scale=scale, legend=_legend())


def _controllers(frame: pl.DataFrame) -> list[str]:
    names: list[str] = frame["controller"].unique(maintain_order=True).to_list()
    return names


def _legend() -> "alt.Legend":
    return alt.Legend(
        orient="bottom", title=None, symbolType="stroke", symbolStrokeWidth=2, columns=3, labelLimit=260
    )
