"""The tolerances of a grid, and what the verdicts on its cells mean.

`fullpipe.agreement.differences` tells why they are others than for one scenario.
"""

from fullpipe.agreement.agreement import RETRANSMITS_THAT_COUNT

GOODPUT_TOLERANCE = 0.03
RTT_TOLERANCE = 0.05
RTT_P95_TOLERANCE = 0.10
RETRANSMITS_FACTOR = 1.25
SHARE_TOLERANCE = 0.05

TOLERANCES = (
    f"goodput {GOODPUT_TOLERANCE:.0%}, mean RTT {RTT_TOLERANCE:.0%}, p95 RTT {RTT_P95_TOLERANCE:.0%}, "
    f"retransmissions a factor of {RETRANSMITS_FACTOR:g} (not compared where "
    f"both worlds have at most {RETRANSMITS_THAT_COUNT}), shares "
    f"{100 * SHARE_TOLERANCE:.0f} percentage points"
)
VERDICTS = (
    "Agrees: in every measure, the runs of both worlds have ranges that overlap, however far apart the means "
    "are. Otherwise, if each difference of means is within its tolerance, Close; if not, Differs. Untrusted: "
    f"one of the worlds has no run that can be trusted. Tolerances of a cell: {TOLERANCES}."
)
