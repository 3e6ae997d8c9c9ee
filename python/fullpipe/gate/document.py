"""Reads `gate.toml`.

    subject = "bbr3"                     # what is tested; a case may have its own
    worlds = ["sim"]
    seeds = 3                            # 1, 2 and 3; or a list

    [[case]]
    name = "deep-buffer"
    kind = "compare"                     # the subject on a path; "run": a scenario as it is; "conform"
    rate = "50 Mbit/s"
    rtt = "40 ms"
    buffer = "4 bdp"
    duration = "5 s"
    exact = true                         # or within = { goodput_bps = "1 %" }
    at_least = { goodput_bps = "90 %" }  # of the link
    not_worse_than = "cubic"

    [build]                              # for `gate diff --against git:main`
    command = "cargo build --release"
    program = "target/release/mine"

docs/how-to/gate.md has every key. A mistake is a `ScenarioError` that names the file, the line, the key and
the fix.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe._native import ScenarioError
from fullpipe.errors import mistake, placed, renamed, stated
from fullpipe.gate import judgements
from fullpipe.gate.cases import COMPARE, CONFORM, KINDS, RUN, Build, Case, Gate, Judgement, setting_of
from fullpipe.gate.scenarios import Consent, Shown, command_of, document_of, resolved
from fullpipe.runs.limits import MOST_CELLS
from fullpipe.runs.worlds import registry, stacks
from fullpipe.scenario.controllers import is_own
from fullpipe.scenario.path import NAMES as PATH_KEYS

_SHARED = ("subject", "worlds", "seeds", "repetitions", "time_limit")
_OF_KIND: Mapping[str, tuple[str, ...]] = {
    COMPARE: ("scenario", *PATH_KEYS, "duration", "flows", "ecn", "beside"),
    RUN: ("scenario",),
    CONFORM: ("conform", "suite", "like"),
}
_DEFAULTS: Mapping[str, Any] = {
    "subject": None,
    "worlds": [registry.DEFAULT],
    "seeds": 3,
    "repetitions": 10,
    "time_limit": 60,
}
_NO_CONSENT = Consent()
_LONGEST_NAME = 80
_MOST_SEEDS = 1000
# Without so many repetitions, no interval can decide.
LEAST_REPETITIONS = 3


@dataclass(frozen=True)
class _Table:
    """A table of the file: its place, its keys, and the defaults of the file."""

    where: str
    keys: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def at(self, key: str) -> str:
        """The field of a key: where it is written, or where it would be."""
        return f"{self.where}.{key}" if key in self.keys or key not in self.defaults else key

    def get(self, key: str) -> Any:
        """The value here or, if there is none, in the file's defaults or Fullpipe's."""
        return self.keys.get(key, self.defaults.get(key, _DEFAULTS.get(key)))


def load(
    path: Path,
    consent: Consent = _NO_CONSENT,
    subject: str | None = None,
) -> Gate:
    """Reads a gate file. `subject` replaces the one at its top.

    Raises:
        ScenarioError: It cannot be read or is invalid; the error has file and line.
    """
    text, document = _native.read_document(str(path), "gate", "a gate file in TOML")
    try:
        tables = json.loads(document)
        if subject is not None and isinstance(tables, dict):
            tables["subject"] = subject
        cases = _cases(tables, path.parent, consent)
        placed_cases = tuple(replace(one, place=_place(text, path, one.place)) for one in cases)
        return Gate(path, placed_cases, _build(tables.get("build")))
    except ScenarioError as error:
        if error.file:
            raise
        raise placed(error, error.field, str(path), _native.line_of(text, str(path), error.field)) from None


def _place(text: str, path: Path, where: str) -> str:
    """The file and the line of a case, whose place in the document is `case[0]`."""
    line = _native.line_of(text, str(path), f"{where}.name")
    return str(path) if line is None else f"{path}:{line}"


def _build(given: Any) -> Build | None:
    """The table `build`; None without one."""
    if given is None:
        return None
    keys = [one.name for one in fields(Build)]
    table = _checked("build", given, keys)
    for key in keys:
        if key not in table and key == "stack":
            continue
        if not isinstance(table.get(key), str) or not table[key].strip():
            example = 'command = "cargo build --release" and program = "target/release/mine"'
            raise mistake(f"build.{key}", table.get(key), "a text", f"e.g. {example}")
    if "stack" in table:
        stacks.check_name("build.stack", table["stack"])
    return Build(**table)


def _cases(document: Any, folder: Path, consent: Consent) -> Iterator[Case]:
    defaults = _checked("", document, (*_SHARED, "build", "case"))
    tables = defaults.get("case")
    if not isinstance(tables, list) or not tables:
        raise mistake("case", tables, "at least one [[case]]", "add one, or write a file by `gate init`")
    seen: dict[tuple[str, str], str] = {}
    for number, keys in enumerate(tables):
        _checked(f"case[{number}]", keys)
        for case in _case(_Table(f"case[{number}]", keys, defaults), folder, consent):
            if case.key in seen or len(seen) == MOST_CELLS:
                raise mistake(f"case[{number}].name", case.name, "a name that no other case has", "rename it")
            seen[case.key] = case.name
            yield case


def _case(table: _Table, folder: Path, consent: Consent) -> Iterator[Case]:
    """The case of a table in each of its worlds; of a table of conformance cases, each of these."""
    kind = table.keys.get("kind")
    if kind not in KINDS:
        raise mistake(f"{table.where}.kind", kind, f"one of {', '.join(KINDS)}", 'e.g. kind = "compare"')
    _checked(table.where, table.keys, ("name", "kind", *_SHARED, *_OF_KIND[str(kind)], *judgements.KEYS))
    name = _name(f"{table.where}.name", table.keys.get("name"))
    subject = _subject(table, str(kind))
    if is_own(subject) and not consent.code:
        raise _unread(table, subject)
    parts = {
        "name": name,
        "kind": str(kind),
        "subject": subject,
        "folder": folder,
        "place": table.where,
        "limit_s": _number(table, "time_limit", 0.001, 86400.0, "seconds above 0, at most a day"),
        "repetitions": int(_number(table, "repetitions", LEAST_REPETITIONS, 1000, "a whole number from 3")),
    }
    for world in _worlds(table):
        judgement = judgements.read(table.where, table.keys, registry.named(world).deterministic)
        if kind == CONFORM:
            yield from _conform(table, world, judgement, parts)
        else:
            yield _run(table, world, judgement, parts, folder, consent)


def _run(
    table: _Table, world: str, judgement: Judgement, parts: dict[str, Any], folder: Path, consent: Consent
) -> Case:
    shown = Shown(table.where, parts["name"], parts["kind"], table.keys, folder)
    written = document_of(shown)
    make: Callable[[str], Any] = lambda controller: resolved(shown, written, controller, consent)  # noqa: E731
    seeds = _seeds(table)
    try:
        scenario = make(parts["subject"])
    except ScenarioError as error:
        raise _moved(error, table) from None
    _check_bounds(table, judgement, scenario)
    other = judgement.not_worse_than
    try:
        reference = None if other is None else make(other.controller)
    except ScenarioError as error:
        raise renamed(error, {"compare": f"{table.where}.not_worse_than"}) from None
    return Case(
        **parts,
        world=world,
        seeds=seeds,
        judgement=judgement,
        setting=setting_of({"document": written, "seeds": seeds}),
        scenario=scenario,
        reference=reference,
        command=command_of(shown, parts["subject"], world, seeds),
    )


def _check_bounds(table: _Table, judgement: Judgement, scenario: Any) -> None:
    for key, bounds in (("at_least", judgement.at_least), ("at_most", judgement.at_most)):
        for name, bound in bounds.items():
            try:
                bound.value(scenario.alternatives[0])
            except ScenarioError as error:
                raise renamed(error, {"bound": f"{table.where}.{key}.{name}"}) from None


def _conform(table: _Table, world: str, judgement: Judgement, parts: dict[str, Any]) -> Iterator[Case]:
    from fullpipe.conformance import suites
    from fullpipe.conformance.runners import BEDS

    suite, like = (table.keys.get(key, default) for key, default in (("suite", "bbr3"), ("like", "any")))
    if suite not in suites.CHOSEN:
        known = list(suites.CHOSEN)
        raise mistake(f"{table.where}.suite", suite, f"one of {', '.join(known)}", "choose one of these")
    given = table.keys.get("conform")
    field = f"{table.where}.conform"
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise mistake(field, given, 'the name of a conformance case, a list of them, or "all"', 'e.g. "all"')
    if world not in BEDS:
        raise mistake(table.at("worlds"), world, f"one of {', '.join(BEDS)}", "choose one of these")
    try:
        chosen = suites.CHOSEN[suite](None if names == ["all"] else names)
        suites.check_like(suite, like)
    except ScenarioError as error:
        raise renamed(error, {"case": field, "like": f"{table.where}.like"}) from None
    more = suites.options(suite, like)
    behind = "".join(f" {shlex.quote(word)}" for word in stacks.options(parts["subject"]))
    for one in chosen:
        title = parts["name"] if isinstance(given, str) and given != "all" else f"{parts['name']}/{one.name}"
        yield Case(
            **{**parts, "name": title},
            world=world,
            seeds=one.seeds,
            judgement=judgement,
            setting=setting_of({"conform": one.name, "criteria": [one.bounds for one in one.criteria]}),
            conform=one.name,
            suite=suite,
            like=like,
            command=f"fullpipe conform {parts['subject']} --case {one.name}{more} --world {world}{behind}",
        )


def _moved(error: ScenarioError, table: _Table) -> ScenarioError:
    """An error of a case's scenario, with the place of the key in the gate file."""
    inside = {f"path.{key}": f"{table.where}.{key}" for key in PATH_KEYS}
    inside |= {
        "compare": table.at("subject"),
        "duration": f"{table.where}.duration",
        "hosts.ecn": f"{table.where}.ecn",
        "flows[0].count": f"{table.where}.flows",
    }
    if error.field.startswith("flows[") and "beside" in table.keys:
        inside[error.field] = f"{table.where}.beside"
    return renamed(error, inside)


