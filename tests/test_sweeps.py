"""Sweeps do every run once, whatever ends them. Damage, full disks and failed runs lose nothing."""

import errno
import io
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fullpipe import _native
from fullpipe.ask import scenario
from fullpipe.engines import Done, Ended, Failed
from fullpipe.engines import local as engine_here
from fullpipe.engines.local import Local
from fullpipe.engines.task import Task
from fullpipe.errors import OutputError, SweepError
from fullpipe.results.runs import Run
from fullpipe.sweeps import pack
from fullpipe.sweeps import store as storing
from fullpipe.sweeps.store import Place, Store, Stored
from fullpipe.sweeps.sweep import Outcome, Progress, carry_out
from fullpipe.system import files
from fullpipe.worlds import kernel, sim
from fullpipe.worlds.job import Job


def job(seed: int = 1, *, name: str = "a", rate: str = "5 Mbit/s", duration: str = "200 ms") -> Job:
    loaded = scenario.from_document(
        {
            "name": name,
            "duration": duration,
            "path": {"rate": rate, "rtt": "10 ms"},
            "flows": [{"controller": "reno"}],
        }
    )
    return Job(loaded.alternatives[0], seed)


def tasks(count: int, world: str = sim.NAME) -> list[Task]:
    return [Task(world, job(seed)) for seed in range(1, count + 1)]


def logged(folder: Path, event: str = "ran") -> Counter[str]:
    path = folder / "log.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return Counter(one["key"] for one in map(json.loads, lines) if one["event"] == event)


def kept_in(folder: Path) -> Counter[str]:
    """How many records each run has whose newest one is undamaged."""
    store = Store(folder)
    assert store._known() is not None
    return Counter({key: len(places) for key, places in store._known().items() if places})


class Scripted:
    """An engine that simulates, with the given doubts and failures, and remembers its tasks.

    All of its tasks end `together`, or each alone.
    """

    def __init__(self, doubts: int = 0, failing: Iterable[int] = (), *, together: bool = False) -> None:
        self.given: list[Task] = []
        self._doubts, self._failing, self._together = doubts, set(failing), together

    def cost(self, task: Task) -> float:
        return 1.0

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        tasks = list(tasks)
        for number, task in enumerate(tasks, 1):
            more = self._together and number < len(tasks)
            self.given.append(task)
            if task.job.seed in self._failing:
                yield Failed(task, "it broke", more)
                continue
            run = sim.run_one(task.job, _native.Cancel())
            often = sum(one.key == task.key for one in self.given)
            if often <= self._doubts:
                run.summary["provenance"]["untrustworthy"] = ["late"]
            yield Done(task, run, 0.1, more)


# Addresses.


def test_an_address_is_of_what_decides_a_run_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Task("sim", job())
    assert one.key == Task("sim", job(name="another name"), alone=True).key
    # An address is kept once it was asked for, so each is asked for in its own circumstances.
    keys = {
        one.key,
        Task("sim", job(2)).key,
        Task("sim", job(rate="6 Mbit/s")).key,
        Task("kernel", job()).key,
    }
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "h", "0.0-other", "v", "m")))
    keys.add(Task("kernel", job()).key)
    assert Task("sim", job()).key == one.key, "the simulator does not depend on the machine's kernel"
    monkeypatch.setattr(_native, "build", lambda _world: "another")
    keys.add(Task("sim", job()).key)
    assert len(keys) == 6


def test_the_builds_of_the_worlds_are_known() -> None:
    builds = {_native.build(world) for world in ("sim", "kernel")}
    assert len(builds) == 2
    assert all(len(build) == 32 for build in builds)
    with pytest.raises(ValueError, match="is no world"):
        _native.build("quic")


# What is kept.


def test_a_kept_run_comes_back_whole(tmp_path: Path) -> None:
    task = Task("sim", job())
    outcome = carry_out([task], Store(tmp_path), Local())
    found = Store(tmp_path).find(task)
    assert found is not None
    fresh = sim.run_one(task.job, _native.Cancel())
    run = found.run()
    assert (run.summary, run.flow_parquet) == (fresh.summary, fresh.flow_parquet)
    assert found.light().flow_parquet == b""
    assert outcome.of([task, Task("sim", job(9))]) == [outcome.stored[task.key]]


def test_nothing_is_run_twice(tmp_path: Path) -> None:
    asked = tasks(3)
    first = Scripted()
    carry_out(asked[:2], Store(tmp_path), first)
    second = Scripted()
    # The same run under another name is the same run.
    outcome = carry_out([*asked, Task("sim", job(name="b"))], Store(tmp_path), second)
    assert [task.job.seed for task in second.given] == [3]
    assert (outcome.found, len(outcome.stored)) == (2, 3)
    assert set(logged(tmp_path).values()) == {1}


def test_runs_that_end_together_are_kept_by_one_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    whole = os.fdatasync
    monkeypatch.setattr(files.os, "fdatasync", lambda file: (synced.append(file), whole(file)))
    asked, told = tasks(5), []

    def watch(progress: Progress) -> None:
        # A second store reads only what is on the disk.
        found = [task for task in asked if Store(tmp_path).find(task)]
        assert len(found) == progress.runs - progress.failed
        told.append(progress.runs)

    outcome = carry_out(asked, Store(tmp_path), Scripted(failing=[2], together=True), watch=watch)
    assert (told, len(synced), len(outcome.stored), len(outcome.failed)) == ([0, 5], 1, 4, 1)
    assert sum(logged(tmp_path).values()) == 4


def test_many_series_at_a_time_are_kept_by_several_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fullpipe.sweeps.sweep._MOST_TOGETHER", 1)
    told: list[int] = []
    carry_out(tasks(3), Store(tmp_path), Scripted(together=True), watch=lambda one: told.append(one.runs))
    assert told == [0, 1, 2, 3]


def test_each_sweep_has_a_file_of_its_own_and_a_large_one_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out(tasks(2), Store(tmp_path), Scripted())
    before = (tmp_path / "runs" / "1.pack").read_bytes()
    carry_out(tasks(4), Store(tmp_path), Scripted())
    assert names(tmp_path) == ["1.pack", "2.pack"]
    monkeypatch.setattr(storing, "_LARGE", 1)
    carry_out(tasks(6), Store(tmp_path), Scripted())
    assert names(tmp_path) == ["1.pack", "2.pack", "3.pack", "4.pack"]
    assert (tmp_path / "runs" / "1.pack").read_bytes() == before
    again = Scripted()
    assert carry_out(tasks(6), Store(tmp_path), again).found == 6 and not again.given


