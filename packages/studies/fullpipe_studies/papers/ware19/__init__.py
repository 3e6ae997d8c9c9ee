"""Modeling BBR's Interactions with Loss-Based Congestion Control.

Question: what decides BBRv1's share of a bottleneck when it competes with CUBIC or Reno?
Method: BBRv1 flows beside loss-based flows on 10 Mbit/s, 40 ms, with buffers of up to 64 BDP; the paper's
model of the share is computed beside each measurement.
Prediction: BBR's share is that of its in-flight cap. It follows from the buffer and the number of BBR
flows, and not from the number of loss-based flows.

The study is named after author and year, because imc19 is another paper of the same conference. The
paper's text was not at hand. What is used of it: the first author's own summary (CMU CSD blog, 2024) and
the model as implemented by those who evaluated it later (public repository of the authors of arXiv
2505.07741), which also has the duration of 400 s. Seeds, warm-up and checks are ours.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="Modeling BBR's Interactions with Loss-Based Congestion Control",
    cite="Ware, Mukerjee, Seshan and Sherry, ACM IMC 2019",
)
