"""Runs that cannot be trusted are counted for each alternative, and shown where no other run is."""

import io
import re
from dataclasses import replace

from rich.console import Console

from fullpipe.measures.run import Run
from fullpipe.report import tables
from fullpipe.report.answers import answers
from fullpipe.report.figures import summary
from fullpipe.report.report import html
from fullpipe.report.results import Results


def kernel(run: Run, *, doubted: bool) -> Run:
    """The run as if the kernel world had made it."""
    provenance = {**run.summary["provenance"], "untrustworthy": ["late"] if doubted else []}
    return replace(run, world="kernel", summary={**run.summary, "provenance": provenance})


def of(small: Results, trusted: dict[str, int]) -> Results:
    """Three kernel runs of each alternative, of which so many are trusted."""
    runs: list[Run] = []
    for label, count in trusted.items():
        of_it = [run for run in small.runs if run.label == label]
        runs += [kernel(run, doubted=number >= count) for number, run in enumerate(of_it)]
    return Results(small.scenario, runs)


def shown(table: object) -> str:
    console = Console(width=200, file=io.StringIO(), highlight=False)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_trusted_counts_cover_every_alternative(small: Results) -> None:
    results = of(small, {"bbr1": 1, "cubic": 3})
    message = "3 repetitions, 1 to 3 of them trusted"
    assert tables.how_often(results) == "Trusted runs: bbr1: kernel 1 of 3; cubic: kernel 3."
    notes = tables.comparison_notes(results)
    assert notes[0] == f"± is the 95 % confidence interval of the mean (kernel {message})."
    assert notes[1] == "A single run gives no confidence interval (kernel)."
    body = html(results, [])
    assert f"Linux kernel: {message}" in body
    assert "One run gives no interval (Linux kernel)" in body
    assert message in str(summary.figure(results)["title"])


def test_untrusted_numbers_are_shown_and_marked(small: Results) -> None:
    results = of(small, {"bbr1": 0, "cubic": 2})
    goodputs = [run.summary["total_goodput_bps"] / 1e6 for run in results.runs if run.label == "bbr1"]
    spread = f"{min(goodputs):.2f} to {max(goodputs):.2f}"
    first, second = (
        line for line in shown(tables.comparison(results)).splitlines() if line.startswith(("bbr1", "cubic"))
    )
    assert "kernel !" in first and "0 of 3" in first and spread in first
    assert "kernel !" not in second and "2 of 3" in second
    for table in (tables.flows, tables.links):
        assert not re.search(r"–\s+–", shown(table(results)))
    notes = " ".join(tables.run_notes(results))
    assert "bbr1, kernel: none of 3 repetitions is trusted; the numbers are shown and marked" in notes
    body = html(results, [])
    assert spread in body and body.count('<abbr class="untrustworthy"') == 1


def test_untrusted_numbers_are_in_no_mean(small: Results) -> None:
    results = of(small, {"bbr1": 0, "cubic": 2})
    assert results.groups[0].measures["goodput_bps"] is None
    assert "bbr1 has no trusted run" in answers(results)["kernel"]
    first, second = results.to_dict()["results"]
    assert first["goodput_bps"] == {"mean": None, "ci95": [None, None]}
    assert len(first["untrusted"]["goodput_bps"]) == 3
    assert "untrusted" not in second
    assert results.summary["goodput_bps"][0] is None
