"""The pages of a result: an index with the table, and each case with what was played, wanted and seen."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import fullpipe._native as _native
from fullpipe import files
from fullpipe.conformance import minimal
from fullpipe.conformance.results import FAIL, LOSS, CaseResults, Played, Result
from fullpipe.report import provenance as origin
from fullpipe.report.figures.svg import Renderer, picture
from fullpipe.report.figures.vega import Spec
from fullpipe.report.page import Heading, figure, page, provenance, table
from fullpipe.report.page import text as _text
from fullpipe.report.unsupported import Unsupported, section

# The figures of a case, by their names in `fullpipe.report.figures`: they shade the phases.
_FIGURES = ("inflight", "throughput")
# Of a program, whose window and flight nobody sees.
_FROM_OUTSIDE = ("throughput", "rtt")


def summary_table(conformance_report: CaseResults, *, linked: bool = False) -> str:
    """The table of all cases, as HTML; `linked` to the pages of the cases."""
    rows = []
    for one, (name, verdict, measured, wanted) in zip(
        conformance_report.results, conformance_report.rows(), strict=True
    ):
        shown = (
            f'<a href="{_file(one)}" style="white-space:nowrap">{_text(name)}</a>' if linked else _text(name)
        )
        rows.append([shown, _verdict(verdict), _text(measured), _text(wanted), _text(one.case.source)])
    headings = [Heading("Case"), Heading("Verdict"), Heading("Measured", number=True)]
    return table([*headings, Heading("Criterion"), Heading("Source")], rows)


class Drawing:
    """Draws the figures of results in a thread, while other cases are played and the next are prepared."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._begun: dict[str, list[Future[str]]] = {}

    def begin(self, one: Result) -> None:
        """Draws the figures of a controller's result."""
        self._begun[one.case.name] = [self._renderer.picture(spec) for spec in _specs(one, _FIGURES)]

    def pictures(self, one: Result, names: Sequence[str]) -> Iterator[str]:
        """The figures of a result, which were begun before or are drawn now."""
        begun = self._begun.pop(one.case.name, None)
        return _pictures(one, names) if begun is None else (each.result() for each in begun)


def write(conformance_report: CaseResults, folder: Path, drawing: Drawing | None = None) -> Path:
    """Writes the pages, the scenarios of failures, and the result as JSON; returns the folder."""
    files.make_folder(folder)
    files.write(folder, "conformance.json", (conformance_report.to_json() + "\n").encode(errors="replace"))
    for one in conformance_report.results:
        for path, scenario in _scenarios(conformance_report, one, folder).items():
            files.write(folder, f"cases/{path.name}", scenario.encode())
        files.write(
            folder, _file(one), _page(conformance_report, one, folder, drawing).encode(errors="replace")
        )
    # Last, so that every link of it has its page.
    files.write(folder, "index.html", _index(conformance_report).encode(errors="replace"))
    return folder


def _file(one: Result) -> str:
    return f"cases/{one.case.name}.html"


def _scenarios(conformance_report: CaseResults, one: Result, folder: Path) -> dict[Path, str]:
    """The scenarios that repeat a failure; none if there is no failure, or no scenario can say it.

    A program is no flow of a scenario's, and where a controller in Python is, depends on the folder.
    """
    if one.verdict != FAIL or conformance_report.program is not None:
        return {}
    if any(run.alternative.own for played in one.played for run in played.runs.runs):
        return {}
    return minimal.scenarios(conformance_report, one, folder / "cases" / one.case.name)


def _verdict(verdict: str) -> str:
    shown = _text(verdict)
    return f"<b>{shown}</b>" if verdict == FAIL else shown


def _index(conformance_report: CaseResults) -> str:
    if conformance_report.program is None:
        suite = "loss-based control" if conformance_report.suite == LOSS else "BBRv3"
        against, which = f"the cases of {suite}", "the worst value over the seeds of the case."
    else:
        against = "the cases that are judged from outside"
        which = "the middle one of the repetitions, and their range."
    sections = [
        f"<header><h1>{_text(conformance_report.controller)} against {against}</h1>"
        f"<p>{_text(conformance_report.summary)}</p>"
        '<p class="quiet">Each line shows the first criterion that is not met, or the first quantity: '
        f"{which} A case’s page has all of them, with figures.</p></header>",
        summary_table(conformance_report, linked=True),
        _unsupported(conformance_report, conformance_report.unsupported),
        _provenance(conformance_report),
    ]
    return page(f"Fullpipe: conformance of {conformance_report.controller}", sections, [])


