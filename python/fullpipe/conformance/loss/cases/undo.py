"""Losses and timeouts that were none, and losses that were."""

from itertools import pairwise

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import REPAIRS, lose, roomy, sees_recovery, to_avoidance
from fullpipe.conformance.stage import Lab, Look, Stage

_NO_UNDO = "a probe timeout declares nothing lost, so that nothing is to be undone (RFC 9002 section 6.2)"
# Behind the element of losses, the link, its loss and the half of the round trip.
_FAR = "forward[4]"


def _recoveries(stage: Stage) -> list[tuple[Look, Look]]:
    """For each recovery: the look before it, and that of the largest window in three rounds."""
    sees_recovery(stage)
    found = []
    before: Look | None = None
    for last, look in pairwise(stage.looks):
        if last.state not in REPAIRS and look.state in REPAIRS:
            before = last
        elif before is not None and last.state in REPAIRS and look.state not in REPAIRS:
            until_s = look.time_s + 3 * stage.rtt_s
            after = [one for one in stage.since(look) if one.time_s <= until_s]
            found.append((before, max(after, key=lambda one: one.cwnd)))
            before = None
    return found


@LossCase.of(
    """
    dropped [at most 0]: packets dropped by the queue
        ours: only the first loss is one
    recoveries [at least 3]: recoveries from packets that were late
        ours: the case is what it says
    share [at least 0.8]: share of them within three rounds of which the window is 0.93 of that before
        ours: all but where a second packet is late, which begins another recovery
    """,
    source="RFC 9438 4.9.2; RFC 4015 3.2",
    main="share",
    bugs="quic-go/quic-go#5757",
    seeds=(1, 2),
    not_in={"quic": _NO_UNDO},
)
def undo_recovery(lab: Lab) -> Measured:
    """A recovery from packets that were only late gives the window back.

    One packet of two thousand is 60 ms late on 90 Mbit/s and 40 ms, so that it is retransmitted, and
    arrives. A stack without an undo fails here (quic-go/quic-go#5757).
    """
    late = {"after": [{"kind": "reorder", "probability": "0.05 %", "delay": "60 ms"}]}
    stage = roomy(lab, 300, 40, path=late, name="packets that are late")
    to_avoidance(stage, 60)
    stage.run(4 * stage.rtt_s)
    first = len(stage.looks)
    stage.run(12)
    early = stage.looks[first].time_s
    shares = [
        after.cwnd / before.cwnd
        for before, after in _recoveries(stage)
        if early < before.time_s < stage.now.time_s - 4 * stage.rtt_s
    ]
    return {
        "dropped": stage.bed.dropped(),
        "recoveries": float(len(shares)),
        "share": sum(one >= 0.93 for one in shares) / len(shares) if shares else None,
    }


@LossCase.of(
    """
    timeouts [at least 1]: timeouts
        ours: the case is what it says
    dropped [at most 0]: packets dropped by the queue
        ours: the case is what it says
    window [at least 0.9]: window 1 s after the stall, of that before
        1; ours: some packets
    """,
    source="RFC 9438 4.9.1; RFC 5682 3; RFC 4015 3.2",
    main="window",
    not_in={"quic": _NO_UNDO},
)
def undo_timeout(lab: Lab) -> Measured:
    """A timeout that was none gives the window back.

    In congestion avoidance on 90 Mbit/s and 40 ms, the path's delay is 600 ms for as long: the timer fires
    although nothing is lost.
    """
    far = {"after": [{"kind": "delay", "delay": "1 ms"}]}
    stage = roomy(lab, 300, 40, path=far, bdps=8, name="the path stalls for 0.6 s")
    to_avoidance(stage, 80)
    stage.run(8 * stage.rtt_s)
    before = stage.now
    stage.change(element=_FAR, delay="600 ms")
    stage.run(0.65)
    stage.change(element=_FAR, delay="1 ms")
    stage.run(1)
    return {
        "timeouts": stage.now.timeouts - before.timeouts,
        "dropped": stage.bed.dropped(),
        "window": stage.now.cwnd / before.cwnd,
    }


@LossCase.of(
    """
    lost [3 to 20]: packets lost
        ours: three, and what leaves at the same moment
    window [at most 0.75]: window ten round trips after the recovery, of that before
        0.7; ours: growth of ten round trips
    """,
    source="RFC 9438 4.9.2 (only spurious events are undone)",
    bugs="cloudflare/quiche#1411, cloudflare/quiche#1848",
)
def few_losses_are_losses(lab: Lab) -> Measured:
    """A few lost packets of many are no spurious loss.

    Three packets are lost at a window of about 400, on 180 Mbit/s and 40 ms. A stack that undid the
    reduction because few were lost fails here (cloudflare/quiche#1411, cloudflare/quiche#1848).
    """
    stage = roomy(lab, 600, 40, name="three packets are lost")
    to_avoidance(stage, 260)
    stage.run(4 * stage.rtt_s)
    before = stage.now
    lose(stage, 3)
    sees_recovery(stage)
    stage.until(lambda look: look.state in REPAIRS, 5, "the recovery")
    stage.until(lambda look: look.state == "open", 5, "the end of the recovery")
    stage.run(10 * stage.rtt_s)
    return {"lost": stage.now.lost - before.lost, "window": stage.now.cwnd / before.cwnd}


CASES: tuple[Case, ...] = (undo_recovery, undo_timeout, few_losses_are_losses)
