"""Criteria and set-ups of the suite `loss` that the first runs showed to misread the text or the scenario."""

from typing import NamedTuple


class Replaced(NamedTuple):
    """What was replaced of a case, by what, and why."""

    case: str
    before: str
    now: str
    why: str


REPLACED = (
    Replaced(
        "batch-of-acks",
        "ACKs every 40 ms at 20 ms",
        "every 15 ms at 160 ms",
        "HyStart++ took the batches for a queue; by its text, it may",
    ),
    Replaced(
        "cubic-concave, cubic-k, cubic-convex",
        "W_max seen a step before the loss was noticed",
        "the window after it, divided by beta",
        "slow start grows by some packets within a step",
    ),
    Replaced(
        "fast-convergence",
        "the second loss after 2.5 s",
        "after 2 s",
        "one controller was back at the first maximum by then, so that the case showed nothing",
    ),
    Replaced(
        "reno-friendly-slope, reno-friendly-above, one-packet-a-round, big-window-grows, credit-kept",
        "growth a smoothed RTT",
        "growth for each window delivered",
        "the RFC's alpha is of acknowledged windows; the RTT has the queue of a burst and the delay of ACKs",
    ),
    Replaced(
        "target-cap",
        "a round trip of 1 s",
        "of 2 s",
        "a window without the bound did not exceed it at 1 s, so that the case could not fail",
    ),
    Replaced(
        "one-reduction-cubic, one-reduction-reno",
        "a path of 300 packets",
        "of 80",
        "an unpaced flow sends in clumps, so that the losses came in two round trips",
    ),
    Replaced(
        "limit-avoidance",
        "6,000 packets of small transfers",
        "5,800",
        "148 transfers of 40 packets are 5,920",
    ),
    Replaced(
        "outage-window, outage-slow-start",
        "two timeouts; the window with the first new data",
        "a second without one; the least window in the round trip after it",
        "QUIC's probe timeouts are none, and it finds its losses later",
    ),
    Replaced(
        "outage-slow-start",
        "rounds by what is delivered",
        "round trips by time",
        "the round in which everything is lost lasts until slow start is over",
    ),
    Replaced(
        "cubic-pause, pause-adds-nothing, pause-no-burst",
        "the window when the first transfer had arrived",
        "when nothing is in flight",
        "the last acknowledgements still let the window grow",
    ),
    Replaced(
        "undo-recovery",
        "the least window, three round trips after a recovery",
        "the share of recoveries with a window of 0.93 within them",
        "a second late packet begins another recovery before the first is undone",
    ),
    Replaced(
        "few-losses-are-losses",
        "3 to 9 packets lost",
        "3 to 20",
        "an unpaced flow sends more than three at the same moment",
    ),
    Replaced(
        "mark-once-cubic, mark-once-reno",
        "the window when the answer is over",
        "a round trip after it began",
        "by PRR the queue takes that long to drain, and what is marked meanwhile is the next answer's",
    ),
    Replaced(
        "prr-no-silence, prr-ends-at-threshold, prr-no-burst",
        "a path of 300 packets",
        "a path of 110 that is full",
        "ACKs of a flow that does not fill its path come in clumps, with silence between them",
    ),
    Replaced(
        "prr-no-burst",
        "40 packets lost",
        "80",
        "after 40, the flight was above the threshold, so that nothing could burst",
    ),
    Replaced(
        "css-growth, css-rounds, css-resumes, css-flat-curve",
        "both directions of the path get slower",
        "the way forward",
        "the RTT rose by half of it in each of two rounds, and HyStart++ compares successive ones",
    ),
    Replaced(
        "css-initial-only",
        "growth in rounds by what is delivered, from a window of 400",
        "in round trips by time, from one of 800",
        "as for outage-slow-start; and Reno's threshold was below what the case needs",
    ),
    Replaced(
        "css-not-by-jitter",
        "from the second round on",
        "from the third",
        "rounds are counted from the handshake, and the first of data shows the initial window only",
    ),
    Replaced(
        "css-most-rise",
        "200 ms and 20 ms more",
        "300 ms and 20 ms more",
        "an eighth of 200 ms is only 5 ms more, which the queue of a burst adds",
    ),
)
