"""ProbeRTT: when it comes, how small its window is, that it ends, and what it leaves."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.stage import PROBE_BW, PROBE_RTT, STARTUP, Lab


@Case.of(
    """
    since [5 to 5.5 s]: time of ProbeRTT
        the draft's 5 s; ours: half a second for connecting
    window [0.45 to 0.55]: window in ProbeRTT, in BDP
        the draft's 0.5; ours: a tenth
    lasts [0.2 to 0.4 s]: time in ProbeRTT
        the draft's 200 ms and one round trip; ours: four more for the flight to fall
    next [yes]: the next phase is one of ProbeBW
    flight [at least 0.9]: flight three round trips later, in BDP
        ours, of the draft's 'resumes'
    restored [at least 0.95]: window then, in windows before
        ours, of the draft's restored window
    """,
    source="draft A.10; 5.3.4",
    main="window",
    failed_by={"bbr1": "5.3.4.1: BBRv1 waits for ten seconds and leaves four segments in flight"},
)
def probe_rtt(lab: Lab) -> Measured:
    """ProbeRTT comes after five seconds, halves the flight, and ends.

    20 Mbit/s, 40 ms, 2 BDP of buffer. The path's RTT is constant, so that no lower one is measured.
    """
    stage = lab.stage()
    entered = stage.until_in(PROBE_RTT, 15)
    before = stage.looks[-2]
    stage.run(0.15)
    within = stage.now
    after = stage.until_out(PROBE_RTT, 5)
    stage.run(3 * stage.rtt_s)
    return {
        "since": entered.time_s,
        "window": within.cwnd / stage.bdp,
        "lasts": after.time_s - entered.time_s,
        "next": float(after.phase in PROBE_BW),
        "flight": stage.now.inflight / stage.bdp,
        "restored": stage.now.cwnd / before.cwnd,
    }


@Case.of(
    """
    before [yes]: the flow is idle in ProbeBW after 5 s
    idle [at least 5 s]: time without sending
        the draft's ProbeRTTInterval
    probe_rtt [at most 0]: looks in ProbeRTT in the next second
    rate [at least 0.9]: share of the rate used in the second half of that second
        ours
    """,
    source="draft A.11; 5.4.1",
    main="probe_rtt",
)
def probe_rtt_skipped_idle(lab: Lab) -> Measured:
    """A pause of the application replaces ProbeRTT.

    20 Mbit/s, 40 ms: 8 MB, a pause of 11 s, and 40 MB. The first second after the pause is judged.
    """
    # 3.5 s of data, then nothing for longer than any interval, BBRv1's of ten seconds included; more data.
    stage = lab.stage(
        flow={"transfers": [{"size": "8 MB"}, {"size": "40 MB", "pause": "11 s"}]}, name="a pause of 11 s"
    )
    stage.run(5)
    before = stage.now
    resumed = stage.until_above("segments_sent", before.sent, 15, "new data")
    later = [*stage.run(1)]
    return {
        "before": float(before.inflight == 0 and before.phase in PROBE_BW),
        "idle": resumed.time_s
        - max((look.time_s for look in stage.looks if look.sent < before.sent), default=0.0),
        "probe_rtt": float(sum(look.phase == PROBE_RTT for look in later)),
        "rate": (stage.rate_between(later[len(later) // 2], later[-1]) or 0) / stage.payload_bps,
    }


@Case.of(
    """
    window [at least 1.9]: largest window, in BDP
        the draft's gain of 2; ours: a twentieth
    lost [at most 0]: segments lost
    """,
    source="draft 5.6.1 (table of gains) against its pseudocode, which leaves 0.5",
)
def probe_rtt_cwnd_gain(lab: Lab) -> Measured:
    """After ProbeRTT the window is two products again.

    20 Mbit/s, 40 ms, 4 BDP of buffer: six round trips after the first ProbeRTT.
    """
    stage = lab.stage(bdps=4)
    stage.until_in(PROBE_RTT, 15)
    stage.until_out(PROBE_RTT, 5)
    looks = stage.run(6 * stage.rtt_s)
    ratio = [look.cwnd / (look.bandwidth_bps / 8 * stage.rtt_s / 1448) for look in looks]
    return {"window": max(ratio), "lost": stage.now.lost}


# Rates at 20 ms, in Mbit/s: products of 0.2 to 8 packets, half of which is at most the window's floor.
_SMALL = (0.1, 0.5, 1.0, 2.0, 5.0)


@Case.of(
    """
    stays [at least 1]: complete stays in ProbeRTT on each path
    longest [at most 5]: longest stay beyond 200 ms, complete or not, in round trips
        ours: one that the draft waits for, and four for the flight to fall to the floor
    """,
    source="draft 5.6.4.5; quiche#2698, quiche#2711",
    main="longest",
)
def probe_rtt_floor(lab: Lab) -> Measured:
    """ProbeRTT ends where half a product is below the window's floor.

    0.1 to 5 Mbit/s at 20 ms for 30 s each: half of the bandwidth-delay product is 0.1 to 4 packets.
    """
    longest, count = 0.0, []
    for mbps in _SMALL:
        stage = lab.stage(
            mbps=mbps, ms=20, path={"buffer": "50 packets"}, step_s=0.005, lasts_s=40, name=f"{mbps:g} Mbit/s"
        )
        stage.run(30)
        stays = stage.stretches(PROBE_RTT)
        count.append(len(stays))
        since = next((look.time_s for look in reversed(stage.looks) if look.phase != PROBE_RTT), 0.0)
        # One that does not end is not complete, and the longest of all.
        for stay in [*stays, [look for look in stage.looks if look.time_s > since]]:
            if not stay:
                continue
            round_trip = max(look.rtt_ms for look in stay) / 1e3
            longest = max(longest, (stay[-1].time_s - stay[0].time_s - 0.2) / round_trip)
    return {"stays": float(min(count)), "longest": longest}


@Case.of(
    """
    stays [at least 3]: complete stays in ProbeRTT
        ours
    fall [at most 1 %]: the estimate falls by
        ours: as in cruise-holds
    """,
    source="draft 5.3.4.3 (MarkConnectionAppLimited); noq 1.4.0",
    main="fall",
)
def probe_rtt_keeps_estimate(lab: Lab) -> Measured:
    """ProbeRTT's own low rates do not lower the estimate.

    20 Mbit/s, 40 ms, 2 BDP for 35 s after Startup.
    """
    stage = lab.stage(lasts_s=40, name="seven ProbeRTT")
    stage.until_in(STARTUP, 1)
    stage.until_out(STARTUP, 10)
    looks = stage.run(35)
    highest, fall = 0.0, 0.0
    for look in looks:
        highest = max(highest, look.bandwidth_bps)
        fall = max(fall, 1 - look.bandwidth_bps / highest)
    return {"fall": fall * 100, "stays": float(len(stage.stretches(PROBE_RTT, looks)))}


CASES = (probe_rtt, probe_rtt_skipped_idle, probe_rtt_cwnd_gain, probe_rtt_floor, probe_rtt_keeps_estimate)
