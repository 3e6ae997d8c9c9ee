"""The arithmetic of differences, which agreement and grids share."""

import math

import pytest

from fullpipe.agreement.differences import factor, points, relative


@pytest.mark.parametrize(
    ("ours", "theirs", "message", "tolerable"),
    [
        (102.9, 100, "+2.9%", True),
        (96.9, 100, "-3.1%", False),
        (99.99, 100, "+0.0%", True),  # No negative zero.
        (0, 0, "+0.0%", True),
        (1, 0, "+inf%", False),
    ],
)
def test_relative(ours: float, theirs: float, message: str, tolerable: bool) -> None:
    found = relative(0.03)(ours, theirs)
    assert (found.message, found.tolerable, found.limit) == (message, tolerable, "3%")


@pytest.mark.parametrize(
    ("ours", "theirs", "directed", "undirected", "tolerable"),
    [
        (50, 0, "few", "few", True),
        (100, 80, "x 1.25", "x 1.25", True),
        # Exactly the tolerance is tolerable, whichever is larger.
        (150, 100, "x 1.50", "x 1.50", True),
        (100, 150, "x 0.67", "x 1.50", True),
        (100, 151, "x 0.66", "x 1.51", False),
        (0, 51, "x inf", "x inf", False),
    ],
)
def test_factors(ours: float, theirs: float, directed: str, undirected: str, tolerable: bool) -> None:
    for has_direction, message in ((True, directed), (False, undirected)):
        found = factor(1.5, few=50, directed=has_direction)(ours, theirs)
        assert (found.message, found.tolerable, found.limit) == (message, tolerable, "x 1.5")
    assert (found.apart is None) == (message == "few")


def test_factor_difference_is_signed() -> None:
    compare = factor(1.5, few=50, directed=True)
    assert compare(200, 100).apart == pytest.approx(math.log(2))
    assert compare(100, 200).apart == pytest.approx(-math.log(2))
    assert compare(0, 100).apart == -math.inf


def test_points_of_shares() -> None:
    found = points(0.08)(0.58, 0.51)
    assert (found.message, found.tolerable, found.limit) == ("+7.0 points", True, "8 points")
    assert not points(0.08)(0.4, 0.5).tolerable
