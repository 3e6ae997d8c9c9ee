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
from itertools import takewhile
from struct import Struct
from types import ModuleType
from typing import IO, Any

import fullpipe._native as _native
from fullpipe.errors import mistake
from fullpipe.runs.worlds import child, quic_program, stack_calls, stack_told, stacks
from fullpipe.scenario.scenario import from_document

# A packet of a trace: when it leaves, its end, its ECN codepoint, and its length.
_PACKET = Struct("<QBB2xI")
_ENDS = ("client", "server")
_MOST_TRACE = 1 << 30
_RTT_MS = 40
# How many times as long an answer may take while calls are counted, and the error if it takes longer.
_MORE_PATIENCE = 10
_LATE = "does not answer within"
# The numbers of an answer: the first is when its turn ends, the second when the next has to be.
_ANSWER = ("until", "next turn", "flags", "delivered", "delivery", *stacks.TELLS)
_FLAGS, _DELIVERED = _ANSWER.index("flags"), _ANSWER.index("delivered")
_CONNECTED = 1
_UNKNOWN = 2**64 - 1
_UNITS = {
    **dict.fromkeys(("delivered", "window", "ssthresh", "in_flight"), (1, "bytes")),
    **dict.fromkeys(("srtt", "min_rtt"), (1e6, "ms")),
    **dict.fromkeys(("pacing_rate", "bandwidth"), (1, "bit/s")),
    **dict.fromkeys(("next turn", "delivery"), (1e9, "s")),
}
# What an adapter told in a run, an answer a row.
_Told = Sequence[tuple[int, ...]]


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
    # Whether its packets must be those of the first run, and whether they are. Where it is asked as often as
    # the first, so must be what it tells.
    wanted: bool
    same: bool
    # The first packet that differs, or the first number that it tells otherwise, in words.
    differs: str = ""
    # Of the first run: what is missing, and what is doubtful in what the adapter tells, in words that go on
    # behind its name; and which of `stacks.TELLS` it tells.
    lacks: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    tells: frozenset[str] = frozenset()

    @property
    def equal(self) -> bool:
        """Whether nothing is wrong with it."""
        return (self.same or not self.wanted) and not self.lacks

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: getattr(self, name)
            for name in ("controller", "way", "packets", "digest", "same", "differs", "lacks", "doubts")
        }


