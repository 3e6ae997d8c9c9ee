"""Parts that installed packages offer by entry points."""

from collections.abc import Callable
from importlib import metadata
from typing import Any


def load(group: str, register: Callable[[Any], None]) -> dict[str, str]:
    """Registers what packages offer in a group; returns why some of it cannot be used, by its name."""
    broken: dict[str, str] = {}
    for point in sorted(metadata.entry_points(group=group), key=lambda one: one.name):
        try:
            register(point.load())
        # A package of somebody else may fail in any way, which must not hinder the rest.
        except Exception as error:
            broken[point.name] = f"{point.value} cannot be loaded: {error}"
    return broken
