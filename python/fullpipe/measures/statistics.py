"""Means over seeds and their 95 % confidence intervals (Student's t); ratios, medians, shares, and modes.

Which for what: `estimate` for a mean; `geometric` for ratios, because the mean of 1/5 and 5 is 2.6 and their
geometric mean is 1; `median` where a few values are far off; `share` for how many runs do something; `modes`
before any of them, because the middle of two modes is a value that no run has. `difference` and `ratio`
compare two independent samples, `needed` says how large they have to be, and `same_distribution` and
`same_share` how far chance alone explains that they differ.

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
from statistics import NormalDist

LEVEL = 0.95
# The normal distribution's quantile for it.
_Z = 1.959963984540054
# Terms of a sum that are smaller than this part of it do not change it.
_NEGLIGIBLE = 1e-17
# Fewer values cannot show two modes.
FEWEST_FOR_MODES = 5
# The exponential of more than this is no number.
_LARGEST_LOG = 700.0


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds. `low` and `high` are None when one seed gives no interval.

    `kind` says which middle `mean` is: the mean, the geometric mean, the median or a share.
    """

    mean: float
    low: float | None
    high: float | None
    least: float
    most: float
    count: int
    kind: str = "mean"

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
    half = t_quantile(count - 1) * math.sqrt(_variance(values) / count)
    return Estimate(mean, mean - half, mean + half, min(values), max(values), count)


def geometric(values: Sequence[float]) -> Estimate:
    """The geometric mean of positive values, e.g. of ratios: the mean of the logarithms, and its interval."""
    of = estimate([math.log(value) for value in values])
    return _exponential(of, min(values), max(values))


def ratio(over: Sequence[float], under: Sequence[float]) -> Estimate:
    """The ratio of the geometric means of two independent samples of positive values.

    The interval is that of the `difference` of the logarithms. Its range is that of all ratios between the
    samples; its count the smaller one's.
    """
    middle = difference([math.log(value) for value in over], [math.log(value) for value in under])
    return _exponential(middle, min(over) / max(under), max(over) / min(under))


def difference(over: Sequence[float], under: Sequence[float]) -> Estimate:
    """The difference of the means of two independent samples.

    The interval is Welch's (Biometrika 34, 1947, p. 28), with his degrees of freedom rounded down. Its range
    is that of all differences between the samples; its count the smaller one's.
    """
    means = [math.fsum(values) / len(values) for values in (over, under)]
    middle, count = means[0] - means[1], min(len(over), len(under))
    low = high = None
    if count > 1:
        parts = [_variance(values) / len(values) for values in (over, under)]
        spread = math.fsum(parts)
        degrees = count - 1
        if spread > 0:
            each = zip(parts, (over, under), strict=True)
            degrees = int(spread**2 / math.fsum(part**2 / (len(values) - 1) for part, values in each))
        half = t_quantile(max(1, degrees)) * math.sqrt(spread)
        low, high = middle - half, middle + half
    return Estimate(middle, low, high, min(over) - max(under), max(over) - min(under), count, "difference")


def spread(*samples: Sequence[float]) -> float:
    """The standard deviation within samples: the root of the mean of their variances."""
    return math.sqrt(math.fsum(_variance(values) for values in samples) / len(samples))


def needed(difference: float, spread: float, power: float) -> int:
    """How large each of two samples must be for their means to differ in a two-sided test at 5 %.

    n = 2 (z(0.975) + z(power))^2 spread^2 / difference^2 + z(0.975)^2 / 4: the formula of the normal
    distribution with a correction for Student's t (Guenther, The American Statistician 35, 1981, p. 243).
    """
    if difference == 0:
        raise ValueError("no sample shows a difference of zero")
    quantiles = _Z + NormalDist().inv_cdf(power)
    return max(2, math.ceil(2 * (quantiles * spread / difference) ** 2 + _Z**2 / 4))


def same_distribution(one: Sequence[float], other: Sequence[float]) -> float:
    """How probable it is that two samples of one distribution are at least as far apart as these.

    Smirnov's limit for the largest distance of the empirical distribution functions (Annals of Mathematical
    Statistics 19, 1948, p. 279). Equal values and small samples make it larger than it is.
    """
    first, second = sorted(one), sorted(other)
    farthest, at, beside = 0.0, 0, 0
    while at < len(first) and beside < len(second):
        value = min(first[at], second[beside])
        while at < len(first) and first[at] == value:
            at += 1
        while beside < len(second) and second[beside] == value:
            beside += 1
        farthest = max(farthest, abs(at / len(first) - beside / len(second)))
    scaled = farthest * math.sqrt(len(first) * len(second) / (len(first) + len(second)))
    # Below this the series needs many terms, and is one.
    if scaled < 0.2:
        return 1.0
    terms = (2 * (-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101))
    return min(1.0, max(0.0, math.fsum(terms)))


