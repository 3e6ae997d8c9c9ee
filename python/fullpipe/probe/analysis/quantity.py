"""An estimate: a value with an interval, or the reason why there is none."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Quantity:
    """A number in its unit, with an interval that is to cover the truth in 95 % of measurements.

    Without a number, `why` says why it is not measurable.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    why: str = ""

    @classmethod
    def around(cls, value: float, half: float, *, least: float = 0.0) -> "Quantity":
        """A value and half the width of its interval, which does not go below `least`."""
        return cls(value, max(least, value - half), value + half)

    @classmethod
    def none(cls, why: str) -> "Quantity":
        """Not measurable."""
        return cls(None, why=why)

    def scaled(self, factor: float) -> "Quantity":
        """In another unit."""
        if self.value is None:
            return self
        low, high = (None if one is None else one * factor for one in (self.low, self.high))
        return Quantity(self.value * factor, low, high, self.why)

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
