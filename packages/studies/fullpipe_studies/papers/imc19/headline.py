"""The largest gains of either controller.

Question: how much goodput can one gain by choosing the right controller?
Method: each controller alone for 60 s on the 320 paths; the largest gain of either over the other.
Prediction: up to 200 % for BBR where the buffer is much smaller than the BDP; up to 30 % for CUBIC where it
is deep.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, take
from fullpipe_studies.claim import Check, Claim, Data, Statement, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _grid, _testbed

_BBR_PCT, _CUBIC_PCT = 200.0, 30.0
# Our reading of the paper's "much smaller" and "deep", in BDP.
_MUCH_SMALLER, _DEEP = 0.2, 1.0


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        frame = _grid.gains(part.runs)
        dots = (
            alt.Chart(charts.values(frame))
            .mark_point(filled=True, size=28, opacity=0.8)
            .encode(
                x=alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log")),
                y=alt.Y("gain_pct:Q", title="BBR's goodput gain over CUBIC, %"),
                color=alt.Color(
                    "buffer_kb:O", title="buffer, KB", scale=alt.Scale(scheme="viridis", reverse=True)
                ),
                tooltip=["rate_mbps:Q", "rtt_ms:Q", "buffer_kb:Q", "gain_pct:Q"],
            )
        )
        # CUBIC's gain of 30 % over BBR is BBR's loss of 23 %.
        even = layers.level(0.0, _BBR_PCT, 100 / (1 + _CUBIC_PCT / 100) - 100)
        return alt.layer(even, dots).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data,
        panel,
        "BBR's goodput gain against the buffer in BDP",
        "one dot per path; dashed: no gain, and the paper's largest ones",
    )


def judge(data: Data) -> list[Check]:
    def largest(column: str, where: pl.Expr) -> list[float]:
        def of(runs: pl.DataFrame) -> float:
            top = _grid.gains(runs).filter(where)[column].max()
            return float(top) if isinstance(top, float) else float("nan")

        return _grid.each_seed(data.runs, of)

    bbr = largest("gain_pct", pl.col("buffer_bdp") <= _MUCH_SMALLER)
    cubic = largest("cubic_gain_pct", pl.col("buffer_bdp") >= _DEEP)
    return [
        Statement("200 % to 30 %").more(
            "BBR's largest gain in shallow buffers divided by CUBIC's in deep ones", bbr, cubic, least=2
        ),
        Statement("far ahead in shallow buffers").shape(
            "BBR's largest gain (direction)", bbr, least=100, unit="%"
        ),
        Statement("ahead").shape("CUBIC's largest gain (direction)", cubic, least=5, unit="%"),
        Statement(f"{_BBR_PCT:g} %").within(
            "BBR's largest gain where the buffer is up to 0.2 BDP",
            bbr,
            least=_BBR_PCT * 0.5,
            most=_BBR_PCT * 2,
            unit="%",
        ),
        Statement(f"{_CUBIC_PCT:g} %").within(
            "CUBIC's largest gain where the buffer is at least 1 BDP",
            cubic,
            least=_CUBIC_PCT * 0.5,
            most=_CUBIC_PCT * 2,
            unit="%",
        ),
    ]


def explain(data: Data) -> list[str]:
    frame = _grid.gains(data.runs).sort("gain_pct", descending=True)
    if not frame.height:
        return []
    top = frame.row(0, named=True)
    typical = take.median(frame.filter(pl.col("buffer_bdp") >= _DEEP), "cubic_gain_pct")
    return [
        f"BBR's largest gain is at {top['rate_mbps']} Mbit/s, {top['rtt_ms']} ms, {top['buffer_kb']} KB, "
        f"where CUBIC has {number(top['cubic'])} Mbit/s and BBR {number(top['bbr1'])} Mbit/s.",
        f"CUBIC's median gain in deep buffers is {'none' if typical is None else f'{number(typical)} %'}, "
        "about the cost of BBR's ProbeRTT and start-up.",
    ]


CLAIM = Claim(
    source="section 1",
    says="When the bottleneck buffer size is much smaller than BDP, BBR can achieve 200% higher goodput than "
    "Cubic. However, in the case of deep buffers, Cubic can improve goodput by 30% compared to BBR.",
    grid=_grid.grid(_grid.BUFFERS_KB, tiny={"buffer_kb": (100, 1000)}),
    measure=_grid.measure,
    look_at="At which buffer, in BDP, do the dots reach the line?",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
    setups=_testbed.setups(),
)
