"""Turns records into what a figure draws: panels, thinned lines, phase bands, and what the path allows.

A panel is one row (a controller, or a flow where different controllers share the path) in one world. It shows
the run whose goodput is the median over the seeds, because an average over seeds has no phases.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from fullpipe.measures.measures import goodput_bps
from fullpipe.measures.run import Run, Runs
from fullpipe.report.figures import theme
from fullpipe.scenario import path_facts
from fullpipe.scenario.path_facts import PathFacts, Steps
from fullpipe.text import joined

# More points add nothing to a line on a panel of a few hundred pixels.
MAX_POINTS = 1000
# If there are more flows than this, they share one panel.
MAX_FLOW_ROWS = 6
# A band narrower than this is noise.
MIN_BAND_PX = 2.5

_CYCLE = ("probe_bw_up", "probe_bw_down", "probe_bw_cruise", "probe_bw_refill")


@dataclass(frozen=True)
class Row:
    """One row of panels."""

    title: str
    label: str
    controller: str
    flow: str | None  # One flow of the alternative, None for all.
    colour: str
    # Put before the names of its flows, where other alternatives have flows of these names.
    prefix: str = ""


@dataclass(frozen=True)
class Panel:
    """One row in one world."""

    row: Row
    run: Run

    @property
    def title(self) -> str:
        """Its title."""
        doubt = " (untrustworthy)" if self.run.untrustworthy else ""
        return f"{self.row.title} · {theme.world_title(self.run.world)}{doubt}"

    def name_of(self, flow: str) -> str:
        """A flow's name in legends and tooltips."""
        return f"{self.row.prefix}{flow}"

    @cached_property
    def series(self) -> pl.DataFrame:
        """Samples of the row's flows."""
        frame = self.run.flow_series()
        return frame if self.row.flow is None else frame.filter(pl.col("flow") == self.row.flow)

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The alternative that was run."""
        return self.run.alternative.spec

    @property
    def facts(self) -> PathFacts:
        """What the path allows."""
        return path_facts.of(self.run.alternative)

    @property
    def duration_s(self) -> float:
        """Length of the run."""
        return self.run.alternative.duration_s

    @cached_property
    def flow_labels(self) -> list[str]:
        """The row's flows."""
        return self.series["flow"].unique(maintain_order=True).to_list()


def panels(results: Runs) -> list[Panel]:
    """Every panel, row by row, worlds side by side."""
    shown = {
        (group.world, group.label): representative(group.trusted or group.runs) for group in results.groups
    }
    return [
        Panel(row, shown[world, row.label])
        for row in rows(results)
        for world in results.worlds
        if (world, row.label) in shown
    ]


def rows(results: Runs) -> list[Row]:
    """One row for each alternative, or for each flow if different controllers share the path."""
    first = {run.label: run for run in reversed(results.runs)}
    ordered = [first[label] for label in results.labels]
    colours = theme.controller_colours(flow["controller"] for run in ordered for flow in run.summary["flows"])
    found = []
    for run in ordered:
        flows = run.summary["flows"]
        controllers = list(dict.fromkeys(flow["controller"] for flow in flows))
        if len(controllers) > 1 and len(flows) <= MAX_FLOW_ROWS:
            for flow in flows:
                name, controller = flow["label"], flow["controller"]
                title = results.name_of(run.label, name)
                title = title if controller in name else f"{title} ({controller})"
                found.append(Row(title, run.label, controller, name, colours[controller]))
        else:
            title = run.label if len(ordered) > 1 else joined(controllers)
            title += f", {len(flows)} flows" if len(flows) > 1 else ""
            prefix = f"{run.label}: " if len(ordered) > 1 and len(flows) > 1 else ""
            found.append(Row(title, run.label, controllers[0], None, colours[controllers[0]], prefix))
    return found


def flow_colours(shown: Sequence[Panel]) -> dict[str, str]:
    """A colour for each flow that shares a panel with others, by name: its controller's, then spare ones.

    Panels with more flows than colours have none: their lines are a crowd of one colour.
    """
    taken = {panel.row.colour for panel in shown}
    spare = [colour for colour in theme.SPARE if colour not in taken]
    found: dict[str, str] = {}
    for panel in shown:
        labels = [flow["label"] for flow in panel.run.summary["flows"]]
        if panel.row.flow is None and 1 < len(labels) <= 1 + len(spare):
            names = map(panel.name_of, labels)
            found.update(zip(names, [panel.row.colour, *spare], strict=False))
    return found


