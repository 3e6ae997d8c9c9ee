"""What is read from a run: one number for each measure.

Losses and marks are those after the start-up, which the totals of a run include. Records count drops over
time but not arrivals, so the share is of the segments that were delivered or dropped in the period.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import polars as pl

from fullpipe_studies.evaluate.scene import Seen

Take: TypeAlias = Callable[[Seen], float | None]

_WINDOW_S = 5.0
# Loss above this is what circuit breakers watch for (RFC 8084).
_BREAKER = 0.10
# Retransmission timeouts below this are too near the samples' distance for their ratio.
_SHORTEST_GAP_S = 0.8


def _span(seen: Seen, start: str = "after", end: str = "end") -> tuple[float, float]:
    return float(seen.facts[start]), float(seen.facts[end])


def _mbps(seen: Seen, label: str, start_s: float, end_s: float) -> dict[str, float]:
    grown = seen.grown("delivered_bytes", start_s, end_s, label)
    return {name: value * 8e-6 / (end_s - start_s) for name, value in grown.items()}


def use(label: str = "", start: str = "after", end: str = "end", of: str = "rate") -> Take:
    """Goodput of the flows so named, in percent of what the path carries; `of` is the fact with its rate."""

    def take(seen: Seen) -> float:
        there = sum(_mbps(seen, label, *_span(seen, start, end)).values())
        return float(100 * there / (seen.capacity_mbps * seen.facts[of] / seen.facts["rate"]))

    return take


def queue(part: float | None = None, start: str = "after", end: str = "end") -> Take:
    """The bottleneck's queueing delay, ms: its mean, or a quantile."""

    def take(seen: Seen) -> float | None:
        begin, stop = _span(seen, start, end)
        inside = (pl.col("link") == "bottleneck") & pl.col("time_s").is_between(begin, stop)
        column = seen.links.filter(inside)["queue_delay_ms"]
        value = column.mean() if part is None else column.quantile(part, "linear")
        return float(value) if isinstance(value, int | float) else None

    return take


def _share_pct(seen: Seen, column: str, start_s: float, end_s: float) -> float:
    counted = seen.link_grown(column, start_s, end_s)
    dropped = seen.link_grown("dropped_packets", start_s, end_s)
    delivered = sum(seen.grown("delivered_bytes", start_s, end_s).values()) / seen.payload_bytes
    # What arrives twice is not delivered twice, so the share of marks can come out above the whole.
    return min(100.0, 100 * counted / (delivered + dropped)) if delivered + dropped else 0.0


def drops(seen: Seen) -> float:
    """Packets that queues and policers dropped after the start-up, percent."""
    return _share_pct(seen, "dropped_packets", *_span(seen))


def marks(seen: Seen) -> float:
    """Packets that queues marked (ECN-CE) after the start-up, percent."""
    return _share_pct(seen, "marked_packets", *_span(seen))


def breaker(seen: Seen) -> float:
    """The longest time with more than 10 % of drops, s: whole seconds without a smaller one between."""
    longest = current = 0
    start, end = _span(seen)
    for second in range(int(start), int(end)):
        lost = _share_pct(seen, "dropped_packets", second, second + 1)
        current = current + 1 if lost > 100 * _BREAKER else 0
        longest = max(longest, current)
    return float(longest)


def resent(seen: Seen) -> float | None:
    """Retransmissions after the start-up, in percent of delivered segments and retransmissions."""
    again = sum(seen.grown("retransmits", *_span(seen)).values())
    delivered = sum(seen.grown("delivered_bytes", *_span(seen)).values()) / seen.payload_bytes
    return 100 * again / (again + delivered) if again + delivered else None


def sent_share(start: str, end: str) -> Take:
    """Segments sent a second in a period, in percent of those before it: delivered and retransmitted ones."""

    def rate(seen: Seen, start_s: float, end_s: float) -> float:
        delivered = sum(seen.grown("delivered_bytes", start_s, end_s).values()) / seen.payload_bytes
        return (delivered + sum(seen.grown("retransmits", start_s, end_s).values())) / (end_s - start_s)

    def take(seen: Seen) -> float | None:
        clean = rate(seen, *_span(seen, "after", "clean"))
        return 100 * rate(seen, *_span(seen, start, end)) / clean if clean else None

    return take


