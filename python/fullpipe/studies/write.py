"""Writes what claims found into a folder, a paper each: every claim's own files, then those of all together.

    DIR/data/CLAIM.parquet           one row a run (or more), tidy: world, seed, factors, measures
    DIR/data/CLAIM.series.parquet    time series of the runs that the figure shows
    DIR/figures/CLAIM.svg, .png
    DIR/results/CLAIM.json           checks, verdicts and the figure as Vega-Lite
    DIR/results/CLAIM.NAME           what else a claim writes, e.g. the rules of a tree
    DIR/claims.json, report.html     all claims of the paper that were run into this folder

The last line is made from the results, so that a claim may be run alone.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fullpipe import _native
from fullpipe.figures import theme
from fullpipe.studies import page
from fullpipe.studies.catalogue import Study
from fullpipe.studies.claim import Check, Finding, Verdict
from fullpipe.studies.run import Result
from fullpipe.sweeps.store import write

_PNG_SCALE = 2


def claim(result: Result, folder: Path) -> None:
    """A claim's own files."""
    import vl_convert

    built, data = result.plan.claim, result.data
    (folder / "data").mkdir(parents=True, exist_ok=True)
    if data.runs.height:
        data.runs.write_parquet(folder / "data" / f"{built.name}.parquet")
    if data.series.height:
        data.series.write_parquet(folder / "data" / f"{built.name}.series.parquet")
    spec: dict[str, Any] | None = None
    if data.runs.height:
        spec = built.claim.figure(data).configure(**theme.config()).to_dict()
        svg = vl_convert.vegalite_to_svg(spec)
        write(folder / "figures" / f"{built.name}.svg", svg.encode())
        png = vl_convert.svg_to_png(svg, scale=_PNG_SCALE)
        write(folder / "figures" / f"{built.name}.png", png)
        if built.claim.texts is not None:
            for name, text in built.claim.texts(data).items():
                write(folder / "results" / f"{built.name}.{name}", text.encode())
    about = {**_about(result), "spec": spec}
    write(folder / "results" / f"{built.name}.json", json.dumps(about, indent=1).encode())


def paper(study: Study, folder: Path) -> Path:
    """What all claims of a paper found; returns the report."""
    results = loaded(study, folder)
    said = [{name: value for name, value in one.items() if name != "spec"} for one in results]
    write(folder / "claims.json", json.dumps({"paper": study.name, "claims": said}, indent=1).encode())
    report = folder / "report.html"
    svgs = {
        one["name"]: (folder / "figures" / f"{one['name']}.svg").read_text(encoding="utf-8")
        for one in results
        if one["spec"] is not None
    }
    write(report, page.html(study, results, svgs).encode())
    return report


def loaded(study: Study, folder: Path) -> list[dict[str, Any]]:
    """The results that there are in a folder, in the order of the claims."""
    found = []
    for built in study.claims:
        path = folder / "results" / f"{built.name}.json"
        if path.is_file():
            found.append(json.loads(path.read_text(encoding="utf-8")))
    return found


def verdicts(folder: Path) -> dict[str, dict[str, Any]]:
    """What `claims.json` in a folder says: results by claim, nothing where there is none."""
    try:
        said = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
        return {one["id"]: one for one in said["claims"]}
    except (OSError, ValueError, KeyError):
        return {}


def _about(result: Result) -> dict[str, Any]:
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
        "version": _native.version(),
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "waiting": plan.waiting,
        "findings": [_finding(one) for one in result.findings] if plan.waiting is None else _waiting(result),
        "because": list(result.because),
        "notes": list(result.notes),
    }


def _waiting(result: Result) -> list[dict[str, Any]]:
    reason = result.plan.waiting
    return [
        {"world": world, "verdict": Verdict.WAITING.value, "reason": reason, "checks": []}
        for world in result.plan.worlds
    ]


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "world": finding.world,
        "verdict": finding.verdict.value,
        "reason": finding.reason,
        "checks": [_check(check) for check in finding.checks],
    }


def _check(check: Check) -> dict[str, Any]:
    ours = check.ours
    return {
        "what": check.what,
        "paper": check.paper,
        "criterion": check.criterion,
        "ours": None if ours is None else ours.mean,
        "ci95": None if ours is None or ours.low is None else [ours.low, ours.high],
        "count": 0 if ours is None else ours.count,
        "unit": check.unit,
        "said": check.said,
        "met": check.met,
        "kind": "shape" if check.shape else "number",
    }


def overall(findings: Sequence[dict[str, Any]]) -> str:
    """The verdicts of all worlds in one line."""
    return ", ".join(f"{one['world']}: {one['verdict']}" for one in findings)
