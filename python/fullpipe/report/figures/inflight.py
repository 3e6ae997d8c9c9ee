"""Segments in flight over time against the full pipe, over the whole run and close up at its start."""

from fullpipe.measures.run import Runs
from fullpipe.report.figures.over_time import OverTime, draw
from fullpipe.report.figures.prepare import (
    Panel,
    base_rtt_ms,
    full_pipe_segments,
    limited_by_application,
    panels,
    several_flows,
)
from fullpipe.report.figures.vega import Spec

_OF_THE_SUM = "The dashed line, where the pipe is full, is for the sum of all flows on the path"


def look_at(results: Runs) -> str:
    """What to look for. Of flows that share a path, the full pipe limits the sum."""
    below = (
        "does not have to be in use: the application has pauses"
        if limited_by_application(results)
        else "idles"
    )
    if several_flows(results):
        return (
            f"Look for how the flows share the pipe. {_OF_THE_SUM}: where the sum is below it, the link "
            f"{below}; where it is above, there is a queue."
        )
    return (
        "Look for the distance to the dashed line, where the pipe is full: below it the link "
        f"{below}{';' if limited_by_application(results) else ', and'} above it there is a queue."
    )


def look_at_startup(results: Runs) -> str:
    """What to look for at the start."""
    if limited_by_application(results):
        message = "Look for how fast the first transfer grows, and whether it goes beyond the full pipe."
    else:
        message = (
            "Look for how far each controller overshoots the full pipe before it knows the bandwidth, and "
            "how it gets rid of the queue it built."
        )
    return f"{message} {_OF_THE_SUM}." if several_flows(results) else message


_STARTUP_RTTS = 40
# A close-up of more than this share of a run looks like the whole run.
_SMALL_PART = 0.5


def figure(results: Runs) -> Spec:
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


def startup_figure(results: Runs) -> Spec:
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


def is_longer_than_startup(results: Runs) -> bool:
    """Whether in some run the first round trips are only a small part."""
    return any(_first_round_trips(panel) < _SMALL_PART * panel.duration_s for panel in panels(results))


def _first_round_trips(panel: Panel) -> float:
    rtt = base_rtt_ms(panel)
    began: float = min(flow["start_ns"] for flow in panel.run.summary["flows"]) / 1e9
    return began + _STARTUP_RTTS * (rtt[0][1] / 1e3 if rtt else 0.05)
