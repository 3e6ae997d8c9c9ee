"""The keys of a path as arguments, as `fullpipe.scenario.path.generated()` writes them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypedDict

Amount: TypeAlias = str | int | float


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, both with a unit."""

    low: str
    high: str

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


class PathFields(TypedDict, total=False):
    """The keys of a path, as keyword arguments."""

    # Rate of the bottleneck, e.g. 100 Mbit/s.
    rate: Amount
    # Round-trip time of the empty path, e.g. 40 ms.
    rtt: Amount
    # Size of the bottleneck's queue; with --deliveries, a bdp is of their mean rate, e.g. 2 bdp.
    buffer: Amount
    # Random loss, e.g. 0.1 %.
    loss: Amount
    # Random extra delay, from zero to this, e.g. 2 ms.
    jitter: Amount
    # Instead of a rate: the times at which the link can send a packet, in Mahimahi's format.
    deliveries: str | Path
    # Discipline of the bottleneck; see `fullpipe queues`, e.g. codel.
    queue: str
    # "tbf": the link is Linux's tc-tbf, which takes or drops a host's bursts whole; needs --burst.
    router: str
    # Size of a token bucket, which the link then is; with --router, of tc-tbf's bucket, e.g. 32 KB.
    burst: Amount
    # Rate, and depth of the bucket, of a policer: what finds no tokens is dropped, e.g. 20 Mbit/s, 500 KB.
    policer: str
    # Packets may overtake each other by jitter, e.g. true.
    jitter_reorders: bool
    # Share of packets that are held back, and for how long, e.g. 1 %, 5 ms.
    reorder: str


@dataclass(frozen=True, kw_only=True)
class PathValues:
    """The same as a value; None where nothing is said."""

    rate: Amount | Range | None = None
    rtt: Amount | Range | None = None
    buffer: Amount | Range | None = None
    loss: Amount | Range | None = None
    jitter: Amount | Range | None = None
    deliveries: str | Path | None = None
    queue: str | None = None
    router: str | None = None
    burst: Amount | None = None
    policer: str | None = None
    jitter_reorders: bool = False
    reorder: str | None = None
