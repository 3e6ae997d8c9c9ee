"""Writes files. A file is written completely or not at all, and an error is one sentence with a fix.

`write` writes below a folder that the user named. That folder may be a symbolic link. A link inside it is
never followed, because somebody else may have placed it there: a file replaces the link itself, and a linked
folder is an error. `write_named` writes a file that the user named, wherever its name leads.
"""

import contextlib
import errno
import fcntl
import hashlib
import io
import os
import re
import secrets
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from fullpipe.errors import OutputError

if TYPE_CHECKING:
    import polars as pl

# The disk is full, or this user's quota.
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
# Limit of a name made from a user's text, in bytes. File names have at most 255; ours add a world, a seed and
# a suffix.
_LONGEST_NAME = 96
_LONGEST_PART = 255
_HASH_DIGITS = 12

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for its other end.
_OURS = os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def write(folder: Path, name: str, data: bytes, *, needed: int | None = None, lasting: bool = False) -> Path:
    """Writes the file `name` below a folder, and returns its path. Its subfolders are created.

    Readers see the old file or the new one, also if the process is killed. After a power failure, that is so
    for a `lasting` file only, which is synced to the disk: two waits of milliseconds, too long for each of
    the many files that a command can make again. `needed` is how many bytes are still to be written in all,
    for the message about a full disk.

    Raises:
        OutputError: The file cannot be written, e.g. because the disk is full or the folder was removed.
    """
    path = folder / name
    with (
        reported(path, len(data) if needed is None else needed),
        _parent_of(folder, name, lasting=lasting) as (parent, last),
    ):
        _replace(parent, last, data, lasting=lasting)
    return path


@contextlib.contextmanager
def streamed(folder: Path, name: str) -> Iterator[int]:
    """Gives the block an open file to fill, which is called `name` below a folder when the block has ended.

    Before that it has no name, or another one where the file system needs one; an exception removes it.
    Readers see the old file or the new one, also after a crash.

    Raises:
        OutputError: The file cannot be written. Errors of the block's own are its business (see `reported`).
    """
    path = folder / name
    with contextlib.ExitStack() as held:
        with reported(path):
            parent, last = held.enter_context(_parent_of(folder, name))
            file, part = _nameless(parent)
        try:
            try:
                yield file
                with reported(path, os.fstat(file).st_size):
                    _keep_mode(file, parent, last)
                    os.fsync(file)
                    if part is None:
                        part = _part()
                        # The only way to a name for a file without one (linkat(2)).
                        os.link(f"/proc/self/fd/{file}", part, dst_dir_fd=parent, follow_symlinks=True)
                    os.replace(part, last, src_dir_fd=parent, dst_dir_fd=parent)
                    os.fsync(parent)
            finally:
                os.close(file)
        except BaseException:
            if part is not None:
                with contextlib.suppress(OSError):
                    os.unlink(part, dir_fd=parent)
            raise


def write_named(path: Path, data: bytes) -> None:
    """Writes a file that the user named, and syncs it to the disk.

    Symbolic links are followed; a device or a pipe is written directly.

    Raises:
        OutputError: The file cannot be written.
    """
    with reported(path, len(data)):
        if _kind(path) not in (None, stat.S_IFREG):
            with path.open("wb", buffering=0) as device:
                _write_all(device.fileno(), data)
            return
    target = Path(os.path.realpath(path)) if _kind(path, follow=False) == stat.S_IFLNK else path
    write(target.parent, target.name, data, lasting=True)


