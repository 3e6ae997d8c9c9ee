"""What the claims cost in the simulator. To resolve all their scenarios would take a reader's ten seconds.

`make docs` renews the file; a test compares some of it with the scenarios.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from fullpipe_studies.claim import Size

FILE = Path(__file__).with_name("costs.json")


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


def text(found: Mapping[str, Mapping[Size, Cost]]) -> str:
    """The file: a line for each claim."""
    lines = []
    for claim, sizes in found.items():
        shown = {size.value: [one.all_s, one.longest_s] for size, one in sizes.items()}
        lines.append(f" {json.dumps(claim)}: {json.dumps(shown)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
