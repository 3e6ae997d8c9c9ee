"""Programs as options: what `compare` and `conform` have in common."""

from typing import TYPE_CHECKING, Any

import typer

from fullpipe.errors import unusable
from fullpipe.text import counted

if TYPE_CHECKING:
    from fullpipe.scenario.programs import Program

# The heading of the options.
PROGRAMS = "Programs, measured by their packets in the kernel world"


def client_option(help_: str) -> Any:
    """`--program`."""
    return typer.Option(metavar="CLIENT", help=help_, show_default=False, rich_help_panel=PROGRAMS)


def server_option(more: str = "") -> Any:
    """`--server`."""
    help_ = f'Command of its server, e.g. "iperf3 -s -1".{more}'
    return typer.Option(metavar="COMMAND", help=help_, show_default=False, rich_help_panel=PROGRAMS)


def sender_option(more: str = "") -> Any:
    """`--sender`."""
    help_ = f"Which of the two sends the data: client or server.{more}"
    return typer.Option(metavar="SIDE", help=help_, show_default="client", rich_help_panel=PROGRAMS)


def programs(clients: list[str], servers: list[str], senders: list[str]) -> "list[Program]":
    """The programs of the options, in their order."""
    from fullpipe.scenario.programs import Program

    for option, given in (("--program", clients), ("--server", servers)):
        if any(not one.strip() for one in given):
            raise unusable(option, "is empty", 'give a command line, e.g. "iperf3 -s -1"')
    if len(servers) != len(clients):
        message = f"is given {counted(len(servers), 'time')}, --program {counted(len(clients), 'time')}"
        raise unusable("--server", message, "give one --server for each --program")
    if len(senders) not in (0, 1, len(clients)):
        raise unusable(
            "--sender", f"is given {counted(len(senders), 'time')}", "give it once, or for each --program"
        )
    sides = (senders or ["client"]) * (len(clients) if len(senders) < 2 else 1)
    for side in sides:
        if side not in ("client", "server"):
            raise unusable("--sender", f'is "{side}"', "write client or server")
    if senders and not clients:
        raise unusable("--sender", "needs --program", "give --program and --server, or leave it out")
    return [
        Program(client, server, sender)
        for client, server, sender in zip(clients, servers, sides, strict=True)
    ]
