"""The delivery trace of `scenarios/cellular.toml`, made by the formula in that file.

An installed Fullpipe comes without the scenarios, so the trace is made here. A test compares it with the
file.
"""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from fullpipe import files
from fullpipe.errors import OutputError

_LENGTH_MS, _PERIOD_MS, _OUTAGE_EVERY_MS, _OUTAGE_MS = 30_000, 7_500, 10_000, 100
_OPPORTUNITY = 75_000  # Of credit, for 1500 bytes.


def opportunities_ms() -> list[int]:
    """When the link can deliver a packet: between 1.2 and 14.4 Mbit/s, with an outage every 10 s."""
    times, credit = [], 0
    for now in range(1, _LENGTH_MS + 1):
        within = now % _OUTAGE_EVERY_MS
        if within <= _OUTAGE_MS or within >= _OUTAGE_EVERY_MS - _OUTAGE_MS:
            continue
        phase = now % _PERIOD_MS
        credit += 7500 + 22 * min(phase, _PERIOD_MS - phase)
        while credit >= _OPPORTUNITY:
            credit -= _OPPORTUNITY
            times.append(now)
    return times


@cache
def file() -> str:
    """The trace as a file, which is removed when the process ends."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="fullpipe-deliveries-"))
    except OSError as error:
        why = error.strerror or str(error)
        fix = "free space in /tmp, or let TMPDIR name a folder with room"
        raise OutputError(f"cannot write a temporary file: {why}; {fix}") from None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    text = "".join(f"{time}\n" for time in opportunities_ms())
    return str(files.write(folder, "cellular-synthetic.deliveries", text.encode("ascii")))


def mean_mbps() -> float:
    """The trace's mean rate: it repeats after its last opportunity."""
    times = opportunities_ms()
    return len(times) * 1500 * 8 / 1e3 / times[-1]
