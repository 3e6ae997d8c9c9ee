"""Reno's congestion avoidance: a packet a round."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import a_round, roomy, to_avoidance
from fullpipe.conformance.stage import Lab, Stage


def _growth(stage: Stage, window: int, rounds: int) -> float:
    """Packets of growth a round trip after the first loss."""
    _, first = to_avoidance(stage, window)
    stage.run(2 * stage.rtt_s)
    first = stage.now
    stage.run(rounds * stage.rtt_s)
    return a_round(stage, first, stage.now)


@LossCase.of(
    """
    growth [0.93 to 1.05 packets]: growth of the window a round trip
        1; ours: some packets of 50
    """,
    source="RFC 5681 3.1 (equation 3); RFC 9002 7.3.3",
    needs=("reno",),
)
def one_packet_a_round(lab: Lab) -> Measured:
    """Congestion avoidance adds a packet a round.

    50 round trips after a loss at a window of about 160 packets, on 180 Mbit/s and 40 ms.
    """
    return {"growth": _growth(roomy(lab, 600, 40, name="avoidance"), 80, 50)}


@LossCase.of(
    """
    growth [0.9 to 1.1 packets]: growth of the window a round trip
        1; ours: one packet of 20
    """,
    source="RFC 5681 3.1 (equation 3, rounded up to a byte); RFC 9002 7.3.3",
    needs=("reno",),
    bugs="quinn-rs/quinn#975, Mellanox/libxlio#618, quicwg/base-drafts#3917",
)
def big_window_grows(lab: Lab) -> Measured:
    """A large window grows as fast as a small one.

    20 round trips with a window of about 1,500 packets, on 900 Mbit/s and 40 ms, where MSS * MSS / cwnd is
    below a byte of a small packet. Stacks whose integer division made this 0 fail here (quinn-rs/quinn#975,
    Mellanox/libxlio#618).
    """
    return {"growth": _growth(roomy(lab, 3_000, 40, name="a large window"), 1_500, 20)}


CASES: tuple[Case, ...] = (one_packet_a_round, big_window_grows)
