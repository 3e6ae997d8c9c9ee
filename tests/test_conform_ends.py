"""Cases that counted only what came to its end: each sees a controller that stops, which it could not see.

The controller goes through BBR's phases by the clock. The planted mistake is the one argument more.
"""

import pytest

import fullpipe as fp
from fullpipe import _native


class Cycles(fp.Controller):
    """Refill, Up, 0.2 s of Down (or of ProbeRTT, which cuts the probe), Cruise."""

    paced = True
    phase = "startup"

    def __init__(
        self,
        mbps: float = 10.0,
        cycle_s: float = 1.0,
        stops_s: float = 1e9,
        stuck_s: float = 1e9,
        cut_s: float = 0.0,
        low_mbps: float = 0.0,
        falls_s: float = 1e9,
    ) -> None:
        self.mbps, self.low_mbps, self.falls_s = mbps, low_mbps, falls_s
        self.cycle_s, self.stops_s, self.stuck_s, self.cut_s = cycle_s, stops_s, stuck_s, cut_s
        self.cwnd = 1000
        self.bandwidth_bps = mbps * 1e6 * 1448 / 1500
        self.pacing_rate_bps = 0.9 * self.bandwidth_bps

    def on_ack(self, ack: _native.Ack) -> None:
        now = ack.connection.now_s
        if now >= self.falls_s:
            self.bandwidth_bps = self.low_mbps * 1e6 * 1448 / 1500
            self.pacing_rate_bps = 0.9 * self.bandwidth_bps
        self.phase = self.phase_at(now)
        self.cwnd = 1000 if self.phase != "probe_bw_cruise" else 850

    def phase_at(self, now: float) -> str:
        at = now % self.cycle_s
        if now < 0.5:
            return "startup"
        if now >= self.stuck_s:
            return "probe_rtt"
        if now >= self.stops_s:
            return "probe_bw_cruise"
        if at < 0.06:
            return "probe_bw_refill"
        if at < 0.16:
            return "probe_bw_up"
        if at < 0.36:
            return "probe_rtt" if now < self.cut_s else "probe_bw_down"
        return "probe_bw_cruise"


FAULTS = [
    # The case, its criterion, what both have, and what the mistaken one has, too.
    ("cruise-holds", "rounds", {"mbps": 50, "cycle_s": 1.45}, {"stops_s": 20}),
    ("reno-coexistence-rounds", "count", {"mbps": 10, "cycle_s": 0.5}, {"stops_s": 10}),
    ("cruise-headroom", "count", {"mbps": 50, "cycle_s": 3}, {"stops_s": 20}),
    ("aggregation-cruise", "stays", {"mbps": 20, "cycle_s": 3}, {"stops_s": 8}),
    ("probe-rtt-floor", "longest", {"mbps": 5, "cycle_s": 5, "cut_s": 1e9}, {"stuck_s": 15}),
    ("max-filter-two-cycles", "begun", {"mbps": 20, "cycle_s": 2, "low_mbps": 12}, {"cut_s": 11}),
    ("rate-down-10x", "seconds", {"mbps": 100, "cycle_s": 4, "low_mbps": 10, "falls_s": 9}, {"cut_s": 30}),
]


@pytest.mark.parametrize(("case", "key", "both", "mistake"), FAULTS, ids=[one[0] for one in FAULTS])
def test_a_case_sees_what_never_ends(
    case: str, key: str, both: dict[str, float], mistake: dict[str, float]
) -> None:
    def met(parameters: dict[str, float]) -> bool:
        if case == "max-filter-two-cycles":  # Two complete probes after the change, whenever that is.
            parameters = {**parameters, "falls_s": parameters.get("cut_s", 3) + 5}
        (found,) = fp.conform(Cycles.using(**parameters), [case]).results
        (check,) = [one for one in found.checks if one.criterion.key == key]
        return check.met

    assert met(both), "the controller without the mistake"
    assert not met({**both, **mistake}), "the mistake"
