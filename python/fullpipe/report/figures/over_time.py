"""The layout of most figures: a quantity over time, one row for each controller, worlds side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from fullpipe.measures.run import Runs
from fullpipe.report.figures import theme
from fullpipe.report.figures.prepare import Panel, bands, flow_colours, line, panels, records
from fullpipe.report.figures.vega import Spec, channel, concat, layer
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


def draw(results: Runs, what: OverTime) -> Spec:
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
    title = {"text": what.title, "subtitle": _subtitle(what, views, several=several)}
    return concat(charts, columns, {"row": 16, "column": 24}, "fill", title, params=[_zoom(len(charts))])


def _zoom(panels: int) -> Spec:
    """In an interactive figure: drag to move, shift and wheel to zoom, in all panels at once."""
    return {
        "name": "zoom",
        "bind": "scales",
        "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
        "views": [_panel_name(number) for number in range(panels)],
    }


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
        if not self.panel.row.prefix:
            return thin
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
    ) -> Spec:
        """The panel: bands, reference, companion, line."""
        at = {
            "x": channel(
                "time_s:Q",
                title="time, s" if last_row else None,
                scale={"domain": [0, self.end_s], "nice": False},
            ),
            "y": channel("value:Q", title=self.what.axis, scale={"domain": list(domain), "nice": False}),
        }
        layers: list[Spec] = []
        if self.bands.height:
            layers += [self._band_layer(phases), self._boundary_layer()]
        layers += self._reference_layers(at)
        if self.companion is not None:
            layers.append(_line(self.companion, at, theme.QUIET, 1, 0.8))
        many = len(self.panel.flow_labels) > 1
        main = {
            **at,
            "detail": channel("flow:N"),
            "tooltip": [
                channel("flow:N"),
                channel("time_s:Q", format=".3f", title="time, s"),
                channel("value:Q", format=",.2f", title=self.what.axis),
            ],
        }
        if self.distinguished:
            main["color"] = self._flow_colour(drawn)
        colour, width, opacity = self.panel.row.colour, 1.1 if many else 1.6, 0.75 if many else 1
        layers.append({**_line(self.line, main, colour, width, opacity), "name": _panel_name(number)})
        title = {"text": self.panel.title, "color": colour, "fontSize": 12, "fontWeight": 600}
        title |= {"offset": 5, "anchor": "start"}
        return {"layer": layers, "width": self.width, "height": 150, "title": title}

    @property
    def distinguished(self) -> bool:
        """Whether the flows of this panel have a colour each."""
        labels = self.panel.flow_labels
        return len(labels) > 1 and all(self.panel.name_of(label) in self.flows for label in labels)

    @property
    def drawn(self) -> set[str]:
        """The flows that have a line: before its end, some may not have started."""
        return set(self.line.drop_nulls("value")["flow"])

    def _flow_colour(self, drawn: list[str]) -> Spec:
        """One colour for each flow, in a legend of those with a line, which all panels share."""
        legend = {
            "title": "Flow",
            "values": drawn,
            "columns": 8,
            "symbolType": "stroke",
            "symbolStrokeWidth": 2,
        }
        return channel("flow:N", scale=_scale(self.flows), legend={**_LEGEND, **legend})

    def _band_layer(self, phases: list[str]) -> Spec:
        """Phases as bands, with the names that readers know."""
        titled = self.bands.with_columns(
            pl.col("phase").replace_strict(
                {name: theme.PHASE[name][0] for name in self.phases}, return_dtype=pl.String
            )
        )
        legend = {
            "title": "Phase",
            "columns": 10,
            "offset": 8,
            "symbolStrokeColor": theme.QUIET,
            "symbolStrokeWidth": 0.8,
        }
        colours = _scale(dict(theme.PHASE[name] for name in phases))
        encoding = {
            "x": channel("start_s:Q"),
            "x2": channel("end_s"),
            "fill": channel("phase:N", scale=colours, legend={**_LEGEND, **legend}),
            "tooltip": [
                channel("phase:N"),
                channel("start_s:Q", format=".3f"),
                channel("end_s:Q", format=".3f"),
            ],
        }
        return layer("rect", encoding, records(titled), opacity=theme.PHASE_OPACITY, clip=True)

    def _boundary_layer(self) -> Spec:
        """Where one phase ends and the next begins, even between bands of the same colour."""
        wide = (pl.col("end_s") - pl.col("start_s")) / self.end_s * self.width >= _WIDE_BAND_PX
        begins = records(self.bands.filter(wide & wide.shift(1)).select("start_s"))
        style: Spec = {"color": theme.QUIET, "strokeWidth": 0.6, "opacity": 0.7, "clip": True}
        return layer("rule", {"x": channel("start_s:Q")}, begins, **style)

    def _reference_layers(self, at: Spec) -> list[Spec]:
        if not self.steps:
            return []
        points = [{"time_s": time_s, "value": value} for time_s, value in self.steps]
        points.append({"time_s": self.end_s, "value": self.steps[-1][1]})
        style: Spec = {"color": theme.INK, "strokeWidth": 1, "strokeDash": [4, 3], "clip": True}
        return [layer("line", at, points, interpolate="step-after", **style)]


_LEGEND = {"orient": "bottom", "direction": "horizontal"}


def _scale(colours: dict[str, str]) -> Spec:
    return {"domain": list(colours), "range": list(colours.values())}


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


def _line(frame: pl.DataFrame, encoding: Spec, colour: str, width: float, opacity: float) -> Spec:
    style: dict[str, Any] = {"color": colour, "strokeWidth": width, "opacity": opacity}
    return layer("line", encoding, records(frame), **style, clip=True, strokeJoin="round")
