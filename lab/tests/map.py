"""A small decision map as the package computes it, for `lab/src/views/map/same.test.ts`.

`python lab/tests/map.py` writes it.
"""

import json
from pathlib import Path
from typing import Any

from fullpipe.advisor import goals, map
from fullpipe.advisor.question import Question, parsed
from fullpipe.runs.memory import Memory

FILE = Path(__file__).with_name("map.json")
PATH: dict[str, Any] = {"rate": "1 Mbit/s..16 Mbit/s", "rtt": "10 ms..100 ms", "buffer": "40 KB"}
CANDIDATES = ("bbr3", "cubic", "reno")
STEPS, SEEDS = 3, 3


def maps() -> dict[str, Any]:
    """The map for each goal."""
    axes = {name: parsed(name, PATH[name]) for name in ("rate", "rtt")}
    question = Question(**axes, buffer=PATH["buffer"], loss="0.05 %", candidates=CANDIDATES)
    found = {}
    for goal in goals.GOALS:
        asked = map.ask(question, "rate", "rtt", goal=goal, steps=STEPS, seeds=SEEDS)
        drawn = map.draw(asked, Memory())
        found[goal] = [
            {name: point[name] for name in ("winner", "ahead", "scores")}
            for point in drawn.to_dict()["points"]
        ]
    return {
        "loss": "0.05 %",
        **PATH,
        "candidates": list(CANDIDATES),
        "steps": STEPS,
        "seeds": SEEDS,
        "goals": found,
    }


def main() -> None:
    """Writes the file."""
    FILE.write_text(json.dumps(maps(), indent=1) + "\n")


if __name__ == "__main__":
    main()
