"""What to run: a document as the user wrote it, resolved into one numeric spec for each alternative.

A document has one shape, in TOML and as a Python dict: name, duration, path, hosts, flows, compare, record.
The native half alone reads, checks and resolves it; nothing here parses TOML or interprets a unit.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path as File
from typing import Any, TypeAlias, Unpack

import fullpipe._native as _native
from fullpipe import shipped
from fullpipe._native import ScenarioError
from fullpipe.errors import mistake, renamed, stated
from fullpipe.scenario import controllers, kinds
from fullpipe.scenario.controllers import Chosen, Given, Own
from fullpipe.scenario.path import PARAMETERS as PATH_PARAMETERS
from fullpipe.scenario.path import Path
from fullpipe.scenario.path_fields import Amount, PathFields
from fullpipe.scenario.programs import Program, check_consent, written

Document: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Alternative:
    """One of the alternatives that a scenario compares, in numbers."""

    label: str
    spec_json: str
    own: tuple[Own, ...] = ()  # The controllers in it that are not built in, each once.

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The spec as Python values."""
        loaded: dict[str, Any] = json.loads(self.spec_json)
        return loaded

    @cached_property
    def digest(self) -> str:
        """A hash of everything its runs depend on, except the name, and the seed, which the caller replaces.

        Computed once for all seeds, because a spec may have tens of thousands of flows.
        """
        decisive = {name: value for name, value in self.spec.items() if name not in ("name", "seed")}
        if self.own:
            decisive["own"] = sorted((own.text, own.digest) for own in self.own)
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()

    @property
    def duration_s(self) -> float:
        """How long one run lasts."""
        return float(self.spec["duration_ns"]) / 1e9


@dataclass(frozen=True)
class Scenario:
    """A document as text, and the alternatives (one or more) that it resolved to."""

    text: str  # The document in JSON.
    alternatives: tuple[Alternative, ...]

    @property
    def name(self) -> str:
        """The name in the document."""
        return str(self.alternatives[0].spec["name"])

    @property
    def seed(self) -> int:
        """The document's seed; several seeds count upwards from it."""
        return int(self.alternatives[0].spec["seed"])

    @property
    def named(self) -> dict[str, Any]:
        """The document with its name, also if the user gave none."""
        return {**self.document, "name": self.name}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What was assumed, what its words hide, and which of its settings have no effect."""
        return tuple(_native.scenario_notes(self.text, [one.spec_json for one in self.alternatives]))

    @cached_property
    def document(self) -> dict[str, Any]:
        """The document as the user wrote it, for display. Its meaning is in the specs."""
        loaded: dict[str, Any] = json.loads(self.text)
        return loaded


def from_file(
    path: str | File,
    *,
    code: bool = False,
    programs: bool = False,
    queue: str | None = None,
    ecn: bool = False,
) -> Scenario:
    """Reads a scenario in TOML (or JSON, by its suffix). Files that it names are relative to its folder.

    `path` may be the name of one of those in `scenarios`, e.g. "policer" (`shipped.find`).

    A controller in a Python file is a program, chosen by the scenario's author. It runs only with the consent
    of the caller: `code`. So do flows that are programs: `programs`. `queue` replaces the discipline of the
    bottleneck's queue. With `ecn`, connections negotiate ECN, whatever `hosts.ecn` says; a flow with an `ecn`
    of its own keeps it.

    Raises:
        ScenarioError: It cannot be read or is invalid; the error has file and line.
    """
    path = shipped.find("scenario", path, shipped.SCENARIOS)
    kinds.check("scenario", File(path), ("Scenario", "Grid"), "a scenario file")
    text, pairs = _native.resolve_file(str(path))
    if queue is not None or ecn:
        text, pairs = _changed(text, queue, ecn, File(path).parent)
    if not code:
        _refuse_code(pairs, path)
    if not programs:
        check_consent(pairs, path)
    return _scenario(text, pairs, Given(), File(path).parent)


def _changed(text: str, queue: str | None, ecn: bool, folder: File) -> tuple[str, list[tuple[str, str]]]:
    """A valid document with another discipline of the bottleneck's queue, or with ECN, resolved again."""
    document = json.loads(text)
    if queue is not None:
        document["path"]["queue"] = queue
    if ecn:
        document.setdefault("hosts", {})["ecn"] = True
    try:
        return _native.resolve(_to_json(document), "json", str(folder))
    except ScenarioError as error:
        error.line = None
        raise renamed(error, PATH_PARAMETERS) from None


