"""What hosts remember of earlier connections: scenarios in an order, and Linux's own entries."""

from statistics import median
from typing import Any

import pytest

import fullpipe
from fullpipe.results.runs import left_metrics


def path(buffer: str = "50 KB", size: str = "4 MB", **metrics: Any) -> dict[str, Any]:
    """A flow of CUBIC alone, over hosts that keep metrics."""
    return {
        "duration": "10 s",
        "path": {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": buffer},
        "hosts": {"metrics": metrics},
        "flows": [{"controller": "cubic", "size": size, "start_jitter": "0"}],
    }


def first_ssthresh(results: fullpipe.Results) -> int | None:
    """The threshold of the first sample that has a window."""
    frame = results.series()
    first: int | None = frame.filter(frame["cwnd_segments"].is_not_null())["ssthresh_segments"][0]
    return first


def test_each_run_inherits_what_the_one_before_left() -> None:
    shallow, deep = path("20 KB", save_ssthresh=True), path("200 KB", save_ssthresh=True)
    there = fullpipe.run_in_order([shallow, deep, shallow])
    left = [left_metrics(one.runs[0]) for one in there]
    assert [first_ssthresh(one) for one in there] == [None, left[0]["ssthresh"], left[1]["ssthresh"]]
    # The order matters: a deep buffer first leaves a higher threshold for the shallow one.
    back = fullpipe.run_in_order([deep, shallow])
    assert first_ssthresh(back[1]) != first_ssthresh(there[2])
    assert left_metrics(back[0].runs[0])["ssthresh"] > left[0]["ssthresh"]
    # The hundredth run of the same order is the first: no clock and no other state is in it.
    assert [left_metrics(one.runs[0]) for one in fullpipe.run_in_order([shallow, deep, shallow])] == left


def test_without_thresholds_only_the_round_trip_is_inherited() -> None:
    runs = fullpipe.run_in_order([path(), path()])
    assert [first_ssthresh(one) for one in runs] == [None, None]
    left = left_metrics(runs[0].runs[0])
    assert left["ssthresh"] == 0 and left["cwnd"] > 0 and left["rtt"].endswith(" ns")


def test_of_connections_that_are_open_at_the_end_the_last_leaves_what_all_left() -> None:
    document = path(save_ssthresh=True)
    document["flows"] = [{"controller": "cubic", "start_jitter": "0", "count": 2}]
    run = fullpipe.run(document).runs[0]
    kept = [flow["metrics"] for flow in run.summary["flows"]]
    assert kept[0]["at_ns"] == kept[1]["at_ns"] and kept[0] != kept[1]
    assert left_metrics(run)["cwnd"] == kept[1]["cwnd"]


def test_the_first_run_begins_with_its_own_entry() -> None:
    runs = fullpipe.run_in_order(
        [path(save_ssthresh=True, ssthresh=33), path(save_ssthresh=True, ssthresh=33)]
    )
    assert first_ssthresh(runs[0]) == 33
    assert first_ssthresh(runs[1]) == left_metrics(runs[0].runs[0])["ssthresh"]


def test_an_order_needs_a_seed_for_each_run_and_one_alternative() -> None:
    with pytest.raises(fullpipe.ScenarioError, match="seeds"):
        fullpipe.run_in_order([path(), path()], seeds=[1])
    several = {**path(), "compare": ["cubic", "reno"], "flows": []}
    with pytest.raises(fullpipe.ScenarioError, match="one alternative"):
        fullpipe.run_in_order([several])


@pytest.mark.usefixtures("kernel_world")
def test_linux_leaves_the_entry_that_the_model_computes() -> None:
    document = path(save_ssthresh=True)
    flow = document["flows"][0]
    document["flows"] = [
        {**flow, "label": "first"},
        {**flow, "label": "second", "start": "4 s"},
        {"controller": "reno", "size": "100 KB", "start": "8 s", "start_jitter": "0", "label": "short"},
    ]
    document["hosts"] = {**document["hosts"], "model": "linux"}
    ours, theirs = (
        [run.summary["flows"] for run in fullpipe.run(document, world=world, seeds=3).runs]
        for world in ("sim", "kernel")
    )
    for our, their in zip(zip(*ours, strict=True), zip(*theirs, strict=True), strict=True):
        assert {frozenset(flow["metrics"]) for flow in our} == {frozenset(flow["metrics"]) for flow in their}
        for name in ("ssthresh", "cwnd", "rtt_ns"):
            # In segments and nanoseconds; the median of three runs is not that of one which was disturbed.
            model, kernel = (median(flow["metrics"][name] for flow in flows) for flows in (our, their))
            assert kernel == pytest.approx(model, rel=0.1, abs=2), name


@pytest.mark.usefixtures("kernel_world")
def test_the_kernel_cannot_begin_with_an_entry() -> None:
    with pytest.raises(fullpipe.WorldError, match=r"hosts\.metrics"):
        fullpipe.run(path(ssthresh=33), world="kernel")
