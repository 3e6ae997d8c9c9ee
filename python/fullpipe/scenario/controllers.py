"""Controllers of your own, written in Python: the class to extend, and how a scenario names them.

    class Mine(fp.Controller):
        def on_ack(self, ack):
            if ack.connection.state == "open":
                self.cwnd += 3 * ack.newly_acked / self.cwnd  # Three segments more a round trip.

        def on_state(self, change):
            if change.reduce:  # After a loss.
                self.cwnd = max(2, 0.8 * self.cwnd)

    fp.compare(["bbr1", Mine], rate="20 Mbit/s", rtt="40 ms")

A scenario names such a class `FILE.py:CLASS`, or `own:CLASS` if it is in no file, as in a notebook.
Parameters follow as `FILE.py:CLASS:gain=2`. Only the simulator runs them.
"""

import ast
import contextlib
import hashlib
import importlib
import inspect
import itertools
import json
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, TypeAlias

import fullpipe._native as _native
from fullpipe import plugins
from fullpipe._native import ControllerError, ScenarioError
from fullpipe.errors import mistake
from fullpipe.scenario import class_values

# The names under which the native half looks for methods that a class has of its own.
_METHODS = (
    "start",
    "on_transmit_start",
    "on_window_unused",
    "on_sent",
    "on_rtt",
    "on_ce",
    "on_undo",
    "on_lost",
    "on_tail_repair",
    "on_state",
    "on_ack",
    "on_mss",
    "limits",
)
_IN_NO_FILE = "own"
# A stack and its controller (crates/scenario/src/stack.rs). A parameter of one of ours has a value.
_OF_STACK = re.compile(r"[a-z0-9_-]+:[a-z0-9_-]+")
_SUFFIX = ".py"
_OURS = Path(__file__).parent.parent  # The package.
_MOST_BYTES = 10_000_000  # Of a file; no program that somebody wrote is as long.
# CPython 3.11 counts the depth of a syntax tree in one place for all threads. When the collector runs in the
# middle, another thread can begin a tree of its own, and both fail with a `SystemError`.
_parser = threading.RLock()


@dataclass
class Limits:
    """What a controller allows, for a class that computes it in `limits()`: see `Controller`."""

    cwnd: float
    ssthresh: float | None = None
    pacing_rate_bps: float | None = None
    min_burst: int = 2
    mark_app_limited: bool = False


class Controller:
    """A congestion controller: it is told events, and its attributes are its limits.

    Counts are in segments. The events and their order are those of the trait `fullpipe_cc::Controller`,
    which are Linux's; docs/how-to/controllers.md describes them. A class needs only the methods that it uses:
    those that it does not have are not called, and cost nothing. The attributes may be properties.

    Linux's pacing rate is 2 windows a round trip while `cwnd` is below half of `ssthresh`, as it always is
    without `ssthresh`, and else 1.2 windows.
    """

    paced: bool = False  # Whether segments leave at the pacing rate, or as soon as the window allows.
    cwnd: float = 10  # Segments that may be in flight; at least one may.
    ssthresh: float | None = None  # The slow-start threshold, if there is one.
    pacing_rate_bps: float | None = None  # Of payload; None is Linux's: see below.
    min_burst: int = 2  # The fewest segments that a burst should hold.
    mark_app_limited: bool = False  # Whether the controller itself holds the sender back, as BBR in ProbeRTT.
    check_app_limited: bool = False  # Whether ACKs and timers, too, look if the application is the limit.
    phase: str | None = None  # Its name in figures and records; None follows window and recovery.
    bandwidth_bps: float | None = None  # Its estimate, for records.

    def start(self, config: "_native.Config", connection: "_native.Connection") -> None:
        """The connection is established. Comes first, and once."""

    def on_transmit_start(self, start: "_native.TransmitStart") -> None:
        """Data is about to leave and nothing is in flight."""

    def on_window_unused(self, unused: "_native.WindowUnused") -> None:
        """The application left the window unfilled for a retransmission timeout."""

    def on_sent(self, sent: "_native.Sent") -> None:
        """A burst left."""

    def on_rtt(self, sample: "_native.RttSample") -> None:
        """An ACK brought an RTT. First of an ACK's events."""

    def on_ce(self, marks: "_native.CeMarks") -> None:
        """An ACK echoed congestion marks (with `hosts.ecn`). Before an undo and any change of state."""

    def on_undo(self, undo: "_native.Undo") -> None:
        """The last reduction proved spurious. Before the change of state that leaves the recovery."""

    def on_lost(self, lost: "_native.Lost") -> None:
        """A run of segments was marked lost. Before the change of state that it causes."""

    def on_tail_repair(self, repair: "_native.TailRepair") -> None:
        """A tail probe repaired a loss. Before the change of state that reduces for it."""

    def on_state(self, change: "_native.StateChange") -> None:
        """The recovery state changes."""

    def on_ack(self, ack: "_native.Ack") -> None:
        """An ACK was processed. Last of an ACK's events."""

    def on_mss(self, mss: int) -> None:
        """The segment size changed."""

    def limits(self) -> Limits:
        """What it allows now. The attributes say it, unless a class has this method."""
        return Limits(self.cwnd, self.ssthresh, self.pacing_rate_bps, self.min_burst, self.mark_app_limited)

    @classmethod
    def using(cls, **parameters: object) -> "Own":
        """This controller, made with these parameters: `Mine.using(gain=2)`."""
        return Own.of(cls, parameters)


