"""Segments in flight over time against the full pipe, over the whole run and close up at its start."""

import altair as alt

from fullpipe.figures.over_time import OverTime, draw
from fullpipe.figures.prepare import Panel, base_rtt_ms, full_pipe_segments, panels
from fullpipe.results import Results

LOOK_AT = (
    "Look for the distance to the dashed line, where the pipe is full: below it the link idles, and above it "
    "a queue stands."
)
LOOK_AT_STARTUP = (
    "Look for how far each controller overshoots the full pipe before it knows the bandwidth, and how it "
    "gets rid of the queue it built."
)

_STARTUP_RTTS = 40
# Close up, more than this part of a run looks like the whole.
_SMALL_PART = 0.5


def figure(results: Results) -> alt.ConcatChart:
    """Draws the whole run."""
    return draw(
        results,
        OverTime(
            title="Inflight",
            subtitle="In the network (coloured) and congestion window (grey)",
            axis="segments",
            column="inflight_segments",
            companion="cwnd_segments",
            reference=full_pipe_segments,
            reference_label="the full pipe",
        ),
    )


def startup_figure(results: Results) -> alt.ConcatChart:
    """Draws the first round trips."""
    return draw(
        results,
        OverTime(
            title="Inflight at the start",
            subtitle=f"The first {_STARTUP_RTTS} round trips, close up",
            axis="segments",
            column="inflight_segments",
            companion="cwnd_segments",
            reference=full_pipe_segments,
            reference_label="the full pipe",
            end_s=_first_round_trips,
        ),
    )


def is_longer_than_startup(results: Results) -> bool:
    """Whether the first round trips are only a part of some run."""
    return any(_first_round_trips(panel) < _SMALL_PART * panel.duration_s for panel in panels(results))


def _first_round_trips(panel: Panel) -> float:
    rtt = base_rtt_ms(panel.spec, panel.row.flow)
    began: float = min(flow["start_ns"] for flow in panel.run.summary["flows"]) / 1e9
    return began + _STARTUP_RTTS * (rtt[0][1] / 1e3 if rtt else 0.05)
