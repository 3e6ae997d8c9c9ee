"""BBR: Congestion-Based Congestion Control.

Question: does a controller that estimates bandwidth and round-trip time keep the pipe full and the queue
empty, where one that waits for loss fills every buffer or stalls?
Method: the paths of the article's figures, BBRv1 as in Linux, CUBIC with HyStart as in Linux; what the
article shows from production (figures 7 and 9) over a population of paths with the properties that it names.
Prediction: RTTs near the propagation delay and full throughput for BBR on all of them; full buffers for CUBIC
where they are deep, and a fraction of the throughput where loss is random.
"""

from fullpipe.studies.claim import Paper

PAPER = Paper(
    title="BBR: Congestion-Based Congestion Control",
    cite="Cardwell, Cheng, Gunn, Hassas Yeganeh and Jacobson, ACM Queue 14(5), 2016",
)
