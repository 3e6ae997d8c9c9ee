"""Goodput over time against what the link leaves for payload."""

import altair as alt

from fullpipe.figures.over_time import OverTime, draw
from fullpipe.figures.prepare import goodput_ceiling_mbps, goodput_mbps
from fullpipe.results import Results

LOOK_AT = (
    "Look for how soon each line reaches the dashed ceiling, whether it stays there, and in which phase it "
    "dips; a peak above it is data that had waited for a retransmission."
)


def figure(results: Results) -> alt.ConcatChart:
    """Draws it."""
    return draw(
        results,
        OverTime(
            title="Throughput",
            subtitle="Delivered to the application, mean over 8 round trips",
            axis="goodput, Mbit/s",
            column=goodput_mbps,
            clipped=True,
            reference=lambda spec, _flow: goodput_ceiling_mbps(spec),
            reference_label="the link’s rate less headers",
        ),
    )
