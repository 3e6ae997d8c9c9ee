"""Rounds until Startup finds the rate.

Question: how long does BBR take to find a rate between 10 kbit/s and 100 Gbit/s?
Method: one flow on 40 ms with a buffer of 4 BDP (at least 100 packets), at rates a factor of ten apart. The
measure is the number of round trips from the first data until the estimate is within a tenth of the link's
rate.
Prediction: about log2 of the BDP in packets divided by the initial window of ten packets.
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, Values
from fullpipe_studies.later import alt

_RTT_S = 0.04
_INITIAL_WINDOW = 10
_FOUND = 0.9
_PACKET_BITS = 1500 * 8


def _document(rate_bps: float) -> dict[str, Any]:
    # Forty round trips, or the time that two initial windows take on a slow link.
    seconds = max(40 * _RTT_S, 3 * _INITIAL_WINDOW * _PACKET_BITS / rate_bps)
    buffer = max(4 * rate_bps * _RTT_S / 8, 100 * 1500)
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{rate_bps:.0f} bit/s", "rtt": f"{_RTT_S} s", "buffer": f"{buffer:.0f} B"},
        "flows": [{"controller": "bbr1"}],
        "record": {"interval": f"{max(0.001, seconds / 10000)} s"},
    }


def measure(trial: Trial) -> Row:
    rate_bps = trial.factors["rate_bps"]
    frame = take.over_time(trial.run).filter(pl.col("time_s") >= _RTT_S)
    payload_bps = rate_bps * take.payload_share(trial)
    found = take.least(frame.filter(pl.col("bandwidth_bps") >= _FOUND * payload_bps), "time_s")
    before = frame.filter(pl.col("time_s") <= (found or 0.0))
    # Round trips of the RTT at that time; before the first RTT sample, of the path's RTT.
    rtt_ms = pl.col("srtt_ms").fill_null(_RTT_S * 1e3)
    rounds = before.select((pl.col("time_s").diff() * 1e3 / rtt_ms).alias("rounds"))["rounds"].sum()
    return {
        "bdp_packets": rate_bps * _RTT_S / _PACKET_BITS,
        "rounds": None if found is None else float(rounds),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["rate_bps"], "rounds").with_columns(
        (pl.col("rate_bps") * _RTT_S / _PACKET_BITS / _INITIAL_WINDOW).log(2).clip(0).alias("predicted")
    )
    x = alt.X("rate_bps:Q", title="rate, bit/s", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s"))
    base = alt.Chart(charts.values(frame)).encode(x=x)
    predicted = base.mark_line(strokeDash=[4, 3], color="#79818d").encode(y="predicted:Q")
    ours = base.mark_line(point=True, color="#0072b2").encode(y=alt.Y("mean:Q", title="round trips"))
    found: alt.TopLevelMixin = alt.layer(predicted, ours).properties(
        width=charts.WIDTH,
        height=charts.HEIGHT,
        title=alt.TitleParams(
            "Round trips until Startup finds BtlBw",
            subtitle="40 ms; dashed: log2 of the BDP divided by the initial window of 10 packets",
        ),
    )
    return found


def judge(data: Data) -> list[Check]:
    frame = data.runs.with_columns(pl.col("rounds").cast(pl.Float64))
    large = frame.filter((pl.col("bdp_packets") >= 2 * _INITIAL_WINDOW) & pl.col("rounds").is_not_null())
    excess = Values([], [])
    slopes: list[float] = []
    for _, part in large.group_by("seed", maintain_order=True):
        points = [
            (math.log2(bdp), rounds) for bdp, rounds in part.select("bdp_packets", "rounds").iter_rows()
        ]
        above = [rounds - (x - math.log2(_INITIAL_WINDOW)) for x, rounds in points]
        excess = Values([*excess, *above], [*excess.seeds, *[part["seed"][0]] * len(above)])
        (low_x, low), (high_x, high) = min(points), max(points)
        slopes.append((high - low) / (high_x - low_x) if high_x > low_x else math.nan)
    return [
        Statement("10¹² of bandwidths").shape(
            "runs that find the rate",
            Values((float(value is not None) for value in frame["rounds"]), frame["seed"]),
            least=1.0,
            unit="of runs",
        ),
        Statement("log2 BDP: one").shape(
            "round trips per doubling of the BDP", slopes, least=0.8, most=1.25, unit="round trips"
        ),
        Statement("log2 BDP round trips").within(
            "round trips in excess of log2(BDP / initial window)",
            excess,
            least=-1.5,
            most=2.5,
            unit="round trips",
        ),
    ]


CLAIM = Claim(
    source="appendix, Startup behavior",
    says="Network-link bandwidths span a range of 10^12. To learn BtlBw, given this huge range to explore, "
    "BBR does a binary search of the rate space. This finds BtlBw very quickly (log2 BDP round trips).",
    grid=Grid(
        factors={"rate_bps": tuple(10.0**power for power in range(4, 12))},
        quick={"rate_bps": (1e4, 1e6, 1e7, 1e8, 1e9, 1e10)},
        tiny={"rate_bps": (1e6, 1e8)},
        document=_document,
    ),
    # Only BBR has an estimate of the rate: another controller would find none, whatever the checks ask.
    wrong=("bbr1:high_gain=1.25", "bbr1:high_gain=1.5"),
    look_at="The points should follow the slope of the dashed line: 3.3 round trips for each factor of ten.",
)
