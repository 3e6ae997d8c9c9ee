"""The experiments, in their order, which matters: disciplines and buckets remember.

1. echoes: base RTT, clocks, whether others load the path.
2. `train`: 64 full packets at once: the rate, also beside others.
3. `ramp`: a rate that doubles until packets are late or lost: a first rate that a full bucket cannot fake.
4. `gentle`: 1.1 x the rate beside two thin flows: rate, policer, CoDel's law, queues of flows.
5. `below`: 0.55 x the rate in small packets: random loss, jitter, reordering, aggregation. If these fill a
   queue, because each packet has a cost of its own: again, with full packets.
6. `mild`: 1.015 x the rate from a half-full queue: RED and PIE.
7. `over`: twice the rate beside thin flows, until 0.4 s of overflow: buffer, rate, flows' own queues.
8. `follow`, if the rate changes: 2.5 x the rate.

If the rate falls, a token bucket may have run empty. Then `gentle` is sent again at 1.2 x the lower rate,
after a burst that empties the refilled bucket. `mild` is skipped if packets do not wait. `over` follows a
rest that refills the bucket; it has 0.95 x the first rate and no thin flows, so that the link's queue stays
empty.

The short form has the first three and the overload. Where the bytes are too few for all, the overload has its
part first, and the others are shorter. The other direction has as much of this as the budget allows. Last
come TCP flows, which validate the model.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fullpipe.probe.analysis import behaviour, rates
from fullpipe.probe.analysis.estimate import (
    BELOW,
    FOLLOW,
    GENTLE,
    MILD,
    OVER,
    RAMP,
    TRAIN,
    idle_jitter_s,
)
from fullpipe.probe.analysis.quantity import median
from fullpipe.probe.analysis.traces import Clocks, Trace, give_origin
from fullpipe.probe.client import WHOLE, Client, Piece, Rule
from fullpipe.probe.control import Refused
from fullpipe.probe.stamps import LOST, Stream

_SMALL_BYTES = 200
_TRAIN_PACKETS = 64
_SLOWEST_BPS = 0.5e6
_MOST_PPS = 6000
_LINGER_S, _SHORT_LINGER_S, _LINGER_PACKETS = 0.4, 0.2, 60
# Lost packets of `below` that are enough.
_ENOUGH_LOST = 120
# A short form takes no more; and of the budget of a full one, `over` and the flows.
_SHORT_OVER_S, _OVER_S, _FLOW_S = 1.6, 4.0, 4.0
_FOLLOW_S = 5.0
# A rate that falls below this part of what it was before has had a bucket of tokens, or changes.
_FALLEN = 0.8
# What of the highest rate thin flows leave.
_BESIDE = 0.98
# The longest stage that empties a bucket; what it leaves for the way back in short, and in full; and what the
# stage before it leaves for it.
_LONGEST_S, _BACK_S, _FULL_BACK_S, _AFTER_S = 12.0, 5.0, 20.0, 9.0
# Rates of two stages that differ by a larger factor are of a path that changes.
_STEADY = 1.06
# Seconds that the stages need of a direction in full, and what a budget must have for both.
_BOTH_FULL_S = 45.0
# Seconds of the budget that are reserved for fetching a stage's stamps, in addition to some round trips.
_FETCH_S = 1.0
# Bytes that stages take, in seconds at the rate: `gentle` and `mild` together, and what `over` needs.
_GENTLE_AND_MILD_S, _OVER_BYTES_S = 7.4, 3.0
# With fewer bytes for it, `over` has half of all.
_LEAST_PART = 0.5


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    short: bool = False
    # Controllers of the TCP flows.
    controllers: tuple[str, ...] = ("cubic",)


def measure(client: Client, plan: Plan, say: Callable[[str], None] = lambda _line: None) -> None:
    """All stages; the client has what came of them. A stage that the budget has no room for is noted."""
    client.echo(40, 0.005)
    client.echo(40, 0.004 if plan.short else 0.010)
    client.found.idle = len(client.found.echoes)
    client.find_mtu()
    both = plan.short or client.limits.seconds >= _BOTH_FULL_S
    try:
        _Way(client, "forward", say, _FULL_BACK_S if both else _BACK_S).run(short=plan.short)
        _Way(client, "back", say).run(short=not both or plan.short, loss=not plan.short)
        if not plan.short:
            _flows(client, plan.controllers, say)
    except _OutOfBudget as error:
        client.found.notes.append(f"the measurement ended early: {error}")
    except Refused as error:
        # What was measured until now is true, all the same.
        if OVER not in client.found.forward and GENTLE not in client.found.forward:
            raise
        client.found.notes.append(f"the measurement ended early: {error}")
    client.found.seconds, client.found.bytes = client.seconds, client.bytes


class _OutOfBudget(Exception):
    """Bytes or time are used up."""


def constant(rate: float, seconds: float, size: int, *, ecn: bool = False, thin_s: float = 0.0) -> Piece:
    """A piece of a constant rate."""
    packets = max(2, int(rate * seconds / 8 / size))
    return (rate, packets, size, ecn, int(thin_s * 1e9))


class _Way:
    """The stages of one direction."""

    def __init__(self, client: Client, way: str, say: Callable[[str], None], reserve_s: float = 0.0) -> None:
        """`reserve_s`: what of the budget is for later."""
        self.client, self.way, self.say, self.reserve_s = client, way, say, reserve_s
        self.mtu = client.found.mtu
        self.fast = client.fastest[way]
        self.jitter_s = idle_jitter_s(client.found)
        self.late_s = 0.012 + 2 * self.jitter_s
        # When the last packet of the last stage was sent, and that after which a bucket was empty.
        self._ended_s = self._emptied_s = 0.0

    def run(self, *, short: bool, loss: bool = False) -> None:
        """The stages that are wanted; `loss`: also in the short form that of loss and jitter."""
        rough = self._first_rate()
        self.say(f"{self.way}: about {rough / 1e6:.3g} Mbit/s")
        if short:
            self._over(rough, _SHORT_OVER_S, _SHORT_LINGER_S)
            if loss:
                self._below(rough, 2.0)
            return
        # The parts of the default budget that the stages have; a smaller one shortens them.
        scale = min(1.0, self.client.limits.seconds / 30, self._affordable(rough))
        gentle = self._send(GENTLE, [self._beside(1.1 * rough, 3.0 * scale)])
        sustained, waits = _late_rate(gentle) or rough, True
        if sustained < _FALLEN * rough:
            sustained, waits = self._emptied(rough, sustained, 3.0 * scale)
        lost = self._below(sustained, 4.0 * scale)
        if waits:
            # What is lost at random is no part of what arrives.
            mild = _late_rate(self._mild(sustained / (1 - lost), 4.0 * scale))
            self._emptied_s = self._ended_s
            if sustained >= _FALLEN * rough and 0 < mild < _FALLEN * sustained:
                # The bucket was so large that the gentle stage did not empty it.
                sustained, waits = self._emptied(rough, mild, 3.0 * scale)
                if self._left_s() > _AFTER_S:
                    self._below(sustained, 4.0 * scale)
        if sustained < _FALLEN * rough:
            # What the train has taken may not have come back.
            passed = rates.intercept(_by_one_clock(gentle), sustained) or 0.0
            over = self._bucket(rough, sustained, _TRAIN_PACKETS * self.mtu + max(0.0, passed))
        else:
            time.sleep(0.5)
            over = self._over(rough, _OVER_S)
        if waits and self._unsteady(over):
            fast = min(2.5 * max(over, sustained, rough), self.fast)
            self._send(FOLLOW, [constant(fast, _FOLLOW_S, self.mtu)])

    def _affordable(self, rate: float) -> float:
        """The part of the stages before `over` that leaves it enough bytes."""
        left_s = 8 * self.client.bytes_left(self.way) / rate
        over_s = min(_OVER_BYTES_S, _LEAST_PART * left_s)
        return (left_s - over_s) / (_GENTLE_AND_MILD_S + 4.0 * _small(rate) / rate)

    def _send(self, name: str, pieces: Sequence[Piece], rule: Rule = WHOLE, *, again: bool = True) -> Stream:
        """One stage, cut to the bytes that are left; `again`: repeated if the sender was late.

        Raises `_OutOfBudget` if nothing is left.
        """
        left_s = self._left_s()
        # Reports, echoes and retransmissions need some, too.
        room, fitting = 0.97 * self.client.bytes_left(self.way), list[Piece]()
        for rate, packets, size, ecn, thin_ns in pieces:
            count = min(packets, int(room / size), int(max(0.0, left_s) * rate / 8 / size))
            if count < 2:
                break
            fitting.append((rate, count, size, ecn, thin_ns))
            room -= count * size
            left_s -= count * size * 8 / rate
        if not fitting:
            self.client.found.skipped[f"{self.way} {name}"] = "no bytes or no time were left"
            raise _OutOfBudget(f"no bytes or no time were left for the stage {name} ({self.way})")
        send = self.client.forward if self.way == "forward" else self.client.back
        began_s = self.client.seconds
        made = send(name, fitting, rule, again=again)
        self._ended_s = began_s + ((made.sent_ns[-1] - made.sent_ns[0]) / 1e9 if len(made) else 0.0)
        return made

    def _first_rate(self) -> float:
        train = self._send(TRAIN, [constant(self.fast, _TRAIN_PACKETS * self.mtu * 8 / self.fast, self.mtu)])
        step_s = max(0.04, 0.6 * self.client.rtt_s)
        pieces, rate = [], _SLOWEST_BPS
        while rate < 2 * self.fast:
            packets = max(6, int(min(rate, self.fast) * step_s / 8 / self.mtu))
            pieces.append((min(rate, self.fast), packets, self.mtu, False, 0))
            rate *= 2
        ramp = self._send(RAMP, pieces, ("full", self.late_s, 0.0))
        rough = _highest(ramp)
        if self._loaded():
            rough = max(rough, rates.train_rate(_by_one_clock(train)))
        if rough <= 0:
            raise Refused(f"nothing of the first packets arrived ({self.way})")
        return min(rough, self.fast)

    def _loaded(self) -> bool:
        return self.jitter_s > 0.004

    def _emptied(self, rough: float, about: float, seconds: float) -> tuple[float, bool]:
        """The gentle stage again where a bucket has run empty: it begins with what has come into it since.

        Returns the rate, and whether packets wait.
        """
        fill_s = self.client.seconds - self._ended_s
        first_s = min(2.0, 0.1 + 1.5 * fill_s * about / (1.1 * rough - about))
        # Some time is left for the stages that follow.
        seconds = min(seconds, max(1.0, self._left_s() - first_s - _AFTER_S))
        # What the analysis looks at is behind the first two fifths.
        seconds = max(seconds, 1.5 * first_s)
        first = constant(1.1 * rough, first_s, self.mtu, ecn=True)
        found = self._send(GENTLE, [first, self._beside(1.2 * about, seconds)])
        self._emptied_s = self._ended_s
        delays = _by_one_clock(found).flow(0).delays()
        wait_s = median(delays[len(delays) // 2 :]) - min(delays) if delays else 0.0
        return _late_rate(found) or about, wait_s > 3 * (self.mtu * 8 / rough + self.jitter_s)

    def _bucket(self, rough: float, sustained: float, bucket: float) -> float:
        """An overload, when the bucket of at most so many bytes is full, that fills no queue of the link.

        Returns the rate of its end.
        """
        rate = 0.95 * rough
        seconds = 1.5 * bucket * 8 / (rate - sustained) + 2.0
        seconds = max(1.0, min(_LONGEST_S, seconds, self._left_s() - self.reserve_s - 1.0))
        # Since it was empty, about half of what is sustained was sent.
        fill_s = self.client.seconds - self._emptied_s
        rest_s = min(1.2 * bucket * 8 / sustained - 0.5 * fill_s, self._left_s() - seconds - self.reserve_s)
        time.sleep(max(1.0, rest_s))
        # Not again if the sender was late: the bucket would be empty.
        piece, rule = constant(rate, seconds, self.mtu), self._overflow(rate / sustained, sustained)
        return _late_rate(self._send(OVER, [piece], rule, again=False))

    def _left_s(self) -> float:
        """How long stages may still take."""
        return self.client.limits.seconds - self.client.seconds - _FETCH_S - 6 * self.client.rtt_s

    def _unsteady(self, over: float) -> bool:
        """Whether the link's rate changed: between stages, or within the gentle one."""
        gentle = _by_one_clock(getattr(self.client.found, self.way)[GENTLE]).arrivals()
        late = gentle[2 * len(gentle) // 5 :]
        step = len(late) // 4
        if step < 10:
            return False
        found = [rates.carried(late[at : at + step + 1]) for at in range(0, 4 * step, step)]
        return max(*found, over) > _STEADY * min(*found, over)

    def _beside(self, rate: float, seconds: float) -> Piece:
        """A piece with thin flows beside it, which take 0.6 % of the rate at most."""
        rate = min(rate, _BESIDE * self.fast)
        thin_s = max(0.010, 100 * 8 / 0.006 / rate)
        return constant(rate, seconds, self.mtu, ecn=True, thin_s=thin_s)

    def _mild(self, rate: float, seconds: float) -> Stream:
        gentle = _by_one_clock(getattr(self.client.found, self.way)[GENTLE]).flow(0)
        delays = sorted(gentle.delays())
        fill_s = min(0.3, 0.4 * (median(delays) - delays[0])) if delays else 0.0
        first = [constant(2 * rate, fill_s, self.mtu, ecn=True)] if fill_s > 0 else []
        return self._send(MILD, [*first, self._beside(1.015 * rate, seconds)])

    def _below(self, rate: float, seconds: float) -> float:
        """Returns the lost part, at most half."""
        # What PIE and the dual queue drop at random decays for a while.
        time.sleep(1.0)
        rule = ("missing", _ENOUGH_LOST, 0.0)
        found = self._send(BELOW, [constant(_small(rate), seconds, _SMALL_BYTES)], rule)
        if self._fills():
            self.client.found.notes.append(
                f"{self.way} {BELOW}: repeated with full packets, because small ones fill a queue"
            )
            self.client.drain()
            found = self._send(BELOW, [constant(0.5 * rate, seconds, self.mtu)], rule)
        return min(0.5, found.arrived_ns.count(LOST) / max(1, len(found)))

    def _fills(self) -> bool:
        """Whether the packets of `below` waited for each other."""
        clocks = Clocks(self.client.found.echoes)
        streams = getattr(self.client.found, self.way)
        traces = {name: clocks.trace(one, back=self.way == "back") for name, one in streams.items()}
        if give_origin(list(traces.values()), self.mtu) is None:
            return False
        return behaviour.fills_a_queue(traces[BELOW], self.jitter_s)

    def _over(self, rough: float, seconds: float, linger_s: float = _LINGER_S) -> float:
        factor = min(2.0, self.fast / rough)
        # Short enough for a slow link to carry several packets of the thin flows.
        thin_s = max(0.010, 100 * 8 / 0.02 / rough)
        piece = constant(rough * factor, seconds, self.mtu, thin_s=thin_s)
        found = self._send(OVER, [piece], self._overflow(factor, rough, linger_s))
        return _late_rate(found)

    @staticmethod
    def _overflow(factor: float, rate: float, linger_s: float = _LINGER_S) -> Rule:
        """Until the queue has overflowed for a while, and for some packets."""
        linger_s = min(2.0, linger_s + _LINGER_PACKETS * 12_000 / rate)
        return ("overflow", max(0.05, 0.5 * (1 - 1 / factor)), linger_s)


def _small(rate: float) -> float:
    """The rate of small packets below saturation, in bits a second."""
    return min(0.55 * rate, _MOST_PPS * _SMALL_BYTES * 8)


def _by_one_clock(stream: Stream) -> Trace:
    """A stage by the clock of the receiver, but for an offset: enough for rates and waits while it lasts."""
    came = [stamp for stamp in stream.arrived_ns if stamp != LOST]
    zero = came[0] if came else 0
    here = stream.sent_ns[0] if len(stream) else 0
    return Trace(
        [(stamp - here) / 1e9 for stamp in stream.sent_ns],
        [float("nan") if stamp == LOST else (stamp - zero) / 1e9 for stamp in stream.arrived_ns],
        list(stream.sizes),
        list(stream.flows),
        list(stream.ecn),
        list(stream.marks),
    )


def _highest(stream: Stream, window_s: float = 0.03, least: int = 10) -> float:
    """The highest rate of arrivals over windows."""
    arrivals = _by_one_clock(stream).arrivals()
    best, end, bits = 0.0, 0, 0
    for begin in range(len(arrivals)):
        while end + 1 < len(arrivals) and (
            arrivals[end][0] < arrivals[begin][0] + window_s or end < begin + least
        ):
            end += 1
            bits += arrivals[end][1] * 8
        if end < begin + least or arrivals[end][0] < arrivals[begin][0] + window_s:
            break
        best = max(best, bits / (arrivals[end][0] - arrivals[begin][0]))
        bits -= arrivals[begin + 1][1] * 8
    return best or rates.carried(arrivals)


def _late_rate(stream: Stream) -> float:
    """The rate of the last two fifths of the arrivals' time."""
    arrivals = _by_one_clock(stream).arrivals()
    if len(arrivals) < 3:
        return 0.0
    begin = arrivals[0][0] + 0.6 * (arrivals[-1][0] - arrivals[0][0])
    return rates.carried([one for one in arrivals if one[0] >= begin])


def _flows(client: Client, controllers: Sequence[str], say: Callable[[str], None]) -> None:
    """TCP flows, in both directions."""
    count = 2 * len(controllers)
    # Each begins on an empty path, after a handshake.
    left = client.limits.seconds - client.seconds - _FETCH_S - count * (0.3 + 4 * client.rtt_s)
    seconds = min(_FLOW_S, left / count if count else 0.0)
    if seconds < 1:
        client.found.skipped["TCP flows"] = "no time was left"
        return
    for controller in controllers:
        for flow in (client.flow_up, client.flow_down):
            client.drain()
            try:
                found = flow(controller, seconds)
            except Refused as error:
                client.found.notes.append(str(error))
                continue
            client.found.flows.append(found)
            say(f"TCP {controller} {found.direction}: {found.goodput_bps / 1e6:.3g} Mbit/s")
