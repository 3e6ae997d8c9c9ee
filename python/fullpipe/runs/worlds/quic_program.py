"""The program `fullpipe-quic`, which has the QUIC stacks: where it is, and how to talk to it.

`make quic` builds it. A developer's own is the same program with more controllers in it: `FULLPIPE_QUIC`
names that one. Each run, and each case that is played, has a process of its own, which ends when this one
does.
"""

import contextlib
import hashlib
import json
import math
import os
import subprocess
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import fullpipe._native as _native
from fullpipe import shipped
from fullpipe.runs.worlds import child, stacks
from fullpipe.runs.worlds.job import Progress
from fullpipe.text import MOST_SHOWN, shown

VARIABLE = shipped.QUIC_VARIABLE
PROTOCOL = 4
FIX = "`make quic` in a checkout of Fullpipe builds it"
_TICK_S = 0.1
# For what takes milliseconds: a program that needs longer is another one.
_PATIENCE_S = 20.0
# A program that closes its output is about to end.
_GOODBYE_S = 1.0
# What `about` prints is shorter: a name and a summary of each controller.
_MOST_PRINTED = 1 << 20
# No answer in JSON is as long: some kilobytes for each flow, of which there are 100,000 at most.
_MOST_JSON_BYTES = 1 << 28
# A row of a series is shorter: 13 values as text.
_MOST_ROW_BYTES = 256
# The least that a program sends, or writes into a series, in a second.
_LEAST_BYTES_S = 1e7
# What is kept of what a program complains of: its last line is shown.
_MOST_KEPT = 1 << 16
_NO_ANSWER = "it sends something else than answers"
# Refusals that are remembered: a grid asks for each of its runs.
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class About:
    """What the program says of itself."""

    path: Path
    build: str
    # Name, crate with version, and of each controller name, summary and whether it is a developer's own.
    stacks: tuple[Mapping[str, Any], ...]

    @property
    def versions(self) -> str:
        """The stacks' crates with their versions: "noq-proto 1.4.0, quinn-proto 0.11.19"."""
        return ", ".join(one["crate"] for one in self.stacks)


def about() -> About:
    """What the program says of itself. Asked once for each file.

    Raises:
        WorldError: There is no program, or it does not speak this protocol.
    """
    program = _there()
    try:
        state = program.stat()
    except OSError as error:
        raise _broken(program, error.strerror or str(error)) from None
    key = (str(program), state.st_ino, state.st_mtime_ns, state.st_size)
    with _lock:
        if key not in _known:
            _known[key] = _asked(program)
        return _known[key]


def controllers() -> list[dict[str, Any]]:
    """The controllers inside the stacks, as `fullpipe controllers` lists them; none without the program."""
    try:
        linked = about().stacks if shipped.quic() is not None else ()
    except _native.WorldError:
        return []  # `fullpipe doctor` says why.
    inside = [
        (f"{stack['name']}:{one['name']}", one["summary"], stack["crate"])
        for stack in linked
        for one in stack["controllers"]
    ]
    inside += [
        (
            f"{stack.name}:{name}",
            f"{stack.about['name']}'s {name}",
            f"{stack.about['name']} {stack.about['version']}",
        )
        for stack in stacks.given()
        for name in stack.about["controllers"]
    ]
    return [
        {"name": name, "summary": summary, "source": source, "kernel": None, "parameters": []}
        for name, summary, source in inside
    ]


_lock = threading.Lock()
_known: dict[tuple[str, int, int, int], About] = {}


