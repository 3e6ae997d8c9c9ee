"""CUBIC's Reno-friendly region, and credit for what an ACK does not yet grow."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.cases.curve import BETA
from fullpipe.conformance.loss.play import a_round, roomy, to_avoidance
from fullpipe.conformance.stage import Lab, Look, Stage


def _friendly(lab: Lab, name: str) -> tuple[Stage, float, Look]:
    """A loss at about 200 packets with a round trip of 10 ms, where Reno is faster than the curve.

    The stage, the window at the loss, and a look two round trips later.
    """
    stage = roomy(lab, 300, 10, name=name)
    _, after = to_avoidance(stage, 100)
    stage.run(2 * stage.rtt_s)
    return stage, after.cwnd / BETA, stage.now


@LossCase.of(
    """
    growth [0.5 to 0.56 packets]: growth of the window a round trip, up to 0.97 of that at the loss
        3 (1 - beta) / (1 + beta) = 0.529; ours: two packets of 50
    """,
    source="RFC 9438 4.3 (equation 4)",
    needs=("cubic",),
    bugs="microsoft/msquic#2265, microsoft/msquic#2877",
)
def reno_friendly_slope(lab: Lab) -> Measured:
    """With a small product, the window grows as that of AIMD(0.53, 0.7).

    A loss at about 200 packets on 360 Mbit/s and 10 ms, where the curve needs 5 s to its plateau. Stacks
    with another alpha fail here (microsoft/msquic#2265).
    """
    stage, before, first = _friendly(lab, "the Reno-friendly region")
    last = stage.until(lambda look: look.cwnd >= 0.97 * before, 5, "nearly the last maximum")
    return {"growth": a_round(stage, first, last)}


@LossCase.of(
    """
    growth [0.9 to 1.08 packets]: growth of the window a round trip, from 1.02 to 1.25 times that at the loss
        1; ours: three packets of 45
    """,
    source="RFC 9438 4.3 (alpha of 1 once W_est reaches cwnd_prior)",
    needs=("cubic",),
    bugs="microsoft/msquic#2877, NTAP/rfc8312bis#146",
    failed_by={"cubic": "4.3: Linux keeps alpha at 0.53"},
)
def reno_friendly_above(lab: Lab) -> Measured:
    """Above the window of the last loss, it grows by a packet a round.

    As reno-friendly-slope. An alpha that stays, or changes at W_max instead of cwnd_prior, fails here
    (microsoft/msquic#2877, NTAP/rfc8312bis#146).
    """
    stage, before, _ = _friendly(lab, "above the window of the loss")
    first = stage.until(lambda look: look.cwnd >= 1.02 * before, 5, "the last maximum")
    last = stage.until(lambda look: look.cwnd >= 1.25 * before, 5, "a quarter above it")
    return {"growth": a_round(stage, first, last)}


def _grown(lab: Lab, name: str, hosts: "dict[str, object]") -> float:
    stage = roomy(lab, 300, 20, hosts={"pacing": True, **hosts}, name=name)
    _, after = to_avoidance(stage, 60)
    stage.run(4 * stage.rtt_s)
    first = stage.now
    stage.run(1.5)
    return a_round(stage, first, stage.now) if stage.now.cwnd > after.cwnd else 0.0


@LossCase.of(
    """
    growth [0.9 to 1.1]: growth of the window a round trip with few ACKs, of that with many
        1; ours: two packets of 40
    """,
    source="RFC 9438 4.3; RFC 9002 7.3.3; RFC 3465",
    bugs="cloudflare/quiche#951, private-octopus/picoquic#439",
)
def credit_kept(lab: Lab) -> Measured:
    """Few ACKs let the window grow as many do in congestion avoidance.

    1.5 s after a loss at about 120 packets, on 180 Mbit/s and 20 ms, once with an ACK for two packets and
    once with an ACK for about 15. Stacks that dropped the remainder of each ACK fail here
    (cloudflare/quiche#951, private-octopus/picoquic#439).
    """
    many = _grown(lab, "an ACK for two packets", {})
    few = _grown(lab, "an ACK for many packets", {"gro": "2 ms"})
    return {"growth": few / many if many else None}


CASES: tuple[Case, ...] = (reno_friendly_slope, reno_friendly_above, credit_kept)
