"""BBR: Congestion-Based Congestion Control.

Question: does a controller that estimates bandwidth and round-trip time keep the pipe full and the queue
empty, where a loss-based one fills every buffer or stalls?
Method: the paths of the article's figures where it names them, BBRv1 as in Linux, CUBIC with HyStart as in
Linux. Figures 7 and 9 show results from production; here they are measured over populations of paths of ours.
Prediction: RTTs near the propagation delay and full throughput for BBR on all of them; full buffers for
CUBIC where they are deep, and a fraction of the throughput where loss is random.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="BBR: Congestion-Based Congestion Control",
    cite="Cardwell, Cheng, Gunn, Hassas Yeganeh and Jacobson, ACM Queue 14(5), 2016",
)
