"""BBR favours long round-trip times.

Question: how do two BBRv1 flows with different RTTs share a bottleneck?
Method: one flow with 20 ms and one with 40 to 160 ms, for 60 s on 1 Gbit/s (kernel: 100 Mbit/s) with a
buffer of 8 BDP of the shorter one; shares after 20 s. Two CUBIC flows for comparison.
Prediction: the flow with the longer RTT gets more, and the more, the longer it is. With CUBIC it gets less.

That long RTTs are favoured is the paper's; RTTs and limits are ours: over a half (direction), and two
thirds with eight times the RTT.
"""

from typing import Any

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt
from fullpipe_studies.papers.icnp17 import _path

_LONG_MS = (40, 80, 160)
_SAID = Statement("unfairness; summary: long RTTs are favoured")


def _document(controller: str, long_ms: int, rate_mbps: int, seconds: int) -> dict[str, Any]:
    return _path.document(
        [
            {"controller": controller, "label": "short"},
            {"controller": controller, "label": "long", "rtt": f"{long_ms} ms"},
        ],
        rate_mbps=rate_mbps,
        buffer_bdp=_path.DEEP_BDP,
        seconds=seconds,
        interval_ms=100,
    )


def measure(trial: Trial) -> Row:
    after_s = _path.after(trial.factors["seconds"])
    return {"long_share": sharing.share(sharing.rates(trial.run, after_s), "long")}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "long_ms"], "long_share")

    def panel(part: Data) -> Any:
        ours = layers.of(frame, part)
        x = alt.X("long_ms:Q", title="longer RTT, ms", scale=alt.Scale(type="log", base=2))
        points = charts.points(ours, x, "share of the longer RTT", charts.controllers(ours), domain=[0, 1])
        return alt.layer(layers.level(0.5), points).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "Two RTTs at a bottleneck", "the other flow has 20 ms; dashed: a fair share"
    )


def judge(data: Data) -> list[Check]:
    longs = sorted(data.runs["long_ms"].unique().to_list())
    checks = []
    for long_ms in longs:
        bbr, cubic = (
            data.values("long_share", controller=name, long_ms=long_ms) for name in ("bbr1", "cubic")
        )
        checks += [
            _SAID.shape(f"Share of the flow with {long_ms} ms, BBR (direction)", bbr, least=0.5),
            _SAID.more(f"Share of the flow with {long_ms} ms, BBR's divided by CUBIC's", bbr, cubic),
        ]
    checks.append(
        _SAID.within(
            f"Share of the flow with {longs[-1]} ms, BBR",
            data.values("long_share", controller="bbr1", long_ms=longs[-1]),
            least=2 / 3,
        )
    )
    return checks


CLAIM = Claim(
    source="flows with different RTTs",
    says=_path.SAID,
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": ("bbr1", "cubic"),
            "long_ms": _LONG_MS,
            "rate_mbps": (_path.RATE_MBPS,),
            "seconds": (60,),
        },
        quick={"rate_mbps": (100,)},
        tiny={"long_ms": (40,), "seconds": (6,)},
        in_wall_time={"rate_mbps": (_path.SLOW_MBPS,)},
        document=_document,
    ),
    look_at="On which side of a fair share is each controller?",
    about="bbr1",
)
