"""What an adapter tells in a run, kept so that runs can be compared.

As a program, with a report and a command, it runs the command in its place, passes on what both sides send,
and appends the numbers of each turn's answer to the report. It does so before it passes the answer on:
whoever has an answer finds it there, even if this process is killed then. It uses only the standard library,
and is started by its path.
"""

import os
import subprocess
import sys
import threading
from io import FileIO
from pathlib import Path
from struct import Struct
from typing import IO

# The numbers of an answer, in the order of quic/adapters/PROTOCOL.md.
ANSWER = Struct("<16Q")
_LENGTH = Struct("<I")
# The answers to About and to Setup come before those to turns.
_BEFORE_TURNS = 2
_MOST_PART = 1 << 16


class _Answers:
    """Finds the numbers in what an adapter sends, which comes in parts of any length."""

    def __init__(self, report: FileIO) -> None:
        self._report = report
        self._frames = 0
        # Of the frame that arrives: what is here of its length, bytes that are missing, and its beginning.
        self._length, self._left, self._head = bytearray(), 0, bytearray()

    def take(self, part: bytes) -> None:
        at = 0
        while at < len(part):
            if self._left:
                step = min(self._left, len(part) - at)
                self._head += part[at : at + min(step, ANSWER.size - len(self._head))]
                self._left -= step
            else:
                step = min(_LENGTH.size - len(self._length), len(part) - at)
                self._length += part[at : at + step]
                if len(self._length) < _LENGTH.size:
                    return
                (self._left,) = _LENGTH.unpack(self._length)
                self._length.clear()
                self._head.clear()
            at += step
            if not self._left:
                self._frames += 1
                if self._frames > _BEFORE_TURNS and len(self._head) == ANSWER.size:
                    self._report.write(self._head)


def _write(to: int, part: bytes) -> None:
    rest = memoryview(part)
    while rest:
        rest = rest[os.write(to, rest) :]


def _pass_on(to: IO[bytes]) -> None:
    """Passes on what is asked, until that ends or nobody reads it."""
    try:
        while part := os.read(0, _MOST_PART):
            _write(to.fileno(), part)
    except BrokenPipeError:
        return
    to.close()


def main(report: str, command: list[str]) -> int:
    """Runs a command, and keeps what it tells; returns its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert child.stdin is not None and child.stdout is not None
    threading.Thread(target=_pass_on, args=(child.stdin,), daemon=True).start()
    with Path(report).open("ab", buffering=0) as kept:
        answers = _Answers(kept)
        while part := os.read(child.stdout.fileno(), _MOST_PART):
            answers.take(part)
            _write(1, part)
    # Whoever asks sees that there are no more answers, even if the adapter goes on.
    os.close(1)
    code = child.wait()
    if code < 0:
        # It ends as the adapter did.
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
