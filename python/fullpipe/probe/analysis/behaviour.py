"""What happens to packets while the queue is empty: loss, jitter, order, clumps."""

from statistics import median as middle

from fullpipe.measures.statistics import share_interval
from fullpipe.probe.analysis.quantity import Quantity, quantile
from fullpipe.probe.analysis.traces import Trace, gaps

# Fewer losses say little: the error of a count is its root.
LEAST_LOSSES = 10
_LEAST_PACKETS = 200


def loss(trace: Trace) -> Quantity:
    """The share of packets that get lost below saturation, with Wilson's interval."""
    lost, count = trace.lost, len(trace)
    low, high = share_interval(lost, count)
    if 0 < lost < LEAST_LOSSES:
        return Quantity(lost / count, low, high, f"only {lost} of {count} packets were lost")
    return Quantity(lost / count, low, high)


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
