"""aioquic in virtual time."""

import os
import random
import ssl
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent / "python"))
import fullpipe_stack
from fullpipe_stack import NEVER, App, State

_drawn = random.Random()
# aioquic draws its ids and challenges from it; keys come from OpenSSL, and have constant lengths.
os.urandom = _drawn.randbytes

import aioquic
from aioquic.buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, StreamDataReceived
from aioquic.quic.packet import pull_quic_header

_ADDRESSES = (("10.0.0.1", 1000), ("10.0.0.2", 2000))
# aioquic takes seconds as a float, and a time of 0 for none.
_ORIGIN_S = 1000.0
# aioquic takes what is written without a bound: so much is kept ahead.
_AHEAD = 2_000_000


class Aioquic:
    """Both ends."""

    def __init__(self, setup: dict[str, Any]) -> None:
        if setup["controller"] not in ("cubic", "reno"):
            raise ValueError(f"aioquic has no controller {setup['controller']}")
        _drawn.seed(setup["seed"])
        common = {
            "alpn_protocols": ["transfer"],
            "congestion_control_algorithm": setup["controller"],
            "idle_timeout": 1e6,
            "max_data": setup["receive_window"],
            "max_stream_data": setup["receive_window"],
            "max_datagram_size": setup["mtu"],
        }
        client = QuicConfiguration(
            is_client=True, server_name="localhost", verify_mode=ssl.CERT_NONE, **common
        )
        self._server = QuicConfiguration(is_client=False, **common)
        self._server.load_cert_chain(_HERE.parent / "keys/cert.pem", _HERE.parent / "keys/key.pem")
        self._ends: list[QuicConnection | None] = [QuicConnection(configuration=client), None]
        self.connected = self.failed = False
        self.delivered = 0
        self._begun = False
        self._written = 0

    def receive(self, end: int, now: int, ecn: int, datagram: bytes) -> None:
        del ecn
        if self._ends[end] is None:
            header = pull_quic_header(Buffer(data=datagram), host_cid_length=8)
            self._ends[end] = QuicConnection(
                configuration=self._server, original_destination_connection_id=header.destination_cid
            )
        self._ends[end].receive_datagram(datagram, _ADDRESSES[1 - end], _ORIGIN_S + now / 1e9)

    def timer(self, end: int) -> int:
        connection = self._ends[end]
        at_s = connection.get_timer() if self._begun and connection is not None else None
        # Rounded up: a float may be a little before its time.
        return NEVER if at_s is None else max(0, int((at_s - _ORIGIN_S) * 1e9) + 1)

    def on_timer(self, end: int, now: int) -> None:
        self._ends[end].handle_timer(_ORIGIN_S + now / 1e9)

    def application(self, end: int, now: int, app: App) -> None:
        if end == 0 and not self._begun and app.total:
            self._begun = True
            self._ends[0].connect(_ADDRESSES[1], _ORIGIN_S + now / 1e9)
        connection = self._ends[end]
        if connection is None:
            return
        while (event := connection.next_event()) is not None:
            if isinstance(event, StreamDataReceived):
                self.delivered += len(event.data)
            elif isinstance(event, HandshakeCompleted) and end == 0:
                self.connected = True
            elif isinstance(event, ConnectionTerminated):
                self.failed = True
                print(event.reason_phrase or event, file=sys.stderr)
        if end == 0 and self.connected:
            self._write(connection, app)

    def _write(self, connection: QuicConnection, app: App) -> None:
        if app.stopped:
            if self._written < app.total:
                connection.reset_stream(0, 0)
                self._written = app.total
            return
        stream = connection._streams.get(0)
        ahead = len(stream.sender._buffer) if stream else 0
        if ahead < _AHEAD and self._written < app.total:
            more = min(_AHEAD, app.total - self._written)
            self._written += more
            connection.send_stream_data(0, bytes(more), end_stream=self._written == app.total)

    def transmit(self, end: int, now: int) -> Iterable[tuple[int, int, bytes]]:
        connection = self._ends[end]
        if connection is None or not self._begun:
            return []
        return [(now, 0, one) for one, _ in connection.datagrams_to_send(_ORIGIN_S + now / 1e9)]

    def state(self) -> State:
        loss = self._ends[0]._loss
        srtt_ns = int(loss._rtt_smoothed * 1e9) if loss._rtt_initialized else NEVER
        return State(window=loss.congestion_window, in_flight=loss.bytes_in_flight, srtt_ns=srtt_ns)


ABOUT = {
    "name": "aioquic",
    "version": aioquic.__version__,
    "licence": "BSD-3-Clause",
    "controllers": ["cubic", "reno"],
    "tells": ["window", "in_flight", "srtt"],
    "policy": "its pacer is kept to; 2 MB of the stream are written ahead",
}

fullpipe_stack.serve(ABOUT, Aioquic)