@dataclass(frozen=True)
class Own:
    """A controller of the user's own, as a scenario uses it."""

    text: str  # As specs and records name it.
    digest: str  # A hash of its code and of the values in it.
    parameters: Mapping[str, object] = field(hash=False)
    made_by: type[Controller] = field(hash=False, compare=False, repr=False)
    not_plain: str = ""  # A value in it that cannot be hashed, so that its runs cannot be stored.

    @staticmethod
    def of(made_by: type[Controller], parameters: Mapping[str, object] | None = None) -> "Own":
        """A class of this process."""
        given = dict(parameters or {})
        file = _file_of(made_by)
        name = f"{_IN_NO_FILE if file is None or file.suffix != _SUFFIX else file.name}:{made_by.__name__}"
        parameters_text = ",".join(f"{key}={value}" for key, value in given.items())
        text = _plain(f"{name}:{parameters_text}" if parameters_text else name)
        digest = _digest(file, text) if file is not None else _of_class(made_by)
        not_plain = ""
        try:
            digest += class_values.of_class(made_by, Controller, in_file=file is not None)
            message = class_values.of_parameters(given)
        except class_values.NotPlainError as error:
            not_plain = str(error)
            # Only for this process, which has no other class at that place.
            message = f"{id(made_by)} {sorted(given.items())!r}"
        return Own(text, _with(digest, made_by, message), given, made_by, not_plain)

    @staticmethod
    def load(text: str, base_dir: Path) -> "Own":
        """The class that `FILE.py:CLASS` or `FILE.py:CLASS:parameter=value,...` names, from `base_dir`."""
        file, _, rest = text.partition(":")
        name, _, message = rest.partition(":")
        if file == _IN_NO_FILE:
            raise mistake("controller", text, "a class, because it is in no file", "pass the class itself")
        path = base_dir / file
        module = _module(path, text)
        made_by = vars(module).get(name)
        if not (isinstance(made_by, type) and issubclass(made_by, Controller)):
            there = [key for key, one in vars(module).items() if _is_own_class(one)]
            expected = f"a class in {file} that extends fullpipe.Controller"
            fix = (
                f"there is {', '.join(there)}" if there else f"write class {name}(fullpipe.Controller) there"
            )
            raise mistake("controller", text, expected, fix)
        given = _parameters(text, message)
        return Own(
            text, _with(_digest(path, text), made_by, class_values.of_parameters(given)), given, made_by
        )

    def make(self) -> Controller:
        """A controller for one flow."""
        return self.made_by(**self.parameters)

    def _check_arguments(self) -> None:
        """Raises a `TypeError` that names class and argument if `__init__` cannot take the parameters."""
        try:
            with _parser:
                signature = inspect.signature(self.made_by)  # It parses the text of a builtin's signature.
        except (TypeError, ValueError):
            return
        try:
            signature.bind(**self.parameters)
        except TypeError as error:
            name = self.made_by.__name__
            using = f"{name}.using(...) gives it its arguments; on the command line, {name}:NAME=VALUE does"
            raise TypeError(f"{name}: {error}; {using}") from None

    def plug(self, flow: int) -> "Brought":
        """A controller for one flow, as the native half takes it."""
        try:
            self._check_arguments()
            one = self.make()
            base, own = Controller, type(one)
            methods = {
                name: getattr(one, name) for name in _METHODS if getattr(own, name) is not getattr(base, name)
            }
            return flow, self.text, bool(one.paced), one, methods
        except BaseException as error:
            if plugins.is_interrupt(error):
                raise
            raise _failed(self.text, "__init__", flow, error) from error


