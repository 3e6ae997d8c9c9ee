"""A table of paths as CSV, with a heading: one row a path.

| column | |
|---|---|
| `name` | how the answer calls the path; by default the number of its row |
| `rate` | the bottleneck's rate |
| `rtt` | the round-trip time of the empty path |
| `buffer` | what fits into the queue |
| `loss` | random loss |
| `jitter` | random extra delay |
| `queue`, `policer`, `flow_size` | as the options of the same names |
| `weight` | how much the path counts in the summary, e.g. its connections |

Clear synonyms of a name are read, too. A unit is in the cell (`50 Mbit/s`) or in the heading (`rate_mbps`,
`Rate (Mbit/s)`, `rtt [ms]`). Cells are separated by commas, semicolons or tabs, or as a first line `sep=;`
says. Numbers may have a decimal comma, and thousands separators that cannot be one. A range stands for all
of its values. Cells may be empty: options give what they do not contain. Other columns are a note.

That is also the form for exports of measurements of real users, or of a time series database: one row for
each network or percentile, with its count as `weight`.
"""

import contextlib
import csv
import difflib
import functools
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe._native import ScenarioError
from fullpipe.advisor.question import QUANTITIES, Question, parsed
from fullpipe.advisor.sources.source import MOST_PATHS, Path, Paths, too_many
from fullpipe.errors import mistake, placed
from fullpipe.scenario.path_fields import Range
from fullpipe.text import joined, shown

# The names of each column, in lower case with single underscores; errors suggest the first.
_NAMES: Mapping[str, Sequence[str]] = {
    "name": (
        "name",
        "path",
        "site",
        "host",
        "hostname",
        "location",
        "label",
        "network",
        "peer",
        "destination",
    ),
    "rate": (
        *(
            "rate",
            "bandwidth",
            "bw",
            "speed",
            "link_speed",
            "line_speed",
            "link_rate",
            "line_rate",
            "capacity",
        ),
        *("throughput", "goodput"),
        *(
            "down",
            "download",
            "downstream",
            "download_speed",
            "down_speed",
            "download_rate",
            "dl",
            "downlink_speed",
        ),
        *(
            "up",
            "upload",
            "upstream",
            "upload_speed",
            "up_speed",
            "upload_rate",
            "ul",
            "uplink",
            "uplink_speed",
        ),
    ),
    "rtt": (
        *("rtt", "min_rtt", "minrtt", "rtt_min", "base_rtt", "round_trip", "round_trip_time", "roundtrip"),
        *("ping", "ping_time", "latency"),
    ),
    "buffer": ("buffer", "buffer_size", "queue_size", "queue_limit"),
    "loss": ("loss", "packet_loss", "loss_rate", "plr"),
    "jitter": ("jitter",),
    "queue": ("queue", "qdisc", "aqm"),
    "policer": ("policer",),
    "flow_size": ("flow_size", "flowsize", "file_size", "filesize"),
    "weight": ("weight", "count", "connections", "users", "samples"),
}
_FIELDS = {name: column for column, names in _NAMES.items() for name in names}
# An export may have both directions.
_DOWN = frozenset(name for name in _NAMES["rate"] if name.startswith("down") or name == "dl")
_UP = frozenset(name for name in _NAMES["rate"] if name.startswith("up") or name == "ul")
# What was measured may be less than what the path carries.
_MEASURED = frozenset({"throughput", "goodput"})
# Units that only headings have, and shorter forms of others; a fraction has none.
_UNITS = {"pct": "%", "ratio": "", "fraction": "", "kbps": "kbit/s", "mbps": "Mbit/s", "gbps": "Gbit/s"}
_UNITS |= {"Mbps": "Mbit/s", "Gbps": "Gbit/s"}
_EXAMPLES = {"rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "200 KB", "loss": "0.1 %", "jitter": "5 ms"}
_EXAMPLES |= {"flow_size": "1 MB"}
_NUMERIC = _EXAMPLES.keys() | {"policer", "weight"}
_ONE_VALUE = "one value; ranges are possible for the rate, RTT, buffer, loss and jitter"
_FORM = "write it as rows below a heading, e.g. name,rate_mbps,rtt_ms"
_WITH_UNIT = {"rate": "rate_mbps", "rtt": "rtt_ms", "loss": "loss_pct", "jitter": "jitter_ms"}
# What programs write for a value that is missing.
MISSING = frozenset({"", "-", "–", "—", "?", ".", "na", "n/a", "#n/a", "nan", "null", "none", "nil"})
DELIMITERS = (",", ";", "\t", "|")
# The heading is within so many characters, and no table of paths is wider.
_HEAD, _MOST_COLUMNS = 65_536, 1_000
# The heading is one of so many first rows that are not empty.
_TITLES = 5
_SHOWN, _MOST_SHOWN = 40, 5
_VALUE = re.compile(r"(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)(.*)", re.ASCII | re.DOTALL)
_MOST_HEADING = 100
_BRACKET = re.compile(r"([^(\[]*)[(\[]([^()\[\]]*)[)\]]")
_WORDS = re.compile(r"[\s_/,:-]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_JSON = re.compile(r'"(?:rate|rtt|latency|bandwidth|ping|speed)', re.IGNORECASE)
_RULE = re.compile(r":?-+:?")
DIRECTIVE = re.compile(r'\s*"?sep=([^\w\s"]|\t)"?[ \t]*(?:\r?\n|\Z)', re.IGNORECASE)
# Spaces, apostrophes and minus signs of spreadsheets.
PLAIN = str.maketrans("\u00a0\u2009\u202f\u2019\u2212", "   '-")
_NUMERAL = re.compile(r"\d+(?:[.,' ]\d+)*", re.ASCII)
_GROUPED = re.compile(r"\d{1,3}(?:[ ']\d{3})+(?:[.,]\d+)?", re.ASCII)
_ENGLISH = re.compile(r"\d{1,3}(?:,\d{3})+\.\d+", re.ASCII)
_EUROPEAN = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+", re.ASCII)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:(?:\.\d{3}){2,}|(?:,\d{3}){2,})", re.ASCII)
# One thousand and some, or one and some thousandths.
_EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}", re.ASCII)


