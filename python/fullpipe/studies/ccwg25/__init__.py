"""Insights into BBRv3's Performance and Behavior by Experimental Evaluation.

Question: what queues does BBRv3 build by itself, how fair is it, how sensitive to jitter, and does it serve
short flows better than CUBIC?
Method: the slides' testbed as a path: rates of 100 Mbit/s to 10 Gbit/s, buffers of 0.8 to 8 BDP, senders
that pace every flow, runs of 60 s, 30 seeds; the natural jitter of its hosts as elements of the path. BBRv1
and CUBIC stand where BBRv3 is not there yet.
Prediction: BBRv3 keeps a queue of about one RTTmin, more with more flows; large RTTs prevail, latecomers
wait long for their share; deep buffers are never filled, so that short flows end sooner than beside CUBIC.
"""

from fullpipe.studies.claim import Paper

PAPER = Paper(
    title="Insights into BBRv3's Performance and Behavior by Experimental Evaluation",
    cite="Bless, Lihotzki and Zitterbart, slides, IETF 123, CCWG, 2025",
)
