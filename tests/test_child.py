"""Children end with their parent, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fullpipe.runs.worlds import child

# The program ignores the end of its input, and every signal that can be ignored.
DEAF = 'trap "" HUP INT QUIT TERM PIPE; while :; do sleep 100; done'
PARENT = """
import subprocess, sys, threading
from fullpipe.runs.worlds import child
def start():
    child.start(["sh", "-c", sys.argv[1]], stdin=subprocess.PIPE)
    if len(sys.argv) > 2:  # Others that ended before are not mistaken for it.
        for _ in range(3):
            child.end(child.start(["true"]))
thread = threading.Thread(target=start)
thread.start()
thread.join()
print("began", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("script", [DEAF, f"({DEAF}) & wait; {DEAF}"], ids=["program", "wrapper"])
@pytest.mark.parametrize("more", [[], ["more"]], ids=["one", "several"])
def test_killed_parent_leaves_no_child(script: str, more: list[str]) -> None:
    # Everything below writes to one pipe, which ends when the last of them has ended.
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, script, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdin is not None and parent.stdout is not None
    assert parent.stdout.readline() == b"began\n"
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    # The time matters only if a child is alive, which no wait would end.
    parent.communicate(timeout=60)


def test_quic_program_ends_with_killed_parent(tmp_path: Path) -> None:
    program = tmp_path / "fullpipe-quic"
    program.write_text(f"#!/bin/sh\n{DEAF}\n", encoding="utf-8")
    program.chmod(0o755)
    code = """
import sys
from fullpipe.runs.worlds import child, quic_program
start = child.start
def started(*arguments, **options):
    begun = start(*arguments, **options, pass_fds=[int(sys.argv[1])])
    print("began", flush=True)
    return begun
child.start = started
quic_program.about()
"""
    reader, writer = os.pipe()
    # The program inherits the pipe, which ends when the program has ended.
    with os.fdopen(reader, "rb") as held:
        parent = subprocess.Popen(
            [sys.executable, "-c", code, str(writer)],
            env={**os.environ, "FULLPIPE_QUIC": str(program)},
            stdout=subprocess.PIPE,
            pass_fds=[writer],
        )
        os.close(writer)
        assert parent.stdout is not None and parent.stdout.readline() == b"began\n"
        parent.kill()
        parent.communicate(timeout=60)
        assert child.readable([held.fileno()], 60) and held.read() == b""


def test_ended_child_is_not_killed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[tuple[str, int]] = []
    monkeypatch.setattr(child._guardian, "note", lambda *message: noted.append(message))
    one = child.start(["true"])
    child.end(one)
    assert noted == [("+", one.pid), ("-", one.pid)]


@pytest.mark.parametrize("then", ["stays", "leaves"])
def test_interrupt_during_start_leaves_no_child(then: str) -> None:
    # The child runs, and the call that starts it has not returned. Its output ends when it has ended.
    code = """
import os, signal, subprocess, sys, threading
from fullpipe import __main__
from fullpipe.runs.worlds import child
signal.signal(signal.SIGINT, signal.default_int_handler)
real, end_all, caught = subprocess.Popen, child.end_all, threading.Event()
def interrupted(*arguments, **options):
    begun = real(*arguments, **options)
    os.kill(os.getpid(), signal.SIGINT)
    # A main thread that is here is interrupted here.
    caught.wait()
    return begun
def ending():
    caught.set()
    end_all()
subprocess.Popen, child.end_all = interrupted, ending
try:
    child.start(["sh", "-c", sys.argv[1]])
except KeyboardInterrupt:
    if sys.argv[2] == "leaves":
        __main__.leave()
    caught.set()
    os.close(1)
    sys.stdin.read()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", code, DEAF, then],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert parent.stdout is not None
    assert child.readable([parent.stdout.fileno()], 60) and parent.stdout.read() == b""
    parent.communicate(timeout=60)
    assert parent.returncode == {"stays": 0, "leaves": 130}[then]