def same_share(hits: int, count: int, expected: float) -> float:
    """How probable a share at least as far from the expected one is: twice the smaller binomial tail."""
    below = hits <= count * expected
    if not below:
        hits, expected = count - hits, 1 - expected
    logarithm = math.lgamma(count + 1) - math.lgamma(hits + 1) - math.lgamma(count - hits + 1)
    term = math.exp(logarithm + hits * math.log(expected) + (count - hits) * math.log1p(-expected))
    tail, odds = 0.0, (1 - expected) / expected
    while hits >= 0 and term > _NEGLIGIBLE * tail:
        tail += term
        term *= odds * hits / (count - hits + 1)
        hits -= 1
    return min(1.0, 2 * tail)


def median(values: Sequence[float]) -> Estimate:
    """The median and its distribution-free interval: two order statistics, by the sign test.

    Fewer than six values give no interval of 95 %.
    """
    ordered, count = sorted(values), len(values)
    of = estimate(ordered)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    outside, rank = 0.0, 0
    while rank < count // 2:
        outside += 2 * math.comb(count, rank) / 2**count
        if outside > 1 - LEVEL:
            break
        rank += 1
    low, high = (ordered[rank - 1], ordered[count - rank]) if rank else (None, None)
    return Estimate(middle, low, high, of.least, of.most, count, "median")


def share(hits: Sequence[bool]) -> Estimate:
    """The share of runs that do something, with Wilson's interval."""
    low, high = share_interval(sum(hits), len(hits))
    return Estimate(sum(hits) / len(hits), low, high, 0.0, 1.0, len(hits), "share")


@dataclass(frozen=True)
class Modes:
    """Two groups of values with nothing between them; the lower one first."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]


def modes(values: Sequence[float]) -> Modes | None:
    """The two modes of values; None if one middle describes them.

    Values have two modes if an empty gap takes more than two thirds of the range that they span, with a fifth
    of the values and at least two on either side; from ten values on, half of the range is enough. And the
    modes' means differ by at least a fifth of the larger one, or nobody need care. Less than five values show
    no modes. Of 20,000 samples of one normal distribution, 3.7 % of those of five values pass for two modes,
    1.5 % with six and below 1 % with more; of a uniform distribution 7, 4 and below 3 %.
    """
    ordered, count = sorted(values), len(values)
    if count < FEWEST_FOR_MODES:
        return None
    side = max(2, math.ceil(count / 5))
    gaps = [(ordered[at] - ordered[at - 1], at) for at in range(side, count - side + 1)]
    gap, at = max(gaps)
    if gap <= (ordered[-1] - ordered[0]) * (0.5 if count >= 10 else 2 / 3):
        return None
    lower, upper = tuple(ordered[:at]), tuple(ordered[at:])
    low, high = (math.fsum(part) / len(part) for part in (lower, upper))
    if high - low < max(abs(low), abs(high)) / 5:
        return None
    return Modes(lower, upper)


def same(values: Sequence[float]) -> bool:
    """Whether there are several values and all are equal, as far as sums of them can tell."""
    return len(values) > 1 and all(math.isclose(value, values[0], rel_tol=1e-9) for value in values)


def share_interval(successes: float, count: float) -> tuple[float, float]:
    """The 95 % confidence interval of a share by Wilson's method (J. Am. Stat. Assoc. 22, 1927, p. 209).

    The counts need not be whole: those of a sample of clusters are smaller than what was counted.
    """
    if not 0 <= successes <= count or not count:
        raise ValueError("a share needs at least one trial, and no more successes than trials")
    share, z = successes / count, _Z
    middle = share + z * z / (2 * count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    whole = 1 + z * z / count
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _exponential(of: Estimate, least: float, most: float) -> Estimate:
    """The estimate of logarithms as one of what they are logarithms of."""
    low, high = (None if bound is None else math.exp(min(bound, _LARGEST_LOG)) for bound in (of.low, of.high))
    return Estimate(math.exp(of.mean), low, high, least, most, of.count, "geometric mean")


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
