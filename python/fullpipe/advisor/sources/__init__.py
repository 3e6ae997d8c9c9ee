"""Paths from what people have: a scenario, a table, `ss -tin`, iperf3, Prometheus, browsers, a capture.

Each reader gives `Path`s: the fields of a question that the source has for a path, and why it lacks others.
A field that the user gave comes before the one of the source.
"""

from dataclasses import replace
from pathlib import Path as File
from typing import Any, Protocol

import fullpipe._native as _native
from fullpipe import reading
from fullpipe.advisor.sources.source import MOST_PATHS, Path, Paths, too_many
from fullpipe.errors import mistake
from fullpipe.scenario import kinds
from fullpipe.text import shown

__all__ = ["MOST_BYTES", "MOST_PATHS", "Path", "Paths", "read"]

# No source of these is larger, but captures, which are read elsewhere.
MOST_BYTES = 32 << 20
# Names and notes are printed.
_MOST_NAME, _MOST_NOTE = 80, 200
# As a file's name, it is standard input.
_STANDARD_INPUT = "-"
# Sums of weights stay numbers.
_MOST_WEIGHT = 1e15


class Reader(Protocol):
    """A module that reads one kind of text."""

    def is_one(self, text: str) -> bool:
        """Whether the text is of that kind."""
        ...

    def read(self, text: str, file: str) -> list[Path]:
        """Its paths. Raises `ScenarioError`, which names the file."""
        ...


def read(path: File) -> Paths:
    """The paths of a file of any of these kinds. `-` is standard input, for the kinds that are text.

    Raises:
        ScenarioError: It cannot be read, or is of no such kind, or is damaged.
    """
    from fullpipe.advisor.sources import capture, iperf3, prometheus, rum, ss, table

    piped = str(path) == _STANDARD_INPUT
    file = "standard input" if piped else str(path)
    kind = None if piped else _native.file_kind(file)
    # JSON of an unknown kind is called a scenario, too; here, it is an answer of Prometheus or a browser.
    if kind is not None and kind[0] == "Scenario" and path.suffix == ".toml":
        return Paths([_printable(_scenario(path))])
    if kind is not None and kind[0] == "Capture":
        return Paths(_printable(one) for one in capture.read(path))
    if kind is not None and kind[0] in kinds.CONVERTIBLE:
        raise mistake("from", file, f"a file that can be read as it is; it is {kind[1]}", kind[2])
    if kind is not None and kind[0] == "Zip":
        expected = "text; it is a zip archive, as workbooks of spreadsheets are"
        raise mistake("from", file, expected, "save the table as CSV")
    text = _text(path, file)
    readers: tuple[Reader, ...] = (iperf3, prometheus, ss, rum, table)
    for reader in readers:
        if reader.is_one(text):
            found = reader.read(text, file)
            if not found:
                raise mistake("from", file, "at least one path", "there is none in it")
            if len(found) > MOST_PATHS:
                raise too_many(file)
            notes = found.notes if isinstance(found, Paths) else ()
            return Paths(map(_printable, found), (shown(note, _MOST_NOTE) for note in notes))
    expected = (
        "a CSV file of paths, the output of `ss -tin` or `iperf3 -J`, an export of Prometheus or of "
        "browsers' timings, or a packet capture"
    )
    if not text.strip():
        raise mistake("from", file, f"{expected}; it is empty", "check the command that wrote it")
    raise mistake(
        "from", file, expected, "docs/how-to/advisor.md describes them; without one, give --rate and --rtt"
    )


def _scenario(file: File) -> Path:
    """The path of a scenario."""
    from fullpipe.scenario import of_file

    own, reverse, notes = of_file.read(file, "from")
    if reverse is not None:
        notes.append(f"{file.name} has a way back, which the answer assumes to limit nothing")
    says: dict[str, Any] = {
        name: value if isinstance(value, bool) else str(value) for name, value in own.items()
    }
    return Path(file.stem, says, left_out=tuple(notes))


def _printable(path: Path) -> Path:
    """The path with a name and notes that a terminal can print, and a weight that can be added up."""
    return replace(
        path,
        name=shown(path.name, _MOST_NAME) or "unnamed",
        notes=tuple(shown(note, _MOST_NOTE) for note in path.notes),
        left_out=tuple(shown(one, _MOST_NOTE) for one in path.left_out),
        caveats={name: shown(text, _MOST_NOTE) for name, text in path.caveats.items()},
        doubts={shown(text, _MOST_NOTE): names for text, names in path.doubts.items()},
        weight=min(path.weight, _MOST_WEIGHT),
    )


def _text(path: File, file: str) -> str:
    """The text of a regular file, or of standard input; of a bounded size."""
    try:
        return (
            reading.standard_input(MOST_BYTES)
            if str(path) == _STANDARD_INPUT
            else reading.text(path, MOST_BYTES)
        )
    except FileNotFoundError as error:
        expected = f"a file that can be read ({error.strerror})"
        raise mistake("from", file, expected, "name another file") from None
    except reading.Unreadable as error:
        fix = error.fix
        if str(path) == _STANDARD_INPUT:
            fix = "a capture, or a file that is compressed, has to be a file of its own"
        elif path.is_fifo():
            fix = "pipe it into --from -"
        raise mistake("from", file, error.expected, fix) from None
