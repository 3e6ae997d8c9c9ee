"""A TCP flow of the kernel's own, and what the kernel says of it."""

import select
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from fullpipe.probe.control import Limits

_EVERY_S = 0.01
_CHUNK = 1 << 16
# Headers and retransmissions, of what is taken from the budget.
_MORE = 1.06


@dataclass(frozen=True)
class Info:
    """Of `tcp_info` (linux/tcp.h), what is used."""

    rtt_s: float
    pmtu: int
    retransmissions: int
    acked_bytes: int

    @classmethod
    def of(cls, connection: socket.socket) -> "Info":
        """Of a connection, now."""
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
        words = struct.unpack_from("=24I", raw, 8)
        return cls(words[15] / 1e6, words[13], words[23], struct.unpack_from("=Q", raw, 120)[0])


@dataclass(frozen=True)
class TcpFlow:
    """How a flow fared."""

    controller: str
    direction: str
    seconds: float
    goodput_bps: float
    rtt_ms: float
    retransmissions: int


def silence_s(rtt_s: float) -> float:
    """Both ends stop if nothing comes for as long."""
    return max(1.0, 4 * rtt_s)


def choose(connection: socket.socket, controller: str) -> None:
    """Sets the controller. Before the connection is made: one that had BBR first stays paced."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())


def send(
    connection: socket.socket,
    controller: str,
    direction: str,
    seconds: float,
    limits: Limits,
    spend: Callable[[int], bool],
) -> TcpFlow:
    """Sends for some seconds, or until the budget is used up, or nothing is acknowledged any more."""
    data = memoryview(bytes(_CHUNK))
    connection.setblocking(False)
    began = now = progress = time.monotonic()
    next_look, sent, rtts = began, 0, [Info.of(connection).rtt_s]
    last = Info.of(connection)
    while now - began < seconds:
        if now >= next_look:
            next_look = now + _EVERY_S
            found = Info.of(connection)
            progress = now if found.acked_bytes > last.acked_bytes else progress
            last = found
            rtts.append(found.rtt_s)
            if now - progress > silence_s(max(rtts)):
                break
        # Not SO_MAX_PACING_RATE, which would pace a flow that is not paced otherwise.
        room = limits.rate_bps / 8 * (now - began) + _CHUNK - sent
        if room < _CHUNK:
            time.sleep(_EVERY_S / 4)
        elif select.select([], [connection], [], _EVERY_S / 2)[1]:
            if not spend(int(_CHUNK * _MORE)):
                break
            try:
                sent += connection.send(data)
            except BlockingIOError:
                pass
            except OSError:
                break
        now = time.monotonic()
    with suppress(OSError):
        last = Info.of(connection)
    took = max(now - began, 1e-3)
    mean_ms = 1e3 * sum(rtts) / len(rtts)
    return TcpFlow(controller, direction, took, last.acked_bytes * 8 / took, mean_ms, last.retransmissions)


def swallow(connection: socket.socket, most_bytes: int, most_s: float, silent_s: float) -> int:
    """Reads until the other end hangs up, is silent, or has sent what is allowed; returns how much it was."""
    room = bytearray(_CHUNK)
    until, left = time.monotonic() + most_s, most_bytes
    connection.settimeout(silent_s)
    try:
        while time.monotonic() < until and left > 0 and (count := connection.recv_into(room)):
            left -= count
    except OSError:
        pass
    return most_bytes - left


def abort(connection: socket.socket) -> None:
    """Closes a connection without sending what waits."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
