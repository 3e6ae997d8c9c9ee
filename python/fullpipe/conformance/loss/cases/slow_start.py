"""Growth before the first loss, with ACKs that come one by one, in batches, and few."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import growths, roomy, rounds_from
from fullpipe.conformance.stage import Lab, Stage


def _factors(stage: Stage) -> list[float]:
    """The growth of three rounds of slow start, from the third on."""
    stage.until(lambda look: look.round >= 3 and look.inflight > 0, 5, "a third round")
    return growths(rounds_from(stage, stage.now, 3))


@LossCase.of(
    """
    most [2 to 10 packets]: most packets in flight before the first acknowledgement
        ten at most; two at least, so that an acknowledgement is not delayed
    """,
    source="RFC 6928 2; RFC 9002 7.2",
)
def initial_window(lab: Lab) -> Measured:
    """Ten packets leave before the first acknowledgement, and no more.

    A flow that always has data, on 180 Mbit/s and 40 ms.
    """
    stage = roomy(lab, 600, 40, name="the initial window")
    first = stage.until(lambda look: look.sent > 0 and look.inflight > 0, 2, "the first data")
    looks = [first, *stage.run(0.7 * stage.rtt_s)]
    return {"most": max(look.inflight for look in looks)}


@LossCase.of(
    """
    least [at least 1.8]: least growth of the window in a round
        2; ours: a tenth for where a round is cut
    most [at most 2.2]: most growth of the window in a round
        2; ours: as above
    """,
    source="RFC 5681 3.1; RFC 9002 7.3.1",
)
def slow_start_doubles(lab: Lab) -> Measured:
    """Slow start doubles the window in each round.

    Three rounds of a flow that always has data, on 180 Mbit/s and 40 ms, which hold 600 packets.
    """
    factors = _factors(roomy(lab, 600, 40, name="slow start"))
    return {"least": min(factors), "most": max(factors)}


@LossCase.of(
    """
    least [at least 1.7]: least growth of the window in a round
        2; ours: a batch of ACKs may end within a round
    """,
    source="RFC 5681 3.1; RFC 9002 7.8",
    bugs="aws/s2n-quic#458, quinn-rs/quinn#975",
)
def batch_of_acks(lab: Lab) -> Measured:
    """ACKs that arrive in batches let the window double, too.

    The path back releases ACKs every 15 ms, on 180 Mbit/s and 160 ms, which is below what HyStart++ takes
    for a queue. A stack that let only the first ACK of a batch count, because the others found the window
    unused, fails here (aws/s2n-quic#458, quinn-rs/quinn#975).
    """
    held = {"reverse": {"after": [{"kind": "aggregate", "every": "15 ms"}]}}
    return {"least": min(_factors(roomy(lab, 2400, 160, path=held, name="batches of ACKs")))}


@LossCase.of(
    """
    least [at least 1.8]: least growth of the window in a round
        2; ours: a tenth for where a round is cut
    """,
    source="RFC 9002 7.8",
    bugs="aws/s2n-quic#1326",
)
def paced_is_used(lab: Lab) -> Measured:
    """Pacing is not taken for an application without data.

    As slow-start-doubles, with a host that paces every controller. A stack that took a paced flow for
    application-limited fails here (aws/s2n-quic#1326).
    """
    stage = roomy(lab, 600, 40, hosts={"pacing": True}, name="paced slow start")
    return {"least": min(_factors(stage))}


@LossCase.of(
    """
    least [at least 1.7]: least growth of the window in a round
        2; ours: what one ACK holds back ends within a round
    """,
    source="RFC 5681 3.1 (equation 2 counts bytes, not ACKs); RFC 9002 7.3.1",
    bugs="cloudflare/quiche#2691",
)
def few_acks(lab: Lab) -> Measured:
    """One ACK for many packets lets the window grow by all of them.

    The receiver merges what arrives within 3 ms, and acknowledges it at once, on 180 Mbit/s and 40 ms, with
    a host that paces. A stack that counts ACKs, or bytes wrongly, fails here (cloudflare/quiche#2691 is of
    the second kind).
    """
    hosts = {"gro": "3 ms", "pacing": True}
    return {"least": min(_factors(roomy(lab, 600, 40, hosts=hosts, name="an ACK for many packets")))}


CASES: tuple[Case, ...] = (initial_window, slow_start_doubles, batch_of_acks, paced_is_used, few_acks)
