"""A scene: a scenario with a place for the controller that is judged, and what a seed varies in it."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from fullpipe.measures.run import Run
from fullpipe.scenario import path_facts

# By how much a seed varies rates and round-trip times, and how late a flow may start.
SPREAD = 0.05
START_JITTER = "500 ms"
# What a buffer given in BDP holds at least: the BDP of a small path is less than a packet.
FLOOR_PACKETS = 4
_MTU = 1500
# Flows from which on samples are fewer, so that stored runs stay small.
_MANY = 12


class Vary:
    """What a seed draws. It is the same for every controller, so that their runs are pairs."""

    def __init__(self, scene: str, seed: int) -> None:
        self._draws = random.Random(f"{scene} {seed}")

    def around(self, value: float) -> float:
        """A value within 5 % of this one."""
        return value * self._draws.uniform(1 - SPREAD, 1 + SPREAD)

    def between(self, low: float, high: float) -> float:
        """A value between these, e.g. a moment."""
        return self._draws.uniform(low, high)

    def arrivals(self, every_s: float, start_s: float, end_s: float) -> list[float]:
        """The times of a Poisson process."""
        times, now = [], start_s
        while (now := now + self._draws.expovariate(1 / every_s)) < end_s:
            times.append(now)
        return times


@dataclass(frozen=True)
class Made:
    """A scenario document, and what measures need to know of it."""

    document: dict[str, Any]
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Scene:
    """A scenario with a place for a controller. `quick`: also in the short form."""

    name: str
    build: Callable[[str, Vary], Made]
    quick: bool = False
    # Why it runs in the simulator only; empty if it does not.
    only_sim: str = ""

    def made(self, controller: str, seed: int) -> Made:
        """The scenario with that controller and that seed."""
        return self.build(controller, Vary(self.name, seed))


def made(
    vary: Vary,
    flows: Sequence[Mapping[str, Any]],
    *,
    rate: float = 50,
    rtt: float = 40,
    bdp: float = 1,
    seconds: float = 30,
    after: float = 10,
    path: Mapping[str, Any] | None = None,
    hosts: Mapping[str, Any] | None = None,
    **facts: Any,
) -> Made:
    """Flows over a bottleneck of `rate` Mbit/s and `rtt` ms, both varied, measured from `after` seconds on.

    Its buffer has `bdp` bandwidth-delay products, but at least four packets. `path` and `hosts` have further
    keys, and `facts` what else measures need.
    """
    rate, rtt = vary.around(rate), vary.around(rtt)
    mtu = (hosts or {}).get("mtu", _MTU)
    buffer = max(bdp * rate * rtt * 125, FLOOR_PACKETS * mtu)
    given = {
        "rate": f"{rate:.6f} Mbit/s",
        "rtt": f"{rtt:.6f} ms",
        "buffer": f"{buffer:.0f} B",
        **(path or {}),
    }
    if "deliveries" in given:
        del given["rate"]
    many = sum(one.get("count", 1) for one in flows) > _MANY
    document = {
        "duration": f"{seconds} s",
        "path": given,
        **({"hosts": dict(hosts)} if hosts else {}),
        "flows": [{"start_jitter": START_JITTER, **one} for one in flows],
        "record": {"interval": "500 ms" if many else "100 ms"},
    }
    return Made(document, {"rate": rate, "rtt": rtt, "after": after, "end": seconds, **facts})


class Seen:
    """A run and the facts of its scene, with its tables read once."""

    def __init__(self, run: Run, facts: Mapping[str, Any]) -> None:
        self.run, self.facts = run, facts

    @cached_property
    def flows(self) -> pl.DataFrame:
        """The samples of the flows, in order of time."""
        return self.run.flow_series().sort("time_s")

    @cached_property
    def links(self) -> pl.DataFrame:
        """The samples of the queues, in order of time."""
        return self.run.link_series().sort("time_s")

    @cached_property
    def payload_bytes(self) -> float:
        """Application bytes of a full segment."""
        share = path_facts.of(self.run.alternative).payload_share
        return float(self.run.alternative.spec["mtu_bytes"] * share)

    @cached_property
    def capacity_mbps(self) -> float:
        """The goodput that would fill the path, without its later changes."""
        return float(self.facts["rate"] * path_facts.of(self.run.alternative).payload_share)

    def grown(self, column: str, start_s: float, end_s: float, label: str = "") -> dict[str, float]:
        """By how much a counter of each flow grew in a period; `label` begins the names of the flows."""
        return _grown(self.flows, "flow", column, start_s, end_s, label)

    def link_grown(self, column: str, start_s: float, end_s: float) -> float:
        """By how much a counter of all queues and policers grew in a period."""
        if column not in self.links.columns:
            return 0.0
        return sum(_grown(self.links, "link", column, start_s, end_s, "").values())


def _grown(
    frame: pl.DataFrame, by: str, column: str, start_s: float, end_s: float, label: str
) -> dict[str, float]:
    """By how much a counter grew; a flow that begins later counts from zero."""
    chosen = frame.filter(pl.col(by).str.starts_with(label) & (pl.col("time_s") <= end_s))
    before = chosen.filter(pl.col("time_s") <= start_s).group_by(by).agg(pl.col(column).fill_null(0).last())
    after = chosen.group_by(by).agg(pl.col(column).fill_null(0).last())
    earlier = dict(before.iter_rows())
    return {name: float(value - earlier.get(name, 0)) for name, value in after.sort(by).iter_rows()}