def parquet(frame: "pl.DataFrame", metadata: dict[str, str] | None = None) -> bytes:
    """A data frame as a Parquet file in memory; `metadata` goes into the file's key-value metadata."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata=metadata)
    return buffer.getvalue()


def append(folder: Path, name: str, line: bytes) -> None:
    """Appends a line to a file in a folder. On a full disk, no part of the line is left.

    Raises:
        OutputError: The line cannot be written.
    """
    with reported(folder / name, len(line)), _parent_of(folder, name) as (parent, last):
        file = os.open(last, os.O_WRONLY | os.O_APPEND | _OURS, 0o666, dir_fd=parent)
        try:
            before = os.fstat(file).st_size
            try:
                _write_all(file, line)
            except OSError:
                os.ftruncate(file, before)
                raise
        finally:
            os.close(file)


def extend(
    folder: Path, name: str, data: bytes, size: int, *, needed: int | None = None, make: bool = True
) -> bool:
    """Appends to the file `name` below a folder, which has `size` bytes, and syncs it to the disk.

    A size of 0 creates the file; then its subfolders are created too, unless `make` is false. Nothing of the
    data is left if an exception ends this. `needed` is how many bytes are still to be written in all, for the
    message about a full disk.

    Returns:
        False if there is another file of that name, or one of another size. It is left as it is.

    Raises:
        OutputError: The data cannot be written, e.g. because the disk is full or the folder was removed.
    """
    with (
        reported(folder / name, len(data) if needed is None else needed),
        _parent_of(folder, name, make=make and size == 0, lasting=True) as (parent, last),
    ):
        try:
            how = os.O_EXCL | _OURS if size == 0 else _OURS & ~os.O_CREAT
            file = os.open(last, os.O_WRONLY | os.O_APPEND | how, 0o666, dir_fd=parent)
        except FileExistsError:
            return False
        except FileNotFoundError:
            why = "it was removed while it was in use; make sure that nothing removes it"
            raise OutputError(
                f"cannot write {folder / name}: {why}, then give the same command again"
            ) from None
        try:
            if os.fstat(file).st_size != size:
                return False
            try:
                _write_all(file, data)
                os.fdatasync(file)
                if size == 0:
                    # A new name is on the disk only after its folder is synced.
                    os.fsync(parent)
            except BaseException:
                os.ftruncate(file, size)
                if size == 0:
                    os.unlink(last, dir_fd=parent)
                raise
        finally:
            os.close(file)
    return True


def shorten(folder: Path, name: str, size: int) -> None:
    """Cuts the end off a file below a folder; removes the file if nothing is left.

    Raises:
        OutputError: The file cannot be changed.
    """
    with reported(folder / name), _parent_of(folder, name) as (parent, last):
        if size == 0:
            os.unlink(last, dir_fd=parent)
            return
        file = os.open(last, os.O_WRONLY | _OURS & ~os.O_CREAT, dir_fd=parent)
        try:
            os.ftruncate(file, size)
        finally:
            os.close(file)


def set_aside(folder: Path, name: str, data: bytes) -> Path:
    """Replaces a file below a folder, and keeps the former one beside it. Returns the latter's path.

    Without data, the file is only renamed.

    Raises:
        OutputError: There is no space, or the file system cannot do that.
    """
    with reported(folder / name, len(data)), _parent_of(folder, name) as (parent, last):
        aside = f"{last}.damaged"
        number = 1
        while True:
            try:
                os.link(last, aside, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
                break
            except FileExistsError:
                number += 1
                aside = f"{last}.damaged-{number}"
        try:
            if data:
                _replace(parent, last, data, lasting=True)
            else:
                os.unlink(last, dir_fd=parent)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside, dir_fd=parent)
            raise
    return (folder / name).with_name(aside)


@dataclass(frozen=True)
class Lock:
    """A lock file that this process holds."""

    path: Path
    file: int

    @property
    def lost(self) -> bool:
        """Whether the file was removed or replaced: then another process can hold a lock of the same name."""
        try:
            return not os.path.samestat(os.fstat(self.file), self.path.stat(follow_symlinks=False))
        except OSError:
            return True


@contextlib.contextmanager
def locked(folder: Path, name: str) -> Iterator[Lock | None]:
    """Holds the lock file `name` in a folder during the block. Gives None if another process holds it.

    The content of the file is never changed.

    Raises:
        OutputError: The lock file cannot be opened.
    """
    with reported(folder / name):
        lock = _lock(folder, name)
    try:
        yield None if lock is None else Lock(folder / name, lock)
    finally:
        if lock is not None:
            os.close(lock)


def make_folder(folder: Path) -> list[Path]:
    """Creates a folder with its parents, and returns those that did not exist, the outermost first.

    Raises:
        OutputError: The folder cannot be created.
    """
    missing = [one for one in (folder, *folder.parents) if _kind(one) is None]
    made = []
    with reported(folder):
        for one in reversed(missing):
            try:
                one.mkdir()
                made.append(one)
            except FileExistsError:
                if _kind(one) != stat.S_IFDIR:
                    raise
        if _kind(folder) != stat.S_IFDIR:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return made


def new_folder(folder: Path) -> Path:
    """Creates a folder that did not exist, and returns it. A taken name gets the suffix -2, -3, and so on.

    Raises:
        OutputError: The folder cannot be created.
    """
    make_folder(folder.parent)
    number = 1
    while True:
        free = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        with reported(free):
            try:
                free.mkdir()
                return free
            except FileExistsError:
                number += 1


def remove_empty(folders: Iterable[Path]) -> None:
    """Removes folders, the last first, as far as they are empty."""
    for folder in reversed(list(folders)):
        with contextlib.suppress(OSError):
            folder.rmdir()


def remove_parts(folder: Path) -> None:
    """Removes incomplete files that a killed process left in a folder and in its subfolders.

    Neither the folder nor a subfolder is followed if it is a symbolic link.
    """
    with contextlib.suppress(OSError):
        here = os.open(folder, _FOLDER | os.O_NOFOLLOW)
        try:
            for name in _remove_parts_of(here):
                with contextlib.suppress(OSError):
                    below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=here)
                    try:
                        _remove_parts_of(below)
                    finally:
                        os.close(below)
        finally:
            os.close(here)


# Files or folders at the top of what commands write, by which a folder of earlier results is known.
_RESULTS = frozenset(
    (
        *("scenario.json", "claims.json", "map.json", "answers.json", "advice.json", "check.json"),
        *("analysis.json", "probe.json"),
        *("grid.json", "conformance.json", "gate.json", "evaluation.json", "log.jsonl", "lock", "runs"),
    )
)


def stranger(folder: Path) -> str | None:
    """The name of a file in a folder that has something and no earlier results; None for other folders.

    Hidden files do not count.
    """
    with contextlib.suppress(OSError):
        names = sorted(one.name for one in folder.iterdir())
        if not _RESULTS & set(names):
            return next((name for name in names if not name.startswith(".")), None)
    return None


def remove_others(folder: Path, written: Iterable[str], kind: re.Pattern[str]) -> None:
    """Removes the regular files in a folder whose whole name is of a kind, except those just written."""
    kept = set(written)
    with contextlib.suppress(OSError):
        here = os.open(folder, _FOLDER | os.O_NOFOLLOW)
        try:
            with os.scandir(here) as found:
                names = [one.name for one in found if one.is_file(follow_symlinks=False)]
            for name in names:
                if name not in kept and kind.fullmatch(name):
                    os.unlink(name, dir_fd=here)
        finally:
            os.close(here)


def obstacle(folder: Path) -> str | None:
    """Why a folder cannot be written into, as text; None if it can. Creates nothing."""
    if any(len(os.fsencode(part)) > _LONGEST_PART for part in folder.parts):
        return f"a name in it has over {_LONGEST_PART} bytes"
    whole = folder if folder.is_absolute() else Path.cwd() / folder
    there = next(one for one in (whole, *whole.parents) if _kind(one) or _kind(one, follow=False))
    if _kind(there) is None:
        return f"{there} is a symbolic link to nothing"
    if _kind(there) != stat.S_IFDIR:
        return f"{there} is a file, and a folder is needed"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there} cannot be written to"
    return None


def file_obstacle(path: Path) -> str | None:
    """Why a file that the user named cannot be written, as text; None if it can. Creates nothing."""
    kind = _kind(path)
    if kind == stat.S_IFDIR:
        return "it is a folder"
    if kind is not None and not os.access(path, os.W_OK):
        return "it cannot be written to"
    if kind not in (None, stat.S_IFREG):
        return None
    target = Path(os.path.realpath(path))
    if _kind(target.parent) is None:
        return "its folder does not exist"
    return obstacle(target.parent) or obstacle(target) if kind is None else obstacle(target.parent)


def shortened(text: str) -> str:
    """A text with only the characters that any file system takes, and at most 96 bytes. Not unique."""
    plain = "".join(letter if letter.isalnum() or letter in "._=-" else "-" for letter in text)
    return plain.encode()[:_LONGEST_NAME].decode(errors="ignore")


def file_names(texts: Iterable[str]) -> dict[str, str]:
    """A part of a file name for each text. Different texts get different names, whatever their characters."""
    different = list(dict.fromkeys(texts))
    # The files may be copied to a file system that ignores case.
    taken = Counter(shortened(text).casefold() for text in different)
    return {text: _name(text, alone=taken[shortened(text).casefold()] == 1) for text in different}


@contextlib.contextmanager
def reported(path: Path, needed: int = 0) -> Iterator[None]:
    """Turns an `OSError` about `path` into an `OutputError` that says what to do."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(_sentence(path, error, needed)) from None


