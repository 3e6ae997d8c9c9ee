"""A web server for the files of one folder, and nothing else.

The files are read when it starts. A request names one of them exactly or gets an error, so that no request
reaches the disk. Nobody but this machine can ask, unless it is told to listen elsewhere. A page of a stranger
cannot make a browser ask either: the name in `Host` must be one of this machine's, because a name that a
stranger owns can be made to lead here, and answers are not for pages of other origins.
"""

import contextlib
import hashlib
import io
import ipaddress
import math
import socket
import socketserver
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fullpipe.errors import stated

SITE = Path(__file__).parent / "site"
PORT = 8714
LOOPBACK = "127.0.0.1"

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}
# Scripts, workers and the engine of this very server, and no request to any other. Pictures may be drawn from
# what the page has made.
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; "
    "style-src 'self'; img-src 'self' blob: data:; font-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_SAFETY = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# The build writes a digest of its content into the name of everything in this folder.
_LASTING = "/assets/"
_LONGEST_TARGET = 2048
_MOST_CONNECTIONS = 64
# From other machines. All programs of this machine have one address.
_MOST_OF_PEER = 16
# A connection on which nobody asks ends after so many seconds, one whose request is not complete so many
# after its first byte, and any connection after so many: otherwise a few clients that send a byte now and
# then would keep all others out.
_PATIENCE_S, _REQUEST_S, _LONGEST_S = 15.0, 5.0, 60.0
# When there are too many, a connection that has waited for a request for longer ends for a new one.
_YOUNG_S = 1.0


@dataclass(frozen=True)
class File:
    """A file that is served."""

    content: bytes
    kind: str
    tag: str
    cache: str


def files(folder: Path) -> dict[str, File]:
    """The files below a folder by their paths in addresses. The folder itself is its `index.html`."""
    found = {}
    for path in sorted(folder.rglob("*")):
        kind = _TYPES.get(path.suffix)
        # What a link leads to may be anywhere.
        if kind is None or path.is_symlink() or not path.is_file():
            continue
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue
        address = f"/{path.relative_to(folder).as_posix()}"
        content = path.read_bytes()
        lasting = address.startswith(_LASTING)
        found[address] = File(
            content,
            kind,
            f'"{hashlib.sha256(content).hexdigest()[:32]}"',
            "public, max-age=31536000, immutable" if lasting else "no-cache",
        )
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


class Server(ThreadingHTTPServer):
    """Serves a folder on one address."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = _MOST_CONNECTIONS
    young_s = _YOUNG_S

    def __init__(self, host: str, port: int, folder: Path | None = None) -> None:
        folder = SITE if folder is None else folder
        self.files = files(folder)
        if "/" not in self.files:
            sentence = "the lab's page is not built; run `make lab` in a checkout of Fullpipe"
            raise stated("lab", str(folder), sentence, "a built page", "run `make lab`")
        # When each connection began to wait for a request; infinite while one is answered.
        self._waiting: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        try:
            family, _, _, _, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        except (socket.gaierror, UnicodeError, OverflowError) as error:
            raise stated(
                "host",
                host,
                f'host: "{host}" is no address of this machine: {_message(error)}; write --host {LOOPBACK}',
                "an address of this machine",
                f"write --host {LOOPBACK}",
            ) from None
        self.address_family = family
        try:
            super().__init__((str(found[0]), port), _Handler)
        except OSError as error:
            fix = "choose another with --port, or any free one with --port 0"
            sentence = f"port: {port} on {host} cannot be listened to: {_message(error)}; {fix}"
            raise stated("port", port, sentence, "a free port", fix) from None
        self.names = _names(str(self.server_address[0]), host)

    @property
    def url(self) -> str:
        """Where the page is. An address that stands for all of a machine is named as this machine itself."""
        host, port = str(self.server_address[0]), self.server_address[1]
        parsed = ipaddress.ip_address(host)
        if parsed.is_unspecified:
            host = "127.0.0.1" if parsed.version == 4 else "::1"
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    @property
    def is_private(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(str(self.server_address[0])).is_loopback

    def server_bind(self) -> None:
        """Binds, without a question to the name service."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handles a connection in a thread of its own, if there are not too many."""
        if not self._admit(request, str(client_address[0])):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handles a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._waiting.pop(request, None)

    def shutdown_request(self, request: Any) -> None:
        """Closes a connection, which nobody may end later: its descriptor may be another's."""
        with self._lock:
            self._waiting.pop(request, None)
        super().shutdown_request(request)

    def waits(self, request: socket.socket, since_s: float) -> None:
        """Notes since when a connection waits for a request; infinite while one is answered."""
        with self._lock:
            if request in self._waiting:
                self._waiting[request] = since_s

    def _admit(self, request: socket.socket, peer: str) -> bool:
        """Whether there is room for a connection. One that has waited for long makes room."""
        now_s = time.monotonic()
        with self._lock:
            if not ipaddress.ip_address(peer.partition("%")[0]).is_loopback:
                theirs = [one for one in self._waiting if _peer(one) == peer]
                if len(theirs) >= _MOST_OF_PEER:
                    return False
            if len(self._waiting) >= _MOST_CONNECTIONS:
                oldest = min(self._waiting, key=self._waiting.__getitem__)
                if now_s - self._waiting[oldest] < self.young_s:
                    return False
                # Its thread then reads the end, and closes it.
                del self._waiting[oldest]
                _end(oldest)
            self._waiting[request] = now_s
            return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a browser that went away."""

    def is_named(self, host: str | None) -> bool:
        """Whether a `Host` is a name of this server."""
        if host is None:
            return False
        name, colon, port = host.rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host, "80"
        if port != str(self.server_address[1]):
            return False
        name = name.removeprefix("[").removesuffix("]").lower()
        if self.names is not None:
            return name in self.names
        # It listens on all addresses of the machine. An address is none that a stranger could make lead here.
        return name == "localhost" or name == socket.gethostname().lower() or _is_address(name)


def _names(address: str, host: str) -> set[str] | None:
    """The names of a server that listens on an address; `None`: all that are no stranger's."""
    parsed = ipaddress.ip_address(address)
    if parsed.is_unspecified:
        return None
    names = {address.lower(), host.lower()}
    return names | {"localhost"} if parsed.is_loopback else names


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _message(error: Exception) -> str:
    """What the operating system says of an error."""
    return str(getattr(error, "strerror", None) or error)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _peer(connection: socket.socket) -> str:
    try:
        return str(connection.getpeername()[0])
    except OSError:
        return ""


