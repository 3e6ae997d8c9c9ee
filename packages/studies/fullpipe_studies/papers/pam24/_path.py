"""The bottleneck of these claims."""

import math
from collections.abc import Sequence
from typing import Any

from fullpipe_studies.claim import Data, number

RATE_MBPS, RTT_MS = 100, 50
BUFFERS_BDP = (1, 2, 8)
ABOUT = "bbr3"
# What the paper measured.
GOOGLES = "bbr3:profile=linux"
VARIANTS = (ABOUT, GOOGLES)


def document(
    flows: Sequence[dict[str, Any]], buffer_bdp: float, seconds: float, rtt_ms: float = RTT_MS
) -> dict[str, Any]:
    """A scenario: these flows over the bottleneck."""
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{RATE_MBPS} Mbit/s", "rtt": f"{rtt_ms} ms", "buffer": f"{buffer_bdp} bdp"},
        "flows": list(flows),
        "record": {"interval": "100 ms"},
    }


def reported(data: Data, column: str, whose: str) -> list[str]:
    """The shares beside or of the draft's and Google's BBRv3, buffer by buffer, in a sentence each."""
    facts = []
    for controller in VARIANTS:
        buffers = sorted(data.runs["buffer_bdp"].unique().to_list())
        shares = {size: data.mean(column, controller=controller, buffer_bdp=size) for size in buffers}
        listed = ", ".join(
            f"{number(share, 2)} with {size:g} BDP" for size, share in shares.items() if not math.isnan(share)
        )
        if listed:
            facts.append(f"{controller}: {whose} has a share of {listed}.")
    return facts
