"""A gate's cases: what runs, in which world, with which seeds, and how a change is judged."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fullpipe.gate.quantities import Bound, Tolerance
from fullpipe.scenario.scenario import Scenario

COMPARE, RUN, CONFORM = "compare", "run", "conform"
KINDS = (COMPARE, RUN, CONFORM)


@dataclass(frozen=True)
class Reference:
    """Another controller that the subject must not be worse than, by measures with tolerances."""

    controller: str
    within: Mapping[str, Tolerance]


@dataclass(frozen=True)
class Judgement:
    """How a change of a case is judged. `exact` tolerates none; promises hold whatever was before."""

    exact: bool
    within: Mapping[str, Tolerance] = field(default_factory=dict)
    at_least: Mapping[str, Bound] = field(default_factory=dict)
    at_most: Mapping[str, Bound] = field(default_factory=dict)
    not_worse_than: Reference | None = None
    # Of a conformance case: it has to pass, not only as before.
    must_pass: bool = False


@dataclass(frozen=True)
class Case:
    """A case in one world. Its name and its world together are unique."""

    name: str
    kind: str
    subject: str
    world: str
    seeds: tuple[int, ...]
    judgement: Judgement
    # What is run, without the subject: two cases with the same setting can be compared.
    setting: str
    # How long one run may take, and the most repetitions in a world of wall time.
    limit_s: float
    repetitions: int
    # The gate file's, to which files of controllers are relative.
    folder: Path
    # The file and the line of the case, for annotations: "gate.toml:12".
    place: str
    # The scenario with the subject, and with the controller of `not_worse_than`; of `conform`, its case.
    scenario: Scenario | None = None
    reference: Scenario | None = None
    conform: str = ""
    # Its suite, and what the subject is said to be like.
    suite: str = "bbr3"
    like: str = "any"
    # The command that shows the case, without a seed.
    command: str = ""

    @property
    def title(self) -> str:
        """Its name in an answer, with the world."""
        return f"{self.name}, {self.world}"

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from other cases."""
        return self.name, self.world


@dataclass(frozen=True)
class Build:
    """How a checkout of the developer's repository becomes the program of the world quic, or an adapter.

    A shell command, which runs in the gate file's folder, and the program that it makes, relative to that.
    """

    command: str
    program: str
    # The program is the adapter of a stack of this name; empty if it is the program of the world.
    stack: str = ""


@dataclass(frozen=True)
class Gate:
    """A gate file: its cases in its order, each in each of its worlds; and how its subject is built."""

    path: Path
    cases: tuple[Case, ...]
    build: Build | None = None


def setting_of(content: Mapping[str, Any]) -> str:
    """A short hash of what a case runs, without its subject and its judgement."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