@dataclass(frozen=True)
class _Column:
    """A column that a path has."""

    heading: str
    name: str  # One of the names in `_NAMES`.
    field: str
    unit: str | None  # Of cells without one; None if each needs its own.


class Numerals:
    """How a file writes numbers: whether commas and points are decimal, from the numbers that are clear."""

    def __init__(self) -> None:
        self._comma = self._point = False

    def learn(self, cell: str) -> None:
        """Takes a cell as an example."""
        for number in _NUMERAL.findall(cell):
            if _EITHER.fullmatch(number):
                continue
            last = number[max(number.rfind(","), number.rfind("."))]
            if _THOUSANDS.fullmatch(number):
                last = "," if last == "." else "."
            self._comma |= last == ","
            self._point |= last == "."

    def plain(self, cell: str) -> str:
        """The cell with a point in its numbers and no separators of thousands. Raises `ValueError`."""
        return _NUMERAL.sub(lambda found: self._number(found[0]), cell)

    def _number(self, number: str) -> str:
        if number.isdigit():
            return number
        if " " in number or "'" in number:
            if not _GROUPED.fullmatch(number):
                raise ValueError("one number")
            return number.replace(" ", "").replace("'", "").replace(",", ".")
        if _ENGLISH.fullmatch(number):
            return number.replace(",", "")
        if _EUROPEAN.fullmatch(number):
            return number.replace(".", "").replace(",", ".")
        if _THOUSANDS.fullmatch(number):
            return number.replace(".", "").replace(",", "")
        if number.count(".") + number.count(",") > 1:
            raise ValueError("a number such as 1234.5")
        if _EITHER.fullmatch(number):
            return self._either(number)
        return number.replace(",", ".")

    def _either(self, number: str) -> str:
        """Such as 1,234: the other numbers of the file decide. 1.234 is usual unless they have commas."""
        comma = "," in number
        if comma and self._point and not self._comma:
            return number.replace(",", "")
        if not comma and self._comma and not self._point:
            return number.replace(".", "")
        if (comma and self._comma and not self._point) or (not comma and not self._comma):
            return number.replace(",", ".")
        whole, _, rest = number.replace(",", ".").partition(".")
        raise ValueError(
            "a number without separators of thousands", f"write {whole}{rest} or {whole}.{rest}0"
        )


