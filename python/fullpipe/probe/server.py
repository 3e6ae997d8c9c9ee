"""The far end: `fullpipe probe serve`.

It serves one client, once. Whoever connects gets a nonce and has a few seconds to prove that it knows the
token; some wrong proofs end the server. No byte of UDP leaves before that. Then the client asks for stages,
which run within the server's own limits, whatever the client says, and strangers can neither end nor join it.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from fullpipe.errors import mistake
from fullpipe.probe import flows, ports
from fullpipe.probe.control import (
    CONTROL,
    DOWN,
    UP,
    Channel,
    Limits,
    Refused,
    Secrets,
    challenge,
    number,
    whole_number,
)
from fullpipe.text import counted, shown

MOST_WRONG = 5
# Strangers at once, and how long each may take.
_MOST_GREETED = 8
_PATIENCE_S = 5.0
# How long the client has to open the ports.
_OPEN_S = 5.0
_LOOK_EVERY_S = 0.2
_MOST_PIECES = 64
_MOST_PACKETS = 1_000_000


class Ended(Exception):
    """The server served no measurement to its end. `str()` says why."""


class LockedOut(Ended):
    """Too many wrong proofs: somebody guesses the token."""


class Server:
    """Listens from when it is made."""

    def __init__(self, bind: str, port: int, token: str, limits: Limits, say: Callable[[str], None]) -> None:
        self.token, self.limits, self.say = token, limits, say
        try:
            family = socket.AF_INET6 if ":" in bind else socket.AF_INET
            self._listener = socket.create_server((bind, port), family=family)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise mistake(
                "bind",
                f"{bind}, port {port}",
                f"an address of this machine and a free port ({reason})",
                "name another --bind or --port",
            ) from None
        self._listener.settimeout(_LOOK_EVERY_S)
        self.port: int = self._listener.getsockname()[1]
        self._until = time.monotonic() + limits.seconds
        self._lock = threading.Lock()
        # Who has not proved itself yet, the oldest first.
        self._unproved: dict[socket.socket, None] = {}
        self._wrong = 0
        self._broke = ""
        self._session: _Session | None = None
        self._over = threading.Event()

    def close(self) -> None:
        """Ends everything."""
        self._over.set()
        self._listener.close()
        if self._session is not None:
            self._session.close()

    def serve(self, wait_s: float) -> None:
        """Until the one client has finished, or none came within `wait_s`. Raises `Ended`."""
        until = time.monotonic() + wait_s
        try:
            while not self._over.is_set():
                if self._session is None and time.monotonic() > until:
                    raise mistake(
                        "wait",
                        f"{wait_s:g} s",
                        "a client in that time",
                        "start the client sooner, or wait longer",
                    )
                try:
                    connection, peer = self._listener.accept()
                except TimeoutError:
                    continue
                if self._session is not None and self._session.peer != peer[0]:
                    connection.close()
                    continue
                self._make_room(connection)
                threading.Thread(target=self._greet, args=(connection, peer[0]), daemon=True).start()
            if self._broke:
                raise Ended(f"the measurement ended: {self._broke}")
            if self._wrong >= MOST_WRONG:
                raise LockedOut(
                    f"{counted(self._wrong, 'wrong token')}: somebody guesses, so the server ends; "
                    "start it again for a new token"
                )
        finally:
            self.close()

    def _make_room(self, connection: socket.socket) -> None:
        """Hangs up on the one that has been trying for longest, if there are too many."""
        with self._lock:
            self._unproved[connection] = None
            if len(self._unproved) > _MOST_GREETED:
                oldest = next(iter(self._unproved))
                del self._unproved[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)

    def _greet(self, connection: socket.socket, peer: str) -> None:
        with contextlib.closing(connection), contextlib.suppress(Refused, OSError, ValueError):
            try:
                channel = Channel(connection, _PATIENCE_S)
                secret = challenge(channel, self.token)
            finally:
                with self._lock:
                    self._unproved.pop(connection, None)
            if secret is None:
                with self._lock:
                    # Once the client is here, nobody gains anything by the token.
                    self._wrong += self._session is None
                    if self._wrong >= MOST_WRONG:
                        self._over.set()
                channel.put({"error": "the token is wrong"})
            elif secret.role == CONTROL:
                self._control(channel, peer, secret)
            elif (session := self._session) is None or session.peer != peer or not session.begin_flow():
                channel.put({"error": "there is no measurement that this flow belongs to"})
            else:
                session.flow(channel, secret.role)

    def _control(self, channel: Channel, peer: str, secret: Secrets) -> None:
        with self._lock:
            if self._session is not None or self._over.is_set():
                channel.put({"error": "the token was used; start the server again for a new one"})
                return
            self._session = _Session(channel, peer, secret, self.limits, self._listener)
        self.say(f"fullpipe: measuring with {shown(peer)}")
        try:
            self._session.run()
        except (Refused, OSError) as error:
            self._broke = str(error)
            with contextlib.suppress(Refused, OSError):
                channel.put({"error": str(error)})
        finally:
            self._over.set()
            self._session.close()


class _Session:
    """The measurement with the one client."""

    def __init__(
        self, channel: Channel, peer: str, secret: Secrets, limits: Limits, listener: socket.socket
    ) -> None:
        self.channel, self.peer, self.limits = channel, peer, limits
        self._secret, self._listener = secret, listener
        self._until = time.monotonic() + limits.seconds
        self._sockets: list[socket.socket] = []
        self._plane: Any = None
        self._flow_lock = threading.Lock()
        # Of TCP flows to here, what may still come.
        self._room = limits.bytes
        self._last_flow: flows.TcpFlow | None = None
        self._wanted: tuple[str, float] = ("cubic", 0.0)

    def run(self) -> None:
        """Answers the client until it says that it is done."""
        own = self.channel.connection.getsockname()[:2]
        # The line that lets the client begin to send datagrams: its TCP handshake is done.
        limits = {name: getattr(self.limits, name) for name in ("bytes", "rate_bps", "seconds")}
        self.channel.put({"ready": True, **limits})
        self._sockets = ports.server_sockets(own, self.peer, self._secret, _OPEN_S)
        self._plane = ports.plane(self._sockets, self._secret, self.limits)
        self.channel.spend = lambda count: self._plane.spend(count, line=True)
        self.channel.put({"open": True})
        while (left := self._until - time.monotonic()) > 0:
            message, _ = self.channel.get(left)
            match message.get("op"):
                case "fetch":
                    stream = whole_number(message, "stream") & 0xFFFF
                    self.channel.put(
                        {"dropped_here": self._plane.dropped_here()}, self._plane.arrived(stream)
                    )
                case "send":
                    self._send(message)
                case "flow":
                    self._expect(str(message.get("controller")), number(message, "seconds"))
                case "flowed":
                    with self._flow_lock:
                        found = self._last_flow
                    self.channel.put({"flow": None if found is None else asdict(found)})
                case "end":
                    return
                case other:
                    raise Refused(f"{shown(str(other), 40)} is nothing that can be asked for")
        raise Refused("the server's time is over")

    def _send(self, message: dict[str, Any]) -> None:
        given, rule = message.get("pieces"), message.get("rule")
        if not isinstance(given, list) or not isinstance(rule, list) or not 0 < len(given) <= _MOST_PIECES:
            raise Refused("a stage needs pieces and a rule")
        try:
            pieces = [(float(a), int(b), int(c), bool(d), int(e)) for a, b, c, d, e in given]
            name, one, other = str(rule[0]), float(rule[1]), float(rule[2])
            if sum(piece[1] for piece in pieces) > _MOST_PACKETS:
                raise ValueError("too many packets")
            # Our own measure of the round trip, not the client's word.
            silent_s = flows.silence_s(flows.Info.of(self.channel.connection).rtt_s)
            sent, end, late_s = self._plane.send(
                whole_number(message, "stream") & 0xFFFF,
                pieces,
                echo=False,
                rule=(name, one, other),
                silence_s=silent_s,
            )
        except (ValueError, TypeError, IndexError, OverflowError):
            raise Refused("the pieces or the rule of a stage are damaged") from None
        self.channel.put({"end": end, "late_s": late_s}, sent)

    def _expect(self, controller: str, seconds: float) -> None:
        """Prepares for a TCP flow to the client."""
        try:
            # Connections inherit it. Set later, one that had BBR first would stay paced.
            flows.choose(self._listener, controller)
        except OSError:
            why = "the server's kernel does not have this controller, or keeps it from users"
            self.channel.put({"refused": why})
            return
        self._wanted = (controller, min(seconds, self.limits.seconds))
        self.channel.put({"ok": True})

    def begin_flow(self) -> bool:
        """Whether a TCP flow may begin: one at a time."""
        return self._plane is not None and not self._flow_lock.locked()

    def flow(self, channel: Channel, role: str) -> None:
        """Carries out a TCP flow."""
        with self._flow_lock:
            connection = channel.connection
            if role == UP:
                channel.put({"ok": True})
                left_s = self._until - time.monotonic()
                self._room -= flows.swallow(connection, self._room, left_s, _PATIENCE_S)
            elif role == DOWN:
                controller, seconds = self._wanted
                self._last_flow = None
                channel.put({"ok": True})
                try:
                    self._last_flow = flows.send(
                        connection,
                        controller,
                        "back",
                        seconds,
                        lambda count: self._plane.spend(count, line=False),
                    )
                finally:
                    flows.abort(connection)

    def close(self) -> None:
        """Ends the data plane and its sockets."""
        if self._plane is not None:
            self._plane.end()
        for one in self._sockets:
            one.close()
