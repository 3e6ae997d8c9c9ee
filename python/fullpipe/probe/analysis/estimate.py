"""All estimates of a measurement: a pure function of its stamps.

First whether the path is steady and nobody else's; a single rate, and a discipline, are stated only of such
a path. What a stage did not show is "not measurable", with the reason.
"""

import json
import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean
from typing import Any

from fullpipe.probe.analysis import behaviour, kinds, rates
from fullpipe.probe.analysis.quantity import Quantity, median, quantile
from fullpipe.probe.analysis.traces import Clocks, Trace, give_origin
from fullpipe.probe.stamps import LATE_S, Measured, Stream

# Stages; `stages` has what each is for.
TRAIN, RAMP, GENTLE, MILD, BELOW, OVER = "train", "ramp", "gentle", "mild", "below", "over"
FOLLOW = "follow"
# Echoes on an idle path that differ by more are kept waiting by something.
_LOADED_S = 0.004
# What hosts add to an echo, and the least error of a round-trip time.
_HOST_S, _LEAST_RTT_S = 0.00025, 0.0003
# No stamps are closer to the truth.
_STAMP_S = 1e-6
# Rates of stages that differ by more than this part are not of one steady path.
_STEADY = 0.06
# Fewer packets are an uncertain rate, and no unsteady one.
_ENOUGH = 400
# Clocks that are farther from an even pace make waits that there were not.
_UNEVEN_S = 0.001
# A gentle overload loses more than this part, and one that loses more than the second overflows something.
_GENTLY, _OVERFLOWS = 0.04, 0.05
# A train is faster than a long stage by more than the first part: others; by more than the second: a bucket.
_OTHERS, _BUCKET = 0.01, 0.5
_DISPLACED = "beside what the probe displaces"
_NOT_RUN = "the stage that shows it did not run"


@dataclass
class Direction:
    """The estimates of one direction."""

    rate_bps: Quantity
    buffer_bytes: Quantity
    buffer_ms: Quantity
    loss: Quantity
    reordered: Quantity
    aggregation_ms: Quantity
    policer_bps: Quantity
    bucket_bytes: Quantity
    # Of others' traffic: what a train shows of the rate beyond what a long stage gets.
    others_bps: Quantity
    discipline: str | None
    why_no_discipline: str = ""
    jitter_ms: dict[str, float] = field(default_factory=dict)
    # All that was sent arrived: the rate is at least this.
    at_least_bps: float | None = None
    # The link's own rate, where a policer allows less.
    link_bps: float | None = None
    # What waits when the queue drops all that comes more: RED's threshold, or the limit.
    ceiling_bytes: float | None = None
    # A rate that changes: begin, end in seconds, and bits a second.
    pieces: list[tuple[float, float, float]] = field(default_factory=list)
    duplicates: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: value.to_dict() if isinstance(value, Quantity) else value
            for name, value in vars(self).items()
        }


@dataclass
class Estimates:
    """The estimates of a path."""

    rtt_ms: Quantity
    forward: Direction
    back: Direction
    # The fastest echo, which is at least the base RTT.
    least_rtt_ms: float
    drift_ppm: float
    # Bytes of the longest packet of IP that passes.
    mtu: int = 1500
    # What disturbs the measurement: sentences.
    doubts: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rtt_ms": self.rtt_ms.to_dict(),
            "forward": self.forward.to_dict(),
            "back": self.back.to_dict(),
            "least_rtt_ms": self.least_rtt_ms,
            "drift_ppm": self.drift_ppm,
            "mtu": self.mtu,
            "doubts": self.doubts,
        }

    def to_json(self) -> str:
        """As text."""
        return json.dumps(self.to_dict(), indent=1)


