"""An answer as text for a terminal, Markdown, JUnit's XML, JSON, and annotations of a GitHub workflow."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from rich.console import RenderableType
from rich.text import Text

from fullpipe.gate.checking import COULD_NOT, KEPT, Answer
from fullpipe.gate.judge import BROKEN, FAILED, UNDECIDED, WORSE, Verdict
from fullpipe.report.fitting import Fitting
from fullpipe.text import cell, joined, printable

_HEADINGS = ("Case", "World", "Measure", "Before", "After", "Change", "Promise", "Verdict")
_STYLES = {BROKEN: "bold red", WORSE: "bold red", FAILED: "bold red", UNDECIDED: "yellow", "better": "green"}
_ENDS = {
    KEPT: "The gate passes.",
    1: "The gate fails: a case changed, or breaks a promise.",
    COULD_NOT: "The gate could not compare every case.",
}


def text(answer: Answer) -> list[RenderableType]:
    """The lines and the table for a terminal; three lines where nothing changed."""
    parts: list[RenderableType] = [answer.headline]
    if any(one.rows for one in answer.shown):
        parts.append(_table(answer))
    for same in _together(answer.shown):
        parts += [Text(line) for line in _about(same[0], len(same) - 1)]
    parts += [Text(note) for note in answer.notes]
    return [*parts, Text(_source(answer)), _ENDS[answer.code]]


def _table(answer: Answer) -> Fitting:
    table = Fitting("Case", "World", "Measure")
    for heading in ("Before", "After", "Change"):
        table.add_numbers(heading)
    table.add_text("Promise")
    table.add_text("Verdict")
    for one in answer.shown:
        for number, row in enumerate(one.rows):
            name, world = (one.name, one.world) if number == 0 else ("", "")
            verdict = Text(row.status, style=_STYLES.get(row.status, ""))
            table.add_row(
                Text(name, style="bold"),
                world,
                row.measure,
                row.before,
                row.after,
                row.change,
                row.promise,
                verdict,
            )
    return table


def _together(shown: Iterable[Verdict]) -> Iterable[list[Verdict]]:
    """Cases that could not be compared for the same reason are in one list; each other case is alone."""
    found: dict[object, list[Verdict]] = {}
    for one in shown:
        alone = one.status != FAILED or one.rows or one.parts or not one.reason
        found.setdefault((one.subject, one.title if alone else "", one.reason), []).append(one)
    return found.values()


def _about(one: Verdict, others: int = 0) -> Iterator[str]:
    """What a case's rows do not show: why, where the runs part, and the command that shows the case.

    `others` is how many more cases have the same reason.
    """
    status = "could not be compared" if one.status == FAILED else one.status
    more = f" and {others} more" if others else ""
    yield f"{one.title}{more}: {status}" + (f": {one.reason}" if one.reason else "")
    if one.parts:
        yield f"  {one.parts}"
    if one.command:
        yield f"  {one.command}"


def _source(answer: Answer) -> str:
    subjects = list(dict.fromkeys(one.subject for one in answer.verdicts if one.subject))
    worlds = list(dict.fromkeys(one.world for one in answer.verdicts))
    what = f"{joined(subjects) or 'Scenarios'} in {joined(worlds)}"
    return f"{what}, compared with {answer.baseline}."


def markdown(answer: Answer) -> str:
    """The same as Markdown, for a comment or a step's summary."""
    mark = "✅" if answer.code == KEPT else "❌"
    lines = [f"### {mark} Fullpipe gate: {cell(answer.headline)}", ""]
    rows = [(one, row) for one in answer.shown for row in one.rows]
    if rows:
        lines += [f"| {' | '.join(_HEADINGS)} |", "|---|---|---|--:|--:|--:|---|---|"]
        for one, row in rows:
            values = (
                one.name,
                one.world,
                row.measure,
                row.before,
                row.after,
                row.change,
                row.promise,
                row.status,
            )
            lines.append(f"| {' | '.join(map(cell, values))} |")
        lines.append("")
    for one in answer.shown:
        first, *rest = _about(one)
        lines.append(f"- {cell(first)}")
        lines += [
            f"  - {_code(part.strip()) if part.strip() == one.command else cell(part)}" for part in rest
        ]
    for note in answer.notes:
        lines += ["", cell(note)]
    return "\n".join([*lines, "", cell(f"{_source(answer)} {_ENDS[answer.code]}"), ""])


