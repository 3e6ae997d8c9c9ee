"""Promises and Potential of BBRv3.

Question: how quickly do BBRv3 flows converge to fair shares, and what do they leave to others?
Method: flows of BBRv3, BBRv1 and CUBIC on 100 Mbit/s: together and one after the other, with equal and with
different RTTs, beside CUBIC.
Prediction: flows that start together converge sooner than with BBRv1; flows that start late take much
longer. Long RTTs prevail, whoever starts first. CUBIC is left little or nothing.

Named after the conference. Of the paper, the abstract was at hand, which every claim quotes; it has no
numbers. Paths, durations, buffers and limits are ours. The paper measured Google's kernel. What is judged
is the draft's BBRv3; Google's was added after results were seen, and is measured beside it.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="Promises and Potential of BBRv3",
    cite="Zeynali, Weyulu, Fathalli, Chandrasekaran and Feldmann, PAM 2024",
)
