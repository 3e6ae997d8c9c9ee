"""Writes the results of claims into one folder for each paper: first each claim's files, then the summaries.

    DIR/data/CLAIM.parquet           tidy, one row or more for each run: world, seed, factors, measures
    DIR/data/CLAIM.series.parquet    time series of the runs that the figure shows
    DIR/figures/CLAIM.svg, .png
    DIR/results/CLAIM.json           checks, verdicts and the figure as Vega-Lite
    DIR/results/CLAIM.NAME           other files of a claim, e.g. the rules of a tree
    DIR/claims.json, report.html     all claims of the paper that were run into this folder

The last two are made from the files in results/, so that a claim may be run alone. A damaged file among them
is left out and reported, with the command that repairs it.
"""

import json
import math
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any

import fullpipe._native as _native
from fullpipe import files, reading
from fullpipe.report.figures.svg import picture
from fullpipe.report.figures.svg import png as as_png
from fullpipe.runs.worlds import registry
from fullpipe_studies import catalogue, charts, page
from fullpipe_studies.catalogue import Built, Study
from fullpipe_studies.checks import MIDDLES, Outcome, Over
from fullpipe_studies.claim import Check, Finding, Size, Verdict, judge
from fullpipe_studies.run import Result

_PNG_SCALE = 2


@dataclass(frozen=True)
class _From:
    """A whole number of at least so much."""

    least: int


def _words(of: type[Enum]) -> frozenset[str]:
    return frozenset(one.value for one in of)


_NUMBER = int | float
# The shape of result files, as far as pages and tables need it: a type, the words of which it is one, a whole
# number, or the shapes of the parts. What ends with a question mark may be left out.
_CHECK = {
    **dict.fromkeys(("what", "paper", "criterion", "said", "why", "unit", "lacks"), str),
    "outcome": _words(Outcome),
    "over": _words(Over),
    "middle": frozenset(MIDDLES),
    **dict.fromkeys(("own", "shape", "above"), bool),
    **dict.fromkeys(("least", "most"), _NUMBER | None),
    **{name: [_NUMBER | None] for name in ("values", "under")},
    "seeds": [int],
    **dict.fromkeys(("count", "without"), _From(0)),
}
_SETUP = {"name": str, "judged": bool, "checks": [_CHECK]}
_FINDING = {
    **{"world": str, "verdict": _words(Verdict), "reason": str, "checks": [_CHECK], "setups": [_SETUP]},
    **dict.fromkeys(("missing", "awaits", "waits", "fewer"), str | None),
    "others": [str],
}
_SAID = {
    **dict.fromkeys(("id", "name", "title", "source", "says", "question", "method", "prediction"), str),
    **dict.fromkeys(("look_at", "version", "at"), str),
    "size": _words(Size),
    **dict.fromkeys(("seeds", "repetitions"), _From(1)),
    **{name: [str] for name in ("worlds", "because", "notes", "machines?", "builds?")},
    "command?": str,
    "findings": [_FINDING],
}
# More than the results of all claims take.
_MOST_BYTES = 256 << 20
# Of a wrong word.
_SHOWN = 40
# A column of the runs in which a claim names further inputs, besides the scenarios.
_SOURCE = "source"


@dataclass(frozen=True)
class Loaded:
    """A claim's result as written: its entry in `claims.json`, the figure as Vega-Lite and as SVG.

    Without runs there is no figure.
    """

    facts: dict[str, Any]
    spec: dict[str, Any] | None
    svg: str | None


class _Damaged(ValueError):
    """A file differs from what was written; `str()` says how."""


def claim(result: Result, folder: Path) -> None:
    """Writes a claim's own files."""
    built, data = result.plan.claim, result.data
    for suffix, frame in (("", data.runs), (".series", data.series)):
        if frame.height:
            files.write(folder, f"data/{built.name}{suffix}.parquet", files.parquet(frame))
    spec: dict[str, Any] | None = None
    if data.runs.height:
        spec = charts.spec(built.claim.figure(data))
        svg = picture(spec)
        files.write(folder, f"figures/{built.name}.svg", svg.encode())
        png = as_png(svg, scale=_PNG_SCALE)
        files.write(folder, f"figures/{built.name}.png", png)
        if built.claim.texts is not None:
            for name, text in built.claim.texts(data).items():
                files.write(folder, f"results/{built.name}.{name}", text.encode())
    facts = {**about(result), "spec": spec}
    files.write(folder, f"results/{built.name}.json", json.dumps(facts, indent=1).encode())


