"""What this machine can do, what is missing, and how to fix it."""

import platform
import sys
from dataclasses import dataclass
from importlib import metadata

import fullpipe._native as _native
from fullpipe.runs.machine import cores
from fullpipe.runs.worlds import kernel_check, kernel_trust, registry
from fullpipe.runs.worlds.world import World
from fullpipe.text import capitalised

_PACKAGES = ("typer", "rich", "polars", "altair", "vl-convert-python")


@dataclass(frozen=True)
class Requirement:
    """One requirement, and whether it is met."""

    group: str
    name: str
    ok: bool
    found: str
    fix: str


def requirements() -> list[Requirement]:
    """All of them, the Python side first."""
    names = [*registry.names(), *registry.optional(there=False), *registry.special()]
    worlds = [one for name in names for one in _of_world(registry.named(name))]
    broken = [
        Requirement("Worlds", name, False, why, "update or remove it")
        for name, why in registry.load_installed().items()
    ]
    return [*_python(), *worlds, _emulator(), *broken]


def _python() -> list[Requirement]:
    at_a_time = f"{cores()}; the simulator runs that many seeds at a time"
    found = [
        Requirement("Fullpipe", "version", True, _native.version(), ""),
        Requirement("Fullpipe", "python", True, f"{platform.python_version()} ({sys.executable})", ""),
        Requirement("Fullpipe", "cores", True, at_a_time, ""),
    ]
    for package in _PACKAGES:
        try:
            found.append(Requirement("Fullpipe", package, True, metadata.version(package), ""))
        except metadata.PackageNotFoundError:
            found.append(Requirement("Fullpipe", package, False, "not installed", f"pip install {package}"))
    return found


def _of_world(world: World) -> list[Requirement]:
    """What a world needs of this machine."""
    group = capitalised(world.place)
    try:
        found = world.checks()
    except _native.WorldError as error:
        return [Requirement(group, "doctor", False, str(error), "report this as a bug")]
    return [Requirement(group, one["name"], one["ok"], one["found"], one["fix"]) for one in found]


def _emulator() -> Requirement:
    """The result of `fullpipe kernel check` on this machine, if it ever ran."""
    found, here = kernel_trust.kept(), kernel_trust.Machine.here()
    again = f"run `fullpipe kernel check` (takes about {kernel_check.seconds(quick=False)} s)"
    if found is None:
        return Requirement("Kernel world", "emulator", True, f"not measured: {again}", "")
    if found.machine != here:
        message = f"not measured since the machine changed ({found.machine} before, {here} now): {again}"
        return Requirement("Kernel world", "emulator", True, message, "")
    how = "quick check" if found.quick else "check"
    message = f"{found.statement} ({how} of {found.when}; load average {found.load})"
    fix = f"leave the machine idle, then {again}; meanwhile, untrustworthy runs are marked one by one"
    return Requirement("Kernel world", "emulator", bool(found.true_bps), message, fix)
