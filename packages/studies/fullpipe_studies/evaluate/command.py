"""Implements `fullpipe evaluate`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.cli.options import (
    SEEDS_HELP,
    ReplaceLarger,
    Stacks,
    VirtualWorld,
    check_folder,
    complete_controllers,
    console,
    path,
    plain,
    say,
    use_stacks,
)
from fullpipe.cli.other_results import EVALUATION, refuse_others
from fullpipe.runs.worlds import registry

if TYPE_CHECKING:
    from fullpipe.report.fitting import Fitting
    from fullpipe_studies.evaluate.run import Result

FAILED = 1


def evaluate(
    controller: Annotated[
        str,
        typer.Argument(
            metavar="CC",
            help="A controller: bbr3, bbr3:profile=linux, mine.py:MyController, or noq:bbr3.",
            autocompletion=complete_controllers,
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="Run fewer scenarios, with fewer seeds: a minute or two.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(help=SEEDS_HELP, show_default="12, with --quick 8; in a QUIC stack 5, with --quick 4"),
    ] = None,
    world: VirtualWorld = None,
    stack: Stacks = None,
    record: Annotated[
        bool, typer.Option("--record", help="In a checkout: put the verdicts into results/evaluations.jsonl.")
    ] = False,
    replace_larger: ReplaceLarger = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for report, figures, scenarios, data and runs.",
            show_default="out/evaluate-CC",
            parser=path,
        ),
    ] = None,
) -> None:
    """Report on a controller by the criteria of RFC 9743 (BCP 133), compared with CUBIC, Reno and BBRv1.

    Each criterion gets a verdict with its reason: "better" or "worse" than both standards, CUBIC and Reno;
    else "as the standards"; "flag", if a limit that the report states is exceeded; "not run"; "not
    applicable"; or "for the author", who alone can answer. No verdict says pass, because the RFC has no
    thresholds. An interrupted command resumes. Exit code 1: some run failed.
    """
    use_stacks(stack)
    from fullpipe import evidence
    from fullpipe.conformance.runners import world_of
    from fullpipe.errors import mistake
    from fullpipe.runs.limits import MOST_STORED_RUNS, check_runs
    from fullpipe.runs.store import Store
    from fullpipe_studies.command import carry_out
    from fullpipe_studies.evaluate import recorded, run
    from fullpipe_studies.evaluate.write import write

    lines = evidence.folder() / recorded.FILE if record else None
    if lines is not None:
        evidence.read(lines)  # A file that cannot be used is an error now.
    if seeds is not None and seeds < 1:
        raise mistake("seeds", seeds, "a whole number from 1", "e.g. 8")
    controller, world = controller.strip(), world or world_of(controller)
    plan = run.Plan(controller, world, seeds or run.seeds_of(world, quick), quick)
    plan.check()
    cells = len({one.name for row in plan.criteria for one in row.scenes}) * len(plan.controllers)
    check_runs("seeds", plan.seeds, cells, MOST_STORED_RUNS, "scenarios")
    parts = ("evaluate", controller, world if world != registry.DEFAULT else "", "quick" if quick else "")
    folder = out or Path("out") / plain("-".join(filter(None, parts)))
    check_folder(folder)
    refuse_others(folder, EVALUATION, lambda: controller)
    store = Store(folder)
    outcome = carry_out([one.task for one in plan.planned], store, f"evaluate {controller}")
    errors = console(stderr=True)
    with errors.status("Measuring") as status:
        result = run.examine(
            plan, store, outcome, lambda at, of: status.update(f"Measuring {at} of {of} runs")
        )
        report = write(result, folder, status.update)
    console().print(_table(result))
    for note in result.notes:
        say(f"fullpipe: {note}")
    say(f"Report: {report} and report.md beside it")
    if outcome.failed:
        raise typer.Exit(FAILED)
    if lines is not None:
        words = [controller, *(["--quick"] if quick else []), *([f"--seeds={seeds}"] if seeds else [])]
        command = shlex.join(["fullpipe", "evaluate", *words, "--record"])
        recorded.record(lines, result, command, larger=replace_larger)


_COLOUR = {"flag": "red", "worse": "red", "better": "green"}


def _table(result: "Result") -> "Fitting":
    from rich.text import Text

    from fullpipe.report.fitting import Fitting
    from fullpipe_studies.evaluate.report import because, word

    table = Fitting("Section", "Level", "Criterion", "Verdict", "Because")
    for row in result.rows:
        one, verdict = row.criterion, word(row.verdict)
        style = _COLOUR.get(verdict, "")
        table.add_row(one.section, one.level, one.title, Text(verdict, style=style), because(row))
    return table
