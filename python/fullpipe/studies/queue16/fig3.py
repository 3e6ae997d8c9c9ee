"""A bandwidth that doubles and halves.

Question: how soon does BBR follow a bottleneck that becomes twice as fast, and one that becomes half as fast?
Method: one flow on 10 Mbit/s, 40 ms, which becomes 20 Mbit/s after 20 s and 10 Mbit/s again after 40 s. The
flow starts at a random time in the first 5 s, so that the changes meet any phase of its cycle.
Prediction: after the rise the estimate grows by a quarter a gain cycle and is there after about three. After
the fall a queue stands until the old maximum leaves the filter and is gone within about 2 s; from then on the
RTT is near 40 ms.

"Exponentially fast" is a growth by the gain a cycle at the least; that it takes three steps of that, and no
fewer, is the figure's, and a number.
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, number, within

_LOW_MBPS, _HIGH_MBPS, _RTT_MS = 10.0, 20.0, 40.0
_RISE_S, _FALL_S = 20.0, 40.0
_SAMPLE_S = 0.005
_CYCLE_S = 8 * _RTT_MS / 1e3
# Found: the estimate is within 5 % of the new rate. Drained: the RTT is within a quarter of RTprop.
_FOUND, _DRAINED_MS = 0.95, 1.25 * _RTT_MS
# "Within about 2 s".
_SOON_S = 2.5


def _document(seconds: float) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{_LOW_MBPS} Mbit/s",
            "rtt": f"{_RTT_MS} ms",
            "buffer": "20 bdp",
            "changes": [
                {"at": f"{_RISE_S} s", "rate": f"{_HIGH_MBPS} Mbit/s"},
                {"at": f"{_FALL_S} s", "rate": f"{_LOW_MBPS} Mbit/s"},
            ],
        },
        "flows": [{"controller": "bbr1", "start_jitter": "5 s"}],
        "record": {"interval": f"{_SAMPLE_S} s"},
    }


def _over_run(trial: Trial) -> pl.DataFrame:
    """The flow's samples by the time of the run, in which the changes happen."""
    start_s = take.flow(trial.run)["start_ns"] / 1e9
    return take.over_time(trial.run).with_columns(pl.col("time_s") + start_s)


def _measure(trial: Trial) -> Row:
    frame = _over_run(trial)
    payload = take.payload_share(trial) * 1e6
    before = frame.filter(pl.col("time_s").is_between(_RISE_S - 2, _RISE_S))
    after = frame.filter(pl.col("time_s").is_between(_RISE_S, _FALL_S))
    found = take.least(after.filter(pl.col("bandwidth_bps") >= _FOUND * _HIGH_MBPS * payload), "time_s")
    # The estimate's steps up on its way, a gain cycle each.
    grew = take.most(after.filter(pl.col("time_s") < _RISE_S + 1.5 * _CYCLE_S), "bandwidth_bps")
    old = take.median(before, "bandwidth_bps")
    # ProbeRTT empties any queue for a moment and says nothing of the drain; a cycle without a queue does.
    fallen = frame.filter((pl.col("time_s") >= _FALL_S) & (pl.col("phase") != "probe_rtt")).sort("time_s")
    worst = take.most(fallen.filter(pl.col("time_s") < _FALL_S + 5), "rtt_ms")
    lasting = fallen.with_columns(
        pl.col("rtt_ms").rolling_median(round(_CYCLE_S / _SAMPLE_S)).alias("cycle_rtt_ms")
    )
    gone = take.least(lasting.filter(pl.col("cycle_rtt_ms") <= _DRAINED_MS), "time_s")
    settled = fallen.filter(pl.col("time_s") >= _FALL_S + _SOON_S)
    estimate = take.median(settled, "bandwidth_bps")
    return {
        "cycles_to_rise": None if found is None else (found - _RISE_S) / _CYCLE_S,
        "first_step": None if grew is None or old is None else grew / old,
        "up_rtprops": _longest_probe_s(after.filter(pl.col("time_s") < _RISE_S + 2 * _CYCLE_S))
        / _RTT_MS
        * 1e3,
        "worst_rtt_ms": worst,
        "seconds_to_drain": None if gone is None else gone - _FALL_S,
        "settled_rtt_ms": take.median(settled, "rtt_ms"),
        "settled_excess_pct": None if estimate is None else (estimate / (_LOW_MBPS * payload) - 1) * 100,
    }


def _longest_probe_s(frame: pl.DataFrame) -> float:
    """How long the longest phase with gain 5/4 lasts."""
    probes = take.stretches(frame).filter(pl.col("phase") == "probe_bw_up")
    return take.most(probes.select(pl.col("end_s") - pl.col("start_s")), "end_s") or 0.0