def test_a_file_that_somebody_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "1.pack"

    def append(progress: Progress) -> None:
        if progress.runs == 1:
            with path.open("ab") as file:
                file.write(b"from elsewhere")

    outcome = carry_out(tasks(3), Store(tmp_path), Scripted(), watch=append)
    assert path.read_bytes().endswith(b"from elsewhere")
    assert [outcome.stored[task.key].place.path.name for task in tasks(3)] == ["1.pack", "2.pack", "2.pack"]
    assert all(stored.run().flow_parquet for stored in outcome.stored.values())


def test_every_run_of_a_folder_can_be_listed(tmp_path: Path) -> None:
    carry_out(tasks(3), Store(tmp_path), Scripted(doubts=1), attempts=2)
    old = write_old(tmp_path, Task("sim", job(7)))
    damage(tmp_path / "runs" / "1.pack", -1)
    records = list(Store(tmp_path).records())
    assert sorted(one.about["seed"] for one in records) == [1, 2, 3, 7]
    attempts = {one.about["seed"]: one.about["attempts"] for one in records}
    # The newest attempt at the third run is damaged.
    assert attempts == {1: 2, 2: 2, 3: 1, 7: 1}
    assert old.exists()


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in (folder / "runs").iterdir())


def damage(path: Path, at: int) -> None:
    """Flips a bit."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


def flipped_bits(path: Path) -> Iterator[None]:
    """Flips each bit of a file in turn."""
    file = os.open(path, os.O_RDWR)
    for bit in range(8 * os.fstat(file).st_size):
        (before,) = os.pread(file, 1, bit // 8)
        os.pwrite(file, bytes([before ^ 1 << bit % 8]), bit // 8)
        yield
        os.pwrite(file, bytes([before]), bit // 8)
    os.close(file)


def cut_out(data: bytes, begin: int, end: int) -> bytes:
    return data[:begin] + data[end:]


def zeroed(data: bytes, begin: int, end: int) -> bytes:
    return data[:begin] + bytes(end - begin) + data[end:]


# What is lost of three runs in one file, and what is said. `a` and `b` are where the second and third begin.
HARMS: dict[str, tuple[Callable[[bytes, int, int], bytes], list[int], str]] = {
    "cut short": (lambda data, a, b: data[:-7], [3], "ends with an incomplete run"),
    "cut to a part of a head": (lambda data, a, b: data[: b + 5], [3], "ends with an incomplete run"),
    "empty": (lambda data, a, b: b"", [1, 2, 3], "is empty"),
    "text": (lambda data, a, b: b"somebody's notes\n" * 99, [1, 2, 3], "is damaged"),
    "zeros": (lambda data, a, b: bytes(len(data)), [1, 2, 3], "is damaged"),
    "zeros in a head": (lambda data, a, b: zeroed(data, a, a + 9), [2], "is damaged"),
    "zeros over a border": (
        lambda data, a, b: data[: a - 9] + bytes(99) + data[a + 90 :],
        [1, 2],
        "is damaged",
    ),
    "a piece cut out": (lambda data, a, b: cut_out(data, a + 200, a + 300), [2], "is damaged"),
    "a piece cut out over a border": (lambda data, a, b: cut_out(data, a - 50, a + 90), [1, 2], "is damaged"),
    "a piece cut out of the last": (lambda data, a, b: cut_out(data, b + 100, b + 200), [3], "ends with"),
    "a piece put in": (lambda data, a, b: data[: a + 200] + b"more" + data[a + 200 :], [2], "is damaged"),
    "text in front": (lambda data, a, b: b"text" + data, [], "is damaged"),
    "line ends converted": (lambda data, a, b: data.replace(b"\r\n", b"\n"), [1, 2, 3], "is damaged"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_damage_is_told_and_costs_only_the_runs_that_it_touches(harm: str, tmp_path: Path) -> None:
    asked = tasks(3)
    outcome = carry_out(asked, Store(tmp_path), Scripted())
    path = tmp_path / "runs" / "1.pack"
    begins = [outcome.stored[task.key].place.at for task in asked]
    how, lost, said = HARMS[harm]
    harmed = how(path.read_bytes(), *begins[1:])
    path.write_bytes(harmed)
    # Who only looks is told, too, and changes nothing.
    looking = Store(tmp_path)
    assert [task.job.seed for task in asked if looking.find(task) is None] == lost
    assert len(looking.damaged) == 1 and said in looking.damaged[0]
    assert path.read_bytes() == harmed
    again, store = Scripted(), Store(tmp_path)
    repeated = carry_out(asked, store, again)
    assert [task.job.seed for task in again.given] == lost
    assert len(store.damaged) == 1 and said in store.damaged[0]
    for task in asked:
        assert repeated.stored[task.key].run() == sim.run_one(task.job, _native.Cancel())
    # That was the end of it. What was not a run of ours is kept.
    last, third = Scripted(), Store(tmp_path)
    carry_out(asked, third, last)
    assert (last.given, third.damaged) == ([], [])
    asides = list((tmp_path / "runs").glob("*.damaged"))
    assert [one.read_bytes() for one in asides] == ([harmed] if said == "is damaged" else [])


def test_a_flipped_bit_costs_one_run(tmp_path: Path) -> None:
    asked = tasks(3)
    outcome = carry_out(asked, Store(tmp_path), Scripted())
    path = tmp_path / "runs" / "1.pack"
    whole = path.read_bytes()
    place = outcome.stored[asked[1].key].place
    for at in [*range(place.at, place.at + 60), *range(place.at + 60, place.at + place.size, 97)]:
        path.write_bytes(whole)
        damage(path, at)
        store = Store(tmp_path)
        assert [task.job.seed for task in asked if store.find(task) is None] == [2], at
        assert len(store.damaged) == 1 and "is damaged" in store.damaged[0]


def test_two_places_that_are_damaged_are_told_in_one_sentence(tmp_path: Path) -> None:
    asked = tasks(5)
    outcome = carry_out(asked, Store(tmp_path), Scripted())
    for number in (1, 3):
        damage(tmp_path / "runs" / "1.pack", outcome.stored[asked[number].key].place.at)
    again, store = Scripted(), Store(tmp_path)
    carry_out(asked, store, again)
    assert [task.job.seed for task in again.given] == [2, 4]
    (note,) = store.damaged
    assert note.endswith("kept as 1.pack.damaged")


def test_a_file_that_is_damaged_again_is_kept_under_another_name(tmp_path: Path) -> None:
    carry_out(tasks(3), Store(tmp_path), Scripted())
    for aside in ("1.pack.damaged", "1.pack.damaged-2"):
        damage(tmp_path / "runs" / "1.pack", 0)
        store = Store(tmp_path)
        carry_out(tasks(3), store, Scripted())
        (note,) = store.damaged
        assert note.endswith(f"kept as {aside}")
        assert (tmp_path / "runs" / aside).exists()


def test_a_damaged_repetition_falls_back_to_the_attempt_before(tmp_path: Path) -> None:
    carry_out(tasks(1), Store(tmp_path), Scripted(doubts=9), attempts=2)
    damage(tmp_path / "runs" / "1.pack", -1)
    store, again = Store(tmp_path), Scripted(doubts=9)
    carry_out(tasks(1), store, again, attempts=2)
    assert len(again.given) == 1 and len(store.damaged) == 1
    (kept,) = carry_out(tasks(1), Store(tmp_path), Scripted(), attempts=2).stored.values()
    assert kept.attempts == 2


def test_what_is_damaged_stays_if_it_cannot_be_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tasks(3)
    outcome = carry_out(asked, Store(tmp_path), Scripted())
    path = outcome.stored[asked[0].key].place.path
    damage(path, outcome.stored[asked[1].key].place.at)
    before = path.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files, "_replace", full)
    store = Store(tmp_path)
    with store.held():
        assert [task.job.seed for task in asked if store.find(task) is None] == [2]
    assert path.read_bytes() == before
    assert names(tmp_path) == ["1.pack"]
    assert len(store.damaged) == 1


def test_a_folder_in_place_of_a_file_is_told_and_left(tmp_path: Path) -> None:
    (tmp_path / "runs" / "3.pack").mkdir(parents=True)
    os.mkfifo(tmp_path / "runs" / "4.pack")
    store = Store(tmp_path)
    carry_out(tasks(1), store, Scripted())
    assert ["is not a regular file" in note for note in store.damaged] == [True, True]
    assert names(tmp_path) == ["3.pack", "4.pack", "5.pack"]


# The file of many runs.


@pytest.mark.parametrize("size", [0, 1, 5000, 70_000, 3_000_000])
def test_a_record_gives_back_what_was_put_in(size: int) -> None:
    key, summary = "ab" * 32, {"provenance": {}, "flows": ["é"]}
    flows, links = random.Random(size).randbytes(size), pack.MARK * (size // 8)
    data = pack.encode(key, {"seed": 3}, summary, flows, links)
    assert pack.decode(data, key) == pack.Record({"seed": 3}, summary, flows, links)
    with pytest.raises(pack.Damaged, match="another run"):
        pack.decode(data, "cd" * 32)
    with pytest.raises(pack.Damaged):
        pack.decode(data[:-1], key)


def test_records_are_found_after_any_noise() -> None:
    chance = random.Random(1)
    for _ in range(50):
        text, expected, lost = b"", [], 0
        for number in range(chance.randrange(1, 6)):
            noise = chance.choice([b"", b"", pack.MARK * 3, chance.randbytes(30), b"x" * (1 << 20)])
            record = pack.encode(
                f"{number:064x}", {}, {}, pack.MARK * 9000, chance.randbytes(chance.randrange(99))
            )
            expected.append((len(text) + len(noise), len(record)))
            text += noise + record
            lost += bool(noise)
        scanned = pack.scan(FileOf(text))
        assert [(one.at, one.size) for one in scanned.records] == expected
        assert (len(scanned.lost), scanned.cut) == (lost, False)


class FileOf(io.BytesIO):
    """A file in memory that also has a descriptor, of which the size is asked."""

    def fileno(self) -> int:
        file = os.memfd_create("test")
        os.truncate(file, len(self.getvalue()))
        self.opened = [*getattr(self, "opened", []), file]
        return file

    def __del__(self) -> None:
        for file in getattr(self, "opened", []):
            os.close(file)


def crafted(key: str, body: bytes) -> bytes:
    """A record with right checksums around any body."""
    head = struct.pack("<8s32sQI", pack.MARK, bytes.fromhex(key), len(body), zlib.crc32(body))
    return head + struct.pack("<I", zlib.crc32(head)) + body


def body_of(
    summary: object, *, deflated: object = False, lengths: object = None, packed: bytes | None = None
) -> bytes:
    text = json.dumps(summary).encode()
    line = {"attempts": 1, "seconds": 1.0, "deflated": deflated, "lengths": lengths or [len(text), 0, 0]}
    return json.dumps(line).encode() + b"\n" + (text if packed is None else packed)


STRANGE = {
    "no object": b"{}",
    "empty": b"",
    "a list": b"[1, 2]",
    "deep": b"[" * 100_000,
    "no text": b"\xff\xfe",
    "bad zlib": body_of({}, deflated=True, packed=b"zlib"),
    "wrongly deflated": body_of({"provenance": {}}, deflated=True),
    "deflated is a number": body_of({"provenance": {}}, deflated=0),
    "lengths too short": body_of({"provenance": {}}, lengths=[1]),
    "lengths too large": body_of({"provenance": {}}, lengths=[18, 0, 1 << 70]),
    "lengths negative": body_of({"provenance": {}}, lengths=[18, 1, -1]),
    "lengths a text": body_of({"provenance": {}}, lengths="abc"),
    "summary a list": body_of([]),
    "summary empty": body_of({}),
    "provenance null": body_of({"provenance": None}),
    "untrustworthy a number": body_of({"provenance": {"untrustworthy": 5}}),
    "untrustworthy numbers": body_of({"provenance": {"untrustworthy": [5]}}),
    "summary deep": body_of({}, lengths=[100_000, 0, 0], packed=b"[" * 100_000),
}


@pytest.mark.parametrize("junk", [b"", b"junk"], ids=["alone", "junk"])
@pytest.mark.parametrize("strange", STRANGE)
def test_a_strange_body_with_right_checksums_costs_one_run(strange: str, junk: bytes, tmp_path: Path) -> None:
    asked = tasks(3)
    carry_out([asked[0], asked[2]], Store(tmp_path), Scripted())
    path = tmp_path / "runs" / "1.pack"
    path.write_bytes(path.read_bytes() + crafted(asked[1].key, STRANGE[strange]) + junk)
    again, store = Scripted(), Store(tmp_path)
    outcome = carry_out(asked, store, again)
    assert [task.job.seed for task in again.given] == [2]
    assert (outcome.found, len(store.damaged)) == (2, 1 + bool(junk))
    assert "is not that of a run" in store.damaged[-1]
    last, third = Scripted(), Store(tmp_path)
    carry_out(asked, third, last)
    assert (last.given, third.damaged) == ([], [])


def test_a_strange_old_file_is_run_again(tmp_path: Path) -> None:
    (asked,) = tasks(1)
    run = Run(asked.job.alternative, "sim", 1, {"provenance": {"untrustworthy": 5}}, b"", b"")
    write_old(tmp_path, asked, run)
    store, again = Store(tmp_path), Scripted()
    carry_out([asked], store, again)
    assert (len(again.given), len(store.damaged)) == (1, 1)


def test_a_few_bytes_are_not_inflated_to_many() -> None:
    bomb = zlib.compress(bytes(200_000_000), 9)
    for lengths in ([18, 0, 0], [18, 0, 200_000_000 - 18]):
        data = crafted("ab" * 32, body_of({"provenance": {}}, deflated=True, lengths=lengths, packed=bomb))
        tracemalloc.start()
        with pytest.raises(pack.Damaged):
            pack.decode(data, "ab" * 32)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        tracemalloc.stop()


@pytest.mark.parametrize("claimed", [10**12 - 56, 1 << 28], ids=["all", "the largest"])
def test_a_sparse_file_is_not_read_into_memory(
    claimed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "LARGEST", 1 << 28)
    (asked,) = tasks(1)
    (tmp_path / "runs").mkdir()
    head = struct.pack("<8s32sQI", pack.MARK, bytes.fromhex(asked.key), claimed, 1)
    with (tmp_path / "runs" / "1.pack").open("wb") as file:
        file.write(head + struct.pack("<I", zlib.crc32(head)))
        file.truncate(10**12)
    tracemalloc.start()
    store, again = Store(tmp_path), Scripted()
    carry_out([asked], store, again)
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()
    assert (len(again.given), len(store.damaged)) == (1, 1)


def test_many_heads_that_claim_the_same_bytes_are_not_all_checked(tmp_path: Path) -> None:
    count, path = 3_000, tmp_path / "1.pack"
    size = count * 56 + 2_000_000
    heads = []
    for number in range(count):
        head = struct.pack("<8s32sQI", pack.MARK, bytes(32), size - 56 * (number + 1), 1)
        heads.append(head + struct.pack("<I", zlib.crc32(head)))
    after = pack.encode("ab" * 32, {}, {"provenance": {}}, b"", b"")
    path.write_bytes(b"".join(heads) + bytes(2_000_000) + b"junk" + after)

    class Counted(io.FileIO):
        total = 0

        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size) or b""
            self.total += len(data)
            return data

    with Counted(path) as file:
        scanned = pack.scan(file)
        assert file.total < 15 * size
    # What follows is found.
    assert scanned.records[-1] == pack.Found(b"\xab" * 32, size + 4, len(after))
    assert scanned.lost


def test_a_run_that_is_too_large_to_be_found_again_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pack, "LARGEST", 500)
    with pytest.raises(OutputError, match=r"at most .* can be kept"):
        carry_out(tasks(1), Store(tmp_path), Scripted())


# What earlier versions kept.


def write_old(folder: Path, task: Task, run: Run | None = None) -> Path:
    """A run as earlier versions kept it: one zip file."""
    run = run or sim.run_one(task.job, _native.Cancel())
    path = folder / "runs" / task.key[:2] / f"{task.key}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {"format": 1, "key": task.key, "cell": task.cell, "world": task.world, "seed": task.job.seed}
    with zipfile.ZipFile(path, "w") as file:
        text = json.dumps({**about, "attempts": 1, "seconds": 0.25})
        file.writestr("run.json", text, zipfile.ZIP_DEFLATED)
        file.writestr("summary.json", json.dumps(run.summary), zipfile.ZIP_DEFLATED)
        file.writestr("flows.parquet", run.flow_parquet)
        file.writestr("links.parquet", run.link_parquet)
    return path


def test_a_run_that_an_earlier_version_kept_is_used_and_not_changed(tmp_path: Path) -> None:
    asked = tasks(3)
    paths = [write_old(tmp_path, task) for task in asked[:2]]
    before = [path.read_bytes() for path in paths]
    part = paths[0].with_name(".fullpipe-0123456789abcdef.part")
    part.write_bytes(b"half")
    engine = Scripted()
    outcome = carry_out(asked, Store(tmp_path), engine)
    assert (outcome.found, [task.job.seed for task in engine.given]) == (2, [3])
    assert outcome.stored[asked[0].key].run() == sim.run_one(asked[0].job, _native.Cancel())
    assert outcome.stored[asked[0].key].seconds == 0.25
    assert [path.read_bytes() for path in paths] == before
    assert not part.exists(), "what a killed sweep left half written goes away"


def test_an_old_file_that_is_damaged_is_told_once(tmp_path: Path) -> None:
    (asked,) = tasks(1)
    path = write_old(tmp_path, asked)
    damage(path, path.stat().st_size // 2)
    for noted in (1, 0):
        store, engine = Store(tmp_path), Scripted()
        carry_out([asked], store, engine)
        assert (len(store.damaged), len(engine.given)) == (noted, noted)


def test_an_old_file_of_another_run_is_not_used(tmp_path: Path) -> None:
    asked, other = tasks(2)
    write_old(tmp_path, asked).write_bytes(write_old(tmp_path / "elsewhere", other).read_bytes())
    store = Store(tmp_path)
    assert store.find(asked) is None
    assert "another run" in store.damaged[0]


def test_any_flipped_bit_of_an_old_file_is_harmless_or_noticed(tmp_path: Path) -> None:
    (task,) = tasks(1)
    run = Run(task.job.alternative, "sim", 1, {"provenance": {}, "flows": []}, b"the flows", b"the links")
    path = write_old(tmp_path, task, run)
    kept = Stored(task, Place(path), 1, 0.25, run.summary)
    noticed = 0
    for _ in flipped_bits(path):
        store = Store(tmp_path)
        found = store.find(task)
        if found is None:
            noticed += 1
            assert len(store.damaged) == 1
        else:
            assert (found, store.damaged) == (kept, [])
            assert found.run() == run
    # The rest are fields that decide nothing, e.g. dates.
    assert noticed > 4 * path.stat().st_size


def test_an_old_file_whose_directory_hides_a_member_is_repeated(tmp_path: Path) -> None:
    (task,) = tasks(1)
    path = write_old(tmp_path, task)
    data = path.read_bytes()
    last = data.rindex(b"flows.parquet")
    path.write_bytes(data[:last] + b"g" + data[last + 1 :])
    store, engine = Store(tmp_path), Scripted()
    carry_out([task], store, engine)
    assert engine.given == [task]
    assert "is damaged" in store.damaged[0]
    found = Store(tmp_path).find(task)
    assert found is not None and found.run().flow_parquet


# The folder.


def test_two_sweeps_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with Store(tmp_path).held(), pytest.raises(SweepError, match="another sweep uses"):
        carry_out(tasks(1), Store(tmp_path), Scripted())


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_sweep_whose_lock_file_is_gone_writes_nothing_more(replaced: bool, tmp_path: Path) -> None:
    def remove(progress: Progress) -> None:
        if progress.runs == 1:
            (tmp_path / "lock").unlink()
            if replaced:
                (tmp_path / "lock").touch()

    with pytest.raises(SweepError, match=r"lock was removed or replaced.*; .*same command again"):
        carry_out(tasks(3), Store(tmp_path), Scripted(), watch=remove)
    assert len(kept_in(tmp_path)) == 1
    assert sum(logged(tmp_path).values()) == 1


def tiny_run(folder: Path) -> tuple[Task, Stored]:
    """A stored run of a few hundred bytes."""
    task = Task("sim", job())
    run = Run(task.job.alternative, "sim", 1, {"provenance": {}, "flows": []}, b"the flows", b"the links")
    (kept,) = Store(folder).keep([(Done(task, run, 0.25), 2)])
    return task, kept


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    task, kept = tiny_run(tmp_path)
    assert Store(tmp_path).find(task) == kept
    for _ in flipped_bits(kept.place.path):
        store = Store(tmp_path)
        assert store.find(task) is None
        assert len(store.damaged) == 1


@pytest.mark.parametrize("harm", ["removed", "damaged", "pipe"])
def test_a_run_that_is_lost_after_it_was_found_is_a_sentence(harm: str, tmp_path: Path) -> None:
    _, kept = tiny_run(tmp_path)
    kept.place.path.unlink()
    if harm == "damaged":
        kept.place.path.write_bytes(b"PK")
    elif harm == "pipe":
        os.mkfifo(kept.place.path)
    with pytest.raises(SweepError, match=r"cannot be read from .*; give the same command again"):
        kept.run()


@pytest.mark.parametrize("what", ["", "runs", "runs/1.pack"])
def test_what_is_removed_during_a_sweep_is_noticed(what: str, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"

    def remove(progress: Progress) -> None:
        if progress.runs == 1:
            (folder / what).unlink() if what.endswith(".pack") else shutil.rmtree(folder / what)

    why = "it was removed" if what.endswith(".pack") else rf"the folder .*{what or 'sweep'} does not exist"
    with pytest.raises(OutputError, match=rf"{why}.*; .*same command again"):
        carry_out(tasks(3), Store(folder), Scripted(), watch=remove)
    assert not (folder / what).exists()


@pytest.mark.parametrize("large", [False, True], ids=["the first write", "a new file"])
def test_runs_that_are_removed_before_a_file_is_begun_are_noticed(
    large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(storing, "_LARGE", 1)
    else:
        carry_out(tasks(1), Store(tmp_path), Scripted())

    def remove(progress: Progress) -> None:
        if progress.runs == 1:
            shutil.rmtree(tmp_path / "runs")

    with pytest.raises(OutputError, match=r"the folder .*runs does not exist"):
        carry_out(tasks(3), Store(tmp_path), Scripted(), watch=remove)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["lock", "log.jsonl", "runs/1.pack", "runs"])
def test_a_link_in_the_folder_is_not_followed(name: str, tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "sweep"
    if name == "runs":
        # It leads to runs of another folder.
        carry_out(tasks(1), Store(victim), Scripted())
    else:
        victim.write_text("precious")
    before = sorted(victim.rglob("*")) if name == "runs" else victim.read_text()
    link = folder / name
    link.parent.mkdir(parents=True)
    link.symlink_to(victim / "runs" if name == "runs" else victim)
    with pytest.raises(OutputError, match=rf"{name} is a symbolic link.*; remove the link"):
        carry_out(tasks(1), Store(folder), Scripted())
    assert before == (sorted(victim.rglob("*")) if name == "runs" else victim.read_text())


def test_nothing_is_removed_behind_a_linked_folder(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "sweep"
    parts = [victim / ".fullpipe-0123456789abcdef.part", victim / "ab" / ".fullpipe-0123456789abcdef.part"]
    parts[1].parent.mkdir(parents=True)
    folder.mkdir()
    for part in parts:
        part.write_text("precious")
    (folder / "runs").symlink_to(victim)
    with pytest.raises(OutputError, match=r"runs is a symbolic link"):
        carry_out(tasks(1), Store(folder), Scripted())
    assert all(part.exists() for part in parts)


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_an_old_file_behind_a_link_is_not_used(linked: str, tmp_path: Path) -> None:
    (asked,) = tasks(1)
    elsewhere = write_old(tmp_path / "elsewhere", asked)
    target = elsewhere if linked == "file" else elsewhere.parent
    link = tmp_path / "sweep" / target.relative_to(tmp_path / "elsewhere")
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    store, again = Store(tmp_path / "sweep"), Scripted()
    assert not list(store.records())
    carry_out([asked], store, again)
    assert again.given == [asked]
    assert len(store.damaged) == 1 and "is a symbolic link, which is not followed" in store.damaged[0]


@pytest.mark.parametrize("digits", [10, 250])
def test_a_file_whose_number_is_not_ours_is_ignored(digits: int, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / f"{'9' * digits}.pack").write_text("somebody's")
    store = Store(tmp_path)
    carry_out(tasks(1), store, Scripted())
    assert store.damaged == []
    assert (tmp_path / "runs" / "1.pack").exists()
    assert carry_out(tasks(1), Store(tmp_path), Scripted()).found == 1


def test_after_the_largest_number_nothing_is_kept_that_would_not_be_found(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "999999999.pack").write_bytes(pack.encode("ab" * 32, {}, {}, b"", b""))
    with pytest.raises(OutputError, match=r"999999999\.pack: there is no larger number.*move that file away"):
        carry_out(tasks(1), Store(tmp_path), Scripted())


def test_a_link_that_appears_during_a_sweep_is_not_followed(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "sweep"
    path = folder / "runs" / "1.pack"

    def swap(progress: Progress) -> None:
        if progress.runs == 1:
            path.rename(victim)
            path.symlink_to(victim)

    with pytest.raises(OutputError, match=r"1.pack is a symbolic link.*; remove the link"):
        carry_out(tasks(2), Store(folder), Scripted(), watch=swap)
    with victim.open("rb") as file:
        assert len(pack.scan(file).records) == 1


def test_the_lock_file_is_not_truncated(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("somebody's notes")
    carry_out(tasks(1), Store(tmp_path), Scripted())
    assert (tmp_path / "lock").read_text() == "somebody's notes"


def test_a_sweep_that_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    def refuse(_outcome: Outcome, _pending: list[Task]) -> None:
        raise SweepError("no")

    with pytest.raises(SweepError):
        carry_out(tasks(1), Store(tmp_path / "a" / "b"), Scripted(), begin=refuse)
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    with pytest.raises(SweepError):
        carry_out(tasks(1), Store(tmp_path / "mine"), Scripted(), begin=refuse)
    assert (tmp_path / "mine").is_dir(), "a folder that was there before stays"


# Doubts and failures.


def test_a_doubted_run_is_repeated_up_to_a_bound_at_last_alone(tmp_path: Path) -> None:
    engine = Scripted(doubts=9)
    outcome = carry_out(tasks(1), Store(tmp_path), engine, attempts=3)
    assert [task.alone for task in engine.given] == [False, False, True]
    (kept,) = outcome.stored.values()
    assert (kept.attempts, kept.untrustworthy) == (3, ["late"])
    # Asked for more, it goes on from there.
    more = Scripted(doubts=0)
    outcome = carry_out(tasks(1), Store(tmp_path), more, attempts=5)
    (kept,) = outcome.stored.values()
    assert (len(more.given), kept.attempts, kept.untrustworthy) == (1, 4, [])
    assert [task.alone for task in more.given] == [False]


def test_a_failed_run_does_not_lose_the_others_and_is_tried_again(tmp_path: Path) -> None:
    outcome = carry_out(tasks(3), Store(tmp_path), Scripted(failing=[2]))
    assert [(one.task.job.seed, one.reason) for one in outcome.failed] == [(2, "it broke")]
    assert len(outcome.stored) == 2
    assert len(logged(tmp_path, "failed")) == 1
    again = Scripted()
    carry_out(tasks(3), Store(tmp_path), again)
    assert [task.job.seed for task in again.given] == [2]


def test_progress_counts_runs_and_cost(tmp_path: Path) -> None:
    carry_out(tasks(1), Store(tmp_path), Scripted())
    seen: list[Progress] = []
    found: list[tuple[int, int]] = []

    def begin(outcome: Outcome, pending: list[Task]) -> None:
        found.append((outcome.found, len(pending)))

    carry_out(tasks(3), Store(tmp_path), Scripted(doubts=1), attempts=2, watch=seen.append, begin=begin)
    assert found == [(1, 2)]
    assert [(one.runs, one.again, one.cost_here) for one in seen] == [
        (1, 0, 0),
        (2, 1, 1),
        (3, 2, 2),
        (3, 0, 3),
        (3, 0, 4),
    ]
    assert (seen[-1].runs_in_all, seen[-1].cost, seen[-1].cost_in_all) == (3, 5, 5)


# The local engine.


def test_the_local_engine_yields_every_task_once_and_tells_failures() -> None:
    broken = Task("sim", Job(replace(job().alternative, spec_json=job().alternative.spec_json[:-1]), 1))
    ended = []
    engine = Local()
    engine.cost = lambda task: 1.0  # type: ignore[method-assign]
    for one in engine.run([*tasks(4), broken]):
        ended.append(one)
    assert sorted(one.task.job.seed for one in ended if isinstance(one, Done)) == [1, 2, 3, 4]
    (failed,) = [one for one in ended if isinstance(one, Failed)]
    assert failed.task is broken
    assert "spec" in failed.reason


def test_simulations_wait_until_those_before_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_here, "_AHEAD", 4)
    began: list[int] = []
    whole, enough = sim.run_one, threading.Event()

    def counted(job: Job, cancel: _native.Cancel) -> Run:
        began.append(job.seed)
        if len(began) >= 4:
            enough.set()
        return whole(job, cancel)

    monkeypatch.setattr(sim, "run_one", counted)
    running = Local(cores=2).run(tasks(50))
    next(running)
    assert enough.wait(timeout=60)
    running.close()
    # The caller did not come back after the first.
    assert len(began) == 4


def test_simulations_that_ended_while_others_were_stored_are_yielded_together() -> None:
    ended: list[Ended] = []
    for one in Local(cores=2).run(tasks(30)):
        ended.append(one)
    assert len({one.task.key for one in ended}) == 30
    assert not ended[-1].more, "nobody waits for more after the last"


def test_an_error_of_the_engine_itself_ends_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(BaseException):
        pass

    def broken(_task: Task, _stop: object) -> Ended:
        raise Odd

    monkeypatch.setattr("fullpipe.engines.local._carry_out", broken)
    with pytest.raises(Odd):
        list(Local(cores=2).run(tasks(3)))


def test_kernel_runs_share_the_machine_by_their_rates() -> None:
    engine = Local(cores=2)
    slow = [Task("kernel", job(seed, rate="2 Mbit/s")) for seed in range(1, 19)]
    fast = Task("kernel", job(rate="500 Mbit/s"))
    alone = replace(slow[0], alone=True)
    assert all(engine._fits(slow[number], slow[:number]) for number in range(16))
    assert not engine._fits(slow[16], slow[:16])  # No more than eight a core.
    middle = [Task("kernel", job(seed, rate="80 Mbit/s")) for seed in (1, 2, 3)]
    assert middle[0].job.rate_bps * 3 > 2 * kernel.RATE_BPS_A_CORE
    assert engine._fits(middle[1], middle[:1])
    assert not engine._fits(middle[2], middle[:2])
    assert engine._fits(fast, [])
    assert not engine._fits(fast, slow[:1])
    assert not engine._fits(slow[0], [fast])
    assert not engine._fits(alone, slow[1:2])
    assert not engine._fits(slow[1], [alone])
    assert not engine._fits(slow[0], tasks(1)), "nothing is simulated meanwhile"
    assert engine.cost(fast) == pytest.approx(0.2)
    assert engine.cost(slow[0]) == pytest.approx(0.2 / 16)


def test_an_estimate_is_how_long_runs_take_side_by_side() -> None:
    engine = Local(cores=2)

    def kernel_run(rate: str, seconds: int) -> Task:
        return Task("kernel", job(rate=rate, duration=f"{seconds} s"))

    # All at once, and the shorter ones beside the longest.
    slow = [kernel_run("2 Mbit/s", 60), *[kernel_run("2 Mbit/s", 7)] * 15]
    assert engine.takes_s(slow) == 60
    # One more waits for a place.
    assert engine.takes_s([*slow, kernel_run("2 Mbit/s", 7)]) == 60
    assert engine.takes_s([kernel_run("2 Mbit/s", 7)] * 17) == 14
    # One at a time.
    assert engine.takes_s([kernel_run("500 Mbit/s", 7)] * 3) == 21
    # Simulations first: two cores, but none is shorter than itself.
    assert engine.takes_s(tasks(4), lambda task: 10.0) == 20
    assert engine.takes_s([*tasks(1), slow[1]], lambda task: 10.0) == 17
    assert engine.takes_s([]) == 0


def test_a_rate_that_changes_counts_with_its_highest() -> None:
    document = {
        "duration": "1 s",
        "path": {"rate": "1 Mbit/s", "rtt": "20 ms", "changes": [{"at": "500 ms", "rate": "30 Mbit/s"}]},
        "flows": [{"controller": "reno"}],
    }
    assert Job(scenario.from_document(document).alternatives[0], 1).rate_bps == 30e6


def test_the_slowest_of_several_links_counts() -> None:
    document = {
        "duration": "1 s",
        "path": {
            "rate": "10 Mbit/s",
            "rtt": "20 ms",
            "before": [{"kind": "link", "rate": "1 Gbit/s", "buffer": "2 GB"}],
        },
        "flows": [{"controller": "reno"}],
    }
    assert Job(scenario.from_document(document).alternatives[0], 1).rate_bps == 10e6


def test_a_delivery_trace_counts_with_its_mean(tmp_path: Path) -> None:
    (tmp_path / "link.deliveries").write_text("1\n1\n2\n4\n", encoding="ascii")
    document = {
        "duration": "1 s",
        "path": {"deliveries": "link.deliveries", "buffer": "100 packets", "rtt": "20 ms"},
        "flows": [{"controller": "reno"}],
    }
    loaded = scenario.from_document(document, base_dir=tmp_path)
    assert Job(loaded.alternatives[0], 1).rate_bps == 12e6


def test_a_radio_counts_with_its_highest_rate() -> None:
    radio = {"kind": "cellular", "rates": ["5 Mbit/s", "20 Mbit/s"], "review": "1 s", "demand": "10 ms"}
    document = {
        "duration": "1 s",
        "path": {"rate": "1 Gbit/s", "rtt": "20 ms", "before": [{**radio, "buffer": "1 MB"}]},
        "flows": [{"controller": "reno"}],
    }
    assert Job(scenario.from_document(document).alternatives[0], 1).rate_bps == 20e6


def test_closing_the_engine_ends_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = [], []

    def waits(job: Job, tick: object) -> Run:
        begun.append(job.seed)
        try:
            while True:
                tick(0.0)  # type: ignore[operator]
                time.sleep(0.01)
        finally:
            ended.append(job.seed)

    monkeypatch.setattr(kernel, "run_one", waits)
    running = Local(cores=1).run([*tasks(1), *tasks(2, "kernel")])
    assert isinstance(next(running), Done)
    with pytest.MonkeyPatch.context() as patch:
        # An interrupt arrives while the engine waits.
        def interrupted(*_: object, **__: object) -> None:
            while len(begun) < 2:
                time.sleep(0.01)
            raise KeyboardInterrupt

        patch.setattr("fullpipe.engines.local.wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(running)
    assert sorted(ended) == [1, 2]


# Whatever ends a sweep.

SWEEP = """
import signal
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_sweeps import job
from fullpipe.engines.local import Local
from fullpipe.sweeps.store import Store
from fullpipe.sweeps.sweep import carry_out
from fullpipe.engines.task import Task

