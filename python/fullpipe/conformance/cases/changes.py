"""A path whose rate changes by a factor of ten, and one that hardly holds a packet."""

from statistics import median

from fullpipe.conformance.case import Case, Criterion, Measured
from fullpipe.conformance.stage import CRUISE, PACKET_BYTES, PROBE_BW, PROBE_RTT, REFILL, UP, Lab, Look, Stage


def _reaches(stage: Stage, share: float, within_s: float) -> Look:
    """The first look after a round trip that delivered at a share of the path's rate."""
    steps = round(stage.rtt_s / stage.step_s)

    def fast(_: Look) -> bool:
        if len(stage.looks) <= steps:
            return False
        return (stage.rate_between(stage.looks[-1 - steps], stage.now) or 0) >= share * stage.payload_bps

    return stage.until(fast, within_s, f"{share:.0%} of {stage.rate_bps / 1e6:g} Mbit/s")


@Case.of(
    """
    rounds [at most 100 rounds]: rounds from the change until a round trip delivers 90 % of 100 Mbit/s
        ours: 63 until the next probe, 2 log_1.25(10) = 21 of growth, and 16
    """,
    source="draft A.15; 5.3.3.5",
    phases=False,
    seeds=(1, 2, 3),
    failed_by={
        "cubic": "1: loss-based control grows the window slowly; by 0.4 t^3 segments here",
        "reno": "1: loss-based control grows the window slowly; by a segment a round here",
    },
)
def rate_up_10x(lab: Lab) -> Measured:
    """Ten times the bandwidth is found soon.

    10 Mbit/s become 100 after 6.5 s, at 40 ms, and 2 BDP of buffer become 4 of the higher rate.
    """
    stage = lab.stage(mbps=10, name="from 10 to 100 Mbit/s")
    stage.run(6.5)
    before = stage.now
    stage.rate_bps = 100e6
    stage.change(rate="100 Mbit/s", buffer="1333 packets")
    full = _reaches(stage, 0.9, 60)
    return {"rounds": full.round - before.round}


@Case.of(
    """
    bound [at most 1.9]: window when the probe begins, in BDP of 10 Mbit/s
        ours: below the 2 that the window would be without a bound
    rounds [at most 200 rounds]: rounds from the change until a round trip delivers 90 % of 100 Mbit/s
        ours: the bound grows by 1, 2, 4, ... segments a round, so that log2(300) = 9 rounds suffice; 63 until
        the probe, and as many again for each of two further probes
    probing [at most 36 rounds]: rounds of these in ProbeBW_UP
        ours: four times 9, where a segment a round would take 300
    """,
    source="draft A.15; 5.3.3.5; s2n-quic#1539",
    main="probing",
    seeds=(1, 2, 3),
    failed_by={"bbr1": "5.5.10.2: BBRv1 has no long-term bound"},
)
def rate_up_10x_bounded(lab: Lab) -> Measured:
    """The long-term bound grows exponentially to ten times the bandwidth.

    As rate-up-10x, with a buffer of 20 packets that overflows first, and 700 packets with the higher rate.
    """
    # Probes overflow a buffer of 20 packets at 10 Mbit/s, so that there is a long-term bound.
    stage = lab.stage(
        mbps=10, path={"buffer": f"{20 * PACKET_BYTES} B"}, lasts_s=90, name="from 10 to 100 Mbit/s, bounded"
    )
    probe = stage.until_in(UP)
    stage.until_above("lost", probe.lost, 20, "a loss in a probe")
    stage.until_in(CRUISE, 20)
    before, bdp = stage.now, stage.bdp
    stage.rate_bps = 100e6
    stage.change(rate="100 Mbit/s", buffer="700 packets")
    begins = stage.until_in(UP, 10)
    full = _reaches(stage, 0.9, 60)
    probing = [look for look in stage.since(begins) if look.phase == UP]
    rounds = len({look.round for look in probing})
    return {"bound": begins.cwnd / bdp, "rounds": full.round - before.round, "probing": float(rounds)}


