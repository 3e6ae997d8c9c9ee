"""The question: a path as its user knows it, what it is for, and which controllers may answer.

A quantity that nobody knows exactly is a range, `"20..80 ms"`. A `Question` with ranges stands for many
paths; `at` gives the one at a place in the unit cube, each range on a logarithmic scale.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from fullpipe._native import ScenarioError
from fullpipe.errors import mistake, renamed
from fullpipe.scenario import scenario
from fullpipe.scenario.path import OPTIONS, written_of
from fullpipe.scenario.path import PARAMETERS as PATH_PARAMETERS
from fullpipe.scenario.path_fields import Amount, PathValues, Range
from fullpipe.scenario.scenario import Scenario

# The quantities of a path that may be ranges, in the order in which answers name them.
_RANGED = {one.name: one for one in OPTIONS if one.range}
QUANTITIES = tuple(_RANGED)
# What the fields of the documents below are made from, for errors.
PARAMETERS = {
    **PATH_PARAMETERS,
    "hosts.tcp_memory": "tcp_memory",
    "duration": "duration",
    "flows[0].size": "flow_size",
    "compare": "candidates",
    # The candidates are in `compare`, so that only competitors are named here.
    "flows": "competitors",
}
# The scenario's own default, in words.
ASSUMED_BUFFER = "1 bdp, at least 10 packets (assumed)"
# Answers assume no single buffer, but these side by side, in bandwidth-delay products.
BUFFERS_BDP = (0.25, 1.0, 4.0)
_LEAST_BUFFER, _LEAST_BUFFER_BYTES = "10 packets", 15_000
# A flow is watched for this many round trips, but not shorter or longer than the times after it.
_ROUNDS, _LEAST_S, _MOST_S = 300, 20.0, 60.0
# Nor for more round trips or packets than these, as long as that leaves a second and a hundred round trips.
_MOST_ROUNDS, _PACKETS, _LEAST_ROUNDS, _LEAST_FAST_S = 5_000, 1.5e6, 100, 1.0
_PACKET_BITS = 12_000
# The size of the short flows whose completion is measured, if the user names none, and how many there are.
SHORT = "100 KB"
_SHORT_FLOWS = 10
# Larger ones take fewer flows, so that those take about this long together; and so large are long flows.
_SHORT_IN_ALL_S, _LEAST_SHORT_FLOWS = 60.0, 2
_MOST_ALONE_S, _MOST_SIZE_BYTES = 120.0, 1_000_000_000
_RANGE = ".."
# What divides a number in a resolved element; a probability is one in 2^32.
_SCALES = {"duration": 1e6, "probability": 2**32}
# A number takes all of its digits and its exponent, so that the dash of 1e-3 is not the one of a range.
_NUMBER = r"(?>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
_UNIT = r"[^\d.…–—−-]*"
# Two numbers with units, and dots or a dash between them, which spreadsheets turn into other characters.
_ENDS = re.compile(rf"\s*({_NUMBER})({_UNIT})(?:\.\.(?!\.)|…|[–—−-])\s*({_NUMBER})({_UNIT})", re.ASCII)
# A number with a unit, and how far it may be off: by a second one, or by a share.
_OFF = re.compile(rf"\s*({_NUMBER})([^\d.…–—−+±-]*)(?:±|\+/?[-−])\s*({_NUMBER})({_UNIT})", re.ASCII)


@dataclass(frozen=True)
class Numbers:
    """One path in numbers."""

    rate_bps: float
    rtt_ms: float
    buffer_bytes: float
    loss: float  # A probability.
    # Quantities of further elements: probabilities, milliseconds, bits per second, bytes.
    others: Mapping[str, float]

    @property
    def bdp_bytes(self) -> float:
        """What fills the pipe without a queue."""
        return self.rate_bps * self.rtt_ms / 8e3

    def of(self, quantity: str) -> float:
        """A quantity by its name in `QUANTITIES`."""
        if quantity in self.others:
            return self.others[quantity]
        return float(getattr(self, _FIELD.get(quantity, quantity)))


_FIELD = {"rate": "rate_bps", "rtt": "rtt_ms", "buffer": "buffer_bytes"}


@dataclass(frozen=True)
class Question(PathValues):
    """What the user asks. Fields are as given, with units; without a buffer, it is `ASSUMED_BUFFER`."""

    ecn: bool = False
    competitors: tuple[tuple[str, int], ...] = ()
    flow_size: Amount | None = None
    tcp_memory: str | None = None
    # Whether the hosts pace every flow, as fq does. A controller that needs pacing has it anyway.
    pacing: bool = True
    # How long a long flow is watched, from its start; by default `duration_s` decides.
    duration: Amount | None = None
    candidates: tuple[str, ...] = field(default=())
    # The buffer if none is given, in bandwidth-delay products; at least 10 packets.
    assumed_bdps: float | None = None

    def __post_init__(self) -> None:
        # Names are compared with those of results, which are the scenario's.
        object.__setattr__(self, "candidates", tuple(map(_canonical, self.candidates)))
        others = tuple((_canonical(name), count) for name, count in self.competitors)
        object.__setattr__(self, "competitors", others)

    @property
    def ranges(self) -> tuple[str, ...]:
        """The quantities that are ranges."""
        return tuple(name for name in QUANTITIES if isinstance(getattr(self, name), Range))

    @property
    def buffer_text(self) -> str:
        """The buffer as it was given, or what is assumed without one."""
        if self.buffer is None and self.assumed_bdps is not None:
            return f"{self.assumed_bdps:g} bdp, at least 10 packets (assumed)"
        return ASSUMED_BUFFER if self.buffer is None else str(self.buffer)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is assumed about the path, and what has no effect on it; empty for a range of paths."""
        if self.ranges:
            return ()
        return self._scenario([{}], ("cubic",), f"{self.duration_s():.3f} s").notes

    @property
    def neighbour(self) -> str:
        """Whom harm is measured on: the first competitor, else the default of most hosts."""
        return self.competitors[0][0] if self.competitors else "cubic"

    def at(self, places: Sequence[float]) -> "Question":
        """The path at `places`, one number from 0 to 1 for each of `ranges`.

        A buffer in bandwidth-delay products is one of that path's rate and round-trip time.
        """
        at = self._with({name: getattr(self, name).low for name in self.ranges})
        for name, place in zip(self.ranges, places, strict=True):
            given = getattr(self, name)
            low, high = (at._with({name: end}).numbers().of(name) for end in (given.low, given.high))
            if not 0 < low < high:
                expected = "a range from a smaller to a larger value above zero"
                raise mistake(name, str(given), expected, f"e.g. {_RANGED[name].range}")
            at = at.moved(name, low * (high / low) ** place)
        return at

    def moved(self, quantity: str, value: float) -> "Question":
        """The same path with another value of one quantity, in the units of `Numbers`."""
        return self._with({quantity: written(quantity, value)})

    def _with(self, values: Mapping[str, Any]) -> "Question":
        return replace(self, **values)

    def numbers(self) -> Numbers:
        """The path in numbers. Raises `ScenarioError` for a path that cannot be."""
        spec = self._scenario([{}], ["cubic"], "1 s").alternatives[0].spec
        elements = {one["kind"]: one for one in spec["forward"]}
        link = next(one for one in spec["forward"] if one.get("name") == "bottleneck")
        loss = elements.get("loss")
        both_ways = spec["forward"] + spec["reverse"]
        delays = [one["delay_ns"]["initial"] for one in both_ways if one["kind"] == "delay"]
        queue = link["queue"]
        rtt_ms = math.fsum(delays) / 1e6
        if rtt_ms == 0:
            raise mistake("rtt", self.rtt, "a round-trip time above zero", "measure it, e.g. with ping")
        return Numbers(
            rate_bps=_rate_bps(link),
            rtt_ms=rtt_ms,
            buffer_bytes=float(queue.get("bytes") or queue["packets"] * spec["mtu_bytes"]),
            loss=loss["probability"]["initial"] / 2**32 if loss else 0.0,
            others={
                name: elements.get(one.element, {}).get(one.field, 0) / _SCALES.get(one.shape, 1)
                for name, one in _RANGED.items()
                if one.element and one.field
            },
        )

    def duration_s(self) -> float:
        """How long a long flow is watched, from its start."""
        if self.duration is not None:
            return self._scenario([{}], ["cubic"], self.duration).alternatives[0].duration_s
        path = self.numbers()
        rtt_s = path.rtt_ms / 1e3
        long_s = min(max(_LEAST_S, _ROUNDS * rtt_s), _MOST_S)
        fast_s = min(_PACKETS * _PACKET_BITS / path.rate_bps, _MOST_ROUNDS * rtt_s)
        return min(long_s, max(fast_s, _LEAST_ROUNDS * rtt_s, _LEAST_FAST_S))

    @property
    def effort(self) -> float:
        """How many packets a long flow may send, as a multiple of what a flow is watched for by default."""
        return self.duration_s() * self.numbers().rate_bps / _PACKET_BITS / _PACKETS

    def alone(self, *, series: bool = False) -> Scenario:
        """The candidate with all the competitors; with `series`, runs keep what happened over time."""
        others = [
            {"controller": name, "count": count, "label": f"{name}-neighbour"}
            for name, count in self.competitors
        ]
        flows: list[dict[str, Any]] = [{"label": "you"}, *others]
        return self._scenario(flows, self.candidates, f"{self.duration_s():.3f} s", series=series)

    def short(self) -> Scenario:
        """Short flows of the candidate, one after the other, beside the competitors.

        Each has at least twice the time that its share of the path takes for it, before the next one starts,
        and the last one has four times as long.
        """
        duration_s, alone_s = self.duration_s(), self._takes_s()
        count = min(max(round(_SHORT_IN_ALL_S / alone_s), _LEAST_SHORT_FLOWS), _SHORT_FLOWS)
        # The first ones, too, meet competitors that fill the path.
        start_s = duration_s / 4
        apart_s = max(duration_s / 2 / _SHORT_FLOWS, 2 * alone_s)
        ends_s = max(duration_s, start_s + (count - 1) * apart_s + 4 * alone_s)
        others = [
            {"controller": name, "count": count, "label": f"{name}-neighbour"}
            for name, count in self.competitors
        ]
        flows = {
            "size": self.flow_size or SHORT,
            "count": count,
            "label": "short",
            "start": f"{start_s:.3f} s",
            "stagger": f"{apart_s:.3f} s",
        }
        return self._scenario([flows, *others], self.candidates, f"{ends_s:.3f} s")

    @property
    def flow_bytes(self) -> float:
        """How large a short flow is."""
        sized = self._scenario([{"size": self.flow_size or SHORT}], ["cubic"], "1 s").alternatives[0].spec
        return float(sized["flows"][0]["workload"]["size_bytes"])

    def _takes_s(self) -> float:
        """How long a flow of the given size takes with its share of an ideal path, at most two minutes."""
        path, size_bytes = self.numbers(), self.flow_bytes
        sharing = 1 + sum(count for _, count in self.competitors)
        takes_s = path.rtt_ms / 1e3 + size_bytes * 8 * sharing / path.rate_bps
        if self.flow_size is not None and (takes_s > _MOST_ALONE_S or size_bytes > _MOST_SIZE_BYTES):
            raise mistake(
                "flow_size",
                self.flow_size,
                f"at most 1 GB, and what its share of the path carries within {_MOST_ALONE_S:.0f} s",
                "leave it out: flows that large are long flows",
            )
        return min(takes_s, _MOST_ALONE_S)

    def duel(self) -> Scenario:
        """The candidate beside one neighbour; also the neighbour beside one of its own kind."""
        both = list(dict.fromkeys([*self.candidates, self.neighbour]))
        flows = [{"label": "you"}, {"controller": self.neighbour, "label": "neighbour"}]
        return self._scenario(flows, both, f"{self.duration_s():.3f} s")

    def neighbour_alone(self) -> Scenario:
        """The neighbour without anybody."""
        return self._scenario([{"label": "neighbour"}], [self.neighbour], f"{self.duration_s():.3f} s")

    def _buffer(self) -> Any:
        """The buffer as a scenario takes it; None for the scenario's own default."""
        if self.buffer is not None or self.assumed_bdps is None:
            return self.buffer
        assumed_bytes = self.assumed_bdps * replace(self, assumed_bdps=None).numbers().bdp_bytes
        return written("buffer", assumed_bytes) if assumed_bytes > _LEAST_BUFFER_BYTES else _LEAST_BUFFER

    def _scenario(
        self,
        flows: Sequence[Mapping[str, Any]],
        compared: Sequence[str],
        duration: Amount,
        *,
        series: bool = False,
    ) -> Scenario:
        hosts: dict[str, Any] = {"ecn": True} if self.ecn else {}
        if self.pacing:
            hosts["pacing"] = True
        if self.tcp_memory is not None:
            hosts["tcp_memory"] = self.tcp_memory
        document = {
            "name": "advise",
            "duration": duration,
            "path": written_of({**vars(self), "buffer": self._buffer()}),
            "flows": list(flows),
            "compare": list(compared),
            "record": {"series": series},
            **({"hosts": hosts} if hosts else {}),
        }
        try:
            return scenario.from_document(document, programs=False)
        except ScenarioError as error:
            raise renamed(error, PARAMETERS) from None


