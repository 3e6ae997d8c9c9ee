"""Figures as data: Vega-Lite specifications as plain dictionaries.

Altair copies the data of a figure several times, and checks it against a schema each time. Tests make that
check for every figure instead (`tests/test_figures.py`).
"""

from typing import Any

from fullpipe.report.figures import theme

Spec = dict[str, Any]

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_TYPES = {"Q": "quantitative", "N": "nominal"}


def channel(what: str, **more: Any) -> Spec:
    """What it shows: `field:Q` for numbers, `field:N` for names, `field` for the other end of an interval."""
    field, _, kind = what.partition(":")
    return {"field": field, **({"type": _TYPES[kind]} if kind else {}), **more}


def layer(mark: str, encoding: Spec, values: list[dict[str, Any]] | None = None, **of_mark: Any) -> Spec:
    """One layer. Without values, it shows those of the panel."""
    data = {} if values is None else {"data": {"values": values}}
    return {**data, "mark": {"type": mark, **of_mark}, "encoding": encoding}


def concat(panels: list[Spec], columns: int, spacing: Spec, shared: str, title: Spec, **more: Any) -> Spec:
    """Panels in rows of so many `columns`, which share the scale of a channel."""
    return {
        "$schema": _SCHEMA,
        "concat": panels,
        "columns": columns,
        "spacing": spacing,
        "resolve": {"scale": {shared: "shared"}},
        "title": title,
        **more,
        "config": theme.config(),
    }
