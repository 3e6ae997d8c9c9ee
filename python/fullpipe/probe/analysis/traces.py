"""Stamps of two clocks as times of one.

The clocks differ by an offset and drift apart. The fastest echoes of each second show both: half of the
difference of their two ways is the offset, as in NTP (RFC 5905, section 8), and a line through these is the
drift. An echo's offset is wrong by at most half of what it took longer than the fastest one; what is farther
from the line shows that a clock was set, or changed its rate. How a path's delay splits between the
directions cannot be seen; nothing here depends on it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fullpipe.probe.analysis.quantity import median, quantile
from fullpipe.probe.stamps import LOST, Stream

Echo = tuple[int, int, int, int]
# A drift is seen over a longer time only.
_LEAST_SPAN_S = 5.0
# Of the echoes of a second, those that show the clocks.
_CLEANEST = 0.2
# A line through more points is no better, and its slopes are as many as their square.
_MOST_POINTS = 300


@dataclass
class Trace:
    """A stage in seconds of one clock. `arrived` is NaN where a packet was lost."""

    sent: list[float]
    arrived: list[float]
    sizes: list[int]
    flows: list[int]
    ecn: list[int]
    marks: list[int]
    duplicates: int = 0
    # The one-way delay of a full packet that did not wait.
    origin: float = 0.0

    def __len__(self) -> int:
        return len(self.sent)

    def ok(self, at: int) -> bool:
        """Whether a packet arrived."""
        return not math.isnan(self.arrived[at])

    def wait(self, at: int) -> float:
        """How much longer than an unqueued full packet it took; NaN if it was lost."""
        return self.arrived[at] - self.sent[at] - self.origin

    def only(self, wanted: Callable[[int], bool]) -> "Trace":
        """The packets with these indices."""
        kept = [at for at in range(len(self)) if wanted(at)]
        return Trace(
            [self.sent[at] for at in kept],
            [self.arrived[at] for at in kept],
            [self.sizes[at] for at in kept],
            [self.flows[at] for at in kept],
            [self.ecn[at] for at in kept],
            [self.marks[at] for at in kept],
            self.duplicates,
            self.origin,
        )

    def flow(self, flow: int) -> "Trace":
        """The packets of a flow."""
        return self.only(lambda at: self.flows[at] == flow)

    def arrivals(self) -> list[tuple[float, int]]:
        """Times and sizes of what arrived, in order of arrival."""
        return sorted(
            (time, size) for time, size in zip(self.arrived, self.sizes, strict=True) if time == time
        )

    def delays(self) -> list[float]:
        """One-way delays of what arrived, in the order in which it was sent."""
        return [there - here for here, there in zip(self.sent, self.arrived, strict=True) if there == there]

    @property
    def lost(self) -> int:
        """How many packets did not arrive."""
        return sum(time != time for time in self.arrived)


class Clocks:
    """The relation of both clocks."""

    def __init__(self, echoes: Sequence[Echo]) -> None:
        """From all echoes; the first one is the origin of both clocks."""
        self.zero, self.base = echoes[0][0], echoes[0][1] - echoes[0][0]
        self.rtts = [(back - sent - answered + came) / 1e9 for sent, came, answered, back in echoes]
        times = [(one[0] - self.zero) / 1e9 for one in echoes]
        offsets = [
            ((came - sent - self.base) - (back - answered + self.base)) / 2e9
            for sent, came, answered, back in echoes
        ]
        kept = _cleanest(times, self.rtts)
        some = kept[:: 1 + len(kept) // _MOST_POINTS]
        self.slope, self.offset = _line([times[at] for at in some], [offsets[at] for at in some])
        # How far an echo's offset may be wrong, and how far the line, by as much in the middle.
        least = min(self.rtts)
        wrong = {at: (self.rtts[at] - least) / 2 for at in kept}
        farthest = max(abs(offsets[at] - self.at(times[at])) - wrong[at] for at in kept)
        # How far the clocks are from an even pace, in seconds, at least.
        self.uneven_s = farthest - median(list(wrong.values()))

    def at(self, time: float) -> float:
        """The far clock's lead at a time, in seconds, beyond that at the origin."""
        return self.slope * time + self.offset

    def _near(self, stamp_ns: int) -> float:
        return (stamp_ns - self.zero) / 1e9

    def _far(self, stamp_ns: int) -> float:
        time = (stamp_ns - self.zero - self.base) / 1e9
        return time - self.at(time)

    def trace(self, stream: Stream, *, back: bool = False) -> Trace:
        """A stage by the near clock."""
        here, there = (self._far, self._near) if back else (self._near, self._far)
        return Trace(
            [here(stamp) for stamp in stream.sent_ns],
            [math.nan if stamp == LOST else there(stamp) for stamp in stream.arrived_ns],
            list(stream.sizes),
            list(stream.flows),
            list(stream.ecn),
            list(stream.marks),
            stream.duplicates,
        )


def _cleanest(times: list[float], rtts: list[float]) -> list[int]:
    ordered = sorted(rtts)
    fast = ordered[0] * 1.02 + max(0.0005, quantile(ordered, 0.1) - ordered[0])
    seconds: dict[int, list[int]] = {}
    for at, time in enumerate(times):
        seconds.setdefault(int(time), []).append(at)
    return [
        at
        for second in seconds.values()
        for at in sorted(second, key=rtts.__getitem__)[: max(1, int(len(second) * _CLEANEST))]
        if rtts[at] <= fast
    ]


def _line(times: list[float], values: list[float]) -> tuple[float, float]:
    """Slope and offset: Theil's median of the slopes between distant points, then the median of the rest."""
    if not times:
        return 0.0, 0.0
    slope = 0.0
    if times[-1] - times[0] > _LEAST_SPAN_S:
        third = max(1, len(times) // 3)
        pairs = [
            (values[b] - values[a]) / (times[b] - times[a])
            for a in range(third)
            for b in range(len(times) - third, len(times))
            if times[b] > times[a]
        ]
        slope = median(pairs) if pairs else 0.0
    return slope, median([value - slope * time for time, value in zip(times, values, strict=True)])


def give_origin(traces: Sequence[Trace], mtu: int) -> float | None:
    """Sets the delay of a full packet that did not wait, the third fastest of all; None if there is none."""
    fastest = []
    for one in traces:
        full = sorted(
            there - here
            for here, there, size in zip(one.sent, one.arrived, one.sizes, strict=True)
            if size == mtu and there == there
        )
        if full:
            fastest.append(full[min(2, len(full) - 1)])
    if not fastest:
        return None
    for one in traces:
        one.origin = min(fastest)
    return min(fastest)


def gaps(values: Sequence[float]) -> list[float]:
    """The differences of neighbours."""
    return [b - a for a, b in pairwise(values)]
