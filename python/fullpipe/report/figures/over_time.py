"""The layout of most figures: a quantity over time, one row for each controller, worlds side by side."""

from collections.abc import Callable
from dataclasses import dataclass

import altair as alt
import polars as pl

from fullpipe.measures.run import Runs
from fullpipe.report.figures import theme
from fullpipe.report.figures.offline import OfflineConcatChart
from fullpipe.report.figures.prepare import Panel, bands, flow_colours, line, panels, records
from fullpipe.scenario.path_facts import Steps

# If bands are narrower than this, their boundaries would hide them.
_WIDE_BAND_PX = 8


@dataclass(frozen=True)
class OverTime:
    """What to draw over time, and what the path allows."""

    title: str
    subtitle: str
    axis: str
    # A column of the series, or a function that makes the line of a panel until a time.
    column: str | Callable[[Panel, float], pl.DataFrame]
    # A second, thinner line in the same unit.
    companion: str | None = None
    reference: Callable[[Panel], Steps | None] | None = None
    reference_label: str = ""
    from_zero: bool = True
    end_s: Callable[[Panel], float] | None = None


def draw(results: Runs, what: OverTime) -> alt.ConcatChart:
    """Draws it."""
    shown = panels(results)
    flows = flow_colours(shown)
    columns = max(1, len(results.worlds))
    width = 900 if columns == 1 else 430
    views = [_View(panel, what, width, flows) for panel in shown]
    top = max((view.top for view in views), default=1.0)
    bottom = 0.0 if what.from_zero else min((view.bottom for view in views), default=0.0)
    drawn = [name for name in flows if any(name in view.drawn for view in views)]
    phases = [name for name in theme.PHASE if any(name in view.phases for view in views)]
    several = any(len(group.runs) > 1 for group in results.groups)
    charts = [
        view.chart((bottom, top), phases, drawn, i, last_row=i >= len(views) - columns)
        for i, view in enumerate(views)
    ]
    chart: alt.ConcatChart = (
        OfflineConcatChart(concat=charts, columns=columns, spacing={"row": 16, "column": 24})
        .resolve_scale(fill="shared")
        .properties(
            title=alt.TitleParams(what.title, subtitle=_subtitle(what, views, several=several)),
            params=[_zoom(len(charts))],
        )
        .configure(**theme.config())
    )
    return chart


def _zoom(panels: int) -> alt.TopLevelParameter:
    """In an interactive figure: drag to move, shift and wheel to zoom, in all panels at once."""
    return alt.TopLevelParameter(  # type: ignore[no-untyped-call]
        name="zoom",
        bind="scales",
        select=alt.IntervalSelectionConfig(type="interval", encodings=["x"], zoom="wheel![event.shiftKey]"),
        views=[_panel_name(number) for number in range(panels)],
    )


def _panel_name(number: int) -> str:
    return f"panel_{number}"


