"""Every controller and world in one view: the main measures, with confidence intervals."""

from typing import Any

from fullpipe.measures.measures import BY_NAME, Measure
from fullpipe.measures.run import Runs
from fullpipe.report.counts import often
from fullpipe.report.figures import theme
from fullpipe.report.figures.vega import Spec, channel, concat, layer

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


def figure(results: Runs) -> Spec:
    """Draws it."""
    labels = results.labels
    colours = _colours(results)
    charts = [
        _bars(results, BY_NAME[name], labels, colours, first=position % 2 == 0)
        for position, name in enumerate(_SHOWN)
    ]
    title = {"text": "Summary", "subtitle": _subtitle(results)}
    return concat(charts, 2, {"row": 24, "column": 36}, "opacity", title)


def _title(results: Runs, measure: str) -> str:
    """What a panel shows; that of the queue names its discipline."""
    discipline = (results.scenario.document.get("path") or {}).get("queue")
    return _SHOWN[measure] + (f" ({discipline})" if measure == _QUEUE and discipline else "")


def _subtitle(results: Runs) -> str:
    message = ", ".join(f"{theme.world_title(world)}: {count}" for world, count in often(results).items())
    several = any(len(group.trusted) > 1 for group in results.groups)
    return f"Means ({message}); " + ("whiskers: 95 % confidence" if several else "one run gives no interval")


def _colours(results: Runs) -> dict[str, str]:
    first = {run.label: run.summary["flows"][0]["controller"] for run in reversed(results.runs)}
    by_controller = theme.controller_colours(first[label] for label in results.labels)
    return {label: by_controller[first[label]] for label in results.labels}


def _bars(results: Runs, measure: Measure, labels: list[str], colours: dict[str, str], first: bool) -> Spec:
    rows = _rows(results, measure)
    worlds = [theme.world_title(world) for world in results.worlds]
    most = max((max(row["value"], row["high"]) for row in rows), default=0.0) or 1.0
    names = {"labels": first, "labelFontSize": 12, "labelLimit": 220}
    at = {
        "y": channel("label:N", sort=labels, title=None, axis=names),
        "yOffset": channel("world:N", sort=worlds, scale={"paddingInner": 0.15}),
    }
    opacities = [theme.world_opacity(world) for world in results.worlds]
    legend = {"orient": "bottom", "title": "World", "symbolFillColor": theme.INK} if len(worlds) > 1 else None
    bars = {
        **at,
        "x": channel(
            "value:Q",
            title=_title(results, measure.name),
            scale={"domain": [0, most * 1.22], "nice": False},
            axis={"tickCount": 5, "tickMinStep": 10.0**-measure.digits},
        ),
        "color": channel(
            "label:N", scale={"domain": labels, "range": [colours[one] for one in labels]}, legend=None
        ),
        "opacity": channel("world:N", scale={"domain": worlds, "range": opacities}, legend=legend),
        "tooltip": [channel("label:N"), channel("world:N"), channel("shown:N", title=measure.title)],
    }
    interval = {**at, "x": channel("low:Q"), "x2": channel("high")}
    whiskers = layer("rule", interval, color=theme.INK, strokeWidth=1.4)
    value = {**at, "x": channel("edge:Q"), "text": channel("shown:N")}
    step = 18 if len(worlds) > 1 else 24
    return {
        "data": {"values": rows},
        "layer": [
            layer("bar", bars),
            {**whiskers, "transform": [{"filter": "datum.high > datum.low"}]},
            layer("text", value, align="left", dx=5, color=theme.INK, fontSize=10.5),
        ],
        "width": 400,
        "height": max(60, step * len(labels) * len(worlds) + 8 * len(labels)),
    }


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
