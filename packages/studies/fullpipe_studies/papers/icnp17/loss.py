"""BBR's loss in a shallow buffer.

Question: how much do several BBRv1 flows lose where the buffer is smaller than the queue they would keep?
Method: 2 or 6 flows of BBRv1 or CUBIC for 60 s on 1 Gbit/s (kernel: 100 Mbit/s), 20 ms with a buffer of 0.8
BDP. Retransmitted segments of those sent, after 20 s.
Prediction: BBRv1 loses massively, CUBIC does not.

The paper says "massive packet loss" at 0.8 BDP. Ours: ten times CUBIC's (direction), and over 1 % of what
is sent. No figure of the paper's was at hand.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt
from fullpipe_studies.papers.icnp17 import _path

_FLOWS = (2, 6)
_SAID = Statement("massive packet loss")


def _document(controller: str, flows: int, rate_mbps: int, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller, "count": flows}],
        rate_mbps=rate_mbps,
        buffer_bdp=_path.SHALLOW_BDP,
        seconds=seconds,
        interval_ms=100,
    )


def measure(trial: Trial) -> Row:
    late = take.samples(trial.run, after_s=_path.after(trial.factors["seconds"]))
    ends = late.group_by("flow").agg(
        (pl.col("retransmits").max() - pl.col("retransmits").min()).alias("again"),
        (pl.col("delivered_bytes").max() - pl.col("delivered_bytes").min()).alias("bytes"),
    )
    payload = trial.spec["mtu_bytes"] * take.payload_share(trial)
    again, arrived = float(ends["again"].sum()), float(ends["bytes"].sum()) / payload
    # What was lost is what was sent and did not arrive: of all sent, the share of retransmissions.
    return {"loss_pct": 100 * again / (again + arrived) if arrived else None}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "flows"], "loss_pct")

    def panel(part: Data) -> Any:
        ours = layers.of(frame, part)
        x = alt.X("flows:O", title="flows")
        points = charts.points(ours, x, "retransmitted, % of sent", charts.controllers(ours))
        return points.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(data, panel, "Loss in a shallow buffer", "20 ms, buffer of 0.8 BDP")


def judge(data: Data) -> list[Check]:
    checks = []
    for flows in sorted(data.runs["flows"].unique().to_list()):
        bbr, cubic = (data.values("loss_pct", controller=name, flows=flows) for name in ("bbr1", "cubic"))
        checks += [
            _SAID.more(f"Loss of {flows} BBR flows divided by CUBIC's", bbr, cubic, least=10),
            _SAID.within(f"Loss of {flows} BBR flows", bbr, least=1, unit="%"),
        ]
    return checks


CLAIM = Claim(
    source="multiple flows, small buffer",
    says=_path.SAID,
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": ("bbr1", "cubic"),
            "flows": _FLOWS,
            "rate_mbps": (_path.RATE_MBPS,),
            "seconds": (60,),
        },
        quick={"rate_mbps": (100,)},
        tiny={"flows": (2,), "seconds": (6,)},
        in_wall_time={"rate_mbps": (_path.SLOW_MBPS,)},
        document=_document,
    ),
    look_at="How far apart are the two controllers?",
    about="bbr1",
)
