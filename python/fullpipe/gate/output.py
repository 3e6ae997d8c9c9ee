"""Writes an answer into a folder: as Markdown, JSON and XML, with a report and figures of changed cases."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from fullpipe import files
from fullpipe.gate import baseline as baselines
from fullpipe.gate import formats, traces
from fullpipe.gate.cases import Case
from fullpipe.gate.checking import Answer
from fullpipe.measures.run import Run, Runs
from fullpipe.report.figures import BY_NAME
from fullpipe.report.figures.svg import Renderer
from fullpipe.report.results import Results
from fullpipe.scenario.scenario import Scenario

_FILES = {"gate.md": formats.markdown, "gate.json": formats.as_json, "gate.xml": formats.junit}
# The figures that show both runs, the former above the new one.
_PAIRED = ("throughput", "rtt", "inflight")


def write(answer: Answer, cases: Sequence[Case], folder: Path) -> list[Path]:
    """Writes the answer, and for each case that is not equal a folder with its report; returns the reports.

    Where the baseline has a trace of the case, figures in `before-and-now` show both runs.

    Raises:
        OutputError: Something cannot be written.
    """
    files.make_folder(folder)
    for name, form in _FILES.items():
        files.write(folder, name, form(answer).encode(errors="replace"))
    names = files.file_names(case.title for case in cases)
    path = Path(answer.baseline)
    lines = baselines.read(path) if answer.runs else {}
    reports = []
    for case in cases:
        runs = answer.runs.get(case.key)
        if runs and case.scenario is not None:
            own = folder / names[case.title]
            reports.append(Results(case.scenario, list(runs)).write(own) / "report.html")
            line = lines.get(case.key)
            trace = None if line is None else traces.find(path, line)
            if trace is not None and runs[0].flow_series().height:
                _draw(case.scenario, trace, runs[0], own)
    return reports


def _draw(scenario: Scenario, trace: pl.DataFrame, now: Run, folder: Path) -> None:
    """Draws the figures that show the run of a trace and the new one."""
    both = Runs(scenario, [_named("before", _of_trace(trace, now)), _named("now", now)])
    with Renderer() as renderer:
        pictures = [(name, renderer.picture(BY_NAME[name].draw(both))) for name in _PAIRED]
        for name, svg in pictures:
            files.write(folder, f"before-and-now/{name}.svg", svg.result().encode())


def _of_trace(trace: pl.DataFrame, now: Run) -> Run:
    """A run with the series of a trace. Its summary is the new run's, of which figures take only names."""
    flows = now.summary["flows"]
    labels = {str(number): flow["label"] for number, flow in enumerate(flows)}
    controllers = {flow["label"]: flow["controller"] for flow in flows}
    named = trace.with_columns(pl.col("flow").replace(labels))
    named = named.with_columns(pl.col("flow").replace(controllers).alias("controller"))
    return replace(now, flow_parquet=files.parquet(named))


def _named(label: str, run: Run) -> Run:
    return replace(run, alternative=replace(run.alternative, label=label))
