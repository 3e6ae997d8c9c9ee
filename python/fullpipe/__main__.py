"""The command `fullpipe`, also as `python -m fullpipe`. An interrupt is one line and exit code 130."""

import os
import signal
import sys

# As in `typing`. Other modules are imported where they are used, so that Ctrl-C is handled early.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

INTERRUPTED = 130
# As sysexits.h calls it: EX_SOFTWARE.
DEFECT = 70


class _Interrupts:
    """What Ctrl-C does: it ends the process while the command line is imported, and later is an exception.

    An interrupted import may turn the exception into another one, or lose it.
    """

    def __init__(self) -> None:
        self.came = False
        self.raises = False

    def __call__(self, _number: int, _frame: object) -> None:
        self.came = True
        if not self.raises:
            leave()
        raise KeyboardInterrupt


def main() -> None:
    """The entry point of the command `fullpipe`."""
    interrupts = _Interrupts()
    # The parent may have set interrupts to be ignored, e.g. nohup.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupts)
        sys.unraisablehook = _unraisable
    try:
        # Imported here, because an interrupt may also come during an import.
        from fullpipe.report import streams

        answer = _answer()
        interrupts.raises = True
        stdout = streams.install()
        code = streams.finish(stdout, answer())
    except KeyboardInterrupt:
        leave()
    except Exception:
        # A library turned the interrupt into another exception.
        if interrupts.came:
            leave()
        # A defect of ours. Python's own exit code would be 1, which means that results differ.
        import traceback

        traceback.print_exc()
        sys.exit(DEFECT)
    if code == INTERRUPTED:
        # The command-line library caught it.
        leave()
    sys.exit(code)


def _answer() -> "Callable[[], int]":
    """What the words ask for. A version needs no command line, which takes ten times as long to import."""
    if sys.argv[1:] == ["--version"]:
        from fullpipe import _native

        def version() -> int:
            print(f"fullpipe {_native.version()}")
            return 0

        return version
    from fullpipe.cli import app as cli

    return lambda: int(cli.app(standalone_mode=False) or 0)


def leave() -> "NoReturn":
    """Ends the process as interrupted."""
    import contextlib

    for stream in (sys.stdout, sys.stderr):
        # stderr may be closed, or interrupted within a write.
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            stream.flush()
    # Their threads, which would end them, are not waited for.
    if (child := sys.modules.get("fullpipe.runs.worlds.child")) is not None:
        with contextlib.suppress(AttributeError):  # Interrupted while it is imported.
            child.end_all()
    os.write(2, b"fullpipe: interrupted\n")
    # CPython remembers a KeyboardInterrupt that went through `exec` (dataclasses, named tuples), handled or
    # not, and would end this process by signal, whatever its exit code. This also does not wait for threads.
    os._exit(INTERRUPTED)


def _unraisable(lost: "Any") -> None:
    """An interrupt within a callback of the interpreter cannot be raised and would be lost."""
    if lost.exc_type is KeyboardInterrupt:
        leave()
    sys.__unraisablehook__(lost)


if __name__ == "__main__":
    main()
