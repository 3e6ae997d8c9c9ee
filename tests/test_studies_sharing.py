"""Measures of sharing: rates, shares, Jain's index, convergence."""

import math

import polars as pl
import pytest

from fullpipe.measures.run import Run
from fullpipe.scenario.scenario import from_document
from fullpipe_studies import sharing


def run(delivered: dict[str, list[float]]) -> Run:
    """A run whose flows have delivered so many megabits by each second."""
    document = {
        "path": {"rate": "10 Mbit/s", "rtt": "10 ms"},
        "flows": [{"controller": "reno", "label": name} for name in delivered],
    }
    rows = [
        {"time_s": float(second), "flow": name, "delivered_bytes": round(amount * 1e6 / 8)}
        for name, amounts in delivered.items()
        for second, amount in enumerate(amounts)
    ]
    return Run.of_frames(from_document(document).alternatives[0], "sim", 1, {}, rows)


TWO = run({"bbr-1": [0, 1, 3, 6], "bbr-2": [0, 1, 2, 3], "cubic": [0, 0, 0, 1]})


def test_rates_are_of_the_period_only() -> None:
    assert sharing.rates(TWO, 1.0) == pytest.approx({"bbr-1": 2.5, "bbr-2": 1.0, "cubic": 0.5})
    assert sharing.rates(TWO, 0.0, 2.0) == pytest.approx({"bbr-1": 1.5, "bbr-2": 1.0, "cubic": 0.0})
    assert sharing.rates(TWO, 3.0) == {} and sharing.rates(TWO, 9.0) == {}


def test_share_covers_all_flows_with_label() -> None:
    rates = sharing.rates(TWO, 1.0)
    assert sharing.share(rates, "bbr") == pytest.approx(3.5 / 4)
    assert sharing.share(rates, "cubic") == pytest.approx(0.5 / 4)
    assert sharing.share(rates, "reno") is None and sharing.share({"bbr": 0.0}, "bbr") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bbr", True), ("bbr-12", True), ("bbr-x", False), ("bbr2", False), ("b-bbr", False)],
)
def test_labels_may_have_numbers(name: str, expected: bool) -> None:
    assert sharing.is_labelled(name, "bbr") is expected


def test_jains_index() -> None:
    assert sharing.jain([2.0, 2.0, 2.0]) == pytest.approx(1)
    assert sharing.jain([0.0, 0.0, 6.0]) == pytest.approx(1 / 3)
    assert sharing.jain([]) is None and sharing.jain([0.0]) is None


def test_bins_are_whole_ones() -> None:
    bins = sharing.binned(TWO, 1.0, 3.0).filter(pl.col("flow") == "bbr-1")
    assert bins["time_s"].to_list() == [1.0, 2.0, 3.0]
    assert bins["mbps"].to_list() == pytest.approx([0, 1, 2])


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ([(0.0, 0.95), (1.0, 0.95)], 0.0),
        ([(0.0, 0.5), (1.0, 0.95)], 1.0),
        ([(0.0, 0.95), (1.0, 0.5), (2.0, 0.95)], 2.0),
        ([(0.0, 0.95), (1.0, 0.5)], math.inf),
        ([], None),
    ],
)
def test_flows_converge_when_staying_fair(indices: list[tuple[float, float]], expected: float | None) -> None:
    assert sharing.converged_s(indices, 0.9) == expected
