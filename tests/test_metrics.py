"""What hosts remember of earlier connections: scenarios in an order, and Linux's own entries."""

from statistics import median
from typing import Any

import pytest

import fullpipe
from fullpipe import left_metrics


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


def test_each_run_inherits_previous_metrics() -> None:
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


def test_without_ssthresh_only_rtt_is_inherited() -> None:
    runs = fullpipe.run_in_order([path(), path()])
    assert [first_ssthresh(one) for one in runs] == [None, None]
    left = left_metrics(runs[0].runs[0])
    assert left["ssthresh"] == 0 and left["cwnd"] > 0 and left["rtt"].endswith(" ns")


def test_last_open_flow_determines_saved_metrics() -> None:
    document = path(save_ssthresh=True)
    document["flows"] = [{"controller": "cubic", "start_jitter": "0", "count": 2}]
    run = fullpipe.run(document).runs[0]
    kept = [flow["metrics"] for flow in run.summary["flows"]]
    assert kept[0]["at_ns"] == kept[1]["at_ns"] and kept[0] != kept[1]
    assert left_metrics(run)["cwnd"] == kept[1]["cwnd"]


def test_first_run_starts_with_own_entry() -> None:
    runs = fullpipe.run_in_order(
        [path(save_ssthresh=True, ssthresh=33), path(save_ssthresh=True, ssthresh=33)]
    )
    assert first_ssthresh(runs[0]) == 33
    assert first_ssthresh(runs[1]) == left_metrics(runs[0].runs[0])["ssthresh"]


def test_order_needs_seeds_and_one_alternative() -> None:
    with pytest.raises(fullpipe.ScenarioError, match="seeds"):
        fullpipe.run_in_order([path(), path()], seeds=[1])
    several = {**path(), "compare": ["cubic", "reno"], "flows": []}
    with pytest.raises(fullpipe.ScenarioError, match="one alternative"):
        fullpipe.run_in_order([several])


@pytest.mark.usefixtures("kernel_world")
def test_linux_saves_modelled_entry() -> None:
    document = path(save_ssthresh=True)
    flow = document["flows"][0]
    document["flows"] = [
        {**flow, "label": "first"},
        {**flow, "label": "second", "start": "4 s"},
        {"controller": "reno", "size": "100 KB", "start": "8 s", "start_jitter": "0", "label": "short"},
    ]
    document["hosts"] = {**document["hosts"], "model": "linux"}
    three = {
        "sim": fullpipe.run(document, seeds=3),
        "kernel": fullpipe.run(document, world="kernel", repetitions=3),
    }
    ours, theirs = ([run.summary["flows"] for run in three[world].runs] for world in ("sim", "kernel"))
    assert len(ours) == len(theirs) == 3
    for our, their in zip(zip(*ours, strict=True), zip(*theirs, strict=True), strict=True):
        assert {frozenset(flow["metrics"]) for flow in our} == {frozenset(flow["metrics"]) for flow in their}
        # The first flow's last round trips are 5 ms shorter in Linux (docs/explanation/hosts.md, Metrics).
        for name, near in (("ssthresh", 0.1), ("cwnd", 0.1), ("rtt_ns", 0.15)):
            # In segments and nanoseconds; the median of three runs is not that of one which was disturbed.
            model, kernel = (median(flow["metrics"][name] for flow in flows) for flows in (our, their))
            assert kernel == pytest.approx(model, rel=near, abs=2), name


@pytest.mark.usefixtures("kernel_world")
def test_kernel_cannot_start_with_entry() -> None:
    with pytest.raises(fullpipe.WorldError, match=r"hosts\.metrics"):
        fullpipe.run(path(ssthresh=33), world="kernel")


def test_uninheritable_order_is_refused_before_running() -> None:
    ran: list[str] = []
    watch = lambda world, done, total: ran.append(world)  # noqa: E731
    with pytest.raises(fullpipe.WorldError, match="kernel world cannot begin with what an earlier run"):
        fullpipe.run_in_order([path(), path()], world="kernel", watch=watch)
    with pytest.raises(fullpipe.ScenarioError, match=r'world: "all" cannot be used; expected one world'):
        fullpipe.run_in_order([path(), path()], world="all", watch=watch)
    assert not ran


@pytest.mark.parametrize("seeds", ["12", 3.0, True, -1, 2**70, [1.5, 2], [float("nan"), 2], [1, -2], [1]])
def test_order_with_invalid_seeds_is_refused(seeds: Any) -> None:
    with pytest.raises(fullpipe.ScenarioError, match=r"^seeds: ") as caught:
        fullpipe.run_in_order([path(), path()], seeds=seeds)
    given = seeds[0] if isinstance(seeds, list) and seeds[0] != 1 else seeds
    assert str(given) in caught.value.given or str(-2) in caught.value.given


@pytest.mark.parametrize("what", [path(), "f.toml", 3, {"hosts": 3}])
def test_an_order_is_a_list(what: Any) -> None:
    with pytest.raises(fullpipe.ScenarioError, match="expected a list of scenarios"):
        fullpipe.run_in_order(what)


@pytest.mark.parametrize("hosts", [None, {"metrics": None}])
def test_order_accepts_run_settings(hosts: Any) -> None:
    document = {**path(), "hosts": hosts}
    first, second = fullpipe.run_in_order([document, document], seeds=0)
    assert first.runs[0].seed == second.runs[0].seed == 0
    assert left_metrics(second.runs[0])["rtt"]


def test_longest_saved_rtt_is_accepted() -> None:
    slow = {
        "duration": "1000 s",
        "path": {"rate": "1 kbit/s", "rtt": "40 ms", "buffer": "100 KB"},
        "hosts": {"metrics": {}},
        "flows": [{"controller": "cubic"}],
    }
    first, second = fullpipe.run_in_order([slow, slow])
    # Beyond the 120 s that were once the most of an entry.
    assert float(left_metrics(first.runs[0])["rtt"].removesuffix(" ns")) > 120e9
    assert left_metrics(second.runs[0])


def test_only_what_somebody_wrote_is_noted() -> None:
    written = path(cwnd=10)
    assert [one.notes for one in fullpipe.run_in_order([path(), path()])] == [[], []]
    (note,) = fullpipe.run(written).notes
    assert note.startswith("hosts.metrics.cwnd is kept and not used")
    assert [one.notes for one in fullpipe.run_in_order([path(), written])] == [[], [note]]
