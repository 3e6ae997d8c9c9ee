"""The answer to congestion marks."""

from itertools import pairwise

from fullpipe.conformance.case import Case, Measured, NotApplicableError
from fullpipe.conformance.loss.case import LossCase
from fullpipe.conformance.loss.play import at_time, roomy
from fullpipe.conformance.stage import PACKET_BYTES, Lab, Look, Stage

_THRESHOLD = 10


def _marked(lab: Lab) -> Stage:
    """Twelve seconds on a path of 100 packets that marks every packet while ten wait."""
    stage = roomy(
        lab,
        100,
        40,
        path={"queue": f"step:threshold={_THRESHOLD}"},
        flow={"ecn": True},
        name="marks while ten packets wait",
    )
    stage.run(12)
    return stage


def _episodes(stage: Stage) -> list[tuple[Look, Look]]:
    """For each answer to marks, after the first two seconds: the look before, and that a round trip later.

    What is marked after a reduction, because the queue takes that round trip to drain, is the next answer's.
    """
    if stage.bed.derives_states:
        raise NotApplicableError("an adapter does not tell when its stack answers marks")
    found = []
    until_s = 2.0
    for last, look in pairwise(stage.looks):
        if last.state != "cwr" and look.state == "cwr" and look.time_s > until_s:
            until_s = look.time_s + 5 * stage.rtt_s
            found.append((last, at_time(stage.looks, last.time_s + stage.rtt_s)))
    return found


def _answers(lab: Lab) -> Measured:
    stage = _marked(lab)
    shares = [after.cwnd / before.cwnd for before, after in _episodes(stage)]
    return {
        "answers": float(len(shares)),
        "lost": stage.now.lost,
        "least": min(shares, default=None),
        "most": max(shares, default=None),
    }


_PREMISES = """
    answers [at least 2]: rounds with marks
        ours: the case is what it says
    lost [at most 0]: packets lost
        ours: the case is what it says
    """


@LossCase.of(
    f"""
    least [at least 0.66]: least window a round trip after marks, of that before
        beta of 0.7; two reductions leave 0.49
    most [at most 0.87]: most window a round trip after marks, of that before
        RFC 8511's 0.85; ours: two packets
    {_PREMISES.strip()}
    """,
    source="RFC 9438 4.6; RFC 3168 6.1.2; RFC 8511 3",
    needs=("cubic",),
    bugs="alibaba/xquic#729",
)
def mark_once_cubic(lab: Lab) -> Measured:
    """The marks of one round trip reduce CUBIC's window once.

    A queue that marks every packet while ten wait, on 30 Mbit/s and 40 ms: each time that the window
    outgrows path and threshold, most packets of a round are marked. A stack that ignored marks fails here
    (alibaba/xquic#729).
    """
    return _answers(lab)


@LossCase.of(
    f"""
    least [at least 0.47]: least window a round trip after marks, of that before
        a half; two reductions leave a quarter
    most [at most 0.87]: most window a round trip after marks, of that before
        RFC 8511's 0.85; ours: two packets
    {_PREMISES.strip()}
    """,
    source="RFC 3168 6.1.2; RFC 9002 7.3.2, B.7; RFC 8511 3",
    needs=("reno",),
    bugs="alibaba/xquic#729",
)
def mark_once_reno(lab: Lab) -> Measured:
    """The marks of one round trip reduce Reno's window once.

    As mark-once-cubic.
    """
    return _answers(lab)


@LossCase.of(
    """
    queue [at most 25 packets]: most packets that wait, from 2 to 12 s
        the threshold of ten; ours: a round of growth, and a burst
    queued [at least 10 packets]: the same, to show that there are marks
        ours: the case is what it says
    lost [at most 0]: packets lost
    """,
    source="RFC 3168 5; RFC 9331 2 (the answer to marks is that to losses for ECT(0))",
)
def marks_bound_queue(lab: Lab) -> Measured:
    """Marks keep the queue near the threshold at which it marks.

    As mark-once-cubic.
    """
    stage = _marked(lab)
    most = max(look.queued_bytes for look in stage.looks if look.time_s > 2) / PACKET_BYTES
    return {"queue": most, "queued": most, "lost": stage.now.lost}


CASES: tuple[Case, ...] = (mark_once_cubic, mark_once_reno, marks_bound_queue)
