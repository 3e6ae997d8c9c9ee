"""Writes a report and what belongs to it into a folder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import files
from fullpipe.conformance.minimal import toml
from fullpipe.report import provenance
from fullpipe.report.figures.svg import picture
from fullpipe.runs.worlds import registry
from fullpipe.text import joined
from fullpipe_studies import deliveries
from fullpipe_studies.evaluate import report
from fullpipe_studies.evaluate.run import Result
from fullpipe_studies.evaluate.verdicts import Cell

_TRACE = "cellular.deliveries"


def write(result: Result, folder: Path, watch: Callable[[str], object] = lambda _what: None) -> Path:
    """Writes everything, and returns the page."""
    plan = result.plan
    files.make_folder(folder)
    figures = []
    for row in result.rows:
        spec = report.figure_of(row, plan.controllers)
        if spec is not None:
            watch(f"Drawing {row.criterion.section}")
            title = f"{row.criterion.section} {row.criterion.title}, {row.criterion.measures[0].name}"
            figures.append(report.Figure(row.criterion.id, spec, picture(spec), title))
    for one in figures:
        files.write(folder, f"figures/{one.id}.svg", one.svg.encode())
    _scenarios(result, folder)
    files.write(folder, "data.parquet", files.parquet(result.data()))
    files.write(folder, "evaluation.json", json.dumps(facts(result), indent=1).encode())
    scenes = len({one.scene for one in plan.planned})
    head = [
        ("Controller", plan.candidate),
        ("World", report.heading(plan.world)),
        ("Build", registry.named(plan.world).build()),
        ("Seeds", str(plan.seeds)),
        ("Runs", f"{len(plan.planned)} of {scenes} scenes, by {joined(plan.controllers)}"),
        ("Command", provenance.command() or "from Python"),
        ("Made", f"Fullpipe {_native.version()}, {provenance.now()}"),
    ]
    parts = report.blocks(result, head, figures)
    files.write(folder, "report.md", report.markdown(parts).encode())
    return files.write(folder, "report.html", report.html(parts).encode())


def facts(result: Result) -> dict[str, Any]:
    """The verdicts for programs."""
    plan = result.plan
    rows = [
        {
            **{name: getattr(row.criterion, name) for name in ("section", "level", "title", "lacks")},
            "verdict": row.verdict.value,
            "because": report.because(row),
            "cells": [_cell(one) for one in row.cells],
        }
        for row in result.rows
    ]
    about = {"controller": plan.candidate, "world": plan.world, "seeds": plan.seeds, "quick": plan.quick}
    return {**about, "rows": rows, "notes": list(result.notes)}


def _cell(one: Cell) -> dict[str, Any]:
    estimates = {name: one.estimate(name) for name in one.values}
    return {
        "scene": one.scene,
        "measure": one.measure.name,
        "unit": one.measure.unit,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "means": {name: of.mean for name, of in estimates.items() if of is not None},
        "differences": {name: [of.low, of.mean, of.high] for name, of in one.differences.items()},
    }


def _scenarios(result: Result, folder: Path) -> None:
    """Each scene with the candidate and the first seed's path."""
    for one in result.plan.planned:
        if one.controller != result.plan.candidate or one.seed != 1:
            continue
        name = report.slug(one.scene)
        document = {"name": one.scene, **one.made.document}
        if "deliveries" in document["path"]:
            document["path"] = {**document["path"], "deliveries": _TRACE}
            files.write(folder, f"scenarios/{_TRACE}", Path(deliveries.file()).read_bytes())
        lines = [
            f"# {one.scene}: fullpipe run {name}.toml --world {result.plan.world} --seed 1",
            *toml(document),
        ]
        files.write(folder, f"scenarios/{name}.toml", ("\n".join(lines) + "\n").encode())
