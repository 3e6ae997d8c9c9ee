"""Two NewReno flows with different round-trip times, as section 6.2 has them, with and without ECN."""

from typing import Any

import polars as pl

from fullpipe_studies import take
from fullpipe_studies.claim import Row, Trial
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench

# Category I has 100 ms; these are the RTTs of category II, of the range from 5 to 560 ms.
EQUAL = 100
RTTS_MS = (5, 20, 50, EQUAL, 200, 560)


def document(discipline: str, rtt_ms: int, seconds: int, ecn: bool) -> dict[str, Any]:
    """The two flows. The buffer is the BDP of the longer RTT (section 3.2)."""
    longest = max(rtt_ms, EQUAL)
    flows = [
        {"controller": "reno", "label": "one", "rtt": f"{EQUAL} ms"},
        {"controller": "reno", "label": "two", "rtt": f"{rtt_ms} ms"},
    ]
    buffer = f"{round(take.bdp_bytes(_bench.RATE_MBPS, longest))} B"
    return _bench.document(
        flows, discipline, seconds, rtt_ms=min(rtt_ms, EQUAL), buffer=buffer, ecn=ecn, interval_ms=50
    )


def measure(trial: Trial) -> Row:
    """The goodput of both, their ratio (section 6.3), and the loss of both."""
    one, two = (_bench.point(trial, name)["goodput_mbps"] for name in ("one", "two"))
    lost = [take.flow(trial.run, name)["loss_ratio"] for name in ("one", "two")]
    return {
        "goodput_mbps": one + two if one is not None and two is not None else None,
        "ratio": take.ratio(two, one),
        "retransmits": sum(take.flow(trial.run, name)["retransmits"] for name in ("one", "two")),
        "loss_one": lost[0],
        "loss_two": lost[1],
        **_bench.waits(trial),
    }


def ratios(frame: pl.DataFrame, title: str) -> Any:
    """The ratio of the goodputs against category II's RTT."""
    x = alt.X("rtt_ms:Q", title="RTT of category II, ms", scale=alt.Scale(type="log", domain=[5, 600]))
    y = alt.Y("ratio:Q", title="goodput of II divided by that of I", scale=alt.Scale(type="log"))
    return _bench.averages(frame.filter(pl.col("ratio") > 0), "rtt_ms", "ratio", x, y, title)
