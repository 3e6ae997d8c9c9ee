"""Goodput under random loss.

Question: how much random loss can BBR and CUBIC each bear?
Method: one flow for 60 s on 100 Mbit/s, 100 ms, with independent loss of 0.001 to 50 % behind a buffer of 1
BDP.
Prediction: CUBIC gives way from 0.1 % on; BBR stays at link rate times (1 - p) up to 5 %, close to it at 15
%, and falls where the loss nears the gain with which it probes.
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, within

_RATE_MBPS = 100.0


def _document(controller: str, loss_pct: float, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{_RATE_MBPS} Mbit/s", "rtt": "100 ms", "buffer": "1 bdp", "loss": f"{loss_pct} %"},
        "flows": [{"controller": controller}],
        "record": {"series": False},
    }


def _measure(trial: Trial) -> Row:
    goodput = take.goodput_mbps(trial.run)
    ceiling = _RATE_MBPS * take.payload_share(trial) * (1 - trial.factors["loss_pct"] / 100)
    return {
        "goodput_mbps": goodput,
        "of_ceiling": goodput / ceiling,
        "retransmits": take.flow(trial.run)["retransmits"],
    }


def _figure(data: Data) -> alt.TopLevelMixin:
    frame = charts.means(data, ["controller", "loss_pct"], "goodput_mbps")
    top = _RATE_MBPS * 1448 / 1500
    steps = [10 ** (exponent / 20) for exponent in range(-60, 35)]
    ceiling = pl.DataFrame({"loss_pct": steps, "value": [top * (1 - p / 100) for p in steps]})

    def panel(part: Data) -> Any:
        x = alt.X("loss_pct:Q", title="loss rate, %", scale=alt.Scale(type="log", domain=[0.001, 50]))
        limit = (
            alt.Chart(charts.values(ceiling))
            .mark_line(strokeDash=[4, 3], strokeWidth=1, color="#79818d")
            .encode(x=x, y="value:Q")
        )
        ours = frame.filter(pl.col("world") == part.worlds[0])
        lines = charts.points(ours, x, "goodput, Mbit/s", charts.controllers(ours), domain=[0, 100])
        return alt.layer(limit, lines).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "Goodput under random loss", "100 Mbit/s, 100 ms; dashed: link rate × (1 − p)"
    )


def _judge(data: Data) -> list[Check]:
    def bbr(column: str, loss: float) -> list[float]:
        return data.values(column, controller="bbr1", loss_pct=loss)

    def cubic(loss: float) -> list[float]:
        return data.values("goodput_mbps", controller="cubic", loss_pct=loss)

    return [
        more(
            "CUBIC at 0.001 % over CUBIC at 0.1 %",
            cubic(0.001),
            cubic(0.1),
            paper="10 times less at 0.1 %",
            least=5,
            most=20,
            shape=False,
        ),
        more(
            "CUBIC at 0.001 % over CUBIC at 0.1 %, direction",
            cubic(0.001),
            cubic(0.1),
            paper="decreases",
            least=2,
        ),
        within(
            "CUBIC at 2 %", cubic(2), paper="totally stalled above 1 %", most=2, unit="Mbit/s", shape=True
        ),
        *(
            within(
                f"BBR at {loss:g} % over its ceiling",
                bbr("of_ceiling", loss),
                paper="meets the limit up to 5 %",
                least=0.9,
            )
            for loss in (0.1, 1, 5)
        ),
        within("BBR at 15 % over its ceiling", bbr("of_ceiling", 15), paper="close up to 15 %", least=0.8),
        more(
            "BBR over CUBIC at 1 %",
            bbr("goodput_mbps", 1),
            cubic(1),
            paper="BBR keeps the rate where CUBIC stalls",
            least=10,
        ),
        more(
            "BBR's part of the ceiling at 15 % over that at 50 %",
            bbr("of_ceiling", 15),
            bbr("of_ceiling", 50),
            paper="falls when the loss passes the probing gain",
            least=2,
        ),
    ]


CLAIM = Claim(
    source="figure 8",
    says="CUBIC's throughput decreases by 10 times at 0.1 percent loss and totally stalls above 1 percent. "
    "The maximum possible throughput is the link rate times fraction delivered. BBR meets this limit up to "
    "a 5 percent loss and is close up to 15 percent.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": ("bbr1", "cubic"),
            "loss_pct": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 15, 20, 30, 50),
            "seconds": (60,),
        },
        quick={"loss_pct": (0.001, 0.01, 0.1, 1, 2, 5, 15, 50)},
        tiny={"loss_pct": (0.1, 15), "seconds": (2,)},
        # Its runs live in wall time.
        kernel={"loss_pct": (0.001, 0.01, 0.1, 1, 2, 5, 15, 50), "seconds": (30,)},
        document=_document,
    ),
    measure=_measure,
    figure=_figure,
    judge=_judge,
    look_at="Look for the dashed ceiling, which BBR follows to the right of where CUBIC is gone.",
)
