"""The lossy path of figure 7, and where goodput falls off it (section 4.2).

BBR_1.1 and BBR_1.5 are BBR with another gain in ProbeBW's probing phase; Startup's gain stays. To see what
the paper names as the cause, BBR and BBR_1.5 also run without their detector of policers. The path is 100
Mbit/s, 25 ms, 10 MB of buffer; hosts of Mininet have no interfaces of a rate, and Linux is 4.15 (`_testbed`).
"""

from itertools import pairwise
from typing import Any

import altair as alt
import polars as pl

from fullpipe.figures import theme
from fullpipe.studies import charts, take
from fullpipe.studies.claim import Data, Grid, Row, Trial
from fullpipe.studies.imc19 import _testbed

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
# The detector takes an interval for policed when 50/256 as much was lost as was delivered (tcp_bbr.c,
# bbr_lt_loss_thresh): of what was sent, that is this part.
DETECTED_PCT = 100 * 50 / (50 + 256)
# Past the cliff a flow has less than this of what the link could deliver, the link's rate times (1 - p).
_FALLEN = 0.5

_LOSSES_PCT = (
    *(0, 0.01, 0.1, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30),
    *(32, 33, 34, 36, 40, 45, 50),
)


def cliff_pct(gain: float) -> float:
    """Where equation (3) of the paper has it: the loss at which probing finds no more than there was."""
    return 100 * (1 - 1 / gain)


def _document(controller: str, loss_pct: float, seconds: int, setup: str) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{RATE_MBPS} Mbit/s",
            "rtt": "25 ms",
            "buffer": "10 MB",
            "loss": f"{loss_pct} %",
        },
        "flows": [{"controller": _testbed.controller(setup, controller)}],
        "record": {"series": False},
    }


# Figures 7(a) and 7(b) are the same runs.
GRID = Grid(
    factors={
        "controller": tuple(NAMES),
        "loss_pct": _LOSSES_PCT,
        "seconds": (60,),
        "setup": (_testbed.TESTBED,),
    },
    quick={"loss_pct": (0, 0.1, 1, 3, 5, 7, 9, 11, 13, 16, 18, 20, 22, 24, 28, 33, 40, 50), "seconds": (30,)},
    tiny={"loss_pct": (1, 30), "seconds": (2,)},
    # What a stock kernel has; its runs live in wall time.
    kernel={
        "controller": ("reno", "cubic", "bbr1"),
        "loss_pct": (0, 1, 10, 13, 15, 17, 19, 21, 30),
        "seconds": (20,),
        "setup": (_testbed.LINK,),
    },
    document=_document,
)


def measure(trial: Trial) -> Row:
    """Goodput, also as a part of what the link can deliver at that loss, and segments sent again."""
    goodput = take.goodput_mbps(trial.run)
    ceiling = RATE_MBPS * take.payload_share(trial) * (1 - trial.factors["loss_pct"] / 100)
    return {
        "goodput_mbps": goodput,
        "of_ceiling": goodput / ceiling,
        "retransmits": take.flow(trial.run)["retransmits"],
    }


def cliffs_pct(data: Data, controller: str) -> list[float]:
    """The lowest loss at which a flow falls below half of what the link delivers, a seed each.

    Between two points of the sweep; NaN where it never falls, or has fallen at the first point.
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
    """The loss at which most is sent again, a seed each."""
    part = data.runs.filter(pl.col("controller") == controller)
    return [
        float(runs.sort("retransmits", descending=True)["loss_pct"][0])
        for _, runs in part.group_by("seed", maintain_order=True)
    ]


def drawn(data: Data, column: str) -> pl.DataFrame:
    """Means over seeds of every controller at every loss, with the paper's name for it."""
    return charts.means(data, ["controller", "loss_pct"], column).with_columns(
        pl.col("controller").replace(NAMES).alias("name")
    )


def colours(frame: pl.DataFrame) -> alt.Color:
    """Each controller in its colour, under the paper's name."""
    chosen = theme.controller_colours(frame["controller"].unique(maintain_order=True).to_list())
    scale = alt.Scale(domain=[NAMES[name] for name in chosen], range=list(chosen.values()))
    legend = alt.Legend(
        orient="bottom", title=None, symbolType="stroke", symbolStrokeWidth=2, columns=3, labelLimit=260
    )
    return alt.Color("name:N", scale=scale, legend=legend)
