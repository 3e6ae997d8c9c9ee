"""The document of all verdicts, in Markdown, and the evidence that it is made of: a line for each row.

Rows of claims that were not run here are those of earlier lines, with the causes of misses, and so is the
last change of each verdict. A row that was not judged by today's rule (`claim.DECIDED`) is marked.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fullpipe import evidence
from fullpipe.text import capitalised, cell, counted
from fullpipe_studies.claim import DECIDED, Verdict, meanings

OLD = " †"
# Which rule judged a row: of the words of today's.
RULE = hashlib.sha256(DECIDED.encode()).hexdigest()[:12]

_HEAD = """# What the papers claim, and whether it is reproduced

Each verdict is computed from the data of the runs of `fullpipe study run`; its criteria are in the claim's
file in `packages/studies/fullpipe_studies`. `fullpipe study claims --record` keeps the verdicts in
`results/claims.jsonl`, and `make docs` makes `docs/claims.md` from these; it is not edited by hand.
"""
_FIGURES = "Figures are in [{0}]({0})."
_TABLE = """
| claim | title | world | verdict | reason |
|---|---|---|---|---|
"""
_REASONS, _CAUSES, _CHANGES = "## Longer reasons", "## Causes of misses", "## What changed"
_CHANGES_SAID = "The last change of each verdict, with the day on which it was judged, where that is known."
_OLD_SAID = (
    "† Judged by an earlier rule, in its words, and kept from then. The first rule was more lenient: a mean "
    "within the limits was enough. Do not compare these rows with the others."
)
# What the additions to a verdict mean.
_FORM_SAID = (
    "In brackets: “quick”, the claim was run in its quick form, with fewer scenarios and seeds; “5 of 30 "
    "seeds”, it was run with fewer seeds than it asks for."
)
# Verdicts on claims without runs.
_WITHOUT_RUNS = {
    Verdict.NOT_RUN: "the claim was not run in this world.",
    Verdict.NOT_BUILT: "the claim has no code, or none for this world.",
}
# Words in reasons.
_IN_REASONS = {
    "undecided": "the check is neither met nor missed",
    "(direction)": "the check asks only which of two values is larger",
    "RTTmin": "the path’s RTT without queue",
    "two modes": "the values are in two groups, each with its mean",
}
_NO_MISS = {
    one.value
    for one in (Verdict.REPRODUCED, Verdict.OWN_MET, Verdict.NOT_RUN, Verdict.NOT_BUILT, Verdict.WAITING)
}
# A reason of more characters, with at least so many parts, is a list below the table.
_LONGEST_REASON, _FEWEST_PARTS = 300, 3
_BETWEEN = "; "
# A check's own "; undecided)" is a part of it.
_BETWEEN_CHECKS = re.compile(r"; (?!undecided\))")


@dataclass(frozen=True)
class Change:
    """A verdict that became another one: on which day, if it is known, and why, in a sentence or nothing."""

    was: str
    now: str
    why: str
    on: str = ""


@dataclass(frozen=True)
class Line:
    """One row: a claim in one world. `verdict` has the form in brackets; `kept`: it is of an earlier line."""

    claim: str
    title: str
    world: str
    verdict: str
    reason: str
    mark: str = ""
    kept: bool = False

    @property
    def word(self) -> str:
        """The verdict without its form: "reproduced (quick)" is "reproduced"."""
        return self.verdict.partition(" (")[0]

    @property
    def shown(self) -> str:
        """The verdict with everything that a reader must know about it."""
        return f"{self.verdict}{self.mark}"

    @property
    def ran(self) -> bool:
        """Whether it is a verdict on runs."""
        return self.word not in (Verdict.NOT_RUN.value, Verdict.NOT_BUILT.value)


@dataclass(frozen=True)
class Former:
    """What earlier lines say: the rows and the last change of each by claim and world, all else by claim."""

    lines: Mapping[tuple[str, str], Line] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[tuple[str, str], Change] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    look_at: Mapping[str, str] = field(default_factory=dict)  # What to look for in the figure.
    older: str = ""  # Which claims are older than the code of today.


def lines(rows: Sequence[Mapping[str, Any]], former: Former | None = None) -> list[Line]:
    """The rows of the document. Those of claims that were not run are the `former` one's, if it has them."""
    former = former or Former()
    found = []
    for row in rows:
        for world, one in row["worlds"].items():
            line = Line(
                row["id"], row["title"], world, f"{one['verdict']}{form(row, one)}", _flat(one["reason"])
            )
            if line.ran and row.get("earlier_rule"):
                line = replace(line, mark=OLD)
            before = former.lines.get((line.claim, world))
            if line.word == Verdict.NOT_RUN.value and before is not None and before.ran:
                line = replace(before, title=line.title, kept=True)
            found.append(line)
        # Worlds that the list of claims does not name, in which it ran nevertheless.
        others = (
            one for at, one in former.lines.items() if at[0] == row["id"] and at[1] not in row["worlds"]
        )
        found += [replace(one, title=row["title"], kept=True) for one in others]
    return found


