"""How a report was made: when, by which command, by which version.

Runs and their records do not contain it, so that they are the same whenever and however they are made.
"""

import re
import shlex
import time
from collections.abc import Sequence

_command: str | None = None
# The option whose value a report keeps to itself.
_SECRET, _HIDDEN = "--token", "..."


def began(arguments: Sequence[str]) -> None:
    """Keeps the command line that this process runs."""
    global _command
    shown = [_without_password(one) for one in arguments]
    for at, one in enumerate(shown):
        if one == _SECRET and at + 1 < len(shown):
            shown[at + 1] = _HIDDEN
        elif one.startswith(f"{_SECRET}="):
            shown[at] = f"{_SECRET}={_HIDDEN}"
    _command = shlex.join(["fullpipe", *shown])


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