@contextlib.contextmanager
def adding(sentence: str) -> Iterator[None]:
    """Adds a sentence to an `OutputError`, e.g. what is kept."""
    try:
        yield
    except OutputError as error:
        raise OutputError(f"{error}. {sentence}") from None


@contextlib.contextmanager
def runs_kept(folder: Path) -> Iterator[None]:
    """Adds to an `OutputError` that a folder keeps the finished runs, if it still has them."""
    try:
        yield
    except OutputError as error:
        if _kind(folder / "runs") is None:
            raise
        raise OutputError(f"{error}. Finished runs are kept in {folder} and are not repeated") from None


# Prefix and suffix of the name of an incomplete file.
_PART = (".fullpipe-", ".part")


def _kind(path: Path, *, follow: bool = True) -> int | None:
    """The type of a file as in `stat.S_IFMT`; None if there is none, or none that this user may see."""
    try:
        return stat.S_IFMT(path.stat(follow_symlinks=follow).st_mode)
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def _parent_of(
    folder: Path, name: str, *, make: bool = True, lasting: bool = False
) -> Iterator[tuple[int, str]]:
    """The opened folder of the file `name` below `folder`, and the last part of `name`."""
    *parts, last = PurePosixPath(name).parts
    here = os.open(folder, _FOLDER)
    try:
        for part in parts:
            below = _enter(here, part, make=make, lasting=lasting)
            os.close(here)
            here = below
        yield here, last
    finally:
        os.close(here)


