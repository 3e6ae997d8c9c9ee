"""Tables of recordings and their replays, for the terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from fullpipe.conformance import recordings
from fullpipe.report.fitting import Fitting

# With more recordings, the numbers of calls do not fit a terminal.
_SIDE_BY_SIDE = 4


def recording(made: recordings.Recording) -> Fitting:
    """One row for each recorded flow, in the order of their numbers in the recording."""
    table = Fitting("Flow", "In the scenario", "Controller")
    table.add_numbers("Calls")
    for number, flow in enumerate(made.summary["flows"]):
        label = Text(flow["label"], style="bold")
        table.add_row(str(number), label, flow["controller"], f"{flow['calls']:,}")
    return table


def recording_total(made: recordings.Recording, path: Path) -> str:
    """The size of a recording, and a warning if it is incomplete."""
    calls, lost, missed = (made.summary[key] for key in ("calls", "lost", "missed_calls"))
    total = f"{path}: {calls:,} calls, {lost} lost, {missed} missed, {len(made.file):,} bytes"
    return total if not missed else f"{total}\nwarning: {missed_calls(missed)}"


def missed_calls(missed: int) -> str:
    """The consequence of calls of a recorder that the kernel skipped."""
    return (
        f"the kernel skipped at least {missed:,} calls of the recorder, so these flows did not behave "
        "quite as they do without it; the recording is incomplete, record it again"
    )


def replays(reports: Sequence[dict[str, Any]]) -> Fitting:
    """One row for each recording."""
    table = Fitting("Recording", "Algorithm", "Kernel")
    for heading in ("Flows", "Calls", "Replayed"):
        table.add_numbers(heading)
    table.add_text("", alone="Verdict")
    folder = _common_folder([report["recording"] for report in reports])
    if folder:
        table.caption = f"Recordings in {folder[:-1]}."
    for report in reports:
        if not report["whole"]:
            verdict = Text("incomplete", style="yellow")
        elif report["agrees"]:
            verdict = Text("equal", style="green")
        else:
            verdict = Text("DIFFERS", style="bold red")
        numbers = (f"{report[key]:,}" for key in ("flows", "calls", "replayed"))
        if report["late"]:
            verdict.append(f", {report['late']:,} late")
        name = report["recording"].removeprefix(folder)
        table.add_row(Text(name, style="bold"), report["cc"], report["kernel"], *numbers, verdict)
    return table


def _common_folder(paths: Sequence[str]) -> str:
    """The folder that several files are in, with its last slash; empty if they are not in one."""
    folders = {path.rpartition("/")[0] for path in paths}
    return f"{folders.pop()}/" if len(paths) > 1 and len(folders) == 1 and "" not in folders else ""


def replays_total(reports: Sequence[dict[str, Any]]) -> str:
    """All recordings in a sentence, and what a late call is if there are any."""
    calls, late, equal = (
        sum(report["calls"] for report in reports),
        sum(report["late"] for report in reports),
        sum(bool(report["agrees"]) for report in reports),
    )
    noun = "recording" if len(reports) == 1 else "recordings"
    total = f"{calls:,} calls in {len(reports)} {noun}"
    verdict = "all decisions" if equal == len(reports) else f"{equal} of {len(reports)}"
    reported = f"{total}; {verdict} are equal."
    if late:
        reported += f" Late: {late:,} calls, equal if the clock ticked just after the recorder read it."
    return reported


def difference(report: dict[str, Any]) -> Fitting:
    """Both states after the first decision that differs, side by side."""
    table = Fitting("Field")
    for heading in ("Here", "Kernel"):
        table.add_numbers(heading)
    table.add_text("", alone="Verdict")
    for row in report["difference"]["state"]:
        differs = row["ours"] != row["kernel"]
        mark = Text("differs" if differs else "", style="bold red")
        table.add_row(Text(row["field"], style="bold"), str(row["ours"]), str(row["kernel"]), mark)
    return table


def disagreements(report: dict[str, Any]) -> list[str]:
    """The first decision that differs, as text; also for the checks of single ACKs.

    For an incomplete recording, why it is incomplete: a difference after a missing call means nothing.
    """
    if not report["whole"]:
        missed, lost = report["missed_calls"], report["lost"]
        return [
            f"{report['recording']}: {reason}."
            for reason, count in ((missed_calls(missed), missed), (f"the recorder lost {lost:,} calls", lost))
            if count
        ]
    firsts = {
        "": report["difference"] and report["difference"]["sentence"],
        "the windowed maximum alone: ": report["filter"]["first"],
        "the delivery-rate sample alone: ": report["sampler"]["first"],
    }
    return [f"{report['recording']}: {what}{first}" for what, first in firsts.items() if first]


def coverage(reports: Sequence[dict[str, Any]]) -> list[Fitting]:
    """For each algorithm, how many calls reached each branch.

    A few recordings get a column each; of many, the sum is shown with a digit for each recording.
    """
    made = []
    for algorithm in dict.fromkeys(report["cc"] for report in reports):
        of_it = [report for report in reports if report["cc"] == algorithm]
        names = [Path(report["recording"]).stem for report in of_it]
        together = len(of_it) > _SIDE_BY_SIDE
        table = Fitting(f"Branch of {algorithm}")
        for name in ["All calls"] if together else names:
            table.add_numbers(name)
        if together:
            table.add_text(f"Recordings 1 to {len(of_it)}")
            numbered = ", ".join(f"{number} {name}" for number, name in enumerate(names, 1))
            table.caption = f"Digit: the number of digits of the recording's calls. Recordings: {numbered}."
        table.add_text("")
        for branch in zip(*(report["coverage"] for report in of_it), strict=True):
            calls = [one["calls"] for one in branch]
            if together:
                signs = "".join(str(min(len(str(count)), 9)) if count else "·" for count in calls)
                cells = [f"{sum(calls):,}" if sum(calls) else "–", signs]
            else:
                cells = [f"{count:,}" if count else "–" for count in calls]
            table.add_row(branch[0]["branch"], *cells, Text(branch[0]["summary"], style="dim"))
        made.append(table)
    return made