def _subject(table: _Table, kind: str) -> str:
    if kind == RUN:
        if "subject" in table.keys:
            fix = 'leave it out, or write kind = "compare" and a flow without a controller'
            raise mistake(
                f"{table.where}.subject", table.keys["subject"], "none: the scenario has its own", fix
            )
        return ""
    given = table.get("subject")
    if not isinstance(given, str) or not given.strip():
        raise mistake(table.at("subject"), given, "a controller", 'e.g. subject = "bbr3"')
    return given


def _unread(table: _Table, subject: str) -> Exception:
    """The error about a controller in a Python file, which only runs with consent."""
    fix = "read it, and give the option --code"
    field = table.at("subject")
    sentence = f'{field}: "{subject}" is a Python program, which the author of this file chose; {fix}'
    return stated(field, subject, sentence, "consent to run it", fix)


def _worlds(table: _Table) -> Sequence[str]:
    given = table.get("worlds")
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise mistake(table.at("worlds"), given, "a list of worlds", 'e.g. worlds = ["sim"]')
    for name in names:
        try:
            registry.named(name)
        except ScenarioError as error:
            raise renamed(error, {"world": table.at("worlds")}) from None
    return list(dict.fromkeys(names))


def _seeds(table: _Table) -> tuple[int, ...]:
    given = table.get("seeds")
    counted = isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= _MOST_SEEDS
    seeds = list(range(1, given + 1)) if counted else given
    if (
        not isinstance(seeds, list)
        or not 1 <= len(seeds) <= _MOST_SEEDS
        or not all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 2**63 for one in seeds)
        or len(set(seeds)) < len(seeds)
    ):
        expected = f"a number of seeds from 1 to {_MOST_SEEDS}, or a list of different ones"
        raise mistake(table.at("seeds"), given, expected, "e.g. seeds = 3")
    return tuple(seeds)