def _enter(parent: int, name: str, *, make: bool, lasting: bool) -> int:
    """Opens a subfolder; creates it if it is missing and `make`. A `lasting` one is synced to the disk."""
    with contextlib.suppress(FileExistsError):
        if make:
            os.mkdir(name, dir_fd=parent)
            if lasting:
                os.fsync(parent)
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def _remove_parts_of(folder: int) -> list[str]:
    """Removes incomplete files from an opened folder, and returns the names of its subfolders."""
    subfolders = []
    with os.scandir(folder) as there:
        for one in there:
            if one.is_dir(follow_symlinks=False):
                subfolders.append(one.name)
            elif one.name.startswith(_PART[0]) and one.name.endswith(_PART[1]):
                with contextlib.suppress(OSError):
                    os.unlink(one.name, dir_fd=folder)
    return subfolders


def _part() -> str:
    """A name for an incomplete file."""
    return f"{_PART[0]}{secrets.token_hex(8)}{_PART[1]}"


def _nameless(parent: int) -> tuple[int, str | None]:
    """A new open file in an opened folder, and its name if the file system has none without."""
    with contextlib.suppress(OSError):
        if Path("/proc/self/fd").is_dir():
            return os.open(".", os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666, dir_fd=parent), None
    part = _part()
    return os.open(part, os.O_WRONLY | os.O_EXCL | _OURS, 0o666, dir_fd=parent), part


