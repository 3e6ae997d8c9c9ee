"""Stacks in processes of their own: `--stack NAME=./adapter` names the program that has one.

The world `quic` starts an adapter for each of its flows, and talks to it (quic/adapters/PROTOCOL.md). Only
who runs a scenario names adapters: a scenario says `NAME:controller`, and starts nothing by itself.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from struct import Struct
from typing import Any

import fullpipe._native as _native
from fullpipe.errors import mistake
from fullpipe.runs.worlds import child
from fullpipe.scenario.controllers import of_stacks
from fullpipe.text import joined, shown

PROTOCOL = 1
VARIABLE = "FULLPIPE_STACK_PATIENCE"
_PATIENCE_S = 20.0
_MOST_BYTES = 1 << 20
_NAME = re.compile(r"[a-z0-9_-]{1,32}")
_LENGTH = Struct("<I")
_MOST_KEPT = 1 << 12
# What an adapter may tell of a connection.
TELLS = (
    *("window", "ssthresh", "in_flight", "srtt", "min_rtt", "pacing_rate", "bandwidth", "lost", "acked"),
    *("timeouts", "phase"),
)
# Without these keys it is none.
_REQUIRED = ("protocol", "name", "version", "controllers")


@dataclass(frozen=True)
class Stack:
    """A stack, and the command of its adapter."""

    name: str
    command: tuple[str, ...]
    about: Mapping[str, Any]

    @cached_property
    def build(self) -> str:
        """Of what its command names: another program, or another version, gives other results."""
        digest = hashlib.sha256(json.dumps([self.command, self.about], sort_keys=True).encode())
        for word in self.command:
            path = Path(word)
            if path.is_file():
                digest.update(path.read_bytes())
        return digest.hexdigest()[:16]

    @property
    def request(self) -> dict[str, Any]:
        """As the program of the world takes it."""
        return {"name": self.name, "command": list(self.command), "about": dict(self.about)}


_lock = threading.Lock()
_given: dict[str, Stack] = {}


def given() -> tuple[Stack, ...]:
    """The stacks of this process, in the order in which they were given."""
    with _lock:
        return tuple(_given.values())


def requested(spec_json: str | None = None) -> dict[str, list[dict[str, Any]]]:
    """What a request to the program has of stacks: all, or those that a spec names; nothing without."""
    stacks = given() if spec_json is None else behind(of_stacks(spec_json))
    return {"stacks": [stack.request for stack in stacks]} if stacks else {}


def behind(controllers: Sequence[str]) -> tuple[Stack, ...]:
    """The given stacks that these controllers, such as `mine:cubic`, are in."""
    named = {text.partition(":")[0] for text in controllers}
    return tuple(stack for stack in given() if stack.name in named)


def options(controller: str) -> list[str]:
    """The words of a command that give the stack of a controller; none for one that needs no adapter."""
    return [
        word
        for stack in behind([controller])
        for word in ("--stack", f"{stack.name}={shlex.join(stack.command)}")
    ]


def give(stacks: Sequence[Stack]) -> None:
    """Lets the world `quic` start the adapters of these stacks from now on."""
    with _lock:
        _given.update({stack.name: stack for stack in stacks})


@contextlib.contextmanager
def using(stacks: Sequence[Stack]) -> Iterator[None]:
    """The same as long as it is open."""
    with _lock:
        before = dict(_given)
    give(stacks)
    try:
        yield
    finally:
        with _lock:
            _given.clear()
            _given.update(before)


def of_text(text: str) -> Stack:
    """The stack of `NAME=COMMAND`, asked what it is.

    Raises:
        ScenarioError: The text names none, or a name that is taken.
        WorldError: The adapter cannot be started, or does not answer as one.
    """
    name, equals, command = text.partition("=")
    name = name.strip()
    if not equals or not _NAME.fullmatch(name):
        expected = "NAME=COMMAND, with a name of at most 32 lower-case letters, digits, - and _"
        raise mistake("--stack", text, expected, "write for example mine=./adapter")
    return of_command(name, command)


def of_command(name: str, command: str) -> Stack:
    """The same, of both apart."""
    check_name("--stack", name)
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise mistake("--stack", command, f"words as in a shell ({error})", "close its quotes") from None
    found = shutil.which(words[0]) if words else None
    if found is None:
        fix = 'name its file, e.g. ./adapter, or give its command: "python ./adapter.py"'
        raise mistake("--stack", command, "a program that can be run", fix)
    # Where the world's program runs does not matter then.
    words = [str(Path(found).absolute()), *words[1:]]
    return Stack(name, tuple(words), _about(name, words))


def check_name(field: str, name: str) -> None:
    """Raises `ScenarioError` at this field if a stack cannot have that name, or if it is taken."""
    if not _NAME.fullmatch(name):
        raise mistake(field, name, "a name of at most 32 lower-case letters, digits, - and _", "e.g. mine")
    if name in ("noq", "quinn", "own") or name in _controllers():
        raise mistake(field, name, "a name that no other stack and no controller has", "choose another")


def _controllers() -> set[str]:
    return {one["name"] for one in json.loads(_native.controllers())}


def _about(name: str, command: Sequence[str]) -> dict[str, Any]:
    """What an adapter says of itself. Neither its answer's length nor its time is trusted."""
    try:
        reported = json.loads(_answer(name, command))
        if reported.get("protocol", PROTOCOL) != PROTOCOL:
            spoken = shown(str(reported["protocol"]))
            raise broken(name, command, f"speaks protocol {spoken}, this Fullpipe {PROTOCOL}")
        missing = [key for key in _REQUIRED if key not in reported]
        if missing:
            why = f"does not say its {', '.join(missing)} (quic/adapters/PROTOCOL.md, About)"
            raise broken(name, command, why)
        names = [str(one) for one in reported["controllers"]]
        if not names or not all(map(_NAME.fullmatch, names)):
            raise broken(name, command, "has controllers without names: at most 32 of a-z, 0-9, - and _")
        about = {key: shown(str(reported.get(key, ""))) for key in ("name", "version", "licence", "policy")}
        told = [str(one) for one in reported.get("tells", [])]
        if unknown := [one for one in told if one not in TELLS]:
            what = f"has `{shown(unknown[0])}` in `tells`; known are {joined(TELLS)}"
            raise broken(name, command, what)
        tells = [one for one in TELLS if one in told]
        layer = "ip" if reported.get("layer") == "ip" else "udp"
        most = reported.get("most_datagram")
        most = most if isinstance(most, int) and 0 < most < 1 << 16 else None
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise broken(name, command, "does not say what it is (quic/adapters/PROTOCOL.md, About)") from None
    return {
        **about,
        "protocol": PROTOCOL,
        "controllers": names,
        "tells": tells,
        "layer": layer,
        "most_datagram": most,
    }


