"""Tables of claims, in a terminal and in Markdown."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.text import Text

from fullpipe.show.fitting import Fitting
from fullpipe.studies.checks import FEWEST
from fullpipe.studies.claim import DECIDED, Verdict, meanings
from fullpipe.system.words import capitalised, minutes

_WIDTH = 160
_COLOUR = {
    Verdict.REPRODUCED.value: "green",
    Verdict.IN_SHAPE.value: "yellow",
    Verdict.NOT.value: "red",
    Verdict.INCONCLUSIVE.value: "magenta",
    Verdict.OWN_MET.value: "cyan",
    Verdict.OWN_IN_SHAPE.value: "cyan",
    Verdict.OWN_NOT.value: "red",
}


@dataclass(frozen=True)
class Former:
    """What a document said: verdict and reason by claim and world, and the causes of misses by claim."""

    verdicts: Mapping[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)


# What a reader of verdicts of a short form must know.
SHORT_FORM = (
    "The quick form has fewer scenarios and seeds: its verdicts are about these only, and may differ from "
    f"those of the full form. A check with fewer than {FEWEST} seeds is undecided, unless there is no chance."
)
_MARKDOWN = """# What the papers claim, and whether it is reproduced

Written by `fullpipe study claims --write docs/claims.md` from the last runs of `fullpipe study run`; not
edited by hand. Each verdict is computed from the data of the runs; its criteria are in the claim's file in
`python/fullpipe/studies`.
"""
_HEAD = """
| claim | title | world | verdict | reason |
|---|---|---|---|---|
"""
_CAUSES = "## Causes of misses"
# In the document, of a row that is kept from its former version.
KEPT = " †"
_KEPT_SAID = (
    "† Kept from an earlier version of this document, because its runs are not on the machine that wrote it. "
    "The verdict is by the words and the rule of that time, which was more lenient: a mean within the limits "
    "was enough. Do not compare these rows with the others."
)
# What the additions to a verdict mean.
_FORM_SAID = (
    "In brackets: “quick”, the claim was run in its quick form, with fewer scenarios and seeds; “5 of 30 "
    "seeds”, it was run with fewer seeds than it asks for."
)


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


def markdown(rows: Sequence[Mapping[str, Any]], former: Former | None = None) -> str:
    """The same table as a Markdown document, with what its words mean, and the causes of misses.

    Rows that were not run are those of the `former` document, if it has them. What changed since that
    document is below the table.
    """
    former = former or Former()
    lines, said, changes, kept = [], [], [], set()
    for row in rows:
        for world, one in row["worlds"].items():
            before = former.verdicts.get((row["id"], world))
            verdict, reason = f"{one['verdict']}{_form(row, one)}", one["reason"].replace("|", chr(92) + "|")
            if one["verdict"] == Verdict.NOT_RUN.value and before is not None:
                verdict, reason = before
                if not verdict.endswith(KEPT) and verdict != Verdict.NOT_RUN.value:
                    verdict += KEPT
                if verdict.endswith(KEPT):
                    kept.add(row["id"])
            elif before is not None and (was := _word(before[0])) != one["verdict"]:
                why = row.get("changed") or _changed(was, one["verdict"])
                changes.append(f"* `{row['id']}`, {world}: {was} → {one['verdict']}.{why and f' {why}.'}")
            said.append(verdict)
            lines.append(f"| {row['id']} | {row['title']} | {world} | {verdict} | {reason} |")
    used = {_word(verdict) for verdict in said}
    words = [f"* **{capitalised(word)}**: {meaning}" for word, meaning in meanings(used)]
    head = [_MARKDOWN.rstrip()]
    if kept:
        head += ["", _counts(said), "", _KEPT_SAID]
    if words:
        head += ["", *words, "", DECIDED]
    if any("(" in verdict for verdict in said):
        head += ["", _FORM_SAID]
    told = [
        (row["id"], row.get("cause") or (former.causes.get(row["id"]) if row["id"] in kept else None))
        for row in rows
    ]
    causes = [f"* `{name}`: {cause.removesuffix('.')}." for name, cause in told if cause]
    below = ["", _CAUSES, "", *causes] if causes else []
    if changes:
        below += ["", "## What changed", "", *changes]
    return "\n".join(head) + "\n" + _HEAD + "\n".join([*lines, *below]) + "\n"


def _counts(said: Sequence[str]) -> str:
    """How many verdicts of a document are kept, and what the others are."""
    found = Counter(_word(verdict) for verdict in said if not verdict.endswith(KEPT))
    others = ", ".join(f"{found[one.value]} {one.value}" for one in Verdict if found[one.value])
    count = sum(verdict.endswith(KEPT) for verdict in said)
    return f"Of {len(said)} rows, {count} are marked †.{others and f' The others: {others}.'}"


def _word(verdict: str) -> str:
    """A verdict of a document without its form: "reproduced (quick)" is "reproduced"."""
    return verdict.removesuffix(KEPT).partition(" (")[0]


def _changed(was: str, verdict: str) -> str:
    """What the words alone tell about a change of the verdict."""
    if verdict.startswith("own") and not was.startswith("own"):
        return "The paper gives no result"
    if verdict == Verdict.INCONCLUSIVE.value:
        return "Its runs do not decide it"
    return ""


def former(text: str) -> Former:
    """What a document says that `markdown` made."""
    table, _, causes = text.partition(_CAUSES)
    verdicts = {}
    for line in table.splitlines():
        # A reason may have an escaped bar.
        cells = [one.strip() for one in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 7 and "." in cells[1]:
            verdicts[cells[1], cells[3]] = cells[4], cells[5]
    listed = re.findall(r"^\* `([^`]+)`: (.+)$", causes.partition("\n## ")[0], re.MULTILINE)
    return Former(verdicts, dict(listed))


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
