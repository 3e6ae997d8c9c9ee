"""The path of a scenario file, e.g. a measured one, as the keys that commands have options for."""

import json
from pathlib import Path as File
from typing import Any

import fullpipe._native as _native
from fullpipe.errors import mistake, renamed
from fullpipe.scenario import kinds
from fullpipe.scenario.path import NAMES, Path

_LINKS = {"rate", "deliveries"}


def read(file: File, field: str) -> tuple[dict[str, Any], Path | None, list[str]]:
    """The keys of the path, those of its way back, and sentences on what has no option.

    `field` is the parameter that named the file. Raises `ScenarioError`.
    """
    kinds.check(field, file, ("Scenario", "Grid"), "a scenario file")
    try:
        document = json.loads(_native.resolve_file(str(file))[0])
    except _native.ScenarioError as error:
        raise renamed(error, {"scenario": field}) from None
    path = document["path"]
    reverse = path.pop("reverse", {})
    forward, notes = _keys(path, "path", file)
    back, more = _keys(reverse, "path.reverse", file)
    if not forward.keys() & _LINKS:
        raise mistake(field, str(file), "a scenario whose path has a rate", "give it one")
    return forward, Path(**back) if back else None, [*notes, *more]


def beside(given: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The keys of a file with options in place: a rate replaces deliveries, and deliveries replace a rate."""
    kept = {key: one for key, one in own.items() if not (key in _LINKS and given.keys() & _LINKS)}
    return {**kept, **given}


def _keys(path: dict[str, Any], place: str, file: File) -> tuple[dict[str, Any], list[str]]:
    found = {name: value for name, value in path.items() if name in NAMES and value is not None}
    if "deliveries" in found:
        # Relative to the file, not to the working directory.
        found["deliveries"] = str((file.parent / found["deliveries"]).absolute())
    for name in ("buffer", "burst"):
        if isinstance(found.get(name), int | float):
            found[name] = f"{found[name]} B"
    others = [name for name, value in path.items() if name not in NAMES and value]
    return found, [f"{file.name} has {place}.{name}, which has no option and is not used" for name in others]
