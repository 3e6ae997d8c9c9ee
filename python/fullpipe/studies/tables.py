"""Tables of claims, in a terminal and in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from fullpipe.show.fitting import Fitting
from fullpipe.studies.claim import Verdict
from fullpipe.system.words import minutes

_WIDTH = 160
_COLOUR = {
    Verdict.REPRODUCED.value: "green",
    Verdict.IN_SHAPE.value: "yellow",
    Verdict.NOT.value: "red",
}
# What a reader of verdicts of a short form must know.
SHORT_FORM = (
    "The quick form has fewer scenarios and seeds: its verdicts may differ from those of the full form."
)
_MARKDOWN = """# What the papers claim, and whether it is reproduced

Written by `fullpipe study claims --write docs/claims.md` from the last runs of `fullpipe study run`; not
edited by hand. Each verdict is computed from the data of the runs; its criteria are in the claim's file in
`python/fullpipe/studies`. Reproduced: all checks pass. In shape: all checks of direction, ordering and
crossover pass, a check of a number does not. Waiting: the paper is about a controller that was not run
yet; the others are checked, and a check that fails refutes the claim.

| claim | title | world | verdict | reason |
|---|---|---|---|---|
"""


def listing(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints claims with their expected time and last verdict."""
    _console().print(claims(rows))


def claims(rows: Sequence[Mapping[str, Any]]) -> Fitting:
    """One row for each claim and world: how long it takes, and the last verdict."""
    table = Fitting("Claim", "Title", "World")
    table.add_numbers("Takes")
    table.add_text("Last verdict")
    for row in rows:
        for number, (world, one) in enumerate(row["worlds"].items()):
            expected = one["expected_s"]
            takes = "" if expected is None else minutes(max(1.0, expected))
            first = (row["id"], row["title"]) if number == 0 else ("", "")
            table.add_row(*first, world, takes, _coloured(one["verdict"], _form(row, one)))
    return table


def verdicts(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints verdicts with their reasons, and that those of a short form may differ."""
    _console().print(reasons(rows))
    if any(row["size"] not in (None, "full") for row in rows):
        print(SHORT_FORM)


def reasons(rows: Sequence[Mapping[str, Any]]) -> Fitting:
    """One row for each claim and world that was run: the verdict and its reason."""
    table = Fitting("Claim", "World", "Verdict", "Reason")
    for row in rows:
        for world, one in row["worlds"].items():
            if one["verdict"] not in (Verdict.NOT_RUN.value, Verdict.NOT_BUILT.value):
                verdict = _coloured(one["verdict"], _form(row, one))
                table.add_row(row["id"], world, verdict, one["reason"])
    return table


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The same table as a Markdown document, with the causes of misses below, where they are known."""
    lines = [
        f"| {row['id']} | {row['title']} | {world} | {one['verdict']}{_form(row, one)} | "
        f"{one['reason'].replace('|', chr(92) + '|')} |"
        for row in rows
        for world, one in row["worlds"].items()
    ]
    causes = [f"* `{row['id']}`: {row['cause']}" for row in rows if row.get("cause")]
    below = ["", "## Causes of misses", "", *causes] if causes else []
    return _MARKDOWN + "\n".join([*lines, *below]) + "\n"


def _form(row: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """What a reader of a verdict must know: a short form, fewer seeds."""
    size = row["size"] if row["size"] not in (None, "full") else ""
    said = ", ".join(filter(None, (size, row.get("fewer", ""))))
    return f" ({said})" if one["reason"] and said else ""


def _coloured(verdict: str, form: str = "") -> Text:
    return Text(f"{verdict}{form}", style=_COLOUR.get(verdict, ""))


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    return console