class Patient(Local):
    def run(self, tasks):
        for number, ended in enumerate(super().run(tasks)):
            if number == {wait_after}:
                signal.pause()
            yield ended

tasks = [Task("sim", job(seed, rate="1 Gbit/s", duration="12 s")) for seed in range(1, 21)]
carry_out(tasks, Store(Path({folder!r})), Patient(cores=1))
"""


def program(folder: Path, wait_after: int | None = None) -> list[str]:
    """A sweep of 20 runs. After `wait_after` runs it waits for a signal, however late that comes."""
    here = str(Path(__file__).parent)
    text = SWEEP.format(tests=here, folder=str(folder), wait_after=wait_after)
    return [sys.executable, "-c", textwrap.dedent(text)]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_is_ended_goes_on_where_it_stopped(how: signal.Signals, tmp_path: Path) -> None:
    for after in (3, 9):
        # Usually the signal arrives during a run. The sweep stores at most 14 runs before it waits for one.
        running = subprocess.Popen(program(tmp_path, wait_after=7), stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while sum(logged(tmp_path).values()) < after:
            assert time.monotonic() < deadline
            assert running.poll() is None
            time.sleep(0.005)
        running.send_signal(how)
        assert running.wait(timeout=30) != 0
    before = sum(logged(tmp_path).values())
    assert before < 20
    subprocess.run(program(tmp_path), check=True, timeout=120)
    ran = logged(tmp_path)
    assert set(ran.values()) == {1}
    # A run that was kept in the very moment of the kill may be missing in the log, but was not run again.
    assert 18 <= len(ran) <= 20
    assert len(kept_in(tmp_path)) == 20


QUICK = """
import os
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_sweeps import quick_tasks
from fullpipe.engines.local import Local
from fullpipe.sweeps.store import Store
from fullpipe.sweeps.sweep import carry_out
from fullpipe.worlds import sim

