"""`fullpipe conform`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.commands._common import (
    DISAGREE,
    AsJson,
    complete_controllers,
    console,
    folder_for,
    path,
    plain,
    results_folder,
    say,
    watching,
)
from fullpipe.commands._holds import CONFORMITY, refuse_others
from fullpipe.commands._programs import PROGRAMS, programs
from fullpipe.errors import unfit
from fullpipe.system.words import counted, joined

if TYPE_CHECKING:
    from fullpipe.conformance.case import Case


def complete_cases(incomplete: str) -> list[str]:
    """Names of cases for a shell's completion."""
    from fullpipe.conformance import registry

    return [case.name for case in registry.every() if case.name.startswith(incomplete)]


def conform(
    controller: Annotated[
        str | None,
        typer.Argument(
            metavar="CC",
            help="A controller: bbr3, bbr3:loss_thresh=0.1, or mine.py:MyController.",
            autocompletion=complete_controllers,
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this case; may be repeated.", show_default="all", autocompletion=complete_cases
        ),
    ] = None,
    list_: Annotated[
        bool,
        typer.Option("--list", help="List the cases and play none; with --json, their criteria as well."),
    ] = False,
    program: Annotated[
        str | None,
        typer.Option(
            metavar="CLIENT",
            help='Instead of CC: command of a client, e.g. "iperf3 -c {server} -t 60"; needs --server.',
            show_default=False,
            rich_help_panel=PROGRAMS,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help='Command of its server, e.g. "iperf3 -s".',
            show_default=False,
            rich_help_panel=PROGRAMS,
        ),
    ] = None,
    sender: Annotated[
        str | None,
        typer.Option(
            metavar="SIDE",
            help="Which of the two sends the data: client or server.",
            show_default="client",
            rich_help_panel=PROGRAMS,
        ),
    ] = None,
    out: Annotated[Path | None, results_folder("out/conform-CC-...")] = None,
    qlog: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for a qlog of each case's packets, which takes another run.",
            show_default="none",
            parser=path,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Hold a controller against the cases of BBRv3: the draft's examples, and known bugs of implementations.

    Each case passes, fails, or is not applicable, with the measured value and the criterion. Exit code 1:
    an applicable case fails.
    """
    from fullpipe.conformance import registry

    if list_:
        _list(registry.chosen(case or None), as_json=as_json)
        return
    given = programs([program] if program else [], [server] if server else [], [sender] if sender else [])
    if controller is not None and given:
        raise unfit("--program", "stands beside a controller", "give one of the two")
    held = given[0] if given else controller
    if held is None:
        raise typer.BadParameter("name a controller, or give --list or --program", param_hint="CC")
    if given and qlog is not None:
        raise unfit("--qlog", "has no logs of a program", "leave it out")
    name = held if isinstance(held, str) else held.client.split()[0]
    from fullpipe.conformance.run import conform as play
    from fullpipe.worlds.logs import Logs

    Logs.of(qlog, None)  # A folder that cannot be written into is an error now.
    folder = folder_for(out, f"conform-{plain(name)}", wanted=not as_json)
    if folder is not None:
        refuse_others(folder.path, CONFORMITY, lambda: name)
    with watching() as watch:
        found = play(held, case or None, watch=watch)
    if as_json:
        print(found.to_json())
    else:
        console().print(found)
    if folder is not None:
        errors = console(stderr=True)
        with errors.status("Drawing the pages"):
            written = found.write(folder.create())
        say(f"Pages: {written / 'index.html'}")
    if qlog is not None:
        logged, without = found.log(qlog)
        said = f"; a log cannot repeat a buffer that changes: {joined(without)}" if without else ""
        if logged:
            say(f"Logs: {counted(len(logged), 'file')} in {qlog}{said}")
        else:
            say(f"Logs: none{said or '; the laws, and cases that are not applicable, have no packets'}")
    if not found.passed:
        raise typer.Exit(DISAGREE)


def _list(cases: "tuple[Case, ...]", *, as_json: bool) -> None:
    import json

    if as_json:
        told = [
            {
                "name": one.name,
                "title": one.title,
                "source": one.source,
                "about": one.about,
                "phases": one.phases,
                "seeds": list(one.seeds),
                "criteria": [f"{of.quantity}: {of.bounds}" for of in one.criteria],
            }
            for one in cases
        ]
        print(json.dumps(told, indent=2))
        return
    for one in cases:
        print(f"{one.name:28} {one.title} ({one.source})")
