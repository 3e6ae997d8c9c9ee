"""Shows that the worlds of today give the results of an earlier build: `make equal-builds`.

    python docs/equal_builds.py            compares, and records that the two builds are equal
    python docs/equal_builds.py --renew    makes the sample anew, after a change that was meant to change it

`results/sample.jsonl` has a few small scenarios with their summaries: of the simulator, at least one of each
controller, queue and kind of element; of the world quic, one of each stack's controllers. If today's code
gives the same summaries to the last byte, a line in `results/equal_builds.jsonl` says so, and lines of either
build count as current. A sample is no proof: use this after renaming and moving, not after a change of what
is computed. The world quic is left out where its program is not built.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import evidence
from fullpipe.runs.worlds import quic_program, registry

RESULTS = Path(__file__).resolve().parent.parent / "results"
SAMPLE = "sample.jsonl"


def _of_sim(spec: str, seed: int) -> str:
    return _native.simulate(spec, seed)[0]


def _of_quic(spec: str, seed: int) -> str:
    return quic_program.run(spec, seed, lambda _: None, None)[0]


# The summary of a run in each world that has samples.
WORLDS: Mapping[str, Callable[[str, int], str]] = {"sim": _of_sim, "quic": _of_quic}


def worlds() -> list[str]:
    """Those that can run here."""
    return [name for name in WORLDS if all(check["ok"] for check in registry.named(name).checks())]


def summary(line: Mapping[str, Any]) -> str:
    """What today's code gives, without what names the code itself."""
    _, [(_, spec)] = _native.resolve(json.dumps(line["document"]), "json", None)
    found = json.loads(WORLDS[line["key"]["world"]](spec, line["seed"]))
    del found["provenance"]
    return json.dumps(found)


def sample(results: Path) -> list[evidence.Line]:
    """The lines of the worlds that can run here."""
    here = worlds()
    return [line for line in evidence.read(results / SAMPLE) if line["key"]["world"] in here]


def renewed(results: Path) -> list[evidence.Line]:
    """The sample with the summaries of today."""
    made = {
        world: evidence.made(
            "python docs/equal_builds.py --renew", {world: registry.named(world).build()}, []
        )
        for world in worlds()
    }
    return [
        {**line, "made": made[line["key"]["world"]], "summary": summary(line)} for line in sample(results)
    ]


def differing(results: Path) -> list[str]:
    """Those of the sample whose summary is another one today."""
    return [
        f"{line['key']['world']} {line['key']['name']}"
        for line in sample(results)
        if summary(line) != line["summary"]
    ]


def record(results: Path) -> list[str]:
    """Notes that today's builds equal those of the sample; returns the worlds whose build is another one."""
    lines = []
    for world in worlds():
        of_world = [line for line in sample(results) if line["key"]["world"] == world]
        new = registry.named(world).build()
        made = evidence.made("make equal-builds", {world: new}, [])
        shown_by = f"equal summaries of the {len(of_world)} runs in results/{SAMPLE}"
        lines += [
            {"key": {"world": world, "old": old, "new": new}, "made": made, "shown_by": shown_by}
            for old in {line["made"]["fingerprint"][world] for line in of_world} - {new}
        ]
    if lines:
        evidence.replace(results / evidence.EQUAL, lines)
    return sorted({line["key"]["world"] for line in lines})


def main() -> None:
    """Compares and says it. Exit code 1: a summary differs, and nothing is recorded."""
    if sys.argv[1:] not in ([], ["--renew"]):
        sys.exit("usage: python docs/equal_builds.py [--renew]")
    if sys.argv[1:]:
        evidence.replace(RESULTS / SAMPLE, renewed(RESULTS))
    elif differ := differing(RESULTS):
        sys.exit(f"The code of today gives other results: {', '.join(differ)}. Nothing is recorded.")
    elif changed := record(RESULTS):
        print(
            f"The code of today gives the results of the sample ({', '.join(changed)}); `make docs` counts "
            "its lines as current."
        )
    else:
        print("The sample is of the code of today.")
    for missing in sorted(set(WORLDS) - set(worlds())):
        print(f"The world {missing} cannot run here: its sample was left out.")


if __name__ == "__main__":
    main()
