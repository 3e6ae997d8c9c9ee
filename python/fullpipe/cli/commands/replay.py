"""`fullpipe replay`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fullpipe.cli.options import DISAGREE, MISTAKE, AsJson, complain, console, path, print_notes


def replay(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORDING...", help="Files that `fullpipe kernel record` wrote.", parser=path
        ),
    ],
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Show which branches of the controller the calls reached.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replay recorded kernel decisions with Fullpipe's controllers. Exit code 1: some decision differs."""
    import fullpipe._native as _native
    from fullpipe.conformance import recording_tables, recordings

    reports = []
    unreadable = False
    for file in files:
        try:
            reports.append(recordings.replay(file))
        except _native.RecordingError as error:
            complain(str(error))
            unreadable = True
    if as_json:
        print(json.dumps(reports, indent=2))
    elif reports:
        screen = console()
        screen.print(recording_tables.replays(reports))
        for report in reports:
            print_notes(recording_tables.disagreements(report))
            if report["difference"] is not None:
                screen.print(recording_tables.difference(report))
        if coverage:
            for table in recording_tables.coverage(reports):
                screen.print(table)
        print(recording_tables.replays_total(reports))
    if unreadable:
        raise typer.Exit(MISTAKE)
    if not all(report["agrees"] for report in reports):
        raise typer.Exit(DISAGREE)
