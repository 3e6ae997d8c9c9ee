"""Shows the progress of a sweep."""

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console

from fullpipe.cli.progress import Watching
from fullpipe.runs.sweep import Progress
from fullpipe.text import minutes

# Without a terminal, prints a line this often.
_LINE_EVERY_S = 60.0


class Watched:
    """A progress bar on a terminal; elsewhere a line every minute, for logs."""

    def __init__(self, errors: Console, say: Callable[[str], None], title: str) -> None:
        self._errors, self._line, self._title = errors, say, title
        self._watching = Watching(errors, patience_s=0)
        self._began = self._reported = time.monotonic()

    def __enter__(self) -> "Watched":
        self._watching.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watching.__exit__(kind, error, trace)

    def say(self, line: str) -> None:
        """Prints a note before the runs."""
        self._line(f"fullpipe: {line}")

    def __call__(self, progress: Progress) -> None:
        """Shows the progress of the sweep."""
        count = f"{progress.runs} of {progress.runs_in_all} runs"
        if progress.again:
            count += f", {progress.again} to repeat"
        if progress.failed:
            count += f", {progress.failed} failed"
        if self._errors.is_terminal:
            self._watching.show(self._title, progress.cost, progress.cost_in_all, count)
            return
        now = time.monotonic()
        if now - self._reported >= _LINE_EVERY_S:
            self._reported = now
            # The costs apply to an idle machine; this one may be slower.
            pace = (now - self._began) / progress.cost_here if progress.cost_here else 1.0
            left = minutes(pace * max(0.0, progress.cost_in_all - progress.cost))
            self._line(f"fullpipe: {count}, about {left} left")
