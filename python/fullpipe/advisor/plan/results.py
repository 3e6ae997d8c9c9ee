"""The results of an experiment as CSV with a heading: one row a connection.

| column | |
|---|---|
| `arm` | which of the two arms the connection was assigned to |
| `bytes` | how many bytes were acknowledged |
| `seconds` | from the first byte sent until the last one was acknowledged |
| `rtt_ms` | its RTT |
| `retransmits` | how many segments were retransmitted |
| `time` | when it began: seconds, or a date and time as in ISO 8601; optional |
| `unit` | what was assigned, if not the connection itself, e.g. a route, or a host and an hour; optional |

`arm`, `bytes`, and what the measure needs of the others must be there. Cells are separated by commas,
semicolons or tabs, as in a table of paths, and numbers may have a decimal comma. A cell may be empty. Other
columns are a note.
"""

import csv
import difflib
import io
import math
import re
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fullpipe import reading
from fullpipe._native import ScenarioError
from fullpipe.advisor.sources.table import DELIMITERS, DIRECTIVE, MISSING, PLAIN, Numerals
from fullpipe.errors import mistake, placed, stated
from fullpipe.text import joined, shown

# As for the sources of paths.
MOST_BYTES = 32 << 20
# Numbers that are added and multiplied stay numbers.
_MOST = 1e15
NUMBERS = ("bytes", "seconds", "rtt_ms", "retransmits")
_COLUMNS = ("arm", *NUMBERS, "time", "unit")
_EXAMPLES = {"bytes": "1048576", "seconds": "0.84", "rtt_ms": "41.5", "retransmits": "3"}
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_HEAD, _MOST_COLUMNS, _SHOWN, _LISTED = 65_536, 1_000, 40, 5
_FORM = "write one row a connection below the heading arm,bytes,seconds,rtt_ms,retransmits"


def _floats() -> "array[float]":
    return array("d")


@dataclass
class Arm:
    """The connections of one arm: a value of each column for each, NaN where the cell is empty."""

    name: str
    columns: dict[str, "array[float]"] = field(default_factory=dict)
    # What was assigned, for each connection; empty without that column.
    units: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many connections there are."""
        return len(self.columns["bytes"])


@dataclass(frozen=True)
class Results:
    """Both arms, in the order in which the file names them."""

    file: str
    arms: tuple[Arm, Arm]
    # The columns that it has.
    columns: frozenset[str]
    notes: tuple[str, ...] = ()

    def split(self, control: str | None) -> tuple[Arm, Arm]:
        """The treatment and the control: the arm of that name, or else the one called `control`.

        Raises `ScenarioError` if no arm has the name, or no name is given and none is called so.
        """
        names = [arm.name for arm in self.arms]
        if control is None and "control" not in names:
            fix = f"give --control {names[0]} or --control {names[1]}"
            sentence = f"{self.file}: the arms are {joined(names)}, and none is called control; {fix}"
            raise stated("control", "none", sentence, "which arm is the control", fix)
        named = "control" if control is None else control.strip()
        if named not in names:
            raise mistake("control", named, f"an arm of {self.file}", f"it has {joined(names)}")
        first, second = self.arms
        return (second, first) if first.name == named else (first, second)


def read(path: Path) -> Results:
    """The results in a file; `-` is standard input.

    Raises:
        ScenarioError: It cannot be read, has no such rows, or has not two arms. It names line and column.
    """
    piped = str(path) == "-"
    file = "standard input" if piped else str(path)
    try:
        text = reading.standard_input(MOST_BYTES) if piped else reading.text(path, MOST_BYTES)
    except FileNotFoundError as error:
        expected = f"a file that can be read ({error.strerror})"
        raise mistake("results", file, expected, "name another file") from None
    except reading.Unreadable as error:
        raise mistake("results", file, error.expected, error.fix) from None
    return parse(text, file)


def parse(text: str, file: str) -> Results:
    """The results in a text. Raises `ScenarioError` as `read`."""
    delimiter, begins, line = _layout(text)
    rows = _rows(text, begins, line, delimiter, file)
    line, heading = next(rows, (line, []))
    columns, notes = _columns(heading, f"{file}:{line}")
    numerals = _numerals(text, begins, line, delimiter, columns, file)
    arms: dict[str, Arm] = {}
    for number, cells in rows:
        if len(cells) > len(heading) and any(cells[len(heading) :]):
            expected = f"{len(heading)} cells, as in the heading; it has {len(cells)}"
            raise mistake("results", f"{file}:{number}", expected, "quote cells that have the delimiter")
        row = {name: cells[at] if at < len(cells) else "" for name, at in columns.items()}
        arm = arms.get(row["arm"])
        if arm is None:
            arm = arms[row["arm"]] = _arm(row["arm"], arms.values(), columns, file, number)
        for one, values in arm.columns.items():
            values.append(_value(one, row[one], numerals, file, number))
        if "unit" in columns:
            if row["unit"].lower() in MISSING:
                raise _wrong("unit", row["unit"], "what was assigned", "write e.g. a route", file, number)
            arm.units.append(row["unit"])
    if len(arms) != 2:
        has = f"it has only {next(iter(arms.values())).name}" if arms else "it has no row below the heading"
        raise mistake("results", file, f"connections of two arms; {has}", _FORM)
    first, second = arms.values()
    return Results(file, (first, second), frozenset(columns), tuple(notes))


def _arm(cell: str, others: Collection[Arm], columns: Collection[str], file: str, line: int) -> Arm:
    """An arm of that name, which no row had before."""
    if cell.lower() in MISSING:
        raise _wrong("arm", cell, "the name of an arm", "write e.g. treatment", file, line)
    if len(others) == 2:
        expected = f"two arms; {joined([one.name for one in others])} came first"
        raise _wrong("arm", cell, expected, "keep the rows of two arms", file, line)
    return Arm(shown(cell, _SHOWN), {one: _floats() for one in columns if one in (*NUMBERS, "time")})


def _layout(text: str) -> tuple[str, int, int]:
    """What is between cells, where the heading begins, and in which line."""
    directive = DIRECTIVE.match(text[:_HEAD])
    begins = directive.end() if directive else 0
    rest = text[begins : begins + _HEAD]
    begins += len(rest) - len(rest.lstrip(" \r\n"))
    heading = text[begins : begins + _HEAD].partition("\n")[0]
    choices = (directive[1],) if directive else DELIMITERS
    found = max(choices, key=lambda one: len({*map(_normal, heading.split(one))} & {*_COLUMNS}))
    return found, begins, text.count("\n", 0, begins) + 1


def _rows(text: str, begins: int, first: int, delimiter: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the line in which it begins."""
    reader = csv.reader(io.StringIO(text[begins:], newline=None), delimiter=delimiter, strict=True)
    line = first
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            place = f"{file}:{first + reader.line_num - 1}"
            raise mistake("results", place, f"CSV ({error})", "correct it") from None
        if row is None:
            return
        cells = [cell.strip() for cell in row]
        if any(cells):
            yield line, cells
        line = first + reader.line_num


