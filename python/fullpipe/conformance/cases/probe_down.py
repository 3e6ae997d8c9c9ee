"""How ProbeBW_DOWN ends: when the flight leaves headroom, or when it is time for the next probe."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.stage import CRUISE, DOWN, REFILL, UP, Lab


@Case.of(
    """
    gain [0.891 to 0.909]: pacing gain in ProbeBW_DOWN
        the draft's 0.90; ours: one percent
    flight [0.9 to 1.05]: flight at the end of ProbeBW_DOWN, in BDP
        the draft's 1; ours: what is delivered or sent between two looks, and a burst
    cruise [yes]: the next phase is ProbeBW_CRUISE
    """,
    source="draft A.8; 5.3.3.1",
    main="flight",
    failed_by={"bbr1": "5.3.3.1: BBRv1 drains a probe's queue with 0.75"},
)
def down_inflight(lab: Lab) -> Measured:
    """ProbeBW_DOWN ends when the flight is down.

    20 Mbit/s, 40 ms, 4 BDP of buffer: the first probe and what follows. Nothing is lost, so headroom asks for
    nothing.
    """
    stage = lab.stage(bdps=4)
    stage.until_in(UP)
    entered = stage.until_in(DOWN)
    after = stage.until_out(DOWN, 5)
    return {
        "gain": entered.pacing_gain,
        "flight": after.inflight / stage.bdp,
        "cruise": float(after.phase == CRUISE),
    }


@Case.of(
    """
    seconds [1.9 to 3.1 s]: time in ProbeBW_DOWN
        the draft's 2 to 3 s; ours: a tenth of a second for the time between looks and ACKs
    flight [at least 1]: least flight in ProbeBW_DOWN, in BDP of the path of before
        the draft: the flight is kept above what ends ProbeBW_DOWN
    refill [yes]: the next phase is ProbeBW_REFILL
    """,
    source="draft A.9; 5.3.3.8.3",
    seeds=(1, 2, 3),
    failed_by={"bbr1": "5.3.3: BBRv1 drains a probe's queue for one round trip at most"},
)
def down_time(lab: Lab) -> Measured:
    """ProbeBW_DOWN ends when it is time to probe, whatever is in flight.

    The path's rate falls by 12 % when ProbeBW_DOWN begins, just below what DOWN sends (0.90, less the pacing
    margin of 1 %), so that the flight stays. The draft lowers it by 10 %, which the margin alone drains.
    """
    stage = lab.stage(bdps=8, name="the rate falls when ProbeBW_DOWN begins")
    stage.until_in(REFILL)
    # A lower RTT now keeps ProbeRTT away for five seconds.
    stage.change(rtt=f"{stage.rtt_s * 1e3 - 2:.6f} ms")
    stage.until_in(UP)
    entered = stage.until_in(DOWN)
    stage.change(rate=f"{stage.rate_bps * 0.9 * 0.98:.0f} bit/s")
    after = stage.until_out(DOWN, 6)
    down = [look for look in stage.since(entered) if look.phase == DOWN]
    return {
        "seconds": after.time_s - entered.time_s,
        "flight": min(look.inflight for look in down) / stage.bdp,
        "refill": float(after.phase == REFILL),
    }


CASES = (down_inflight, down_time)
