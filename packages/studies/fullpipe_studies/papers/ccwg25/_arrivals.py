"""The flows that `short` replays, and their slowdowns, with those of an SRPT scheduler for comparison.

The slowdown of a flow is its completion time divided by that of the same flow alone on the path, with a
window that is always large enough. The completion time includes transfers and excludes the pauses between
them. Alone on the path, the first transfer of a flow takes 1.5 RTTmin (the handshake and the way to the
receiver), any other one RTTmin (the request and that way), plus the serialisation time of its packets.
Under SRPT, data has the same delays to the link and from there to the receiver.
"""

import hashlib
import os
from bisect import bisect
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from fullpipe.scenario import path_facts
from fullpipe.scenario.flow_lists import flow_list, models, srpt, synthetic
from fullpipe_studies.claim import Trial

# The environment variable that names a flow list; without it, the flows are synthetic.
VARIABLE = "FULLPIPE_FLOWS"
# "90% of flows smaller than 18.2kByte", and the size above which flows carry nine tenths of the bytes.
SMALL_BYTES, LARGE_BYTES = synthetic.SMALL_BYTES, synthetic.LARGE_BYTES
# Synthetic arrivals are a Poisson process. Random shifts give another one, so that seeds differ.
_MOVED_S = 1.0
# Lower limits of the figure's bins, bytes.
_BINS = [10 ** (power / 3) for power in range(6, 31)]


@cache
def source() -> str:
    """The source of the flows in words: the file of the list and its hash, or that they are synthetic."""
    file = os.environ.get(VARIABLE)
    if not file:
        return f"synthetic flows ({synthetic.__name__}); {VARIABLE} is not set"
    content = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return f"flow list {Path(file).name} ({VARIABLE}; SHA-256 {content[:16]})"


@cache
def replayed(model: str, seconds: float, scale: float) -> tuple[dict[str, Any], ...]:
    """The flows of a slice of that length, with arrivals at `scale` times the trace's rate."""
    file = os.environ.get(VARIABLE)
    if file:
        frame = flow_list.read(Path(file), VARIABLE)
        # Spreading the flows out in time gives the arrival rate that the scale requires.
        stretched = (pl.col("start_ns") / scale).cast(pl.Int64)
        frame = models.apply(frame.with_columns(stretched), model)
        moved_s = 0.01
    else:
        count = max(1, round(synthetic.FLOWS / synthetic.SECONDS * seconds * scale))
        frame = models.apply(synthetic.draw(flows=count, seconds=seconds), model)
        moved_s = min(_MOVED_S, seconds / 10)
    # A flow that starts so late that its shift could pass the end is left out.
    return tuple(models.flows(frame, before_s=seconds - moved_s, start_jitter=f"{moved_s} s"))


def outcomes(trial: Trial, rate_bps: float, rtt_s: float) -> pl.DataFrame:
    """Every completed flow: columns start_s, bytes, slowdown, srpt (its slowdown under SRPT)."""
    header_bytes = path_facts.of(trial.run.alternative).header_bytes
    mss: int = trial.spec["mtu_bytes"] - header_bytes
    scripts = [_script(flow["workload"]) for flow in trial.spec["flows"]]
    starts = [flow["start_ns"] / 1e9 for flow in trial.run.summary["flows"]]

    def service_s(size: int) -> float:
        return (size + -(-size // mss) * header_bytes) * 8 / rate_bps

    ideal = srpt.schedule(
        [
            # The first data reaches the link one handshake after the start. Each later transfer waits half an
            # RTT for the data before it and another half for the request.
            srpt.Flow(
                start + rtt_s,
                [
                    srpt.Transfer(service_s(size), pause + (rtt_s if at else 0.0))
                    for at, (size, pause) in enumerate(script)
                ],
            )
            for start, script in zip(starts, scripts, strict=True)
        ]
    )
    rows = []
    for flow, script, start, left in zip(trial.run.summary["flows"], scripts, starts, ideal, strict=True):
        if flow["completion_ms"] is None:
            continue
        alone = sum(service_s(size) for size, _ in script) + (len(script) + 0.5) * rtt_s
        paused = sum(pause for _, pause in script)
        scheduled = left[-1] + rtt_s / 2 - start - paused
        took = flow["completion_ms"] / 1e3 - paused
        rows.append((start, sum(size for size, _ in script), took / alone, scheduled / alone))
    return pl.DataFrame(rows, schema=["start_s", "bytes", "slowdown", "srpt"], orient="row")


def crowd(trial: Trial, times_s: list[float]) -> dict[str, float | None]:
    """Retransmitted share of segments, and the number of large flows at these times and on average."""
    flows = trial.run.summary["flows"]
    sent = sum(flow["segments_sent"] for flow in flows)
    sizes = [sum(size for size, _ in _script(flow["workload"])) for flow in trial.spec["flows"]]
    large = [
        (flow["start_ns"] / 1e9, flow["end_ns"] / 1e9)
        for flow, size in zip(flows, sizes, strict=True)
        if size > LARGE_BYTES
    ]
    there = sum(sum(start <= time < end for start, end in large) for time in times_s)
    lasted = sum(end - start for start, end in large)
    return {
        "retransmitted": sum(flow["retransmits"] for flow in flows) / sent if sent else None,
        "large_then": there / len(times_s) if times_s else None,
        "large": lasted / trial.factors["seconds"],
    }


def by_size(flows: pl.DataFrame) -> pl.DataFrame:
    """Mean slowdowns over flows of similar size: columns bytes (the bin's middle), slowdown, srpt, flows."""
    bins = pl.col("bytes").map_elements(lambda size: bisect(_BINS, size), return_dtype=pl.Int64)
    return (
        flows.group_by(bins.alias("bin"))
        .agg(
            pl.col("bytes").log().mean().exp(),
            pl.col("slowdown").mean(),
            pl.col("srpt").mean(),
            pl.len().alias("flows"),
        )
        .sort("bin")
        .drop("bin")
    )


def _script(workload: dict[str, Any]) -> list[tuple[int, float]]:
    """Size and pause before of each transfer, bytes and seconds."""
    if "transfers" in workload:
        return [(one["size_bytes"], one["pause_ns"] / 1e9) for one in workload["transfers"]]
    return [(workload["size_bytes"], 0.0)]
