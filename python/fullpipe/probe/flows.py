"""A TCP flow of the kernel's own, and what the kernel says of it."""

import re
import select
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from fullpipe.probe.control import Refused

_EVERY_S = 0.01
_CHUNK = 1 << 14
# Headers of IP and of TCP with stamps.
_HEADER_BYTES, _HEADER_BYTES_V6 = 52, 72
# Bytes of `tcp_info`. Kernels before 4.19 know fewer, and the rest is then 0.
_INFO_BYTES = 216
_NAME = re.compile("[a-z0-9_]{1,15}")
# A shorter flow shows nothing.
_LEAST_S = 0.5


@dataclass(frozen=True)
class Info:
    """Of `tcp_info` (linux/tcp.h), what is used."""

    rtt_s: float
    pmtu: int
    mss: int
    retransmissions: int
    acked_bytes: int
    # Of all that was sent, headers and what was sent again.
    more_bytes: int

    @classmethod
    def of(cls, connection: socket.socket) -> "Info":
        """Of a connection, now."""
        raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES).ljust(
            _INFO_BYTES, b"\0"
        )
        words = struct.unpack_from("=24I", raw, 8)
        acked, _, segments = struct.unpack_from("=QQI", raw, 120)
        (again,) = struct.unpack_from("=Q", raw, 208)
        return cls(
            words[15] / 1e6,
            words[13],
            words[2],
            words[23],
            acked,
            again + segments * header_bytes(connection),
        )


def header_bytes(connection: socket.socket) -> int:
    """Of a segment, what is no payload."""
    return _HEADER_BYTES_V6 if connection.family == socket.AF_INET6 else _HEADER_BYTES


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
    """Sets the controller. Before the connection is made: one that had BBR first stays paced.

    Raises `OSError` if the kernel has none of this name, or keeps it from users.
    """
    if _NAME.fullmatch(controller) is None:
        raise OSError(f"{controller!a} is no name of a controller")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())


def send(
    connection: socket.socket,
    controller: str,
    direction: str,
    seconds: float,
    spend: Callable[[int], float | None],
) -> TcpFlow:
    """Sends for some seconds, or until the budget is used up, or nothing is acknowledged any more.

    `spend` as `ProbePlane.spend`. Raises `Refused` if that was for too short a time.
    """
    data = memoryview(bytes(_CHUNK))
    connection.setblocking(False)
    began = now = progress = time.monotonic()
    next_look, sent, paid, rtts = began, 0, 0, [Info.of(connection).rtt_s]
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
        if paid < sent + last.more_bytes + _CHUNK:
            if (wait_s := spend(_CHUNK)) is None:
                break
            paid += 0 if wait_s else _CHUNK
            time.sleep(min(wait_s, _EVERY_S / 2))
        elif select.select([], [connection], [], _EVERY_S / 2)[1]:
            try:
                sent += connection.send(data)
            except BlockingIOError:
                pass
            except OSError:
                break
        now = time.monotonic()
    with suppress(OSError):
        last = Info.of(connection)
    if (took := now - began) < min(_LEAST_S, seconds):
        raise Refused(f"no TCP flow with {controller} {direction}: no bytes were left, or it broke")
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
