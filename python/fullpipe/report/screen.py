"""The console of every table and every progress bar."""

import sys
from collections.abc import Iterable
from typing import IO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fullpipe.report import streams
from fullpipe.text import printable

# Wide enough for every table where no terminal limits it.
WIDTH = 160


class Screen(Console):
    """A console that prints text as it is: brackets are no markup, and escape sequences are its own."""

    def __init__(
        self, *, stderr: bool = False, file: IO[str] | None = None, width: int | None = None
    ) -> None:
        super().__init__(
            file=file or streams.styled(sys.stderr if stderr else sys.stdout),
            stderr=stderr,
            width=width,
            markup=False,
            emoji=False,
            highlight=False,
        )
        if width is None and not self.is_terminal:
            self.width = WIDTH

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The parts of what is printed, each with printable text."""
        for one in super().render(renderable, options):
            if one.control:
                yield one
            else:
                # Links are escape sequences that a text with such sequences could bring along.
                style = (
                    one.style and one.style.update_link(None) if one.style and one.style.link else one.style
                )
                yield Segment(printable(one.text), style)
