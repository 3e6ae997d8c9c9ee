"""A grid file: cells, each a scenario, written compactly.

    [defaults]                       # keys of cells that do not have them
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

    [targets]                        # limits of this grid, instead of those of all grids
    goodput = { median = "5 %", p90 = "10 %" }

A cell stands for a scenario document, which is read by the same loader.
"""

import copy
import itertools
import json
import math
import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import files, shipped
from fullpipe._native import ScenarioError
from fullpipe.errors import mistake, placed, renamed
from fullpipe.runs.limits import MOST_CELLS
from fullpipe.runs.worlds.world import World
from fullpipe.scenario import scenario
from fullpipe.scenario.scenario import Alternative

# Short keys, which may be lists, and the part of a scenario document that each belongs to.
SHORT = {
    "rate": "path",
    "rtt": "path",
    "buffer": "path",
    "queue": "path",
    "router": "path",
    "burst": "path",
    "unit": "path",
    "loss": "path",
    "jitter": "path",
    "tcp_memory": "hosts",
    "ecn": "hosts",
    "gso_max_segs": "hosts",
    "controller": "flows",
    "count": "flows",
    "size": "flows",
    "duration": "",
}
# Keys of a scenario document, except `compare`, which would make several scenarios of one cell.
_LONG = ("path", "hosts", "flows", "record", "seed")


@dataclass(frozen=True)
class Cell:
    """One scenario of a grid."""

    name: str
    document: dict[str, Any]
    alternative: Alternative
    seed: int
    # What worlds without real hosts run instead.
    modelled: Alternative | None = None

    def run_in(self, world: World) -> Alternative:
        """What a world runs: real hosts are what they are, others are modelled as the grid is asked to."""
        return self.alternative if self.modelled is None or world.real_hosts else self.modelled

    @property
    def slug(self) -> str:
        """The name as part of a file name or an address."""
        words = "".join(letter if letter.isalnum() or letter in "._" else " " for letter in self.name.lower())
        slug = "-".join(words.split())
        return files.file_names([slug])[slug]

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
    limits: tuple["Limit", ...] = ()  # Its own; without any, those of all grids.


@dataclass(frozen=True)
class Limit:
    """How far apart the worlds may be: a part of the cells, ordered by how far they are apart."""

    measure: str  # A key of `LIMITED`.
    part: str  # A key of `PARTS`.
    most: float


# What a grid may have limits of its own for, and of which part of its cells.
LIMITED = ("goodput", "rtt", "rtt_p95")
PARTS = ("median", "p90")
# The longest template of a name, in characters.
_LONGEST_NAME = 200


def load(named: str, *, quick: bool = False, hosts: str | None = None) -> Grid:
    """Reads a grid: a path, or the name of one in `scenarios/grids` (`shipped.find`).

    `hosts` is the model of the hosts in worlds without real ones, whatever the cells say.

    Raises:
        ScenarioError: It cannot be read or is invalid; the error has file and line.
    """
    _check_hosts(hosts)
    path = shipped.find("grid", named, shipped.GRIDS)
    text, document = _native.read_document(str(path), "grid", "a grid file in TOML")
    try:
        return _loaded(path, json.loads(document), quick=quick, hosts=hosts)
    except ScenarioError as error:
        raise placed(error, error.field, str(path), _native.line_of(text, str(path), error.field)) from None


@dataclass(frozen=True)
class _Message:
    """A cell as written in the grid: its name, its keys, and where each key is."""

    name: str
    keys: dict[str, Any]
    where: dict[str, str]

    def field(self, resolved: str) -> str:
        """The place in the grid of a field of the cell's scenario: `cells[0].rate` for `path.rate`."""
        for key, part in SHORT.items():
            prefix = "flows[0]." if part == "flows" else f"{part}." if part else ""
            if resolved == prefix + key and key in self.where:
                return f"{self.where[key]}.{key}"
        # The nearest key that is written; if there is none, the cell.
        first = resolved.partition(".")[0].partition("[")[0]
        return f"{self.where.get(first, self.where['name'])}.{resolved}"