def paper(study: Study, folder: Path, say: Callable[[str], object] = lambda _line: None) -> Path:
    """Writes the results of all claims of a paper, and returns the report. `say` gets notes on omissions."""
    results = loaded(study, folder, say)
    every = {"paper": study.name, "claims": [one.facts for one in results]}
    files.write(folder, "claims.json", json.dumps(every, indent=1).encode())
    svgs = {one.facts["name"]: one.svg for one in results if one.svg is not None}
    html = page.html(study, [{**one.facts, "spec": one.spec} for one in results], svgs)
    return files.write(folder, "report.html", html.encode())


def loaded(study: Study, folder: Path, say: Callable[[str], object] = lambda _line: None) -> list[Loaded]:
    """The results in a folder, in the order of the claims. `say` gets notes on omissions."""
    found = []
    for built in study.claims:
        path = folder / "results" / f"{built.name}.json"
        try:
            found.append(_load(built, path, folder / "figures" / f"{built.name}.svg"))
        except FileNotFoundError:
            continue
        except _Damaged as error:
            say(f"{error}; {built.id} is left out; {_anew(built.id, folder)}")
    return found


def verdicts(folder: Path, say: Callable[[str], object] = lambda _line: None) -> dict[str, dict[str, Any]]:
    """The results in the `claims.json` of a folder, by claim; empty if there is none.

    `say` gets notes on omissions.
    """
    path = folder / "claims.json"
    try:
        facts = _read(path)
        _expect(path, facts, {"paper": str, "claims": list})
    except FileNotFoundError:
        return {}
    except _Damaged as error:
        say(f"{error}; its verdicts are left out; {_anew('PAPER.CLAIM', folder)}, whichever claim it is of")
        return {}
    found = {}
    for number, one in enumerate(facts["claims"]):
        try:
            _expect(path, one, _SAID, f"claims[{number}]")
            found[one["id"]] = _today(one)
        except _Damaged as error:
            name = one["id"] if isinstance(one, dict) and isinstance(one.get("id"), str) else None
            anew = _anew(name or f"{facts['paper']}.CLAIM", folder)
            say(f"{error}; the verdict of {name or 'that claim'} is left out; {anew}")
    return found


