"""How far the simulator can be trusted near a path: the nearest cells on which it was compared with Linux.

`nearest_cells.json` has the cells of `results/agreement.jsonl` that have a path in numbers. `make docs` makes
it, because an installed package has no `results`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fullpipe.advisor.question import Numbers
from fullpipe.agreement.grid.lines import Row, row
from fullpipe.text import joined

FILE = Path(__file__).with_name("nearest_cells.json")
# Cells farther away than this say little about a path: as far as ten times the rate and the round-trip time.
FAR = 1.5
# A loss probability of zero, for distances.
_NO_LOSS = 1e-5


@dataclass(frozen=True)
class Cell:
    """A path on which simulator and kernel were compared."""

    name: str
    controllers: tuple[str, ...]
    rate_bps: float
    rtt_ms: float
    buffer_bytes: float
    loss: float
    # The simulator's value over the kernel's, less one.
    goodput_apart: float
    rtt_apart: float
    verdict: str  # "agrees", "close" or "differs".

    def distance(self, path: Numbers) -> float:
        """How far a path is away, in powers of ten: rate, round-trip time, buffer in BDPs and loss."""
        own_bdp = self.buffer_bytes / (self.rate_bps * self.rtt_ms / 8e3)
        pairs = (
            (self.rate_bps, path.rate_bps),
            (self.rtt_ms, path.rtt_ms),
            (own_bdp, path.buffer_bytes / path.bdp_bytes),
            (max(self.loss, _NO_LOSS), max(path.loss, _NO_LOSS)),
        )
        return math.hypot(*(math.log10(own / other) for own, other in pairs))


@cache
def cells() -> tuple[Cell, ...]:
    """The cells of the table."""
    return tuple(
        Cell(**{**one, "controllers": tuple(one["controllers"])})
        for one in json.loads(FILE.read_text(encoding="utf-8"))
    )


def nearest(path: Numbers, controllers: tuple[str, ...], count: int = 3) -> list[tuple[float, Cell]]:
    """The nearest cells in which one of the controllers runs alone, and their distances."""
    wanted = {one.partition(":")[0] for one in controllers}
    near = [(one.distance(path), one) for one in cells() if set(one.controllers) <= wanted]
    return sorted(near, key=lambda pair: pair[0])[:count]


def sentence(path: Numbers, controllers: tuple[str, ...], beyond: tuple[str, ...] = ()) -> str:
    """What the nearest cells say; `beyond` is what the path has, e.g. "a policer", and the cells have not."""
    near = nearest(path, controllers)
    if not near:
        return "These controllers were not compared with a kernel: the simulator stands alone."
    compared = {name for one in cells() for name in one.controllers}
    alone = [one for one in controllers if one.partition(":")[0] not in compared]
    rest = ""
    if alone:
        rest += f" {joined(alone)} {'was' if len(alone) == 1 else 'were'} not compared with a kernel."
    if beyond:
        rest += f" None of these paths has {joined(list(beyond))}."
    close = [one for distance, one in near if distance <= FAR]
    if not close:
        nearest_name = near[0][1].name
        return f"No path like this one was compared with the kernel; the nearest is {nearest_name}.{rest}"
    goodput = max(abs(one.goodput_apart) for one in close)
    rtt = max(abs(one.rtt_apart) for one in close)
    named = "; ".join(one.name for one in close)
    return (
        f"On the nearest paths that were compared with Linux, goodput is at most {100 * goodput:.1f} % apart "
        f"and mean RTT at most {100 * rtt:.1f} % ({named}).{rest}"
    )


def of(lines: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """The cells of these lines of evidence that have a path in numbers, in the grid's order."""
    # Advice is simulated with ideal hosts.
    key = {"grid": "agreement", "hosts": "ideal", "worlds": ["sim", "kernel"]}
    mine = (one for one in lines if {name: one["key"][name] for name in key} == key and one.get("path"))
    return [_cell(line, row(line)) for line in sorted(mine, key=lambda line: line["number"])]


def _cell(line: Mapping[str, Any], shown: Row) -> Cell:
    path = {name: float(line["path"][name]) for name in ("rate_bps", "rtt_ms", "buffer_bytes", "loss")}
    return Cell(
        name=shown.name,
        controllers=tuple(line["path"]["controllers"]),
        goodput_apart=shown.values["goodput_bps"].apart or 0.0,
        rtt_apart=shown.values["rtt_mean_ms"].apart or 0.0,
        verdict=shown.verdict,
        **path,
    )


def text(found: Sequence[Cell]) -> str:
    """The text of `nearest_cells.json`."""
    return json.dumps([asdict(one) for one in found], indent=1) + "\n"
