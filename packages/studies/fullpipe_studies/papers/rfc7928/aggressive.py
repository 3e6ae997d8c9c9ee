"""An aggressive sender.

Question: what do delay and goodput of one CUBIC flow become under each discipline?
Method: as `friendly`, with CUBIC.
Prediction: at 100 ms, every discipline has less delay than the FIFO, and at least 90 % of its goodput.
"""

from fullpipe_studies.papers.rfc7928 import _alone

CLAIM = _alone.claim(
    "cubic",
    "sections 5.2 and 2.7",
    "This scenario helps testers to evaluate how an AQM scheme reacts to a transport sender that is more "
    "aggressive than a single TCP-friendly sender.",
    "Which ellipses are left of the FIFO's, and is the loss of goodput smaller than with NewReno?",
)
