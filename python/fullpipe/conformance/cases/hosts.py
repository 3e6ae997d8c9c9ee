"""Applications and receivers that limit a flow, and what is left when they no longer do."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.stage import PACKET_BYTES, PROBE_BW, Lab


@Case.of(
    """
    before [yes]: the small answers are over after 6 s
    rate [at least 0.9]: share of the rate, from 6 to 10 s
        ours: with one ProbeRTT
    """,
    source="draft 4.1.2.4; lsquic#544, hysteria#1105, ngtcp2#2217",
    main="rate",
    phases=False,
)
def app_limited_ends(lab: Lab) -> Measured:
    """A flow that the application limited is not limited for good.

    60 answers of 20 KB, one after the other, and then as much data as the path takes, on 20 Mbit/s and 40 ms.
    """
    small = [{"size": "20 KB"} for _ in range(60)]
    stage = lab.stage(
        flow={"transfers": [*small, {"size": "200 MB"}]}, name="60 small transfers, then a large one"
    )
    # 60 round trips and more, an answer of 14 segments in each.
    stage.run(6)
    first = stage.now
    stage.run(4)
    return {
        "rate": (stage.rate_between(first, stage.now) or 0) / stage.payload_bps,
        "before": float(first.delivered_bytes > 60 * 20_000),
    }


@Case.of(
    """
    limited [at most 0.97]: share of the path's rate: the window limits
        ours: the case is what it says
    rate [at least 0.9]: rate, of that from 5 to 10 s
        ours: nothing decays
    least [at least 0.1]: flight that is exceeded in 90 % of the time, in BDP
        ours: nothing stalls
    """,
    source="draft 4.1.2.4",
    main="rate",
    phases=False,
)
def receive_window(lab: Lab) -> Measured:
    """A receive window below the product is used, for good.

    The receiver's buffer is 128 KB, of which the window is a part, on 20 Mbit/s and 40 ms (100 KB); from 10
    to 30 s.
    """
    # 64 KB in flight at most, on a path of 100 KB.
    stage = lab.stage(
        hosts={"tcp_rmem": ["4 KB", "128 KB", "128 KB"]}, lasts_s=40, name="a receive window below a BDP"
    )
    stage.run(5)
    early = stage.now
    stage.run(5)
    first = stage.now
    stage.run(20)
    allowed = stage.rate_between(early, first) or 1.0
    looks = stage.since(first)
    return {
        "least": sorted(look.inflight for look in looks)[len(looks) // 10] / stage.bdp,
        "rate": (stage.rate_between(first, stage.now) or 0) / allowed,
        "limited": (stage.rate_between(first, stage.now) or 0) / stage.payload_bps,
    }


@Case.of(
    """
    phase [yes]: the flow is idle in ProbeBW
    gain [0.97 to 1.03]: pacing gain of the first data
        the draft's 1; ours: 3 %
    rate [at least 0.9]: share of the rate in the last three of six round trips
        ours
    lost [at most 0]: segments lost
    queue [at most 0.6]: largest delay of the queue, in round trips
        ours: below that of a probe
    """,
    source="draft 5.4.1; quiche#2496",
    main="gain",
)
def idle_restart(lab: Lab) -> Measured:
    """After a pause the flow is paced at the bandwidth at once.

    8 MB, a pause of 1 s, and 40 MB, on 20 Mbit/s and 40 ms. The first six round trips after the pause are
    judged.
    """
    stage = lab.stage(
        flow={"transfers": [{"size": "8 MB"}, {"size": "40 MB", "pause": "1 s"}]},
        bdps=4,
        name="a pause of 1 s",
    )
    stage.run(4)
    stage.until(lambda look: look.inflight == 0, 5, "the pause")
    before = stage.now
    resumed = stage.until_above("segments_sent", before.sent, 5, "new data")
    looks = stage.run(6 * stage.rtt_s)
    steps = round(stage.rtt_s / stage.step_s)
    return {
        "gain": resumed.pacing_gain,
        "rate": (stage.rate_between(looks[-1 - 3 * steps], looks[-1]) or 0) / stage.payload_bps,
        "lost": looks[-1].lost - before.lost,
        "queue": max(look.queued_bytes for look in looks) / PACKET_BYTES / stage.bdp,
        "phase": float(before.phase in PROBE_BW),
    }


@Case.of(
    """
    lost [yes]: the tail was lost
    seconds [at most 2 s]: time from the loss to data of the second transfer
        ours: a timeout and a half
    rate [at least 0.85]: share of the rate 1.5 to 3 s later
        ours
    """,
    source="RFC 8985 7 (tail loss probes)",
    main="seconds",
    phases=False,
)
def tail_loss(lab: Lab) -> Measured:
    """Losses at the end of a transfer do not slow the next.

    The last segments of 2 MB are lost on 20 Mbit/s and 40 ms; 40 MB follow.
    """
    size = 2_000_000
    first = lab.stage(flow={"size": f"{size}"}, lasts_s=10, step_s=0.001, name="the time of the tail")
    tail = first.until_above("delivered_bytes", size - 15 * 1448 - 1, 5, "the last segments")
    stage = lab.stage(
        flow={"transfers": [{"size": f"{size}"}, {"size": "40 MB"}]},
        lasts_s=20,
        step_s=0.001,
        name="the tail is lost",
    )
    stage.run(tail.time_s - stage.rtt_s / 2 - stage.packet_s)
    before = stage.now
    stage.change(loss="100 %")
    stage.run(stage.rtt_s / 2)
    stage.change(loss="0 %")
    after = stage.until_above("delivered_bytes", size, 5, "the second transfer")
    second = stage.run(3)
    return {
        "lost": float(after.lost + after.timeouts > before.lost + before.timeouts),
        "seconds": after.time_s - before.time_s,
        "rate": (stage.rate_between(second[len(second) // 2], second[-1]) or 0) / stage.payload_bps,
    }


CASES = (app_limited_ends, receive_window, idle_restart, tail_loss)
