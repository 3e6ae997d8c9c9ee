"""What one step of a flow led to: its measures, what an agent sees of them, and the default reward."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import fullpipe._native as _native

# An observation has the measures of this many steps, the latest last.
HISTORY = 8
# What an agent sees of a step. All of it is known to a sender; none of it is the path's own state.
MEASURES = ("rtt_ratio", "rtt_change", "sent_ratio", "loss", "delivered_ratio", "window_ratio")
# Ratios are cut off here, so that observations are bounded.
MOST = 10.0

# In the reward, a queue of one base RTT costs this share of the capacity,
DELAY_WEIGHT = 0.5
# and a step whose segments are all lost this many times the capacity.
LOSS_WEIGHT = 2.0


@dataclass(frozen=True)
class Outcome:
    """One step of one flow. The path's capacity and base RTT are for rewards; no observation has them."""

    duration_s: float
    goodput_bps: float  # Payload that the sender knows to be delivered.
    capacity_bps: float  # Payload that the path's rate would have carried.
    rtt_ms: float  # Smoothed, at the end of the step.
    rtt_before_ms: float  # Smoothed, at its begin.
    min_rtt_ms: float  # The least RTT that the flow has measured.
    base_rtt_ms: float  # The round-trip time of the empty path.
    sent: int  # Segments sent, retransmissions included.
    lost: int  # Segments marked lost.
    best_bps: float  # The highest goodput of any step so far.
    window_bytes: float  # What may be in flight: cwnd, or the pacing rate times the RTT.
    delivered_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Its fields, as the `info` of a step."""
        return asdict(self)

    @property
    def loss(self) -> float:
        """The share of the segments sent that were marked lost, at most 1."""
        return min(1.0, self.lost / self.sent) if self.sent else float(self.lost > 0)

    def observed(self, mss: int) -> NDArray[np.float32]:
        """What the agent sees, in the order of `MEASURES`."""
        delivered = self.delivered_bytes / mss
        volume = self.best_bps / 8 * self.min_rtt_ms / 1e3
        values = (
            _ratio(self.rtt_ms, self.min_rtt_ms),
            _ratio(self.rtt_ms, self.rtt_before_ms),
            _ratio(self.sent, delivered),
            self.loss,
            _ratio(self.goodput_bps, self.best_bps),
            _ratio(self.window_bytes, volume),
        )
        return np.clip(np.array(values, dtype=np.float32), 0.0, MOST)


Reward: TypeAlias = Callable[[Outcome], float]


def reward(outcome: Outcome) -> float:
    """The default reward: the used share of the capacity, less what delay and loss cost.

    goodput / capacity - 0.5 * (RTT / base RTT - 1) - 2 * loss, where an RTT above three times the base counts
    as three times. A flow that fills the path with no queue and no loss gets 1 for each step.
    """
    queued = min(2.0, max(0.0, outcome.rtt_ms / outcome.base_rtt_ms - 1)) if outcome.base_rtt_ms else 0.0
    used = outcome.goodput_bps / outcome.capacity_bps if outcome.capacity_bps else 0.0
    return used - DELAY_WEIGHT * queued - LOSS_WEIGHT * outcome.loss


def nothing() -> NDArray[np.float32]:
    """The observation of a step before the first one: ratios of 1 and no loss."""
    return np.array([0.0 if name == "loss" else 1.0 for name in MEASURES], dtype=np.float32)


def between(
    before: _native.FlowNow,
    after: _native.FlowNow,
    *,
    duration_s: float,
    capacity_bps: float,
    base_rtt_ms: float,
    best_bps: float,
    window_bytes: float,
    mss: int,
) -> Outcome:
    """The step from one view of a flow to a later one."""
    delivered = (after.delivered_segments - before.delivered_segments) * mss
    goodput = delivered * 8 / duration_s if duration_s else 0.0
    rtt = after.rtt_ms or base_rtt_ms
    return Outcome(
        duration_s=duration_s,
        goodput_bps=goodput,
        capacity_bps=capacity_bps,
        rtt_ms=rtt,
        rtt_before_ms=before.rtt_ms or rtt,
        min_rtt_ms=after.min_rtt_ms or rtt,
        base_rtt_ms=base_rtt_ms,
        sent=after.segments_sent - before.segments_sent,
        lost=after.lost - before.lost,
        best_bps=max(best_bps, goodput),
        window_bytes=window_bytes,
        delivered_bytes=delivered,
    )


def _ratio(value: float, to: float) -> float:
    """A ratio; 1 if there is nothing on either side."""
    if to > 0:
        return value / to
    return math.inf if value > 0 else 1.0