@dataclass(frozen=True)
class _Layout:
    """Where the heading is, what is between cells, and the heading and the next row."""

    begins: int  # Of the table in the text, in characters.
    row: int
    delimiter: str
    heading: list[str]
    second: list[str]

    @property
    def known(self) -> int:
        """How many columns of a path the heading has."""
        return sum(_column(one) is not None for one in self.heading[:_MOST_COLUMNS])


def is_one(text: str) -> bool:
    """Whether its heading has columns of a path, or it is another form of a table, which `read` names."""
    head = text[:_HEAD].lstrip()
    if head[:1] in ("{", "["):
        return _JSON.search(head) is not None
    layout = _layout(text)
    fields = {column.field for one in layout.heading if (column := _column(one)) is not None}
    even = len(layout.second) == len(layout.heading) > 1
    return bool(fields & _EXAMPLES.keys()) or even or _is_spaced(head)


def read(text: str, file: str) -> Paths:
    """The paths of a table. Raises `ScenarioError` with the row and column of a mistake."""
    head = text[:_HEAD].lstrip()
    if head[:1] in ("{", "["):
        raise mistake("from", file, "a table of paths as CSV; it is JSON", _FORM)
    layout = _layout(text)
    if not layout.known and _is_spaced(head):
        raise mistake("from", file, "cells between commas, semicolons or tabs; there are spaces", _FORM)
    columns, notes = _columns(layout, file)
    rows = list(_rows(text, layout, columns, file))
    numerals = Numerals()
    for _, cells in rows:
        for column, cell in cells.items():
            if column.field in _NUMERIC:
                numerals.learn(cell.translate(PLAIN))
    return Paths([_path(cells, numerals, number, file) for number, cells in rows], notes)


def _path(cells: Mapping[_Column, str], numerals: Numerals, row: int, file: str) -> Path:
    says: dict[str, str] = {}
    name, weight, notes = f"row {row}", 1.0, []
    for column, cell in cells.items():
        if column.field == "name":
            name = cell
            continue
        try:
            value = _value(column, numerals.plain(cell.translate(PLAIN)))
        except ValueError as error:
            raise _wrong(column, cell, error.args, file, row) from None
        if column.field == "weight":
            weight = float(value)
            continue
        says[column.field] = value
        if column.field == "loss" and not value.endswith(("%", "percent")) and value.strip("0."):
            notes.append(f"loss {value} without a unit is a fraction; for per cent write {value} %")
    return Path(name, says, weight, tuple(notes))


def _layout(text: str) -> _Layout:
    """The layout with which most columns are known."""
    directive = DIRECTIVE.match(text[:_HEAD])
    begins = directive.end() if directive else 0
    first = text.count("\n", 0, begins) + 1
    found = []
    for delimiter in (directive[1],) if directive else DELIMITERS:
        rows = csv.reader(io.StringIO(text[begins : begins + _HEAD], newline=None), delimiter=delimiter)
        try:
            filled = [(at, cells) for at, row in enumerate(rows, first) if (cells := _trimmed(row))][:_TITLES]
        except csv.Error:
            continue
        for (at, heading), (_, second) in zip(filled, [*filled[1:], (0, [])], strict=False):
            found.append(_Layout(begins, at, delimiter, heading, second))
    # The first of equal ones: titles may precede the heading, and rows follow it.
    return max(
        found, key=lambda one: (one.known, len(one.heading)), default=_Layout(begins, first, ",", [], [])
    )


