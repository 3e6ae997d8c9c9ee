"""Pauses: what a window is worth after them."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import lose, repaired, roomy
from fullpipe.conformance.stage import Lab, Look, Stage

_FIRST = 9_000_000


def _paused(lab: Lab, pause: str) -> tuple[Stage, Look, Look]:
    """A transfer with a loss, a pause and another one: looks after the first and at new data."""
    stage = roomy(
        lab,
        600,
        40,
        flow={"transfers": [{"size": f"{_FIRST} B"}, {"size": "40 MB", "pause": pause}]},
        lasts_s=60,
        name=f"a pause of {pause}",
    )
    stage.until_above("cwnd", 99, 5, "a window of 100 packets")
    lose(stage)
    repaired(stage)
    before = stage.until(
        lambda look: look.delivered_bytes >= _FIRST and look.inflight == 0,
        20,
        "the end of the first transfer",
    )
    stage.mark("the pause")
    resumed = stage.until(lambda look: look.sent > before.sent, 40, "new data")
    stage.mark("the second transfer")
    return stage, before, resumed


@LossCase.of(
    """
    pause [at least 19 s]: time without data
        ours: the case is what it says
    window [at most 1.15]: window three round trips after the pause, of that before
        ours: growth of three round trips; the curve after 20 s is beyond ten times the window
    """,
    source="RFC 9438 4.2, 5.8 (t leaves out the time of no data)",
    needs=("cubic",),
    main="window",
    bugs="aws/s2n-quic#157, aws/s2n-quic#184, mozilla/neqo#2955",
)
def cubic_pause(lab: Lab) -> Measured:
    """The curve stands still while nothing is sent.

    A transfer of 9 MB with a loss at about 200 packets, a pause of 20 s and another transfer, on 180 Mbit/s
    and 40 ms. A stack whose time ran on fails here (aws/s2n-quic#157).
    """
    stage, before, resumed = _paused(lab, "20 s")
    stage.run(3 * stage.rtt_s)
    return {"pause": resumed.time_s - before.time_s, "window": stage.now.cwnd / before.cwnd}


@LossCase.of(
    """
    window [at most 1]: window at new data, of that before the pause
        a pause is no reason to grow
    """,
    source="RFC 9002 7.8; RFC 5681 4.1",
)
def pause_adds_nothing(lab: Lab) -> Measured:
    """A pause does not make the window larger.

    As cubic-pause, with a pause of 3 s.
    """
    _, before, resumed = _paused(lab, "3 s")
    return {"window": resumed.cwnd / before.cwnd}


@LossCase.of(
    """
    burst [at most 0.6]: packets sent in the first quarter of a round trip, of the window before the pause
        1.25 / 4 where pacing spreads the window (RFC 9002 7.7); else the window has fallen (RFC 5681 4.1);
        ours: a burst of ten packets and a step
    """,
    source="RFC 9002 7.7, 7.8; RFC 5681 4.1",
)
def pause_no_burst(lab: Lab) -> Measured:
    """A window does not leave as one burst after a pause.

    As cubic-pause, with a pause of 3 s.
    """
    stage, before, resumed = _paused(lab, "3 s")
    stage.run(stage.rtt_s / 4)
    return {"burst": (stage.now.sent - before.sent) / before.cwnd if resumed.cwnd else None}


CASES: tuple[Case, ...] = (cubic_pause, pause_adds_nothing, pause_no_burst)
