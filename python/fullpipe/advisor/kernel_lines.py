"""The advice, checked against the kernel, as evidence: a line for each path, and the tables of such lines."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fullpipe import evidence
from fullpipe.advisor.kernel_check import Judged, Lack, Shown, Table
from fullpipe.runs.worlds import registry
from fullpipe.text import joined, ran_by

_FILE = "advice.jsonl"


@dataclass(frozen=True)
class Recorded(Judged):
    """A path as a line says it. Lines from old tables have the means of the scores, and not the scores."""

    number: int
    name: str
    purpose: str
    leaders: tuple[str, ...]
    counts: dict[str, int]
    means: dict[str, float]
    shortfall: Lack | None = None
    # Who was not within the tolerance, although the rounded means of an old table do not show it.
    beyond: tuple[str, ...] = ()

    def mean(self, candidate: str) -> float:
        """A candidate's score in the kernel."""
        return self.means[candidate]

    def within(self, candidate: str) -> bool:
        """Whether a candidate's mean is within the tolerance of the best."""
        return candidate not in self.beyond and super().within(candidate)

    def lack(self, candidate: str, other: str | None = None) -> Lack:
        """What the advised one lacks against the best one; others are not known."""
        if self.shortfall is None or candidate != self.advised or other not in (None, self.best):
            raise ValueError(f"{candidate} against {other or self.best}")
        return self.shortfall


def check() -> None:
    """Raises `ScenarioError` if results cannot be recorded; called before the runs."""
    evidence.read(evidence.folder() / _FILE)


def record(table: Table, seed: int, *, larger: bool = False) -> Path:
    """Puts a line for each path into `results/advice.jsonl`; `larger`: also in place of one of more runs."""
    path = evidence.folder() / _FILE
    evidence.replace(path, lines(table, seed), size=None if larger else _size)
    return path


def _size(line: Mapping[str, Any]) -> tuple[int, ...]:
    """How many candidates were run: how often, the check itself decides."""
    return (sum(one["count"] > 0 for one in line["kernel"].values()),)


def lines(table: Table, seed: int) -> list[evidence.Line]:
    """The lines of what was just measured. `seed` is that of the paths."""
    worlds = (registry.named(name) for name in (registry.DEFAULT, table.world))
    fingerprint = {world.name: world.build() for world in worlds}
    made = evidence.made("fullpipe kernel advice --record", fingerprint, [os.uname().release])
    return [
        {
            "key": {"set": f"seed {seed}", "number": one.number},
            "made": made,
            "path": one.name,
            "goal": one.purpose,
            "leaders": list(one.leaders),
            "simulated": {place.candidate: place.score.mean for place in one.answer.places},
            "kernel": {
                name: {"mean": one.mean(name) if values else None, "count": len(values), "scores": values}
                for name, values in one.scores.items()
            },
            "left_out": one.left_out,
        }
        for one in table.held
    ]


def shown(found: Sequence[Mapping[str, Any]], older: str = "") -> Shown:
    """What the tables of these lines show."""
    message = (one["made"] for one in found)
    made = {", ".join([f"Fullpipe {one['fullpipe']}", *map(ran_by, one["ran_by"])]) for one in message}
    return Shown(tuple(map(_path, found)), "kernel", joined(sorted(made)), older=older)


def _path(line: Mapping[str, Any]) -> Recorded:
    measured = line["kernel"]
    scores = {name: one["scores"] for name, one in measured.items() if "scores" in one}
    means = {name: one["mean"] if one["count"] else math.nan for name, one in measured.items()}
    counts = {name: one["count"] for name, one in measured.items()}
    leaders = tuple(line["leaders"])
    one = Recorded(line["key"]["number"], line["path"], line["goal"], leaders, counts, means)
    if not one.judged:
        return one
    if (old := line.get("imported")) is not None:
        return replace(one, shortfall=Lack(**old["lack"]), beyond=tuple(old["beyond"]))
    return replace(one, shortfall=Lack.of(scores[one.advised], scores[one.best]))