def check(subject: stacks.Stack, controllers: Sequence[str] | None, duration: str) -> list[Checked]:
    """Runs each controller in several ways, and compares the packets of each with those of the first.

    So it does with what the adapter tells, where it is asked as often.

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
        first: tuple[bytes, _Told] | None = None
        for number, (way, seed, instants, around) in enumerate(_WAYS, 1):
            with around(), _through(stack_told, subject) as (watched, report):
                trace = _trace(watched, controller, duration, seed, instants=instants)
                told = list(stack_told.ANSWER.iter_unpack(report.read()))
            of_first = {} if first else _of_told(told, duration)
            before, told_before = first = first or (trace, told)
            wanted, differs = seed == _SEED, "" if trace == before else _difference(before, trace)
            if wanted and not instants:
                differs = differs or _told_otherwise(number, told_before, told)
            digest = hashlib.sha256(trace).hexdigest()[:16]
            packets = len(trace) // _PACKET.size
            results.append(
                Checked(controller, way, packets, digest, wanted, not differs, differs, **of_first)
            )
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
    counts, reason = None, ""
    try:
        with _through(stack_calls, subject, bytes(stack_calls.COUNTERS.size)) as (watched, report):
            try:
                # Counting slows it down.
                patience_s = _MORE_PATIENCE * stacks.patience_s()
                _trace(watched, controller, duration, _SEED, instants=False, patience_s=patience_s)
            finally:
                counts = stack_calls.counted(report.read())
    except _native.WorldError as error:
        reason = str(error)
        if _LATE in reason:
            counts, reason = None, "the calls could not be counted: too slow"
    if counts is None:
        return Calls(None, reason or "the system does not show its system calls")
    return Calls(counts, reason)


@contextlib.contextmanager
def _through(
    program: ModuleType, subject: stacks.Stack, begins: bytes = b""
) -> Iterator[tuple[stacks.Stack, IO[bytes]]]:
    """The stack behind a program of ours, which runs the adapter, and the report that it then has."""
    with tempfile.NamedTemporaryFile(prefix="fullpipe-check-") as report:
        report.write(begins)
        report.flush()
        report.seek(0)
        words = (sys.executable, str(program.__file__), report.name)
        try:
            yield replace(subject, command=(*words, *subject.command)), report
        except _native.WorldError as error:
            # An adapter is named by its own command.
            if (ours := f"{' '.join(words)} ") not in str(error):
                raise
            raise _native.WorldError(str(error).replace(ours, "")) from None


def _trace(
    subject: stacks.Stack,
    controller: str,
    duration: str,
    seed: int,
    *,
    instants: bool,
    patience_s: float | None = None,
) -> bytes:
    """All packets that both ends send on a path with losses in its queue."""
    document = {
        "name": "stacks check",
        "duration": duration,
        "path": {"rate": "20 Mbit/s", "rtt": f"{_RTT_MS} ms", "buffer": "1 bdp", "loss": "0.1 %"},
        "flows": [{"controller": f"{subject.name}:{controller}", "start_jitter": "0 s"}],
    }
    (alternative,) = from_document(document).alternatives
    request: dict[str, object] = {"spec": alternative.spec_json, "seed": seed, "stacks": [subject.request]}
    environment = {} if patience_s is None else {stacks.VARIABLE: f"{patience_s:g}"}
    with quic_program.Talk("play", environment=environment) as talk:
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


def _told_otherwise(number: int, first: _Told, other: _Told) -> str:
    """What a run tells otherwise than the first, in words; empty if it is all the same."""
    both = list(takewhile(lambda pair: pair[0][0] == pair[1][0], zip(first, other, strict=False)))
    # Other turns follow from other timers, and these perhaps from what is told.
    for names in (_ANSWER[_FLAGS:], _ANSWER[1:_FLAGS]):
        for ours, theirs in both:
            for name in names:
                at = _ANSWER.index(name)
                if ours[at] != theirs[at]:
                    when = f"at {ours[0] / 1e9:g} s"
                    return (
                        f"run {number} tells {name} {_value(name, theirs)} {when}; "
                        f"run 1 told {_value(name, ours)}"
                    )
    return "" if len(first) == len(other) else f"run {number} has {len(other)} turns; run 1 had {len(first)}"


def _value(name: str, answer: tuple[int, ...]) -> str:
    """One of the numbers of an answer, in words."""
    number = answer[_ANSWER.index(name)]
    factor, unit = _UNITS.get(name, (1, ""))
    shown = "never" if name == "next turn" else "unknown"
    return shown if number == _UNKNOWN else f"{number / factor:.9g} {unit}".strip()


def listing(subject: stacks.Stack, results: Sequence[Checked]) -> list[str]:
    """How what the adapter tells differs from its list, in words that go on behind its name."""
    tells = frozenset[str]().union(*(one.tells for one in results))
    listed = set(subject.about["tells"])
    # Without a loss, a threshold is infinite, which is not told.
    untold = listed - tells - {"ssthresh"}
    return [f"lists `{name}` in `tells`, and never tells it" for name in stacks.TELLS if name in untold] + [
        f"tells `{name}`, which its `tells` does not list" for name in stacks.TELLS if name in tells - listed
    ]


def _of_told(told: _Told, duration: str) -> dict[str, Any]:
    """The fields of `Checked` that follow from what an adapter told."""
    # Before there is a connection, nobody looks.
    connected = [answer for answer in told if answer[_FLAGS] & _CONNECTED]
    lacks = [] if connected else ["never says that it is connected (flag 1)"]
    if not any(answer[_DELIVERED] for answer in told):
        lacks.append(f"delivers nothing in {duration} (`delivered` stays 0)")
    tells = (
        name
        for at, name in enumerate(_ANSWER)
        if name in stacks.TELLS and any(answer[at] != _UNKNOWN for answer in connected)
    )
    return {"lacks": tuple(lacks), "doubts": tuple(_doubts(connected)), "tells": frozenset(tells)}


def _doubts(connected: _Told) -> Iterator[str]:
    """What is doubtful in what an adapter tells of a connection."""
    for name in ("srtt", "min_rtt"):
        at = _ANSWER.index(name)
        # Some tell 0 until they know it.
        low = [answer for answer in connected if 0 < answer[at] < _RTT_MS * 1e6]
        low += [answer for answer in connected[-1:] if answer[at] == 0]
        if low:
            yield (
                f"tells {name} {_value(name, low[0])} at {low[0][0] / 1e9:g} s, which is below the path's "
                f"delay of {_RTT_MS} ms: look for a clock of the machine, or for another unit"
            )


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
