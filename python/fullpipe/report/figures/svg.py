"""Figures as SVG with a text label, for readers who cannot see them."""

import atexit
import contextlib
import html
import json
import math
import os
import re
import resource
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from fullpipe.errors import OutputError
from fullpipe.runs.worlds import child
from fullpipe.text import printable, shown

# The renderer is a JavaScript engine, which reserves this much address space and ends the process without it.
_ADDRESS_SPACE = 80_000_000_000
_PROC = Path("/proc/self")
_NO_PROC = (
    "the figures cannot be drawn: the renderer needs /proc, which is not mounted; mount it "
    "(mount -t proc proc /proc)"
)
_CHILD = Path(__file__).with_name("_render_child.py")


def picture(spec: dict[str, Any], label: str | None = None) -> str:
    """The SVG of a Vega-Lite figure; without a label, one from its titles.

    Raises:
        OutputError: The process may not reserve enough address space.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_SPACE:
        raise OutputError(
            "the figures cannot be drawn: the renderer reserves 80 GB of address space, which is not memory, "
            "and `ulimit -v` allows less; raise that limit"
        )
    return labelled(_numbered(_process.svg(printable_json(_still(spec)))), label or described(spec))


def _still(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification without zoom, which a picture cannot show: it is a tenth of what that costs."""
    kept = [one for one in spec.get("params", ()) if one.get("bind") != "scales"]
    return {**spec, "params": kept}


def _numbered(svg: str) -> str:
    """With clips numbered from zero: the renderer counts those of all figures that it has drawn."""
    numbers: dict[str, int] = {}
    return re.sub(r"\bclip(\d+)\b", lambda found: f"clip{numbers.setdefault(found[1], len(numbers))}", svg)


class Renderer:
    """Renders figures one after another in a thread, so that the next can be prepared meanwhile."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)

    def __enter__(self) -> "Renderer":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Forgets what is not rendered after an error: an interrupt does not wait for it."""
        self._thread.shutdown(wait=kind is None, cancel_futures=True)

    def picture(self, spec: dict[str, Any]) -> "Future[str]":
        """What `picture` returns for the figure, later.

        Raises:
            OutputError: No thread can be started.
        """
        try:
            return self._thread.submit(picture, spec)
        except RuntimeError as error:
            raise OutputError(
                f"the figures cannot be drawn: {error}; give the command again where it may use more threads"
            ) from None


def warm_up() -> None:
    """Starts the renderer, half a second that passes while something else is done. An error shows later."""
    with contextlib.suppress(OutputError):
        _process.start()


class _Process:
    """The renderer in a process of its own, which all figures of this process share.

    In ours, it would keep Python's lock while it works, so that nothing else ran.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def start(self) -> None:
        """Starts it, if it does not run.

        Raises:
            OutputError: It cannot be started.
        """
        with self._lock:
            self._begun()

    def svg(self, spec: str) -> str:
        """The figure of a specification in JSON.

        Raises:
            OutputError: The renderer cannot work here.
        """
        with self._lock:
            running = self._begun()
            try:
                assert running.stdin is not None
                running.stdin.write(child.blob(spec.encode(errors="replace")))
                running.stdin.flush()
                why, svg = self._read(running), self._read(running)
            # After an interrupt, an answer would be taken for that of the next figure.
            except BaseException as error:
                self._end()
                if isinstance(error, OSError | EOFError):
                    raise _failed("it ended") from None
                raise
        if why:
            raise _failed(why)
        return svg

    def _begun(self) -> "subprocess.Popen[bytes]":
        # A forked process must not write into the pipes of the one that it is from.
        if self._child is None or self._owner != os.getpid():
            if not _PROC.exists():
                raise OutputError(_NO_PROC)
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            try:
                self._child = child.start([sys.executable, "-P", str(_CHILD)], **pipes)
            except (OSError, RuntimeError) as error:
                raise _failed(str(error)) from None
            self._owner = os.getpid()
            atexit.register(self._end)
        return self._child

    def _read(self, running: "subprocess.Popen[bytes]") -> str:
        assert running.stdout is not None
        head = running.stdout.read(child.LENGTH.size)
        if len(head) < child.LENGTH.size:
            raise EOFError
        data = running.stdout.read(size := child.LENGTH.unpack(head)[0])
        if len(data) < size:
            raise EOFError
        return data.decode()

    def _end(self) -> None:
        atexit.unregister(self._end)
        if self._child is not None and self._owner == os.getpid():
            child.end(self._child)
        self._child = None


_process = _Process()


def png(svg: str, scale: float) -> bytes:
    """An SVG as PNG."""
    return bytes(render("svg_to_png", svg, scale=scale))


def renderer_version() -> str:
    """The version of the renderer, to which its script belongs."""
    return metadata.version("vl-convert-python")


def render(function: str, *given: Any, **named: Any) -> Any:
    """What a function of the renderer returns.

    Raises:
        OutputError: The renderer cannot work here.
    """
    if not _PROC.exists():
        raise OutputError(_NO_PROC)
    try:
        import vl_convert

        return getattr(vl_convert, function)(*given, **named)
    except BaseException as error:
        # A panic of the renderer is no `Exception`.
        if type(error).__name__ != "PanicException":
            raise
        raise _failed(str(error)) from None


def _failed(why: str) -> OutputError:
    return OutputError(
        f"the figures cannot be drawn: the renderer failed ({shown(why)}); give the command again "
        "where it may use more memory and threads, or without figures (--json)"
    )


def printable_json(spec: Any) -> str:
    """A figure's specification, or several, as JSON with printable texts: XML forbids control characters.

    Numbers that JSON does not have become null, which figures leave out, too.
    """
    # Most of it is numbers: one look at the whole text is a hundredth of what a look at each value costs.
    with contextlib.suppress(ValueError):
        text = _json(spec)
        if text.isprintable() and not _ESCAPED.search(text):
            return text
    return _json(_printable(spec))


# How JSON writes a control character; line ends and tabs may stay.
_ESCAPED = re.compile(r"\\[bfru]")


def _json(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _printable(part: Any) -> Any:
    if isinstance(part, dict):
        return {printable(name): _printable(one) for name, one in part.items()}
    if isinstance(part, list | tuple):
        return [_printable(one) for one in part]
    if isinstance(part, float) and not math.isfinite(part):
        return None
    return printable(part) if isinstance(part, str) else part


def labelled(svg: str, label: str) -> str:
    """An SVG with a label for those who cannot see it; one that has a label keeps it."""
    if ' role="img"' in svg[: svg.index(">")]:
        return svg
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(printable(label))}"', 1)


def described(spec: dict[str, Any]) -> str:
    """A figure's title and subtitle, and the titles of its panels."""
    whole, *panels = dict.fromkeys(_titles(spec)) or ("A figure",)
    return f"{whole}. {', '.join(panels)}" if panels else whole


def _titles(part: Any) -> list[str]:
    if isinstance(part, list):
        return [title for one in part for title in _titles(one)]
    if not isinstance(part, dict):
        return []
    found = part.get("title")
    message = [found.get("text"), found.get("subtitle")] if isinstance(found, dict) else [found]
    lines = [" ".join(one) if isinstance(one, list) else one for one in message if one]
    below = [title for key in ("concat", "hconcat", "vconcat") for title in _titles(part.get(key))]
    return [". ".join(lines), *below] if lines else below
