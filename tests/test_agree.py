"""The verdict on two worlds: tolerances, the kernel's own range, shares."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from fullpipe import cli
from fullpipe.agreement import Agreement
from fullpipe.results import Results, Run
from fullpipe.scenario import Alternative, Scenario
from fullpipe.worlds import kernel, sim
from fullpipe.worlds.job import Job

ALTERNATIVE = Alternative("bbr1", "{}")


def run(world: str, seed: int, goodputs: list[float], rtt_ms: float | None = 40, retransmits: int = 0) -> Run:
    flows: list[dict[str, Any]] = [
        {
            "label": f"f{i}",
            "controller": "bbr1",
            "goodput_bps": goodput,
            "retransmits": retransmits,
            "segments_sent": 1000,
            "loss_ratio": 0.0,
            "rtt_ms": {"mean": rtt_ms, "p50": rtt_ms, "p95": rtt_ms},
        }
        for i, goodput in enumerate(goodputs)
    ]
    total = sum(goodputs)
    shares = [{"label": f"f{i}", "share": goodput / total} for i, goodput in enumerate(goodputs)]
    summary = {
        "provenance": {"untrustworthy": []},
        "flows": flows,
        "links": [],
        "fairness": {"jain_index": None, "shares": shares},
    }
    return Run.of(ALTERNATIVE, world, seed, json.dumps(summary), b"", b"")


def verdicts(sim: list[Run], kernel: list[Run]) -> dict[str, bool]:
    results = Results(Scenario("", "toml", (ALTERNATIVE,)), [*sim, *kernel])
    return {one.measure.split(",")[0]: one.agrees for one in Agreement.of(results).checks}


@pytest.mark.parametrize(
    ("ours", "agrees"), [(97.1e6, True), (102.9e6, True), (96.9e6, False), (103.1e6, False)]
)
def test_goodput_within_three_percent(ours: float, agrees: bool) -> None:
    assert verdicts([run("sim", 1, [ours])], [run("kernel", 1, [100e6])])["Goodput"] is agrees


@pytest.mark.parametrize(("ours", "agrees"), [(41.9, True), (38.1, True), (42.1, False), (37.9, False)])
def test_mean_rtt_within_five_percent(ours: float, agrees: bool) -> None:
    found = verdicts([run("sim", 1, [1e6], rtt_ms=ours)], [run("kernel", 1, [1e6], rtt_ms=40)])
    assert found["RTT mean"] is agrees


@pytest.mark.parametrize(
    ("ours", "theirs", "agrees"),
    [(0, 50, True), (0, 51, False), (149, 100, True), (100, 151, False), (300, 100, False)],
)
def test_retransmissions_within_a_factor_once_they_count(ours: int, theirs: int, agrees: bool) -> None:
    found = verdicts([run("sim", 1, [1e6], retransmits=ours)], [run("kernel", 1, [1e6], retransmits=theirs)])
    assert found["Retransmits"] is agrees


def test_the_kernels_own_range_counts() -> None:
    kernel = [run("kernel", 1, [80e6]), run("kernel", 2, [120e6])]
    assert verdicts([run("sim", 1, [85e6])], kernel)["Goodput"]
    assert not verdicts([run("sim", 1, [79e6])], kernel)["Goodput"]


def test_several_flows_must_share_alike() -> None:
    kernel = [run("kernel", 1, [50e6, 50e6])]
    assert all(verdicts([run("sim", 1, [57e6, 43e6])], kernel).values())
    found = verdicts([run("sim", 1, [59e6, 41e6])], kernel)
    assert (found["Goodput"], found["Share of f0"], found["Share of f1"]) == (True, False, False)


def test_what_only_one_world_knows_is_a_difference() -> None:
    found = verdicts([run("sim", 1, [1e6], rtt_ms=None)], [run("kernel", 1, [1e6])])
    assert found["RTT mean"] is False
    found = verdicts([run("sim", 1, [1e6], rtt_ms=None)], [run("kernel", 1, [1e6], rtt_ms=None)])
    assert "RTT mean" not in found


def test_nothing_in_both_worlds_is_no_difference() -> None:
    kernel = run("kernel", 1, [1e6])
    silent = json.loads(json.dumps(kernel.summary))
    silent["flows"][0]["goodput_bps"] = 0.0
    both = [Run.of(ALTERNATIVE, world, 1, json.dumps(silent), b"", b"") for world in ("sim", "kernel")]
    assert verdicts(both[:1], both[1:])["Goodput"]
    assert not verdicts([run("sim", 1, [1e6])], both[1:])["Goodput"]


DOCUMENT = 'seed = 7\ncompare = ["bbr1"]\nduration = "1 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "10 ms"\n'


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Job]]:
    """Both worlds replaced by known runs; returns what each was asked for, in that order."""
    asked: dict[str, list[Job]] = {}

    def world(name: str) -> Callable[..., list[Run]]:
        def answer(jobs: list[Job], _progress: object) -> list[Run]:
            asked[name] = jobs
            return [run(name, job.seed, [100e6]) for job in jobs]

        return answer

    for module in (sim, kernel):
        monkeypatch.setattr(module, "run", world(module.NAME))
    return asked


def test_agree_runs_the_kernel_first_and_counts_from_the_scenarios_seed(
    in_empty_folder: Path, worlds: dict[str, list[Job]]
) -> None:
    Path("s.toml").write_text(DOCUMENT, encoding="utf-8")
    found = fp.agree("s.toml")
    assert list(worlds) == ["kernel", "sim"]
    assert [job.seed for job in worlds["sim"]] == [7, 8, 9, 10, 11]
    assert [job.seed for job in worlds["kernel"]] == [7, 8, 9]
    assert found.agrees
    assert found.verdict == "The worlds agree: 3 of 3 measures agree."
    assert found.results.worlds == ["sim", "kernel"]


@pytest.mark.usefixtures("worlds")
def test_the_command_prints_the_verdict_and_ends_with_it(
    in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.toml").write_text(DOCUMENT, encoding="utf-8")
    for theirs, code, said in ((100e6, 0, "The worlds agree"), (50e6, cli.DISAGREE, "do not agree")):
        answer = run("kernel", 1, [theirs])
        monkeypatch.setattr(kernel, "run", lambda _jobs, _progress, answer=answer: [answer])
        with pytest.raises(SystemExit) as left:
            cli.app(["agree", "s.toml"])
        assert left.value.code == code
        assert said in capsys.readouterr().out


def test_the_tolerances_are_stated_in_the_help() -> None:
    printed = " ".join(CliRunner().invoke(cli.app, ["agree", "--help"]).stdout.replace("│", " ").split())
    assert "goodput 3%, mean RTT 5%" in printed
    assert "8 percentage points" in printed
