"""The measures that Fullpipe compares: one number a run, from its summary; seeds are averaged later.

Several flows make one number of a run so: goodputs, retransmissions and segments add up, round-trip times are
averaged. The queue is the one with the longest mean delay: the bottleneck's.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from fullpipe.stats import Estimate, estimate

Summary: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Measure:
    """One measure: how to take it and how to show it."""

    name: str
    title: str
    unit: str
    scale: float  # Shown value = value / scale.
    digits: int
    take: Callable[[Summary], float | None]

    def show(self, value: float) -> str:
        """The value without its unit, with the measure's digits."""
        return f"{value / self.scale:,.{self.digits}f}"


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


def shares(summary: Summary) -> dict[str, float]:
    """Each flow's part of the goodput of all, by label."""
    total = goodput_bps(summary)
    return {
        flow["label"]: (flow["goodput_bps"] or 0.0) / total if total else 0.0 for flow in summary["flows"]
    }


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


MEASURES = (
    Measure("goodput_bps", "Goodput", "Mbit/s", 1e6, 2, goodput_bps),
    Measure("rtt_mean_ms", "RTT mean", "ms", 1, 1, _rtt("mean")),
    Measure("rtt_p50_ms", "RTT p50", "ms", 1, 1, _rtt("p50")),
    Measure("rtt_p95_ms", "RTT p95", "ms", 1, 1, _rtt("p95")),
    Measure("queue_delay_mean_ms", "Queue mean", "ms", 1, 1, _queue("mean")),
    Measure("queue_delay_p50_ms", "Queue p50", "ms", 1, 1, _queue("p50")),
    Measure("queue_delay_p95_ms", "Queue p95", "ms", 1, 1, _queue("p95")),
    Measure("retransmits", "Retransmits", "segments", 1, 0, retransmits),
    Measure("loss_ratio", "Loss", "%", 0.01, 3, loss_ratio),
)
BY_NAME = {measure.name: measure for measure in MEASURES}


def estimates(summaries: list[Summary]) -> dict[str, Estimate | None]:
    """Every measure over the given runs; None where a run has no value for it."""
    found: dict[str, Estimate | None] = {}
    for measure in MEASURES:
        values = [measure.take(summary) for summary in summaries]
        known = [value for value in values if value is not None]
        found[measure.name] = estimate(known) if len(known) == len(values) and known else None
    return found