def _loaded(path: Path, document: Mapping[str, Any], *, quick: bool, hosts: str | None) -> Grid:
    _check_keys("", document, ("defaults", "cells", "quick", "targets"))
    limits = tuple(_limits(_table("targets", document.get("targets", {}))))
    defaults = _table("defaults", document.get("defaults", {}))
    _check_keys("defaults", defaults, (*SHORT, *_LONG))
    _check_parts("defaults", defaults)
    tables = document.get("cells")
    if not isinstance(tables, list) or not tables:
        raise mistake("cells", tables, "at least one [[cells]]", "add a cell")
    message: list[_Message] = []
    for number, table in enumerate(tables):
        message += _combinations(f"cells[{number}]", table, defaults, MOST_CELLS - len(message))
    _check_names(message)
    if quick:
        message = _quick(document.get("quick"), message)
    return Grid(path.stem, path, quick, tuple(_cell(path, one, hosts) for one in message), limits)


def _limits(table: Mapping[str, Any]) -> Iterator[Limit]:
    """The limits of `[targets]`, in its order."""
    _check_keys("targets", table, LIMITED)
    for measure, given in table.items():
        where = f"targets.{measure}"
        parts = _table(where, given)
        _check_keys(where, parts, PARTS)
        if not parts:
            raise mistake(where, given, f"at least one of {', '.join(PARTS)}", 'e.g. { median = "5 %" }')
        for part, text in parts.items():
            read = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?) ?%", text) if isinstance(text, str) else None
            if read is None or not 0 < float(read[1]) <= 100:
                raise mistake(f"{where}.{part}", text, "a share above 0 and up to 100 %", 'e.g. "5 %"')
            yield Limit(measure, part, float(read[1]) / 100)


def _check_hosts(hosts: str | None) -> None:
    """Checks the option now, because an error of a cell's scenario would name the grid's file."""
    known = [one["const"] for one in json.loads(_native.schema())["$defs"]["HostModel"]["oneOf"]]
    if hosts is not None and hosts not in known:
        raise mistake("hosts", hosts, f"one of {', '.join(known)}", "write one of these")


def _combinations(where: str, table: Any, defaults: Mapping[str, Any], most: int) -> list[_Message]:
    """Each cell that a table stands for, at most `most`."""
    own = _table(where, table)
    _check_keys(where, own, ("name", *SHORT, *_LONG))
    _check_parts(where, own)
    template = own.pop("name", None)
    if not isinstance(template, str) or not template.strip():
        raise mistake(f"{where}.name", template, "a name", 'give one, e.g. "{controller}, {rate}"')
    if len(template) > _LONGEST_NAME:
        raise mistake(f"{where}.name", template[:40], f"at most {_LONGEST_NAME} characters", "shorten it")
    keys = _merged(defaults, own)
    if "flows" in own:
        for name in ("controller", "count", "size"):
            if name in own:
                raise mistake(f"{where}.{name}", own[name], f"flows or {name}, not both", "write it in flows")
            keys.pop(name, None)  # A default of single flows is none of these.
    axes = {name: keys[name] for name in SHORT if isinstance(keys.get(name), list)}
    places = {"name": where, **{name: where if name in own else "defaults" for name in keys}}
    for name, values in axes.items():
        if not values:
            raise mistake(f"{places[name]}.{name}", values, "at least one value", "add one, or leave it out")
    count = math.prod(map(len, axes.values()))
    if count > most:
        expected = f"at most {MOST_CELLS} cells of all tables together"
        raise mistake(where, f"{count} combinations", expected, "shorten the lists")
    cells = []
    for values in itertools.product(*axes.values()):
        chosen = {**keys, **dict(zip(axes, values, strict=True))}
        cells.append(_Message(_named(where, template, chosen), copy.deepcopy(chosen), places))
    return cells