def _normal(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().strip('"').strip().casefold())


def _columns(heading: Sequence[str], place: str) -> tuple[dict[str, int], list[str]]:
    """Where each column is, and a note about others."""
    if len(heading) > _MOST_COLUMNS:
        raise mistake("results", place, f"at most {_MOST_COLUMNS} columns", "remove some")
    columns: dict[str, int] = {}
    others = []
    for at, one in enumerate(heading):
        name = _normal(one)
        if name not in _COLUMNS:
            others.append(one)
        elif name in columns:
            raise mistake("results", place, f"the column {name} once", "remove one of them")
        else:
            columns[name] = at
    for name in ("arm", "bytes"):
        if name not in columns:
            near = difflib.get_close_matches(name, map(_normal, others[:_LISTED]), 1, 0.75)
            fix = f"rename {near[0]}" if near else _FORM
            raise mistake("results", place, f"a heading with the column {name}", fix)
    if not others:
        return columns, []
    listed = [shown(one, _SHOWN) or "one without a name" for one in others[:_LISTED]]
    more = [f"{len(others) - _LISTED} more"] if len(others) > _LISTED else []
    return columns, [f"columns not used: {joined([*listed, *more])}"]


def _numerals(
    text: str, begins: int, line: int, delimiter: str, columns: Mapping[str, int], file: str
) -> Numerals | None:
    """How the numbers are written; None if all of them have points."""
    if delimiter == "," and '"' not in text:
        return None
    places = [columns[one] for one in NUMBERS if one in columns]
    numerals, commas = Numerals(), False
    rows = _rows(text, begins, line, delimiter, file)
    next(rows, None)
    for _, cells in rows:
        for at in places:
            if at < len(cells) and ("," in cells[at] or "." in cells[at]):
                numerals.learn(cells[at].translate(PLAIN))
                commas = commas or "," in cells[at]
    return numerals if commas else None


def _value(column: str, cell: str, numerals: Numerals | None, file: str, line: int) -> float:
    if cell.lower() in MISSING:
        return math.nan
    if column == "time":
        return _time(cell, file, line)
    plain, fix = cell.translate(PLAIN), f"write e.g. {_EXAMPLES[column]}, or leave it empty"
    try:
        plain = plain if numerals is None else numerals.plain(plain)
    except ValueError as error:
        expected, *own = error.args
        raise _wrong(column, cell, expected, own[0] if own else fix, file, line) from None
    value = float(plain) if _NUMBER.fullmatch(plain) else math.inf
    if value > _MOST:
        raise _wrong(column, cell, f"a number from 0 to {_MOST:.0e} without a unit", fix, file, line)
    return value


def _time(cell: str, file: str, line: int) -> float:
    if _NUMBER.fullmatch(cell) and (seconds := float(cell)) <= _MOST:
        return seconds
    try:
        when = datetime.fromisoformat(cell)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        fix = "write e.g. 2026-11-28T09:30:00Z"
        raise _wrong("time", cell, "seconds, or a date and time", fix, file, line) from None


def _wrong(column: str, cell: str, expected: str, fix: str, file: str, line: int) -> ScenarioError:
    return placed(mistake(column, shown(cell, _SHOWN), expected, fix), column, file, line)
