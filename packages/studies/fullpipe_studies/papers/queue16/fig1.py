"""Delivery rate and RTT against inflight.

Question: how do delivery rate and RTT depend on the amount of data in flight?
Method: one flow with a window of 0.1 to 4 BDP, on 100 Mbit/s, 40 ms with a buffer of 1.5 BDP. The sender is
CUBIC with a limited window, so that beyond the buffer's edge it reacts to losses and stays near the edge. The
article gives this figure no rate, RTT, buffer or sender: all are ours.
Prediction: up to 1 BDP the RTT is flat and the delivery rate rises with slope 1/RTprop; then the RTT rises
with slope 1/BtlBw to the buffer's edge at 2.5 BDP and the delivery rate is flat; beyond it packets are lost.
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, Values
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS, _BUFFER_BDP = 100.0, 40.0, 1.5
_EDGE_BDP = 1 + _BUFFER_BDP
# Ranges of inflight, in BDP, for the fitted lines; well inside each region.
_LEFT, _RIGHT = (0.2, 0.8), (1.2, 2.2)


def _document(cap_bdp: float, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{_RATE_MBPS} Mbit/s", "rtt": f"{_RTT_MS} ms", "buffer": f"{_BUFFER_BDP} bdp"},
        "flows": [{"controller": "cubic", "max_cwnd": f"{cap_bdp} bdp"}],
    }


def measure(trial: Trial) -> Row:
    # The window has reached its limit by the middle of the run.
    half_s = trial.factors["seconds"] / 2
    frame = take.samples(trial.run, after_s=half_s)
    goodput = take.delivered_mbps(frame)
    inflight = take.mean(frame, "inflight_segments")
    bdp_segments = take.bdp_bytes(_RATE_MBPS, _RTT_MS) / float(trial.spec["mtu_bytes"])
    return {
        "inflight_bdp": None if inflight is None else inflight / bdp_segments,
        "rate_mbps": None if goodput is None else goodput / take.payload_share(trial),
        "rtt_ms": take.mean(frame, "srtt_ms"),
        "retransmits": take.grown(frame, "retransmits"),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = data.runs.filter(data.runs["seed"] == data.runs["seed"].min()).select(
        "cap_bdp", "inflight_bdp", "rate_mbps", "rtt_ms", "retransmits"
    )
    x = alt.X("cap_bdp:Q", title="window, BDP", scale=alt.Scale(nice=False))
    edges = (
        alt.Chart(alt.InlineData(values=[{"x": 1.0}, {"x": _EDGE_BDP}]))
        .mark_rule(strokeDash=[4, 3], color="#79818d")
        .encode(x="x:Q")
    )

    def part(column: str, title: str, colour: str) -> Any:
        drawn = (
            alt.Chart(charts.values(frame))
            .mark_line(point=True, strokeWidth=1.5, color=colour)
            .encode(x=x, y=alt.Y(f"{column}:Q", title=title))
        )
        return alt.layer(edges, drawn).properties(width=charts.WIDTH, height=120)

    found: alt.TopLevelMixin = alt.vconcat(
        part("rtt_ms", "RTT, ms", "#0072b2"),
        part("rate_mbps", "delivery rate, Mbit/s", "#009e73"),
        part("retransmits", "retransmissions", "#d55e00"),
        spacing=8,
        title=alt.TitleParams(
            "Delivery rate and round-trip time against inflight",
            subtitle="dashed: 1 BDP, and the buffer's edge at 2.5 BDP",
        ),
    )
    return found


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Slope and intercept of the least-squares line; NaN for fewer than two points."""
    count = len(points)
    if count < 2:
        return math.nan, math.nan
    x_mean, y_mean = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    across = sum((x - x_mean) ** 2 for x, _ in points)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points) / across if across > 0 else math.nan
    return slope, y_mean - slope * x_mean


