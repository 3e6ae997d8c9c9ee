"""The kernel world: one child process a run, one run at a time, because they share the machine's wall clock.

The child ends when its stdin closes, so that nothing is left behind even when this process is killed.
"""

import contextlib
import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO

from fullpipe import _native
from fullpipe.results import Run
from fullpipe.worlds.job import Job, Progress, ignore_progress

NAME = "kernel"
_TICK_S = 0.1
_LENGTH = struct.Struct(">Q")
_CHILD = "fullpipe.worlds._kernel_child"


def run(jobs: Sequence[Job], progress: Progress = ignore_progress) -> list[Run]:
    """Runs the jobs one after the other and returns one run for each."""
    runs = []
    for number, job in enumerate(jobs):
        progress(number)
        runs.append(run_one(job, lambda fraction, number=number: progress(number + fraction)))  # type: ignore[misc]
    progress(len(jobs))
    return runs


def record(job: Job, algorithm: str, progress: Progress = ignore_progress) -> tuple[str, bytes]:
    """Runs a job and records the calls of the flows that use `algorithm` (bbr or cubic).

    Returns a summary as JSON and the trace.
    """
    request = {"spec": job.alternative.spec_json, "seed": job.seed, "record": algorithm}
    summary, trace = _blobs(*_ask(request, job.alternative.duration_s, progress), expected=2)
    return summary.decode(), trace


def probe(job: Job, sent: Mapping[str, int], progress: Progress = ignore_progress) -> tuple[str, bytes]:
    """Sends numbered datagrams over the forward path of a job and measures what became of them.

    `sent` says what, and what was asked of the path; its names are those of `Probe` in the native half.
    Returns the measures as JSON, and four 64-bit integers a datagram (see `_native.kernel_probe`).
    """
    request = {"spec": job.alternative.spec_json, "seed": job.seed, "probe": json.dumps(dict(sent))}
    summary, trips = _blobs(*_ask(request, job.alternative.duration_s, progress), expected=2)
    return summary.decode(), trips


def run_one(job: Job, tick: Progress = ignore_progress) -> Run:
    """Runs one job. What `tick` raises ends the child and goes through."""
    request = {"spec": job.alternative.spec_json, "seed": job.seed}
    return _result(job, *_ask(request, job.alternative.duration_s, tick))


def _ask(request: dict[str, object], duration_s: float, tick: Progress) -> tuple[bytes, int, str]:
    """What the child answers, its exit code, and its complaints."""
    said = json.dumps(request).encode()
    with tempfile.TemporaryFile() as complaints:
        # A group of its own: Ctrl-C reaches this process alone, which then ends the child in order.
        child = subprocess.Popen(
            [sys.executable, "-m", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            process_group=0,
        )
        assert child.stdin is not None and child.stdout is not None
        try:
            try:
                child.stdin.write(_LENGTH.pack(len(said)) + said)
                child.stdin.flush()
                answers = _read_all(child.stdout, duration_s, tick)
            except BrokenPipeError:
                answers = b""
            code = child.wait()
        finally:
            _end(child)
        complaints.seek(0)
        return answers, code, complaints.read().decode(errors="replace")


def _read_all(source: IO[bytes], duration_s: float, tick: Progress) -> bytes:
    """Reads until the child closes its end, ticking meanwhile."""
    parts = bytearray()
    began = time.monotonic()
    while True:
        ready, _, _ = select.select([source], [], [], _TICK_S)
        if not ready:
            tick(min(0.99, (time.monotonic() - began) / duration_s))
        elif part := os.read(source.fileno(), 1 << 20):
            parts += part
        else:
            return bytes(parts)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def _result(job: Job, answers: bytes, code: int, complaints: str) -> Run:
    summary, flows, links = _blobs(answers, code, complaints, expected=3)
    return Run.of(job.alternative, NAME, job.seed, summary.decode(), flows, links)


def _blobs(answers: bytes, code: int, complaints: str, *, expected: int) -> list[bytes]:
    """What the child sent behind its header; raises the error that it sent instead."""
    blobs = _split(answers)
    header = json.loads(blobs[0]) if blobs else {}
    if header.get("ok") and len(blobs) == 1 + expected:
        return blobs[1:]
    if "message" in header:
        raise _as_error(header)
    last = complaints.strip().splitlines()[-1:] or ["it said nothing"]
    error = _native.WorldError(
        f"the kernel world's process ended with code {code}: {last[0]}; run `fullpipe doctor`"
    )
    error.mend = "run `fullpipe doctor`"
    raise error


def _split(answers: bytes) -> list[bytes]:
    """The whole blobs in what the child wrote; a torn one at the end is left out."""
    blobs = []
    at = 0
    while at + _LENGTH.size <= len(answers):
        (length,) = _LENGTH.unpack_from(answers, at)
        at += _LENGTH.size
        if at + length > len(answers):
            break
        blobs.append(answers[at : at + length])
        at += length
    return blobs


def _as_error(header: dict[str, str]) -> Exception:
    """The child's error as this process would have raised it."""
    kind = _native.ScenarioError if header["kind"] == "ScenarioError" else _native.WorldError
    error = kind(header["message"])
    for name in ("field", "given", "expected", "mend"):
        if name in header:
            setattr(error, name, header[name])
    return error
