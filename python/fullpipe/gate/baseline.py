"""The baseline: one JSON object a line and case, sorted by name, made to be committed and reviewed.

    {"key":{"case":"deep-buffer","world":"sim"},"gate":1,"subject":"bbr3","setting":"0f3c...","seeds":[1,2,3],
     "measures":{"goodput_bps":47.9e6, ...},"records":["9f2c...", ...]}

It has no time and no machine: the same behaviour gives the same bytes.
"""

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fullpipe import evidence, files
from fullpipe._native import ScenarioError
from fullpipe.errors import stated
from fullpipe.gate.measured import Measured, Value

VERSION = 1
DEFAULT = "gate-baseline.jsonl"
RECORD = "write it by `fullpipe gate record`"
_SHAPE: Mapping[str, Any] = {
    "type": "object",
    "required": ["key", "gate", "subject", "setting", "seeds", "measures", "records"],
    "additionalProperties": False,
    "properties": {
        "key": {
            "type": "object",
            "required": ["case", "world"],
            "additionalProperties": False,
            "properties": {"case": {"type": "string"}, "world": {"type": "string"}},
        },
        "gate": {"type": "integer"},
        "subject": {"type": "string"},
        "setting": {"type": "string"},
        "seeds": {"type": "array", "items": {"type": "integer"}},
        "verdict": {"type": "string"},
        "measures": {"type": "object", "additionalProperties": {"type": "number"}},
        "spread": {"type": "object", "additionalProperties": {"type": "number"}},
        "records": {"type": "array", "items": {"type": "string"}},
    },
}


def read(path: Path) -> dict[tuple[str, str], Measured]:
    """The lines of a baseline, by case and world.

    Raises:
        ScenarioError: It is missing, damaged, or of another version; the error has the fix.
    """
    if not path.exists():
        sentence = f"baseline: {path} is missing; {RECORD}"
        raise stated("baseline", str(path), sentence, "a baseline", RECORD)
    try:
        lines = evidence.read(path)
    except ScenarioError as error:
        sentence = f"baseline: {error}; restore {path}, or {RECORD}"
        raise stated("baseline", str(path), sentence, "a baseline", RECORD) from None
    found: dict[tuple[str, str], Measured] = {}
    for number, line in enumerate(lines, 1):
        version = line.get("gate")
        if isinstance(version, int) and version != VERSION:
            why = f"has version {version}, and this Fullpipe reads version {VERSION}"
            raise _unusable(path, number, why)
        if (wrong := evidence.fault(line, _SHAPE)) is not None:
            raise _unusable(path, number, wrong)
        measured = _measured(line)
        found[measured.key] = measured
    return found


def write(path: Path, measured: Sequence[Measured], only: str | None = None) -> None:
    """Writes a baseline, as a whole or not at all. With `only`, other cases' lines stay as they are.

    Raises:
        ScenarioError: With `only`, the file there is no baseline.
        OutputError: It cannot be written.
    """
    kept = read(path) if only is not None and path.exists() else {}
    lines = {key: one for key, one in kept.items() if not fnmatchcase(key[0], only or "")}
    lines |= {one.key: one for one in measured}
    text = evidence.text_of([_line(one) for one in lines.values()])
    files.write_named(path, text.encode())


def _unusable(path: Path, number: int, why: str) -> Exception:
    fix = "write it again by `fullpipe gate record`"
    return stated("baseline", str(path), f"baseline: line {number} of {path} {why}; {fix}", "a baseline", fix)


def _measured(line: Mapping[str, Any]) -> Measured:
    spread = line.get("spread", {})
    wall_time = "spread" in line
    values = {
        name: Value(value, spread.get(name, math.inf) if wall_time else 0.0)
        for name, value in line["measures"].items()
    }
    return Measured(
        line["key"]["case"],
        line["key"]["world"],
        line["subject"],
        line["setting"],
        tuple(line["seeds"]),
        values,
        tuple(line["records"]),
        line.get("verdict", ""),
    )


def _line(one: Measured) -> dict[str, Any]:
    spread = {name: value.half for name, value in one.measures.items() if math.isfinite(value.half)}
    return {
        "key": {"case": one.name, "world": one.world},
        "gate": VERSION,
        "subject": one.subject,
        "setting": one.setting,
        "seeds": list(one.seeds),
        **({"verdict": one.verdict} if one.verdict else {}),
        "measures": {name: value.mean for name, value in one.measures.items()},
        **({} if one.records else {"spread": spread}),
        "records": list(one.records),
    }


def rounded(one: Measured) -> Measured:
    """The same as a baseline keeps it, so that both sides of a comparison are rounded equally."""
    return _measured(evidence.rounded(_line(one)))
