"""Engines yield every task once; the local one shares the machine between runs."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fullpipe._native import WorldError
from fullpipe.measures.run import Run
from fullpipe.runs.engines import Done, Ended, Failed
from fullpipe.runs.engines import local as engine_here
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.single import Single
from fullpipe.runs.engines.task import Task
from fullpipe.runs.worlds import kernel, sim
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.world import Stop, World
from fullpipe.scenario import scenario
from sweeping import job, tasks


def test_local_engine_reports_tasks_and_failures() -> None:
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


def test_simulations_wait_for_earlier_to_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_here, "_AHEAD", 4)
    began: list[int] = []
    whole, enough = sim.Simulator.run, threading.Event()

    def counted(world: sim.Simulator, job: Job, *more: Any) -> Run:
        began.append(job.seed)
        if len(began) >= 4:
            enough.set()
        return whole(world, job, *more)

    monkeypatch.setattr(sim.Simulator, "run", counted)
    running = Local(cores=2).run(tasks(50))
    next(running)
    assert enough.wait(timeout=600)
    running.close()
    # The caller did not come back after the first.
    assert len(began) == 4


def test_finished_simulations_are_yielded_together() -> None:
    ended: list[Ended] = []
    for one in Local(cores=2).run(tasks(30)):
        ended.append(one)
    assert len({one.task.key for one in ended}) == 30
    assert not ended[-1].more, "nobody waits for more after the last"


def test_internal_engine_error_ends_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(BaseException):
        pass

    def broken(_task: Task, _stop: object, _limit_s: float) -> Ended:
        raise Odd

    monkeypatch.setattr("fullpipe.runs.engines.local._carry_out", broken)
    with pytest.raises(Odd):
        list(Local(cores=2).run(tasks(3)))


def test_serial_engine_raises_first_error_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error, ran = WorldError("there is none"), []

    def fails_second(_self: World, job: Job, *_more: object) -> Run:
        ran.append(job.seed)
        if job.seed == 2:
            raise error
        return Run(job.alternative, "sim", job.seed, {}, b"", b"")

    monkeypatch.setattr(sim.Simulator, "run", fails_second)
    ended: list[Done] = []
    with pytest.raises(WorldError) as raised:
        for one in Single(3).run(tasks(3)):
            ended.append(one)
    assert raised.value is error
    assert (ran, [one.task.job.seed for one in ended]) == ([1, 2], [1])


def test_kernel_runs_share_cores_by_rate() -> None:
    engine = Local(cores=2)
    slow = [Task("kernel", job(seed, rate="1 Mbit/s")) for seed in range(1, 15)]
    fast = Task("kernel", job(rate="500 Mbit/s"))
    alone = replace(slow[0], alone=True)
    assert all(engine._fits(slow[number], slow[:number]) for number in range(12))
    assert not engine._fits(slow[12], slow[:12])  # No more than six a core.
    middle = [Task("kernel", job(seed, rate="6 Mbit/s")) for seed in (1, 2, 3)]
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
    assert engine.cost(slow[0]) == pytest.approx(0.2 / 12)


def test_estimate_accounts_for_parallel_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim.Simulator, "cost_s", lambda *_: 10.0)
    engine = Local(cores=2)

    def kernel_run(rate: str, seconds: int) -> Task:
        return Task("kernel", job(rate=rate, duration=f"{seconds} s"))

    # All at once, and the shorter ones beside the longest.
    slow = [kernel_run("1 Mbit/s", 60), *[kernel_run("1 Mbit/s", 7)] * 11]
    assert engine.takes_s(slow) == 60
    # One more waits for a place.
    assert engine.takes_s([*slow, kernel_run("1 Mbit/s", 7)]) == 60
    assert engine.takes_s([kernel_run("1 Mbit/s", 7)] * 13) == 14
    # One at a time.
    assert engine.takes_s([kernel_run("500 Mbit/s", 7)] * 3) == 21
    # Simulations first: two cores, but none is shorter than itself.
    assert engine.takes_s(tasks(4)) == 20
    assert engine.takes_s([*tasks(1), slow[1]]) == 17
    assert engine.takes_s([]) == 0


def test_changing_rate_counts_its_highest() -> None:
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


def test_delivery_trace_counts_its_mean(tmp_path: Path) -> None:
    (tmp_path / "link.deliveries").write_text("1\n1\n2\n4\n", encoding="ascii")
    document = {
        "duration": "1 s",
        "path": {"deliveries": "link.deliveries", "buffer": "100 packets", "rtt": "20 ms"},
        "flows": [{"controller": "reno"}],
    }
    loaded = scenario.from_document(document, base_dir=tmp_path)
    assert Job(loaded.alternatives[0], 1).rate_bps == 12e6


def test_radio_counts_its_highest_rate() -> None:
    radio = {"kind": "cellular", "rates": ["5 Mbit/s", "20 Mbit/s"], "review": "1 s", "demand": "10 ms"}
    document = {
        "duration": "1 s",
        "path": {"rate": "1 Gbit/s", "rtt": "20 ms", "before": [{**radio, "buffer": "1 MB"}]},
        "flows": [{"controller": "reno"}],
    }
    assert Job(scenario.from_document(document).alternatives[0], 1).rate_bps == 20e6


def test_closing_engine_stops_running_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = [], []

    def waits(_self: World, job: Job, stop: Stop, _progress: object) -> Run:
        begun.append(job.seed)
        try:
            while True:
                stop.check()
                time.sleep(0.01)
        finally:
            ended.append(job.seed)

    monkeypatch.setattr(kernel.Kernel, "run", waits)
    two = [Task("kernel", job(seed, rate="1 Mbit/s")) for seed in (1, 2)]
    running = Local(cores=1).run([*tasks(1), *two])
    assert isinstance(next(running), Done)
    with pytest.MonkeyPatch.context() as patch:
        # An interrupt arrives while the engine waits.
        def interrupted(*_: object, **__: object) -> None:
            while len(begun) < 2:
                time.sleep(0.01)
            raise KeyboardInterrupt

        patch.setattr("fullpipe.runs.engines.local.wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(running)
    assert sorted(ended) == [1, 2]
