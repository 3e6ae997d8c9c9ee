"""Traces: what the kernel's own congestion control was told and decided, call by call.

A trace is recorded in the kernel world and replayed against the controllers here. It is one Parquet file, a
row a call, whose columns have the kernel's names.
"""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullpipe import _native
from fullpipe.errors import mistake
from fullpipe.scenario import Alternative, Amount, Scenario, from_document, path_document
from fullpipe.worlds import kernel
from fullpipe.worlds.job import Job, Progress, ignore_progress

if TYPE_CHECKING:
    import polars as pl

# What Linux calls the algorithms whose calls can be recorded.
ALGORITHMS = ("bbr", "cubic")


def read_trace(path: str | Path) -> "pl.DataFrame":
    """A trace as a table, a row a call, one flow after the other. docs/trace-format.md has the columns."""
    import polars as pl

    return pl.read_parquet(path)


@dataclass(frozen=True)
class Recording:
    """A trace and what is to be said about it."""

    summary: dict[str, Any]
    trace: bytes

    def write(self, path: Path) -> None:
        """Writes the trace, completely or not at all."""
        half = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            half.write_bytes(self.trace)
            half.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                half.unlink()
            raise


def plain_scenario(
    algorithm: str,
    *,
    rate: Amount | None,
    rtt: Amount | None,
    buffer: Amount | None,
    loss: Amount | None,
    duration: Amount | None,
    flows: int | None,
) -> Scenario:
    """Flows of one algorithm on a plain path."""
    if rtt is None:
        raise mistake("rtt", "none", "a round-trip time", "give --rtt and --rate, or a scenario")
    document: dict[str, Any] = {
        "name": f"record-{algorithm}",
        "duration": duration if duration is not None else "10 s",
        **path_document(rate=rate, rtt=rtt, buffer=buffer, loss=loss),
        "flows": [{"controller": algorithm, "count": 1 if flows is None else flows}],
    }
    return from_document(document)


def record(
    scenario: Scenario, algorithm: str, *, seed: int | None = None, progress: Progress = ignore_progress
) -> Recording:
    """Runs a scenario over the kernel's TCP and records the calls of the flows that use `algorithm`.

    Needs root, clang and libbpf. Raises `WorldError` where it cannot be done, and where calls were lost.
    """
    job = Job(_alternative(scenario, algorithm), scenario.seed if seed is None else seed)
    summary, trace = kernel.record(job, known_algorithm(algorithm), progress)
    return Recording(json.loads(summary), trace)


def known_algorithm(given: str) -> str:
    """What Linux calls it, if it can be recorded."""
    for one in json.loads(_native.controllers()):
        if given in (one["name"], one["kernel"]) and one["kernel"] in ALGORITHMS:
            return str(one["kernel"])
    raise mistake("cc", given, "bbr or cubic", "those two can be recorded")


def _alternative(scenario: Scenario, algorithm: str) -> Alternative:
    """The one alternative with flows of the algorithm, whatever name the scenario has for it."""
    names = {
        one["name"] for one in json.loads(_native.controllers()) if algorithm in (one["name"], one["kernel"])
    }
    using = [
        alternative
        for alternative in scenario.alternatives
        if any(flow["controller"] in names for flow in alternative.spec["flows"])
    ]
    if len(using) == 1:
        return using[0]
    labels = ", ".join(alternative.label for alternative in using) or "none"
    raise mistake(
        "scenario",
        scenario.name,
        f"one alternative with flows of {algorithm}, it has: {labels}",
        "change `compare` or the flows' controllers",
    )


def replay(path: str | Path) -> dict[str, Any]:
    """Replays every flow of a trace against the controller here; says where the two part, if they do.

    Raises `TraceError` for what is no trace.
    """
    found: dict[str, Any] = json.loads(_native.replay(str(path)))
    return found
