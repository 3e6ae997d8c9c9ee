"""How large the logs of planned runs become: an estimate, which is stated before the runs and is bounded."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import fullpipe._native as _native
from fullpipe._native import ScenarioError, WorldError
from fullpipe.errors import mistake, stated
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.logs import MOST, Logs
from fullpipe.runs.worlds.world import most_packets
from fullpipe.scenario.scenario import Alternative

if TYPE_CHECKING:
    from fullpipe.measures.run import Run

# Bytes of both forms of qlog for each segment that a sender sends, with half an ACK and its events.
_QLOG_BYTES = 1320
# What pcapng adds to a packet.
_RECORD_BYTES = 44
_ACK_BYTES = 70
# A path that carries fewer packets than this is simulated without logs to count them: 0.25 s of CPU.
_COUNTED = 2_000_000
_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def estimate(jobs: Sequence[Job]) -> float:
    """About how many bytes the logs of these jobs have, usually within a factor of two; 0 without logs.

    Where the simulator can run a scenario soon, its packets are counted, else the path is taken to be full.
    Runs that are repeated because they are not trustworthy are not in it: the last one's logs remain.
    """
    packets: dict[str, float] = {}
    total = 0.0
    for job in jobs:
        if job.logs is not None:
            digest = job.alternative.digest
            if digest not in packets:
                packets[digest] = min(_packets(job), MOST / 1.5)
            total += packets[digest] * _bytes_each(job.alternative, job.logs)
    return total


def of_runs(runs: "Iterable[Run]", logs: Logs) -> float:
    """About how many bytes the logs have when these runs are repeated with logs."""
    return sum(min(_segments(run.summary), MOST / 1.5) * _bytes_each(run.alternative, logs) for run in runs)


def check(size: float, limit: str | int | float) -> None:
    """Raises `ScenarioError` if logs of about `size` bytes are more than `limit` allows."""
    if size > in_bytes(limit):
        given = f'"{limit}"' if isinstance(limit, str) else words(limit)
        fix = f'write log_limit = "{words(size * 1.5)}" to have them, or log fewer or shorter runs'
        raise stated(
            "log_limit",
            limit,
            f"log_limit: {given} is less than the logs will have, about {words(size)} (estimated); {fix}",
            f"at least {words(size)}",
            fix,
        )


def in_bytes(limit: str | int | float) -> float:
    """A size such as "1 GB" or "500MB" in bytes; a number counts bytes."""
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKMGT]?B)\s*", limit)
        if found is not None:
            return float(found[1]) * _UNITS[found[2].upper()]
    elif not isinstance(limit, bool) and limit >= 0:
        return float(limit)
    raise mistake("log_limit", limit, "a size", 'e.g. "1 GB"')


def words(size: float) -> str:
    """A size with two digits: "260 MB"."""
    power = next(power for power in (9, 6, 3, 0) if size >= 10**power or power == 0)
    scaled = float(f"{size / 10**power:.2g}")
    return f"{scaled:g} {'B' if power == 0 else {9: 'GB', 6: 'MB', 3: 'KB'}[power]}"


def _packets(job: Job) -> float:
    """About how many data segments the run of a job sends."""
    most = most_packets(job)
    alternative = job.alternative
    if most > _COUNTED or alternative.own:
        return most
    try:
        summary, *_ = _native.simulate(alternative.spec_json, job.seed)
    except (ScenarioError, WorldError):
        return most  # E.g. programs, or controllers that only another world has.
    return _segments(json.loads(summary))


def _segments(summary: Mapping[str, Any]) -> float:
    return float(sum(flow["segments_sent"] for flow in summary["flows"]))


def _bytes_each(alternative: Alternative, logs: Logs) -> float:
    """Bytes in all files for each data segment."""
    frame = alternative.spec["mtu_bytes"] + 14
    qlog = 0 if logs.qlog is None else _QLOG_BYTES
    records = min(logs.snaplen, frame) + min(logs.snaplen, _ACK_BYTES) / 2 + 1.5 * _RECORD_BYTES
    return qlog + (0 if logs.pcap is None else records)
