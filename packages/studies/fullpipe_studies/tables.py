"""Tables of claims in a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from fullpipe.report.fitting import Fitting
from fullpipe.report.screen import Screen
from fullpipe.text import minutes
from fullpipe_studies.checks import FEWEST
from fullpipe_studies.claim import Verdict

_COLOUR = {
    Verdict.REPRODUCED.value: "green",
    Verdict.IN_SHAPE.value: "yellow",
    Verdict.NOT.value: "red",
    Verdict.DEPENDS.value: "magenta",
    Verdict.INCONCLUSIVE.value: "magenta",
    Verdict.OWN_MET.value: "cyan",
    Verdict.OWN_IN_SHAPE.value: "cyan",
    Verdict.OWN_NOT.value: "red",
}
# What a reader of verdicts of a short form must know.
SHORT_FORM = (
    "The quick form has fewer scenarios and seeds: its verdicts are about these only, and may differ from "
    f"those of the full form. A check with fewer than {FEWEST} seeds is undecided."
)


def listing(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints claims with their expected time and last verdict."""
    Screen().print(claims(rows))


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
    Screen().print(reasons(rows))
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


def controls(answers: Sequence[Mapping[str, Any]]) -> None:
    """Prints a row for each control: what it gave, and the first of the checks that reject it."""
    table = Fitting("Claim", "Control", "Verdict", "Answer", "By")
    for one in answers:
        by = [f"{check['what']}: {check['ours']} (expected {check['expected']})" for check in one["by"][:1]]
        by += [f"and {len(one['by']) - 1} more"] if len(one["by"]) > 1 else []
        table.add_row(one["claim"], one["control"], _coloured(one["verdict"]), one["answer"], "; ".join(by))
    Screen().print(table)


def _coloured(verdict: str, form: str = "") -> Text:
    return Text(f"{verdict}{form}", style=_COLOUR.get(verdict, ""))


def _form(row: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """What a reader of a verdict must know: not of a run here, a short form, fewer seeds."""
    if one.get("recorded"):
        return f" ({', '.join(filter(None, ('recorded', one['form'])))})"
    size = row["size"] if row["size"] not in (None, "full") else ""
    facts = ", ".join(filter(None, (size, row.get("fewer", ""))))
    return f" ({facts})" if one["reason"] and facts else ""
