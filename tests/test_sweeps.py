"""Sweeps do every run once, whatever ends them. Damage, full disks and failed runs lose nothing."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from fullpipe import _native
from fullpipe.ask import scenario
from fullpipe.engines import Done, Ended, Failed
from fullpipe.engines.local import RATE_BPS_A_CORE, Local
from fullpipe.engines.task import Task
from fullpipe.errors import OutputError, SweepError
from fullpipe.results.runs import Run
from fullpipe.sweeps import store as storing
from fullpipe.sweeps.store import Store, Stored
from fullpipe.sweeps.sweep import Outcome, Progress, carry_out
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


class Scripted:
    """An engine that simulates, with the given doubts and failures, and remembers its tasks."""

    def __init__(self, doubts: int = 0, failing: Iterable[int] = ()) -> None:
        self.given: list[Task] = []
        self._doubts, self._failing = doubts, set(failing)

    def cost(self, task: Task) -> float:
        return 1.0

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        for task in tasks:
            self.given.append(task)
            if task.job.seed in self._failing:
                yield Failed(task, "it broke")
                continue
            run = sim.run_one(task.job, _native.Cancel())
            often = sum(one.key == task.key for one in self.given)
            if often <= self._doubts:
                run.summary["provenance"]["untrustworthy"] = ["late"]
            yield Done(task, run, 0.1)


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


@pytest.mark.parametrize("harm", ["truncated", "empty", "flipped", "text", "swapped"])
def test_a_damaged_file_is_told_and_its_run_repeated(harm: str, tmp_path: Path) -> None:
    asked = tasks(2)
    outcome = carry_out(asked, Store(tmp_path), Scripted())
    path, other = (outcome.stored[task.key].path for task in asked)
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(
        {
            "truncated": data[:-7],
            "empty": b"",
            "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
            "text": b"not a zip",
            "swapped": other.read_bytes(),
        }[harm]
    )
    again, store = Scripted(), Store(tmp_path)
    repeated = carry_out(asked, store, again)
    assert again.given == asked[:1]
    assert len(store.damaged) == 1
    assert "is damaged" in store.damaged[0]
    assert repeated.of(asked)[0].path.read_bytes() != other.read_bytes()
    assert Store(tmp_path).find(asked[0]) is not None


def test_what_a_killed_sweep_left_half_written_goes_away(tmp_path: Path) -> None:
    carry_out(tasks(1), Store(tmp_path), Scripted())
    (folder,) = (tmp_path / "runs").iterdir()
    part = folder / ".fullpipe-0123456789abcdef.part"
    part.write_bytes(b"half")
    carry_out(tasks(1), Store(tmp_path), Scripted())
    assert not part.exists()


def test_two_sweeps_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with Store(tmp_path).held(), pytest.raises(SweepError, match="another sweep uses"):
        carry_out(tasks(1), Store(tmp_path), Scripted())


def tiny_run(folder: Path) -> tuple[Task, Stored]:
    """A stored run of a few hundred bytes."""
    task = Task("sim", job())
    run = Run(task.job.alternative, "sim", 1, {"provenance": {}, "flows": []}, b"the flows", b"the links")
    return task, Store(folder).keep(Done(task, run, 0.25), 2)


def test_any_flipped_bit_is_harmless_or_noticed(tmp_path: Path) -> None:
    task, kept = tiny_run(tmp_path)
    data = kept.path.read_bytes()
    noticed = 0
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        kept.path.write_bytes(damaged)
        store = Store(tmp_path)
        found = store.find(task)
        if found is None:
            noticed += 1
            assert len(store.damaged) == 1
        else:
            assert (found, store.damaged) == (kept, [])
            assert found.run() == kept_run(kept)
    # The rest are fields that decide nothing, e.g. dates.
    assert noticed > 4 * len(data)


def kept_run(kept: Stored) -> Run:
    return Run(kept.task.job.alternative, "sim", 1, kept.summary, b"the flows", b"the links")


def test_a_run_whose_directory_hides_a_member_is_repeated(tmp_path: Path) -> None:
    task, kept = tiny_run(tmp_path)
    data = kept.path.read_bytes()
    last = data.rindex(b"flows.parquet")
    kept.path.write_bytes(data[:last] + b"g" + data[last + 1 :])
    store, engine = Store(tmp_path), Scripted()
    carry_out([task], store, engine)
    assert engine.given == [task]
    assert "is damaged" in store.damaged[0]
    found = Store(tmp_path).find(task)
    assert found is not None and found.run().flow_parquet


@pytest.mark.parametrize("harm", ["removed", "damaged", "pipe"])
def test_a_run_that_is_lost_after_it_was_found_is_a_sentence(harm: str, tmp_path: Path) -> None:
    _, kept = tiny_run(tmp_path)
    kept.path.unlink()
    if harm == "damaged":
        kept.path.write_bytes(b"PK")
    elif harm == "pipe":
        os.mkfifo(kept.path)
    with pytest.raises(SweepError, match=r"cannot be read from .*; give the same command again"):
        kept.run()


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "runs"])
def test_a_folder_that_is_removed_during_a_sweep(whole: bool, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"

    def remove(progress: Progress) -> None:
        if progress.runs == 1:
            shutil.rmtree(folder if whole else folder / "runs")

    if whole:
        with pytest.raises(OutputError, match=r"the folder .*sweep does not exist; .*same command again"):
            carry_out(tasks(3), Store(folder), Scripted(), watch=remove)
        assert not folder.exists()
    else:
        outcome = carry_out(tasks(3), Store(folder), Scripted(), watch=remove)
        assert len(list(folder.glob("runs/*/*.zip"))) == 2
        with pytest.raises(SweepError, match="cannot be read"):
            outcome.stored[tasks(1)[0].key].run()


@pytest.mark.parametrize("name", ["lock", "log.jsonl", "run"])
def test_a_link_in_the_folder_is_not_followed(name: str, tmp_path: Path) -> None:
    (asked,) = tasks(1)
    victim, folder = tmp_path / "victim", tmp_path / "sweep"
    victim.write_text("precious")
    link = folder / (name if name != "run" else f"runs/{asked.key[:2]}/{asked.key}.zip")
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    if name == "run":
        carry_out([asked], Store(folder), Scripted())
        assert link.is_file() and not link.is_symlink()
    else:
        with pytest.raises(OutputError, match=rf"{name} is a symbolic link.*; remove the link"):
            carry_out([asked], Store(folder), Scripted())
    assert victim.read_text() == "precious"


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


def test_kernel_runs_share_the_machine_by_their_rates() -> None:
    engine = Local(cores=2)
    slow = [Task("kernel", job(seed, rate="2 Mbit/s")) for seed in range(1, 19)]
    fast = Task("kernel", job(rate="500 Mbit/s"))
    alone = replace(slow[0], alone=True)
    assert all(engine._fits(slow[number], slow[:number]) for number in range(16))
    assert not engine._fits(slow[16], slow[:16])  # No more than eight a core.
    middle = [Task("kernel", job(seed, rate="80 Mbit/s")) for seed in (1, 2, 3)]
    assert middle[0].rate_bps * 3 > 2 * RATE_BPS_A_CORE
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
    assert Task("kernel", Job(scenario.from_document(document).alternatives[0], 1)).rate_bps == 30e6


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
    assert Task("kernel", Job(scenario.from_document(document).alternatives[0], 1)).rate_bps == 10e6


def test_a_delivery_trace_counts_with_its_mean(tmp_path: Path) -> None:
    (tmp_path / "link.deliveries").write_text("1\n1\n2\n4\n", encoding="ascii")
    document = {
        "duration": "1 s",
        "path": {"deliveries": "link.deliveries", "buffer": "100 packets", "rtt": "20 ms"},
        "flows": [{"controller": "reno"}],
    }
    loaded = scenario.from_document(document, base_dir=tmp_path)
    assert Task("kernel", Job(loaded.alternatives[0], 1)).rate_bps == 12e6


def test_a_radio_counts_with_its_highest_rate() -> None:
    radio = {"kind": "cellular", "rates": ["5 Mbit/s", "20 Mbit/s"], "review": "1 s", "demand": "10 ms"}
    document = {
        "duration": "1 s",
        "path": {"rate": "1 Gbit/s", "rtt": "20 ms", "before": [{**radio, "buffer": "1 MB"}]},
        "flows": [{"controller": "reno"}],
    }
    assert Task("kernel", Job(scenario.from_document(document).alternatives[0], 1)).rate_bps == 20e6


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
from fullpipe.sweeps.store import Store, Stored
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
    assert len(list(tmp_path.glob("runs/*/*.zip"))) == 20


def test_a_full_disk_is_reported_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.fsync
    calls = []

    def full_after_two_runs(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 4:  # Two a run: the file and its folder.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(descriptor)

    monkeypatch.setattr(storing.os, "fsync", full_after_two_runs)
    with pytest.raises(OutputError, match=r"No space left.*free about 1 MB.*same command again"):
        carry_out(tasks(5), Store(tmp_path), Scripted())
    assert len(list(tmp_path.glob("runs/*/*"))) == 2
    monkeypatch.setattr(storing.os, "fsync", whole)
    again = Scripted()
    carry_out(tasks(5), Store(tmp_path), again)
    assert len(again.given) == 3
    assert set(logged(tmp_path).values()) == {1}


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """In a mount namespace of its own, so that the disk goes with the process."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=250k none "{disk}"'
    inside = f'{mount} && "$@"; code=$?; ls -R "{disk}" | grep -c zip$; exit $code'
    enter = ["unshare", "--mount", "sh", "-c", inside, "sh"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount a small disk")
    done = subprocess.run(
        [*enter, *program(disk / "sweep")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert "OutputError: cannot write" in done.stderr
    assert "No space left on device; free about" in done.stderr
    assert 0 < int(done.stdout.split()[-1]) < 20
