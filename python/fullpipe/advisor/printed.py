"""An answer for a terminal: what `fullpipe advise` prints, and `print` in Python."""

import io
from collections.abc import Iterator
from typing import TypeAlias

from rich.console import Console
from rich.text import Text

from fullpipe.advisor import goals
from fullpipe.advisor.advice import COLUMNS, Advice
from fullpipe.advisor.question import SHORT
from fullpipe.results.statistics import Estimate
from fullpipe.show.fitting import Fitting
from fullpipe.show.screen import Screen
from fullpipe.system.words import counted

# Wide enough for the table, where no terminal limits it.
_WIDTH = 120
_Part: TypeAlias = Text | Fitting


def text(advice: Advice) -> str:
    """All of it as plain text."""
    out = Screen(file=io.StringIO(), width=_WIDTH)
    show(advice, out)
    assert isinstance(out.file, io.StringIO)
    return "\n".join(line.rstrip() for line in out.file.getvalue().splitlines())


def show(advice: Advice, out: Console) -> None:
    """Prints all of it."""
    for part in parts(advice):
        out.print(part, soft_wrap=isinstance(part, Text))


def parts(advice: Advice) -> Iterator[_Part]:
    """What is printed, one after the other."""
    yield Text(advice.answer, style="bold")
    yield Text()
    yield shares(advice) if advice.parts else ranking(advice)
    for note in notes(advice):
        yield Text(note)
    if crossed := crossings(advice):
        title, *lines = crossed
        yield Text(f"\n{title}")
        yield from (Text(f"  {line}") for line in lines)
    if advice.trust:
        yield Text(f"\nHow far to trust it: {advice.trust}")
    if advice.lines:
        yield Text("\nTo apply it:")
        for line in advice.lines:
            yield Text(f"  {line.where}: {line.text}{f'  # {line.checked}' if line.checked else ''}")


def ranking(advice: Advice) -> Fitting:
    """The candidates, the best first; the leaders are bold."""
    table = Fitting("Controller")
    table.add_numbers("Score")
    for column in COLUMNS:
        table.add_numbers(column.title, column.unit)
    for place, row in zip(advice.ranking.places, rows(advice), strict=True):
        leads = place.candidate in advice.ranking.leaders
        table.add_row(Text(place.candidate, style="bold" if leads else ""), *row)
    return table


def rows(advice: Advice) -> list[list[str]]:
    """For each candidate its score and measures, with half of their intervals."""
    places = advice.ranking.places
    columns = [[_shown(place.score, 3) for place in places]]
    for column in COLUMNS:
        values = [place.measure(column.take) for place in places]
        digits = column.digits
        if column.unit == "ms":
            # A data centre's times are parts of a millisecond.
            least = min((value.mean for value in values if value is not None), default=0.0)
            digits += 2 if least < 1 else 1 if least < 10 else 0
        columns.append(["–" if value is None else _shown(value, digits) for value in values])
    return [list(row) for row in zip(*columns, strict=True)]


def _shown(value: Estimate, digits: int) -> str:
    half = "" if value.half_width is None else f" ± {value.half_width:.{digits}f}"
    return f"{value.mean:,.{digits}f}{half}"


def shares(advice: Advice) -> Fitting:
    """On how much of a range each candidate is best."""
    table = Fitting("Controller")
    table.add_numbers("Clearly best", "% of paths")
    table.add_numbers("Best or as good", "% of paths")
    for part in advice.parts:
        table.add_row(part.candidate, f"{100 * part.wins:.0f}", f"{100 * part.leads:.0f}")
    return table


def notes(advice: Advice) -> list[str]:
    """What the columns are, and how sure they are."""
    return [*_columns(advice), *_doubts(advice)]


def _doubts(advice: Advice) -> list[str]:
    """What is said if runs cannot be trusted."""
    if not advice.doubts:
        return []
    runs = f"{counted(len(advice.doubts), 'run')} cannot be trusted, after several attempts"
    return [f"{runs}; the answer uses them all the same. The first: {advice.doubts[0]}."]


def _columns(advice: Advice) -> list[str]:
    asked, found = advice.question, advice.ranking
    best = (
        ", which may be above 1"
        if found.goal is goals.BULK and (asked.competitors or asked.policer)
        else ", 1 at best"
    )
    said = [f"Score{best}: {found.goal.means}."]
    if advice.parts:
        few = "" if advice.whole else "; the time was over before the others"
        return [*said, f"{len(advice.paths)} paths spread over the range, {found.seeds} seeds on each{few}."]
    size = asked.flow_size or SHORT
    said.append(
        f"Goodput, RTT and retransmitted: of a long flow in its first {asked.duration_s():.3g} s. Short "
        f"flows: mean completion time of {size}. Harm: what a {asked.neighbour} flow loses of the goodput "
        "that it has alone."
    )
    settled = "" if found.settled else "; more time (--budget) or seeds (--seeds) may settle the ranking"
    said.append(f"± is half the 95 % confidence interval of the mean over {found.seeds} seeds{settled}.")
    return said


def crossings(advice: Advice) -> list[str]:
    """What would change the answer: a title, and a line for each value. Empty where nobody looked."""
    asked = advice.question
    fixed = f"; the buffer stays {asked.buffer}" if "bdp" in str(asked.buffer).lower() else ""
    if advice.crossings:
        rest = "" if advice.looked else " (not all was tried: it would take too long)"
        title = f"What would change the answer, all else as it is{fixed}{rest}:"
        return [title, *map(str, advice.crossings)]
    if advice.looked:
        loss = "at most 20 %" if asked.loss else "from none, up to 8 %"
        return [
            "Nothing that was tried would change the answer: a sixteenth to 16 times of buffer (3 KB to "
            f"1 GB), round-trip time (at most 2 s), rate (at most 40 Gbit/s) and random loss ({loss}), all "
            f"else as it is{fixed}."
        ]
    return []
