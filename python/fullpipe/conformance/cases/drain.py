"""How Drain ends: when the flight is down at the bandwidth-delay product, or after three rounds."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.stage import DRAIN, PROBE_BW, Lab


@Case.of(
    """
    gain [0.495 to 0.505]: pacing gain in Drain
        the draft's 0.5; ours: one percent of rounding
    flight [0.9 to 1.05]: flight at the end of Drain, in BDP
        the draft's 1; ours: what is delivered or sent between two looks, a twentieth of a round trip, and a
        burst
    next [yes]: the next phase is one of ProbeBW
    """,
    source="draft A.3; 5.3.2",
    main="flight",
    differs={"bbr3:profile=linux": "Google's kernel drains at 88/256"},
    failed_by={"bbr1": "5.3.2: BBRv1 drains with 0.35"},
)
def drain_inflight(lab: Lab) -> Measured:
    """Drain ends when the flight is down at the bandwidth-delay product.

    A flow with enough data on 20 Mbit/s, 40 ms and 2 BDP of buffer, from Startup to ProbeBW.
    """
    stage = lab.stage()
    entered = stage.until_in(DRAIN, 10)
    after = stage.until_out(DRAIN, 5)
    return {
        "gain": entered.pacing_gain,
        "flight": after.inflight / stage.bdp,
        "next": float(after.phase in PROBE_BW),
    }


@Case.of(
    """
    flight [at least 1]: least flight in Drain, in BDP as estimated
    rounds [3 to 5 rounds]: rounds in Drain
        the draft's three; its pseudocode ends Drain with the fourth, and one was under way
    next [yes]: the next phase is one of ProbeBW
    mild [at most 5 rounds]: rounds in Drain where the rate falls by 10 %, the draft's own step
        the draft's three, as above
    """,
    source="draft A.4; 5.3.2; draft#90",
    main="rounds",
    differs={"bbr3:profile=linux": "Google's kernel drains until the queue is gone"},
    failed_by={"bbr1": "5.3.2: BBRv1 has no such limit"},
)
def drain_time(lab: Lab) -> Measured:
    """Drain ends after three rounds, whatever is in flight.

    The path's rate falls to 30 % when Drain begins, below what Drain sends, so that the flight stays. The
    draft lowers it by 10 %, which keeps no flight up: Drain sends half of what is delivered then. That is
    played, too, and has to end as soon.
    """
    stage = lab.stage(bdps=8, name="the rate falls when Drain begins")
    entered = stage.until_in(DRAIN, 10)
    bdp = stage.bdp
    stage.change(rate=f"{stage.rate_bps * 0.3:.0f} bit/s")
    after = stage.until_out(DRAIN, 5)
    drained = [look for look in stage.looks if look.phase == DRAIN]
    return {
        "flight": min(look.inflight for look in drained) / bdp,
        "rounds": after.round - entered.round,
        "next": float(after.phase in PROBE_BW),
        "mild": _rounds_after(lab, 0.9),
    }


def _rounds_after(lab: Lab, share: float) -> float:
    stage = lab.stage(bdps=8, name=f"the rate falls to {share:.0%} when Drain begins")
    entered = stage.until_in(DRAIN, 10)
    stage.change(rate=f"{stage.rate_bps * share:.0f} bit/s")
    return float(stage.until_out(DRAIN, 5).round - entered.round)


CASES = (drain_inflight, drain_time)
