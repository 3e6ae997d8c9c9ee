"""Outages: the window, the threshold and the way back."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import roomy, threshold, to_avoidance
from fullpipe.conformance.stage import Lab, Look, Stage


def _outage(lab: Lab, **more: object) -> tuple[Stage, Look, Look]:
    """A path that loses everything for a second: the looks before it, and at the least window after it.

    QUIC finds its losses up to a round trip after the first new data.
    """
    stage = roomy(lab, 300, 40, name="an outage of one second", **more)  # type: ignore[arg-type]
    to_avoidance(stage, 80)
    stage.run(8 * stage.rtt_s)
    before = stage.now
    stage.change(loss="100 %")
    stage.run(1)
    stage.change(loss="0 %")
    down = stage.now
    after = stage.until(
        lambda look: look.delivered_bytes > down.delivered_bytes, 10, "new data after the outage"
    )
    stage.mark("new data")
    return stage, before, min([after, *stage.run(stage.rtt_s)], key=lambda look: look.cwnd)


@LossCase.of(
    """
    outage [at least 1 s]: time without new data at the receiver
        ours: longer than the persistent congestion period, and than two timeouts
    window [at most 4 packets]: least window in the round trip after that
        RFC 9002's kMinimumWindow of 2, TCP's loss window of 1; ours: what an acknowledgement adds
    """,
    source="RFC 9002 7.6.2; RFC 5681 3.1",
    main="window",
    bugs="cloudflare/quiche#2680, alibaba/xquic#602",
)
def outage_window(lab: Lab) -> Measured:
    """After an outage, the window is at its minimum.

    Everything is lost for a second, with about 100 packets in flight, on 90 Mbit/s and 40 ms. A stack
    without persistent congestion fails here (cloudflare/quiche#2680).
    """
    _, before, after = _outage(lab)
    return {"outage": after.time_s - before.time_s, "window": after.cwnd}


@LossCase.of(
    """
    outage [at least 1 s]: time without new data at the receiver
        ours: the outage is what it says
    rounds [3 to 8]: round trips until the window is 0.4 of that before
        six doublings of one packet; ours: two more
    """,
    source="RFC 9002 7.6.2, B.8; RFC 5681 3.1",
    main="rounds",
    bugs="quicwg/base-drafts#4826, alibaba/xquic#740",
)
def outage_slow_start(lab: Lab) -> Measured:
    """After an outage, slow start leads back to the threshold.

    As outage-window. A stack that stayed at the floor, or in recovery, fails here (quicwg/base-drafts#4826,
    alibaba/xquic#740).
    """
    stage, before, after = _outage(lab)
    back = stage.until(lambda look: look.cwnd >= 0.4 * before.cwnd, 10, "0.4 of the window")
    return {
        "outage": after.time_s - before.time_s,
        "rounds": (back.time_s - after.time_s) / stage.rtt_s,
    }


def _threshold(lab: Lab) -> Measured:
    stage, before, _ = _outage(lab)
    found = threshold(stage)
    return {"threshold": None if found is None else found / before.cwnd}


@LossCase.of(
    """
    threshold [0.66 to 0.72]: threshold after the outage, of the window before
        beta, once; ours: two packets
    """,
    source="RFC 9438 4.8",
    needs=("cubic",),
    bugs="microsoft/msquic#2231",
)
def outage_threshold_cubic(lab: Lab) -> Measured:
    """An outage takes three tenths of CUBIC's window as the threshold, however many timeouts it has.

    As outage-window. A stack that reduced with the loss and again with the persistent congestion fails here
    (microsoft/msquic#2231).
    """
    return _threshold(lab)


@LossCase.of(
    """
    threshold [0.46 to 0.52]: threshold after the outage, of the window before
        a half, once; ours: two packets
    """,
    source="RFC 5681 3.1 (equation 4); RFC 9002 B.8",
    needs=("reno",),
)
def outage_threshold_reno(lab: Lab) -> Measured:
    """An outage takes half of Reno's window as the threshold, however many timeouts it has.

    As outage-threshold-cubic.
    """
    return _threshold(lab)


@LossCase.of(
    """
    over [at most 1.08]: window in the round trip after slow start reached its threshold, of the threshold
        1; ours: two packets of growth, and two that are seen late
    reached [at least 1]: the same, to show that slow start got there
        ours: the case is what it says
    """,
    source="RFC 5681 3.1; RFC 9002 7.3.1; RFC 9438 4.10",
    bugs="microsoft/msquic#2309",
)
def stops_at_threshold(lab: Lab) -> Measured:
    """Slow start ends at its threshold, also when one ACK is for many packets.

    As outage-window, with a receiver that merges what arrives within 2 ms. A stack that doubled beyond the
    threshold fails here (microsoft/msquic#2309).
    """
    stage, _, _ = _outage(lab, hosts={"gro": "2 ms"})
    found = threshold(stage) or 0.0
    stage.until(lambda look: look.cwnd >= found > 0, 10, "the threshold")
    windows = [look.cwnd / found for look in stage.run(stage.rtt_s)]
    return {"over": max(windows), "reached": windows[-1]}


@LossCase.of(
    """
    growth [at most 1.25]: window 1 s after slow start reached its threshold, of the threshold
        the curve adds 0.4 packets; Reno's window 0.53 of a packet a round, 13 of 25 rounds
    least [at least 0.97]: least window in that time, of the threshold
        ours: two packets
    """,
    source="RFC 9438 4.8 (K is 0 and W_max the window)",
    needs=("cubic",),
    main="growth",
    failed_by={"cubic": "4.8: Linux forgets W_max, and then grows by 5 % a round trip"},
)
def outage_flat_curve(lab: Lab) -> Measured:
    """After a timeout, the curve begins flat at the threshold.

    As outage-window: the window neither falls nor jumps to that before the outage.
    """
    stage, _, _ = _outage(lab)
    found = threshold(stage) or 0.0
    stage.until(lambda look: look.cwnd >= found > 0, 10, "the threshold")
    windows = [look.cwnd / found for look in stage.run(1)]
    return {"growth": windows[-1], "least": min(windows)}


CASES: tuple[Case, ...] = (
    outage_window,
    outage_slow_start,
    outage_threshold_cubic,
    outage_threshold_reno,
    stops_at_threshold,
    outage_flat_curve,
)
