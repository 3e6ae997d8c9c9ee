"""Reads files that a user named, or that others may have put there: regular ones, of a bounded size."""

import os
import stat
import sys
from pathlib import Path


class Unreadable(Exception):
    """A file is there and cannot be taken. `expected` and `fix` complete a user's error."""

    def __init__(self, expected: str, fix: str = "name another file") -> None:
        super().__init__(f"not {expected}")
        self.expected = expected
        self.fix = fix


def text(path: str | Path, most_bytes: int) -> str:
    """The text of a regular file of at most so many bytes, in UTF-8 or, as PowerShell writes it, in UTF-16.

    Raises:
        FileNotFoundError: There is none.
        Unreadable: It is something else, too large, or no text.
    """
    return _decoded(content(path, most_bytes))


def content(path: str | Path, most_bytes: int) -> bytes:
    """The bytes of a regular file, at most so many.

    Raises:
        FileNotFoundError: There is none.
        Unreadable: It is something else, or too large.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for its other end.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unreadable(f"a file that can be read ({error.strerror})") from None
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable("a regular file")
        if about.st_size > most_bytes:
            raise Unreadable(f"a file of at most {most_bytes >> 20} MiB", "take a part of it")
        with os.fdopen(os.dup(file), "rb") as opened:
            return opened.read(most_bytes)
    except OSError as error:
        raise Unreadable(f"a file that can be read ({error.strerror})") from None
    finally:
        os.close(file)


def standard_input(most_bytes: int) -> str:
    """The text on standard input until its end, as of a file.

    Raises:
        Unreadable: It is closed, too large, or no text.
    """
    try:
        # One byte more shows that there is more.
        data = b"" if sys.stdin is None else sys.stdin.buffer.read(most_bytes + 1)
    except OSError as error:
        raise Unreadable(f"an input that can be read ({error.strerror})", "pipe a text into it") from None
    if len(data) > most_bytes:
        raise Unreadable(f"at most {most_bytes >> 20} MiB", "take a part of it")
    return _decoded(data)


def _decoded(data: bytes) -> str:
    """The text of UTF-8 or UTF-16, with or without a byte order mark. Raises `Unreadable` for other bytes.

    `crates/files/src/text.rs` has the same rules for scenarios and delivery traces.
    """
    try:
        text = data.decode(_encoding(data[:4]))
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise Unreadable("text in UTF-8 or UTF-16", "convert it, or name another file")
    return text


def _encoding(first: bytes) -> str:
    """The encoding of a text that begins with these bytes."""
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    # Without a mark, a text in UTF-16 that begins with two ASCII characters has a zero in each.
    zeros = [byte == 0 for byte in first]
    if zeros == [False, True, False, True]:
        return "utf-16-le"
    return "utf-16-be" if zeros == [True, False, True, False] else "utf-8-sig"