def _page(conformance_report: CaseResults, one: Result, folder: Path, drawing: Drawing | None) -> str:
    case = one.case
    names = _FIGURES if conformance_report.program is None else _FROM_OUTSIDE
    message = [case.source, f"{conformance_report.controller}, {conformance_report.world}"]
    message += [f"seeds {', '.join(map(str, case.seeds))}"] if len(case.seeds) > 1 else []
    why = conformance_report.expected(one)
    sections = [
        f'<header><p><a href="../index.html">All cases</a></p><h1>{_text(case.title)}</h1>'
        f"<p>{_verdict(one.verdict)}{_text(f': {one.reason}' if one.reason else '')}</p>"
        f'<p class="quiet">{_text(" · ".join(message))}</p></header>',
        f"<p>{_text(case.about)}</p>",
        f'<p class="note">{_text(f"Expected: {conformance_report.by_text}{why}.")}</p>' if why else "",
        _criteria(one, "Seed" if conformance_report.program is None else "Repetition"),
        _unsupported(conformance_report, one.unsupported),
        _repeat(conformance_report, one, folder),
        *_figures(one, names, _pictures(one, names) if drawing is None else drawing.pictures(one, names)),
        _provenance(conformance_report),
    ]
    return page(f"Fullpipe: {case.name}, {conformance_report.controller}", sections, [])


def _unsupported(conformance_report: CaseResults, sentences: Sequence[str]) -> str:
    return section(
        [Unsupported([conformance_report.controller], conformance_report.world, sentences)]
        if sentences
        else []
    )


def _criteria(one: Result, seed: str) -> str:
    headings = [Heading("Criterion"), Heading("Wanted"), Heading("Measured", number=True), Heading("Met")]
    headings += [Heading(seed, number=True), Heading("The number is")]
    if not one.checks:
        rows = [
            [_text(of.quantity), _text(of.bounds), "", "", "", _text(of.source)] for of in one.case.criteria
        ]
    else:
        rows = [
            [
                _text(check.criterion.quantity),
                _text(check.criterion.bounds),
                _text(check.measured),
                "yes" if check.met else "<b>no</b>",
                str(check.seed),
                _text(check.criterion.source),
            ]
            for check in one.checks
        ]
    return table(headings, rows)


def _repeat(conformance_report: CaseResults, one: Result, folder: Path) -> str:
    names = [path.name for path in _scenarios(conformance_report, one, folder)]
    if not names or (check := one.decisive) is None:
        return ""
    runs = [
        f'<a href="{name}">{name}</a>, for <code>'
        + _text(minimal.command(conformance_report, name, check))
        + "</code>"
        for name in names
    ]
    return f"<p>The scenario{'s' if len(names) > 1 else ''} of the failure: {'; '.join(runs)}.</p>"


def _specs(one: Result, names: Sequence[str]) -> Iterator[Spec]:
    from fullpipe.report.figures import BY_NAME

    return (BY_NAME[name].draw(played.runs) for played in one.played for name in names)


def _pictures(one: Result, names: Sequence[str]) -> Iterator[str]:
    return map(picture, _specs(one, names))


def _figures(one: Result, names: Sequence[str], pictures: Iterator[str]) -> Iterator[str]:
    from fullpipe.report.figures import BY_NAME

    number = 0
    for played in one.played:
        yield f"<h2>{_text(played.name or 'The flow')}</h2>"
        if played.marks:
            yield _marks(played)
        for name in names:
            yield figure(number, f"{name}-{number}", next(pictures), BY_NAME[name].look_at(played.runs))
            number += 1


_MOST_MARKS = 12


def _marks(played: Played) -> str:
    shown = [f"{time_s:.3f} s: {what}" for time_s, what in played.marks[:_MOST_MARKS]]
    shown += ["…"] if len(played.marks) > _MOST_MARKS else []
    return f'<p class="quiet">{_text("; ".join(shown))}</p>'


def _provenance(conformance_report: CaseResults) -> str:
    command = origin.command()
    return provenance(
        [
            ("Command", f"<code>{_text(command)}</code>" if command else "called from Python"),
            ("Written", f"{origin.now()}, by Fullpipe {_text(_native.version())}"),
            ("Text", _text(conformance_report.text)),
            (
                "World",
                _text(": ".join(filter(None, (conformance_report.world, conformance_report.versions)))),
            ),
            *(
                (name.capitalize(), _text(str(message)))
                for name, message in (conformance_report.program or {}).items()
            ),
        ]
    )
