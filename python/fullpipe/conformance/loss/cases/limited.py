"""Senders that the application or the receiver limits: a window that is not used does not grow."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import largest_flight, lose, repaired, roomy
from fullpipe.conformance.stage import Lab


@LossCase.of(
    """
    lost [at most 0]: packets lost
        ours: the case is what it says
    flight [5 to 12 packets]: most packets in flight
        ours: the case is what it says
    window [at most 2]: window after 10 s, of the largest flight, or of the initial window's ten packets
        the limit of slow start is twice the largest flight
    """,
    source="draft-ietf-ccwg-ratelimited-increase 3 and 3.1; RFC 9002 7.8",
    main="window",
    bugs="h2o/quicly#109, private-octopus/picoquic#1485",
)
def limit_slow_start(lab: Lab) -> Measured:
    """In slow start, an application that sends ten packets at a time keeps a window of twenty.

    Ten packets every 100 ms on 90 Mbit/s and 40 ms, for 10 s. Stacks that grew with every ACK fail here
    (h2o/quicly#109, private-octopus/picoquic#1485).
    """
    stage = roomy(
        lab, 300, 40, flow={"bursts": {"size": "14480 B", "every": "100 ms"}}, name="ten packets at a time"
    )
    looks = stage.run(10)
    flight = largest_flight(looks)
    return {"lost": stage.now.lost, "flight": flight, "window": stage.now.cwnd / max(flight, 10)}


@LossCase.of(
    """
    lost [at most 0]: packets lost
        ours: the case is what it says
    flight [2 to 10 packets]: most packets in flight
        ours: the case is what it says
    window [at most 20 packets]: window after 20 s
        twice the initial window, which the handshake's first flight may have used
    """,
    source="draft-ietf-ccwg-ratelimited-increase 3; RFC 9002 7.8",
    main="window",
    bugs="mozilla/neqo#3753",
)
def limit_paced(lab: Lab) -> Measured:
    """An application that writes a packet now and then keeps a small window, also with pacing.

    A packet every 10 ms, four in a round trip, on 90 Mbit/s and 40 ms, with a host that paces, for 20 s. A
    stack in which each paced packet counted as not limited fails here (mozilla/neqo#3753).
    """
    stage = roomy(
        lab,
        300,
        40,
        flow={"bursts": {"size": "1448 B", "every": "10 ms"}},
        hosts={"pacing": True},
        name="a packet every 10 ms",
    )
    looks = stage.run(20)
    return {"lost": stage.now.lost, "flight": largest_flight(looks), "window": stage.now.cwnd}


@LossCase.of(
    """
    loss [yes]: a loss ended slow start
    transfers [at least 58]: packets of the small transfers, in hundreds
        ours: the case is what it says
    window [at most 1.1]: window after the small transfers, of that before them
        1, and a packet; ours: what one used round may add
    """,
    source="draft-ietf-ccwg-ratelimited-increase 3; RFC 9438 5.8; RFC 7661 4.3",
    main="window",
)
def limit_avoidance(lab: Lab) -> Measured:
    """In congestion avoidance, a window that is half used does not grow.

    A transfer of 3 MB with a loss at about 100 packets, and then 150 transfers of 40 packets, one a round
    trip, on 90 Mbit/s and 40 ms.
    """
    small = [{"size": f"{40 * 1448} B"} for _ in range(150)]
    stage = roomy(lab, 300, 40, flow={"transfers": [{"size": "3 MB"}, *small]}, name="a half-used window")
    stage.until(lambda look: look.cwnd >= 80, 5, "a window of 80 packets")
    lose(stage)
    _, after = repaired(stage)
    before = stage.until(lambda look: look.delivered_bytes >= 3_000_000, 10, "the end of the first transfer")
    stage.until(lambda look: look.delivered_bytes >= 3_000_000 + 148 * 40 * 1448, 30, "the small transfers")
    return {
        "loss": float(after.cwnd < 300),
        "transfers": (stage.now.sent - before.sent) / 100,
        "window": stage.now.cwnd / before.cwnd,
    }


@LossCase.of(
    """
    flight [at most 60 packets]: most packets in flight
        ours: the receiver limits
    window [at most 2.1]: window after 20 s, of the largest flight
        the limit of slow start is twice the largest flight; ours: some packets
    """,
    source="draft-ietf-ccwg-ratelimited-increase 3; RFC 9438 5.8",
    main="window",
    bugs="NTAP/rfc8312bis#137, aws/s2n-quic#1367",
)
def limit_receiver(lab: Lab) -> Measured:
    """A window that the receiver leaves unused does not grow.

    The receiver's buffer is 96 KB, of which the window is a part, on 180 Mbit/s and 40 ms. The text of
    CUBIC once named the application alone (NTAP/rfc8312bis#137), and stacks followed (aws/s2n-quic#1367).
    """
    stage = roomy(
        lab,
        600,
        40,
        hosts={"tcp_rmem": ["4 KB", "96 KB", "96 KB"]},
        name="a receive window below the product",
    )
    looks = stage.run(20)
    flight = largest_flight(looks)
    return {"flight": flight, "window": stage.now.cwnd / max(flight, 1)}


CASES: tuple[Case, ...] = (limit_slow_start, limit_paced, limit_avoidance, limit_receiver)
