"""Where finished runs are kept: one file a run, named by the run's address.

    DIR/runs/ab/abcdef....zip    run.json, summary.json, flows.parquet, links.parquet
    DIR/log.jsonl                a line for each run that ended, for people; nothing reads it
    DIR/lock                     held while a sweep works here; whatever ends the sweep lets it go

One file a run, because renaming a file is the one step that either happened or did not, whatever ends the
process, and needs no lock where several processes or machines share the folder. A zip, because its checksums
tell a damaged file from a whole one, and any tool opens it.
"""

import contextlib
import errno
import fcntl
import io
import json
import os
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe.engines import Done
from fullpipe.errors import SweepError
from fullpipe.results import Run
from fullpipe.sweeps.task import FORMAT, Task

_MEMBERS = ("run.json", "summary.json", "flows.parquet", "links.parquet")
# The disk itself is full, or what this user may have of it.
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Stored:
    """A run that is kept. Its time series stay in the file until they are asked for."""

    task: Task
    path: Path
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
        """The whole run."""
        with zipfile.ZipFile(self.path) as file:
            flows, links = file.read("flows.parquet"), file.read("links.parquet")
        return Run(self.task.job.alternative, self.task.world, self.task.job.seed, self.summary, flows, links)


class Store:
    """Finished runs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[str] = []
        self._kept, self._kept_bytes = 0, 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other sweeps away, which would run the same runs again, and clears what a killed one left."""
        path = self.folder / "lock"
        with told(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = path.open("w")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SweepError(
                    f"another sweep works in {self.folder}; wait for it, or name another folder with --out"
                ) from None
            for part in self.folder.glob("runs/*/.*.part"):
                part.unlink(missing_ok=True)
            yield

    def find(self, task: Task) -> Stored | None:
        """The kept run of a task. A damaged file counts as none; `damaged` then says so."""
        path = self._path(task)
        try:
            with zipfile.ZipFile(path) as file:
                if (broken := file.testzip()) is not None:
                    raise zipfile.BadZipFile(f"{broken} does not have its checksum")
                about = json.loads(file.read("run.json"))
                summary = json.loads(file.read("summary.json"))
            if about["key"] != task.key:
                raise ValueError("it is the file of another run")
            return Stored(task, path, int(about["attempts"]), float(about["seconds"]), summary)
        except FileNotFoundError:
            return None
        # What a damaged archive can raise is not a short list: also zlib's and struct's errors, and more.
        except Exception as error:
            self.damaged.append(f"{path} is damaged ({error}); {task.name} is run again")
            return None

    def keep(self, done: Done, attempts: int, *, left: int = 1) -> Stored:
        """Keeps a run, in place of an earlier attempt at it. `left` runs are to be kept, with this one."""
        task, path = done.task, self._path(done.task)
        about = {
            "format": FORMAT,
            "key": task.key,
            "cell": task.cell,
            "world": task.world,
            "seed": task.job.seed,
            "attempts": attempts,
            "seconds": round(done.seconds, 3),
        }
        parts: tuple[str | bytes, ...] = (
            json.dumps(about),
            json.dumps(done.run.summary),
            done.run.flow_parquet,
            done.run.link_parquet,
        )
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as file:
            for name, part in zip(_MEMBERS, parts, strict=True):
                how = zipfile.ZIP_DEFLATED if name.endswith(".json") else zipfile.ZIP_STORED
                file.writestr(name, part, how)
        data = packed.getvalue()
        self._kept, self._kept_bytes = self._kept + 1, self._kept_bytes + len(data)
        write(path, data, needed=left * self._kept_bytes // self._kept)
        stored = Stored(task, path, attempts, done.seconds, done.run.summary)
        self.log("ran", task, attempts=attempts, seconds=about["seconds"], untrustworthy=stored.untrustworthy)
        return stored

    def log(self, event: str, task: Task, **more: object) -> None:
        """Adds a line to the log."""
        line = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "event": event,
            "key": task.key[:16],
            "cell": task.cell,
            "world": task.world,
            "seed": task.job.seed,
            **more,
        }
        path = self.folder / "log.jsonl"
        with told(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _path(self, task: Task) -> Path:
        return self.folder / "runs" / task.key[:2] / f"{task.key}.zip"


def write(path: Path, data: bytes, *, needed: int | None = None) -> None:
    """Writes a file so that it is whole or not there, also when the power fails.

    `needed` is how many bytes there are to come in all, for who must free them.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with told(path, needed or len(data)):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            # The name is as much on the disk as the bytes only when its folder is, too.
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


@contextlib.contextmanager
def told(path: Path, needed: int = 0) -> Iterator[None]:
    """Turns a disk's refusal into a sentence that says what to do."""
    try:
        yield
    except OSError as error:
        what = error.strerror or str(error)
        file = next((one for one in path.parents if one.exists() and not one.is_dir()), None)
        if file is not None:
            raise SweepError(
                f"cannot write {path}: {file} is a file, and a folder is needed; name another place, or move "
                "that file away"
            ) from None
        if error.errno in _FULL:
            mend = f"free about {max(1, round(needed / 1e6))} MB on the disk of {path.parent}"
        else:
            mend = f"make {path.parent} writable"
        raise SweepError(
            f"cannot write {path}: {what}; {mend} and give the same command again: finished runs are kept "
            "and not repeated"
        ) from None
