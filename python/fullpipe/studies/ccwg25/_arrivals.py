"""The flows that `short` replays, and what became of them: slowdowns, those of SRPT beside.

Slowdown: a flow's completion time over that of the same flow alone on the path with a window that is never
too small. The completion time counts transfers and not the pauses between them. Alone, a flow's first
transfer takes a handshake and the way to the receiver, 1.5 RTTmin, any other a request and that way, one
RTTmin, and besides its packets' time on the link. SRPT's transfers come to the link, and from it to the
receiver, with the same delays.
"""

import hashlib
import os
from bisect import bisect
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from fullpipe.arrivals import flow_list, models, srpt, synthetic
from fullpipe.studies import take
from fullpipe.studies.claim import Trial

# Names the flow list of a capture (`fullpipe trace flows`); without it, flows are made up.
VARIABLE = "FULLPIPE_FLOWS"
# "90% of flows smaller than 18.2kByte", and where nine tenths of the bytes begin.
SMALL_BYTES, LARGE_BYTES = synthetic.SMALL_BYTES, synthetic.LARGE_BYTES
# Made-up arrivals are a Poisson process; moved at random they are another, so that seeds differ.
_MOVED_S = 1.0
# Sizes at which the figure's bins begin.
_BINS = [10 ** (power / 3) for power in range(6, 31)]


@cache
def source() -> str:
    """Where the flows come from, in words: the list's file and what is in it, or that they are made up."""
    file = os.environ.get(VARIABLE)
    if not file:
        return f"flows made up ({synthetic.__name__}), {VARIABLE} is not set"
    content = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return f"flow list {Path(file).name} ({VARIABLE}; SHA-256 {content[:16]})"


@cache
def replayed(model: str, seconds: float, scale: float) -> tuple[dict[str, Any], ...]:
    """The flows of a slice of that length, with arrivals at `scale` times the trace's rate."""
    file = os.environ.get(VARIABLE)
    if file:
        frame = flow_list.read(Path(file))
        # As many flows a second as the scale asks for, by spreading them out in time.
        stretched = (pl.col("start_ns") / scale).cast(pl.Int64)
        frame = models.apply(frame.with_columns(stretched), model)
        moved = "10 ms"
    else:
        count = max(1, round(synthetic.FLOWS / synthetic.SECONDS * seconds * scale))
        frame = models.apply(synthetic.draw(flows=count, seconds=seconds), model)
        moved = f"{min(_MOVED_S, seconds / 10)} s"
    return tuple(models.flows(frame, before_s=seconds, start_jitter=moved))


def outcomes(trial: Trial, rate_bps: float, rtt_s: float) -> pl.DataFrame:
    """Every flow that ended: columns start_s, bytes, slowdown, srpt (its slowdown under SRPT)."""
    mss: int = trial.spec["mtu_bytes"] - take.HEADER_BYTES
    scripts = [_script(flow["workload"]) for flow in trial.spec["flows"]]
    starts = [flow["start_ns"] / 1e9 for flow in trial.run.summary["flows"]]

    def service_s(size: int) -> float:
        return (size + -(-size // mss) * take.HEADER_BYTES) * 8 / rate_bps

    ideal = srpt.schedule(
        [
            # Data comes to the link a handshake after the start; later, what was sent before and then the
            # request for more have half a round trip each to go.
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
    """What crowds the link: what is sent again, how many large flows are there at these times and at all."""
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
