"""Paths from what people have: a table of paths, `ss -tin`, iperf3, Prometheus, browsers, a packet capture.

Each reader gives `Path`s: what the source says of a path, as fields of a question, and what it cannot say.
What it does not say comes from the question that the user asked beside it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any, Protocol

from fullpipe import _native
from fullpipe._native import ScenarioError
from fullpipe.advisor.question import Question, parsed
from fullpipe.errors import mistake, stated
from fullpipe.system import reading
from fullpipe.text import shown

# No source of these is larger, but captures, which are read elsewhere.
MOST_BYTES = 32 << 20
# The most paths of a source.
MOST_PATHS = 10_000
# Objects and lists of a JSON document: enough for a large one, and too few to fill the memory.
_MOST_PARTS = 1_500_000
# Names and notes are printed.
_MOST_NAME, _MOST_NOTE = 80, 200
# Sums of weights stay numbers.
_MOST_WEIGHT = 1e15


@dataclass(frozen=True)
class Path:
    """A path of a source."""

    name: str
    # Fields of `Question` by name.
    says: Mapping[str, str]
    # How much it counts in the summary, e.g. connections or bytes.
    weight: float = 1.0
    notes: tuple[str, ...] = field(default=())

    def question(self, asked: Mapping[str, Any]) -> Question:
        """The question about this path, from what the user gave; what the source says prevails."""
        fields = {**asked, **{name: parsed(name, value) for name, value in self.says.items()}}
        for name, example in (("rate", "50mbit"), ("rtt", "40 ms")):
            if fields.get(name) is None:
                raise stated(
                    name,
                    "none",
                    f"{name}: the source does not say it of {self.name}; give --{name}, e.g. {example}",
                    "a value",
                    "give it",
                )
        question = Question(**fields)
        try:
            _check(question)
        except ScenarioError as error:
            # A buffer in BDPs may be wrong because of what the source says of the path.
            relative = error.field == "buffer" and "bdp" in str(question.buffer).lower()
            if error.field not in self.says and not relative:
                raise
            raise stated("from", self.name, f"{self.name}: {error}", error.expected, error.fix) from None
        return question


def _check(question: Question) -> None:
    """Raises `ScenarioError` for a path that cannot be, before others are answered."""
    path = question.at([0.5] * len(question.ranges))
    path.numbers()
    replace(path, candidates=("cubic",), competitors=()).short()


class Reader(Protocol):
    """A module that reads one kind of text."""

    def is_one(self, text: str) -> bool:
        """Whether the text is of that kind."""
        ...

    def read(self, text: str, file: str) -> list[Path]:
        """Its paths. Raises `ScenarioError`, which names the file."""
        ...


def read(path: File) -> list[Path]:
    """The paths of a file of any of these kinds.

    Raises:
        ScenarioError: It cannot be read, or is of no such kind, or is damaged.
    """
    from fullpipe.advisor.sources import capture, iperf3, prometheus, rum, ss, table

    kind = _native.file_kind(str(path))
    if kind is not None and kind[0] == "Capture":
        return [_printable(one) for one in capture.read(path)]
    text = _text(path)
    readers: tuple[Reader, ...] = (iperf3, prometheus, ss, rum, table)
    for reader in readers:
        if reader.is_one(text):
            found = reader.read(text, str(path))
            if not found:
                raise mistake("from", str(path), "at least one path", "there is none in it")
            if len(found) > MOST_PATHS:
                raise too_many(str(path))
            return [_printable(one) for one in found]
    expected = (
        "a CSV file of paths, the output of `ss -tin` or `iperf3 -J`, an export of Prometheus or of "
        "browsers' timings, or a packet capture"
    )
    raise mistake("from", str(path), expected, "`fullpipe help advise` describes them")


def too_many(file: str) -> ScenarioError:
    """The error about a source with more paths than can be answered."""
    return mistake(
        "from", file, f"at most {MOST_PATHS} paths; it has more", "take a sample, or put some together"
    )


def documents(text: str, file: str, expected: str) -> Iterator[Any]:
    """The JSON documents of a text, one after the other. Raises `ScenarioError` where one is damaged."""
    if text.count("{") + text.count("[") > _MOST_PARTS:
        raise mistake("from", file, f"JSON of at most {_MOST_PARTS} objects and lists", "take a part of it")
    decoder = json.JSONDecoder()
    at, end = 0, len(text)
    while at < end:
        while at < end and text[at].isspace():
            at += 1
        if at == end:
            return
        try:
            document, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, at) + 1
            why = "nested too deeply" if isinstance(error, RecursionError) else "damaged or cut off"
            raise mistake("from", f"{file}:{line}", f"{expected}; it is {why}", "export it again") from None
        yield document


def _printable(path: Path) -> Path:
    """The path with a name and notes that a terminal can print, and a weight that can be added up."""
    return replace(
        path,
        name=shown(path.name, _MOST_NAME) or "unnamed",
        notes=tuple(shown(note, _MOST_NOTE) for note in path.notes),
        weight=min(path.weight, _MOST_WEIGHT),
    )


def _text(path: File) -> str:
    """A regular file's text, of a bounded size."""
    try:
        return reading.text(path, MOST_BYTES)
    except FileNotFoundError as error:
        expected = f"a file that can be read ({error.strerror})"
        raise mistake("from", str(path), expected, "name another file") from None
    except reading.Unreadable as error:
        raise mistake("from", str(path), error.expected, error.fix) from None
