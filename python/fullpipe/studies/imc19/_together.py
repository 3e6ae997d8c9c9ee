"""BBR and CUBIC on one bottleneck of 1 Gbit/s, 20 ms (section 4.3), for figure 8(a) and table 1.

Hosts of Mininet have no interfaces of a rate; Linux is 4.15 (`_testbed`). In the kernel world, which cannot
carry 1 Gbit/s, rate and buffers are a tenth; `scaled_bytes` is the buffer that the paper's bottleneck would
have.
"""

from typing import Any

from fullpipe.studies import take
from fullpipe.studies.claim import Data, Grid, Row, Trial
from fullpipe.studies.imc19 import _testbed

RATE_MBPS = 1000
# Those of table 1, of which the fifth is printed as 1e6 once more and means 1e7.
TABLE_BYTES = (10_000, 100_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000, 100_000_000)


def flows(setup: str) -> list[dict[str, Any]]:
    """One of each, BBR as the set-up's Linux has it."""
    return [{"controller": _testbed.controller(setup, name)} for name in ("bbr1", "cubic")]


def _document(rate_mbps: int, buffer_bytes: int, seconds: int, setup: str) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{rate_mbps} Mbit/s", "rtt": "20 ms", "buffer": f"{buffer_bytes} B"},
        "flows": flows(setup),
        "record": {"series": False},
    }


def grid(buffers_bytes: tuple[int, ...]) -> Grid:
    """Both flows on the bottleneck, with each of the buffers."""
    return Grid(
        factors={
            "rate_mbps": (RATE_MBPS,),
            "buffer_bytes": buffers_bytes,
            "seconds": (60,),
            "setup": (_testbed.TESTBED,),
        },
        quick={"buffer_bytes": TABLE_BYTES, "seconds": (30,)},
        tiny={"buffer_bytes": (100_000, 10_000_000), "seconds": (2,)},
        kernel={
            "rate_mbps": (100,),
            "seconds": (30,),
            "buffer_bytes": (10_000, 100_000, 500_000, 1_000_000, 5_000_000),
            "setup": (_testbed.LINK,),
        },
        document=_document,
    )


def measure(trial: Trial) -> Row:
    """Goodputs, BBR's share of their sum, and what each sent again."""
    flows = {name: take.flow(trial.run, controller=name) for name in ("bbr1", "cubic")}
    rates = {name: float(flow["goodput_bps"] or 0.0) / 1e6 for name, flow in flows.items()}
    total = sum(rates.values())
    scale = RATE_MBPS / trial.factors.get("rate_mbps", RATE_MBPS)
    return {
        "bbr_mbps": rates["bbr1"],
        "cubic_mbps": rates["cubic"],
        "bbr_share": rates["bbr1"] / total if total else None,
        "bbr_retransmits": flows["bbr1"]["retransmits"],
        "cubic_retransmits": flows["cubic"]["retransmits"],
        "scaled_bytes": round(trial.factors["buffer_bytes"] * scale),
    }


def at(data: Data, column: str, scaled_bytes: float) -> list[float]:
    """A column at a buffer of the paper's, a value a run; none where it was not run."""
    return data.values(column, scaled_bytes=scaled_bytes)
