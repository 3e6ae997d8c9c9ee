"""The verdicts on all claims: a line of evidence for each claim and world, and the document made of these.

A line has what its checks ask, and of which values. The verdict is no part of it: it follows by the rule of
today (`finding`). Lines of earlier times have no values, but the verdict itself (`imported`).
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from fullpipe import evidence
from fullpipe.text import capitalised, cell, counted
from fullpipe_studies import catalogue
from fullpipe_studies.checks import RULE, Rule
from fullpipe_studies.claim import DECIDED, Finding, Size, Verdict, judge, meanings

_HEAD = """# What the papers claim, and whether it is reproduced

Each verdict is computed from the values of runs, by the criteria in the claim's file, to which its name
links. `fullpipe study run CLAIM --record` keeps the values in `results/claims.jsonl`, and `make docs` makes
this page from them.
"""
_FIGURES = "Figures are in [{0}]({0})."
_TABLE = """
| claim | title | world | verdict | reason | made |
|---|---|---|---|---|---|
"""
_REST = (
    "`make docs` puts all reasons, causes of misses, and how verdicts have changed on the site: [{0}]({0})."
)
_WORDS = "## How to read it"
_REASONS, _CAUSES, _CHANGES = "## Longer reasons", "## Causes of misses", "## What changed"
_CHANGES_SAID = "The last change of each verdict, with the day on which it was judged, where that is known."
_EARLIER = " by an earlier rule"
_EARLIER_SAID = (
    "“By an earlier rule”: imported with that rule's verdict, and without values that today's rule could "
    "judge. The first rule was more lenient: a mean within the limits was enough. Do not compare these rows "
    "with the others."
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
    Verdict.CANNOT: "this world cannot carry the claim’s set-up.",
}
# Words in reasons.
_IN_REASONS = {
    "undecided": "the check is neither met nor missed",
    "(direction)": "the check asks only which of two values is larger",
    "RTTmin": "the path’s RTT without queue",
    "two modes": "the values are in two groups, each with its mean",
}
_NO_MISS = {one.value for one in (Verdict.REPRODUCED, Verdict.OWN_MET, Verdict.WAITING, *_WITHOUT_RUNS)}
# A reason of more characters, with at least so many parts, is a list below the table.
_LONGEST_REASON, _FEWEST_PARTS = 300, 3
_BETWEEN = "; "
# A check's own "; undecided)" is a part of it.
_BETWEEN_CHECKS = re.compile(r"; (?!undecided\))")
# The claims' files, from the document.
_FILES = PurePosixPath("../../packages/studies/fullpipe_studies/papers")


@dataclass(frozen=True)
class Row:
    """One row: a claim in one world. `line` is None if it was not run there."""

    claim: str
    title: str
    world: str
    word: str  # The verdict.
    reason: str = ""
    form: str = ""  # What a reader must know of the runs: quick, fewer seeds.
    earlier: bool = False  # Whether another rule than today's judged it.
    missed: bool = False  # Whether some check is not met, as far as known.
    line: evidence.Line | None = None

    @property
    def verdict(self) -> str:
        """The verdict with everything that a reader must know about it."""
        form = f" ({self.form})" if self.form else ""
        return f"{self.word}{form}{_EARLIER if self.earlier else ''}"


def recorded(results: Iterable[Mapping[str, Any]]) -> list[evidence.Line]:
    """The evidence of claims that were run, from their results as `write` has them."""
    found = []
    for result in results:
        built = catalogue.built(result["id"])
        builds = dict(one.split(" ", 1) for one in result.get("builds", ()))
        for one in result["findings"]:
            if one["missing"] and not one["checks"]:
                continue  # No run of this world can be trusted: what was found before still stands.
            fingerprint = {world: build for world, build in builds.items() if world == one["world"]}
            command = result.get("command", f"fullpipe study run {result['id']}")
            made = evidence.made(f"{command} --record", fingerprint, result.get("machines", ()))
            others = [setup for setup in one["setups"] if not setup["judged"]]
            found.append(
                {
                    "key": {"claim": result["id"], "world": one["world"]},
                    "made": made | {"at": result["at"], "fullpipe": result.get("version")},
                    "size": result["size"],
                    "seeds": result["seeds"],
                    "repetitions": result["repetitions"],
                    "asked": None if built is None else built.claim.seeds_of(Size(result["size"])),
                    **{name: one[name] for name in ("missing", "awaits", "waits", "others", "fewer")},
                    "checks": [
                        *(_check(check, None) for check in one["checks"]),
                        *(_check(check, of["name"]) for of in others for check in of["checks"]),
                    ],
                    "imported": None,
                    "look_at": result.get("look_at"),
                }
            )
    return found


_CHECK = (
    *("what", "paper", "shape", "own", "unit", "least", "most", "above", "middle", "over", "needs"),
    *("values", "seeds", "under", "without", "lacks"),
)


def _check(check: Mapping[str, Any], setup: str | None) -> dict[str, Any]:
    return {**{name: check[name] for name in _CHECK}, "setup": setup}


def size(line: Mapping[str, Any]) -> tuple[int, ...]:
    """How much was run for a line: a smaller one is no replacement of it."""
    return line["size"] == Size.FULL.value, line["seeds"] or 0, line["repetitions"] or 0


def finding(line: Mapping[str, Any], rule: Rule = RULE) -> Finding:
    """What follows from a line with values, by a rule."""
    of_setup: dict[str | None, list[Mapping[str, Any]]] = {None: []}
    for one in line["checks"]:
        of_setup.setdefault(one["setup"], []).append(one)
    checks = of_setup.pop(None)
    setups = {str(name): each for name, each in of_setup.items()}
    left_open = catalogue.left_open(line["key"]["claim"])
    return judge({**line, "world": line["key"]["world"]}, checks, rule, setups, left_open)


def value(line: Mapping[str, Any], what: str) -> float | None:
    """The middle of what a check of a line is about; None if it is not known."""
    if line["imported"] is not None:
        found: float | None = line["imported"]["values"].get(what)
        return found
    return next(
        (one.ours.mean for one in finding(line).checks if one.what == what and one.ours is not None), None
    )


def rows(lines: Sequence[evidence.Line], rule: Rule = RULE) -> list[Row]:
    """A row for each claim and world, also for those without a line."""
    there = {(line["key"]["claim"], line["key"]["world"]): line for line in lines}
    found = []
    for one in catalogue.everything():
        built = catalogue.built(one.id)
        here = () if built is None else built.claim.worlds
        cannot = {} if built is None else built.claim.cannot
        # Its own worlds, and others in which it ran nevertheless.
        worlds = dict.fromkeys((*one.worlds, *(world for claim, world in there if claim == one.id), *cannot))
        for world in worlds:
            line = there.get((one.id, world))
            if line is None:
                without = Verdict.CANNOT if world in cannot else Verdict.NOT_BUILT
                word = Verdict.NOT_RUN if world in here else without
                found.append(Row(one.id, one.title, world, word.value, cannot.get(world, "")))
            else:
                found.append(_row(one.title, line, rule))
    return found


def _row(title: str, line: evidence.Line, rule: Rule) -> Row:
    claim, world = line["key"]["claim"], line["key"]["world"]
    old = line["imported"]
    if old is not None:
        missed = old["verdict"] not in _NO_MISS
        earlier = old["rule"] == 1
        return Row(claim, title, world, old["verdict"], old["reason"], old["form"], earlier, missed, line)
    of = finding(line, rule)
    fewer = line["asked"] is not None and line["seeds"] < line["asked"]
    form = [line["size"]] if line["size"] != Size.FULL.value else []
    form += [f"{line['seeds']} of {line['asked']} seeds"] if fewer else []
    reason = _flat(of.reason)
    missed = any(not check.met for check in of.checks)
    return Row(claim, title, world, of.verdict.value, reason, ", ".join(form), missed=missed, line=line)


def counts(shown: Sequence[Row]) -> str:
    """How many rows have which verdict."""
    found = Counter(one.word for one in shown)
    return ", ".join(f"{found[one.value]} {one.value}" for one in Verdict if found[one.value])


def markdown(
    shown: Sequence[Row],
    builds: evidence.Builds | None = None,
    gallery: str | None = None,
    rest: str | None = None,
    more: Sequence[str] = (),
) -> str:
    """The document: the table, what its words mean, the causes of misses, and what changed.

    `builds` is the code of today, so that older lines are named; `gallery` is the name of the document of
    figures in the same folder, and `rest` that of the document with `details`, which are then not here.
    `more` are sections that follow the table.
    """
    title, _, made = _HEAD.rstrip().partition("\n\n")
    count = f"Of {counted(len(shown), 'row')}: {counts(shown)}."
    links = [_FIGURES.format(gallery)] if gallery is not None else []
    first = {one.claim: one for one in reversed(shown)}
    table = [
        *_TABLE.strip().splitlines(),
        *(
            f"| {_linked(one.claim)} | {cell(one.title) if one is first[one.claim] else ''} | "
            f"{cell(one.world)} | {cell(one.verdict)} | {_reason(one, rest)} | "
            f"{_made(one, builds or {}, command=rest is None)} |"
            for one in shown
        ),
    ]
    words = ["", _EARLIER_SAID] if any(one.earlier for one in shown) else []
    words += _about_words(shown)
    if rest is not None:
        # What a reader came for is first. The column "made" names what is imported or older.
        links += [_REST.format(rest)]
        text = [title, "", count, "", " ".join(links), "", *table, "", *more, _WORDS, "", made, *words]
        return "\n".join(text) + "\n"
    lines = [one.line for one in shown if one.line is not None]
    ages = "" if builds is None else evidence.ages_sentence(lines, "claim", builds)
    head = [title, "", made, *(["", *links] if links else []), *(["", ages] if ages else []), "", count]
    below = [*_long_reasons(shown), *_causes(shown), *_changes(shown)]
    return "\n".join([*head, *words, "", *table, *(["", *more] if more else []), *below]) + "\n"


def details(shown: Sequence[Row]) -> str:
    """The long reasons, the causes of misses, and what changed."""
    return "\n".join([*_long_reasons(shown), *_causes(shown), *_changes(shown)]) + "\n"


def _linked(claim: str) -> str:
    """A claim's name, with a link to its file if that is in the repository."""
    built = catalogue.built(claim)
    here = built is not None and built.here
    return f"[{claim}]({_FILES / claim.replace('.', '/')}.py)" if here else claim


