"""Plays conformance cases: all cases of a subject in a world together, with a time limit.

What a case came to is kept as JSON, keyed by the fingerprint of subject, case and engine.
"""

import contextlib
import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import conformance, files, plugins, reading
from fullpipe._native import ControllerError, ScenarioError, WorldError
from fullpipe.errors import OutputError
from fullpipe.gate.baseline import rounded
from fullpipe.gate.cases import Case
from fullpipe.gate.measured import Measured, of_conform
from fullpipe.gate.options import Options
from fullpipe.runs.worlds import registry
from fullpipe.scenario.controllers import Own, is_own

Key = tuple[str, str]
_MOST_BYTES = 1 << 20


class _LateError(Exception):
    """The cases take longer than they may."""


@dataclass(frozen=True)
class _Came:
    """What a case came to: its verdict, and the values of its criteria."""

    verdict: str
    values: Mapping[str, float | None]


def play(
    cases: Sequence[Case], measured: dict[Key, Measured], failed: dict[Key, str], options: Options
) -> None:
    """Plays the cases; adds what they came to, or why they could not be played."""
    together: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        together.setdefault((case.subject, case.world), []).append(case)
    for (subject, world), own in together.items():
        try:
            came = _found_or_played(subject, world, own, options)
        except (_LateError, ScenarioError, WorldError, ControllerError) as error:
            failed |= {case.key: plugins.said(error) for case in own}
            continue
        for case in own:
            one = came[case.conform]
            measured[case.key] = rounded(of_conform(case, one.verdict, one.values))


def _found_or_played(subject: str, world: str, cases: Sequence[Case], options: Options) -> dict[str, _Came]:
    """What each case came to, by the conformance case's name. Plays those that are not kept."""
    names = list(dict.fromkeys(case.conform for case in cases))
    store = None if options.store is None or is_own(subject) else options.store / "conform"
    keys = {} if store is None else {name: _key(subject, world, name) for name in names}
    came = {} if store is None else {name: one for name in names if (one := _read(store, keys[name]))}
    missing = [name for name in names if name not in came]
    if missing:
        limit_s = sum({case.conform: case.limit_s for case in cases if case.conform in missing}.values())
        played = _played(subject, world, missing, limit_s, options, cases[0].folder)
        came |= played
        if store is not None:
            # A store that cannot be used now is no reason to fail.
            with contextlib.suppress(OutputError):
                for name, one in played.items():
                    _write(store, keys[name], one)
    return came


def _played(
    subject: str, world: str, names: Sequence[str], limit_s: float, options: Options, folder: Path
) -> dict[str, _Came]:
    from fullpipe.conformance.run import conform

    began = time.monotonic()

    def watch(_world: str, done: float, total: int) -> None:
        if time.monotonic() - began > limit_s:
            raise _LateError(f"the conformance cases ran for more than {limit_s:g} s, their time limit")
        options.watch("conform", done, total, f"{int(done)} of {total} plays")

    controller = Own.load(subject, folder) if is_own(subject) else subject
    found = conform(controller, list(names), world=world, watch=watch, workers=options.jobs)
    return {
        result.case.name: _Came(
            result.verdict, {check.criterion.key: _finite(check.value) for check in result.checks}
        )
        for result in found.results
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _key(subject: str, world: str, name: str) -> str:
    decisive = [_engine(), registry.named(world).build(), subject, world, name]
    return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


@cache
def _engine() -> str:
    """The fingerprint of what plays and judges: the native half, and the cases in Python."""
    digest = hashlib.sha256()
    folder = Path(next(iter(conformance.__path__)))
    for path in [Path(str(_native.__file__)), *sorted(folder.rglob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(store: Path, key: str) -> _Came | None:
    """What is kept; None if there is nothing, or it cannot be read."""
    try:
        told: Any = json.loads(reading.text(store / f"{key}.json", _MOST_BYTES))
        values = {str(name): None if one is None else float(one) for name, one in told["values"].items()}
        return _Came(str(told["verdict"]), values)
    except (OSError, reading.Unreadable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _write(store: Path, key: str, came: _Came) -> None:
    files.make_folder(store)
    told = {"verdict": came.verdict, "values": dict(came.values)}
    files.write(store, f"{key}.json", json.dumps(told).encode())
