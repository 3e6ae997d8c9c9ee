"""What a case plays on: one flow on a path, advanced in small steps, seen from outside.

A `Stage` drives a `Bed`, which a world provides. It sees what any controller shows: window, rate, phase,
flight, estimate.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from fullpipe._native import Cancelled
from fullpipe.conformance.case import NotApplicableError, NotReachedError
from fullpipe.measures.run import Runs
from fullpipe.scenario.controllers import Chosen

STARTUP, DRAIN = "startup", "drain"
UP, DOWN = "probe_bw_up", "probe_bw_down"
CRUISE, REFILL, PROBE_RTT = "probe_bw_cruise", "probe_bw_refill", "probe_rtt"
PROBE_BW = (UP, DOWN, CRUISE, REFILL)

# Steps between two looks at whether anybody still waits, and between two answers of a program.
_MOST_STEPS = 1000
# The size of a packet on the wire: what paths, queues and losses count.
PACKET_BYTES = 1500
# Steps in a round trip of the empty path.
_STEPS = 20
# What the draft's pacing margin of 1 % leaves of a rate (section 2.5, BBR.PacingMarginPercent).
_LESS_MARGIN = 0.99


class Seen(NamedTuple):
    """What a bed shows of its flow at one moment: the attributes of `FlowNow`, and what waits in queues."""

    connected: bool
    delivered_segments: int
    phase: str | None
    state: str | None
    cwnd: int | None
    inflight: int
    pacing_rate_bps: float | None
    bandwidth_bps: float | None
    rtt_ms: float | None
    delivered_bytes: int
    segments_sent: int
    lost: int
    timeouts: int
    queued_bytes: int


class Wait(NamedTuple):
    """What ends a row of steps early: the flow is in a phase, or is not."""

    phase: str
    is_in: bool

    def is_met(self, seen: "Seen") -> bool:
        """Whether this is what is waited for."""
        return (seen.phase == self.phase) is self.is_in


class Above(NamedTuple):
    """What ends a row of steps early: a quantity is above an amount."""

    # cwnd, inflight, delivered_bytes, segments_sent or lost.
    quantity: str
    amount: int

    def is_met(self, seen: "Seen") -> bool:
        """Whether this is what is waited for."""
        return int(getattr(seen, self.quantity) or 0) > self.amount


class Bed(Protocol):
    """A run in some world that can be advanced, seen and changed."""

    # The part of a full-sized packet that is payload.
    payload_share: float
    # Whether states of the transport follow from what is lost and delivered, so that there is none for marks.
    derives_states: bool
    # The fields of a `Look` that its stack does not tell, with what it would have to tell.
    unreported: Mapping[str, str]
    # Whether it tells what is acknowledged, and not only what has arrived.
    tells_acks: bool

    def steps(
        self, seconds: float, most: int, wait: Wait | Above | None = None
    ) -> tuple[Sequence[Seen], bool]:
        """Runs step by step, `most` times at most; what was seen behind each step, and whether it goes on.

        It ends behind the first step that shows what is waited for, or behind which it does not go on.
        """
        ...

    def flow(self) -> Any:
        """The flow as it is now: the attributes of `FlowNow`."""
        ...

    def change(self, **amounts: str) -> None:
        """Changes the path now: rate, rtt, delay, loss, buffer, element, as in `Simulation.path.change`."""
        ...

    def dropped(self) -> int:
        """Packets that queues have dropped."""
        ...

    def record(self) -> Runs:
        """Ends it, and returns its record."""
        ...


# Opens a scenario, with a seed.
Opener = Callable[[Mapping[str, Any], int], Bed]


class Look(NamedTuple):
    """The flow at one moment."""

    time_s: float
    # Packet-timed rounds: each ends when what was in flight at its start is delivered.
    round: int
    phase: str | None
    state: str | None
    cwnd: int
    inflight: int
    pacing_bps: float
    # The controller's estimate; 0 if it has none.
    bandwidth_bps: float
    rtt_ms: float
    delivered_bytes: int
    sent: int
    lost: int
    timeouts: int
    # In the path's queues.
    queued_bytes: int

    @property
    def pacing_gain(self) -> float | None:
        """The pacing rate divided by the estimate less the margin; None without an estimate."""
        return self.pacing_bps / (self.bandwidth_bps * _LESS_MARGIN) if self.bandwidth_bps else None


def _look_without(unreported: Mapping[str, str]) -> type[Look]:
    """A `Look` at a stack that does not tell some fields: a case that asks for one is not applicable."""

    def hidden(name: str) -> property:
        def refuse(_look: Look) -> None:
            raise NotApplicableError(_UNREPORTED.format(unreported[name]))

        return property(refuse)

    return type("Look", (Look,), {name: hidden(name) for name in unreported})


_UNREPORTED = "its stack does not tell {}"


class Stage:
    """One flow on a path. Times are in seconds, rates in bit/s on the wire, volumes in segments."""

    def __init__(
        self,
        bed: Bed,
        *,
        rate_bps: float,
        rtt_s: float,
        step_s: float,
        name: str,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.bed = bed
        self._stopped = stopped
        self.name = name
        self.rate_bps = rate_bps
        self.rtt_s = rtt_s
        self.step_s = step_s
        self.looks: list[Look] = []
        self._look_type = _look_without(bed.unreported) if bed.unreported else Look
        # Moments that a page names.
        self.marks: list[tuple[float, str]] = []
        # Whether a spec can say all that was changed: a buffer's size has no schedule.
        self.repeatable = True
        # What was changed, and when.
        self.changes: list[tuple[float, dict[str, str]]] = []
        self._time_s = 0.0
        self._round = 0
        self._round_ends = 0
        # Times and amounts that have arrived, and are acknowledged half a round trip later.
        self._arrived: deque[tuple[float, int]] = deque()
        self._acked = 0
        # Whether the last look shows what was waited for.
        self._met = False

    # ---- what the path allows ----

    @property
    def payload_bps(self) -> float:
        """The rate of the path, of payload."""
        return self.payload_of(self.rate_bps)

    def payload_of(self, rate_bps: float) -> float:
        """The payload that a rate on the wire carries."""
        return rate_bps * self.bed.payload_share

    @property
    def bdp(self) -> float:
        """The bandwidth-delay product in segments."""
        return self.rate_bps * self.rtt_s / 8 / PACKET_BYTES

    @property
    def packet_s(self) -> float:
        """The time of one packet at the bottleneck."""
        return PACKET_BYTES * 8 / self.rate_bps

    # ---- going on ----

    @property
    def end_ns(self) -> int:
        """How far it has come."""
        return max(1, round(self._time_s * 1e9))

    @property
    def now(self) -> Look:
        """The last look."""
        return self.looks[-1]

    def advance(self, seconds: float) -> bool:
        """Runs for a time and looks; whether it goes on."""
        return self._steps(seconds, 1)

    def run(self, seconds: float) -> Sequence[Look]:
        """Runs for a time, step by step; returns the looks."""
        first = len(self.looks)
        self._steps(self.step_s, max(1, round(seconds / self.step_s)))
        return self.looks[first:]

    def until(self, reached: Callable[[Look], bool], within_s: float, what: str) -> Look:
        """Runs until a look shows something; raises `NotReachedError` if none does in time."""
        ends_s = self._time_s + within_s
        while self._time_s < ends_s:
            goes_on = self.advance(self.step_s)
            if reached(self.now):
                return self.now
            if not goes_on:
                break
        raise NotReachedError(f"{what}: not within {within_s:g} s")

    def until_above(self, quantity: str, amount: int, within_s: float, what: str) -> Look:
        """Runs until the flow's cwnd, inflight, delivered_bytes, segments_sent or lost is above an amount."""
        if quantity in self.bed.unreported:
            raise NotApplicableError(_UNREPORTED.format(self.bed.unreported[quantity]))
        return self._wait(Above(quantity, amount), within_s, what)

    def until_in(self, phase: str, within_s: float = 30.0) -> Look:
        """Runs until the flow enters a phase, which it is not in now."""
        if self.looks and self.now.phase == phase:
            self.until_out(phase, within_s)
        found = self._wait(Wait(phase, True), within_s, f"phase {phase}")
        self.mark(f"enters {phase}")
        return found

    def until_out(self, phase: str, within_s: float = 30.0) -> Look:
        """Runs until the flow leaves a phase, which it is in now; returns the first look of the next."""
        return self._wait(Wait(phase, False), within_s, f"the end of {phase}")

    def _wait(self, wait: Wait | Above, within_s: float, what: str) -> Look:
        """As `until` with what the bed can decide by itself: many steps cost one answer."""
        ends_s, at_s, steps = self._time_s + within_s, self._time_s, 0
        while at_s < ends_s:
            at_s += self.step_s
            steps += 1
        if steps:
            self._steps(self.step_s, steps, wait)
            if self._met:
                return self.now
        raise NotReachedError(f"{what}: not within {within_s:g} s")

    def change(self, **amounts: str) -> None:
        """Changes the path now."""
        self.bed.change(**amounts)
        self.changes.append((self._time_s, amounts))
        self.repeatable &= "buffer" not in amounts
        self.mark(", ".join(f"{name} {value}" for name, value in amounts.items() if name != "element"))

    def mark(self, text: str) -> None:
        """Names this moment."""
        self.marks.append((self._time_s, text))

    # ---- what was seen ----

    def since(self, look: Look) -> Sequence[Look]:
        """The looks from a time on."""
        return [one for one in self.looks if one.time_s >= look.time_s]

    def rate_between(self, first: Look, last: Look) -> float | None:
        """Payload delivered between two looks, bit/s."""
        took = last.time_s - first.time_s
        return (last.delivered_bytes - first.delivered_bytes) * 8 / took if took > 0 else None

    def stretches(self, phase: str, looks: Sequence[Look] | None = None) -> list[Sequence[Look]]:
        """The looks of each complete stay in a phase, in order."""
        looks = self.looks if looks is None else looks
        found: list[Sequence[Look]] = []
        first: int | None = None
        for at, look in enumerate(looks):
            if look.phase == phase:
                first = at if first is None else first
            elif first is not None:
                found.append(looks[first:at])
                first = None
        # One that began before the first look is not complete.
        return found[1:] if found and looks and looks[0].phase == phase else found

    def phases(self, looks: Sequence[Look] | None = None) -> list[str | None]:
        """The phases in order, each stay once."""
        looks = self.looks if looks is None else looks
        return [one.phase for at, one in enumerate(looks) if at == 0 or looks[at - 1].phase != one.phase]

    def _steps(self, seconds: float, steps: int, wait: Wait | Above | None = None) -> bool:
        """Runs and looks so many times, or until a look shows what is waited for; whether it goes on."""
        while True:
            if self._stopped():
                raise Cancelled
            seen, goes_on = self.bed.steps(seconds, min(steps, _MOST_STEPS), wait)
            self._look(seen, seconds)
            steps -= len(seen)
            self._met = wait is not None and wait.is_met(seen[-1])
            if not goes_on or steps <= 0 or self._met:
                return goes_on

    def _look(self, seen: Sequence[Seen], seconds: float) -> None:
        """Turns what was seen into looks: hundreds of thousands in a suite."""
        add, time_s, round_, ends = self.looks.append, self._time_s, self._round, self._round_ends
        look = self._look_type
        for (
            connected,
            delivered,
            phase,
            state,
            cwnd,
            inflight,
            pacing_bps,
            bandwidth_bps,
            rtt_ms,
            delivered_bytes,
            sent,
            lost,
            timeouts,
            queued_bytes,
        ) in seen:
            time_s += seconds
            acked = delivered if self.bed.tells_acks else self._acked_at(time_s, delivered)
            if connected and acked >= ends:
                round_ += 1
                ends = acked + max(inflight, 1)
            add(
                look(
                    time_s,
                    round_,
                    phase,
                    state,
                    cwnd or 0,
                    inflight,
                    float(pacing_bps or 0),
                    float(bandwidth_bps or 0),
                    rtt_ms or math.nan,
                    delivered_bytes,
                    sent,
                    lost,
                    timeouts,
                    queued_bytes,
                )
            )
        self._time_s, self._round, self._round_ends = time_s, round_, ends

    def _acked_at(self, time_s: float, arrived: int) -> int:
        """What is acknowledged if so much has arrived: ACKs take half a round trip of the path."""
        self._arrived.append((time_s, arrived))
        while self._arrived[0][0] <= time_s - self.rtt_s / 2:
            self._acked = self._arrived.popleft()[1]
        return self._acked


