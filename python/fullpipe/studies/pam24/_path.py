"""The bottleneck of these claims."""

from collections.abc import Sequence
from typing import Any

RATE_MBPS, RTT_MS = 100, 50
BUFFERS_BDP = (1, 2, 8)
ABOUT = "bbr3"


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
