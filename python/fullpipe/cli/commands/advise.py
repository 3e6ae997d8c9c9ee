"""`fullpipe advise`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.cli import options as shared
from fullpipe.cli.options import (
    AsJson,
    Candidates,
    Competitors,
    Ecn,
    Goal,
    Pacing,
    check_folder,
    console,
    path_options,
    say,
    show_paths,
    show_work,
    watching,
)
from fullpipe.cli.other_results import ANSWERS, refuse_others
from fullpipe.runs.worlds import registry

if TYPE_CHECKING:
    from fullpipe.advisor import Advice
    from fullpipe.advisor.many import Answers

# Paths without an answer are listed; further ones are a number.
_MOST_REFUSED = 10


@path_options(
    ranges=True,
    defaults={"rate": "", "rtt": ""},
    more={
        "rate": " Needed, unless --deliveries or --from is given.",
        "rtt": " Needed, unless --from is given.",
    },
)
def advise(
    path: dict[str, Any],
    ecn: Ecn = False,
    competitors: Competitors = None,
    flow_size: Annotated[
        str | None,
        typer.Option(
            help=shared.FLOW_SIZE_HELP,
            show_default="long flows",
        ),
    ] = None,
    pacing: Pacing = True,
    tcp_memory: Annotated[
        str | None,
        typer.Option(
            "--tcp-mem",
            help="Limit of socket buffers: `linux` is Linux's default tcp_rmem and tcp_wmem, `max` never "
            "limits a flow.",
            show_default="max",
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            help="Duration of a long flow's run.",
            show_default="300 round trips, at least 20 s, at most 60 s; cut to what 1.5 million packets or "
            "5,000 round trips take, but not below 100 round trips or 1 s",
        ),
    ] = None,
    goal: Goal = None,
    candidates: Candidates = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Paths from a scenario, e.g. the path.toml of `fullpipe probe`, a CSV file, `ss -tin`, "
            "`iperf3 -J`, Prometheus, browsers' timings or a packet capture; - is standard input. "
            "docs/how-to/advisor.md has each form. Options override it.",
            show_default="none",
            parser=shared.path,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Time limit; with --from, for each path of the file.",
            show_default="about 5 s; none with --seeds",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of seeds for each path. With --seeds and --candidates, and without "
            "--budget, the answer is the same on any machine.",
            show_default="what the budget allows",
        ),
    ] = None,
    world: Annotated[
        str,
        typer.Option(
            help="Where the candidates run: sim or kernel. The kernel takes real time: give it "
            "minutes, e.g. --budget 600."
        ),
    ] = registry.DEFAULT,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan",
            help="Also plan the experiment that would confirm the answer on real connections; sends nothing.",
        ),
    ] = False,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --from: folder for the answers, as JSON, CSV, and a page that maps the paths.",
            show_default="none",
            parser=shared.path,
        ),
    ] = None,
) -> None:
    """Say which congestion control a path should run, what would change the answer, and how to apply it.

    Every candidate runs on the path that the options describe, with one seed after another, until
    the ranking is settled, or --budget or --seeds is reached. The path needs --rate or --deliveries, and
    --rtt; --from can give them.
    """
    from rich.text import Text

    from fullpipe.advisor import Advice, interface, many, sources, terminal
    from fullpipe.errors import mistake, unusable

    if out is not None:
        if source is None:
            raise mistake("out", str(out), "the paths of a file", "give --from, too")
        check_folder(out)
        refuse_others(out, ANSWERS, lambda: "answers")
    asked: dict[str, Any] = {**path, "ecn": ecn, "flow_size": flow_size, "tcp_memory": tcp_memory}
    asked |= {"competitors": competitors or (), "candidates": candidates}
    asked |= {"duration": duration, "pacing": pacing}
    if source is not None and "deliveries" in path:
        raise unusable("--deliveries", "cannot be used with --from", "remove one of the two")
    how: dict[str, Any] = {"goal": goal, "world": world, "seeds": seeds}
    with watching() as bars:

        def watch(doing: str, done: float) -> None:
            bars.show("advise", done, 1.0, doing)

        found: Advice | many.Answers
        if source is None:
            found = interface.advise(**asked, **how, budget=budget, watch=watch, begin=show_work)
        else:
            paths = sources.read(source)
            if plan and len(paths) > 1:
                fix = "take one of them, or leave out --plan"
                raise unusable("--plan", f"needs one path, and {source} has {len(paths)}", fix)
            fields = interface.fields(**asked)
            found = many.answer(paths, fields, **how, budget_s=budget, watch=watch, begin=show_paths)
    planned = None
    if plan and (advice := found if isinstance(found, Advice) else _only(found)) is not None:
        planned = advice.plan()
    if as_json and planned is not None:
        print(json.dumps({**found.to_dict(), "plan": planned.to_dict()}, indent=2))
    elif as_json:
        print(found.to_json())
    elif isinstance(found, Advice):
        terminal.show(found, console())
    else:
        _show_many(found)
    if planned is not None and not as_json:
        console().print(Text(f"\n{planned}"), soft_wrap=True)
    if out is not None and not isinstance(found, Advice):
        from fullpipe.advisor import many_page

        say(f"Map: {many_page.write(found, out)}")


def _only(answers: "Answers") -> "Advice | None":
    """The answer for the only path; None if that path has none."""
    return answers.answered[0].advice if len(answers.answered) == 1 else None


def _show_many(answers: "Answers") -> None:
    from rich.text import Text

    from fullpipe.advisor import terminal
    from fullpipe.advisor.inputs import readable
    from fullpipe.report.fitting import Fitting
    from fullpipe.text import counted

    out = console()
    if answers.paths == 1:
        for note in answers.answered[0].path.notes:
            out.print(Text(f"Note: {note}"), soft_wrap=True)
        terminal.show(answers.answered[0].advice, out)
        return
    for line in answers.inputs.lines():
        out.print(Text(line), soft_wrap=True)
    out.print(Text(str(answers), style="bold"), soft_wrap=True)
    out.print()
    table = Fitting("Path")
    table.add_text("Rate")
    table.add_text("RTT")
    table.add_text("Clearly best")
    table.add_text("Answer")
    table.add_text("Notes")
    for one in answers.answered:
        rate, rtt = (readable(str(getattr(one.advice.question, name))) for name in ("rate", "rtt"))
        best, notes = one.advice.winner or "–", "; ".join(one.notes)
        table.add_row(one.path.name, rate, rtt, best, one.advice.answer, notes)
    for refused in answers.refused[:_MOST_REFUSED]:
        table.add_row(refused.path.name, "–", "–", "–", "not answered", refused.why)
    out.print(table)
    if more := answers.refused[_MOST_REFUSED:]:
        out.print(Text(f"{counted(len(more), 'path')} more could not be answered; --json has all."))
    for line in answers.inputs.unused:
        out.print(Text(line), soft_wrap=True)