def _is_spaced(head: str) -> bool:
    """Whether the columns of the first line are separated by spaces."""
    words = head.partition("\n")[0].split()[:_MOST_COLUMNS]
    return sum(_column(word) is not None for word in words) > 1


def _trimmed(row: list[str]) -> list[str]:
    """The cells without empty ones at the end."""
    cells = [cell.strip() for cell in row]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _columns(layout: _Layout, file: str) -> tuple[dict[int, _Column], list[str]]:
    """The columns of a path by their places, and notes about them and the others."""
    heading, place = layout.heading, f"{file}:{layout.row}"
    if len(heading) > _MOST_COLUMNS:
        raise mistake("from", place, f"a table of at most {_MOST_COLUMNS} columns", "remove some")
    known = {at: column for at, one in enumerate(heading) if (column := _column(one)) is not None}
    others = [one for at, one in enumerate(heading) if at not in known and not _is_index(one)]
    for one in others:
        bracket = _BRACKET.fullmatch(one)
        field = _FIELDS.get(_normal(bracket[1])) if bracket else None
        if field in _WITH_UNIT:
            expected = f"a unit of the {field} in {shown(one, _SHOWN)}"
            raise mistake("from", place, expected, f"name it e.g. {_WITH_UNIT[field]}")
    if not known:
        names = ", ".join(names[0] for names in _NAMES.values())
        expected = f"a heading with columns of a path ({names}); it has {_listed(heading)}"
        raise mistake("from", place, expected, _near(heading) or "name them e.g. rate_mbps and rtt_ms")
    notes = []
    if any(column.name in _DOWN for column in known.values()):
        for at in [at for at, column in known.items() if column.name in _UP]:
            dropped = shown(known.pop(at).heading, _SHOWN)
            notes.append(f"column {dropped} is not used, because the rate is that of the download")
    for field in _NAMES:
        places = [at for at, column in known.items() if column.field == field]
        # The usual name first: an export may have several that could be one.
        places.sort(key=lambda at: _NAMES[known[at].field].index(known[at].name))
        if len(places) > 1 and field not in ("name", "weight"):
            one, other = (shown(known[at].heading, _SHOWN) for at in sorted(places)[:2])
            expected = "each column once" if one == other else f"either {one} or {other}; not both"
            raise mistake("from", place, expected, "remove one of them")
        others += [known.pop(at).heading for at in places[1:]]
    if _is_index(heading[0]) and all(column.field != "name" for column in known.values()):
        known[0] = _Column(heading[0], "name", "name", None)
    if others:
        near = _near(others)
        notes.append(f"columns not used: {_listed(others)}" + (f" ({near})" if near else ""))
    for column in known.values():
        title = shown(column.heading, _SHOWN)
        if column.name in _MEASURED:
            notes.append(f"column {title} is used as the rate: the path may be faster")
        if column.name == "latency":
            notes.append(f"column {title} is used as the round-trip time")
    return known, notes


def _listed(headings: Sequence[str]) -> str:
    """The first few of these headings."""
    names = [shown(one, _SHOWN) or "one without a name" for one in headings[:_MOST_SHOWN]]
    more = len(headings) - len(names)
    return joined([*names, f"{more} more"] if more else names)


