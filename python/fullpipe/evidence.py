"""Evidence: what was measured, as one JSON object a line, in the repository's folder `results`.

Every line has a `key`, which no other line has, and `made`: when and by what it was measured. Lines are
sorted by their keys, so that a change shows as the rows it is about. `results/schema` has the shape of each
file's lines as a JSON Schema, of which `fault` checks the words that those files use.
"""

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeAlias

import fullpipe._native as _native
from fullpipe import files, reading
from fullpipe.errors import OutputError, mistake
from fullpipe.text import joined

Line: TypeAlias = dict[str, Any]

# The option that lets a smaller run replace a larger one.
LARGER = "--replace-larger"
_MOST_BYTES = 64 << 20
_DIGITS = 6
# The file with the fingerprint of each world's code when the pages were last made.
BUILDS = "builds.jsonl"
# The file with fingerprints of code that gives the same results.
EQUAL = "equal_builds.jsonl"
# How old a line is: measured with other code than today's; or from a table of earlier times, made before
# results were recorded.
OLDER, IMPORTED = "older", "imported"
_AGES = {
    IMPORTED: "Imported, from before the code's version was recorded: {}.",
    OLDER: "Measured with older code than today's: {}.",
}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def folder() -> Path:
    """The folder `results` here or in a folder above.

    Raises:
        ScenarioError: There is none, as outside of the repository.
    """
    here = Path.cwd()
    for one in (here, *here.parents):
        if (one / "results" / "schema").is_dir():
            return one / "results"
    raise mistake("record", "results", "a folder results/schema here or above", "run it in the repository")