def _named(where: str, template: str, keys: Mapping[str, Any]) -> str:
    """The template with its `{key}`s filled in."""
    message = {name: keys[name] for name in SHORT if name in keys}
    try:
        fields = [field for field in string.Formatter().parse(template) if field[1] is not None]
        # Values are inserted as they were given: `{loss:d}` and `{rate!r}` are rejected.
        wrong = next((field for field in fields if field[1] not in message or field[2] or field[3]), None)
        if wrong is None:
            return template.format(**message)
        _, name, spec, conversion = wrong
        written_so = f"{name}{f'!{conversion}' if conversion else ''}{f':{spec}' if spec else ''}"
        hint = f"not {written_so!r}"
    except ValueError as error:
        hint = f"not {str(error)!r}"
    known = ", ".join(f"{{{name}}}" for name in message)
    raise mistake(f"{where}.name", template, f"a name with no other braces than {known}", hint)


def _check_names(message: list[_Message]) -> None:
    seen: set[str] = set()
    for one in message:
        slug = Cell(one.name, {}, Alternative(one.name, "{}"), 0).slug
        field = f"{one.where['name']}.name"
        if slug in seen:
            fix = "put the keys that have lists into the name"
            raise mistake(field, one.name, "a name for each cell alone", fix)
        if not slug:
            raise mistake(field, one.name, "a name with letters or digits", "name the cell")
        seen.add(slug)


def _quick(table: Any, message: list[_Message]) -> list[_Message]:
    if table is None:
        raise mistake("quick", "none", "a table that names the quick cells", "leave out --quick or add it")
    quick = _table("quick", table)
    _check_keys("quick", quick, ("duration", "cells"))
    names = quick.get("cells")
    if not isinstance(names, list) or not names:
        raise mistake("quick.cells", names, "names of cells", "name at least one")
    known = {one.name for one in message}
    for name in names:
        if not isinstance(name, str) or name not in known:
            close = get_close_matches(str(name)[:100], known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "see the names with --list"
            raise mistake("quick.cells", name, "the name of a cell", hint)
    wanted = set(names)
    shorter = {"duration": quick["duration"]} if "duration" in quick else {}
    places = dict.fromkeys(shorter, "quick")
    return [
        _Message(one.name, {**one.keys, **shorter}, {**one.where, **places})
        for one in message
        if one.name in wanted
    ]


def _cell(path: Path, message: _Message, hosts: str | None) -> Cell:
    document = _document(message.name, message.keys, path.parent)
    alternative, seed = _resolved(path, message, document)
    modelled = None
    if hosts is not None:
        modelled, _ = _resolved(path, message, _merged(document, {"hosts": {"model": hosts}}))
    return Cell(message.name, document, alternative, seed, modelled)


def _resolved(path: Path, message: _Message, document: dict[str, Any]) -> tuple[Alternative, int]:
    try:
        # Errors may quote a trace only from this folder: an untrusted grid may name any file.
        resolved = scenario.from_document(document, path.parent, code=False)
    except ScenarioError as error:
        field = message.field(error.field)
        raise renamed(error, {error.field: field}) from None
    (alternative,) = resolved.alternatives
    return Alternative(message.name, alternative.spec_json, alternative.own), resolved.seed


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
    """Delivery traces are named relative to the grid; the documents of its cells may lie elsewhere."""
    if isinstance(value, list):
        return [_with_whole_paths(one, base) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: str((base / one).absolute())
        if key == "deliveries" and isinstance(one, str)
        else _with_whole_paths(one, base)
        for key, one in value.items()
    }


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables merged, including inner tables; `over` wins."""
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
            close = get_close_matches(key[:100], known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "leave it out"
            field = f"{where}.{key}" if where else key
            raise mistake(field, key, f"one of the keys {', '.join(known)}", hint)


def _check_parts(where: str, table: Mapping[str, Any]) -> None:
    """Checks that tables are tables, and that short keys are used where they exist: two could contradict."""
    for part in ("path", "hosts", "record"):
        for key in _table(f"{where}.{part}", table.get(part, {})):
            if SHORT.get(key) == part:
                raise mistake(
                    f"{where}.{part}.{key}", key, f"{key} as a key of its own", f"write {key} = ..."
                )
