"""What a flow does for a long time on a path that does not change: cruise, probe on time, leave headroom."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.stage import CRUISE, DOWN, PROBE_RTT, REFILL, UP, Lab, Look, Stage


def _between_probes(stage: Stage) -> list[Sequence[Look]]:
    """From the end of each probe to the next ProbeBW_REFILL, where no ProbeRTT came between.

    The last may last until now: a flow that never probes again is not to pass by those before.
    """
    found: list[Sequence[Look]] = []
    first: int | None = None
    for at, look in enumerate(stage.looks):
        before = stage.looks[at - 1].phase if at else None
        if look.phase == DOWN and before != DOWN:
            first = at
        elif look.phase == PROBE_RTT:
            first = None
        elif look.phase in (REFILL, UP) and first is not None:
            found.append(stage.looks[first:at])
            first = None
    return found if first is None else [*found, stage.looks[first:]]


@Case.of(
    """
    rounds [58 to 66 rounds]: longest time between probes
        the draft's 62 or 63; ours: four
    fall [at most 1 %]: the estimate falls in that time by
        ours: the pacing margin
    """,
    source="draft 5.5.6; noq 1.4.0, picoquic, s2n-quic#1698",
    main="fall",
    failed_by={"bbr1": "5.3.3: BBRv1 probes every eight round trips"},
)
def cruise_holds(lab: Lab) -> Measured:
    """The estimate does not decay between probes.

    50 Mbit/s and 20 ms for 35 s. From the end of each probe to the next, no data shows less bandwidth than
    there is.
    """
    stage = lab.stage(mbps=50, ms=20, lasts_s=40, name="BDP of 83 segments")
    stage.run(35)
    rests = _between_probes(stage)
    fall = max(
        (1 - rest[-1].bandwidth_bps / max(look.bandwidth_bps for look in rest) for rest in rests),
        default=None,
    )
    return {
        "rounds": max((rest[-1].round - rest[0].round for rest in rests), default=None),
        "fall": None if fall is None else fall * 100,
    }


@Case.of(
    """
    cycle [14 to 25 rounds]: median rounds from probe to probe
        ours: 17, of which the random first and rounding take up to 3, and up to 8 in which the probe itself
        passes
    count [at least 30]: probes in the 30 s
        ours: 25 rounds of 24 ms are 0.6 s, so that there are 50; a third less for ProbeRTT and Startup
    """,
    source="draft 5.3.3.8.2; quinn#2481 compares bytes",
    main="cycle",
    failed_by={"bbr1": "5.3.3: BBRv1 probes every eight round trips"},
)
def reno_coexistence_rounds(lab: Lab) -> Measured:
    """The time to the next probe is Reno's, in packets.

    10 Mbit/s and 20 ms, a BDP of 17 packets, for 30 s: Reno would probe every 17 rounds, long before 2 s have
    passed.
    """
    stage = lab.stage(mbps=10, ms=20, lasts_s=40, name="BDP of 17 segments")
    stage.run(30)
    starts = [stay[0] for stay in stage.stretches(UP)]
    cycles = [
        later.round - first.round
        for first, later in pairwise(starts)
        if not any(
            look.phase == PROBE_RTT for look in stage.looks if first.time_s < look.time_s < later.time_s
        )
    ]
    return {"cycle": float(median(cycles)) if cycles else None, "count": float(len(starts))}


@Case.of(
    """
    count [at least 8]: cruises that were followed by ProbeBW_REFILL
        ours: a probe each three seconds from the fourth on, of which ProbeRTT and caution take a half
    share [0.8 to 0.9]: median window of cruises, in windows after it
        the draft's 0.85; ours: 0.05
    """,
    source="draft 5.3.3.2, 5.6.4.7; tquic 1.6.0 leaves 85 %",
    main="share",
    failed_by={"bbr1": "5.3.3.2: BBRv1 has no headroom"},
)
def cruise_headroom(lab: Lab) -> Measured:
    """Cruise leaves 15 % of the long-term bound to others.

    50 Mbit/s, 40 ms, 0.2 BDP of buffer, which probes overflow, so that there is a long-term bound; 60 s. The
    window of each cruise is compared with that of the ProbeBW_REFILL after it.
    """
    stage = lab.stage(mbps=50, bdps=0.2, lasts_s=70, name="0.2 BDP of buffer")
    stage.run(60)
    shares = []
    for at, look in enumerate(stage.looks[1:], 1):
        # The window is the bound in ProbeBW_REFILL, which begins with the first ACK after the cruise.
        if look.phase == REFILL and stage.looks[at - 1].phase == CRUISE:
            stay = [one for one in stage.looks[at : at + 40] if one.phase == REFILL]
            bound = max(one.cwnd for one in stay)
            cruise = [one.cwnd for one in stage.looks[max(0, at - 200) : at] if one.phase == CRUISE]
            shares.append(max(cruise) / bound)
    return {"share": median(shares) if shares else None, "count": float(len(shares))}


@Case.of(
    """
    count [at least 3]: precautionary probes
        ours: a probe every three seconds loses, or is one
    """,
    source="draft 5.3.3.9 (IsTimeToGoDown), 5.3.3.6; noq 1.4.0 has none",
    seeds=(1, 2, 3),
    failed_by={"bbr1": "5.3.3.6: BBRv1 has no long-term bound"},
)
def precautionary_probe(lab: Lab) -> Measured:
    """After a probe that lost, the next stops at the bound and tries again at once.

    50 Mbit/s, 40 ms, 0.2 BDP of buffer, which probes overflow, so that there is a long-term bound; 60 s.
    Counted are probes that are followed by ProbeBW_REFILL within four rounds, with 2 % of loss at most.
    """
    stage = lab.stage(mbps=50, bdps=0.2, lasts_s=70, name="0.2 BDP of buffer")
    stage.run(60)
    count = 0
    for at, look in enumerate(stage.looks[1:], 1):
        if look.phase == DOWN and stage.looks[at - 1].phase == UP:
            # Caution is followed by another probe a round later, if no more was lost than is tolerated.
            later = [one for one in stage.looks[at:] if one.round <= look.round + 4]
            count += any(one.phase == REFILL and one.lost - look.lost <= 0.02 * look.cwnd for one in later)
    return {"count": float(count)}


@Case.of(
    """
    window [at least 0.65]: least window in ProbeBW_REFILL, in BDP
        the draft's Beta of 0.7 of a BDP, once; twice would be 0.49; ours: 0.05 for whole segments
    """,
    source="draft 5.5.10.2",
    seeds=(1, 2, 3),
    failed_by={"bbr1": "5.3.3.3: BBRv1 has no ProbeBW_REFILL"},
)
def one_reaction_a_probe(lab: Lab) -> Measured:
    """A probe lowers the long-term bound once.

    50 Mbit/s, 40 ms, 0.2 BDP of buffer, which probes overflow, so that there is a long-term bound; 60 s. In
    ProbeBW_REFILL short-term bounds do not hold, so that the window shows the long-term bound.
    """
    stage = lab.stage(mbps=50, bdps=0.2, lasts_s=70, name="0.2 BDP of buffer")
    stage.run(60)
    windows = [max(look.cwnd for look in stay) for stay in stage.stretches(REFILL) if stay[0].lost > 0]
    return {"window": min(windows) / stage.bdp if windows else None}


@Case.of(
    """
    rate [at least 0.9]: share of the rate that is used
        ours: ProbeRTT halves the window for 250 of 5000 ms; a recovery leaves Beta
    """,
    source="draft 1; noq 1.4.0",
    phases=False,
)
def clean_path(lab: Lab) -> Measured:
    """One flow uses a path that nothing disturbs.

    50 Mbit/s, 50 ms and 1 BDP of buffer, from 10 to 60 s.
    """
    stage = lab.stage(mbps=50, ms=50, bdps=1, lasts_s=70, name="1 BDP of buffer, no loss")
    stage.run(10)
    first = stage.now
    stage.run(50)
    return {"rate": (stage.rate_between(first, stage.now) or 0) / stage.payload_bps}


CASES = (
    cruise_holds,
    reno_coexistence_rounds,
    cruise_headroom,
    precautionary_probe,
    one_reaction_a_probe,
    clean_path,
)
