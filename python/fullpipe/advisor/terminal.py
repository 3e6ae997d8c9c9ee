"""An answer for a terminal: what `fullpipe advise` prints, and `print` in Python."""

import io
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from rich.console import Console
from rich.text import Text

from fullpipe.advisor import goals
from fullpipe.advisor.answer import COLUMNS, Answer
from fullpipe.advisor.crossings import NAMES, Looked
from fullpipe.advisor.question import SHORT, percent, shown
from fullpipe.measures.statistics import Estimate
from fullpipe.report.fitting import Fitting
from fullpipe.report.screen import Screen
from fullpipe.text import counted, joined

# Of more changes over a range, only the first ones are printed; `to_dict` has all.
_BOUNDARIES = 8
# So are the nearest ones of a quantity, in each direction.
_CHANGES = 2
# In how many places a range is drawn at most, and where nobody is clearly best.
_PLACES, _NOBODY = 48, "·"
# Wide enough for the table, where no terminal limits it.
_WIDTH = 120
_Part: TypeAlias = Text | Fitting
# The titles of the lines that apply an answer: those that make a host as it was simulated, and the others.
APPLY = {"To apply it": True, "The same controller in QUIC stacks, which were not simulated": False}


def text(advice: Answer) -> str:
    """All of it as plain text."""
    out = Screen(file=io.StringIO(), width=_WIDTH)
    show(advice, out)
    assert isinstance(out.file, io.StringIO)
    return "\n".join(line.rstrip() for line in out.file.getvalue().splitlines())


def show(advice: Answer, out: Console) -> None:
    """Prints all of it."""
    for part in parts(advice):
        out.print(part, soft_wrap=isinstance(part, Text))


def parts(advice: Answer) -> Iterator[_Part]:
    """What is printed, one after the other."""
    yield from (Text(line) for line in advice.inputs.lines())
    yield Text(advice.answer, style="bold")
    if advice.confidence is not None:
        yield Text(f"Confidence: {advice.confidence}.")
    if advice.as_now:
        yield Text(advice.as_now)
    yield Text()
    each = advice.buffers or (advice,)
    for one in each:
        if advice.buffers:
            sure = f" ({one.confidence.word})" if one.confidence else ""
            yield Text(f"Buffer {one.buffer}: {one.answer}{sure}", style="bold")
            yield from ([Text(one.as_now)] if one.as_now else [])
        yield shares(one) if one.parts else ranking(one)
        yield from (Text(line) for line in where(one))
        yield from ([Text(one.over_time)] if one.over_time else [])
        if advice.buffers:
            yield Text()
    for note in [*notes(advice), advice.hosts]:
        yield Text(note)
    for one in each:
        if crossed := crossings(one):
            title, *lines = crossed
            yield Text(f"\n{title}")
            yield from (Text(f"  {line}") for line in lines)
        if one.trust:
            yield Text(
                f"\nHow far to trust it{f', with {one.buffer}' if advice.buffers else ''}: {one.trust}"
            )
    for title, simulated in APPLY.items():
        own = [line for line in advice.lines if line.simulated is simulated]
        if own:
            yield Text(f"\n{title}:")
        for line in own:
            yield Text(f"  {line.where}: {line.text}{f'  # {line.checked}' if line.checked else ''}")


def ranking(advice: Answer) -> Fitting:
    """The candidates, the best first; the leaders are bold."""
    table = Fitting("Controller")
    table.add_numbers("Score")
    for column in COLUMNS:
        table.add_numbers(column.title, column.unit)
    for place, row in zip(advice.ranking.places, rows(advice), strict=True):
        leads = place.candidate in advice.ranking.leaders
        table.add_row(Text(place.candidate, style="bold" if leads else ""), *row)
    return table


def rows(advice: Answer) -> list[list[str]]:
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


def shares(advice: Answer) -> Fitting:
    """On how much of a range each candidate is best."""
    table = Fitting("Controller")
    table.add_numbers("Clearly best", "% of paths")
    table.add_numbers("Best or as good", "% of paths")
    table.add_numbers("Mean regret")
    table.add_numbers("Worst regret")
    for part, row in zip(advice.parts, share_rows(advice), strict=True):
        table.add_row(part.candidate, *row)
    return table


def share_rows(advice: Answer) -> list[list[str]]:
    """For each candidate of a range: where it is best, or as good, in per cent; its mean and worst regret."""
    regrets = {one.candidate: one for one in advice.regrets}
    return [
        [
            f"{100 * part.wins:.0f}",
            f"{100 * part.leads:.0f}",
            *((one.shown(one.mean), one.shown(one.worst)) if (one := regrets.get(part.candidate)) else "––"),
        ]
        for part in advice.parts
    ]


