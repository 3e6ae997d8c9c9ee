"""A token-bucket policer.

Question: how much does BBR lose at a policer, and how much does its policer model help?
Method: one flow for 60 s on 100 Mbit/s, 40 ms behind a policer of 10 Mbit/s with a bucket of 500 KB, full
at the start; BBR, CUBIC, and BBR without the policer model (its long-term estimator). All is measured from
10 s on.
Prediction: BBR learns the token rate. Without the model its losses are far above CUBIC's; with the model
they are moderate.
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, within

_TOKENS_MBPS = 10.0
_WITHOUT = "bbr1:lt_bw=0"
_BIN_S = 0.5


def _document(controller: str, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": "100 Mbit/s",
            "rtt": "40 ms",
            "buffer": "2 bdp",
            "before": [{"kind": "policer", "rate": f"{_TOKENS_MBPS} Mbit/s", "burst": "500 KB"}],
        },
        "flows": [{"controller": controller}],
        "record": {"interval": "20 ms"},
    }


def _measure(trial: Trial) -> Row:
    steady = take.samples(trial.run, after_s=trial.factors["seconds"] / 6)
    goodput = take.delivered_mbps(steady)
    again = take.grown(steady, "retransmits")
    arrived = take.grown(steady, "delivered_bytes")
    segments = arrived / (float(trial.spec["mtu_bytes"]) * take.payload_share(trial))
    ceiling = _TOKENS_MBPS * take.payload_share(trial)
    return {
        "of_tokens": None if goodput is None else goodput / ceiling,
        # Retransmissions divided by all segments sent.
        "loss": again / (again + segments) if segments else None,
    }


def _series(trial: Trial) -> pl.DataFrame:
    ends = (
        trial.run.flow_series()
        .with_columns((pl.col("time_s") / _BIN_S).floor().alias("bin"))
        .group_by("bin", maintain_order=True)
        .agg(pl.col("delivered_bytes", "retransmits").last())
        # The last bin may be incomplete.
        .filter((pl.col("bin") + 1) * _BIN_S <= trial.factors["seconds"])
    )

    def a_second(column: str) -> pl.Expr:
        return (pl.col(column) - pl.col(column).shift(1).fill_null(0)) / _BIN_S

    return ends.select(
        (pl.col("bin") * _BIN_S).alias("time_s"),
        (a_second("delivered_bytes") * 8e-6).alias("mbps"),
        a_second("retransmits").alias("losses"),
    )


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        base = alt.Chart(charts.values(part.series)).encode(
            x=alt.X("time_s:Q", title="time, s", scale=alt.Scale(nice=False)),
            color=charts.controllers(part.series),
            strokeDash=charts.dashes(part.series),
        )
        return alt.vconcat(
            *(
                base.mark_line(strokeWidth=1.2)
                .encode(y=alt.Y(f"{column}:Q", title=title, scale=alt.Scale(type="symlog")))
                .properties(width=charts.WIDTH, height=130)
                for column, title in (
                    ("mbps", "throughput, Mbit/s"),
                    ("losses", "retransmissions a second"),
                )
            ),
            spacing=8,
        )

    return charts.worlds(data, panel, "Behind a policer of 10 Mbit/s", "on 100 Mbit/s, 40 ms; bucket 500 KB")


def _judge(data: Data) -> list[Check]:
    def loss(controller: str) -> list[float]:
        return data.values("loss", controller=controller)

    checks = [
        within(
            "BBR's goodput divided by the token rate",
            data.values("of_tokens", controller="bbr1"),
            paper="learns the delivery rate",
            least=0.8,
            most=1.05,
            shape=True,
        ),
        within("BBR's losses", loss("bbr1"), paper="moderate", most=0.1, unit="of segments"),
    ]
    if _WITHOUT in data.runs["controller"].to_list():
        checks += [
            more(
                "losses of BBR without the model divided by CUBIC's",
                loss(_WITHOUT),
                loss("cubic"),
                paper="continuous losses from the gain cycle",
                least=3,
            ),
            more(
                "losses of BBR without the model divided by those with it",
                loss(_WITHOUT),
                loss("bbr1"),
                paper="the model minimizes these losses",
                least=1.5,
            ),
        ]
    return checks


CLAIM = Claim(
    source="Token-Bucket Policers",
    says="BBR eventually learns this new delivery rate, but the ProbeBW gain cycle results in continuous "
    "moderate losses. To minimize the upstream bandwidth waste and application latency increase from these "
    "losses, we added policer detection and an explicit policer model to BBR.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={"controller": ("bbr1", "cubic", _WITHOUT), "seconds": (60,)},
        # Linux cannot switch the model off.
        in_wall_time={"controller": ("bbr1", "cubic"), "seconds": (30,)},
        tiny={"seconds": (6,)},
        document=_document,
    ),
    measure=_measure,
    series=_series,
    figure=_figure,
    judge=_judge,
    look_at="How long does each take from the link's rate, which the full bucket allows at first, down "
    "to the policer's rate?",
)
