"""HyStart++: when slow start becomes conservative, for how long, and when it resumes."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import growths, roomy, rounds_from, threshold, to_avoidance
from fullpipe.conformance.stage import Lab, Look, Stage

_NEEDS = ("hystartpp",)


def _risen(lab: Lab, ms: float, rise_ms: float, name: str) -> tuple[Stage, Look]:
    """Slow start on a path without a queue, whose delay rises at a window of 100 packets: the look then."""
    stage = roomy(lab, 2_500, ms, name=name)
    stage.until_above("cwnd", 99, 10, "a window of 100 packets")
    # On the way forward alone, so that a round trip sees all of it.
    stage.change(delay=f"{ms / 2 + rise_ms} ms")
    return stage, stage.now


def _left(stage: Stage) -> Look:
    """Goes on until slow start is over, as the threshold shows."""
    ended = stage.until(lambda _: threshold(stage) is not None, 10, "the end of slow start")
    stage.mark("slow start is over")
    return ended


@LossCase.of(
    """
    growth [1.2 to 1.32]: growth of the window in a round, two rounds after the rise
        a quarter of 1; ours: where a round is cut
    """,
    source="RFC 9406 4.2, 4.3 (CSS_GROWTH_DIVISOR)",
    needs=_NEEDS,
    bugs="cloudflare/quiche#835",
)
def css_growth(lab: Lab) -> Measured:
    """When the RTT rises, slow start grows at a quarter of its pace.

    The path's RTT rises from 50 to 60 ms for good, at a window of 100 packets and without a queue. A stack
    that added the growth twice fails here (cloudflare/quiche#835).
    """
    stage, risen = _risen(lab, 50, 10, "the RTT rises by 10 ms")
    looks = rounds_from(stage, risen, 4)
    return {"growth": max(growths(looks[2:]))}


@LossCase.of(
    """
    rounds [5 to 8]: round trips from the rise to the end of slow start
        CSS_ROUNDS of 5; ours: the round that sees the rise, and the one before it
    """,
    source="RFC 9406 4.2, 4.3 (CSS_ROUNDS)",
    needs=_NEEDS,
)
def css_rounds(lab: Lab) -> Measured:
    """Conservative slow start ends after five rounds.

    As css-growth.
    """
    stage, risen = _risen(lab, 50, 10, "the RTT rises by 10 ms")
    return {"rounds": (_left(stage).time_s - risen.time_s) / 0.06}


@LossCase.of(
    """
    slow [at most 1.35]: growth of the window in a round of conservative slow start
        ours: the case is what it says
    fast [at least 1.8]: growth of the window in the second round after the RTT has fallen
        2; ours: where a round is cut
    """,
    source="RFC 9406 4.2 (back to slow start if the RTT falls below the baseline)",
    needs=_NEEDS,
    main="fast",
    bugs="cloudflare/quiche#1033",
)
def css_resumes(lab: Lab) -> Measured:
    """When the RTT falls again, slow start resumes.

    As css-growth, but after three rounds the RTT is 50 ms again. A stack that stayed in conservative slow
    start fails here (cloudflare/quiche#1033).
    """
    stage, risen = _risen(lab, 50, 10, "the RTT rises and falls")
    looks = rounds_from(stage, risen, 3)
    stage.change(delay="25 ms")
    after = rounds_from(stage, stage.now, 3)
    return {"slow": growths(looks)[-1], "fast": growths(after)[-1]}


@LossCase.of(
    """
    least [at least 1.7]: least growth of the window in a round, up to 300 packets
        2; ours: jitter cuts rounds unevenly
    """,
    source="RFC 9406 4.2, 4.3 (MIN_RTT_THRESH of 4 ms, N_RTT_SAMPLE of 8)",
    needs=_NEEDS,
    bugs="private-octopus/picoquic#674",
    seeds=(1, 2, 3),
)
def css_not_by_jitter(lab: Lab) -> Measured:
    """Jitter does not end slow start.

    Packets are up to 3.5 ms late at random, on a path of 50 ms without a queue. A stack that left slow
    start by a single RTT fails here (private-octopus/picoquic#674).
    """
    stage = roomy(lab, 2_500, 50, path={"jitter": "3.5 ms"}, name="jitter of 3.5 ms")
    stage.until(lambda look: look.round >= 3 and look.inflight > 0, 5, "a third round")
    return {"least": min(growths(rounds_from(stage, stage.now, 4)))}


@LossCase.of(
    """
    growth [at least 1.8]: growth of the window in a round, two rounds after the rise
        2; ours: where a round is cut
    """,
    source="RFC 9406 4.2, 4.3 (MIN_RTT_THRESH of 4 ms)",
    needs=_NEEDS,
)
def css_least_rise(lab: Lab) -> Measured:
    """A rise of less than 4 ms is no sign of a queue.

    The RTT rises from 16 to 19 ms, which is more than an eighth.
    """
    stage, risen = _risen(lab, 16, 3, "the RTT rises by 3 ms")
    return {"growth": min(growths(rounds_from(stage, risen, 4)[2:]))}


@LossCase.of(
    """
    growth [at most 1.35]: growth of the window in a round, two rounds after the rise
        1.25; ours: where a round is cut
    """,
    source="RFC 9406 4.2, 4.3 (MAX_RTT_THRESH of 16 ms)",
    needs=_NEEDS,
)
def css_most_rise(lab: Lab) -> Measured:
    """A rise of more than 16 ms is a sign of a queue, however long the path.

    The RTT rises from 300 to 320 ms, which is less than an eighth.
    """
    stage, risen = _risen(lab, 300, 20, "the RTT rises by 20 ms")
    return {"growth": max(growths(rounds_from(stage, risen, 4)[2:]))}


@LossCase.of(
    """
    least [at least 1]: least window in the 2 s after slow start, of that at its end
    most [at most 1.1]: window 1 s after slow start, of that at its end
        the curve adds 0.4 packets, Reno's window 9 of 400 or more; ours: as much again
    lost [at most 0]: packets lost
        ours: the case is what it says
    """,
    source="RFC 9438 4.10 (K is 0 and W_max the window)",
    needs=("cubic", "hystartpp"),
    main="most",
    bugs="aws/s2n-quic#187, private-octopus/picoquic#1754",
)
def css_flat_curve(lab: Lab) -> Measured:
    """After HyStart++, the curve begins flat at the window.

    As css-growth. Stacks whose window fell (aws/s2n-quic#187), or whose W_max was infinite
    (private-octopus/picoquic#1754), fail here.
    """
    stage, _ = _risen(lab, 50, 10, "the RTT rises by 10 ms")
    ended = _left(stage)
    first = stage.run(1)
    windows = [look.cwnd / ended.cwnd for look in (*first, *stage.run(1))]
    return {"least": min(windows), "most": first[-1].cwnd / ended.cwnd, "lost": stage.now.lost}


@LossCase.of(
    """
    threshold [at least 150 packets]: threshold of the second slow start
        ours: the case is what it says
    growth [at least 1.8]: least growth of the window in a round trip, from two after the rise on
        2; ours: where a round trip is cut
    """,
    source="RFC 9406 4.3 (only for the initial slow start)",
    needs=_NEEDS,
    main="growth",
)
def css_initial_only(lab: Lab) -> Measured:
    """Slow start after an outage is not HyStart++.

    An outage of one second at a window of 400 packets or more, and then the path's RTT rises from 50 to 60 ms
    at a window of four.
    """
    stage = roomy(lab, 2_500, 50, name="a second slow start")
    to_avoidance(stage, 400)
    stage.run(4 * stage.rtt_s)
    stage.change(loss="100 %")
    stage.run(1)
    stage.change(loss="0 %")
    stage.until(lambda look: look.cwnd < 4, 5, "the collapse of the window")
    stage.until_above("cwnd", 3, 5, "a window of four packets")
    stage.change(delay="35 ms")
    return {
        "threshold": threshold(stage),
        # By time: the round in which everything is lost lasts until all of it is delivered.
        "growth": min(growths([stage.run(0.06)[-1] for _ in range(5)][1:])),
    }


CASES: tuple[Case, ...] = (
    css_growth,
    css_rounds,
    css_resumes,
    css_not_by_jitter,
    css_least_rise,
    css_most_rise,
    css_flat_curve,
    css_initial_only,
)
