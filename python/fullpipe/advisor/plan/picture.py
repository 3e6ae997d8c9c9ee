"""The figure of an experiment's results: how the measure is distributed in both arms."""

import csv
import io
import json
import textwrap
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import files
from fullpipe.advisor.plan.analysis import Analysis
from fullpipe.report.figures import theme
from fullpipe.report.figures.svg import picture
from fullpipe.report.figures.vega import Spec, channel, layer

_WIDTH, _HEIGHT = 520, 300
# Letters in a line of the subtitle, as wide as the figure.
_LETTERS = 90
# More points of a line cannot be told apart.
_POINTS = 400


def points(found: Analysis) -> list[dict[str, Any]]:
    """Of each arm, which share of its connections is at most at which value; of many, every so many-th."""
    rows = []
    for arm, values in zip((found.treatment, found.control), found.values, strict=True):
        ordered = sorted(values)
        steps = min(len(ordered), _POINTS)
        for step in range(1, steps + 1):
            at = -(-step * len(ordered) // steps)
            rows.append({"arm": arm, "value": ordered[at - 1], "share": at / len(ordered)})
    return rows


def spec(found: Analysis) -> Spec:
    """The figure as Vega-Lite."""
    measure, rows = found.measure, points(found)
    names = {arm: _own_name(arm) for arm in (found.treatment, found.control)}
    colours, dashes = (
        {arm: one[own] for arm, own in names.items()}
        for one in (theme.controller_colours(names.values()), theme.controller_dashes(names.values()))
    )
    title = f"{measure.title[:1].upper()}{measure.title[1:]} of a {found.noun}, {measure.unit}"
    scale: Spec = {"type": "log", "nice": False} if measure.ratio else {"zero": True, "nice": False}
    legend = {"symbolType": "stroke", "symbolStrokeWidth": 2, "orient": "top"}
    encoding = {
        "x": channel("value:Q", scale=scale, axis={"title": title, "labelOverlap": True, "format": "~g"}),
        "y": channel(
            "share:Q", scale={"domain": [0, 1]}, axis={"title": f"Share of the {found.noun}s", "format": "%"}
        ),
        "color": channel(
            "arm:N", title=None, legend=legend, scale={"domain": list(colours), "range": [*colours.values()]}
        ),
        "strokeDash": channel(
            "arm:N", title=None, scale={"domain": list(dashes), "range": [*dashes.values()]}
        ),
    }
    line = layer("line", encoding, rows, interpolate="step-after", strokeWidth=2)
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        **line,
        "width": _WIDTH,
        "height": _HEIGHT,
        "title": {
            "text": f"{found.treatment} and {found.control}",
            "subtitle": textwrap.wrap(found.answer, _LETTERS),
        },
        "config": theme.config(),
    }


def _own_name(arm: str) -> str:
    """Our name of the controller that an arm is called by, so that it has its colour."""
    linux = {one["kernel"]: one["name"] for one in json.loads(_native.controllers()) if one["kernel"]}
    return str(linux.get(arm, arm))


def write(found: Analysis, folder: Path) -> Path:
    """Writes analysis.json, figure.svg and figure.csv into a folder; returns the figure's path.

    Raises:
        OutputError: Something cannot be written, e.g. because the disk is full.
    """
    svg = picture(spec(found))
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["arm", f"{found.measure.name}_{found.measure.unit}", "share"])
    out.writerows([row["arm"], f"{row['value']:.6g}", f"{row['share']:.6g}"] for row in points(found))
    files.make_folder(folder)
    files.write(folder, "analysis.json", (found.to_json() + "\n").encode())
    files.write(folder, "figure.csv", text.getvalue().encode())
    return files.write(folder, "figure.svg", svg.encode())
