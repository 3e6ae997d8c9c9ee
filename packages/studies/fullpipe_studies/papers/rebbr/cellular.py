"""BBR and CUBIC over a cellular delivery trace.

Question: how do BBR and CUBIC follow a link whose rate changes constantly, with and without loss?
Method: one flow for 60 s over a synthetic delivery trace between 1.2 and 14.4 Mbit/s (see
scenarios/cellular.toml), 100 ms, Mahimahi's unlimited queue; random loss of none, 0.1 and 1 %. The short
form runs 30 s.
Prediction: the paper plans this and gives no result; the prediction is ours. Without loss CUBIC fills the
link but builds a queue of seconds; BBR stays close to the link's rate with a fraction of the delay. With 1
% loss CUBIC falls behind.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, deliveries, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, own
from fullpipe_studies.later import alt

# Start-up is over by then.
_STEADY_S = 5.0


def _document(controller: str, loss_pct: float, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "deliveries": deliveries.file(),
            "rtt": "100 ms",
            "buffer": "100 MB",
            "loss": f"{loss_pct} %",
        },
        "flows": [{"controller": controller}],
        "record": {"interval": "100 ms"},
    }


def measure(trial: Trial) -> Row:
    frame = take.samples(trial.run, after_s=min(_STEADY_S, trial.factors["seconds"] / 2))
    return {
        "goodput_mbps": take.goodput_mbps(trial.run),
        "rtt_ms": take.median(frame, "srtt_ms"),
        "rtt_p95_ms": take.quantile(frame, "srtt_ms", 0.95),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = data.runs.group_by("world", "controller", "loss_pct", maintain_order=True).agg(
        pl.col("goodput_mbps", "rtt_ms").mean()
    )

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        base = alt.Chart(charts.values(ours)).encode(
            x=alt.X("rtt_ms:Q", title="median RTT, ms", scale=alt.Scale(type="log", domainMin=80)),
            y=alt.Y("goodput_mbps:Q", title="goodput, Mbit/s", scale=alt.Scale(zero=True)),
        )
        colour = charts.controllers(ours).legend(alt.Legend(orient="bottom", title=None))
        dots = base.mark_point(filled=True, size=90, opacity=1).encode(
            color=colour, shape=alt.Shape("loss_pct:N", title="loss, %", legend=alt.Legend(orient="bottom"))
        )
        path = base.mark_line(strokeWidth=1, opacity=0.6).encode(color=colour, order="loss_pct:Q")
        return alt.layer(path, dots).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "Goodput and delay over a cellular trace",
        f"mean rate {deliveries.mean_mbps():.1f} Mbit/s; lines: from no loss to 1 %",
    )


def judge(data: Data) -> list[Check]:
    def of(column: str, controller: str, loss: float) -> list[float]:
        return data.values(column, controller=controller, loss_pct=loss)

    mean = deliveries.mean_mbps() * 1448 / 1500
    return own(
        Statement("no result; our expectation: most of it").within(
            "BBR's goodput without loss, relative to the mean rate of the link",
            [value / mean for value in of("goodput_mbps", "bbr1", 0)],
            least=0.7,
        ),
        Statement("no result; our expectation: most of it").within(
            "CUBIC's goodput without loss, relative to the mean rate of the link",
            [value / mean for value in of("goodput_mbps", "cubic", 0)],
            least=0.8,
        ),
        Statement("no result; our expectation: CUBIC fills the queue").more(
            "CUBIC's median RTT divided by BBR's, without loss",
            of("rtt_ms", "cubic", 0),
            of("rtt_ms", "bbr1", 0),
            least=2,
        ),
        Statement("no result; our expectation: BBR keeps the rate").more(
            "BBR's goodput divided by CUBIC's at 1 % loss",
            of("goodput_mbps", "bbr1", 1),
            of("goodput_mbps", "cubic", 1),
            least=1.5,
        ),
        Statement("no result; our expectation: falls").more(
            "CUBIC's goodput without loss divided by that at 1 % loss",
            of("goodput_mbps", "cubic", 0),
            of("goodput_mbps", "cubic", 1),
            least=1.5,
        ),
    )


CLAIM = Claim(
    source="section 3, plan",
    says="We would like to see how BBR behaves on a lossy cellular link trace compared to CUBIC.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={"controller": ("bbr1", "cubic"), "loss_pct": (0, 0.1, 1), "seconds": (60,)},
        quick={"seconds": (30,)},
        tiny={"loss_pct": (0, 1), "seconds": (3,)},
        document=_document,
    ),
    look_at="The upper left is best: a high rate with a low delay.",
    seeds=20,
)
