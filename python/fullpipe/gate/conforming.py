"""Plays conformance cases: all cases of a subject in a world together, with a time limit.

The result of a case is kept as JSON, keyed by the fingerprint of subject, case and engine.
"""

import contextlib
import hashlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import conformance, files, plugins, reading
from fullpipe._native import ControllerError, ScenarioError, WorldError
from fullpipe.conformance import suites
from fullpipe.conformance.results import NOT_JUDGED
from fullpipe.errors import OutputError
from fullpipe.gate.baseline import rounded
from fullpipe.gate.cases import Case
from fullpipe.gate.measured import Measured, of_conform
from fullpipe.gate.options import Options
from fullpipe.runs.worlds import registry, stacks
from fullpipe.scenario.controllers import Own, is_own

Key = tuple[str, str]
_MOST_BYTES = 1 << 20


class _LateError(Exception):
    """The cases take longer than they may."""


@dataclass(frozen=True)
class _Player:
    """What cases are played together: a subject in a world, by a suite."""

    subject: str
    world: str
    suite: str
    like: str


@dataclass(frozen=True)
class _Outcome:
    """The result of a case: its verdict, and the values of its criteria."""

    verdict: str
    values: Mapping[str, float | None]


def play(
    cases: Sequence[Case], measured: dict[Key, Measured], failed: dict[Key, str], options: Options
) -> None:
    """Plays the cases; adds their results, or why they could not be played."""
    together: dict[_Player, list[Case]] = {}
    for case in cases:
        together.setdefault(_Player(case.subject, case.world, case.suite, case.like), []).append(case)
    for player, own in together.items():
        try:
            found = _found_or_played(player, own, options)
        except (_LateError, ScenarioError, WorldError, ControllerError) as error:
            failed |= {case.key: plugins.message(error) for case in own}
            continue
        for case in own:
            one = found[case.conform]
            measured[case.key] = rounded(of_conform(case, one.verdict, one.values))


def _found_or_played(player: _Player, cases: Sequence[Case], options: Options) -> dict[str, _Outcome]:
    """The result of each case, by the conformance case's name. Plays those that are not kept."""
    names = list(dict.fromkeys(case.conform for case in cases))
    kept = not is_own(player.subject) and not stacks.behind([player.subject])
    store = options.store / "conform" if options.store is not None and kept else None
    keys = (
        {} if store is None else {name: _key(player, name) for name in names if _is_ours(player.suite, name)}
    )
    found = {} if store is None else {name: one for name, key in keys.items() if (one := _read(store, key))}
    missing = [name for name in names if name not in found]
    if missing:
        limit_s = sum({case.conform: case.limit_s for case in cases if case.conform in missing}.values())
        played = _played(player, missing, limit_s, options, cases[0].folder)
        found |= played
        if store is not None:
            # A store that cannot be used now is no reason to fail.
            with contextlib.suppress(OutputError):
                for name, one in played.items():
                    if name in keys:
                        _write(store, keys[name], one)
    return found


def _played(
    player: _Player, names: Sequence[str], limit_s: float, options: Options, folder: Path
) -> dict[str, _Outcome]:
    from fullpipe.conformance.run import conform

    began = time.monotonic()

    def watch(_world: str, done: float, total: int) -> None:
        if time.monotonic() - began > limit_s:
            raise _LateError(f"the conformance cases ran for more than {limit_s:g} s, their time limit")
        options.watch("conform", done, total, f"{int(done)} of {total} plays")

    subject = player.subject
    found = conform(
        Own.load(subject, folder) if is_own(subject) else subject,
        list(names),
        world=player.world,
        like=player.like,
        suite=player.suite,
        watch=watch,
        workers=options.jobs,
    )
    for result in found.results:
        if result.verdict == NOT_JUDGED:
            raise WorldError(f"{result.case.name}: {result.reason}")
    return {
        result.case.name: _Outcome(
            result.verdict, {check.criterion.key: _finite(check.value) for check in result.checks}
        )
        for result in found.results
    }


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _is_ours(suite: str, name: str) -> bool:
    """Whether a case is one of Fullpipe's: of those of other packages, no fingerprint is known."""
    (case,) = suites.CHOSEN[suite]([name])
    return case.play.__module__.startswith(f"{conformance.__name__}.")


def _key(player: _Player, name: str) -> str:
    decisive = [_engine(), registry.named(player.world).build(), *astuple(player), name]
    return hashlib.sha256(json.dumps(decisive).encode()).hexdigest()


@cache
def _engine() -> str:
    """The fingerprint of what plays and judges: the native half, and the cases in Python."""
    digest = hashlib.sha256()
    folder = Path(next(iter(conformance.__path__)))
    for path in [Path(str(_native.__file__)), *sorted(folder.rglob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _read(store: Path, key: str) -> _Outcome | None:
    """What is kept; None if there is nothing, or it cannot be read."""
    try:
        kept: Any = json.loads(reading.text(store / f"{key}.json", _MOST_BYTES))
        values = {str(name): None if one is None else float(one) for name, one in kept["values"].items()}
        return _Outcome(str(kept["verdict"]), values)
    except (OSError, reading.Unreadable, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _write(store: Path, key: str, outcome: _Outcome) -> None:
    files.make_folder(store)
    content = {"verdict": outcome.verdict, "values": dict(outcome.values)}
    files.write(store, f"{key}.json", json.dumps(content).encode())
