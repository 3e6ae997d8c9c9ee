"""Completion times of finite flows.

Question: does the controller with more goodput also complete transfers sooner?
Method: each controller alone sends 100 MB and 10 MB over 64 paths with buffers of 100 KB and 10 MB. Formula
(2) of the paper: the time that BBR saves, in per cent of CUBIC's time.
Prediction: BBR is faster in shallow buffers. CUBIC is faster in deep buffers where the BDP is small. With
only 10 MB to send, BBR is faster nearly everywhere.

Linux kept slow-start thresholds from run to run then, but iperf3's connections leave none (`_metrics`). What
three orders of the runs would do if they did is in the table of set-ups.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _grid, _heat, _metrics, _testbed

_LARGE_MB, _SMALL_MB = 100, 10


def _document(
    controller: str, rate_mbps: int, rtt_ms: int, buffer_kb: int, size_mb: int, setup: str
) -> dict[str, Any]:
    # Long enough for a flow with a slow start and a tenth of the link; runs end with their flows.
    seconds = round(10 * size_mb * 8 / rate_mbps + 60)
    document = _grid.document(controller, rate_mbps, rtt_ms, buffer_kb, _grid.MAX, seconds, setup)
    document["flows"][0]["size"] = f"{size_mb} MB"
    document["name"] += f", {size_mb} MB"
    return document


def measure(trial: Trial) -> Row:
    flow = take.flow(trial.run)
    # iperf3 -n ends when its last byte is written.
    ended = "write_ms" if _testbed.SETUPS[trial.factors["setup"]].sender else "completion_ms"
    return {"completion_ms": flow.get(ended), "retransmits": flow["retransmits"]}


def _decreases(runs: pl.DataFrame) -> pl.DataFrame:
    """Both completion times on each path, and `decrease_pct` by formula (2)."""
    by = (*_grid.PATH, "size_mb")
    bbr, cubic = pl.col("bbr1"), pl.col("cubic")
    return _grid.pairs(runs, "completion_ms", by).with_columns(
        ((cubic - bbr) / cubic * 100).alias("decrease_pct")
    )


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        frame = _decreases(part.runs)
        groups = []
        for size in (_LARGE_MB, _SMALL_MB):
            cells = frame.filter(pl.col("size_mb") == size).sort("buffer_kb")
            named = [
                _heat.Panel(f"{size} MB, buffer {buffer:,} KB", rows)
                for (buffer,), rows in cells.group_by("buffer_kb", maintain_order=True)
            ]
            groups += [named] if named else []
        return _heat.rows(groups, "decrease_pct")

    return charts.worlds(
        data,
        panel,
        "Completion time saved by BBR",
        "per cent of CUBIC's time; blue: BBR is faster, orange: CUBIC is",
        rigid=True,
    )


def judge(data: Data) -> list[Check]:
    def sooner(bbr: bool, size: int, where: pl.Expr) -> list[float]:
        def of(runs: pl.DataFrame) -> float:
            ahead = pl.col("decrease_pct") > 0 if bbr else pl.col("decrease_pct") < 0
            return _grid.share(_decreases(runs).filter(where), ahead)

        return _grid.each_seed(_grid.only(data, size_mb=size), of)

    shallow, deep = (pl.col("buffer_kb") == buffer for buffer in (_grid.SHALLOW_KB, _grid.DEEP_KB))
    every = pl.lit(True)
    # "Small": up to a tenth of the deep buffer, which halves the paths about evenly.
    small = deep & (pl.col("bdp_kb") <= _grid.DEEP_KB / 10)
    ended = data.each_seed(lambda runs: _grid.share(runs, pl.col("completion_ms").is_not_null()))
    return [
        Statement("completion times on every path").within(
            "Flows that completed", ended, least=1, unit="of flows"
        ),
        Statement("BBR typically has lower latency").shape(
            "100 MB, buffer of 100 KB: paths on which BBR is faster",
            sooner(True, _LARGE_MB, shallow),
            least=0.6,
            unit="of paths",
        ),
        Statement("CUBIC has lower latency when the BDP is small").shape(
            "100 MB, buffer of 10 MB, BDP up to 1 MB: paths on which CUBIC is faster",
            sooner(False, _LARGE_MB, small),
            least=0.6,
            unit="of paths",
        ),
        Statement("almost all cases").shape(
            "10 MB: paths on which BBR is faster", sooner(True, _SMALL_MB, every), least=0.8, unit="of paths"
        ),
    ]


def explain(data: Data) -> list[str]:
    frame = _decreases(_grid.only(data, size_mb=_SMALL_MB))
    facts = []
    for buffer in (_grid.SHALLOW_KB, _grid.DEEP_KB):
        part = frame.filter(pl.col("buffer_kb") == buffer)
        least, most = take.least(part, "decrease_pct"), take.most(part, "decrease_pct")
        if least is None or most is None:
            continue
        close = _grid.percent(_grid.share(part, pl.col("decrease_pct").abs() < 1))
        facts.append(
            f"10 MB, buffer of {buffer:,} KB: BBR saves {number(least)} to {number(most)} % of CUBIC's "
            f"time; on {close} of the paths the difference is below 1 %."
        )
    facts += _lossless(data)
    large = _decreases(_grid.only(data, size_mb=_LARGE_MB, buffer_kb=_grid.SHALLOW_KB))
    if large.height:
        share = _grid.percent(_grid.share(large, pl.col("decrease_pct") > 0))
        facts.append(f"100 MB, buffer of {_grid.SHALLOW_KB} KB: BBR is faster on {share} of the paths.")
    for order in (*_metrics.ORDERS, _testbed.SENDER):
        if order not in data.setups or not data.setups[order].runs.height:
            continue
        there = _decreases(data.setups[order].runs)
        sooner = there.group_by("size_mb").agg((pl.col("decrease_pct") > 0).mean()).sort("size_mb")
        shares = " and ".join(f"{_grid.percent(part)} with {size} MB" for size, part in sooner.rows())
        facts.append(f"{_grid.titled(order, data.setups[order])}: BBR is faster on {shares}.")
    return facts


def _lossless(data: Data) -> list[str]:
    """The rate at which slow start most often passes the shallow buffer without losses, and why."""
    here = _grid.only(data, size_mb=_SMALL_MB)
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
    facts = (
        f"At {rate} Mbit/s with {_grid.SHALLOW_KB} KB, neither controller loses a packet of 10 MB on "
        f"{paths} paths: CUBIC's times are within {number(apart)} ms of those with {_grid.DEEP_KB:,} KB, "
        f"and BBR saves {number(least)} to {number(most)} %."
    )
    if rate < _testbed.INTERFACE_MBPS:
        # Data arrives at the interface's rate and leaves at the router's; bucket and buffer hold the
        # difference.
        held_kb = rate * _testbed.SETUPS[_testbed.TESTBED].bucket_ms / 8 + _grid.SHALLOW_KB
        burst_mb = held_kb / (1 - rate / _testbed.INTERFACE_MBPS) / 1e3
        facts += (
            f" The host's interface of {_testbed.INTERFACE_MBPS} Mbit/s is only slightly faster than the "
            f"router. The router's bucket and buffer of {held_kb:,.0f} KB therefore absorb a burst of "
            f"{number(burst_mb)} MB: slow start has no losses, and BBR has no advantage."
        )
    return [facts]


CLAIM = Claim(
    source="figure 6",
    says="In the shallow buffer case, BBR typically has lower latency. For a deep buffer, Cubic has lower "
    "latency when the BDP is small. We also experimented with 10MB flows, and found that BBR has lower "
    "latency in almost all cases.",
    grid=Grid(
        factors={
            "controller": _grid.CONTROLLERS,
            "rate_mbps": _grid.RATES_MBPS,
            "rtt_ms": _grid.RTTS_MS,
            "buffer_kb": (_grid.SHALLOW_KB, _grid.DEEP_KB),
            "size_mb": (_LARGE_MB, _SMALL_MB),
            "setup": _testbed.LAN,
        },
        quick={name: _grid.QUICK[name] for name in ("rtt_ms", "setup")},
        tiny={"rtt_ms": (5, 25), "rate_mbps": (100,), "size_mb": (_SMALL_MB,)},
        document=_document,
        only=lambda **factors: _grid.is_there(**{**factors, "memory": _grid.MAX}),
    ),
    look_at="In the lower left of the deep buffer CUBIC should be faster; with 10 MB to send BBR should be.",
    seeds=_grid.SEEDS,
    quick_seeds=_grid.QUICK_SEEDS,
    setups=_testbed.setups(seeds=3),
)
