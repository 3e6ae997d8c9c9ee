"""How this process talks to a child that runs in its place: blobs over pipes, and how a child ends.

A blob is its length in 8 bytes, big endian, and its bytes.
"""

import contextlib
import errno
import math
import select
import subprocess
from collections.abc import Iterable, Mapping
from struct import Struct
from typing import Any

from fullpipe import _native

LENGTH = Struct(">Q")


def blob(content: bytes) -> bytes:
    """The blob with this content."""
    return LENGTH.pack(len(content)) + content


def end(child: subprocess.Popen[bytes]) -> None:
    """Ends a child, if it still runs, and closes its pipes."""
    if child.poll() is None:
        child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError, BlockingIOError):
                pipe.close()


def last_line(complaints: bytes) -> str:
    """The last line that a child complained of, or nothing."""
    return "".join(complaints.decode(errors="replace").strip().splitlines()[-1:])


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


def as_error(header: Mapping[str, Any], *, logs: bool) -> Exception:
    """The child's error, as an exception of this process.

    An `OSError` is about logs that the child writes, which its caller names. Without `logs`, there is no file
    that it could be about.
    """
    if logs and type(number := header.get("errno")) is int and number in errno.errorcode:
        return OSError(number, str(header["message"]))
    kind = _native.ScenarioError if header.get("kind") == "ScenarioError" else _native.WorldError
    error = kind(str(header["message"]))
    for name in ("field", "given", "expected", "fix"):
        if isinstance(header.get(name), str):
            setattr(error, name, header[name])
    return error
