"""Progress bars on stderr, for anything that takes over a second, if stderr is a terminal."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fullpipe.runs.worlds import registry

# Read when a bar is about to be drawn, so that a test can avoid the wait.
PATIENCE_S = 0.7
_ESTIMATE_S = 300.0


class Watching:
    """A `Watcher` for `fullpipe.api`: call it with a world, runs done and runs in all."""

    def __init__(self, console: Console, patience_s: float | None = None) -> None:
        self._console = console
        self._patience_s = patience_s
        self._began = time.monotonic()
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "Watching":
        return self

    def __call__(self, world: str, done: float, total: int) -> None:
        """Shows the progress of a world."""
        found = registry.find(world)
        self.show(world if found is None else found.short, done, total, f"{int(done)} of {total} runs")

    def show(self, title: str, done: float, total: float, count: str) -> None:
        """Shows progress in any unit, with a text for the reader."""
        patience_s = PATIENCE_S if self._patience_s is None else self._patience_s
        if not self._console.is_terminal or time.monotonic() - self._began < patience_s:
            return
        if self._bars is None:
            self._bars = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[count]}", markup=False),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
                # With rich's own period, which is two kernel runs long, there would be no estimate.
                speed_estimate_period=_ESTIMATE_S,
            )
            self._bars.start()
        if title not in self._tasks:
            self._tasks[title] = self._bars.add_task(title, total=total, count="")
        self._bars.update(self._tasks[title], completed=done, total=total, count=count)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()
