"""BBR and CUBIC share shallow and deep buffers.

Question: what does BBRv1 leave to CUBIC, and how does it depend on the buffer?
Method: one or two flows of each for 120 s on 1 Gbit/s (kernel: 100 Mbit/s), 20 ms with a buffer of 0.8 or 8
BDP; shares after 20 s.
Prediction: hardly anything in the shallow buffer; more in the deep one.

The paper says "unfairness"; our summary, that BBR suppresses loss-based flows in buffers below about 1 BDP.
Ours: over two thirds for BBR (direction) and 90 % with 0.8 BDP, and less with 8 BDP.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt
from fullpipe_studies.papers.icnp17 import _path

_EACH = (1, 2)
_SAID = Statement("unfairness")


def _document(each: int, buffer_bdp: float, rate_mbps: int, seconds: int) -> dict[str, Any]:
    return _path.document(
        [
            {"controller": "bbr1", "label": "bbr", "count": each},
            {"controller": "cubic", "label": "cubic", "count": each},
        ],
        rate_mbps=rate_mbps,
        buffer_bdp=buffer_bdp,
        seconds=seconds,
        interval_ms=100,
    )


def measure(trial: Trial) -> Row:
    after_s = _path.after(trial.factors["seconds"])
    return {"bbr_share": sharing.share(sharing.rates(trial.run, after_s), "bbr")}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["each", "buffer_bdp"], "bbr_share").with_columns(
        pl.format("{} of each", pl.col("each")).alias("flows")
    )

    def panel(part: Data) -> Any:
        ours = layers.of(frame, part)
        x = alt.X("buffer_bdp:O", title="buffer, BDP")
        points = charts.points(ours, x, "share of BBR", charts.controllers(ours, "flows"), domain=[0, 1])
        return alt.layer(layers.level(0.5), points).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(data, panel, "BBRv1's share beside CUBIC", "20 ms; dashed: a fair share")


def judge(data: Data) -> list[Check]:
    checks = []
    for each in sorted(data.runs["each"].unique().to_list()):
        shallow, deep = (
            data.values("bbr_share", each=each, buffer_bdp=one) for one in (_path.SHALLOW_BDP, _path.DEEP_BDP)
        )
        checks += [
            *_SAID.both(f"BBR's share with 0.8 BDP, {each} of each", shallow, direction=2 / 3, least=0.9),
            _SAID.more(f"BBR's share with 0.8 BDP divided by that with 8, {each} of each", shallow, deep),
        ]
    return checks


CLAIM = Claim(
    source="BBR and CUBIC",
    says=_path.SAID,
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "each": _EACH,
            "buffer_bdp": (_path.SHALLOW_BDP, _path.DEEP_BDP),
            "rate_mbps": (_path.RATE_MBPS,),
            "seconds": (120,),
        },
        quick={"rate_mbps": (100,)},
        tiny={"each": (1,), "seconds": (6,)},
        in_wall_time={"rate_mbps": (_path.SLOW_MBPS,), "seconds": (60,)},
        document=_document,
    ),
    look_at="What is left for CUBIC in the shallow buffer?",
)
