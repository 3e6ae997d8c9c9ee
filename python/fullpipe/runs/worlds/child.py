"""How this process talks to a child that runs in its place: blobs over pipes, and how a child ends.

A blob is its length in 8 bytes, big endian, and its bytes.
"""

import contextlib
import errno
import math
import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from struct import Struct
from typing import Any

import fullpipe._native as _native
from fullpipe.text import shown

LENGTH = Struct(">Q")
# Of a child that is ours: its sentence may have the last lines of several programs in it.
_MOST_OF_OURS = 4000
_started: set[subprocess.Popen[bytes]] = set()
# Held from the fork of a child until the guardian knows of it.
_starting = threading.Lock()
# A start takes milliseconds. It may hang in the kernel, in a file system that does not answer.
_MOST_START_S = 5.0


def blob(content: bytes) -> bytes:
    """The blob with this content."""
    return LENGTH.pack(len(content)) + content


def start(arguments: list[Any], **options: Any) -> subprocess.Popen[bytes]:
    """Starts a child that `end` ends, or `end_all`.

    It has its own process group: Ctrl-C reaches only this process, which then ends the child cleanly.
    An interrupt while it starts ends it, too: it starts in a thread, which no interrupt reaches.
    """
    started: Future[subprocess.Popen[bytes]] = Future()
    try:
        threading.Thread(target=_start, args=(started, arguments, options)).start()
        return started.result()
    except BaseException:
        started.add_done_callback(_end_started)
        raise


def _start(started: "Future[subprocess.Popen[bytes]]", arguments: list[Any], options: dict[str, Any]) -> None:
    try:
        with _starting:
            _guardian.begin()
            child = subprocess.Popen(arguments, process_group=0, **options)
            _guardian.note("+", child.pid)
            _started.add(child)
    except BaseException as error:
        started.set_exception(error)
    else:
        started.set_result(child)


def _end_started(started: "Future[subprocess.Popen[bytes]]") -> None:
    if started.exception() is None:
        end(started.result())


def end_all() -> None:
    """Kills the children that `start` started, for a process that leaves without waiting for its threads.

    No child starts from then on: the lock is never released.
    """
    _starting.acquire(timeout=_MOST_START_S)
    for child in list(_started):
        _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kills a child's process group, so that no wrapper keeps what it wraps."""
    # The number of a child that was waited for may be another's by now.
    if child.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)


def end(child: subprocess.Popen[bytes]) -> None:
    """Ends a child and its process group, if it still runs, and closes its pipes."""
    _kill(child)
    # Before its number can be another's.
    _guardian.note("-", child.pid)
    child.wait()
    _started.discard(child)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError, BlockingIOError):
                pipe.close()


class _Guardian:
    """A shell that kills the process groups of our children when this process has ended, even by SIGKILL.

    It learns that from the end of its input, of which only this process has the other end. The signal that
    the kernel sends at the death of a parent does not fit: it comes when the thread that started the child
    ends, and it does not reach what a wrapper started. A child that starts in the very moment in which this
    process is killed is not noted yet, and ends when it reads the end of its input.
    """

    _SCRIPT = """
        trap "" HUP INT QUIT TERM
        cd /
        groups=" "
        while read -r sign group; do
            case "$sign$groups" in
                +*) groups="$groups$group ";;
                -*" $group "*) groups="${groups%% "$group" *} ${groups#* "$group" }";;
            esac
        done
        for group in $groups; do kill -s KILL -- "-$group"; done
    """

    def __init__(self) -> None:
        self._input: int | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Starts it, before the first child. A forked process has one of its own."""
        with self._lock:
            if self._input is not None and self._owner == os.getpid():
                return
            source, target = os.pipe()
            silent = [(os.POSIX_SPAWN_OPEN, one, os.devnull, os.O_WRONLY, 0) for one in (1, 2)]
            try:
                os.posix_spawn(
                    "/bin/sh",
                    ["sh", "-c", self._SCRIPT],
                    {},
                    file_actions=[(os.POSIX_SPAWN_DUP2, source, 0), *silent],
                    # Signals of the terminal do not reach it.
                    setsid=True,
                )
            finally:
                os.close(source)
            self._input, self._owner = target, os.getpid()

    def note(self, sign: str, group: int) -> None:
        """Notes that a child began, or ends. The write is short enough to be atomic."""
        with contextlib.suppress(OSError):
            if self._input is not None:
                os.write(self._input, f"{sign} {group}\n".encode())


_guardian = _Guardian()


def last_line(complaints: bytes) -> str:
    """The last line that a child complained of, or nothing."""
    return shown("".join(complaints.decode(errors="replace").strip().splitlines()[-1:]))


def readable(descriptors: Iterable[int], most_s: float) -> list[int]:
    """Those that can be read, or have ended; none after `most_s`. Descriptors may have any number."""
    return _ready(descriptors, select.POLLIN, most_s)


def writable(descriptor: int, most_s: float) -> bool:
    """Whether something can be written, or nobody reads it; false after `most_s`."""
    return bool(_ready([descriptor], select.POLLOUT, most_s))


def _ready(descriptors: Iterable[int], event: int, most_s: float) -> list[int]:
    # `select.select` takes no descriptor from 1024 on.
    waiting = select.poll()
    for one in descriptors:
        waiting.register(one, event)
    return [one for one, _ in waiting.poll(math.ceil(most_s * 1e3))]


def as_error(header: Mapping[str, Any], *, logs: bool, most: int = _MOST_OF_OURS) -> Exception:
    """The child's error, as an exception of this process. Each of its texts has at most so many characters.

    An `OSError` is about logs that the child writes, which its caller names. Without `logs`, there is no file
    that it could be about.
    """
    message = shown(str(header["message"]), most)
    if logs and type(number := header.get("errno")) is int and number in errno.errorcode:
        return OSError(number, message)
    kind = _native.ScenarioError if header.get("kind") == "ScenarioError" else _native.WorldError
    error = kind(message)
    for name in ("field", "given", "expected", "fix"):
        if isinstance(header.get(name), str):
            setattr(error, name, shown(header[name], most))
    return error
