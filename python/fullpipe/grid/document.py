"""A grid file: cells, each a scenario, said compactly.

    [defaults]                       # what a cell does not say for itself
    duration = "12 s"
    buffer = "1 bdp"

    [[cells]]                        # lists make a cell for each combination
    name = "{controller}, {rate}, {rtt}"
    controller = ["bbr1", "cubic"]
    rate = ["10 Mbit/s", "100 Mbit/s"]
    rtt = "20 ms"

    [[cells]]                        # beside the short keys, a cell takes every key of a scenario
    name = "policer"
    controller = "bbr1"
    rate = "100 Mbit/s"
    rtt = "40 ms"
    path.before = [{ kind = "policer", rate = "10 Mbit/s", burst = "500 KB" }]

    [quick]                          # the cells that `--quick` runs, and for how long
    duration = "5 s"
    cells = ["policer"]

What a cell means is a scenario document, and the same loader reads it.
"""

import copy
import itertools
import string
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fullpipe import scenario
from fullpipe._native import ScenarioError
from fullpipe.errors import mistake
from fullpipe.scenario import Alternative

# Short keys, which may be lists, and the part of a scenario document each belongs to.
SHORT = {
    "rate": "path",
    "rtt": "path",
    "buffer": "path",
    "loss": "path",
    "jitter": "path",
    "tcp_memory": "hosts",
    "controller": "flows",
    "count": "flows",
    "size": "flows",
    "duration": "",
}
# Of a scenario document; `compare` would make several scenarios of one cell.
_LONG = ("path", "hosts", "flows", "record", "seed")
_FOLDER = Path("scenarios") / "grids"


@dataclass(frozen=True)
class Cell:
    """One scenario of a grid."""

    name: str
    document: dict[str, Any]
    alternative: Alternative
    seed: int

    @property
    def slug(self) -> str:
        """The name as part of a file name or an address."""
        words = "".join(letter if letter.isalnum() or letter in "._" else " " for letter in self.name.lower())
        return "-".join(words.split())

    @property
    def competing(self) -> bool:
        """Whether several flows share the path."""
        return len(self.alternative.spec["flows"]) > 1


@dataclass(frozen=True)
class Grid:
    """A grid, or its quick part."""

    name: str
    path: Path
    quick: bool
    cells: tuple[Cell, ...]


def load(named: str, *, quick: bool = False) -> Grid:
    """Reads a grid: a path, or the name of one in `scenarios/grids` here or in a folder above."""
    path = _find(named)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise mistake("grid", str(path), "a grid file in TOML", f"{reason}") from None
    _check_keys(str(path), document, ("defaults", "cells", "quick"))
    defaults = _table(f"{path}: defaults", document.get("defaults", {}))
    _check_keys(f"{path}: defaults", defaults, (*SHORT, *_LONG))
    _check_parts(f"{path}: defaults", defaults)
    tables = document.get("cells")
    if not isinstance(tables, list) or not tables:
        raise mistake(f"{path}: cells", tables, "at least one [[cells]]", "add a cell")
    said = [
        each
        for number, table in enumerate(tables)
        for each in _combinations(f"{path}: cells[{number}]", table, defaults)
    ]
    _check_names(path, [name for name, _ in said])
    if quick:
        said = _quick(path, document.get("quick"), said)
    cells = tuple(_cell(path, name, keys) for name, keys in said)
    return Grid(path.stem, path, quick, cells)


def _find(named: str) -> Path:
    given = Path(named)
    if given.suffix or len(given.parts) > 1:
        return given
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (path := folder / _FOLDER / f"{named}.toml").is_file():
            return path
    there = sorted(
        path.stem for folder in (here, *here.parents) for path in (folder / _FOLDER).glob("*.toml")
    )
    known = (
        f"one of {', '.join(there)}, or a path" if there else f"a path; there is no {_FOLDER} here or above"
    )
    raise mistake("grid", named, known, "name a grid, or give the path of its file")


