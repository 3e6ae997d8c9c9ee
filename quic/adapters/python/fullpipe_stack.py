"""What an adapter in Python needs besides its stack: `serve(about, make)` speaks Fullpipe's stack protocol.

An adapter brings a transport stack into Fullpipe's virtual time (quic/adapters/PROTOCOL.md): its process has
both ends of a connection. `make(setup)` returns an object with the methods of `Stack`. Times are nanoseconds
of the run. End 0 is the client, which sends the data; end 1 is the server.
"""

import json
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, BinaryIO, Protocol

# A time that never comes, and a number that is not known.
NEVER = 2**64 - 1
PROTOCOL = 1
_TURN, _PACKET, _EVENT = struct.Struct("<QQII"), struct.Struct("<QBBHI"), struct.Struct("<QB7xQ")
_ANSWER, _LENGTH = struct.Struct("<16QI"), struct.Struct("<I")
_DEPARTURE = ("transmit(): when a datagram leaves", "transmit(): its end", "transmit(): its ECN codepoint")


@dataclass
class App:
    """What the sending application wants by now."""

    # Bytes to send since the start, after which it closes; NEVER without end, 0 before it starts.
    total: int = 0
    # What is not delivered is abandoned.
    stopped: bool = False


@dataclass
class State:
    """What the sending end says of itself; NEVER if it does not know. Volumes are bytes, rates bit/s."""

    window: int = NEVER
    ssthresh: int = NEVER
    in_flight: int = NEVER
    srtt_ns: int = NEVER
    min_rtt_ns: int = NEVER
    pacing_bps: int = NEVER
    bandwidth_bps: int = NEVER
    lost: int = NEVER
    acked: int = NEVER
    timeouts: int = NEVER
    phase: int = NEVER


_STATE = tuple(field.name for field in fields(State))
_HEAD = ("until", "timer()", "flags", "delivered", "when", *(f"State.{name}" for name in _STATE))


class Stack(Protocol):
    """Both ends of a connection."""

    # The client's handshake is complete, and data may be sent; without a handshake, True from the start.
    # Cases count from it.
    connected: bool
    # It has ended although nobody wanted it to.
    failed: bool
    # Bytes that the receiver has, in order.
    delivered: int

    def receive(self, end: int, now: int, ecn: int, datagram: bytes) -> None:
        """A datagram arrives."""

    def timer(self, end: int) -> int:
        """When `on_timer` is to be called; NEVER if nothing is due."""

    def on_timer(self, end: int, now: int) -> None:
        """That time has come."""

    def application(self, end: int, now: int, app: App) -> None:
        """The application writes, or reads, what it can. Called after anything has happened to the end."""

    def transmit(self, end: int, now: int) -> Iterable[tuple[int, int, bytes]]:
        """What the end sends now: of each datagram when it leaves, its ECN codepoint, and its bytes.

        It leaves now, or later if the stack leaves pacing to its caller.
        """

    def state(self) -> State:
        """What the sending end says of itself."""


def serve(about: Mapping[str, Any], make: Callable[[dict[str, Any]], Stack]) -> None:
    """Speaks the protocol on standard input and output until the input ends.

    `about` has name, version, licence, controllers, tells and policy. What `make` raises as `ValueError`
    refuses the setup.
    """
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # What the stack prints must not get into the protocol.
    sys.stdout = sys.stderr
    if _frame(source) is None:
        return
    _answer(sink, json.dumps({"protocol": PROTOCOL, "layer": "udp", **about}).encode())
    if (asked := _frame(source)) is None:
        return
    try:
        stack = make(json.loads(asked))
    except ValueError as error:
        _answer(sink, json.dumps({"ok": False, "message": str(error)}).encode())
        return
    _answer(sink, b'{"ok": true}')
    turns = _Turns(stack)
    while (asked := _frame(source)) is not None:
        _answer(sink, turns.turn(asked))


def _frame(source: BinaryIO) -> bytes | None:
    head = source.read(_LENGTH.size)
    return source.read(*_LENGTH.unpack(head)) if len(head) == _LENGTH.size else None


def _answer(sink: BinaryIO, content: bytes) -> None:
    sink.write(_LENGTH.pack(len(content)) + content)
    sink.flush()


def _wrong(name: str, number: object) -> str:
    return f"{name} is {number!r}; it must be an int, from 0 to NEVER"


def _pack(form: struct.Struct, names: Iterable[str], *numbers: Any) -> bytes:
    """Packs numbers with these names.

    Raises:
        TypeError: The first of them that is no int, or too small or large, by its name.
    """
    try:
        return form.pack(*numbers)
    except struct.error:
        for name, number in zip(names, numbers, strict=False):
            if not hasattr(number, "__index__") or not 0 <= number <= NEVER:
                raise TypeError(_wrong(name, number)) from None
        raise


class _Turns:
    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._app = App()
        self._touched = {0, 1}
        self._delivered, self._delivered_at = 0, NEVER

    def turn(self, asked: bytes) -> bytes:
        stack = self._stack
        now, until, arrivals, events = _TURN.unpack_from(asked)
        happens: list[tuple[int, Callable[[], None]]] = []
        at = _TURN.size
        for _ in range(arrivals):
            when, end, ecn, _, length = _PACKET.unpack_from(asked, at)
            at += _PACKET.size + length
            happens.append((when, self._arrival(end, when, ecn, asked[at - length : at])))
        for _ in range(events):
            when, kind, total = _EVENT.unpack_from(asked, at)
            at += _EVENT.size
            happens.append((when, self._event(kind, total)))
        happens.sort(key=lambda one: one[0])  # Keeps the order of what happens at one time.
        leaves: list[bytes] = []
        count, first = 0, 0
        while True:
            while first < len(happens) and happens[first][0] <= now:
                happens[first][1]()
                first += 1
            for end in (1, 0):
                if stack.timer(end) <= now:
                    stack.on_timer(end, now)
                    self._touched.add(end)
                if end not in self._touched:
                    continue
                self._touched.discard(end)
                stack.application(end, now, self._app)
                for when, ecn, datagram in stack.transmit(end, now):
                    leaves += (_pack(_PACKET, _DEPARTURE, when, end, ecn, 0, len(datagram)), datagram)
                    count += 1
            if stack.delivered != self._delivered:
                self._delivered, self._delivered_at = stack.delivered, now
            # A timer of now has been handled.
            timer = self._timer_behind(now)
            now = min(timer, happens[first][0] if first < len(happens) else NEVER)
            if now > until:
                break
        timer = self._timer_behind(until)
        flags = int(stack.connected) | int(stack.failed) << 1
        state = stack.state()
        reported = (getattr(state, name) for name in _STATE)
        numbers = (until, timer, flags, self._delivered, self._delivered_at, *reported, count)
        return b"".join((_pack(_ANSWER, _HEAD, *numbers), *leaves))

    def _timer_behind(self, now: int) -> int:
        timer = min(self._stack.timer(0), self._stack.timer(1))
        if not hasattr(timer, "__index__"):
            raise TypeError(_wrong("timer()", timer))
        return max(now + 1, timer)

    def _arrival(self, end: int, when: int, ecn: int, datagram: bytes) -> Callable[[], None]:
        def happen() -> None:
            self._stack.receive(end, when, ecn, datagram)
            self._touched.add(end)

        return happen

    def _event(self, kind: int, total: int) -> Callable[[], None]:
        def happen() -> None:
            if kind == 0:
                self._app.total = total
            else:
                self._app.stopped = True
            self._touched.add(0)

        return happen
