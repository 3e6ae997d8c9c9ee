"""BBR's Sharing Behavior with CUBIC and Reno.

Question: do the models of BBRv1's share beside loss-based flows hold for BBRv3?
Method: the steady-state model (Ware et al., IMC 2019) beside measurements of BBRv1 and BBRv3, with one loss-
based flow and with many, on 10 Mbit/s, 40 ms and buffers of 1 to 64 BDP.
Prediction: the model holds for BBRv1, best beside a single flow, and not for BBRv3.

Named after the conference of the paper, IFIP Networking 2025. Of its text, only the abstract was at hand, and
the configurations of its experiments (public repository of its first author), which name the paths, buffers
and numbers of flows. It measured Google's kernel, whose BBRv3 is judged, and the draft's beside it. The
paper's other subject, the fluid model, is not here.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="BBR's Sharing Behavior with CUBIC and Reno",
    cite="Sarpkaya, Srivastava, Fund and Panwar, IFIP Networking 2025, arXiv 2505.07741",
)
