"""Writes an answer into a folder: as Markdown, JSON and XML, with a report and figures of changed cases."""

from collections.abc import Sequence
from pathlib import Path

from fullpipe import files
from fullpipe.gate import formats
from fullpipe.gate.cases import Case
from fullpipe.gate.checking import Answer
from fullpipe.report.results import Results

_FILES = {"gate.md": formats.markdown, "gate.json": formats.as_json, "gate.xml": formats.junit}


def write(answer: Answer, cases: Sequence[Case], folder: Path) -> list[Path]:
    """Writes the answer, and for each case that is not equal a folder with its report; returns the reports.

    Raises:
        OutputError: Something cannot be written.
    """
    files.make_folder(folder)
    for name, form in _FILES.items():
        files.write(folder, name, form(answer).encode(errors="replace"))
    names = files.file_names(case.title for case in cases)
    reports = []
    for case in cases:
        runs = answer.runs.get(case.key)
        if runs and case.scenario is not None:
            written = Results(case.scenario, list(runs)).write(folder / names[case.title])
            reports.append(written / "report.html")
    return reports
