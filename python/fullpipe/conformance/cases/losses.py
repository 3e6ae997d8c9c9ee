"""Losses that are no congestion, losses that were none, and policers."""

from fullpipe.conformance.case import Case, Measured
from fullpipe.conformance.loss.play import sees_recovery
from fullpipe.conformance.stage import CRUISE, PROBE_BW, Lab


@Case.of(
    """
    loss [at most 5 %]: segments lost
        ours, of the draft's 'without excessive continuous loss': two and a half times the 2 % that it
        tolerates
    rate [at least 0.7]: share of the tokens that are used
        ours: Beta, what a round with losses leaves
    """,
    source="draft A.17; 5.5.10.3",
    phases=False,
    seeds=(1, 2, 3),
    failed_by={
        "bbr1": (
            "5.5.10.3: BBRv1 has no short-term bounds; its model of policers tries the full rate every 48 "
            "rounds"
        )
    },
)
def policer(lab: Lab) -> Measured:
    """Behind a policer, loss is moderate and the rate is used.

    A token bucket of 10 Mbit/s and 500 KB drops what exceeds it, on 100 Mbit/s and 40 ms. The second half of
    60 s is judged.
    """
    policed = {"before": [{"kind": "policer", "rate": "10 Mbit/s", "burst": "500 KB"}]}
    stage = lab.stage(mbps=100, path=policed, lasts_s=70, name="policed to 10 Mbit/s")
    stage.run(30)
    first = stage.now
    stage.run(30)
    last = stage.now
    return {
        "loss": (last.lost - first.lost) / max(last.sent - first.sent, 1) * 100,
        "rate": (stage.rate_between(first, last) or 0) / stage.payload_of(10e6),
    }


# How late a packet is so that it is taken for lost. RACK's window never grows beyond a round trip. noq and
# Quinn find the loss after three packets, and drop as a possible duplicate what 128 others overtook: 15 ms
# are half of that.
_LATE = {"sim": "60 ms", "quic": "15 ms"}