def judge(data: Data) -> list[Check]:
    def chosen(span: tuple[float, float], column: str) -> pl.DataFrame:
        inside = data.runs.filter(pl.col("cap_bdp").is_between(*span))
        return inside.drop_nulls(["inflight_bdp", column])

    def values(column: str, span: tuple[float, float], unit: float = 1.0) -> Values:
        frame = chosen(span, column)
        return Values((float(value) / unit for value in frame[column]), frame["seed"])

    def lines(column: str, span: tuple[float, float]) -> dict[int, tuple[float, float]]:
        """Each seed's line."""
        return {
            int(part["seed"][0]): _line(
                [(float(x), float(y)) for x, y in part.select("inflight_bdp", column).iter_rows()]
            )
            for _, part in chosen(span, column).group_by("seed", maintain_order=True)
        }

    def knees(column: str, rising: tuple[float, float], flat: tuple[float, float]) -> list[float]:
        """Where each seed's rising line meets its constant."""
        level = {
            int(part["seed"][0]): take.mean(part, column)
            for _, part in chosen(flat, column).group_by("seed", maintain_order=True)
        }
        return [
            ((level.get(seed) or math.nan) - intercept) / slope if slope > 0 else math.nan
            for seed, (slope, intercept) in lines(column, rising).items()
        ]

    # The expected slopes per BDP of inflight: the full rate, and one RTprop.
    rate_slopes, rtt_slopes = (
        [slope for slope, _ in lines(column, span).values()]
        for column, span in (("rate_mbps", _LEFT), ("rtt_ms", _RIGHT))
    )
    return [
        Statement("RTprop").shape(
            "RTT up to 0.8 BDP, divided by RTprop", values("rtt_ms", _LEFT, _RTT_MS), least=0.98, most=1.1
        ),
        Statement("1/RTprop").within(
            "slope of the delivery rate up to 0.8 BDP, divided by 1/RTprop",
            [slope / _RATE_MBPS for slope in rate_slopes],
            least=0.9,
            most=1.1,
        ),
        Statement("1/BtlBw").within(
            "slope of the RTT from 1.2 to 2.2 BDP, divided by 1/BtlBw",
            [slope / _RTT_MS for slope in rtt_slopes],
            least=0.9,
            most=1.1,
        ),
        Statement("BtlBw").shape(
            "delivery rate from 1.2 to 2.2 BDP, divided by BtlBw",
            values("rate_mbps", _RIGHT, _RATE_MBPS),
            least=0.97,
            most=1.01,
        ),
        *(
            Statement("Constraint lines intersect at 1 BDP").shape(
                f"knee of the {title}", knees(column, *spans), least=0.9, most=1.1, unit="BDP"
            )
            for title, column, spans in (
                ("delivery rate", "rate_mbps", (_LEFT, _RIGHT)),
                ("RTT", "rtt_ms", (_RIGHT, _LEFT)),
            )
        ),
        Statement("none").shape("retransmissions up to 2.3 BDP", values("retransmits", (0, 2.3)), most=0),
        Statement("packets are dropped").shape(
            "retransmissions from 2.8 BDP on", values("retransmits", (2.8, 10)), least=1
        ),
    ]


CLAIM = Claim(
    source="figure 1",
    says="When there isn't enough data in flight to fill the pipe, RTprop determines behavior; otherwise, "
    "BtlBw dominates. Constraint lines intersect at inflight = BtlBw × RTprop, a.k.a. the pipe's BDP. "
    "Since the pipe is full past this point, the inflight - BDP excess creates a queue at the bottleneck, "
    "which results in the linear dependence of RTT on inflight data. Packets are dropped when the excess "
    "exceeds the buffer capacity.",
    grid=Grid(
        factors={
            "cap_bdp": (0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 1.8, 2.0, 2.2, 2.4, 2.8, 3.4, 4.0),
            "seconds": (40,),
        },
        quick={"cap_bdp": (0.2, 0.5, 0.8, 1.0, 1.2, 1.7, 2.2, 3.0)},
        tiny={"cap_bdp": (0.5, 3.0), "seconds": (2,)},
        document=_document,
    ),
    # Of these, none fills the window that it may have.
    subject=("cubic",),
    wrong=("vegas", "bbr1"),
    look_at="Is there a knee at 1 BDP in both upper panels, and are there losses only to the right of the "
    "buffer's edge?",
)
