"""A probe's ends against peers that guess, replay, flood, stall or lie. Loopback only."""

import contextlib
import json
import math
import socket
import threading
import time
import zlib
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fullpipe._native import ScenarioError
from fullpipe.probe import client, control, flows, ports, server, stages
from fullpipe.probe.client import Client
from fullpipe.probe.control import Channel, Limits, Refused, Secrets
from fullpipe.probe.flows import TcpFlow
from fullpipe.probe.server import Ended, LockedOut, Server

TOKEN = "0123456789abcdef0123"
LIMITS = Limits(bytes=2_000_000, rate_bps=20e6, seconds=20)
PIECE = (10e6, 100, 1000, False, 0)


class Running:
    """A server in a thread, and how it ended."""

    def __init__(self, limits: Limits = LIMITS, address: str = "127.0.0.1") -> None:
        self.address = address
        self.server = Server(address, 0, TOKEN, limits, lambda _line: None)
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        try:
            self.server.serve(30)
        except (Ended, ScenarioError, OSError) as error:
            self.error = error

    def connect(self, own: str = "127.0.0.1") -> socket.socket:
        there = ("127.0.0.1", self.server.port)
        return socket.create_connection(there, timeout=5, source_address=(own, 0))

    def channel(self) -> Channel:
        return Channel(self.connect(), 5)

    def client(self, limits: Limits = LIMITS) -> Client:
        return Client(self.address, self.server.port, TOKEN, limits)

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
    until = time.monotonic() + 60
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


def test_a_measurement_over_ipv6_sees_marks_and_has_longer_echoes() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        running = Running(address="::1")
    except ScenarioError:
        pytest.skip("this machine has no ::1")
    one = running.client()
    assert len(one.echo(5, 0.002)) == 5 and one.found.echo_bytes == 96
    before = one.plane.moved()[0]
    one.echo(10, 0.002)
    assert one.plane.moved()[0] - before == 960
    for made in (
        one.forward("train", [(10e6, 20, 1000, True, 0)]),
        one.back("train", [(10e6, 20, 1000, True, 0)]),
    ):
        assert list(made.marks).count(2) == 10
    one.close()
    running.end()


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


