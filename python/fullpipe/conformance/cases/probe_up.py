"""How a probe for bandwidth ends: on a plateau, on loss, and never for want of data."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.stage import CRUISE, DOWN, PACKET_BYTES, PROBE_RTT, REFILL, UP, Lab, Look, Stage


@Case.of(
    """
    rounds [3 to 5 rounds]: rounds in ProbeBW_UP
        the draft's three without growth; ours: one that was under way, and one that grew
    estimate [at most 2 %]: the estimate is off the path's rate by
        the draft's, of A.1
    lost [at most 0]: segments lost
    down [yes]: the next phase is ProbeBW_DOWN
    """,
    source="draft A.5; 5.3.3.7",
    failed_by={"bbr1": "5.3.3: BBRv1 probes for one round trip"},
)
def up_plateau(lab: Lab) -> Measured:
    """A probe ends on a bandwidth plateau.

    A flow with enough data on 20 Mbit/s, 40 ms and 4 BDP of buffer: its first probe.
    """
    stage = lab.stage(bdps=4)
    entered = stage.until_in(UP)
    after = stage.until_out(UP)
    return {
        "rounds": after.round - entered.round,
        "estimate": abs(after.bandwidth_bps / stage.payload_bps - 1) * 100,
        "lost": after.lost,
        "down": float(after.phase == DOWN),
    }


def _limited_probe(lab: Lab) -> tuple[Stage, Look]:
    """A probe whose data the application cannot provide: the path becomes fast when it begins."""
    # 20 Mbit/s of data are a little more than the path carries first, and a tenth of what it carries then.
    stage = lab.stage(
        bdps=8, flow={"bursts": {"size": "25 KB", "every": "10 ms"}}, name="the application limits a probe"
    )
    entered = stage.until_in(UP)
    stage.change(rate="200 Mbit/s")
    stage.run(1.2)
    return stage, entered


@Case.of(
    """
    seconds [at least 1.2 s]: time in ProbeBW_UP
        ours: 30 round trips
    probe_rtt [yes]: the next phase is
    lost [at most 0]: segments lost
    """,
    source="draft A.7; 5.3.3.7",
)
def up_app_limited_stays(lab: Lab) -> Measured:
    """A probe never ends while the application limits the flow and nothing is lost.

    An application writes 20 Mbit/s. The path carries a little less until the first probe, and ten times as
    much from then on. Only ProbeRTT, which comes every five seconds, ends the probe.
    """
    stage, entered = _limited_probe(lab)
    after = stage.until_out(UP, 10) if stage.now.phase == UP else _first_after(stage, entered)
    return {
        "seconds": after.time_s - entered.time_s,
        "probe_rtt": float(after.phase == PROBE_RTT),
        "lost": after.lost,
    }


def _first_after(stage: Stage, entered: Look) -> Look:
    return next(look for look in stage.since(entered) if look.phase != UP)


@Case.of(
    """
    before [yes]: the flow is in ProbeBW_UP after 1.2 s
    rounds [at most 2 rounds]: rounds from the first loss to the end of the probe
        ours: the threshold takes a few losses, of which there is one in ten packets
    down [yes]: the next phase is ProbeBW_DOWN, or Cruise
        the draft: ProbeBW_DOWN, which ends with the same ACK if the flight is already below the product
    again [1.5 to 3.2 s]: time from there to the next ProbeBW_REFILL
        the draft's 2 to 3 s, which ProbeBW_DOWN chooses, or 63 rounds of 40 ms; ours: a tenth
    """,
    source="draft A.6; 5.5.10.2",
    main="rounds",
    seeds=(1, 2, 3),
    failed_by={"bbr1": "5.3.3.3: BBRv1 has no ProbeBW_REFILL"},
)
def up_loss_app_limited(lab: Lab) -> Measured:
    """A probe ends on loss though the application limits the flow.

    As in up-app-limited-stays, and 1.2 s later the path loses 10 % of all packets. That inflight_longterm is
    updated, as A.6 asks, contradicts the pseudocode of 5.5.10.2, which leaves it as it is for
    application-limited samples; it is not judged.
    """
    stage, _ = _limited_probe(lab)
    before = stage.now
    stage.change(loss="10 %")
    lost = stage.until_above("lost", before.lost, 1, "a loss")
    after = lost if lost.phase != UP else stage.until_out(UP, 3)
    stage.change(loss="0 %")
    # ProbeBW_DOWN may end with the ACK that begins it. That it was there shows in the wait that it chooses.
    # ProbeRTT ends in another.
    again = after
    while (
        begins := stage.until(lambda look: look.phase in (REFILL, PROBE_RTT), 8, "a probe")
    ).phase == PROBE_RTT:
        again = stage.until_out(PROBE_RTT, 3)
    return {
        "before": float(before.phase == UP),
        "rounds": after.round - lost.round,
        "down": float(after.phase in (DOWN, CRUISE)),
        "again": begins.time_s - again.time_s,
    }


def _probe_rtt_is_near(stage: Stage) -> bool:
    """Whether ProbeRTT may cut a probe short. It comes 5 to 5.5 s after the last, or after the first data."""
    last_s = max((look.time_s for look in stage.looks if look.phase == PROBE_RTT), default=0)
    return 4.8 < stage.now.time_s - last_s < 5.5


def _until_probe_loses(stage: Stage) -> Look:
    probe = stage.until_in(UP)
    return stage.until_above("lost", probe.lost, 10, "a loss in a probe")


@Case.of(
    """
    bounded [yes]: an earlier probe lost data
    before [yes]: the probe lasts until a loss is known
    rounds [at most 1 rounds]: rounds from the first loss to the end of the probe
        the draft's 'immediately', once more than 2 % are lost
    window [0.6 to 0.97]: window after the probe, in windows before
        the draft: what was in flight when the lost data was sent, which is less than the window, and at least
        Beta of 0.7 of the BDP; ours: a tenth and a few percent for whole segments
    down [yes]: the next phase is ProbeBW_DOWN
    """,
    source="draft A.21; 5.5.10.2",
    main="window",
    seeds=(1, 2, 3),
    failed_by={"bbr1": "5.5.10.2: BBRv1 has no long-term bound; its window follows what recovery delivers"},
)
def up_loss(lab: Lab) -> Measured:
    """Loss ends a probe and lowers the long-term bound.

    50 Mbit/s, 40 ms. A probe overflows a buffer of 0.2 BDP, which sets inflight_longterm. The buffer grows to
    4 BDP. The next probe stops at the bound, for caution; when the one after it begins, 10 % of the packets
    are lost. Probes that ProbeRTT cuts short do not count, and when it is near, all is done again.
    """
    stage = lab.stage(mbps=50, bdps=0.2, name="a probe that loses")
    while True:
        # A probe overflows a buffer of a fifth of the BDP: from then on there is a long-term bound.
        bounded = _until_probe_loses(stage)
        stage.until_in(CRUISE)
        stage.change(buffer=f"{4 * stage.bdp * PACKET_BYTES:.0f} B")
        # The next probe stops at the bound, for caution; the one after it does not. One that ProbeRTT cuts
        # short is neither.
        stage.until_in(UP)
        while stage.until_out(UP).phase == PROBE_RTT:
            stage.until_in(UP)
        entered = stage.until_in(UP)
        if not _probe_rtt_is_near(stage):
            break
        stage.change(buffer=f"{0.2 * stage.bdp * PACKET_BYTES:.0f} B")
    stage.change(loss="10 %")
    lost = stage.until_above("lost", entered.lost, 1, "a loss")
    within = stage.looks[-2]
    after = lost if lost.phase != UP else stage.until_out(UP, 3)
    return {
        "bounded": float(bounded.lost > 0),
        "before": float(within.phase == UP),
        "rounds": after.round - lost.round,
        "window": after.cwnd / within.cwnd,
        "down": float(after.phase == DOWN),
    }


@Case.of(
    """
    idle [at most 0.5]: least flight in the pause, in BDP
        ours: the pause leaves a trace
    estimate [at most 1 %]: the estimate falls by
        ours: of the draft's 'does not update'
    up [yes]: ProbeBW_UP follows
    resumes [at least 0.9]: share of the rate that is used a second later
        ours
    """,
    source="draft A.22; 5.3.3.3",
    main="estimate",
    failed_by={"bbr1": "5.3.3.3: BBRv1 has no ProbeBW_REFILL"},
)
def refill_app_limited(lab: Lab) -> Measured:
    """An application that pauses in ProbeBW_REFILL does not lower the estimate.

    Two flows on 20 Mbit/s and 40 ms: the first shows when ProbeBW_REFILL begins; the data of the second ends
    there, and goes on a round trip after its last segment arrived.
    """
    # What the flow has delivered when ProbeBW_REFILL begins, so that another ends its data just there.
    first = lab.stage(name="the probe's time")
    begins = first.until_in(REFILL)
    size = begins.delivered_bytes + begins.inflight * 1448
    stage = lab.stage(
        flow={"transfers": [{"size": f"{size}"}, {"size": "100 MB"}]}, name="no data in ProbeBW_REFILL"
    )
    entered = stage.until_in(REFILL)
    stage.run(0.3)
    idle = min(look.inflight for look in stage.since(entered))
    after = stage.now if stage.now.phase != REFILL else stage.until_out(REFILL, 3)
    stage.run(1)
    later = stage.since(entered)
    return {
        "idle": idle / stage.bdp,
        "estimate": (1 - min(look.bandwidth_bps for look in later) / entered.bandwidth_bps) * 100,
        "up": float(UP in stage.phases(later)),
        "resumes": (stage.rate_between(later[-25], later[-1]) or 0)
        / stage.payload_bps
        * float(after.time_s > 0),
    }


CASES = (up_plateau, up_app_limited_stays, up_loss_app_limited, up_loss, refill_app_limited)
