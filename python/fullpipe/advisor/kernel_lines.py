"""The advice, checked against the kernel, as evidence: a line for each path, and the tables of such lines."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fullpipe
from fullpipe import evidence
from fullpipe.advisor.confidence import Word
from fullpipe.advisor.kernel_check import Judged, Lack, Shown, Table
from fullpipe.runs.worlds import registry
from fullpipe.text import joined, ran_by

_FILE = "advice.jsonl"


@dataclass(frozen=True)
class Recorded(Judged):
    """A path as a line says it."""

    number: int
    name: str
    word: Word
    purpose: str
    leaders: tuple[str, ...]
    scores: dict[str, list[float]]

    @property
    def counts(self) -> dict[str, int]:  # type: ignore[override]
        """How many scores each candidate has."""
        return {name: len(values) for name, values in self.scores.items()}

    def mean(self, candidate: str) -> float:
        """A candidate's score in the kernel."""
        return math.fsum(self.scores[candidate]) / len(self.scores[candidate])

    def lack(self, candidate: str, other: str | None = None) -> Lack:
        """What a candidate lacks against the best one, or another."""
        return Lack.of(self.scores[candidate], self.scores[other or self.best])


def check() -> None:
    """Raises `ScenarioError` if results cannot be recorded; called before the runs."""
    evidence.read(evidence.folder() / _FILE)


def record(table: Table, name: str, *, larger: bool = False) -> Path:
    """Puts a line for each path into `results/advice.jsonl`; `larger`: also in place of one of more runs.

    `name` is that of the set of paths: `set_of`.
    """
    path = evidence.folder() / _FILE
    evidence.replace(path, lines(table, name), size=None if larger else _size)
    return path


def _size(line: Mapping[str, Any]) -> tuple[int, ...]:
    """How many candidates were run: how often, the check itself decides."""
    return (sum(one["count"] > 0 for one in line["kernel"].values()),)


def set_of(seed: int | None) -> str:
    """The name of the paths of a seed, or of those of this version."""
    return f"version {fullpipe.__version__}" if seed is None else f"seed {seed}"


def newest(found: Sequence[evidence.Line]) -> list[evidence.Line]:
    """The lines of the paths of the version that was measured last, in their order."""
    of_versions = [one for one in found if one["key"]["set"].startswith("version ")]
    last = max(of_versions, key=lambda one: str(one["made"]["at"]), default=None)
    mine = [one for one in of_versions if last is not None and one["key"]["set"] == last["key"]["set"]]
    return sorted(mine, key=lambda one: int(one["key"]["number"]))


def lines(table: Table, name: str) -> list[evidence.Line]:
    """The lines of what was just measured. `name` is that of the set of paths."""
    worlds = (registry.named(name) for name in (registry.DEFAULT, table.world))
    fingerprint = {world.name: world.build() for world in worlds}
    made = evidence.made("fullpipe kernel advice --record", fingerprint, [os.uname().release])
    return [
        {
            "key": {"set": name, "number": one.number},
            "made": made,
            "path": one.name,
            "goal": one.purpose,
            "confidence": one.word,
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
    return Recorded(
        number=line["key"]["number"],
        name=line["path"],
        word=line["confidence"],
        purpose=line["goal"],
        leaders=tuple(line["leaders"]),
        scores={name: one["scores"] for name, one in line["kernel"].items()},
    )
