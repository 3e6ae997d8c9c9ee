"""Parts that installed packages offer by entry points, and what failures of other people's code say."""

import threading
from collections.abc import Callable
from importlib import metadata
from typing import Any

from fullpipe.text import MOST_SENTENCE, shown


def load(group: str, register: Callable[[Any], None]) -> dict[str, str]:
    """Registers what packages offer in a group; returns why some of it cannot be used, by its name."""
    return _each(group, lambda point: register(point.load()))


def names(group: str) -> set[str]:
    """The names of what packages offer in a group. Imports nothing of it."""
    return {point.name for point in metadata.entry_points(group=group)}


def parts(group: str, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What packages offer by a name in a group, by that name, and why some of it cannot be used."""
    found: dict[str, Any] = {}

    def keep(point: metadata.EntryPoint) -> None:
        found[point.name] = point.load()

    broken = _each(group, keep, name)
    return found, broken


def _each(group: str, use: Callable[[metadata.EntryPoint], None], name: str | None = None) -> dict[str, str]:
    broken: dict[str, str] = {}
    points = (one for one in metadata.entry_points(group=group) if name in (None, one.name))
    for point in sorted(points, key=lambda one: one.name):
        try:
            use(point)
        # A package of somebody else may fail in any way, which must not hinder the rest.
        except BaseException as error:
            if is_interrupt(error):
                raise
            broken[point.name] = f"{point.value} cannot be loaded: {message(error)}"
    return broken


def is_interrupt(error: BaseException) -> bool:
    """Whether it may be a real Ctrl-C, which only the main thread gets; elsewhere, code raised it itself."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def message(error: BaseException) -> str:
    """What an exception of other people's code says; its class if it says nothing, or fails to."""
    try:
        text = str.__str__(str(error))
    except BaseException as broken:
        if is_interrupt(broken):
            raise
        text = ""
    return shown(text, MOST_SENTENCE) or type(error).__name__


def described(error: BaseException) -> str:
    """The class of an exception, and what it says."""
    name, text = type(error).__name__, message(error)
    return name if text == name else f"{name}: {text}"
