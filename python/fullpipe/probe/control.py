"""What the two ends say over TCP: JSON lines, with columns of bytes after some; and how each proves itself.

Both ends know a token that is used once. Each proves that by an HMAC over two fresh nonces, one of either
end, so that nothing that was heard before helps; the token itself is never sent. A line, what follows it, and
the time to wait for both are bounded; what follows is taken by those only who asked for it.
"""

import hashlib
import hmac
import json
import math
import re
import secrets
import socket
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fullpipe.text import shown

PORT = 8715
VERSION = "fullpipe probe 2"
# What a connection is for: to control, or a TCP flow to the server or from it.
CONTROL, UP, DOWN = "control", "up", "down"
ROLES = (CONTROL, UP, DOWN)
_MOST_LINE = 1 << 16
_MOST_SENT_AT_ONCE = 1 << 14
_NONCE_BYTES = 16
_NONCE, _PROOF = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{64}")


class Refused(Exception):
    """The other end broke the protocol, stayed silent, or refuses. `str()` says what happened."""


@dataclass(frozen=True)
class Limits:
    """What one end allows; the other one cannot raise it."""

    bytes: int
    rate_bps: float
    seconds: float
    # Packets that are remembered at once.
    records: int = 400_000


def new_token() -> str:
    """A token of 80 bits that can be read aloud."""
    return secrets.token_hex(10)


class Channel:
    """A TCP connection of lines."""

    def __init__(self, connection: socket.socket, patience_s: float) -> None:
        """`patience_s`: how long to wait for a line with what follows it."""
        self.connection, self.patience_s = connection, patience_s
        # When all waiting ends, by the monotonic clock.
        self.until = math.inf
        # Takes bytes from a budget, as `ProbePlane.spend` does.
        self.spend: Callable[[int], float | None] | None = None
        self._waiting = bytearray()
        # Lines are answers: none waits for a fuller segment.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.bytes = 0

    def put(self, message: dict[str, Any], columns: bytes = b"") -> None:
        """Sends a line, and columns behind it."""
        packed = zlib.compress(columns, 1) if columns else b""
        if columns:
            message = {**message, "packed": len(packed), "bytes": len(columns)}
        data = json.dumps(message).encode() + b"\n" + packed
        until = time.monotonic() + self.patience_s
        for at in range(0, len(data), _MOST_SENT_AT_ONCE):
            part = data[at : at + _MOST_SENT_AT_ONCE]
            self._pay(len(part))
            self.connection.settimeout(max(0.001, until - time.monotonic()))
            try:
                self.connection.sendall(part)
            except OSError as error:
                raise Refused(f"the other end does not take a message ({error.strerror or error})") from None
            self.bytes += len(part)

    def _pay(self, count: int) -> None:
        while self.spend is not None and (wait_s := self.spend(count)) != 0:
            if wait_s is None:
                raise Refused("all bytes that may be sent are used up")
            time.sleep(wait_s)

    def get(self, patience_s: float | None = None, *, columns: int = 0) -> tuple[dict[str, Any], bytes]:
        """A line and, if as many bytes are asked for at most, the columns that follow it."""
        patience_s = self.patience_s if patience_s is None else patience_s
        until, seen = time.monotonic() + patience_s, 0
        while (end := self._waiting.find(b"\n", seen)) < 0:
            seen = len(self._waiting)
            if seen > _MOST_LINE:
                raise Refused("the other end sent a line that is too long")
            self._more(until)
        line = bytes(self._waiting[:end])
        del self._waiting[: end + 1]
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            raise Refused("the other end sent a line that is not JSON") from None
        if not isinstance(message, dict):
            raise Refused("the other end sent a line that is no object")
        if isinstance(message.get("error"), str):
            raise Refused(f"the other end says: {shown(message['error'])}")
        return message, self._columns(message, columns, until)

    def _columns(self, message: dict[str, Any], most: int, until: float) -> bytes:
        packed, whole = whole_number(message, "packed", 0), whole_number(message, "bytes", 0)
        if not packed:
            return b""
        # What cannot be packed is a little longer packed.
        if packed > most + most // 100 + 64 or whole > most:
            raise Refused("the other end announced more bytes than it was asked for")
        while len(self._waiting) < packed:
            self._more(until)
        data = bytes(self._waiting[:packed])
        del self._waiting[:packed]
        unpack = zlib.decompressobj()
        try:
            columns = unpack.decompress(data, whole + 1)
        except zlib.error:
            raise Refused("the other end sent columns that cannot be unpacked") from None
        if len(columns) != whole:
            raise Refused("the other end sent columns of another length than it said")
        return columns

    def _more(self, until: float) -> None:
        now = time.monotonic()
        if now >= self.until:
            raise Refused("the time of this end is over")
        if now >= until:
            raise Refused("the other end is too slow")
        self.connection.settimeout(min(until, self.until) - now)
        try:
            found = self.connection.recv(1 << 16)
        except TimeoutError:
            over = time.monotonic() >= self.until
            why = "the time of this end is over" if over else "the other end has said nothing for too long"
            raise Refused(why) from None
        except OSError as error:
            raise Refused(f"the connection broke ({error.strerror or error})") from None
        if not found:
            raise Refused("the other end has hung up")
        self._waiting += found
        self.bytes += len(found)


