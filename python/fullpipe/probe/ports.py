"""The two pairs of UDP ports of a measurement, and their data plane.

The client opens each pair by a datagram with the session's tag; translators of addresses let the answers
through then. The server connects its sockets to where these came from, which must be the address of the
control connection: the kernel drops what anybody else sends, and nothing goes to anybody else.
"""

import hmac
import socket
import time
from collections.abc import Sequence

import fullpipe._native as _native
from fullpipe.probe.control import Limits, Refused, Secrets

# A stage's flow, and a thin one beside it.
FLOWS = 2
_EVERY_S = 0.1


def knock(sockets: Sequence[socket.socket], secret: Secrets) -> None:
    """Sends the datagram that opens each pair."""
    for flow, one in enumerate(sockets):
        try:
            one.send(bytes([flow]) + secret.tag)
        except OSError:
            # It is sent again until the server says that it came.
            continue


def client_sockets(server: tuple[str, int]) -> list[socket.socket]:
    """Two sockets that are connected to the server."""
    family = socket.AF_INET6 if ":" in server[0] else socket.AF_INET
    made = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(FLOWS)]
    for one in made:
        one.connect(server)
    return made


def server_sockets(
    own: tuple[str, int], client: str, secret: Secrets, patience_s: float
) -> list[socket.socket]:
    """Two sockets on the server's address that are connected to where the client's datagrams came from."""
    first = _bound(own)
    first.settimeout(_EVERY_S)
    until, found = time.monotonic() + patience_s, dict[int, tuple[str, int]]()
    while len(found) < FLOWS:
        if time.monotonic() > until:
            first.close()
            raise Refused("no datagram of the client arrives; does a firewall block UDP?")
        try:
            data, source = first.recvfrom(64)
        except TimeoutError:
            continue
        except OSError:
            continue
        if len(data) != 1 + len(secret.tag) or data[0] >= FLOWS or source[0] != client:
            continue
        if hmac.compare_digest(data[1:], secret.tag):
            found[data[0]] = source[:2]
    second = _bound(own)
    for one, flow in ((first, 0), (second, 1)):
        one.connect(found[flow])
    return [first, second]


def _bound(own: tuple[str, int]) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in own[0] else socket.AF_INET, socket.SOCK_DGRAM)
    # Both have one port: a firewall has to open that one only. Connected, each has its own peer.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind(own)
    return made


def plane(sockets: Sequence[socket.socket], secret: Secrets, limits: Limits) -> _native.ProbePlane:
    """The data plane on these sockets; what arrives is limited as what is sent."""
    return _native.ProbePlane(
        [one.fileno() for one in sockets],
        v6=sockets[0].family == socket.AF_INET6,
        cookie=secret.cookie,
        sent_bytes=limits.bytes,
        received_bytes=limits.bytes,
        rate_bps=limits.rate_bps,
        seconds=limits.seconds,
        records=limits.records,
    )
