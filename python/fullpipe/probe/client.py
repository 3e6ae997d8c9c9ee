"""The near end: what the stages call."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from fullpipe.errors import mistake
from fullpipe.probe import flows, ports
from fullpipe.probe.control import CONTROL, DOWN, UP, Channel, Limits, Refused, number, prove, whole_number
from fullpipe.probe.flows import TcpFlow
from fullpipe.probe.stamps import ECHO_BYTES_V6, LATE_S, THIN_BYTES, Measured, Stream, column
from fullpipe.text import shown

# A rate in bits a second, packets, bytes of each, whether every second can be marked, nanoseconds between a
# thin flow's packets.
Piece: TypeAlias = tuple[float, int, int, bool, int]
Rule: TypeAlias = tuple[str, float, float]
WHOLE: Rule = ("whole", 0.0, 0.0)


_PATIENCE_S = 10.0
_KNOCK_EVERY_S = 0.1
# A late stage is repeated once, if as much of time and bytes would remain.
_SPARE = 0.4
# Of paths that carry less than Ethernet does: PPPoE, tunnels, the least of IPv6.
_MTUS = (1492, 1420, 1400, 1280)
# Bytes of a packet in the columns of `stamps`: sent, and arrived.
_SENT_COLUMNS, _ARRIVED_COLUMNS = 12, 13
_ENDS = ("whole", "rule", "silence", "limit", "stopped")


class Client:
    """A measurement, from the handshake on.

    `limits` are the smaller ones of both ends, but for the rate, which limits one's own sending only.
    """

    def __init__(self, host: str, port: int, token: str, limits: Limits) -> None:
        self.host, self.port, self.token = host, port, token
        self.found = Measured()
        self._began = time.monotonic()
        self._stream = 0
        try:
            connection = socket.create_connection((host, port), timeout=_PATIENCE_S)
        except OSError as error:
            expected = f"a machine that runs `fullpipe probe serve` ({error.strerror or error})"
            raise mistake(
                "host", host, expected, "start it there with --bind, and check name, port and firewall"
            ) from None
        self.channel = Channel(connection, _PATIENCE_S)
        self.channel.until = self._began + limits.seconds
        self._sockets: list[socket.socket] = []
        try:
            secret = prove(self.channel, token, CONTROL)
            self.address: tuple[str, int] = connection.getpeername()[:2]
            message, _ = self.channel.get()
            theirs = Limits(
                whole_number(message, "bytes"),
                max(1.0, number(message, "rate_bps")),
                number(message, "seconds"),
            )
            self.limits = Limits(
                min(limits.bytes, theirs.bytes), limits.rate_bps, min(limits.seconds, theirs.seconds)
            )
            self.channel.until = self._began + self.limits.seconds
            # The highest rate of a stage, by its direction.
            self.fastest = {
                "forward": limits.rate_bps,
                "back": min(limits.rate_bps, theirs.rate_bps),
            }
            self._sockets = ports.client_sockets(self.address)
            with _repeated(lambda: ports.knock(self._sockets, secret)):
                self.channel.get()
            self.plane = ports.plane(self._sockets, secret, self.limits)
            self.channel.spend = lambda count: self.plane.spend(count, line=True)
        except BaseException:
            self._hang_up()
            raise
        info = flows.Info.of(connection)
        self.rtt_s = info.rtt_s
        # Interfaces say what they carry, the other end what it takes.
        self.found.mtu = max(576, min(1500, info.pmtu or 1500, info.mss + flows.header_bytes(connection)))
        if connection.family == socket.AF_INET6:
            self.found.echo_bytes = ECHO_BYTES_V6
        # Packets of the server that got lost: it has spent them.
        self._lost_bytes = 0

    def close(self) -> None:
        """Ends the measurement at both ends."""
        with suppress(Refused):
            self.channel.put({"op": "end"})
        self.plane.end()
        self._hang_up()

    def _hang_up(self) -> None:
        for one in (*self._sockets, self.channel.connection):
            one.close()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    @property
    def bytes(self) -> int:
        """All bytes that left and arrived, with those of the control connection."""
        sent, arrived = self.plane.moved()
        return sent + arrived + self.channel.bytes

    def bytes_left(self, way: str) -> int:
        """What may still be sent in a direction."""
        if way == "forward":
            return int(self.plane.left())
        # The sixteenth is for lines, as at this end.
        spent = int(self.plane.moved()[1]) + self._lost_bytes
        return max(0, self.limits.bytes - self.limits.bytes // 16 - spent)

    @property
    def _silence_s(self) -> float:
        return flows.silence_s(self.rtt_s)

    def echo(self, count: int, gap_s: float) -> list[float]:
        """Sends requests and waits for the answers; their round-trip times in seconds."""
        found = self._exchange(count, gap_s, self.found.echo_bytes)
        self.found.echoes += found
        rtts = [(one[3] - one[0] - one[2] + one[1]) / 1e9 for one in found]
        if rtts:
            self.rtt_s = min(self.rtt_s, *rtts) if len(self.found.echoes) > len(found) else min(rtts)
        return rtts

    def _exchange(self, count: int, gap_s: float, size: int) -> list[tuple[int, int, int, int]]:
        """Requests of some bytes that were answered: sent, arrived, answered, back."""
        piece = (size * 8 / gap_s, count, size, False, 0)
        silence_s = self._silence_s + count * gap_s
        self.plane.send(self._next(), [piece], echo=True, rule=WHOLE, silence_s=silence_s)
        until = time.monotonic() + min(2.0, 4 * self.rtt_s + 0.1)
        while len(raw := self.plane.exchanges()) < 32 * count and time.monotonic() < until:
            time.sleep(0.005)
        times = column("q", raw)
        found = [(times[at], times[at + 1], times[at + 2], times[at + 3]) for at in range(0, len(times), 4)]
        # A server that says impossible times is left out.
        return [one for one in found if 0 <= one[2] - one[1] <= one[3] - one[0] < 60_000_000_000]

    def find_mtu(self) -> None:
        """Lowers the MTU to what full packets show to pass in both directions."""
        top = self.found.mtu
        for size in (top, *(one for one in _MTUS if one < top)):
            if self._exchange(4, 0.002, size):
                self.found.mtu = size
                break
        self.drain()

    def drain(self) -> None:
        """Waits until small packets are about as fast as ever."""
        for _ in range(20):
            rtts = self.echo(4, 0.002)
            if rtts and min(rtts) < self.rtt_s + max(0.003, 0.03 * self.rtt_s):
                return
            time.sleep(0.05)

    def forward(
        self, name: str, pieces: Sequence[Piece], rule: Rule = WHOLE, *, again: bool = True
    ) -> Stream:
        """Sends a stage, and fetches what arrived of it; `again`: once more if the sender was late."""
        return self._stage("forward", name, pieces, rule, again=again)

    def back(self, name: str, pieces: Sequence[Piece], rule: Rule = WHOLE, *, again: bool = True) -> Stream:
        """Lets the server send a stage."""
        return self._stage("back", name, pieces, rule, again=again)

    def _stage(
        self, way: str, name: str, pieces: Sequence[Piece], rule: Rule, *, again: bool = True
    ) -> Stream:
        once = self._forward if way == "forward" else self._back
        made = once(pieces, rule)
        spare_s, spare_bytes = self.limits.seconds - self.seconds, self.bytes_left(way) - made.bytes
        # The stages that follow need some, too.
        spare = again and spare_s > _SPARE * self.limits.seconds and spare_bytes > _SPARE * self.limits.bytes
        if made.late_s > LATE_S and spare:
            self.drain()
            self.found.notes.append(
                f"{way} {name}: repeated, because the sender was kept waiting for {1e3 * made.late_s:.0f} ms"
            )
            made = min(made, once(pieces, rule), key=lambda one: one.late_s)
        if made.late_s > LATE_S:
            self.found.notes.append(
                f"{way} {name}: the sender was kept waiting for {1e3 * made.late_s:.0f} ms"
            )
        if made.end == "limit":
            self.found.notes.append(f"{way} {name}: cut short, because the sender's limits are used up")
        if made.dropped_here:
            self.found.notes.append(
                f"{way} {name}: the receiving machine itself dropped {made.dropped_here} packets"
            )
        getattr(self.found, way)[name] = made
        return made

    def _forward(self, pieces: Sequence[Piece], rule: Rule) -> Stream:
        stream = self._next()
        sent, end, late_s = self.plane.send(
            stream, list(pieces), echo=False, rule=rule, silence_s=self._silence_s
        )
        if end == "silence":
            raise Refused("nothing arrives at the other end any more, or it has stopped")
        self.drain()
        self.channel.put({"op": "fetch", "stream": stream})
        # The path may double packets, but hardly all.
        most = _ARRIVED_COLUMNS * 2 * (len(sent) // _SENT_COLUMNS)
        message, arrived = self.channel.get(columns=most)
        made = Stream.of(sent, arrived)
        made.end, made.late_s = end, late_s
        made.dropped_here = self._newly_dropped(whole_number(message, "dropped_here", 0))
        return made

    def _back(self, pieces: Sequence[Piece], rule: Rule) -> Stream:
        stream, before = self._next(), int(self.plane.dropped_here())
        self.channel.put({"op": "send", "stream": stream, "pieces": list(pieces), "rule": list(rule)})
        # It takes as long as the stage, and a moment more.
        seconds = sum(8 * packets * size / rate for rate, packets, size, _, _ in pieces)
        most = sum(piece[1] for piece in pieces) + _thin(pieces)
        message, sent = self.channel.get(seconds + _PATIENCE_S, columns=_SENT_COLUMNS * most)
        end, late_s = message.get("end"), number(message, "late_s")
        time.sleep(min(1.0, 0.1 + self.rtt_s))
        self.drain()
        made = Stream.of(sent, self.plane.arrived(stream))
        if end not in _ENDS or not _as_asked(made, pieces):
            raise Refused("the other end sent other packets than it was asked for")
        self._lost_bytes += made.lost_bytes
        made.end, made.late_s = str(end), late_s
        made.dropped_here = int(self.plane.dropped_here()) - before
        return made

    _dropped_there = 0

    def _newly_dropped(self, all_: int) -> int:
        before, self._dropped_there = self._dropped_there, all_
        return max(0, self._dropped_there - before)

    def _next(self) -> int:
        self._stream += 1
        return self._stream & 0xFFFF

    def _begin_flow(self, connection: socket.socket, role: str) -> None:
        channel = Channel(connection, _PATIENCE_S)
        channel.until = self.channel.until
        prove(channel, self.token, role)
        channel.get()

    def flow_up(self, controller: str, seconds: float) -> TcpFlow:
        """A TCP flow to the server."""
        connection = socket.socket(socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET)
        try:
            flows.choose(connection, controller)
            connection.settimeout(_PATIENCE_S)
            connection.connect(self.address)
            self._begin_flow(connection, UP)
            return flows.send(
                connection,
                controller,
                "forward",
                seconds,
                lambda count: self.plane.spend(count, line=False),
            )
        except OSError as error:
            raise Refused(
                f"no TCP flow with {controller} can be made here ({error.strerror or error})"
            ) from None
        finally:
            flows.abort(connection)

    def flow_down(self, controller: str, seconds: float) -> TcpFlow:
        """A TCP flow from the server, which says how it fared."""
        self.channel.put({"op": "flow", "controller": controller, "seconds": seconds})
        message, _ = self.channel.get()
        if (why := message.get("refused")) is not None:
            raise Refused(f"no TCP flow with {controller} from the other end: {shown(str(why))}")
        try:
            connection = socket.create_connection(self.address, timeout=_PATIENCE_S)
        except OSError as error:
            raise Refused(f"no second connection can be made ({error.strerror or error})") from None
        try:
            self._begin_flow(connection, DOWN)
            flows.swallow(connection, self.limits.bytes, seconds + 1, self._silence_s)
        finally:
            connection.close()
        self.channel.put({"op": "flowed"})
        message, _ = self.channel.get()
        said: Any = message.get("flow")
        if not isinstance(said, dict):
            raise Refused("the other end said nothing of the TCP flow")
        # So much time is simulated, whatever the other end says.
        took = min(max(0.1, number(said, "seconds")), seconds + 1)
        goodput, rtt = number(said, "goodput_bps"), number(said, "rtt_ms")
        return TcpFlow(controller, "back", took, goodput, rtt, whole_number(said, "retransmissions"))


def _thin(pieces: Sequence[Piece]) -> int:
    """The most packets of thin flows."""
    return sum(
        2 + int(1.02 * packets * size * 8e9 / rate / every)
        for rate, packets, size, _, every in pieces
        if every
    )


def _as_asked(made: Stream, pieces: Sequence[Piece]) -> bool:
    """Whether these are the packets of a stage, or its first ones."""
    asked = [size for _, packets, size, _, _ in pieces for _ in range(packets)]
    fat = [size for size, flow in zip(made.sizes, made.flows, strict=True) if flow == 0]
    thin = [size for size, flow in zip(made.sizes, made.flows, strict=True) if flow == 1]
    return (
        fat == asked[: len(fat)]
        and len(fat) + len(thin) == len(made)
        and len(thin) <= _thin(pieces)
        and set(thin) <= {THIN_BYTES}
    )


@contextmanager
def _repeated(what: Any) -> Iterator[None]:
    """Does something again and again, until the block ends."""
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            what()
            over.wait(_KNOCK_EVERY_S)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()
