"""The answer in one sentence: who had more goodput, who had less queue."""

import json
from typing import Any

import pytest

from fullpipe.measures.run import Run
from fullpipe.report.answers import answers
from fullpipe.report.results import Results
from fullpipe.scenario.scenario import Alternative, Scenario


def run(
    label: str,
    goodputs: dict[str, float],
    queue_ms: float | None,
    seed: int = 1,
    starts: dict[str, int] | None = None,
) -> Run:
    total = sum(goodputs.values())
    flows: list[dict[str, Any]] = [
        {
            "label": name,
            "controller": name,
            "start_ns": (starts or {}).get(name, 0),
            "end_ns": 1000,
            "goodput_bps": mbps * 1e6,
            "retransmits": 0,
            "segments_sent": 1000,
            "loss_ratio": 0.0,
            "rtt_ms": {"mean": 50.0, "p50": 50.0, "p95": 50.0},
        }
        for name, mbps in goodputs.items()
    ]
    summary = {
        "provenance": {"untrustworthy": []},
        "flows": flows,
        "links": [{"name": "bottleneck", "queue_delay_ms": {"mean": queue_ms}}],
        "total_goodput_bps": total * 1e6,
        "fct_ms": None,
        "fairness": {"shares": [{"label": name, "share": mbps / total} for name, mbps in goodputs.items()]},
    }
    return Run.of(Alternative(label, "{}"), "sim", seed, json.dumps(summary), b"", b"")


def answer(*runs: Run) -> str:
    return answers(Results(Scenario("{}", ()), list(runs)))["sim"]


def alone(label: str, mbps: float, queue_ms: float | None = 1, seed: int = 1) -> Run:
    return run(label, {label: mbps}, queue_ms, seed)


def test_of_two_one_has_more() -> None:
    assert answer(alone("a", 9, 12), alone("b", 6, 3)) == (
        "a had more goodput than b (9.00 against 6.00 Mbit/s); "
        "b had less queueing delay than a (3.0 against 12.0 ms)."
    )


def test_under_one_percent_is_about_same() -> None:
    assert answer(alone("a", 9.95), alone("b", 10)).startswith(
        "a and b had about the same goodput (9.95 and 10.00 Mbit/s);"
    )


def test_small_delay_difference_is_about_same() -> None:
    message = answer(alone("a", 5, 1.0), alone("b", 9, 1.4))
    assert message.endswith("a and b had about the same queueing delay (1.0 and 1.4 ms).")


def test_overlapping_intervals_are_indistinguishable() -> None:
    runs = [alone("a", mbps, seed=seed) for seed, mbps in enumerate((8, 9, 10))]
    runs += [alone("b", mbps, seed=seed) for seed, mbps in enumerate((7, 8, 9))]
    assert "a and b cannot be told apart in goodput with this many runs (9.00 and 8.00 Mbit/s)" in answer(
        *runs
    )


def test_distant_means_are_not_grouped() -> None:
    runs = [alone("wide", 9, queue_ms=delay, seed=seed) for seed, delay in enumerate((0.1, 30))]
    runs += [alone(name, 9, queue_ms=0, seed=seed) for name in "ab" for seed in (0, 1)]
    assert answer(*runs).endswith(
        "a and b had the least queueing delay (0.0 and 0.0 ms), from which wide (15.1) cannot be told apart "
        "with this many runs."
    )


def test_completion_times_come_first() -> None:
    runs = [alone("a", 5), alone("b", 9)]
    for one, mean in zip(runs, (200.0, 100.0), strict=True):
        one.summary["fct_ms"] = {"mean": mean, "p50": mean, "p95": mean}
    assert answer(*runs).startswith("b had a shorter mean completion time than a (100.0 against 200.0 ms); ")
    assert answer(runs[0]).startswith("transfers took 200.0 ms on average; a had 5.00 Mbit/s of goodput")


def test_alternative_without_trusted_run_is_named() -> None:
    doubted = alone("c", 100)
    doubted.summary["provenance"]["untrustworthy"].append("late")
    message = answer(alone("a", 9), alone("b", 6), doubted)
    assert message.startswith("a had more goodput than b (9.00 against 6.00 Mbit/s); ")
    assert message.endswith("; c has no trusted run.")


def test_of_three_one_has_the_most() -> None:
    message = answer(alone("a", 5, 1), alone("b", 9, 2), alone("c", 7, 3))
    assert "b had the most goodput (9.00 Mbit/s; c 7.00, a 5.00)" in message
    assert "a had the least queueing delay (1.0 ms; b 2.0, c 3.0)" in message


def test_sharing_flows_report_their_share() -> None:
    assert answer(run("both", {"a": 3, "b": 6}, 8)) == (
        "b had more goodput than a (6.00 against 3.00 Mbit/s), 66.7 % of all bytes for b, with 8.0 ms of "
        "queueing delay on average."
    )


def test_different_lifetimes_qualify_goodput() -> None:
    late = run("both", {"a": 3, "b": 6}, None, starts={"b": 500})
    assert answer(late).startswith("b had more goodput while it ran than a (6.00 against 3.00 Mbit/s)")


def test_untrusted_runs_do_not_decide() -> None:
    doubted = alone("b", 100)
    doubted.summary["provenance"]["untrustworthy"].append("late")
    assert answer(alone("a", 9), alone("b", 6), doubted).startswith("a had more goodput")
    assert answer(doubted) == "No run can be trusted."


@pytest.mark.parametrize(
    ("queue_ms", "end"), [(2.0, ", with 2.0 ms of queueing delay on average."), (None, ".")]
)
def test_single_flow_is_reported_without_comparison(queue_ms: float | None, end: str) -> None:
    assert answer(alone("a", 3, queue_ms)) == f"a had 3.00 Mbit/s of goodput{end}"


def test_of_many_flows_few_are_named() -> None:
    message = answer(run("many", {f"f{number}": 60.0 - number for number in range(40)}, 1))
    assert message.startswith("f0 had the most goodput (60.00 Mbit/s; f1 59.00, ")
    assert ", f8 52.00, 31 others), " in message
    assert message.count(" others") == 1 and len(message) < 300
    equal = answer(*[alone(f"f{number}", 9) for number in range(40)])
    assert "f7 and 32 others had about the same goodput" in equal
