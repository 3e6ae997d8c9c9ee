"""A wrong least RTT starves a flow of a delay-bounding controller.

Question: what does a flow get that takes a part of the path's delay for a queue, beside one that does not?
Method: two flows of one controller for 280 s on 120 Mbit/s, 60 ms with a buffer of 2 BDP. In the first
second, when only the first flow runs, the path is shorter by 0 to 10 ms; the second starts at 100 s.
Goodput of both from 200 s on. Copa keeps its least RTT for 300 s here, as Vegas does for ever, so that the
steady state is measured.
Prediction: the first flow starves, and the more, the larger the delay: under Vegas, and under Copa without
its mode for competition with TCP. CUBIC is indifferent.

The paper proves this for all controllers that converge to a small range of delays, and shows it for Copa
with a link emulator; of that experiment, nothing was at hand. All numbers are ours: the second flow has at
least five times the first one's goodput with 5 ms (direction) and ten times with 10 ms; CUBIC's ratio
stays below three. Copa with its mode switching, and BBR, which renews its least RTT every 10 s, are measured
and not judged. Two numbers were added after results were seen, because runs with 10 ms have two modes that a
mean hides: how far apart the flows are, whichever starves, and the share of runs in which the first one does.
CUBIC's ratio is judged for each delay; before, its mean over all delays was, in which opposite ones are even.

The times were changed after results were seen; first, the second flow started at 2 s, and goodput was
measured from 10 to 60 s. Vegas moves by a packet a round trip, which takes minutes here. And its second
flow took the queue that the first one's slow start had left for the path's delay, and in ten minutes got
114 Mbit/s beside 0.4, with no delay of the path's own: starvation, too, but not this claim's.
"""

import math
from functools import partial
from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import (
    Check,
    Claim,
    Data,
    Grid,
    Row,
    Statement,
    Trial,
    Values,
    geometric,
    number,
)
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS = 120, 60
# Two bandwidth-delay products.
_BUFFER_KB = 1800
_SHORTER_S = 1.0
# Parts of the duration: when the second flow starts, and when measurements begin.
_SECOND, _AFTER = 100 / 280, 200 / 280
_WRONG_MS = (0, 1, 2, 5, 10)
_COPA = "copa:min_rtt_window_s=300,mode_switching=0"
_SWITCHING = "copa:min_rtt_window_s=300"
_JUDGED = {"vegas": "Vegas", _COPA: "Copa"}
_SAID = Statement("Starvation, an extreme form of unfairness")


def _document(controller: str, wrong_ms: float, seconds: int) -> dict[str, Any]:
    path: dict[str, Any] = {
        "rate": f"{_RATE_MBPS} Mbit/s",
        "rtt": f"{_RTT_MS - wrong_ms} ms",
        "buffer": f"{_BUFFER_KB} KB",
    }
    if wrong_ms:
        path["changes"] = [{"at": f"{_SHORTER_S} s", "rtt": f"{_RTT_MS} ms"}]
    return {
        "duration": f"{seconds} s",
        "path": path,
        "flows": [
            {"controller": controller, "label": "misled", "start_jitter": "0 s"},
            {"controller": controller, "label": "other", "start": f"{_SECOND * seconds:.3f} s"},
        ],
        "record": {"interval": "100 ms"},
    }


def measure(trial: Trial) -> Row:
    by_flow = sharing.rates(trial.run, _AFTER * trial.factors["seconds"])
    if len(by_flow) < 2:
        return dict.fromkeys(("misled_mbps", "other_mbps", "ratio"))
    misled, other = by_flow["misled"], by_flow["other"]
    return {"misled_mbps": misled, "other_mbps": other, "ratio": other / misled if misled > 0 else None}


def _named(frame: pl.DataFrame) -> pl.DataFrame:
    names = {_COPA: "copa, delay mode only", _SWITCHING: "copa"}
    return frame.with_columns(pl.col("controller").replace(names))


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        runs = _named(part.runs).filter(pl.col("ratio") > 0)
        x = alt.X("wrong_ms:Q", title="non-congestive delay of the first flow, ms")
        title = "goodput of the second flow divided by the first's"
        points = charts.every_run(runs, x, "ratio", title, ["controller", "wrong_ms"], type="log")
        return alt.layer(layers.level(1), points).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "One of two flows takes delay for a queue",
        "120 Mbit/s, 60 ms; points: every run; lines: medians; dashed: fair",
    )


