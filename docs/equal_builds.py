"""Shows that the simulator of today gives the results of an earlier build: `make equal-builds`.

    python docs/equal_builds.py            compares, and records that the two builds are equal
    python docs/equal_builds.py --renew    makes the sample anew, after a change that was meant to change it

`results/sample.jsonl` has a few small scenarios with their summaries, at least one of each controller, queue
and kind of element. If today's code gives the same summaries to the last byte, a line in
`results/equal_builds.jsonl` says so, and lines of either build count as current. A sample is no proof: use
this after renaming and moving, not after a change of what is computed.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import evidence
from fullpipe.runs.worlds import registry

RESULTS = Path(__file__).resolve().parent.parent / "results"
SAMPLE = "sample.jsonl"
WORLD = "sim"


def summary(line: Mapping[str, Any]) -> str:
    """What today's code gives, without what names the code itself."""
    _, [(_, spec)] = _native.resolve(json.dumps(line["document"]), "json", None)
    found = json.loads(_native.simulate(spec, line["seed"])[0])
    del found["provenance"]
    return json.dumps(found)


def renewed(results: Path) -> list[evidence.Line]:
    """The sample with the summaries of today."""
    made = evidence.made("python docs/equal_builds.py --renew", {WORLD: registry.named(WORLD).build()}, [])
    return [{**line, "made": made, "summary": summary(line)} for line in evidence.read(results / SAMPLE)]


def differing(results: Path) -> list[str]:
    """Those of the sample whose summary is another one today."""
    sample = evidence.read(results / SAMPLE)
    return [line["key"]["name"] for line in sample if summary(line) != line["summary"]]


def record(results: Path) -> bool:
    """Notes that today's build equals that of the sample; False if it is the same one."""
    sample = evidence.read(results / SAMPLE)
    new = registry.named(WORLD).build()
    old = {line["made"]["fingerprint"][WORLD] for line in sample} - {new}
    made = evidence.made("make equal-builds", {WORLD: new}, [])
    shown_by = f"equal summaries of the {len(sample)} runs in results/{SAMPLE}"
    lines = [
        {"key": {"world": WORLD, "old": one, "new": new}, "made": made, "shown_by": shown_by} for one in old
    ]
    if lines:
        evidence.replace(results / evidence.EQUAL, lines)
    return bool(lines)


def main() -> None:
    """Compares and says it. Exit code 1: a summary differs, and nothing is recorded."""
    if sys.argv[1:] not in ([], ["--renew"]):
        sys.exit("usage: python docs/equal_builds.py [--renew]")
    if sys.argv[1:]:
        evidence.replace(RESULTS / SAMPLE, renewed(RESULTS))
    elif differ := differing(RESULTS):
        sys.exit(f"The code of today gives other results: {', '.join(differ)}. Nothing is recorded.")
    elif record(RESULTS):
        print("The code of today gives the results of the sample; `make docs` counts its lines as current.")
    else:
        print("The sample is of the code of today.")


if __name__ == "__main__":
    main()