def representative(runs: Sequence[Run]) -> Run:
    """The run with the median goodput (of an even number, the lower of the middle two)."""
    return sorted(runs, key=lambda run: goodput_bps(run.summary))[(len(runs) - 1) // 2]


# Goodput is averaged over this many round trips: one gain cycle of BBR, and enough for what a loss held
# back and then released at once.
_GOODPUT_RTTS = 8
_GOODPUT_STEPS = 300


def goodput_mbps(panel: Panel, end_s: float) -> pl.DataFrame:
    """What each flow delivered to its application, as a moving mean: columns time_s, flow, value."""
    rtt = base_rtt_ms(panel)
    window_s = _GOODPUT_RTTS * (rtt[0][1] / 1e3 if rtt else 0.02)
    step_s = max(end_s / _GOODPUT_STEPS, window_s / 4)
    steps = max(1, round(window_s / step_s))
    samples = panel.series.lazy().filter(pl.col("time_s") <= end_s)
    samples = samples.sort("flow", "time_s", maintain_order=True)
    columns = ("time_s", "flow", "delivered_bytes")
    first = samples.group_by("flow", maintain_order=True).first().select(columns)
    last = (
        samples.group_by("flow", (pl.col("time_s") / step_s).floor().alias("step"), maintain_order=True)
        .agg(pl.col("time_s", "delivered_bytes").last())
        .select(columns)
    )
    ends = pl.concat([first, last]).unique(["flow", "time_s"], keep="first").sort("flow", "time_s")
    # The first windows are shorter: they begin with the flow.
    span, grown = (
        pl.col(name) - pl.col(name).shift(steps).fill_null(pl.col(name).first()).over("flow")
        for name in ("time_s", "delivered_bytes")
    )
    rates = ends.select(
        pl.col("time_s") - span / 2, "flow", (grown * 8 / span / 1e6).alias("value"), span.alias("span")
    )
    # The short rest at the end is too little time for a rate.
    return rates.filter(pl.col("span") >= step_s / 2).drop("span").collect()


def line(series: pl.DataFrame, column: str, *, end_s: float, max_points: int = MAX_POINTS) -> pl.DataFrame:
    """A column over time, by flow, in at most `max_points` points each: columns time_s, flow, value.

    A bin keeps its lowest and its highest sample, so that short dips and peaks stay visible.
    """
    frame = (
        series.lazy()
        .filter((pl.col("time_s") <= end_s) & pl.col(column).is_not_null())
        .select("time_s", "flow", pl.col(column).cast(pl.Float64).alias("value"))
        .sort("flow", "time_s", maintain_order=True)
        .collect()
    )
    # Sorted, so that a flow is one stretch.
    most = frame["flow"].rle().struct.field("len").max()
    if not isinstance(most, int) or most <= max_points:
        return frame
    bins = max_points // 2
    binned = frame.lazy().with_columns(
        (pl.col("time_s") / end_s * bins).floor().clip(0, bins - 1).alias("bin")
    )
    together = binned.group_by("flow", "bin", maintain_order=True)
    low = together.agg(pl.col("time_s", "value").get(pl.col("value").arg_min()))
    high = together.agg(pl.col("time_s", "value").get(pl.col("value").arg_max()))
    both = pl.concat([low, high]).unique().sort("flow", "time_s").select("time_s", "flow", "value")
    return both.collect()


def bands(panel: Panel, end_s: float, width_px: int) -> pl.DataFrame:
    """Phases as intervals of time: columns start_s, end_s, phase. Empty if several flows share the panel.

    If the parts of BBR's ProbeBW cycle would be narrower than a line, they become one band.
    """
    nothing = pl.DataFrame(schema={"start_s": pl.Float64, "end_s": pl.Float64, "phase": pl.String})
    if len(panel.flow_labels) != 1 or panel.series["phase"].null_count() == len(panel.series):
        return nothing
    samples = panel.series.filter((pl.col("time_s") <= end_s) & pl.col("phase").is_not_null()).sort("time_s")
    found = _stretches(samples, end_s)
    cycle = found.filter(pl.col("phase").is_in(["probe_bw_up", "probe_bw_down"]))
    typical = (cycle["end_s"] - cycle["start_s"]).median()
    if isinstance(typical, float) and typical / end_s * width_px < MIN_BAND_PX:
        merged = pl.when(pl.col("phase").is_in(_CYCLE)).then(pl.lit("probe_bw")).otherwise(pl.col("phase"))
        found = _stretches(samples.with_columns(merged.alias("phase")), end_s)
    return found


def _stretches(samples: pl.DataFrame, end_s: float) -> pl.DataFrame:
    """Runs of equal phase. A band lasts until the next one begins."""
    begins = samples.filter((pl.col("phase") != pl.col("phase").shift(1)).fill_null(True))
    return begins.select(
        pl.col("time_s").alias("start_s"),
        pl.col("time_s").shift(-1).fill_null(end_s).alias("end_s"),
        "phase",
    )


def several_flows(results: Runs) -> bool:
    """Whether flows share a path, whose limits are then those of their sum."""
    return any(len(run.summary["flows"]) > 1 for run in results.runs)


def limited_by_application(results: Runs) -> bool:
    """Whether some flow does not always have data to send."""
    flows = (flow for run in results.runs for flow in run.alternative.spec["flows"])
    return any(flow["workload"]["kind"] != "bulk" for flow in flows)


def goodput_ceiling_mbps(panel: Panel) -> Steps | None:
    """The rate that the slowest element leaves for payload over time; None if nothing limits the rate."""
    return panel.facts.goodput_mbps(panel.row.flow)


def base_rtt_ms(panel: Panel) -> Steps | None:
    """The round-trip time of an empty path over time."""
    return panel.facts.base_rtt_ms(panel.row.flow)


def full_pipe_segments(panel: Panel) -> Steps | None:
    """Segments in flight that fill the pipe without a queue: the bandwidth-delay product over time."""
    steps = panel.facts.bdp_bytes(panel.row.flow)
    mtu_bytes = panel.spec["mtu_bytes"]
    return None if steps is None else [(time_s, size / mtu_bytes) for time_s, size in steps]


def records(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for a figure, with no more digits than a screen can show."""
    rounded = frame.with_columns(pl.col(pl.Float64).round(4))
    loaded: list[dict[str, Any]] = json.loads(rounded.write_json())
    return loaded
