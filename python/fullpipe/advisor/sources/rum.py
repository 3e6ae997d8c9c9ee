"""What browsers of real users measured: the names and units of the W3C's timing interfaces.

CSV with a heading, and cells separated as in a table, or JSON: a list of objects, or one in each line; an
object in an object, such as `connection`, counts as part of it. Names are those of Resource and Navigation
Timing, of Network Information, and two of our own. Other columns are left out.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fullpipe.advisor.sources.source import MOST_PATHS, Path, documents, too_many
from fullpipe.advisor.sources.table import DELIMITERS, DIRECTIVE, Numerals
from fullpipe.errors import mistake
from fullpipe.text import counted, shown

# Names that no table of paths has; in lower case, as all of them are compared.
_OWN = frozenset({"connectstart", "responsestart", "responseend", "transfersize", "downlink"})
_NUMERIC = _OWN | {"connectend", "secureconnectionstart", "rtt", "weight"}
# The heading is within so many characters.
_HEAD = 65_536
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
    zero_rtt: bool = False  # Whether a row has the rounded round-trip time 0.


def is_one(text: str) -> bool:
    """Whether it has names of the timing interfaces in its heading, or in its first objects."""
    head = text[:_HEAD].lstrip()
    if head[:1] in ("{", "["):
        low = head.lower()
        return any(f'"{name}"' in low for name in _OWN)
    return bool(_OWN & set(_layout(text)[2]))


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
        own.zero_rtt |= rtt_ms is None and _number(row.get("rtt")) == 0
        for values, value in ((own.rtts_ms, rtt_ms), (own.rates_bps, rate_bps), (own.sizes, size)):
            if value:
                values.append(value)
    if not paths:
        what = "a row with a new connection, a response of 100 KB, rtt or downlink"
        raise mistake(
            "from", file, f"{what}; there is none in {counted(silent, 'row')}", "see docs/how-to/advisor.md"
        )
    return [_path(name, own, silent) for name, own in paths.items()]


def _path(name: str, own: _Rows, silent: int) -> Path:
    says, caveats = {}, {}
    if own.rates_bps:
        says["rate"] = f"{statistics.median(own.rates_bps):.0f} bit/s"
    if own.rtts_ms:
        says["rtt"] = f"{max(1.0, statistics.median(own.rtts_ms) * 1e3):.0f} us"
    elif own.zero_rtt:
        caveats["rtt"] = "it is 0 in the source, because browsers round it to 25 ms"
    if own.sizes:
        says["flow_size"] = f"{_half(own.sizes):.0f} B"
    notes = [counted(own.rows, "row")]
    if silent:
        notes.append(f"{counted(silent, 'row')} of the source say neither a rate nor a round-trip time")
    seen = "its rate is what browsers saw, and the path may be faster"
    return Path(name, says, own.weight, tuple(notes), (), caveats, {seen: ("rate",)})


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
    message = []
    for value, scale, unit in ((rtt_ms, 1.0, "ms"), (rate_bps, 1e6, "Mbit/s")):
        if value is not None:
            low = 2.0 ** math.floor(math.log2(value / scale))
            message.append(f"{low:.3g}..{2 * low:.3g} {unit}")
    return ", ".join(message)


def _layout(text: str) -> tuple[int, str, list[str]]:
    """Where the heading begins, what is between cells, and the heading's names."""
    directive = DIRECTIVE.match(text[:_HEAD])
    begins = directive.end() if directive else 0
    # A tab may be a first cell without a name.
    begins += len(text[begins : begins + _HEAD]) - len(text[begins : begins + _HEAD].lstrip(" \r\n"))
    line = text[begins : begins + _HEAD].partition("\n")[0]
    found = [(one, _heading(line, one)) for one in ((directive[1],) if directive else DELIMITERS)]
    delimiter, names = max(found, key=lambda one: len(_OWN & set(one[1])))
    return begins, delimiter, names


def _of_csv(text: str, file: str) -> Iterator[dict[str, Any]]:
    begins, delimiter, names = _layout(text)
    # Between commas, numbers have points.
    numerals = None if delimiter == "," else _numerals(_rows(text, begins, delimiter, file), names)
    for number, row in _rows(text, begins, delimiter, file):
        found: dict[str, Any] = dict(zip(names, row, strict=False))
        if numerals is not None:
            for name in found.keys() & _NUMERIC:
                try:
                    found[name] = numerals.plain(found[name])
                except ValueError as error:
                    # Without a fix it is no number, as in other exports.
                    if error.args[1:]:
                        given = f"{name} {shown(found[name], _MOST_DIGITS)}"
                        expected = f"{error.args[0]}; it is {given}"
                        raise mistake("from", f"{file}:{number}", expected, error.args[1]) from None
        yield found


def _numerals(rows: Iterable[tuple[int, list[str]]], names: Sequence[str]) -> Numerals | None:
    """How the numbers of these rows are written; None if all of them have points."""
    numerals, commas = Numerals(), False
    places = [at for at, name in enumerate(names) if name in _NUMERIC]
    for _, row in rows:
        for at in places:
            if at < len(row) and ("," in row[at] or "." in row[at]):
                numerals.learn(row[at])
                commas = commas or "," in row[at]
    return numerals if commas else None


def _rows(text: str, begins: int, delimiter: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """The rows below the heading, with their numbers in the file."""
    first = text.count("\n", 0, begins) + 2
    try:
        rows = csv.reader(io.StringIO(text[begins:]), delimiter=delimiter)
        next(rows, [])
        yield from enumerate(rows, first)
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


def _heading(line: str, delimiter: str) -> list[str]:
    try:
        return [one.strip().lower() for one in next(csv.reader([line], delimiter=delimiter), [])]
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
