"""The paths of the grid on which figure 4 compares the simulator with the kernel.

The emulator carries up to 100 Mbit/s on time on every machine, and each kernel run takes its wall time. So
the kernel world has 24 of the 160 paths with such rates. They are chosen before any run, so that classes of
buffer over BDP (a factor of four each) have the share that they have in the grid of 320. Within a class the
paths are evenly spaced in the order of that ratio. What they cannot represent is the grid's row of 1 Gbit/s,
where the hosts' interface is the bottleneck.
"""

import itertools
import math
from collections import Counter
from functools import cache
from typing import NamedTuple

from fullpipe_studies.papers.imc19 import _grid

PATHS, _CARRIED_MBPS = 24, 100
# Classes beyond these powers of four are counted with them.
_LEAST, _MOST = -3, 4


class Path(NamedTuple):
    """A path of the grid."""

    rate_mbps: int
    rtt_ms: int
    buffer_kb: int

    @property
    def buffer_bdp(self) -> float:
        """The buffer in BDP."""
        return self.buffer_kb * 8 / (self.rate_mbps * self.rtt_ms)


def of_class(path: Path) -> int:
    """The class of a path: buffer over BDP, as the power of four below it."""
    return min(_MOST, max(_LEAST, math.floor(math.log(path.buffer_bdp, 4))))


@cache
def paths() -> tuple[Path, ...]:
    """The chosen paths."""
    grid = [Path(*one) for one in itertools.product(_grid.RATES_MBPS, _grid.RTTS_MS, _grid.BUFFERS_KB)]
    chosen: list[Path] = []
    for kind, count in sorted(_counts(Counter(map(of_class, grid))).items()):
        there = [path for path in grid if path.rate_mbps <= _CARRIED_MBPS and of_class(path) == kind]
        there.sort(key=lambda path: (path.buffer_bdp, path))
        chosen += [there[round((place + 0.5) * len(there) / count - 0.5)] for place in range(count)]
    return tuple(chosen)


def _counts(grid: Counter[int]) -> dict[int, int]:
    """How many paths of each class: its share of the grid, the largest remainders rounded up."""
    exact = {kind: count * PATHS / grid.total() for kind, count in grid.items()}
    whole = {kind: int(share) for kind, share in exact.items()}
    by_remainder = sorted(exact, key=lambda kind: (whole[kind] - exact[kind], kind))
    for kind in by_remainder[: PATHS - sum(whole.values())]:
        whole[kind] += 1
    return whole
