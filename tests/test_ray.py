"""The engine for clusters: a real one of two workers on this machine."""

import importlib
import itertools
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fullpipe import _native
from fullpipe.errors import SweepError
from fullpipe.runs.engines import Done, Failed
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import carry_out
from fullpipe.runs.worlds.job import Job
from fullpipe.scenario import scenario

pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray>=2.48'")

from fullpipe.runs.engines import ray as clusters

# Ray leaves files and sockets to the end of the process.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


def tasks(count: int, *, rate: str = "5 Mbit/s", duration: str = "200 ms") -> list[Task]:
    loaded = scenario.from_document(
        {"duration": duration, "path": {"rate": rate, "rtt": "10 ms"}, "compare": ["bbr1", "cubic"]}
    )
    return [Task("sim", Job(loaded.alternatives[seed % 2], seed)) for seed in range(1, count + 1)]


def workers() -> list[int]:
    """Processes of a cluster of ours that are simulating: Ray names them after their task."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            named = (folder / "cmdline").read_bytes().startswith(b"ray::_simulate")
        except OSError:
            continue
        if named and os.getpid() in ancestors(int(folder.name)):
            found.append(int(folder.name))
    return found


def ancestors(process: int) -> list[int]:
    found = []
    while process > 1:
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found.append(process)
    return found


def test_ray_results_equal_local_bytes(tmp_path: Path) -> None:
    asked = tasks(6)
    here, there = Store(tmp_path / "local"), Store(tmp_path / "ray")
    local, ray = carry_out(asked, here, Local()), carry_out(asked, there, clusters.Ray(cores=2))
    assert not ray.failed and len(ray.stored) == 6
    for task in asked:
        ours, theirs = local.stored[task.key].run(), ray.stored[task.key].run()
        assert ours.summary == theirs.summary
        assert ours.flow_parquet == theirs.flow_parquet
        assert ours.link_parquet == theirs.link_parquet


def test_dead_worker_loses_no_runs(tmp_path: Path) -> None:
    # A second or so each, so that one is under way when it is killed.
    asked = tasks(4, rate="1 Gbit/s", duration="60 s")
    killed: list[int] = []

    def kill() -> None:
        until = time.monotonic() + 60
        while not killed and time.monotonic() < until:
            if found := workers():
                time.sleep(0.1)
                os.kill(found[0], signal.SIGKILL)
                killed.append(found[0])
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    outcome = carry_out(asked, Store(tmp_path), clusters.Ray(cores=2))
    killer.join()
    assert killed
    assert not outcome.failed and len(outcome.stored) == 4
    local = next(one for one in Local().run(asked[:1]) if isinstance(one, Done))
    assert outcome.stored[asked[0].key].summary == local.run.summary


def quick(count: int) -> list[Task]:
    """Tasks of next to no work."""
    return tasks(count, duration="1 ms")


def test_quick_tasks_are_batched(tmp_path: Path) -> None:
    asked, reported = quick(1000), []
    outcome = carry_out(
        asked, Store(tmp_path), clusters.Ray(cores=2), watch=lambda progress: reported.append(progress.runs)
    )
    assert not outcome.failed and len(outcome.stored) == 1000
    assert reported[0] == 0 and reported[-1] == 1000
    # At most 256 in a batch, and the last ones are smaller.
    assert 5 <= len(reported) < 100
    assert max(after - before for before, after in itertools.pairwise(reported)) <= clusters._MOST_IN_BATCH
    again = carry_out(asked, Store(tmp_path), clusters.Ray(cores=2))
    assert again.found == 1000


def test_long_tasks_run_alone_short_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    long, short = tasks(3, rate="1 Gbit/s", duration="60 s"), tasks(50, duration="1 s")
    waiting = [*short, *long]
    sizes = []
    while waiting:
        sizes.append(len(clusters._batch(waiting, 100.0)))
    assert sizes[:3] == [1, 1, 1]
    assert sizes[3:] == [50]
    # A batch is no more than the given share of the work.
    assert len(clusters._batch(list(short), 10 * clusters._expected_s(short[0]) * 1.01)) == 10
    assert len(clusters._batch(list(short), 0.0)) == 1
    monkeypatch.setattr(Job, "rate_bps", math.inf)
    assert math.isfinite(clusters._expected_s(short[0]))


def test_task_killing_workers_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deadly(builds: dict[str, str], asked: list[tuple[str, str, int]]) -> list[Any]:
        if any(seed == 7 for _, _, seed in asked):
            os._exit(1)
        from fullpipe.runs.engines import ray as there

        return there._simulate(builds, asked)

    # Workers cannot import this module.
    cloudpickle = importlib.import_module("ray.cloudpickle")
    monkeypatch.setattr(clusters, "_simulate", deadly)
    monkeypatch.setattr(clusters, "RETRIES", 0)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        outcome = carry_out(quick(40), Store(tmp_path), clusters.Ray(cores=2))
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert [(one.task.job.seed, one.reason) for one in outcome.failed] == [(7, "its worker died 1 times")]
    assert len(outcome.stored) == 39


def test_worker_of_another_build_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Workers are processes of their own: only this one is told another build.
    monkeypatch.setattr(_native, "build", lambda _world: "another")
    for ended in clusters.Ray(cores=1).run(tasks(3)):
        assert isinstance(ended, Failed)
        assert "another build" in ended.reason


def test_kernel_world_and_bad_address_refused() -> None:
    (one,) = tasks(1)
    with pytest.raises(SweepError, match="kernel world"):
        next(clusters.Ray().run([Task("kernel", one.job)]))
    with pytest.raises(SweepError, match="--ray-address"):
        next(clusters.Ray("127.0.0.1:1").run([one]))


def test_missing_ray_error_names_pip_command(tmp_path: Path) -> None:
    # A None in sys.modules is how Python marks a module that cannot be imported.
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from fullpipe.__main__ import main\n"
        f"arguments = ['queue16.fig4', '--engine', 'ray', '--out', {str(tmp_path)!r}]\n"
        "sys.argv = ['fullpipe', 'study', 'run', *arguments]\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'ray>=2.48'" in done.stderr
