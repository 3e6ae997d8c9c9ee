"""What a loss takes away, and how often."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import lose, reduced, repaired, roomy, sees_recovery, to_avoidance
from fullpipe.conformance.stage import Lab, Stage


def _avoiding(lab: Lab, name: str, packets: int = 300) -> Stage:
    """A flow some rounds into congestion avoidance at about 100 packets, on a path that holds so many."""
    stage = roomy(lab, packets, 40, name=name)
    to_avoidance(stage, 80)
    stage.run(8 * stage.rtt_s)
    return stage


def _one(lab: Lab) -> float:
    before, after = reduced(_avoiding(lab, "one packet is lost"))
    return after.cwnd / before.cwnd


@LossCase.of(
    """
    window [0.68 to 0.72]: window after the recovery, of that before
        beta of 0.7; ours: two packets of a hundred
    """,
    source="RFC 9438 4.6",
    needs=("cubic",),
    bugs="microsoft/msquic#2231",
)
def decrease_cubic(lab: Lab) -> Measured:
    """A loss takes three tenths of CUBIC's window.

    One packet is lost in congestion avoidance, with about 100 packets in flight, on 90 Mbit/s and 40 ms. A
    stack that reduced by beta twice, to 0.49, fails here (microsoft/msquic#2231).
    """
    return {"window": _one(lab)}


@LossCase.of(
    """
    window [0.48 to 0.52]: window after the recovery, of that before
        a half; ours: two packets of a hundred
    """,
    source="RFC 5681 3.1; RFC 9002 7.3.2",
    needs=("reno",),
)
def decrease_reno(lab: Lab) -> Measured:
    """A loss takes half of Reno's window.

    As decrease-cubic.
    """
    return {"window": _one(lab)}


def _spread(lab: Lab) -> Measured:
    """Eight losses, spread over most of a round trip."""
    # A path that is full, so that packets leave all the time.
    stage = _avoiding(lab, "eight packets of a flight are lost", 80)
    first = stage.now
    for _ in range(8):
        lose(stage)
        stage.run(stage.rtt_s / 16)
    sees_recovery(stage)
    before, after = repaired(stage) if stage.now.state == "open" else (first, None)
    if after is None:
        after = stage.until(lambda look: look.state == "open", 5, "the end of the recovery")
    stage.run(stage.rtt_s)
    return {"window": after.cwnd / before.cwnd, "lost": stage.now.lost - first.lost}


_SPREAD = """
    lost [8 to 24]: packets lost
        ours: eight, and what left at the same moments
    """


@LossCase.of(
    f"""
    window [at least 0.66]: window after the recovery, of that before
        one reduction leaves 0.7; two leave 0.49
    {_SPREAD.strip()}
    """,
    source="RFC 9438 4.6; RFC 6675 5; RFC 9002 7.3.2",
    needs=("cubic",),
    bugs="zigstack/zquic#175, private-octopus/picoquic#1823",
)
def one_reduction_cubic(lab: Lab) -> Measured:
    """The losses of one round trip reduce CUBIC's window once.

    Eight packets are lost one by one within a round trip, so that ACKs report them one after the other. A
    stack that began a new recovery with each ACK fails here (zigstack/zquic#175,
    private-octopus/picoquic#1823).
    """
    return _spread(lab)


@LossCase.of(
    f"""
    window [at least 0.47]: window after the recovery, of that before
        one reduction leaves 0.5; two leave 0.25
    {_SPREAD.strip()}
    """,
    source="RFC 6582 3.2; RFC 9002 7.3.2",
    needs=("reno",),
    bugs="zigstack/zquic#175, private-octopus/picoquic#1823",
)
def one_reduction_reno(lab: Lab) -> Measured:
    """The losses of one round trip reduce Reno's window once.

    As one-reduction-cubic.
    """
    return _spread(lab)


@LossCase.of(
    """
    second [0.45 to 0.75]: window after the second recovery, of that before it
        ours: a half or 0.7, and some packets
    """,
    source="RFC 9438 4.6; RFC 5681 3.1; RFC 9002 7.3.2",
)
def two_losses_two_reductions(lab: Lab) -> Measured:
    """A loss after the recovery reduces the window again.

    One packet is lost, and two round trips after its recovery another one.
    """
    stage = _avoiding(lab, "two losses, a recovery apart")
    reduced(stage)
    stage.run(2 * stage.rtt_s)
    before, after = reduced(stage)
    return {"second": after.cwnd / before.cwnd}


@LossCase.of(
    """
    lost [at least 50]: packets lost
        ours: the case is what it says
    least [at least 2]: window that is reached or exceeded in 99 % of the time without a timeout, in packets
        RFC 9002's kMinimumWindow; RFC 5681's least threshold
    progress [at least 0.02]: share of the path's rate that is used
        ours: nothing stalls
    """,
    source="RFC 9002 7.2; RFC 5681 3.1 (equation 4)",
    main="least",
    seeds=(1, 2),
)
def minimum_window(lab: Lab) -> Measured:
    """However much is lost, the window stays at two packets or more.

    15 % of all packets are lost for 20 s, on 20 Mbit/s and 40 ms. What follows a timeout does not count,
    where TCP's window is one packet.
    """
    stage = lab.stage(path={"loss": "15 %"}, name="15 % of loss")
    stage.run(20)
    sees_recovery(stage)
    windows = sorted(look.cwnd for look in stage.looks if look.state in ("open", "disorder"))
    share = stage.now.delivered_bytes * 8 / stage.now.time_s / stage.payload_bps
    return {
        "lost": stage.now.lost,
        "least": windows[len(windows) // 100] if windows else None,
        "progress": share,
    }


CASES: tuple[Case, ...] = (
    decrease_cubic,
    decrease_reno,
    one_reduction_cubic,
    one_reduction_reno,
    two_losses_two_reductions,
    minimum_window,
)
