"""What plays of loss-based cases share: losses that are placed, and windows that are compared."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from fullpipe.conformance.case import NotApplicableError
from fullpipe.conformance.stage import PACKET_BYTES, Lab, Look, Stage

# The states of the transport in which it repairs losses.
REPAIRS = ("recovery", "loss")
# The element of a roomy path that loses packets as they leave, before the bottleneck.
_GATE = "forward[0]"


def roomy(
    lab: Lab,
    packets: int,
    ms: float,
    *,
    bdps: float = 4.0,
    name: str,
    path: Mapping[str, Any] | None = None,
    **more: Any,
) -> Stage:
    """A stage whose path holds so many packets without a queue, with steps of a fortieth of a round trip."""
    mbps = packets * PACKET_BYTES * 8 / ms / 1e3
    before = {"before": [{"kind": "loss", "probability": "0 %"}]}
    return lab.stage(
        mbps=mbps, ms=ms, bdps=bdps, step_s=ms / 1e3 / 40, path={**before, **(path or {})}, name=name, **more
    )


def lose(stage: Stage, packets: int = 1) -> None:
    """Loses packets in a row on a roomy stage: all that leave, until these are so many."""
    sent = stage.now.sent
    stage.change(element=_GATE, loss="100 %")
    step_s = stage.packet_s / 4
    for _ in range(round(3 * stage.rtt_s / step_s)):
        stage.advance(step_s)
        if stage.now.sent - sent >= packets:
            break
    stage.change(element=_GATE, loss="0 %")


def sees_recovery(stage: Stage) -> None:
    """Raises `NotApplicableError` where nothing shows when losses are noticed and repaired."""
    if stage.now.state is None:
        raise NotApplicableError("its stack does not show when it recovers from losses")


def repaired(stage: Stage, within_s: float = 30.0) -> tuple[Look, Look]:
    """Goes on until a loss was noticed and repaired: the look before that, and the first one after it."""
    sees_recovery(stage)
    stage.until(lambda look: look.state in REPAIRS, within_s, "the recovery")
    before = stage.looks[-2]
    stage.mark("the loss is noticed")
    after = stage.until(lambda look: look.state == "open", within_s, "the end of the recovery")
    stage.mark("the loss is repaired")
    return before, after


def reduced(stage: Stage, packets: int = 1) -> tuple[Look, Look]:
    """Loses packets in a row: the look before the loss was noticed, and the first one after its repair."""
    lose(stage, packets)
    return repaired(stage)


def to_avoidance(stage: Stage, window: int) -> tuple[Look, Look]:
    """Slow start to a window, and a loss there, which ends it."""
    stage.until_above("cwnd", window - 1, 30, f"a window of {window} packets")
    return reduced(stage)


def rounds_from(stage: Stage, first: Look, count: int) -> list[Look]:
    """Goes on for so many rounds after a look: it, and the first look of each."""
    ends = []
    at = first.round
    for _ in range(count):
        at += 1
        limit = at
        ends.append(stage.until(lambda look, limit=limit: look.round >= limit, 10, "the next round"))  # type: ignore[misc]
    return [first, *ends]


def growths(looks: Sequence[Look]) -> list[float]:
    """By how much the window grew from each look to the next, as a factor."""
    return [later.cwnd / max(look.cwnd, 1) for look, later in pairwise(looks)]


def at_time(looks: Sequence[Look], time_s: float) -> Look:
    """The look nearest to a time."""
    return min(looks, key=lambda look: abs(look.time_s - time_s))


def largest_flight(looks: Sequence[Look]) -> int:
    """The most packets in flight."""
    return max((look.inflight for look in looks), default=0)


def threshold(stage: Stage) -> float | None:
    """The slow-start threshold in packets; None if it is not shown."""
    shown = getattr(stage.bed.flow(), "ssthresh", None)
    return None if shown is None else float(shown)


def a_round(stage: Stage, first: Look, last: Look) -> float:
    """Packets by which the window grew for each window that was delivered, between two looks."""
    looks = [look for look in stage.since(first) if look.time_s <= last.time_s]
    packet = stage.bed.payload_share * PACKET_BYTES
    windows = sum(
        (later.delivered_bytes - look.delivered_bytes) / packet / look.cwnd for look, later in pairwise(looks)
    )
    return (last.cwnd - first.cwnd) / windows
