"""The first eight seconds of BBR and CUBIC.

Question: which queue do BBR and CUBIC keep once they have found the rate?
Method: one flow of each, alone on 10 Mbit/s, 40 ms, with a buffer of 8 BDP, for eight seconds.
Prediction: after its start BBR's RTT stays within a few ms of 40 ms outside its probes, of which there is one
in eight round trips; CUBIC fills the buffer and then cycles between 70 and 100 % of it.

A probe is looked for in the queue, and not in BBR's states: it adds a quarter of a BDP, of which an eighth
counts as a peak. Its distance is that of eight phases of "normally" a round trip each, or a quarter more.
"""

import math
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS, _BUFFER_BDP = 10.0, 40.0, 8
_BUFFER = _BUFFER_BDP * take.bdp_bytes(_RATE_MBPS, _RTT_MS)
# Startup and Drain are over after two thirds of a second (figure 4).
_STARTED_S = 1.0
# A peak is so high above the median, and ends so much above it: a probe adds a quarter of a round trip.
_PEAK_MS, _FLAT_MS = _RTT_MS / 8, _RTT_MS / 16
# From this fill level on the buffer counts as full: less than two packets fit.
_FULL = 0.97


def _document(controller: str, seconds: float) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{_RATE_MBPS} Mbit/s", "rtt": f"{_RTT_MS} ms", "buffer": f"{_BUFFER_BDP} bdp"},
        "flows": [{"controller": controller}],
        "record": {"interval": "2 ms"},
    }


def measure(trial: Trial) -> Row:
    frame = take.over_time(trial.run).filter(pl.col("time_s") >= _STARTED_S)
    outside = frame.filter(pl.col("phase").is_null() | (pl.col("phase") != "probe_bw_up"))
    part = frame.with_columns((pl.col("queue_bytes") / _BUFFER).alias("part"))
    filled = take.least(part.filter(pl.col("part") >= _FULL), "time_s")
    after = part if filled is None else part.filter(pl.col("time_s") >= filled)
    return {
        "median_rtt_ms": take.median(outside, "rtt_ms"),
        "probe_rounds": _probe_rounds(frame),
        "filled_s": filled,
        # A few samples lie within loss recovery, when the queue drains without new data.
        "low_part": None if filled is None else take.quantile(after, "part", 0.02),
        "high_part": None if filled is None else take.quantile(after, "part", 0.98),
    }


def _probe_rounds(frame: pl.DataFrame) -> float:
    """Round trips of the empty path between peaks of the RTT, on average; infinite with less than two."""
    flat_ms = take.median(frame, "rtt_ms") or 0.0
    peaks: list[float] = []
    inside = True  # A peak that began before is none.
    for time_s, rtt_ms in frame.select("time_s", "rtt_ms").drop_nulls().iter_rows():
        if not inside and rtt_ms > flat_ms + _PEAK_MS:
            peaks.append(time_s)
            inside = True
        elif rtt_ms < flat_ms + _FLAT_MS:
            inside = False
    if len(peaks) < 2:
        return math.inf
    return (peaks[-1] - peaks[0]) / (len(peaks) - 1) / (_RTT_MS / 1e3)


def series(trial: Trial) -> pl.DataFrame:
    return take.over_time(trial.run).select("time_s", "rtt_ms", "phase").gather_every(4)


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        frame = part.series
        full_ms = _RTT_MS * (1 + _BUFFER_BDP)
        cycle = alt.Chart(
            alt.InlineData(values=[{"low": _RTT_MS + 0.7 * (full_ms - _RTT_MS), "high": full_ms}])
        )
        lines = (
            alt.Chart(charts.values(frame))
            .mark_line(strokeWidth=1.2, clip=True)
            .encode(
                x=alt.X("time_s:Q", title="time since the SYN, s", scale=alt.Scale(nice=False)),
                y=alt.Y("rtt_ms:Q", title="RTT, ms"),
                color=charts.controllers(frame),
                strokeDash=charts.dashes(frame),
            )
        )
        band = cycle.mark_rect(color=theme.GRID).encode(y="low:Q", y2="high:Q")
        return alt.layer(band, lines).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "First 8 seconds of 10 Mbit/s, 40 ms flows",
        "grey: a buffer 70 to 100 % full, between which the paper’s CUBIC cycles",
    )


def judge(data: Data) -> list[Check]:
    def cubic(column: str) -> list[float]:
        return data.values(column, controller="cubic")

    bbr = data.values("median_rtt_ms", controller="bbr1")
    return [
        Statement("essentially no queue").within(
            "BBR's median RTT outside probes", bbr, most=_RTT_MS + 10, unit="ms"
        ),
        Statement("an eight-phase cycle; each phase normally lasts for the estimated RTprop").shape(
            "round trips between BBR's probes",
            data.values("probe_rounds", controller="bbr1"),
            least=7,
            most=10,
        ),
        Statement("CUBIC fills the buffer").more(
            "CUBIC's median RTT divided by BBR's", cubic("median_rtt_ms"), bbr, least=2
        ),
        Statement("cycles from 70 to 100 % full").shape(
            "CUBIC's longest queue divided by the buffer", cubic("high_part"), least=0.9
        ),
        Statement("cycles from 70 to 100 % full").within(
            "CUBIC's shortest queue after the buffer was full, divided by the buffer",
            cubic("low_part"),
            least=0.55,
            most=0.85,
        ),
    ]


CLAIM = Claim(
    source="figure 5",
    says="CUBIC (red) fills the available buffer, then cycles from 70 to 100 percent full every few seconds. "
    "After startup, BBR (green) runs with essentially no queue.",
    worlds=("sim", "kernel"),
    grid=Grid(factors={"controller": ("bbr1", "cubic"), "seconds": (8.0,)}, document=_document),
    # A window gain of three is no control: alone, BBR's window limits nothing after its start.
    wrong=("vegas", "cubic", "bbr3", "bbr1:probe_gain=1.0"),
    look_at="CUBIC shows a sawtooth below the full buffer; BBR shows a flat line with a small probe "
    "every third of a second.",
)
