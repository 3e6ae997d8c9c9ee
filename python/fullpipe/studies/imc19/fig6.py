"""Completion times of finite flows.

Question: does the choice that maximises goodput also end a transfer soonest?
Method: 100 MB and 10 MB sent by each controller alone over 64 paths with 100 KB and with 10 MB of buffer;
formula (2) of the paper: by how many per cent of CUBIC's time BBR is sooner.
Prediction: BBR is sooner in shallow buffers; CUBIC in deep ones where the BDP is small; BBR nearly everywhere
when there are only 10 MB to send.

Beside it, and not judged, CUBIC starts with the slow-start threshold that a run on another path left, and
without HyStart: see figure 5(b).
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, number, within
from fullpipe.studies.imc19 import _grid, _heat, _testbed

_LARGE_MB, _SMALL_MB = 100, 10


def _document(
    controller: str, rate_mbps: int, rtt_ms: int, buffer_kb: int, size_mb: int, inherited: int
) -> dict[str, Any]:
    # Long enough for a flow that gets a tenth of the link and starts slowly; runs end with their flows.
    seconds = round(10 * size_mb * 8 / rate_mbps + 60)
    document = _grid.document(
        controller, rate_mbps, rtt_ms, buffer_kb, _grid.MAX, seconds, _testbed.TESTBED, inherited
    )
    document["flows"][0]["size"] = f"{size_mb} MB"
    return document


def _measure(trial: Trial) -> Row:
    flow = take.flow(trial.run)
    return {"completion_ms": flow["completion_ms"], "retransmits": flow["retransmits"]}


def _decreases(runs: pl.DataFrame) -> pl.DataFrame:
    """Both times on each path, and `decrease_pct`: formula (2)."""
    by = (*_grid.PATH, "size_mb", "inherited")
    bbr, cubic = pl.col("bbr1"), pl.col("cubic")
    return _grid.pairs(runs, "completion_ms", by).with_columns(
        ((cubic - bbr) / cubic * 100).alias("decrease_pct")
    )


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        frame = _decreases(part.runs)
        keys = ("inherited", "size_mb", "buffer_kb")
        panels = frame.select(keys).unique().sort(keys, descending=[False, True, False])
        titles = {0: "", _grid.LEFT_SEGMENTS: "; a threshold was left"}
        return alt.concat(
            *(
                _heat.gain(
                    frame.filter(
                        pl.col("inherited") == inherited,
                        pl.col("size_mb") == size,
                        pl.col("buffer_kb") == buffer,
                    ),
                    "decrease_pct",
                    f"{size} MB to send, buffer of {buffer:,} KB{titles[inherited]}",
                )
                for inherited, size, buffer in panels.rows()
            ),
            columns=2,
        )

    return charts.worlds(
        data, panel, "How much sooner a flow ends with BBR", "per cent of CUBIC's time; red: BBR is sooner"
    )


def _judge(data: Data) -> list[Check]:
    def sooner(bbr: bool, size: int, where: pl.Expr) -> list[float]:
        def of(runs: pl.DataFrame) -> float:
            ahead = pl.col("decrease_pct") > 0 if bbr else pl.col("decrease_pct") < 0
            return _grid.share(_decreases(runs).filter(where), ahead)

        return _grid.each_seed(_grid.only(data, size_mb=size, inherited=0), of)

    shallow, deep = (pl.col("buffer_kb") == buffer for buffer in (_grid.SHALLOW_KB, _grid.DEEP_KB))
    every = pl.lit(True)
    # "Small": up to a tenth of the deep buffer, which halves the paths about evenly.
    small = deep & (pl.col("bdp_kb") <= _grid.DEEP_KB / 10)
    ended = data.runs.select(pl.col("completion_ms").is_not_null().cast(pl.Float64).mean()).item()
    return [
        within("Flows that ended", ended, paper="completion times on every path", least=1, unit="of flows"),
        within(
            "100 MB, 100 KB of buffer: paths on which BBR is sooner",
            sooner(True, _LARGE_MB, shallow),
            paper="BBR typically has lower latency",
            least=0.6,
            unit="of paths",
            shape=True,
        ),
        within(
            "100 MB, 10 MB of buffer, BDP up to 1 MB: paths on which CUBIC is sooner",
            sooner(False, _LARGE_MB, small),
            paper="CUBIC has lower latency when the BDP is small",
            least=0.6,
            unit="of paths",
            shape=True,
        ),
        within(
            "10 MB to send: paths on which BBR is sooner",
            sooner(True, _SMALL_MB, every),
            paper="almost all cases",
            least=0.8,
            unit="of paths",
            shape=True,
        ),
    ]


def _explain(data: Data) -> list[str]:
    frame = _decreases(_grid.only(data, size_mb=_SMALL_MB, inherited=0))
    said = []
    for buffer in (_grid.SHALLOW_KB, _grid.DEEP_KB):
        part = frame.filter(pl.col("buffer_kb") == buffer)
        least, most = take.least(part, "decrease_pct"), take.most(part, "decrease_pct")
        if least is None or most is None:
            continue
        close = _grid.percent(_grid.share(part, pl.col("decrease_pct").abs() < 1))
        said.append(
            f"10 MB to send, {buffer:,} KB of buffer: BBR is sooner by {number(least)} to "
            f"{number(most)} % of "
            f"CUBIC's time, on {close} of the paths by less than 1 % either way."
        )
    said += _lossless(data)
    large = _decreases(_grid.only(data, size_mb=_LARGE_MB, buffer_kb=_grid.SHALLOW_KB, inherited=0))
    if large.height:
        share = _grid.percent(_grid.share(large, pl.col("decrease_pct") > 0))
        said.append(f"100 MB to send, {_grid.SHALLOW_KB} KB: BBR is sooner on {share} of the paths.")
    left = _decreases(_grid.only(data, inherited=_grid.LEFT_SEGMENTS))
    sooner = left.group_by("size_mb").agg((pl.col("decrease_pct") > 0).mean()).sort("size_mb")
    if sooner.height:
        shares = " and ".join(f"{_grid.percent(part)} with {size} MB" for size, part in sooner.rows())
        said.append(
            f"With the slow-start threshold of {_grid.LEFT_SEGMENTS} segments that another path's run may "
            "have "
            f"left to CUBIC (see figure 5(b)), BBR is sooner on {shares} to send."
        )
    return said


def _lossless(data: Data) -> list[str]:
    """The rate at which slow start most often comes through the shallow buffer without a loss, and why."""
    here = _grid.only(data, size_mb=_SMALL_MB, inherited=0)
    by = ("rate_mbps", "rtt_ms", "buffer_kb")
    again = here.group_by(by).agg(pl.col("retransmits").max().alias("again"))
    frame = _decreases(here).join(again, on=by).filter(pl.col("again") == 0)
    shallow = frame.filter(pl.col("buffer_kb") == _grid.SHALLOW_KB)
    deep = frame.filter(pl.col("buffer_kb") == _grid.DEEP_KB)
    both = shallow.join(deep, on=("rate_mbps", "rtt_ms"), suffix="_deep")
    counts = both.group_by("rate_mbps").agg(pl.len().alias("paths")).sort("paths", "rate_mbps")
    if not counts.height:
        return []
    rate, paths = counts.row(-1)
    part = both.filter(pl.col("rate_mbps") == rate)
    apart = take.most(part.select((pl.col("cubic") - pl.col("cubic_deep")).abs()), "cubic") or 0.0
    least, most = take.least(part, "decrease_pct") or 0.0, take.most(part, "decrease_pct") or 0.0
    said = (
        f"At {rate} Mbit/s, {_grid.SHALLOW_KB} KB, neither loses a packet of 10 MB on {paths} paths: CUBIC's "
        f"times there are within {number(apart)} ms of those with {_grid.DEEP_KB:,} KB, and BBR is sooner by "
        f"{number(least)} to {number(most)} %."
    )
    if rate < _testbed.INTERFACE_MBPS:
        # What comes at the interface's rate leaves at the router's; bucket and buffer hold the rest.
        held_kb = rate * _testbed.BUCKET_MS / 8 + _grid.SHALLOW_KB
        burst_mb = held_kb / (1 - rate / _testbed.INTERFACE_MBPS) / 1e3
        said += (
            f" The host's interface of {_testbed.INTERFACE_MBPS} Mbit/s is so little faster than the router "
            f"that its bucket and buffer, {held_kb:,.0f} KB, take a burst of {number(burst_mb)} MB: slow "
            "start comes through, and there is nothing for BBR to gain."
        )
    return [said]


CLAIM = Claim(
    source="figure 6",
    says="In the shallow buffer case, BBR typically has lower latency. For a deep buffer, Cubic has lower "
    "latency when the BDP is small. We also experimented with 10MB flows, and found that BBR has lower "
    "latency in almost all cases.",
    worlds=("sim",),
    grid=Grid(
        factors={
            "controller": _grid.CONTROLLERS,
            "rate_mbps": _grid.RATES_MBPS,
            "rtt_ms": _grid.RTTS_MS,
            "buffer_kb": (_grid.SHALLOW_KB, _grid.DEEP_KB),
            "size_mb": (_LARGE_MB, _SMALL_MB),
            "inherited": (0, _grid.LEFT_SEGMENTS),
        },
        quick={"rtt_ms": (5, 25, 75, 200), "rate_mbps": (10, 100, 500, 1000)},
        tiny={"rtt_ms": (5, 25), "rate_mbps": (100,), "size_mb": (_SMALL_MB,)},
        document=_document,
    ),
    measure=_measure,
    figure=_figure,
    judge=_judge,
    explain=_explain,
    look_at="Look for the lower left of the deep buffer, and for how it turns when there is less to send.",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
)
