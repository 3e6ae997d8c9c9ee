"""The store gives back what was kept. Damage, links and strange files cost only the runs that they touch."""

import errno
import io
import json
import os
import random
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fullpipe import _native, files
from fullpipe.errors import OutputError, SweepError
from fullpipe.measures.run import Run
from fullpipe.runs import pack
from fullpipe.runs.engines import Done
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store, Stored
from fullpipe.runs.sweep import carry_out
from fullpipe.runs.worlds import sim
from fullpipe.runs.worlds.world import Stop
from sweeping import Scripted, damage, flipped_bits, job, names, tasks

# Addresses.


def test_run_key_covers_only_relevant_input(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_world_builds_are_known() -> None:
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
    fresh = sim.WORLD.run(task.job, Stop())
    run = found.run()
    assert (run.summary, run.flow_parquet) == (fresh.summary, fresh.flow_parquet)
    assert found.light().flow_parquet == b""
    assert outcome.of([task, Task("sim", job(9))]) == [outcome.stored[task.key]]


def test_every_stored_run_can_be_listed(tmp_path: Path) -> None:
    carry_out(tasks(3), Store(tmp_path), Scripted(doubts=1), attempts=2)
    damage(tmp_path / "runs" / "1.pack", -1)
    records = list(Store(tmp_path).records())
    assert sorted(one.about["seed"] for one in records) == [1, 2, 3]
    attempts = {one.about["seed"]: one.about["attempts"] for one in records}
    # The newest attempt at the third run is damaged.
    assert attempts == {1: 2, 2: 2, 3: 1}


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
def test_damage_costs_only_affected_runs(harm: str, tmp_path: Path) -> None:
    asked = tasks(3)
    outcome = carry_out(asked, Store(tmp_path), Scripted())
    path = tmp_path / "runs" / "1.pack"
    begins = [outcome.stored[task.key].place.at for task in asked]
    how, lost, message = HARMS[harm]
    harmed = how(path.read_bytes(), *begins[1:])
    path.write_bytes(harmed)
    # Who only looks is told, too, and changes nothing.
    looking = Store(tmp_path)
    assert [task.job.seed for task in asked if looking.find(task) is None] == lost
    assert len(looking.damaged) == 1 and message in looking.damaged[0]
    assert path.read_bytes() == harmed
    again, store = Scripted(), Store(tmp_path)
    repeated = carry_out(asked, store, again)
    assert [task.job.seed for task in again.given] == lost
    assert len(store.damaged) == 1 and message in store.damaged[0]
    for task in asked:
        assert repeated.stored[task.key].run() == sim.WORLD.run(task.job, Stop())
    # That was the end of it. What was not a run of ours is kept.
    last, third = Scripted(), Store(tmp_path)
    carry_out(asked, third, last)
    assert (last.given, third.damaged) == ([], [])
    asides = list((tmp_path / "runs").glob("*.damaged"))
    assert [one.read_bytes() for one in asides] == ([harmed] if message == "is damaged" else [])


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


def test_two_damages_share_one_note(tmp_path: Path) -> None:
    asked = tasks(5)
    outcome = carry_out(asked, Store(tmp_path), Scripted())
    for number in (1, 3):
        damage(tmp_path / "runs" / "1.pack", outcome.stored[asked[number].key].place.at)
    again, store = Scripted(), Store(tmp_path)
    carry_out(asked, store, again)
    assert [task.job.seed for task in again.given] == [2, 4]
    (note,) = store.damaged
    assert note.endswith("kept as 1.pack.damaged")


def test_repeatedly_damaged_file_gets_new_name(tmp_path: Path) -> None:
    carry_out(tasks(3), Store(tmp_path), Scripted())
    for aside in ("1.pack.damaged", "1.pack.damaged-2"):
        damage(tmp_path / "runs" / "1.pack", 0)
        store = Store(tmp_path)
        carry_out(tasks(3), store, Scripted())
        (note,) = store.damaged
        assert note.endswith(f"kept as {aside}")
        assert (tmp_path / "runs" / aside).exists()


def test_damaged_repetition_falls_back_to_previous(tmp_path: Path) -> None:
    carry_out(tasks(1), Store(tmp_path), Scripted(doubts=9), attempts=2)
    damage(tmp_path / "runs" / "1.pack", -1)
    store, again = Store(tmp_path), Scripted(doubts=9)
    carry_out(tasks(1), store, again, attempts=2)
    assert len(again.given) == 1 and len(store.damaged) == 1
    (kept,) = carry_out(tasks(1), Store(tmp_path), Scripted(), attempts=2).stored.values()
    assert kept.attempts == 2


def test_damaged_file_stays_if_immovable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_directory_named_like_pack_is_reported(tmp_path: Path) -> None:
    (tmp_path / "runs" / "3.pack").mkdir(parents=True)
    os.mkfifo(tmp_path / "runs" / "4.pack")
    store = Store(tmp_path)
    carry_out(tasks(1), store, Scripted())
    assert ["is not a regular file" in note for note in store.damaged] == [True, True]
    assert names(tmp_path) == ["3.pack", "4.pack", "5.pack"]


# The file of many runs.


@pytest.mark.parametrize("size", [0, 1, 5000, 70_000, 3_000_000])
def test_record_survives_a_round_trip(size: int) -> None:
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
    "not supported, a number": body_of({"provenance": {"unsupported": 5}}),
    "not supported, numbers": body_of({"provenance": {"unsupported": [5]}}),
    "summary deep": body_of({}, lengths=[100_000, 0, 0], packed=b"[" * 100_000),
}


