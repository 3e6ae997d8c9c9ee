"""Confidence intervals against published values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from fullpipe.results.statistics import estimate, share_interval, t_quantile


@pytest.mark.parametrize(
    ("degrees", "expected"),
    # Two-sided 95 %, from the table of NIST/SEMATECH, e-Handbook of Statistical Methods, 1.3.6.7.2.
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (29, 2.045), (100, 1.984)],
)
def test_quantiles_are_those_of_the_table(degrees: int, expected: float) -> None:
    assert t_quantile(degrees) == pytest.approx(expected, abs=5e-4)


def test_quantile_of_one_degree_is_that_of_cauchy() -> None:
    assert t_quantile(1) == pytest.approx(math.tan(math.pi * 0.475), rel=1e-10)


def test_quantile_of_many_degrees_nears_the_normal_one() -> None:
    assert t_quantile(1_000_000) == pytest.approx(1.959966, abs=1e-5)


def test_quantile_of_two_degrees_has_a_closed_form() -> None:
    # P(|T| <= t) = t / sqrt(2 + t^2).
    assert t_quantile(2) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-10)


def test_other_levels() -> None:
    assert t_quantile(10, 0.99) == pytest.approx(3.169, abs=5e-4)


def test_interval_of_a_worked_example() -> None:
    # Mean 3, s = sqrt(2.5), n = 5: half width 2.776 x 1.5811 / 2.2361 = 1.963.
    found = estimate([1, 2, 3, 4, 5])
    assert found.mean == 3
    assert found.half_width == pytest.approx(1.963, abs=1e-3)
    assert (found.least, found.most, found.count) == (1, 5, 5)


def test_one_seed_gives_no_interval() -> None:
    found = estimate([7.0])
    assert (found.mean, found.low, found.high, found.half_width) == (7.0, None, None, None)


def test_equal_values_give_an_interval_of_no_width() -> None:
    found = estimate([2.5, 2.5, 2.5])
    assert (found.low, found.high) == (2.5, 2.5)


def test_nothing_is_no_sample() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        estimate([])


@given(some.lists(some.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_the_interval_holds_the_mean(values: list[float]) -> None:
    found = estimate(values)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.mean <= found.high


@given(some.integers(1, 500))
def test_more_degrees_never_widen(degrees: int) -> None:
    assert t_quantile(degrees) >= t_quantile(degrees + 1)


def test_the_interval_of_a_share_is_wilsons() -> None:
    # Brown, Cai and DasGupta, Statistical Science 16 (2001), and the limits.
    assert share_interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert share_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert share_interval(100, 100) == pytest.approx((0.9630, 1.0), abs=1e-4)
    for wrong in ((1, 0), (-1, 2), (3, 2)):
        with pytest.raises(ValueError, match="share"):
            share_interval(*wrong)
