"""A table of paths as CSV, with a heading: one row a path.

| column | |
|---|---|
| `name` | how the answer calls the path; by default the number of its row |
| `rate` or `rate_mbps` | the bottleneck's rate, with a unit or in Mbit/s |
| `rtt` or `rtt_ms` | the round-trip time of the empty path, with a unit or in milliseconds |
| `buffer` or `buffer_kb` | what fits into the queue, with a unit or in KB |
| `loss` or `loss_pct` | random loss, with `%` or as a number of per cent |
| `jitter` or `jitter_ms` | random extra delay |
| `queue`, `policer`, `flow_size` | as the options of the same names |
| `weight` | how much the path counts in the summary, e.g. its connections |

That is also the form for exports of measurements of real users, or of a time series database: one row for
each network or percentile, with its count as `weight`. Cells may be empty; what they do not say, the options
do.
"""

import csv
import io
import math

from fullpipe.advisor.sources import MOST_PATHS, Path, too_many
from fullpipe.errors import mistake

_UNITS = {
    "rate_mbps": ("rate", "Mbit/s"),
    "rtt_ms": ("rtt", "ms"),
    "buffer_kb": ("buffer", "KB"),
    "loss_pct": ("loss", "%"),
    "jitter_ms": ("jitter", "ms"),
}
_PLAIN = ("rate", "rtt", "buffer", "loss", "jitter", "queue", "policer", "flow_size")
_COLUMNS = ("name", "weight", *_PLAIN, *_UNITS)


def is_one(text: str) -> bool:
    """Whether a text's first line has a column of a path."""
    names = _names(text)
    return bool({"rate", "rtt", "rate_mbps", "rtt_ms"} & set(names))


def _names(text: str) -> list[str]:
    first = text.partition("\n")[0]
    try:
        return [one.strip().lower() for one in next(csv.reader([first]), [])]
    except csv.Error:
        return []


def read(text: str, file: str) -> list[Path]:
    """The paths of a table. Raises `ScenarioError` with the line of a mistake."""
    names = _names(text)
    for name in names:
        if name not in _COLUMNS:
            raise mistake(
                "from", f"{file}:1", f"columns among {', '.join(_COLUMNS)}; not {name[:40]!r}", "rename it"
            )
    if len(set(names)) < len(names):
        raise mistake("from", f"{file}:1", "each column once", "remove one of them")
    for name, (field, _) in _UNITS.items():
        if {name, field} <= set(names):
            raise mistake("from", f"{file}:1", f"either {field} or {name}; not both", "remove one of them")
    found: list[Path] = []
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
            if number == 1 or not any(cell.strip() for cell in row):
                continue
            if len(row) > len(names):
                raise mistake(
                    "from",
                    f"{file}:{number}",
                    f"at most {len(names)} cells; it has {len(row)}",
                    "remove some",
                )
            if len(found) >= MOST_PATHS:
                raise too_many(file)
            cells = {name: cell.strip() for name, cell in zip(names, row, strict=False) if cell.strip()}
            found.append(_path(cells, number, file))
    except csv.Error as error:
        raise mistake("from", file, f"CSV ({error})", "correct it") from None
    return found


def _path(cells: dict[str, str], number: int, file: str) -> Path:
    says = {name: cells[name] for name in _PLAIN if name in cells}
    for name, (field, unit) in _UNITS.items():
        if name in cells:
            _number(cells[name], name, number, file)
            says[field] = f"{cells[name]} {unit}"
    weight = _number(cells.get("weight", "1"), "weight", number, file)
    return Path(cells.get("name", f"row {number}"), says, weight)


def _number(text: str, name: str, line: int, file: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise mistake("from", f"{file}:{line}", f"a number from 0 in {name}; not {text[:40]!r}", "correct it")
    return value
