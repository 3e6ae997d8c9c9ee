"""The result of `iperf3 -J`: rate and round-trip time of the path that it measured.

The rate is what was received. The round-trip time is the smallest that the sender saw, which needs iperf3
3.1 and a sender on Linux; without it, the user has to say. The number of retransmitted segments is a note.
"""

import json
import math
from typing import Any

from fullpipe.advisor.sources import Path
from fullpipe.errors import mistake


def is_one(text: str) -> bool:
    """Whether it is JSON with what iperf3 writes."""
    head = text.lstrip()[:4096]
    # Its version stands behind a line for each parallel stream.
    return head.startswith("{") and '"start"' in head and ('"connected"' in head or "iperf" in text[:8192])


def read(text: str, file: str) -> list[Path]:
    """The path, or none if the test was not over TCP or did not end."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise mistake("from", file, "JSON as `iperf3 -J` writes it", "run iperf3 again") from None
    if isinstance(error := _at(said, "error"), str):
        raise mistake("from", file, f"a test that ended; iperf3 says {error[:80]!r}", "run iperf3 again")
    rate = _number(_at(said, "end", "sum_received", "bits_per_second"))
    if rate is None or rate <= 0:
        raise mistake(
            "from", file, "a result with end.sum_received.bits_per_second", "run iperf3 -J over TCP"
        )
    says = {"rate": f"{rate:.0f} bit/s"}
    streams = _at(said, "end", "streams")
    senders = [_at(one, "sender") for one in streams] if isinstance(streams, list) else []
    rtts = [value for one in senders if (value := _number(_at(one, "min_rtt"))) is not None and value > 0]
    notes = []
    if rtts:
        says["rtt"] = f"{min(rtts):.0f} us"
    else:
        notes.append("it has no round-trip time: give --rtt")
    resent = _number(_at(said, "end", "sum_sent", "retransmits"))
    if resent is not None:
        notes.append(f"{resent:.0f} segments were sent again")
    host = _at(said, "start", "connecting_to", "host")
    return [Path(host if isinstance(host, str) else "iperf3", says, 1.0, tuple(notes))]


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A whole number may be larger than any float.
    return float(value) if abs(value) < 1e18 and math.isfinite(value) else None
