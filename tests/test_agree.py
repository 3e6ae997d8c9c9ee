"""The verdict on two worlds: tolerances, the kernel's own range, shares."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from fullpipe.agreement.agreement import Agreement
from fullpipe.cli import app as cli
from fullpipe.cli import options
from fullpipe.measures.run import Run
from fullpipe.report.counts import left_out
from fullpipe.report.results import Results
from fullpipe.runs import machine
from fullpipe.runs.worlds import kernel, sim
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.world import World
from fullpipe.scenario.scenario import Alternative, Scenario

ALTERNATIVE = Alternative("bbr1", "{}")


def run(
    world: str,
    seed: int,
    goodputs: list[float],
    rtt_ms: float | None = 40,
    retransmits: int = 0,
    doubts: list[str] | None = None,
) -> Run:
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
        "provenance": {"untrustworthy": doubts or []},
        "flows": flows,
        "links": [],
        "total_goodput_bps": total,
        "fct_ms": None,
        "fairness": {"jain_index": None, "shares": shares},
    }
    return Run.of(ALTERNATIVE, world, seed, json.dumps(summary), b"", b"")


def judged(sim: list[Run], kernel: list[Run]) -> Agreement:
    return Agreement.of(Results(Scenario("{}", (ALTERNATIVE,)), [*sim, *kernel]))


def verdicts(sim: list[Run], kernel: list[Run]) -> dict[str, bool]:
    return {one.measure.split(",")[0]: one.agrees for one in judged(sim, kernel).checks}


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
def test_retransmissions_agree_within_factor(ours: int, theirs: int, agrees: bool) -> None:
    found = verdicts([run("sim", 1, [1e6], retransmits=ours)], [run("kernel", 1, [1e6], retransmits=theirs)])
    assert found["Retransmits"] is agrees


def test_the_kernels_own_range_counts() -> None:
    """Of many repetitions, whose mean is known within the tolerance: 100 Mbit/s, half an interval of 2.5."""
    kernel = [
        run("kernel", 2 * seed + one, [rate]) for seed in range(8) for one, rate in enumerate((95e6, 105e6))
    ]
    goodput = judged([run("sim", 1, [104e6])], kernel).checks[0]
    assert (goodput.verdict, goodput.inconclusive) == ("agrees, within the kernel's own range", False)
    assert not verdicts([run("sim", 1, [94e6])], kernel)["Goodput"]


@pytest.mark.parametrize("ours", [100e6, 85e6, 40e6])
def test_widely_spread_repetitions_are_inconclusive(ours: float) -> None:
    kernel = [run("kernel", 1, [80e6]), run("kernel", 2, [120e6]), run("kernel", 3, [100e6])]
    found = judged([run("sim", 1, [ours])], kernel)
    goodput, rtt = found.checks[:2]
    assert (goodput.inconclusive, goodput.agrees, rtt.verdict) == (True, False, "agrees")
    assert goodput.verdict == "inconclusive, repetitions differ by more than the tolerance"
    assert (found.conclusive, found.agrees, found.to_dict()["agrees"]) == (False, False, None)
    assert found.to_dict()["checks"][0]["agrees"] is None
    assert found.verdict.startswith(
        "Inconclusive: bbr1 has no verdict on Goodput (repetitions differ by more than the tolerance)."
    )


def test_verdict_depends_on_repetition_spread_only() -> None:
    kernel = [run("kernel", seed, [rate]) for seed, rate in enumerate((99e6, 101e6))]
    sims = [run("sim", seed, [rate]) for seed, rate in enumerate((80e6, 120e6))]
    assert judged(sims, kernel).agrees
    assert judged([run("sim", 1, [80e6])], kernel).checks[0].differs


def test_difference_is_reported_despite_inconclusive_measure() -> None:
    kernel = [run("kernel", seed, [rate]) for seed, rate in enumerate((80e6, 120e6))]
    found = judged([run("sim", 1, [100e6], rtt_ms=60)], kernel)
    assert found.conclusive and not found.agrees
    assert "bbr1 has no verdict on Goodput" in found.verdict


def test_several_flows_must_share_alike() -> None:
    kernel = [run("kernel", 1, [50e6, 50e6])]
    assert all(verdicts([run("sim", 1, [57e6, 43e6])], kernel).values())
    found = verdicts([run("sim", 1, [59e6, 41e6])], kernel)
    assert (found["Goodput"], found["Share of f0"], found["Share of f1"]) == (True, False, False)


def test_one_sided_measure_counts_as_difference() -> None:
    found = verdicts([run("sim", 1, [1e6], rtt_ms=None)], [run("kernel", 1, [1e6])])
    assert found["RTT mean"] is False
    found = verdicts([run("sim", 1, [1e6], rtt_ms=None)], [run("kernel", 1, [1e6], rtt_ms=None)])
    assert "RTT mean" not in found


def test_zero_in_both_worlds_agrees() -> None:
    kernel = run("kernel", 1, [1e6])
    silent = json.loads(json.dumps(kernel.summary))
    silent["total_goodput_bps"] = 0.0
    both = [Run.of(ALTERNATIVE, world, 1, json.dumps(silent), b"", b"") for world in ("sim", "kernel")]
    assert verdicts(both[:1], both[1:])["Goodput"]
    assert not verdicts([run("sim", 1, [1e6])], both[1:])["Goodput"]


LATE = ["packets were late"]


def test_untrusted_run_affects_no_statistics() -> None:
    sim = [run("sim", 1, [80e6])]
    doubted = run("kernel", 2, [60e6], doubts=LATE)
    found = judged(sim, [run("kernel", 1, [100e6]), doubted])
    goodput = found.checks[0]
    assert (goodput.agrees, goodput.theirs) == (False, "100.00")
    group = found.results.groups[1]
    assert (group.count, len(group.runs)) == ("1 of 2", 2)
    assert found.verdict.endswith(" Trusted runs: bbr1 1 of 2 in the kernel world.")
    assert left_out(group).startswith("bbr1, kernel: 1 of 2 repetitions are trusted")


def test_no_trusted_run_is_inconclusive() -> None:
    found = judged([run("sim", 1, [100e6])], [run("kernel", 1, [100e6], doubts=LATE)])
    assert not found.conclusive
    assert not found.agrees
    assert found.verdict == "Inconclusive: bbr1 has no trusted run in the kernel world."
    assert found.to_dict()["agrees"] is None
    assert found.results.groups[1].measures["goodput_bps"] is None


def test_alternative_missing_in_world_disagrees() -> None:
    found = judged([run("sim", 1, [100e6])], [])
    assert (found.agrees, found.unjudged) == (False, {"bbr1": "did not run in the kernel world"})


DOCUMENT = 'seed = 7\ncompare = ["bbr1"]\nduration = "1 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "10 ms"\n'


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Job]]:
    """Both worlds replaced by known runs; returns what each was asked for, in that order."""
    asked: dict[str, list[Job]] = {}

    def world(name: str) -> Callable[..., Run]:
        def answer(_self: World, job: Job, *_more: object) -> Run:
            asked.setdefault(name, []).append(job)
            return run(name, job.seed, [100e6])

        return answer

    for one in (sim.Simulator, kernel.Kernel):
        monkeypatch.setattr(one, "run", world(one.name))
    # In the order of the jobs.
    monkeypatch.setattr(machine, "cores", lambda: 1)
    return asked


def test_agree_runs_kernel_first_from_seed(in_empty_folder: Path, worlds: dict[str, list[Job]]) -> None:
    Path("s.toml").write_text(DOCUMENT, encoding="utf-8")
    found = fp.agree("s.toml")
    assert list(worlds) == ["kernel", "sim"]
    assert [job.seed for job in worlds["sim"]] == [7, 8, 9, 10, 11]
    assert [job.seed for job in worlds["kernel"]] == [7, 8, 9]
    assert found.agrees
    assert found.verdict == "The worlds agree: 3 of 3 comparisons agree (Goodput, RTT mean, Retransmits)."
    assert found.results.worlds == ["sim", "kernel"]


def test_total_work_is_announced_first(in_empty_folder: Path, worlds: dict[str, list[Job]]) -> None:
    Path("s.toml").write_text(DOCUMENT, encoding="utf-8")
    reported: list[tuple[int, float, list[str]]] = []
    found = fp.agree(
        "s.toml", seeds=4, begin=lambda runs, seconds: reported.append((runs, seconds, list(worlds)))
    )
    ((runs, seconds, ran),) = reported
    assert (runs, ran, len(found.results.runs)) == (7, [], 7)
    # The kernel's three run one at a time, and each takes as long as the scenario says.
    duration_s = worlds["kernel"][0].alternative.duration_s
    assert 3 * duration_s < seconds < 3 * duration_s + 4


@pytest.mark.usefixtures("worlds")
def test_command_prints_and_exits_with_verdict(
    in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.toml").write_text(DOCUMENT, encoding="utf-8")
    for theirs, code, message in ((100e6, 0, "The worlds agree"), (50e6, options.DISAGREE, "do not agree")):
        answer = run("kernel", 1, [theirs])
        monkeypatch.setattr(kernel.Kernel, "run", lambda *_, answer=answer: answer)
        with pytest.raises(SystemExit) as left:
            cli.app(["agree", "s.toml"])
        assert left.value.code == code
        printed = capsys.readouterr().out
        assert message in printed
        assert "Few: up to 50 in both worlds" in printed, "there were no retransmissions"


def test_help_lists_tolerances() -> None:
    printed = " ".join(CliRunner().invoke(cli.app, ["agree", "--help"]).stdout.replace("│", " ").split())
    assert "goodput 3%, mean RTT 5%" in printed
    assert "8 percentage points" in printed
    of_grid = "goodput 3%, mean RTT 5%, p95 RTT 10%, retransmissions a factor of 1.25"
    assert of_grid in printed and "5 percentage points" in printed
    assert (
        "Otherwise, if each difference of means is within its tolerance, Close; if not, Differs." in printed
    )


@pytest.mark.usefixtures("worlds")
def test_untrusted_repetitions_are_retried_then_excluded(
    in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.toml").write_text(DOCUMENT, encoding="utf-8")
    tried: list[int] = []

    def late(_self: World, job: Job, *_more: object) -> Run:
        tried.append(job.seed)
        # Seed 7 is never trusted, seed 8 at the second attempt.
        doubted = job.seed == 7 or (job.seed == 8 and tried.count(8) == 1)
        return run("kernel", job.seed, [1e6 if doubted else 100e6], doubts=LATE if doubted else [])

    monkeypatch.setattr(kernel.Kernel, "run", late)
    with pytest.raises(SystemExit) as left:
        cli.app(["agree", "s.toml", "--json", "--attempts", "4"])
    printed = json.loads(capsys.readouterr().out)
    assert left.value.code == 0
    assert sorted(tried) == [7, 7, 7, 7, 8, 8, 9]
    rests_on = "Trusted runs: bbr1 2 of 3 in the kernel world."
    assert (
        printed["agreement"]["verdict"]
        == f"The worlds agree: 3 of 3 comparisons agree (Goodput, RTT mean, Retransmits). {rests_on}"
    )
    kernels = printed["results"][1]
    assert (kernels["world"], kernels["seeds"], kernels["trusted"]) == ("kernel", 3, 2)
    assert kernels["goodput_bps"]["mean"] == 100e6


@pytest.mark.usefixtures("worlds")
def test_no_trusted_run_exits_as_disagreement(
    in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.toml").write_text(DOCUMENT, encoding="utf-8")
    doubted = run("kernel", 7, [100e6], doubts=LATE)
    monkeypatch.setattr(kernel.Kernel, "run", lambda *_: doubted)
    with pytest.raises(SystemExit) as left:
        cli.app(["agree", "s.toml"])
    printed = capsys.readouterr().out
    assert left.value.code == options.DISAGREE
    assert "Inconclusive: bbr1 has no trusted run in the kernel world." in printed
    assert "bbr1, kernel: none of 3 repetitions is trusted" in printed
    assert "Tolerance" not in printed, "no table without checks"


def test_unsupported_kernel_run_spares_others(
    worlds: dict[str, list[Job]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def picky(_self: World, job: Job, *_more: object) -> Run:
        if "beta" in job.alternative.label:
            raise fp.WorldError("flows[0].controller: Linux has no such cubic")
        return replace(run("kernel", job.seed, [100e6]), alternative=job.alternative)

    def simulated(_self: World, job: Job, *_more: object) -> Run:
        return replace(run("sim", job.seed, [100e6]), alternative=job.alternative)

    monkeypatch.setattr(kernel.Kernel, "run", picky)
    monkeypatch.setattr(sim.Simulator, "run", simulated)
    path = {"rate": "5 Mbit/s", "rtt": "10 ms", "buffer": "20 KB", "world": "all", "repetitions": 2}
    results = fp.compare(["cubic:beta=0.5", "cubic"], **path)
    assert [run.label for run in results.runs if run.world == "kernel"] == ["cubic", "cubic"]
    assert results.notes == ["cubic:beta=0.5 did not run in the kernel world: Linux has no such cubic"]
    assert results.agreement is not None
    assert results.agreement.unjudged == {"cubic:beta=0.5": "did not run in the kernel world"}
    refused = fp.compare(["cubic:beta=0.5"], **path)
    assert refused.notes == ["The kernel world did not run. Linux has no such cubic"]
    with pytest.raises(fp.WorldError, match=r"^Linux has no such cubic"):
        fp.compare(["cubic:beta=0.5"], **{**path, "world": "kernel"})