def _number(table: _Table, key: str, least: float, most: float, expected: str) -> float:
    given = table.get(key)
    if isinstance(given, bool) or not isinstance(given, int | float) or not least <= given <= most:
        raise mistake(table.at(key), given, expected, f"e.g. {key} = {_DEFAULTS[key]}")
    return float(given)


def _name(field: str, given: Any) -> str:
    fits = isinstance(given, str) and 1 <= len(given) <= _LONGEST_NAME and given.isprintable()
    if not fits or given != given.strip():
        expected = f"a name of 1 to {_LONGEST_NAME} printable characters"
        raise mistake(field, given, expected, 'e.g. name = "deep-buffer"')
    return str(given)


def _checked(where: str, table: Any, allowed: Sequence[str] | None = None) -> Mapping[str, Any]:
    """The table; raises an error for what is no table, or has a key that is not allowed."""
    if not isinstance(table, Mapping):
        raise mistake(where or "gate", table, "a table", "write keys and values")
    for key in table if allowed is not None else ():
        if allowed is not None and key not in allowed:
            close = get_close_matches(key, allowed, 1)
            fix = f"did you mean {close[0]}?" if close else "remove it, or write one of these"
            field = f"{where}.{key}".strip(".")
            raise mistake(field, key, f"one of the keys {', '.join(allowed)}", fix)
    return table
