"""Retransmissions of both against the buffer.

Question: how much do BBR and CUBIC retransmit when they share a bottleneck?
Method: the runs of figure 8(a): one flow of each for 60 s on 1 Gbit/s, 20 ms, with the table's buffers. The
quick form has runs of 30 s, the kernel world a tenth of the rate and of the buffers; the expected counts
are scaled.
Prediction: BBR retransmits orders of magnitude more in small buffers, and nothing in the deepest.
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Statement, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _testbed, _together

_BBR = dict(zip(_together.TABLE_BYTES, (26746, 305029, 68741, 1324, 204, 0, 0), strict=True))
_CUBIC = dict(zip(_together.TABLE_BYTES, (908, 1398, 3987, 1145, 794, 7, 16), strict=True))
_PAPER = {"bbr": ("BBR", _BBR), "cubic": ("CUBIC", _CUBIC)}
# Orders of magnitude, not digits. Counts below _FEW are single events, in the paper and here.
_FACTOR, _FEW = 10.0, 100
_TICKS = (0, *(10**power for power in range(1, 6)))


def figure(data: Data) -> "alt.TopLevelMixin":
    frames = [
        charts.means(data, ["scaled_bytes"], f"{column}_retransmits").with_columns(
            pl.lit(name).alias("controller")
        )
        for column, name in (("bbr", "bbr1"), ("cubic", "cubic"))
    ]
    frame = pl.concat(frames)

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        paper = pl.DataFrame(
            [
                {"controller": name, "scaled_bytes": buffer, "mean": count * _part(part)}
                for name, counts in (("bbr1", _BBR), ("cubic", _CUBIC))
                for buffer, count in counts.items()
            ]
        )
        x = alt.X(
            "scaled_bytes:Q", title="buffer, bytes", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")
        )
        lines = charts.points(
            ours,
            x,
            "retransmitted segments",
            charts.controllers(ours),
            dashed=False,  # The dashed lines are the paper's.
            ticks=_TICKS,
            type="symlog",
        )
        theirs = (
            alt.Chart(charts.values(paper))
            .mark_line(strokeDash=[4, 3], strokeWidth=1)
            .encode(x=x, y="mean:Q", color="controller:N")
        )
        return alt.layer(theirs, lines).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "Retransmissions of both flows",
        "logarithmic axes; dashed: table 1 of the paper, scaled to the packets sent",
    )


def _part(data: Data) -> float:
    """The packets that rate and duration allow, relative to the paper's."""
    return data.most("rate_mbps") / _together.RATE_MBPS * data.most("seconds") / 60


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:g} MB" if size_bytes >= 1e6 else f"{size_bytes / 1e3:g} KB"


def judge(data: Data) -> list[Check]:
    part = _part(data)
    there = sorted(data.runs["scaled_bytes"].unique().to_list())

    def again(name: str, buffer: int) -> list[float]:
        return _together.at(data, f"{name}_retransmits", buffer)

    def counted(name: str, buffer: int) -> Check:
        title, counts = _PAPER[name]
        expected = counts[buffer] * part
        few = counts[buffer] < _FEW
        return Statement(f"{counts[buffer]:,}" + ("" if part == 1 else f"; scaled {expected:,.0f}")).within(
            f"{title}'s retransmissions with {_size(buffer)}",
            again(name, buffer),
            least=None if few else expected / _FACTOR,
            most=_FEW * _FACTOR * part if few else expected * _FACTOR,
        )

    checks = [
        Statement(f"{_BBR[buffer] / _CUBIC[buffer]:.0f} times").more(
            f"BBR's retransmissions divided by CUBIC's with {_size(buffer)}",
            again("bbr", buffer),
            again("cubic", buffer),
            least=5,
        )
        for buffer in (10_000, 100_000, 1_000_000)
        if buffer in there
    ]
    checks += [
        Statement(f"{_BBR[small]:,} to {_BBR[large]:,}").more(
            f"BBR's retransmissions with {_size(small)} divided by those with {_size(large)}",
            again("bbr", small),
            again("bbr", large),
            least=2,
        )
        for small, large in ((100_000, 1_000_000), (1_000_000, 10_000_000))
    ]
    return checks + [counted(name, buffer) for name in _PAPER for buffer in _BBR if buffer in there]


def explain(data: Data) -> list[str]:
    facts = []
    for buffer in (one for one, count in _CUBIC.items() if count < _FEW):
        again, overflows = data.means("cubic_retransmits", "overflows", scaled_bytes=buffer)
        if not math.isnan(overflows):
            facts.append(
                f"With {_size(buffer)} CUBIC uses nearly all of the link and fills the buffer within the "
                f"minute. The buffer overflows {number(overflows)} times, and each time CUBIC loses the "
                f"growth of its window in one round, {number(again)} segments in all. The paper's "
                f"{_CUBIC[buffer]} are too few for one overflow: CUBIC can hardly have filled the buffer "
                "there."
            )
    less = data.setups.get("default TCP memory")
    if facts and less is not None and less.runs.height:
        counts = " and ".join(
            f"{number(less.mean('cubic_retransmits', scaled_bytes=buffer))} with {_size(buffer)}"
            for buffer, count in _CUBIC.items()
            if count < _FEW
        )
        facts.append(
            "With the default TCP memory the receive window ends CUBIC's growth before such a buffer is "
            f"full: it retransmits {counts}. The paper says that it set the maximum in the LAN; of Mininet "
            "it says nothing."
        )
    return facts


CLAIM = Claim(
    source="table 1",
    says="BBR has orders of magnitude higher retransmits than Cubic for small buffer sizes. Under 100KB "
    "buffer size, BBR has 200× more retransmits than Cubic. In deep buffers, BBR's retransmissions "
    "drops to zero.",
    worlds=("sim", "kernel"),
    grid=_together.grid(_together.TABLE_BYTES),
    measure=_together.measure,
    look_at="How far is BBR above CUBIC on the left, and below it on the right?",
    seeds=5,
    setups=_testbed.setups(_testbed.MININET, seeds=3),
)