def _replace(parent: int, name: str, data: bytes, *, lasting: bool = False) -> None:
    """Writes a file under another name and renames it, which replaces a symbolic link and not its target.

    A `lasting` one is synced to the disk.
    """
    part = _part()
    file = os.open(part, os.O_WRONLY | os.O_EXCL | _OURS, 0o666, dir_fd=parent)
    try:
        try:
            _write_all(file, data)
            _keep_mode(file, parent, name)
            if lasting:
                os.fsync(file)
        finally:
            os.close(file)
        os.replace(part, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part, dir_fd=parent)
        raise
    if lasting:
        # The new name is on the disk only after its folder is synced.
        os.fsync(parent)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _keep_mode(file: int, parent: int, name: str) -> None:
    """Gives a file the permissions of the one that it replaces."""
    with contextlib.suppress(FileNotFoundError):
        before = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        if stat.S_ISREG(before):
            os.fchmod(file, stat.S_IMODE(before) & 0o777)


def _lock(folder: Path, name: str) -> int | None:
    """The locked file, opened; None if another process holds the lock."""
    while True:
        with _parent_of(folder, name) as (parent, last):
            lock = os.open(last, os.O_RDWR | _OURS, 0o666, dir_fd=parent)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # If another process removed the file meanwhile, a third one could lock a new file.
                with contextlib.suppress(FileNotFoundError):
                    there = os.stat(last, dir_fd=parent, follow_symlinks=False)
                    if os.path.samestat(os.fstat(lock), there):
                        return lock
                os.close(lock)
            except BlockingIOError:
                os.close(lock)
                return None
            except BaseException:
                os.close(lock)
                raise


def _name(text: str, *, alone: bool) -> str:
    """`shortened`, with a hash of the text if another has the same name or the text was cut."""
    plain = shortened(text)
    if alone and len(text.encode(errors="replace")) <= _LONGEST_NAME:
        return plain
    digest = hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:_HASH_DIGITS]
    room = _LONGEST_NAME - _HASH_DIGITS - 1
    return f"{plain.encode()[:room].decode(errors='ignore')}-{digest}"


def _sentence(path: Path, error: OSError, needed: int) -> str:
    """What failed, why, and what to do."""
    folder = path.parent
    if (
        file := next((one for one in path.parents if _kind(one) not in (None, stat.S_IFDIR)), None)
    ) is not None:
        why = f"{file} is a file, and a folder is needed"
        return f"cannot write {path}: {why}; move that file away, or name another place"
    if error.errno == errno.ELOOP:
        link = next((one for one in (path, *path.parents) if _kind(one, follow=False) == stat.S_IFLNK), path)
        why = f"{link} is a symbolic link, which is not followed here"
        return f"cannot write {path}: {why}; remove the link, or name another folder"
    why = error.strerror or str(error)
    if error.errno in _FULL:
        fix = f"free about {max(1, round(needed / 1e6))} MB on the disk of {folder}"
    elif error.errno == errno.ENOENT:
        gone = [one for one in path.parents if _kind(one) is None]
        if not gone:
            # So answer file systems that hold what the kernel tells, as /proc.
            return f"cannot write {path}: no file can be made in {folder}; name another place"
        why = f"the folder {gone[-1]} does not exist"
        fix = "make sure that nothing removes it"
    elif error.errno == errno.EFBIG:
        fix = "raise the limit on the size of files (ulimit -f)"
    elif error.errno == errno.ENAMETOOLONG:
        return f"cannot write {path}: {why}; name a shorter path"
    elif error.errno in _FORBIDDEN:
        fix = f"make {folder} writable, or name another place"
    else:
        fix = f"check the disk of {folder}"
    return f"cannot write {path}: {why}; {fix}, then give the same command again"
