"""The verdict on two worlds: tolerances, the kernel's own range, shares."""

import json
from pathlib import Path
from typing import Any

import pytest

from fullpipe import agree
from fullpipe.results import Results, Run
from fullpipe.scenario import Alternative, Scenario

ALTERNATIVE = Alternative("bbr1", "{}")


def run(world: str, seed: int, goodputs: list[float], rtt_ms: float = 40, retransmits: int = 0) -> Run:
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
    summary = {"provenance": {"untrustworthy": []}, "flows": flows, "links": []}
    return Run.of(ALTERNATIVE, world, seed, json.dumps(summary), b"", b"")


def verdicts(sim: list[Run], kernel: list[Run]) -> dict[str, bool]:
    results = Results(Scenario("s", {}, (ALTERNATIVE,)), [*sim, *kernel])
    return {one.measure.split(",")[0]: one.agrees for one in agree.checks(results)}


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


def test_disagreement_ends_with_one(
    in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fullpipe import api, cli

    Path("s.toml").write_text(
        'compare = ["bbr1"]\nduration = "1 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "10 ms"\n', encoding="utf-8"
    )
    for theirs, code, said in ((100e6, 0, "The worlds agree"), (50e6, cli.DISAGREE, "do not agree")):
        answers = {"sim": run("sim", 1, [100e6]), "kernel": run("kernel", 1, [theirs])}

        def execute(
            _what: Scenario, *, world: str, answers: dict[str, Run] = answers, **_more: object
        ) -> tuple[list[Run], list[str]]:
            return [answers[world]], []

        monkeypatch.setattr(api, "execute", execute)
        with pytest.raises(SystemExit) as left:
            cli.app(["agree", "s.toml"])
        assert left.value.code == code
        assert said in capsys.readouterr().out
