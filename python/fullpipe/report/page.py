"""The frame of every HTML page: one file that needs no network.

Figures are inline SVG, so that the page is whole without scripts. Where scripts run, each becomes interactive
when it comes into view, by one copy of Vega that is embedded in the page. Colours follow the reader's light
or dark setting; print is always light.
"""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from fullpipe.report.figures import theme
from fullpipe.report.figures.svg import labelled, printable_json, render, renderer_version
from fullpipe.text import printable


def page(title: str, sections: Iterable[str], specs: Sequence[dict[str, Any]]) -> str:
    """The whole page. `specs` are the Vega-Lite of its figures, in the order of their numbers."""
    return _asset("page.html").format_map(
        {
            "title": text(title),
            "style": _scheme() + _asset("report.css"),
            "body": "\n".join(section for section in sections if section),
            "script": _script(specs),
        }
    )


def figure(number: int, name: str, svg: str, caption: str) -> str:
    """A figure; `number` is its place among the specs of the page."""
    svg = _with_scheme(labelled(svg, caption))
    # Every SVG numbers its parts from zero; on one page they must differ.
    svg = re.sub(r'(\bid="|url\(#|href="#(?!cell-))', rf"\g<1>f{number}-", svg)
    return (
        f'<figure id="figure-{name}"><div class="chart" id="chart-{number}">{svg}</div>'
        '<p class="sideways quiet">Scroll the figure sideways to see all of it.</p>'
        f"<figcaption>{text(caption)}</figcaption></figure>"
    )


@dataclass(frozen=True)
class Heading:
    """A column heading of a table."""

    name: str
    unit: str = ""
    number: bool = False
    # Its name where it is alone, in a narrow window: "RTT p95" instead of "p95" beside "RTT mean".
    alone: str = ""


def table(headings: Sequence[Heading], rows: Iterable[Sequence[str]]) -> str:
    """A table. Cells are HTML; the first of a row is its name.

    Cells carry their headings: on a narrow screen each row becomes a block of lines.
    """
    heads = "".join(f'<th scope="col"{_kind(one)}>{text(one.name)}{_unit(one)}</th>' for one in headings)
    body = "".join(f"<tr>{_row(headings, row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table class="summary"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


def _row(headings: Sequence[Heading], row: Sequence[str]) -> str:
    name, *cells = row
    listed = "".join(
        f'<td{_kind(one)} data-heading="{text(", ".join(filter(None, (one.alone or one.name, one.unit))))}">'
        f"<span>{cell}</span></td>"
        for one, cell in zip(headings[1:], cells, strict=True)
    )
    return f'<th scope="row">{name}</th>{listed}'


def _unit(heading: Heading) -> str:
    # The space is for a notebook, which has no style sheet of ours.
    return f" <small>{text(heading.unit)}</small>" if heading.unit else ""


def _kind(heading: Heading) -> str:
    return ' class="number"' if heading.number else ""


def provenance(entries: Sequence[tuple[str, str]]) -> str:
    """What a reader needs to reproduce the page: names, and values as HTML."""
    listed = "".join(f"<dt>{text(name)}</dt><dd>{value}</dd>" for name, value in entries)
    return f'<h2>Provenance</h2><dl class="provenance">{listed}</dl>'


def variable(colour: str) -> str:
    """A colour as a style variable, which changes with the page's scheme."""
    return f"var(--c-{colour[1:]}, {colour})" if colour in theme.DARK else colour


def text(value: str) -> str:
    """Text as HTML."""
    return html.escape(printable(value))


def _with_scheme(drawn: str) -> str:
    """The colours of a figure as style variables."""
    for colour in theme.DARK:
        drawn = drawn.replace(f'"{colour}"', f'"{variable(colour)}"')
    return drawn


def _scheme() -> str:
    """The style variables in both schemes."""

    def listed(colours: Iterable[str]) -> str:
        return " ".join(
            f"--c-{name[1:]}: {colour};" for name, colour in zip(theme.DARK, colours, strict=True)
        )

    light, dark = listed(theme.DARK), listed(theme.DARK.values())
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def _script(specs: Sequence[dict[str, Any]]) -> str:
    if not specs:
        return ""
    message = _with_scheme(printable_json(specs))
    code = f"{_vega()}\nconst specs = {message};\n{_asset('report.js')}"
    return f'<script type="module">{_inside_script(code)}</script>'


@cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script."""
    # Bundled when the package was built (`build_backend.py`); not in a folder of sources.
    made = resources.files("fullpipe").joinpath("report", "assets", f"vega-{renderer_version()}.js")
    if made.is_file():
        return made.read_text(encoding="utf-8")
    return str(render("javascript_bundle", "window.vegaEmbed = vegaEmbed;"))


def _inside_script(code: str) -> str:
    """An HTML parser ends a script at the first closing tag, even inside a string."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


@cache
def _asset(name: str) -> str:
    return resources.files("fullpipe").joinpath("report", "assets", name).read_text(encoding="utf-8")
