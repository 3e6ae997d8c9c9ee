"""Which discipline rules the queue: by whom it lets wait, and when it drops or marks.

* Fair queueing and the dual queue do not let a thin flow wait beside a fat one: any, or that of L4S.
* Other active queue management drops or marks while the queue is far from full: more than random loss does,
  and, in a saturated run, before the link: what was offered is neither carried nor waiting.
* CoDel's drops follow its law: after 1/sqrt(n) intervals, as Linux computes that (RFC 8289, 5.4).
* RED stops at its threshold in any overload; PIE first lets a hard one through (RFC 8033, 4.2).

It starts from states that remember nothing: the gentle overload comes before the hard one.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

from fullpipe.probe.analysis.quantity import median, quantile
from fullpipe.probe.analysis.traces import Trace

# Flows of fair queueing and flows that take different links do not wait for each other, one like the other.
TAIL, FAIR, DUAL = "tail drop", "fair queueing or parallel links", "dual queue"
STEP, AQM = "a marking threshold", "an AQM"
CODEL, PIE, RED, POLICER = "CoDel", "PIE", "RED", "policer"
# Below these, the drops of CoDel, PIE and RED cannot be told apart.
_LEAST_QUEUE_S, _LEAST_BPS = 0.040, 6e6
# A flow that waits for less than this part of what the fat one does has a queue of its own.
_OWN_QUEUE = 0.4
_LEAST_THIN = 8
# Fewer marks may be somebody else's.
_MARKED = 0.01


@dataclass(frozen=True)
class Law:
    """How well drops and marks follow CoDel's law."""

    share: float = 0.0
    interval_s: float = 0.0
    # Standard deviations above chance, for the interval that fits best.
    score: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether that is CoDel. Of 15 random times, one in twenty passes."""
        return self.share > 0.75 and self.score > 5


@dataclass(frozen=True)
class Pressure:
    """What a stage of a little more than the rate shows."""

    # The median wait of thin flows relative to the fat one's; None if too few were sent into a queue.
    thin: float | None
    l4s: float | None
    # The share of marked packets of those that could be, and the share of lost ones of those that could not,
    # while the queue was far from full.
    marked: float
    early_dropped: float | None
    # Whether more was dropped or marked early than random loss explains.
    early: bool
    law: Law
    # The highest wait, but no higher than in a full queue, and the wait at the end.
    top_s: float
    late_s: float
    # Packets lost before the link, and all lost ones, while the link was busy; None if it never was.
    balance: tuple[float, int] | None


def pressure(
    trace: Trace,
    rate: float,
    noise_s: float,
    loss_high: float,
    mtu: int,
    full_s: float,
    top_s: float | None = None,
) -> Pressure:
    """What the stage shows. `full_s`: the wait in a full queue; `top_s`: the highest of an earlier stage.

    A higher wait than in a full queue is that of a host that stood still.
    """
    fat, thin = trace.flow(0), trace.flow(1)
    slot = mtu * 8 / rate
    came = [at for at in range(len(fat)) if fat.ok(at)]
    if len(came) < 50:
        return Pressure(None, None, 0.0, None, False, Law(), 0.0, 0.0, None)
    sent = [fat.sent[at] for at in came]
    waits = [fat.wait(at) for at in came]
    own_top = min(quantile(sorted(waits), 0.995), full_s)
    top = top_s or own_top
    # The waits of lost packets are those of their neighbours.
    wait = [_between(sent, waits, time) for time in fat.sent]
    hit = [not fat.ok(at) or fat.marks[at] == 3 for at in range(len(fat))]
    low = [
        at
        for at, one in enumerate(wait)
        if noise_s + 2 * slot < one < min(0.75 * top, top - noise_s - 2.5 * slot)
    ]
    expected = len(low) * loss_high
    plain = [at for at in low if fat.ecn[at] != 2]
    capable = [at for at in came if fat.ecn[at] == 2]
    late = fat.sent[-1] - 0.3 * (fat.sent[-1] - fat.sent[0])
    return Pressure(
        thin=_relative(thin, 0, sent, waits, slot, noise_s, mtu),
        l4s=_relative(thin, 1, sent, waits, slot, noise_s, mtu),
        marked=sum(fat.marks[at] == 3 for at in capable) / max(1, len(capable)),
        early_dropped=sum(not fat.ok(at) for at in plain) / len(plain) if plain else None,
        early=sum(hit[at] for at in low) > expected + 3 * math.sqrt(expected) + 3,
        law=_follows(_departures(fat, sent, came, hit, wait, own_top), max(1.6 * slot, 0.0006) + noise_s),
        top_s=own_top,
        late_s=median([w for time, w in zip(sent, waits, strict=True) if time > late]),
        balance=_balance(trace, rate, noise_s + 2 * slot, mtu),
    )


def beside(trace: Trace, rate: float, noise_s: float, mtu: int) -> tuple[float | None, float | None]:
    """The median waits of the thin flow's packets relative to the fat one's: plain ones, and those of L4S."""
    fat, thin = trace.flow(0), trace.flow(1)
    came = [at for at in range(len(fat)) if fat.ok(at)]
    sent, waits = [fat.sent[at] for at in came], [fat.wait(at) for at in came]
    plain, l4s = (_relative(thin, ecn, sent, waits, mtu * 8 / rate, noise_s, mtu) for ecn in (0, 1))
    return plain, l4s


def kind(
    gentle: Pressure,
    mild: Pressure | None,
    full_wait_s: float | None,
    random_loss: float,
    rate: float,
    full_beside: tuple[float | None, float | None] = (None, None),
) -> str:
    """The discipline of a queue that is no policer, on a steady path of one's own.

    `full_beside`: `beside` of the overload, whose queue is long on a slow link, too.
    """
    both = [one for one in (gentle, mild) if one is not None]
    if any(one is not None and one < _OWN_QUEUE for one in (full_beside[0], *(one.thin for one in both))):
        return FAIR
    pairs = [full_beside, *((one.thin, one.l4s) for one in both)]
    if any(plain is not None and l4s is not None and l4s < _OWN_QUEUE for plain, l4s in pairs):
        return DUAL
    drops = gentle.early_dropped
    if gentle.marked > 0.3 and drops is not None and drops <= 3 * random_loss + 0.003:
        return STEP
    before_link = (
        mild is not None
        and mild.balance is not None
        and mild.balance[0] > 6 + 0.1 * mild.balance[1]
        and mild.top_s < 0.85 * gentle.top_s
    )
    # A queue that only drops at its tail marks nothing.
    marks = any(one.marked > _MARKED for one in both)
    if not before_link and not marks and not any(one.early for one in both):
        return TAIL
    if gentle.law.fits and gentle.top_s > _LEAST_QUEUE_S / 2:
        return CODEL
    if full_wait_s is None or max(full_wait_s, gentle.top_s) < _LEAST_QUEUE_S or rate < _LEAST_BPS:
        return AQM
    ratio = full_wait_s / max(gentle.late_s, 1e-4)
    if gentle.law.score > 3.5 or 1.3 < ratio < 2.2:
        return AQM
    return RED if ratio < 1.6 else PIE


def _between(times: list[float], values: list[float], time: float) -> float:
    """A value at a time, on the line between its neighbours."""
    at = bisect_left(times, time)
    if at == 0 or at == len(times):
        return values[min(at, len(times) - 1)]
    part = (time - times[at - 1]) / max(1e-12, times[at] - times[at - 1])
    return values[at - 1] + part * (values[at] - values[at - 1])


def _relative(
    thin: Trace, ecn: int, sent: list[float], waits: list[float], slot: float, noise_s: float, mtu: int
) -> float | None:
    """The median wait of a thin flow, relative to that of the fat one at the same times."""
    found = []
    for at in range(len(thin)):
        beside = _between(sent, waits, thin.sent[at])
        if thin.ok(at) and thin.ecn[at] == ecn and beside > max(0.002, 2 * slot) + noise_s:
            # A small packet is faster by what it needs less on the link.
            found.append((thin.wait(at) + slot * (1 - thin.sizes[at] / mtu)) / beside)
    return median(found) if len(found) > _LEAST_THIN else None


def _departures(
    fat: Trace, sent: list[float], came: list[int], hit: list[bool], wait: list[float], top: float
) -> list[float]:
    """When packets that were dropped or marked left, or would have, before the queue was full."""
    ceiling = 0.93 * min(quantile(sorted(wait), 0.995), top)
    left = [fat.arrived[at] for at in came]
    full = next((at for at, one in enumerate(wait) if one > ceiling), len(wait))
    chosen = [at for at in range(full) if hit[at]]
    if len(chosen) < 6:
        chosen = [at for at, one in enumerate(wait) if hit[at] and one <= ceiling]
    return sorted(_between(sent, left, fat.sent[at]) for at in chosen)


def _law(drops: int) -> list[float]:
    """Times of CoDel's drops after the first, in intervals, with Linux's one Newton step a drop."""
    times, at, root = [], 0.0, 1.0
    for count in range(1, drops + 1):
        if count > 1:
            root *= (3 - count * root * root) / 2
        at += root
        times.append(at)
    return times


_LAW = _law(12)
# From 20 ms to 400 ms in steps of 0.4 %.
_INTERVALS = [0.02 * 1.004**step for step in range(751)]


def _follows(times: list[float], tolerance: float) -> Law:
    """The interval with which drops fit CoDel's law best."""
    best = Law()
    if len(times) < 6:
        return best
    for begin in times[: min(8, len(times) - 4)]:
        for interval in _INTERVALS:
            if interval < 12 * tolerance:
                continue
            due = [begin + interval * one for one in _LAW if begin + interval * one < times[-1] + tolerance]
            if len(due) < 5:
                break
            near = sum(_close(times, one, tolerance) for one in due)
            inside = bisect_left(times, due[-1] + tolerance) - bisect_left(times, begin + tolerance)
            chance = 1 - math.exp(-inside * 2 * tolerance / (due[-1] - begin))
            expected = len(due) * chance
            score = (near - expected) / math.sqrt(max(1e-9, expected * (1 - chance)))
            if near > 0.5 * len(due) and score > best.score:
                best = Law(near / len(due), interval, score)
    return best


