"""Acknowledgements that come in bursts: the path holds them, or the receiver merges them."""

from fullpipe.conformance.case import Case, Criterion, Measured
from fullpipe.conformance.stage import CRUISE, STARTUP, Lab

_HELD = {"reverse": {"after": [{"kind": "aggregate", "every": "30 ms"}]}}


@Case.of(
    """
    window [at least 2]: largest window until the end of Startup, in BDP
    estimate [0.95 to 1.5]: estimate at the end of Startup, of the path's rate
        ours: the draft wants the full bandwidth; a sample of 60 ms, the least multiple of 30 ms above the
        RTT, holds a burst of 30 ms too many at most
    """,
    source="draft A.12; 5.5.9",
    main="estimate",
    seeds=(1, 2, 3),
)
def aggregation_startup(lab: Lab) -> Measured:
    """Startup finds the bandwidth although ACKs come in bursts.

    The path holds ACKs and releases them every 30 ms, on 20 Mbit/s, 40 ms and 8 BDP of buffer.
    """
    stage = lab.stage(bdps=8, path=_HELD, name="ACKs every 30 ms")
    stage.until_in(STARTUP, 1)
    after = stage.until_out(STARTUP, 15)
    return {
        "window": max(look.cwnd for look in stage.looks) / stage.bdp,
        "estimate": after.bandwidth_bps / stage.payload_bps,
    }


@Case.of(
    """
    stays [at least 4]: cruises of 0.2 s or more
        ours: a probe every three seconds in 20 s, of which ProbeRTT cuts some
    rate [at least 0.95]: least rate of a cruise, of the path's
        ours, of 'full': margin and 4 %
    window [at least 2]: least window, in BDP of the empty path
        the draft: augmented by extra_acked
    """,
    source="draft A.13; 5.5.9",
    main="rate",
    seeds=(1, 2, 3),
)
def aggregation_cruise(lab: Lab) -> Measured:
    """Cruise uses the path although ACKs come in bursts.

    The path holds ACKs and releases them every 30 ms, on 20 Mbit/s, 40 ms and 8 BDP of buffer, for 20 s from
    the first cruise. The draft lets aggregation begin in Cruise; here it is there from the start.
    """
    stage = lab.stage(bdps=8, path=_HELD, name="ACKs every 30 ms")
    stage.until_in(CRUISE, 20)
    stage.run(20)
    stays = [stay for stay in stage.stretches(CRUISE) if stay[-1].time_s - stay[0].time_s >= 0.2]
    # From ACK burst to ACK burst, and without the rounds in which the flight comes back after ProbeRTT.
    rates = [stage.rate_between(stay[len(stay) // 4], stay[-1]) or 0 for stay in stays]
    windows = [min(look.cwnd for look in stay[len(stay) // 4 :]) for stay in stays]
    return {
        "stays": float(len(stays)),
        "rate": min(rates, default=0.0) / stage.payload_bps,
        "window": min(windows, default=0) / stage.bdp,
    }


# The draft judges what the ACK left. With few segments an ACK that is hardly less. With 64, what it found
# stays above the product for as long as ProbeBW_DOWN sends, so that no Cruise comes before the next probe.
_FOUND_BY_ACKS = {"bbr3:profile=linux": "Google's kernel ends ProbeBW_DOWN by the flight that an ACK found"}


def _stretched(segments: int) -> Case:
    def play(lab: Lab) -> Measured:
        # What arrives within the time of so many packets is acknowledged at once.
        merged_us = segments * 1500 * 8 / 100
        hosts = {"gro": f"{merged_us:.0f} us"} if segments > 2 else None
        stage = lab.stage(mbps=100, ms=40, hosts=hosts, lasts_s=20, name=f"an ACK for {segments}")
        stage.run(8)
        first = stage.now
        stage.run(10)
        return {
            "rate": (stage.rate_between(first, stage.now) or 0) / stage.payload_bps,
            "lost": stage.now.lost,
        }

    return Case(
        name=f"stretched-acks-{segments}",
        title=f"An ACK for {segments} segments",
        source="draft 5.5.9",
        about=(
            f"100 Mbit/s, 40 ms, 2 BDP. The receiver acknowledges {segments} segments at once; from 8 to 18 "
            "s."
        ),
        criteria=(
            Criterion(
                "rate",
                "share of the path's rate, with ProbeRTT",
                low=0.94,
                source="ours: the margin of 1 %, 2 % for half a window in 5 % of the time, 3 % for DOWN",
            ),
        ),
        play=play,
        phases=False,
        differs=_FOUND_BY_ACKS if segments > 10 else {},
    )


CASES = (aggregation_startup, aggregation_cruise, *map(_stretched, (2, 10, 64)))
