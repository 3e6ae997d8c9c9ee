"""A grid's results as evidence: a line for each cell, and one for the grid as a whole.

The lines of a grid have the same `grid`, `hosts` and `worlds` in their keys; that of the whole has no `cell`.
Lines that come from tables of earlier times have only what these said: `imported` has the verdict, and a
measure its `difference`.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe import evidence
from fullpipe.agreement.grid.compare import COMPARES, QUANTITIES, Compared, Measured, kernels, word
from fullpipe.agreement.grid.document import Cell
from fullpipe.agreement.grid.run import Found, Plan
from fullpipe.agreement.grid.summary import JUDGED, Target, verdict
from fullpipe.measures.measures import Quantity
from fullpipe.measures.statistics import Estimate

# The largest buffer of a host that Linux knows.
_UNLIMITED = 2**31 - 1


@dataclass(frozen=True)
class Value:
    """A measure of a cell, as a table shows it. Old tables do not have every value."""

    quantity: Quantity
    ours: Estimate | None
    theirs: Estimate | None
    message: str  # The difference in words.
    apart: float | None  # As of `Difference`.


@dataclass(frozen=True)
class Row:
    """A cell, as a table shows it."""

    name: str
    values: dict[str, Value]
    verdict: str

    @property
    def judged(self) -> bool:
        """Whether both worlds had results."""
        return self.verdict in JUDGED


@dataclass(frozen=True)
class Whole:
    """A grid, as a page shows it: the line of the whole, and those of its cells in order."""

    line: Mapping[str, Any]
    cells: list[Mapping[str, Any]]

    @property
    def rows(self) -> list[Row]:
        """The cells, as a table shows them."""
        return [row(line) for line in self.cells]

    @property
    def targets(self) -> list[Target]:
        """The targets, as they were measured."""
        return [Target(**one) for one in self.line["targets"]]

    @property
    def verdict(self) -> str:
        """A sentence or two."""
        words = [row.verdict for row in self.rows]
        return verdict(words, self.targets, self.line["failed"], quick=self.line["quick"])


def of(found: Found) -> list[evidence.Line]:
    """The lines of a grid that was just run."""
    plan = found.plan
    fingerprint = {world.name: world.build() for world in plan.pair}
    made = evidence.made(plan.command, fingerprint, kernels(found.cells))
    whole = {
        "key": _key(plan, None),
        "made": made,
        "quick": plan.grid.quick,
        "own_limits": bool(plan.grid.limits),
        "runs": [plan.count(world) for world in plan.pair],
        "untrusted": sum(len(cell.doubted) for cell in found.cells),
        "failed": len(found.failed),
        "targets": [vars(one) | {"measured": _finite(one.measured)} for one in found.targets],
    }
    return [whole, *(_cell(cell, number, plan, made) for number, cell in enumerate(found.cells))]


_FILE = "agreement.jsonl"


def check() -> None:
    """Raises `ScenarioError` if results cannot be recorded; called before the runs."""
    evidence.read(evidence.folder() / _FILE)


def record(found: Found, *, larger: bool = False) -> Path:
    """Puts the lines into `results/agreement.jsonl`, in place of all earlier ones of this grid.

    `larger`: also in place of those of a larger run.
    """
    path = evidence.folder() / _FILE
    lines = of(found)
    evidence.replace(path, lines, lambda line: _same_grid(line, lines[0]), None if larger else _size)
    return path


def _size(line: Mapping[str, Any]) -> tuple[int, ...]:
    """How much was run: the line of the whole says it."""
    return () if line["key"]["cell"] is not None else (not line["quick"], *line["runs"])


def wholes(lines: Sequence[Mapping[str, Any]]) -> list[Whole]:
    """The grids of these lines, with their cells in the grid's order."""
    found = []
    for whole in (line for line in lines if line["key"]["cell"] is None):
        cells = [line for line in lines if line is not whole and _same_grid(line, whole)]
        found.append(Whole(whole, sorted(cells, key=lambda line: line["number"])))
    return found


