"""The bottleneck: its rate, what fits into its queue, and whether it polices instead.

The rate is that of arrivals while the queue cannot be empty. With random loss behind the link these are too
few; the distance of packets that followed each other over the link is not changed by that.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, pstdev

from fullpipe.measures.statistics import t_quantile
from fullpipe.probe.analysis.quantity import Quantity, median, quantile
from fullpipe.probe.analysis.traces import Trace

# An interval is never narrower than what stamps and hosts add: this part of the rate.
_LEAST_PART = 0.003
_BLOCKS = 8
# Dropped packets of an overload that are not yet a steady one.
_FIRST_DROPS = 3
# A longer gap on a busy link may be a stalled host. The second is the largest relative error it may add.
_PAUSE_S, _MOST_PAUSED = 0.0005, 0.02
# Packets behind an empty bucket that are enough.
_SOON = 60


@dataclass(frozen=True)
class Overload:
    """The part of an overload in which the queue is full."""

    # Without the thin flow.
    trace: Trace
    # From which packet on.
    first: int
    rate: float
    # Relative standard error, from blocks of time.
    error: float
    # How long that part is.
    seconds: float
    loss: float
    # Waits of packets that were let in beside dropped ones.
    beside: list[float]


def carried(arrivals: list[tuple[float, int]]) -> float:
    """The rate of arrivals in bits a second, without the first packet; 0 if there are too few."""
    if len(arrivals) < 3 or arrivals[-1][0] <= arrivals[0][0]:
        return 0.0
    return sum(size for _, size in arrivals[1:]) * 8 / (arrivals[-1][0] - arrivals[0][0])


def block_rates(arrivals: list[tuple[float, int]]) -> list[float]:
    """The rates of successive parts."""
    step = len(arrivals) // _BLOCKS
    if step < 3:
        return []
    return [carried(arrivals[at : at + step + 1]) for at in range(0, step * _BLOCKS, step)]


def relative_error(arrivals: list[tuple[float, int]]) -> float:
    """Half the width of the interval of a rate, relative to it."""
    rates = block_rates(arrivals)
    if not rates or fmean(rates) <= 0:
        return 0.05
    spread = t_quantile(len(rates) - 1) * pstdev(rates) / fmean(rates) / math.sqrt(len(rates) - 1)
    # A packet more or less at either end.
    return max(_LEAST_PART, min(spread, 0.5), 1.5 / len(arrivals))


def offered(trace: Trace) -> float:
    """The rate at which packets were sent, in bits a second."""
    return sum(trace.sizes[1:]) * 8 / max(trace.sent[-1] - trace.sent[0], 1e-9) if trace.sent else 0.0


def overload(trace: Trace) -> Overload:
    """Where the queue is full in a stage that sends too fast. The thin flow counts for the rate only."""
    fat = trace.flow(0)
    lost = [at for at in range(len(fat)) if not fat.ok(at)]
    first = len(fat) // 2
    if len(lost) > _FIRST_DROPS:
        first = lost[min(len(lost) - 1, _FIRST_DROPS + len(fat) // 50)]
    return _since(trace, fat, first)


def behind_bucket(trace: Trace) -> Overload:
    """Where a policer's bucket is empty, and what waited for the link until then has left."""
    fat = trace.flow(0)
    first = _steady(fat)
    first += min(_SOON // 2, (len(fat) - first) // 4)
    return _since(trace, fat, first) if first < len(fat) else overload(trace)


def _since(trace: Trace, fat: Trace, first: int) -> Overload:
    busy = fat.only(lambda at: at >= first)
    # What arrives between the first of them and the last, also of a thin flow that overtakes them.
    times = [time for time, _ in busy.arrivals()]
    arrivals = [one for one in trace.arrivals() if times and times[0] <= one[0] <= times[-1]]
    return Overload(
        fat,
        first,
        carried(arrivals),
        relative_error(arrivals),
        arrivals[-1][0] - arrivals[0][0] if arrivals else 0.0,
        busy.lost / max(1, len(busy)),
        beside_lost(fat, first),
    )


def beside_lost(trace: Trace, first: int = 0) -> list[float]:
    """The waits of the packets right before and after each that was lost."""
    near = {
        at + step
        for at in range(first, len(trace))
        if not trace.ok(at)
        for step in (-1, 1)
        if 0 <= at + step < len(trace) and trace.ok(at + step)
    }
    return [trace.wait(at) for at in sorted(near)]


def busy_rate(trace: Trace, above: float, least_s: float = 0.15) -> tuple[float, float, float]:
    """The rate over all stretches in which the queue never was below `above`; seconds; relative error.

    A thin flow, which may have a queue of its own, says nothing about that.
    """
    order = sorted(
        (trace.arrived[at], trace.sizes[at], math.inf if trace.flows[at] else trace.wait(at))
        for at in range(len(trace))
        if trace.ok(at)
    )
    stretch: list[tuple[float, int]] = []
    bits = seconds = 0.0
    paused = 0.0
    longest: list[tuple[float, int]] = []
    for time, size, wait in [*order, (math.inf, 0, -math.inf)]:
        if wait >= above and (stretch or wait < math.inf):
            stretch.append((time, size))
            continue
        if len(stretch) > 5 and stretch[-1][0] - stretch[0][0] >= least_s:
            bits += sum(one for _, one in stretch[1:]) * 8
            seconds += stretch[-1][0] - stretch[0][0]
            paused += _paused_s([time for time, _ in stretch])
            longest = max(longest, stretch, key=len)
        stretch = []
    error = relative_error(longest) + (min(_MOST_PAUSED, paused / seconds) if seconds else 0.0)
    return (bits / seconds if seconds else 0.0), seconds, error


def _paused_s(times: list[float]) -> float:
    """How long nothing came of a busy link, beyond what packets need: pauses of the link, or of a host."""
    distances = sorted(b - a for a, b in pairwise(times))
    usual = quantile(distances, 0.5)
    long = [one - usual for one in distances if one > _PAUSE_S + 2 * usual]
    # Where they are many, packets come in clumps.
    return sum(long) if len(long) < 0.02 * len(distances) else 0.0


def contradicts(gentle: Trace, rate: float, above: float) -> bool:
    """Whether a stage that sends faster than a rate meets no queue for so long that the rate cannot be true.

    While nothing is lost, the queue grows by what is sent beyond the rate.
    """
    fat = gentle.flow(0)
    sent = offered(fat)
    if sent < 1.04 * rate:
        return False
    longest = max(0.3, 2 * (above + 0.003) / (sent / rate - 1))
    begin: float | None = None
    for at in range(len(fat)):
        if not fat.ok(at) or fat.wait(at) > above:
            begin = None
        elif begin is None:
            begin = fat.sent[at]
        elif fat.sent[at] - begin > longest:
            return True
    return False


def slot_rate(trace: Trace, about: float, mtu: int) -> tuple[float, float] | None:
    """The rate by the distance of packets that followed each other, and its relative error.

    None where stamps are too coarse for that, or packets are not evenly spaced.
    """
    # Of neighbours: a packet of the thin flow between two makes their distance longer.
    distances = [b - a for (a, one), (b, other) in pairwise(trace.arrivals()) if one == other == mtu]
    if about <= 0 or not distances:
        return None
    middle = mtu * 8 / about
    chosen: list[float] = []
    for _ in range(4):
        chosen = [one for one in distances if 0.5 * middle < one < 1.5 * middle]
        if len(chosen) < 50:
            return None
        middle = fmean(chosen)
    close = sum(one < 0.5 * middle for one in distances) / len(distances)
    if close > 0.03 or pstdev(chosen) > 0.2 * middle or abs(mtu * 8 / middle / about - 1) > 0.08:
        return None
    return mtu * 8 / middle, max(_LEAST_PART, 2 * pstdev(chosen) / middle / math.sqrt(len(chosen)))


def train_rate(trace: Trace) -> float:
    """What a train of packets, sent at once, says of the rate: also beside others, hardly theirs."""
    return carried(trace.arrivals()) if len(trace) - trace.lost > 8 else 0.0


def peak(traces: list[Trace]) -> float:
    """The highest rate of twenty arrivals in a row, but for the highest tenth."""
    best = 0.0
    for one in traces:
        arrivals = one.arrivals()
        if len(arrivals) <= 40:
            continue
        sums = list(accumulate(size for _, size in arrivals))
        rates = sorted(
            (sums[at + 20] - sums[at]) * 8 / max(arrivals[at + 20][0] - arrivals[at][0], 1e-6)
            for at in range(len(arrivals) - 20)
        )
        best = max(best, quantile(rates, 0.9))
    return best


def buffer(full: Overload, rate: Quantity, jitter: tuple[float, float], mtu: int) -> Quantity:
    """Bytes that fit into a queue that drops at its tail. `jitter`: in the middle, and its p90."""
    if rate.value is None:
        return rate
    if full.loss < 0.1 or len(full.beside) < 5:
        waits = sorted(wait for at in range(len(full.trace)) if (wait := full.trace.wait(at)) == wait)
        most = quantile(waits, 0.99) * 1e3 if waits else 0.0
        held = most / 8e3 * rate.value
        return Quantity.none(f"the queue did not overflow; it holds more than {most:.0f} ms", held)
    shift, p90 = jitter if jitter[1] > 0.0015 else (0.0, jitter[1])
    ordered = sorted(full.beside)
    found = (median(ordered) - shift) * rate.value / 8 + mtu
    spread = (quantile(ordered, 0.75) - quantile(ordered, 0.25)) / 2 * rate.value / 8
    relative = ((rate.high or rate.value) - rate.value) / rate.value
    half = max(
        mtu,
        0.03 * found,
        min(spread, 0.1 * found),
        relative * found,
        min(p90 / 2 * rate.value / 8, 0.1 * found),
    )
    return Quantity.around(found, half, least=mtu)


def intercept(trace: Trace, rate: float) -> float | None:
    """Bytes that came beyond what a rate explains: a policer's bucket (Flach et al., SIGCOMM 2016, 3.1)."""
    arrivals = trace.arrivals()
    if len(arrivals) <= 10:
        return None
    sums = accumulate(size for _, size in arrivals)
    began = arrivals[0][0]
    beyond = [total - rate / 8 * (time - began) for total, (time, _) in zip(sums, arrivals, strict=True)]
    # Soon after it is empty: later, pauses of the path and random losses add up.
    empty = sum(trace.ok(at) for at in range(_steady(trace)))
    begin = empty if len(beyond) - empty > 10 else len(beyond) // 2
    return median(beyond[begin : begin + _SOON])


def _steady(trace: Trace) -> int:
    """From which packet on losses come as often as in the end, and stay so; all packets, if they never do."""
    lost = [at for at in range(len(trace)) if not trace.ok(at)]
    share, some = max(overload(trace).loss, 1e-9), 4

    def stay(at: int) -> bool:
        # A burst of random losses does not last.
        return bisect_left(lost, at + _SOON) - bisect_left(lost, at) > 0.5 * share * _SOON

    close = (a for a, b in zip(lost, lost[some:], strict=False) if b - a < 2 * some / share)
    return next((at for at in close if stay(at)), len(trace))


def pieces(
    trace: Trace, above: float, window_s: float = 0.05, change: float = 0.06
) -> list[tuple[float, float, float]]:
    """Stretches of about constant rate of the arrivals: begin, end, bits a second.

    Splits where the cumulative curve bends most, as long as both rates differ by `change`. Stretches in which
    packets mostly waited for less than `above` say what was sent, and are left out.
    """
    arrivals = trace.arrivals()
    if len(arrivals) < 3:
        return []
    found: list[tuple[float, float, float]] = []
    waiting = [(0, len(arrivals) - 1)]
    while waiting:
        a, b = waiting.pop()
        cut = _cut(arrivals, a, b, window_s, change)
        if cut is None:
            found.append((arrivals[a][0], arrivals[b][0], carried(arrivals[a : b + 1])))
        else:
            waiting += [(cut, b), (a, cut)]
    waits = sorted((trace.arrived[at], trace.wait(at)) for at in range(len(trace)) if trace.ok(at))

    def busy(begin: float, end: float) -> bool:
        first, last = bisect_left(waits, (begin, -math.inf)), bisect_left(waits, (end, math.inf))
        return 5 * sum(wait > above for _, wait in waits[first:last]) > 4 * (last - first)

    return [one for one in sorted(found) if one[2] > 0 and busy(one[0], one[1])]


def _cut(arrivals: list[tuple[float, int]], a: int, b: int, window_s: float, change: float) -> int | None:
    """Where the cumulative curve is farthest from a straight line, if that is a change of the rate."""
    (begin, _), (end, _) = arrivals[a], arrivals[b]
    if end - begin < 4 * window_s or b - a < 20:
        return None
    total = sum(size for _, size in arrivals[a + 1 : b + 1])
    so_far, farthest, where = 0, 0.0, a
    for at in range(a + 1, b):
        so_far += arrivals[at][1]
        off = abs(so_far - total * (arrivals[at][0] - begin) / (end - begin))
        if off > farthest:
            farthest, where = off, at
    if min(arrivals[where][0] - begin, end - arrivals[where][0]) < window_s:
        return None
    left, right = carried(arrivals[a : where + 1]), carried(arrivals[where : b + 1])
    largest = 3 * max(size for _, size in arrivals[a : b + 1])
    if min(left, right) <= 0 or max(left, right) / min(left, right) < 1 + change or farthest < largest:
        return None
    return where
