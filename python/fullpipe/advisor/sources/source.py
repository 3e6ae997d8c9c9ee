"""What a source gives: paths with what it says about them; what readers of sources share."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fullpipe._native import ScenarioError
from fullpipe.advisor.inputs import given_of, readable
from fullpipe.advisor.question import QUANTITIES, Question, parsed
from fullpipe.errors import mistake, stated, typed
from fullpipe.scenario.path_fields import Amount, Range

# The most paths of a source.
MOST_PATHS = 10_000
# What a JSON text may need in memory once it is parsed: enough for 32 MiB that a program exported.
_MOST_PARSED_BYTES = 320 << 20
# What an object, a list, a value, a key and a text need there besides their characters (CPython, 64 bits).
_PARSED_BYTES = {"{": 130, "[": 88, ",": 32, ":": 18, '"': 16}


@dataclass(frozen=True)
class Path:
    """A path of a source."""

    name: str
    # Fields of `Question` by name.
    says: Mapping[str, str]
    # How much it counts in the summary, e.g. connections or bytes.
    weight: float = 1.0
    notes: tuple[str, ...] = field(default=())
    # What the source has about this path besides its fields, and why it is not used.
    left_out: tuple[str, ...] = field(default=())
    # By field: how far its value can be trusted, or why the source has none.
    caveats: Mapping[str, str] = field(default_factory=dict)
    # Notes on values, each with the fields that it is about: it counts while all of them are used.
    doubts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def beside(self, asked: Mapping[str, Any]) -> "Path":
        """The path beside what the user gave: only the fields that are used, and notes on all others.

        Raises `ScenarioError` as `question` does.
        """
        given, question = given_of(asked), self.question(asked)
        says = {name: value for name, value in self.says.items() if name not in given}
        notes = [text for text, names in self.doubts.items() if says.keys() >= set(names)]
        notes += [text for name, text in self.caveats.items() if name in says]
        notes += [
            f"the source has {name.replace('_', ' ')} {readable(value)}, but {_option(name)} "
            f"{getattr(question, name)} is used"
            for name, value in self.says.items()
            if name in given and not _agree(question, name, value)
        ]
        shortfall = [
            f"{name}: {text}"
            for name, text in self.caveats.items()
            if name not in self.says and name not in given
        ]
        notes, left_out = [*self.notes, *notes], [*self.left_out, *shortfall]
        return replace(self, says=says, notes=tuple(notes), left_out=tuple(left_out), caveats={}, doubts={})

    def question(self, asked: Mapping[str, Any]) -> Question:
        """The question about this path, from what the user gave; what is missing comes from the source."""
        given = {name: asked[name] for name in given_of(asked)}
        own = {
            name: parsed(name, value) if name in QUANTITIES else value
            for name, value in self.says.items()
            if name not in given
        }
        fields = {**own, **given}
        for name, example in (("rate", "50mbit"), ("rtt", "40ms")):
            if name not in fields:
                why = f" ({self.caveats[name]})" if name in self.caveats else ""
                fix = f"give --{name}, e.g. --{name} {example}"
                sentence = f"{name}: the source does not give it for {self.name}{why}; {fix}"
                raise stated(name, "none", sentence, "a value", fix)
        question = Question(**fields)
        try:
            _check(question)
        except ScenarioError as error:
            # A buffer in BDPs may be wrong because of the path that the source has.
            relative = error.field == "buffer" and "bdp" in question.buffer_text.lower()
            if error.field not in own and not relative:
                raise
            if error.field not in self.says:
                error = typed(error, {"buffer": "--buffer"})
            raise stated("from", self.name, f"{self.name}: {error}", error.expected, error.fix) from None
        return question


class Paths(list[Path]):
    """The paths of a source, and notes about the whole of it, e.g. what it has besides them."""

    def __init__(self, paths: Iterable[Path] = (), notes: Iterable[str] = ()) -> None:
        super().__init__(paths)
        self.notes = tuple(notes)


def _option(name: str) -> str:
    """The option of a field, as it is typed."""
    return "--tcp-mem" if name == "tcp_memory" else f"--{name.replace('_', '-')}"


def _agree(question: Question, name: str, value: str) -> bool:
    """Whether a field of the question and a source's value are within 1 %, or overlap as ranges."""
    if name not in QUANTITIES:
        same, other = (str(one).replace(" ", "").lower() for one in (getattr(question, name), value))
        return same == other
    try:
        path = question.at([0.5] * len(question.ranges))
        low, high = _ends(path, name, getattr(question, name))
        other_low, other_high = _ends(path, name, parsed(name, value))
    except ScenarioError:
        return False
    return 0.99 * low <= other_high and other_low <= 1.01 * high


def _ends(path: Question, name: str, value: Amount | Range) -> list[float]:
    """Both ends of a quantity of a path, as numbers."""
    ends: tuple[Any, Any] = (value.low, value.high) if isinstance(value, Range) else (value, value)
    fields: list[dict[str, Any]] = [{name: end} for end in ends]
    return [replace(path, **one).numbers().of(name) for one in fields]


def _check(question: Question) -> None:
    """Raises `ScenarioError` for a path that cannot be, before others are answered."""
    path = question.at([0.5] * len(question.ranges))
    path.numbers()
    replace(path, candidates=("cubic",), competitors=()).short()


def too_many(file: str) -> ScenarioError:
    """The error about a source with more paths than can be answered."""
    return mistake(
        "from", file, f"at most {MOST_PATHS} paths; it has more", "take a sample, or put some together"
    )


def check_size(text: str, file: str) -> None:
    """Raises `ScenarioError` for JSON that takes too much memory: small values need more than their text."""
    if sum(size * text.count(mark) for mark, size in _PARSED_BYTES.items()) > _MOST_PARSED_BYTES:
        expected = f"JSON that needs at most {_MOST_PARSED_BYTES >> 20} MiB of memory"
        raise mistake("from", file, f"{expected}; it has too many values", "take a part of it")


def documents(text: str, file: str, expected: str) -> Iterator[Any]:
    """The JSON documents of a text, one after the other. Raises `ScenarioError` where one is damaged."""
    check_size(text, file)
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