def _richer(ratios: Values) -> Values:
    """The goodput of the flow that has more divided by that of the other, whichever it is."""
    richer = (max(one, 1 / one) if one > 0 else one for one in ratios)
    return Values(richer, ratios.seeds, scenarios=ratios.scenarios, without=ratios.without)


def judge(data: Data) -> list[Check]:
    checks = []
    for controller, name in _JUDGED.items():
        calm, some, most = (
            data.values("ratio", controller=controller, wrong_ms=wrong_ms) for wrong_ms in (0, 5, 10)
        )
        checks += [
            _SAID.shape(
                f"{name}: second flow's goodput divided by the first's, 5 ms (direction)",
                some,
                least=5,
                unit="times",
                middle=geometric,
            ),
            _SAID.within(
                f"{name}: second flow's goodput divided by the first's, 10 ms",
                most,
                least=10,
                unit="times",
                middle=geometric,
            ),
            _SAID.more(f"{name}: that ratio with 10 ms divided by that without", most, calm),
            # Which flow starves may differ between runs.
            _SAID.more(
                f"{name}: the richer flow's goodput divided by the poorer's, 10 ms divided by without",
                _richer(most),
                _richer(calm),
                shape=False,
            ),
            _SAID.share(
                f"{name}: runs in which the misled flow is the poorer one, 10 ms",
                [ratio > 1 for ratio in most],
                least=0.5,
            ),
        ]
    # One by one: opposite ratios of two delays would seem even.
    checks += [
        Statement("delay-bounding CCAs").shape(
            f"CUBIC: second flow's goodput divided by the first's, {wrong_ms} ms",
            data.values("ratio", controller="cubic", wrong_ms=wrong_ms),
            most=3,
            unit="times",
            middle=geometric,
        )
        for wrong_ms in (0, 5, 10)
    ]
    return checks


def explain(data: Data) -> list[str]:
    """Goodputs with 10 ms, apart for runs in which the one flow is the poorer one and the other."""
    facts = []
    for controller, name in {**_JUDGED, "cubic": "CUBIC"}.items():
        runs = data.runs.filter(pl.col("controller") == controller, pl.col("wrong_ms") == 10)
        there = runs.drop_nulls(["misled_mbps", "other_mbps"])
        poorer = pl.col("misled_mbps") < pl.col("other_mbps")
        parts = [
            f"{number(mean('misled_mbps'), 2)} against {number(mean('other_mbps'))} Mbit/s in {part.height}"
            for part in (there.filter(poorer), there.filter(~poorer))
            if part.height
            for mean in [partial(_mean, part)]
        ]
        if parts:
            facts.append(f"{name}, 10 ms, of {there.height} runs: {'; '.join(parts)}.")
    return facts


def _mean(runs: pl.DataFrame, column: str) -> float:
    values = runs[column].to_list()
    return math.fsum(values) / len(values)


CLAIM = Claim(
    source="abstract",
    says="Although designed to achieve reasonable inter-flow fairness, current methods to develop "
    "delay-bounding CCAs cannot always avoid starvation, an extreme form of unfairness.",
    grid=Grid(
        factors={
            "controller": ("vegas", _COPA, _SWITCHING, "bbr1", "bbr3", "cubic"),
            "wrong_ms": _WRONG_MS,
            "seconds": (280,),
        },
        quick={"wrong_ms": (0, 5, 10)},
        tiny={"controller": ("vegas", _COPA, "cubic"), "wrong_ms": (0, 5, 10), "seconds": (6,)},
        document=_document,
    ),
    look_at="Which lines leave the dashed one, and where are a controller's runs on both sides of it?",
    subject=("vegas", "copa"),
    wrong=("cubic", "reno"),
    # With fewer, two modes cannot be told from one.
    quick_seeds=5,
)
