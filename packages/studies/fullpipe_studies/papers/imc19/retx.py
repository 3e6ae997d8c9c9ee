"""Retransmissions at 25 ms, 500 Mbit/s.

Question: how do retransmissions change between a shallow and a deep buffer?
Method: each controller alone for 60 s on 500 Mbit/s, 25 ms, with 100 KB and with 10 MB. The checks apply to
the paper's test bed as its sources describe it (`_testbed`); the figure builds it up from a plain link, part
by part. The kernel world uses this machine's Linux with a real tc-tbf and hosts without an interface. It
cannot carry that rate on every machine, so its rate, its buffers and the expected counts are a fifth.
Prediction: BBR's retransmissions fall from 235 798 to 0, CUBIC's from 1649 to 471.
"""

from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe.text import counted
from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Grid, Statement, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _grid, _metrics, _testbed

_RATE_MBPS, _SECONDS = 500, 60
_PAPER = {"bbr1": (235_798, 0), "cubic": (1649, 471)}
_THEIRS = "the paper"
_BUFFERS, _SCALED_BUFFERS = (_grid.SHALLOW_KB, _grid.DEEP_KB), (20, 2000)
_NAMES = {"bbr1": "BBR", "cubic": "CUBIC"}
# A count agrees with the paper's within this factor, because not all of the test bed is known.
_FACTOR = 3.0


def _document(rate_mbps: int, setup: str, linux: str, **path: Any) -> dict[str, Any]:
    # The kernel world's tc-tbf is a real one, and its hosts are the router's neighbours.
    there = setup if linux == _testbed.PAPERS else _testbed.VIRTUAL
    return _grid.document(rate_mbps=rate_mbps, memory=_grid.MAX, setup=there, linux=linux, **path)


def figure(data: Data) -> "alt.TopLevelMixin":
    every = Data(_steps(data), data.series)
    frame = charts.means(every, ["controller", "buffer_kb", "setup"], "retransmits")

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        scaled = _part(part)
        sides = []
        # The kernel world's buffers are scaled; one may lack a run that can be trusted.
        for place, buffer in enumerate(_buffers(part)):
            there = ours.filter(pl.col("buffer_kb") == buffer).select("setup", "controller", "mean")
            title = f"buffer of {buffer:,} KB" + ("" if there.height else ": no run that can be trusted")
            paper = [
                {"setup": _THEIRS, "controller": name, "mean": counts[place] * scaled}
                for name, counts in _PAPER.items()
            ]
            rows = pl.concat([there, pl.DataFrame(paper)])
            order = [one for one in _testbed.STEPS if one in ours["setup"]] + [_THEIRS]
            bars = alt.Chart(charts.values(rows)).encode(
                y=alt.Y("setup:N", title=None, sort=order, axis=alt.Axis(labelLimit=140)),
                yOffset="controller:N",
                x=alt.X(
                    "mean:Q",
                    title="retransmitted segments",
                    scale=alt.Scale(type="symlog", domain=[0, 1_000_000 * scaled]),
                    axis=alt.Axis(values=[0, 10, 100, 1000, 10_000, 100_000], format=",d"),
                ),
                color=charts.controllers(rows).legend(alt.Legend(orient="bottom", title=None)),
            )
            numbers = bars.mark_text(dx=4, align="left", fontSize=9).encode(
                text=alt.Text("mean:Q", format=",.0f"), color=alt.value(theme.INK)
            )
            sides.append(
                alt.layer(bars.mark_bar(), numbers).properties(
                    width=300, height=alt.Step(13), title=alt.TitleParams(title, fontSize=12)
                )
            )
        return alt.vconcat(*sides)

    return charts.worlds(
        data,
        panel,
        "Retransmissions at 500 Mbit/s, 25 ms",
        "logarithmic; each set-up includes those above, with the same seeds; the paper's counts are scaled",
    )


def _steps(data: Data) -> pl.DataFrame:
    """The runs of the set-ups that add to each other, of the seeds that all have."""
    equal = _grid.of_same_seeds(data)
    parts = [equal[name].runs for name in _testbed.STEPS if name in equal]
    return pl.concat(parts) if parts else data.runs


