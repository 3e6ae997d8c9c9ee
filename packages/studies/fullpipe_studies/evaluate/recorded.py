"""Reports by the criteria of RFC 9743 as evidence: `results/evaluations.jsonl`, and the page made of it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fullpipe import evidence
from fullpipe.runs.worlds import registry
from fullpipe.text import cell, counted, joined
from fullpipe_studies.checks import number
from fullpipe_studies.evaluate import report
from fullpipe_studies.evaluate.criteria import every
from fullpipe_studies.evaluate.run import Result
from fullpipe_studies.evaluate.verdicts import Verdict

FILE = "evaluations.jsonl"
_SIM = registry.DEFAULT
_JUDGED = (Verdict.BETTER, Verdict.AS, Verdict.WORSE, Verdict.FLAG)
_QUOTED = (Verdict.FLAG.value, Verdict.WORSE.value)


def lines(result: Result, command: str) -> list[evidence.Line]:
    """A line for each criterion, with the cells whose verdict is not "as the standards"."""
    plan = result.plan
    world = registry.named(plan.world)
    carried = "" if plan.world == _SIM else world.versions()
    made = evidence.made(command, {plan.world: world.build()}, [carried] if carried else [])
    return [
        {
            "key": {"controller": plan.candidate, "world": plan.world, "section": row.criterion.section},
            "made": made,
            "seeds": plan.seeds,
            "scenes": len({one.scene for one in row.cells}),
            "quick": plan.quick,
            "verdict": row.verdict.value,
            "because": report.because(row),
            "as_standards": row.count(Verdict.AS),
            "cells": [
                {
                    "scene": one.scene,
                    "measure": one.measure.name,
                    "unit": one.measure.unit,
                    "verdict": one.verdict.value,
                    "values": {
                        name: [of.mean, of.half_width]
                        for name in one.values
                        if (of := one.estimate(name)) is not None
                    },
                }
                for one in row.cells
                if one.verdict is not Verdict.AS
            ],
        }
        for row in result.rows
    ]


def record(path: Path, result: Result, command: str, *, larger: bool) -> None:
    """Puts the lines into that file, in place of the controller's. `larger`: also of a larger run."""
    evidence.replace(
        path,
        lines(result, command),
        gone=lambda line: _subject(line) == (result.plan.candidate, result.plan.world),
        size=None if larger else lambda line: (line["scenes"], line["seeds"]),
    )


def _subject(line: Mapping[str, Any]) -> tuple[str, str]:
    return line["key"]["controller"], line["key"]["world"]


def _subjects(found: Sequence[evidence.Line]) -> list[tuple[str, str]]:
    """The controllers and their worlds: those of the simulator first."""
    return sorted({_subject(line) for line in found}, key=lambda one: (one[1] != _SIM, one))


def _of(found: Sequence[evidence.Line], subject: tuple[str, str]) -> dict[str, evidence.Line]:
    return {line["key"]["section"]: line for line in found if _subject(line) == subject}


def _word(line: Mapping[str, Any] | None) -> str:
    return "–" if line is None else report.word(Verdict(line["verdict"]))


def table(found: Sequence[evidence.Line], ages: str) -> str:
    """How many criteria have which verdict, a row for each controller, and which are flagged or worse."""
    rows, runs = [], dict[str, list[str]]()
    for subject in _subjects(found):
        of = _of(found, subject)
        words = {one.section: _word(of[one.section]) for one in every() if one.section in of}
        counts = [str(sum(word == report.word(one) for word in words.values())) for one in _JUDGED]
        named = [", ".join(section for section, word in words.items() if word == one) for one in _QUOTED]
        rows.append((f"`{subject[0]}`", *counts, *(one or "–" for one in named)))
        runs.setdefault(_seeds(of), []).append(f"`{subject[0]}`")
    heads = ("controller", "better", "as", "worse", "flag", "flagged", "worse in")
    sizes = "; ".join(f"{joined(names)}: {size}" for size, names in runs.items())
    sentences = " ".join(filter(None, (sizes and f"{sizes}.", ages)))
    return f"{sentences}\n\n{_table(heads, rows)}\n"


def matrix(found: Sequence[evidence.Line]) -> str:
    """The verdicts, for the site: a row for each criterion that was run, a column for each controller."""
    subjects = _subjects(found)
    of = [_of(found, one) for one in subjects]
    judged = {one.value for one in _JUDGED}
    rows = [
        (one.section, one.title, *(_short(lines.get(one.section)) for lines in of))
        for one in every()
        if any((line := lines.get(one.section)) is not None and line["verdict"] in judged for lines in of)
    ]
    return _table(("§", "criterion", *(f"`{name}`" for name, _ in subjects)), rows)


def _short(line: Mapping[str, Any] | None) -> str:
    word = _word(line)
    return "as" if word == report.word(Verdict.AS) else f"**{word}**" if word in _QUOTED else word


def _seeds(of: Mapping[str, evidence.Line]) -> str:
    first = next(iter(of.values()))
    return f"{counted(first['seeds'], 'seed')}{', short form' if first['quick'] else ''}"


def markdown(found: Sequence[evidence.Line]) -> str:
    """All verdicts, then the reports one after another, for the site: why, and what was not "as"."""
    reports = [block for one in _subjects(found) for block in _report(one, _of(found, one))]
    return "\n\n".join([matrix(found), *reports])


def _report(subject: tuple[str, str], of: Mapping[str, evidence.Line]) -> Iterator[str]:
    name, world = subject
    first = next(iter(of.values()))
    carried = "".join(f", {one}" for one in first["made"]["ran_by"])
    yield f"## {name}"
    yield f"{report.heading(world)}{carried}, {_seeds(of)}: `{first['made']['command']}`"
    known = [one for one in every() if one.section in of]
    rows = [
        (one.section, one.level, one.title, _word(of[one.section]), of[one.section]["because"])
        for one in known
    ]
    yield _table(("§", "level", "criterion", "verdict", "because"), rows)
    cells: dict[tuple[str, str], tuple[str, ...]] = {}
    for one in known:
        for each in of[one.section]["cells"]:
            values = "; ".join(f"{who} {_value(value)}" for who, value in each["values"].items())
            text = ", ".join(filter(None, (each["measure"], each["unit"])))
            cells.setdefault(
                (each["scene"], text), (one.section, each["scene"], text, values, each["verdict"])
            )
    if cells:
        yield _table(("§", "scene", "measure", "means ± 95 %", "verdict"), list(cells.values()))


def _value(value: Sequence[float | None]) -> str:
    mean, half = value
    if mean is None:
        return "∞"
    return number(mean) + ("" if half is None else f" ± {number(half, 2)}")


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    body = ["| " + " | ".join(map(cell, one)) + " |" for one in rows]
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *body])
