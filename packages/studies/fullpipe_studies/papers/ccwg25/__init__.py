"""Insights into BBRv3's Performance and Behavior by Experimental Evaluation.

Question: what queue does a BBRv3 flow build by itself, how fair and how sensitive to jitter is BBRv3, and
does it serve short flows better than CUBIC?
Method: the testbed of the slides as a path: rates of 100 Mbit/s, 1 and 10 Gbit/s, buffers of 0.8 to 8 BDP,
senders that pace every flow, runs of 60 s (shorter at 10 Gbit/s), 30 seeds. Elements of the path model the
natural jitter of the hosts. BBRv3 is judged, that of the draft and that of Google's kernel, which the slides
ran; BBRv1 and CUBIC run beside it.
Prediction: BBRv3 keeps a queue of about one RTTmin, and more with more flows. Flows with large RTTs
prevail, and flows that start late wait long for their share. BBRv3 never fills deep buffers, so short flows
complete sooner than with CUBIC.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="Insights into BBRv3's Performance and Behavior by Experimental Evaluation",
    cite="Bless, Lihotzki and Zitterbart, slides, IETF 123, CCWG, 2025",
)