def _column(heading: str) -> _Column | None:
    """What a heading such as `rate_mbps`, `Rate (Mbit/s)`, `rtt [ms]` or `downMbps` is; None if unknown."""
    text = " ".join(heading.translate(PLAIN).split())[:_MOST_HEADING].strip("\"'*` ")
    if not any(letter.islower() for letter in text):
        # In capitals MBPS could be bits or bytes, but here all letters are capitals.
        text = text.lower()
    bracket = _BRACKET.fullmatch(text)
    if bracket:
        field = _FIELDS.get(_normal(bracket[1]))
        unit = None if field is None else _unit(field, bracket[2])
        if field is not None and unit is not None:
            return _Column(heading, _normal(bracket[1]), field, unit)
        text = f"{bracket[1]} {bracket[2]}"
    for form in (text, _CAMEL.sub(" ", text)):
        words = _WORDS.split(form.replace("%", " %"))
        words = [word for word in words if word and word.lower() not in ("in", "per")]
        for end in range(len(words), 0, -1):
            name = _normal("_".join(words[:end]))
            field = _FIELDS.get(name)
            if field is None:
                continue
            unit = _unit(field, "/".join(words[end:])) if end < len(words) else None
            if unit is not None or end == len(words):
                return _Column(heading, name, field, unit)
    return None


def _is_index(heading: str) -> bool:
    """Whether it is that of a data frame's index."""
    return not heading or heading.lower().startswith("unnamed:")


def _normal(name: str) -> str:
    return "_".join(word for word in _WORDS.split(name.casefold()) if word)


@functools.lru_cache(maxsize=1_024)
def _unit(field: str, text: str) -> str | None:
    """The unit of a column as options take it; None if the field has no such unit."""
    unit = _UNITS.get(text.strip(), text.strip())
    if field not in _EXAMPLES or (field != "loss" and not unit):
        return None
    # An RTT (min) is the least one, and not in minutes.
    if field in ("rtt", "jitter") and unit.lower().startswith(("min", "h", "d")):
        return None
    # A heading often omits the time of a rate: Mb, MB.
    return next(
        (one for one in (unit, f"{unit}/s")[: 2 if field == "rate" else 1] if _factor(field, one)), None
    )