def _complete_probes(stage: Stage, since: Look) -> int:
    """Probes whose cycle was over: ProbeRTT, if it comes soon, keeps the filter from advancing (5.3.3.9)."""
    count = 0
    looks = stage.since(since)
    for at, look in enumerate(looks[1:], 1):
        if look.phase != UP and looks[at - 1].phase == UP and look.phase != PROBE_RTT:
            rest = next((one for one in looks[at:] if one.phase in (PROBE_RTT, REFILL, UP)), looks[-1])
            count += rest.phase != PROBE_RTT or rest.round - look.round >= 2
    return count


def _after_two_cycles(stage: Stage, since: Look) -> Look:
    """The beginning of the first probe after two complete ones."""
    while True:
        begins = stage.until_in(UP, 20)
        if _complete_probes(stage, since) >= 2:
            return begins


@Case.of(
    """
    rounds [at most 5 rounds]: rounds from the first loss to half the estimate
        ours: two rounds with losses at Beta = 0.7 each, and three to detect the first, to end its round, and
        under way. Further down it goes until ProbeRTT or ProbeBW_REFILL lifts the short-term bounds, which
        here is soon
    max [0.9 to 1.1]: estimate when a probe begins, after two complete ones since the change; of the path's rate
        the draft's two cycles; ours: a tenth
    seconds [at most 20 s]: time from the change until then
        ours: with the buffer full a round takes 0.44 s, so that a probe and its wait take 5.2 s; two of them,
        and as much again because ProbeRTT may cut two
    """,  # noqa: E501
    source="draft A.16; 5.5.10.3, 5.5.5",
    main="max",
    seeds=(1, 2, 3),
    failed_by={"bbr1": "5.5.10.3: BBRv1 has no short-term bounds; its filter holds ten rounds"},
)
def rate_down_10x(lab: Lab) -> Measured:
    """A tenth of the bandwidth is noticed at once, and accepted after two cycles.

    100 Mbit/s become 10 in a cruise, at 40 ms, with 333 packets of buffer. Where a probe begins, short-term
    bounds do not hold, so that the estimate is max_bw.
    """
    stage = lab.stage(mbps=100, bdps=1, lasts_s=60, name="from 100 to 10 Mbit/s")
    stage.run(6.5)
    stage.until_in(CRUISE, 20)
    before = stage.now
    stage.rate_bps = 10e6
    stage.change(rate="10 Mbit/s")
    lost = stage.until_above("lost", before.lost, 10, "a loss")
    low = stage.until(lambda look: look.bandwidth_bps <= 0.5 * before.bandwidth_bps, 30, "half the estimate")
    accepted = _after_two_cycles(stage, before)
    return {
        "rounds": low.round - lost.round,
        "max": accepted.bandwidth_bps / stage.payload_bps,
        "seconds": accepted.time_s - before.time_s,
    }


def _after_a_drop(bdps: float, shown: str) -> Case:
    def play(lab: Lab) -> Measured:
        stage = lab.stage(mbps=50, bdps=bdps, lasts_s=80, step_s=0.01, name="from 50 to 5 Mbit/s")
        # Each seed is another moment of the cycle, which takes three seconds; two are near ProbeRTT.
        stage.run(6.5 + 0.7 * lab.seed)
        before = stage.now
        stage.rate_bps = 5e6
        stage.change(rate="5 Mbit/s")
        stage.run(60)
        looks = stage.since(before)
        limit = stage.rate_bps * stage.rtt_s / 8
        # The queue is gone when it stays below a product for a second, which a probe's own does not prevent.
        high_s, gone_s = before.time_s, None
        for look in looks:
            if look.queued_bytes > limit:
                high_s = look.time_s
            elif look.time_s - high_s >= 1:
                gone_s = high_s - before.time_s
                break
        late = [look for look in looks if look.time_s >= before.time_s + 30]
        mean = sum(look.queued_bytes for look in late) / max(len(late), 1)
        return {
            "seconds": gone_s,
            "queue": mean / limit,
            "rate": (stage.rate_between(late[0], late[-1]) or 0) / stage.payload_bps,
        }

    return Case(
        name=f"rate-down-10x-{shown}",
        title=f"The queue that a tenth of the bandwidth leaves in {bdps:g} BDP goes away",
        source="draft A.16; 5.3.3.9, 5.3.4.3; draft#5, draft#109",
        about=(
            f"50 Mbit/s become 5 at one of six moments of the cycle, at 40 ms, with a buffer of {bdps:g} BDP "
            "of 50 Mbit/s. The queue is judged from 30 to 60 s after that."
        ),
        criteria=(
            Criterion(
                "seconds",
                "time until the queue stays below a BDP of 5 Mbit/s for a second",
                high=30,
                unit="s",
                source=(
                    "the draft's two cycles; ours: a full buffer makes a round last 1.6 s, so that a probe "
                    "and its wait take up to 10 s, and ProbeRTT may cut one"
                ),
            ),
            Criterion(
                "queue",
                "mean queue from 30 to 60 s, in BDP of 5 Mbit/s",
                high=0.5,
                source="ours: as in deep-buffer, UP queues half a BDP",
            ),
            Criterion("rate", "share of the rate used then", low=0.85, source="ours: headroom of 0.15"),
        ),
        play=play,
        phases=False,
        seeds=(1, 2, 3, 4, 5, 6),
        main="queue",
        failed_by={
            # Known bugs of the draft, and of Google's kernel: docs/reports/bbr3-rate-drop.md.
            "bbr3": "5.3.3.9, 5.3.4.3: a known bug of the draft",
            "bbr3:profile=linux": "5.3.3.9, 5.3.4.3: Google's kernel has the draft's bug",
            "cubic": "1: loss-based control fills a deep buffer",
            "reno": "1: loss-based control fills a deep buffer",
        },
    )


