"""When to use and when not to use BBR.

Question: on which paths does BBR give more goodput than CUBIC, at what price in losses, and why does it
collapse at a certain loss rate?
Method: the paper's 320 paths (8 RTTs, 8 rates, 5 buffers) with each controller alone for 60 s; the same paths
with 10 and 100 MB to send; random loss on one path; both controllers together on another. The short form has
80 of the paths, 30 s and one seed.
Prediction: buffers below the bandwidth-delay product favour BBR, at many times CUBIC's losses; deeper ones
favour CUBIC; BBR collapses where the loss exceeds what its probing gain makes up for.
"""

from fullpipe.studies.claim import Paper

PAPER = Paper(
    title="When to use and when not to use BBR",
    cite="Cao, Jain, Sharma, Balasubramanian and Gandhi, IMC 2019",
)