class _Until(io.RawIOBase):
    """What a client sends, until a time. A socket's own timeout would begin again with each byte."""

    def __init__(self, handler: "_Handler") -> None:
        self._handler = handler

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        """Raises `TimeoutError` when the time is over."""
        connection = self._handler.connection
        connection.settimeout(self._handler.left_s())
        count: int = connection.recv_into(into)
        self._handler.began()
        return count


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    patience_s = _PATIENCE_S
    request_s = _REQUEST_S
    longest_s = _LONGEST_S

    def setup(self) -> None:
        """Begins the connection's time."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Until(self))
        self._ends_s = time.monotonic() + self.longest_s
        self._until_s, self._begun = self._ends_s, False

    def left_s(self) -> float:
        """How long a read or a write may still take."""
        left_s = min(self._until_s, self._ends_s) - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s

    def began(self) -> None:
        """The first bytes of a request have come: the others must come soon."""
        if not self._begun:
            self._begun, self._until_s = True, time.monotonic() + self.request_s

    def handle_one_request(self) -> None:
        """Answers a request; the connection ends where none comes in time."""
        now_s = time.monotonic()
        self.server.waits(self.connection, now_s)
        self._begun, self._until_s = False, now_s + self.patience_s
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Parses a request. The answer may take the rest of the connection's time."""
        parsed = super().parse_request()
        self.server.waits(self.connection, math.inf)
        self._until_s = self._ends_s
        self.connection.settimeout(self.left_s())
        return parsed

    def do_GET(self) -> None:
        """Hands out a file."""
        self._answer(with_content=True)

    def do_HEAD(self) -> None:
        """Says what there is."""
        self._answer(with_content=False)

    def __getattr__(self, name: str) -> Any:
        """Refuses all other methods."""
        if name.startswith("do_"):
            return lambda: self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)
        raise AttributeError(name)

    def _answer(self, *, with_content: bool) -> None:
        if any(len(self.headers.get_all(name, [])) > 1 for name in ("Host", "Content-Length")):
            return self.send_error(HTTPStatus.BAD_REQUEST)
        if not self.server.is_named(self.headers.get("Host")):
            return self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        if len(self.path) > _LONGEST_TARGET:
            return self.send_error(HTTPStatus.REQUEST_URI_TOO_LONG)
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            return self.send_error(HTTPStatus.BAD_REQUEST)
        file = self.server.files.get(self.path.partition("?")[0])
        if file is None:
            return self.send_error(HTTPStatus.NOT_FOUND)
        known = self.headers.get("If-None-Match") == file.tag
        self.send_response(HTTPStatus.NOT_MODIFIED if known else HTTPStatus.OK)
        self._send_headers({"Cache-Control": file.cache, "ETag": file.tag})
        if known:
            self.end_headers()
            return None
        self._send_headers({"Content-Type": file.kind, "Content-Length": str(len(file.content))})
        self.end_headers()
        if with_content:
            self.wfile.write(file.content)
        return None

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answers with an error in plain text. Ends the connection, on which there may be more to read."""
        status = HTTPStatus(code)
        text = f"{status.value} {status.phrase}\n".encode()
        self.close_connection = True
        self.send_response(status)
        self._send_headers(
            {
                "Cache-Control": "no-store",
                "Connection": "close",
                "Content-Type": "text/plain; charset=utf-8",
                "Content-Length": str(len(text)),
            }
        )
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _send_headers(self, headers: dict[str, str]) -> None:
        for name, value in headers.items():
            self.send_header(name, value)

    def end_headers(self) -> None:
        """Adds what every answer says."""
        self._send_headers(_SAFETY)
        super().end_headers()

    def version_string(self) -> str:
        """Does not tell which Python this is."""
        return "fullpipe"

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""
