"""How every figure looks: one palette, one typography, one colour a controller.

The colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart.
"""

from collections.abc import Iterable
from typing import Any

INK = "#2f3640"
QUIET = "#79818d"
GRID = "#e4e7eb"
PAPER = "#ffffff"
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"

# Controllers that have a colour of their own, the same in every figure.
CONTROLLER = {
    "bbr1": "#0072b2",
    "cubic": "#d55e00",
    "reno": "#009e73",
    "bbr3": "#aa4499",
    "vegas": "#b8860b",
    "copa": "#56b4e9",
}
# For the rest, and for a second set of parameters of the same controller.
SPARE = ("#6a51a3", "#a6761d", "#117733", "#cc6677", "#332288", "#44aa99", "#882255", "#666666")

# Bands behind the lines, in the order of the legend.
PHASE = {
    "startup": ("Startup, slow start", "#f6c667"),
    "slow_start": ("Startup, slow start", "#f6c667"),
    "drain": ("Drain", "#9ccbe8"),
    "probe_bw": ("ProbeBW cycle", "#e9edf2"),
    "probe_bw_refill": ("ProbeBW refill", "#cfe3d4"),
    "probe_bw_up": ("ProbeBW up", "#b5dfb0"),
    "probe_bw_down": ("ProbeBW down", "#c3d5f0"),
    "probe_bw_cruise": ("ProbeBW cruise", "#eef0f3"),
    "probe_rtt": ("ProbeRTT", "#c9a3d6"),
    "congestion_avoidance": ("Congestion avoidance", "#f3ece2"),
    "recovery": ("Recovery", "#f2a9a0"),
    "loss": ("Timeout", "#c0564b"),
    "fixed": ("Fixed window or rate", "#e3e0ea"),
}
PHASE_OPACITY = 0.75

# On a dark page each colour becomes this one.
DARK = {
    INK: "#dfe3e8",
    QUIET: "#9aa3af",
    GRID: "#353b44",
    PAPER: "#1d2127",
    "#0072b2": "#4aaee8",
    "#d55e00": "#f28c45",
    "#009e73": "#35c795",
    "#aa4499": "#d78acb",
    "#b8860b": "#dcae45",
    "#6a51a3": "#a594d6",
    "#332288": "#8f84d8",
    "#882255": "#cf6f9d",
    "#f6c667": "#7d5f1d",
    "#9ccbe8": "#2c5f80",
    "#e9edf2": "#282d35",
    "#cfe3d4": "#31493a",
    "#b5dfb0": "#2f6135",
    "#c3d5f0": "#344b6e",
    "#eef0f3": "#24292f",
    "#f3ece2": "#302c27",
    "#c9a3d6": "#633f72",
    "#f2a9a0": "#7d3c35",
    "#c0564b": "#a04338",
    "#e3e0ea": "#2b2932",
}

WORLD = {"sim": "simulation", "kernel": "Linux kernel"}


def world_title(world: str) -> str:
    """A world's name for readers."""
    return WORLD.get(world, world)


def controller_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each controller: its own, unless a variant named earlier took it."""
    chosen: dict[str, str] = {}
    spare = iter(SPARE * 8)
    for name in dict.fromkeys(names):
        own = CONTROLLER.get(name.split(":")[0])
        if own is None or own in chosen.values():
            own = next((colour for colour in spare if colour not in chosen.values()), SPARE[-1])
        chosen[name] = own
    return chosen


def config() -> dict[str, Any]:
    """Vega-Lite configuration that every figure shares."""
    return {
        "background": PAPER,
        "font": FONT,
        "padding": 12,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "color": INK,
            "fontSize": 16,
            "fontWeight": 600,
            "subtitleColor": QUIET,
            "subtitleFontSize": 12,
            "subtitlePadding": 5,
            "offset": 14,
        },
        "axis": {
            "domainColor": QUIET,
            "gridColor": GRID,
            "labelColor": INK,
            "labelFontSize": 11,
            "tickColor": QUIET,
            "titleColor": INK,
            "titleFontSize": 11,
            "titleFontWeight": 400,
            "titlePadding": 6,
        },
        "axisX": {"grid": False, "tickCount": 8, "labelFlush": False},
        "axisY": {"domain": False, "ticks": False, "tickCount": 4, "labelPadding": 6},
        "legend": {
            "labelColor": INK,
            "labelFontSize": 11,
            "titleColor": QUIET,
            "titleFontSize": 11,
            "titleFontWeight": 400,
            "symbolSize": 130,
            "symbolStrokeWidth": 0,
            "columnPadding": 14,
        },
    }
