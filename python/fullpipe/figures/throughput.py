"""Goodput over time against what the link leaves for payload."""

import altair as alt

from fullpipe.figures.over_time import OverTime, draw
from fullpipe.figures.prepare import goodput_ceiling_mbps, goodput_mbps
from fullpipe.results import Results

LOOK_AT = (
    "How soon each line reaches the dashed ceiling, whether it stays there, and what a dip coincides with: "
    "the shading says what the controller was doing. A peak above it is data that had waited for a "
    "retransmission."
)


def figure(results: Results) -> alt.ConcatChart:
    """Draws it."""
    return draw(
        results,
        OverTime(
            title="Throughput",
            subtitle="Delivered to the application, mean over 8 round trips, in the seed of median goodput",
            axis="goodput, Mbit/s",
            column=goodput_mbps,
            clipped=True,
            reference=lambda spec, _flow: goodput_ceiling_mbps(spec),
            reference_label="the link’s rate less headers",
        ),
    )
