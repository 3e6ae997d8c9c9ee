"""When to use and when not to use BBR.

Question: on which paths does BBR give more goodput than CUBIC, how many losses does it cost, and why does
BBR's goodput collapse at a certain loss rate?
Method: the paper's 320 paths (8 RTTs, 8 rates, 5 buffers) with each controller alone for 60 s; the same
paths with flows of 10 and 100 MB; random loss on one path; both controllers together on another. The quick
form has half of the paths, runs of 30 s and three seeds instead of five. Set-ups of the test bed that are not
judged have one seed in both forms, and three where runs are few.
Prediction: buffers below the bandwidth-delay product favour BBR, with many times CUBIC's losses. Deeper
buffers favour CUBIC. BBR's goodput collapses where the loss rate exceeds what its probing gain can
compensate.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="When to use and when not to use BBR",
    cite="Cao, Jain, Sharma, Balasubramanian and Gandhi, IMC 2019",
)