def test_a_crowd_of_strangers_keeps_nobody_out(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their time is long, and there are more than there is room for."""
    monkeypatch.setattr(server, "_PATIENCE_S", 60.0)
    crowd = [running.connect() for _ in range(server._MOST_GREETED)]
    for one in crowd:
        one.sendall(b"{")
    wait_for(lambda: len(running.server._unproved) == server._MOST_GREETED)
    running.client().close()
    # The oldest one made room; to the last one nobody has said that it is to leave.
    while crowd[0].recv(4096):
        pass
    for one in crowd:
        one.close()


def test_a_stranger_can_neither_end_nor_join_a_measurement(running: Running) -> None:
    first = running.client()
    for _ in range(server.MOST_WRONG + 1):
        with pytest.raises(Refused, match="wrong"), contextlib.closing(running.connect()) as one:
            control.prove(Channel(one, 5), "a guess", control.UP)
        with contextlib.closing(running.connect("127.0.0.2")) as one:
            # Not even a nonce.
            assert one.recv(4096) == b""
    assert len(first.forward("train", [PIECE])) == 100
    first.close()
    running.thread.join(10)
    assert running.error is None


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
        {"op": "flow", "controller": "cubic", "seconds": 10**400},
        {"op": "fetch", "stream": 1, "packed": 50, "bytes": 50},
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


@pytest.mark.parametrize("controller", ["\ud800", "no such one", "", "x" * 10_000, "../cubic"])
def test_a_strange_controller_is_refused(running: Running, controller: str) -> None:
    one = running.client()
    with pytest.raises(Refused, match="does not have this controller"):
        one.flow_down(controller, 1)
    with pytest.raises(Refused, match="can be made here"):
        one.flow_up(controller, 1)
    one.close()


@pytest.mark.parametrize("nonce", ["\ud800", "", "0" * 31, "0" * 33, "G" * 32, 7, None])
def test_a_strange_nonce_is_refused_at_both_ends(running: Running, nonce: object) -> None:
    one = running.channel()
    one.get()
    one.put({"role": "control", "nonce": nonce, "proof": "0" * 64})
    with pytest.raises(Refused, match="hung up"):
        one.get()
    one.connection.close()
    hello = json.dumps({"version": control.VERSION, "nonce": nonce}).encode() + b"\n"
    with pytest.raises(Refused, match="nonce"):
        Client("127.0.0.1", lying([hello]), TOKEN, LIMITS)


@pytest.mark.parametrize(
    ("asked", "steps"), [(1, 100), (1000, 100), (10_000_000, 100), (1, 1000), (2**63 - 1, 100)]
)
def test_a_thin_flow_goes_beyond_no_rate(asked: int, steps: int) -> None:
    """By the sender's own stamps: so many bits as its limit allows in that time, and a few packets."""
    running = Running(Limits(bytes=20_000_000, rate_bps=4e6, seconds=20))
    one = running.client()
    one.channel.put(
        {"op": "send", "stream": 9, "pieces": [[4e6, steps, 1000, False, asked]], "rule": ["missing", 500, 0]}
    )
    _, sent = one.channel.get(20, columns=10_000_000)
    count = len(sent) // 12
    stamps, sizes = array("q", sent[: 8 * count]), array("H", sent[8 * count : 10 * count])
    assert sum(sizes) * 8 <= 4e6 * (stamps[-1] - stamps[0]) / 1e9 + 8 * 8000
    one.close()
    running.end()


def test_the_server_keeps_its_own_limits() -> None:
    running = Running(Limits(bytes=50_000, rate_bps=4e6, seconds=20))
    one = running.client()
    assert one.limits.bytes == 50_000 and one.fastest == {"forward": 20e6, "back": 4e6}
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


def test_a_measurement_keeps_within_the_smaller_limits_of_both_ends() -> None:
    """The far end takes no more than it sends itself: what was measured until then is not lost."""
    running = Running(Limits(bytes=300_000, rate_bps=20e6, seconds=100))
    one = running.client(Limits(bytes=10_000_000, rate_bps=4e6, seconds=90))
    stages.measure(one, stages.Plan(short=True))
    one.close()
    running.end()
    assert "over" in one.found.forward and running.server.limits.bytes == 300_000
    assert one.plane.moved()[0] <= 300_000


def test_a_server_whose_network_breaks_says_so(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    one = running.client()

    class Broken:
        def send(self, *_: object, **__: object) -> None:
            raise OSError(1, "not permitted")

        def spend(self, _count: int, *, line: bool) -> float:
            return 0.0 * line

        def end(self) -> None:
            pass

    assert running.server._session is not None
    plane, running.server._session._plane = running.server._session._plane, Broken()
    with pytest.raises(Refused, match="not permitted"):
        one.back("train", [PIECE])
    one.close()
    running.thread.join(10)
    plane.end()
    assert type(running.error) is Ended and "not permitted" in str(running.error)


def test_lines_of_the_control_connection_are_paid() -> None:
    """Of 30 KB there is room for one line of 20 KB."""
    running = Running()
    client_ = running.client(Limits(bytes=30_000, rate_bps=20e6, seconds=20))
    before = client_.plane.moved()[0]
    client_.channel.put({"op": "fetch", "stream": 77, "x": "y" * 1000})
    assert client_.plane.moved()[0] - before > 1000
    one, other = socket.socketpair()
    with one, other:
        channel = _channel(one)
        channel.spend = client_.channel.spend
        channel.put({"x": "y" * 20_000})
        with pytest.raises(Refused, match="used up"):
            channel.put({"x": "y" * 20_000})
    client_.close()
    running.end()


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


HELLO = json.dumps({"version": control.VERSION, "nonce": "00" * 16}).encode() + b"\n"


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([b"SSH-2.0-OpenSSH\n"], "not JSON"),
        ([b'{"version": "fullpipe probe 9", "nonce": ""}\n'], "speaks fullpipe probe 9"),
        ([HELLO, b'{"proof": "' + b"0" * 64 + b'"}\n'], "does not know the token"),
        ([HELLO, b'{"proof": "00"}\n'], "gave no proof"),
        ([HELLO, b'{"proof": 7}\n'], "gave no proof"),
        ([b'{"packed": 50000000, "bytes": 50000000}\n'], "than it was asked for"),
        ([HELLO, b'{"packed": 50000000, "bytes": 50000000}\n'], "than it was asked for"),
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
        {"packed": 20, "bytes": 1001},
        {"packed": 2000, "bytes": 1000},
    ],
)
def test_columns_of_impossible_sizes_are_refused(answer: dict[str, object]) -> None:
    one, other = socket.socketpair()
    with one, other:
        other.sendall(json.dumps(answer).encode() + b"\n" + b"x" * 50)
        with pytest.raises((Refused, OSError)):
            _channel(one).get(columns=1000)


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
            _channel(one).get(columns=100_000)
        worker.join()


def test_one_deadline_is_for_a_whole_message() -> None:
    """Each piece of it comes in time, but the last one never, by a clock that is turned by hand."""
    now = 0.0

    class Slow:
        def settimeout(self, seconds: float) -> None:
            assert 0 < seconds <= 1

        def recv(self, _most: int) -> bytes:
            nonlocal now
            now += 0.4
            return b"x" if lines == [b""] else lines.pop(0)

    lines = [b'{"packed": 900, ', b'"bytes": 900}\n', b""]
    channel = _channel(Slow())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now)
        with pytest.raises(Refused, match="too slow"):
            channel.get(columns=900)
    assert now < 1.3


