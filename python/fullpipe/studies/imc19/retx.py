"""Retransmissions at 25 ms, 500 Mbit/s.

Question: how do retransmissions change from a shallow to a deep buffer?
Method: each controller alone for 60 s on 500 Mbit/s, 25 ms, with 100 KB and with 10 MB. In the kernel world,
which cannot carry that rate everywhere, rate and buffers are a fifth, and so are the expected counts.
Prediction: BBR's fall from 235 798 to none, CUBIC's from 1649 to 471.
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts
from fullpipe.studies.claim import Check, Claim, Data, Grid, more, within
from fullpipe.studies.imc19 import _grid

_RATE_MBPS, _SECONDS = 500, 60
_PAPER = {"bbr1": (235_798, 0), "cubic": (1649, 471)}
_NAMES = {"bbr1": "BBR", "cubic": "CUBIC"}
# A count within this factor is the paper's count: the router's and hosts' queues are not known.
_FACTOR = 3.0


def _figure(data: Data) -> alt.TopLevelMixin:
    frame = charts.means(data, ["controller", "buffer_kb"], "retransmits")

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        bars = alt.Chart(charts.values(ours)).encode(
            x=alt.X("controller:N", title=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("mean:Q", title="segments sent again", scale=alt.Scale(type="symlog")),
            color=charts.controllers(ours),
        )
        numbers = bars.mark_text(dy=-7).encode(text=alt.Text("mean:Q", format=",.0f"))
        both: Any = alt.layer(bars.mark_bar(width=60), numbers).properties(width=180, height=charts.HEIGHT)
        return both.facet(column=alt.Column("buffer_kb:O", title="buffer, KB"), data=charts.values(ours))

    return charts.worlds(data, panel, "Retransmissions at 500 Mbit/s, 25 ms", "in 60 s; logarithmic axis")


def _judge(data: Data) -> list[Check]:
    buffers = sorted(data.runs["buffer_kb"].unique().to_list())
    shallow, deep = buffers[0], buffers[-1]
    # As many segments were sent, of the paper's, as the rate and the duration allow.
    part = data.runs["rate_mbps"].max() / _RATE_MBPS * data.runs["seconds"].max() / _SECONDS  # type: ignore[operator]

    def sent_again(controller: str, buffer: int) -> list[float]:
        return data.values("retransmits", controller=controller, buffer_kb=buffer)

    def count(controller: str, buffer: int, expected: float) -> Check:
        low = expected / _FACTOR if expected else None
        # None at all is met by fewer than a thousandth of what BBR sends again in the shallow buffer.
        high = expected * _FACTOR if expected else part * _PAPER["bbr1"][0] / 1000
        return within(
            f"{_NAMES[controller]} at {buffer:,} KB",
            sent_again(controller, buffer),
            paper=f"{expected:,.0f}",
            least=low,
            most=high,
        )

    return [
        more(
            f"BBR over CUBIC at {shallow:,} KB",
            sent_again("bbr1", shallow),
            sent_again("cubic", shallow),
            paper="143 times",
            least=10,
        ),
        more(
            f"BBR at {shallow:,} KB over {deep:,} KB",
            sent_again("bbr1", shallow),
            sent_again("bbr1", deep),
            paper="to none",
            least=100,
        ),
        more(
            f"CUBIC at {shallow:,} KB over {deep:,} KB",
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


CLAIM = Claim(
    source="section 4.1.2",
    says="In our 25ms RTT and 500Mbps bandwidth LAN experiment, when we increase the bottleneck buffer size from "
    "100KB to 10MB, BBR and Cubic's retransmissions decrease from 235798 to 0 and 1649 to 471.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": _grid.CONTROLLERS,
            "rate_mbps": (_RATE_MBPS,),
            "rtt_ms": (25,),
            "buffer_kb": (_grid.SHALLOW_KB, _grid.DEEP_KB),
            "memory": (_grid.MAX,),
            "seconds": (_SECONDS,),
        },
        quick={"seconds": (30,)},
        tiny={"seconds": (2,)},
        kernel={"rate_mbps": (100,), "buffer_kb": (20, 2000)},
        document=_grid.document,
    ),
    measure=_grid.measure,
    figure=_figure,
    judge=_judge,
    look_at="Look for BBR's bar, which is there in one buffer only.",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
)
