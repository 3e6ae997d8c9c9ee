"""How a report was made: when, by which command, by which version.

Runs and their records do not contain it, so that they are the same whenever and however they are made.
"""

import re
import shlex
import time
from collections.abc import Sequence

_command: str | None = None


def began(arguments: Sequence[str]) -> None:
    """Keeps the command line that this process runs."""
    global _command
    _command = shlex.join(["fullpipe", *map(_without_password, arguments)])


def command() -> str | None:
    """The command line; None if Fullpipe is used from Python."""
    return _command


def now() -> str:
    """Date and time in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())


def time_text(at: str) -> str:
    """A date and time of a file for programs, as pages show it: "2026-11-22T13:01:37Z" as `now` says it."""
    return at.replace("T", " ").replace("Z", " UTC")


def _without_password(argument: str) -> str:
    """An argument without the part before the host of an address, e.g. of a Ray cluster."""
    return re.sub(r"(?<=://)[^/@\s]*@", "", argument)