# A controller where a scenario takes one: a name, a class, or a class with parameters.
Chosen: TypeAlias = str | type[Controller] | Own
# A controller for one flow, as the native half takes it: `_native.simulate_with`.
Brought: TypeAlias = tuple[int, str, bool, Controller, dict[str, Callable[..., object]]]


def _failed(controller: str, event: str, flow: int, error: BaseException) -> ControllerError:
    reason = plugins.described(error)
    raised = ControllerError(f"{controller}: {event} raised {reason} (flows[{flow}], before the run)")
    raised.controller, raised.event, raised.flow = controller, event, flow
    return raised


def place_of(error: ControllerError) -> str:
    """The line that raised, as `mine.py:17: `; empty if no line did, as for a limit that is no number."""
    traceback = error.__cause__.__traceback__ if error.__cause__ is not None else None
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(traceback)]
    # A line of ours is not where the mistake is.
    frames = [(file, line) for file, line in frames if not Path(file).is_relative_to(_OURS)]
    return f"{frames[-1][0]}:{frames[-1][1]}: " if frames else ""


@dataclass(frozen=True)
class Given:
    """The classes in a document, by their texts, and the texts that were written in it beside them."""

    own: Mapping[str, Own] = field(default_factory=dict)
    written: frozenset[str] = frozenset()


def named(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Given]:
    """The document with the texts of the classes in it, and those classes.

    Raises:
        ScenarioError: Two different classes have the same text, so that one would run as the other.
    """
    found: dict[str, Own] = {}
    written: set[str] = set()

    def text_of(chosen: object) -> object:
        if isinstance(chosen, type) and issubclass(chosen, Controller):
            chosen = Own.of(chosen)
        if isinstance(chosen, Own):
            if not _same(chosen, found.setdefault(chosen.text, chosen)):
                raise _ambiguous(chosen.text)
            return chosen.text
        if isinstance(chosen, str):
            written.add(_plain(chosen))
        return chosen

    replaced: dict[str, Any] = dict(document)
    if isinstance(compared := replaced.get("compare"), list | tuple):
        replaced["compare"] = [text_of(chosen) for chosen in compared]
    if isinstance(flows := replaced.get("flows"), list | tuple):
        replaced["flows"] = [
            {**flow, "controller": text_of(flow["controller"])}
            if isinstance(flow, Mapping) and "controller" in flow
            else flow
            for flow in flows
        ]
    return (replaced, Given(found, frozenset(written))) if found else (document, Given())


def of_spec(spec_json: str, given: Given, base_dir: Path) -> tuple[Own, ...]:
    """The controllers of the user's own that a spec names, each once; what is not given is loaded.

    A class that was given is never looked up by its name: another file may have that name.
    """
    return tuple(_of_text(text, given, base_dir) for text in texts_of_spec(spec_json))


