"""Mistakes that Python finds before the native half sees the scenario, in the native half's words."""

import json

from fullpipe._native import ScenarioError


class SweepError(RuntimeError):
    """A sweep could not go on, e.g. because the disk is full. `str()` says why and how to resume."""


def mistake(field: str, given: object, expected: str, mend: str) -> ScenarioError:
    """A `ScenarioError` that names the field, what was given, what is expected and how to mend it."""
    error = ScenarioError(f"{field}: {_quoted(given)} cannot be used; expected {expected}; {mend}")
    error.field, error.given, error.expected, error.mend = field, str(given), expected, mend
    return error


def unfit(option: str, wrong: str, mend: str) -> ScenarioError:
    """A `ScenarioError` for an option that does not fit what stands beside it: "--list needs a grid; ..."."""
    error = ScenarioError(f"{option} {wrong}; {mend}")
    error.field, error.given, error.expected, error.mend = option.lstrip("-"), option, wrong, mend
    return error


def _quoted(given: object) -> str:
    return json.dumps(given, ensure_ascii=False) if isinstance(given, str | int | float) else repr(given)
