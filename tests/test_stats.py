"""Confidence intervals against published values."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from fullpipe.measures.statistics import (
    difference,
    estimate,
    geometric,
    median,
    modes,
    needed,
    ratio,
    same,
    same_distribution,
    same_share,
    share,
    share_interval,
    spread,
    t_quantile,
)


@pytest.mark.parametrize(
    ("degrees", "expected"),
    # Two-sided 95 %, from the table of NIST/SEMATECH, e-Handbook of Statistical Methods, 1.3.6.7.2.
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (29, 2.045), (100, 1.984)],
)
def test_quantiles_are_those_of_the_table(degrees: int, expected: float) -> None:
    assert t_quantile(degrees) == pytest.approx(expected, abs=5e-4)


def test_one_degree_quantile_is_cauchy() -> None:
    assert t_quantile(1) == pytest.approx(math.tan(math.pi * 0.475), rel=1e-10)


def test_many_degree_quantile_is_normal() -> None:
    assert t_quantile(1_000_000) == pytest.approx(1.959966, abs=1e-5)


def test_two_degree_quantile_is_closed_form() -> None:
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


def test_equal_values_have_zero_width_interval() -> None:
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


@settings(deadline=None)  # Bisection takes a while on a busy machine.
@given(some.integers(1, 500))
def test_more_degrees_never_widen(degrees: int) -> None:
    assert t_quantile(degrees) >= t_quantile(degrees + 1)


def test_share_interval_is_wilsons() -> None:
    # Brown, Cai and DasGupta, Statistical Science 16 (2001), and the limits.
    assert share_interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert share_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert share_interval(100, 100) == pytest.approx((0.9630, 1.0), abs=1e-4)
    for wrong in ((1, 0), (-1, 2), (3, 2)):
        with pytest.raises(ValueError, match="share"):
            share_interval(*wrong)


def test_ratios_average_by_their_logarithms() -> None:
    found = geometric([0.2, 5.0])
    assert found.mean == pytest.approx(1.0) and found.kind == "geometric mean"
    assert (found.least, found.most, found.count) == (0.2, 5.0, 2)
    # The interval is that of the logarithms: symmetric by factors, and never below zero.
    three = geometric([1.0, 2.0, 4.0])
    assert three.low is not None and three.high is not None and 0 < three.low < 2.0
    assert three.high / three.mean == pytest.approx(three.mean / three.low)
    assert geometric([3.0]).low is None


def test_unequal_sample_ratio_has_welch_interval() -> None:
    # By hand: logarithms to base 10 of 10, 100, 1000 and of 1, 10, 1: means 2 and 1/3, variances 1 and 1/3.
    found = ratio([10.0, 100.0, 1000.0], [1.0, 10.0, 1.0])
    spread = 1 / 3 + 1 / 9
    degrees = int(spread**2 / ((1 / 3) ** 2 / 2 + (1 / 9) ** 2 / 2))
    half = t_quantile(degrees) * math.sqrt(spread)
    assert degrees == 3 and found.low is not None and found.high is not None
    assert math.log10(found.mean) == pytest.approx(2 - 1 / 3)
    assert math.log10(found.low) == pytest.approx(2 - 1 / 3 - half)
    assert math.log10(found.high) == pytest.approx(2 - 1 / 3 + half)
    assert ratio([2.0], [1.0, 3.0]).low is None
    equal = ratio([2.0, 2.0], [1.0, 1.0, 1.0])
    assert equal.low == pytest.approx(2.0) and equal.high == pytest.approx(2.0)


def test_median_interval_uses_sign_test() -> None:
    # Published tables: the least and the most of six, and the sixth and fifteenth of twenty.
    assert (median([6.0, 1, 5, 2, 4, 3]).low, median([6.0, 1, 5, 2, 4, 3]).high) == (1, 6)
    twenty = median([float(value) for value in range(1, 21)])
    assert (twenty.mean, twenty.low, twenty.high) == (10.5, 6, 15)
    assert median([1.0, 2, 3, 4, 1e9]).mean == 3 and median([1.0, 2, 3, 4, 1e9]).low is None


def test_share_of_runs_has_wilson_interval() -> None:
    found = share([True] * 5 + [False] * 5)
    assert (found.mean, found.count) == (0.5, 10)
    assert (found.low, found.high) == pytest.approx((0.2366, 0.7634), abs=1e-4)


@pytest.mark.parametrize(
    ("values", "lower"),
    [
        ([1.9, 13.0, 1.8, 12.5, 13.2], 2),
        ([0.4, 0.41, 0.39, 0.86, 0.87, 0.85], 3),
        ([-5.0, -5.1, -4.9, 5.0, 5.1], 3),
        ([1.0, 2.0, 3.0, 4.0, 5.0], None),
        ([1.0, 1.1, 1.0, 1.1, 9.0], None),  # One run is no mode.
        ([1.0, 1.0, 5.0, 5.0], None),  # Too few to tell.
        ([100.0, 100.1, 104.0, 104.1, 104.0], None),  # Two groups, but the mean tells it well enough.
        ([0.5] * 8 + [0.9] * 8, 8),
        ([0.5] * 14 + [0.9] * 2, None),  # Less than a fifth.
        ([0.0] * 6, None),
    ],
)
def test_two_modes_are_told_from_one(values: list[float], lower: int | None) -> None:
    for turn in range(3):
        shuffled = random.Random(turn).sample(values, len(values))
        found = modes(shuffled)
        if lower is None:
            assert found is None
        else:
            assert found is not None and len(found.lower) == lower
            assert sorted(found.lower + found.upper) == sorted(values)
            assert max(found.lower) < min(found.upper)


@pytest.mark.parametrize(("count", "most"), [(5, 0.06), (6, 0.03), (10, 0.02), (20, 0.002)])
def test_one_normal_distribution_is_rarely_bimodal(count: int, most: float) -> None:
    source = random.Random(count)
    found = [modes([source.gauss(0, 1) for _ in range(count)]) is not None for _ in range(4_000)]
    assert sum(found) / len(found) <= most


def test_equal_is_more_than_one_value() -> None:
    assert same([0.1 + 0.2, 0.3]) and not same([1.0]) and not same([1.0, 1.0001]) and not same([])


@pytest.mark.parametrize(
    ("effect", "power", "expected"),
    # Two-sided 5 %, two-sample t test, as G*Power 3 has it (Faul et al., Behavior Research Methods 39, 2007);
    # for 80 % also Cohen, A Power Primer (Psychological Bulletin 112, 1992), table 2.
    [(0.2, 0.9, 527), (0.5, 0.9, 86), (0.8, 0.9, 34), (0.2, 0.8, 394), (0.5, 0.8, 64), (0.8, 0.8, 26)],
)
def test_needed_counts_are_published_ones(effect: float, power: float, expected: int) -> None:
    # Cohen has 393 for 0.2, without the correction.
    assert needed(effect, 1.0, power) == expected
    assert needed(-7 * effect, 7.0, power) == expected


def test_nothing_shows_a_difference_of_zero() -> None:
    assert needed(1.0, 0.0, 0.9) == 2
    with pytest.raises(ValueError, match="zero"):
        needed(0.0, 1.0, 0.9)


def test_difference_of_means_has_welch_interval() -> None:
    # The logarithms of the ratio's example above.
    found = difference([1.0, 2.0, 3.0], [0.0, 1.0, 0.0])
    assert found.low is not None and found.mean == pytest.approx(2 - 1 / 3)
    assert found.mean - found.low == pytest.approx(t_quantile(3) * math.sqrt(1 / 3 + 1 / 9))
    assert (found.least, found.most, found.count) == (0.0, 3.0, 3)
    assert spread([1.0, 2.0, 3.0], [0.0, 1.0, 0.0]) == pytest.approx(math.sqrt((1 + 1 / 3) / 2))


@pytest.mark.parametrize(
    ("scaled", "expected"),
    # Smirnov (1948), table: the limits for 10, 5, 1 and 0.1 %.
    [(1.224, 0.10), (1.358, 0.05), (1.628, 0.01), (1.949, 0.001)],
)
def test_distance_of_distributions_has_smirnovs_limit(scaled: float, expected: float) -> None:
    # Shifting 10,000 equally spaced values moves that part of them beyond all others.
    count = 10_000
    apart = round(scaled / math.sqrt(count / 2) * count)
    one = [float(value) for value in range(count)]
    other = [float(value + apart) for value in range(count)]
    assert same_distribution(one, other) == pytest.approx(expected, rel=0.02)


def test_equal_and_separate_samples_are_extremes() -> None:
    assert same_distribution([1.0] * 50, [1.0] * 70) == 1.0
    assert same_distribution([1.0] * 50, [2.0] * 50) < 1e-20
    assert same_distribution([1.0, 2.0], [1.0, 2.0, 1.5]) == pytest.approx(1.0)


def test_share_has_binomial_tail() -> None:
    # Of ten, at most two: (1 + 10 + 45) / 1024, on either side.
    assert same_share(2, 10, 0.5) == pytest.approx(112 / 1024)
    assert same_share(8, 10, 0.5) == pytest.approx(112 / 1024)
    assert same_share(5, 10, 0.5) == 1.0
    # Of three with one tenth each: at least two are 0.028.
    assert same_share(2, 3, 0.1) == pytest.approx(0.056)
    assert same_share(0, 20, 0.5) == pytest.approx(2 / 2**20)
    # Large counts as the normal distribution has it: three standard deviations.
    assert same_share(500_000 - 1_500, 1_000_000, 0.5) == pytest.approx(0.0027, rel=0.01)
