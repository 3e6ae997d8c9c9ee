"""Retransmissions at 25 ms, 500 Mbit/s.

Question: how do retransmissions change between a shallow and a deep buffer?
Method: each controller alone for 60 s on 500 Mbit/s, 25 ms, with 100 KB and with 10 MB. The checks apply to
the paper's test bed as its sources describe it (`_testbed`); the figure builds it up from a plain link, part
by part. The kernel world uses this machine's Linux and cannot carry that rate on every machine, so its rate,
its buffers and the expected counts are a fifth.
Prediction: BBR's retransmissions fall from 235 798 to 0, CUBIC's from 1649 to 471.
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts
from fullpipe.studies.claim import Check, Claim, Data, Grid, more, number, within
from fullpipe.studies.imc19 import _grid, _testbed

_RATE_MBPS, _SECONDS = 500, 60
_PAPER = {"bbr1": (235_798, 0), "cubic": (1649, 471)}
_NAMES = {"bbr1": "BBR", "cubic": "CUBIC"}
# A count agrees with the paper's within this factor, because not all of the test bed is known.
_FACTOR = 3.0


def _document(rate_mbps: int, setup: str, **path: Any) -> dict[str, Any]:
    document = _grid.document(rate_mbps=rate_mbps, memory=_grid.MAX, setup=setup, **path)
    # The ratio of the interface's rate to the router's stays the same when both are scaled.
    scaled = _testbed.path(setup, rate_mbps, _testbed.INTERFACE_MBPS * rate_mbps / _RATE_MBPS)
    return {**document, "path": {**document["path"], **scaled}}


def _figure(data: Data) -> alt.TopLevelMixin:
    frame = charts.means(data, ["controller", "buffer_kb", "setup"], "retransmits")

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        straight = alt.Axis(labelAngle=0, labelLimit=90)
        top = 2 * float(ours["mean"].max() or 1.0)  # type: ignore[arg-type]
        sides = []
        for buffer in ours["buffer_kb"].unique().sort().to_list():
            bars = alt.Chart(charts.values(ours.filter(pl.col("buffer_kb") == buffer))).encode(
                x=alt.X(
                    "setup:N",
                    title="each includes those to its left",
                    sort=list(_testbed.SETUPS),
                    axis=straight,
                ),
                xOffset="controller:N",
                y=alt.Y(
                    "mean:Q",
                    title="retransmitted segments",
                    scale=alt.Scale(type="symlog", domain=[0, top]),
                    axis=alt.Axis(values=[0, 10, 100, 1000, 10_000, 100_000]),
                ),
                color=charts.controllers(ours).legend(alt.Legend(orient="bottom", title=None)),
            )
            numbers = bars.mark_text(dy=-7, fontSize=9).encode(text=alt.Text("mean:Q", format=",.0f"))
            title = alt.TitleParams(f"buffer of {buffer:,} KB", fontSize=12)
            sides.append(
                alt.layer(bars.mark_bar(), numbers).properties(width=470, height=charts.HEIGHT, title=title)
            )
        return alt.hconcat(*sides)

    return charts.worlds(data, panel, "Retransmissions at 500 Mbit/s, 25 ms", "in 60 s; logarithmic axis")


def _judge(data: Data) -> list[Check]:
    buffers = sorted(data.runs["buffer_kb"].unique().to_list())
    # A stock kernel has only its own BBR.
    setup = next(one for one in (_testbed.TESTBED, _testbed.GRO) if one in data.runs["setup"])
    shallow, deep = buffers[0], buffers[-1]
    # The paper's counts, scaled to the packets that rate and duration allow.
    part = data.most("rate_mbps") / _RATE_MBPS * data.most("seconds") / _SECONDS

    def sent_again(controller: str, buffer: int) -> list[float]:
        return data.values("retransmits", controller=controller, buffer_kb=buffer, setup=setup)

    def count(controller: str, buffer: int, expected: float) -> Check:
        low = expected / _FACTOR if expected else None
        # "0" is met by fewer than a thousandth of BBR's retransmissions in the shallow buffer.
        high = expected * _FACTOR if expected else part * _PAPER["bbr1"][0] / 1000
        return within(
            f"{_NAMES[controller]}'s retransmissions at {buffer:,} KB",
            sent_again(controller, buffer),
            paper=f"{expected:,.0f}",
            least=low,
            most=high,
        )

    return [
        more(
            f"BBR's retransmissions divided by CUBIC's at {shallow:,} KB",
            sent_again("bbr1", shallow),
            sent_again("cubic", shallow),
            paper="143 times",
            least=10,
        ),
        more(
            f"BBR's retransmissions at {shallow:,} KB divided by those at {deep:,} KB",
            sent_again("bbr1", shallow),
            sent_again("bbr1", deep),
            paper="to none",
            least=100,
        ),
        more(
            f"CUBIC's retransmissions at {shallow:,} KB divided by those at {deep:,} KB",
            sent_again("cubic", shallow),
            sent_again("cubic", deep),
            paper="3.5 times",
        ),
        *(
            count(name, buffer, value * part)
            for name, values in _PAPER.items()
            for buffer, value in zip((shallow, deep), values, strict=True)
        ),
    ]


def _explain(data: Data) -> list[str]:
    part = data.of("sim")
    if not part.runs.height:
        return []

    def counts(setup: str, buffer: int) -> str:
        means = (
            f"{_NAMES[name]} "
            f"{number(part.mean('retransmits', controller=name, setup=setup, buffer_kb=buffer))}"
            for name in _grid.CONTROLLERS
        )
        return f"{setup}: {', '.join(means)}"

    return [
        f"With {buffer:,} KB, each part including those before it: "
        f"{'; '.join(counts(setup, buffer) for setup in _testbed.SETUPS)}."
        for buffer in (_grid.SHALLOW_KB, _grid.DEEP_KB)
    ]


CLAIM = Claim(
    source="section 4.1.2",
    says="In our 25ms RTT and 500Mbps bandwidth LAN experiment, when we increase the bottleneck buffer size "
    "from 100KB to 10MB, BBR and Cubic's retransmissions decrease from 235798 to 0 and 1649 to 471.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": _grid.CONTROLLERS,
            "rate_mbps": (_RATE_MBPS,),
            "rtt_ms": (25,),
            "buffer_kb": (_grid.SHALLOW_KB, _grid.DEEP_KB),
            "seconds": (_SECONDS,),
            "setup": tuple(_testbed.SETUPS),
        },
        quick={"seconds": (30,)},
        tiny={"seconds": (2,)},
        in_wall_time={"rate_mbps": (100,), "buffer_kb": (20, 2000), "setup": (_testbed.GRO,)},
        document=_document,
    ),
    measure=_grid.measure,
    figure=_figure,
    judge=_judge,
    explain=_explain,
    look_at="BBR's bar should appear with one buffer only.",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
)
