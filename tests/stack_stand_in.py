"""An adapter of a stack that is only here: a window, acknowledgements, and what tests want it to do wrong.

Run as a program by the world `quic`. Its first argument names a way to misbehave, or to tell less.
"""

import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "quic/adapters/python"))
import fullpipe_stack
from fullpipe_stack import NEVER, App, State

_HEAD = struct.Struct("<BQ")
_SYN, _DATA, _ACK = range(3)
# A datagram that leaves this long before the latest that has arrived is lost.
_REORDERING = 3
HOW = sys.argv[1] if len(sys.argv) > 1 else ""
TELLS = ("window", "ssthresh", "in_flight", "srtt", "lost", "acked")


class Toy:
    """Reno without slow start's end: a window that grows by a segment a round and halves at a loss."""

    def __init__(self, setup: dict[str, Any]) -> None:
        if setup["controller"] not in ("reno", "fixed"):
            raise ValueError(f"there is no {setup['controller']}")
        self.connected = self.failed = False
        self.delivered = 0
        self._grows = setup["controller"] == "reno"
        self._segment = setup["mtu"] - _HEAD.size
        self._window, self._threshold = 10.0, 1e9
        self._now, self._total, self._next = 0, 0, 0
        self._sent_at: dict[int, int] = {}
        self._again: list[int] = []
        self._resent: set[int] = set()
        self._recover = 0
        self._arrived: set[int] = set()
        self._edge, self._largest, self._srtt, self._lost, self._acked = 0, -1, 0, 0, 0
        self._due = NEVER
        # By the machine's clock: when each datagram left, and the latest round-trip time.
        self._really_sent: dict[int, int] = {}
        self._real_rtt = 0
        self._out: tuple[list[bytes], list[bytes]] = ([], [])
        self._jitter = random.Random() if HOW == "random" else random.Random(setup["seed"])

    def receive(self, end: int, now: int, ecn: int, datagram: bytes) -> None:
        del ecn
        kind, number = _HEAD.unpack_from(datagram)
        self._now = now
        if end == 1:
            if kind == _DATA:
                self._arrived.add(number)
                while self._edge in self._arrived:
                    self._arrived.discard(self._edge)
                    self._edge += 1
                    self.delivered = min(self._edge * self._segment, self._total)
            self._out[1].append(_HEAD.pack(kind if kind == _SYN else _ACK, number))
        elif kind == _SYN:
            self.connected, self._due = True, NEVER
        elif (sent_at := self._sent_at.pop(number, None)) is not None:
            self._acked += 1
            self._real_rtt = time.monotonic_ns() - self._really_sent[number]
            if number not in self._resent:  # Of others, nobody knows which one was acknowledged.
                self._srtt = now - sent_at if not self._srtt else (7 * self._srtt + now - sent_at) // 8
            self._largest = max(self._largest, number)
            if self._grows and number >= self._recover:
                self._window += 1 if self._window < self._threshold else 1 / self._window
            for older in [one for one in self._sent_at if one < self._largest - _REORDERING]:
                if now - self._sent_at[older] > self._srtt:
                    self._lose(older)

    def _lose(self, number: int) -> None:
        del self._sent_at[number]
        self._again.append(number)
        self._resent.add(number)
        self._lost += 1
        if self._grows and number >= self._recover:
            self._recover = self._next
            self._window = self._threshold = max(2.0, self._window / 2)

    def timer(self, end: int) -> int:
        return self._due if end == 0 else NEVER

    def on_timer(self, end: int, now: int) -> None:
        del end
        self._due, self._now = NEVER, now
        for number in list(self._sent_at):
            self._lose(number)

    def application(self, end: int, now: int, app: App) -> None:
        self._now = now
        if HOW == "draws":
            os.urandom(1)
        if end == 1 or not app.total:
            return
        self._total = app.total
        if app.stopped:
            self._total, self._again = 0, []
        if not self.connected:
            if self._due == NEVER:
                self._out[0].append(_HEAD.pack(_SYN, 0))
                self._due = now + 1_000_000_000
            return
        while len(self._sent_at) < int(self._window):
            if self._again:
                number = self._again.pop(0)
            elif self._next * self._segment < self._total:
                number, self._next = self._next, self._next + 1
            else:
                break
            self._sent_at[number], self._really_sent[number] = now, time.monotonic_ns()
            length = self._segment - (self._jitter.randrange(100) if number % 50 == 7 else 0)
            self._out[0].append(_HEAD.pack(_DATA, number) + bytes(length))
        self._due = now + 1_000_000_000 if self._sent_at else NEVER

    def transmit(self, end: int, now: int) -> Iterable[tuple[int, int, bytes]]:
        leaves = [(now, 2, one) for one in self._out[end]]
        self._out[end].clear()
        return leaves

    def state(self) -> State:
        window = int(self._window) * (self._segment + _HEAD.size)
        threshold = NEVER if self._threshold > 1e8 else int(self._threshold) * (self._segment + _HEAD.size)
        flying = len(self._sent_at) * (self._segment + _HEAD.size)
        lost = NEVER if HOW == "discreet" else self._lost
        if HOW == "silent":
            return State()
        if HOW == "boasts":
            return State(window, min_rtt_ns=self._srtt)
        srtt = self._real_rtt if HOW == "clock" else self._srtt
        return State(window, threshold, flying, srtt, lost=lost, acked=self._acked)


