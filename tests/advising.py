"""The examples of docs/how-to/advisor/examples.md: their commands, and what the page shows of the answers.

`python tests/advising.py` runs all commands and writes their answers into the page.
"""

import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from fullpipe.cli import app as cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "how-to" / "advisor" / "examples.md"
# Those of the kernel that the page was made on.
CANDIDATES = ("reno", "cubic", "bbr1")
_BLOCK = re.compile(
    r"^```console\n\$ (?P<command>fullpipe advise .*?[^\\])\n(?P<shown>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Example:
    """A command of the page, and what it shows."""

    command: str
    shown: str

    @property
    def words(self) -> list[str]:
        """The command's arguments, with the candidates of the page."""
        words = shlex.split(self.command.replace("\\\n", " "))[1:]
        if "--candidates" not in words:
            words += [word for name in CANDIDATES for word in ("--candidates", name)]
        return words

    def run(self) -> str:
        """What the page should show."""
        done = CliRunner().invoke(cli.app, self.words)
        assert done.exit_code == 0, done.output
        return shortened(done.stdout)


def examples(text: str) -> Iterator[Example]:
    """Every example of a page."""
    for match in _BLOCK.finditer(text):
        yield Example(match["command"], match["shown"])


def shortened(answer: str) -> str:
    """The sentence, the table, and what would change the answer, without the ranges that were looked at."""
    head, _, rest = answer.partition("\nScore")
    _, change, values = rest.partition("\nWhat would change the answer")
    _, nothing, seen = rest.partition("\nNo change of the answer was seen")
    # The page's commands are the inputs, and a machine's own pacing differs.
    omitted = ("Given: ", "Assumed: ", "On this machine as it is ")
    lines = [line.rstrip() for line in head.splitlines() if not line.startswith(omitted)]
    if change:
        title, *crossed = values.split("\n\n")[0].splitlines()
        crossed = [one for one in crossed if not one.startswith("  looked at: ")]
        lines += ["", f"What would change the answer{title}", *crossed]
    elif nothing:
        title, *_ = seen.split("\n\n")[0].splitlines()
        lines += ["", f"No change of the answer was seen{title.removesuffix(':')}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the answers into the page."""
    text = PAGE.read_text(encoding="utf-8")

    def written(match: re.Match[str]) -> str:
        example = Example(match["command"], match["shown"])
        print(example.command, file=sys.stderr)
        return f"```console\n$ {example.command}\n{example.run()}```"

    PAGE.write_text(_BLOCK.sub(written, text), encoding="utf-8")


if __name__ == "__main__":
    main()
