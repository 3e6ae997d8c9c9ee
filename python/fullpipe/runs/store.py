"""The store of finished runs: files of many runs each, found by the runs' addresses.

    DIR/runs/1.pack  runs, one after the other (see `pack`); larger numbers are newer
    DIR/log.jsonl    a line for each run that ended, for people; no program reads it
    DIR/lock         locked while a sweep uses the folder; unlocked when its process ends

Runs that ended together are appended in one write, which is synced to the disk before any of them counts as
kept. Each sweep begins a file of its own, so a file does not change after its sweep. If a run has several
records, the newest undamaged one counts.
"""

import contextlib
import errno
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from fullpipe import files
from fullpipe.errors import OutputError, SweepError
from fullpipe.measures.run import Run
from fullpipe.runs import pack
from fullpipe.runs.engines import Done
from fullpipe.runs.engines.task import FORMAT, Task

_LOCK, _LOG, _RUNS = "lock", "log.jsonl", "runs"
# A file that is larger is left, and a new one begun: copying or losing one file stays a small matter.
_LARGE = 1 << 28
# Bytes of runs that are copied in one write.
_COPIED_TOGETHER = 1 << 24
# Other numbers are not ours.
_LAST = 999_999_999
_PACK = re.compile(r"[1-9][0-9]{0,8}\.pack")


@dataclass(frozen=True)
class Place:
    """Where a run is: a record in a file of many runs."""

    path: Path
    at: int = 0
    size: int = 0

    def __str__(self) -> str:
        return f"{self.path} at byte {self.at}"

    @property
    def name(self) -> str:
        """The path of the file below the sweep's folder."""
        return "/".join(self.path.parts[-2:])

    def read(self, key: str) -> pack.Record:
        """What is there. Raises an error of any kind unless it is that run, complete and undamaged."""
        with _opened(self.path) as file:
            return pack.read(file, self.at, self.size, key)


@dataclass(frozen=True)
class Stored:
    """A run that is kept. Its time series stay in the file until `run` reads them."""

    task: Task
    place: Place
    attempts: int
    seconds: float
    summary: dict[str, Any]

    @property
    def untrustworthy(self) -> list[str]:
        """Why this run cannot be trusted; empty when it can."""
        return list(self.summary["provenance"].get("untrustworthy") or [])

    def light(self) -> Run:
        """The run without its time series."""
        return Run(self.task.job.alternative, self.task.world, self.task.job.seed, self.summary, b"", b"")

    def run(self) -> Run:
        """The whole run.

        Raises:
            SweepError: The file was removed or damaged after the run was found.
        """
        try:
            found = self.place.read(self.task.key)
        except Exception as error:
            raise SweepError(
                f"the run {self.task.name} cannot be read from {self.place}: {_why(error)}; give the same "
                "command again to repeat that run"
            ) from None
        job = self.task.job
        return Run(job.alternative, self.task.world, job.seed, self.summary, found.flows, found.links)