def misbehaving(turn: Any) -> Any:
    """The answers to turns as an adapter with a defect gives them, once half a second is over."""

    def turned(turns: Any, asked: bytes) -> bytes:
        answer: bytes = turn(turns, asked)
        (until,) = struct.unpack_from("<Q", asked, 8)
        if until < 500_000_000 and not HOW.startswith("un"):
            return answer
        packet = struct.Struct("<QBBHI")
        head, count = answer[:128], int.from_bytes(answer[128:132], "little")
        match HOW:
            case "hang":
                time.sleep(600)
            case "shy" if "TracerPid:\t0\n" not in Path("/proc/self/status").read_text(encoding="ascii"):
                sys.exit("I am being watched")
            case "die":
                sys.exit("the stack has failed an assertion")
            case "flood":
                while True:
                    sys.__stdout__.buffer.write(b"\xff" * (1 << 16))
            case "complain":
                while True:
                    sys.stderr.write("x" * (1 << 16))
            case "grow":
                late = packet.pack(until + 10**12, 0, 0, 0, 1000) + bytes(1000)
                return head + (count + 20_000).to_bytes(4, "little") + answer[132:] + late * 20_000
            case "late":
                return (until + 1).to_bytes(8, "little") + answer[8:]
            case "past":
                answer = head + (count + 1).to_bytes(4, "little") + answer[132:]
                return answer + packet.pack(400_000_000, 0, 0, 0, 9) + bytes(9)
            case "long":
                answer = head + (count + 1).to_bytes(4, "little") + answer[132:]
                return answer + packet.pack(until, 0, 0, 0, 9000) + bytes(9000)
            case "short":
                return head + (count + 1).to_bytes(4, "little") + answer[132:]
            case "fails":
                print("the peer has closed", file=sys.stderr)
                flags = int.from_bytes(answer[16:24], "little") | 2
                return answer[:16] + flags.to_bytes(8, "little") + answer[24:]
            case "unconnected":
                return answer[:16] + bytes(8) + answer[24:]
            case "undelivered":
                return answer[:24] + bytes(8) + answer[32:]
            case "spin":
                return answer[:8] + (until + 1).to_bytes(8, "little") + answer[16:128] + bytes(4)
        return answer

    return turned


def main() -> None:
    if HOW == "mute":
        time.sleep(600)
    if HOW == "leak":
        subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    fullpipe_stack._Turns.turn = misbehaving(fullpipe_stack._Turns.turn)  # type: ignore[method-assign]
    about: dict[str, Any] = {
        "name": "toy",
        "version": os.environ.get("TOY_VERSION", "1.0"),
        "licence": "MIT",
        "controllers": ["reno", "fixed"],
        "tells": [one for one in TELLS if HOW != "silent" and (one != "lost" or HOW != "discreet")]
        + ["phase"] * (HOW == "boasts"),
        "policy": "no pacing; each datagram is acknowledged",
    }
    fullpipe_stack.serve(about, Toy)


main()
