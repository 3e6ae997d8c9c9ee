"""The measured path as a scenario, `path.toml`, in which every line says how sure it is.

What was not measured is a line, too, so that no default applies unseen. A rate that changes becomes a
delivery trace beside it: the stretches in which the link was kept busy, one after the other.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe import files
from fullpipe.probe.analysis import behaviour, kinds
from fullpipe.probe.analysis.estimate import Direction, Estimates
from fullpipe.probe.analysis.quantity import Quantity

PATH = "path.toml"
_TRACES = {"forward": "forward.deliveries", "back": "back.deliveries"}
_OPPORTUNITY_BITS = 1500 * 8
# Less jitter is that of hosts.
_LEAST_JITTER_MS = 1.0
_LEAST_REORDERED = 0.001
# A scenario's defaults: a queue holds a BDP, but at least 10 packets; on the way back 1000 packets.
_LEAST_BUFFER, _BUFFER_BACK = 15_000, 1_500_000
_LEAST_RTT_MS = 0.001
_QUEUES = {
    kinds.CODEL: "codel",
    kinds.AQM: "codel",
    kinds.PIE: "pie",
    kinds.FAIR: "fq_codel",
    kinds.DUAL: "dualpi2",
}
# Kinds that are one thing; the others may be several.
_ONE_OF_A_KIND = (kinds.CODEL, kinds.PIE, kinds.DUAL)


@dataclass(frozen=True)
class Key:
    """A key of the path, and where its value is from. Without a value it is a comment."""

    name: str
    value: Any
    source: str

    @property
    def line(self) -> str:
        """As TOML."""
        if self.value is None:
            return f"# {self.name}: {self.source}"
        return f"{self.name} = {_value(self.value)} # {self.source}"


def keys(found: Estimates, way: str) -> list[Key]:
    """The keys of one direction, but for the round-trip time."""
    one = found.forward if way == "forward" else found.back
    link = list(_link(one, way))
    rtt_s = _rtt_ms(found) / 1e3
    queue = list(_queue(one, way, rtt_s)) if any(key.value is not None for key in link) else []
    return [*link, *queue, *_faults(one)]


def _link(one: Direction, way: str) -> Iterator[Key]:
    policed, bucket = one.policer_bps, one.bucket_bytes
    if policed.value is not None:
        yield Key(
            "rate",
            f"{(one.link_bps or policed.value) / 1e6:.4f} Mbit/s",
            "measured: the fastest packets" if one.link_bps else "assumed: that of the policer",
        )
        source = f"{_said(policed, 1e-6, 'Mbit/s')}; bucket {_said(bucket, 1e-3, 'KB')}"
        depth = max(1500, round(bucket.value or 1500))
        yield Key("policer", f"{policed.value / 1e6:.4f} Mbit/s, {depth} B", source)
    elif one.rate_bps.value is not None:
        yield Key("rate", f"{one.rate_bps.value / 1e6:.4f} Mbit/s", _said(one.rate_bps, 1e-6, "Mbit/s"))
    elif one.at_least_bps is not None:
        yield Key("rate", f"{one.at_least_bps / 1e6:.4f} Mbit/s", f"assumed: {one.rate_bps.why}")
    elif one.pieces:
        yield Key("deliveries", _TRACES[way], f"not measurable as one rate: {one.rate_bps.why}")
    else:
        yield Key("rate", None, f"assumed: unlimited; {one.rate_bps.why}")


def _queue(one: Direction, way: str, rtt_s: float) -> Iterator[Key]:
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
    elif one.buffer_bytes.low is not None:
        least = max(_LEAST_BUFFER, round(one.buffer_bytes.low))
        yield Key("buffer", least, f"assumed: the least; {one.buffer_bytes.why}")
    elif way == "back":
        yield Key("buffer", _BUFFER_BACK, f"assumed: 1000 packets; {one.buffer_bytes.why}")
    else:
        rate = one.link_bps or one.rate_bps.value or one.at_least_bps or _mean(one.pieces)
        bdp = max(_LEAST_BUFFER, round(rate * rtt_s / 8))
        yield Key("buffer", bdp, f"assumed: a bandwidth-delay product; {one.buffer_bytes.why}")
    if one.discipline in _QUEUES:
        sure = "measured" if one.discipline in _ONE_OF_A_KIND else "assumed"
        yield Key("queue", _QUEUES[one.discipline], f"{sure}: {one.discipline}, with Linux's settings")
    elif one.discipline == kinds.STEP:
        yield Key("queue", "step", "measured: marks at a threshold; assumed: that of 20 packets")
    elif one.discipline == kinds.TAIL:
        yield Key("queue", "fifo", "measured: tail drop")
    else:
        yield Key("queue", "fifo", f"assumed: {one.why_no_discipline or one.buffer_bytes.why}")


def _mean(pieces: list[tuple[float, float, float]]) -> float:
    seconds = sum(end - begin for begin, end, _ in pieces)
    return sum((end - begin) * bps for begin, end, bps in pieces) / seconds if seconds > 0 else 0.0


def _faults(one: Direction) -> Iterator[Key]:
    if one.loss.value and one.loss.why not in ("", behaviour.IN_BURSTS):
        yield Key("loss", None, f"assumed: none; {100 * one.loss.value:.3g} % is unsure, {one.loss.why}")
    elif one.loss.value:
        also = f"; assumed: independent, but {one.loss.why}" if one.loss.why else ""
        yield Key("loss", round(one.loss.value, 6), _said(one.loss, 100, "%") + also)
    elif one.loss.value is None:
        yield Key("loss", None, f"assumed: none; {one.loss.why}")
    # What clumps add, up to their period, is in `after`.
    p90 = one.jitter_ms.get("p90", 0.0) - 0.9 * (one.aggregation_ms.value or 0.0)
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
    path: dict[str, Any] = {one.name: one.value for one in first if one.value is not None}
    path["rtt"] = f"{_rtt_ms(found):.3f} ms"
    path["reverse"] = {one.name: one.value for one in second if one.value is not None}
    for way, one in (
        ("back" if swapped else "forward", path),
        ("forward" if swapped else "back", path["reverse"]),
    ):
        period = (found.forward if way == "forward" else found.back).aggregation_ms
        if period.value is not None:
            one["after"] = [{"kind": "aggregate", "every": f"{period.value:.3f} ms"}]
    return path


def _rtt_ms(found: Estimates) -> float:
    return max(_LEAST_RTT_MS, found.rtt_ms.value or found.least_rtt_ms)


def usable(found: Estimates) -> bool:
    """Whether enough was measured for a path."""
    return any(one.name in ("rate", "deliveries") and one.value for one in keys(found, "forward"))


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
        *(one.line for one in keys(found, "forward")),
        *_after(path, "path.after"),
        "",
        "[path.reverse]",
        *(one.line for one in keys(found, "back")),
        *_after(path["reverse"], "path.reverse.after"),
        "",
        "[hosts]",
        f"mtu = {found.mtu} # measured: as long as packets were that passed",
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
