"""BBR and CUBIC on one bottleneck of 1 Gbit/s, 20 ms (section 4.3), for figure 8(a) and table 1.

The path is Mininet's, and Linux is 4.15 (`_testbed`). The kernel world cannot
carry 1 Gbit/s, so its rate and buffers are a tenth; `scaled_bytes` is the corresponding buffer of the
paper.
"""

from typing import Any

import polars as pl

from fullpipe_studies import take
from fullpipe_studies.claim import Data, Grid, Row, Trial
from fullpipe_studies.papers.imc19 import _testbed

RATE_MBPS = 1000
_RTT_MS, _SAMPLE_S, _STRETCH_S = 20, 0.25, 4.0
# The buffers of table 1. The paper prints the fifth as 1e6 again; it means 1e7.
TABLE_BYTES = (10_000, 100_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000, 100_000_000)


def flows(setup: str, linux: str = _testbed.PAPERS) -> list[dict[str, Any]]:
    """One flow of each, with BBR as in the Linux of the set-up."""
    return [{"controller": _testbed.controller(setup, name, linux)} for name in ("bbr1", "cubic")]


def _document(rate_mbps: int, buffer_bytes: int, seconds: int, setup: str, linux: str) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{rate_mbps} Mbit/s",
            "rtt": f"{_RTT_MS} ms",
            "buffer": f"{buffer_bytes} B",
            **_testbed.mininet(setup, rate_mbps),
        },
        "hosts": _testbed.memory(setup),
        "flows": flows(setup, linux),
        "record": {"interval": f"{_SAMPLE_S} s"} if linux == _testbed.PAPERS else {"series": False},
    }


def grid(buffers_bytes: tuple[int, ...]) -> Grid:
    """Both flows on the bottleneck, with each of the buffers."""
    return Grid(
        factors={
            "rate_mbps": (RATE_MBPS,),
            "buffer_bytes": buffers_bytes,
            "seconds": (60,),
            "setup": _testbed.MININETS,
            "linux": (_testbed.PAPERS,),
        },
        quick={"buffer_bytes": TABLE_BYTES, "seconds": (30,)},
        tiny={"buffer_bytes": (100_000, 10_000_000), "seconds": (2,)},
        in_wall_time={
            "rate_mbps": (100,),
            "seconds": (30,),
            "buffer_bytes": (10_000, 100_000, 500_000, 1_000_000, 5_000_000),
            "setup": (_testbed.MININET,),
            "linux": (_testbed.HERE,),
        },
        document=_document,
    )


def measure(trial: Trial) -> Row:
    """Goodputs, BBR's share of their sum, the use of the link, and the retransmissions of each."""
    flows = {name: take.flow(trial.run, name) for name in ("bbr1", "cubic")}
    rates = {name: float(flow["goodput_bps"] or 0.0) / 1e6 for name, flow in flows.items()}
    total = sum(rates.values())
    scale = RATE_MBPS / trial.factors.get("rate_mbps", RATE_MBPS)
    return {
        "bbr_mbps": rates["bbr1"],
        "cubic_mbps": rates["cubic"],
        "bbr_share": rates["bbr1"] / total if total else None,
        "used_pct": 100 * total / (trial.factors.get("rate_mbps", RATE_MBPS) * take.payload_share(trial)),
        "bbr_retransmits": flows["bbr1"]["retransmits"],
        "cubic_retransmits": flows["cubic"]["retransmits"],
        "scaled_bytes": round(trial.factors["buffer_bytes"] * scale),
        **_over_time(trial),
    }


def _over_time(trial: Trial) -> Row:
    """BBR's smallest and largest share over 4 s, its largest window in BDP, and the buffer's overflows.

    Drops at least a second apart count as separate overflows. Empty for a run without samples.
    """
    found: Row = dict.fromkeys(("share_low", "share_high", "window_bdp", "overflows"))
    if trial.factors.get("linux") != _testbed.PAPERS:
        return found
    samples = take.samples(trial.run, after_s=_STRETCH_S)
    if not samples.height:
        return found
    stretch = (pl.col("time_s") / _STRETCH_S).floor().alias("stretch")
    grown = pl.col("delivered_bytes").max() - pl.col("delivered_bytes").min()
    bbr = pl.col("controller").str.starts_with("bbr")
    shares = (
        samples.group_by("flow", "controller", stretch)
        .agg(grown.alias("bytes"), pl.len().alias("samples"))
        .filter(pl.col("samples") == _STRETCH_S / _SAMPLE_S)
        .group_by("stretch")
        .agg((pl.col("bytes").filter(bbr).sum() / pl.col("bytes").sum()).alias("share"))
    )
    queue = take.link(trial.run).filter(pl.col("dropped_packets").diff() > 0)
    bdp_packets = take.bdp_bytes(trial.factors["rate_mbps"], _RTT_MS) / trial.spec["mtu_bytes"]
    return {
        "share_low": take.least(shares, "share"),
        "share_high": take.most(shares, "share"),
        "window_bdp": take.ratio(take.most(samples.filter(bbr), "cwnd_segments"), bdp_packets),
        "overflows": queue.filter((pl.col("time_s").diff() > 1).fill_null(True)).height,
    }


def at(data: Data, column: str, scaled_bytes: float) -> list[float]:
    """A column for one of the paper's buffers, one value per run; empty if it was not run."""
    return data.values(column, scaled_bytes=scaled_bytes)
