"""A second, hidden bottleneck.

Question: why does CUBIC's share not grow with the router's buffer on a wide-area path?
Method: as figure 8(a), with an RTT that is 7 ms longer and a hidden link with a buffer of 20 KB behind the
router. The paper infers this buffer and does not give the link's rate. Here the rate is 5 % below the
router's, because the hidden link must be the bottleneck; lower rates are shown and not checked. The
router's buffer varies from 5 KB to 10 MB. The router is that of the LAN, and the senders' interfaces and the
port through which they reach the router's processor have 1 Gbit/s (section 3.1, `_testbed`).
Prediction: goodputs and BBR's retransmissions stop changing once the router's buffer exceeds 20 KB.

The paper speaks of goodput, so each flow's goodput is checked, with the same factor as retransmissions.
This was changed after results were seen: before, shares were checked, which can be constant while goodputs
are not.
"""

import math
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe_studies import charts
from fullpipe_studies.claim import (
    Check,
    Claim,
    Data,
    Grid,
    Row,
    Statement,
    Trial,
    Values,
    number,
)
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _grid, _testbed, _together

_HIDDEN_BYTES = 20_000
# The first rate is the one that is checked.
_HIDDEN_MBPS = (950, 500, 100, 10)
# The paper: BBR's retransmissions settle near this number per minute.
_SETTLED = 500.0
# "Stabilizes": the largest value is at most this factor above the smallest.
_STABLE = 1.5


def _document(hidden_mbps: int, buffer_bytes: int, seconds: int, setup: str) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{_together.RATE_MBPS} Mbit/s",
            # The paper added 20 ms to the 7 ms between the two universities.
            "rtt": "27 ms",
            "buffer": f"{buffer_bytes} B",
            **_testbed.path(setup, _together.RATE_MBPS),
            "after": [
                {
                    "kind": "link",
                    "name": "hidden",
                    "rate": f"{hidden_mbps} Mbit/s",
                    "buffer": f"{_HIDDEN_BYTES} B",
                }
            ],
        },
        "flows": _together.flows(setup),
        "record": {"series": False},
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    by = ["hidden_mbps", "buffer_bytes"]
    shares = pl.concat(
        charts.means(data, by, f"{column}_mbps").with_columns(
            pl.col("mean", "low", "high") / _together.RATE_MBPS * 100, pl.lit(name).alias("controller")
        )
        for column, name in (("bbr", "bbr1"), ("cubic", "cubic"))
    ).filter(pl.col("hidden_mbps") == _HIDDEN_MBPS[0])
    again = charts.means(data, by, "bbr_a_minute").filter(pl.col("mean") > 0)

    def panel(part: Data) -> Any:
        x = alt.X(
            "buffer_bytes:Q",
            title="the router's buffer, bytes",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format="~s"),
        )
        hidden = (
            alt.Chart(alt.InlineData(values=[{"buffer_bytes": _HIDDEN_BYTES}]))
            .mark_rule(strokeDash=[4, 3], color="#79818d")
            .encode(x=x)
        )
        world = pl.col("world") == part.worlds[0]
        ours = shares.filter(world)
        lines = charts.points(ours, x, "goodput, % of 1 Gbit/s", charts.controllers(ours), domain=[0, 100])
        scale = alt.Scale(domain=list(_HIDDEN_MBPS), range=list(theme.SPARE[-1:] + theme.SPARE))
        legend = alt.Legend(
            orient="bottom", title="hidden link, Mbit/s", symbolType="stroke", symbolStrokeWidth=2
        )
        rate = alt.Color("hidden_mbps:O", scale=scale, legend=legend)
        counts = charts.points(again.filter(world), x, "BBR's retransmissions per minute", rate, type="log")
        paper = (
            alt.Chart(alt.InlineData(values=[{"settled": _SETTLED}]))
            .mark_rule(strokeDash=[2, 2], color=theme.CONTROLLER["bbr1"])
            .encode(y="settled:Q")
        )
        counts = alt.layer(paper, counts)
        return alt.vconcat(
            *(
                alt.layer(hidden, one).properties(width=charts.WIDTH, height=charts.HEIGHT)
                for one in (lines, counts)
            )
        ).resolve_scale(color="independent", strokeDash="independent")

    return charts.worlds(
        data,
        panel,
        "Goodput behind a hidden bottleneck",
        f"1 Gbit/s, 27 ms; dashed: hidden buffer, and the paper's {_SETTLED:g} retransmissions; top: hidden "
        f"link of {_HIDDEN_MBPS[0]} Mbit/s",
    )


def measure(trial: Trial) -> Row:
    row = _together.measure(trial)
    return {**row, "bbr_a_minute": row["bbr_retransmits"] * 60 / trial.factors["seconds"]}


