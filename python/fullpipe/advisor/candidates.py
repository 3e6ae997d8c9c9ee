"""Which controllers this machine's TCP can have."""

import json
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import fullpipe._native as _native

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
DEFAULT = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_MODULES = Path("/lib/modules")
_QUEUES = Path("/proc/sys/net/core/default_qdisc")
_ROUTES = Path("/proc/net/route")
# Disciplines that only hand packets to others, one for each queue of the device.
_MULTIQUEUE = ("mq", "mqprio")
_TC_S = 5.0
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


def qdisc(routes: Path = _ROUTES) -> str | None:
    """The queue discipline of the default route's device, by `tc`; else, `default_qdisc`.

    Of a device with several queues, one that does not pace if there is any: connections use all of them.
    """
    return _of_device(device(routes)) or default_qdisc()


def device(routes: Path = _ROUTES) -> str | None:
    """The device of the IPv4 default route with the least metric; None without one."""
    try:
        rows = [line.split() for line in routes.read_text(errors="replace").splitlines()[1:]]
        found = [(int(row[6]), row[0]) for row in rows if row[1] == "00000000" and row[7] == "00000000"]
    except (OSError, IndexError, ValueError):
        return None
    return min(found)[1] if found else None


def _of_device(name: str | None) -> str | None:
    tc = shutil.which("tc", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if name is None or tc is None:
        return None
    try:
        words = [tc, "-j", "qdisc", "show", "dev", name]
        done = subprocess.run(words, capture_output=True, timeout=_TC_S, check=True)
        rows = json.loads(done.stdout)
        (root,) = [one["kind"] for one in rows if one.get("root")]
        parts = [one["kind"] for one in rows if not one.get("root")] if root in _MULTIQUEUE else []
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return str(next((kind for kind in parts if kind != PACES), parts[0] if parts else root))


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
