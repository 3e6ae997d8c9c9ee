"""What the claims cost in the simulator. To resolve all their scenarios would take a reader's ten seconds.

`make docs` renews the file; a test compares some of it with the scenarios.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from fullpipe.runs.worlds import registry
from fullpipe_studies.claim import Size

FILE = Path(__file__).with_name("costs.json")
_SIZES = (Size.FULL, Size.QUICK)


@dataclass(frozen=True)
class Cost:
    """Seconds of a core for all runs of a claim, and for the longest of them."""

    all_s: float
    longest_s: float

    def takes_s(self, cores: int) -> float:
        """How long the runs take at least on so many cores."""
        return max(self.all_s / cores, self.longest_s)


@cache
def _stored() -> dict[str, dict[str, list[float]]]:
    text = resources.files("fullpipe_studies").joinpath(FILE.name).read_text(encoding="utf-8")
    found: dict[str, dict[str, list[float]]] = json.loads(text)
    return found


def known(claim: str, size: Size) -> Cost | None:
    """The stored cost of a claim with its own number of seeds; None for one of another package."""
    found = _stored().get(claim, {}).get(size.value)
    return None if found is None else Cost(*found)


def of(claim: str, size: Size) -> Cost | None:
    """The cost that follows from the scenarios of a claim; None if it does not run in the simulator."""
    from fullpipe.runs.engines.local import Local
    from fullpipe_studies import catalogue
    from fullpipe_studies.run import Plan

    built = catalogue.built(claim)
    if built is None or registry.DEFAULT not in built.claim.worlds:
        return None
    plan = Plan(built, size, (registry.DEFAULT,), built.claim.seeds_of(size), 1)
    tasks, scale = plan.sample(registry.DEFAULT)
    runs = {(task.job.alternative.digest, task.job.seed): task for task in tasks}
    each = [Local().cost(task) for task in runs.values()]
    return Cost(round(sum(each) * scale, 2), round(max(each), 2)) if each else None


def text(claims: Iterable[str]) -> str:
    """The file: a line for each claim."""
    lines = []
    for claim in claims:
        found = {size.value: of(claim, size) for size in _SIZES}
        there = {size: [one.all_s, one.longest_s] for size, one in found.items() if one is not None}
        if there:
            lines.append(f" {json.dumps(claim)}: {json.dumps(there)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
