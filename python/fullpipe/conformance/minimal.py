"""The scenario of a case that failed, as a file for `fullpipe run`: for whoever repairs the controller."""

from collections.abc import Iterator, Mapping
from typing import Any

from fullpipe.conformance.conformity import Conformity, Played, Result
from fullpipe.conformance.registry import TEXT

# What a scenario can change by itself. All else was changed by hand.
_SCHEDULED = ("rate", "rtt", "loss")


def scenario(conformity: Conformity, result: Result) -> str | None:
    """The scenario in TOML, with the case, the criterion and the measured value above it.

    It is the one stage of the case on which it failed. None if it has several, was not played, or was changed
    in a way that no scenario says.
    """
    if len(result.played) != 1 or (check := result.decisive) is None:
        return None
    (played,) = result.played
    if not all(set(amounts) <= set(_SCHEDULED) for _, amounts in played.changes):
        return None
    of_this_run = result.reason and result.reason_seed == check.seed
    source = f"{result.case.source}; the number is {check.criterion.source}"
    with_versions = f" ({conformity.versions})" if conformity.versions else ""
    lines = [
        f"# {result.case.title}: the case {result.case.name} of `fullpipe conform {conformity.controller}`.",
        f"# Expected: {check.criterion.quantity}: {check.criterion.bounds}.",
        f"# Measured: {check.measured}, seed {check.seed}{with_versions}.",
        # For instance what the case waited for in vain. One line, whatever it holds: it is a comment.
        *([f"# In this run: {' '.join(result.reason.split())}."] if of_this_run else []),
        f"# Source: {source}.",
        *([f"# The draft is {TEXT}."] if "draft" in source else []),
        "# The case may judge only a part of the run; the table of `fullpipe run` is of all of it.",
        "#",
        f"#     fullpipe run THIS.toml --world {conformity.world} --seed {check.seed}",
    ]
    return "\n".join([*lines, *_toml(_document(conformity, result, played))]) + "\n"


def _document(conformity: Conformity, result: Result, played: Played) -> dict[str, Any]:
    document: dict[str, Any] = dict(played.runs.scenario.document)
    ended_s = played.runs.runs[0].alternative.duration_s
    path = dict(document["path"])
    if played.changes:
        path["changes"] = [{"at": f"{at:.6f} s", **amounts} for at, amounts in played.changes]
    flows = [{**flow, "controller": conformity.controller} for flow in document["flows"]]
    named = {"name": result.case.name, "duration": f"{ended_s:g} s"}
    return {**document, **named, "path": path, "flows": flows}


def _toml(document: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a document: values first, then its tables; inner ones are written in one line."""
    yield from (f"{key} = {_value(one)}" for key, one in document.items() if not isinstance(one, dict | list))
    for key, one in document.items():
        if isinstance(one, dict):
            yield from ("", f"[{key}]", *(f"{inner} = {_value(value)}" for inner, value in one.items()))
        elif isinstance(one, list):
            for table in one:
                yield from (
                    "",
                    f"[[{key}]]",
                    *(f"{inner} = {_value(value)}" for inner, value in table.items()),
                )


def _value(one: Any) -> str:
    match one:
        case bool():
            return "true" if one else "false"
        case int() | float():
            return repr(one)
        case dict():
            return "{ " + ", ".join(f"{key} = {_value(value)}" for key, value in one.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(map(_value, one)) + "]"
    # What is written so are quantities and names of ours, and no quotes or control characters.
    escaped = str(one).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
