"""The laws of the crate `fullpipe-conformance`, each a case: they judge each event, not a scenario."""

from collections.abc import Callable

from fullpipe.conformance.case import Case, Criterion, Measured
from fullpipe.conformance.stage import Lab

# Each law's title, source, and what is played; by the names of `_native.laws()`.
_TOLD = {
    "run": (
        "The laws of every moment hold, with counters just below 2^32",
        "xquic#552 (wrap); draft 5.3.4.3 (ProbeRTT ends, and marks its samples)",
        (
            "20,000 segments over 20 Mbit/s, 40 ms and one BDP of queue. The counts of delivered and lost "
            "segments wrap at 32 bits."
        ),
    ),
    "losses": (
        "The laws of every moment hold under 2 % of loss",
        "RFC 5681 3.1; ngtcp2#2217",
        "The same with 2 % of random loss.",
    ),
    "start-time": (
        "The origin of the clock does not matter",
        "ours: microseconds in 32 bits wrap after 72 minutes",
        (
            "The same run, now and two hours later, when 32-bit microseconds have wrapped, gives the same "
            "answers."
        ),
    ),
    "wrap": (
        "Totals may wrap at 32 bits",
        "xquic#552, after 4.3 GB",
        "The same run with counters of delivered and lost data just below 2^32, and far from it.",
    ),
    "stretched-acks": (
        "The laws hold with an ACK for 2, 10 and 64 packets",
        "draft 5.5.9",
        "The receiver acknowledges so many packets at once.",
    ),
    "units": (
        "A transport that counts bytes gets the answers of one that counts segments",
        "quinn#2481; draft 2",
        "The same run, counted in segments and in bytes. A controller of segments comes through an adapter.",
    ),
    "mixed-sizes": (
        "The laws hold with packets of different sizes",
        "draft 2 (volumes are in bytes)",
        "A transport that counts bytes, and packets of several sizes; with loss, and with stretched ACKs.",
    ),
    "reordering": (
        "What proves spurious is undone",
        "draft 5.5.11; RFC 4015 3.2",
        (
            "2 % of the segments arrive a quarter of a round trip late, so that some retransmissions are "
            "spurious."
        ),
    ),
    "tail-repair": (
        "A loss that a tail probe repaired leaves no more than there was",
        "RFC 8985 7.4.2",
        "A tail probe's repair is reported, and then the reduction for it.",
    ),
    "discards": (
        "Packets that are discarded are no signal",
        "RFC 9002 6.4",
        "Half of the first flight is discarded, as when QUIC drops its keys.",
    ),
    "pauses": (
        "The laws hold with an application that writes and pauses",
        "draft 4.1.2.4; ngtcp2#2217",
        "The application writes 5 and 50 packets at a time, and waits until they have arrived.",
    ),
    "full-pipe": (
        "Half the path is used where nothing is lost",
        "draft 1",
        "One BDP of queue, and sixty BDP of data.",
    ),
    "timeout": (
        "A timeout leaves a window of one segment above the flight",
        "draft 5.6.4.4; RFC 5681 3.1",
        "A retransmission timer fires with 0, 1 and 5 segments in flight.",
    ),
    "marks": (
        "Marks reduce once a window, and are not undone",
        "draft 3.7; RFC 3168 6.1.2",
        "ACKs that echo marks and ACKs that do not; an undo after them.",
    ),
    "jitter": (
        "Jitter below 4 ms does not end slow start",
        "RFC 9406 4.2",
        "RTTs that rise from 20 to 23.9 ms.",
    ),
    "idle": (
        "An idle application neither grows the window nor ends Startup",
        "draft 5.3.1.2; RFC 7661",
        "200 round trips with four segments in flight each.",
    ),
}


def _case(name: str) -> Case:
    title, source, about = _TOLD[name]
    return Case(
        name=f"law.{name}",
        title=title,
        source=source,
        about=about,
        criteria=(Criterion("broken", "laws broken", high=0, source="a law holds or does not"),),
        play=_play(name),
        phases=False,
    )


def _play(name: str) -> Callable[[Lab], Measured]:
    return lambda lab: {"broken": float(lab.breaks(name))}


CASES = tuple(map(_case, _TOLD))
