"""How Drain ends: when the flight is down at the bandwidth-delay product, or after three rounds."""

from fullpipe.conformance.case import Case, Criterion, Measured
from fullpipe.conformance.stage import DRAIN, PROBE_BW, Lab


def _inflight(lab: Lab) -> Measured:
    stage = lab.stage()
    entered = stage.until_in(DRAIN, 10)
    after = stage.until_out(DRAIN, 5)
    return {
        "gain": entered.pacing_gain,
        "flight": after.inflight / stage.bdp,
        "next": float(after.phase in PROBE_BW),
    }


INFLIGHT = Case(
    name="drain-inflight",
    title="Drain ends when the flight is down at the bandwidth-delay product",
    source="draft A.3; 5.3.2",
    about="A flow with enough data on 20 Mbit/s, 40 ms and 2 BDP of buffer, from Startup to ProbeBW.",
    criteria=(
        Criterion(
            "gain",
            "pacing gain in Drain",
            low=0.495,
            high=0.505,
            source="the draft's 0.5; ours: one percent of rounding",
        ),
        Criterion(
            "flight",
            "flight at the end of Drain, in BDP",
            low=0.9,
            high=1.05,
            source=(
                "the draft's 1; ours: what is delivered or sent between two looks, a twentieth of a round "
                "trip, and a burst"
            ),
        ),
        Criterion("next", "the next phase is one of ProbeBW (1)", low=1),
    ),
    play=_inflight,
    differs={"bbr3:profile=linux": "Google's kernel drains at 88/256"},
    main="flight",
    failed_by={"bbr1": "5.3.2: BBRv1 drains with 0.35"},
)


def _time(lab: Lab) -> Measured:
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
    }


TIME = Case(
    name="drain-time",
    title="Drain ends after three rounds, whatever is in flight",
    source="draft A.4; 5.3.2; draft#90",
    about=(
        "The path's rate falls to 30 % when Drain begins, below what Drain sends, so that the flight stays. "
        "The draft lowers it by 10 %, which keeps no flight up: Drain sends half of what is delivered then."
    ),
    criteria=(
        Criterion("flight", "least flight in Drain, in BDP as estimated", low=1),
        Criterion(
            "rounds",
            "rounds in Drain",
            low=3,
            high=5,
            unit="rounds",
            source="the draft's three; its pseudocode ends Drain with the fourth, and one was under way",
        ),
        Criterion("next", "the next phase is one of ProbeBW (1)", low=1),
    ),
    play=_time,
    differs={"bbr3:profile=linux": "Google's kernel drains until the queue is gone"},
    main="rounds",
    failed_by={"bbr1": "5.3.2: BBRv1 has no such limit"},
)

CASES = (INFLIGHT, TIME)
