"""`fullpipe lab`: it hands out the page's files, and nothing else to nobody else."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fullpipe.cli import app as cli
from fullpipe.cli import lab_server as lab
from fullpipe.cli.lab_server import Server
from fullpipe.errors import ScenarioError
from fullpipe.runs.worlds import child


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A page with one file of each kind, and what must not be served."""
    folder = tmp_path / "site"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html>")
    (folder / "assets" / "engine-1a2b.wasm").write_bytes(b"\0asm" + bytes(5000))
    (folder / "assets" / "index-1a2b.js").write_text("1")
    (folder / ".secret").write_text("secret")
    (folder / "key.pem").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    return folder


@pytest.fixture
def server(site: Path) -> Generator[Server]:
    with Server("127.0.0.1", 0, site) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: Server, path: str = "/", method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.request(
            method, path, body, {name.replace("_", "-"): message for name, message in headers.items()}
        )
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def raw(server: Server, request: bytes) -> bytes:
    """What comes back until the server ends the connection."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_file_has_type_and_restrictive_headers(server: Server) -> None:
    answer, content = ask(server)
    assert (answer.status, content) == (200, b"<!doctype html>")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert "unsafe-inline" not in policy and "'unsafe-eval'" not in policy
    answer, content = ask(server, "/assets/engine-1a2b.wasm")
    assert (answer.status, len(content)) == (200, 5004)
    assert answer.headers["Content-Type"] == "application/wasm"
    assert "immutable" in answer.headers["Cache-Control"]
    assert ask(server, "/assets/index-1a2b.js")[0].headers["Content-Type"].startswith("text/javascript")
    assert ask(server, "/index.html?x=/etc/passwd")[1] == b"<!doctype html>"


def test_cached_file_is_not_sent_again(server: Server) -> None:
    tag = ask(server)[0].headers["ETag"]
    answer, content = ask(server, If_None_Match=tag)
    assert (answer.status, content) == (304, b"")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert ask(server, If_None_Match='"other"')[0].status == 200
    answer, content = ask(server, method="HEAD")
    assert (answer.status, answer.headers["Content-Length"], content) == (200, "15", b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../outside.txt",
        "/assets/../../outside.txt",
        "/%2e%2e/outside.txt",
        "/..%2foutside.txt",
        "//etc/passwd",
        "/etc/passwd",
        "/.secret",
        "/key.pem",
        "/link.txt",
        "/assets/",
        "/assets",
        "/index.html/",
        "/index.html%00.js",
        "/./index.html",
        "\\..\\outside.txt",
        "*",
    ],
)
def test_only_page_files_are_served(server: Server, path: str) -> None:
    answer, content = ask(server, path)
    assert (answer.status, content) == (404, b"404 Not Found\n")
    assert answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH", "GETS"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    answer, _ = ask(server, method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST:{port}", 200),
        ("evil.example:{port}", 421),
        ("evil.example", 421),
        ("localhost.evil.example:{port}", 421),
        ("localhost", 421),
        ("localhost:1", 421),
        ("127.0.0.2:{port}", 421),
        ("[::1]:{port}", 421),
        ("", 421),
        (":{port}", 421),
    ],
)
def test_foreign_host_header_is_refused(server: Server, host: str, status: int) -> None:
    """A stranger's page could ask under the stranger's name (DNS rebinding)."""
    assert ask(server, Host=host.format(port=server.server_port))[0].status == status


def test_requests_that_are_none_are_refused(server: Server) -> None:
    named = f"Host: localhost:{server.server_port}\r\n".encode()
    long = b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\n" + named + b"\r\n"
    assert b" 414 " in raw(server, long)
    assert b" 414 " in raw(server, b"GET /" + b"a" * 70_000)
    assert b" 431 " in raw(server, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n")
    assert b" 431 " in raw(server, b"GET / HTTP/1.1\r\nA: " + b"b" * 70_000)
    assert b" 400 " in raw(server, b"GET / HTTP/1.1\r\n" + named + b"Content-Length: 5\r\n\r\nhello")
    assert b" 400 " in raw(
        server, b"GET / HTTP/1.1\r\n" + named + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    )
    assert b" 421 " in raw(server, b"GET / HTTP/1.1\r\n\r\n")
    assert b"400 Bad" in raw(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
    assert b"<!doctype" not in raw(server, b"GET /\r\n")
    # None of them did any harm.
    assert ask(server)[0].status == 200


def test_refused_request_body_is_not_parsed(server: Server) -> None:
    """Else a body could be taken for the next request."""
    inner = f"GET / HTTP/1.1\r\nHost: localhost:{server.server_port}\r\n\r\n".encode()
    head = f"POST / HTTP/1.1\r\nHost: localhost:{server.server_port}\r\nContent-Length: {len(inner)}\r\n\r\n"
    answers = raw(server, head.encode() + inner)
    assert answers.count(b"HTTP/1.1 ") == 1 and b" 405 " in answers


def test_one_connection_carries_several_requests(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    for path in ("/", "/assets/index-1a2b.js", "/"):
        connection.request("GET", path)
        assert connection.getresponse().read()
    connection.close()


def test_there_is_a_limit_of_connections(server: Server) -> None:
    held: list[socket.socket] = []
    try:
        for _ in range(lab._MOST_CONNECTIONS):
            held.append(socket.create_connection(("127.0.0.1", server.server_port), timeout=10))
            held[-1].sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises(OSError):
            # Ended without an answer.
            for _ in range(2):
                ask(server)
    finally:
        for one in held:
            one.close()


def test_public_server_accepts_addresses_and_hostname(site: Path) -> None:
    with Server("0.0.0.0", 0, site) as server:
        port = server.server_port
        assert server.url == f"http://127.0.0.1:{port}/"
        assert not server.is_private
        for name in ("192.0.2.7", "[2001:db8::1]", "localhost", socket.gethostname()):
            assert server.is_named(f"{name}:{port}"), name
        assert not server.is_named(f"evil.example:{port}")
        assert not server.is_named(None)


def test_ipv6_address_is_in_brackets(site: Path) -> None:
    if not _has_ipv6():
        pytest.skip("this machine has no ::1")
    with Server("::1", 0, site) as server:
        assert server.url == f"http://[::1]:{server.server_port}/"
        assert server.is_named(f"[::1]:{server.server_port}") and server.is_private


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_unusable_address_is_an_error(server: Server, site: Path, tmp_path: Path) -> None:
    port = server.server_port
    with pytest.raises(
        ScenarioError, match=rf"port: {port} on 127.0.0.1 cannot be listened to: .*; choose another"
    ):
        Server("127.0.0.1", port, site)
    with pytest.raises(ScenarioError, match=r'host: "no\.such\.invalid" is no address of this machine'):
        Server("no.such.invalid", 0, site)
    with pytest.raises(ScenarioError, match=r"host: .*x{300}"):
        Server("x" * 300, 0, site)
    with pytest.raises(ScenarioError, match="the lab's page is not built; run `make lab`"):
        Server("127.0.0.1", 0, tmp_path / "nowhere")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, site: Path) -> Iterator[list[str]]:
    """The addresses that were opened in a browser, in place of a browser. The server ends at once."""

    def interrupted(self: Server) -> None:
        raise KeyboardInterrupt

    found: list[str] = []
    monkeypatch.setattr(lab, "SITE", site)
    monkeypatch.setattr(Server, "serve_forever", interrupted)
    monkeypatch.setattr("webbrowser.open", found.append)
    yield found


@pytest.mark.parametrize(
    ("display", "options", "opens"),
    [({"DISPLAY": ":0"}, [], 1), ({"DISPLAY": ":0"}, ["--no-browser"], 0), ({}, [], 0)],
)
def test_browser_opens_only_with_display(
    opened: list[str],
    monkeypatch: pytest.MonkeyPatch,
    display: dict[str, str],
    options: list[str],
    opens: int,
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in display.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(cli.app, ["lab", "--port", "0", *options])
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("The lab: http://127.0.0.1:")
    assert [f"The lab: {url} (Ctrl-C ends it)" for url in opened] == done.stdout.splitlines()[:opens]


def test_public_host_prints_warning(opened: list[str]) -> None:
    done = CliRunner().invoke(cli.app, ["lab", "--port", "0", "--host", "0.0.0.0", "--no-browser"])
    assert (done.exit_code, done.stderr) == (
        0,
        "fullpipe: everybody who can reach 0.0.0.0 can open the lab\n",
    )


def test_an_interrupt_ends_it_without_complaint(site: Path) -> None:
    begin = f"from fullpipe.cli import lab_server as server; server.SITE = server.Path({str(site)!r})"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"{begin}; from fullpipe import __main__; __main__.main()",
            "lab",
            "--port",
            "0",
            "--no-browser",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("The lab: http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
        assert (process.returncode, stderr) == (0, "")
    finally:
        process.kill()
        process.wait()


def test_slow_client_is_disconnected(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab._Handler, "longest_s", 0.2)
    with socket.create_connection(server.server_address[:2]) as client:
        client.sendall(b"GET / HT")
        # It ends though the patience for a single byte is longer.
        assert client.recv(100) == b""


@pytest.mark.parametrize("name", ["Host", "Content-Length"])
def test_duplicate_header_is_refused(server: Server, name: str) -> None:
    host, port = str(server.server_address[0]), server.server_address[1]
    values = {"Host": [f"{host}:{port}", "evil"], "Content-Length": ["0", "50"]}[name]
    first = "" if name == "Host" else f"Host: {host}:{port}\r\n"
    message = first + "".join(f"{name}: {value}\r\n" for value in values)
    with socket.create_connection((host, port)) as client:
        client.sendall(f"GET / HTTP/1.1\r\n{message}\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")


def test_slow_clients_yield_to_new_ones(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "young_s", 0.0)
    with contextlib.ExitStack() as held:
        for _ in range(300):
            client = held.enter_context(socket.create_connection(server.server_address[:2], timeout=10))
            client.sendall(b"GET / HTTP/1.1\r\nX: ")
            assert len(server._waiting) <= lab._MOST_CONNECTIONS
        answer, _ = ask(server)
        assert answer.status == 200


def test_slow_request_ends_at_deadline(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab._Handler, "request_s", 0.2)
    monkeypatch.setattr(lab._Handler, "patience_s", 60.0)
    address = server.server_address[:2]
    with socket.create_connection(address, timeout=30) as client, contextlib.suppress(OSError):
        while not child.readable([client.fileno()], 0.01):
            client.sendall(b"G")
        assert client.recv(100) == b""


def test_unread_answer_ends_at_deadline(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(lab._Handler, "longest_s", 0.2)
    # Called after each connection.
    monkeypatch.setattr(server, "close_request", lambda request: (request.close(), ended.set()))
    server.files["/"] = replace(server.files["/"], content=b"x" * 50_000_000)
    with socket.create_connection(server.server_address[:2]) as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: {server.url[7:-1]}\r\n\r\n".encode())
        assert ended.wait(60)


@pytest.mark.parametrize(("peer", "most"), [("192.0.2.1", lab._MOST_OF_PEER), ("127.0.0.1", 64), ("::1", 64)])
def test_connections_of_a_peer_are_bounded(
    server: Server, monkeypatch: pytest.MonkeyPatch, peer: str, most: int
) -> None:
    monkeypatch.setattr(lab, "_peer", lambda _: peer)
    with contextlib.ExitStack() as held:
        ours = [held.enter_context(socket.socket()) for _ in range(most + 1)]
        assert [server._admit(one, peer) for one in ours] == [True] * most + [False]