def _close(times: list[float], time: float, tolerance: float) -> bool:
    at = bisect_left(times, time - tolerance)
    return at < len(times) and times[at] < time + tolerance


def _balance(trace: Trace, rate: float, above: float, mtu: int) -> tuple[float, int] | None:
    """Of the longest stretch in which the link was busy: packets lost before it, and all that were lost.

    The queue grows by what comes and shrinks by what leaves; what is lost behind it does not show in it.
    """
    full = [at for at in range(len(trace)) if trace.ok(at) and trace.sizes[at] == mtu]
    begin, best, start = 0, (0, 0), None
    for place, at in enumerate([*full, -1]):
        busy = at >= 0 and trace.wait(at) > above
        if busy and start is None:
            start = place
        elif not busy and start is not None:
            if place - start > best[1] - best[0]:
                best = (start, place)
            start = None
    begin, end = best
    if end - begin < 50:
        return None
    some = max(1, min(15, (end - begin) // 10))
    waits, sent = [trace.wait(at) for at in full], [trace.sent[at] for at in full]
    grown = median(waits[end - some : end]) - median(waits[begin : begin + some])
    span = median(sent[end - some : end]) - median(sent[begin : begin + some])
    first, last = full[begin + some // 2], full[end - 1 - some // 2]
    offered = sum(trace.sizes[first:last]) * 8 / rate
    lost = sum(not trace.ok(at) for at in range(first, last))
    return (offered - span - grown) * rate / 8 / mtu, lost
