"""`fullpipe advise`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.commands._common import (
    AsJson,
    Candidates,
    Competitors,
    Ecn,
    Goal,
    Queue,
    console,
    path,
    watching,
)
from fullpipe.worlds import registry

if TYPE_CHECKING:
    from rich.text import Text

    from fullpipe.advisor import Advice
    from fullpipe.advisor.many import Answers
    from fullpipe.show.fitting import Fitting

_RANGE = " A range, e.g. '{0}', asks for all of it."


def advise(
    rate: Annotated[
        str | None,
        typer.Option(
            help=f"Rate of the bottleneck, e.g. 50mbit.{_RANGE.format('20..100 Mbit/s')}", show_default="none"
        ),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option(
            help=f"Round-trip time of the empty path.{_RANGE.format('20..80 ms')}", show_default="none"
        ),
    ] = None,
    buffer: Annotated[
        str, typer.Option(help=f"What fits into the bottleneck's queue.{_RANGE.format('50 KB..1 MB')}")
    ] = "1 bdp",
    loss: Annotated[str | None, typer.Option(help="Random loss, or a range.", show_default="none")] = None,
    jitter: Annotated[
        str | None, typer.Option(help="Random extra delay up to this, or a range.", show_default="none")
    ] = None,
    queue: Queue = None,
    policer: Annotated[
        str | None,
        typer.Option(
            metavar="RATE[,BURST]",
            help="A token bucket that drops, e.g. '20mbit,500 KB'.",
            show_default="none",
        ),
    ] = None,
    ecn: Ecn = False,
    competitors: Competitors = None,
    flow_size: Annotated[
        str | None,
        typer.Option(
            help="The flows are as large as this, and should complete soon, e.g. '1 MB'.",
            show_default="long flows",
        ),
    ] = None,
    tcp_memory: Annotated[
        str | None, typer.Option("--tcp-mem", help="Socket buffers: max or linux.", show_default="max")
    ] = None,
    goal: Goal = "balance",
    candidates: Candidates = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Paths from a CSV file, `ss -tin`, `iperf3 -J` or a packet capture; options fill its gaps.",
            show_default="none",
            parser=path,
        ),
    ] = None,
    budget: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="How long an answer may take, for each path of a file, too."),
    ] = 5.0,
    world: Annotated[str, typer.Option(help="The world in which the candidates run.")] = registry.DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Say which congestion control a path should run, what would change the answer, and how to apply it.

    Every candidate is simulated on the path itself, with seeds until the ranking is settled or the time is
    over.
    """
    from fullpipe import advisor
    from fullpipe.advisor import many, question, sources
    from fullpipe.errors import mistake

    given = {"rate": rate, "rtt": rtt, "buffer": buffer, "loss": loss, "jitter": jitter}
    fields: dict[str, Any] = {
        name: None if value is None else question.parsed(name, value) for name, value in given.items()
    }
    fields |= {
        "queue": queue,
        "policer": policer,
        "ecn": ecn,
        "flow_size": flow_size,
        "tcp_memory": tcp_memory,
    }
    fields |= {"competitors": question.competitors(competitors or []), "candidates": tuple(candidates or ())}
    if source is not None:
        paths = sources.read(source)
        with watching():
            answers = many.answer(paths, fields, goal=goal, world=world, budget_s=budget * len(paths))
        print(answers.to_json()) if as_json else _show_many(answers)
        return
    for name in ("rate", "rtt"):
        if fields[name] is None:
            raise mistake(name, "none", "a value", f"give --{name}, or --from a file that has it")
    with watching():
        advice = advisor.advise(advisor.Question(**fields), goal=goal, world=world, budget_s=budget)
    if as_json:
        print(advice.to_json())
        return
    _show(advice)


def _show_many(answers: "Answers") -> None:
    from rich.text import Text

    from fullpipe.show.fitting import Fitting

    out = console()
    if len(answers.answered) == 1:
        for note in answers.answered[0].path.notes:
            out.print(f"Note: {note}", soft_wrap=True)
        _show(answers.answered[0].advice)
        return
    out.print(Text(str(answers), style="bold"), soft_wrap=True)
    out.print()
    table = Fitting("Path")
    table.add_text("Clearly best")
    table.add_text("Answer")
    table.add_text("Notes")
    for one in answers.answered:
        table.add_row(one.path.name, one.advice.winner or "–", str(one.advice), "; ".join(one.path.notes))
    out.print(table)


def _show(advice: "Advice") -> None:
    out = console()
    out.print(_headline(advice), soft_wrap=True)
    out.print()
    out.print(_parts(advice) if advice.parts else _ranking(advice))
    for note in _notes(advice):
        out.print(note, soft_wrap=True)
    if advice.crossings:
        out.print("\nWhat would change the answer, all else as it is:", soft_wrap=True)
        for one in advice.crossings:
            out.print(f"  {one}", soft_wrap=True)
    if advice.trust:
        out.print(f"\n{advice.trust}", soft_wrap=True)
    if advice.lines:
        out.print("\nTo apply it:")
        for line in advice.lines:
            checked = f"  # {line.checked}" if line.checked else ""
            out.print(f"  {line.where}: {line.text}{checked}", soft_wrap=True, markup=False)


def _headline(advice: "Advice") -> "Text":
    from rich.text import Text

    return Text(str(advice), style="bold")


def _ranking(advice: "Advice") -> "Fitting":
    from rich.text import Text

    from fullpipe.advisor.advice import COLUMNS
    from fullpipe.show.fitting import Fitting

    table = Fitting("Controller")
    table.add_numbers("Score")
    for column in COLUMNS:
        table.add_numbers(column.title, column.unit)
    for place in advice.ranking.places:
        cells = []
        for column in COLUMNS:
            value = place.measure(column.take)
            half = None if value is None else value.half_width
            cells.append(
                "–"
                if value is None
                else f"{value.mean:,.{column.digits}f}"
                + (f" ± {half:.{column.digits}f}" if half is not None else "")
            )
        leads = place.candidate in advice.ranking.leaders
        name = Text(place.candidate, style="bold" if leads else "")
        table.add_row(name, f"{place.score.mean:.3f} ± {place.score.half_width or 0:.3f}", *cells)
    return table


def _parts(advice: "Advice") -> "Fitting":
    from fullpipe.show.fitting import Fitting

    table = Fitting("Controller")
    table.add_numbers("Clearly best", "% of paths")
    table.add_numbers("Best or as good", "% of paths")
    for part in advice.parts:
        table.add_row(part.candidate, f"{100 * part.wins:.0f}", f"{100 * part.leads:.0f}")
    return table


def _notes(advice: "Advice") -> list[str]:
    goal = advice.ranking.goal
    notes = [f"Score: {goal.means}."]
    if advice.parts:
        return [*notes, f"{len(advice.paths)} paths from the range, {advice.ranking.seeds} seeds on each."]
    neighbour = advice.question.neighbour
    notes.append(
        f"Harm: what a {neighbour} flow loses of its goodput alone. Short flows: mean completion time."
    )
    settled = "" if advice.ranking.settled else "; the time was over before the ranking was settled"
    notes.append(f"± is the 95 % confidence interval of the mean over {advice.ranking.seeds} seeds{settled}.")
    return notes
