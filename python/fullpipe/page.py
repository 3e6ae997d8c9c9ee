"""The shell of every HTML page: one file that needs no network.

Figures are inline SVG, so that the page is whole without scripts. Where scripts run, each becomes interactive
when it comes into view, by one copy of Vega that is embedded in the page. Colours follow the reader's light
or dark setting.
"""

import html
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from fullpipe.figures import theme


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
    svg = _with_scheme(svg)
    # Every SVG numbers its parts from zero; on one page they must differ.
    svg = re.sub(r'(\bid="|url\(#|href="#(?!cell-))', rf"\g<1>f{number}-", svg)
    return (
        f'<figure id="figure-{name}"><div class="chart" id="chart-{number}">{svg}</div>'
        f"<figcaption>{text(caption)}</figcaption></figure>"
    )


def variable(colour: str) -> str:
    """A colour as a style variable, which changes with the page's scheme."""
    return f"var(--c-{colour[1:]}, {colour})" if colour in theme.DARK else colour


def text(value: str) -> str:
    """Text as HTML."""
    return html.escape(value)


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
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def _script(specs: Sequence[dict[str, Any]]) -> str:
    if not specs:
        return ""
    said = _with_scheme(json.dumps(list(specs), separators=(",", ":")))
    code = f"{_vega()}\nconst specs = {said};\n{_asset('report.js')}"
    return f'<script type="module">{_inside_script(code)}</script>'


@cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")


def _inside_script(code: str) -> str:
    """An HTML parser ends a script at the first closing tag, even inside a string."""
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


@cache
def _asset(name: str) -> str:
    return resources.files("fullpipe").joinpath("assets", name).read_text(encoding="utf-8")