def _series(trial: Trial) -> pl.DataFrame:
    frame = _over_run(trial)
    shown = [
        frame.filter(pl.col("time_s").is_between(at - 0.5, at + 3.5)).with_columns(
            pl.lit(name).alias("change"), pl.col("time_s") - at
        )
        for name, at in (("10 → 20 Mbit/s", _RISE_S), ("20 → 10 Mbit/s", _FALL_S))
    ]
    return pl.concat(shown).select("time_s", "change", "rtt_ms", "inflight_kb")


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        def lines(change: str) -> Any:
            frame = part.series.filter(pl.col("change") == change)
            x = alt.X("time_s:Q", title="time since the change, s", scale=alt.Scale(nice=False))
            change_line = (
                alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(color="#79818d").encode(x="x:Q")
            )

            def line(column: str, title: str, colour: str) -> Any:
                return (
                    alt.Chart(charts.values(frame.select("time_s", column)))
                    .mark_line(strokeWidth=1.2, color=colour)
                    .encode(x=x, y=alt.Y(f"{column}:Q", title=title))
                )

            return alt.vconcat(
                *(
                    alt.layer(change_line, line(*what)).properties(width=330, height=120)
                    for what in (("rtt_ms", "RTT, ms", "#0072b2"), ("inflight_kb", "inflight, KB", "#009e73"))
                ),
                spacing=8,
                title=alt.TitleParams(change, fontSize=11, fontWeight=400),
            )

        return alt.vconcat(*(lines(name) for name in part.series["change"].unique(maintain_order=True)))

    return charts.worlds(data, panel, "Bandwidth change", "one BBR flow, 40 ms")


def _judge(data: Data) -> list[Check]:
    return [
        within(
            "gain cycles until the estimate is within 5 % of the doubled rate",
            data.values("cycles_to_rise"),
            paper="about 3 (1.25³ = 1.95)",
            least=2,
            most=4.5,
            unit="cycles",
        ),
        within(
            "growth of the estimate in the first cycle or so",
            data.values("first_step"),
            paper="the gain of 5/4 a cycle",
            least=1.15,
            most=1.6,
            unit="times",
        ),
        within(
            "growth of the estimate in the first cycle or so, direction",
            data.values("first_step"),
            paper="converges exponentially fast",
            least=1.15,
            unit="times",
            shape=True,
        ),
        within(
            "gain cycles until the doubled rate, direction",
            data.values("cycles_to_rise"),
            paper="converges exponentially fast",
            most=8,
            unit="cycles",
            shape=True,
        ),
        within(
            "RTT at its worst after the fall",
            data.values("worst_rtt_ms"),
            paper="a queue is built",
            least=60,
            unit="ms",
            shape=True,
        ),
        within(
            "time until that queue is gone",
            data.values("seconds_to_drain"),
            paper="within about 2 s",
            most=_SOON_S,
            unit="s",
        ),
        within(
            f"median RTT from {_SOON_S} s after the fall on",
            data.values("settled_rtt_ms"),
            paper="near 40 ms",
            most=_DRAINED_MS,
            unit="ms",
            shape=True,
        ),
    ]


def _explain(data: Data) -> list[str]:
    found = [
        "Linux probes until inflight is up by the gain, not for one round trip: the longest phase with "
        f"gain 5/4 after the rise lasts {number(data.mean('up_rtprops'))} round trips, in each of which the "
        "estimate can grow by the gain.",
        "After the fall the old maximum counts for ten more rounds, in which up to two of its products are "
        f"in flight, four of the new: an RTT of {number(data.mean('worst_rtt_ms'))} ms at worst. What is "
        "left then drains by the pacing margin of 1 % and in phases with gain 3/4; it is gone after "
        f"{number(data.mean('seconds_to_drain'))} s.",
    ]
    if data.worlds == ["kernel"]:
        found.append(
            "That margin is of the estimate, and the estimate is a maximum, which takes what noise there is: "
            f"it is {data.mean('settled_excess_pct'):+.2f} % off the rate. ACKs are some 0.2 ms off their "
            "times there, which leaves less of the margin to drain by; with as much jitter on its ACKs the "
            "simulator drains as slowly (docs/fidelity.md)."
        )
    return found


CLAIM = Claim(
    source="figure 3",
    says="BBR converges to the new bottleneck rate exponentially fast. Figure 3 shows the effect on a "
    "10-Mbps, 40-ms flow of BtlBw abruptly doubling to 20 Mbps after 20 seconds of steady operation then "
    "dropping to 10 Mbps after another 20 seconds of steady operation at 20 Mbps.",
    worlds=("sim", "kernel"),
    grid=Grid(factors={"seconds": (50.0,)}, tiny={"seconds": (43.0,)}, document=_document),
    measure=_measure,
    series=_series,
    figure=_figure,
    judge=_judge,
    explain=_explain,
    look_at="Look for the time that inflight takes to its new level after the rise, and for the hill of RTT "
    "after the fall: it stands while the old rate is in the filter, and what follows it drains slowly. Where "
    "inflight is next to nothing, that is ProbeRTT.",
)