def judge(every: Data) -> list[Check]:
    data = _with(every, _HIDDEN_MBPS[0])
    buffers = sorted(data.runs["buffer_bytes"].unique().to_list())
    beyond = [buffer for buffer in buffers if buffer >= _HIDDEN_BYTES]

    def spread(column: str, chosen: list[int]) -> Values:
        """The largest of the values at these buffers divided by the smallest; NaN if one is missing."""

        def of(runs: pl.DataFrame) -> float:
            part = Data(runs, data.series)
            means = [part.mean(column, buffer_bytes=buffer) for buffer in chosen]
            if not means or any(map(math.isnan, means)) or max(means) <= 0:
                return math.nan
            return max(means) / min(means) if min(means) > 0 else math.inf

        return data.each_seed(of)

    return [
        *(
            Statement(
                "the goodput of BBR and Cubic stabilizes when our router buffer size reaches 20KB"
            ).shape(
                f"Largest goodput of {title} divided by the smallest, at 20 KB and more",
                spread(f"{name}_mbps", beyond),
                most=_STABLE,
                unit="times",
            )
            for name, title in (("bbr", "BBR"), ("cubic", "CUBIC"))
        ),
        Statement("stabilizes when our router buffer size reaches 20KB").more(
            "Spread of BBR's goodput over all buffers divided by that at 20 KB and more",
            spread("bbr_mbps", buffers),
            spread("bbr_mbps", beyond),
            least=2,
        ),
        Statement("even at high buffer sizes CUBIC's share does not increase").shape(
            "BBR's share with the router's largest buffer",
            data.values("bbr_share", buffer_bytes=buffers[-1]),
            least=0.5,
        ),
        Statement("BBR's retransmits stabilize as we increase our router buffer size beyond 20KB").shape(
            "BBR's most retransmissions divided by the fewest, at 20 KB and more",
            spread("bbr_retransmits", beyond),
            most=_STABLE,
            unit="times",
        ),
        Statement("around 500").within(
            "BBR's retransmissions per minute with the largest buffer",
            data.values("bbr_a_minute", buffer_bytes=buffers[-1]),
            least=_SETTLED / 3,
            most=_SETTLED * 3,
        ),
    ]


def explain(data: Data) -> list[str]:
    judged = _with(data, _HIDDEN_MBPS[0])
    buffers = sorted(judged.runs["buffer_bytes"].unique().to_list())
    seen = [
        f"{number(judged.mean('bbr_mbps', buffer_bytes=buffer))} Mbit/s and "
        f"{number(judged.mean('bbr_a_minute', buffer_bytes=buffer))} at {buffer / 1000:,g} KB"
        for buffer in buffers
    ]
    facts = [
        f"BBR's goodput and retransmissions per minute: {'; '.join(seen)}. A host sends up to 64 KB at once, "
        "and a smaller buffer of the router drops part of it."
    ]
    for rate in _HIDDEN_MBPS[1:]:
        part = _with(data, rate)
        counts = [
            part.mean("bbr_a_minute", buffer_bytes=buffer) for buffer in buffers if buffer >= _HIDDEN_BYTES
        ]
        if counts and min(counts) > 0:
            facts.append(
                f"With a hidden link of {rate} Mbit/s BBR has {number(min(counts))} to {number(max(counts))} "
                f"retransmissions per minute at {_HIDDEN_BYTES // 1000} KB and more."
            )
    return facts


def _with(data: Data, hidden_mbps: int) -> Data:
    """The runs with a hidden link of this rate."""
    return Data(_grid.only(data, hidden_mbps=hidden_mbps), data.series)


CLAIM = Claim(
    source="figure 8(b)",
    says="Even at high buffer sizes, Cubic's bandwidth share does not increase. The goodput of BBR and Cubic "
    "stabilizes when our router buffer size reaches 20KB. BBR's retransmits stabilize at around 500 "
    "packets/min as we increase our router buffer size beyond 20KB.",
    grid=Grid(
        factors={
            "hidden_mbps": _HIDDEN_MBPS,
            "buffer_bytes": (5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000, 10_000_000),
            "seconds": (60,),
            "setup": _testbed.LAN,
        },
        only=lambda hidden_mbps, setup, **_: setup == _testbed.TESTBED or hidden_mbps == _HIDDEN_MBPS[0],
        quick={"buffer_bytes": (5_000, 10_000, 20_000, 100_000, 10_000_000), "seconds": (30,)},
        tiny={"buffer_bytes": (10_000, 100_000), "seconds": (2,)},
        document=_document,
    ),
    uncontrolled="the statement is about the path",
    look_at="To the right of the dashed line, the lines should be flat.",
    seeds=5,
    setups=_testbed.setups(seeds=3),
)
