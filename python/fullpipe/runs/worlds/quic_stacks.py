"""The stacks of the world `quic`: what each can tell, and whether an adapter's packets repeat."""

import contextlib
import hashlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from struct import Struct
from typing import Any

import fullpipe._native as _native
from fullpipe.errors import mistake
from fullpipe.runs.worlds import child, quic_program, stack_calls, stacks
from fullpipe.scenario.scenario import from_document

# A packet of a trace: when it leaves, its end, its ECN codepoint, and its length.
_PACKET = Struct("<QBB2xI")
_ENDS = ("client", "server")
_MOST_TRACE = 1 << 30


def listed() -> list[dict[str, Any]]:
    """Each stack with its controllers, and what it tells; those that are linked in first."""
    linked = [
        {
            "name": stack["name"],
            "source": stack["crate"],
            "licence": "MIT OR Apache-2.0",
            "controllers": [one["name"] for one in stack["controllers"]],
            "tells": list(stacks.TELLS),
            "policy": "paced by the stack, up to 10 datagrams at a time",
            "command": "",
        }
        for stack in quic_program.about().stacks
    ]
    outside = [
        {
            "name": stack.name,
            "source": f"{stack.about['name']} {stack.about['version']}",
            "licence": stack.about["licence"],
            "controllers": list(stack.about["controllers"]),
            "tells": list(stack.about["tells"]),
            "policy": stack.about["policy"],
            "command": " ".join(stack.command),
        }
        for stack in stacks.given()
    ]
    return linked + outside


@dataclass(frozen=True)
class Checked:
    """What one way to run a controller came to."""

    controller: str
    way: str
    packets: int
    digest: str
    # Whether its packets must be those of the first run, and whether they are.
    wanted: bool
    same: bool
    # The first packet that differs, in words.
    differs: str = ""

    @property
    def equal(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.same or not self.wanted

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: getattr(self, name)
            for name in ("controller", "way", "packets", "digest", "same", "differs")
        }


def check(subject: stacks.Stack, controllers: Sequence[str] | None, duration: str) -> list[Checked]:
    """Runs each controller in several ways, and compares the packets of each with those of the first.

    Raises:
        ScenarioError: The adapter has no such controller.
        WorldError: A run fails.
    """
    has = list(subject.about["controllers"])
    for one in controllers or ():
        if one not in has:
            raise mistake("--controller", one, f"one of {', '.join(has)}", "choose one of these")
    results: list[Checked] = []
    for controller in controllers or has:
        first: bytes | None = None
        for way, seed, instants, around in _WAYS:
            with around():
                trace = _trace(subject, controller, duration, seed, instants=instants)
            first = trace if first is None else first
            differs = "" if trace == first else _difference(first, trace)
            digest = hashlib.sha256(trace).hexdigest()[:16]
            packets = len(trace) // _PACKET.size
            results.append(Checked(controller, way, packets, digest, seed == _SEED, trace == first, differs))
    return results


@dataclass(frozen=True)
class Calls:
    """How often an adapter asks its machine for the time or for random numbers in a run."""

    # By call; None if it cannot be seen.
    counts: dict[str, int] | None
    # Why it cannot be seen, or how the run failed before its end; "" otherwise.
    reason: str = ""


def calls(subject: stacks.Stack, controller: str, duration: str) -> Calls:
    """What an adapter asks its machine for in a run."""
    if not stack_calls.is_known():
        return Calls(None, f"the system calls of the processor {platform.machine()} are not known")
    reason = ""
    with tempfile.NamedTemporaryFile(prefix="fullpipe-calls-") as report:
        report.write(bytes(stack_calls.COUNTERS.size))
        report.flush()
        words = (sys.executable, stack_calls.__file__, report.name, *subject.command)
        try:
            _trace(replace(subject, command=words), controller, duration, _SEED, instants=False)
        except _native.WorldError as error:
            reason = str(error)
        report.seek(0)
        counts = stack_calls.counted(report.read())
    if counts is None:
        return Calls(None, reason or "the system does not show its system calls")
    return Calls(counts, reason)


def _trace(subject: stacks.Stack, controller: str, duration: str, seed: int, *, instants: bool) -> bytes:
    """All packets that both ends send on a path with losses in its queue."""
    document = {
        "name": "stacks check",
        "duration": duration,
        "path": {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp", "loss": "0.1 %"},
        "flows": [{"controller": f"{subject.name}:{controller}", "start_jitter": "0 s"}],
    }
    (alternative,) = from_document(document).alternatives
    request: dict[str, object] = {"spec": alternative.spec_json, "seed": seed, "stacks": [subject.request]}
    with quic_program.Talk("play") as talk:
        talk.report({**request, "instants": instants, "trace": True})
        end_ns = talk.header()["end_ns"]
        talk.report({"advance_ns": end_ns})
        talk.header()
        talk.report({"trace": True})
        talk.header()
        return talk.frame(_MOST_TRACE)


def _difference(first: bytes, other: bytes) -> str:
    """The first packet that differs, in words."""
    ours, theirs = (list(_PACKET.iter_unpack(trace)) for trace in (first, other))
    index = next((at for at, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    if index is None:
        index = min(len(ours), len(theirs))
    shown = [_in_words(all_[index]) if index < len(all_) else "nothing" for all_ in (ours, theirs)]
    return f"packet {index + 1}: {shown[0]}; now {shown[1]}"


def _in_words(packet: tuple[Any, ...]) -> str:
    at, end, ecn, length = packet
    codepoint = f", ECN {ecn}" if ecn else ""
    return f"{length} bytes of the {_ENDS[end & 1]} at {at / 1e9:.9f} s{codepoint}"


@contextlib.contextmanager
def _plain() -> Iterator[None]:
    yield


@contextlib.contextmanager
def _loaded() -> Iterator[None]:
    """Other processes take every core meanwhile, and this one's children have only one."""
    allowed = os.sched_getaffinity(0)
    # They end with their input, whatever becomes of this process.
    busy = "import select, sys\nwhile not select.select([sys.stdin], [], [], 0)[0]: pass"
    others = [
        child.start([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        for _ in allowed
    ]
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
        for other in others:
            child.end(other)


_SEED = 1
_WAYS = (
    ("in windows", _SEED, False, _plain),
    ("in windows, again", _SEED, False, _plain),
    ("an instant at a time", _SEED, True, _plain),
    ("on one core, under load", _SEED, False, _loaded),
    ("another seed", _SEED + 1, False, _plain),
)
