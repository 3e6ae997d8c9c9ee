"""A path whose rate doubles, and one whose rate halves."""

from fullpipe.conformance.case import Criterion, Measured
from fullpipe.conformance.programs.case import OutsideCase
from fullpipe.conformance.programs.packets import Seen
from fullpipe.conformance.programs.phases import CHANGE_S, DOUBLES, HALVES, HALVES_DEEP

_DOUBLES_ABOUT = (
    "10 Mbit/s become 20 after 8 s, at 40 ms, with 50 KB of buffer: 1 BDP of the lower rate, half of one "
    "of the higher."
)
_UNTIL = "time until five round trips deliver 80 % of the new rate"


def _doubles(seen: Seen) -> Measured:
    return {"time": seen.reaches(0.8 * 2 * seen.rate_bps, CHANGE_S, DOUBLES.lasts_s)}


RATE_DOUBLES = OutsideCase(
    name="outside.rate-doubles",
    title="Twice the rate is found within ten seconds",
    source="RFC 5681 section 3.1; RFC 9438 section 4.2",
    about=_DOUBLES_ABOUT,
    criteria=(
        Criterion(
            "time",
            _UNTIL,
            high=10,
            unit="s",
            source=(
                "ours: CUBIC needs 3.7 s to its last maximum of 67 segments and 4.4 s to grow by 33 more,"
                " by 0.4 t^3; Reno 2.7 s, with delayed ACKs twice that; the rest is reserve"
            ),
        ),
    ),
    play=_doubles,
    course=DOUBLES,
)

DOUBLES_SOON = OutsideCase(
    name="outside.rate-doubles-soon",
    title="The next probe finds twice the rate",
    source="draft 5.3.3.8; 5.3.3.5",
    about=_DOUBLES_ABOUT,
    criteria=(
        Criterion(
            "time",
            _UNTIL,
            high=4,
            unit="s",
            source=(
                "the draft probes after 3 s at the latest; ours: 1 s for a ProbeRTT before it, growth by a "
                "quarter a round, and the five rounds that are measured"
            ),
        ),
    ),
    play=_doubles,
    course=DOUBLES,
    like="bbr3",
)


def _halves(seen: Seen) -> Measured:
    return {
        "dropped": seen.dropped_share(CHANGE_S, HALVES.lasts_s),
        # Of the new rate.
        "goodput": 2 * seen.share(CHANGE_S + 4, HALVES.lasts_s),
    }


RATE_HALVES = OutsideCase(
    name="outside.rate-halves",
    title="Half of the rate causes no lasting overload",
    source="RFC 2914 section 5; RFC 5681 section 3.1",
    about="20 Mbit/s become 10 after 8 s, at 40 ms, with 100 KB of buffer: 2 BDP of the lower rate.",
    criteria=(
        Criterion(
            "dropped",
            "packets that the queue drops, from the change to the end",
            high=10,
            unit="%",
            source=(
                "ours: one that goes on at the old rate loses half, one that answers within a second a tenth"
            ),
        ),
        Criterion(
            "goodput",
            "goodput, of the new rate, from 4 s after the change",
            low=80,
            unit="%",
            source="ours: as on the clean path, less 5 % for the recovery",
        ),
    ),
    play=_halves,
    course=HALVES,
)


def _drains(seen: Seen) -> Measured:
    return {"time": seen.queue_falls(1.5 * seen.bdp / 2, CHANGE_S, HALVES_DEEP.lasts_s, width_s=1.0)}


HALVES_DRAINS = OutsideCase(
    name="outside.rate-halves-drains",
    title="The queue that half of the rate leaves is drained after two cycles",
    source="draft A.16; 5.5.6",
    about=(
        "20 Mbit/s become 10 after 8 s, at 40 ms, with 400 KB of buffer, so that nothing but the smaller "
        "rate tells the sender."
    ),
    criteria=(
        Criterion(
            "time",
            "time until the median queue of a second is at most 1.5 BDP of the new rate",
            high=9,
            unit="s",
            source=(
                "the draft's filter forgets the old rate after two cycles of at most 3 s of waiting; "
                "ours: 1.5 s for the rest of each, at a round trip of 160 ms"
            ),
        ),
    ),
    play=_drains,
    course=HALVES_DEEP,
    like="bbr3",
)

CASES = (RATE_DOUBLES, DOUBLES_SOON, RATE_HALVES, HALVES_DRAINS)
