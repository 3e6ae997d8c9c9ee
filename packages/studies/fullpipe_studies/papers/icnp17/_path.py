"""The bottleneck of these claims."""

from collections.abc import Sequence
from typing import Any

RATE_MBPS, RTT_MS = 1000, 20
# The rate in worlds that take wall time.
SLOW_MBPS = 100
SHALLOW_BDP, DEEP_BDP = 0.8, 8
AFTER_S = 20
SAID = (
    "On the one hand, the intended behavior of BBR could be observed with our experiments. On the other "
    "hand, some severe inherent issues such as increased queuing delays, unfairness, and massive packet loss "
    "were also detected."
)


def document(
    flows: Sequence[dict[str, Any]],
    *,
    rate_mbps: float = RATE_MBPS,
    buffer_bdp: float,
    seconds: float,
    rtt_ms: float = RTT_MS,
    interval_ms: float = 20,
) -> dict[str, Any]:
    """A scenario: these flows over the bottleneck."""
    return {
        "duration": f"{seconds} s",
        "path": {"rate": f"{rate_mbps} Mbit/s", "rtt": f"{rtt_ms} ms", "buffer": f"{buffer_bdp} bdp"},
        "flows": list(flows),
        "record": {"interval": f"{interval_ms} ms"},
    }


def after(seconds: float) -> float:
    """When measurements begin."""
    return min(AFTER_S, seconds / 3)
