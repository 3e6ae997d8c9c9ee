"""Goodput under random loss.

Question: how much random loss do BBR and CUBIC tolerate?
Method: one flow for 60 s on 100 Mbit/s, 100 ms, with independent loss of 0.001 to 50 % behind a buffer of 1
BDP. BBR without its policer model is shown for comparison and not checked.
At 15 % runs can have two modes. If they have, no mean is judged: every run has to be close to the maximum.
The report counts the runs that stay up, at half of the maximum at least.
Prediction: CUBIC's goodput falls from 0.1 % on. BBR's stays at link rate times (1 - p) up to 5 %, close to
it at 15 %, and falls where the loss rate approaches its probing gain.
"""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from fullpipe.measures.statistics import FEWEST_FOR_MODES, share
from fullpipe.text import counted
from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt

_RATE_MBPS = 100.0
_WITHOUT = "bbr1:lt_bw=0"
_CLOSE, _CLOSE_PCT = 0.8, 15
# Runs with at least this part of the maximum stay up; the others collapse.
_UP = 0.5


def _document(controller: str, loss_pct: float, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{_RATE_MBPS} Mbit/s", "rtt": "100 ms", "buffer": "1 bdp", "loss": f"{loss_pct} %"},
        "flows": [{"controller": controller}],
        # The checks need no time series.
        "record": {"interval": "100 ms"} if controller == _WITHOUT else {"series": False},
    }


def measure(trial: Trial) -> Row:
    goodput = take.goodput_mbps(trial.run)
    ceiling = _RATE_MBPS * take.payload_share(trial) * (1 - trial.factors["loss_pct"] / 100)
    return {
        "goodput_mbps": goodput,
        "of_ceiling": goodput / ceiling,
        "retransmits": take.flow(trial.run)["retransmits"],
        "started_mbps": _started_mbps(trial) if trial.factors["controller"] == _WITHOUT else None,
    }


def _started_mbps(trial: Trial) -> float | None:
    """The estimate at the end of Startup; None if Startup did not end."""
    after = take.samples(trial.run).filter(pl.col("phase").is_in(["drain", "probe_bw_up", "probe_bw_cruise"]))
    estimates = after.sort("time_s")["bandwidth_bps"].drop_nulls()
    return float(estimates[0]) / 1e6 if len(estimates) else None


def figure(data: Data) -> "alt.TopLevelMixin":
    top = _RATE_MBPS * 1448 / 1500
    steps = [10 ** (exponent / 20) for exponent in range(-60, 35)]
    ceiling = pl.DataFrame({"loss_pct": steps, "value": [top * (1 - p / 100) for p in steps]})

    def panel(part: Data) -> Any:
        x = alt.X(
            "loss_pct:Q", title="loss rate, %", scale=alt.Scale(type="log", domain=[0.001, 50], nice=False)
        )
        limit = (
            alt.Chart(charts.values(ceiling))
            .mark_line(strokeDash=[4, 3], strokeWidth=1, color="#79818d")
            .encode(x=x, y="value:Q")
        )
        by = ["controller", "loss_pct"]
        lines = charts.every_run(part.runs, x, "goodput_mbps", "goodput, Mbit/s", by, domain=[0, 100])
        # CUBIC has a tenth at 0.1 %, and stalls above 1 %.
        theirs = charts.paper([(0.1, top / 10), (2, 0)], "loss_pct")
        return alt.layer(limit, lines, theirs).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "Goodput under random loss",
        [
            "100 Mbit/s, 100 ms; every run, lines through medians; diamonds: the paper’s CUBIC",
            "dashed: link rate × (1 − p), which the paper’s BBR meets to 5 % and nearly to 15 %",
        ],
    )


def judge(data: Data) -> list[Check]:
    def bbr(column: str, loss: float) -> Sequence[float]:
        return data.values(column, controller="bbr1", loss_pct=loss)

    def cubic(loss: float) -> Sequence[float]:
        return data.values("goodput_mbps", controller="cubic", loss_pct=loss)

    return [
        Statement("10 times less at 0.1 %").more(
            "CUBIC's goodput at 0.001 % loss divided by that at 0.1 %",
            cubic(0.001),
            cubic(0.1),
            least=5,
            most=20,
            shape=False,
        ),
        Statement("decreases").more(
            "CUBIC's goodput at 0.001 % loss divided by that at 0.1 % (direction)",
            cubic(0.001),
            cubic(0.1),
            least=2,
        ),
        Statement("totally stalled above 1 %").shape(
            "CUBIC's goodput at 2 % loss", cubic(2), most=2, unit="Mbit/s"
        ),
        *(
            Statement("meets the limit up to 5 %").within(
                f"BBR's goodput at {loss:g} % loss, relative to the maximum",
                bbr("of_ceiling", loss),
                least=0.9,
            )
            for loss in (0.1, 1, 5)
        ),
        Statement("close up to 15 percent").within(
            f"BBR's goodput at {_CLOSE_PCT} % loss, relative to the maximum",
            bbr("of_ceiling", _CLOSE_PCT),
            least=_CLOSE,
        ),
        Statement("BBR keeps the rate where CUBIC stalls").more(
            "BBR's goodput divided by CUBIC's at 1 % loss", bbr("goodput_mbps", 1), cubic(1), least=10
        ),
        Statement("falls when the loss passes the probing gain").more(
            "BBR's goodput relative to the maximum: at 15 % loss divided by that at 50 %",
            bbr("of_ceiling", 15),
            bbr("of_ceiling", 50),
            least=2,
        ),
    ]


