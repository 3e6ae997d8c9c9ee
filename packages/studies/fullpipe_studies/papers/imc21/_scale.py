"""The two bottlenecks: the core and the edge of the network."""

from collections.abc import Sequence
from typing import Any

CORE, EDGE = "core", "edge"
# Rate, buffer, and what one of the "flows" of a grid stands for.
_PATH = {CORE: ("10 Gbit/s", "375 MB", 100), EDGE: ("100 Mbit/s", "3 MB", 1)}
# Numbers of flows at the edge; at the core there are a hundred times as many, and so much the rate is higher.
FLOWS = (10, 50)
RTTS_MS = (20, 100)
# Flows have left slow start and lost their first packets by then.
_WARM = 1 / 3
_SAMPLES = 60


def count(scale: str, flows: int) -> int:
    """The number of flows at that scale."""
    return flows * _PATH[scale][2]


def document(scale: str, flows: Sequence[dict[str, Any]], rtt_ms: float, seconds: float) -> dict[str, Any]:
    """A scenario: these flows, which start within a second, at that scale."""
    rate, buffer, _ = _PATH[scale]
    return {
        "duration": f"{seconds} s",
        "path": {"rate": rate, "rtt": f"{rtt_ms} ms", "buffer": buffer},
        "flows": [{"start_jitter": "1 s", **flow} for flow in flows],
        "record": {"interval": f"{seconds / _SAMPLES} s"},
    }


def begin(seconds: float) -> float:
    """When measurements begin."""
    return float(seconds) * _WARM