def _code(text: str) -> str:
    return f"`{printable(text).replace('`', chr(39))}`"


def as_json(answer: Answer) -> str:
    """Everything in plain values."""
    content = {
        "headline": answer.headline,
        "exit_code": answer.code,
        "baseline": answer.baseline,
        "notes": list(answer.notes),
        "cases": [_plain(one, answer) for one in answer.verdicts],
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _plain(one: Verdict, answer: Answer) -> dict[str, Any]:
    keys = ("measure", "before", "after", "change", "promise", "status", "name")
    return {
        "case": one.name,
        "world": one.world,
        "subject": one.subject,
        "status": one.status,
        "fails": answer.fails(one),
        "reason": one.reason,
        "parts": one.parts,
        "command": one.command,
        "changes": [{key: getattr(row, key) for key in keys} for row in one.rows],
    }


def junit(answer: Answer) -> str:
    """A test suite in JUnit's XML: a test for each case and world."""
    failing = [one for one in answer.verdicts if answer.fails(one) and one.status != FAILED]
    failed = [one for one in answer.verdicts if one.status == FAILED]
    open_ = [one for one in answer.verdicts if one.status == UNDECIDED and not answer.fails(one)]
    counts = {"tests": answer.verdicts, "failures": failing, "errors": failed, "skipped": open_}
    attributes = {"name": "fullpipe gate", **{name: str(len(of)) for name, of in counts.items()}}
    suite = ElementTree.Element("testsuite", attributes)
    for one in answer.verdicts:
        test = ElementTree.SubElement(suite, "testcase", classname=f"gate.{one.world}", name=_safe(one.name))
        kind = (
            "error" if one in failed else "failure" if one in failing else "skipped" if one in open_ else ""
        )
        if kind:
            part = ElementTree.SubElement(test, kind, message=_safe(_message(one)), type=one.status)
            part.text = _safe("\n".join([*_rows(one), *_about(one)]))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def github(answer: Answer) -> str:
    """An annotation for each case that is not equal, and the first line of the answer."""
    lines = []
    for one in answer.shown:
        kind = "error" if answer.fails(one) else "notice"
        title = _property(f"Fullpipe gate: {one.title} is {one.status}")
        file, _, line = one.place.rpartition(":")
        place = f"file={_property(file)},line={line}," if line.isdecimal() else ""
        body = _escaped("\n".join([*_rows(one), *_about(one)]))
        lines.append(f"::{kind} {place}title={title}::{body}")
    return "\n".join([*lines, answer.headline, *answer.notes, _ENDS[answer.code], ""])


def _rows(one: Verdict) -> list[str]:
    return [
        f"{row.measure}: {row.before or '–'} before, {row.after} now"
        f"{f' ({row.change})' if row.change else ''}; {row.promise}: {row.status}"
        for row in one.rows
    ]


def _message(one: Verdict) -> str:
    return one.reason or next(iter(_rows(one)), one.status)


def _safe(text: str) -> str:
    """Text that XML can have: without control characters and halves of surrogate pairs."""
    return printable(text).encode(errors="replace").decode()


def _property(text: str) -> str:
    """The value of a property of a workflow command."""
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _escaped(text: str) -> str:
    """The value of a workflow command, in one line."""
    return _safe(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# The formats that are one text, by name. `text` is printed as a table that fits the terminal.
FORMATS: Mapping[str, Callable[[Answer], str]] = {
    "markdown": markdown,
    "junit": junit,
    "json": as_json,
    "github": github,
}
NAMES = ("text", *FORMATS)
