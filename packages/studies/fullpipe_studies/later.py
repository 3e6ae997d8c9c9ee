"""Altair, imported where something of it is used first.

That takes a third of a second, every claim names it, and only figures use it. An annotation with a name of it
is in quotes.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt
else:

    class _Altair:
        def __getattr__(self, name: str) -> Any:
            import altair

            return getattr(altair, name)

    alt = _Altair()

__all__ = ["alt"]
