"""Which controllers this machine's TCP can have."""

import json
import platform
from dataclasses import dataclass
from pathlib import Path

import fullpipe._native as _native

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_MODULES = Path("/lib/modules")
_QUEUES = Path("/proc/sys/net/core/default_qdisc")
# The queue discipline that paces flows (tc-fq(8)); fq_codel, pfifo_fast and the others do not.
PACES = "fq"
# What every Linux of a distribution has, where this machine's cannot be read.
USUAL = ("reno", "cubic", "bbr1")


@dataclass(frozen=True)
class Candidate:
    """A controller that a kernel has."""

    name: str
    linux: str
    loaded: bool  # Or else there is a module that can be loaded.


def here(available: Path = _AVAILABLE, modules: Path = _MODULES) -> list[Candidate]:
    """The controllers of ours that this machine's kernel has, or has a module for. Empty if it does not say.

    Those that need marks from the path (DCTCP) are left out: on most paths they are Reno.
    """
    try:
        loaded = set(available.read_text(errors="replace").split())
    except OSError:
        return []
    folder = modules / platform.release() / "kernel" / "net" / "ipv4"
    try:
        there = {path.name.partition(".")[0] for path in folder.iterdir()}
    except OSError:
        there = set()
    found = []
    for one in json.loads(_native.controllers()):
        linux = one["kernel"]
        if linux is not None and one["name"] != "dctcp" and (linux in loaded or f"tcp_{linux}" in there):
            found.append(Candidate(one["name"], linux, linux in loaded))
    return found


def names() -> tuple[str, ...]:
    """The names of the candidates, if the user names none."""
    return tuple(one.name for one in here()) or USUAL


def default() -> str | None:
    """What Linux calls this machine's default controller; None where it cannot be read."""
    try:
        return DEFAULT.read_text(errors="replace").strip() or None
    except OSError:
        return None


def default_qdisc() -> str | None:
    """The queue discipline that this machine gives new devices; None where it cannot be read."""
    try:
        return _QUEUES.read_text(errors="replace").strip() or None
    except OSError:
        return None


def linux_name(controller: str) -> str | None:
    """What Linux calls a controller; None if it has none, or if it has parameters of its own."""
    known = {one["name"]: one["kernel"] for one in json.loads(_native.controllers())}
    linux: str | None = known.get(controller)
    return linux
