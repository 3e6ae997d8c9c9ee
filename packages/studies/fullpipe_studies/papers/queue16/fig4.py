"""The first second of BBR and CUBIC.

Question: how do BBR and CUBIC find the rate of an empty path, and which queue remains afterwards?
Method: one flow of each, alone on 10 Mbit/s, 40 ms, with a buffer of 8 BDP, for one second from its SYN on.
Prediction: both double inflight in each round. BBR sees three rounds without growth, with at most about two
BDP in the queue, and drains the queue. CUBIC's inflight keeps growing.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS = 10.0, 40.0
_RTT_S = _RTT_MS / 1e3
_BDP = take.bdp_bytes(_RATE_MBPS, _RTT_MS)
# Startup continues while the estimate grows by at least a quarter per round (appendix).
_PLATEAU = 1 / 1.25


def _document(controller: str, seconds: float) -> dict[str, Any]:
    return {
        # The start is delayed by up to a round trip, so that seeds differ.
        "duration": f"{seconds + _RTT_S} s",
        "path": {"rate": f"{_RATE_MBPS} Mbit/s", "rtt": f"{_RTT_MS} ms", "buffer": "8 bdp"},
        "flows": [{"controller": controller}],
        "record": {"interval": "1 ms"},
    }


def measure(trial: Trial) -> Row:
    frame = take.over_time(trial.run)
    # Data flows from one round trip after the SYN on.
    first, second = (
        frame.filter((pl.col("time_s") >= at * _RTT_S) & (pl.col("time_s") < (at + 1) * _RTT_S))
        for at in (1.0, 2.0)
    )
    early, late = (
        take.mean(frame.filter(pl.col("time_s").is_between(at, at + 0.1)), "inflight_segments")
        for at in (0.5, 0.9)
    )
    doubled = take.ratio(take.most(second, "inflight_segments"), take.most(first, "inflight_segments"))
    row: Row = {
        "growth_a_round": doubled,
        "late_growth": take.ratio(late, early),
        "last_rtt_ms": take.median(frame.filter(pl.col("time_s") > 0.9), "rtt_ms"),
        "plateau_rounds": None,
        "startup_queue_bdp": None,
        "drained_queue_bdp": None,
    }
    if trial.factors["controller"] != "bbr1":
        return row
    row["startup_queue_bdp"] = (take.most(frame, "queue_bytes") or 0.0) / _BDP
    # A controller without a Drain has drained the queue, if at all, in the last round.
    drained = 1 - _RTT_S
    phases = {one["phase"]: one for one in reversed(take.stretches(frame).to_dicts())}
    if "drain" in phases:
        end, drained = phases["drain"]["start_s"], phases["drain"]["end_s"]
        startup = frame.filter(pl.col("time_s") < end)
        top = take.most(startup, "bandwidth_bps") or 0.0
        plateau = startup.filter(pl.col("bandwidth_bps") > _PLATEAU * top)
        row["plateau_rounds"] = _rounds(plateau)
    after = frame.filter(pl.col("time_s").is_between(drained, drained + _RTT_S))
    return {**row, "drained_queue_bdp": (take.median(after, "queue_bytes") or 0.0) / _BDP}


def _rounds(frame: pl.DataFrame) -> float:
    """The duration of these samples in round trips of the RTT at that time."""
    steps = frame.select((pl.col("time_s").diff() * 1e3 / pl.col("srtt_ms")).alias("rounds"))
    return float(steps["rounds"].sum())


def series(trial: Trial) -> pl.DataFrame:
    frame = take.over_time(trial.run).filter(pl.col("time_s").is_between(0, 1))
    return frame.select("time_s", "inflight_kb", "rtt_ms", "phase").gather_every(2)


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        frame = part.series
        colour, dash = charts.controllers(frame), charts.dashes(frame)
        x = alt.X("time_s:Q", title="time since the SYN, s", scale=alt.Scale(domain=[0, 1], nice=False))
        bounds = charts.boundaries(frame.filter(pl.col("controller") == "bbr1"))

        def lines(column: str, title: str, levels: Sequence[float]) -> Any:
            drawn = (
                alt.Chart(charts.values(frame))
                .mark_line(strokeWidth=1.3, clip=True)
                .encode(x=x, y=alt.Y(f"{column}:Q", title=title), color=colour, strokeDash=dash)
            )
            return alt.layer(bounds, layers.level(*levels), drawn).properties(width=charts.WIDTH, height=160)

        # A BDP, and two BDP of queue on top of it.
        bdp_kb = take.bdp_bytes(_RATE_MBPS, _RTT_MS) / 1e3
        return alt.vconcat(
            lines("inflight_kb", "inflight, KB", (bdp_kb, 3 * bdp_kb)),
            lines("rtt_ms", "RTT, ms", (_RTT_MS, 3 * _RTT_MS)),
            spacing=12,
        )

    return charts.worlds(
        data,
        panel,
        "First second of a 10 Mbit/s, 40 ms flow",
        [
            "vertical: BBR’s phase changes; buffer 8 BDP",
            "dashed: the path without a queue, and with the paper’s 2 BDP of queue",
        ],
    )


def judge(data: Data) -> list[Check]:
    def values(column: str, controller: str = "bbr1") -> list[float]:
        return data.values(column, controller=controller)

    return [
        *(
            Statement("doubles each round").shape(
                f"inflight of {controller} in the second round divided by that in the first",
                values("growth_a_round", controller),
                least=1.6,
                most=2.4,
                unit="times",
            )
            for controller in ("bbr1", "cubic")
        ),
        Statement("three").within(
            "rounds without growth before BBR leaves Startup",
            values("plateau_rounds"),
            least=2.5,
            most=4,
            unit="rounds",
        ),
        # The appendix: the gain of 2/ln 2 "bounds the queue to (cwnd_gain - 1) x BDP", which is 1.89 BDP. It
        # is exhausted, since the pipe is full for three rounds. A gain of 2 would leave 1 BDP.
        *Statement("up to 2 BDP, for a gain of 2/ln 2").both(
            "BBR's longest queue",
            values("startup_queue_bdp"),
            direction=(1.5, 2.5),
            least=1.7,
            most=2.2,
            unit="BDP",
        ),
        Statement("completely drained").shape(
            "BBR's queue in the round after Drain", values("drained_queue_bdp"), most=0.2, unit="BDP"
        ),
        Statement("growth continues").shape(
            "CUBIC's inflight at 0.9 s divided by that at 0.5 s",
            values("late_growth", "cubic"),
            least=1.02,
            unit="times",
        ),
        Statement("BBR drains its startup queue, CUBIC cannot").more(
            "CUBIC's RTT divided by BBR's after 0.9 s",
            values("last_rtt_ms", "cubic"),
            values("last_rtt_ms"),
            least=1.2,
        ),
    ]


CLAIM = Claim(
    source="figure 4",
    says="This discovers BtlBw in log2 BDP RTTs but creates up to 2 BDP excess queue in the process. Their "
    "initial behavior is similar, but BBR completely drains its startup queue while CUBIC can't.",
    worlds=("sim", "kernel", "quic"),
    grid=Grid(
        factors={"controller": ("bbr1", "cubic"), "seconds": (1.0,)},
        document=_document,
    ),
    wrong=("vegas", "cubic", "bbr3"),
    look_at="Both lines should grow alike until the pipe is full (50 KB). BBR drops to one BDP at the "
    "second vertical line, and CUBIC keeps growing.",
)
