"""Goodput over time against what the link leaves for payload."""

from fullpipe.measures.measures import both_ways
from fullpipe.measures.run import Runs
from fullpipe.report.figures.over_time import OverTime, draw
from fullpipe.report.figures.prepare import (
    goodput_ceiling_mbps,
    goodput_mbps,
    limited_by_application,
    several_flows,
)
from fullpipe.report.figures.vega import Spec

_PEAK = "a peak above it is data that had waited for a retransmission."


def look_at(results: Runs) -> str:
    """What to look for. Only a flow alone that always has data to send can stay at the ceiling."""
    together = " for all flows together" if several_flows(results) else ""
    if any(both_ways(run.summary) for run in results.runs):
        together = " for the forward flows together"
    if limited_by_application(results):
        return (
            "Look for how high each line rises while there is data to send; in between the application "
            f"sends nothing. The dashed ceiling is what the path could carry{together}; {_PEAK}"
        )
    if together:
        return (
            "Look for how the flows share the path, and for how soon their rates settle. The dashed ceiling "
            f"is{together}; {_PEAK}"
        )
    return (
        "Look for how soon each line reaches the dashed ceiling, whether it stays there, and in which phase "
        f"it dips; {_PEAK}"
    )


def figure(results: Runs) -> Spec:
    """Draws it."""
    return draw(
        results,
        OverTime(
            title="Throughput",
            subtitle="Delivered to the application, mean over 8 round trips",
            axis="goodput, Mbit/s",
            column=goodput_mbps,
            reference=goodput_ceiling_mbps,
            reference_label="the path’s rate less headers",
        ),
    )
