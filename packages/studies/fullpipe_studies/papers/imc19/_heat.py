"""Heat maps over RTT and rate: in BBR's colour where BBR is ahead, in CUBIC's where CUBIC is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe_studies import charts
from fullpipe_studies.later import alt

_CELL = 44
# Where a colour scale may end, in per cent.
_ENDS = (10.0, 25.0, 50.0, 100.0)
# White lies in the middle; values beyond the ends keep the end's colour. White and ink are not the theme's,
# because cells keep their colours on a dark page, and so must their text.
_CUBIC, _BBR = theme.CONTROLLER["cubic"], theme.CONTROLLER["bbr1"]
_CUBIC_TO_BBR = [theme.tint(_CUBIC, 0.98), *(theme.tint(*one) for one in ((_CUBIC, 0.45), (_BBR, 0.0)))]
_CUBIC_TO_BBR += [theme.tint(_BBR, 0.45), theme.tint(_BBR, 0.98)]
_WHITE, _DARK_INK = theme.tint(_BBR, 0.0), "#1b1b1b"


@dataclass(frozen=True)
class Panel:
    """A map of several: its title, and its cells."""

    title: str
    frame: pl.DataFrame


def most(frame: pl.DataFrame, column: str) -> float:
    """The end of a colour scale for the data: the first of a few round numbers that covers them."""
    top = max((abs(value) for value in frame[column].drop_nulls()), default=0.0)
    return next((end for end in _ENDS if top <= end), _ENDS[-1])


def gain(
    frame: pl.DataFrame,
    column: str,
    title: str,
    *,
    most: float = 100.0,
    paper: Mapping[tuple[int, int], float] | None = None,
) -> Any:
    """Percentages in a diverging colour scale that saturates at `most`.

    `paper` has the values that the paper gives, by RTT and rate; they are shown in brackets.
    """
    colour = alt.Color(
        f"{column}:Q",
        title="%",
        scale=alt.Scale(
            domain=[-most, -most / 3, 0, most / 3, most], range=_CUBIC_TO_BBR, clamp=True, interpolate="rgb"
        ),
    )
    text = pl.col(column).map_elements(_signed, return_dtype=pl.String)
    # White text where the cell is dark.
    dark = f"abs(datum.{column}) > {0.7 * most}"
    theirs = {path: f"({_signed(value)})" for path, value in (paper or {}).items()}
    return _map(frame, column, text, colour, title, dark, theirs)


def rows(groups: Sequence[Sequence[Panel]], column: str) -> Any:
    """Rows of maps; those in a row share the colour scale, which covers their data."""
    drawn = []
    for group in groups:
        end = most(pl.concat([one.frame for one in group]), column)
        drawn.append(alt.hconcat(*(gain(one.frame, column, one.title, most=end) for one in group)))
    return alt.vconcat(*drawn).resolve_scale(color="independent")


def count(
    frame: pl.DataFrame,
    column: str,
    title: str,
    paper: Mapping[tuple[int, int], float] | None = None,
) -> Any:
    """Counts, coloured by their logarithm; `paper` as in `gain`."""
    colour = alt.Color(
        "logarithm:Q",
        title="10^",
        scale=alt.Scale(
            domain=[0, 3, 6], range=[_WHITE, "#c2a5cf", "#762a83"], clamp=True, interpolate="rgb"
        ),
    )
    shown = frame.with_columns(pl.max_horizontal(pl.col(column), 1.0).log10().alias("logarithm"))
    text = pl.col(column).map_elements(_short, return_dtype=pl.String)
    theirs = {path: f"({_short(value)})" for path, value in (paper or {}).items()}
    return _map(shown, column, text, colour, title, "datum.logarithm > 5.3", theirs)


def _map(
    frame: pl.DataFrame,
    column: str,
    text: pl.Expr,
    colour: "alt.Color",
    title: str,
    dark: str,
    paper: Mapping[tuple[int, int], str],
) -> Any:
    shown = frame.sort("rate_mbps", "rtt_ms").with_columns(
        text.alias("text"),
        pl.struct("rtt_ms", "rate_mbps")
        .map_elements(lambda cell: paper.get((cell["rtt_ms"], cell["rate_mbps"]), ""), return_dtype=pl.String)
        .alias("theirs"),
    )
    base = alt.Chart(charts.values(shown)).encode(
        x=alt.X("rtt_ms:O", title="RTT, ms", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("rate_mbps:O", title="rate, Mbit/s", sort="descending"),
    )
    cells = base.mark_rect(stroke=_WHITE).encode(
        color=colour, tooltip=["rtt_ms:Q", "rate_mbps:Q", f"{column}:Q", "bbr1:Q", "cubic:Q"]
    )

    def texts(field: str, rows: str, size: int, dy: int) -> Any:
        ink = alt.condition(dark, alt.value(_WHITE), alt.value(_DARK_INK))
        return (
            base.transform_filter(rows).mark_text(fontSize=size, dy=dy).encode(text=f"{field}:N", color=ink)
        )

    layers = [cells, texts("text", "datum.theirs == ''", 10, 0)]
    if paper:
        # Two lines where the paper has a value.
        layers += [texts("text", "datum.theirs != ''", 10, -6), texts("theirs", "datum.theirs != ''", 9, 7)]
    side = {"width": alt.Step(_CELL), "height": alt.Step(_CELL * 0.7)}
    return alt.layer(*layers).properties(title=alt.TitleParams(title, fontSize=12), **side)


def _signed(value: float) -> str:
    """A whole percentage with its sign; 0 has none."""
    return f"{value:+.0f}" if round(value) else "0"


def _short(value: float) -> str:
    if value < 999.5:
        return f"{value:.0f}"
    return f"{value / 1e3:.1f}k" if value < 9950 else f"{value / 1e3:.0f}k"
