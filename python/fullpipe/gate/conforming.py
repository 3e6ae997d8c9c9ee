"""Plays conformance cases: all cases of a subject in a world together, with a time limit."""

import time
from collections.abc import Sequence

from fullpipe import plugins
from fullpipe._native import ControllerError, ScenarioError, WorldError
from fullpipe.gate.baseline import rounded
from fullpipe.gate.cases import Case
from fullpipe.gate.measured import Measured, of_conform
from fullpipe.gate.options import Options

Key = tuple[str, str]


class _LateError(Exception):
    """The cases take longer than they may."""


def play(
    cases: Sequence[Case], measured: dict[Key, Measured], failed: dict[Key, str], options: Options
) -> None:
    """Plays the cases; adds what they came to, or why they could not be played."""
    together: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        together.setdefault((case.subject, case.world), []).append(case)
    for (subject, world), own in together.items():
        try:
            measured |= _played(subject, world, own, options)
        except _LateError as error:
            failed |= {case.key: str(error) for case in own}
        except (ScenarioError, WorldError, ControllerError) as error:
            failed |= {case.key: plugins.said(error) for case in own}


def _played(subject: str, world: str, cases: Sequence[Case], options: Options) -> dict[Key, Measured]:
    from fullpipe.conformance.run import conform

    limit_s = sum({case.name: case.limit_s for case in cases}.values())
    began = time.monotonic()

    def watch(_world: str, done: float, total: int) -> None:
        if time.monotonic() - began > limit_s:
            raise _LateError(f"the conformance cases ran for more than {limit_s:g} s, their time limit")
        options.watch("conform", done, total, f"{int(done)} of {total} plays")

    names = list(dict.fromkeys(case.conform for case in cases))
    found = conform(subject, names, world=world, watch=watch, workers=options.jobs)
    by_name = {result.case.name: result for result in found.results}
    return {case.key: rounded(of_conform(case, by_name[case.conform])) for case in cases}