def _retransmissions(seen: Seen) -> list[float]:
    """When a lone flow retransmitted while it heard nothing."""
    start, end = _span(seen)
    frame = seen.flows.filter(pl.col("time_s").is_between(start, end))
    return frame.filter(pl.col("retransmits").diff() > 0)["time_s"].to_list()


def silent_sent(seen: Seen) -> float:
    """How many times a flow sent while it heard nothing."""
    return float(len(_retransmissions(seen)))


def silent_growth(seen: Seen) -> float | None:
    """The least ratio of one pause to the one before while a flow hears nothing; 2 if they double."""
    times = _retransmissions(seen)
    gaps = [after - before for before, after in itertools.pairwise(times)]
    gaps = [gap for gap in gaps if gap >= _SHORTEST_GAP_S]
    return min((after / before for before, after in itertools.pairwise(gaps)), default=None)


def jain(seen: Seen) -> float | None:
    """Jain's index of the goodputs."""
    rates = list(_mbps(seen, "", *_span(seen)).values())
    squares = len(rates) * math.fsum(rate * rate for rate in rates)
    return math.fsum(rates) ** 2 / squares if squares else None


def least(seen: Seen) -> float | None:
    """The least flow's goodput divided by the mean of all."""
    rates = list(_mbps(seen, "", *_span(seen)).values())
    return min(rates) * len(rates) / math.fsum(rates) if math.fsum(rates) else None


def nothing(seen: Seen) -> float:
    """Flows that got nothing after the start-up, percent."""
    grown = seen.grown("delivered_bytes", *_span(seen))
    return 100 * sum(value == 0 for value in grown.values()) / len(grown)


def share(label: str, start: str = "after", end: str = "end") -> Take:
    """The goodput of the flows so named, divided by their fair share of the path."""

    def take(seen: Seen) -> float:
        rates = _mbps(seen, "", *_span(seen, start, end))
        ours = [rate for name, rate in rates.items() if name.startswith(label)]
        return math.fsum(ours) * len(rates) / (len(ours) * seen.capacity_mbps)

    return take


def least_window(seen: Seen) -> float:
    """The least goodput of any flow in any 5 s, divided by the fair share."""
    start, end = _span(seen)
    found, fair = math.inf, seen.capacity_mbps
    while start + _WINDOW_S <= end:
        rates = _mbps(seen, "", start, start + _WINDOW_S)
        found = min(found, *(rate * len(rates) / fair for rate in rates.values()))
        start += _WINDOW_S
    return found


def rtt(label: str) -> Take:
    """The mean smoothed RTT of the flows so named above that of the empty path, ms."""

    def take(seen: Seen) -> float | None:
        inside = pl.col("flow").str.starts_with(label) & (pl.col("time_s") >= seen.facts["after"])
        value = seen.flows.filter(inside)["srtt_ms"].drop_nulls().drop_nans().mean()
        return float(value) - seen.facts["rtt"] if isinstance(value, int | float) else None

    return take


def _quantile(values: Sequence[float], part: float) -> float | None:
    value = pl.Series(values, dtype=pl.Float64).quantile(part, "linear")
    return None if value is None else float(value)


def completion(part: float, label: str = "short") -> Take:
    """A quantile of the completion times of the flows so named, ms.

    A flow that did not finish counts with the time until the end of the run.
    """

    def take(seen: Seen) -> float | None:
        flows = [one for one in seen.run.summary["flows"] if one["label"].startswith(label)]
        done = [
            one["completion_ms"]
            if one["completion_ms"] is not None
            else seen.facts["end"] * 1e3 - one["start_ns"] / 1e6
            for one in flows
        ]
        return _quantile(done, part)

    return take


def _media(seen: Seen) -> dict[str, Any]:
    return next(one for one in seen.run.summary["flows"] if one["label"] == "media")


def frames(part: float) -> Take:
    """A quantile of the delays of the media flow's complete frames, ms."""

    def take(seen: Seen) -> float | None:
        return _quantile(_media(seen)["transfers_ms"], part)

    return take


def missed_frames(seen: Seen) -> float:
    """Frames of the media flow that were lost or later than their deadline, percent."""
    return float(100 * _media(seen)["missed_frames"])
