"""Every controller and world in one view: the main measures, with confidence intervals."""

from typing import Any

import altair as alt

from fullpipe.measures.measures import BY_NAME, Measure
from fullpipe.measures.run import Runs
from fullpipe.report.counts import often
from fullpipe.report.figures import theme
from fullpipe.report.figures.offline import OfflineConcatChart

LOOK_AT = (
    "Look for long bars on the upper left and short ones everywhere else; where whiskers overlap, the "
    "difference may be chance."
)

_QUEUE = "queue_delay_mean_ms"
_SHOWN = {
    "goodput_bps": "goodput, Mbit/s",
    "rtt_mean_ms": "mean round-trip time, ms",
    _QUEUE: "mean queueing delay, ms",
    "retransmits": "retransmitted segments",
}


def figure(results: Runs) -> alt.ConcatChart:
    """Draws it."""
    labels = results.labels
    colours = _colours(results)
    charts = [
        _bars(results, BY_NAME[name], labels, colours, first=position % 2 == 0)
        for position, name in enumerate(_SHOWN)
    ]
    chart: alt.ConcatChart = (
        OfflineConcatChart(concat=charts, columns=2, spacing={"row": 24, "column": 36})
        .resolve_scale(opacity="shared")
        .properties(title=alt.TitleParams("Summary", subtitle=_subtitle(results)))
        .configure(**theme.config())
    )
    return chart


def _title(results: Runs, measure: str) -> str:
    """What a panel shows; that of the queue names its discipline."""
    discipline = (results.scenario.document.get("path") or {}).get("queue")
    return _SHOWN[measure] + (f" ({discipline})" if measure == _QUEUE and discipline else "")


def _subtitle(results: Runs) -> str:
    said = ", ".join(f"{theme.world_title(world)}: {count}" for world, count in often(results).items())
    several = any(len(group.trusted) > 1 for group in results.groups)
    return f"Means ({said}); " + ("whiskers: 95 % confidence" if several else "one run gives no interval")


def _colours(results: Runs) -> dict[str, str]:
    first = {run.label: run.summary["flows"][0]["controller"] for run in reversed(results.runs)}
    by_controller = theme.controller_colours(first[label] for label in results.labels)
    return {label: by_controller[first[label]] for label in results.labels}


def _bars(
    results: Runs, measure: Measure, labels: list[str], colours: dict[str, str], first: bool
) -> alt.LayerChart:
    rows = _rows(results, measure)
    worlds = [theme.world_title(world) for world in results.worlds]
    most = max((max(row["value"], row["high"]) for row in rows), default=0.0) or 1.0
    x = alt.X(
        "value:Q",
        title=_title(results, measure.name),
        scale=alt.Scale(domain=[0, most * 1.22], nice=False),
        axis=alt.Axis(tickCount=5, tickMinStep=10.0**-measure.digits),
    )
    y = alt.Y(
        "label:N", sort=labels, title=None, axis=alt.Axis(labels=first, labelFontSize=12, labelLimit=220)
    )
    offset = alt.YOffset("world:N", sort=worlds, scale=alt.Scale(paddingInner=0.15))
    base = alt.Chart(alt.InlineData(values=rows))
    bars = base.mark_bar().encode(
        x=x,
        y=y,
        yOffset=offset,
        color=alt.Color(
            "label:N", scale=alt.Scale(domain=labels, range=[colours[one] for one in labels]), legend=None
        ),
        opacity=alt.Opacity(
            "world:N",
            scale=alt.Scale(domain=worlds, range=[theme.world_opacity(world) for world in results.worlds]),
            legend=alt.Legend(orient="bottom", title="World", symbolFillColor=theme.INK)
            if len(worlds) > 1
            else None,
        ),
        tooltip=["label:N", "world:N", alt.Tooltip("shown:N", title=measure.title)],
    )
    whiskers = base.transform_filter("datum.high > datum.low").mark_rule(color=theme.INK, strokeWidth=1.4)
    texts = base.mark_text(align="left", dx=5, color=theme.INK, fontSize=10.5)
    layers = [
        bars,
        whiskers.encode(x=alt.X("low:Q"), x2="high:Q", y=y, yOffset=offset),
        texts.encode(x=alt.X("edge:Q"), y=y, yOffset=offset, text="shown:N"),
    ]
    step = 18 if len(worlds) > 1 else 24
    chart: alt.LayerChart = alt.LayerChart(layer=layers).properties(
        width=400, height=max(60, step * len(labels) * len(worlds) + 8 * len(labels))
    )
    return chart


def _rows(results: Runs, measure: Measure) -> list[dict[str, Any]]:
    rows = []
    for group in results.groups:
        value = group.measures[measure.name]
        if value is None:
            continue
        low, high = (
            value.low if value.low is not None else value.mean,
            value.high if value.high is not None else value.mean,
        )
        rows.append(
            {
                "label": group.label,
                "world": theme.world_title(group.world),
                "value": value.mean / measure.scale,
                "low": max(0.0, low) / measure.scale,
                "high": high / measure.scale,
                "edge": max(value.mean, high) / measure.scale,
                "shown": measure.show(value.mean),
            }
        )
    return rows