def _load(built: Built, path: Path, figure: Path) -> Loaded:
    facts = _read(path)
    _expect(path, facts, _SAID)
    if facts["id"] != built.id or facts["name"] != built.name:
        raise _Damaged(f"{path} is damaged: it is the result of {facts['id']}")
    if "spec" not in facts or not isinstance(facts["spec"], dict | None):
        raise _Damaged(f"{path} is damaged: spec is missing or has the wrong type")
    spec = facts.pop("spec")
    facts = _today(facts)
    if spec is None:
        return Loaded(facts, None, None)
    try:
        svg = figure.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _Damaged(f"{figure} is missing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise _Damaged(f"{figure} cannot be read: {error}") from None
    if not (svg.startswith("<svg") and svg.rstrip().endswith("</svg>")):
        raise _Damaged(f"{figure} is damaged: it is not a complete SVG")
    return Loaded(facts, spec, svg)


def _today(facts: dict[str, Any]) -> dict[str, Any]:
    """A result with what follows from its values today, whatever rule it was written by."""
    findings = []
    for one in facts["findings"]:
        setups = {setup["name"]: setup["checks"] for setup in one["setups"]}
        name = next((setup["name"] for setup in one["setups"] if setup["judged"]), "")
        left_open = catalogue.left_open(facts["id"])
        findings.append(finding(judge(one, one["checks"], setups=setups, left_open=left_open), name))
    return {**facts, "findings": findings}


def _read(path: Path) -> Any:
    try:
        return json.loads(reading.text(path, _MOST_BYTES))
    except FileNotFoundError:
        raise
    except reading.Unreadable as error:
        raise _Damaged(f"{path} cannot be read: it is {error}") from None
    except (ValueError, RecursionError) as error:
        raise _Damaged(f"{path} is damaged: it is not JSON ({error})") from None


def _expect(path: Path, value: object, shape: Any, at: str = "") -> None:
    """Raises `_Damaged` unless a value has the expected shape."""
    if isinstance(shape, dict) and isinstance(value, dict):
        for key, inner in shape.items():
            name = key.removesuffix("?")
            where = f"{at}.{name}" if at else name
            if name not in value:
                if key != name:
                    continue
                raise _Damaged(f"{path} is damaged: {where} is missing")
            _expect(path, value[name], inner, where)
    elif isinstance(shape, list) and isinstance(value, list):
        for number, one in enumerate(value):
            _expect(path, one, shape[0], f"{at}[{number}]")
    elif isinstance(shape, frozenset) and isinstance(value, str):
        if value not in shape:
            raise _Damaged(f"{path} is damaged: {at} is {value[:_SHOWN]!r}")
    elif isinstance(shape, _From) and isinstance(value, int) and not isinstance(value, bool):
        if value < shape.least:
            raise _Damaged(f"{path} is damaged: {at} is {value}, less than {shape.least}")
    elif not isinstance(value, shape if isinstance(shape, type | UnionType) else type(shape)):
        raise _Damaged(f"{path} is damaged: {at or 'the whole'} has the wrong type")


def _anew(name: str, folder: Path) -> str:
    command = shlex.join(["fullpipe", "study", "run", name, "--out", str(folder)])
    return f"`{command}` (with --quick if it was used before) makes it again"


def about(result: Result) -> dict[str, Any]:
    """A result as JSON, without its figure."""
    plan = result.plan
    built = plan.claim
    return {
        "id": built.id,
        "name": built.name,
        "title": built.about.title,
        "source": built.claim.source,
        "says": built.claim.says,
        "question": built.about.question,
        "method": built.about.method,
        "prediction": built.about.prediction,
        "look_at": built.claim.look_at,
        "worlds": list(built.claim.worlds),
        "size": plan.size.value,
        "seeds": plan.seeds,
        "repetitions": plan.repetitions,
        "command": plan.command,
        "machines": list(result.machines),
        "builds": [f"{name} {registry.named(name).build()}" for name in plan.worlds],
        "version": _native.version(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "waiting": plan.waiting,
        "findings": _findings(result),
        "because": list(result.because),
        "notes": [*result.notes, *_sources(result)],
    }


def _sources(result: Result) -> list[str]:
    """Further inputs of the runs, besides the scenarios, as text."""
    runs = result.data.runs
    named = (
        runs[_SOURCE].drop_nulls().unique(maintain_order=True).to_list() if _SOURCE in runs.columns else []
    )
    return [f"Source: {one}." for one in named]


def _findings(result: Result) -> list[dict[str, Any]]:
    waits, setups = result.plan.waiting, result.plan.claim.claim.setups
    if waits is not None:
        return [finding(Finding(world, [], waits=waits)) for world in result.plan.worlds]
    return [finding(one, setups.judged if setups is not None else "") for one in result.findings]


def finding(of: Finding, judged: str = "") -> dict[str, Any]:
    """A finding as JSON; `judged` is the set-up that its verdict is about."""
    noun = of.noun
    return {
        "world": of.world,
        **of.data(),
        "verdict": of.verdict.value,
        "reason": of.reason,
        "checks": [_check(check, noun) for check in of.checks],
        "setups": [
            {"name": name, "judged": name == judged, "checks": [_check(check, noun) for check in checks]}
            for name, checks in of.setups.items()
        ],
    }


def _check(check: Check, noun: str) -> dict[str, Any]:
    """A check as JSON: what it asks of which values, and what follows from these.

    There are no infinite numbers: a ratio to zero is null, and `infinite` says so.
    """
    assert check.asked is not None
    ours = check.ours
    modes = () if check.modes is None else (check.modes.lower, check.modes.upper)

    def finite(value: float) -> float | None:
        exact = check.exact(value)
        return exact if math.isfinite(exact) else None

    return {
        **check.asked.data(),
        "own": check.own,
        "needs": check.needs,
        "criterion": check.criterion,
        "ours": None if ours is None else finite(ours.mean),
        "ci95": None if ours is None or ours.low is None or not check.chance else [ours.low, ours.high],
        "range": None if ours is None else [finite(ours.least), finite(ours.most)],
        "modes": None if check.modes is None else [[*map(finite, part)] for part in modes],
        "infinite": ours is not None and check.exact(ours.most) == math.inf,
        "count": 0 if ours is None else ours.count,
        "said": check.reported(noun),
        "outcome": check.outcome.value,
        "why": check.why,
    }
