"""Does a gate give the same bytes every time? Records one again and again while the machine is busy.

    .venv/bin/python bench/gate_repeats.py cubic [--runs 100] [--record]
    make quic && .venv/bin/python bench/gate_repeats.py noq:cubic --runs 10

writes the gate that `fullpipe gate init` makes for a controller, and records it without a cache: half of the
runs on one core, half on all. Twice as many run at a time as there are cores, so that they get in each
other's way. Exit code 1: two baselines differ in a byte. `--record` puts the counts into results/gate.jsonl.
"""

import argparse
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fullpipe import evidence
from fullpipe.gate import template
from fullpipe.runs.worlds import registry
from fullpipe.scenario.controllers import is_of_stack

FILE = Path(__file__).resolve().parent.parent / "results" / "gate.jsonl"


def main() -> int:
    """Records, compares, prints and keeps the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("controller", help="e.g. cubic or noq:cubic")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--record", action="store_true", help="put the counts into results/gate.jsonl")
    parser.add_argument(
        evidence.LARGER, action="store_true", help="let fewer runs replace more of the same code"
    )
    asked = parser.parse_args()
    if asked.record:
        evidence.read(FILE)  # A file that cannot be used is an error now.
    with tempfile.TemporaryDirectory() as folder:
        found = measured(asked, Path(folder))
    command = shlex.join(["python", "bench/gate_repeats.py", *sys.argv[1:]])
    lines = [line(asked.controller, command, cores, one) for cores, one in found.items()]
    print(table(lines), end="")
    if asked.record:
        evidence.replace(FILE, lines, size=None if asked.replace_larger else lambda one: [one["runs"]])
    return int(len({one for of in found.values() for one in of["baselines"]}) != 1)


def measured(asked: argparse.Namespace, folder: Path) -> dict[int, dict[str, Any]]:
    """By the number of cores: the runs, the hash of each baseline, the cases, and the load."""
    gate = folder / "gate.toml"
    gate.write_text(template.text_of([asked.controller]), encoding="utf-8")
    every = sorted(os.sched_getaffinity(0))
    cores = [every if number % 2 else every[:1] for number in range(asked.runs)]
    found: dict[int, dict[str, Any]] = {}
    with ThreadPoolExecutor(2 * len(every)) as pool:
        baselines = pool.map(lambda at: recorded(gate, folder / str(at), cores[at]), range(asked.runs))
        for at, baseline in enumerate(baselines):
            one = found.setdefault(len(cores[at]), {"runs": 0, "baselines": set(), "cases": 0, "load": 0.0})
            one["baselines"].add(hashlib.sha256(baseline).hexdigest())
            one["cases"] = baseline.count(b"\n")
            one["runs"] += 1
            one["load"] = max(one["load"], os.getloadavg()[0])
            print(f"{at + 1} of {asked.runs}", file=sys.stderr)
    return found


def recorded(gate: Path, path: Path, cores: Sequence[int]) -> bytes:
    """Records the gate once, on these cores; returns the baseline."""
    words = ["gate", "record", str(gate), "--baseline", str(path), "--no-cache"]
    pinned = ["taskset", "--cpu-list", ",".join(map(str, cores))]
    subprocess.run([*pinned, sys.executable, "-m", "fullpipe", *words], check=True, stdout=subprocess.DEVNULL)
    return path.read_bytes()


def line(controller: str, command: str, cores: int, one: Mapping[str, Any]) -> evidence.Line:
    """The evidence of the runs on so many cores."""
    world = registry.named("quic" if is_of_stack(controller) else "sim")
    versions = world.versions()
    made = evidence.made(command, {world.name: world.build()}, versions.split(", ") if versions else [])
    key = {"controller": controller, "cores": cores}
    counts = {name: one[name] for name in ("cases", "runs", "load")}
    return {"key": key, "made": made, **counts, "baselines": sorted(one["baselines"])}


def table(lines: Sequence[evidence.Line], older: str = "") -> str:
    """How many different baselines there were."""
    rows = [older, ""] if older else []
    rows += ["| controller | cases | cores | times recorded | load average, highest | different baselines |"]
    rows += ["|---|---|---|---|---|---|"]
    for one in lines:
        controller, cores = one["key"].values()
        same = [of for of in lines if of["key"]["controller"] == controller]
        different = len({hash for of in same for hash in of["baselines"]})
        shown = (f"`{controller}`", one["cases"], cores, one["runs"], f"{one['load']:.0f}", different)
        rows.append(f"| {' | '.join(map(str, shown))} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main())
