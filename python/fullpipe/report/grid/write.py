"""Writes the results of a grid: grid.json, cells.parquet, runs.parquet, table.md, index.html."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

import fullpipe._native as _native
from fullpipe import files
from fullpipe.agreement.grid import lines
from fullpipe.agreement.grid.compare import Compared, kernels
from fullpipe.agreement.grid.lines import Row, Whole
from fullpipe.agreement.grid.rules import TOLERANCES
from fullpipe.agreement.grid.run import Found, Plan
from fullpipe.agreement.grid.summary import Target
from fullpipe.measures.measures import MEASURES, shares
from fullpipe.measures.statistics import Estimate
from fullpipe.report.grid.tables import HEADINGS, mean, ranged
from fullpipe.runs.worlds import registry
from fullpipe.text import cell, counted, ran_by


def everything(found: Found, folder: Path) -> Path:
    """Writes all files, and returns the path of the page."""
    from fullpipe.report.grid.page import html

    files.write(folder, "grid.json", json.dumps(as_dict(found), indent=1).encode())
    files.write(folder, "cells.parquet", files.parquet(cells_frame(found.cells, found.plan.worlds)))
    files.write(folder, "runs.parquet", files.parquet(runs_frame(found.cells)))
    (whole,) = lines.wholes(lines.of(found))
    files.write(folder, "table.md", markdown(whole).encode())
    return files.write(folder, "index.html", html(found).encode())


def as_dict(found: Found) -> dict[str, Any]:
    """The grid in plain values."""
    return {
        "grid": found.plan.grid.name,
        "quick": found.plan.grid.quick,
        "worlds": list(found.plan.worlds),
        "version": _native.version(),
        "builds": {world.name: world.build() for world in found.plan.pair},
        "kernels": kernels(found.cells),
        "seeds": found.plan.seeds,
        "repetitions": found.plan.repetitions,
        "met": found.met,
        "compared_cells": found.judged,
        "targets": [
            {
                "target": one.title,
                "measured": finite(one.measured),
                "limit": one.limit,
                "at_least": one.at_least,
                "met": one.met,
                "cells": one.cells,
            }
            for one in found.targets
        ],
        "cells": [_cell(one, found.plan.worlds) for one in found.cells],
        "failed": [{"run": one.task.name, "reason": one.reason} for one in found.failed],
        "notes": found.notes,
    }


def plan_as_dict(plan: Plan, seconds: float) -> dict[str, Any]:
    """The planned runs and about how long they take, in plain values."""
    return {
        "grid": plan.grid.name,
        "quick": plan.grid.quick,
        "hosts": list(plan.models),
        "seeds": plan.seeds,
        "repetitions": plan.repetitions,
        "seconds": seconds,
        "cells": [
            {
                "cell": one.name,
                "slug": one.slug,
                "duration_s": one.alternative.duration_s,
                "flows": len(one.alternative.spec["flows"]),
                "scenario": one.document,
            }
            for one in plan.grid.cells
        ],
    }


def _cell(one: Compared, worlds: tuple[str, str]) -> dict[str, Any]:
    ours, theirs = worlds
    return {
        "cell": one.cell.name,
        "slug": one.cell.slug,
        "verdict": one.verdict,
        "known_in_one_world": list(one.one_sided),
        f"{ours}_runs": len(one.ours),
        f"{theirs}_runs": len(one.theirs),
        "untrustworthy_runs": len(one.doubted),
        "measures": {
            name: {
                ours: _estimate(each.ours),
                theirs: _estimate(each.theirs),
                "difference": each.message,
                "of_tolerance": finite(each.of_tolerance),
                "overlaps": each.overlaps,
            }
            for name, each in one.measured.items()
        },
        "scenario": one.cell.document,
    }


def _estimate(of: Estimate) -> dict[str, Any]:
    return {"mean": of.mean, "ci95": [of.low, of.high], "range": [of.least, of.most]}


def finite(value: float | None) -> float | None:
    """The value, or None if JSON has no such number."""
    return value if value is not None and math.isfinite(value) else None


def cells_frame(cells: Sequence[Compared], worlds: tuple[str, str]) -> pl.DataFrame:
    """One row for each cell and measure; columns of a world have its name in front."""
    ours, theirs = worlds
    rows = [
        {
            "cell": one.cell.name,
            "verdict": one.verdict,
            "measure": name,
            f"{ours}_mean": each.ours.mean,
            f"{ours}_ci95_low": each.ours.low,
            f"{ours}_ci95_high": each.ours.high,
            f"{theirs}_mean": each.theirs.mean,
            f"{theirs}_least": each.theirs.least,
            f"{theirs}_most": each.theirs.most,
            "of_tolerance": each.of_tolerance,
            "overlaps": each.overlaps,
            f"{ours}_runs": len(one.ours),
            f"{theirs}_runs": len(one.theirs),
        }
        for one in cells
        for name, each in one.measured.items()
    ]
    texts, numbers = ("cell", "verdict", "measure"), (f"{ours}_runs", f"{theirs}_runs")
    floats = (
        *(f"{ours}_{name}" for name in ("mean", "ci95_low", "ci95_high")),
        *(f"{theirs}_{name}" for name in ("mean", "least", "most")),
    )
    schema: dict[str, Any] = {
        **dict.fromkeys(texts, pl.String),
        **dict.fromkeys((*floats, "of_tolerance"), pl.Float64),
        "overlaps": pl.Boolean,
        **dict.fromkeys(numbers, pl.Int64),
    }
    return pl.DataFrame(rows, schema=schema)


def runs_frame(cells: Sequence[Compared]) -> pl.DataFrame:
    """One row for each run and flow: the run's measures, the flow's share, and the place of the run."""
    rows = [
        {
            "cell": cell.cell.name,
            "world": run.task.world,
            "seed": run.task.job.seed,
            "flow": flow["label"],
            "controller": flow["controller"],
            "flow_goodput_bps": flow["goodput_bps"],
            "flow_retransmits": flow["retransmits"],
            "flow_share": shares(run.summary)[flow["label"]],
            "flow_completion_ms": flow.get("completion_ms"),
            **{measure.name: measure.take(run.summary) for measure in MEASURES},
            "untrustworthy": run.untrustworthy,
            "attempts": run.attempts,
            "seconds": run.seconds,
            "file": run.place.name,
            "byte": run.place.at,
        }
        for cell in cells
        for run in [*cell.ours, *cell.theirs, *cell.doubted]
        for flow in run.summary["flows"]
    ]
    floats = ("flow_goodput_bps", "flow_retransmits", "flow_share", "flow_completion_ms")
    schema: dict[str, Any] = {
        "cell": pl.String,
        "world": pl.String,
        "seed": pl.UInt64,
        "flow": pl.String,
        "controller": pl.String,
        **dict.fromkeys((*floats, *(measure.name for measure in MEASURES)), pl.Float64),
        "untrustworthy": pl.List(pl.String),
        "attempts": pl.Int64,
        "seconds": pl.Float64,
        "file": pl.String,
        "byte": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, strict=False)


def markdown(whole: Whole, older: str = "", others: str | None = None, *, ideal: Whole | None = None) -> str:
    """The targets and the table of cells, as the documentation shows them. `older` says which rows are.

    With `others`, where all cells and the words are, the table has only those that differ.
    `ideal` is the same grid with ideal hosts, whose targets are shown beside those of `whole`.
    """
    text = [_made_how(whole, words=others is None), *([older, ""] if older else [""])]
    if ideal is None:
        text += ["| target | cells | limit | measured | |", "|---|---|---|---|---|"]
        for one in whole.targets:
            text.append(f"| {one.title} | {one.cells} | {one.message} | {one.measured_text} | {_word(one)} |")
        text += ["", whole.verdict, ""]
    else:
        text += ["| target | limit | ideal hosts | Linux hosts |", "|---|---|---|---|"]
        for one, other in zip(whole.targets, ideal.targets, strict=True):
            shown = (
                f"{each.measured_text}{'' if each.word == 'met' else f' {_word(each)}'}"
                for each in (other, one)
            )
            text.append(f"| {one.title} | {one.message} | {' | '.join(shown)} |")
        text += ["", f"Ideal hosts: {ideal.verdict} Linux hosts: {whole.verdict}", ""]
    rows = whole.rows
    if others is not None:
        unknown = [f"{cell(one.name)} ({one.verdict})" for one in rows if not one.judged]
        rows = [one for one in rows if one.judged and one.verdict not in _SIMILAR]
        counts = ", ".join(
            f"{sum(one.verdict == word for one in whole.rows)} {how}" for word, how in _SIMILAR.items()
        )
        left = f" Not compared: {'; '.join(unknown)}." if unknown else ""
        text += [f"{counts}: {others}.{left}{' The others:' if rows else ''}", ""]
    if not rows:
        return "\n".join(text)
    ours, theirs = whole.line["key"]["worlds"]
    heads = ["cell"]
    for name in ("goodput_bps", "rtt_mean_ms", "retransmits"):
        heads += [f"{HEADINGS[name].lower().replace('rtt', 'RTT')}, {ours}", theirs, "difference"]
    heads += ["p95 RTT", "shares", ""]
    text += [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    text += [f"| {' | '.join(_row(one))} |" for one in rows]
    return "\n".join(text) + "\n"


def _word(target: Target) -> str:
    return f"**{target.word}**" if target.word == "missed" else target.word


# The verdicts on cells that need no look.
_SIMILAR = {"agrees": "agree", "close": "are close"}


def _row(one: Row) -> list[str]:
    row = [cell(one.name)]
    for name in ("goodput_bps", "rtt_mean_ms", "retransmits"):
        each = one.values.get(name)
        row += ["–"] * 3 if each is None else [mean(each), ranged(each), each.message]
    row += [one.values[name].message if name in one.values else "–" for name in ("rtt_p95_ms", "share")]
    return [*row, one.verdict]


def _made_how(whole: Whole, *, words: bool) -> str:
    line, made = whole.line, whole.line["made"]
    first, second = registry.pair(line["key"]["worlds"])
    which = "" if first.deterministic == second.deterministic else f"{second.short} "
    left_out = f" {line['untrusted']} {which}runs that cannot be trusted are left out."
    often = f"{line['runs'][0]} {first.noun}s, {line['runs'][1]} {second.short} {second.noun}s"
    cells, judged = len(whole.rows), sum(row.judged for row in whole.rows)
    every = "" if judged == cells else f"{judged} of {counted(cells, 'cell')}, "
    by = "".join(f"{one}, " for one in (f"Fullpipe {made['fullpipe']}", *map(ran_by, made["ran_by"])))
    usual = "the limits for nine tenths of the cells"
    tolerance = f"the tolerances of all grids ({TOLERANCES})" if line["own_limits"] else usual
    how = f"Made by `{made['command']}`: {by}{every}{often}.{left_out if line['untrusted'] else ''}"
    if not words:
        return f"{how}\n"
    return (
        f"{how} Goodput in Mbit/s, RTT in ms, retransmissions in segments; "
        f"± is half the 95 % confidence interval of the mean over {first.noun}s, "
        f"in brackets is the range over {second.short} {second.noun}s. "
        f"A cell agrees when in every measure the range over {first.noun}s overlaps that in brackets; "
        f"it is close when all differences are within {tolerance}.\n"
    )
