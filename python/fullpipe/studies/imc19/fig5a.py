"""Goodput gain in a shallow buffer.

Question: on which paths with a 100 KB buffer is BBR's goodput higher, and by how much?
Method: each controller alone for 60 s on 64 paths; the gain by formula (1) of the paper, in per cent of
CUBIC's goodput.
Prediction: BBR is ahead where the rate or the RTT is high, by 115 % at 500 Mbit/s, 200 ms.
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.claim import Check, Claim, Data, more, within
from fullpipe.studies.imc19 import _grid, _heat

# The path for which the text gives numbers.
_POINT = {"rate_mbps": 500, "rtt_ms": 200}
_CUBIC_MBPS, _BBR_MBPS, _GAIN_PCT = 179.6, 386.0, 115.0


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        return _heat.gain(_grid.gains(part.runs), "gain_pct", "")

    return charts.worlds(
        data,
        panel,
        "BBR's goodput gain over CUBIC, 100 KB buffer",
        "per cent of CUBIC's goodput; blue: BBR is ahead, orange: CUBIC is",
        rigid=True,
    )


def _judge(data: Data) -> list[Check]:
    def ahead(runs: pl.DataFrame) -> float:
        """BBR's share of the paths whose BDP exceeds the buffer."""
        return _grid.share(_grid.gains(runs).filter(pl.col("buffer_bdp") < 1), pl.col("gain_pct") > 0)

    def gain(high: bool) -> list[float]:
        """The mean gain on the paths of the upper or lower half by BDP, as a ratio of goodputs."""
        side = pl.col("buffer_bdp") < 1 if high else pl.col("buffer_bdp") >= 1
        return _grid.each_seed(
            data.runs,
            lambda runs: 1 + float(_grid.gains(runs).filter(side)["gain_pct"].mean() or 0.0) / 100,  # type: ignore[arg-type]
        )

    bbr = data.values("goodput_mbps", controller="bbr1", **_POINT)
    cubic = data.values("goodput_mbps", controller="cubic", **_POINT)
    gained = [(over / under - 1) * 100 for over, under in zip(bbr, cubic, strict=False) if under > 0]
    return [
        within(
            "Paths with a BDP above 100 KB on which BBR is ahead",
            _grid.each_seed(data.runs, ahead),
            paper="BBR outperforms when the BDP is high",
            least=0.9,
            unit="of paths",
            shape=True,
        ),
        more(
            "BBR's goodput divided by CUBIC's: where the BDP exceeds the buffer, divided by elsewhere",
            gain(True),
            gain(False),
            paper="when either bandwidth or RTT is high",
        ),
        more(
            "BBR's goodput divided by CUBIC's at 500 Mbit/s, 200 ms",
            bbr,
            cubic,
            paper="2.15 times",
            least=1.5,
        ),
        within(
            "BBR's goodput at 500 Mbit/s, 200 ms",
            bbr,
            paper=f"{_BBR_MBPS} Mbit/s",
            least=0.75 * _BBR_MBPS,
            most=1.25 * _BBR_MBPS,
            unit="Mbit/s",
        ),
        within(
            "CUBIC's goodput at 500 Mbit/s, 200 ms",
            cubic,
            paper=f"{_CUBIC_MBPS} Mbit/s",
            least=0.75 * _CUBIC_MBPS,
            most=1.25 * _CUBIC_MBPS,
            unit="Mbit/s",
        ),
        within(
            "BBR's gain at 500 Mbit/s, 200 ms",
            gained,
            paper=f"{_GAIN_PCT:g} %",
            least=_GAIN_PCT / 2,
            most=_GAIN_PCT * 2,
            unit="%",
        ),
    ]


def _explain(data: Data) -> list[str]:
    frame = _grid.gains(data.runs)
    near = frame.filter(pl.col("buffer_bdp").is_between(0.25, 1, closed="left"))
    far = frame.filter(pl.col("buffer_bdp") < 0.25)
    used = take.mean(near.select(pl.col("cubic") / pl.col("rate_mbps")), "cubic")
    near_ahead, far_ahead = (
        _grid.percent(_grid.share(part, pl.col("gain_pct") > 0) if part.height else None)
        for part in (near, far)
    )
    return [
        f"Where the BDP is one to four times the buffer, BBR is ahead on {near_ahead} of {near.height} "
        f"paths: CUBIC still uses {_grid.percent(used)} of the link there, and probing costs BBR goodput. "
        f"Where the BDP is more than four times the buffer, BBR is ahead on {far_ahead} of {far.height}."
    ]


CLAIM = Claim(
    source="figure 5(a)",
    says="BBR outperforms Cubic when either bandwidth or RTT is high, i.e. the BDP is high. Under 100KB "
    "buffer size, 200ms RTT, and 500Mbps bandwidth, Cubic's average goodput is 179.6Mbps, while BBR has "
    "386.0Mbps (115% improvement).",
    worlds=("sim",),
    grid=_grid.grid((_grid.SHALLOW_KB,)),
    measure=_grid.measure,
    figure=_figure,
    judge=_judge,
    explain=_explain,
    look_at="In the upper right the bandwidth-delay product is many times the buffer.",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
)
