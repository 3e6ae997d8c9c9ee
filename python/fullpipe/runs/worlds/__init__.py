"""The worlds that a scenario can run in: `sim`, `kernel`, and those that others add (README.md tells how).

`world` says what a world is, `registry` knows all of them, and nothing outside this room lists them.
This file imports nothing at first, because the kernel world's child process loads it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fullpipe.runs.worlds.job import Job, Progress
    from fullpipe.runs.worlds.registry import register
    from fullpipe.runs.worlds.world import Stop, World

__all__ = ["Job", "Progress", "Stop", "World", "register"]

_HOME = {"Job": "job", "Progress": "job", "Stop": "world", "World": "world", "register": "registry"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