def estimate(found: Measured) -> Estimates:
    """All estimates of what was measured."""
    if not found.echoes:
        nothing = Quantity.none("no echo came back")
        none = _nothing("no echo came back")
        doubts = ["no echo came back: is UDP blocked?"]
        return Estimates(nothing, none, none, 0.0, 0.0, found.mtu, doubts)
    clocks = Clocks(found.echoes)
    loaded = _loaded(clocks.rtts[: found.idle], min(clocks.rtts))
    idle_s = idle_jitter_s(found)
    forward = direction(found.forward, clocks, found.mtu, back=False, loaded=loaded, idle_s=idle_s)
    back = direction(found.back, clocks, found.mtu, back=True, loaded=loaded, idle_s=idle_s)
    doubts = list(found.notes)
    if clocks.uneven_s > _UNEVEN_S:
        why = f"a clock was set or changed its rate: it is off by {clocks.uneven_s * 1e3:.1f} ms or more"
        doubts.append(f"{why}; jitter is not measurable either")
        for one in (forward, back):
            _without_waits(one, why)
    for way, one in (("forward", forward), ("back", back)):
        if not loaded and one.others_bps.value:
            taken = f"{one.others_bps.value / 1e6:.3g} Mbit/s of the rate ({way})"
            doubts.append(f"others seem to take {taken}, so the link may be faster")
    if loaded:
        doubts.append("round trips vary on the idle path like those in a queue: others load it")
    rtt = _base_rtt(clocks, forward, back, found.echo_bytes, loaded)
    return Estimates(rtt, forward, back, min(clocks.rtts) * 1e3, clocks.slope * 1e6, found.mtu, doubts)


def idle_jitter_s(found: Measured) -> float:
    """By how much the slowest tenth of the echoes of the idle path is slower than the fastest one."""
    rtts = sorted(
        (back - sent - answered + came) / 1e9 for sent, came, answered, back in found.echoes[: found.idle]
    )
    return quantile(rtts, 0.9) - rtts[0] if rtts else 0.0


def _without_waits(found: Direction, why: str) -> None:
    """Takes back what depends on how long packets wait."""
    found.buffer_bytes = found.buffer_ms = found.policer_bps = found.bucket_bytes = Quantity.none(why)
    found.discipline, found.why_no_discipline = None, why
    found.ceiling_bytes = found.link_bps = None
    found.jitter_ms = {}


def _loaded(rtts: list[float], least: float) -> bool:
    """Whether idle echoes wait in others' queue: all of them, or they vary slowly, as jitter does not."""
    if len(rtts) < 20:
        return False
    ordered = sorted(rtts)
    much = _LOADED_S + 0.03 * least
    if ordered[0] - least > much:
        return True
    if quantile(ordered, 0.5) - least < much:
        return False
    mean = fmean(rtts)
    spread = sum((one - mean) ** 2 for one in rtts)
    together = sum((a - mean) * (b - mean) for a, b in pairwise(rtts))
    return together > 0.6 * spread


def _base_rtt(clocks: Clocks, forward: Direction, back: Direction, echo_bytes: int, loaded: bool) -> Quantity:
    if loaded:
        return Quantity.none("others keep a queue on the path, and it may never have been empty")
    ordered = sorted(clocks.rtts)
    least = ordered[min(1, len(ordered) - 1)]
    # What the echo itself needs on the slowest link of either way.
    own = sum(
        echo_bytes * 8 / rate
        for one in (forward, back)
        if (rate := one.link_bps or one.rate_bps.value) is not None and rate > 0
    )
    # A token bucket lets a small packet pass at once, and may be one of the links: the interval has both.
    # The value is that of a link where that leaves most of the time.
    value = least - own if own < least / 2 else least
    # Hosts only add; so does the jitter of a path that is never as fast as this twice.
    early = max(0.0, quantile(ordered, 0.05) - ordered[0])
    low = least - own - max(_LEAST_RTT_S, 0.003 * value, min(early, 0.01 * value))
    high = max(value + max(_HOST_S, 0.003 * value), least + _STAMP_S)
    return Quantity(value, max(0.0, low), high).scaled(1e3)