def whole_number(message: dict[str, Any], name: str, otherwise: int | None = None) -> int:
    """A whole number of a message, at least 0. Raises `Refused`."""
    value = message.get(name, otherwise)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise Refused(f"the other end sent no whole number as {name}")
    return value


def number(message: dict[str, Any], name: str) -> float:
    """A finite number of a message. Raises `Refused`."""
    value = message.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1e300:
        raise Refused(f"the other end sent no number as {name}")
    return float(value)


def _hex(message: dict[str, Any], name: str, form: re.Pattern[str]) -> str:
    value = message.get(name)
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise Refused(f"the other end gave no {name}")
    return value


def _mac(token: str, purpose: str, nonces: str) -> str:
    return hmac.new(
        token.encode(errors="surrogatepass"), f"{VERSION}\n{purpose}\n{nonces}".encode(), hashlib.sha256
    ).hexdigest()


@dataclass(frozen=True)
class Secrets:
    """What both ends of a connection know after they have proved themselves."""

    role: str
    # In every datagram.
    cookie: int
    # In the datagrams that open the ports; 16 bytes.
    tag: bytes

    @classmethod
    def of(cls, token: str, role: str, nonces: str) -> "Secrets":
        """From the token and the nonces."""
        key = bytes.fromhex(_mac(token, "cookie", nonces))
        return cls(role, int.from_bytes(key[:8], "little"), key[8:24])


def challenge(channel: Channel, token: str) -> Secrets | None:
    """The server's part: demands a proof and gives one; None if the proof is wrong."""
    own = secrets.token_hex(_NONCE_BYTES)
    channel.put({"version": VERSION, "nonce": own})
    message, _ = channel.get()
    role = message.get("role")
    if role not in ROLES:
        raise Refused("the other end gave no role")
    nonces, proof = f"{own}\n{_hex(message, 'nonce', _NONCE)}", _hex(message, "proof", _PROOF)
    if not hmac.compare_digest(_mac(token, f"client {role}", nonces).encode(), proof.encode()):
        return None
    channel.put({"proof": _mac(token, f"server {role}", nonces)})
    return Secrets.of(token, str(role), nonces)


def prove(channel: Channel, token: str, role: str) -> Secrets:
    """The client's part: proves itself, and demands a proof of the server."""
    message, _ = channel.get()
    if message.get("version") != VERSION:
        raise Refused(f"the other end speaks {shown(str(message.get('version')), 40)}, not {VERSION}")
    own = secrets.token_hex(_NONCE_BYTES)
    nonces = f"{_hex(message, 'nonce', _NONCE)}\n{own}"
    channel.put({"role": role, "nonce": own, "proof": _mac(token, f"client {role}", nonces)})
    answer, _ = channel.get()
    expected = _mac(token, f"server {role}", nonces)
    if not hmac.compare_digest(expected.encode(), _hex(answer, "proof", _PROOF).encode()):
        raise Refused("the other end does not know the token")
    return Secrets.of(token, role, nonces)