def _made(row: Row, builds: evidence.Builds, *, command: bool) -> str:
    """When and by which command; or that nobody noted it."""
    if row.line is None:
        return ""
    made, age = row.line["made"], evidence.age(row.line, builds) if builds else ""
    if made["at"] is None:
        return evidence.IMPORTED
    how = f": `{made['command']}`" if command else ""
    return f"{made['at'].partition('T')[0]}{f', {age}' if age else ''}{how}"


def _about_words(shown: Sequence[Row]) -> list[str]:
    used = {one.word for one in shown}
    judged = meanings(used)
    others = [(one.value, meaning) for one, meaning in _WITHOUT_RUNS.items() if one.value in used]
    words = [f"* **{capitalised(word)}**: {meaning}" for word, meaning in (*judged, *others)]
    reported = ["", *words] if words else []
    if judged:
        reported += ["", DECIDED]
    if any(one.form for one in shown):
        reported += ["", _FORM_SAID]
    reasons = [
        f"“{word.strip('()')}”, {meaning}"
        for word, meaning in _IN_REASONS.items()
        if any(word in one.reason for one in shown)
    ]
    if reasons:
        reported += ["", f"In reasons: {_BETWEEN.join(reasons)}."]
    return reported


def _parts(row: Row) -> list[str]:
    """The parts of a reason that is too long for a table; none of another one."""
    parts = _BETWEEN_CHECKS.split(row.reason)
    return parts if len(row.reason) > _LONGEST_REASON and len(parts) >= _FEWEST_PARTS else []


