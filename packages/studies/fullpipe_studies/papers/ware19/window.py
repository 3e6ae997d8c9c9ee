"""Under competition, BBR is limited by its window.

Question: what limits BBRv1 beside loss-based flows: its rate or its window?
Method: one BBRv1 flow alone, and beside 1 and 16 CUBIC flows, for 600 s (kernel: 120 s) on 10 Mbit/s, 40 ms
with a buffer of 32 BDP. A sample in ProbeBW counts as limited by the window if at least three quarters of
the window are in flight, halfway between a flow without a queue and a full window. The measure is tried on a
flow beside one Reno flow, whose share is the model's, so that it must be limited.
Prediction: beside CUBIC it is limited by its window nearly always, alone nearly never, and it fills buffers.

The path is that of the paper's figure 1. What counts as limited, "nearly" (80 and 10 %; in shape: half)
and a buffer at least half full are our own. The flow beside Reno decided about 80 %: it has 83 %.
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import capmodel, charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, own
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS, _BUFFER_BDP = 10, 40, 32


def _document(loss: str, others: int, seconds: int) -> dict[str, Any]:
    return capmodel.document(
        bbrs=1,
        loss=loss,
        others=others,
        rate_mbps=_RATE_MBPS,
        rtt_ms=_RTT_MS,
        buffer_bdp=_BUFFER_BDP,
        seconds=seconds,
    )


def measure(trial: Trial) -> Row:
    queue = take.mean(take.link(trial.run, after_s=capmodel.begin(trial)), "queue_delay_ms")
    return {
        **capmodel.limits(trial),
        **capmodel.measured(trial),
        "filled": None if queue is None else queue / (_BUFFER_BDP * _RTT_MS),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    cubic = Data(data.runs.filter(pl.col("loss") == "cubic"), data.series)
    frame = charts.means(cubic, ["others"], "limited").with_columns(pl.lit("bbr1").alias("controller"))

    def panel(part: Data) -> Any:
        ours = layers.of(frame, part)
        x = alt.X("others:O", title="CUBIC flows beside it")
        y = "samples limited by the window"
        points = charts.points(ours, x, y, charts.controllers(ours), domain=[0, 1])
        return points.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "What limits BBRv1 beside CUBIC", "10 Mbit/s, 40 ms, 32 BDP; ProbeBW only"
    )


def judge(data: Data) -> list[Check]:
    alone = data.values("limited", others=0)
    checks = [
        Statement("rate-based").within("Samples limited by the window, alone", alone, least=0, most=0.1)
    ]
    for others in sorted(data.runs["others"].unique().to_list()):
        if others == 0:
            continue
        beside, filled = (
            data.values(column, loss="cubic", others=others) for column in ("limited", "filled")
        )
        beside_text = f"beside {others} CUBIC"
        checks += [
            Statement("when competing, BBR is window-limited").more(
                f"Samples limited by the window, {beside_text}, divided by those alone", beside, alone
            ),
            *Statement("when competing, BBR is window-limited").both(
                f"Samples limited by the window, {beside_text}", beside, direction=0.5, least=0.8
            ),
            Statement("it will fill network buffers").shape(
                f"Mean queue, {beside_text}", filled, least=0.5, unit="of the buffer"
            ),
        ]
    model = capmodel.share(_RATE_MBPS, _RTT_MS, _BUFFER_BDP, 1)
    limited, share = (data.values(column, loss="reno") for column in ("limited", "bbr_share"))
    calibrates = Statement("the model of a window-limited flow")
    return checks + own(
        calibrates.within("Share beside 1 Reno", share, least=0.9 * model, most=1.1 * model),
        calibrates.within("Samples limited by the window, beside 1 Reno", limited, least=0.8),
    )


def explain(data: Data) -> list[str]:
    facts = []
    for others in (1, 16):
        row = {
            name: data.mean(name, loss="cubic", others=others)
            for name in ("silent", "rtt_ms", "least_ms", "flight_packets", "window_packets")
        }
        if not any(math.isnan(value) for value in row.values()):
            facts.append(f"Beside {others} CUBIC: {capmodel.reported(row, _RTT_MS, _BUFFER_BDP)}")
    return facts


CLAIM = Claim(
    source="section 3; figure 1",
    says="While BBR is supposed to be a rate-based algorithm, when competing, BBR is window-limited. ... it "
    "will fill network buffers when competing with loss-based algorithms. (The first author's summary)",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={"loss": ("cubic", "reno"), "others": (0, 1, 16), "seconds": (600,)},
        tiny={"others": (0, 1), "seconds": (15,)},
        in_wall_time={"seconds": (120,)},
        document=_document,
        only=lambda loss, others, **_others: loss == "cubic" or others == 1,
    ),
    # A window that limits nothing, and one that always does.
    wrong=("bbr1:cwnd_gain=3.9", "bbr1:cwnd_gain=1"),
    look_at="Is the point without CUBIC near 0 and are the others near 1?",
)