def markdown(
    rows: Sequence[Mapping[str, Any]], former: Former | None = None, gallery: str | None = None
) -> str:
    """The document: the table, what its words mean, the causes of misses, and what changed.

    `gallery` is the name of the document of figures in the same folder.
    """
    former = former or Former()
    said = lines(rows, former)
    head = [_HEAD.rstrip()]
    if gallery is not None:
        head += ["", _FIGURES.format(gallery)]
    head += ["", former.older] if former.older else []
    head += _about_marks(said)
    head += _about_words(said)
    below = [*_long_reasons(said), *_causes(rows, said, former), *_changes(rows, said, former)]
    table = (
        f"| {one.claim} | {cell(one.title)} | {cell(one.world)} | {cell(one.shown)} | {_reason(one)} |"
        for one in said
    )
    return "\n".join(head) + "\n" + _TABLE + "\n".join([*table, *below]) + "\n"


def former(found: Sequence[Mapping[str, Any]], builds: Mapping[str, str] | None = None) -> Former:
    """What lines of evidence say; with the `builds` of today, which of them are older."""
    rows, changes = {}, {}
    for line in found:
        at = line["key"]["claim"], line["key"]["world"]
        verdict = line["verdict"] + (f" ({line['form']})" if line["form"] else "")
        rows[at] = Line(at[0], "", at[1], verdict, line["reason"], "" if line["rule"] == RULE else OLD)
        if line["change"] is not None:
            changes[at] = Change(**line["change"])
    causes, commands, look_at = (
        {line["key"]["claim"]: value for line in found if (value := _part(line, name)) is not None}
        for name in ("cause", "command", "look_at")
    )
    older = "" if builds is None else evidence.older_sentence(found, "claim", builds)
    return Former(rows, causes, changes, commands, look_at, older)


def _part(line: Mapping[str, Any], name: str) -> str | None:
    found = line["made"]["command"] if name == "command" else line[name]
    return None if found is None else str(found)


def recorded(
    rows: Sequence[Mapping[str, Any]], said: Mapping[str, Mapping[str, Any]], before: Former
) -> list[evidence.Line]:
    """The evidence of the claims that were run here. `said` has their results, by claim."""
    shown = lines(rows, before)
    changes = _changed(rows, shown, before)
    about = {row["id"]: row for row in rows}
    found = []
    for line in shown:
        if line.kept or not line.ran:
            continue
        row, result = about[line.claim], said[line.claim]
        builds = dict(one.split(" ", 1) for one in result.get("builds", ()))
        fingerprint = {world: build for world, build in builds.items() if world == line.world}
        made = evidence.made(str(result.get("command", "")), fingerprint, ())
        checks: Sequence[Mapping[str, Any]] = next(
            (one["checks"] for one in result["findings"] if one["world"] == line.world), []
        )
        change = changes.get((line.claim, line.world))
        found.append(
            {
                "key": {"claim": line.claim, "world": line.world},
                "made": made | {"at": result["at"], "fullpipe": result.get("version")},
                "rule": None if line.mark == OLD else RULE,
                "form": line.verdict.removeprefix(line.word).strip(" ()"),
                "verdict": line.word,
                "reason": line.reason,
                "checks": [
                    {"what": one["what"], "value": one.get("ours"), "outcome": one["outcome"]}
                    for one in checks
                ],
                "cause": row.get("cause") or None,
                "change": None if change is None else vars(change),
                "look_at": result.get("look_at"),
            }
        )
    return found


