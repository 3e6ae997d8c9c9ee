"""How cases are run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

# Called with what is running, the work done and in all, and a text about it.
Watch: TypeAlias = Callable[[str, float, float, str], None]


def ignore(_title: str, _done: float, _total: float, _count: str) -> None:
    """For callers that show no progress."""


@dataclass(frozen=True)
class Options:
    """Where finished runs are kept (None: nowhere), how many run at a time, and who watches."""

    store: Path | None = None
    jobs: int | None = None
    watch: Watch = ignore
