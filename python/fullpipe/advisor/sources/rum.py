"""What browsers of real users measured: the names and units of the W3C's timing interfaces.

CSV with a heading, or JSON: a list of objects, or one in each line; an object in an object, such as
`connection`, counts as part of it. Names are those of Resource and Navigation Timing, of Network Information,
and two of our own. Other columns are left out.

| column | unit | what it becomes |
|---|---|---|
| `connectStart`, `connectEnd`, `secureConnectionStart` | ms | RTT: how long TCP or QUIC took to connect |
| `rtt` | ms | RTT of a row without a new connection; browsers round it to 25 ms |
| `responseStart`, `responseEnd`, `transferSize` | ms, bytes | rate of a response of at least 100 KB |
| `downlink` | Mbit/s | rate of a row without one; browsers round it to 25 kbit/s, and may cap it |
| `transferSize` | bytes | size of flows: half of the bytes are in flows of at least that size |
| `network` | | rows of the same network are one path |
| `weight` | | for how many views a row counts |

Rows without `network` are put together by round-trip time and rate, in steps of a factor of two. A path has
the median of its rows.
"""

import csv
import io
import math
import statistics
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fullpipe.advisor.sources import MOST_PATHS, Path, documents, too_many
from fullpipe.errors import mistake
from fullpipe.system.words import counted

# Names that no table of paths has; in lower case, as all of them are compared.
_OWN = frozenset({"connectstart", "responsestart", "responseend", "transfersize", "downlink"})
# A shorter response says more about the start of a connection than about the path.
_ENOUGH_BYTES = 100_000
# Slower or faster is a mistake of the clock.
_MOST_RTT_MS, _MOST_BPS = 60_000.0, 1e12
_MOST_DIGITS = 40
_EXPECTED = "JSON objects with names of the timing interfaces, in a list or one in each line"


def _floats() -> "array[float]":
    return array("d")


@dataclass
class _Rows:
    """What the rows of one path say."""

    rows: int = 0
    weight: float = 0.0
    # A quarter of the memory of lists: an export may have millions of rows.
    rtts_ms: "array[float]" = field(default_factory=_floats)
    rates_bps: "array[float]" = field(default_factory=_floats)
    sizes: "array[float]" = field(default_factory=_floats)


def is_one(text: str) -> bool:
    """Whether it has names of the timing interfaces in its heading, or in its first objects."""
    head = text[:65_536].lstrip()
    if head[:1] in ("{", "["):
        low = head.lower()
        return any(f'"{name}"' in low for name in _OWN)
    return bool(_OWN & set(_heading(head.partition("\n")[0])))


def read(text: str, file: str) -> list[Path]:
    """The paths of an export. Raises `ScenarioError` if no row says anything."""
    rows = _of_json(text, file) if text.lstrip()[:1] in ("{", "[") else _of_csv(text, file)
    paths: dict[str, _Rows] = {}
    silent = 0
    for row in rows:
        rtt_ms, rate_bps = _rtt_ms(row), _rate_bps(row)
        size = _number(row.get("transfersize"))
        if rtt_ms is None and rate_bps is None:
            silent += 1
            continue
        name = row.get("network")
        own = paths.setdefault(str(name) if name not in (None, "") else _bin(rtt_ms, rate_bps), _Rows())
        if len(paths) > MOST_PATHS:
            raise too_many(file)
        weight = _number(row.get("weight"))
        own.rows += 1
        own.weight += 1.0 if weight is None else weight
        for values, value in ((own.rtts_ms, rtt_ms), (own.rates_bps, rate_bps), (own.sizes, size)):
            if value:
                values.append(value)
    if not paths:
        what = "a row with a new connection, a response of 100 KB, rtt or downlink"
        raise mistake(
            "from", file, f"{what}; there is none in {counted(silent, 'row')}", "see docs/advisor.md"
        )
    return [_path(name, own, silent) for name, own in paths.items()]


def _path(name: str, own: _Rows, silent: int) -> Path:
    says = {}
    if own.rates_bps:
        says["rate"] = f"{statistics.median(own.rates_bps):.0f} bit/s"
    if own.rtts_ms:
        says["rtt"] = f"{max(1.0, statistics.median(own.rtts_ms) * 1e3):.0f} us"
    if own.sizes:
        says["flow_size"] = f"{_half(own.sizes):.0f} B"
    notes = [counted(own.rows, "row")]
    if own.rates_bps:
        notes.append("its rate is what browsers saw, and the path may be faster")
    if silent:
        notes.append(f"{counted(silent, 'row')} of the source say neither a rate nor a round-trip time")
    return Path(name, says, own.weight, tuple(notes))


def _half(sizes: "array[float]") -> float:
    """The size for which flows of at least that size have half of the bytes."""
    seen, half = 0.0, math.fsum(sizes) / 2
    for size in sorted(sizes, reverse=True):
        seen += size
        if seen >= half:
            return size
    return max(sizes)


def _rtt_ms(row: Mapping[str, Any]) -> float | None:
    start, end = _number(row.get("connectstart")), _number(row.get("connectend"))
    secure = _number(row.get("secureconnectionstart"))
    if start is not None:
        # TLS begins when TCP is connected; QUIC begins with TLS. A connection that was there took no time.
        until = secure if secure is not None and secure > start else end
        if until is not None and 0 < until - start <= _MOST_RTT_MS:
            return until - start
    rtt_ms = _number(row.get("rtt"))
    return rtt_ms if rtt_ms is not None and 0 < rtt_ms <= _MOST_RTT_MS else None


def _rate_bps(row: Mapping[str, Any]) -> float | None:
    start, end = _number(row.get("responsestart")), _number(row.get("responseend"))
    size = _number(row.get("transfersize"))
    if start is not None and end is not None and end > start and size is not None and size >= _ENOUGH_BYTES:
        rate_bps = size * 8e3 / (end - start)
    else:
        rate_bps = (_number(row.get("downlink")) or 0.0) * 1e6
    return rate_bps if 1.0 <= rate_bps <= _MOST_BPS else None


def _bin(rtt_ms: float | None, rate_bps: float | None) -> str:
    """The name of the factor of two that a row is in."""
    said = []
    for value, scale, unit in ((rtt_ms, 1.0, "ms"), (rate_bps, 1e6, "Mbit/s")):
        if value is not None:
            low = 2.0 ** math.floor(math.log2(value / scale))
            said.append(f"{low:.3g}..{2 * low:.3g} {unit}")
    return ", ".join(said)


def _of_csv(text: str, file: str) -> Iterator[dict[str, Any]]:
    try:
        rows = csv.reader(io.StringIO(text))
        names = [one.strip().lower() for one in next(rows, [])]
        for row in rows:
            yield dict(zip(names, row, strict=False))
    except csv.Error as error:
        raise mistake("from", file, f"CSV ({error})", "correct it") from None


def _of_json(text: str, file: str) -> Iterator[dict[str, Any]]:
    for document in documents(text, file, _EXPECTED):
        for one in document if isinstance(document, list) else [document]:
            if not isinstance(one, dict):
                raise mistake("from", file, _EXPECTED, "export objects")
            row: dict[str, Any] = {}
            for name, value in one.items():
                if isinstance(value, dict):
                    row |= {inner.lower(): deep for inner, deep in value.items()}
                else:
                    row[name.lower()] = value
            yield row


def _heading(line: str) -> list[str]:
    try:
        return [one.strip().lower() for one in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _number(given: Any) -> float | None:
    """A cell's value if it is a number from zero."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    if isinstance(given, str) and len(given) > _MOST_DIGITS:
        return None
    try:
        value = float(given)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and 0 <= value < 1e15 else None
