"""What the path saw of a sender: delivered bytes over time, the bottleneck's queue, its losses.

Everything is computed from the record of a run, which has the same columns in every world. Times are in
seconds since the run's start, volumes in bytes, rates in bit/s. Delivered bytes are payload: of TCP for a
program that uses TCP, of UDP for one that uses QUIC, whose own headers nobody outside can take off.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import polars as pl

from fullpipe.measures.run import Run

# Rates are means over at least this long, in round trips of the empty path.
_ROUNDS_A_WINDOW = 5
# A bulk transfer has begun when this much was delivered: what came before is a handshake, or what programs
# tell each other first. A first flight of ten segments is more (RFC 6928).
_BEGUN_BYTES = 10_000
# Less than this in all is no bulk transfer.
_LEAST_BYTES = 50_000


class NotJudgedError(Exception):
    """The record does not show what the case measures; `str()` says why."""


class Seen:
    """One run, as the path saw its first flow."""

    def __init__(self, run: Run, *, mbps: float, ms: float) -> None:
        self.run = run
        # The path's rate at the start, headers from IP upwards counted, and its round trip when empty.
        self.rate_bps = mbps * 1e6
        self.rtt_s = ms / 1e3
        self._flows: list[dict[str, Any]] = run.summary["flows"]
        self._links: list[dict[str, Any]] = run.summary["links"]
        series = run.flow_series().drop_nulls("delivered_bytes")
        self._delivered = [_Steps.of(series, one["label"]) for one in self._flows]
        links = run.link_series()
        if links.height:
            links = links.filter(pl.col("link") == links["link"][0])
        self._queue_times = links["time_s"].to_list()
        self._queue_bytes = [float(one) for one in links["queue_bytes"].to_list()]
        self._dropped = _Steps(self._queue_times, [float(one) for one in links["dropped_packets"].to_list()])

    # ---- whether it can be judged ----

    def check(self, *, until_s: float, begins_by_s: float) -> None:
        """Raises `NotJudgedError` unless it sends from `begins_by_s` at the latest until `until_s`."""
        if not self._flows or not self._links:
            raise NotJudgedError("the record has no flow, or no bottleneck")
        total = self._flows[0]["delivered_bytes"]
        begins_s = self.begins_s
        if total < _LEAST_BYTES or begins_s is None:
            raise NotJudgedError(
                f"{total} bytes of payload were delivered in the direction that is judged; if the other side "
                "sends the data, say so with --sender"
            )
        if begins_s > begins_by_s:
            raise NotJudgedError(
                f"the data began to arrive after {begins_s:.1f} s; the case needs it within {begins_by_s:g} s"
            )
        end_s = self._flows[0]["end_ns"] / 1e9
        if end_s < until_s - _END_SLACK_S:
            raise NotJudgedError(
                f"the flow ended after {end_s:.1f} s; the case needs {until_s:g} s: let it send longer"
            )
        if not self._queue_times:
            raise NotJudgedError("the record has no time series of the bottleneck's queue")

    # ---- deliveries ----

    @property
    def bdp(self) -> float:
        """The bandwidth-delay product at the start, in bytes."""
        return self.rate_bps * self.rtt_s / 8

    @property
    def window_s(self) -> float:
        """The time over which rates are means."""
        return self.rtt_s * _ROUNDS_A_WINDOW

    @property
    def begins_s(self) -> float | None:
        """When the bulk of the data began to be delivered; None if it never was."""
        return self._delivered[0].first_above(_BEGUN_BYTES)

    def goodput(self, first_s: float, last_s: float, flow: int = 0) -> float:
        """Payload delivered between two times, bit/s."""
        steps = self._delivered[flow]
        return (steps.at(last_s) - steps.at(first_s)) * 8 / (last_s - first_s)

    def share(self, first_s: float, last_s: float) -> float:
        """The same as percent of the path's rate at the start."""
        return self.goodput(first_s, last_s) / self.rate_bps * 100

    def rates(self, first_s: float, last_s: float, width_s: float) -> list[tuple[float, float]]:
        """The goodput of each window of this width between two times, by when it ends."""
        count = int((last_s - first_s - width_s) / _STEP_S + 1e-9)
        ends = [first_s + width_s + step * _STEP_S for step in range(count + 1)]
        return [(end, self.goodput(end - width_s, end)) for end in ends]

    def reaches(self, rate_bps: float, after_s: float, until_s: float) -> float | None:
        """Seconds from `after_s` to the end of the first window that delivers at a rate."""
        found = (end for end, rate in self.rates(after_s, until_s, self.window_s) if rate >= rate_bps)
        end = next(found, None)
        return None if end is None else end - after_s

    def resumes(self, after_s: float) -> float | None:
        """Seconds from a time to the next delivered payload; None if nothing more is delivered."""
        return self._delivered[0].next_rise(after_s)

    def dips(self, first_s: float, last_s: float, *, width_s: float, below: float) -> list[float]:
        """When deliveries fell below a part of their median, each time once.

        Two dips that are less than a second apart are one.
        """
        rates = self.rates(first_s, last_s, width_s)
        bound = median(rate for _, rate in rates) * below
        low = [end for end, rate in rates if rate < bound]
        return [end for at, end in enumerate(low) if at == 0 or end - low[at - 1] >= _APART_S]

    def shares_of_all(self, first_s: float, last_s: float) -> list[float]:
        """The part of the goodput of all flows that each flow has, in percent."""
        rates = [self.goodput(first_s, last_s, flow) for flow in range(len(self._delivered))]
        whole = sum(rates)
        return [rate / whole * 100 if whole else 0.0 for rate in rates]

    # ---- the bottleneck ----

    def queue(self, first_s: float, last_s: float) -> list[float]:
        """Bytes that waited in the bottleneck's queue, at equal intervals between two times."""
        first = bisect_left(self._queue_times, first_s)
        last = bisect_right(self._queue_times, last_s)
        found = self._queue_bytes[first:last]
        if not found:
            raise NotJudgedError(f"the record has no sample of the queue from {first_s:g} to {last_s:g} s")
        return found

    def queue_falls(self, bound: float, after_s: float, until_s: float, width_s: float) -> float | None:
        """Seconds from a time until the queue's median over `width_s` is at most a bound; None if never."""
        end = after_s + width_s
        while end <= until_s + 1e-9:
            if median(self.queue(end - width_s, end)) <= bound:
                return end - after_s
            end += _STEP_S * 5
        return None

    def overflows(self, after_s: float, until_s: float) -> list[float]:
        """When the queue began to drop packets, each time once: drops within a second are one overflow."""
        times = [
            later
            for (earlier, later) in pairwise(self._queue_times)
            if after_s <= later <= until_s and self._dropped.at(later) > self._dropped.at(earlier)
        ]
        return [time for at, time in enumerate(times) if at == 0 or time - times[at - 1] >= _APART_S]

    def dropped_bytes(self, first_s: float, last_s: float) -> float:
        """What the queue dropped between two times, in bytes: packets of the mean size."""
        return self._drops(first_s, last_s) * self._packet_bytes

    def dropped_share(self, first_s: float, last_s: float) -> float:
        """The part of the packets that arrived at the queue between two times that it dropped, in percent."""
        dropped = self._drops(first_s, last_s)
        through = sum(steps.at(last_s) - steps.at(first_s) for steps in self._delivered) / self._payload_bytes
        arrived = dropped + through
        return dropped / arrived * 100 if arrived else 0.0

    def _drops(self, first_s: float, last_s: float) -> float:
        return self._dropped.at(last_s) - self._dropped.at(first_s)

    @property
    def _through(self) -> int:
        """Packets that the queue let through."""
        totals = self._links[0]
        return max(1, int(totals["arrived_packets"]) - int(totals["dropped_packets"]))

    @property
    def _packet_bytes(self) -> float:
        """The mean packet on the wire."""
        return float(self._links[0]["accepted_bytes"] / self._through)

    @property
    def _payload_bytes(self) -> float:
        """The mean payload that a packet through the queue brought."""
        return max(1.0, float(sum(one["delivered_bytes"] for one in self._flows)) / self._through)