def _rate_bps(link: Mapping[str, Any]) -> float:
    """The rate of a bottleneck; of a delivery trace, the mean: an opportunity is 1500 bytes."""
    if "opportunities_ms" in link:
        times_ms = link["opportunities_ms"]
        return float(len(times_ms) * 1500 * 8e3 / times_ms[-1])
    rate_bps = link["rate_bps"]
    return float(rate_bps["initial"] if isinstance(rate_bps, Mapping) else rate_bps)


def parsed(name: str, given: Amount) -> Amount | Range:
    """A quantity as it was given, or a range: `20..80 ms`, `20-80 ms`, `40ms±10`, `40 ms ± 10 %`.

    A dash may be an en dash. One of the two numbers may omit the unit. A dash makes a range only between two
    numbers: `1e-3 s` and `-5 ms` are values.
    """
    if not isinstance(given, str):
        return given
    if (found := _OFF.fullmatch(given)) is not None:
        return _around(name, given, *(part.strip() for part in found.groups()))
    found = _ENDS.fullmatch(given)
    if found is None:
        if _RANGE not in given and "…" not in given:
            return given
        example = _RANGED[name].range if name in _RANGED else "20..80ms"
        raise mistake(name, given, "a value, or a range of two", f"e.g. {example}")
    low, low_unit, high, high_unit = (part.strip() for part in found.groups())
    return Range(f"{low} {low_unit or high_unit}".strip(), f"{high} {high_unit}".strip())