marks = os.open({marks!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
told = os.open({told!r}, os.O_WRONLY | os.O_CREAT)
whole = sim.run_one

def marked(job, cancel):
    run = whole(job, cancel)
    os.write(marks, b"%6d\\n" % job.seed)
    return run

sim.run_one = marked
carry_out(
    quick_tasks(),
    Store(Path({folder!r})),
    Local(cores=2),
    watch=lambda progress: os.pwrite(told, b"%6d" % progress.runs, 0),
)
"""
QUICK_RUNS = 4000


def quick_tasks() -> list[Task]:
    """Runs of next to no work."""
    loaded = scenario.from_document(
        {
            "duration": "1 ms",
            "path": {"rate": "5 Mbit/s", "rtt": "10 ms"},
            "flows": [{"controller": "reno"}],
            "record": {"series": False},
        }
    )
    return [Task("sim", Job(loaded.alternatives[0], seed)) for seed in range(1, QUICK_RUNS + 1)]


def test_kills_at_random_moments_lose_no_run_that_was_told_and_repeat_few(tmp_path: Path) -> None:
    folder, marks, told = tmp_path / "sweep", tmp_path / "marks", tmp_path / "told"
    text = QUICK.format(
        tests=str(Path(__file__).parent), marks=str(marks), told=str(told), folder=str(folder)
    )
    chance, kills = random.Random(11), 5

    def executed() -> Counter[str]:
        return Counter(marks.read_text().split()) if marks.exists() else Counter()

    for _ in range(kills):
        running = subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.DEVNULL)
        goal = sum(executed().values()) + chance.randrange(1, QUICK_RUNS // kills // 2)
        deadline = time.monotonic() + 60
        while marks.stat().st_size // 7 < goal if marks.exists() else True:
            assert time.monotonic() < deadline
            assert running.poll() is None
        running.kill()
        running.wait()
        kept = kept_in(folder)
        assert len(kept) >= (int(told.read_text()) if told.exists() else 0)
    assert len(kept) < QUICK_RUNS, "every kill came during the sweep"
    subprocess.run([sys.executable, "-c", text], check=True, timeout=120)
    kept, ran = kept_in(folder), executed()
    assert set(kept) == {task.key for task in quick_tasks()}
    assert set(kept.values()) == {1}, "a run that is stored is not run again"
    assert set(logged(folder).values()) == {1}
    # What ended and was not stored yet, and what was under way on two cores.
    assert sum(ran.values()) - QUICK_RUNS <= kills * (engine_here._AHEAD + 2)


def test_a_full_disk_is_reported_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.fdatasync
    calls = []

    def full_after_two_runs(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(descriptor)

    monkeypatch.setattr(files.os, "fdatasync", full_after_two_runs)
    with pytest.raises(OutputError, match=r"No space left.*free about 1 MB.*same command again"):
        carry_out(tasks(5), Store(tmp_path), Scripted())
    assert len(kept_in(tmp_path)) == 2
    monkeypatch.setattr(files.os, "fdatasync", whole)
    again, store = Scripted(), Store(tmp_path)
    carry_out(tasks(5), store, again)
    assert (len(again.given), store.damaged) == (3, [])
    assert set(logged(tmp_path).values()) == {1}


def test_a_limit_on_the_size_of_files_cuts_no_run_in_two(tmp_path: Path) -> None:
    carry_out(tasks(2), Store(tmp_path), Scripted())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OutputError, match=r"2\.pack: File too large; .*ulimit -f"):
            carry_out(tasks(40), Store(tmp_path), Scripted())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    stored = len(kept_in(tmp_path))
    assert 2 < stored < 40
    again, store = Scripted(), Store(tmp_path)
    carry_out(tasks(40), store, again)
    assert (len(again.given), store.damaged) == (40 - stored, [])


@pytest.mark.full_disk
def test_the_first_run_that_cannot_be_kept_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"1\.pack: File too large"):
        carry_out(tasks(2), Store(tmp_path), Scripted())
    assert names(tmp_path) == []


READ_ONLY = """
import os
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_sweeps import Scripted, tasks
from fullpipe.sweeps.store import Store
from fullpipe.sweeps.sweep import carry_out

# Root writes everywhere. The folder is named from inside, because its parents are root's own.
os.chdir({folder!r})
if os.getuid() == 0:
    os.setuid(65534)
engine = Scripted()
try:
    carry_out(tasks(3), Store(Path("sweep")), engine)
except OSError as error:
    print(len(engine.given), error)
"""


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    carry_out(tasks(2), Store(folder), Scripted())
    tmp_path.chmod(0o755)
    (folder / "runs").chmod(0o555)
    for name in ("lock", "log.jsonl"):
        (folder / name).chmod(0o666)
    text = READ_ONLY.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    (folder / "runs").chmod(0o755)
    assert done.stdout.startswith("1 cannot write sweep/runs/2.pack: Permission denied; make"), done.stderr


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """In a mount namespace of its own, so that the disk goes with the process."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=250k none "{disk}"'
    saved = tmp_path / "saved"
    inside = f'{mount} && "$@"; code=$?; cp -r "{disk}/sweep" "{saved}"; exit $code'
    enter = ["unshare", "--mount", "sh", "-c", inside, "sh"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount a small disk")
    done = subprocess.run(
        [*enter, *program(disk / "sweep")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert "OutputError: cannot write" in done.stderr
    assert "No space left on device; free about" in done.stderr
    store = Store(saved)
    assert 0 < len(list(store.records())) < 20
    assert store.damaged == []
