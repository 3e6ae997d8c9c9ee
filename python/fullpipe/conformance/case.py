"""What a case is: criteria with numbers, and a play that measures them."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any, ClassVar, TypeAlias, TypeVar

# What a play measured, by the keys of the criteria. None: the moment to measure it did not come.
Measured: TypeAlias = Mapping[str, float | None]
C = TypeVar("C", bound="Case")
# The source of a number that is the draft's own.
DRAFT = "the draft's number"
# Ends what a criterion says that asks whether something happened.
WHETHER = " (1)"
# How a case writes a criterion: "key [3 to 5 rounds]: what is measured", "key [yes]: what has to happen".
_BOUNDS = r"yes|(?P<one>at least|at most)? ?(?P<low>[\d.]+)(?: to (?P<high>[\d.]+))?(?: (?P<unit>.+?))?"
_CRITERION = re.compile(rf"(?P<key>\w+) \[(?:{_BOUNDS})\]: (?P<says>.+)")


class NotApplicableError(Exception):
    """The case says nothing about this controller; `str()` says why."""


class NotReachedError(Exception):
    """The play did not come to the moment that it measures; `str()` says which."""


@dataclass(frozen=True)
class Criterion:
    """One quantity, and the range in which it must be."""

    key: str
    says: str
    low: float | None = None
    high: float | None = None
    unit: str = ""
    # Who chose the numbers: `DRAFT`, or why these.
    source: str = DRAFT

    @staticmethod
    def read(block: str) -> "Iterator[Criterion]":
        """The criteria in a block of text: one a line, its source below it and further to the right."""
        for part in re.split(r"\n(?=\S)", dedent(block).strip()):
            first, *source = part.split("\n")
            if (message := _CRITERION.fullmatch(first)) is None:
                raise ValueError(f'"{first}" is no criterion; write "key [3 to 5 rounds]: what is measured"')
            low, high = (
                None if message[name] is None else _number(message[name]) for name in ("low", "high")
            )
            what = message["says"]
            if low is None:
                low, what = 1, f"{what}{WHETHER}"
            elif message["one"] == "at most":
                low, high = None, low
            elif message["one"] is None:
                high = low if high is None else high
            why = " ".join(" ".join(source).split()) or DRAFT
            yield Criterion(message["key"], what, low, high, message["unit"] or "", why)

    def met(self, value: float | None) -> bool:
        """Whether a measured value is in the range."""
        return value is not None and math.isfinite(value) and self.excess(value) <= 0

    def excess(self, value: float | None) -> float:
        """How far a value is out of the range; negative within it."""
        if value is None or math.isnan(value):
            return math.inf
        out = [-math.inf]
        if self.low is not None:
            out.append(self.low - value)
        if self.high is not None:
            out.append(value - self.high)
        return max(out)

    @property
    def is_whether(self) -> bool:
        """Whether it asks if something happened: 1 if it did."""
        return self.says.endswith(WHETHER)

    @property
    def quantity(self) -> str:
        """What is measured, or what has to happen."""
        return self.says.removesuffix(WHETHER)

    @property
    def bounds(self) -> str:
        """The range in words: "2 to 3 s", "at most 5 %"."""
        if self.is_whether:
            return "yes"
        # "at most 1 round", as in `show`.
        unit = (
            self._unit(f"{self.high if self.low is None else self.low:g}")
            if None in (self.low, self.high)
            else self.unit
        )
        unit = f" {unit}" if unit else ""
        if self.low is not None and self.high is not None:
            if self.low == self.high:
                return f"{self.low:g}{unit}"
            return f"{self.low:g} to {self.high:g}{unit}"
        if self.low is not None:
            return f"at least {self.low:g}{unit}"
        return f"at most {self.high:g}{unit}"

    def show(self, value: float | None) -> str:
        """A measured value with its unit."""
        if value is None:
            return "never"
        if not math.isfinite(value):
            return "nothing to measure"  # As the queue's delay of a flow that sends nothing.
        if self.is_whether:
            return "yes" if self.met(value) else "no"
        text = f"{value:.4g}" if 1e-3 <= abs(value) < 10_000 else f"{value:z.0f}"
        unit = self._unit(text)
        return f"{text} {unit}" if unit else text

    def _unit(self, text: str) -> str:
        """The unit after this number: that of 1 has no plural."""
        return self.unit.removesuffix("s") if text == "1" and len(self.unit) > 2 else self.unit


@dataclass(frozen=True)
class Case:
    """One case. `play` measures on stages that the lab makes; it runs once for each seed."""

    prefix: ClassVar[str] = ""  # Of names that `of` makes.
    name: str
    title: str
    # A section of the draft, or the report of a bug that the case would have caught.
    source: str
    # What is played, in a sentence or two, for whoever reads a page.
    about: str
    criteria: tuple[Criterion, ...]
    # Takes a `Lab`, or where a case is judged from outside (`programs/`), a `Seen`.
    play: Callable[[Any], Measured]
    # It speaks of BBR's phases, and is not applicable to a controller that has none.
    phases: bool = True
    seeds: tuple[int, ...] = (1,)
    # The criterion that tables show where all are met, by its key; by default the first.
    main: str = ""
    # Controllers that differ from the draft here on purpose, as they are written, and why.
    differs: Mapping[str, str] = field(default_factory=dict)
    # Worlds whose transport does not do what is played, and why.
    not_in: Mapping[str, str] = field(default_factory=dict)
    # Who fails it by design, and the section that says so.
    failed_by: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls: type[C], criteria: str, **reported: Any) -> Callable[[Callable[[Any], Measured]], C]:
        """Makes a case of the play below it, which has its name, and in its docstring title and description.

        `criteria` are as `Criterion.read` takes them, `told` are the other fields.
        """

        def made(play: Callable[[Any], Measured]) -> C:
            title, _, about = (play.__doc__ or "").partition("\n")
            return cls(
                name=cls.prefix + play.__name__.replace("_", "-"),
                title=title.removesuffix("."),
                about=" ".join(about.split()),
                criteria=tuple(Criterion.read(criteria)),
                play=play,
                **reported,
            )

        return made

    def __post_init__(self) -> None:
        """Refuses a case that nothing could fail."""
        keys = [one.key for one in self.criteria]
        if not keys or len(set(keys)) != len(keys):
            raise ValueError(f"{self.name}: needs criteria, and each with a key of its own")
        if any(one.low is None and one.high is None for one in self.criteria):
            raise ValueError(f"{self.name}: a criterion without bounds cannot fail")
        if self.main and self.main not in keys:
            raise ValueError(f"{self.name}: no criterion has the key {self.main}")
        if not self.seeds:
            raise ValueError(f"{self.name}: needs a seed")


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)
