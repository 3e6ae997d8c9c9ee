"""What happens to packets while the queue is empty: loss, jitter, order, clumps."""

import math
from statistics import fmean, variance
from statistics import median as middle

from fullpipe.measures.statistics import share_interval, t_quantile
from fullpipe.probe.analysis.quantity import Quantity, quantile
from fullpipe.probe.analysis.traces import Trace, gaps

# Fewer losses say little: the error of a count is its root.
LEAST_LOSSES = 10
_LEAST_PACKETS = 200
# Parts of a stage whose losses are compared, and how much more these differ if losses come in bursts.
_BLOCKS, _BURSTS = 40, 2.5
IN_BURSTS = "losses come in bursts"
# Student's distribution of as many is the normal one.
_MANY = 1_000_000
# Waits of less are the hosts', and fewer losses have no place in a queue.
_LEAST_WAIT_S, _LEAST_PLACED = 0.001, 3
# Standard deviations that are no chance.
_SCORE = 4.0


def loss(trace: Trace) -> Quantity:
    """The share of packets that get lost below saturation, with Wilson's interval.

    Of losses that come in bursts, each tells less: the counts are divided by the variance of the losses of
    blocks over that of independent ones, as for the design effect of a sample of clusters (Kish 1965), with
    Student's quantile of about as many bursts.
    """
    lost, count = trace.lost, len(trace)
    if 0 < lost < LEAST_LOSSES:
        return Quantity(
            lost / count, *share_interval(lost, count), f"only {lost} of {count} packets were lost"
        )
    ratio = _bursts(trace)
    why = IN_BURSTS if ratio > _BURSTS else ""
    if ratio > 1:
        ratio *= (t_quantile(max(1, round(lost / ratio) - 1)) / t_quantile(_MANY)) ** 2
    return Quantity(lost / count, *share_interval(lost / ratio, count / ratio), why)


def _bursts(trace: Trace) -> float:
    """The variance of the losses of blocks over that of independent losses, at least 1."""
    step = len(trace) // _BLOCKS
    if step < 1 or not 0 < trace.lost < len(trace):
        return 1.0
    lost = [
        sum(not trace.ok(at) for at in range(begin, begin + step)) for begin in range(0, step * _BLOCKS, step)
    ]
    expected = fmean(lost) * (1 - trace.lost / len(trace))
    return max(1.0, variance(lost) / expected) if expected > 0 else 1.0


def fills_a_queue(trace: Trace, jitter_s: float) -> bool:
    """Whether a stage that is to leave the queue empty does not: packets wait where others are lost.

    They do so if a link needs a time for each frame, however short that is. `jitter_s`: of an idle path.
    """
    waits = [trace.wait(at) for at in range(len(trace))]
    lost = [at for at in range(len(trace)) if not trace.ok(at)]
    if len(lost) < _LEAST_PLACED:
        return False
    near = {at + step for at in lost for step in (-1, 1) if 0 <= at + step < len(trace)}
    beside = [waits[at] for at in near if not math.isnan(waits[at])]
    all_ = [one for one in waits if not math.isnan(one)]
    late = sorted(one for one in waits[len(waits) // 2 :] if not math.isnan(one))
    if not beside or not late or middle(beside) < _LEAST_WAIT_S + jitter_s:
        return False
    # Later on, all wait about as long; or those beside losses are later than chance allows.
    half, usual = len(beside) / 2, middle(all_)
    above = sum(one > usual for one in beside)
    return quantile(late, 0.1) > 0.5 * middle(beside) or above - half > _SCORE * math.sqrt(half / 2)


def jitter_ms(trace: Trace) -> dict[str, float]:
    """Percentiles of the delay above the least, in milliseconds."""
    ordered = sorted(trace.delays())
    if not ordered:
        return {}
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
    return {name: (quantile(ordered, share) - ordered[0]) * 1e3 for name, share in shares.items()}


def reordering(trace: Trace) -> Quantity:
    """The share of packets that a later one overtook (RFC 4737, type-P-reordered)."""
    order = sorted((time, at) for at, time in enumerate(trace.arrived) if time == time)
    highest, late = -1, 0
    for _, at in order:
        late += at < highest
        highest = max(highest, at)
    if not order:
        return Quantity.none("nothing arrived")
    low, high = share_interval(late, len(order))
    return Quantity(late / len(order), low, high)


def aggregation_ms(trace: Trace) -> Quantity:
    """The time between releases, if packets come in clumps."""
    if len(trace) - trace.lost < _LEAST_PACKETS:
        return Quantity.none("too few packets arrived")
    times = [time for time, _ in trace.arrivals()]
    sent = middle(gaps(trace.sent))
    distances = gaps(times)
    starts = [at + 1 for at, one in enumerate(distances) if one > max(1.6 * sent, 0.0006)]
    together = sum(one < 0.3 * sent for one in distances) / len(distances)
    if len(starts) < 20 or together < 0.3:
        return Quantity.none("packets do not come in clumps")
    periods = gaps([times[at] for at in starts])
    period = middle(periods)
    regular = sum(abs(one / period - round(one / period)) < 0.15 for one in periods) / len(periods)
    if regular <= 0.8 or period <= 1.5 * sent:
        return Quantity.none("packets come in clumps, but not at regular times")
    return Quantity.around(period * 1e3, max(0.05, 0.02 * period * 1e3))
