"""Shares of BBR and CUBIC against the buffer.

Question: how do BBR and CUBIC share a bottleneck, and how does that depend on its buffer?
Method: one flow of each for 60 s on 1 Gbit/s, 20 ms, with buffers of 10 KB to 100 MB. The quick form has
the buffers of table 1 and runs of 30 s; the kernel world has a tenth of the rate and of the buffers.
Prediction: BBR has 94 % at 10 KB; both are even near 5 MB; CUBIC has three times BBR's goodput at 10 MB.

The 94 % are of what both flows receive together ("the network goodput value"), and not of the link. The
paper's table 1 says how little that is: BBR retransmits 305,029 packets at 100 KB, which is at least 5.8 % of
what it can send in a minute, and 26,746 at 10 KB. If losses are no rarer there, it sends at most 9 % of what
the link carries, and both together at most 10 %. So the use of the link is checked, too.
"""

import math
from itertools import pairwise
from typing import Any

import polars as pl

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Statement, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _testbed, _together

_SMALL, _EVEN, _LARGE = 10_000, 5_000_000, 10_000_000


# BBR's share of both flows' goodput in the paper, per cent, by buffer.
_PAPER_PCT = {_SMALL: 94.0, _EVEN: 50.0, _LARGE: 25.0}
# Both flows' goodput at 10 KB by table 1 (see above), per cent of what the link can deliver.
_USED_PCT = 10.0
_USED = "both, of the link"


def figure(data: Data) -> "alt.TopLevelMixin":
    bbr = charts.means(data, ["scaled_bytes"], "bbr_share").with_columns(pl.col("mean", "low", "high") * 100)
    # CUBIC's is the rest.
    cubic = bbr.with_columns(mean=100 - pl.col("mean"), low=100 - pl.col("high"), high=100 - pl.col("low"))
    used = charts.means(data, ["scaled_bytes"], "used_pct")
    parts = (("bbr1", bbr), ("cubic", cubic), (_USED, used))
    frame = pl.concat(part.with_columns(pl.lit(name).alias("controller")) for name, part in parts)
    paper = pl.DataFrame(
        [
            {"scaled_bytes": buffer, "mean": share, "controller": name}
            for buffer, bbrs in _PAPER_PCT.items()
            for name, share in (("bbr1", bbrs), ("cubic", 100 - bbrs))
        ]
    )

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        x = alt.X(
            "scaled_bytes:Q", title="buffer, bytes", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")
        )
        lines = charts.points(ours, x, "% of both flows' goodput", charts.controllers(ours), domain=[0, 100])
        theirs = (
            alt.Chart(charts.values(paper))
            .mark_point(shape="diamond", size=130, strokeWidth=1.5)
            .encode(x=x, y="mean:Q", color="controller:N")
        )
        return alt.layer(lines, theirs).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "BBR and CUBIC on one bottleneck",
        "1 Gbit/s, 20 ms; kernel: a tenth of rate and buffers; bars: all runs; diamonds: the paper",
    )


def _even_bytes(runs: pl.DataFrame) -> float:
    """The last buffer at which BBR's share falls below one half, interpolated logarithmically."""
    points = runs.drop_nulls("bbr_share").sort("scaled_bytes").select("scaled_bytes", "bbr_share").rows()
    crossings = [
        math.exp(math.log(before) + (math.log(after) - math.log(before)) * (high - 0.5) / (high - low))
        for (before, high), (after, low) in pairwise(points)
        if high >= 0.5 > low
    ]
    return crossings[-1] if crossings else float("nan")


def judge(data: Data) -> list[Check]:
    even = [_even_bytes(runs) / 1e6 for _, runs in data.runs.group_by("seed", maintain_order=True)]
    checks = []
    if small := _together.at(
        data, "bbr_share", _SMALL
    ):  # Scaled to a tenth, this buffer holds no packet in the kernel world.
        checks += [
            *Statement("94 %").both("BBR's share at 10 KB", small, direction=0.75, least=0.89, most=0.99),
            Statement(f"at most {_USED_PCT:g} % by table 1").within(
                "Goodput of both at 10 KB",
                _together.at(data, "used_pct", _SMALL),
                most=_USED_PCT,
                unit="% of the link",
            ),
        ]
    return [
        *checks,
        Statement("about 5 MB").shape("Buffer with equal shares", even, least=5 / 3, most=15, unit="MB"),
        Statement("evenly share").within(
            "BBR's share at 5 MB", _together.at(data, "bbr_share", _EVEN), least=0.4, most=0.6
        ),
        Statement("3 times").more(
            "CUBIC's goodput divided by BBR's at 10 MB (direction)",
            _together.at(data, "cubic_mbps", _LARGE),
            _together.at(data, "bbr_mbps", _LARGE),
        ),
        Statement("3 times").more(
            "CUBIC's goodput divided by BBR's at 10 MB",
            _together.at(data, "cubic_mbps", _LARGE),
            _together.at(data, "bbr_mbps", _LARGE),
            least=2,
            most=4.5,
            shape=False,
        ),
    ]


def explain(data: Data) -> list[str]:
    share, used = data.means("bbr_share", "used_pct", scaled_bytes=_SMALL)
    facts = []
    if not math.isnan(used):
        facts.append(f"At 10 KB both flows use {number(used)} % of the link; BBR has {number(share)} of it.")
    split = data.setups.get("single packets")
    if split is not None:
        share, used = split.means("bbr_share", "used_pct", scaled_bytes=_SMALL)
    if split is not None and not math.isnan(used):
        facts.append(
            f"With the hosts' bursts split into single packets, both use {number(used)} % of the link at "
            f"10 KB, and BBR has {number(share)} of it. A whole burst that is longer than the buffer is "
            "dropped, so neither flow gets through with more than six packets at once; BBR sends a "
            "millisecond of its rate, and CUBIC what an ACK allows."
        )
    low, high, window = data.means("share_low", "share_high", "window_bdp", scaled_bytes=_LARGE)
    ratios = [
        cubic / bbr
        for cubic, bbr in zip(
            _together.at(data, "cubic_mbps", _LARGE), _together.at(data, "bbr_mbps", _LARGE), strict=False
        )
        if bbr > 0
    ]
    if math.isnan(low) or not ratios:
        return facts
    return [
        *facts,
        "At 10 MB there is no steady share within a minute: BBR's share over 4 s varies from "
        f"{number(low)} to {number(high)} in a run. CUBIC fills the buffer first. BBR's estimate of the "
        f"path's RTT then includes CUBIC's queue, its window grows up to {number(window)} BDP, and CUBIC "
        "loses ground with every loss. When the queue is gone, BBR's estimate and window are small again, "
        "and CUBIC takes over. A minute has so few of these cycles that the mean depends on where they "
        f"begin: {number(min(ratios))} to {number(max(ratios))} times in our runs.",
    ]


CLAIM = Claim(
    source="figure 8(a)",
    says="For a small buffer size (10KB), BBR utilizes 94% of the network goodput value. When the buffer "
    "size is large (10MB), Cubic utilizes 3× more bandwidth than BBR. Under moderate buffer sizes "
    "(~5MB), BBR and Cubic evenly share the bandwidth.",
    worlds=("sim", "kernel"),
    grid=_together.grid(
        (
            *(10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000),
            *(10_000_000, 20_000_000, 50_000_000, 100_000_000),
        )
    ),
    measure=_together.measure,
    wrong=("vegas", "cubic", "reno"),
    look_at="Where do the coloured lines cross, and how much of the link is used on the left?",
    seeds=5,
    setups=_testbed.setups(_testbed.MININET, seeds=5),
)