def explain(data: Data) -> list[str]:
    runs = data.runs.filter(pl.col("loss_pct") == _CLOSE_PCT)
    bbr = runs.filter(pl.col("controller") == "bbr1").select("seed", "of_ceiling")
    without = runs.filter(pl.col("controller") == _WITHOUT)
    both = bbr.join(without, on="seed", suffix="_without").drop_nulls("started_mbps")
    low, high = both.filter(pl.col("of_ceiling") < _UP), both.filter(pl.col("of_ceiling") >= _UP)
    facts = []
    if bbr.height:
        up = share(bbr["of_ceiling"].ge(_UP).to_list())
        low_pct, high_pct = (_percent(bound) for bound in (up.low, up.high))
        facts.append(
            f"At {_CLOSE_PCT} % loss, {_percent(up.mean)} of {bbr.height} runs of BBR reach at least half of "
            f"the maximum ({low_pct} to {high_pct} by Wilson's interval)."
        )
    if low.height and high.height:
        stuck, others, freed = (
            take.span(part, column)
            for part, column in ((low, "of_ceiling"), (high, "of_ceiling"), (low, "of_ceiling_without"))
        )
        started = [take.span(part, "started_mbps") for part in (low, high)]
        facts.append(
            f"At {_CLOSE_PCT} % loss, {low.height} of {both.height} runs reach {stuck} of the maximum and "
            f"the others {others}. Losses in the first rounds make these runs leave Startup at "
            f"{started[0]} Mbit/s, the others at {started[1]}. From there a probe with gain 1.25 and 15 % "
            "loss raises the estimate by only 5 % per cycle. In addition, the policer model takes these "
            "losses for a policer and holds the low rate for 48 rounds at a time: without it the same "
            f"seeds reach {freed}."
        )
    least, at_five = (data.mean("of_ceiling", controller="bbr1", loss_pct=loss) for loss in (0.001, 5))
    if not math.isnan(least) and not math.isnan(at_five):
        facts.append(
            f"At 5 % loss BBR reaches {at_five:.4f} of the maximum. At 0.001 % it reaches {least:.4f}, "
            "because the mean includes ProbeRTT and the start; more is not possible."
        )
    if 0 < bbr.height < FEWEST_FOR_MODES:
        facts.append(
            f"At {_CLOSE_PCT} % loss, {counted(bbr.height, 'run')} cannot show whether there are two modes; "
            "the interval there may be wrong."
        )
    return facts


def _percent(part: float | None) -> str:
    return f"{number(100 * (part or 0.0))} %"


CLAIM = Claim(
    source="figure 8",
    says="CUBIC's throughput decreases by 10 times at 0.1 percent loss and totally stalls above 1 percent. "
    "The maximum possible throughput is the link rate times fraction delivered. BBR meets this limit up to "
    "a 5 percent loss and is close up to 15 percent.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": ("bbr1", "cubic", _WITHOUT),
            "loss_pct": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 15, 20, 30, 50),
            "seconds": (60,),
        },
        quick={"controller": ("bbr1", "cubic"), "loss_pct": (0.001, 0.01, 0.1, 1, 2, 5, 15, 50)},
        tiny={"loss_pct": (0.1, 15), "seconds": (2,)},
        # Few, because they run in wall time; and Linux cannot switch the policer model off.
        in_wall_time={
            "controller": ("bbr1", "cubic"),
            "loss_pct": (0.001, 0.01, 0.1, 1, 2, 5, 15, 50),
            "seconds": (30,),
        },
        document=_document,
    ),
    look_at="How far to the right does BBR follow the dashed maximum, after CUBIC has fallen?",
    # So many tell how often runs collapse at 15 % loss.
    seeds=40,
)
