"""How ProbeBW_DOWN ends: when the flight leaves headroom, or when it is time for the next probe."""

from fullpipe.conformance.case import Case, Criterion, Measured
from fullpipe.conformance.stage import CRUISE, DOWN, REFILL, UP, Lab


def _inflight(lab: Lab) -> Measured:
    stage = lab.stage(bdps=4)
    stage.until_in(UP)
    entered = stage.until_in(DOWN)
    after = stage.until_out(DOWN, 5)
    return {
        "gain": entered.pacing_gain,
        "flight": after.inflight / stage.bdp,
        "cruise": float(after.phase == CRUISE),
    }


INFLIGHT = Case(
    name="down-inflight",
    title="ProbeBW_DOWN ends when the flight is down",
    source="draft A.8; 5.3.3.1",
    about=(
        "20 Mbit/s, 40 ms, 4 BDP of buffer: the first probe and what follows. Nothing is lost, so headroom "
        "asks for nothing."
    ),
    criteria=(
        Criterion(
            "gain",
            "pacing gain in ProbeBW_DOWN",
            low=0.891,
            high=0.909,
            source="the draft's 0.90; ours: one percent",
        ),
        Criterion(
            "flight",
            "flight at the end of ProbeBW_DOWN, in BDP",
            low=0.9,
            high=1.05,
            source="the draft's 1; ours: what is delivered or sent between two looks, and a burst",
        ),
        Criterion("cruise", "the next phase is ProbeBW_CRUISE (1)", low=1),
    ),
    play=_inflight,
    main="flight",
    failed_by={"bbr1": "5.3.3.1: BBRv1 drains a probe's queue with 0.75"},
)


def _time(lab: Lab) -> Measured:
    stage = lab.stage(bdps=8, name="the rate falls when ProbeBW_DOWN begins")
    stage.until_in(REFILL)
    # A lower RTT now keeps ProbeRTT away for five seconds.
    stage.change(rtt=f"{stage.rtt_s * 1e3 - 2:.6f} ms")
    stage.until_in(UP)
    entered = stage.until_in(DOWN)
    stage.change(rate=f"{stage.rate_bps * 0.9 * 0.98:.0f} bit/s")
    after = stage.until_out(DOWN, 6)
    return {"seconds": after.time_s - entered.time_s, "refill": float(after.phase == REFILL)}


TIME = Case(
    name="down-time",
    title="ProbeBW_DOWN ends when it is time to probe, whatever is in flight",
    source="draft A.9; 5.3.3.8.3",
    about=(
        "The path's rate falls by 12 % when ProbeBW_DOWN begins, just below what DOWN sends (0.90, less the "
        "pacing margin of 1 %), so that the flight stays. The draft lowers it by 10 %, which the margin "
        "alone drains."
    ),
    criteria=(
        Criterion(
            "seconds",
            "time in ProbeBW_DOWN",
            low=1.9,
            high=3.1,
            unit="s",
            source="the draft's 2 to 3 s; ours: a tenth of a second for the time between looks and ACKs",
        ),
        Criterion("refill", "the next phase is ProbeBW_REFILL (1)", low=1),
    ),
    play=_time,
    seeds=(1, 2, 3),
    failed_by={"bbr1": "5.3.3: BBRv1 drains a probe's queue for one round trip at most"},
)

CASES = (INFLIGHT, TIME)
