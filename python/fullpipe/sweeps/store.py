"""The store of finished runs: one file for each run, named by the run's address.

    DIR/runs/ab/abcdef....zip    run.json, summary.json, flows.parquet, links.parquet
    DIR/log.jsonl                a line for each run that ended, for people; no program reads it
    DIR/lock                     locked while a sweep uses the folder; unlocked when its process ends

Each run is one file, because a rename is atomic however the process ends. It also needs no lock if several
machines share the folder. The file is a zip, because its checksums show damage and any tool opens it.
"""

import contextlib
import io
import json
import os
import stat
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe.engines import Done
from fullpipe.engines.task import FORMAT, Task
from fullpipe.errors import SweepError
from fullpipe.results.runs import Run
from fullpipe.system import files

_MEMBERS = ("run.json", "summary.json", "flows.parquet", "links.parquet")
_LOCK, _LOG, _RUNS = "lock", "log.jsonl", "runs"


@dataclass(frozen=True)
class Stored:
    """A run that is kept. Its time series stay in the file until `run` reads them."""

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
        """The whole run.

        Raises:
            SweepError: The file was removed or damaged after it was found.
        """
        try:
            members = _members(self.path)
        except Exception as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise SweepError(
                f"the run {self.task.name} cannot be read from {self.path}: {why}; give the same command "
                "again to repeat that run"
            ) from None
        flows, links = members["flows.parquet"], members["links.parquet"]
        return Run(self.task.job.alternative, self.task.world, self.task.job.seed, self.summary, flows, links)


class Store:
    """Finished runs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: list[str] = []
        self._kept, self._kept_bytes = 0, 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Locks the folder against other sweeps, which would run the same runs, during the block.

        Creates the folder. If the block raises before anything was kept, a folder created here is removed.
        """
        made = files.make_folder(self.folder)
        with files.locked(self.folder, _LOCK) as locked:
            if not locked:
                raise SweepError(
                    f"another sweep uses {self.folder}; wait until it ends, or name another folder with --out"
                )
            files.remove_parts(self.folder / _RUNS)
            try:
                yield
            except BaseException:
                self._remove_if_unused(made)
                raise

    def find(self, task: Task) -> Stored | None:
        """The kept run of a task. A damaged file counts as missing, and a note is added to `damaged`."""
        path = self.folder / self._name(task)
        try:
            members = _members(path)
            about, summary = json.loads(members["run.json"]), json.loads(members["summary.json"])
            if about["key"] != task.key:
                raise ValueError("it holds another run")
            return Stored(task, path, int(about["attempts"]), float(about["seconds"]), summary)
        except FileNotFoundError:
            return None
        # A damaged archive can raise many errors, e.g. those of zlib and struct.
        except Exception as error:
            self.damaged.append(f"{path} is damaged ({error}); {task.name} is run again")
            return None

    def keep(self, done: Done, attempts: int, *, left: int = 1) -> Stored:
        """Keeps a run, in place of an earlier attempt. `left` counts the runs still to keep, with this one.

        Raises:
            OutputError: The run cannot be written, e.g. because the disk is full or the folder was removed.
        """
        task, name = done.task, self._name(done.task)
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
            for member, part in zip(_MEMBERS, parts, strict=True):
                how = zipfile.ZIP_DEFLATED if member.endswith(".json") else zipfile.ZIP_STORED
                file.writestr(member, part, how)
        data = packed.getvalue()
        self._kept, self._kept_bytes = self._kept + 1, self._kept_bytes + len(data)
        path = files.write(self.folder, name, data, needed=left * self._kept_bytes // self._kept)
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
        files.append(self.folder, _LOG, f"{json.dumps(line)}\n".encode())

    def _name(self, task: Task) -> str:
        return f"{_RUNS}/{task.key[:2]}/{task.key}.zip"

    def _remove_if_unused(self, made: list[Path]) -> None:
        """Removes the folders that `held` created if they hold nothing but the lock."""
        with contextlib.suppress(OSError):
            if made and [one.name for one in self.folder.iterdir()] == [_LOCK]:
                (self.folder / _LOCK).unlink()
                files.remove_empty(made)


def _members(path: Path) -> dict[str, bytes]:
    """The contents of a run's file. Raises an error of any kind unless they are complete and undamaged."""
    # Without O_NONBLOCK, opening a named pipe would wait for its other end.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise ValueError("it is not a regular file")
        with zipfile.ZipFile(opened) as archive:
            # The archive's directory has no checksum of its own: damage there may hide or rename a member.
            if sorted(archive.namelist()) != sorted(_MEMBERS):
                raise zipfile.BadZipFile(f"its members are {', '.join(archive.namelist()) or 'missing'}")
            # Reading a member checks its checksum.
            return {name: archive.read(name) for name in _MEMBERS}
