"""Sweeps do every run once, whatever ends them. Full disks and failed runs lose nothing."""

import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

import pytest

from fullpipe import files
from fullpipe.errors import OutputError, SweepError
from fullpipe.runs import pack
from fullpipe.runs import store as storing
from fullpipe.runs.engines import local as engine_here
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import Outcome, Progress, carry_out
from fullpipe.runs.worlds.job import Job
from fullpipe.scenario import scenario
from sweeping import Scripted, job, kept_in, logged, names, tasks

# What is kept, and when.


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


def test_simultaneous_runs_share_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    whole = os.fdatasync
    monkeypatch.setattr(files.os, "fdatasync", lambda file: (synced.append(file), whole(file)))
    asked, reported = tasks(5), []

    def watch(progress: Progress) -> None:
        # A second store reads only what is on the disk.
        found = [task for task in asked if Store(tmp_path).find(task)]
        assert len(found) == progress.runs - progress.failed
        reported.append(progress.runs)

    outcome = carry_out(asked, Store(tmp_path), Scripted(failing=[2], together=True), watch=watch)
    assert (reported, len(synced), len(outcome.stored), len(outcome.failed)) == ([0, 5], 1, 4, 1)
    assert sum(logged(tmp_path).values()) == 4


def test_many_series_take_several_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fullpipe.runs.sweep._MOST_TOGETHER", 1)
    reported: list[int] = []
    carry_out(tasks(3), Store(tmp_path), Scripted(together=True), watch=lambda one: reported.append(one.runs))
    assert reported == [0, 1, 2, 3]


def test_each_sweep_has_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_externally_changed_file_is_untouched(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "1.pack"

    def append(progress: Progress) -> None:
        if progress.runs == 1:
            with path.open("ab") as file:
                file.write(b"from elsewhere")

    outcome = carry_out(tasks(3), Store(tmp_path), Scripted(), watch=append)
    assert path.read_bytes().endswith(b"from elsewhere")
    assert [outcome.stored[task.key].place.path.name for task in tasks(3)] == ["1.pack", "2.pack", "2.pack"]
    assert all(stored.run().flow_parquet for stored in outcome.stored.values())


# The folder.


def test_second_sweep_in_directory_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path).held(), pytest.raises(SweepError, match="another sweep uses"):
        carry_out(tasks(1), Store(tmp_path), Scripted())


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_removed_lock_file_stops_writing(replaced: bool, tmp_path: Path) -> None:
    def remove(progress: Progress) -> None:
        if progress.runs == 1:
            (tmp_path / "lock").unlink()
            if replaced:
                (tmp_path / "lock").touch()

    with pytest.raises(SweepError, match=r"lock was removed or replaced.*; .*same command again"):
        carry_out(tasks(3), Store(tmp_path), Scripted(), watch=remove)
    assert len(kept_in(tmp_path)) == 1
    assert sum(logged(tmp_path).values()) == 1