class Store:
    """Finished runs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[str] = []
        self._lock: files.Lock | None = None
        self._kept, self._kept_bytes = 0, 0
        # Where the records of each run are, the newest last; None before the files were read.
        self._places: dict[str, list[Place]] | None = None
        # Whether there is a folder of runs. If it is missing later, somebody removed it with the runs.
        self._has_runs = False
        self._number, self._size = 0, 0  # The file that this store appends to: the newest, if it has a size.

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Locks the folder against other sweeps, which would run the same runs, during the block.

        Creates the folder. If the block raises before anything was kept, a folder created here is removed.
        """
        made = files.make_folder(self.folder)
        with files.locked(self.folder, _LOCK) as lock:
            if lock is None:
                raise SweepError(
                    f"another sweep uses {self.folder}; wait until it ends, or name another folder with --out"
                )
            _refuse_link(self.folder / _RUNS)
            files.remove_parts(self.folder / _RUNS)
            self._load(repair=True)
            self._lock = lock
            try:
                yield
            except BaseException:
                if not lock.lost:
                    self._remove_if_unused(made)
                raise
            finally:
                self._lock = None

    def find(self, task: Task) -> Stored | None:
        """The kept run of a task. A damaged record counts as missing, and a note is added to `damaged`.

        Raises:
            SweepError: A controller of the task cannot be told from others, so that no run of it is kept.
        """
        _refuse_unknown_values(task)
        places = self._known().get(task.key, [])
        while places:
            try:
                found = places[-1].read(task.key)
                about = found.about
                return Stored(
                    task, places[-1], int(about["attempts"]), float(about["seconds"]), found.summary
                )
            # A damaged record can raise many errors, e.g. those of zlib and struct.
            except Exception as error:
                self.damaged.append(f"{places[-1]} is damaged ({_why(error)}); {task.name} is run again")
                places.pop()
        return None

    def keep(self, ended: Sequence[tuple[Done, int]], *, left: int = 1) -> list[Stored]:
        """Keeps runs, each with the number of its attempt: all of them, or none if this raises.

        `left` counts the runs still to keep, with these.

        Raises:
            OutputError: They cannot be written, e.g. because the disk is full or the folder was removed.
            SweepError: The lock file was removed, so that another sweep may use the folder.
        """
        self._check_lock()
        records = [_encoded(done, attempts) for done, attempts in ended]
        data = b"".join(records)
        self._kept, self._kept_bytes = self._kept + len(records), self._kept_bytes + len(data)
        path, at = self._append(data, max(len(data), left * self._kept_bytes // self._kept))
        stored, lines = [], []
        for (done, attempts), record in zip(ended, records, strict=True):
            place = Place(path, at, len(record))
            at += len(record)
            one = Stored(done.task, place, attempts, done.seconds, done.run.summary)
            stored.append(one)
            self._known().setdefault(done.task.key, []).append(place)
            more = {"attempts": attempts, "seconds": round(done.seconds, 3)}
            lines.append(_line("ran", done.task, **more, untrustworthy=one.untrustworthy))
        self._log(lines)
        return stored

    def __len__(self) -> int:
        """How many runs there are, also those of other builds and scenarios."""
        return sum(map(bool, self._known().values()))

    def copy(
        self, other: "Store", keys: Sequence[str], same: Callable[[pack.Record, pack.Record], bool]
    ) -> int:
        """Copies the runs of these addresses from another store. Returns how many differ from those here.

        `same` tells whether two records of a run are equal, or raises an error where they have to be.

        Raises:
            SweepError: The other store lacks a run.
            OutputError: They cannot be written.
        """
        self._check_lock()
        differ, waiting, size = 0, [], 0
        for number, key in enumerate(keys, 1):
            record = other._newest(key)
            if record is None:
                raise SweepError(
                    f"{other.folder} lacks a run of its shard, or it is damaged; give the command of that "
                    "shard again, which repeats the run"
                )
            if (kept := self._newest(key)) is None:
                waiting.append(
                    (key, pack.encode(key, record.about, record.summary, record.flows, record.links))
                )
                size += len(waiting[-1][1])
            else:
                differ += not same(kept, record)
            if waiting and (size >= _COPIED_TOGETHER or number == len(keys)):
                path, at = self._append(b"".join(data for _, data in waiting), size)
                for key_of, data in waiting:
                    self._known().setdefault(key_of, []).append(Place(path, at, len(data)))
                    at += len(data)
                waiting, size = [], 0
        return differ

    def _newest(self, key: str) -> pack.Record | None:
        """The newest undamaged record of a run."""
        for place in reversed(self._known().get(key, [])):
            with contextlib.suppress(Exception):
                return place.read(key)
        return None

    def log(self, event: str, task: Task, **more: object) -> None:
        """Adds a line to the log."""
        self._check_lock()
        self._log([_line(event, task, **more)])

    def records(self) -> Iterator[pack.Record]:
        """Every undamaged run in the folder, also those of other builds and scenarios."""
        yield from (record for key in self._known() if (record := self._newest(key)) is not None)

    def _known(self) -> dict[str, list[Place]]:
        if self._places is None:
            self._load(repair=False)
        assert self._places is not None
        return self._places

    def _load(self, *, repair: bool) -> None:
        """Finds the records of all files. `repair` separates them from what is damaged; it needs the lock."""
        runs = self.folder / _RUNS
        _refuse_link(runs)
        self._places = {}
        self._has_runs = runs.exists()
        numbers = sorted(int(name.removesuffix(".pack")) for name in _names(runs, _PACK))
        for number in numbers:
            path = runs / f"{number}.pack"
            _refuse_link(path)
            try:
                with _opened(path) as file:
                    scanned = pack.scan(file)
                    size = os.fstat(file.fileno()).st_size
            except (OSError, ValueError) as error:
                self.damaged.append(f"{path} cannot be read ({_why(error)}); its runs are run again")
                continue
            if scanned.lost or size == 0:
                scanned = self._separated(path, scanned, size, repair=repair)
            for one in scanned.records:
                self._places.setdefault(one.key.hex(), []).append(Place(path, one.at, one.size))
        self._number, self._size = max(numbers, default=0), 0

    def _separated(self, path: Path, scanned: pack.Scan, size: int, *, repair: bool) -> pack.Scan:
        """Tells what is damaged in a file, and removes it from the file if `repair`.

        An incomplete end is cut off. For other damage, the file is replaced by its whole records, and is
        kept under another name. If that is impossible, e.g. on a full disk, it stays as it is.
        """
        name = f"{_RUNS}/{path.name}"
        whole = sum(one.size for one in scanned.records)
        if size == 0 or (scanned.cut and len(scanned.lost) == 1):
            end = "is empty" if size == 0 else "ends with an incomplete run"
            why = "e.g. because a sweep was killed"
            self.damaged.append(f"{path} {end}, {why}; what is missing is run again")
            if repair:
                with contextlib.suppress(OutputError):
                    files.shorten(self.folder, name, whole)
            return scanned
        where = f"{sum(end - begin for begin, end in scanned.lost)} bytes, first at byte {scanned.lost[0][0]}"
        note = f"{path} is damaged ({where}); the runs that were there are run again"
        with contextlib.suppress(OutputError, OSError):
            if repair and whole <= _LARGE + pack.LARGEST:
                with _opened(path) as file:
                    data = b"".join(_part(file, one) for one in scanned.records)
                aside = files.set_aside(self.folder, name, data)
                self.damaged.append(f"{note}; the damaged file is kept as {aside.name}")
                if not data:
                    return scanned
                with _opened(path) as file:
                    return pack.scan(file)
        self.damaged.append(note)
        return scanned

    def _append(self, data: bytes, needed: int) -> tuple[Path, int]:
        """Appends to the newest file, and returns its path and where the data are."""
        self._known()
        if self._size == 0 or self._size >= _LARGE:
            self._begin_file()
        # Another file is begun if somebody changed this one, or made one of its name.
        while not files.extend(
            self.folder, self._name, data, self._size, needed=needed, make=not self._has_runs
        ):
            self._begin_file()
        self._has_runs = True
        self._size += len(data)
        return self.folder / self._name, self._size - len(data)

    def _begin_file(self) -> None:
        if self._number >= _LAST:
            why = "there is no larger number for the name of another file; move that file away"
            raise OutputError(f"cannot write after {self.folder / self._name}: {why}")
        self._number, self._size = self._number + 1, 0

    @property
    def _name(self) -> str:
        return f"{_RUNS}/{self._number}.pack"

    def _log(self, lines: Sequence[dict[str, object]]) -> None:
        files.append(self.folder, _LOG, "".join(f"{json.dumps(line)}\n" for line in lines).encode())

    def _check_lock(self) -> None:
        # If the whole folder was removed, writing says so.
        if self._lock is not None and self._lock.lost and self.folder.exists():
            raise SweepError(
                f"the lock file {self._lock.path} was removed or replaced, and another sweep may use the "
                "folder; make sure that nothing removes it, then give the same command again"
            )

    def _remove_if_unused(self, made: list[Path]) -> None:
        """Removes the folders that `held` created if they hold nothing but the lock."""
        with contextlib.suppress(OSError):
            if made and [one.name for one in self.folder.iterdir()] == [_LOCK]:
                (self.folder / _LOCK).unlink()
                files.remove_empty(made)


def _encoded(done: Done, attempts: int) -> bytes:
    task = done.task
    about = {
        "format": FORMAT,
        "key": task.key,
        "cell": task.cell,
        "world": task.world,
        "seed": task.job.seed,
        "attempts": attempts,
        "seconds": round(done.seconds, 3),
    }
    record = pack.encode(task.key, about, done.run.summary, done.run.flow_parquet, done.run.link_parquet)
    if len(record) > pack.LARGEST:
        size = f"{len(record) / 1e9:.1f} GB, and at most {pack.LARGEST / 1e9:.1f} GB can be kept"
        raise OutputError(
            f"the run {task.name} has {size}; set `[record] series = false`, or shorten the run"
        )
    return record


def _line(event: str, task: Task, **more: object) -> dict[str, object]:
    """A line of the log."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "event": event,
        "key": task.key[:16],
        "cell": task.cell,
        "world": task.world,
        "seed": task.job.seed,
        **more,
    }


def _names(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    """The names in a folder that match; none if there is no such folder."""
    try:
        return sorted(name for name in os.listdir(folder) if pattern.fullmatch(name))  # noqa: PTH208
    except OSError:
        return []


def _refuse_unknown_values(task: Task) -> None:
    for own in task.job.alternative.own:
        if own.not_plain:
            raise SweepError(
                f"the runs of {own.text} cannot be stored: it has {own.not_plain}, and no hash tells two of "
                "these apart; use numbers, text or lists of them, or write the class at the top of a file"
            )


def _refuse_link(path: Path) -> None:
    """Raises `OutputError` if this is a symbolic link."""
    with files.reported(path):
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, opened for reading. Neither it nor its folder may be a symbolic link."""
    # Without O_NONBLOCK, opening a named pipe would wait for its other end.
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        folder = os.open(path.parent, how | os.O_DIRECTORY)
        try:
            descriptor = os.open(path.name, how, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError:
        link = next((one for one in (path.parent, path) if one.is_symlink()), None)
        if link is None:
            raise
        raise ValueError(f"{link.name} is a symbolic link, which is not followed") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)


def _part(file: BinaryIO, found: pack.Found) -> bytes:
    file.seek(found.at)
    return file.read(found.size)


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