@Case.of(
    """
    window [at least 4 segments]: least window
    pacing [0.9 to 1.05]: median pacing rate in cruises, of the path's
        ours
    rate [at least 0.95]: share of the rate that is used
        ours, of 'without stalling'
    """,
    source="draft A.14; 5.6.4.3",
    main="window",
)
def sub_packet_bdp(lab: Lab) -> Measured:
    """A product of a sixth of a packet.

    100 kbit/s and 20 ms: 30 s from the beginning of ProbeBW.
    """
    stage = lab.stage(
        mbps=0.1, ms=20, path={"buffer": "50 packets"}, step_s=0.02, lasts_s=90, name="100 kbit/s, 20 ms"
    )
    stage.until(lambda look: look.phase in PROBE_BW, 60, "ProbeBW")
    first = stage.now
    stage.run(30)
    looks = stage.since(first)
    cruising = [look.pacing_bps for look in looks if look.phase == CRUISE]
    return {
        "window": min(look.cwnd for look in looks),
        "pacing": median(cruising) / stage.payload_bps if cruising else None,
        "rate": (stage.rate_between(first, stage.now) or 0) / stage.payload_bps,
    }


@Case.of(
    """
    probes [2 probes]: complete probes until one begins with an estimate below 90 % of the old one
        the draft's MaxBwFilterLen of two cycles
    begun [at most 4 probes]: probes begun until then, complete or not
        ours: one that was under way, and one that ProbeRTT cuts
    """,
    source="draft 5.5.5, 5.5.6; 2.11; noq 1.4.0, picoquic, s2n-quic#1698",
    seeds=(1, 2, 3),
    failed_by={"bbr1": "2.11: BBRv1's filter holds ten rounds"},
)
def max_filter_two_cycles(lab: Lab) -> Measured:
    """The bandwidth filter forgets after two cycles, neither sooner nor later.

    20 Mbit/s become 14 in a cruise, with a buffer so large that nothing is lost.
    """
    stage = lab.stage(bdps=40, lasts_s=60, name="from 20 to 14 Mbit/s without loss")
    stage.until_in(UP)
    stage.until_in(CRUISE)
    old = stage.now.bandwidth_bps
    stage.rate_bps = 14e6
    stage.change(rate="14 Mbit/s")
    before = stage.now
    for begun in range(8):
        if stage.until_in(UP, 20).bandwidth_bps < 0.9 * old:
            return {"probes": float(_complete_probes(stage, before)), "begun": float(begun)}
    return {"probes": None, "begun": None}


CASES = (
    rate_up_10x,
    rate_up_10x_bounded,
    rate_down_10x,
    _after_a_drop(1, "1bdp"),
    _after_a_drop(4, "4bdp"),
    sub_packet_bdp,
    max_filter_two_cycles,
)
