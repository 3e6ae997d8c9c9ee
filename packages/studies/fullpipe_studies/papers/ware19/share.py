"""BBR's share does not depend on the number of loss-based flows.

Question: how much of a bottleneck does one BBRv1 flow get beside 1 to 16 CUBIC or Reno flows?
Method: all start together and run for 600 s (kernel: 240 s) on 10 Mbit/s, 40 ms with buffers of 32 and 64
BDP; BBR's share of all goodput after a third.
Prediction: with 16 loss-based flows BBR has just under half, as with one.

Rate, RTT, buffers and 16 flows are the paper's (section 2). It says that BBR leaves "just over half" to
sixteen other connections; its model says 44 % with 32 BDP and 37 % with 64 BDP. Limits of our own: at least
three fair shares, a least share of at least half the largest one over the number of flows (direction) and
of three quarters of it, and at most 10 points from the model.

Seen afterwards: beside CUBIC with 64 BDP, BBR stays below the model's share, which is an upper limit that it
reaches by probing. Linux does the same: one run of 58 s with one CUBIC and 32 BDP gave BBR 7.8 % of that
time's goodput, where the simulator gives 7.5 to 10.7 % over ten seeds.
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import capmodel, charts, layers
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt

_RATE_MBPS, _RTT_MS = 10, 40
_BUFFERS_BDP = (32, 64)
_OTHERS = (1, 2, 4, 8, 16)
_LOSSES = ("cubic", "reno")
_SAID = Statement("does not depend on the number of competing loss-based flows")
_POINTS = 0.1


def _document(loss: str, buffer_bdp: int, others: int, seconds: int) -> dict[str, Any]:
    return capmodel.document(
        bbrs=1,
        loss=loss,
        others=others,
        rate_mbps=_RATE_MBPS,
        rtt_ms=_RTT_MS,
        buffer_bdp=buffer_bdp,
        seconds=seconds,
    )


def measure(trial: Trial) -> Row:
    return {**capmodel.measured(trial), **capmodel.limits(trial)}


def _modelled(buffer_bdp: float) -> float:
    return capmodel.share(_RATE_MBPS, _RTT_MS, buffer_bdp, 1)


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["loss", "buffer_bdp", "others"], "bbr_share")

    def panel(part: Data) -> Any:
        def draw(ours: Any, buffer_bdp: Any) -> Any:
            x = alt.X("others:Q", title="loss-based flows", scale=alt.Scale(type="log", base=2))
            points = charts.points(
                ours, x, "share of one BBR flow", charts.controllers(ours, "loss"), domain=[0, 1]
            )
            model = layers.paper([(count, _modelled(buffer_bdp)) for count in _OTHERS], "others")
            fair = layers.paper([(count, 1 / (1 + count)) for count in _OTHERS], "others")
            return alt.layer(fair.encode(opacity=alt.value(0.4)), model, points)

        titles = {one: f"{one} BDP" for one in _BUFFERS_BDP}
        return layers.panels(layers.of(frame, part), "buffer_bdp", titles, draw)

    return charts.worlds(
        data,
        panel,
        "One BBRv1 flow beside many loss-based flows",
        "10 Mbit/s, 40 ms; grey: the paper's model; pale: a fair share",
    )


def _flat(runs: pl.DataFrame) -> float:
    """The least share over the number of flows divided by the largest; NaN if one is missing."""
    shares = runs["bbr_share"].to_list()
    missing = not shares or any(share is None or share <= 0 for share in shares)
    return math.nan if missing else float(min(shares) / max(shares))


def judge(data: Data) -> list[Check]:
    checks = []
    counts = sorted(data.runs["others"].unique().to_list())
    most = counts[-1]
    for loss in _LOSSES:
        for buffer_bdp in _BUFFERS_BDP:
            where = {"loss": loss, "buffer_bdp": buffer_bdp}
            crowd = data.values("bbr_share", others=most, **where)
            flat = data.each_seed(_flat, **where)
            named = f"{loss}, {buffer_bdp} BDP"
            fair = 1 / (1 + most)
            checks += [
                Statement("just over half to be shared by the sixteen other connections").more(
                    f"BBR's share beside {most} flows divided by a fair one, {named}",
                    crowd,
                    [fair] * len(crowd),
                    least=3,
                ),
                *_SAID.both(
                    f"BBR's least share over the number of flows divided by its largest, {named}",
                    flat,
                    direction=0.5,
                    least=0.75,
                ),
                Statement(f"model: {number(_modelled(buffer_bdp), 2)}").within(
                    f"BBR's share beside {most} flows, {named}",
                    crowd,
                    least=_modelled(buffer_bdp) - _POINTS,
                    most=_modelled(buffer_bdp) + _POINTS,
                ),
            ]
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for loss in _LOSSES:
        for buffer_bdp in _BUFFERS_BDP:
            where = {"loss": loss, "buffer_bdp": buffer_bdp, "others": 1}
            names = ("bbr_share", "silent", "rtt_ms", "least_ms", "flight_packets", "window_packets")
            row = {name: data.mean(name, **where) for name in names}
            if not any(math.isnan(value) for value in row.values()):
                facts.append(
                    f"One {loss}, {buffer_bdp} BDP: a share of {number(row['bbr_share'], 2)}. "
                    f"{capmodel.reported(row, _RTT_MS, buffer_bdp)}"
                )
    return facts


CLAIM = Claim(
    source="section 2; 32 and 64 BDP",
    says="BBR's throughput when competing with loss-based algorithms does not depend on the number of "
    "competing loss-based flows. (The first author's summary)",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={"loss": _LOSSES, "buffer_bdp": _BUFFERS_BDP, "others": _OTHERS, "seconds": (600,)},
        quick={"others": (1, 4, 16)},
        tiny={"others": (1, 4), "seconds": (12,)},
        in_wall_time={"others": (1, 16), "seconds": (240,)},
        document=_document,
    ),
    look_at="Is each line flat, and how far above the pale line of fair shares does it end?",
)