def _buffers(data: Data) -> tuple[int, int]:
    """The shallow and the deep buffer, which the kernel world has scaled."""
    return _BUFFERS if data.most("rate_mbps") == _RATE_MBPS else _SCALED_BUFFERS


def _part(data: Data) -> float:
    """The paper's counts are scaled to the packets that rate and duration allow."""
    return data.most("rate_mbps") / _RATE_MBPS * data.most("seconds") / _SECONDS


def judge(data: Data) -> list[Check]:
    shallow, deep = _buffers(data)
    part = _part(data)

    def sent_again(controller: str, buffer: int) -> list[float]:
        return data.values("retransmits", controller=controller, buffer_kb=buffer)

    def count(controller: str, buffer: int, expected: float) -> Check:
        low = expected / _FACTOR if expected else None
        # "0" is met by fewer than a thousandth of BBR's retransmissions in the shallow buffer.
        high = expected * _FACTOR if expected else part * _PAPER["bbr1"][0] / 1000
        return Statement(f"{expected:,.0f}").within(
            f"{_NAMES[controller]}'s retransmissions at {buffer:,} KB",
            sent_again(controller, buffer),
            least=low,
            most=high,
        )

    return [
        Statement("143 times").more(
            f"BBR's retransmissions divided by CUBIC's at {shallow:,} KB",
            sent_again("bbr1", shallow),
            sent_again("cubic", shallow),
            least=10,
        ),
        Statement("to none").more(
            f"BBR's retransmissions at {shallow:,} KB divided by those at {deep:,} KB",
            sent_again("bbr1", shallow),
            sent_again("bbr1", deep),
            least=100,
        ),
        Statement("3.5 times").more(
            f"CUBIC's retransmissions at {shallow:,} KB divided by those at {deep:,} KB",
            sent_again("cubic", shallow),
            sent_again("cubic", deep),
        ),
        *(
            count(name, buffer, value * part)
            for name, values in _PAPER.items()
            for buffer, value in zip((shallow, deep), values, strict=True)
        ),
    ]


def explain(data: Data) -> list[str]:
    equal = _grid.of_same_seeds(data.of("sim"))
    steps = [name for name in _testbed.STEPS if name in equal]

    def counts(setup: str, buffer: int) -> str:
        there = equal[setup]
        means = (
            f"{_NAMES[name]} {number(there.mean('retransmits', controller=name, buffer_kb=buffer))}"
            for name in _grid.CONTROLLERS
        )
        return f"{setup}: {', '.join(means)}"

    seeds = counted(max((one.runs["seed"].n_unique() for one in equal.values()), default=0), "seed")
    facts = [
        f"With {buffer:,} KB, {seeds} of each set-up, each part including those before it: "
        f"{'; '.join(counts(setup, buffer) for setup in steps)}."
        for buffer in _BUFFERS
        if len(steps) > 1
    ]
    orders = [one for one in _metrics.ORDERS if one in equal]
    if facts and orders:
        facts.append(
            "CUBIC's count with the shallow buffer is that of its slow start, unless an earlier run left a "
            f"low threshold. By the order of the runs, with {seeds} of each: "
            f"{'; '.join(counts(one, _BUFFERS[0]) for one in orders)}; "
            f"{counts(_testbed.TESTBED, _BUFFERS[0]).replace(_testbed.TESTBED, _metrics.NONE)}. "
            f"The paper's CUBIC has {number(_PAPER['cubic'][0] * _part(data.of('sim')))}, scaled to our runs."
        )
    return facts


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
            "buffer_kb": _BUFFERS,
            "seconds": (_SECONDS,),
            "setup": tuple(_testbed.SETUPS),
            # A stock kernel has only its own BBR.
            "linux": (_testbed.PAPERS,),
        },
        quick={"seconds": (30,)},
        tiny={"seconds": (2,)},
        in_wall_time={
            "rate_mbps": (100,),
            "buffer_kb": _SCALED_BUFFERS,
            "setup": (_testbed.TESTBED,),
            "linux": (_testbed.HERE,),
        },
        document=_document,
    ),
    measure=_grid.measure,
    look_at="BBR's bars should be long with the shallow buffer only.",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
    setups=_testbed.setups(seeds=3),
)