def _around(name: str, given: str, middle: str, unit: str, off: str, off_unit: str) -> Range:
    """The range of `MIDDLE UNIT ± OFF UNIT`; OFF is a share if its unit is `%` and the middle has another."""
    value, by = float(middle), float(off)
    if off_unit == "%" and unit not in ("", "%"):
        by *= value / 100
    elif unit and off_unit and unit.lower() != off_unit.lower():
        raise mistake(
            name, given, "one unit for both numbers, or % for the second", "e.g. 40ms±10 or 40ms±25%"
        )
    elif not unit:
        unit = off_unit
    if not 0 < by < value:
        raise mistake(name, given, "a second number above zero and below the first", "e.g. 40ms±10")
    low, high = (f"{value + sign * by:.12g} {unit}".strip() for sign in (-1, 1))
    return Range(low, high)


def competitors(given: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Competitors as typed: `cubic:3` is three of `cubic`; a controller may have parameters before that."""
    found = []
    for one in given:
        name, _, count = one.rpartition(":")
        if name and count.isdigit():
            if not 0 < int(count) <= 1_000:
                raise mistake("competitors", one, "1 to 1000 flows", "e.g. cubic:3")
            found.append((name, int(count)))
        else:
            found.append((one, 1))
    return tuple(found)


@cache
def _canonical(name: str) -> str:
    """A controller as a scenario names it: `bbr1` for `bbr`. An unknown one stays, to be refused later."""
    path = {"rate": "1 Mbit/s", "rtt": "1 ms"}
    document = {"path": path, "compare": [name], "flows": [{}], "duration": "1 s"}
    try:
        return scenario.from_document(document, programs=False).alternatives[0].label
    except ScenarioError:
        return name


def path_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a `Question` about its path, as typed."""
    return {name: parsed(name, value) if name in QUANTITIES else value for name, value in given.items()}


def written(quantity: str, value: float) -> str:
    """A quantity's number with a unit that a scenario takes."""
    shape = _RANGED[quantity].shape
    if shape == "rate":
        return f"{max(1, round(value))} bit/s"
    if shape == "duration":
        return f"{max(1, round(value * 1e3))} us"
    if shape == "size":
        return f"{max(1, round(value))} B"
    return f"{value:.9f}"


def shown(quantity: str, value: float, digits: int = 2) -> str:
    """The same for people: few digits and a usual unit."""
    scales: tuple[tuple[float, str], ...]
    shape = _RANGED[quantity].shape
    if shape == "rate":
        scales = ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"))
    elif shape == "duration":
        scales = ((1e3, "s"), (1.0, "ms"), (1e-3, "us"))
    elif shape == "size":
        scales = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B"))
    else:
        return f"{100 * value:.{digits}g} %"
    scale, unit = next(((scale, unit) for scale, unit in scales if value >= scale), scales[-1])
    return f"{float(f'{value / scale:.{digits}g}'):,g} {unit}"


def percent(part: float) -> str:
    """A part in per cent; small ones with a digit, for they decide whether somebody is ahead."""
    return f"{100 * part:.1f} %" if abs(part) < 0.0995 else f"{100 * part:.0f} %"
