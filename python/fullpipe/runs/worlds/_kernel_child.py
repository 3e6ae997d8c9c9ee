"""One kernel run, in a fresh and single-threaded process of its own, because it enters network namespaces.

Input: one blob on stdin, the request as JSON. The pipe stays open while the parent lives; when it closes,
this process ends. Output: blobs on stdout. The first is a header as JSON; if it says ok, three more follow:
summary as JSON, flow series and link series as Parquet. If the request names an algorithm to record, two
follow: summary as JSON and the recording as Parquet. If it has a probe, two follow: measures as JSON and the
datagrams as integers. If it asks for the doctor of the kernel world or of qdiscs, one follows: its checks as
JSON. With "qdisc", the bottleneck's queue is Linux's; with "logs", the run is logged into files that this
process has inherited. A blob is its length in 8
bytes, big endian, and its bytes.
"""

import json
import os
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fullpipe._native import Logs

LENGTH = struct.Struct(">Q")


def main() -> None:
    """Reads the request, runs it, writes the result."""
    answers = os.dup(1)
    os.dup2(2, 1)  # Any other output must not end up between the blobs.
    request = json.loads(_read_blob(0))
    import fullpipe._native as _native

    parts: list[bytes] = []
    message: dict[str, object] = {"ok": True}
    try:
        logs = _logs(*request["logs"]) if "logs" in request else None
        if "doctor" in request:
            summary = _native.qdisc_doctor() if "qdisc" in request else _native.kernel_doctor()
        elif "record" in request:
            summary, *parts = _native.kernel_record(request["spec"], request["seed"], request["record"])
        elif "probe" in request:
            summary, *parts = _native.kernel_probe(request["spec"], request["seed"], request["probe"])
        elif "qdisc" in request:
            summary, *parts = _native.qdisc_run(request["spec"], request["seed"], logs)
        else:
            summary, *parts = _native.kernel_run(request["spec"], request["seed"], logs)
        if logs is not None:
            message |= {"full_at_s": logs.full_at_s(), "missed": logs.missed()}
    except (_native.ScenarioError, _native.WorldError, ValueError, RuntimeError, OSError) as error:
        described = _described(error)
        if "logs" in request and isinstance(error, OSError) and error.errno is not None:
            # About a file that the parent has opened, and names.
            described |= {"message": error.strerror, "errno": error.errno}
        _write_blob(answers, json.dumps(described).encode())
        return
    for blob in (json.dumps(message).encode(), summary.encode(), *parts):
        _write_blob(answers, blob)


def _logs(title: str, qlog: list[int] | None, *more: int) -> "Logs":
    """The logs of the request, in which a pair became a list."""
    import fullpipe._native as _native

    return _native.Logs(title, (qlog[0], qlog[1]) if qlog else None, *more)


def _described(error: Exception) -> dict[str, object]:
    names = ("field", "given", "expected", "fix")
    message = {name: str(getattr(error, name)) for name in names if hasattr(error, name)}
    return {"ok": False, "kind": type(error).__name__, "message": str(error), **message}


def _read_blob(source: int) -> bytes:
    (length,) = LENGTH.unpack(_read_exactly(source, LENGTH.size))
    return _read_exactly(source, length)


def _read_exactly(source: int, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = os.read(source, length - len(parts))
        if not part:
            sys.exit(1)  # The parent has ended.
        parts += part
    return bytes(parts)


def _write_blob(target: int, blob: bytes) -> None:
    rest = memoryview(LENGTH.pack(len(blob)) + blob)
    while rest:
        rest = rest[os.write(target, rest) :]


if __name__ == "__main__":
    main()
