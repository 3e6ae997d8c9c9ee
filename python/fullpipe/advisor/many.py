"""Answers for many paths: one for each, and a summary."""

import csv
import io
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from fullpipe._native import ScenarioError
from fullpipe.advisor import goals
from fullpipe.advisor.advice import (
    BUDGET_S,
    MOST_BUDGET_S,
    Advice,
    Watcher,
    advise,
    short_budget,
    with_candidates,
)
from fullpipe.advisor.inputs import Inputs, given_of
from fullpipe.advisor.question import Question
from fullpipe.advisor.ranking import FIRST
from fullpipe.advisor.sources.source import Path, Paths
from fullpipe.advisor.trials import Bench
from fullpipe.errors import mistake, stated
from fullpipe.runs.worlds import registry
from fullpipe.text import counted, joined


@dataclass(frozen=True)
class Answered:
    """A path of a source, and the answer."""

    path: Path
    advice: Advice

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to know about the path: notes, and what the answer does not use."""
        unused = (f"not used: {one}" for one in self.path.left_out)
        return (*self.path.notes, *self.advice.question.notes, *unused)


@dataclass(frozen=True)
class Refused:
    """A path of a source without an answer, and why."""

    path: Path
    why: str


@dataclass(frozen=True)
class Answers:
    """The answers of a source, in its order."""

    answered: tuple[Answered, ...]
    # What the source has besides its paths.
    left_out: tuple[str, ...] = ()
    # The paths that cannot be answered, or for which the time was not enough.
    refused: tuple[Refused, ...] = ()

    @property
    def paths(self) -> int:
        """How many paths the source has."""
        return len(self.answered) + len(self.refused)

    def share(self, candidate: str | None) -> float:
        """The share of the weight where a candidate is the clear winner; of None, where nobody is."""
        weight = sum(one.path.weight for one in self.answered)
        won = sum(one.path.weight for one in self.answered if one.advice.winner == candidate)
        return won / weight if weight else 0.0

    @property
    def inputs(self) -> Inputs:
        """What all answers have in common; a field that differs is `by path`."""
        groups: dict[str, dict[str, str]] = {"given": {}, "measured": {}, "assumed": {}}
        for name, group in groups.items():
            values: dict[str, list[str]] = {}
            for one in self.answered:
                for key, value in getattr(one.advice.inputs, name).items():
                    values.setdefault(key, []).append(value)
            for key, all_values in values.items():
                same = all_values[0] if len(set(all_values)) == 1 else "by path"
                some = f" (of {len(all_values)} of {counted(len(self.answered), 'path')})"
                group[key] = same if len(all_values) == len(self.answered) else same + some
        return Inputs(**groups, left_out=self.left_out)

    @property
    def candidates(self) -> list[str]:
        """All of them, those with the largest share first."""
        names = dict.fromkeys(name for one in self.answered for name in one.advice.question.candidates)
        return sorted(names, key=lambda name: -self.share(name))

    def __str__(self) -> str:
        won = [
            f"{name} on {100 * self.share(name):.0f} %" for name in self.candidates if self.share(name) > 0
        ]
        none = f"no clear winner on {100 * self.share(None):.0f} %"
        message = (
            f"{counted(len(self.answered), 'path')}: {joined([*won, none] if self.share(None) > 0 else won)}."
        )
        if self.refused:
            message += f" {len(self.answered)} of {counted(self.paths, 'path')} could be answered."
        return message

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            "answer": str(self),
            "left_out": list(self.left_out),
            "paths": [
                {"name": one.path.name, "weight": one.path.weight}
                | (answer := one.advice.to_dict())
                | {"notes": [*one.path.notes, *answer["notes"]]}
                for one in self.answered
            ],
            "not_answered": [
                {"name": one.path.name, "weight": one.path.weight, "why": one.why} for one in self.refused
            ],
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=2)

    def to_csv(self) -> str:
        """One row for each path: name, winner, leaders, sentence, and where its fields come from."""
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        groups = [one.name for one in fields(Inputs)]
        out.writerow(["name", "weight", "winner", "leaders", "answer", "notes", *groups])
        for one in self.answered:
            leaders = "" if one.advice.parts or one.advice.buffers else " ".join(one.advice.ranking.leaders)
            out.writerow(
                [
                    _cell(one.path.name),
                    f"{one.path.weight:g}",
                    one.advice.winner or "",
                    leaders,
                    one.advice.answer,
                    _cell("; ".join(one.path.notes)),
                    *map(_cell, one.advice.inputs.texts().values()),
                ]
            )
        for refused in self.refused:
            path, why = refused.path, f"not answered: {refused.why}"
            out.writerow([_cell(path.name), f"{path.weight:g}", "", "", why])
        return text.getvalue()


def answer(
    paths: Sequence[Path],
    asked: Mapping[str, Any],
    *,
    goal: str | None = None,
    world: str = registry.DEFAULT,
    budget_s: float | None = None,
    seeds: int | None = None,
    watch: Watcher = lambda _doing, _done: None,
    begin: Callable[[int, float, bool], None] = lambda _paths, _seconds, _at_most: None,
) -> Answers:
    """Answers each path; `asked` are fields of a `Question`, which come before those of the source.

    All answers together take at most `budget_s` seconds for each path. A path whose shortest answer takes
    longer has none, unless others leave it their time. Both limits are those of `advise`. `begin` is called
    before the first run with the number of paths, about how many seconds they take, and whether that is the
    most. A path that cannot be simulated has no answer, but the reason.

    Raises `ScenarioError` if no path can be answered.
    """
    paths, questions, left_out, impossible = _possible(paths, asked)
    if not sum(path.weight for path in paths) > 0:
        raise mistake("weight", 0, "a sum above zero", "give at least one path a weight")
    if budget_s is None and seeds is None:
        budget_s = BUDGET_S
    until_s = math.inf if budget_s is None else time.monotonic() + budget_s * len(paths)
    in_all_s = _takes_s(questions, world, goal, seeds) if budget_s is None else budget_s * len(paths)
    begin(len(paths), in_all_s, budget_s is not None)
    found: dict[int, Advice] = {}
    refused: dict[int, ScenarioError] = {}
    shown = 0.0

    def answer_one(number: int, waiting: int) -> None:
        left_s = until_s - time.monotonic()
        own_s = None if budget_s is None else min(max(left_s / waiting, 1e-3), MOST_BUDGET_S)

        def report(doing: str, part: float) -> None:
            nonlocal shown
            shown = max(shown, (number + part) / len(paths))
            watch(f"path {number + 1} of {len(paths)}: {doing}", shown)

        try:
            found[number] = advise(
                questions[number],
                goal=goal,
                world=world,
                budget_s=own_s,
                seeds=seeds,
                given=given_of(asked),
                measured=paths[number].says,
                left_out=(*paths[number].left_out, *left_out),
                watch=report,
            )
        except ScenarioError as error:
            if error.field != "budget":
                raise
            refused[number] = error

    for number in range(len(paths)):
        answer_one(number, len(paths) - number)
    # What the others left may be enough.
    waiting = list(refused)
    for place, number in enumerate(waiting):
        if until_s - time.monotonic() > (budget_s or 0.0):
            answer_one(number, len(waiting) - place)
    if not found:
        first = refused[min(refused)]
        raise first if budget_s is None else short_budget(budget_s, first.expected, first.fix)
    return Answers(
        tuple(Answered(paths[number], found[number]) for number in sorted(found)),
        left_out,
        (
            *impossible,
            *(
                Refused(paths[number], f"{error.expected}; {error.fix}")
                for number, error in sorted(refused.items())
                if number not in found
            ),
        ),
    )


# Of many paths, so many say how long all of them take.
_SAMPLE = 5
# About so many rounds of the runs that a goal needs look for what would change an answer.
_ROUNDS = 60


def _takes_s(questions: Sequence[Question], world: str, goal: str | None, seeds: int | None) -> float:
    """About how long all answers take with a number of seeds and no budget."""
    bench = Bench.of(world)
    sample = questions[:: max(1, len(questions) // _SAMPLE)]
    took_s = 0.0
    for asked in sample:
        question = with_candidates(asked).at([0.5] * len(asked.ranges))
        needs = goals.named(goal, sized=asked.flow_size is not None).needs
        few = range(1, min(FIRST, seeds or FIRST) + 1)
        runs_s = bench.takes_s(question, few) + _ROUNDS * bench.takes_s(question, few, needs)
        # Side by side, each looks less far.
        took_s += runs_s * (1.5 if question.buffer is None else 1.0)
    return took_s * len(questions) / len(sample)


def _possible(
    paths: Sequence[Path], asked: Mapping[str, Any]
) -> tuple[list[Path], list[Question], tuple[str, ...], list[Refused]]:
    """The paths that can be simulated, their questions, notes about the file, and the other paths."""
    notes = paths.notes if isinstance(paths, Paths) else ()
    possible, questions, refused = [], [], []
    first = None
    for path in paths:
        try:
            question, beside = path.question(asked), path.beside(asked)
        except ScenarioError as wrong:
            first = first or wrong
            refused.append(Refused(path, str(wrong).removeprefix(f"{path.name}: ")))
        else:
            questions.append(question)
            possible.append(beside)
    if first is not None and not possible:
        if first.field not in ("from", "rate", "rtt"):
            # It is about an option, which is wrong for all of them.
            raise first
        # The notes may show why, e.g. that a column is unknown.
        raise stated(first.field, first.given, "; ".join([str(first), *notes]), first.expected, first.fix)
    return possible, questions, notes, refused


def _cell(text: str) -> str:
    """A text that a spreadsheet shows and does not compute: names come from other people's files."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