# A flow that ends this much before the run does has sent all the time.
_END_SLACK_S = 0.5
# Between two windows.
_STEP_S = 0.01
# Two events of the same kind are at least this far apart.
_APART_S = 1.0


class _Steps:
    """A count that only grows, between whose samples it is a straight line."""

    def __init__(self, times: Sequence[float], values: Sequence[float]) -> None:
        self._times, self._values = list(times), list(values)

    @staticmethod
    def of(series: pl.DataFrame, flow: str) -> "_Steps":
        """What a flow has delivered."""
        own = series.filter(pl.col("flow") == flow)
        return _Steps(own["time_s"].to_list(), [float(one) for one in own["delivered_bytes"].to_list()])

    def at(self, time_s: float) -> float:
        """The count at a time; that of the first or last sample before and after."""
        after = bisect_right(self._times, time_s)
        if after == 0:
            return 0.0
        if after == len(self._times):
            return self._values[-1]
        (t0, t1), (v0, v1) = self._times[after - 1 : after + 1], self._values[after - 1 : after + 1]
        return v0 + (v1 - v0) * (time_s - t0) / (t1 - t0)

    def first_above(self, bound: float) -> float | None:
        """The time of the first sample above a bound."""
        return next((t for t, value in zip(self._times, self._values, strict=True) if value > bound), None)

    def next_rise(self, after_s: float) -> float | None:
        """How long after a time the count is larger than then."""
        before = self.at(after_s)
        begin = bisect_right(self._times, after_s)
        for time, value in zip(self._times[begin:], self._values[begin:], strict=True):
            if value > before:
                return time - after_s
        return None