def where(advice: Answer) -> list[str]:
    """Who is best where in a range: a letter for each place of each quantity, and what the letters mean."""
    if not advice.parts:
        return []
    by_name = letters([part.candidate for part in advice.parts])
    winners = [by_name.get(one.winner or "", _NOBODY) for one in advice.rankings]
    numbers = [path.numbers() for path in advice.paths]
    lines = []
    for name in advice.question.ranges:
        pairs = sorted(zip((one.of(name) for one in numbers), winners, strict=True))
        width = min(_PLACES, len(pairs))
        edges = [len(pairs) * place // width for place in range(width + 1)]
        drawn = [
            Counter(letter for _, letter in pairs[low:high]).most_common(1)[0][0]
            for low, high in itertools.pairwise(edges)
        ]
        ends = [shown(name, value) for value, _ in (pairs[0], pairs[-1])]
        lines.append(f"{NAMES.get(name, name)} {ends[0]} {''.join(drawn)} {ends[1]}")
    legend = [f"{letter} {name}" for name, letter in by_name.items() if letter in winners]
    often = "who is best most often" if len(advice.question.ranges) > 1 else "who is best"
    return [*lines, f"({often} there: {', '.join([*legend, f'{_NOBODY} no clear winner'])})"]


def letters(names: Sequence[str]) -> dict[str, str]:
    """A letter, or a digit, for each name."""
    found: dict[str, str] = {}
    for name in names:
        free = [one for one in f"{name}abcdefghijklmnopqrstuvwxyz" if one.isalnum()]
        found[name] = next(one for one in free if one not in found.values())
    return found


def notes(advice: Answer) -> list[str]:
    """What the columns are, how sure they are, and what the answer is based on."""
    return [*_columns(advice), *_doubts(advice), *advice.question.notes, *advice.inputs.unused]


def _doubts(advice: Answer) -> list[str]:
    """What is said if runs cannot be trusted."""
    if not advice.doubts:
        return []
    runs = f"{counted(len(advice.doubts), 'run')} cannot be trusted, after several attempts"
    return [f"{runs}; the answer uses them all the same. The first: {advice.doubts[0]}."]


def _columns(advice: Answer) -> list[str]:
    asked, found = advice.question, advice.ranking
    best = (
        ", which may be above 1"
        if found.goal is goals.BULK and (asked.competitors or asked.policer)
        else ", 1 at best"
    )
    message = [f"Score{best}: {found.goal.means}."]
    if found.goal.why:
        message.append(_threshold(advice))
    if advice.parts:
        few = "" if advice.whole else "; the time was over before the others"
        regrets = "Regret: what a choice loses against the best one of each path, on average and at worst."
        return [
            *message,
            regrets,
            f"Horizon: {advice.horizon}, on the largest path.",
            f"{len(advice.paths)} paths spread over the range, {found.seeds} seeds on each{few}.",
        ]
    size = asked.flow_size or SHORT
    message.append(
        f"Goodput, RTT and retransmitted: of a long flow. Short flows: mean completion time of {size}. Harm: "
        f"what a {asked.neighbour} flow loses of the goodput that it has alone."
    )
    message.append(f"Horizon: {advice.horizon}{', with the largest buffer' if advice.buffers else ''}.")
    if advice.brief:
        message.append("The budget was too short for a measure without values; --budget gives it more.")
    settled = "" if found.settled else "; more time (--budget) or seeds (--seeds) may settle the ranking"
    message.append(f"± is half the 95 % confidence interval of the mean over {found.seeds} seeds{settled}.")
    return message


def _threshold(advice: Answer) -> str:
    """Why a flow has to use a part of its share, and who does not."""
    below = {
        place.candidate: used.mean
        for one in advice.rankings
        for place in one.places
        if (used := place.measure(lambda trial: trial.used)) is not None and used.mean < goals.ENOUGH
    }
    who = joined([f"{name} ({percent(used)})" for name, used in below.items()]) if below else "nobody"
    some = ", on some paths" if below and len(advice.rankings) > 1 else ""
    return f"Why {percent(goals.ENOUGH)}: {advice.ranking.goal.why}. Below it here: {who}{some}."


def crossings(advice: Answer) -> list[str]:
    """What would change the answer: a title, and a line for each value. Empty where nobody looked."""
    if advice.boundaries is not None:
        found = [str(one) for one in advice.boundaries.found]
        more = [f"and {len(found) - _BOUNDARIES} more changes"] if len(found) > _BOUNDARIES else []
        return [str(advice.boundaries), *found[:_BOUNDARIES], *more]
    if not advice.looked:
        return []
    asked = advice.question
    buffer = f"{asked.assumed_bdps or 1:g} bdp" if asked.buffer is None else str(asked.buffer)
    fixed = f"; the buffer stays {buffer}" if "bdp" in buffer.lower() else ""
    title = "What would change the answer" if advice.crossings else "No change of the answer was seen"
    ways = itertools.groupby(advice.crossings, key=lambda one: (one.quantity, one.below))
    near = [str(one) for _, way in ways for one in itertools.islice(way, _CHANGES)]
    rest = len(advice.crossings) - len(near)
    more = [f"and {counted(rest, 'change')} farther away (--json)"] if rest else []
    return [f"{title}, all else as it is{fixed}:", *near, *more, _looked(advice.looked)]


def _looked(looked: Sequence[Looked]) -> str:
    """How far and how finely the quantities were looked at."""
    seen = [one for one in looked if one.low < one.high]
    steps = sorted({f"{one.step:.1f}" for one in seen})
    same = {step: [str(one) for one in seen if f"{one.step:.1f}" == step] for step in steps}
    message = "; ".join(f"{joined(ranges)} in steps of at most {step}x" for step, ranges in same.items())
    unseen = [NAMES.get(one.quantity, one.quantity) for one in looked if one.low == one.high]
    rest = "" if all(one.complete for one in looked) else "; more would have taken too long"
    return f"looked at: {message}{f'; not at {joined(unseen)}' if unseen else ''}{rest}"
