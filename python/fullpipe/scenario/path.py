"""The keys of a path, which the native half declares, and a path as a value."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import fullpipe._native as _native
from fullpipe.scenario.path_fields import PathValues


@dataclass(frozen=True)
class Option:
    """A key of a path: an option of commands and an argument of functions of the same name."""

    name: str
    shape: str  # "rate", "duration", "size", "probability", "flag", "file", "queue" or "text".
    summary: str
    example: str
    range: str | None  # An example of a range of values, if it may be one.
    default: str
    ways: str  # "both", "forward", or "path" for what both ways have in common.
    element: str | None  # The kind of the element that it puts on the path, and its field.
    field: str | None

    @property
    def option(self) -> str:
        """As it is typed, without dashes."""
        return self.name.replace("_", "-")


# Those that may be a range come first, as answers name them; the others follow in the order of the table.
OPTIONS = tuple(
    sorted((Option(**one) for one in json.loads(_native.path_options())), key=lambda one: not one.range)
)
NAMES = tuple(one.name for one in OPTIONS)
# The parameter that each field of a document is made from, for errors.
PARAMETERS = {f"path.{name}": name for name in NAMES}


@dataclass(frozen=True, kw_only=True)
class Path(PathValues):
    """A path as its user states it, with units; None where nothing is said. `reverse` is the way back."""

    reverse: "Path | None" = None

    def document(self) -> dict[str, Any]:
        """The table `path` of a scenario."""
        message = written_of(vars(self))
        return message if self.reverse is None else {**message, "reverse": self.reverse.document()}

    def at(self, **changes: Any) -> "Path":
        """The same path with other values."""
        return dataclasses.replace(self, **changes)


def written_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a path among values, without those about which nothing is said."""
    message = {
        name: value for name in NAMES if (value := values.get(name)) is not None and value is not False
    }
    return {name: str(value) if isinstance(value, PurePath) else value for name, value in message.items()}


def generated() -> str:
    """The text of `path_fields.py`."""
    kind = {"flag": "bool"}
    text = {"queue": "str", "file": "str | Path", "text": "str"}

    def of(one: Option) -> str:
        return kind.get(one.shape) or text.get(one.shape) or "Amount"

    fields = "\n".join(
        f"    # {one.summary}{f', e.g. {one.example}' if one.example else ''}.\n    {one.name}: {of(one)}"
        for one in OPTIONS
    )
    values = "\n".join(
        f"    {one.name}: bool = False"
        if one.shape == "flag"
        else f"    {one.name}: {of(one)}{' | Range' if one.range else ''} | None = None"
        for one in OPTIONS
    )
    return f'''"""The keys of a path as arguments, as `fullpipe.scenario.path.generated()` writes them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypedDict

Amount: TypeAlias = str | int | float


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, both with a unit."""

    low: str
    high: str

    def __str__(self) -> str:
        return f"{{self.low}}..{{self.high}}"


class PathFields(TypedDict, total=False):
    """The keys of a path, as keyword arguments."""

{fields}


@dataclass(frozen=True, kw_only=True)
class PathValues:
    """The same as a value; None where nothing is said."""

{values}
'''
