"""Controls: a claim's checks, judged on runs of wrong controllers. They must reject them.

A control puts another controller in place of the claim's own and changes nothing else (`claim.Control`). It
is rejected if it misses a check that decides the verdict, and that the claim's own controller does not miss.
A claim whose controls pass asks less than its paper states.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from fullpipe import evidence
from fullpipe.text import cell, counted, joined
from fullpipe_studies import catalogue, document, write
from fullpipe_studies.catalogue import Built
from fullpipe_studies.checks import Check, Outcome
from fullpipe_studies.claim import Claim, Finding, Size
from fullpipe_studies.run import REPETITIONS, Plan, Result

FILE = "controls.jsonl"
# The world in which controls run, and how many of a claim have to be rejected.
WORLD, FEWEST = "sim", 2
# In the quick form, so many seeds decide most checks; a claim may have fewer in its full form.
SEEDS = 6


class Answer(Enum):
    """What a claim's checks say of a control."""

    REJECTED = "rejected"
    NUMBER = "rejected by a number only"  # The verdict is "in shape".
    UNDECIDED = "undecided"  # No check is decided, or there are too few seeds for some.
    NOT_JUDGED = "not judged"  # Runs are missing, of the control or of the claim's own controller.
    PASSED = "not rejected"


# The columns that the table of the document always has.
_ALWAYS = (Answer.REJECTED, Answer.NUMBER, Answer.PASSED)


@dataclass(frozen=True)
class Controlled:
    """A control of a claim, with what its runs gave and which checks reject it."""

    claim: str
    control: str
    verdict: str
    by: Sequence[Check]
    answer: Answer

    def data(self) -> dict[str, Any]:
        """As JSON."""
        by = [{"what": one.what, "ours": one.facts, "expected": one.expected} for one in self.by]
        return {
            "claim": self.claim,
            "control": self.control,
            "verdict": self.verdict,
            "answer": self.answer.value,
            "by": by,
        }

    @staticmethod
    def of(claim: str, control: str, own: Finding, wrong: Finding) -> "Controlled":
        """Compares a control with the claim's own controller."""
        if own.missing or wrong.missing:
            return Controlled(claim, control, wrong.verdict.value, [], Answer.NOT_JUDGED)
        lost = {one.what for one in own.checks if one.outcome is Outcome.MISSED}
        by = [one for one in wrong.deciding if one.outcome is Outcome.MISSED and one.what not in lost]
        # Without checks of shape, numbers decide (`Finding.verdict`).
        decisive = [one for one in by if one.shape] if any(one.shape for one in wrong.deciding) else by
        undecided = [one for one in wrong.deciding if one.outcome is Outcome.UNDECIDED]
        if by:
            answer = Answer.REJECTED if decisive else Answer.NUMBER
        elif len(undecided) == len(wrong.deciding) or any(one.few for one in undecided):
            answer = Answer.UNDECIDED
        else:
            answer = Answer.PASSED
        return Controlled(claim, control, wrong.verdict.value, decisive or by, answer)


def plans(built: Built, size: Size, seeds: int | None = None) -> list[Plan]:
    """The runs of a claim: with its own controller, and with each of its controls."""
    count = seeds if seeds is not None else _seeds(built.claim, size)
    given = (None, *built.claim.controls) if built.claim.controls else ()
    return [Plan(built, size, (WORLD,), count, REPETITIONS, control) for control in given]


def _seeds(claim: Claim, size: Size) -> int:
    return max(claim.seeds_of(size), min(claim.seeds, SEEDS))


def lines(results: Iterable[Result]) -> list[evidence.Line]:
    """The evidence: a line for each control, and one for the claim's own controller."""
    found = []
    for result in results:
        control = None if result.plan.control is None else result.plan.control.name
        for line in document.recorded([write.about(result) | {"command": _command(result.plan)}]):
            if line["key"]["world"] == WORLD:
                kept = {name: part for name, part in line.items() if name not in ("imported", "look_at")}
                kept["key"] = line["key"] | {"control": control}
                kept["checks"] = [one for one in line["checks"] if one["setup"] is None]
                found.append(kept)
    return found


def record(path: Path, made: Sequence[evidence.Line]) -> None:
    """Puts lines into the evidence, in place of all of their claims: a control may be one no more."""
    claims = {line["key"]["claim"] for line in made}
    evidence.replace(path, made, gone=lambda line: line["key"]["claim"] in claims)


def _command(plan: Plan) -> str:
    words = ["fullpipe", "study", "controls", plan.claim.id]
    words += ["--full"] if plan.size is Size.FULL else []
    words += ["--seeds", str(plan.seeds)] if plan.seeds != _seeds(plan.claim.claim, plan.size) else []
    return shlex.join(words)


def controlled(recorded: Sequence[Mapping[str, Any]]) -> list[Controlled]:
    """What the lines say, by today's rule, in the order of the claims."""
    findings: dict[str, dict[str | None, Finding]] = {}
    for line in recorded:
        findings.setdefault(line["key"]["claim"], {})[line["key"]["control"]] = document.finding(line)
    return [
        Controlled.of(claim, control, found[None], wrong)
        for claim in (one.id for one in catalogue.everything())
        for found in (findings.get(claim, {}),)
        for control, wrong in found.items()
        if control is not None and None in found
    ]


def markdown(recorded: Sequence[Mapping[str, Any]], builds: evidence.Builds, *, every: bool) -> str:
    """The section of the document: every claim, or only those that reject too few."""
    by_claim: dict[str, dict[Answer, list[str]]] = {}
    for one in controlled(recorded):
        by_claim.setdefault(one.claim, {}).setdefault(one.answer, []).append(one.control)
    few = {
        claim: answers
        for claim, answers in by_claim.items()
        if len(answers.get(Answer.REJECTED, ())) < FEWEST
    }
    shown = by_claim if every else few
    claims = [one.id for one in catalogue.find(["all"])]
    not_run = [one for one in claims if one not in by_claim]
    head = (
        "## Controls\n\nThe same checks, on runs of wrong controllers: "
        f"{len(by_claim) - len(few)} of {counted(len(claims), 'claim')} reject at least {FEWEST} controls."
        f"{f' Not run: {joined(not_run)}.' if not_run else ''}"
        f"{' The others:' if few and not every else ''}"
    )
    ages = evidence.ages_sentence(recorded, "claim", builds)
    text = [head, *(["", ages] if ages and every else [])]
    if shown:
        # Without columns that no claim needs; the last has the reason why a claim is not controlled.
        columns = [one for one in Answer if one in _ALWAYS or any(one in each for each in shown.values())]
        titles = [one.value.removeprefix("rejected ") for one in columns]
        text += ["", f"| claim | {' | '.join(titles)} |", f"|{'---|' * (1 + len(columns))}"]
        for claim, answers in shown.items():
            cells = [joined(answers.get(answer, [])) for answer in columns]
            if (built := catalogue.built(claim)) is not None and built.claim.uncontrolled:
                cells[-1] += f": {built.claim.uncontrolled}"
            text.append(f"| {claim} | {' | '.join(map(cell, cells))} |")
    return "\n".join(text) + "\n"