def direction(
    streams: dict[str, Stream], clocks: Clocks, mtu: int, *, back: bool, loaded: bool, idle_s: float
) -> Direction:
    """The estimates of one direction, from its stages. `idle_s`: the jitter of echoes on the idle path."""
    traces = {name: clocks.trace(one, back=back) for name, one in streams.items() if 0 in one.flows}
    if give_origin(list(traces.values()), mtu) is None:
        return _nothing(_NOT_RUN)
    found = _nothing("")
    noise_s = _idle(found, traces.get(BELOW), idle_s)
    fastest = rates.peak([traces[name] for name in (OVER, RAMP, TRAIN) if name in traces])
    found.link_bps = fastest or None
    full = rates.overload(traces[OVER]) if OVER in traces else None
    gentle = traces.get(GENTLE)
    if gentle is not None and _polices(full, gentle, found, noise_s, mtu):
        _policed(found, traces, mtu)
        return found
    if full is None or full.rate <= 0:
        found.link_bps = None
        if gentle is None and full is not None:
            return _nothing("nothing arrives of an overload")
        _gentle_alone(found, traces, noise_s, mtu)
        return found
    if GENTLE in traces or not _unqueued(full, mtu):
        found.link_bps = None
    found.policer_bps = Quantity.none(
        "no policer binds; one that would not bind at this rate, or with a bucket for all stages, is not seen"
    )
    found.bucket_bytes = found.policer_bps
    rate, sustained = _rate(traces, full, found, noise_s, mtu)
    if rate.value is not None and _all_arrives(full, noise_s, mtu):
        # Arrivals may be closer to each other than what was sent, by jitter.
        found.at_least_bps = min(full.rate, rates.offered(full.trace.only(lambda at: at >= full.first)))
        rate = Quantity.none(
            f"all that was sent arrived; it is at least {found.at_least_bps / 1e6:.4g} Mbit/s"
        )
    found.rate_bps = rate
    _others(found, traces, full, sustained, loaded)
    rate = found.rate_bps
    if loaded:
        found.jitter_ms = {}
    if rate.value is None:
        _not_steady(found, rate.why)
        return found
    if loaded:
        found.buffer_bytes = Quantity.none("others keep a queue on the path, of which the part is not known")
    else:
        _queue(found, traces, full, rate, noise_s, mtu)
        _after_pauses(found, streams)
    found.buffer_ms = found.buffer_bytes.scaled(8e3 / rate.value)
    return found


def _after_pauses(found: Direction, streams: dict[str, Stream]) -> None:
    """Takes back what a sender that could not run imitates.

    After a pause it sends what it owes in a burst, which drops packets at a short queue as an AQM does.
    """
    late_s = max((streams[name].late_s for name in (GENTLE, MILD) if name in streams), default=0.0)
    if found.discipline == kinds.AQM and late_s > LATE_S:
        why = f"the sender was kept waiting for {late_s * 1e3:.0f} ms, after which any queue drops as an AQM"
        found.discipline, found.why_no_discipline = None, why
        found.buffer_bytes = Quantity.none(why)


def _idle(found: Direction, below: Trace | None, idle_s: float) -> float:
    """What the stage below saturation shows; returns how long packets seem to wait without a queue, in s."""
    if below is None:
        return 0.0
    found.reordered, found.duplicates = behaviour.reordering(below), below.duplicates
    if behaviour.fills_a_queue(below, idle_s):
        found.loss = found.aggregation_ms = Quantity.none("the stage that shows it fills a queue")
        return idle_s
    found.loss, found.aggregation_ms = behaviour.loss(below), behaviour.aggregation_ms(below)
    found.jitter_ms = behaviour.jitter_ms(below)
    return found.jitter_ms.get("p90", 0.0) / 1e3


def _gentle_alone(found: Direction, traces: dict[str, Trace], noise_s: float, mtu: int) -> None:
    """The rate of a queue by the gentle stage, where that of the overload did not run."""
    found.why_no_discipline = _NOT_RUN
    gentle = traces.get(GENTLE)
    about = rates.overload(gentle).rate if gentle is not None else 0.0
    if gentle is None or about <= 0:
        return
    busy, seconds, error = rates.busy_rate(gentle, noise_s + max(3 * mtu * 8 / about, 0.0005))
    found.pieces = _pieces(traces, noise_s + 2 * mtu * 8 / about)
    if seconds > 0.5 and error < _STEADY and not _changes(found.pieces):
        found.rate_bps = _before_or_behind(busy, error, found.loss)
        found.pieces = []
    else:
        found.rate_bps = Quantity.none(f"no queue of one rate lasts, and {_NOT_RUN}")


