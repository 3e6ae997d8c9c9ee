"""A path that does not change: does it use it, how soon, and with acknowledgements missing?"""

from fullpipe.conformance.case import Measured
from fullpipe.conformance.programs.case import OutsideCase
from fullpipe.conformance.programs.packets import Seen
from fullpipe.conformance.programs.phases import ACK_LOSS, CLEAN

# From here on, the start is over.
_FROM_S = 4.0
_START_S = 3.0


@OutsideCase.of(
    """
    goodput [at least 85 %]: goodput, of the path's rate
        ours: Reno's halved window still fills a path with 1 BDP of buffer, ProbeRTT costs BBR 2 %, headers
        take up to 4 %; the rest is reserve
    """,
    source="RFC 5681 section 3.1; draft 5.3.4.2",
    course=CLEAN,
)
def clean_goodput(seen: Seen) -> Measured:
    """A clean path is used.

    20 Mbit/s, 40 ms and 1 BDP of buffer, from 4 to 15 s.
    """
    return {"goodput": seen.share(_FROM_S, CLEAN.lasts_s)}


@OutsideCase.of(
    """
    rounds [at most 25 rounds]: round trips until five of them deliver 80 % of the path's rate
        ours: doubling ten segments takes three rounds to the BDP, with delayed ACKs five, and the five that
        are measured follow; the same again in reserve, and a pause of five
    overshoot [at most 2.5 BDP]: dropped by the queue in the first 3 s
        ours: slow start doubles the 2 BDP that path and buffer hold, so 2 BDP are lost; a quarter more
    """,
    source="RFC 5681 section 3.1; RFC 9002 section 7.3.1; draft 5.3.1",
    course=CLEAN,
)
def start(seen: Seen) -> Measured:
    """The start finds the rate within a second, and does not overshoot by more than slow start.

    20 Mbit/s, 40 ms and 1 BDP of buffer, from the first 10 KB that are delivered.
    """
    begins_s = seen.begins_s
    assert begins_s is not None  # Checked before any play.
    reached_s = seen.reaches(0.8 * seen.rate_bps, begins_s, begins_s + CLEAN.lasts_s / 2)
    return {
        "rounds": None if reached_s is None else reached_s / seen.rtt_s,
        "overshoot": seen.dropped_bytes(0, begins_s + _START_S) / seen.bdp,
    }


@OutsideCase.of(
    """
    goodput [at least 75 %]: goodput, of the path's rate
        ours: a later ACK says what a lost one said, so the clean path's number less 10 % for slower growth by
        fewer ACKs
    """,
    source="RFC 9293 section 3.4; RFC 9000 section 13.2.3",
    course=ACK_LOSS,
)
def ack_loss(seen: Seen) -> Measured:
    """Lost acknowledgements do not slow it down.

    20 Mbit/s, 40 ms, 1 BDP of buffer; a tenth of the packets on the way back is lost. From 4 to 15 s.
    """
    return {"goodput": seen.share(_FROM_S, ACK_LOSS.lasts_s)}


CASES = (clean_goodput, start, ack_loss)