def row(line: Mapping[str, Any]) -> Row:
    """The row of a cell's line."""
    values, measured = {}, {}
    for name, one in line["measures"].items():
        ours, theirs = (None if of is None else Estimate(**_FULL | of) for of in (one["ours"], one["theirs"]))
        if "difference" in one:
            values[name] = Value(
                QUANTITIES[name], ours, theirs, _message(name, one["difference"]), one["difference"]
            )
        elif ours is not None and theirs is not None:
            difference = COMPARES[name](ours.mean, theirs.mean)
            values[name] = Value(QUANTITIES[name], ours, theirs, difference.message, difference.apart)
            measured[name] = Measured(
                name, QUANTITIES[name], ours, theirs, difference, one.get("overlap", False)
            )
    imported = line.get("imported")
    message = (
        word(line["runs"], line["untrusted"], line["one_sided"], measured)
        if imported is None
        else str(imported["verdict"])
    )
    return Row(line["key"]["cell"], values, message)


# What a line from an old table does not say of a mean.
_FULL: dict[str, Any] = {"low": None, "high": None, "least": None, "most": None, "count": 0}


def _message(name: str, difference: float | None) -> str:
    """A difference in the words of today; without a number, it is of few retransmissions."""
    if difference is None:
        return COMPARES[name](0, 0).message
    # Retransmissions count above a limit, far below this.
    base = {"retransmits": 1e6, "share": 0.0}.get(name, 1.0)
    ours = {"retransmits": difference * base, "share": difference}.get(name, base + difference)
    return COMPARES[name](ours, base).message


def _key(plan: Plan, cell: str | None) -> dict[str, Any]:
    hosts = ",".join(plan.models) or None
    return {"grid": plan.name, "cell": cell, "hosts": hosts, "worlds": list(plan.worlds)}


def _same_grid(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one["key"][name] == other["key"][name] for name in ("grid", "hosts", "worlds"))


def _cell(cell: Compared, number: int, plan: Plan, made: Mapping[str, Any]) -> evidence.Line:
    specs = sorted(cell.cell.run_in(world).spec_json for world in plan.pair)
    return {
        "key": _key(plan, cell.cell.name),
        "made": made,
        "scenario": hashlib.sha256("\n".join(specs).encode()).hexdigest(),
        "number": number,
        "path": path(cell.cell),
        "runs": [len(cell.ours), len(cell.theirs)],
        "untrusted": len(cell.doubted),
        "one_sided": list(cell.one_sided),
        "measures": {
            name: {"ours": _estimate(one.ours), "theirs": _estimate(one.theirs), "overlap": one.overlaps}
            for name, one in cell.measured.items()
        },
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _estimate(of: Estimate) -> dict[str, Any]:
    return {name: getattr(of, name) for name in ("mean", *_FULL)}


def path(cell: Cell) -> dict[str, Any] | None:
    """The path of a cell in numbers; None if these do not say all of it.

    They do if it has one rate, one round-trip time, a queue of so many bytes and random loss, and bulk flows
    that no host's memory limits.
    """
    spec = cell.alternative.spec
    link = next((one for one in spec["forward"] if one["kind"] == "link"), None)
    queue = (link or {}).get("queue") or {}
    plain = {"link", "delay", "loss"} >= {one["kind"] for one in spec["forward"]}
    sized = any(flow["workload"]["kind"] != "bulk" for flow in spec["flows"])
    steady = link is not None and set(link["rate_bps"]) == {"initial"}
    limited = spec["hosts"]["tcp_rmem_bytes"][-1] < _UNLIMITED
    several = len({flow["extra_forward_ns"] + flow["extra_reverse_ns"] for flow in spec["flows"]}) > 1
    if link is None or not plain or not steady or limited or sized or several or "bytes" not in queue:
        return None
    delays = [
        one["delay_ns"]["initial"] for one in spec["forward"] + spec["reverse"] if one["kind"] == "delay"
    ]
    lost = [one["probability"]["initial"] / 2**32 for one in spec["forward"] if one["kind"] == "loss"]
    return {
        "rate_bps": link["rate_bps"]["initial"],
        "rtt_ms": sum(delays) / 1e6,
        "buffer_bytes": queue["bytes"],
        "loss": lost[0] if lost else 0,
        "controllers": sorted({flow["controller"] for flow in spec["flows"]}),
    }
