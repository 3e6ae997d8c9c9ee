"""Logs of a run's packets: qlog and pcapng files, which the worlds write while the run goes on."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fullpipe._native as _native
from fullpipe import files
from fullpipe.errors import OutputError, mistake
from fullpipe.text import shown

if TYPE_CHECKING:
    from fullpipe.measures.run import Run

# What a pcapng file keeps of a packet by default: all headers.
SNAPLEN = 128
_LONGEST_SNAPLEN = 262_144
# The most packets in a file: about 1.5 GB of pcapng, and 5 and 3 GB of qlog.
MOST = 10_000_000
# The most bytes that the logs of a command may have in all, unless somebody asks for more: written in
# seconds, and small enough for Wireshark and qvis.
LIMIT = "250 MB"


@dataclass(frozen=True)
class Logs:
    """The folders for the logs of a run, and how its files are called."""

    qlog: Path | None = None
    pcap: Path | None = None
    snaplen: int = SNAPLEN
    name: str = ""
    limit: str | int = LIMIT  # What all logs of a command may have: a size, or bytes.

    @staticmethod
    def of(
        qlog: str | Path | None,
        pcap: str | Path | None,
        snaplen: int = SNAPLEN,
        limit: str | int = LIMIT,
    ) -> "Logs | None":
        """The logs that are wanted; None without any. Creates nothing.

        Raises:
            ScenarioError: A folder cannot be written into, or `snaplen` is no length.
        """
        if type(snaplen) is not int or not 14 <= snaplen <= _LONGEST_SNAPLEN:
            expected = f"a number of bytes from 14 to {_LONGEST_SNAPLEN}"
            raise mistake("snaplen", snaplen, expected, "e.g. 128 for the headers alone")
        if pcap is None and snaplen != SNAPLEN:
            expected = "a capture whose packets it shortens"
            raise mistake("snaplen", snaplen, expected, "name a folder for it: pcap")
        if qlog is None and pcap is None:
            return None
        for name, folder in (("qlog", qlog), ("pcap", pcap)):
            if folder is None:
                continue
            if not str(folder).strip():
                raise mistake(name, str(folder), "a folder to write into", "name a folder")
            if (reason := files.obstacle(Path(folder))) is not None:
                raise mistake(name, str(folder), f"a folder to write into ({reason})", "name another folder")
        folders = [None if one is None else Path(one) for one in (qlog, pcap)]
        return Logs(folders[0], folders[1], snaplen, limit=limit)

    def named(self, name: str) -> "Logs":
        """The same for the alternative that has this part of a file name."""
        return replace(self, name=name)


@dataclass
class Opened:
    """The files of a run while they are open: what the native half writes into."""

    title: str
    snaplen: int
    qlog: tuple[int, int] | None = None
    pcap: int | None = None
    paths: list[Path] = field(default_factory=list)

    def arguments(self, spool: int | None = None) -> list[Any]:
        """What `_native.Logs` takes, in this process or in a child that inherits the files."""
        return [self.title, self.qlog, self.pcap, self.snaplen, MOST, spool]

    def native(self) -> _native.Logs:
        """The files as the native half takes them."""
        return _native.Logs(*self.arguments())

    @property
    def descriptors(self) -> list[int]:
        """All that a child process must inherit."""
        return [*(self.qlog or ()), *(() if self.pcap is None else (self.pcap,))]

    def of(self, run: "Run", full_at_s: float | None, missed: int = 0) -> "Run":
        """The run with its logs, and notes if they end early or have gaps."""
        which = f"{run.label}, {run.world}, seed {run.seed}"
        notes = []
        if full_at_s is not None:
            notes.append(
                f"{which}: its logs end at {full_at_s:.3f} s, because a log has at most "
                f"{MOST // 10**6} million packets; log a shorter run"
            )
        if missed:
            notes.append(f"{which}: {missed} packets are not in its logs, because the disk was too slow")
        return replace(run, logs=tuple(self.paths), log_notes=tuple(notes))


@contextlib.contextmanager
def opened(logs: Logs | None, world: str, seed: int, title: str) -> Iterator[Opened | None]:
    """Opens the files of a run for the block, and names them when it has ended; None without logs.

    An exception leaves none of them. An `OSError` of the block is one about them.

    Raises:
        OutputError: A file cannot be written, e.g. because the disk is full.
    """
    if logs is None:
        yield None
        return
    stem = f"{world}-{logs.name}-seed{seed}" if logs.name else f"{world}-seed{seed}"
    made = Opened(shown(title), logs.snaplen)
    with contextlib.ExitStack() as held:

        def one(folder: Path, suffix: str) -> int:
            files.make_folder(folder)
            made.paths.append(folder / f"{stem}{suffix}")
            return held.enter_context(files.streamed(folder, f"{stem}{suffix}"))

        if logs.qlog is not None:
            made.qlog = one(logs.qlog, ".sqlog"), one(logs.qlog, ".qlog")
        if logs.pcap is not None:
            made.pcap = one(logs.pcap, ".pcapng")
        try:
            yield made
        except OutputError:
            raise
        except OSError as error:
            needed = 2 * sum(os.fstat(file).st_size for file in made.descriptors)
            with files.reported(made.paths[0], needed):
                raise error