@pytest.mark.parametrize("what", ["", "runs", "runs/1.pack"])
def test_removal_during_sweep_is_detected(what: str, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"

    def remove(progress: Progress) -> None:
        if progress.runs == 1:
            (folder / what).unlink() if what.endswith(".pack") else shutil.rmtree(folder / what)

    why = "it was removed" if what.endswith(".pack") else rf"the folder .*{what or 'sweep'} does not exist"
    with pytest.raises(OutputError, match=rf"{why}.*; .*same command again"):
        carry_out(tasks(3), Store(folder), Scripted(), watch=remove)
    assert not (folder / what).exists()


@pytest.mark.parametrize("large", [False, True], ids=["the first write", "a new file"])
def test_removal_before_new_file_is_detected(
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


def test_link_appearing_during_sweep_is_refused(tmp_path: Path) -> None:
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


def test_refused_sweep_leaves_no_directory(tmp_path: Path) -> None:
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


def test_untrusted_run_is_repeated_finally_alone(tmp_path: Path) -> None:
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


def test_failed_run_is_retried_keeping_others(tmp_path: Path) -> None:
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


# Whatever ends a sweep.


SWEEP = """
import signal
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from sweeping import job
from fullpipe.runs.engines.local import Local
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import carry_out
from fullpipe.runs.engines.task import Task

class Patient(Local):
    def run(self, tasks):
        for number, ended in enumerate(super().run(tasks)):
            if number == {wait_after}:
                Path({folder!r} + ".waits").touch()
                signal.pause()
            yield ended

tasks = [Task("sim", job(seed, rate="1 Gbit/s", duration="3 s")) for seed in range(1, 21)]
carry_out(tasks, Store(Path({folder!r})), Patient(cores=1))
"""


def program(folder: Path, wait_after: int | None = None) -> list[str]:
    """A sweep of 20 runs. After `wait_after` runs it waits for a signal, however late that comes."""
    here = str(Path(__file__).parent)
    text = SWEEP.format(tests=here, folder=str(folder), wait_after=wait_after)
    return [sys.executable, "-c", textwrap.dedent(text)]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_ended_sweep_resumes(how: signal.Signals, tmp_path: Path) -> None:
    for after in (3, 9):
        # Usually the signal arrives during a run. The sweep stores at most 14 runs before it waits for one.
        # How many are stored by then depends on how long they took, because runs are stored together.
        waits = Path(f"{tmp_path}.waits")
        waits.unlink(missing_ok=True)
        running = subprocess.Popen(program(tmp_path, wait_after=7), stderr=subprocess.DEVNULL)
        while sum(logged(tmp_path).values()) < after and not waits.exists():
            assert running.poll() is None
            time.sleep(0.005)
        running.send_signal(how)
        assert running.wait(timeout=30) != 0
    before = sum(logged(tmp_path).values())
    assert before < 20
    subprocess.run(program(tmp_path), check=True, timeout=600)
    ran = logged(tmp_path)
    assert set(ran.values()) == {1}
    # A run that was kept in the very moment of the kill may be missing in the log, but was not run again.
    assert 18 <= len(ran) <= 20
    assert len(kept_in(tmp_path)) == 20


LONG = """
import os, signal, sys, threading
sys.path.insert(0, {tests!r})
from pathlib import Path
from sweeping import job
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import carry_out

threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    carry_out([Task("sim", job(rate="1 Gbit/s", duration="24 h"))], Store(Path({folder!r})), Local(cores=1))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_interrupt_ends_hours_long_sweep(tmp_path: Path) -> None:
    text = LONG.format(tests=str(Path(__file__).parent), folder=str(tmp_path / "sweep"))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr


QUICK = """
import os
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from test_sweep import quick_tasks
from fullpipe.runs.engines.local import Local
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import carry_out
from fullpipe.runs.worlds import sim

marks = os.open({marks!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
reported = os.open({reported!r}, os.O_WRONLY | os.O_CREAT)
whole = sim.Simulator.run

def marked(self, job, *more):
    run = whole(self, job, *more)
    os.write(marks, b"%6d\\n" % job.seed)
    return run

sim.Simulator.run = marked
carry_out(
    quick_tasks(),
    Store(Path({folder!r})),
    Local(cores=2),
    watch=lambda progress: os.pwrite(reported, b"%6d" % progress.runs, 0),
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


def test_random_kills_lose_no_reported_run(tmp_path: Path) -> None:
    folder, marks, reported = tmp_path / "sweep", tmp_path / "marks", tmp_path / "told"
    text = QUICK.format(
        tests=str(Path(__file__).parent), marks=str(marks), reported=str(reported), folder=str(folder)
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
        assert len(kept) >= (int(reported.read_text()) if reported.exists() else 0)
    assert len(kept) < QUICK_RUNS, "every kill came during the sweep"
    subprocess.run([sys.executable, "-c", text], check=True, timeout=600)
    kept, ran = kept_in(folder), executed()
    assert set(kept) == {task.key for task in quick_tasks()}
    assert set(kept.values()) == {1}, "a run that is stored is not run again"
    assert set(logged(folder).values()) == {1}
    # What ended and was not stored yet, and what was under way on two cores.
    assert sum(ran.values()) - QUICK_RUNS <= kills * (engine_here._AHEAD + 2)


def test_full_disk_is_reported_without_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_file_size_limit_splits_no_run(tmp_path: Path) -> None:
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
def test_failed_first_write_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"1\.pack: File too large"):
        carry_out(tasks(2), Store(tmp_path), Scripted())
    assert names(tmp_path) == []


READ_ONLY = """
import os
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from sweeping import Scripted, tasks
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import carry_out

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


def test_unwritable_directory_is_an_error(tmp_path: Path) -> None:
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
        [*enter, *program(disk / "sweep")], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 1
    assert "OutputError: cannot write" in done.stderr
    assert "No space left on device; free about" in done.stderr
    store = Store(saved)
    assert 0 < len(list(store.records())) < 20
    assert store.damaged == []