def _asked(program: Path) -> About:
    printed, complaints, code = _printed(program)
    try:
        reported = _read_json(printed)
        protocol = reported["protocol"]
        if protocol != PROTOCOL:
            spoken = shown(str(protocol))
            raise _broken(program, f"it speaks protocol {spoken}, this Fullpipe {PROTOCOL}")
        linked = tuple(
            {
                "name": shown(str(stack["name"])),
                # A program that was built before it named its crates has the stack's name instead.
                "crate": shown(f"{stack.get('package', stack['name'])} {stack['version']}"),
                "controllers": [
                    {
                        "name": shown(str(one["name"])),
                        "summary": shown(str(one["summary"])),
                        "own": bool(one.get("own")),
                    }
                    for one in stack["controllers"]
                ],
            }
            for stack in reported["stacks"]
        )
        return About(program, shown(str(reported["build"])), linked)
    except (ValueError, KeyError, TypeError):
        last = child.last_line(complaints)
        ended = f"it ended with code {code}: {last}" if last else ""
        raise _broken(program, ended or "it does not answer as a fullpipe-quic does") from None


def _printed(program: Path) -> tuple[bytes, bytes, int]:
    """What `about` prints and complains of, and its exit code. Neither its length nor its time is trusted."""
    try:
        process = child.start(
            [program, "about"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise _broken(program, error.strerror or str(error)) from None
    assert process.stdout is not None and process.stderr is not None
    texts = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    ends_s = time.monotonic() + _PATIENCE_S
    try:
        still = list(texts)
        while still:
            ready = child.readable(still, max(0.0, ends_s - time.monotonic()))
            if not ready:
                raise _broken(program, f"it does not end within {_PATIENCE_S:g} s")
            for source in ready:
                part = os.read(source, 1 << 16)
                texts[source] += part
                if not part:
                    still.remove(source)
                if len(texts[source]) > _MOST_PRINTED:
                    raise _broken(program, "it does not answer as a fullpipe-quic does")
        code = process.wait(max(0.0, ends_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _broken(program, f"it does not end within {_PATIENCE_S:g} s") from None
    finally:
        child.end(process)
    printed, complaints = texts.values()
    return bytes(printed), bytes(complaints), code


def _read_json(content: bytes) -> Any:
    """What a program says in JSON. It may say anything: raises `ValueError` if it cannot be read.

    Text is UTF-8, and can be written as such: half of a surrogate pair cannot.
    """
    try:
        reported = json.loads(content.decode())
        if b"\\ud" in content or b"\\uD" in content:
            json.dumps(reported, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return reported


def _is_number(value: object) -> bool:
    """Whether it is a finite number from 0: a count, a rate or a time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value) and value >= 0
    except OverflowError:
        return False


# What a state has of a flow, besides numbers that may be unknown. Cases compute with it.
_WORDS = ("label", "controller", "phase", "state")
_TRUTHS = ("connected", "completed")
_COUNTS = (
    *("inflight", "delivered_bytes", "delivered_segments", "segments_sent", "lost", "retransmits"),
    "timeouts",
)


def _is_flow(reported: object) -> bool:
    """Whether it describes a flow as it is in a play."""

    def fits(name: str, value: object) -> bool:
        if name in _WORDS:
            return value is None or isinstance(value, str)
        if name in _TRUTHS:
            return isinstance(value, bool)
        if name == "transfers_ms":
            return isinstance(value, list) and all(map(_is_number, value))
        return (value is None and name not in _COUNTS) or _is_number(value)

    return isinstance(reported, dict) and all(fits(name, value) for name, value in reported.items())


def _is_queue(reported: object) -> bool:
    """Whether it describes a queue as it is in a play."""
    return isinstance(reported, dict) and all(
        _is_number(reported.get(name)) for name in ("backlog_bytes", "dropped_packets")
    )


# The columns of looks, and whether a value may be unknown. Words come as a word and how often in a row.
_COLUMNS = {
    **dict.fromkeys(("cwnd", "pacing_rate_bps", "bandwidth_bps", "rtt_ms"), True),
    **dict.fromkeys(("inflight", "delivered_bytes", "delivered_segments", "segments_sent"), False),
    **dict.fromkeys(("lost", "timeouts", "queued_bytes"), False),
}
_STRETCHES = ("phase", "state")


def _looks(reported: object, most: int) -> dict[str, list[Any]] | None:
    """The columns of an answer, of equal length from 1 to `most`; None if that is not what it has."""
    if not isinstance(reported, dict) or not isinstance(reported.get("connected"), list):
        return None
    connected: list[Any] = reported["connected"]
    looks = len(connected)
    columns = {"connected": connected}
    if not 1 <= looks <= most or set(map(type, connected)) != {bool}:
        return None
    for name, may_be_unknown in _COLUMNS.items():
        column = reported.get(name)
        if not isinstance(column, list) or len(column) != looks or not _are_numbers(column, may_be_unknown):
            return None
        columns[name] = column
    for name in _STRETCHES:
        words: list[str | None] = []
        stretches = reported.get(name)
        for one in stretches if isinstance(stretches, list) else ():
            if not isinstance(one, list) or len(one) != 2 or type(one[1]) is not int:
                return None
            if not (one[0] is None or isinstance(one[0], str)) or not 0 < one[1] <= looks - len(words):
                return None
            words.extend([one[0]] * one[1])
        if len(words) != looks:
            return None
        columns[name] = words
    return columns


def _are_numbers(column: list[Any], may_be_unknown: bool) -> bool:
    """Whether all are finite numbers from 0, or unknown where that may be. One by one is slower."""
    types = set(map(type, column))
    known = column
    if type(None) in types:
        if not may_be_unknown:
            return False
        types.discard(type(None))
        known = [one for one in column if one is not None]
    if not types <= {int, float}:
        return False
    try:
        # Not a number is neither less nor more, but makes the sum one.
        return not known or (min(known) >= 0 and math.isfinite(sum(known)))
    except OverflowError:
        return False


def refused(spec_json: str) -> str | None:
    """Why the program does not run a spec; None if it does.

    Raises:
        WorldError: There is no program, or it fails.
    """
    brought = stacks.requested()
    key = (about().build, hashlib.sha256(spec_json.encode() + json.dumps(brought).encode()).digest())
    with _lock:
        if key in _refusals:
            _refusals.move_to_end(key)
            return _refusals[key]
    with Talk("refuses", patience_s=_PATIENCE_S) as talk:
        talk.report({"spec": spec_json, **brought})
        reported = talk.header()
    reason = reported.get("refused")
    with _lock:
        _refusals[key] = None if reason is None else shown(str(reason))
        if len(_refusals) > _MOST_REMEMBERED:
            _refusals.popitem(last=False)
        return _refusals[key]


_refusals: OrderedDict[tuple[str, bytes], str | None] = OrderedDict()


class Talk:
    """A process of the program, and the conversation with it.

    `patience_s`: an answer that takes longer is an error. Without it, an answer takes its time. `files` are
    descriptors that it inherits, `environment` variables that it has besides ours.
    """

    def __init__(
        self,
        what: str,
        *,
        patience_s: float = math.inf,
        files: Sequence[int] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        program = about().path
        self._what = program
        self._patience_s = patience_s
        self._writes_logs = bool(files)
        try:
            self._process = child.start(
                [program, what],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=files,
                env={**os.environ, **environment},
            )
        except OSError as error:
            raise _broken(program, error.strerror or str(error)) from None
        assert self._process.stdin is not None and self._process.stderr is not None
        # A program that does not read must not keep us from noticing that.
        os.set_blocking(self._process.stdin.fileno(), False)
        # The end of what it complains of. It is read all along: a program waits while its pipe is full.
        self._complaints = bytearray()
        self._complaining: int | None = self._process.stderr.fileno()
        os.set_blocking(self._complaining, False)
        # What was read and not yet taken: a step of a case costs one read.
        self._waiting = bytearray()
        self.close = weakref.finalize(self, child.end, self._process)

    def __enter__(self) -> "Talk":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def report(self, request: Mapping[str, object]) -> None:
        """Sends a request. If the program has ended, the next answer says why."""
        assert self._process.stdin is not None
        to = self._process.stdin.fileno()
        rest = memoryview(child.blob(json.dumps(request).encode()))
        ends_s = time.monotonic() + _PATIENCE_S
        while rest:
            try:
                rest = rest[os.write(to, rest) :]
            except BlockingIOError:
                if time.monotonic() > ends_s:
                    raise self._ended("it does not read what it is told") from None
                self._hear()
                child.writable(to, _TICK_S)
            except BrokenPipeError:
                return

    def header(self, tick: Progress | None = None) -> dict[str, Any]:
        """The next blob as JSON; raises the error that it describes. `tick` is called now and then.

        What the program says of its progress comes before.
        """
        done = 0.0
        while True:
            still = None if tick is None else lambda: tick(done)  # noqa: B023
            content = self._blob(still, _MOST_JSON_BYTES, self._patience_s)
            reported = self._as_dict(content)
            if tick is not None and "progress" in reported:
                with contextlib.suppress(TypeError, ValueError, OverflowError):
                    done = min(0.99, max(0.0, float(reported["progress"])))
                tick(done)
                continue
            if reported.get("ok") is False:
                raise child.as_error(
                    {"message": "it does not say why", **reported}, logs=self._writes_logs, most=MOST_SHOWN
                )
            return reported

    def state(self) -> dict[str, Any]:
        """The next answer of a play: `running`, `now_ns`, `flow` and `queues`."""
        return self._state(self.header())

    def looks(self, most: int) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """The answer to a request for at most so many looks: the state behind the last, and columns."""
        reported = self.header()
        columns = _looks(reported.pop("looks", None), most)
        if columns is None:
            raise self._ended(_NO_ANSWER)
        return self._state(reported), columns

    def _state(self, reported: dict[str, Any]) -> dict[str, Any]:
        queues = reported.get("queues")
        if not (
            isinstance(reported.get("running"), bool)
            and _is_number(reported.get("now_ns"))
            and _is_flow(reported.get("flow"))
            and isinstance(queues, list)
            and all(map(_is_queue, queues))
        ):
            raise self._ended(_NO_ANSWER)
        return reported

    def frame(self, most: int) -> bytes:
        """The next blob, of at most so many bytes."""
        return self._blob(None, most, _PATIENCE_S)

    def record(self, spec_json: str) -> tuple[str, bytes, bytes]:
        """The record that ends a run: summary as JSON, flow series and link series as Parquet."""
        return self.logged_record(spec_json)[:3]

    def logged_record(
        self, spec_json: str, tick: Progress | None = None
    ) -> tuple[str, bytes, bytes, float | None]:
        """The same, and when its logs were full, in seconds; None unless they end there."""
        header = self.header(tick)
        full_at_s = header.get("full_at_s")
        if header.get("ok") is not True or not (full_at_s is None or _is_number(full_at_s)):
            raise self._ended(_NO_ANSWER)
        still = None if tick is None else lambda: tick(0.99)
        series_bytes = _most_of_series(spec_json)
        # They are encoded one after the other.
        summary, run = (
            self._blob(still, most, _PATIENCE_S + most / _LEAST_BYTES_S)
            for most in (_MOST_JSON_BYTES, _MOST_JSON_BYTES + series_bytes)
        )
        self._as_dict(summary)
        try:
            flows, links = _native.tables(run)
        except ValueError as error:
            raise self._ended(f"{_NO_ANSWER}: {shown(str(error))}") from None
        return summary.decode(), flows, links, full_at_s

    def _blob(self, tick: Callable[[], None] | None, most: int, patience_s: float) -> bytes:
        """The next blob, of at most so many bytes. It must begin within the patience."""
        (length,) = child.LENGTH.unpack(self._read(child.LENGTH.size, tick, patience_s))
        if length > most:
            raise self._ended(_NO_ANSWER)
        return self._read(length, tick, _PATIENCE_S + length / _LEAST_BYTES_S)

    def _as_dict(self, content: bytes) -> dict[str, Any]:
        """The table that is in a blob."""
        try:
            reported = _read_json(content)
        except ValueError:
            reported = None
        if not isinstance(reported, dict):
            raise self._ended(_NO_ANSWER)
        return reported

    def _read(self, length: int, tick: Callable[[], None] | None, patience_s: float) -> bytes:
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        now_s = time.monotonic()
        ends_s, ticks_s = now_s + patience_s, now_s + _TICK_S
        while len(self._waiting) < length:
            sources = [one for one in (source, self._complaining) if one is not None]
            ready = child.readable(sources, _TICK_S)
            if self._complaining in ready:
                self._hear()
            if source in ready:
                part = os.read(source, 1 << 20)
                if not part:
                    raise self._ended()
                self._waiting += part
            # Also while bytes arrive: they may do so one by one.
            now_s = time.monotonic()
            if tick is not None and now_s >= ticks_s:
                ticks_s = now_s + _TICK_S
                tick()
            if now_s > ends_s and len(self._waiting) < length:
                raise self._ended(f"it does not answer within {patience_s:.3g} s")
        content = bytes(self._waiting[:length])
        del self._waiting[:length]
        return content

    def _hear(self) -> None:
        """Takes some of what it complains of, and keeps the end."""
        if self._complaining is None:
            return
        with contextlib.suppress(BlockingIOError):
            part = os.read(self._complaining, 1 << 16)
            self._complaints += part
            del self._complaints[:-_MOST_KEPT]
            if not part:
                self._complaining = None

    def _ended(self, why: str = "") -> _native.WorldError:
        """The error that says why there is no answer."""
        if not why:
            ends_s = time.monotonic() + _GOODBYE_S
            while self._complaining is not None and (left_s := ends_s - time.monotonic()) > 0:
                child.readable([self._complaining], left_s)
                self._hear()
            try:
                code = self._process.wait(max(0.0, ends_s - time.monotonic()))
                last = child.last_line(bytes(self._complaints))
                why = f"it ended with code {code}: {last or 'it printed nothing'}"
            except subprocess.TimeoutExpired:
                why = "it closes its output and goes on"
        self.close()
        return _broken(self._what, why)


@dataclass(frozen=True)
class Qlog:
    """The qlog of a run: descriptors of the current form and of the older one, of at most so many packets."""

    title: str
    files: tuple[int, int]
    most: int


def run(
    spec_json: str, seed: int, tick: Progress, qlog: Qlog | None = None
) -> tuple[str, bytes, bytes, float | None]:
    """Runs a spec: summary as JSON, flow series and link series as Parquet. `tick` is called now and then.

    The last of the answer is when the logs were full, in seconds; None unless they end there.
    """
    request: dict[str, object] = {"spec": spec_json, "seed": seed, **stacks.requested(spec_json)}
    if qlog is not None:
        request["qlog"] = asdict(qlog)
    with Talk("run", files=() if qlog is None else qlog.files) as talk:
        talk.report(request)
        return talk.logged_record(spec_json, tick)


def _most_of_series(spec_json: str) -> int:
    """The most bytes that a series of such a run has: a row for each sample and flow, or queue."""
    spec = json.loads(spec_json)
    # Without an interval, there is no series.
    samples = 2 + spec["duration_ns"] // (spec.get("sample_interval_ns") or spec["duration_ns"] or 1)
    sampled: int = len(spec["flows"]) + len(spec["forward"]) + len(spec["reverse"])
    return int(samples) * sampled * _MOST_ROW_BYTES


def _there() -> Path:
    found = shipped.quic()
    if found is None:
        raise _with_fix(f"there is no program {shipped.QUIC}, which has the QUIC stacks", FIX)
    return found


def _broken(program: Path, why: str) -> _native.WorldError:
    from_environment = VARIABLE in os.environ
    fix = f"correct {VARIABLE}, or unset it" if from_environment else f"build it again: {FIX}"
    named = f"{VARIABLE} names {program}, but" if from_environment else f"{program}:"
    return _with_fix(f"{named} {why}", fix)


def _with_fix(message: str, fix: str) -> _native.WorldError:
    error = _native.WorldError(f"{message}; {fix}")
    error.fix = fix
    return error
