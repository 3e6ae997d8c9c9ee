"""The scenario of a case, and the command that shows it."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe._native import ScenarioError
from fullpipe.errors import mistake, stated
from fullpipe.gate.cases import RUN
from fullpipe.runs.worlds import stacks
from fullpipe.scenario import scenario
from fullpipe.scenario.path import OPTIONS, written_of
from fullpipe.scenario.scenario import Scenario

# How long a run lasts by default.
_DURATION = "5 s"
_OF_PATH = ("duration", "flows", "ecn", "beside")


@dataclass(frozen=True)
class Consent:
    """What a gate file may start: Python files of controllers, and commands of programs."""

    code: bool = False
    programs: bool = False


@dataclass(frozen=True)
class Shown:
    """The scenario of a table of the file: its place, its name, its kind, and all its keys."""

    where: str
    name: str
    kind: str
    keys: Mapping[str, Any]
    folder: Path

    @property
    def path(self) -> dict[str, Any]:
        """The keys of a path."""
        return written_of(self.keys)

    @property
    def file(self) -> Path | None:
        """The scenario file, relative to the gate file's folder."""
        return None if "scenario" not in self.keys else self.folder / self.keys["scenario"]


def document_of(shown: Shown) -> dict[str, Any]:
    """The scenario's document, without the subject.

    Raises:
        ScenarioError: The table has two scenarios or none, or the file cannot be read.
    """
    field = f"{shown.where}.scenario"
    if "scenario" in shown.keys:
        if not isinstance(shown.keys["scenario"], str) or not shown.keys["scenario"].strip():
            raise mistake(field, shown.keys["scenario"], "the path of a scenario file", "write its path")
        more = [*shown.path, *(key for key in _OF_PATH if key in shown.keys)]
        if more:
            raise mistake(
                f"{shown.where}.{more[0]}", shown.keys[more[0]], "no key beside scenario", "remove it"
            )
        _, text = _native.read_document(str(shown.file), field, "a scenario file")
        return dict(json.loads(text))
    if shown.kind == RUN:
        raise mistake(field, None, "the path of a scenario file", 'e.g. scenario = "scenarios/video.toml"')
    if "rate" not in shown.keys and "deliveries" not in shown.keys:
        raise mistake(f"{shown.where}.rate", None, "a rate", 'e.g. rate = "50 Mbit/s"')
    return {
        "duration": shown.keys.get("duration", _DURATION),
        "path": shown.path,
        **({"hosts": {"ecn": shown.keys["ecn"]}} if "ecn" in shown.keys else {}),
        "flows": [_flow(shown), *({"controller": one} for one in _beside(shown))],
    }


def _flow(shown: Shown) -> dict[str, Any]:
    return {"count": shown.keys["flows"]} if "flows" in shown.keys else {}


def _beside(shown: Shown) -> list[str]:
    given = shown.keys.get("beside", [])
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise mistake(f"{shown.where}.beside", given, "a list of controllers", 'e.g. beside = ["cubic"]')
    return names


def resolved(shown: Shown, document: Mapping[str, Any], controller: str, consent: Consent) -> Scenario:
    """The scenario with a controller as its subject, in numbers.

    Raises:
        ScenarioError: It is invalid; a field is one of the scenario's.
    """
    whole = {**document, "name": document.get("name", shown.name)}
    if shown.kind != RUN:
        whole["compare"] = [controller]
    folder = shown.folder if shown.file is None else shown.file.parent
    try:
        loaded = scenario.from_document(whole, folder, code=consent.code, programs=consent.programs)
    except ScenarioError as error:
        raise _consent(error, shown) from None
    if len(loaded.alternatives) != 1:
        expected = "a scenario with one alternative"
        fix = 'leave its compare out, or write kind = "compare", which replaces it by the subject'
        raise mistake(f"{shown.where}.scenario", shown.keys["scenario"], expected, fix)
    return loaded


def _consent(error: ScenarioError, shown: Shown) -> ScenarioError:
    """The error; one about consent names the options of `fullpipe gate` that give it."""
    if error.expected != "consent to run it":
        return error
    field = f"{shown.where}.{'beside' if 'beside' in shown.keys else 'scenario'}"
    option, what = (
        ("--allow-programs", "commands") if "client" in error.field else ("--code", "a Python file")
    )
    fix = f"read it, and give the option {option}"
    return stated(
        field, error.given, f"{field}: it runs {what} that its author chose; {fix}", error.expected, fix
    )


def command_of(shown: Shown, subject: str, world: str, seeds: Sequence[int]) -> str:
    """The command that shows the case; empty where there is none, as for unlike flows."""
    counted = list(seeds) == list(range(1, len(seeds) + 1))
    last = ["--world", world, *(["--seeds", str(len(seeds))] if counted else [])]
    if shown.kind == RUN:
        return shlex.join(["fullpipe", "run", str(shown.file), "--seed", str(seeds[0]), *last])
    if shown.file is not None or "beside" in shown.keys:
        return ""
    options = {one.name: one for one in OPTIONS}
    words = ["fullpipe", "compare", subject, "--duration", str(shown.keys.get("duration", _DURATION))]
    for name, value in shown.path.items():
        words.append(f"--{options[name].option}")
        words += [] if options[name].shape == "flag" else [str(value)]
    words += ["--flows", str(shown.keys["flows"])] if "flows" in shown.keys else []
    words += ["--ecn"] if shown.keys.get("ecn") else []
    return shlex.join([*words, *last, *stacks.options(subject)])
