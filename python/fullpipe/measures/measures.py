"""The measures that Fullpipe compares: one number for each run, from its summary; seeds are averaged later.

How the flows of a run are combined into one number. Where flows of both directions cross the path, all of
these are of the forward ones, because the others share nothing but the queues of their ACKs with them:

* Goodput: all bytes over the time from the first flow's start to the last flow's end. The native half
  computes it (`total_goodput_bps`). Goodputs of flows with unlike lifetimes are never added.
* Retransmissions and segments are counts and add up; loss is one over the other. Media sends nothing again:
  its lost packets count instead.
* Completion times are those of the transfers of all flows, with equal weights.
* Round-trip times and the times for which playbacks stalled are averaged over the flows, with equal weights
  however long a flow ran. They show what a flow sees on average, not the average over time.
* Written bytes add up as delivered ones do, over the time from the first flow's start to the last write or,
  of flows without end, to their end. iperf3 calls that the sender's rate, and goodput the receiver's.
* The queue is the one with the longest mean delay, which is that of the bottleneck.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fullpipe.measures.statistics import Estimate, estimate

Summary: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Quantity:
    """What a number means, and how to show it."""

    title: str
    unit: str
    scale: float  # Shown value = value / scale.
    digits: int

    def show(self, value: float | None) -> str:
        """The value without its unit, with the quantity's digits; a dash where there is none."""
        return "–" if value is None else f"{value / self.scale:,.{self.digits}f}"


@dataclass(frozen=True)
class Measure(Quantity):
    """A quantity computed from a run's summary."""

    name: str
    take: Callable[[Summary], float | None]


def both_ways(summary: Summary) -> bool:
    """Whether flows of both directions cross the path."""
    return len({flow.get("reverse", False) for flow in summary["flows"]}) > 1


def measured(summary: Summary) -> list[Any]:
    """The flows that the measures of a run are of: the forward ones, if there are any."""
    flows: list[Any] = summary["flows"]
    return [flow for flow in flows if not flow.get("reverse")] if both_ways(summary) else flows


def goodput_bps(summary: Summary) -> float:
    """Application bits that these flows delivered, per second from the first start to the last end."""
    return float(summary["total_goodput_bps"])


def retransmits(summary: Summary) -> float | None:
    """Retransmitted segments; None where nobody can tell, as of a program over QUIC."""
    counts = [flow["retransmits"] for flow in measured(summary)]
    return None if None in counts else float(sum(counts))


def loss_ratio(summary: Summary) -> float | None:
    """Retransmissions over segments, of all flows together; None when nothing was sent.

    Of programs, the packets that the path dropped over those that entered it. Of media, its lost packets.
    """
    seen = [flow["seen"] for flow in summary["flows"] if flow.get("seen")]
    if seen:
        packets = sum(one["packets"] for one in seen)
        return sum(one["lost_packets"] for one in seen) / packets if packets else None
    sent = sum(flow["segments_sent"] for flow in measured(summary))
    resent = retransmits(summary)
    lost = sum(frames["lost_packets"] for flow in measured(summary) if (frames := flow.get("frames")))
    return (resent + lost) / sent if sent and resent is not None else None


def _delay(which: str) -> Callable[[Summary], float | None]:
    """One-way delay of the forward path, averaged over the programs; None without."""

    def take(summary: Summary) -> float | None:
        delays = [(flow.get("seen") or {}).get("delay") for flow in summary["flows"]]
        values = [one[which] / 1e6 for one in delays if one]
        return math.fsum(values) / len(values) if values else None

    return take


def bottleneck(summary: Summary) -> Summary | None:
    """The queue with the longest mean delay, None when the path has none.

    Where flows of both directions cross the path, the forward queue with the longest.
    """
    queues = [link for link in summary["links"] if (link.get("queue_delay_ms") or {}).get("mean") is not None]
    if both_ways(summary):
        forward = json.loads(summary["provenance"]["spec_json"])["forward"]
        names = {element.get("name") for element in forward}
        queues = [link for link in queues if link["name"] in names]
    return max(queues, key=lambda link: float(link["queue_delay_ms"]["mean"]), default=None)


def shares(summary: Summary) -> dict[str, float | None]:
    """Each flow's share of the bytes delivered in its direction, by label; None if there are none."""
    return {one["label"]: one["share"] for one in summary["fairness"]["shares"]}


def flow_alone(summary: Summary, label: str) -> Summary:
    """A summary of one flow, for measures of that flow."""
    flow = next(flow for flow in summary["flows"] if flow["label"] == label)
    return {
        **summary,
        "flows": [flow],
        "total_goodput_bps": flow["goodput_bps"],
        "fct_ms": flow.get("fct_ms"),
    }


def different_lifetimes(summary: Summary) -> bool:
    """Whether some flow ran for less than 99 % of the time from the first start to the last end."""
    lives = [(flow["start_ns"], flow["end_ns"]) for flow in measured(summary)]
    whole = max(end for _, end in lives) - min(start for start, _ in lives)
    return any(end - start < 0.99 * whole for start, end in lives)


