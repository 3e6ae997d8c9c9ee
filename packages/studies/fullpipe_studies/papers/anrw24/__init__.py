"""BBRv3 in the public Internet: a boon or a bane?

Question: what does a BBRv3 flow leave to CUBIC where queues mark with ECN?
Method: one flow of Google's BBRv3 and five CUBIC flows at a bottleneck whose queue discipline marks.
Prediction: with ECN, the BBRv3 flow takes more than 99 %.

Named after the workshop. Of the paper, the abstract was at hand; path, queue disciplines and how ECN was
enabled are ours.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="BBRv3 in the public Internet: a boon or a bane?",
    cite="Zeynali, Weyulu, Fathalli, Chandrasekaran and Feldmann, ANRW 2024",
)