def test_a_clients_budget_ends_all_waiting(running: Running) -> None:
    one = running.client()
    assert one.channel.until <= time.monotonic() + LIMITS.seconds
    one.channel.until = 0.0
    with pytest.raises(Refused, match="time of this end is over"):
        one.channel.get(1000)
    one.close()


@pytest.mark.parametrize(
    ("passes", "found"), [(9000, 1500), (1499, 1492), (1420, 1420), (1300, 1280), (0, 1500)]
)
def test_the_mtu_is_what_passes(
    running: Running, monkeypatch: pytest.MonkeyPatch, passes: int, found: int
) -> None:
    one = running.client()
    assert one.found.mtu == 1500
    monkeypatch.setattr(one, "_exchange", lambda _count, _gap, size: [(0, 0, 0, 1)] if size <= passes else [])
    one.find_mtu()
    assert one.found.mtu == found
    monkeypatch.undo()
    one.close()


class Puppet:
    """A client whose server says what it is told to."""

    def __init__(self, running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
        self.client = running.client()
        self.says: tuple[dict[str, Any], bytes] = ({}, b"")
        monkeypatch.setattr(self.client.channel, "put", lambda _message: None)
        monkeypatch.setattr(self.client.channel, "get", self._get)

    def _get(self, _patience_s: float | None = None, *, columns: int = 0) -> tuple[dict[str, Any], bytes]:
        assert len(self.says[1]) <= columns
        return self.says


def columns(sizes: list[int], kinds: list[int]) -> bytes:
    count = len(sizes)
    return (
        array("q", range(5, 5 + count)).tobytes() + array("H", sizes).tobytes() + bytes(kinds) + bytes(count)
    )


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ({"end": "whole", "late_s": 10**400}, columns([1000], [0])),
        ({"end": "whole", "late_s": math.nan}, columns([1000], [0])),
        ({"end": "whole"}, columns([1000], [0])),
        ({"end": "\ud800", "late_s": 0.0}, columns([1000], [0])),
        ({"end": "whole", "late_s": 0.0}, columns([1000, 1000], [1, 1])),
        ({"end": "whole", "late_s": 0.0}, columns([1000, 0], [0, 0])),
        ({"end": "whole", "late_s": 0.0}, columns([1000, 1000], [0, 9])),
        ({"end": "whole", "late_s": 0.0}, columns([1000, 100], [0, 1])),
        ({"end": "whole", "late_s": 0.0}, columns([1000], [0])[:-1]),
    ],
)
def test_a_stage_that_was_not_asked_for_is_refused(
    running: Running, monkeypatch: pytest.MonkeyPatch, message: dict[str, Any], sent: bytes
) -> None:
    puppet = Puppet(running, monkeypatch)
    puppet.says = ({"end": "whole", "late_s": 0.0}, columns([1000, 1000], [0, 0]))
    assert len(puppet.client.back("train", [(10e6, 3, 1000, False, 0)])) == 2
    puppet.says = (message, sent)
    with pytest.raises(Refused):
        puppet.client.back("train", [(10e6, 3, 1000, False, 0)])
    monkeypatch.undo()
    puppet.client.close()


def test_a_server_cannot_have_more_simulated_than_was_asked_for(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = running.client()
    get = one.channel.get

    def lie(*given: Any, **named: Any) -> Any:
        message, raw = get(*given, **named)
        if "flow" in message:
            message["flow"] = {"seconds": 1e9, "goodput_bps": 5.0, "rtt_ms": 1.0, "retransmissions": 3}
        return message, raw

    monkeypatch.setattr(one.channel, "get", lie)
    assert one.flow_down("cubic", 1) == TcpFlow("cubic", "back", 2.0, 5.0, 1.0, 3)
    one.close()


def test_a_tcp_flow_pays_headers_and_what_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it pays is at least what the kernel sent; without bytes it is no flow."""
    monkeypatch.setattr(flows, "_LEAST_S", math.inf)
    listener = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(listener.getsockname())
    other, _ = listener.accept()
    worker = threading.Thread(target=flows.swallow, args=(other, 1 << 40, 20, 5))
    worker.start()
    paid = 0

    def spend(count: int) -> float | None:
        nonlocal paid
        if paid + count > 2_000_000:
            return None
        paid += count
        return 0.0

    with pytest.raises(Refused, match="no bytes were left"):
        flows.send(one, "cubic", "forward", 60, spend)
    raw = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 216)
    sent = int.from_bytes(raw[200:208], "little") + flows.Info.of(one).more_bytes
    assert sent + (1 << 14) > 1_900_000 and sent <= paid + (1 << 14)
    flows.abort(one)
    worker.join(10)
    other.close()
    listener.close()


def _channel(one: Any) -> Channel:
    """A channel over a pair of sockets, which have no TCP."""
    channel = Channel.__new__(Channel)
    channel.connection, channel.patience_s, channel.bytes, channel._waiting = one, 1.0, 0, bytearray()
    channel.until, channel.spend = math.inf, None
    return channel
