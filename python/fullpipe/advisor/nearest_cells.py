"""How far the simulator can be trusted near a path: the nearest cells of the table in docs/fidelity.md.

`nearest_cells.json` has that table's cells with their paths in numbers. It is made from the page and the grid
that the page was made with: `python -m fullpipe.advisor.nearest_cells PAGE GRID`.
"""

import json
import math
import re
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from fullpipe.advisor.question import Numbers
from fullpipe.text import joined

_FILE = Path(__file__).with_name("nearest_cells.json")
# Cells farther away than this say little about a path: as far as ten times the rate and the round-trip time.
FAR = 1.5
# The largest buffer of a host that Linux knows.
_UNLIMITED = 2**31 - 1
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
        for one in json.loads(_FILE.read_text(encoding="utf-8"))
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


_ROW = re.compile(r"^\| (?P<name>[^|]+) \|(?P<rest>.*)\|$")


def read(page: str, grid: str) -> list[Cell]:
    """The cells of a page made by `fullpipe agree --write-table`, with the paths of its grid's cells."""
    from fullpipe.agreement.grid import document
    from fullpipe.report.grid.write import MARKERS

    found = []
    rows = {}
    # Advice is simulated with ideal hosts, whose table this is; the page has another of Linux hosts.
    ideal = page.partition(MARKERS.begin)[2].partition(MARKERS.end)[0]
    for line in ideal.splitlines():
        if (match := _ROW.match(line)) and line.count("|") == 14:
            columns = [part.strip() for part in match["rest"].split("|")]
            rows[match["name"].strip()] = columns
    for cell in document.load(grid).cells:
        spec = cell.alternative.spec
        row = rows.get(cell.name)
        link = next((one for one in spec["forward"] if one["kind"] == "link"), None)
        queue = (link or {}).get("queue") or {}
        plain = {"link", "delay", "loss"} >= {one["kind"] for one in spec["forward"]}
        sized = any(flow["workload"]["kind"] != "bulk" for flow in spec["flows"])
        # The rate stays, and buffers of hosts do not limit: so are the paths that are asked about.
        steady = link is not None and set(link["rate_bps"]) == {"initial"}
        limited = spec["hosts"]["tcp_rmem_bytes"][-1] < _UNLIMITED
        # Flows of several round-trip times have no path whose distance could be told.
        several = len({flow["extra_forward_ns"] + flow["extra_reverse_ns"] for flow in spec["flows"]}) > 1
        other = not plain or not steady or limited or sized or several
        if row is None or link is None or other or "bytes" not in queue:
            continue
        delays = [
            one["delay_ns"]["initial"] for one in spec["forward"] + spec["reverse"] if one["kind"] == "delay"
        ]
        lost = [one["probability"]["initial"] / 2**32 for one in spec["forward"] if one["kind"] == "loss"]
        found.append(
            Cell(
                name=cell.name,
                controllers=tuple(sorted({flow["controller"] for flow in spec["flows"]})),
                rate_bps=float(link["rate_bps"]["initial"]),
                rtt_ms=sum(delays) / 1e6,
                buffer_bytes=float(queue["bytes"]),
                loss=lost[0] if lost else 0.0,
                goodput_apart=float(row[2].rstrip("%")) / 100,
                rtt_apart=float(row[5].rstrip("%")) / 100,
                verdict=row[11],
            )
        )
    return found


def main(page: str, grid: str) -> None:
    """Writes `nearest_cells.json`."""
    from fullpipe import files

    found = read(Path(page).read_text(encoding="utf-8"), grid)
    text = json.dumps([asdict(one) for one in found], indent=1) + "\n"
    files.write_named(_FILE, text.encode())
    print(f"{len(found)} cells")


if __name__ == "__main__":
    main(*sys.argv[1:3])
