"""Heat maps over RTT and rate: in BBR's colour where BBR is ahead, in CUBIC's where CUBIC is."""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.show.figures import theme
from fullpipe.studies import charts

_CELL = 44
# White lies in the middle; values beyond the ends keep the end's colour. White and ink are not the theme's,
# because cells keep their colours on a dark page, and so must their text.
_CUBIC, _BBR = theme.CONTROLLER["cubic"], theme.CONTROLLER["bbr1"]
_CUBIC_TO_BBR = [theme.tint(_CUBIC, 0.98), *(theme.tint(*one) for one in ((_CUBIC, 0.45), (_BBR, 0.0)))]
_CUBIC_TO_BBR += [theme.tint(_BBR, 0.45), theme.tint(_BBR, 0.98)]
_WHITE, _DARK_INK = theme.tint(_BBR, 0.0), "#1b1b1b"


def gain(frame: pl.DataFrame, column: str, title: str, *, most: float = 100.0) -> Any:
    """Percentages in a diverging colour scale that saturates at `most`."""
    colour = alt.Color(
        f"{column}:Q",
        title="%",
        scale=alt.Scale(
            domain=[-most, -most / 3, 0, most / 3, most], range=_CUBIC_TO_BBR, clamp=True, interpolate="rgb"
        ),
    )
    text = pl.col(column).map_elements(lambda value: f"{value:+.0f}", return_dtype=pl.String)
    # White text where the cell is dark.
    dark = f"abs(datum.{column}) > {0.7 * most}"
    return _map(frame, column, text, colour, title, dark)


def count(frame: pl.DataFrame, column: str, title: str) -> Any:
    """Counts, coloured by their logarithm."""
    colour = alt.Color(
        "logarithm:Q",
        title="10^",
        scale=alt.Scale(
            domain=[0, 3, 6], range=[_WHITE, "#c2a5cf", "#762a83"], clamp=True, interpolate="rgb"
        ),
    )
    shown = frame.with_columns(pl.max_horizontal(pl.col(column), 1.0).log10().alias("logarithm"))
    text = pl.col(column).map_elements(_short, return_dtype=pl.String)
    return _map(shown, column, text, colour, title, "datum.logarithm > 5.3")


def _map(frame: pl.DataFrame, column: str, text: pl.Expr, colour: alt.Color, title: str, dark: str) -> Any:
    shown = frame.sort("rate_mbps", "rtt_ms").with_columns(text.alias("text"))
    base = alt.Chart(charts.values(shown)).encode(
        x=alt.X("rtt_ms:O", title="RTT, ms", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("rate_mbps:O", title="rate, Mbit/s", sort="descending"),
    )
    cells = base.mark_rect(stroke=_WHITE).encode(
        color=colour, tooltip=["rtt_ms:Q", "rate_mbps:Q", f"{column}:Q", "bbr1:Q", "cubic:Q"]
    )
    numbers = base.mark_text(fontSize=10).encode(
        text="text:N", color=alt.condition(dark, alt.value(_WHITE), alt.value(_DARK_INK))
    )
    side = {"width": alt.Step(_CELL), "height": alt.Step(_CELL * 0.7)}
    return alt.layer(cells, numbers).properties(title=alt.TitleParams(title, fontSize=12), **side)


def _short(value: float) -> str:
    if value < 999.5:
        return f"{value:.0f}"
    return f"{value / 1e3:.1f}k" if value < 9950 else f"{value / 1e3:.0f}k"