@functools.lru_cache(maxsize=1_024)
def _factor(field: str, unit: str) -> float | None:
    """How much one of a unit is, in those of `Numbers`; None if the field has no such unit."""
    quantity = "buffer" if field == "flow_size" else field
    if len(unit) > _MOST_HEADING:
        return None
    known: dict[str, Any] = {"rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "1 MB"}
    # One of a unit may be beyond the limits of a path.
    for scale in ("1", "1000", "1000000", "0.001"):
        with contextlib.suppress(ScenarioError):
            path = Question(**{**known, quantity: f"{scale} {unit}"})
            return path.numbers().of(quantity) / float(scale)
    return None


def _rows(
    text: str, layout: _Layout, columns: Mapping[int, _Column], file: str
) -> Iterator[tuple[int, dict[_Column, str]]]:
    """The filled cells of each row that has some, with the row's number in the file."""
    lines = io.StringIO(text[layout.begins :], newline=None)
    first = text.count("\n", 0, layout.begins) + 1
    found, number = 0, first - 1
    try:
        for number, row in enumerate(csv.reader(lines, delimiter=layout.delimiter, strict=True), first):
            cells = _trimmed(row)
            if number <= layout.row or not cells or all(_RULE.fullmatch(cell) for cell in cells if cell):
                continue
            if len(cells) > len(layout.heading):
                expected = f"at most {len(layout.heading)} cells; it has {len(cells)}"
                fix = "remove some; if commas are decimal, put cells in quotes or semicolons between them"
                raise mistake("from", f"{file}:{number}", expected, fix)
            filled = {
                column: cells[at]
                for at, column in columns.items()
                if at < len(cells) and cells[at].lower() not in MISSING
            }
            if 0 in columns and _is_index(layout.heading[0]) and cells[0].isdigit():
                # Only the number of a row.
                filled.pop(columns[0], None)
            if not filled:
                continue
            found += 1
            if found > MOST_PATHS:
                raise too_many(file)
            yield number, filled
    except csv.Error as error:
        raise mistake(
            "from", f"{file}:{number + 1}", f"CSV ({error})", "correct it, e.g. its quotes"
        ) from None


def _value(column: _Column, cell: str) -> str:
    """A cell as the option of its column takes it. Raises `ValueError` with what is expected."""
    field = column.field
    if field == "weight":
        number = _VALUE.fullmatch(cell)
        if number is None or number[2] or not math.isfinite(float(cell)):
            raise ValueError("a number from 0 in weight")
        return cell
    if field not in _EXAMPLES:
        _check(field, cell)
        return cell
    try:
        given = parsed(field, cell)
    except ScenarioError as error:
        raise ValueError(error.expected) from None
    if not isinstance(given, Range):
        return _with_unit(column, str(given))[0]
    if field not in QUANTITIES:
        raise ValueError(_ONE_VALUE)
    (low, low_is), (high, high_is) = (_with_unit(column, end) for end in (given.low, given.high))
    # A bandwidth-delay product is what the row's path has.
    if not 0 < low_is < high_is and "bdp" not in f"{low}{high}".lower():
        raise ValueError("a range from a smaller to a larger value above zero", "write e.g. 20-80")
    return str(Range(low, high))


def _with_unit(column: _Column, text: str) -> tuple[str, float]:
    """A number with its unit, or else that of the column, and how much it is."""
    found = _VALUE.fullmatch(text)
    if found is None:
        raise ValueError(f"a number from 0 with a unit, e.g. {_EXAMPLES[column.field]}")
    number, unit = found[1], found[2].strip() or column.unit or ""
    factor = _factor(column.field, unit)
    if factor is None and not unit:
        example = _EXAMPLES[column.field].partition(" ")[2]
        fix = f"write {number} {example}, or name the column e.g. {_WITH_UNIT[column.field]}"
        raise ValueError("a number with a unit", fix)
    if factor is None:
        raise ValueError(f"a number with a unit; {shown(unit, _SHOWN)!r} is none")
    if not unit and column.field == "loss" and float(number) >= 1:
        raise ValueError("a fraction below 1, or a number with %")
    return f"{number} {unit}".strip(), float(number) * factor


def _check(field: str, cell: str) -> None:
    """Raises `ValueError` for a queue or a policer that cannot be."""
    path: dict[str, Any] = {"rate": "100 Mbit/s", "rtt": "40 ms", field: cell}
    try:
        if any(isinstance(parsed(field, part), Range) for part in cell.split(",")):
            raise ValueError(_ONE_VALUE)
        Question(**path).numbers()
    except ScenarioError as error:
        if error.field == field:
            raise ValueError(error.expected) from None


def _wrong(column: _Column, cell: str, why: tuple[str, ...], file: str, row: int) -> ScenarioError:
    """The error about a cell: what is expected and, if it is no usual one, the fix."""
    heading, example = shown(column.heading, _SHOWN), _EXAMPLES.get(column.field)
    expected, *own = why
    fix = "correct it" if example is None else f"write e.g. {example}"
    if own:
        fix = own[0]
    elif column.unit is None and column.field in _WITH_UNIT:
        fix += f", or name the column e.g. {_WITH_UNIT[column.field]}"
    return placed(mistake(heading, shown(cell, _SHOWN), expected, fix), heading, file, row)


def _near(names: Sequence[str]) -> str:
    """The first of these names that is nearly one of a column, as a question."""
    for name in names[:_MOST_COLUMNS]:
        whole = _normal(name[:_MOST_HEADING])
        if whole in _FIELDS:
            continue
        for form in (whole, whole.rpartition("_")[0]):  # The end may be a unit.
            near = difflib.get_close_matches(form, _FIELDS, 1, 0.75)
            if not near:
                continue
            return f"is {shown(name, _SHOWN)} the {near[0]}?"
    return ""
