"""stdout and stderr of the command, which may be closed, full, or a pipe without a reader.

A command continues in all of these cases, because it still writes its files. Output that cannot be written is
discarded and reported once, at the end. A reader that closes its pipe, as `head` does, is not an error.
"""

import contextlib
import errno
import io
import os
import select
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any, TextIO, cast

from fullpipe.text import MOST_SENTENCE, lines, printable, shown

MISTAKE = 2


class Tolerant(io.RawIOBase):
    """Writes to a descriptor, and discards everything after the first error, which it keeps in `error`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.error: OSError | None = None

    def write(self, data: object) -> int:
        """Writes as much as the descriptor takes at once; everything counts as written after an error."""
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        while self.error is None:
            try:
                return os.write(self._descriptor, view)
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as error:
                self.error = error
        return len(view)

    def writable(self) -> bool:
        """Always."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether the descriptor is a terminal."""
        return os.isatty(self._descriptor)


class Cleaned(io.TextIOWrapper):
    """A text stream that makes what is written printable: everything that a command prints passes here."""

    clean: Callable[[str], str] = staticmethod(printable)

    def write(self, text: str) -> int:
        """Writes the text."""
        super().write(self.clean(text))
        return len(text)


class _Styled:
    """The same stream for text that has a terminal's colours and is known to be printable otherwise."""

    def __init__(self, stream: Cleaned) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def styled(stream: TextIO) -> IO[str]:
    """Where a library that makes colours writes; it must make other text printable itself."""
    return cast("IO[str]", _Styled(stream)) if isinstance(stream, Cleaned) else stream


@contextlib.contextmanager
def own_text() -> Iterator[None]:
    """In its block, what is printed is our own text in colours."""
    with contextlib.redirect_stdout(styled(sys.stdout)):
        yield


def install() -> Tolerant:
    """Replaces `sys.stdout` and `sys.stderr` by tolerant streams; returns the raw one of `sys.stdout`."""
    _open_standard_descriptors()
    sys.stdout, stdout = _stream(1, sys.stdout)
    sys.stderr, _ = _stream(2, sys.stderr)
    return stdout


def finish(stdout: Tolerant, code: int) -> int:
    """The command's exit code, after everything is written: 2 if stdout could not take it, and a sentence."""
    sys.stdout.flush()
    if stdout.error is not None and stdout.error.errno != errno.EPIPE:
        why = stdout.error.strerror or str(stdout.error)
        fix = "redirect the output to a disk with room and give the same command again"
        print(f"fullpipe: cannot write to stdout: {why}; {fix}", file=sys.stderr)
        code = MISTAKE
    sys.stderr.flush()
    return code


def _open_standard_descriptors() -> None:
    """Opens /dev/null in place of closed ones: a file opened later would get the number and the output."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            with contextlib.suppress(OSError):
                # The lowest free number is this one.
                os.open(os.devnull, os.O_RDWR)


def _stream(descriptor: int, before: TextIO | None) -> tuple[TextIO, Tolerant]:
    """A text stream like the one before, over a tolerant one."""
    raw = Tolerant(descriptor)
    encoding = getattr(before, "encoding", None) or "utf-8"
    errors = getattr(before, "errors", None) or "strict"
    stream = Cleaned(
        io.BufferedWriter(raw),
        encoding=encoding,
        # A file name that is not valid text is shown with its bytes escaped.
        errors="backslashreplace" if errors == "strict" else errors,
        line_buffering=descriptor == 2 or raw.isatty(),
    )
    if descriptor == 2:
        # No message is longer; results on stdout may be.
        stream.clean = lines
    return stream, raw


def complain(sentence: str) -> int:
    """Prints an error in one line; returns the exit code for a user error."""
    say(f"fullpipe: {shown(sentence, MOST_SENTENCE)}")
    return MISTAKE


def say(line: str) -> None:
    """Prints a line of progress, a note or an error."""
    print(lines(line), file=sys.stderr, flush=True)
