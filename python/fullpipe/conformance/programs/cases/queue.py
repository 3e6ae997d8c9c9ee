"""The queue that a sender leaves at the bottleneck, when the buffer is deep and when it is shallow."""

from itertools import pairwise
from statistics import median

from fullpipe.conformance.case import Measured
from fullpipe.conformance.programs.case import OutsideCase
from fullpipe.conformance.programs.packets import NotJudgedError, Seen
from fullpipe.conformance.programs.phases import DEEP, OVERFLOWS, SHALLOW

_FROM_S = 5.0
_SHALLOW_FROM_S = 4.0


@OutsideCase.of(
    """
    queue [at most 1.5 BDP]: median queue
    goodput [at least 85 %]: goodput, of the path's rate
        ours: as on the clean path; a sender that sends little has no queue either
    """,
    source="draft 3.2",
    course=DEEP,
    like="bbr3",
)
def deep_buffer_queue(seen: Seen) -> Measured:
    """A deep buffer is not filled.

    20 Mbit/s, 40 ms and 8 BDP of buffer, from 5 to 25 s.
    """
    return {
        "queue": median(seen.queue(_FROM_S, DEEP.lasts_s)) / seen.bdp,
        "goodput": seen.share(_FROM_S, DEEP.lasts_s),
    }


@OutsideCase.of(
    """
    gap [4.9 to 8 s]: median time between dips
        the draft's interval of 5 s; ours: 0.1 s to see it, and 3 s, because a lower RTT postpones it
    count [2 to 5 dips]: dips in 21.5 s
        ours: one for each 5 to 8 s; the draft allows no more than one in 5 s
    """,
    source="draft 5.3.4.1; 2.16.2",
    course=DEEP,
    like="bbr3",
)
def probe_rtt_dips(seen: Seen) -> Measured:
    """ProbeRTT lowers the rate for a moment every five seconds or so.

    20 Mbit/s, 40 ms and 8 BDP of buffer, from 3 to 24.5 s. ProbeRTT holds half of a BDP in flight for 200 ms,
    so that deliveries of 100 ms fall below three quarters of their median.
    """
    # Up to where the last packets of a run are no longer delivered.
    found = seen.dips(_FROM_S - 2, DEEP.lasts_s - 0.5, width_s=0.1, below=0.75)
    gaps = [later - earlier for earlier, later in pairwise(found)]
    return {"gap": median(gaps) if gaps else None, "count": float(len(found))}


@OutsideCase.of(
    """
    dropped [at most 10 %]: packets that the queue drops
        ours: Reno loses 0.1 % here; a hundred times as much is sending on whatever is lost
    goodput [at least 70 %]: goodput, of the path's rate
        ours: Reno's window between 0.6 and 1.25 BDP uses 86 %; the rest is reserve
    """,
    source="RFC 5681 section 3.1; RFC 2914 section 5",
    course=SHALLOW,
)
def shallow_buffer(seen: Seen) -> Measured:
    """A shallow buffer is used without persistent loss.

    20 Mbit/s, 40 ms and a quarter of a BDP of buffer, from 4 to 15 s.
    """
    return {
        "goodput": seen.share(_SHALLOW_FROM_S, SHALLOW.lasts_s),
        "dropped": seen.dropped_share(_SHALLOW_FROM_S, SHALLOW.lasts_s),
    }


@OutsideCase.of(
    """
    dropped [at most 2 %]: packets that the queue drops
        the draft's number for a round trip, and it expects considerably less on average
    """,
    source="draft 3.2; 2.8",
    course=SHALLOW,
    like="bbr3",
)
def shallow_buffer_loss(seen: Seen) -> Measured:
    """In a shallow buffer, losses stay below the loss threshold.

    20 Mbit/s, 40 ms and a quarter of a BDP of buffer, from 4 to 15 s.
    """
    return {"dropped": seen.dropped_share(_SHALLOW_FROM_S, SHALLOW.lasts_s)}


# When the window after an overflow is looked at: recovery is over after a round trip of 120 ms with a full
# queue, and CUBIC has grown by 5 to 8 % of the BDP and buffer by then.
_AFTER_S = (0.3, 0.5)


@OutsideCase.of(
    """
    left [60 to 88 %]: still in flight
        beta_cubic is 0.7, and the window has grown to 75 to 78 % by then; ours: 10 points above, and as many
        below 0.7. Reno's half would be 52 %
    """,
    source="RFC 9438 section 4.6",
    course=OVERFLOWS,
    like="cubic",
)
def cubic_decrease(seen: Seen) -> Measured:
    """After an overflow, seven tenths stay in flight.

    20 Mbit/s, 40 ms and 2 BDP of buffer, from 5 s on. What path and queue hold 0.3 to 0.5 s after an
    overflow, of what they held at the overflow; the median of all overflows.
    """
    return _decrease(seen)


@OutsideCase.of(
    """
    left [42 to 62 %]: still in flight
        half, and the window has grown to 52 % by then; ours: 10 points above, and as many below. CUBIC's
        seven tenths would be 75 %
    """,
    source="RFC 5681 section 3.1; RFC 9002 section 7.3.2",
    course=OVERFLOWS,
    like="reno",
)
def reno_decrease(seen: Seen) -> Measured:
    """After an overflow, half stays in flight.

    The path of `cubic-decrease`, and the same measure.
    """
    return _decrease(seen)


def _decrease(seen: Seen) -> Measured:
    last_s = OVERFLOWS.lasts_s - _AFTER_S[1]
    found = []
    for at in seen.overflows(_FROM_S, last_s):
        before = max(seen.queue(at - 0.1, at + 0.1))
        after = median(seen.queue(at + _AFTER_S[0], at + _AFTER_S[1]))
        found.append((after + seen.bdp) / (before + seen.bdp))
    if not found:
        raise NotJudgedError(f"the queue did not overflow between {_FROM_S:g} and {last_s:g} s")
    return {"left": median(found) * 100}


CASES = (
    deep_buffer_queue,
    probe_rtt_dips,
    shallow_buffer,
    shallow_buffer_loss,
    cubic_decrease,
    reno_decrease,
)
