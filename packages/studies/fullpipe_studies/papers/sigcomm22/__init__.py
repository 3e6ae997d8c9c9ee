"""Starvation in End-to-End Congestion Control.

Question: does jitter that has nothing to do with congestion starve a flow of a delay-bounding controller?
Method: two flows of one controller share a bottleneck of 120 Mbit/s. Either they have different RTTs and
the path has jitter, or one has seen a shorter RTT than the path has now.
Prediction: one of two BBR flows gets 8.3, the other 107 Mbit/s; Copa and Vegas starve a flow whose least RTT
is wrong by more than the range of delays that they converge to; CUBIC does not.

Named after the conference. Of the paper, the abstract was at hand and the result for BBR, 8.3 against 107
Mbit/s; together they are 96 % of 120 Mbit/s, which is how our rate was chosen. PCC Vivace, for which the
paper has another experiment, is not implemented here. The rest of the set-up is ours, and each claim says so.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="Starvation in End-to-End Congestion Control",
    cite="Arun, Alizadeh and Balakrishnan, ACM SIGCOMM 2022",
)