@dataclass
class Lab:
    """Makes the stages of a play: the controller, its seed, and the world."""

    controller: Chosen
    seed: int
    opener: Opener
    # How a controller breaks a law; None if it does not.
    broken: Callable[[Chosen, str], str | None]
    # Whether nobody waits any longer.
    stopped: Callable[[], bool] = lambda: False
    # Where it plays.
    world: str = "sim"

    def __post_init__(self) -> None:
        """Begins without stages."""
        self.stages: list[Stage] = []
        # What explains the result, besides the numbers.
        self.notes: list[str] = []

    def stage(
        self,
        *,
        mbps: float = 20.0,
        ms: float = 40.0,
        bdps: float = 2.0,
        lasts_s: float = 60.0,
        path: Mapping[str, Any] | None = None,
        flow: Mapping[str, Any] | None = None,
        hosts: Mapping[str, Any] | None = None,
        step_s: float | None = None,
        name: str = "",
    ) -> Stage:
        """One flow of the controller on a new path: rate, round trip, and a buffer in products of both."""
        document: dict[str, Any] = {
            "name": name or "stage",
            "duration": f"{lasts_s:.6f} s",
            "path": {
                "rate": f"{mbps * 1e6:.0f} bit/s",
                "rtt": f"{ms:.6f} ms",
                "buffer": f"{max(2, round(bdps * mbps * 1e3 * ms / 8 / PACKET_BYTES)) * PACKET_BYTES} B",
                "loss": "0 %",
                **(path or {}),
            },
            "flows": [{"controller": self.controller, "start_jitter": "0 s", **(flow or {})}],
            **({"hosts": dict(hosts)} if hosts else {}),
        }
        stage = Stage(
            self.opener(document, self.seed),
            rate_bps=mbps * 1e6,
            rtt_s=ms / 1e3,
            step_s=step_s or ms / 1e3 / _STEPS,
            name=name,
            stopped=self.stopped,
        )
        self.stages.append(stage)
        return stage

    def breaks(self, law: str) -> bool:
        """Holds the controller against a law, and notes how it breaks it."""
        how = self.broken(self.controller, law)
        if how is not None:
            self.notes.append(how)
        return how is not None
