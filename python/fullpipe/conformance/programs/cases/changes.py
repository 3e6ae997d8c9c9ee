"""A path whose rate doubles, and one whose rate halves."""

from fullpipe.conformance.case import Measured
from fullpipe.conformance.programs.case import OutsideCase
from fullpipe.conformance.programs.packets import Seen
from fullpipe.conformance.programs.phases import CHANGE_S, DOUBLES, HALVES, HALVES_DEEP


def _doubles(seen: Seen) -> Measured:
    return {"time": seen.reaches(0.8 * 2 * seen.rate_bps, CHANGE_S, DOUBLES.lasts_s)}


@OutsideCase.of(
    """
    time [at most 10 s]: time until five round trips deliver 80 % of the new rate
        ours: CUBIC needs 3.7 s to its last maximum of 67 segments and 4.4 s to grow by 33 more, by 0.4 t^3;
        Reno 2.7 s, with delayed ACKs twice that; the rest is reserve
    """,
    source="RFC 5681 section 3.1; RFC 9438 section 4.2",
    course=DOUBLES,
)
def rate_doubles(seen: Seen) -> Measured:
    """Twice the rate is found within ten seconds.

    10 Mbit/s become 20 after 8 s, at 40 ms, with 50 KB of buffer: 1 BDP of the lower rate, half of one of the
    higher.
    """
    return _doubles(seen)


@OutsideCase.of(
    """
    time [at most 4 s]: time until five round trips deliver 80 % of the new rate
        the draft probes after 3 s at the latest; ours: 1 s for a ProbeRTT before it, growth by a quarter a
        round, and the five rounds that are measured
    """,
    source="draft 5.3.3.8; 5.3.3.5",
    course=DOUBLES,
    like="bbr3",
)
def rate_doubles_soon(seen: Seen) -> Measured:
    """The next probe finds twice the rate.

    10 Mbit/s become 20 after 8 s, at 40 ms, with 50 KB of buffer: 1 BDP of the lower rate, half of one of the
    higher.
    """
    return _doubles(seen)


@OutsideCase.of(
    """
    dropped [at most 10 %]: packets that the queue drops, from the change to the end
        ours: one that goes on at the old rate loses half, one that answers within a second a tenth
    goodput [at least 80 %]: goodput, of the new rate, from 4 s after the change
        ours: as on the clean path, less 5 % for the recovery
    """,
    source="RFC 2914 section 5; RFC 5681 section 3.1",
    course=HALVES,
)
def rate_halves(seen: Seen) -> Measured:
    """Half of the rate causes no lasting overload.

    20 Mbit/s become 10 after 8 s, at 40 ms, with 100 KB of buffer: 2 BDP of the lower rate.
    """
    return {
        "dropped": seen.dropped_share(CHANGE_S, HALVES.lasts_s),
        # Of the new rate.
        "goodput": 2 * seen.share(CHANGE_S + 4, HALVES.lasts_s),
    }


@OutsideCase.of(
    """
    time [at most 9 s]: time until the median queue of a second is at most 1.5 BDP of the new rate
        the draft's filter forgets the old rate after two cycles of at most 3 s of waiting; ours: 1.5 s for
        the rest of each, at a round trip of 160 ms
    """,
    source="draft A.16; 5.5.6",
    course=HALVES_DEEP,
    like="bbr3",
)
def rate_halves_drains(seen: Seen) -> Measured:
    """The queue that half of the rate leaves is drained after two cycles.

    20 Mbit/s become 10 after 8 s, at 40 ms, with 400 KB of buffer, so that nothing but the smaller rate tells
    the sender.
    """
    return {"time": seen.queue_falls(1.5 * seen.bdp / 2, CHANGE_S, HALVES_DEEP.lasts_s, width_s=1.0)}


CASES = (rate_doubles, rate_doubles_soon, rate_halves, rate_halves_drains)