def _all_arrives(full: rates.Overload, noise_s: float, mtu: int) -> bool:
    """Whether an overload was none: nothing is dropped, and nothing waits."""
    waits = sorted(wait for at in range(len(full.trace)) if (wait := full.trace.wait(at)) == wait)
    return full.loss < 0.05 and quantile(waits, 0.9) < 0.002 + noise_s + 3 * mtu * 8 / full.rate


def _polices(full: rates.Overload | None, gentle: Trace, found: Direction, noise_s: float, mtu: int) -> bool:
    """Whether packets are dropped, but none waits."""
    fat = gentle.flow(0)
    late = fat.sent[0] + 0.4 * (fat.sent[-1] - fat.sent[0])
    tail = fat.only(lambda at: fat.sent[at] > late)
    beside = rates.beside_lost(tail)
    if not beside:
        return False
    jitter = 3 * found.jitter_ms.get("p50", 0.0) / 1e3
    fastest = max(full.rate if full else 0.0, found.link_bps or 0.0, rates.offered(fat))
    short = max(0.75 * mtu * 8 / fastest, jitter, 0.0002)
    # A queue whose rate changes is empty for a while, but not when it drops.
    overflows = (
        full is not None and full.loss > _OVERFLOWS and bool(full.beside) and median(full.beside) >= 5 * short
    )
    most_lost = 1 - (1 - (found.loss.high or 0.0)) * (1 - _GENTLY)
    return median(beside) < short and not overflows and tail.lost / len(tail) > most_lost


def _unqueued(full: rates.Overload, mtu: int) -> bool:
    """Whether an overload drops packets and lets the others wait for less than one packet and a half."""
    waits = full.beside
    return full.loss > 0.1 and bool(waits) and median(waits) < 1.5 * mtu * 8 / max(full.rate, 1.0)


def _hardly_queued(full: rates.Overload, mtu: int) -> bool:
    """Whether waits may be a busy host's and no short queue's, in which none is far below the usual."""
    if not full.beside:
        return False
    waits, packet_s = sorted(full.beside), mtu * 8 / max(full.rate, 1.0)
    usual = quantile(waits, 0.5)
    return _unqueued(full, mtu) or (usual < 5 * packet_s and quantile(waits, 0.1) < 0.25 * usual)


def _policed(found: Direction, traces: dict[str, Trace], mtu: int) -> None:
    # From where a stage's losses are steady, the bucket is empty.
    parts = [rates.behind_bucket(traces[GENTLE])]
    if OVER in traces:
        over = rates.behind_bucket(traces[OVER])
        empties = over.loss > 0.5 * (1 - parts[0].rate / max(rates.offered(over.trace), parts[0].rate))
        parts += [over] if empties and over.rate > 0 else []
    rate = sum(one.rate * one.seconds for one in parts) / max(1e-9, sum(one.seconds for one in parts))
    error = max(0.005, min(0.2, max(parts, key=lambda one: one.seconds).error))
    found.policer_bps = _before_or_behind(rate, error, found.loss)
    found.rate_bps = found.policer_bps
    found.discipline = kinds.POLICER
    why = "a policer drops before the queue can fill"
    found.buffer_bytes = found.buffer_ms = Quantity.none(why)
    found.others_bps = Quantity.none("a policer hides what others send")
    found.bucket_bytes = _bucket(traces, parts, rate, found.loss, mtu)


