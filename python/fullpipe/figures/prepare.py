"""From records to what a figure draws: panels, thinned lines, phase bands, and what the path itself allows.

A panel is one row (a controller, or a flow where different controllers share the path) in one world. It shows
the run whose goodput is the median over the seeds, because an average over seeds has no phases.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from fullpipe.figures import theme
from fullpipe.measures import goodput_bps
from fullpipe.results import Results, Run

# Above this a line says no more, on a panel of a few hundred pixels.
MAX_POINTS = 1000
# More flows than this share one panel.
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


@dataclass(frozen=True)
class Panel:
    """One row in one world."""

    row: Row
    run: Run

    @property
    def title(self) -> str:
        """What it shows."""
        return f"{self.row.title} · {theme.world_title(self.run.world)}"

    @cached_property
    def series(self) -> pl.DataFrame:
        """Samples of the row's flows."""
        frame = self.run.flow_series()
        return frame if self.row.flow is None else frame.filter(pl.col("flow") == self.row.flow)

    @cached_property
    def spec(self) -> dict[str, Any]:
        """What the run was told."""
        return self.run.alternative.spec

    @property
    def duration_s(self) -> float:
        """Length of the run."""
        return self.run.alternative.duration_s

    @property
    def flow_labels(self) -> list[str]:
        """The row's flows."""
        return self.series["flow"].unique(maintain_order=True).to_list()


def panels(results: Results) -> list[Panel]:
    """Every panel, row by row, worlds side by side."""
    shown = {(group.world, group.label): representative(group.runs) for group in results.groups}
    return [
        Panel(row, shown[world, row.label])
        for row in rows(results)
        for world in results.worlds
        if (world, row.label) in shown
    ]


def rows(results: Results) -> list[Row]:
    """A row an alternative, or a row a flow where controllers share the path."""
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
            title = run.label if len(ordered) > 1 else " and ".join(controllers)
            title += f", {len(flows)} flows" if len(flows) > 1 else ""
            found.append(Row(title, run.label, controllers[0], None, colours[controllers[0]]))
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
    rtt = base_rtt_ms(panel.spec, panel.row.flow)
    window_s = _GOODPUT_RTTS * (rtt[0][1] / 1e3 if rtt else 0.02)
    step_s = max(end_s / _GOODPUT_STEPS, window_s / 4)
    steps = max(1, round(window_s / step_s))
    samples = panel.series.filter(pl.col("time_s") <= end_s).sort("flow", "time_s", maintain_order=True)
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
    # What little time is left over at the end says nothing about a rate.
    return rates.filter(pl.col("span") >= step_s / 2).drop("span")


def line(series: pl.DataFrame, column: str, *, end_s: float, max_points: int = MAX_POINTS) -> pl.DataFrame:
    """A column over time, by flow, in at most `max_points` points each: columns time_s, flow, value.

    A bin keeps its lowest and its highest sample, so that short dips and peaks stay visible.
    """
    frame = (
        series.filter((pl.col("time_s") <= end_s) & pl.col(column).is_not_null())
        .select("time_s", "flow", pl.col(column).cast(pl.Float64).alias("value"))
        .sort("flow", "time_s", maintain_order=True)
    )
    most = frame.group_by("flow").len()["len"].max()
    if not isinstance(most, int) or most <= max_points:
        return frame
    bins = max_points // 2
    binned = frame.with_columns((pl.col("time_s") / end_s * bins).floor().clip(0, bins - 1).alias("bin"))
    together = binned.group_by("flow", "bin", maintain_order=True)
    low = together.agg(pl.col("time_s", "value").get(pl.col("value").arg_min()))
    high = together.agg(pl.col("time_s", "value").get(pl.col("value").arg_max()))
    return pl.concat([low, high]).unique().sort("flow", "time_s").select("time_s", "flow", "value")


def bands(panel: Panel, end_s: float, width_px: int) -> pl.DataFrame:
    """Phases as stretches of time: columns start_s, end_s, phase. Empty where several flows share the panel.

    Where the parts of BBR's ProbeBW cycle would be narrower than a line, they become one band.
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


Steps = list[tuple[float, float]]


def goodput_ceiling_mbps(spec: dict[str, Any]) -> Steps | None:
    """What the slowest link leaves for payload over time; None where the path has no link of known rate."""
    return _steps(spec, lambda at: _rate_bps(spec, at) * _payload_share(spec) / 1e6)


def base_rtt_ms(spec: dict[str, Any], flow: str | None) -> Steps | None:
    """The round-trip time of an empty path over time."""
    return _steps(spec, lambda at: _delay_ns(spec, flow, at) / 1e6)


def full_pipe_segments(spec: dict[str, Any], flow: str | None) -> Steps | None:
    """Segments in flight that fill the pipe without a queue: the bandwidth-delay product over time."""
    return _steps(spec, lambda at: _rate_bps(spec, at) * _delay_ns(spec, flow, at) / 8e9 / spec["mtu_bytes"])


def _steps(spec: dict[str, Any], value_at: Any) -> Steps | None:
    schedules = [value for element in _elements(spec) for value in element.values() if _is_schedule(value)]
    times = sorted({0, *(at for schedule in schedules for at, _ in schedule.get("changes", []))})
    try:
        values = [(at / 1e9, float(value_at(at))) for at in times]
    except LookupError:
        return None
    changes = [values[0]]
    for time_s, value in values[1:]:
        if value != changes[-1][1]:
            changes.append((time_s, value))
    return changes if max(value for _, value in changes) > 0 else None


def _elements(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec["forward"], *spec["reverse"]]


def _is_schedule(value: object) -> bool:
    return isinstance(value, dict) and "initial" in value


def _at(value: Any, at_ns: int) -> float:
    if not _is_schedule(value):
        return float(value)
    current = value["initial"]
    for change_ns, changed in value.get("changes", []):
        if change_ns <= at_ns:
            current = changed
    return float(current)


def _rate_bps(spec: dict[str, Any], at_ns: int) -> float:
    rates = [_at(element["rate_bps"], at_ns) for element in spec["forward"] if "rate_bps" in element]
    if not rates or any(element["kind"] == "delivery_trace" for element in spec["forward"]):
        raise LookupError("the path has no rate that is known beforehand")
    return min(rates)


def _delay_ns(spec: dict[str, Any], flow: str | None, at_ns: int) -> float:
    shared = sum(_at(element["delay_ns"], at_ns) for element in _elements(spec) if element["kind"] == "delay")
    extras = {one["label"]: one["extra_forward_ns"] + one["extra_reverse_ns"] for one in spec["flows"]}
    own = extras[flow] if flow in extras else min(extras.values(), default=0)
    return shared + float(own)


# IPv4 20, TCP 20, timestamps 12: a spec gives the size of a packet and leaves its headers to the worlds
# (`Spec::HEADER_BYTES`).
HEADER_BYTES = 52


def _payload_share(spec: dict[str, Any]) -> float:
    return 1 - HEADER_BYTES / float(spec["mtu_bytes"])


def records(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for a figure, with no more digits than a screen can show."""
    rounded = frame.with_columns(pl.col(pl.Float64).round(4))
    loaded: list[dict[str, Any]] = json.loads(rounded.write_json())
    return loaded
