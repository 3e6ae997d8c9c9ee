"""Means over seeds and their 95 % confidence intervals (Student's t).

The quantile is computed here because Fullpipe would need SciPy for nothing else. P(|T| <= t)
for n degrees of freedom is 1 - I_x(n/2, 1/2) with x = n / (n + t^2), where I is the regularised incomplete
beta function: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.5.27 and 26.7.1. I is
evaluated by its continued fraction, 26.5.8, with Lentz's method (Applied Optics 15, 1976, p. 668). The tests
compare the quantiles with published tables.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

LEVEL = 0.95
# The normal distribution's quantile for it.
_Z = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds. `low` and `high` are None when one seed gives no interval."""

    mean: float
    low: float | None
    high: float | None
    least: float
    most: float
    count: int

    @property
    def half_width(self) -> float | None:
        """Half the width of the interval: the number after the plus-minus sign."""
        return None if self.high is None else self.high - self.mean


def estimate(values: Sequence[float]) -> Estimate:
    """Mean, 95 % confidence interval and range of one measure over seeds."""
    count = len(values)
    if count == 0:
        raise ValueError("an estimate needs at least one value")
    mean = math.fsum(values) / count
    if count == 1:
        return Estimate(mean, None, None, values[0], values[0], 1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    half = t_quantile(count - 1) * math.sqrt(variance / count)
    return Estimate(mean, mean - half, mean + half, min(values), max(values), count)


def share_interval(successes: int, count: int) -> tuple[float, float]:
    """The 95 % confidence interval of a share by Wilson's method (J. Am. Stat. Assoc. 22, 1927, p. 209)."""
    if not 0 <= successes <= count or not count:
        raise ValueError("a share needs at least one trial, and no more successes than trials")
    share, z = successes / count, _Z
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    whole = 1 + z * z / count
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


@cache
def t_quantile(degrees: int, level: float = LEVEL) -> float:
    """The t with P(|T| <= t) = level, by bisection."""
    if degrees < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    low, high = 0.0, 1.0
    while _central_probability(high, degrees) < level:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _central_probability(middle, degrees) < level else (low, middle)
    return (low + high) / 2


def _central_probability(t: float, degrees: int) -> float:
    return 1 - _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # The fraction converges fast on this side of the mean; the other side is its mirror image.
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Lentz's method on the continued fraction of the incomplete beta function."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    total = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1 + step * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + step / c
            c = c if abs(c) > tiny else tiny
            total *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return total
