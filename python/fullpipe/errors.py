"""Mistakes that Python finds before the native half sees the scenario, in the native half's words."""

import json

from fullpipe._native import ScenarioError


def mistake(field: str, given: object, expected: str, mend: str) -> ScenarioError:
    """A `ScenarioError` that names the field, what was given, what is expected and how to mend it."""
    error = ScenarioError(f"{field}: {_quoted(given)} cannot be used; expected {expected}; {mend}")
    error.field, error.given, error.expected, error.mend = field, str(given), expected, mend
    return error


def _quoted(given: object) -> str:
    return json.dumps(given, ensure_ascii=False) if isinstance(given, str | int | float) else repr(given)
