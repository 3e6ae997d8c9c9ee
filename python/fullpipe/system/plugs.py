"""Parts that installed packages offer by entry points, and what failures of other people's code say."""

import threading
import unicodedata
from collections.abc import Callable
from importlib import metadata
from itertools import islice
from typing import Any

# The most characters of a text of others that are shown, and the most of it that are looked at for them.
MOST_SHOWN = 500
_MOST_LOOKED_AT = 1 << 16
# Control and format characters, and what separates lines and paragraphs: a terminal may obey them.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def load(group: str, register: Callable[[Any], None]) -> dict[str, str]:
    """Registers what packages offer in a group; returns why some of it cannot be used, by its name."""
    broken: dict[str, str] = {}
    for point in sorted(metadata.entry_points(group=group), key=lambda one: one.name):
        try:
            register(point.load())
        # A package of somebody else may fail in any way, which must not hinder the rest.
        except BaseException as error:
            if is_interrupt(error):
                raise
            broken[point.name] = f"{point.value} cannot be loaded: {said(error)}"
    return broken


def is_interrupt(error: BaseException) -> bool:
    """Whether it may be a real Ctrl-C, which only the main thread gets; elsewhere, code raised it itself."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def said(error: BaseException) -> str:
    """What an exception of other people's code says; its class if it says nothing, or fails to."""
    try:
        text = str.__str__(str(error))
    except BaseException as broken:
        if is_interrupt(broken):
            raise
        text = ""
    return text or type(error).__name__


def shown(text: str, most: int = MOST_SHOWN) -> str:
    """A text of others as a terminal may show it: one line of so many characters, none of which it obeys."""
    plain = (" " if one.isspace() else one for one in text[:_MOST_LOOKED_AT] if _is_seen(one))
    kept = "".join(islice(plain, most + 1)).strip()
    return kept if len(kept) <= most else f"{kept[: most - 3]}..."


def _is_seen(one: str) -> bool:
    return one.isspace() or unicodedata.category(one) not in _UNSEEN


def described(error: BaseException) -> str:
    """The class of an exception, and what it says."""
    name, text = type(error).__name__, said(error)
    return name if text == name else f"{name}: {text}"
