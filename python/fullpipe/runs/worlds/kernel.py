"""The kernel world: wall time and the machine's own Linux TCP, in one child process for each run.

Several runs share the machine as long as their hosts need not wait for a processor. The sum of their rates
predicts that; what each run's record says of its hosts and of the emulator's lateness decides.

The child ends when its stdin closes, so that nothing is left behind even when this process is killed.
"""

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

import fullpipe._native as _native
from fullpipe.measures.run import Run
from fullpipe.runs.worlds import child
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe.runs.worlds.logs import opened
from fullpipe.runs.worlds.world import Stop, World
from fullpipe.scenario.scenario import Alternative, from_document

NAME = "kernel"
# What runs beside each other on each core without starving their hosts. On two cores, no host of twelve runs
# of 1 Mbit/s or of four of 5 Mbit/s waited for a processor for 1 % of the time, which crates/emu/src/trust.rs
# allows; three of 10 Mbit/s waited up to 2.4 %, two of 100 Mbit/s up to 17 %, and one of 100 Mbit/s 0.2 %.
RATE_BPS_A_CORE = 8e6
RUNS_A_CORE = 6
# A child that runs programs has this time beyond the scenario's duration: for each server to open its port,
# and for everything else. Another process may have stopped it.
_SERVER_S = 10.0
_MARGIN_S = 30.0
# What a child may answer, and how long its header may be.
_MOST_BYTES = 4 << 30
_MOST_HEADER_BYTES = 1 << 20
_TICK_S = 0.1
_CHILD = "fullpipe.runs.worlds._kernel_child"


class Kernel(World):
    """The world `kernel`."""

    name = NAME
    title = "Linux kernel"
    short = "kernel"
    place = "kernel world"
    colour = "#44aa99"
    opacity = 0.5
    wall_time = True
    real_hosts = True
    deterministic = False
    writes_logs = True
    runs_programs = True
    runs = 3

    def build(self) -> str:
        """The fingerprint of the emulator's sources."""
        return _native.build(NAME)

    def surroundings(self) -> Mapping[str, str]:
        """The release of this machine's kernel."""
        return {"kernel": os.uname().release}

    def ready(self) -> None:
        """Runs a tenth of a second, because a sweep's long simulations may come first."""
        document = {
            "duration": "100 ms",
            "path": {"rate": "1 Mbit/s", "rtt": "2 ms", "buffer": "10 KB"},
            "flows": [{"controller": "reno"}],
        }
        self.run(Job(from_document(document).alternatives[0], 1), Stop())

    def checks(self) -> Sequence[Mapping[str, Any]]:
        """What namespaces, devices and congestion controls this machine has."""
        return doctor()

    def cost_s(self, job: Job, cores: int) -> float:
        """The part of the machine that it takes, for as long as it lasts."""
        part = max(1 / (RUNS_A_CORE * cores), job.rate_bps / (RATE_BPS_A_CORE * cores))
        return job.alternative.duration_s * min(1.0, part)

    def fits(self, job: Job, running: Sequence[Job], cores: int) -> bool:
        """Whether the hosts of none of them would wait for a processor."""
        carried = job.rate_bps + sum(other.rate_bps for other in running)
        return len(running) < RUNS_A_CORE * cores and carried <= RATE_BPS_A_CORE * cores

    def run(self, job: Job, stop: Stop, progress: Progress = ignore_progress) -> Run:
        """Runs one job in a child process. Linux may lack its controllers: then `WorldError`."""
        return self._carry(job, stop, progress, {})

    def _carry(self, job: Job, stop: Stop, progress: Progress, more: Mapping[str, object]) -> Run:
        """The run of a child that is told `more`."""
        tick = stop.checked_by(progress)
        request = {"spec": job.alternative.spec_json, "seed": job.seed, **more}
        with opened(job.logs, self.name, job.seed, job.alternative.label) as logs:
            if logs is None:
                answered = _ask(
                    request, job.alternative.duration_s, tick, most_s=_patience_s(job.alternative)
                )
                return _result(job, *answered, self.name)[0]
            with contextlib.ExitStack() as held:
                # What a qlog needs of each packet waits here for the samples of the sockets, which are last.
                spool = None
                if logs.qlog is not None:
                    spool = held.enter_context(tempfile.TemporaryFile(dir=logs.paths[0].parent)).fileno()
                request["logs"] = logs.arguments(spool)
                inherited = [*logs.descriptors, *(() if spool is None else (spool,))]
                answered = _ask(request, job.alternative.duration_s, tick, inherited)
            run, message = _result(job, *answered, self.name)
        return logs.of(run, message["full_at_s"], message["missed"])


WORLD = Kernel()


def record(job: Job, algorithm: str, progress: Progress = ignore_progress) -> tuple[str, bytes]:
    """Runs a job and records the calls of the flows that use `algorithm` (bbr or cubic).

    Returns a summary as JSON and the recording.
    """
    request = {"spec": job.alternative.spec_json, "seed": job.seed, "record": algorithm}
    summary, file = _blobs(*_ask(request, job.alternative.duration_s, progress), expected=2)
    return summary.decode(), file


def probe(job: Job, sent: Mapping[str, int], progress: Progress = ignore_progress) -> tuple[str, bytes]:
    """Sends numbered datagrams over the forward path of a job and measures how each crosses it.

    `sent` describes the datagrams and the requested path; its names are those of `Probe` in the native half.
    Returns the measures as JSON, and four 64-bit integers for each datagram (see `_native.kernel_probe`).
    """
    request = {"spec": job.alternative.spec_json, "seed": job.seed, "probe": json.dumps(dict(sent))}
    summary, trips = _blobs(*_ask(request, job.alternative.duration_s, progress), expected=2)
    return summary.decode(), trips


