"""How every figure looks: one palette, one typography, one colour for each controller.

The colours are those of Okabe and Ito, which people with any kind of colour vision can tell apart.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.world import World
from fullpipe.text import capitalised

_T = TypeVar("_T")

INK = "#2f3640"
QUIET = "#79818d"
GRID = "#e4e7eb"
PAPER = "#ffffff"
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"

# Controllers with a colour of their own, which is the same in every figure and used for nothing else.
CONTROLLER = {
    "bbr1": "#0072b2",
    "cubic": "#d55e00",
    "reno": "#009e73",
    "bbr3": "#aa4499",
    "bbr3:profile=linux": "#00828a",
    "vegas": "#b8860b",
    "copa": "#5b7f00",
    "newreno": "#1b6b50",
    "cubic9438": "#8f3f00",
}
# For other controllers, and for other parameters of the same controller.
SPARE = ("#6a51a3", "#a6761d", "#117733", "#cc6677", "#332288", "#882255", "#666666")

# Dashes distinguish controllers without colours: pixels drawn and left out.
DASH = {
    "bbr1": (1, 0),
    "cubic": (6, 2),
    "reno": (2, 2),
    "bbr3": (10, 3),
    "bbr3:profile=linux": (5, 2, 1, 2),
    "vegas": (8, 2, 2, 2),
    "copa": (4, 4),
    "newreno": (2, 4),
    "cubic9438": (6, 2, 1, 2),
}
_SPARE_DASH = ((5, 1), (3, 1, 1, 1), (8, 4), (1, 3), (12, 2), (4, 2, 1, 2), (7, 1, 1, 1))

# Bands behind the lines, in the order of the legend.
PHASE = {
    "startup": ("Startup, slow start", "#fae6bd"),
    "slow_start": ("Startup, slow start", "#fae6bd"),
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
    "competing": ("Competing", "#eec9c9"),
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
    "#00828a": "#4fc3cb",
    "#b8860b": "#dcae45",
    "#5b7f00": "#a3c34a",
    "#1b6b50": "#5fb894",
    "#8f3f00": "#d98a55",
    "#6a51a3": "#a594d6",
    "#332288": "#8f84d8",
    "#882255": "#cf6f9d",
    "#fae6bd": "#4f4220",
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
    "#a6761d": "#d3a04a",
    "#117733": "#4fbf78",
    "#cc6677": "#e0909d",
    "#666666": "#a8a8a8",
    "#44aa99": "#6cc7b8",
    "#8c6d1f": "#c9a85c",
    "#7a1f3d": "#c97a97",
    "#1f6f8b": "#6bb5cd",
    "#e3e0ea": "#2b2932",
    "#eec9c9": "#3d2626",
}

# For `usermeta` of figures that a narrow page must not redraw (assets/report.js).
RIGID = {"narrow": "scroll"}

# For worlds that have no colour of their own. Like those that do, they are not colours of controllers.
WORLD_SPARE = ("#8c6d1f", "#7a1f3d", "#1f6f8b")


def world_title(world: str) -> str:
    """A world's name for readers, within a sentence."""
    found = registry.find(world)
    return world if found is None else found.title


def world_heading(world: str) -> str:
    """The same as a heading."""
    return capitalised(world_title(world))


def world_short(world: str) -> str:
    """A world's short name as a heading."""
    found = registry.find(world)
    return capitalised(world if found is None else found.short)


def world_colours(worlds: Iterable[str]) -> dict[str, str]:
    """A colour for each world, for lines that are worlds instead of controllers."""
    found = {world: registry.find(world) for world in worlds}
    own = {name: world.colour for name, world in found.items() if world is not None and world.colour}
    return _assigned(found, own, WORLD_SPARE)


def world_opacity(world: str) -> float:
    """The opacity of a world's bars."""
    found = registry.find(world)
    return World.opacity if found is None else found.opacity


def controller_colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each controller, independent of those before it in the list.

    With other parameters it is another controller, with a spare colour that follows from its text. If two
    texts lead to the same spare colour, the later one takes the next.
    """
    return _assigned(names, CONTROLLER, SPARE)


def controller_dashes(names: Iterable[str]) -> dict[str, list[int]]:
    """The same for dashes."""
    return {name: list(dash) for name, dash in _assigned(names, DASH, _SPARE_DASH).items()}


def _assigned(names: Iterable[str], own: dict[str, _T], spare: tuple[_T, ...]) -> dict[str, _T]:
    chosen: dict[str, _T] = {}
    for name in dict.fromkeys(names):
        if name in own:
            chosen[name] = own[name]
            continue
        first = zlib.crc32(name.encode())
        wanted = [spare[(first + step) % len(spare)] for step in range(len(spare))]
        chosen[name] = next((one for one in wanted if one not in chosen.values()), wanted[0])
    return chosen


def tint(colour: str, strength: float) -> str:
    """A colour mixed with white: 1 is the colour, 0 is (almost) white, which no page turns dark."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(254 + strength * (part - 254)):02x}" for part in parts)


def settled(spec: dict[str, Any]) -> dict[str, Any]:
    """A figure in which a name has the same colour and dash in every panel, whatever names the panel has.

    Panels share one legend. Vega-Lite joins their names and keeps the colours of the first panel, in order,
    so that a panel with other names would be drawn in the wrong colours.
    """
    joined: dict[tuple[str, str], dict[str, Any]] = {}
    found = list(_scales(spec))
    for key, scale in found:
        joined.setdefault(key, {}).update(zip(scale["domain"], scale["range"], strict=True))
    for key, scale in found:
        scale["domain"], scale["range"] = list(joined[key]), list(joined[key].values())
    return spec


def _scales(part: Any) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Every scale that maps names to colours or dashes, with its channel and field."""
    if isinstance(part, list):
        for one in part:
            yield from _scales(one)
    if isinstance(part, dict):
        for channel, one in part.items():
            scale = one.get("scale") if isinstance(one, dict) and one.get("type") == "nominal" else None
            if isinstance(scale, dict) and isinstance(scale.get("domain"), list) and "range" in scale:
                yield (channel, one["field"]), scale
            yield from _scales(one)


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