def from_document(
    document: Document,
    base_dir: str | File | None = None,
    *,
    parameters: Mapping[str, str] | None = None,
    code: bool = True,
    programs: bool | None = None,
) -> Scenario:
    """Takes a scenario as a dict of the same shape as the TOML.

    A controller may be a class that extends `Controller`, too. Delivery traces, and files of controllers, are
    relative to `base_dir`. If a function builds the document from its own
    parameters, `parameters` maps each field to its parameter, so that errors name what the caller passed.
    Without `code`, a controller in a Python file is refused: for documents that come from elsewhere. So are
    programs without `programs`, by default as `code`.
    """
    folder = None if base_dir is None else str(base_dir)
    if "compare" in document:
        document = {**document, "compare": written(document["compare"])}
    document, given = controllers.named(document)
    try:
        text, pairs = _native.resolve(_to_json(document), "json", folder)
        if not code:
            _refuse_code(pairs)
        if not (code if programs is None else programs):
            check_consent(pairs)
        return _scenario(text, pairs, given, File(base_dir or "."))
    except ScenarioError as error:
        # The text is generated, so its line numbers mean nothing to the user.
        error.line = None
        raise renamed(error, parameters or {}) from None


def comparison(
    compared: Chosen | Program | Sequence[Chosen | Program],
    *,
    duration: Amount | None = None,
    flows: int = 1,
    ecn: bool = False,
    **path: Unpack[PathFields],
) -> Scenario:
    """The scenario that puts each controller or program alone on one path, `flows` flows of it at a time."""
    chosen = (
        list(compared) if isinstance(compared, Sequence) and not isinstance(compared, str) else [compared]
    )
    if not chosen:
        raise mistake("controllers", "none", "at least one controller", "name some, e.g. bbr1 cubic")
    if isinstance(flows, bool) or flows < 1:
        raise mistake("flows", flows, "a whole number from 1", "give how many flows share the path")
    return from_document(
        {
            "name": "compare",
            "duration": duration if duration is not None else "20 s",
            "path": Path(**path).document(),
            **({"hosts": {"ecn": ecn}} if ecn is not False else {}),
            "flows": [{"count": flows}] if flows > 1 else [{}],
            "compare": chosen,
        },
        parameters={
            **PATH_PARAMETERS,
            "duration": "duration",
            "hosts.ecn": "ecn",
            "flows[0].count": "flows",
            "compare": "controllers",
        },
    )


def _refuse_code(pairs: Sequence[tuple[str, str]], path: str | File | None = None) -> None:
    """Raises an error if a spec has a controller in a Python file.

    `path` is the scenario's file. Without it, as in a grid, there is no option that allows it.
    """
    before = "" if path is None else f"{path}: "
    for own in [own for _, spec in pairs for own in controllers.texts_of_spec(spec)]:
        why = "is a Python program, which the author of this file chose"
        if controllers.is_in_no_file(own):
            why = "is a class that only the Python program that wrote it has"
            fix = "run it in that program, or choose a controller that is built in"
        elif path is None:
            fix = "choose one that is built in, or read it and run it alone: write it into a scenario, and"
            fix += " give `fullpipe run` the option --code"
        else:
            fix = "read it, and give `fullpipe run` the option --code"
            fix += " (in Python: fullpipe.load(..., code=True))"
        raise stated("controller", own, f'{before}controller: "{own}" {why}; {fix}', "consent to run it", fix)


def _scenario(text: str, pairs: Sequence[tuple[str, str]], given: Given, base_dir: File) -> Scenario:
    return Scenario(
        text,
        tuple(Alternative(label, spec, controllers.of_spec(spec, given, base_dir)) for label, spec in pairs),
    )


def _to_json(document: Document) -> str:
    try:
        return json.dumps(document, allow_nan=False)
    except (TypeError, ValueError):
        pass  # A mapping that is not a dict, or a number that is not finite: rare, and slower.
    try:
        return json.dumps(_finite(document), allow_nan=False)
    except TypeError as error:
        raise mistake("scenario", document, "text, numbers, lists and tables", str(error)) from None


def _finite(value: Any) -> Any:
    """NaN and infinities as strings: JSON has neither, and the native half knows their field."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
