"""A token-bucket policer.

Question: how much does BBR lose at a policer, and how much does its policer model help?
Method: one flow for 60 s (kernel: 30 s) on 100 Mbit/s, 40 ms behind a policer of 10 Mbit/s with a bucket of
500 KB, full at the start; BBR, CUBIC, and BBR without the policer model (Linux's `lt_bw`). All is measured
after a sixth of the run. While BBR holds the policer's rate it does not cycle its gain: a stretch with gain
1 of more than 16 round trips, two whole cycles, is the model's; all other time is the cycle's. Losses are
counted when they are retransmitted, so the first two round trips of such a stretch count for the cycle.
Linux cannot switch the model off. There, as in the simulator, the model's stretches are compared with the
cycle's, and BBR with CUBIC.
Prediction: BBR learns the token rate, and the model holds it most of the time. While it does, losses are at
most half of those of the gain cycle. Without the model BBR's losses are far above CUBIC's (three times),
with it they are not.
"""

import math
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt

_TOKENS_MBPS, _LINK_MBPS = 10.0, 100.0
_RTT_S = 0.04
_WITHOUT = "bbr1:lt_bw=0"
_HELD_RTTS, _SETTLING_RTTS = 16, 2
_FAR = 3
_BIN_S = 0.1
# The figure's upper panel.
_DESCENT_S = 1.5


def _document(controller: str, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{_LINK_MBPS:g} Mbit/s",
            "rtt": f"{_RTT_S * 1e3:g} ms",
            "buffer": "2 bdp",
            "before": [{"kind": "policer", "rate": f"{_TOKENS_MBPS} Mbit/s", "burst": "500 KB"}],
        },
        "flows": [{"controller": controller}],
        "record": {"interval": "20 ms"},
    }


def _held(frame: pl.DataFrame) -> pl.DataFrame:
    """When the policer's rate is held: columns start_s and end_s."""
    steady = take.stretches(frame).filter(pl.col("phase") == "probe_bw_cruise")
    return steady.filter(pl.col("end_s") - pl.col("start_s") > _HELD_RTTS * _RTT_S).drop("phase")


def _split(frame: pl.DataFrame) -> pl.DataFrame:
    """Time, segments and retransmissions between samples: columns held, took_s, delivered, again."""
    held = _held(frame).with_columns(pl.col("start_s") + _SETTLING_RTTS * _RTT_S)
    inside = pl.lit(False)
    for start_s, end_s in held.iter_rows():
        inside |= pl.col("time_s").is_between(start_s, end_s, closed="right")
    return frame.sort("time_s").select(
        inside.alias("held"),
        pl.col("time_s").diff().alias("took_s"),
        pl.col("delivered_bytes").diff().alias("delivered"),
        pl.col("retransmits").diff().alias("again"),
    )


def _loss(parts: pl.DataFrame, segment_bytes: float) -> float | None:
    """Retransmissions divided by all segments sent; None where nothing was delivered."""
    again, delivered = float(parts["again"].sum()), float(parts["delivered"].sum())
    return again / (again + delivered / segment_bytes) if delivered else None


def measure(trial: Trial) -> Row:
    steady = take.samples(trial.run, after_s=trial.factors["seconds"] / 6)
    goodput = take.delivered_mbps(steady)
    segment_bytes = float(trial.spec["mtu_bytes"]) * take.payload_share(trial)
    parts = _split(steady)
    held, cycle = parts.filter(pl.col("held")), parts.filter(~pl.col("held"))
    took_s = float(parts["took_s"].sum())
    bbr = trial.factors["controller"] != "cubic"
    return {
        "of_tokens": None if goodput is None else goodput / (_TOKENS_MBPS * take.payload_share(trial)),
        "loss": _loss(parts, segment_bytes),
        "held_part": float(held["took_s"].sum()) / took_s if bbr and took_s else None,
        "held_loss": _loss(held, segment_bytes) if bbr else None,
        "cycle_loss": _loss(cycle, segment_bytes) if bbr else None,
    }


