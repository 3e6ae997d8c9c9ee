"""ProbeBW_UP prolongs its own rounds.

Question: how long is the queue that a bandwidth probe builds, and how long does the probe take?
Method: one flow for 60 s on 100 Mbit/s, 50 ms with a buffer of 8 BDP and without jitter. Every phase in
which the flow sends at 1.25 times its estimate is measured, from 5 s on.
Prediction: BBRv1 probes for one RTTmin and builds a queue of a quarter RTTmin. BBRv3 probes for three
rounds, which the queue prolongs, and its peaks are higher.
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.ccwg25 import _draw, _path
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, within

_RATE_MBPS, _RTT_MS = 100, 50
_UP = "probe_bw_up"


def _document(controller: str, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller}],
        rate_mbps=_RATE_MBPS,
        rtt_ms=_RTT_MS,
        buffer="8 bdp",
        seconds=seconds,
        interval_ms=5,
    )


def _probes(trial: Trial) -> list[tuple[float, float]]:
    """The length and the peak queue of each complete probe, both in RTTmin."""
    frame = take.over_time(trial.run).filter(
        pl.col("time_s") >= min(_path.STEADY_S, trial.factors["seconds"] / 3)
    )
    phases = take.stretches(frame)
    # The first and the last may be incomplete.
    ups = phases.filter(pl.col("phase") == _UP).select("start_s", "end_s").rows()[1:-1]
    found = []
    for start_s, end_s in ups:
        # The last packets of the phase are in the queue half a round trip later.
        probe = frame.filter(pl.col("time_s").is_between(start_s, end_s + _RTT_MS / 1e3))
        peak = take.most(probe, "rtt_ms")
        if peak is not None:
            found.append(((end_s - start_s) * 1e3 / _RTT_MS, peak / _RTT_MS - 1))
    return found


def _measure(trial: Trial) -> Row:
    probes = pl.DataFrame(_probes(trial), schema={"rtts": pl.Float64, "peak": pl.Float64}, orient="row")
    return {
        "up_rtts": take.median(probes, "rtts"),
        "peak_rtts": take.median(probes, "peak"),
        "probes": probes.height,
    }


def _series(trial: Trial) -> pl.DataFrame:
    return _path.drawn(trial, _RTT_MS)


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        x = alt.X("time_s:Q", title="time, s", scale=alt.Scale(zero=False, nice=False))
        y = alt.Y("rtts:Q", title="queueing delay, RTTmin")
        drawn = _draw.lines(part.series, x, y, "controller", 0.25)
        return drawn.properties(width=2 * charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "The queue that bandwidth probes build",
        "100 Mbit/s, 50 ms, 8 BDP, no jitter; dashed: a quarter RTTmin",
    )


def _judge(data: Data) -> list[Check]:
    def at(column: str, controller: str) -> list[float]:
        return data.values(column, controller=controller)

    checks = [
        within(
            "BBRv1: peak queue of a probe (direction)",
            at("peak_rtts", "bbr1"),
            paper="estimated bandwidth · 1.25",
            least=0.1,
            most=0.6,
            unit="RTTmin",
            shape=True,
        ),
        within(
            "BBRv1: peak queue of a probe",
            at("peak_rtts", "bbr1"),
            paper="BBRv3 creates higher peaks not present to that extent with BBRv1",
            least=0.15,
            most=0.35,
            unit="RTTmin",
        ),
        within(
            "BBRv1: length of a probe",
            at("up_rtts", "bbr1"),
            paper="queue16: each phase normally lasts for the estimated RTprop",
            least=0.8,
            most=1.6,
            unit="RTTmin",
        ),
    ]
    if _path.ABOUT in _path.BBRS:
        checks += [
            more(
                "Peak queue of a probe: BBRv3's divided by BBRv1's",
                at("peak_rtts", _path.ABOUT),
                at("peak_rtts", "bbr1"),
                paper="BBRv3 creates higher peaks not present to that extent with BBRv1",
                least=1.25,
            ),
            within(
                "BBRv3: length of a probe (direction)",
                at("up_rtts", _path.ABOUT),
                paper="3 RTTs, prolonged by the queue",
                least=2,
                unit="RTTmin",
                shape=True,
            ),
            within(
                "BBRv3: length of a probe",
                at("up_rtts", _path.ABOUT),
                paper="3 RTTs, prolonged by the queue",
                least=3,
                most=6,
                unit="RTTmin",
            ),
        ]
    return checks


CLAIM = Claim(
    source="1st Cause: ProbeBW_UP Phase",
    says="1st Cause: ProbeBW_UP Phase: estimated bandwidth times 1.25, for 3 RTTs. Self-induced queuing "
    "delay prolongs round-trips. BBRv3 creates higher peaks not present to that extent with BBRv1.",
    worlds=("sim",),
    grid=Grid(
        factors={"controller": _path.BBRS, "seconds": (60,)},
        quick={"seconds": (30,)},
        tiny={"seconds": (8,)},
        document=_document,
    ),
    measure=_measure,
    series=_series,
    figure=_figure,
    judge=_judge,
    look_at="How high are the peaks compared with the dashed line?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