def _combinations(
    where: str, table: Any, defaults: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and the keys of each cell that a table stands for."""
    own = _table(where, table)
    if isinstance(own.get("name"), str):
        where = f"{where} ({own['name']})"
    _check_keys(where, own, ("name", *SHORT, *_LONG))
    _check_parts(where, own)
    template = own.pop("name", None)
    if not isinstance(template, str) or not template.strip():
        raise mistake(f"{where}: name", template, "a name", 'give one, e.g. "{controller}, {rate}"')
    keys = _merged(defaults, own)
    if "flows" in own:
        for name in ("controller", "count", "size"):
            if name in own:
                raise mistake(f"{where}: {name}", own[name], f"flows or {name}, not both", "say it in flows")
            keys.pop(name, None)  # A default of single flows is none of these.
    axes = {name: keys[name] for name in SHORT if isinstance(keys.get(name), list)}
    for name, values in axes.items():
        if not values:
            raise mistake(f"{where}: {name}", values, "at least one value", "add one, or leave the key out")
    for values in itertools.product(*axes.values()):
        chosen = {**keys, **dict(zip(axes, values, strict=True))}
        yield _named(where, template, chosen), copy.deepcopy(chosen)


def _named(where: str, template: str, keys: Mapping[str, Any]) -> str:
    """The template with its `{key}`s filled in."""
    said = {name: keys[name] for name in SHORT if name in keys}
    try:
        fields = [field for field in string.Formatter().parse(template) if field[1] is not None]
        # A value is said as it was given: `{loss:d}` and `{rate!r}` are refused, not carried out.
        wrong = next((field for field in fields if field[1] not in said or field[2] or field[3]), None)
        if wrong is None:
            return template.format(**said)
        _, name, spec, conversion = wrong
        said_so = f"{name}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}"
        hint = f"not {said_so!r}"
    except ValueError as error:
        hint = f"not {str(error)!r}"
    known = ", ".join(f"{{{name}}}" for name in said)
    raise mistake(f"{where}: name", template, f"a name with no other braces than {known}", hint)


def _check_names(path: Path, names: list[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        slug = Cell(name, {}, Alternative(name, "{}"), 0).slug
        if slug in seen:
            raise mistake(
                f"{path}: cells",
                name,
                "a name for each cell alone",
                "put the keys that have lists into the name",
            )
        if not slug:
            raise mistake(f"{path}: cells", name, "a name with letters or digits", "name the cell")
        seen[slug] = name


def _quick(
    path: Path, table: Any, said: list[tuple[str, dict[str, Any]]]
) -> list[tuple[str, dict[str, Any]]]:
    where = f"{path}: quick"
    if table is None:
        raise mistake(where, "none", "a table that names the quick cells", "leave out --quick or add it")
    quick = _table(where, table)
    _check_keys(where, quick, ("duration", "cells"))
    names = quick.get("cells")
    if not isinstance(names, list) or not names:
        raise mistake(f"{where}: cells", names, "names of cells", "name at least one")
    by_name = dict(said)
    for name in names:
        if not isinstance(name, str) or name not in by_name:
            close = get_close_matches(str(name), by_name, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "see the names with --list"
            raise mistake(f"{where}: cells", name, "the name of a cell", hint)
    shorter = {"duration": quick["duration"]} if "duration" in quick else {}
    return [(name, {**keys, **shorter}) for name, keys in said if name in names]


def _cell(path: Path, name: str, keys: dict[str, Any]) -> Cell:
    document = _document(name, keys, path.parent)
    try:
        resolved = scenario.from_document(document)
    except ScenarioError as error:
        raise _placed(f"{path}: {name}", error) from None
    (alternative,) = resolved.alternatives
    return Cell(name, document, Alternative(name, alternative.spec_json), resolved.seed)


def _document(name: str, keys: dict[str, Any], base: Path) -> dict[str, Any]:
    """The scenario document that a cell's keys stand for."""
    document: dict[str, Any] = {"name": name}
    flow: dict[str, Any] = {}
    for key, value in keys.items():
        part = SHORT.get(key)
        if part is None:
            document[key] = _merged(document[key], value) if isinstance(document.get(key), dict) else value
        elif part == "":
            document[key] = value
        elif part == "flows":
            flow[key] = value
        else:
            document[part] = _merged({key: value}, document.get(part, {}))
    if flow:
        document["flows"] = [flow]
    return {key: _with_whole_paths(value, base) for key, value in document.items()}


def _with_whole_paths(value: Any, base: Path) -> Any:
    """Traces are named relative to the grid; the documents of its cells may lie elsewhere."""
    if isinstance(value, list):
        return [_with_whole_paths(one, base) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: str((base / one).absolute())
        if key == "trace" and isinstance(one, str)
        else _with_whole_paths(one, base)
        for key, one in value.items()
    }


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables in one, inner tables too; `over` wins."""
    merged = copy.deepcopy(dict(under))
    for key, value in over.items():
        both = isinstance(merged.get(key), dict) and isinstance(value, dict)
        merged[key] = _merged(merged[key], value) if both else copy.deepcopy(value)
    return merged


def _table(where: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise mistake(where, given, "a table", "write it as one")
    return dict(given)


def _check_keys(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "leave it out"
            raise mistake(f"{where}: {key}", key, f"one of the keys {', '.join(known)}", hint)


def _check_parts(where: str, table: Mapping[str, Any]) -> None:
    """That tables are tables, and that what has a short key is said by it: two ways could contradict."""
    for part in ("path", "hosts", "record"):
        for key in _table(f"{where}: {part}", table.get(part, {})):
            if SHORT.get(key) == part:
                raise mistake(
                    f"{where}: {part}.{key}", key, f"{key} as a key of its own", f"write {key} = ..."
                )


def _placed(where: str, error: ScenarioError) -> ScenarioError:
    """The error with the place it is in."""
    placed = ScenarioError(f"{where}: {error}")
    placed.field, placed.given = f"{where}: {error.field}", error.given
    placed.expected, placed.mend = error.expected, error.mend
    return placed
