"""Characterization guidelines for active queue management.

Question: is each queue discipline better than drop-tail in the tests that RFC 7928 recommends?
Method: the tests of its sections 5 to 9 on one bottleneck, each discipline with its defaults beside a
FIFO with the same buffer of one bandwidth-delay product (section 3.2), NewReno as the standard sender
(section 3.3) and no ECN except in `ecn` (section 4.5). Figures show delay against goodput (section 2.7):
one point a run, the median, and the 1-sigma ellipse of the Gaussian with the most likelihood. Left out:
initial windows other than ten segments, LEDBAT (Vegas is in its place), flows in the other direction
(section 9.2 and VoIP's way back), which the simulator does not have; constant-rate UDP is a sender that
keeps its rate whatever is lost, and retransmits; section 8.3 asks for an analysis instead of a test.
Prediction: each discipline keeps the delay below that of a FIFO and loses little goodput. The RFC
recommends tests and states no results, so what each claim expects, and the limits, are ours.
"""

from fullpipe_studies.claim import Paper

PAPER = Paper(
    title="Characterization Guidelines for Active Queue Management (AQM)",
    cite="Kuhn, Natarajan, Khademi and Ros, RFC 7928, 2016",
)
