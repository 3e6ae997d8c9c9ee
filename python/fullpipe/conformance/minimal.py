"""The scenarios of a case that failed, as files for `fullpipe run`: for whoever repairs the controller."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fullpipe.conformance.results import BBR3, CaseResults, Check, Played, Result
from fullpipe.runs.worlds import stacks
from fullpipe.text import MOST_SENTENCE, shown

# What a scenario can change by itself. All else was changed by hand.
_SCHEDULED = ("rate", "rtt", "loss")


def scenarios(report: CaseResults, result: Result, stem: Path) -> dict[Path, str]:
    """The files and their TOML, with the case, the criterion and the measured value above it.

    `stem` is their folder and the name without ".toml". There is a file for each run of the case, with its
    number if there are several: the runs of the seed on which it failed. None if it was not played, or was
    changed in a way that no scenario says, such as a buffer.
    """
    check = result.decisive
    changed = {name for played in result.played for _, amounts in played.changes for name in amounts}
    if check is None or not changed <= set(_SCHEDULED):
        return {}
    several = len(result.played) > 1
    files = [
        stem.with_name(f"{stem.name}-{number}.toml" if several else f"{stem.name}.toml")
        for number in range(1, len(result.played) + 1)
    ]
    texts = {}
    for number, (file, played) in enumerate(zip(files, result.played, strict=True), 1):
        lines = [
            *_about(report, result, check),
            *(_of_several(number, files, result) if several else []),
            "# The case may judge only a part of the run; the table of `fullpipe run` is of all of it.",
            "#",
            _comment(f"    {command(report, str(file), check)}"),
        ]
        name = f"{result.case.name}-{number}" if several else result.case.name
        document = _document(report, name, played)
        texts[file] = "\n".join([*lines, *toml(document)]) + "\n"
    return texts


def command(report: CaseResults, file: str, check: Check) -> str:
    """The command that runs a scenario of a failure."""
    words = ["fullpipe", "run", file, "--world", report.world, "--seed", str(check.seed)]
    return shlex.join([*words, *stacks.options(report.controller)])


def _about(report: CaseResults, result: Result, check: Check) -> list[str]:
    """What the case is, and what it came to."""
    of_this_run = result.reason and result.reason_seed == check.seed
    source = f"{result.case.source}; the number is {check.criterion.source}"
    with_versions = f" ({report.versions})" if report.versions else ""
    behind = "".join(f" {shlex.quote(word)}" for word in stacks.options(report.controller))
    conform = f"fullpipe conform {report.controller}{report.option}{behind}"
    return [
        _comment(f"{result.case.title}: the case {result.case.name} of `{conform}`."),
        f"# Expected: {check.criterion.quantity}: {check.criterion.bounds}.",
        f"# Measured: {check.measured}, seed {check.seed}{with_versions}.",
        # For instance what the case waited for in vain. One line, whatever it holds.
        *([_comment(f"In this run: {' '.join(result.reason.split())}.")] if of_this_run else []),
        f"# Source: {source}.",
        *([f"# The draft is {report.text}."] if "draft" in source and report.suite == BBR3 else []),
    ]


def _of_several(number: int, files: list[Path], result: Result) -> list[str]:
    """Which run of the case this is, and where the others are."""
    named = [f"{at} ({one.name})" if one.name else f"{at}" for at, one in enumerate(result.played, 1)]
    this = named.pop(number - 1)
    others = [file.name for at, file in enumerate(files, 1) if at != number]
    where = ", ".join(f"run {one} is {file}" for one, file in zip(named, others, strict=True))
    return [
        _comment(f"The case consists of {len(files)} runs. This is run {this}; {where}."),
        "# The expected and the measured value are the case's, not those of one run.",
    ]


def _comment(text: str) -> str:
    """A line of TOML's comments, which no character of a reason or of a folder's name may end."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return f"# {indent}{shown(text, MOST_SENTENCE)}"


def _document(report: CaseResults, name: str, played: Played) -> dict[str, Any]:
    document: dict[str, Any] = dict(played.runs.scenario.document)
    ended_s = played.runs.runs[0].alternative.duration_s
    path = dict(document["path"])
    if played.changes:
        path["changes"] = [{"at": f"{at:.6f} s", **amounts} for at, amounts in played.changes]
    flows = [{**flow, "controller": report.controller} for flow in document["flows"]]
    named = {"name": name, "duration": f"{ended_s:g} s"}
    return {**document, **named, "path": path, "flows": flows}


def toml(document: Mapping[str, Any]) -> Iterator[str]:
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
