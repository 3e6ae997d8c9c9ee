"""An estimate: a value with an interval, or the reason why there is none."""

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Quantity:
    """A number in its unit, with an interval that is to cover the truth in 95 % of measurements.

    Without a number, `why` says why it is not measurable; it may be known to exceed `low` all the same.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""

    @classmethod
    def around(cls, value: float, half: float, *, least: float = 0.0) -> "Quantity":
        """A value and half the width of its interval, which does not go below `least`.

        Not measurable if the value itself is below that, or no number.
        """
        if not (least <= value < math.inf and 0 <= half < math.inf):
            return cls.none("the stamps contradict each other")
        return cls(value, max(least, value - half), value + half)

    @classmethod
    def none(cls, why: str, low: float | None = None) -> "Quantity":
        """Not measurable, but maybe more than `low`."""
        return cls(None, low, why=why)

    def scaled(self, factor: float) -> "Quantity":
        """In another unit."""
        value, low, high = (
            None if one is None else one * factor for one in (self.value, self.low, self.high)
        )
        return Quantity(value, low, high, self.why)

    def covers(self, truth: float) -> bool:
        """Whether the truth is inside the interval."""
        return self.low is not None and self.high is not None and self.low <= truth <= self.high

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def quantile(ordered: list[float], share: float) -> float:
    """A quantile of sorted values, between the two nearest."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def median(values: list[float]) -> float:
    """The middle one."""
    return quantile(sorted(values), 0.5)
