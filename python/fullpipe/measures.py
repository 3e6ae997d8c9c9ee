"""The measures that Fullpipe compares: one number a run, from its summary; seeds are averaged later.

Several flows make one number of a run so: goodputs, retransmissions and segments add up, round-trip times and
the times for which playbacks stood still are averaged. The queue is the one with the longest mean delay: the
bottleneck's.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fullpipe.stats import Estimate, estimate

Summary: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Quantity:
    """What a number is and how to show it."""

    title: str
    unit: str
    scale: float  # Shown value = value / scale.
    digits: int

    def show(self, value: float | None) -> str:
        """The value without its unit, with the quantity's digits; a dash where there is none."""
        return "–" if value is None else f"{value / self.scale:,.{self.digits}f}"


@dataclass(frozen=True)
class Measure(Quantity):
    """A quantity that a run's summary answers."""

    name: str
    take: Callable[[Summary], float | None]


def goodput_bps(summary: Summary) -> float:
    """Application bits a second that all receivers delivered."""
    return math.fsum(flow["goodput_bps"] or 0.0 for flow in summary["flows"])


def retransmits(summary: Summary) -> float:
    """Segments sent again."""
    return float(sum(flow["retransmits"] for flow in summary["flows"]))


def loss_ratio(summary: Summary) -> float | None:
    """Mean of the flows' loss ratios, weighted by the segments they sent."""
    sent = [float(flow.get("segments_sent", 1)) for flow in summary["flows"]]
    lost = [flow["loss_ratio"] for flow in summary["flows"]]
    if sum(sent) == 0 or any(value is None for value in lost):
        return None
    return math.fsum(share * weight for share, weight in zip(lost, sent, strict=True)) / math.fsum(sent)


def bottleneck(summary: Summary) -> Summary | None:
    """The queue with the longest mean delay, None when the path has none."""
    queues = [link for link in summary["links"] if (link.get("queue_delay_ms") or {}).get("mean") is not None]
    return max(queues, key=lambda link: float(link["queue_delay_ms"]["mean"]), default=None)


def shares(summary: Summary) -> dict[str, float | None]:
    """Each flow's part of the goodput of all, by label; None where nothing was delivered."""
    return {one["label"]: one["share"] for one in summary["fairness"]["shares"]}


def flow_alone(summary: Summary, label: str) -> Summary:
    """A summary of one flow, for measures of that flow."""
    return {**summary, "flows": [flow for flow in summary["flows"] if flow["label"] == label]}


def _rtt(which: str) -> Callable[[Summary], float | None]:
    def take(summary: Summary) -> float | None:
        values = [flow["rtt_ms"][which] for flow in summary["flows"] if flow.get("rtt_ms")]
        values = [value for value in values if value is not None]
        return math.fsum(values) / len(values) if values else None

    return take


def _queue(which: str) -> Callable[[Summary], float | None]:
    def take(summary: Summary) -> float | None:
        link = bottleneck(summary)
        return None if link is None else link["queue_delay_ms"].get(which)

    return take


def rebuffer_ms(summary: Summary) -> float | None:
    """How long playback stood still, on average of the flows that play a video; None where none does."""
    values = [flow["rebuffer_ms"] for flow in summary["flows"] if flow.get("rebuffer_ms") is not None]
    return math.fsum(values) / len(values) if values else None


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
    Measure("Rebuffering", "ms", 1, 0, "rebuffer_ms", rebuffer_ms),
)
BY_NAME = {measure.name: measure for measure in MEASURES}
SHARE = Quantity("Share", "%", 0.01, 1)


@dataclass(frozen=True)
class Column:
    """A column of a table of measures, in a terminal or a report."""

    heading: str
    measure: Measure
    interval: bool = False  # Whether the mean carries its confidence interval.

    def half_width(self, value: Estimate | None) -> str:
        """The number after the plus-minus sign; empty where there is none to show."""
        if not self.interval or value is None or value.half_width is None:
            return ""
        return self.measure.show(value.half_width)


COLUMNS = (
    Column("Goodput", BY_NAME["goodput_bps"], interval=True),
    Column("RTT mean", BY_NAME["rtt_mean_ms"], interval=True),
    Column("p50", BY_NAME["rtt_p50_ms"]),
    Column("p95", BY_NAME["rtt_p95_ms"]),
    Column("Queueing", BY_NAME["queue_delay_mean_ms"], interval=True),
    Column("Retransmits", BY_NAME["retransmits"], interval=True),
    Column("Loss", BY_NAME["loss_ratio"]),
)
# A queue belongs to the path, not to one of its flows.
FLOW_COLUMNS = tuple(column for column in COLUMNS if not column.measure.name.startswith("queue"))


def estimates(summaries: Sequence[Summary]) -> dict[str, Estimate | None]:
    """Every measure over the given runs; None where a run has no value for it."""
    return {measure.name: known([measure.take(summary) for summary in summaries]) for measure in MEASURES}


def known(values: Sequence[float | None]) -> Estimate | None:
    """The estimate over the values; None unless all are known."""
    present = [value for value in values if value is not None]
    return estimate(present) if present and len(present) == len(values) else None