def _of_text(text: str, given: Given, base_dir: Path) -> Own:
    if (own := given.own.get(text)) is not None:
        if (
            not is_in_no_file(text)
            and text in given.written
            and Own.load(text, base_dir).digest != own.digest
        ):
            raise _ambiguous(text)
        return own
    if given.own and text not in given.written:
        shown = ", ".join(given.own)
        raise mistake("controller", text, f"the text of a class that was given ({shown})", "rename the class")
    return Own.load(text, base_dir)


def _same(one: Own, other: Own) -> bool:
    """Whether they run the same code with the same parameters."""
    if one is other:
        return True
    if one.made_by is not other.made_by or one.digest != other.digest:
        return False
    # Values that look the same may differ, and some cannot be compared.
    try:
        return all(
            value is other.parameters[key] or bool(value == other.parameters[key])
            for key, value in one.parameters.items()
        )
    except Exception:
        return False


def _ambiguous(text: str) -> ScenarioError:
    expected = "one controller of that name, and there are two that differ"
    return mistake("controller", text, expected, "rename one of the classes, or give it another parameter")


def _plain(text: str) -> str:
    """The text of a controller of the user's own as the native half writes it."""
    return ":".join(part.strip() for part in text.split(":", 2))


def texts_of_spec(spec_json: str) -> list[str]:
    """The names of the user's own controllers in a spec, each once."""
    if ".py:" not in spec_json and f'"{_IN_NO_FILE}:' not in spec_json:
        return []
    texts = dict.fromkeys(flow["controller"] for flow in json.loads(spec_json)["flows"])
    return [text for text in texts if is_own(text)]


def of_stacks(spec_json: str) -> list[str]:
    """The controllers in a spec that are inside a QUIC stack, e.g. `noq:bbr3`, each once."""
    # A spec may have tens of thousands of flows, and hardly one has such a controller.
    if _OF_STACK.search(spec_json) is None:
        return []
    texts = dict.fromkeys(flow["controller"] for flow in json.loads(spec_json)["flows"])
    return [text for text in texts if is_of_stack(text)]


def is_of_stack(text: str) -> bool:
    """Whether a controller is one inside a stack."""
    return _OF_STACK.fullmatch(text) is not None and not is_own(text)


def is_own(text: str) -> bool:
    """Whether a spec's controller is one of the user's own."""
    file = text.partition(":")[0]
    return file == _IN_NO_FILE or file.endswith(".py")


def is_in_no_file(text: str) -> bool:
    """Whether the text of one of the user's own says that its class is in no Python file."""
    return text.partition(":")[0] == _IN_NO_FILE


def _parameters(text: str, message: str) -> dict[str, object]:
    given: dict[str, object] = {}
    for part in message.split(",") if message else []:
        key, equals, value = part.partition("=")
        if not equals or not key.strip().isidentifier():
            raise mistake(
                "controller", text, "FILE.py:CLASS:parameter=value,...", "give each parameter a value"
            )
        given[key.strip()] = _value(value.strip())
    return given


def _value(text: str) -> object:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _is_own_class(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, Controller) and one is not Controller


# Modules that were loaded, by path and hash: a class stays the same as long as its code does.
_loaded: dict[tuple[Path, str], ModuleType] = {}
_numbers = itertools.count()


def _module(path: Path, text: str) -> ModuleType:
    digest = _digest(path, text)
    resolved = path.resolve()
    key = (resolved, digest)
    if key not in _loaded:
        _loaded[key] = _execute(resolved, text)
    return _loaded[key]


