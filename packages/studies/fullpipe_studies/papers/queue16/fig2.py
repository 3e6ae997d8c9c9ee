"""The gain cycle in steady state.

Question: what does bandwidth probing cost once a flow has found the bandwidth?
Method: one BBR flow on 10 Mbit/s, 40 ms, from 3 s after its start until just before its first ProbeRTT; the
figure shows 700 ms. The buffer, 8 BDP, is ours, and so are the limits of a quarter around a length of one
RTprop and a cycle of eight; they were changed after results had been seen (0.8 to 1.6, and 6.5 to 10).
Prediction: once every eight round trips inflight and RTT rise by a quarter for one round trip and return in
the next; the delivery rate stays constant.

The rate that should stay constant is that of arriving ACKs: `onAck` in the paper divides by the time between
ACKs. Linux divides by the longer of that time and the time between departures, so its samples also show the
phase with gain 3/4. Linux's samples are checked against the same rate: the low ones as a number, and the high
ones, which are of the phase with gain 5/4, as the article's statement.
"""

import math
from itertools import pairwise
from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS = 10.0, 40.0
# After start-up and its drain; before the first ProbeRTT, 10 s after the start.
_FROM_S, _TO_S = 3.0, 9.5
_DRAWN_S = 0.7
_SAMPLE_S = 0.001


def _document(seconds: float) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{_RATE_MBPS} Mbit/s", "rtt": f"{_RTT_MS} ms", "buffer": "8 bdp"},
        "flows": [{"controller": "bbr1"}],
        "record": {"interval": f"{_SAMPLE_S} s"},
    }


def _steady(trial: Trial) -> pl.DataFrame:
    return take.over_time(trial.run).filter(pl.col("time_s").is_between(_FROM_S, _TO_S))


def measure(trial: Trial) -> Row:
    frame = _steady(trial)
    row: Row = dict.fromkeys(
        (
            "cycle_rtprops",
            "up_rtprops",
            "inflight_peak",
            "rtt_peak",
            "after_down",
            "rate_low",
            "rate_high",
            "sampled_low",
            "sampled_high",
            "lowest_rtprops",
        )
    )
    if not frame.height:
        return row
    phases = take.stretches(frame)
    ups = phases.filter(pl.col("phase") == "probe_bw_up")
    # Phases at the ends of the interval may be incomplete.
    begins = ups["start_s"].to_list()[1:]
    cycles = list(pairwise(begins))
    if not cycles:
        # A controller that does not probe has no peaks.
        return row | {"cycle_rtprops": math.inf, "inflight_peak": 0.0, "rtt_peak": 0.0}
    rtprop_s = _RTT_MS / 1e3
    row["cycle_rtprops"] = (begins[-1] - begins[0]) / len(cycles) / rtprop_s
    whole = ups.filter(pl.col("start_s").is_in(begins))
    lengths = whole.select(((pl.col("end_s") - pl.col("start_s")) / rtprop_s).alias("rtprops"))
    row["up_rtprops"] = take.mean(lengths, "rtprops")
    peaks = pl.DataFrame([_probe(frame, begin, end) for begin, end in cycles])
    for name in peaks.columns:
        row[name] = take.mean(peaks, name)
    payload_bps = _RATE_MBPS * 1e6 * take.payload_share(trial)
    # Bytes that arrived per RTprop: the rate of the link, independent of the sender's samples.
    step = round(rtprop_s / _SAMPLE_S)
    arrived = frame.select(
        (pl.col("delivered_bytes").diff(step) * 8 / pl.col("time_s").diff(step)).alias("bps")
    )
    for name, part in (("rate_low", 0.05), ("rate_high", 0.95)):
        row[name] = (take.quantile(arrived, "bps", part) or 0.0) / payload_bps
    downs = phases.filter(pl.col("phase") == "probe_bw_down")["start_s"].to_list()
    lowest = [_lowest_rtprops(frame, begin) for begin in downs if begin + 4 * rtprop_s <= _TO_S]
    row["lowest_rtprops"] = sum(lowest) / len(lowest) if lowest else None
    for name, part in (("sampled_low", 0.05), ("sampled_high", 0.95)):
        row[name] = (take.quantile(frame, "delivery_bps", part) or 0.0) / payload_bps
    return row


def _lowest_rtprops(frame: pl.DataFrame, begin_s: float) -> float:
    """Time from the start of a phase with gain 3/4 to the lowest sample within four RTprops."""
    rtprop_s = _RTT_MS / 1e3
    after = frame.filter(pl.col("time_s").is_between(begin_s, begin_s + 4 * rtprop_s))
    at_s = after.sort("delivery_bps", "time_s")["time_s"][0]
    return float(at_s - begin_s) / rtprop_s


def _probe(frame: pl.DataFrame, begin_s: float, end_s: float) -> Row:
    """The effect of a gain cycle on inflight and RTT, relative to their values while cruising."""
    cycle = frame.filter(pl.col("time_s").is_between(begin_s, end_s))
    # The last four phases of a cycle cruise; the probe and its effects are in the first half.
    quiet = cycle.filter(pl.col("time_s") > begin_s + (end_s - begin_s) / 2)
    back_s = begin_s + 3 * _RTT_MS / 1e3
    back = cycle.filter(pl.col("time_s").is_between(back_s - _RTT_MS / 2e3, back_s + _RTT_MS / 2e3))
    inflight, rtt = take.mean(quiet, "inflight_kb"), take.mean(quiet, "rtt_ms")
    above = {
        "inflight_peak": take.ratio(take.most(cycle, "inflight_kb"), inflight),
        "rtt_peak": take.ratio(take.most(cycle, "rtt_ms"), rtt),
    }
    return {
        **{name: None if part is None else part - 1 for name, part in above.items()},
        "after_down": take.ratio(take.mean(back, "rtt_ms"), rtt),
    }


