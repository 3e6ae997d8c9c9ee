"""`fullpipe stacks`: stacks in processes of their own, behind adapters."""

import json
import shlex
from typing import Annotated

import typer

from fullpipe.cli.options import DISAGREE, AsJson, Stacks, console, use_stacks

app = typer.Typer(
    invoke_without_command=True,
    subcommand_metavar="[COMMAND] [ARGS]...",
    help="List the QUIC stacks that are here, and which of a controller's values each reports (window, "
    "phase, rate). `fullpipe stacks check` checks an adapter.",
)


@app.callback()
def list_(context: typer.Context, stack: Stacks = None, as_json: AsJson = False) -> None:
    """List the QUIC stacks that are here, and which of a controller's values each reports.

    Those of the world quic are linked into its program. --stack NAME=COMMAND adds one behind an adapter, a
    program that speaks the protocol in quic/adapters/PROTOCOL.md. A scenario names a controller of it as
    NAME:CONTROLLER, and never starts an adapter by itself.
    """
    if context.invoked_subcommand is not None:
        return
    use_stacks(stack)
    from fullpipe.report import tables
    from fullpipe.runs.worlds import quic_stacks

    found = quic_stacks.listed()
    if as_json:
        print(json.dumps(found, indent=2))
        return
    console().print(tables.stacks(found))


@app.command()
def check(
    command: Annotated[
        str,
        typer.Argument(metavar="COMMAND", help="Command of the adapter, e.g. ./adapter.", show_default=False),
    ],
    controller: Annotated[
        list[str] | None,
        typer.Option("--controller", metavar="CC", help="Only this; may be repeated.", show_default="all"),
    ] = None,
    duration: Annotated[str, typer.Option(help="Duration of each run, in virtual time.")] = "4 s",
    as_json: AsJson = False,
) -> None:
    """Check that an adapter is deterministic: that with equal seeds it sends equal packets.

    Each controller runs five times over one path. Four runs have the same seed and must send the same
    packets: two equal ones, in which virtual time advances in steps shorter than the path's delay; one in
    which it advances from event to event; and one like the first, on a processor that others keep busy. All
    but the third must report equal windows, RTTs and so on, too. The fifth has another seed, and may differ.
    The first difference is named. Then the first controller runs once more, and each request of the adapter
    for the time or for random numbers is counted. Exit code 1: the four differ, or the adapter never reports
    a connection or delivered bytes.
    """
    from fullpipe.report import tables
    from fullpipe.runs.worlds import quic_stacks, stacks

    subject = stacks.of_command("subject", command)
    results = quic_stacks.check(subject, controller or None, duration)
    listing = quic_stacks.listing(subject, results)
    first = results[0].controller
    calls = quic_stacks.calls(subject, first, duration)
    if as_json:
        runs = [one.row() for one in results]
        of_calls = {"calls": calls.counts, "calls_reason": calls.reason}
        print(json.dumps({"runs": runs, "listing": listing, **of_calls}, indent=2))
    else:
        about = subject.about
        print(f"{about['name']} {about['version']} ({shlex.join(subject.command)}): {about['policy']}")
        console().print(tables.stack_checks(results))
        for sentence in tables.stack_notes(results, listing):
            print(sentence)
        print(tables.stack_calls(first, calls.counts, calls.reason))
    if not all(one.equal for one in results):
        raise typer.Exit(DISAGREE)
