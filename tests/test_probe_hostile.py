"""A probe's ends against peers that guess, replay, flood, stall or lie. Loopback only."""

import contextlib
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator

import pytest

from fullpipe._native import ScenarioError
from fullpipe.probe import client, control, ports, server
from fullpipe.probe.client import Client
from fullpipe.probe.control import Channel, Limits, Refused, Secrets
from fullpipe.probe.server import LockedOut, Server

TOKEN = "0123456789abcdef0123"
LIMITS = Limits(bytes=2_000_000, rate_bps=20e6, seconds=20)
PIECE = (10e6, 100, 1000, False, 0)


class Running:
    """A server in a thread, and how it ended."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.server = Server("127.0.0.1", 0, TOKEN, limits, lambda _line: None)
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        try:
            self.server.serve(30)
        except (LockedOut, ScenarioError, OSError) as error:
            self.error = error

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=5)

    def channel(self) -> Channel:
        return Channel(self.connect(), 5)

    def client(self, limits: Limits = LIMITS) -> Client:
        return Client("127.0.0.1", self.server.port, TOKEN, limits)

    def end(self) -> None:
        self.server.close()
        self.thread.join(10)
        assert not self.thread.is_alive()


@pytest.fixture
def running() -> Iterator[Running]:
    made = Running()
    yield made
    made.end()


def wait_for(what: Callable[[], object]) -> None:
    until = time.monotonic() + 10
    while not what():
        assert time.monotonic() < until, "it never came"
        threading.Event().wait(0.01)


def test_an_honest_client_is_served_and_the_server_ends(running: Running) -> None:
    one = running.client()
    sent = one.forward("train", [PIECE])
    assert len(sent) == 100 and sent.arrived_ns.count(0) == 0
    there = one.back("train", [PIECE])
    assert len(there) == 100 and there.arrived_ns.count(0) == 0
    assert len(one.echo(5, 0.002)) == 5
    one.close()
    running.thread.join(10)
    assert running.error is None and not running.thread.is_alive()


def test_guesses_lock_the_server(running: Running) -> None:
    for guess in range(server.MOST_WRONG):
        with pytest.raises(Refused, match="wrong"), contextlib.closing(running.connect()) as one:
            control.prove(Channel(one, 5), f"guess {guess}", control.CONTROL)
    running.thread.join(10)
    assert isinstance(running.error, LockedOut)


def test_a_proof_cannot_be_replayed(running: Running) -> None:
    heard: list[bytes] = []

    class Ear(socket.socket):
        def sendall(self, data: bytes, flags: int = 0) -> None:  # type: ignore[override]
            heard.append(data)
            super().sendall(data, flags)

    first = Ear(socket.AF_INET)
    first.connect(("127.0.0.1", running.server.port))
    control.prove(Channel(first, 5), TOKEN, control.DOWN)
    first.close()
    again = running.channel()
    again.get()
    again.connection.sendall(heard[0])
    with pytest.raises(Refused, match="wrong"):
        again.get()
    again.connection.close()


def test_the_token_is_never_sent(running: Running) -> None:
    one = running.channel()
    message, _ = one.get()
    assert TOKEN not in json.dumps(message)
    one.connection.close()


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\xff" * 40_000,
        b"GET / HTTP/1.1\r\n\r\n",
        b"[]\n",
        b"{" * 60_000 + b"\n",
        b'{"role": 1, "nonce": null}\n',
        b"",
    ],
)
def test_garbage_harms_nobody(running: Running, garbage: bytes) -> None:
    with contextlib.closing(running.connect()) as one, contextlib.suppress(OSError):
        one.sendall(garbage)
        one.shutdown(socket.SHUT_WR)
        while one.recv(65536):
            pass
    one_more = running.client()
    one_more.close()


def test_one_that_stalls_keeps_nobody_out(running: Running) -> None:
    stalled = [running.connect() for _ in range(3)]
    running.client().close()
    for one in stalled:
        one.close()


def test_strangers_are_few_at_once_and_their_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_PATIENCE_S", 0.2)
    running = Running()
    crowd = [running.connect() for _ in range(server._MOST_GREETED + 4)]
    # All are hung up on: the first ones when their time is over, the others at once.
    for one in crowd:
        with contextlib.suppress(OSError):
            while one.recv(4096):
                pass
        one.close()
    running.client().close()
    running.end()


def test_a_second_client_is_refused(running: Running) -> None:
    first = running.client()
    with pytest.raises(Refused, match="was used"):
        running.client()
    first.close()


def test_a_flow_needs_a_measurement(running: Running) -> None:
    one = running.channel()
    control.prove(one, TOKEN, control.UP)
    with pytest.raises(Refused, match="no measurement"):
        one.get()
    one.connection.close()


def test_no_datagram_leaves_before_the_client_has_proved_itself(running: Running) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind(("127.0.0.1", 0))
        ear.settimeout(0.2)
        ear.sendto(bytes(100), ("127.0.0.1", running.server.port))
        with pytest.raises(OSError):
            ear.recv(100)


def test_datagrams_of_others_open_no_ports() -> None:
    secret = Secrets("control", 1, bytes(range(16)))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as place:
        place.bind(("127.0.0.1", 0))
        own = place.getsockname()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        found: list[str] = []

        def serve() -> None:
            try:
                for one in ports.server_sockets(own, "127.0.0.2", secret, 0.5):
                    one.close()
            except Refused as error:
                found.append(str(error))

        worker = threading.Thread(target=serve)
        worker.start()
        while worker.is_alive():
            # The right tag from another address, and a wrong one.
            for data in (b"\x00" + secret.tag, b"\x01" + secret.tag, b"\x00" + bytes(16), b""):
                other.sendto(data, own)
            worker.join(0.05)
    assert found and "firewall" in found[0]


@pytest.mark.parametrize(
    "message",
    [
        {"op": "send", "stream": 1, "pieces": [[1e6, 10**9, 1000, False, 0]], "rule": ["whole", 0, 0]},
        {"op": "send", "stream": 1, "pieces": [["x", 1, 1, 1, 1]], "rule": ["whole", 0, 0]},
        {"op": "send", "stream": 1, "pieces": [[1e6, -5, 1000, False, 0]], "rule": ["whole", 0, 0]},
        {"op": "send", "stream": 1, "pieces": [[1e6, 5, 1000, False, 0]], "rule": ["other", 0, 0]},
        {"op": "send", "stream": -1, "pieces": [[1e6, 5, 1000, False, 0]], "rule": ["whole", 0, 0]},
        {"op": "send", "stream": 1, "pieces": [], "rule": ["whole", 0, 0]},
        {"op": "flow", "controller": "cubic", "seconds": "long"},
        {"op": "shell", "command": "true"},
    ],
)
def test_requests_that_cannot_be_end_the_session(running: Running, message: dict[str, object]) -> None:
    one = running.client()
    one.channel.put(message)
    with pytest.raises(Refused):
        one.channel.get()
    one.close()
    running.thread.join(10)
    assert not running.thread.is_alive()


def test_the_server_keeps_its_own_limits() -> None:
    running = Running(Limits(bytes=50_000, rate_bps=4e6, seconds=20))
    one = running.client()
    there = one.back("over", [(1e12, 100_000, 1000, False, 0)])
    assert there.end == "limit" and 0 < there.bytes <= 50_000
    seconds = (there.sent_ns[-1] - there.sent_ns[0]) / 1e9
    assert there.bytes * 8 / seconds < 4.5e6
    one.close()
    running.end()


def test_the_servers_time_ends() -> None:
    running = Running(Limits(bytes=50_000, rate_bps=4e6, seconds=0.5))
    one = running.client()
    with pytest.raises(Refused):
        one.channel.get()
    one.close()
    running.thread.join(10)
    assert not running.thread.is_alive()


def test_the_client_stops_when_the_server_is_silent(running: Running) -> None:
    one = running.client()
    session = running.server._session
    assert session is not None
    session._plane.end()
    begun = time.monotonic()
    with pytest.raises(Refused, match="arrives at the other end"):
        one.forward("over", [(1e6, 100_000, 1000, False, 0)])
    assert time.monotonic() - begun < 8
    one.close()


def test_nothing_but_the_budget_leaves(running: Running) -> None:
    one = running.client(Limits(bytes=30_000, rate_bps=10e6, seconds=20))
    sent = one.forward("over", [(10e6, 1000, 1000, False, 0)])
    assert sent.end == "limit" and one.plane.moved()[0] <= 30_000
    one.close()


def lying(answers: list[bytes]) -> int:
    """A server that says this, and its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, listener, contextlib.suppress(OSError):
            for one in answers:
                connection.sendall(one)
                connection.settimeout(2)
                connection.recv(65536)

    threading.Thread(target=serve, daemon=True).start()
    return int(listener.getsockname()[1])