class _View:
    """One panel and its data. It is drawn when the scales of all panels are known."""

    def __init__(self, panel: Panel, what: OverTime, width: int, flows: dict[str, str]) -> None:
        self.panel, self.what, self.width = panel, what, width
        # The colours of flows that share a panel, of all panels, by name.
        self.flows = flows
        self.end_s = min(what.end_s(panel), panel.duration_s) if what.end_s else panel.duration_s
        self.line = self._thinned(what.column)
        self.companion = self._thinned(what.companion) if what.companion else None
        self.bands = bands(panel, self.end_s, width)
        self.phases = set(self.bands["phase"])
        steps = what.reference(panel) if what.reference else None
        self.steps = [step for step in steps or [] if step[0] < self.end_s]

    def _thinned(self, column: str | Callable[[Panel, float], pl.DataFrame]) -> pl.DataFrame:
        if isinstance(column, str):
            thin = line(self.panel.series, column, end_s=self.end_s)
        else:
            thin = column(self.panel, self.end_s)
        names = {label: self.panel.name_of(label) for label in self.panel.flow_labels}
        return thin.with_columns(pl.col("flow").replace(names))

    def _values(self) -> list[float]:
        frames = [self.line] if self.companion is None else [self.line, self.companion]
        drawn = [value for frame in frames for value in (frame["value"].max(), frame["value"].min())]
        return [float(value) for value in drawn if isinstance(value, int | float)]

    @property
    def top(self) -> float:
        """The highest value, with space above: no curve leaves the plot."""
        limits = [value for _, value in self.steps]
        return 1.12 * max([*self._values(), *limits], default=1.0)

    @property
    def bottom(self) -> float:
        return 0.9 * min([*self._values(), *(value for _, value in self.steps)], default=0.0)

    def chart(
        self, domain: tuple[float, float], phases: list[str], drawn: list[str], number: int, last_row: bool
    ) -> alt.LayerChart:
        """The panel: bands, reference, companion, line."""
        x = alt.X(
            "time_s:Q",
            title="time, s" if last_row else None,
            scale=alt.Scale(domain=[0, self.end_s], nice=False),
        )
        y = alt.Y("value:Q", title=self.what.axis, scale=alt.Scale(domain=list(domain), nice=False))
        layers: list[alt.Chart] = []
        if self.bands.height:
            layers += [self._band_layer(phases), self._boundary_layer()]
        layers += self._reference_layers(x, y)
        if self.companion is not None:
            layers.append(_line(self.companion, theme.QUIET, 1, 0.8).encode(x=x, y=y))
        many = len(self.panel.flow_labels) > 1
        main = _line(self.line, self.panel.row.colour, 1.1 if many else 1.6, 0.75 if many else 1).encode(
            x=x,
            y=y,
            detail="flow:N",
            tooltip=[
                alt.Tooltip("flow:N"),
                alt.Tooltip("time_s:Q", format=".3f", title="time, s"),
                alt.Tooltip("value:Q", format=",.2f", title=self.what.axis),
            ],
        )
        if self.told_apart:
            main = main.encode(color=self._flow_colour(drawn))
        layers.append(main.properties(name=_panel_name(number)))
        title = alt.TitleParams(
            self.panel.title,
            color=self.panel.row.colour,
            fontSize=12,
            fontWeight=600,
            offset=5,
            anchor="start",
        )
        chart: alt.LayerChart = alt.LayerChart(layer=layers).properties(
            width=self.width, height=150, title=title
        )
        return chart

    @property
    def told_apart(self) -> bool:
        """Whether the flows of this panel have a colour each."""
        labels = self.panel.flow_labels
        return len(labels) > 1 and all(self.panel.name_of(label) in self.flows for label in labels)

    @property
    def drawn(self) -> set[str]:
        """The flows that have a line: before its end, some may not have started."""
        return set(self.line.drop_nulls("value")["flow"])

    def _flow_colour(self, drawn: list[str]) -> alt.Color:
        """One colour for each flow, in a legend of those with a line, which all panels share."""
        scale = alt.Scale(domain=list(self.flows), range=list(self.flows.values()))
        legend = alt.Legend(
            orient="bottom",
            title="Flow",
            values=drawn,
            direction="horizontal",
            columns=8,
            symbolType="stroke",
            symbolStrokeWidth=2,
        )
        return alt.Color("flow:N", scale=scale, legend=legend)

    def _band_layer(self, phases: list[str]) -> alt.Chart:
        """Phases as bands, with the names that readers know."""
        titled = self.bands.with_columns(
            pl.col("phase").replace_strict(
                {name: theme.PHASE[name][0] for name in self.phases}, return_dtype=pl.String
            )
        )
        legend = alt.Legend(
            orient="bottom",
            title="Phase",
            direction="horizontal",
            columns=10,
            offset=8,
            symbolStrokeColor=theme.QUIET,
            symbolStrokeWidth=0.8,
        )
        titled_colours = dict(theme.PHASE[name] for name in phases)
        colours = alt.Scale(domain=list(titled_colours), range=list(titled_colours.values()))
        layer: alt.Chart = (
            alt.Chart(alt.InlineData(values=records(titled)))
            .mark_rect(opacity=theme.PHASE_OPACITY, clip=True)
            .encode(
                x=alt.X("start_s:Q"),
                x2="end_s:Q",
                fill=alt.Fill("phase:N", scale=colours, legend=legend),
                tooltip=[
                    "phase:N",
                    alt.Tooltip("start_s:Q", format=".3f"),
                    alt.Tooltip("end_s:Q", format=".3f"),
                ],
            )
        )
        return layer

    def _boundary_layer(self) -> alt.Chart:
        """Where one phase ends and the next begins, even between bands of the same colour."""
        wide = (pl.col("end_s") - pl.col("start_s")) / self.end_s * self.width >= _WIDE_BAND_PX
        begins = self.bands.filter(wide & wide.shift(1)).select("start_s")
        layer: alt.Chart = (
            alt.Chart(alt.InlineData(values=records(begins)))
            .mark_rule(color=theme.QUIET, strokeWidth=0.6, opacity=0.7, clip=True)
            .encode(x=alt.X("start_s:Q"))
        )
        return layer

    def _reference_layers(self, x: alt.X, y: alt.Y) -> list[alt.Chart]:
        if not self.steps:
            return []
        points = [{"time_s": time_s, "value": value} for time_s, value in self.steps]
        points.append({"time_s": self.end_s, "value": self.steps[-1][1]})
        rule = (
            alt.Chart(alt.InlineData(values=points))
            .mark_line(interpolate="step-after", color=theme.INK, strokeWidth=1, strokeDash=[4, 3], clip=True)
            .encode(x=x, y=y)
        )
        return [rule]


def _subtitle(what: OverTime, views: "list[_View]", *, several: bool) -> str:
    """What is drawn, of which run, and the dashed line, with its value if all panels have the same."""
    chosen = ", in the run of median goodput" if several else ""
    values = {value for view in views for _, value in view.steps}
    if not values:
        return what.subtitle + chosen
    value = f", {_short(values.pop())} {what.axis.rpartition(' ')[2]}" if len(values) == 1 else ""
    return f"{what.subtitle}{chosen}. Dashed: {what.reference_label}{value}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _line(frame: pl.DataFrame, colour: str, width: float, opacity: float) -> alt.Chart:
    chart: alt.Chart = alt.Chart(alt.InlineData(values=records(frame))).mark_line(
        color=colour, strokeWidth=width, opacity=opacity, clip=True, strokeJoin="round"
    )
    return chart