def prove(job: Job, progress: Progress = ignore_progress) -> dict[str, Any]:
    """Runs a job whose flows have one controller of ours, and repeats each of its calls: what came of it."""
    request = {"spec": job.alternative.spec_json, "seed": job.seed, "prove": True}
    (found,) = _blobs(*_ask(request, job.alternative.duration_s, progress), expected=1)
    proof: dict[str, Any] = json.loads(found)
    return proof


def doctor() -> list[dict[str, Any]]:
    """The kernel world's checks of this machine.

    They run in a child: an ordinary user needs a user namespace, which only a single-threaded process can
    enter.
    """
    return _checks({"doctor": True})


def qdisc_doctor() -> list[dict[str, Any]]:
    """Which queue disciplines Linux has here; in a child, too."""
    return _checks({"doctor": True, "qdisc": True})


def _checks(request: dict[str, object]) -> list[dict[str, Any]]:
    (found,) = _blobs(*_ask(request, duration_s=1.0, tick=ignore_progress), expected=1)
    checks: list[dict[str, Any]] = json.loads(found)
    return checks


def _ask(
    request: dict[str, object],
    duration_s: float,
    tick: Progress,
    inherited: Sequence[int] = (),
    *,
    most_s: float = math.inf,
) -> tuple[bytes, int, str]:
    """The output of a child that inherits these files, its exit code, and what it complained of last.

    `WorldError` if it has not ended after `most_s`; it is killed then.
    """
    message = json.dumps(request).encode()
    # In memory, because a disk may be full.
    with open(os.memfd_create("complaints"), "w+b") as complaints:  # noqa: PTH123
        # In its own process group: Ctrl-C reaches only this process, which then ends the child cleanly.
        process = subprocess.Popen(
            # -P: the working directory may be a stranger's, and nothing is imported from it.
            [sys.executable, "-P", "-m", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            process_group=0,
            pass_fds=inherited,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            try:
                process.stdin.write(child.blob(message))
                process.stdin.flush()
                answers = _read_all(process.stdout, duration_s, tick, most_s)
            except BrokenPipeError:
                answers = b""
            code = process.wait()
        finally:
            child.end(process)
        complaints.seek(0)
        return answers, code, child.last_line(complaints.read())


def _patience_s(alternative: Alternative) -> float:
    """How long a run without logs may take: without end, if its flows are ours and obey the clock."""
    servers = sum(flow.get("program") is not None for flow in alternative.spec.get("flows", ()))
    return alternative.duration_s + servers * _SERVER_S + _MARGIN_S if servers else math.inf


def _read_all(source: IO[bytes], duration_s: float, tick: Progress, most_s: float) -> bytes:
    """Reads until the child closes its end, ticking meanwhile."""
    parts = bytearray()
    began = time.monotonic()
    while True:
        if time.monotonic() - began > most_s:
            error = _native.WorldError(
                f"the kernel world's process had not ended after {most_s:.0f} s, and was killed: "
                "something stopped it, or the machine is too busy"
            )
            error.fix = "run it again; if it stops again, try both commands behind `fullpipe shell`"
            raise error
        if not child.readable([source.fileno()], _TICK_S):
            tick(min(0.99, (time.monotonic() - began) / duration_s))
        elif part := os.read(source.fileno(), 1 << 20):
            parts += part
            if len(parts) > _MOST_BYTES:
                raise _no_answer(f"more than {_MOST_BYTES >> 30} GB")
        else:
            return bytes(parts)


def _result(
    job: Job, answers: bytes, code: int, complaint: str, world: str = NAME
) -> tuple[Run, dict[str, Any]]:
    """The run, and the child's header."""
    summary, flows, links = _blobs(answers, code, complaint, expected=3)
    run = Run.of(job.alternative, world, job.seed, summary.decode(), flows, links)
    return run, _header(_split(answers)[0][0])


def _blobs(answers: bytes, code: int, complaint: str, *, expected: int) -> list[bytes]:
    """The blobs after the child's header; raises the error if it sent one instead, or something else."""
    blobs, is_whole = _split(answers)
    header = _header(blobs[0]) if blobs else {}
    if header.get("ok") and len(blobs) >= 1 + expected:
        if len(blobs) > 1 + expected or not is_whole:
            raise _no_answer("more than its answers")
        return blobs[1:]
    if "message" in header:
        # A child of ours names the number of an error only if it is about logs.
        raise child.as_error(header, logs=True)
    last = complaint or "it printed nothing"
    error = _native.WorldError(
        f"the kernel world's process ended with code {code}: {last}; run `fullpipe doctor`"
    )
    error.fix = "run `fullpipe doctor`"
    raise error


def _header(blob: bytes) -> dict[str, Any]:
    """The child's header."""
    try:
        header = json.loads(blob) if len(blob) <= _MOST_HEADER_BYTES else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise _no_answer("something else than answers")
    return header


def _no_answer(sent: str) -> Exception:
    """That the child sent what no child of ours sends."""
    error = _native.WorldError(f"the kernel world's process sent {sent}; nothing of it was used")
    error.fix = "run it again; if that does not help, a program of the scenario may interfere with Fullpipe"
    return error


def _split(answers: bytes) -> tuple[list[bytes], bool]:
    """The complete blobs in the child's output, and whether there is nothing else."""
    blobs = []
    at = 0
    while at + child.LENGTH.size <= len(answers):
        (length,) = child.LENGTH.unpack_from(answers, at)
        begins = at + child.LENGTH.size
        if begins + length > len(answers):
            break
        at = begins + length
        blobs.append(answers[begins:at])
    return blobs, at == len(answers)