HELLO = json.dumps({"version": control.VERSION, "nonce": "00"}).encode() + b"\n"


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([b"SSH-2.0-OpenSSH\n"], "not JSON"),
        ([b'{"version": "fullpipe probe 9", "nonce": ""}\n'], "speaks fullpipe probe 9"),
        ([HELLO, b'{"proof": "00"}\n'], "does not know the token"),
        ([HELLO, b'{"proof": 7}\n'], "does not know the token"),
        ([b"x" * 100_000], "too long"),
        ([], "hung up"),
    ],
)
def test_a_server_that_lies_is_refused(
    monkeypatch: pytest.MonkeyPatch, answers: list[bytes], why: str
) -> None:
    monkeypatch.setattr(client, "_PATIENCE_S", 1.0)
    with pytest.raises(Refused, match=why):
        Client("127.0.0.1", lying(answers), TOKEN, LIMITS)


@pytest.mark.parametrize(
    "answer",
    [
        {"packed": 1 << 40, "bytes": 5},
        {"packed": 20, "bytes": 1 << 40},
        {"packed": -1, "bytes": 5},
        {"packed": True, "bytes": 5},
    ],
)
def test_columns_of_impossible_sizes_are_refused(answer: dict[str, object]) -> None:
    one, other = socket.socketpair()
    with one, other:
        other.sendall(json.dumps(answer).encode() + b"\n" + b"x" * 50)
        with pytest.raises((Refused, OSError)):
            _channel(one).get()


def test_a_small_block_that_unpacks_to_much_is_refused() -> None:
    one, other = socket.socketpair()
    bomb = zlib.compress(bytes(50_000_000))
    with one, other:
        worker = threading.Thread(
            target=lambda: other.sendall(
                json.dumps({"packed": len(bomb), "bytes": 100}).encode() + b"\n" + bomb
            )
        )
        worker.start()
        with pytest.raises(Refused, match="another length"):
            _channel(one).get()
        worker.join()


def _channel(one: socket.socket) -> Channel:
    """A channel over a pair of sockets, which have no TCP."""
    channel = Channel.__new__(Channel)
    channel.connection, channel.patience_s, channel.bytes, channel._waiting = one, 1.0, 0, bytearray()
    return channel
