"""ReBBR: what of figure 8 of the BBR article holds in an emulator.

Question: does BBR keep its goodput under loss where CUBIC does not, in other hands, on other links and beside
other algorithms?
Method: the report's path (100 Mbit/s, 100 ms, random loss, Mahimahi's unlimited queue), and what it plans: 1
Mbit/s, a cellular trace, Vegas and NewReno. The report has results for the first alone; of the others it
says what is to be compared, and the predictions are ours.
Prediction: CUBIC gives way at 0.01 % on the fast path; on slow ones windows are small and it gives way later.
"""

from fullpipe.studies.claim import Paper

PAPER = Paper(
    title="ReBBR: Reproducing BBR Evaluation Results",
    cite="Hsiao and Muindi, intermediate report, Stanford University",
)
