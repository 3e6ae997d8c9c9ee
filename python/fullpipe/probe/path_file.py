"""The measured path as a scenario, `path.toml`, in which every line says how sure it is.

A rate that changes becomes a delivery trace beside it: the stretches in which the link was kept busy, one
after the other.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe import files
from fullpipe.probe.analysis import kinds
from fullpipe.probe.analysis.estimate import Direction, Estimates
from fullpipe.probe.analysis.quantity import Quantity

PATH = "path.toml"
_TRACES = {"forward": "forward.deliveries", "back": "back.deliveries"}
_OPPORTUNITY_BITS = 1500 * 8
# Less jitter is that of hosts.
_LEAST_JITTER_MS = 1.0
_LEAST_REORDERED = 0.001
_QUEUES = {
    kinds.CODEL: "codel",
    kinds.AQM: "codel",
    kinds.PIE: "pie",
    kinds.FAIR: "fq_codel",
    kinds.DUAL: "dualpi2",
}


@dataclass(frozen=True)
class Key:
    """A key of the path, and where its value is from."""

    name: str
    value: Any
    source: str


def keys(found: Estimates, way: str) -> list[Key]:
    """The keys of one direction, but for the round-trip time."""
    one = found.forward if way == "forward" else found.back
    return [*_link(one, way), *_queue(one), *_faults(one)]


def _link(one: Direction, way: str) -> Iterator[Key]:
    policed, bucket = one.policer_bps, one.bucket_bytes
    if policed.value is not None:
        yield Key("rate", f"{(one.link_bps or policed.value) / 1e6:.4f} Mbit/s", "the fastest packets")
        source = f"{_said(policed, 1e-6, 'Mbit/s')}; bucket {_said(bucket, 1e-3, 'KB')}"
        depth = max(1500, round(bucket.value or 1500))
        yield Key("policer", f"{policed.value / 1e6:.4f} Mbit/s, {depth} B", source)
    elif one.rate_bps.value is not None:
        yield Key("rate", f"{one.rate_bps.value / 1e6:.4f} Mbit/s", _said(one.rate_bps, 1e-6, "Mbit/s"))
    elif one.at_least_bps is not None and way == "forward":
        yield Key("rate", f"{one.at_least_bps / 1e6:.4f} Mbit/s", f"assumed: {one.rate_bps.why}")
    elif one.at_least_bps is None and one.pieces:
        yield Key("deliveries", _TRACES[way], f"not measurable as one rate: {one.rate_bps.why}")


def _queue(one: Direction) -> Iterator[Key]:
    if one.discipline == kinds.RED and one.ceiling_bytes is not None:
        # Linux's default threshold is a quarter of the limit.
        top = max(3000, round(one.ceiling_bytes))
        yield Key("buffer", 4 * top, "assumed: four times RED's threshold")
        yield Key("queue", f"red:max={top}", "measured: the queue at which everything is dropped")
        return
    if one.buffer_bytes.value is not None:
        yield Key("buffer", round(one.buffer_bytes.value), _said(one.buffer_bytes, 1e-3, "KB"))
    elif one.ceiling_bytes is not None and one.discipline in (*_QUEUES, kinds.STEP):
        yield Key("buffer", max(15000, round(2 * one.ceiling_bytes)), "assumed: twice the highest queue seen")
    if one.discipline in _QUEUES:
        why = (
            "assumed: an AQM that drops early"
            if one.discipline == kinds.AQM
            else f"measured: {one.discipline}, with Linux's settings"
        )
        yield Key("queue", _QUEUES[one.discipline], why)
    elif one.discipline == kinds.STEP:
        yield Key("queue", "step", "measured: marks at a threshold; assumed: that of 20 packets")


def _faults(one: Direction) -> Iterator[Key]:
    if one.loss.value and not one.loss.why:
        yield Key("loss", round(one.loss.value, 6), _said(one.loss, 100, "%"))
    p90 = one.jitter_ms.get("p90", 0.0)
    if p90 > _LEAST_JITTER_MS:
        # The emulator's jitter is uniform from zero.
        yield Key("jitter", f"{p90 / 0.9:.3f} ms", "measured: its 90th percentile; assumed: uniform")
        if (one.reordered.value or 0.0) > _LEAST_REORDERED:
            yield Key("jitter_reorders", True, "measured: packets overtake each other")


def _said(one: Quantity, factor: float, unit: str) -> str:
    if one.value is None:
        return f"not measurable: {one.why}"
    scaled = one.scaled(factor)
    low, high = scaled.low, scaled.high
    if low is None or high is None:
        return f"measured: {scaled.value:.4g} {unit}, {one.why}"
    return f"measured: {low:.4g} to {high:.4g} {unit}"


def document(found: Estimates, *, swapped: bool = False) -> dict[str, Any]:
    """The path as the table `path` of a scenario; `swapped`: seen from the other end."""
    forward, back = keys(found, "forward"), keys(found, "back")
    first, second = (back, forward) if swapped else (forward, back)
    path: dict[str, Any] = {one.name: one.value for one in first}
    path["rtt"] = f"{found.rtt_ms.value or found.least_rtt_ms:.3f} ms"
    path["reverse"] = {one.name: one.value for one in second}
    for way, one in (
        ("back" if swapped else "forward", path),
        ("forward" if swapped else "back", path["reverse"]),
    ):
        period = (found.forward if way == "forward" else found.back).aggregation_ms
        if period.value is not None:
            one["after"] = [{"kind": "aggregate", "every": f"{period.value:.3f} ms"}]
    return path


def usable(found: Estimates) -> bool:
    """Whether enough was measured for a path."""
    return any(one.name in ("rate", "deliveries") for one in keys(found, "forward"))


def toml(found: Estimates, host: str) -> str:
    """The text of `path.toml`."""
    rtt = (
        _said(found.rtt_ms, 1, "ms")
        if found.rtt_ms.value is not None
        else f"assumed: the least that was seen; {found.rtt_ms.why}"
    )
    path = document(found)
    lines = [
        f"# The path to {host}, as `fullpipe probe` measured it. Intervals are to cover the truth in 95 %.",
        'name = "measured"',
        'duration = "20 s"',
        'compare = ["bbr1", "cubic"]',
        "",
        "[path]",
        f"rtt = {_value(path['rtt'])} # {rtt}",
        *(f"{one.name} = {_value(one.value)} # {one.source}" for one in keys(found, "forward")),
        *_after(path, "path.after"),
        "",
        "[path.reverse]",
        *(f"{one.name} = {_value(one.value)} # {one.source}" for one in keys(found, "back")),
        *_after(path["reverse"], "path.reverse.after"),
    ]
    return "\n".join(lines) + "\n"


def _after(path: dict[str, Any], name: str) -> list[str]:
    return [
        line
        for one in path.get("after", ())
        for line in (f"[[{name}]] # measured", *(f"{key} = {_value(value)}" for key, value in one.items()))
    ]


def _value(value: Any) -> str:
    return json.dumps(value)


def deliveries(pieces: list[tuple[float, float, float]]) -> str:
    """The stretches as a Mahimahi trace: the millisecond of each packet of 1500 bytes."""
    lines, begun, owed = [], 0.0, 0.0
    for begin, end, rate in pieces:
        gap = _OPPORTUNITY_BITS / rate
        at = gap * (1 - owed)
        while at <= end - begin:
            lines.append(round((begun + at) * 1e3))
            at += gap
        owed = 1 - (at - (end - begin)) / gap
        begun += end - begin
    return "".join(f"{line}\n" for line in lines)


def write(found: Estimates, host: str, folder: Path) -> Path | None:
    """Writes `path.toml` and its traces; None if too little was measured."""
    if not usable(found):
        return None
    for way, name in _TRACES.items():
        if any(one.name == "deliveries" for one in keys(found, way)):
            text = deliveries((found.forward if way == "forward" else found.back).pieces)
            files.write(folder, name, text.encode())
    return files.write(folder, PATH, toml(found, host).encode())
