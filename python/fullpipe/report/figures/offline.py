"""Charts that a notebook shows without a network.

By default, Altair shows a chart with scripts that the browser fetches from a server, which fails offline.
"""

from typing import Any

import altair as alt

from fullpipe.report.figures.svg import picture


class OfflineConcatChart(alt.ConcatChart):
    """A chart of several panels, shown as SVG. All else is Altair's, whose settings are not changed."""

    def _repr_mimebundle_(self, *_include: object, **_exclude: object) -> dict[str, Any]:
        """The representation that Jupyter, VS Code and others show."""
        return {"image/svg+xml": picture(self.to_dict()), "text/plain": repr(self)}

    def __repr__(self) -> str:
        title = self.to_dict().get("title") or {}
        return f"<figure {title.get('text', '')!r}; .save('figure.svg') writes it, a notebook shows it>"
