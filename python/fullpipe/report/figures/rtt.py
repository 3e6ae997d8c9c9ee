"""Smoothed round-trip time over time against that of the empty path."""

from fullpipe.measures.run import Runs
from fullpipe.report.figures.over_time import OverTime, draw
from fullpipe.report.figures.prepare import base_rtt_ms
from fullpipe.report.figures.vega import Spec

LOOK_AT = (
    "Look for the distance to the dashed line, which is queue: time that every packet of every flow on this "
    "path spends waiting."
)


def figure(results: Runs) -> Spec:
    """Draws it."""
    return draw(
        results,
        OverTime(
            title="Round-trip time",
            subtitle="Smoothed, as the sender sees it",
            axis="smoothed RTT, ms",
            column="srtt_ms",
            reference=base_rtt_ms,
            reference_label="the empty path",
        ),
    )