def _bucket(
    traces: dict[str, Trace], parts: list[rates.Overload], rate: float, loss: Quantity, mtu: int
) -> Quantity:
    """A policer's bucket, by an overload that empties it, which is the second part."""
    if len(parts) < 2:
        return Quantity.none("no overload emptied a full bucket")
    over, begin = traces[OVER], traces[GENTLE].sent[-1]
    bucket = rates.intercept(over, rate)
    if bucket is None or bucket < 0:
        return Quantity.none("too few packets passed")
    # A packet waits for all of its tokens: in the mean, half of what comes between two is left.
    bucket += mtu / 2 * rate / max(rate, rates.offered(over))
    between = (time_bytes for one in traces.values() for time_bytes in one.arrivals())
    passed = sum(size for time, size in between if begin < time < over.sent[0])
    if bucket > 0.95 * (rate / 8 * (over.sent[0] - begin) - passed) or loss.why == behaviour.IN_BURSTS:
        return Quantity(bucket, bucket, None, "at least: the bucket may not have been full")
    half = max(1600.0, 0.06 * bucket)
    # What is lost behind the policer is missing.
    return Quantity(bucket, max(0.0, bucket - half), (bucket + half) / (1 - min(0.5, loss.high or 0.0)))


def _rate(
    traces: dict[str, Trace], full: rates.Overload, found: Direction, noise_s: float, mtu: int
) -> tuple[Quantity, float]:
    """The rate of a queue, and what a long stage of a little more got."""
    candidates = [(full.rate, full.error)]
    sustained = full.rate
    if (gentle := traces.get(GENTLE)) is not None:
        busy, seconds, error = rates.busy_rate(gentle, noise_s + max(3 * mtu * 8 / full.rate, 0.0005))
        if seconds > 0.5:
            candidates.insert(0, (busy, error))
            sustained = busy
    steady = max(one for one, _ in candidates) <= (1 + _STEADY) * min(one for one, _ in candidates)
    found.pieces = _pieces(traces, noise_s + 2 * mtu * 8 / full.rate)
    if gentle is not None:
        steady = steady and not rates.contradicts(gentle, candidates[0][0], noise_s + 3 * mtu * 8 / full.rate)
    unsure = candidates[0][1] > _STEADY and len(full.trace) > _ENOUGH
    if not steady or unsure or _changes(found.pieces):
        return Quantity.none("the rate changes, or others take part of it"), sustained
    value, error = candidates[0]
    error = max(error, *(abs(one / value - 1) for one, _ in candidates))
    lost = found.loss
    if lost.value and lost.value * len(traces[BELOW]) > 5:
        over, since = traces[OVER], full.trace.sent[full.first]
        busy_trace = over.only(lambda at: over.sent[at] >= since)
        slot = rates.slot_rate(busy_trace, full.rate, mtu)
        if slot is None and gentle is not None:
            slot = rates.slot_rate(gentle, value, mtu)
        if slot is not None:
            return Quantity.around(slot[0], slot[0] * max(slot[1], 0.004)), sustained
        return _before_or_behind(value, error, lost), sustained
    return Quantity.around(value, value * error), sustained


def _before_or_behind(arriving: float, error: float, loss: Quantity) -> Quantity:
    """A rate from that of arrivals, where nobody knows whether random loss is before the link or behind."""
    if loss.value is None or loss.high is None or loss.value == 0 or loss.value > 0.5:
        return Quantity.around(arriving, arriving * error)
    high = arriving / (1 - min(loss.high, 0.9)) * (1 + error)
    return Quantity(arriving / (1 - loss.value / 2), arriving * (1 - error), high)


def _pieces(traces: dict[str, Trace], above: float) -> list[tuple[float, float, float]]:
    """Stretches of constant rate of the stages that keep the link busy."""
    found = []
    for name in (FOLLOW,) if FOLLOW in traces else (GENTLE, OVER):
        if name in traces:
            found += rates.pieces(traces[name], above)
    return found


def _changes(pieces: list[tuple[float, float, float]]) -> bool:
    """Whether long pieces differ."""
    long = [bps for begin, end, bps in pieces if end - begin > 0.15]
    return bool(long) and max(long) > 1.15 * min(long)


