"""Experimental Evaluation of BBR Congestion Control.

Question: what do several BBRv1 flows do to a queue, to each other, and to CUBIC?
Method: BBRv1 on 1 Gbit/s, 20 ms with a buffer of 0.8 and of 8 BDP, for 60 s, with CUBIC for comparison.
Prediction: a standing queue of 1 to 1.5 BDP with several flows, massive loss in a buffer of 0.8 BDP,
little left for CUBIC there, and more for flows with longer RTTs.

Named after the conference. Of the paper's text, only the abstract's conclusion was at hand, and a summary
of its results: 1 to 1.5 BDP, 0.8 BDP, unfairness, and that long RTTs are favoured. Rate, RTTs, numbers of
flows and durations are ours; so is 8 BDP, which the same laboratory uses in ccwg25.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="Experimental Evaluation of BBR Congestion Control",
    cite="Hock, Bless and Zitterbart, IEEE ICNP 2017",
)
