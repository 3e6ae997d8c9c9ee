"""A TCP-friendly sender.

Question: what do delay and goodput of one NewReno flow become under each discipline?
Method: one long NewReno flow for 60 s on 10 Mbit/s, with RTTs of 20 and 100 ms and a buffer of 1 BDP,
measured from 10 s on. It begins with ten segments, where the RFC has three.
Prediction: at 100 ms, every discipline has less delay than the FIFO, and at least 90 % of its goodput.
"""

from fullpipe_studies.papers.rfc7928 import _alone

CLAIM = _alone.claim(
    "reno",
    "sections 5.1.1 and 2.7",
    "This scenario helps to evaluate how an AQM scheme reacts to a TCP-friendly transport sender.",
    "Which ellipses are left of the FIFO's, and how far below it do they lie?",
)