@Case.of(
    """
    dropped [at most 0]: packets dropped by the queue
    episodes [at least 3]: recoveries
        ours: the draft asks for one
    estimate [at most 2 %]: the estimate falls over a recovery by
        ours: a round's variation
    rate [at least 0.93]: share of the rate, from 10 to 30 s
        ours: as for stretched ACKs, and 1 %
    """,
    source="draft A.18; 5.5.11; noq 1.4.0",
    main="estimate",
    seeds=(1, 2, 3),
)
def spurious_recovery(lab: Lab) -> Measured:
    """A recovery from losses that were none changes nothing.

    One packet of a thousand arrives 60 ms late (RACK's window never grows beyond a round trip), over QUIC 15
    ms (stacks drop what 128 packets overtook), on 50 Mbit/s, 40 ms and 4 BDP for 30 s: it is retransmitted,
    and the original arrives. The estimate two round trips after each recovery is compared with that before
    it.
    """
    late = _LATE[lab.world]
    reorder = {"after": [{"kind": "reorder", "probability": "0.1 %", "delay": late}]}
    stage = lab.stage(mbps=50, bdps=4, path=reorder, lasts_s=40, name=f"0.1 % of packets come {late} late")
    looks = stage.run(30)
    sees_recovery(stage)
    episodes, least = 0, 1.0
    best = 0.0
    for at, look in enumerate(looks[1:], 1):
        best = max(best, looks[at - 1].bandwidth_bps)
        if look.state == "open" and looks[at - 1].state == "recovery":
            episodes += 1
            begins = at - 1
            while begins > 0 and looks[begins].state == "recovery":
                begins -= 1
            # Two round trips later, or the end.
            after = looks[min(at + round(2 * stage.rtt_s / stage.step_s), len(looks) - 1)]
            if looks[begins].phase not in ("startup",) and looks[begins].bandwidth_bps:
                least = min(least, after.bandwidth_bps / looks[begins].bandwidth_bps)
    rate = stage.rate_between(looks[len(looks) // 3], looks[-1]) or 0
    return {
        "dropped": stage.bed.dropped(),
        "episodes": float(episodes),
        "estimate": (1 - least) * 100,
        "rate": rate / stage.payload_bps,
    }


@Case.of(
    """
    timeouts [at least 1]: timeouts
    dropped [at most 0]: packets dropped by the queue
    estimate [at least 0.95]: estimate, of the one before
        ours
    window [at least 0.9]: window, of the one before
        ours
    phase [yes]: the phase is one of ProbeBW
    """,
    source="draft A.19; 5.5.11",
    main="estimate",
    not_in={
        "quic": (
            "a probe timeout declares nothing lost, so that nothing is to be undone (RFC 9002 section 6.2)"
        )
    },
)
def spurious_timeout(lab: Lab) -> Measured:
    """A timeout that was none leaves estimate and window.

    In a cruise on 20 Mbit/s and 40 ms, the path's delay is 600 ms for as long, so that the timer fires
    although nothing is lost. The flow is judged 1.5 s after that.
    """
    far = {"after": [{"kind": "delay", "delay": "1 ms"}]}
    stage = lab.stage(path=far, bdps=8, lasts_s=30, name="the path stalls for 0.6 s")
    stage.until_in(CRUISE, 20)
    stage.run(0.4)
    before = stage.now
    # Whatever is sent from now on arrives 600 ms late; then the delay falls, and nothing overtakes.
    stage.change(element="forward[3]", delay="600 ms")
    stage.run(0.65)
    stage.change(element="forward[3]", delay="1 ms")
    stage.run(1.5)
    after = stage.now
    return {
        "timeouts": after.timeouts - before.timeouts,
        "dropped": stage.bed.dropped(),
        "estimate": after.bandwidth_bps / before.bandwidth_bps,
        "window": after.cwnd / before.cwnd,
        "phase": float(after.phase in PROBE_BW),
    }


@Case.of(
    """
    rate [at least 0.7]: share of the rate that is used
        ours: Beta, what a round with losses leaves
    """,
    source="draft 1; 5.5.10.2",
    phases=False,
    seeds=(1, 2, 3),
    failed_by={
        "reno": "1: loss-based control needs loss rates far below those of the path",
        "cubic": "1: loss-based control needs loss rates far below those of the path",
    },
)
def random_loss(lab: Lab) -> Measured:
    """Losses at random do not make a flow slow.

    50 Mbit/s, 40 ms, 1 BDP, and 0.5 % of all packets are lost; from 10 to 30 s.
    """
    stage = lab.stage(mbps=50, bdps=1, path={"loss": "0.5 %"}, lasts_s=40, name="0.5 % of loss")
    stage.run(10)
    first = stage.now
    stage.run(20)
    return {"rate": (stage.rate_between(first, stage.now) or 0) / stage.payload_bps}


@Case.of(
    """
    loss [at most 2 %]: segments lost
        the draft's LossThresh, which bounds a round of a probe
    rate [at least 0.85]: share of the rate that is used
        ours: headroom of 0.15 while cruising
    """,
    source="draft 1, 5.5.10.2 (LossThresh)",
    phases=False,
    seeds=(1, 2, 3),
    failed_by={
        "bbr1": "5.5.10.2: BBRv1 does not bound its flight by losses",
        "reno": "1: loss-based control does not use a path whose buffer is shallow",
    },
)
def shallow_buffer(lab: Lab) -> Measured:
    """In a shallow buffer, little is lost and the path is used.

    50 Mbit/s, 40 ms and a buffer of 0.1 BDP, from 10 to 60 s.
    """
    stage = lab.stage(mbps=50, bdps=0.1, lasts_s=70, name="0.1 BDP of buffer")
    stage.run(10)
    first = stage.now
    stage.run(50)
    last = stage.now
    return {
        "loss": (last.lost - first.lost) / max(last.sent - first.sent, 1) * 100,
        "rate": (stage.rate_between(first, last) or 0) / stage.payload_bps,
    }


@Case.of(
    """
    queue [at most 0.5]: mean delay of the queue, in round trips of the empty path
        ours: UP queues half a BDP
    """,
    source="draft 1 (bufferbloat)",
    phases=False,
    failed_by={
        "reno": "1: loss-based control fills a deep buffer",
        "cubic": "1: loss-based control fills a deep buffer",
    },
)
def deep_buffer(lab: Lab) -> Measured:
    """In a deep buffer, there is hardly a queue.

    20 Mbit/s, 40 ms and a buffer of 8 BDP, from 10 to 30 s.
    """
    stage = lab.stage(bdps=8, lasts_s=40, name="8 BDP of buffer")
    stage.run(10)
    looks = stage.run(20)
    return {"queue": (sum(look.rtt_ms for look in looks) / len(looks) / 1e3 / stage.rtt_s - 1)}


CASES = (policer, spurious_recovery, spurious_timeout, random_loss, shallow_buffer, deep_buffer)
