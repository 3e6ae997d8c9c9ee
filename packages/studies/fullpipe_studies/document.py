"""The document of all verdicts, in Markdown: written from results, and read again for what it said before.

Rows of claims that were not run here are kept, with the causes of misses, and so is the last change of each
verdict. A kept row is marked by the rule that judged it: `KEPT` if the former document has today's rule, word
for word (`claim.DECIDED`), `OLD` if not. So are results that were judged by another one.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fullpipe.text import capitalised, cell, counted, joined
from fullpipe_studies.claim import DECIDED, Verdict, meanings

OLD, KEPT = " †", " ‡"

_HEAD = """# What the papers claim, and whether it is reproduced

Written by `fullpipe study claims --write docs/claims.md` from the last runs of `fullpipe study run`; not
edited by hand. Each verdict is computed from the data of the runs; its criteria are in the claim's file in
`packages/studies/fullpipe_studies`.
"""
_FIGURES = "Figures are in [{0}]({0})."
_FIGURES_FOUND = re.compile(r"^Figures are in \[([\w.-]+)\]\(\1\)\.$", re.MULTILINE)
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
_KEPT_SAID = (
    "‡ Kept from an earlier version of this document, and judged by the rule below. The runs are not on the "
    "machine that wrote this version."
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
    """One row: a claim in one world. `verdict` has the form in brackets, `mark` is that of a kept row."""

    claim: str
    title: str
    world: str
    verdict: str
    reason: str
    mark: str = ""

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
    """What a document said: its rows and the last change of each by claim and world, causes by claim.

    `gallery` is the name of the document of its figures, in the same folder.
    """

    lines: Mapping[tuple[str, str], Line] = field(default_factory=dict)
    causes: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[tuple[str, str], Change] = field(default_factory=dict)
    gallery: str | None = None


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
                line = replace(before, title=line.title, mark=before.mark or KEPT)
            found.append(line)
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
    head += _about_marks(said)
    head += _about_words(said)
    below = [*_long_reasons(said), *_causes(rows, said, former), *_changes(rows, said, former)]
    table = (
        f"| {one.claim} | {cell(one.title)} | {cell(one.world)} | {cell(one.shown)} | {_reason(one)} |"
        for one in said
    )
    return "\n".join(head) + "\n" + _TABLE + "\n".join([*table, *below]) + "\n"


def former(text: str) -> Former:
    """What a document says that `markdown` made."""
    parts = dict.fromkeys((_REASONS, _CAUSES, _CHANGES), "")
    table, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    for section in sections:
        title, _, rest = section.partition("\n")
        parts[title] = rest
    long = _listed_reasons(parts[_REASONS])
    # Rows of another rule are not comparable with today's.
    mark = "" if DECIDED in table else OLD
    found = {}
    for row in table.splitlines():
        # A reason may have an escaped bar.
        cells = [one.strip().replace(r"\|", "|") for one in re.split(r"(?<!\\)\|", row)]
        if len(cells) == 7 and "." in cells[1]:
            claim, title, world, verdict, reason = cells[1:6]
            own = next((one for one in (OLD, KEPT) if verdict.endswith(one)), "")
            if own != OLD:
                own = mark
            verdict = verdict.removesuffix(OLD).removesuffix(KEPT)
            found[claim, world] = Line(claim, title, world, verdict, long.get((claim, world), reason), own)
    causes = dict(re.findall(r"^\* `([^`]+)`: (.+)$", parts[_CAUSES], re.MULTILINE))
    figures = _FIGURES_FOUND.search(table)
    return Former(found, causes, _listed_changes(parts[_CHANGES]), figures[1] if figures else None)


def form(row: Mapping[str, Any], one: Mapping[str, Any]) -> str:
    """What a reader of a verdict must know: a short form, fewer seeds."""
    size = row["size"] if row["size"] not in (None, "full") else ""
    said = ", ".join(filter(None, (size, row.get("fewer", ""))))
    return f" ({said})" if one["reason"] and said else ""


def _about_marks(said: Sequence[Line]) -> list[str]:
    """How many rows are kept and by which rule, what the comparable ones say, and what the marks mean."""
    counts = {mark: sum(one.mark == mark for one in said) for mark in (OLD, KEPT)}
    if not any(counts.values()):
        return []
    marked = joined(
        [f"{count} {'is' if count == 1 else 'are'} marked{mark}" for mark, count in counts.items() if count]
    )
    comparable = Counter(one.word for one in said if one.mark != OLD)
    others = ", ".join(f"{comparable[one.value]} {one.value}" for one in Verdict if comparable[one.value])
    told = f"Of {counted(len(said), 'row')}, {marked}."
    if others:
        told += f" {'Those without †' if counts[OLD] else 'All'}: {others}."
    notes = {OLD: _OLD_SAID, KEPT: _KEPT_SAID}
    return ["", told, *(line for mark, note in notes.items() if counts[mark] for line in ("", note))]


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


def _listed_reasons(section: str) -> dict[tuple[str, str], str]:
    found = {}
    for part in re.split(r"^### ", section, flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        claim, _, world = title.partition(", ")
        found[claim, world] = _BETWEEN.join(re.findall(r"^\* (.+)$", rest, re.MULTILINE))
    return found


def _causes(rows: Sequence[Mapping[str, Any]], said: Sequence[Line], former: Former) -> list[str]:
    """Causes of misses. Of a kept row it is not known whether some check is missed beside the verdict."""
    kept: dict[str, list[Line]] = {}
    for line in said:
        if line.mark:
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


def _changes(rows: Sequence[Mapping[str, Any]], said: Sequence[Line], former: Former) -> list[str]:
    """The last change of each verdict on runs, in one line for those that changed alike."""
    about = {row["id"]: row for row in rows}
    alike: dict[Change, list[str]] = {}
    for line in said:
        at = line.claim, line.world
        before, change = former.lines.get(at), former.changes.get(at)
        if before is not None and before.ran and line.ran and before.word != line.word:
            row = about[line.claim]
            why = row.get("changed") or _told_by_words(before.word, line.word)
            on = row.get("on", "")
            change = Change(before.word, line.word, _sentence(why), on if _DAY.fullmatch(on) else "")
        if change is not None and change.now == line.word:
            alike.setdefault(change, []).append(f"`{line.claim}` {line.world}")
    told = [
        f"* {f'{one.on}: ' if one.on else ''}{one.was} → {one.now}: {', '.join(names)}."
        f"{f' {one.why}' if one.why else ''}"
        for one, names in alike.items()
    ]
    return ["", _CHANGES, "", _CHANGES_SAID, "", *told] if told else []


_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NAMES = re.compile(r"`([^`]+)` ([\w-]+)")
_CHANGED = re.compile(
    rf"\* (?:({_DAY.pattern}): )?([^`:]+) → ([^`:]+): ({_NAMES.pattern}(?:, {_NAMES.pattern})*)\.(?: (.+))?"
)
# As documents had it until November 2026.
_CHANGED_ALONE = re.compile(r"\* `([^`]+)`, ([\w-]+): ([^.]+) → ([^.]+)\.(?: (.+))?")


def _listed_changes(section: str) -> dict[tuple[str, str], Change]:
    found = {}
    for line in section.splitlines():
        if one := _CHANGED.fullmatch(line):
            change = Change(one[2], one[3], one[9] or "", one[1] or "")
            found.update(dict.fromkeys(_NAMES.findall(one[4]), change))
        elif one := _CHANGED_ALONE.fullmatch(line):
            found[one[1], one[2]] = Change(one[3], one[4], one[5] or "")
    return found


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