def _others(
    found: Direction, traces: dict[str, Trace], full: rates.Overload, sustained: float, loaded: bool
) -> None:
    """How much of the rate others take, at least."""
    train = rates.train_rate(traces[TRAIN]) if TRAIN in traces else 0.0
    if loaded:
        # Whatever a train has between its packets, it is little of theirs.
        most = max(train, full.rate, sustained)
        found.others_bps = Quantity(max(0.0, most - sustained), 0.0, most, _DISPLACED)
    elif (rate := found.rate_bps).value is not None:
        error = _OTHERS + (found.loss.high or 0.0)
        if TRAIN in traces:
            error += rates.relative_error(traces[TRAIN].arrivals())
        if error < train / sustained - 1 < _BUCKET:
            found.others_bps = replace(Quantity.around(train - sustained, error * train), why=_DISPLACED)
            found.rate_bps = replace(rate, high=max(rate.high or 0.0, train * (1 + error)))
        else:
            found.others_bps = Quantity(0.0, why=f"none is seen {_DISPLACED}")
    elif found.at_least_bps is not None:
        found.others_bps = Quantity.none("the path was never full")
    else:
        found.others_bps = Quantity.none("a rate that changes looks like others' traffic")


def _not_steady(found: Direction, why: str) -> None:
    found.buffer_bytes = found.buffer_ms = Quantity.none(why)
    found.why_no_discipline = why


def _queue(
    found: Direction, traces: dict[str, Trace], full: rates.Overload, rate: Quantity, noise_s: float, mtu: int
) -> None:
    """The discipline and, where it shows, what the queue holds."""
    assert rate.value is not None
    jitter = (found.jitter_ms.get("p50", 0.0) / 1e3, noise_s)
    buffer = rates.buffer(full, rate, jitter, mtu)
    waiting = median(full.beside) if full.beside else None
    if GENTLE not in traces:
        found.why_no_discipline = _NOT_RUN
        found.buffer_bytes = (
            Quantity.none("packets are dropped without a queue, as by a policer; the full measurement tells")
            if _unqueued(full, mtu)
            else buffer
        )
        return
    loss_high = found.loss.high or 0.0
    shared = (rate.value, noise_s, loss_high, mtu, waiting or math.inf)
    gentle = kinds.pressure(traces[GENTLE], *shared)
    mild = kinds.pressure(traces[MILD], *shared, gentle.top_s) if MILD in traces else None
    full_beside = kinds.beside(traces[OVER], rate.value, noise_s, mtu)
    kind = kinds.kind(gentle, mild, waiting, found.loss.value or 0.0, rate.value, full_beside)
    if kind in (kinds.TAIL, kinds.AQM) and _hardly_queued(full, mtu):
        found.why_no_discipline = (
            "packets are dropped and hardly wait: by a policer, or a queue of one packet"
        )
        buffer = Quantity.none(found.why_no_discipline)
    elif kind == kinds.TAIL and full.loss < 0.1:
        found.why_no_discipline = buffer.why
    else:
        found.discipline = kind
    found.ceiling_bytes = None if waiting is None else waiting * rate.value / 8
    found.buffer_bytes = buffer
    if kind in (kinds.RED, kinds.DUAL, kinds.STEP, kinds.FAIR):
        found.buffer_bytes = Quantity.none(f"{kind} drops before its limit, or elsewhere than at its end")
    elif kind == kinds.AQM and buffer.value is not None:
        found.buffer_bytes = Quantity.none("an AQM may drop before its limit")
    elif kind == kinds.TAIL and buffer.value is not None:
        fat = traces[GENTLE].flow(0)
        begin = fat.sent[0] + 0.4 * (fat.sent[-1] - fat.sent[0])
        first = next((at for at, time in enumerate(fat.sent) if time > begin), 0)
        beside = sorted(rates.beside_lost(fat, first))
        if len(beside) > 20 and 1 - _arrived(fat, first) > 0.05:
            # Of two queues in a row, a gentle overload fills the slower one's only.
            inner = quantile(beside, 0.75) * rate.value / 8 + mtu
            if buffer.value > 1.2 * inner + 3 * mtu:
                found.buffer_bytes = Quantity.around(inner, max(mtu, 0.05 * inner), least=mtu)


def _arrived(trace: Trace, first: int) -> float:
    return sum(trace.ok(at) for at in range(first, len(trace))) / max(1, len(trace) - first)


def _nothing(why: str) -> Direction:
    none = Quantity.none(why or _NOT_RUN)
    return Direction(none, none, none, none, none, none, none, none, none, None, why or "")
