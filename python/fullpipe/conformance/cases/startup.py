"""How Startup ends: on a plateau of the bandwidth, on losses, and never for want of data."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.play import sees_recovery
from fullpipe.conformance.stage import DRAIN, PROBE_BW, PROBE_RTT, STARTUP, Lab, Stage

# 40 Mbit/s of data on a path of 100: about 138 segments a round trip, sent by the application's clock.
_BURSTS = {"bursts": {"size": "50 KB", "every": "10 ms"}}


@Case.of(
    """
    estimate [at most 2 %]: the estimate is off the path's rate by
    rounds [3 to 4 rounds]: rounds from an estimate within 25 % of the rate to the end of Startup
        the draft's three, and one that was under way
    drain [yes]: the next phase is Drain
    """,
    source="draft A.1; 5.3.1.2",
)
def startup_plateau(lab: Lab) -> Measured:
    """Startup ends on a bandwidth plateau.

    A flow with enough data on 20 Mbit/s, 40 ms and 2 BDP of buffer, until it leaves Startup.
    """
    stage = lab.stage()
    stage.until_in(STARTUP, 1)
    after = stage.until_out(STARTUP, 10)
    # No round grows by less than a quarter before the rate is within a quarter of the path's.
    near = next((look for look in stage.looks if look.bandwidth_bps >= stage.payload_bps / 1.25), None)
    return {
        "estimate": abs(after.bandwidth_bps / stage.payload_bps - 1) * 100,
        "rounds": None if near is None else after.round - near.round,
        "drain": float(after.phase == DRAIN),
    }


@Case.of(
    """
    before [yes]: the flow is in Startup after 2 s
    rounds [at most 6 rounds]: rounds from the first loss to the end of Startup
        ours: one until recovery, one full round in recovery; three times as many because losses are random
    drain [yes]: the next phase is Drain, or one of ProbeBW
        the draft: Drain, which ends with the same ACK if the flight is already below the product
    """,
    source="draft A.2; 5.3.1.3",
    main="rounds",
    seeds=(1, 2, 3, 4, 5),
    failed_by={"bbr1": "5.3.1.3: BBRv1 does not look at losses in Startup"},
)
def startup_loss_app_limited(lab: Lab) -> Measured:
    """Startup ends on loss though the application limits the flow.

    An application writes 40 Mbit/s on a path of 100. After 2 s the path loses 10 % of all packets: more than
    2 %, in more than six places a round.
    """
    stage = lab.stage(mbps=100, flow=_BURSTS, name="app-limited, then 10 % of loss")
    stage.run(2)
    before = stage.now
    stage.change(loss="10 %")
    lost = stage.until_above("lost", before.lost, 1, "a loss")
    after = stage.until_out(STARTUP, 5)
    return {
        "before": float(before.phase == STARTUP),
        "rounds": after.round - lost.round,
        "drain": float(after.phase in (DRAIN, *PROBE_BW)),
    }


@Case.of(
    """
    others [at most 0]: looks in a phase that is neither Startup nor ProbeRTT
    lost [at most 0]: segments lost
    """,
    source="draft A.7; lsquic#544 and hysteria#1105 are its opposite",
)
def startup_app_limited_stays(lab: Lab) -> Measured:
    """Startup never ends while the application limits the flow and nothing is lost.

    An application writes 4 Mbit/s on a path of 20 for 30 s.
    """
    stage = lab.stage(flow={"bursts": {"size": "5 KB", "every": "10 ms"}}, name="4 of 20 Mbit/s")
    stage.run(30)
    return {
        "others": float(sum(look.phase not in (None, STARTUP, PROBE_RTT) for look in stage.looks)),
        "lost": stage.now.lost,
    }


@Case.of(
    """
    since [5 to 5.5 s]: time of ProbeRTT
        the draft's 5 s since the last lower RTT; ours: half a second for connecting and the queue of the
        start
    lasts [0.2 to 0.4 s]: time in ProbeRTT
        the draft's 200 ms and one round trip; ours: four more for the flight to fall
    startup [yes]: Startup goes on afterwards, for a second at least
    """,
    source="draft A.20; 5.3.4.4",
    main="lasts",
    failed_by={"bbr1": "5.3.4.1: BBRv1 waits for ten seconds"},
)
def startup_probe_rtt(lab: Lab) -> Measured:
    """ProbeRTT in Startup returns to Startup.

    An application writes 4 Mbit/s on a path of 20, so that Startup outlasts the ProbeRTT interval.
    """
    stage = lab.stage(flow={"bursts": {"size": "5 KB", "every": "10 ms"}}, name="4 of 20 Mbit/s")
    entered = stage.until_in(PROBE_RTT, 20)
    after = stage.until_out(PROBE_RTT, 3)
    stage.run(1)
    return {
        "since": entered.time_s,
        "lasts": after.time_s - entered.time_s,
        "startup": float(after.phase == STARTUP and stage.now.phase == STARTUP),
    }


@Case.of(
    """
    lost [20 to 45]: segments lost
        ours: three bursts, and what leaves with them
    estimate [at most 5 %]: the estimate at the end of Startup is below the path's rate by
        ours: Startup that ends here knows less than the rate
    drain [yes]: the next phase is Drain
    """,
    source="draft 5.3.1.3 (six discontiguous ranges); quinn#2481",
    main="estimate",
    differs={"bbr3:profile=linux": "Google's kernel counts ACKs that show losses, not ranges"},
)
def startup_burst_loss(lab: Lab) -> Measured:
    """Bursts of losses do not end Startup.

    Ten packets in a row are lost in each of three rounds, from a window of 100 segments on, on 100 Mbit/s and
    40 ms (BDP 333): more than 2 %, but in one or two places a round.
    """
    stage = lab.stage(mbps=100, bdps=4, step_s=0.72e-3, name="bursts of packets are lost")
    stage.until_above("cwnd", 99, 2, "a window of 100 segments")
    before = stage.now
    for _ in range(3):
        begins = stage.now
        _lose(stage, 10)
        stage.until(lambda look, since=begins: look.round > since.round, 1, "the next round")  # type: ignore[misc]
    stage.run(0.1)
    lost = stage.now.lost - before.lost
    after = stage.now if stage.now.phase != STARTUP else stage.until_out(STARTUP, 10)
    return {
        "lost": lost,
        "estimate": (1 - after.bandwidth_bps / stage.payload_bps) * 100,
        "drain": float(DRAIN in stage.phases()),
    }


def _lose(stage: Stage, packets: int) -> None:
    """Loses packets in a row: all that pass until so many were lost."""
    before = stage.now
    stage.change(loss="100 %")
    sent = before.sent
    for _ in range(400):
        stage.advance(packets * stage.packet_s / 12)
        if stage.now.sent - sent >= packets:
            break
    stage.change(loss="0 %")


@Case.of(
    """
    first [0.9 to 1.1]: first pacing rate, in 2.77 initial windows a round trip
        ours: a tenth, for BBRv1's 2.89 and for rounding
    grows [at least 2]: growth of the rate in five rounds
        ours: the first shows the initial window only, others double it
    """,
    source="draft 5.6.2; noq#800, s2n-quic#1524, quiche#1521",
)
def startup_initial_rate(lab: Lab) -> Measured:
    """The first pacing rate follows from the measured RTT.

    A path of 20 Mbit/s and 200 ms. A rate derived from the nominal millisecond would be 200 times as high.
    """
    stage = lab.stage(ms=200, step_s=0.01, name="200 ms")
    first = stage.until_above("inflight", 0, 2, "data in flight")
    wanted = 2.77 * 10 * 1448 * 8 / stage.rtt_s
    later = stage.until(lambda look: look.round >= first.round + 5, 3, "a fifth round")
    return {"first": first.pacing_bps / wanted, "grows": later.pacing_bps / first.pacing_bps}


@Case.of(
    """
    dropped [at most 0]: packets dropped by the queue
    recovery [yes]: a recovery was seen
    estimate [at most 5 %]: after 8 s the estimate is below the path's rate by
        ours: as for other ends of Startup
    """,
    source="draft A.18; 5.5.11.2",
    main="estimate",
    seeds=(1, 2, 3),
)
def startup_spurious_loss(lab: Lab) -> Measured:
    """Losses that were none do not end Startup for good.

    5 % of the packets arrive 15 ms late on 50 Mbit/s and 40 ms, so that they are taken for lost, in many
    places, until they arrive. What ended Startup then has to be undone.
    """
    reorder = {"after": [{"kind": "reorder", "probability": "5 %", "delay": "15 ms"}]}
    stage = lab.stage(mbps=50, bdps=4, path=reorder, name="5 % of packets come 15 ms late")
    stage.run(8)
    sees_recovery(stage)
    return {
        "dropped": stage.bed.dropped(),
        "recovery": float(any(look.state == "recovery" for look in stage.looks)),
        "estimate": (1 - stage.now.bandwidth_bps / stage.payload_bps) * 100,
    }


CASES = (
    startup_plateau,
    startup_loss_app_limited,
    startup_app_limited_stays,
    startup_probe_rtt,
    startup_burst_loss,
    startup_initial_rate,
    startup_spurious_loss,
)
