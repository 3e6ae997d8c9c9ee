"""ReBBR: does figure 8 of the BBR article hold in an emulator?

Question: does BBR keep its goodput under loss where CUBIC does not, when others repeat the measurement, on
other links and compared with other algorithms?
Method: the report's path (100 Mbit/s, 100 ms, random loss, Mahimahi's unlimited queue), and the
measurements that it plans: 1 Mbit/s, a cellular delivery trace, Vegas and NewReno. The report has results
only for the first. For the others it names the comparison, and the predictions are ours.
Prediction: CUBIC's goodput falls at 0.01 % on the fast path. On slow paths windows are small and it falls
at a higher loss rate.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="ReBBR: Reproducing BBR Evaluation Results",
    cite="Hsiao and Muindi, intermediate report, Stanford University",
)
