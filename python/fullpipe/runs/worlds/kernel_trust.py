"""How far to trust the kernel world on this machine: the result of a check, kept in the user's cache."""

import contextlib
import itertools
import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import files
from fullpipe.runs.machine import cores
from fullpipe.runs.worlds.kernel_check import RateVerdict, mbit
from fullpipe.text import joined

# The number of this clock in Linux. Its resolution is one tick of the kernel (CONFIG_HZ).
_CLOCK_MONOTONIC_COARSE = 6


# From this load average per core on, other work dominates the measurement.
BUSY = 0.5


@dataclass(frozen=True)
class Machine:
    """The machine that a check is valid for."""

    kernel: str
    cores: int
    hz: int

    @staticmethod
    def here() -> "Machine":
        """This machine."""
        return Machine(platform.release(), cores(), round(1 / time.clock_getres(_CLOCK_MONOTONIC_COARSE)))

    def __str__(self) -> str:
        return f"Linux {self.kernel}, {self.cores} cores, HZ {self.hz}"


class Load:
    """Other load: the load average at the start, and the time that the machine's host took from it."""

    def __init__(self) -> None:
        self.average = os.getloadavg()[0]
        self._began = _processor_time()

    def stolen(self) -> float:
        """The share of the processors' time since then that went to other guests of the host."""
        total, stolen = (now - then for now, then in zip(_processor_time(), self._began, strict=True))
        return stolen / total if total else 0.0


def _processor_time() -> tuple[int, int]:
    """Ticks of all processors so far, and those that were stolen (proc_stat(5))."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        ticks = [int(word) for word in first.split()[1:9]]
        return sum(ticks), ticks[7]
    except (OSError, ValueError, IndexError):
        return 0, 0


@dataclass(frozen=True)
class Trust:
    """The result of a check."""

    machine: Machine
    when: str  # Date and time, local.
    quick: bool
    took_s: float
    load: float
    stolen: float
    checked_bps: tuple[int, ...]
    # Rates at which the emulator was accurate.
    true_bps: tuple[int, ...]
    version: str

    @staticmethod
    def of(verdicts: Sequence[RateVerdict], *, quick: bool, took_s: float, load: Load) -> "Trust":
        """Builds the result of a check that has just ended."""
        return Trust(
            machine=Machine.here(),
            when=time.strftime("%Y-%m-%d %H:%M"),
            quick=quick,
            took_s=round(took_s, 1),
            load=round(load.average, 2),
            stolen=round(load.stolen(), 4),
            checked_bps=tuple(one.rate_bps for one in verdicts),
            true_bps=tuple(one.rate_bps for one in verdicts if one.accurate),
            version=_native.version(),
        )

    @property
    def ranges_bps(self) -> list[tuple[int, int]]:
        """The ranges of rates, from and to, in which the emulator was accurate at every checked rate."""
        runs = itertools.groupby(self.checked_bps, lambda rate: rate in self.true_bps)
        trusted = [list(rates) for true, rates in runs if true]
        return [(rates[0], rates[-1]) for rates in trusted]

    @property
    def statement(self) -> str:
        """One sentence."""
        if not self.ranges_bps:
            return "On this machine the kernel world cannot be trusted at any rate that was checked."
        spans = [
            f"at {_number(low)}" if low == high else f"from {_number(low)} to {_number(high)}"
            for low, high in self.ranges_bps
        ]
        untrue = [_number(rate) for rate in self.checked_bps if rate not in self.true_bps]
        more = f", but not at {joined(untrue)} Mbit/s" if untrue else ", the highest rate that was checked"
        return f"On this machine the kernel world can be trusted {joined(spans)} Mbit/s{more}."

    @property
    def conditions(self) -> str:
        """The conditions that it is valid for."""
        stolen = f", {self.stolen:.1%} of the time taken by its host" if self.stolen >= 0.001 else ""
        busy = "; alone it can do more" if self.load >= BUSY * self.machine.cores else ""
        return f"{self.machine}; load average {self.load} at the start{stolen}{busy}"

    def to_json(self) -> dict[str, Any]:
        """All values, including derived ones."""
        return {
            "statement": self.statement,
            "conditions": self.conditions,
            "ranges_bps": self.ranges_bps,
            **asdict(self),
        }

    def keep(self) -> "Trust | None":
        """Writes it into the cache, completely or not at all. Without a cache it is not kept.

        A quick check does not replace a full one of the same machine and version: the full one is kept, and
        returned.
        """
        path, before = _path(), kept()
        if path is None:
            return None
        same = before is not None and (before.machine, before.version) == (self.machine, self.version)
        if self.quick and same and before is not None and not before.quick:
            return before
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write(path.parent, path.name, json.dumps(asdict(self), indent=2).encode())
        return None


def _number(rate_bps: int) -> str:
    """A rate without its unit."""
    return mbit(rate_bps).removesuffix(" Mbit/s")


def kept() -> Trust | None:
    """The result of the last check; None if there is none, or if its file cannot be read."""
    path = _path()
    if path is None:
        return None
    try:
        message = json.loads(path.read_text(encoding="utf-8"))
        machine = message["machine"]
        return Trust(
            machine=Machine(str(machine["kernel"]), int(machine["cores"]), int(machine["hz"])),
            when=str(message["when"]),
            quick=bool(message["quick"]),
            took_s=float(message["took_s"]),
            load=float(message["load"]),
            stolen=float(message["stolen"]),
            checked_bps=tuple(int(rate) for rate in message["checked_bps"]),
            true_bps=tuple(int(rate) for rate in message["true_bps"]),
            version=str(message["version"]),
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _path() -> Path | None:
    """The file, next to the recorder of kernel decisions. None if the user has no home."""
    given = [os.environ.get("XDG_CACHE_HOME", ""), os.environ.get("HOME", "")]
    caches, home = (Path(one) if Path(one).is_absolute() else None for one in given)
    if caches is None and home is not None:
        caches = home / ".cache"
    return caches / "fullpipe" / "kernel-check.json" if caches else None