def series(trial: Trial) -> pl.DataFrame:
    frame = _steady(trial)
    begin = frame.filter(pl.col("phase") == "probe_bw_up")["time_s"].min()
    start_s = (begin if isinstance(begin, float) else _FROM_S) - 0.06
    shown = frame.filter(pl.col("time_s").is_between(start_s, start_s + _DRAWN_S))
    return shown.select(
        (pl.col("time_s") - start_s),
        "rtt_ms",
        "inflight_kb",
        (pl.col("delivery_bps") / 1e6).alias("delivery_mbps"),
        (pl.col("bandwidth_bps") / 1e6).alias("bandwidth_mbps"),
        "phase",
    )


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        frame = part.series
        x = alt.X("time_s:Q", title="time, s", scale=alt.Scale(domain=[0, _DRAWN_S], nice=False))
        bounds = charts.boundaries(frame, cycle=True)

        def line(column: str, title: str, colour: str, width: float = 1.3) -> Any:
            return (
                alt.Chart(charts.values(frame.select("time_s", column)))
                .mark_line(strokeWidth=width, color=colour)
                .encode(x=x, y=alt.Y(f"{column}:Q", title=title, scale=alt.Scale(zero=False)))
            )

        rates = alt.layer(
            bounds,
            line("bandwidth_mbps", "delivery rate, Mbit/s", "#79818d", 4),
            line("delivery_mbps", "delivery rate, Mbit/s", "#d55e00"),
        )
        return alt.vconcat(
            *(
                one.properties(width=charts.WIDTH, height=110)
                for one in (
                    alt.layer(bounds, line("rtt_ms", "RTT, ms", "#0072b2")),
                    alt.layer(bounds, line("inflight_kb", "inflight, KB", "#009e73")),
                    rates,
                )
            ),
            spacing=10,
        )

    return charts.worlds(
        data,
        panel,
        "RTT, inflight and delivery rate of a 10 Mbit/s, 40 ms flow",
        "700 ms of steady state; vertical lines: gain changes; grey: maximum filter",
    )


def judge(data: Data) -> list[Check]:
    return [
        Statement("8 phases of one RTprop").within(
            "gain cycle", data.values("cycle_rtprops"), least=6, most=10, unit="RTprop"
        ),
        Statement("one RTprop").within(
            "length of the phase with gain 5/4",
            data.values("up_rtprops"),
            least=0.75,
            most=1.25,
            unit="RTprop",
        ),
        # Of the inflight that one RTprop at this gain adds, and at another gain does not.
        *Statement("5/4 for one RTprop: 25 %").both(
            "peak inflight relative to cruising",
            data.values("inflight_peak"),
            direction=(0.2, 0.3),
            least=0.225,
            most=0.275,
        ),
        Statement("rises as inflight does").within(
            "peak RTT relative to cruising", data.values("rtt_peak"), least=0.2, most=0.3
        ),
        Statement("the queue is removed by the next RTprop").shape(
            "RTT three RTprops after the start of a probe, divided by that while cruising",
            data.values("after_down"),
            most=1.05,
            unit="times",
        ),
        Statement("deliveryRate constant").shape(
            "bytes delivered per RTprop: 5th percentile, divided by what the link can carry",
            data.values("rate_low"),
            least=0.95,
        ),
        Statement("deliveryRate constant").shape(
            "bytes delivered per RTprop: 95th percentile, divided by what the link can carry",
            data.values("rate_high"),
            most=1.05,
        ),
        # Of the article's sentence: it is about the phase with gain above 1.
        Statement("increasing RTT, which keeps deliveryRate constant").shape(
            "Linux's delivery-rate samples: 95th percentile, divided by the link's rate",
            data.values("sampled_high"),
            most=1.05,
        ),
        Statement("claims list: delivery rate stays at BtlBw").within(
            "Linux's delivery-rate samples: 5th percentile, divided by the link's rate",
            data.values("sampled_low"),
            least=0.95,
        ),
    ]


def explain(data: Data) -> list[str]:
    lowest, low, arrived = data.means("lowest_rtprops", "sampled_low", "rate_low")
    if math.isnan(lowest):
        return []
    return [
        f"The lowest of Linux's samples (5 % are below {number(low)} of the rate) come {number(lowest)} "
        "RTprops after the start of the phase with gain 3/4, when the packets of that phase are "
        "acknowledged. They left at 3/4 of the rate, and Linux divides by the longer of the two intervals, "
        f"here that of the departures. The bytes that arrive per RTprop stay at {number(arrived)} of what "
        "the link can carry."
    ]


CLAIM = Claim(
    source="figure 2 and appendix, Steady-state behavior",
    says="It uses an eight-phase cycle with the following pacing_gain values: 5/4, 3/4, 1, 1, 1, 1, 1, 1. "
    "Each phase normally lasts for the estimated RTprop. [...] The triangular structures result from "
    "BBR cycling pacing_gain to determine if BtlBw has increased. If BtlBw hasn't changed, then a "
    "queue is created at the bottleneck, increasing RTT, which keeps deliveryRate constant. This "
    "queue is removed by sending at a compensating pacing_gain < 1 for the next RTprop.",
    worlds=("sim", "kernel"),
    grid=Grid(factors={"seconds": (9.6,)}, document=_document),
    wrong=("vegas", "cubic", "bbr1:probe_gain=1.0", "bbr1:probe_gain=1.5"),
    look_at="Do RTT and inflight show one triangle every eight round trips, while the delivery rate stays "
    "constant?",
)