def _execute(path: Path, text: str) -> ModuleType:
    name = f"_fullpipe_controller_{next(_numbers)}_{path.stem}"
    module = ModuleType(name)
    module.__file__ = str(path)
    # What it imports from its own folder may have been loaded before it was edited, or have the name of
    # another folder's module.
    own = {_module_name(file, path.parent) for file in _sources(path)}
    before = {key: sys.modules.pop(key) for key in own & sys.modules.keys()}
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    # Python trusts a cached file whose source was edited within the same second.
    cached, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    importlib.invalidate_caches()
    try:
        exec(compile(_read(path), str(path), "exec"), vars(module))  # The user asked for this file.
    except BaseException as error:
        sys.modules.pop(name, None)
        if plugins.is_interrupt(error):
            raise
        reason = plugins.described(error)
        raise mistake("controller", text, "a Python file that can be imported", reason) from error
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(path.parent))
        for key in own & sys.modules.keys():
            del sys.modules[key]
        sys.modules.update(before)
        sys.dont_write_bytecode = cached
    return module


def _module_name(file: Path, folder: Path) -> str:
    parts = file.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _file_of(made_by: type) -> Path | None:
    """The file of a class; None for one of a notebook or of the interactive prompt."""
    try:
        file = inspect.getsourcefile(made_by)
    except (TypeError, OSError):
        return None
    path = Path(file) if file else None
    is_cell = path is None or not path.is_file() or "ipykernel" in str(path)
    return None if is_cell else path


def _digest(path: Path, text: str) -> str:
    """`_of_files`, or the `ScenarioError` that says why there is none."""
    try:
        return _of_files(path.resolve(strict=True))
    # Python's parser has its limits, and a loop of links is a `RuntimeError`.
    except (OSError, SyntaxError, ValueError, RuntimeError, MemoryError) as error:
        raise mistake("controller", text, "a Python file that can be read", plugins.message(error)) from None


def _read(path: Path) -> bytes:
    """The content of a Python file."""
    # Without O_NONBLOCK, opening a named pipe would wait for its other end.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise OSError(f"{path} is no regular file")
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(f"{path} has more than {_MOST_BYTES} bytes")
    return content


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError, RuntimeError):
        return False  # E.g. a name that is too long.


def _of_files(path: Path) -> str:
    """A hash of a Python file and of those in its folder that it imports, directly or through others."""
    hashed = hashlib.sha256()
    for file in _sources(path):
        content = _read(file)
        hashed.update(f"{file.relative_to(path.resolve().parent)} {len(content)}\n".encode() + content)
    return hashed.hexdigest()


def _sources(path: Path) -> list[Path]:
    """The file and what it imports from its folder, sorted."""
    folder = path.resolve().parent
    found = {path.resolve()}
    waiting = list(found)
    while waiting:
        file = waiting.pop()
        new = {one for one in _imported(file, folder) if one not in found}
        found |= new
        waiting += new
    return sorted(found)


def _imported(file: Path, folder: Path) -> Iterator[Path]:
    """The files in `folder` that the imports of `file` name."""
    content = _read(file)
    with _parser:
        tree = ast.parse(content, str(file))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(folder, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level > len(file.parents):
                continue  # Above the root, where nothing is.
            base = file.parents[node.level - 1] if node.level else folder
            module = f"{node.module}." if node.module else ""
            # What is imported from a package may be a module of it.
            names = [(base, f"{module}{alias.name}") for alias in node.names]
        else:
            continue
        for base, name in names:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                place = base.joinpath(*parts[:length])
                for candidate in (place.with_suffix(".py"), place / "__init__.py"):
                    if _is_file(candidate) and candidate.resolve().is_relative_to(folder):
                        yield candidate.resolve()


def _of_class(made_by: type) -> str:
    """A hash of the code of a class that is in no file, and of those that it extends up to `Controller`."""
    hashed = hashlib.sha256()
    for one in made_by.__mro__:
        if one is Controller or one is object:
            continue
        hashed.update(one.__qualname__.encode())
        # At the interactive prompt there is no source. Then the code is among the values.
        with contextlib.suppress(OSError, TypeError):
            hashed.update(inspect.getsource(one).encode())
    return hashed.hexdigest()


def _with(digest: str, made_by: type, parameters: str) -> str:
    return hashlib.sha256(f"{digest}\n{made_by.__qualname__}\n{parameters}".encode()).hexdigest()
