"""An answer for a terminal: what `fullpipe advise` prints, and `print` in Python."""

import io
from collections.abc import Iterator
from typing import TypeAlias

from rich.console import Console
from rich.text import Text

from fullpipe.advisor import goals
from fullpipe.advisor.advice import COLUMNS, Advice
from fullpipe.advisor.question import SHORT
from fullpipe.advisor.ranking import Place
from fullpipe.show.fitting import Fitting

# Wide enough for the table, where no terminal limits it.
_WIDTH = 120
_Part: TypeAlias = Text | Fitting


def text(advice: Advice) -> str:
    """All of it as plain text."""
    out = Console(file=io.StringIO(), width=_WIDTH, force_terminal=False, highlight=False)
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
    for place in advice.ranking.places:
        leads = place.candidate in advice.ranking.leaders
        table.add_row(Text(place.candidate, style="bold" if leads else ""), *cells(place))
    return table


def cells(place: Place) -> list[str]:
    """A candidate's score and measures, each with half its interval."""
    found = [f"{place.score.mean:.3f} ± {place.score.half_width or 0:.3f}"]
    for column in COLUMNS:
        value = place.measure(column.take)
        half = None if value is None else value.half_width
        found.append(
            "–"
            if value is None
            else f"{value.mean:,.{column.digits}f}"
            + (f" ± {half:.{column.digits}f}" if half is not None else "")
        )
    return found


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
    asked, found = advice.question, advice.ranking
    best = ", which may be above 1" if found.goal is goals.BULK and asked.competitors else ", 1 at best"
    said = [f"Score{best}: {found.goal.means}."]
    if advice.parts:
        few = "" if advice.whole else "; the time was over before the others"
        return [*said, f"{len(advice.paths)} paths spread over the range, {found.seeds} seeds on each{few}."]
    size = asked.flow_size or SHORT
    said.append(
        f"Goodput, RTT and retransmitted: of a long flow. Short flows: mean completion time of {size}. Harm: "
        f"what a {asked.neighbour} flow loses of the goodput that it has alone."
    )
    settled = "" if found.settled else "; more time (--budget) or seeds (--seeds) may settle the ranking"
    said.append(f"± is half the 95 % confidence interval of the mean over {found.seeds} seeds{settled}.")
    return said


def crossings(advice: Advice) -> list[str]:
    """What would change the answer: a title, and a line for each value. Empty where nobody looked."""
    asked = advice.question
    fixed = f"; the buffer stays {asked.buffer}" if "bdp" in str(asked.buffer).lower() else ""
    if advice.crossings:
        rest = "" if advice.looked else " (the time was over before all was tried)"
        title = f"What would change the answer, all else as it is{fixed}{rest}:"
        return [title, *map(str, advice.crossings)]
    if advice.looked:
        return [
            "Nothing that was tried would change the answer: a sixteenth to 16 times of buffer, round-trip "
            f"time, rate and random loss (from none, up to 8 %), all else as it is{fixed}."
        ]
    return []
