"""A sweep in parts, each on a machine of its own: a shard is every n-th run. `merge` merges their folders.

A finished shard's folder has `shard.json`: which shard it is, of which sweep (a hash of the addresses of all
runs), and which runs it has. Merged, they are the folder that one machine would have filled: the same command
without a shard finds all of its runs there.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fullpipe import files, reading
from fullpipe.errors import SweepError, mistake
from fullpipe.runs import pack, sweep
from fullpipe.runs.engines import Engine
from fullpipe.runs.engines.task import Task, check_ready
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import Progress
from fullpipe.runs.worlds import registry
from fullpipe.text import counted, joined

_FILE = "shard.json"
# A million addresses.
_MOST_BYTES = 1 << 27
_MOST_SHOWN = 5
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Shard:
    """The part of a sweep whose runs have the places `number - 1`, `number - 1 + of`, and so on."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def part(self, tasks: Sequence[Task]) -> list[Task]:
        """Its runs, each once."""
        return list({task.key: task for task in tasks}.values())[self.number - 1 :: self.of]


@dataclass(frozen=True)
class _Finished:
    """What `shard.json` says."""

    number: int
    of: int
    sweep: str
    runs: list[str]
    failed: list[str]


@dataclass(frozen=True)
class Merged:
    """What a merge did."""

    shards: int
    runs: int
    new: int
    # Runs that failed, which the command without a shard tries again.
    failed: int
    # Runs that several shards have, of worlds in which no two runs are equal: the first counts.
    measured_twice: int


def shard(given: str) -> Shard:
    """The shard of a text such as `2/8`.

    Raises:
        ScenarioError: It is none.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,6})/([1-9][0-9]{0,6})", given)
    if found is None or int(found[1]) > int(found[2]):
        raise mistake(
            "shard", given, "i/n with i from 1 to n", "e.g. --shard 2/8 on the second of 8 machines"
        )
    return Shard(int(found[1]), int(found[2]))


def carry_out(
    chosen: Shard,
    tasks: Sequence[Task],
    folder: Path,
    engine: Engine,
    *,
    attempts: int = sweep.ATTEMPTS,
    watch: Callable[[Progress], None] = lambda _progress: None,
) -> sweep.Outcome:
    """Runs a shard of a sweep, as `sweep.carry_out` would run all of it, and then says so in `shard.json`."""
    own = chosen.part(tasks)
    check_ready(own)
    outcome = sweep.carry_out(own, Store(folder), engine, attempts=attempts, watch=watch)
    failed = {one.task.key for one in outcome.failed}
    runs = [task.key for task in own if task.key not in failed]
    message = _Finished(chosen.number, chosen.of, _sweep(tasks), runs, sorted(failed))
    files.write(folder, _FILE, json.dumps(asdict(message)).encode())
    return outcome


def merge(folders: Sequence[Path], out: Path) -> Merged:
    """Copies the runs of all shards of a sweep into one folder, which may have some of them already.

    Raises:
        SweepError: A shard is missing, unfinished or of another sweep, or two shards differ in a run of a
            world in which equal runs have equal results. At most right runs were copied then.
    """
    shards = [(_finished(folder), folder) for folder in folders]
    _check(shards)
    store, twice = Store(out), 0
    with store.held():
        before = len(store)
        for message, folder in shards:
            twice += store.copy(Store(folder), message.runs, _same)
        runs = {key for message, _ in shards for key in message.runs}
        failed = {key for message, _ in shards for key in message.failed} - runs
        return Merged(shards[0][0].of, len(runs), len(store) - before, len(failed), twice)


def _same(one: pack.Record, other: pack.Record) -> bool:
    """Whether two records of a run are equal; they need not be where runs take wall time."""
    name = one.about["world"]
    world = registry.find(name) if isinstance(name, str) else None
    if (one.summary, one.flows, one.links) == (other.summary, other.flows, other.links):
        return True
    if world is None or world.deterministic:
        what = f"{one.about['cell']}, {name}, seed {one.about['seed']}"
        raise SweepError(
            f"two shards have different results of the run {what}, although runs of the same build are equal "
            "there; repeat one of the two in a new folder"
        )
    return False


def _sweep(tasks: Sequence[Task]) -> str:
    """What tells a sweep from others: its runs, in order."""
    return hashlib.sha256("\n".join(dict.fromkeys(task.key for task in tasks)).encode()).hexdigest()


def _finished(folder: Path) -> _Finished:
    fix = "give the command of that shard again, with the same --shard and --out"
    try:
        message = json.loads(reading.text(folder / _FILE, _MOST_BYTES))
        found = _Finished(**message)
        whole = all(isinstance(one, int) for one in (found.number, found.of))
        if not whole or not all(_KEY.fullmatch(one) for one in (found.sweep, *found.runs, *found.failed)):
            raise ValueError
    except FileNotFoundError:
        raise SweepError(f"{folder} is no finished shard: it has no {_FILE}; {fix}") from None
    except (reading.Unreadable, ValueError, TypeError, RecursionError):
        raise SweepError(f"{folder / _FILE} is damaged; {fix}") from None
    return found


def _check(shards: Sequence[tuple[_Finished, Path]]) -> None:
    """Raises `SweepError` unless these are all shards of one sweep."""
    first, where = shards[0]
    for message, folder in shards:
        if (message.of, message.sweep) != (first.of, first.sweep):
            raise SweepError(
                f"{folder} and {where} are shards of different sweeps, e.g. of another build or other options"
                "; give all of them the same command but for --shard and --out"
            )
    numbers = {message.number for message, _ in shards}
    if missing := [
        str(Shard(number, first.of)) for number in range(1, first.of + 1) if number not in numbers
    ]:
        shown = (
            joined(missing) if len(missing) <= _MOST_SHOWN else f"{missing[0]} and {len(missing) - 1} more"
        )
        raise SweepError(
            f"no folder has {shown} of the sweep of {where}; name the folders of all "
            f"{counted(first.of, 'shard')}"
        )