@pytest.mark.parametrize("junk", [b"", b"junk"], ids=["alone", "junk"])
@pytest.mark.parametrize("strange", STRANGE)
def test_invalid_body_costs_one_run(strange: str, junk: bytes, tmp_path: Path) -> None:
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


def test_decompression_bomb_is_refused() -> None:
    bomb = zlib.compress(bytes(200_000_000), 9)
    for lengths in ([18, 0, 0], [18, 0, 200_000_000 - 18]):
        data = crafted("ab" * 32, body_of({"provenance": {}}, deflated=True, lengths=lengths, packed=bomb))
        tracemalloc.start()
        with pytest.raises(pack.Damaged):
            pack.decode(data, "ab" * 32)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        tracemalloc.stop()


@pytest.mark.parametrize("claimed", [10**12 - 56, 1 << 28], ids=["all", "the largest"])
def test_sparse_file_is_not_loaded(claimed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_overlapping_heads_are_not_all_checked(tmp_path: Path) -> None:
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


def test_oversized_run_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "LARGEST", 500)
    with pytest.raises(OutputError, match=r"at most .* can be kept"):
        carry_out(tasks(1), Store(tmp_path), Scripted())


# The folder.


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
def test_run_lost_after_lookup_is_error(harm: str, tmp_path: Path) -> None:
    _, kept = tiny_run(tmp_path)
    kept.place.path.unlink()
    if harm == "damaged":
        kept.place.path.write_bytes(b"PK")
    elif harm == "pipe":
        os.mkfifo(kept.place.path)
    with pytest.raises(SweepError, match=r"cannot be read from .*; give the same command again"):
        kept.run()


@pytest.mark.parametrize("name", ["lock", "log.jsonl", "runs/1.pack", "runs"])
def test_symlink_in_store_is_not_followed(name: str, tmp_path: Path) -> None:
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


def test_symlinked_store_is_not_cleaned(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("digits", [10, 250])
def test_foreign_file_number_is_ignored(digits: int, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / f"{'9' * digits}.pack").write_text("somebody's")
    store = Store(tmp_path)
    carry_out(tasks(1), store, Scripted())
    assert store.damaged == []
    assert (tmp_path / "runs" / "1.pack").exists()
    assert carry_out(tasks(1), Store(tmp_path), Scripted()).found == 1


def test_largest_file_number_refuses_more_runs(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "999999999.pack").write_bytes(pack.encode("ab" * 32, {}, {}, b"", b""))
    with pytest.raises(OutputError, match=r"999999999\.pack: there is no larger number.*move that file away"):
        carry_out(tasks(1), Store(tmp_path), Scripted())
