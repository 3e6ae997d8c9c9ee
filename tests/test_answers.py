"""The answer in one sentence: who had more goodput, who had less queue."""

import json
from typing import Any

import pytest

from fullpipe.answers import answers
from fullpipe.results import Results, Run
from fullpipe.scenario import Alternative, Scenario


def run(label: str, goodputs: dict[str, float], queue_ms: float | None, seed: int = 1) -> Run:
    total = sum(goodputs.values())
    flows: list[dict[str, Any]] = [
        {
            "label": name,
            "controller": name,
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
        "fairness": {"shares": [{"label": name, "share": mbps / total} for name, mbps in goodputs.items()]},
    }
    return Run.of(Alternative(label, "{}"), "sim", seed, json.dumps(summary), b"", b"")


def answer(*runs: Run) -> str:
    return answers(Results(Scenario("", "toml", ()), list(runs)))["sim"]


def alone(label: str, mbps: float, queue_ms: float | None = 1, seed: int = 1) -> Run:
    return run(label, {label: mbps}, queue_ms, seed)


def test_of_two_one_has_more() -> None:
    assert answer(alone("a", 9, 12), alone("b", 6, 3)) == (
        "a had more goodput (9.00 Mbit/s against 6.00); b had less queueing delay (3.0 ms against 12.0)."
    )


def test_less_than_one_percent_is_about_the_same() -> None:
    assert answer(alone("a", 9.95), alone("b", 10)).startswith(
        "a and b had about the same goodput (9.95 and 10.00 Mbit/s);"
    )


def test_a_delay_below_one_percent_of_the_round_trip_is_about_the_same() -> None:
    said = answer(alone("a", 5, 1.0), alone("b", 9, 1.4))
    assert said.endswith("a and b had about the same queueing delay (1.0 and 1.4 ms).")


def test_intervals_that_overlap_are_about_the_same() -> None:
    runs = [alone("a", mbps, seed=seed) for seed, mbps in enumerate((8, 9, 10))]
    runs += [alone("b", mbps, seed=seed) for seed, mbps in enumerate((7, 8, 9))]
    assert "about the same goodput" in answer(*runs)


def test_of_three_one_has_the_most() -> None:
    said = answer(alone("a", 5, 1), alone("b", 9, 2), alone("c", 7, 3))
    assert "b had the most goodput (9.00 Mbit/s; c 7.00, a 5.00)" in said
    assert "a had the least queueing delay (1.0 ms; b 2.0, c 3.0)" in said


def test_flows_that_share_a_path_are_compared_with_their_share() -> None:
    assert answer(run("both", {"a": 3, "b": 6}, 8)) == (
        "b had more goodput (6.00 Mbit/s against 3.00), a share of 66.7 % for b, with 8.0 ms of queueing "
        "delay on average."
    )


@pytest.mark.parametrize(
    ("queue_ms", "end"), [(2.0, ", with 2.0 ms of queueing delay on average."), (None, ".")]
)
def test_a_flow_alone_is_said_as_it_is(queue_ms: float | None, end: str) -> None:
    assert answer(alone("a", 3, queue_ms)) == f"a had 3.00 Mbit/s of goodput{end}"