def _rtt(which: str) -> Callable[[Summary], float | None]:
    def take(summary: Summary) -> float | None:
        values = [flow["rtt_ms"][which] for flow in measured(summary) if flow.get("rtt_ms")]
        values = [value for value in values if value is not None]
        return math.fsum(values) / len(values) if values else None

    return take


def _queue(which: str) -> Callable[[Summary], float | None]:
    def take(summary: Summary) -> float | None:
        link = bottleneck(summary)
        return None if link is None else link["queue_delay_ms"].get(which)

    return take


def _fct(which: str) -> Callable[[Summary], float | None]:
    def take(summary: Summary) -> float | None:
        return (summary.get("fct_ms") or {}).get(which)

    return take


def rebuffer_ms(summary: Summary) -> float | None:
    """How long playback stalled, averaged over the flows that play a video; None if none does."""
    values = [flow["rebuffer_ms"] for flow in measured(summary) if flow.get("rebuffer_ms") is not None]
    return math.fsum(values) / len(values) if values else None


def missed_frames(summary: Summary) -> float | None:
    """Frames lost or late over all whose end is known, averaged over the flows of media; None without."""
    values = [flow["missed_frames"] for flow in measured(summary) if flow.get("missed_frames") is not None]
    return math.fsum(values) / len(values) if values else None


def write_ms(summary: Summary) -> float | None:
    """From connecting to the write of the last byte, averaged over the flows that wrote all; None without.

    An `iperf3 -n` ends then, while the send buffer is still full.
    """
    values = [flow["write_ms"] for flow in measured(summary) if flow.get("write_ms") is not None]
    return math.fsum(values) / len(values) if values else None


def write_bps(summary: Summary) -> float | None:
    """Application bits that all flows wrote into send buffers, per second; None where that is not known."""
    if any(flow.get("written_bytes") is None for flow in measured(summary)):
        return None
    flows = [flow for flow in measured(summary) if flow["end_ns"] > flow["start_ns"]]
    if not flows:
        return None
    last = max(flow.get("written_ns", flow["end_ns"]) for flow in flows)
    nanos = last - min(flow["start_ns"] for flow in flows)
    return sum(flow["written_bytes"] for flow in flows) * 8e9 / nanos if nanos > 0 else None


def _signals(which: str) -> Callable[[Summary], float | None]:
    """Packets of all queues together; None on a path without a queue discipline."""

    def take(summary: Summary) -> float | None:
        if '"discipline"' not in (summary.get("provenance") or {}).get("spec_json", ""):
            return None
        return float(sum(link.get(which, 0) for link in summary["links"]))

    return take


MEASURES = (
    Measure("Goodput", "Mbit/s", 1e6, 2, "goodput_bps", goodput_bps),
    Measure("RTT mean", "ms", 1, 1, "rtt_mean_ms", _rtt("mean")),
    Measure("RTT p50", "ms", 1, 1, "rtt_p50_ms", _rtt("p50")),
    Measure("RTT p95", "ms", 1, 1, "rtt_p95_ms", _rtt("p95")),
    Measure("Queue mean", "ms", 1, 1, "queue_delay_mean_ms", _queue("mean")),
    Measure("Queue p50", "ms", 1, 1, "queue_delay_p50_ms", _queue("p50")),
    Measure("Queue p95", "ms", 1, 1, "queue_delay_p95_ms", _queue("p95")),
    Measure("Retransmits", "segments", 1, 0, "retransmits", retransmits),
    Measure("Loss", "%", 0.01, 3, "loss_ratio", loss_ratio),
    Measure("FCT mean", "ms", 1, 1, "fct_mean_ms", _fct("mean")),
    Measure("FCT p50", "ms", 1, 1, "fct_p50_ms", _fct("p50")),
    Measure("FCT p95", "ms", 1, 1, "fct_p95_ms", _fct("p95")),
    Measure("Rebuffering", "ms", 1, 0, "rebuffer_ms", rebuffer_ms),
)
# How queue disciplines signal congestion. Paths without one have no such values.
SIGNALS = (
    Measure("Marks", "packets", 1, 0, "marked_packets", _signals("marked_packets")),
    Measure("Early drops", "packets", 1, 0, "early_packets", _signals("early_packets")),
)
# What the senders' applications saw: iperf3's readings at the sender.
WRITES = (
    Measure("Write rate", "Mbit/s", 1e6, 2, "write_bps", write_bps),
    Measure("Write time", "ms", 1, 1, "write_ms", write_ms),
)
# What is seen of a program's packets besides.
SEEN = (
    Measure("Delay mean", "ms", 1, 1, "delay_mean_ms", _delay("mean_ns")),
    Measure("Delay p95", "ms", 1, 1, "delay_p95_ms", _delay("p95_ns")),
)
# Real-time media: frames that were lost or later than their deadline.
MEDIA = (Measure("Missed frames", "%", 0.01, 2, "missed_frames", missed_frames),)
BY_NAME = {measure.name: measure for measure in (*MEASURES, *SIGNALS, *WRITES, *SEEN, *MEDIA)}
SHARE = Quantity("Share", "%", 0.01, 1)


