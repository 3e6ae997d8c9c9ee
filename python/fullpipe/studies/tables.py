"""Tables of claims, in a terminal and in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from fullpipe.studies.claim import Verdict
from fullpipe.sweeps.watched import minutes

_WIDTH = 160
_COLOUR = {
    Verdict.REPRODUCED.value: "green",
    Verdict.IN_SHAPE.value: "yellow",
    Verdict.NOT.value: "red",
}
_MARKDOWN = """# What the papers claim, and what became of it

Written by `fullpipe study claims --write docs/claims.md` from the last runs of `fullpipe study run`; not
edited by hand. Each verdict is computed from the data of the runs; its criteria are in the claim's file in
`python/fullpipe/studies`. Reproduced: all checks are met. In shape: all checks of direction, ordering and
crossover are, a number is not. Waiting: the paper speaks of a controller that is not there yet; what stands
beside it is checked, and a miss there is a miss.

| claim | | world | verdict | reason |
|---|---|---|---|---|
"""


def listing(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints claims with their expected time and last verdict."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("Claim", "", "World", "Takes", "Last verdict"):
        table.add_column(head, justify="right" if head == "Takes" else "left")
    for row in rows:
        for number, (world, one) in enumerate(row["worlds"].items()):
            expected = one["expected_s"]
            takes = "" if expected is None else minutes(max(1.0, expected))
            first = (row["id"], row["title"]) if number == 0 else ("", "")
            table.add_row(*first, world, takes, _coloured(one["verdict"]))
    _console().print(table)


def verdicts(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints verdicts with their reasons."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("Claim", "World", "Verdict", "Reason"):
        table.add_column(head, overflow="fold")
    for row in rows:
        for world, one in row["worlds"].items():
            if one["verdict"] not in (Verdict.NOT_RUN.value, Verdict.NOT_BUILT.value):
                table.add_row(row["id"], world, _coloured(one["verdict"]), one["reason"])
    _console().print(table)


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The same as a document."""
    lines = [
        f"| {row['id']} | {row['title']} | {world} | {one['verdict']}{_form(row, one)} | "
        f"{one['reason'].replace('|', chr(92) + '|')} |"
        for row in rows
        for world, one in row["worlds"].items()
    ]
    return _MARKDOWN + "\n".join(lines) + "\n"


def _form(row: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    return f" ({row['size']})" if one["reason"] and row["size"] not in (None, "full") else ""


def _coloured(verdict: str) -> str:
    colour = _COLOUR.get(verdict)
    return f"[{colour}]{verdict}[/{colour}]" if colour else verdict


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    return console
