"""CUBIC after losses that follow each other: fast convergence, and a curve that never lowers the window."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.cases.curve import BETA, C
from fullpipe.conformance.loss.play import reduced, roomy, to_avoidance
from fullpipe.conformance.stage import Lab, Look, Stage


def _flat(stage: Stage, before: Look, after: Look, share: float) -> float:
    """The window where a curve with this maximum, as a share of the window before the loss, is flat."""
    k = ((share - BETA) * before.cwnd / C) ** (1 / 3)
    stage.run(max(0.0, after.time_s + k - stage.now.time_s))
    return stage.now.cwnd / before.cwnd


@LossCase.of(
    """
    second [0.85 to 0.99]: window at the second loss, of that at the first
        ours: the case is what it says
    flat [0.83 to 0.87]: window where the curve is flat, of that at the second loss
        (1 + beta) / 2 = 0.85; ours: some packets
    """,
    source="RFC 9438 4.7",
    needs=("cubic",),
    main="flat",
    bugs="cloudflare/quiche#891",
)
def fast_convergence(lab: Lab) -> Measured:
    """A second loss below the last maximum lowers the aim.

    A loss at about 200 packets, and another one after 2 s, on a path that holds 400, at 100 ms. A stack
    that never applied fast convergence fails here (cloudflare/quiche#891).
    """
    stage = roomy(lab, 400, 100, name="two losses")
    _, first = to_avoidance(stage, 100)
    stage.run(2)
    before, after = reduced(stage)
    return {
        "second": before.cwnd / (first.cwnd / BETA),
        "flat": _flat(stage, before, after, (1 + BETA) / 2),
    }


@LossCase.of(
    """
    second [1.02 to 1.3]: window at the second loss, of that at the first
        ours: the case is what it says
    flat [0.97 to 1.02]: window where the curve is flat, of that at the second loss
        W_max is the window at the loss; ours: some packets
    """,
    source="RFC 9438 4.6, 4.7",
    needs=("cubic",),
    main="flat",
)
def no_fast_convergence(lab: Lab) -> Measured:
    """A second loss above the last maximum aims at where it was.

    As fast-convergence, but the second loss comes when the window has outgrown the first.
    """
    stage = roomy(lab, 400, 100, name="a second loss above the first")
    _, first = to_avoidance(stage, 100)
    stage.until(lambda look: look.cwnd >= 1.04 * first.cwnd / BETA, 20, "a window above the first maximum")
    before, after = reduced(stage)
    return {"second": before.cwnd / (first.cwnd / BETA), "flat": _flat(stage, before, after, 1)}


@LossCase.of(
    """
    least [at least 0.98]: least window in the 6 s after the second recovery, of that at its end
        1; ours: one packet
    most [at most 1]: most window in that time, of that at the first loss
        the second maximum is below the first, and flat at that time
    """,
    source="RFC 9438 4.2 (target of at least cwnd)",
    needs=("cubic",),
    bugs="aws/s2n-quic#208",
)
def never_down_the_curve(lab: Lab) -> Measured:
    """Without a loss, the window neither falls nor jumps.

    Two losses in two successive recoveries at about 200 packets, and then 6 s of growth. A stack whose
    subtraction underflowed after fast convergence fails here (aws/s2n-quic#208).
    """
    stage = roomy(lab, 400, 100, name="two losses at once")
    _, first = to_avoidance(stage, 100)
    _, after = reduced(stage)
    windows = [look.cwnd for look in stage.run(6)]
    return {"least": min(windows) / after.cwnd, "most": max(windows) / (first.cwnd / BETA)}


CASES: tuple[Case, ...] = (fast_convergence, no_fast_convergence, never_down_the_curve)
