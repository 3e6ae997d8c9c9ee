"""`fullpipe plan`: what the results of an experiment show, which `fullpipe advise --plan` describes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.cli import options as shared
from fullpipe.cli.options import DISAGREE, AsJson, check_folder, console, print_notes, say
from fullpipe.cli.other_results import PLAN, refuse_others

if TYPE_CHECKING:
    from fullpipe.advisor.plan.analysis import Analysis

# Those of `fullpipe.advisor.plan.analysis`, which takes a while to import; a test compares them.
MEASURES = ("goodput", "completion", "rtt", "retransmissions")

app = typer.Typer(
    no_args_is_help=True,
    help="Analyse the results of an experiment that `fullpipe advise --plan` planned.",
)


@app.callback()
def _group() -> None:
    pass


@app.command()
def analyse(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS.csv",
            help="One row a connection, with the columns arm and bytes, and those of seconds, rtt_ms and "
            "retransmits that the measure needs; - is standard input.",
            show_default=False,
            parser=shared.path,
        ),
    ],
    control: Annotated[
        str | None,
        typer.Option(metavar="ARM", help="Which arm is the control.", show_default="the one called control"),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(MEASURES),
            help="What decides.",
            show_default="the first of these whose columns are there",
            autocompletion=lambda: list(MEASURES),
        ),
    ] = None,
    difference: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="The predicted difference of the treatment in per cent, e.g. 12 or -30; with --measure "
            "retransmissions, that of their share in percentage points. The answer then says how many "
            "connections are needed to detect it.",
            show_default="none",
        ),
    ] = None,
    share: Annotated[
        str, typer.Option(metavar="PERCENT", help="Share of the connections that were to get the treatment.")
    ] = "50",
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for a figure as SVG, its data as CSV, and the answer as JSON.",
            show_default="none",
            parser=shared.path,
        ),
    ] = None,
) -> None:
    """Say whether the treatment is better or worse than the control, from a table of connections.

    The arms are compared by the ratio of geometric means, with Welch's 95 % confidence interval.
    Retransmissions are compared by the difference of the arms' means of each connection's share, which is
    retransmits / (retransmits + bytes / 1,448 rounded up). Arms are not comparable if many values
    are missing, or if the arms differ by more than chance in their number of connections, in the sizes of
    these, or in when they start (optional column `time`, in seconds or as ISO 8601). If whole groups of
    connections were assigned to arms, e.g. all of a route or of an hour, name the group in the optional
    column `unit`; then the means of groups are compared. Exit code 1: not comparable.
    """
    from fullpipe.advisor.plan import analysis
    from fullpipe.advisor.plan import results as rows
    from fullpipe.errors import mistake

    if out is not None:
        check_folder(out)
        refuse_others(out, PLAN, lambda: "plan")
    part = analysis.percent_of("share", share)
    if not 0 < part < 100:
        raise mistake("share", share, "per cent between 0 and 100", "e.g. 50")
    found = analysis.analyse(
        rows.read(results),
        control=control,
        measure=measure,
        difference=None if difference is None else analysis.percent_of("difference", difference),
        share=part / 100,
    )
    if as_json:
        print(found.to_json())
    else:
        _show(found)
    if out is not None:
        from fullpipe.advisor.plan import picture

        say(f"Figure: {picture.write(found, out)}")
    if found.reasons:
        raise typer.Exit(DISAGREE)


def _show(found: "Analysis") -> None:
    from rich.text import Text

    from fullpipe.report.fitting import Fitting

    screen = console()
    screen.print(Text(found.answer, style="bold"), soft_wrap=True)
    if found.effects:
        table = Fitting("Measure")
        for heading in (found.treatment, found.control, "Difference", "95 % interval"):
            table.add_numbers(heading)
        for row in found.rows:
            table.add_row(*row)
        screen.print()
        screen.print(table)
    print_notes(found.remarks)