def _reason(row: Row, rest: str | None) -> str:
    """The cell with the reason: its first part, if the others are below the table or in `rest`."""
    if not (parts := _parts(row)):
        return cell(row.reason)
    if rest is not None:
        return f"{cell(parts[0])}{_BETWEEN}and {len(parts) - 1} more"
    # As GitHub makes it of the heading.
    anchor = re.sub(r"[^\w -]", "", f"{row.claim} {row.world}").replace(" ", "-").lower()
    return f"{cell(parts[0])}{_BETWEEN}[and {len(parts) - 1} more](#{anchor})"


def _long_reasons(shown: Sequence[Row]) -> list[str]:
    reported = []
    for row in shown:
        if parts := _parts(row):
            reported += ["", f"### {row.claim}, {row.world}", "", *(f"* {one}" for one in parts)]
    return ["", _REASONS, *reported] if reported else []


def _causes(shown: Sequence[Row]) -> list[str]:
    """The causes of misses, as far as somebody looked into them."""
    missed = dict.fromkeys(one.claim for one in shown if one.missed)
    built = (one for name in missed if (one := catalogue.built(name)) is not None)
    reported = [f"* `{one.id}`: {_sentence(one.claim.cause)}" for one in built if one.claim.cause]
    return ["", _CAUSES, "", *reported] if reported else []


def _changes(shown: Sequence[Row]) -> list[str]:
    """The last change of each verdict, in one line for those with the same change."""
    same: dict[catalogue.Change, list[str]] = {}
    for row in shown:
        built = catalogue.built(row.claim)
        change = None if built is None else built.changes.get(row.world)
        if change is not None and change.now == row.word:
            same.setdefault(change, []).append(f"`{row.claim}` {row.world}")
    reported = [
        f"* {f'{one.on}: ' if one.on else ''}{one.was} → {one.now}: {', '.join(names)}."
        f"{f' {_sentence(one.why)}' if one.why else ''}"
        for one, names in same.items()
    ]
    return ["", _CHANGES, "", _CHANGES_SAID, "", *reported] if reported else []


def _sentence(facts: str) -> str:
    """Text with one full stop at its end, on one line; nothing stays nothing."""
    return facts and f"{_flat(facts).removesuffix('.')}."


def _flat(facts: str) -> str:
    """Text on one line."""
    return re.sub(r"\s*[\r\n]\s*", " ", facts).strip()