def read(path: Path) -> list[Line]:
    """The lines of a file; none if there is no file.

    Raises:
        ScenarioError: It is no such file: the error names the line.
    """
    try:
        text = reading.text(path, _MOST_BYTES)
    except FileNotFoundError:
        return []
    except reading.Unreadable as error:
        raise mistake("results", str(path), error.expected, error.fix) from None
    lines: list[Line] = []
    for number, one in enumerate(text.splitlines(), 1):
        try:
            line = json.loads(one, object_pairs_hook=_object, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise _damaged(path, number, one, f"is not JSON ({error})") from None
        if (wrong := fault(line, _LINE) or _out_of_order(line, lines)) is not None:
            raise _damaged(path, number, one, wrong)
        lines.append(line)
    return lines


def _damaged(path: Path, number: int, line: str, wrong: str) -> Exception:
    return mistake(f"{path.name}:{number}", line[:40], "a line of evidence", f"the line {wrong}")


def _out_of_order(line: Line, before: Sequence[Line]) -> str | None:
    """Why a line cannot come after those before it; None if it can."""
    if before and list(line["key"]) != list(before[-1]["key"]):
        return "has a key of other parts than the line before"
    if before and _order(before[-1]) >= _order(line):
        return "does not come after the line before: keys are unique and sorted"
    return None


def replace(
    path: Path,
    lines: Iterable[Mapping[str, Any]],
    gone: Callable[[Line], bool] = lambda _line: False,
    size: Callable[[Mapping[str, Any]], Sequence[float]] | None = None,
) -> None:
    """Puts lines into a file, in place of those with the same keys and of those that are `gone`.

    The file is replaced as a whole or not at all. Other lines stay as they are. `size` says how much was run
    for a line; with it, a line of the same code is not replaced by one of which some part is smaller.

    Raises:
        ScenarioError: A line, or the file, has not the shape that the schema says; or a line is smaller.
        OutputError: It cannot be written, or another process writes it.
    """
    schema = json.loads((path.parent / "schema" / f"{path.stem}.json").read_text(encoding="utf-8"))
    new = [json.loads(_text(line)) for line in lines]
    for line in new:
        if (wrong := fault(line, schema)) is not None:
            raise mistake(path.name, _text(line.get("key")), "a line as its schema says", f"the line {wrong}")
    with files.locked(path.parent, path.name) as lock:
        if lock is None:
            raise OutputError(f"cannot write {path}: another process writes it; wait until it has ended")
        by_key = {_text(line["key"]): line for line in new}
        kept = []
        for line in read(path):
            other = by_key.get(_text(line["key"]))
            if other is None:
                kept += [] if gone(line) else [line]
            elif size is not None and _shrinks(line, other, size, path.parent):
                raise mistake(
                    path.name,
                    _text(line["key"]),
                    "a run that is no smaller than the recorded one of the same code",
                    f"give {LARGER} to replace it by the smaller one",
                )
        files.write(path.parent, path.name, text_of([*kept, *new]).encode(), lasting=True)


def text_of(lines: Iterable[Mapping[str, Any]]) -> str:
    """A file's text: the lines sorted by their keys, numbers with six significant digits."""
    return "".join(f"{_text(line)}\n" for line in sorted(lines, key=_order))


def _shrinks(
    old: Line, new: Line, size: Callable[[Mapping[str, Any]], Sequence[float]], results: Path
) -> bool:
    """Whether a line is of the code that is to replace it, and larger in some part."""
    today = {world: equal_to(results, world, build) for world, build in new["made"]["fingerprint"].items()}
    return not age(old, today) and any(map(float.__lt__, map(float, size(new)), map(float, size(old))))


def made(command: str, fingerprint: Mapping[str, str], ran_by: Sequence[str]) -> dict[str, Any]:
    """What a line says of its origin: now, by this Fullpipe.

    `fingerprint` is the build of each world, `ran_by` what carried the runs: a kernel, QUIC stacks.
    """
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {
        "at": at,
        "command": command,
        "fullpipe": _native.version(),
        "fingerprint": dict(fingerprint),
        "ran_by": list(ran_by),
    }


# The fingerprints of each world's code of today, and of those that give the same results.
Builds: TypeAlias = Mapping[str, Set[str]]


def builds(results: Path) -> dict[str, set[str]]:
    """The code of each world as of the last time that the pages were made, and what is equal to it."""
    found = {line["key"]["world"]: {line["build"]} for line in read(results / BUILDS)}
    for world, same in found.items():
        same |= equal_to(results, world, next(iter(same)))
    return found


def equal_to(results: Path, world: str, build: str) -> set[str]:
    """A fingerprint of a world's code, and those that were shown to give the same results."""
    keys = [line["key"] for line in read(results / EQUAL) if line["key"]["world"] == world]
    pairs = [{key["old"], key["new"]} for key in keys]
    same = {build}
    while more := {one for pair in pairs if pair & same for one in pair} - same:
        same |= more
    return same


def age(line: Mapping[str, Any], today: Builds) -> str:
    """`IMPORTED`, `OLDER`, or nothing for a line of today's code."""
    fingerprint = line["made"]["fingerprint"]
    if not fingerprint:
        return IMPORTED
    # Adapters of stacks follow the code's own. They are no code of a world: `ran_by` has their versions.
    own = {world: build.partition(" ")[0] for world, build in fingerprint.items()}
    return OLDER if any(build not in today.get(world, ()) for world, build in own.items()) else ""


def ages_sentence(lines: Sequence[Mapping[str, Any]], name: str, today: Builds) -> str:
    """What of a table is not of today's code; empty if nothing is. `name` is a part of the keys."""
    message = []
    for word, sentence in _AGES.items():
        old = [str(line["key"][name]) for line in lines if age(line, today) == word]
        if len(old) == len(lines) > 0:
            message.append(sentence.format("the whole table"))
        elif old:
            found = list(dict.fromkeys(old))
            of = len({line["key"][name] for line in lines})
            named = joined(found) if len(found) <= _MOST_NAMED else f"lines of {len(found)} of {of} {name}s"
            message.append(sentence.format(named))
    return " ".join(message)


# Longer lists are counted.
_MOST_NAMED = 6


def fault(value: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a value by a JSON Schema, as a text after "the line"; None if nothing is.

    Of JSON Schema, it knows what the files in `results/schema` use.
    """
    return _fault(value, schema, schema, "")


def _fault(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> str | None:
    if "$ref" in schema:
        return _fault(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, at)
    where = f" at {at}" if at else ""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    # In Python, a boolean is a number.
    if types and not any(
        isinstance(value, _TYPES[one]) and (one == "boolean" or not isinstance(value, bool)) for one in types
    ):
        return f"has{where} no {joined(types, 'or')}"
    if "enum" in schema and value not in schema["enum"]:
        return f"has{where} none of {joined(list(map(json.dumps, schema['enum'])))}"
    inner: list[tuple[Any, Any, str]] = []
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        if missing := [one for one in schema.get("required", ()) if one not in value]:
            return f"has{where} no {missing[0]}"
        if others is False and (strange := [one for one in value if one not in known]):
            return f"has{where} {strange[0][:40]}, which nobody knows"
        open_ = others if isinstance(others, dict) else {}
        inner = [(one, known.get(name, open_), f"{at}.{name}".strip(".")) for name, one in value.items()]
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
            return f"has{where} {len(value)} values"
        inner = [(one, schema.get("items", {}), f"{at}[{number}]") for number, one in enumerate(value)]
    return next((wrong for one in inner if (wrong := _fault(*one[:2], root, one[2])) is not None), None)


# What every line of every file has.
_LINE = {
    "type": "object",
    "required": ["key"],
    "properties": {"key": {"type": "object", "additionalProperties": {"$ref": "#/$defs/part"}}},
    "$defs": {"part": {"type": ["string", "integer", "null", "array"], "items": {"type": "string"}}},
}


def _order(line: Mapping[str, Any]) -> list[str]:
    return [json.dumps(part, ensure_ascii=False) for part in line["key"].values()]


def _text(value: Any) -> str:
    """A line as it is written."""
    return json.dumps(rounded(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def rounded(value: Any) -> Any:
    """A value as it is written: six significant digits, and a whole number without a point."""
    if isinstance(value, Mapping):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    if isinstance(value, float) and math.isfinite(value):
        short = float(f"{value:.{_DIGITS}g}")
        # A difference that is rounded to -0.0 keeps its direction.
        whole = short.is_integer() and abs(short) < 1e15 and repr(short) != "-0.0"
        return int(short) if whole else short
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")
