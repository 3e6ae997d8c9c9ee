"""Recordings: the inputs and decisions of the kernel's own congestion control, call by call.

The kernel world makes them, and Fullpipe's controllers replay them. A recording is one Parquet file with one
row for each call; its columns have the kernel's names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fullpipe._native as _native
from fullpipe import files
from fullpipe.errors import mistake, unusable
from fullpipe.runs.worlds import kernel
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe.scenario import parquet
from fullpipe.scenario.path import PARAMETERS
from fullpipe.scenario.path_fields import Amount
from fullpipe.scenario.scenario import Alternative, Scenario, from_document

if TYPE_CHECKING:
    import polars as pl

# The names in Linux of the algorithms whose calls can be recorded.
ALGORITHMS = ("bbr", "cubic")


def read_recording(path: str | Path) -> "pl.DataFrame":
    """A recording as a table with one row for each call, one flow after the other.

    docs/reference/recording-format.md lists the columns. Raises `RecordingError` for a file that cannot be
    read.
    """
    return parquet.read(path)


@dataclass(frozen=True)
class Recording:
    """A recording: its file, and a summary."""

    summary: dict[str, Any]
    file: bytes

    def write(self, path: Path) -> None:
        """Writes the file, completely or not at all."""
        files.write_named(path, self.file)


def plain_scenario(
    algorithm: str,
    path: Mapping[str, Any],
    *,
    duration: Amount | None,
    flows: int | None,
) -> Scenario:
    """Flows of one algorithm on a plain path."""
    if "rtt" not in path:
        raise unusable("--rtt", "is missing", "add it, e.g. --rtt '40 ms', or name a scenario")
    if not {"rate", "deliveries"} & path.keys():
        raise unusable("--rate", "is missing", "add it, e.g. --rate '10 Mbit/s', or name a scenario")
    document: dict[str, Any] = {
        "name": f"record-{algorithm}",
        "duration": duration if duration is not None else "10 s",
        "path": dict(path),
        "flows": [{"controller": algorithm, "count": 1 if flows is None else flows}],
    }
    parameters = {
        **PARAMETERS,
        "duration": "duration",
        "flows[0].count": "flows",
        "flows[0].controller": "algorithm",
    }
    return from_document(document, parameters=parameters)


def record(
    scenario: Scenario, algorithm: str, *, seed: int | None = None, progress: Progress = ignore_progress
) -> Recording:
    """Runs a scenario over the kernel's TCP and records the calls of the flows that use `algorithm`.

    Needs root, clang and libbpf. Raises `WorldError` if that is impossible, or if calls were lost.
    """
    job = Job(_alternative(scenario, algorithm), scenario.seed if seed is None else seed)
    summary, file = kernel.record(job, known_algorithm(algorithm), progress)
    return Recording(json.loads(summary), file)


def known_algorithm(given: str) -> str:
    """Its name in Linux, if it can be recorded."""
    for one in json.loads(_native.controllers()):
        if given in (one["name"], one["kernel"]) and one["kernel"] in ALGORITHMS:
            return str(one["kernel"])
    raise mistake(
        "algorithm",
        given,
        "bbr (or bbr1) or cubic",
        "Linux's own BBR version 1 and CUBIC can be recorded, BBRv3 cannot",
    )


def _alternative(scenario: Scenario, algorithm: str) -> Alternative:
    """The only alternative with flows of the algorithm, by either name."""
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
    """Replays every flow of a recording with Fullpipe's controller; reports the first difference.

    Raises `RecordingError` for a file that is no recording.
    """
    found: dict[str, Any] = json.loads(_native.replay(str(path)))
    return found