def broken(name: str, command: Sequence[str], why: str) -> _native.WorldError:
    """An error that names an adapter."""
    return _native.WorldError(f"stack {name} ({shlex.join(command)}) {why}")


def _answer(name: str, command: Sequence[str]) -> bytes:
    try:
        process = child.start(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError as error:
        raise broken(name, command, f"cannot be started: {error.strerror or error}") from None
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    output, errors = process.stdout.fileno(), process.stderr.fileno()
    texts = {output: bytearray(), errors: bytearray()}
    most_s = patience_s()
    ends_s = time.monotonic() + most_s
    hello = json.dumps({"protocol": PROTOCOL}).encode()
    try:
        with contextlib.suppress(BrokenPipeError):
            os.write(process.stdin.fileno(), _LENGTH.pack(len(hello)) + hello)
        sources = [output, errors]
        while True:
            message = texts[output]
            length = _LENGTH.unpack_from(message)[0] if len(message) >= _LENGTH.size else 0
            if length > _MOST_BYTES:
                raise broken(
                    name, command, f"says what it is in {length} bytes; at most {_MOST_BYTES} are read"
                )
            if len(message) >= _LENGTH.size + length and len(message) >= _LENGTH.size:
                return bytes(message[_LENGTH.size : _LENGTH.size + length])
            left_s = ends_s - time.monotonic()
            ready = child.readable(sources, left_s) if left_s > 0 else []
            if not ready:
                raise broken(name, command, f"does not say what it is within {most_s:g} s")
            for source in ready:
                part = os.read(source, 1 << 16)
                texts[source] += part
                if source == errors:
                    del texts[errors][:-_MOST_KEPT]
                if not part:
                    sources.remove(source)
            if output not in sources:
                last = child.last_line(bytes(texts[errors]))
                raise broken(name, command, f"ends without saying what it is: {last or 'it prints nothing'}")
    finally:
        child.end(process)


def patience_s() -> float:
    """How long an answer of an adapter may take, in seconds of real time."""
    given_s = os.environ.get(VARIABLE, "")
    try:
        most_s = float(given_s or _PATIENCE_S)
    except ValueError:
        most_s = 0.0
    if not most_s > 0:
        raise mistake(VARIABLE, given_s, "seconds above 0", "unset it")
    return most_s