@dataclass(frozen=True)
class Column:
    """A column of a table of measures, in a terminal or a report."""

    heading: str
    measure: Measure
    interval: bool = False  # Whether the mean carries its confidence interval.

    def half_width(self, value: Estimate | None) -> str:
        """The number after the plus-minus sign; empty if there is none."""
        if not self.interval or value is None or value.half_width is None:
            return ""
        return self.measure.show(value.half_width)


COLUMNS = (
    Column("Goodput", BY_NAME["goodput_bps"], interval=True),
    Column("RTT mean", BY_NAME["rtt_mean_ms"], interval=True),
    Column("p50", BY_NAME["rtt_p50_ms"]),
    Column("p95", BY_NAME["rtt_p95_ms"]),
    Column("Queue mean", BY_NAME["queue_delay_mean_ms"], interval=True),
    Column("Retransmits", BY_NAME["retransmits"], interval=True),
    Column("Loss", BY_NAME["loss_ratio"]),
)
# For scenarios whose flows complete transfers, play a video or are media.
_APPLICATION_COLUMNS = (
    Column("FCT mean", BY_NAME["fct_mean_ms"], interval=True),
    Column("p50", BY_NAME["fct_p50_ms"]),
    Column("p95", BY_NAME["fct_p95_ms"]),
    Column("Rebuffering", BY_NAME["rebuffer_ms"], interval=True),
    Column("Missed frames", BY_NAME["missed_frames"], interval=True),
)


# For paths whose queues mark.
_MARKS = Column("Marks", BY_NAME["marked_packets"], interval=True)


# For programs.
_SEEN_COLUMNS = (
    Column("Delay mean", BY_NAME["delay_mean_ms"], interval=True),
    Column("p95", BY_NAME["delay_p95_ms"]),
)


def columns(summaries: Iterable[Summary]) -> tuple[Column, ...]:
    """The columns of a table of these runs. Marks need a run with some, and those of applications a value."""
    runs = list(summaries)
    marks = [_MARKS] if any(_MARKS.measure.take(run) for run in runs) else []
    more = [one for one in _APPLICATION_COLUMNS if any(one.measure.take(run) is not None for run in runs)]
    seen = [one for one in _SEEN_COLUMNS if any(one.measure.take(run) is not None for run in runs)]
    return (*COLUMNS, *marks, *seen, *more)


def explained(summaries: Iterable[Summary]) -> list[str]:
    """What headings of the columns of these runs are short for."""
    runs = list(summaries)
    notes = []
    if any(column.heading.startswith("FCT") for column in columns(runs)):
        notes.append("FCT: flow completion time, from the start of a transfer to its last byte.")
    if any(column.measure.name == "missed_frames" for column in columns(runs)):
        notes.append("Missed frames: frames of media that were lost, or complete after their deadline.")
    if any(map(both_ways, runs)):
        notes.append(
            "Flows of both directions: the values of a run are those of its forward flows and queues. Marks "
            "and early drops are of all queues, and a share is of the flows in the same direction."
        )
    return notes + _explained_programs(runs)


# What goodput and RTT of a program are of.
_PAYLOADS = {
    "tcp": "its goodput is TCP payload",
    "quic_udp": "its goodput is UDP payload of QUIC, with what QUIC adds and sends again",
    "udp": "its goodput is UDP payload",
}
_RTT_SOURCES = {
    "sequence_numbers": "its RTT is from TCP's sequence numbers",
    "spin_bit": "its RTT is from QUIC's spin bit",
    "none": "no RTT can be seen",
}


def _explained_programs(runs: Sequence[Summary]) -> list[str]:
    """What the numbers of programs are of: these differ from program to program."""
    message: dict[str, None] = {}
    for run in runs:
        for flow in run["flows"]:
            if seen := flow.get("seen"):
                payload, rtt = _PAYLOADS[seen["payload"]], _RTT_SOURCES[seen["rtt_source"]]
                message[f"{flow['controller']}, seen by its packets: {payload}; {rtt}."] = None
    if message:
        message[
            "Loss and delay of programs: packets that the forward path dropped, and its one-way delay."
        ] = None
    return list(message)


def flow_columns(summaries: Iterable[Summary]) -> tuple[Column, ...]:
    """The same for a table of flows. A queue belongs to the path, not to one of its flows."""
    of_queues = {"marked_packets", *(name for name in BY_NAME if name.startswith("queue"))}
    return tuple(one for one in columns(summaries) if one.measure.name not in of_queues)


def estimates(summaries: Sequence[Summary]) -> dict[str, Estimate | None]:
    """Every measure over the given runs; None if a run has no value for it."""
    return {
        name: known([measure.take(summary) for summary in summaries]) for name, measure in BY_NAME.items()
    }


def known(values: Sequence[float | None]) -> Estimate | None:
    """The estimate over the values; None unless all are known."""
    present = [value for value in values if value is not None]
    return estimate(present) if present and len(present) == len(values) else None
