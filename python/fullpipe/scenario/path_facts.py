"""What a path allows: its rate, round-trip time and bandwidth-delay product over time.

The native half computes these in one place (`PathFacts` in crates/scenario). This module adds units.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import fullpipe._native as _native
from fullpipe.scenario.scenario import Alternative

# The time from which a value holds, in seconds, and the value.
Steps = list[tuple[float, float]]


@dataclass(frozen=True)
class PathFacts:
    """The facts of one alternative."""

    # Headers of a packet from IP upwards, bytes.
    header_bytes: int
    # The share of a full-sized packet that is payload.
    payload_share: float
    # The highest rate that each direction ever has, bit/s; None if nothing limits it.
    forward_bps: float | None
    reverse_bps: float | None
    _round_trips: Sequence[dict[str, Any]]
    _by_label: dict[str, int]

    def rate_mbps(self, label: str | None = None) -> Steps | None:
        """The highest rate over time of the direction in which a flow's data go; None if nothing limits it.

        Without a flow, that of the forward direction, unless all flows go the other way.
        """
        return self._rate(label, 1e-6)

    def goodput_mbps(self, label: str | None = None) -> Steps | None:
        """The part of that rate that carries payload."""
        return self._rate(label, self.payload_share * 1e-6)

    def base_rtt_ms(self, label: str | None = None) -> Steps | None:
        """The round-trip time of the empty path, for a flow or else the nearest one; None if it is zero."""
        trip = self._trip(label)
        steps = None if trip is None else _steps(trip["rtt_ns"])
        return None if steps is None or not any(value for _, value in steps) else _scaled(steps, 1e-6)

    def bdp_bytes(self, label: str | None = None) -> Steps | None:
        """Bytes in flight that fill the pipe without a queue; None without a rate limit or a delay."""
        trip = self._trip(label)
        steps = None if trip is None else _steps(trip["bdp_bytes"])
        return None if steps is None or not any(value for _, value in steps) else steps

    def _rate(self, label: str | None, factor: float) -> Steps | None:
        trip = self._trip(label)
        return None if trip is None else _scaled(_steps(trip["rate_bps"]), factor)

    def _trip(self, label: str | None) -> dict[str, Any] | None:
        index = 0 if label is None else self._by_label.get(label, 0)
        return self._round_trips[index] if self._round_trips else None


def of(alternative: Alternative) -> PathFacts:
    """The facts of an alternative, computed once."""
    return _of(alternative.spec_json)


@lru_cache(maxsize=256)
def _of(spec_json: str) -> PathFacts:
    facts = json.loads(_native.path_facts(spec_json))
    labels = [flow["label"] for flow in json.loads(spec_json)["flows"]]
    return PathFacts(
        header_bytes=facts["header_bytes"],
        payload_share=facts["payload_share"],
        forward_bps=facts["forward_bps"],
        reverse_bps=facts["reverse_bps"],
        _round_trips=facts["round_trips"],
        _by_label=dict(zip(labels, facts["flows"], strict=True)),
    )


def _steps(pairs: Sequence[tuple[int, int]] | None) -> Steps | None:
    return None if pairs is None else [(at_ns / 1e9, float(value)) for at_ns, value in pairs]


def _scaled(steps: Steps | None, factor: float) -> Steps | None:
    return None if steps is None else [(at_s, value * factor) for at_s, value in steps]
