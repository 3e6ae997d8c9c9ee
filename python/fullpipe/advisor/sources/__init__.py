"""Paths from what people have: a table of paths, `ss -tin`, an iperf3 result, a packet capture.

Each reader gives `Path`s: what the source says of a path, as fields of a question, and what it cannot say.
What it does not say comes from the question that the user asked beside it.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, Protocol

from fullpipe import _native
from fullpipe.advisor.question import Question, parsed
from fullpipe.errors import mistake, stated

# No source of these is larger, but captures, which are read elsewhere.
MOST_BYTES = 32 << 20
# The most paths of a source.
MOST_PATHS = 10_000


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
                    f"{name}: the source does not say it; give --{name}, e.g. {example}",
                    "a value",
                    "give it",
                )
        return Question(**fields)


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
    from fullpipe.advisor.sources import capture, iperf3, ss, table

    kind = _native.file_kind(str(path))
    if kind is not None and kind[0] == "Capture":
        return capture.read(path)
    text = _text(path)
    readers: tuple[Reader, ...] = (iperf3, ss, table)
    for reader in readers:
        if reader.is_one(text):
            found = reader.read(text, str(path))
            if not found:
                raise mistake("from", str(path), "at least one path", "there is none in it")
            if len(found) > MOST_PATHS:
                raise mistake(
                    "from", str(path), f"at most {MOST_PATHS} paths; it has {len(found)}", "take a sample"
                )
            return found
    expected = "a CSV file of paths, the output of `ss -tin` or `iperf3 -J`, or a packet capture"
    raise mistake("from", str(path), expected, "`fullpipe help advise` describes them")


def _text(path: File) -> str:
    """A regular file's text, of a bounded size."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise mistake(
            "from", str(path), f"a file that can be read ({error.strerror})", "name another file"
        ) from None
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            raise mistake("from", str(path), "a regular file", "name another file")
        if about.st_size > MOST_BYTES:
            raise mistake("from", str(path), f"a file of at most {MOST_BYTES >> 20} MiB", "take a part of it")
        with os.fdopen(os.dup(file), "rb") as opened:
            data = opened.read(MOST_BYTES)
    finally:
        os.close(file)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise mistake("from", str(path), "text in UTF-8", "convert it, or name another file") from None
