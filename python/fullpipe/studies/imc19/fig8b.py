"""A second, hidden bottleneck.

Question: why does CUBIC's share not grow with the router's buffer on a wide-area path?
Method: as figure 8(a), with 7 ms more of RTT and, behind the router, a link with a buffer of 20 KB that
nobody configured. The paper infers its buffer and says nothing of its rate; here it is 5 % below the
router's, for it must be the narrower, and beside that, not judged, far below it. The router's buffer goes
from 5 KB to 10 MB.
Prediction: goodputs and BBR's retransmissions stop changing once the router's buffer passes 20 KB.

The paper says goodput: each flow's is judged, to the same factor as retransmissions, since it was seen that
shares of it, which had been judged, may stay when it does not.
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, number, within
from fullpipe.studies.imc19 import _grid, _testbed, _together

_HIDDEN_BYTES = 20_000
# What is judged comes first.
_HIDDEN_MBPS = (950, 500, 100, 10)
# BBR's retransmissions settle near this many a minute.
_SETTLED = 500.0
# What "stabilizes" leaves between the most and the least.
_STABLE = 1.5


def _document(hidden_mbps: int, buffer_bytes: int, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{_together.RATE_MBPS} Mbit/s",
            # 20 ms were added to the 7 ms between the two universities.
            "rtt": "27 ms",
            "buffer": f"{buffer_bytes} B",
            "after": [
                {
                    "kind": "link",
                    "name": "hidden",
                    "rate": f"{hidden_mbps} Mbit/s",
                    "buffer": f"{_HIDDEN_BYTES} B",
                }
            ],
        },
        "flows": _together.flows(_testbed.TESTBED),
        "record": {"series": False},
    }


def _figure(data: Data) -> alt.TopLevelMixin:
    by = ["hidden_mbps", "buffer_bytes"]
    shares = pl.concat(
        charts.means(data, by, f"{column}_mbps").with_columns(pl.lit(name).alias("controller"))
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
        lines = charts.points(ours, x, "goodput, Mbit/s", charts.controllers(ours))
        rate = alt.Color(
            "hidden_mbps:O", title="hidden link, Mbit/s", scale=alt.Scale(scheme="viridis", reverse=True)
        )
        counts = charts.points(again.filter(world), x, "BBR's segments sent again a minute", rate, type="log")
        return alt.hconcat(
            *(
                alt.layer(hidden, one).properties(width=charts.WIDTH, height=charts.HEIGHT)
                for one in (lines, counts)
            )
        ).resolve_scale(color="independent")

    return charts.worlds(
        data,
        panel,
        "Goodput behind a hidden bottleneck",
        f"1 Gbit/s, 27 ms; dashed: the hidden buffer; left: of {_HIDDEN_MBPS[0]} Mbit/s",
    )


def _measure(trial: Trial) -> Row:
    row = _together.measure(trial)
    return {**row, "bbr_a_minute": row["bbr_retransmits"] * 60 / trial.factors["seconds"]}


def _judge(every: Data) -> list[Check]:
    data = _with(every, _HIDDEN_MBPS[0])
    buffers = sorted(data.runs["buffer_bytes"].unique().to_list())
    beyond = [buffer for buffer in buffers if buffer >= _HIDDEN_BYTES]

    def spread(column: str, chosen: list[int]) -> float:
        """The largest of the means at these buffers over the smallest; NaN where one is nothing."""
        means = [data.mean(column, buffer_bytes=buffer) for buffer in chosen]
        return max(means) / min(means) if means and all(one > 0 for one in means) else float("nan")

    return [
        *(
            within(
                f"The largest goodput of {title} over the smallest, at 20 KB and more",
                spread(f"{name}_mbps", beyond),
                paper="the goodput of BBR and Cubic stabilizes when our router buffer size reaches 20KB",
                most=_STABLE,
                unit="times",
                shape=True,
            )
            for name, title in (("bbr", "BBR"), ("cubic", "CUBIC"))
        ),
        more(
            "How often BBR's goodput is multiplied over all buffers, over that at 20 KB and more",
            [spread("bbr_mbps", buffers)],
            [spread("bbr_mbps", beyond)],
            paper="stabilizes when our router buffer size reaches 20KB",
            least=2,
        ),
        within(
            "BBR's share at the router's largest buffer",
            data.values("bbr_share", buffer_bytes=buffers[-1]),
            paper="even at high buffer sizes CUBIC's share does not increase",
            least=0.5,
            shape=True,
        ),
        within(
            "The most that BBR sends again over the least, at 20 KB and more",
            spread("bbr_retransmits", beyond),
            paper="BBR's retransmits stabilize as we increase our router buffer size beyond 20KB",
            most=_STABLE,
            unit="times",
            shape=True,
        ),
        within(
            "BBR's retransmissions a minute at the largest buffer",
            data.values("bbr_a_minute", buffer_bytes=buffers[-1]),
            paper="around 500",
            least=_SETTLED / 3,
            most=_SETTLED * 3,
        ),
    ]


def _explain(data: Data) -> list[str]:
    judged = _with(data, _HIDDEN_MBPS[0])
    buffers = sorted(judged.runs["buffer_bytes"].unique().to_list())
    seen = [
        f"{number(judged.mean('bbr_mbps', buffer_bytes=buffer))} Mbit/s and "
        f"{number(judged.mean('bbr_a_minute', buffer_bytes=buffer))} at {buffer / 1000:,g} KB"
        for buffer in buffers
    ]
    said = [
        f"BBR's goodput and segments sent again a minute: {'; '.join(seen)}. A host sends up "
        "to 64 KB at once, which a smaller buffer of the router cuts."
    ]
    for rate in _HIDDEN_MBPS[1:]:
        part = _with(data, rate)
        counts = [
            part.mean("bbr_a_minute", buffer_bytes=buffer) for buffer in buffers if buffer >= _HIDDEN_BYTES
        ]
        if counts and min(counts) > 0:
            said.append(
                f"With a hidden link of {rate} Mbit/s they are {number(min(counts))} to "
                f"{number(max(counts))} a minute at {_HIDDEN_BYTES // 1000} KB and more."
            )
    return said


def _with(data: Data, hidden_mbps: int) -> Data:
    """The runs with a hidden link of that rate."""
    return Data(_grid.only(data, hidden_mbps=hidden_mbps), data.series)


CLAIM = Claim(
    source="figure 8(b)",
    says="Even at high buffer sizes, Cubic's bandwidth share does not increase. The goodput of BBR and Cubic "
    "stabilizes when our router buffer size reaches 20KB. BBR's retransmits stabilize at around 500 "
    "packets/min as we increase our router buffer size beyond 20KB.",
    worlds=("sim",),
    grid=Grid(
        factors={
            "hidden_mbps": _HIDDEN_MBPS,
            "buffer_bytes": (5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000, 10_000_000),
            "seconds": (60,),
        },
        quick={"buffer_bytes": (5_000, 10_000, 20_000, 100_000, 10_000_000), "seconds": (30,)},
        tiny={"buffer_bytes": (10_000, 100_000), "seconds": (2,)},
        document=_document,
    ),
    measure=_measure,
    figure=_figure,
    judge=_judge,
    explain=_explain,
    look_at="Look for the lines to the right of the dashed one, which do not move.",
    seeds=5,
    quick_seeds=1,
)
