"""Short flows at 3 Gbit/s.

Question: do short flows complete sooner with BBR than with CUBIC, and does BBR fill a deep buffer?
Method: flows from a capture, or synthetic flows with the stated properties of the trace
(`flow_lists/synthetic.py`), are replayed over 3 Gbit/s, 10 ms (the slides do not state the RTT) with buffers
of 1 and 8 BDP, in three models: with their pauses, with pauses collapsed, and with independent
inter-arrival times and volumes. Each run is a slice of 10 s: a scenario may have up to 100 000 flows, 15
minutes have nine times as many, and 30 repetitions of 30 s would need 20 GB of disk. Flows that start in the
middle two thirds of the slice and complete are counted. The quick form has a tenth of the rate and of the
arrivals. Slowdown is the completion time divided by that of the flow alone. An SRPT scheduler serves the same
flows as a reference. The sizes and arrivals of synthetic flows are already independent, so for them the third
model differs from the second only by chance; only flows of a capture distinguish the two.
Prediction: the mean slowdown is slightly smaller with BBRv3 than with CUBIC in every model and buffer;
BBRv3's queue is mostly below two RTTmin and never fills 8 BDP.

Each buffer is judged separately, and "consistently" is a check of shape. This was changed after results of
BBRv1 were seen, and before those of BBRv3: one mean over both buffers had hidden two opposite results.
"""

import itertools
import math
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe.scenario.flow_lists import models
from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import (
    Check,
    Claim,
    Data,
    Grid,
    Row,
    Statement,
    Trial,
    Values,
    number,
)
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _arrivals, _draw, _path

_RATE_MBPS, _RTT_MS = 3000, 10
_SHALLOW, _DEEP = 1, 8
# According to the slides BBR's queue is seldom longer than this, in RTTmin.
_LIMIT = 2


def _document(controller: str, model: str, buffer_bdp: int, scale: float, seconds: int) -> dict[str, Any]:
    flows = _arrivals.replayed(model, seconds, scale)
    return _path.document(
        [{**flow, "controller": controller} for flow in flows],
        rate_mbps=_RATE_MBPS * scale,
        rtt_ms=_RTT_MS,
        buffer=f"{buffer_bdp} bdp",
        seconds=seconds,
        jitter_us=_path.NATURAL_US,
        flow_series=False,
    )


def _outcomes(trial: Trial) -> pl.DataFrame:
    """The flows of the middle of the slice: not those that found the link empty, nor those cut off."""
    seconds = trial.factors["seconds"]
    rate_bps = _RATE_MBPS * trial.factors["scale"] * 1e6
    flows = _arrivals.outcomes(trial, rate_bps, _RTT_MS / 1e3)
    return flows.filter(pl.col("start_s").is_between(seconds / 6, seconds * 5 / 6))


def measure(trial: Trial) -> Row:
    flows = _outcomes(trial)
    queue = _path.queue(trial, _RTT_MS, trial.factors["seconds"] / 6)
    return {
        "source": _arrivals.source(),
        "slowdown": take.mean(flows, "slowdown"),
        "srpt_slowdown": take.mean(flows, "srpt"),
        "flows": flows.height,
        "mean_rtts": take.mean(queue, "rtts"),
        "p95_rtts": take.quantile(queue, "rtts", 0.95),
        "most_rtts": take.most(queue, "rtts"),
        "over_limit": _path.part(queue, pl.col("rtts") > _LIMIT),
        "load": trial.run.summary["links"][0]["utilisation"],
        **_arrivals.crowd(trial, queue.filter(pl.col("rtts") > _LIMIT)["time_s"].to_list()),
    }


def series(trial: Trial) -> pl.DataFrame:
    return _arrivals.by_size(_outcomes(trial))


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X(
            "bytes:Q",
            title="size of the flow, bytes",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format="~s"),
        )
        scale = alt.Scale(type="log")
        y, of_ideal = (
            alt.Y(f"{name}:Q", title="mean slowdown", scale=scale) for name in ("slowdown", "srpt")
        )
        titles = {
            f"{model}, {buffer}": f"{model}, {buffer} BDP of buffer"
            for model in models.MODELS
            for buffer in (_SHALLOW, _DEEP)
        }

        def draw(frame: pl.DataFrame) -> Any:
            # The SRPT schedule does not depend on the controller.
            of_srpt = frame.filter(pl.col("controller") == _path.CONTROLLERS[0])
            ideal = alt.Chart(charts.values(of_srpt)).mark_line(strokeDash=[4, 3], color=theme.QUIET)
            return alt.layer(_draw.lines(frame, x, y, "controller"), ideal.encode(x=x, y=of_ideal))

        frame = part.series.with_columns(pl.format("{}, {}", "model", "buffer_bdp").alias("panel"))
        curves = _draw.panels(frame, "panel", titles, draw)
        return alt.vconcat(curves, _queues(part), spacing=24)

    return charts.worlds(
        data,
        panel,
        "Slowdown by flow size",
        [
            "3 Gbit/s (quick form: a tenth), 10 ms; dashed grey: SRPT",
            f"bottom: {charts.BARS}; dashed: the slides’ 2 RTTmin",
        ],
    )