def series(trial: Trial) -> pl.DataFrame:
    frame = trial.run.flow_series()
    ends = (
        frame.with_columns((pl.col("time_s") / _BIN_S).floor().alias("bin"))
        .group_by("bin", maintain_order=True)
        # What is acknowledged. What the application gets comes late and all at once where a hole is filled.
        .agg(pl.col("delivery_bps").mean(), pl.col("retransmits").last())
        # The last bin may be incomplete.
        .filter((pl.col("bin") + 1) * _BIN_S <= trial.factors["seconds"])
    )
    time_s = (pl.col("bin") + 1) * _BIN_S
    held = pl.lit(False)
    for start_s, end_s in _held(frame).iter_rows():
        held |= time_s.is_between(start_s, end_s)
    return ends.select(
        time_s.alias("time_s"),
        (pl.col("delivery_bps") * 1e-6).alias("mbps"),
        pl.col("retransmits").cast(pl.Float64),
        held.alias("held"),
    )


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        def over(frame: pl.DataFrame, column: str, title: str, *below: Any, **scale: Any) -> Any:
            lines = alt.Chart(charts.values(frame.select("time_s", "controller", column)))
            drawn = lines.mark_line(strokeWidth=1.4).encode(
                x=alt.X("time_s:Q", title="time, s", scale=alt.Scale(nice=False, zero=True)),
                y=alt.Y(f"{column}:Q", title=title, scale=alt.Scale(**scale)),
                color=charts.controllers(part.series),
                strokeDash=charts.dashes(part.series),
            )
            return alt.layer(*below, drawn).properties(width=charts.WIDTH, height=150)

        held = part.series.filter(pl.col("held")).select(
            "time_s", (pl.col("time_s") - _BIN_S).alias("from_s")
        )
        bands = alt.Chart(charts.values(held)).mark_rect(color=theme.GRID)
        return alt.vconcat(
            over(
                part.series.filter(pl.col("time_s") <= _DESCENT_S),
                "mbps",
                "delivery rate, Mbit/s",
                layers.level(_TOKENS_MBPS),
                domainMin=0,
            ),
            over(
                part.series,
                "retransmits",
                "retransmissions so far",
                bands.encode(x="from_s:Q", x2="time_s:Q"),
            ),
            spacing=8,
        )

    return charts.worlds(
        data,
        panel,
        f"Behind a policer of {_TOKENS_MBPS:g} Mbit/s",
        "on 100 Mbit/s, 40 ms; dashed: the tokens’ rate; grey: bbr1 holds the rate that it found",
    )


def judge(data: Data) -> list[Check]:
    def of(column: str, controller: str) -> list[float]:
        return data.values(column, controller=controller)

    loss, held, cycle = (of(column, "bbr1") for column in ("loss", "held_loss", "cycle_loss"))
    minimized = Statement("policer detection and an explicit policer model, to minimize these losses")
    checks = [
        Statement("eventually learns this new delivery rate").shape(
            "BBR's goodput divided by the token rate", of("of_tokens", "bbr1"), least=0.8, most=1.05
        ),
        *Statement("policer detection").both(
            "time for which BBR holds the policer's rate",
            of("held_part", "bbr1"),
            direction=0.05,
            least=0.5,
            unit="of all",
        ),
        minimized.more(
            "BBR's losses while the gain cycles divided by those while it holds the rate (direction)",
            cycle,
            held,
        ),
        minimized.more(
            "BBR's losses while the gain cycles divided by those while it holds the rate",
            cycle,
            held,
            least=2,
            shape=False,
        ),
        Statement("moderate").within("BBR's losses", loss, most=0.1, unit="of segments"),
        Statement("claims list: moderate with the model").more(
            "BBR's losses divided by CUBIC's", loss, of("loss", "cubic"), least=0, most=_FAR, shape=False
        ),
    ]
    if _WITHOUT in data.runs["controller"].to_list():
        without = of("loss", _WITHOUT)
        checks += [
            Statement("claims list: far above CUBIC's without the model").more(
                "losses of BBR without the model divided by CUBIC's", without, of("loss", "cubic"), least=_FAR
            ),
            minimized.more(
                "losses of BBR without the model divided by those with it", without, loss, least=1.5
            ),
        ]
    return checks


def explain(data: Data) -> list[str]:
    held, cycle, part = data.means("held_loss", "cycle_loss", "held_part", controller="bbr1")
    if math.isnan(held) or math.isnan(cycle):
        return []
    return [
        f"BBR holds the policer's rate for {number(100 * part)} % of the time (Linux: 48 rounds, then it "
        f"probes again) and loses {number(100 * held)} % of the segments in it, {number(100 * cycle)} % in "
        "the rest."
    ]


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
    look_at="Above: how soon does each come down from the link's rate, which the full bucket allows at "
    "first? Below: in the grey bands bbr1 holds the policer's rate; how steep is its line there, and between "
    "them? Linux cannot switch the model off.",
    # The losses with and without the model are near the limit of their ratio.
    seeds=40,
)