def form(row: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """What a reader of a verdict must know: a short form, fewer seeds."""
    size = row["size"] if row["size"] not in (None, "full") else ""
    said = ", ".join(filter(None, (size, row.get("fewer", ""))))
    return f" ({said})" if one["reason"] and said else ""


def _about_marks(said: Sequence[Line]) -> list[str]:
    """How many rows another rule judged, what the comparable ones say, and what the mark means."""
    old = sum(one.mark == OLD for one in said)
    if not old:
        return []
    comparable = Counter(one.word for one in said if one.mark != OLD)
    others = ", ".join(f"{comparable[one.value]} {one.value}" for one in Verdict if comparable[one.value])
    told = f"Of {counted(len(said), 'row')}, {old} {'is' if old == 1 else 'are'} marked{OLD}."
    return ["", f"{told} Those without it: {others}." if others else told, "", _OLD_SAID]


def _about_words(said: Sequence[Line]) -> list[str]:
    used = {one.word for one in said}
    judged = meanings(used)
    others = [(one.value, meaning) for one, meaning in _WITHOUT_RUNS.items() if one.value in used]
    words = [f"* **{capitalised(word)}**: {meaning}" for word, meaning in (*judged, *others)]
    told = ["", *words] if words else []
    if judged:
        told += ["", DECIDED]
    if any("(" in one.verdict for one in said):
        told += ["", _FORM_SAID]
    reasons = [
        f"“{word.strip('()')}”, {meaning}"
        for word, meaning in _IN_REASONS.items()
        if any(word in one.reason for one in said)
    ]
    if reasons:
        told += ["", f"In reasons: {_BETWEEN.join(reasons)}."]
    return told


def _parts(line: Line) -> list[str]:
    """The parts of a reason that is too long for a table; none of another one."""
    parts = _BETWEEN_CHECKS.split(line.reason)
    return parts if len(line.reason) > _LONGEST_REASON and len(parts) >= _FEWEST_PARTS else []


def _reason(line: Line) -> str:
    """The cell with the reason: its first part, if the others are below the table."""
    if not (parts := _parts(line)):
        return cell(line.reason)
    # As GitHub makes it of the heading.
    anchor = re.sub(r"[^\w -]", "", f"{line.claim} {line.world}").replace(" ", "-").lower()
    return f"{cell(parts[0])}{_BETWEEN}[and {len(parts) - 1} more](#{anchor})"


def _long_reasons(said: Sequence[Line]) -> list[str]:
    told = []
    for line in said:
        if parts := _parts(line):
            told += ["", f"### {line.claim}, {line.world}", "", *(f"* {one}" for one in parts)]
    return ["", _REASONS, *told] if told else []


def _causes(rows: Sequence[Mapping[str, Any]], said: Sequence[Line], former: Former) -> list[str]:
    """Causes of misses. Of a kept row it is not known whether some check is missed beside the verdict."""
    kept: dict[str, list[Line]] = {}
    for line in said:
        if line.mark or line.kept:
            kept.setdefault(line.claim, []).append(line)
    told = []
    for row in rows:
        name, cause = row["id"], row.get("cause")
        if not cause and name in kept:
            before = former.causes.get(name)
            missed = any(one.word not in _NO_MISS for one in kept[name])
            # The claim's file has the latest words.
            cause = (row.get("known_cause") or before) if missed or before else None
        if cause:
            told.append(f"* `{name}`: {_sentence(cause)}")
    return ["", _CAUSES, "", *told] if told else []


def _changed(
    rows: Sequence[Mapping[str, Any]], said: Sequence[Line], former: Former
) -> dict[tuple[str, str], Change]:
    """The last change of each verdict on runs."""
    about = {row["id"]: row for row in rows}
    found = {}
    for line in said:
        at = line.claim, line.world
        before, change = former.lines.get(at), former.changes.get(at)
        if before is not None and before.ran and line.ran and before.word != line.word:
            row = about[line.claim]
            why = row.get("changed") or _told_by_words(before.word, line.word)
            on = row.get("on", "")
            change = Change(before.word, line.word, _sentence(why), on if _DAY.fullmatch(on) else "")
        if change is not None and change.now == line.word:
            found[at] = change
    return found


def _changes(rows: Sequence[Mapping[str, Any]], said: Sequence[Line], former: Former) -> list[str]:
    """The last change of each verdict, in one line for those that changed alike."""
    alike: dict[Change, list[str]] = {}
    for (claim, world), change in _changed(rows, said, former).items():
        alike.setdefault(change, []).append(f"`{claim}` {world}")
    told = [
        f"* {f'{one.on}: ' if one.on else ''}{one.was} → {one.now}: {', '.join(names)}."
        f"{f' {one.why}' if one.why else ''}"
        for one, names in alike.items()
    ]
    return ["", _CHANGES, "", _CHANGES_SAID, "", *told] if told else []


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _told_by_words(was: str, verdict: str) -> str:
    """What the words alone tell about a change of the verdict."""
    if verdict.startswith("own") and not was.startswith("own"):
        return "The paper gives no result"
    if verdict == Verdict.INCONCLUSIVE.value:
        return "Its runs do not decide it"
    return ""


def _sentence(said: str) -> str:
    """Text with one full stop at its end, on one line; nothing stays nothing."""
    return said and f"{_flat(said).removesuffix('.')}."


def _flat(said: str) -> str:
    """Text on one line."""
    return re.sub(r"\s*[\r\n]\s*", " ", said).strip()