def _queues(part: Data) -> Any:
    """The 95th percentile of the queue in the deep buffer, in each model."""
    rows = part.runs.filter(pl.col("buffer_bdp") == _DEEP)
    frame = charts.means(Data(rows, part.series), ["controller", "model"], "p95_rtts")
    base = alt.Chart(charts.values(frame)).encode(
        x=alt.X("model:N", title=None, axis=alt.Axis(labelAngle=0)),
        xOffset="controller:N",
        color=charts.controllers(frame),
    )
    bars = base.mark_rule(strokeWidth=1).encode(y="low:Q", y2="high:Q")
    dots = base.mark_point(filled=True, size=38, opacity=1).encode(y=alt.Y("mean:Q", title="queue, RTTmin"))
    level = layers.level(_LIMIT)
    title = f"95th percentile of the queue, {_DEEP} BDP of buffer"
    return alt.layer(level, bars, dots).properties(
        width=charts.WIDTH, height=charts.HEIGHT, title=alt.TitleParams(title, fontSize=12)
    )


def _better(data: Data, name: str) -> Values:
    """The share of models and buffers in which the mean slowdown is smaller than with CUBIC, by seed."""
    bbr, cubic = (data.values("slowdown", controller=one) for one in (name, "cubic"))
    ratios = cubic.over(bbr)
    there = ratios.only(ratio > 0 for ratio in ratios)
    return Values((float(ratio > 1) for ratio in there), there.seeds)


def judge(data: Data) -> list[Check]:
    checks = []
    for name in _path.VARIANTS:
        for buffer, model in itertools.product((_SHALLOW, _DEEP), models.MODELS):
            cubic, bbr, ideal = (
                data.values(column, controller=controller, model=model, buffer_bdp=buffer)
                for column, controller in (("slowdown", "cubic"), ("slowdown", name), ("srpt_slowdown", name))
            )
            checks += [
                Statement("BBR performs better than Cubic").more(
                    f"{model}, {buffer} BDP: mean slowdown with CUBIC divided by that with {name}", cubic, bbr
                ),
                Statement("SRPT is near optimum").more(
                    f"{model}, {buffer} BDP: mean slowdown with {name} divided by that under SRPT", bbr, ideal
                ),
            ]
        deep = {
            column: data.values(column, controller=name, buffer_bdp=_DEEP)
            for column in ("p95_rtts", "most_rtts", "over_limit")
        }
        queued = [value > 0 for value in deep["p95_rtts"]]
        checks += [
            Statement("consistently better").shape(
                f"Runs in which the mean slowdown is smaller with {name} than with CUBIC",
                _better(data, name),
                least=0.9,
                unit="of runs",
            ),
            *(
                Statement("slightly better").more(
                    f"Mean slowdown with CUBIC divided by that with {name}, {buffer} BDP, all models",
                    data.values("slowdown", controller="cubic", buffer_bdp=buffer),
                    data.values("slowdown", controller=name, buffer_bdp=buffer),
                    most=2,
                    shape=False,
                )
                for buffer in (_SHALLOW, _DEEP)
            ),
            Statement("BBR often limits queuing delay to 2 RTTmin").shape(
                f"{name}: time with a queue longer than 2 RTTmin, 8 BDP",
                deep["over_limit"].only(queued) if len(queued) == len(deep["over_limit"]) else [],
                most=0.25,
                unit="of the time",
            ),
            Statement("claims list: queueing delay mostly limited to 2 RTTmin").within(
                f"{name}: 95th percentile of the queue, 8 BDP",
                deep["p95_rtts"].only(queued),
                most=2,
                unit="RTTmin",
            ),
            Statement("BBR avoids to fill deep buffers completely").within(
                f"{name}: longest queue, 8 BDP",
                deep["most_rtts"].only(value > 0 for value in deep["most_rtts"]),
                most=0.95 * _DEEP,
                unit="RTTmin",
            ),
        ]
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for name in data.runs["controller"].unique(maintain_order=True).to_list():
        for buffer in (_SHALLOW, _DEEP):
            slowdown, queue, again, load = data.means(
                "slowdown", "mean_rtts", "retransmitted", "load", controller=name, buffer_bdp=buffer
            )
            if not math.isnan(slowdown):
                facts.append(
                    f"{name}, {buffer} BDP: mean slowdown {number(slowdown)}, mean queue {number(queue)} "
                    f"RTTmin, {number(100 * again)} % retransmitted, {number(100 * load)} % of the link used."
                )
        then, mean = data.means("large_then", "large", controller=name, buffer_bdp=_DEEP)
        if not math.isnan(then):
            facts.append(
                f"{name}, {_DEEP} BDP: while the queue is longer than {_LIMIT} RTTmin, {number(then)} flows "
                f"of over 6.4 MB are active on average; over the whole run, {number(mean)}."
            )
    return facts


CLAIM = Claim(
    source="Short Flows: Real-World Trace; backup slides 20 to 22",
    says="15min MAWI trace (2020/06/10, 10 Gbit/s link, 890 000 TCP flows), replay at 3 Gbit/s. BBR performs "
    "slightly but consistently better than Cubic. BBR avoids to fill deep buffers completely, and often "
    "limits queuing delay to 2 RTTmin.",
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "model": models.MODELS,
            "buffer_bdp": (_SHALLOW, _DEEP),
            "scale": (1.0,),
            "seconds": (10,),
        },
        quick={"scale": (0.1,)},
        tiny={"scale": (0.01,), "seconds": (3,)},
        document=_document,
    ),
    # Vegas is no control: it keeps deep buffers empty, too.
    wrong=("cubic", "reno"),
    cannot={
        "kernel": "It is about 3 Gbit/s, which the emulator does not carry. "
        "A slower link is another experiment."
    },
    look_at="Which curve is lower at the sizes of most flows, in each buffer, and how far is it from SRPT?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
