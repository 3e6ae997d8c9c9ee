"""A path that does not change: does it use it, how soon, and with acknowledgements missing?"""

from fullpipe.conformance.case import Criterion, Measured
from fullpipe.conformance.programs.case import OutsideCase
from fullpipe.conformance.programs.packets import Seen
from fullpipe.conformance.programs.phases import ACK_LOSS, CLEAN

# From here on, the start is over.
_FROM_S = 4.0
_START_S = 3.0


def _goodput(seen: Seen) -> Measured:
    return {"goodput": seen.share(_FROM_S, CLEAN.lasts_s)}


GOODPUT = OutsideCase(
    name="outside.clean-goodput",
    title="A clean path is used",
    source="RFC 5681 section 3.1; draft 5.3.4.2",
    about="20 Mbit/s, 40 ms and 1 BDP of buffer, from 4 to 15 s.",
    criteria=(
        Criterion(
            "goodput",
            "goodput, of the path's rate",
            low=85,
            unit="%",
            source=(
                "ours: Reno's halved window still fills a path with 1 BDP of buffer, ProbeRTT costs BBR 2 %, "
                "headers take up to 4 %; the rest is reserve"
            ),
        ),
    ),
    play=_goodput,
    course=CLEAN,
)


def _start(seen: Seen) -> Measured:
    begins_s = seen.begins_s
    assert begins_s is not None  # Checked before any play.
    reached_s = seen.reaches(0.8 * seen.rate_bps, begins_s, begins_s + CLEAN.lasts_s / 2)
    return {
        "rounds": None if reached_s is None else reached_s / seen.rtt_s,
        "overshoot": seen.dropped_bytes(0, begins_s + _START_S) / seen.bdp,
    }


START = OutsideCase(
    name="outside.start",
    title="The start finds the rate within a second, and does not overshoot by more than slow start",
    source="RFC 5681 section 3.1; RFC 9002 section 7.3.1; draft 5.3.1",
    about="20 Mbit/s, 40 ms and 1 BDP of buffer, from the first 10 KB that are delivered.",
    criteria=(
        Criterion(
            "rounds",
            "round trips until five of them deliver 80 % of the path's rate",
            high=25,
            unit="rounds",
            source=(
                "ours: doubling ten segments takes three rounds to the BDP, with delayed ACKs five, and the "
                "five that are measured follow; the same again in reserve, and a pause of five"
            ),
        ),
        Criterion(
            "overshoot",
            "dropped by the queue in the first 3 s",
            high=2.5,
            unit="BDP",
            source=(
                "ours: slow start doubles the 2 BDP that path and buffer hold, so 2 BDP are lost; a "
                "quarter more"
            ),
        ),
    ),
    play=_start,
    course=CLEAN,
)


def _ack_loss(seen: Seen) -> Measured:
    return {"goodput": seen.share(_FROM_S, ACK_LOSS.lasts_s)}


LOST_ACKS = OutsideCase(
    name="outside.ack-loss",
    title="Lost acknowledgements do not slow it down",
    source="RFC 9293 section 3.4; RFC 9000 section 13.2.3",
    about=(
        "20 Mbit/s, 40 ms, 1 BDP of buffer; a tenth of the packets on the way back is lost. From 4 to 15 s."
    ),
    criteria=(
        Criterion(
            "goodput",
            "goodput, of the path's rate",
            low=75,
            unit="%",
            source=(
                "ours: a later ACK says what a lost one said, so the clean path's number less 10 % for "
                "slower growth by fewer ACKs"
            ),
        ),
    ),
    play=_ack_loss,
    course=ACK_LOSS,
)

CASES = (GOODPUT, START, LOST_ACKS)
