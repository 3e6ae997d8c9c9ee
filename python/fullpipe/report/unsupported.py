"""The settings of a run that a world does not support; each controller is named once for all its runs.

They are no failures: the run went on without them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fullpipe.measures.run import Runs
from fullpipe.report.figures import theme
from fullpipe.report.page import text
from fullpipe.text import counted, joined

# More sentences than this are only counted in a terminal: every controller of ours over QUIC has some.
_MOST_SAID = 2


@dataclass(frozen=True)
class Unsupported:
    """The sentences that alternatives have in common in a world."""

    labels: Sequence[str]
    world: str
    sentences: Sequence[str]

    def note(self, where: str) -> str:
        """One line for a terminal; `where` has the sentences that it does not repeat."""
        several = len(self.sentences) > _MOST_SAID
        message = (
            f"{counted(len(self.sentences), 'thing')}; {where}." if several else " ".join(self.sentences)
        )
        return f"Limits of {self.world} for {joined(self.labels)}, no failures: {message}"

    def html(self) -> str:
        """All sentences."""
        listed = "".join(f"<li>{text(sentence)}</li>" for sentence in self.sentences)
        return f"<p>{text(f'{joined(self.labels)}, {theme.world_title(self.world)}')}:</p><ul>{listed}</ul>"


def unsupported_runs(results: Runs) -> list[Unsupported]:
    """What was not supported. Alternatives with the same sentences stand together."""
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for group in results.groups:
        if group.unsupported:
            together.setdefault((group.world, tuple(group.unsupported)), []).append(group.label)
    return [Unsupported(labels, world, message) for (world, message), labels in together.items()]


def section(found: Sequence[Unsupported]) -> str:
    """The part of a page that lists them; empty if there are none."""
    if not found:
        return ""
    title = '<h2>Not supported</h2><p class="quiet">No failures: the runs went on without these settings.</p>'
    return title + "".join(one.html() for one in found)
