"""ProbeRTT: when it comes, how small its window is, that it ends, and what it leaves."""

from fullpipe.conformance.case import Case, Criterion, Measured
from fullpipe.conformance.stage import PROBE_BW, PROBE_RTT, STARTUP, Lab


def _enters_and_exits(lab: Lab) -> Measured:
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


ENTERS = Case(
    name="probe-rtt",
    title="ProbeRTT comes after five seconds, halves the flight, and ends",
    source="draft A.10; 5.3.4",
    about="20 Mbit/s, 40 ms, 2 BDP of buffer. The path's RTT is constant, so that no lower one is measured.",
    criteria=(
        Criterion(
            "since",
            "time of ProbeRTT",
            low=5,
            high=5.5,
            unit="s",
            source="the draft's 5 s; ours: half a second for connecting",
        ),
        Criterion(
            "window",
            "window in ProbeRTT, in BDP",
            low=0.45,
            high=0.55,
            source="the draft's 0.5; ours: a tenth",
        ),
        Criterion(
            "lasts",
            "time in ProbeRTT",
            low=0.2,
            high=0.4,
            unit="s",
            source="the draft's 200 ms and one round trip; ours: four more for the flight to fall",
        ),
        Criterion("next", "the next phase is one of ProbeBW (1)", low=1),
        Criterion(
            "flight",
            "flight three round trips later, in BDP",
            low=0.9,
            source="ours, of the draft's 'resumes'",
        ),
        Criterion(
            "restored",
            "window then, in windows before",
            low=0.95,
            source="ours, of the draft's restored window",
        ),
    ),
    play=_enters_and_exits,
    main="window",
    failed_by={"bbr1": "5.3.4.1: BBRv1 waits for ten seconds and leaves four segments in flight"},
)


def _idle(lab: Lab) -> Measured:
    # 3.5 s of data, then nothing for longer than any interval, BBRv1's of ten seconds included; more data.
    stage = lab.stage(
        flow={"transfers": [{"size": "8 MB"}, {"size": "40 MB", "pause": "11 s"}]}, name="a pause of 11 s"
    )
    stage.run(5)
    before = stage.now
    resumed = stage.until(lambda look: look.sent > before.sent, 15, "new data")
    later = [*stage.run(1)]
    return {
        "before": float(before.inflight == 0 and before.phase in PROBE_BW),
        "idle": resumed.time_s
        - max((look.time_s for look in stage.looks if look.sent < before.sent), default=0.0),
        "probe_rtt": float(sum(look.phase == PROBE_RTT for look in later)),
        "rate": (stage.rate_between(later[len(later) // 2], later[-1]) or 0) / stage.payload_bps,
    }


IDLE = Case(
    name="probe-rtt-skipped-idle",
    title="A pause of the application replaces ProbeRTT",
    source="draft A.11; 5.4.1",
    about="20 Mbit/s, 40 ms: 8 MB, a pause of 11 s, and 40 MB. The first second after the pause is judged.",
    criteria=(
        Criterion("before", "the flow is idle in ProbeBW after 5 s (1)", low=1),
        Criterion("idle", "time without sending", low=5, unit="s", source="the draft's ProbeRTTInterval"),
        Criterion("probe_rtt", "looks in ProbeRTT in the next second", high=0),
        Criterion("rate", "share of the rate used in the second half of that second", low=0.9, source="ours"),
    ),
    play=_idle,
    main="probe_rtt",
)


def _gain(lab: Lab) -> Measured:
    stage = lab.stage(bdps=4)
    stage.until_in(PROBE_RTT, 15)
    stage.until_out(PROBE_RTT, 5)
    looks = stage.run(6 * stage.rtt_s)
    ratio = [look.cwnd / (look.bandwidth_bps / 8 * stage.rtt_s / 1448) for look in looks]
    return {"window": max(ratio), "lost": stage.now.lost}


GAIN = Case(
    name="probe-rtt-cwnd-gain",
    title="After ProbeRTT the window is two products again",
    source="draft 5.6.1 (table of gains) against its pseudocode, which leaves 0.5",
    about="20 Mbit/s, 40 ms, 4 BDP of buffer: six round trips after the first ProbeRTT.",
    criteria=(
        Criterion(
            "window", "largest window, in BDP", low=1.9, source="the draft's gain of 2; ours: a twentieth"
        ),
        Criterion("lost", "segments lost", high=0),
    ),
    play=_gain,
)

# Rates at 20 ms, in Mbit/s: products of 0.2 to 8 packets, half of which is at most the window's floor.
_SMALL = (0.1, 0.5, 1.0, 2.0, 5.0)


def _floor(lab: Lab) -> Measured:
    longest, count = 0.0, []
    for mbps in _SMALL:
        stage = lab.stage(
            mbps=mbps, ms=20, path={"buffer": "50 packets"}, step_s=0.005, lasts_s=40, name=f"{mbps:g} Mbit/s"
        )
        stage.run(30)
        stays = stage.stretches(PROBE_RTT)
        count.append(len(stays))
        for stay in stays:
            round_trip = max(look.rtt_ms for look in stay) / 1e3
            longest = max(longest, (stay[-1].time_s - stay[0].time_s - 0.2) / round_trip)
        if stage.now.phase == PROBE_RTT and not stays:
            return {"stays": 0.0, "longest": None}
    return {"stays": float(min(count)), "longest": longest}


FLOOR = Case(
    name="probe-rtt-floor",
    title="ProbeRTT ends where half a product is below the window's floor",
    source="draft 5.6.4.5; quiche#2698, quiche#2711",
    about="0.1 to 5 Mbit/s at 20 ms for 30 s each: half of the bandwidth-delay product is 0.1 to 4 packets.",
    criteria=(
        Criterion("stays", "complete stays in ProbeRTT on each path", low=1),
        Criterion(
            "longest",
            "longest stay beyond 200 ms, in round trips",
            high=5,
            source="ours: one that the draft waits for, and four for the flight to fall to the floor",
        ),
    ),
    play=_floor,
    main="longest",
)


def _keeps_estimate(lab: Lab) -> Measured:
    stage = lab.stage(lasts_s=40, name="seven ProbeRTT")
    stage.until_in(STARTUP, 1)
    stage.until_out(STARTUP, 10)
    looks = stage.run(35)
    highest, fall = 0.0, 0.0
    for look in looks:
        highest = max(highest, look.bandwidth_bps)
        fall = max(fall, 1 - look.bandwidth_bps / highest)
    return {"fall": fall * 100, "stays": float(len(stage.stretches(PROBE_RTT, looks)))}


KEEPS = Case(
    name="probe-rtt-keeps-estimate",
    title="ProbeRTT's own low rates do not lower the estimate",
    source="draft 5.3.4.3 (MarkConnectionAppLimited); noq 1.4.0",
    about="20 Mbit/s, 40 ms, 2 BDP for 35 s after Startup.",
    criteria=(
        Criterion("stays", "complete stays in ProbeRTT", low=3, source="ours"),
        Criterion("fall", "the estimate falls by", high=1, unit="%", source="ours: as in cruise-holds"),
    ),
    play=_keeps_estimate,
    main="fall",
)

CASES = (ENTERS, IDLE, GAIN, FLOOR, KEEPS)
