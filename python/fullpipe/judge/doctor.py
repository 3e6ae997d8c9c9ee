"""What this machine can do, what is missing, and how to fix it."""

import platform
import sys
from dataclasses import dataclass
from importlib import metadata

from fullpipe import _native
from fullpipe.judge import emulator_check, trust
from fullpipe.system.machine import cores
from fullpipe.system.words import capitalised
from fullpipe.worlds import registry
from fullpipe.worlds.world import World

_PACKAGES = ("typer", "rich", "polars", "altair", "vl-convert-python")


@dataclass(frozen=True)
class Check:
    """One requirement, and whether it is met."""

    group: str
    name: str
    ok: bool
    found: str
    fix: str


def checks() -> list[Check]:
    """All checks, the Python side first."""
    worlds = [check for name in registry.names() for check in _of_world(registry.named(name))]
    broken = [
        Check("Worlds", name, False, why, "update or remove it") for name, why in registry.broken().items()
    ]
    return [*_python_checks(), *worlds, _emulator_check(), *broken]


def _python_checks() -> list[Check]:
    found = [
        Check("Fullpipe", "version", True, _native.version(), ""),
        Check("Fullpipe", "python", True, f"{platform.python_version()} ({sys.executable})", ""),
        Check("Fullpipe", "cores", True, f"{cores()}; the simulator runs that many seeds at a time", ""),
    ]
    for package in _PACKAGES:
        try:
            found.append(Check("Fullpipe", package, True, metadata.version(package), ""))
        except metadata.PackageNotFoundError:
            found.append(Check("Fullpipe", package, False, "not installed", f"pip install {package}"))
    return found


def _of_world(world: World) -> list[Check]:
    """What a world needs of this machine."""
    group = capitalised(world.place)
    try:
        found = world.checks()
    except _native.WorldError as error:
        return [Check(group, "doctor", False, str(error), "report this as a bug")]
    return [Check(group, one["name"], one["ok"], one["found"], one["fix"]) for one in found]


def _emulator_check() -> Check:
    """The result of `fullpipe kernel check` on this machine, if it ever ran."""
    found, here = trust.kept(), trust.Machine.here()
    again = f"run `fullpipe kernel check` (takes about {emulator_check.seconds(quick=False)} s)"
    if found is None:
        return Check("Kernel world", "emulator", True, f"not measured: {again}", "")
    if found.machine != here:
        said = f"not measured since the machine changed ({found.machine} before, {here} now): {again}"
        return Check("Kernel world", "emulator", True, said, "")
    how = "quick check" if found.quick else "check"
    said = f"{found.statement} ({how} of {found.when}; load average {found.load})"
    fix = f"leave the machine idle, then {again}; meanwhile, untrustworthy runs are marked one by one"
    return Check("Kernel world", "emulator", bool(found.true_bps), said, fix)
