"""How each stack's congestion control does on the same paths, in virtual time.

    make quic stack-smoltcp stack-aioquic && .venv/bin/python bench/stacks.py --record

runs every controller of noq, Quinn and each adapter in .venv/bin (docs/how-to/stacks.md) over the paths of
`CELLS`, with 1 BDP beside a CUBIC flow of ours, and says whether equal seeds give equal packets. `--stack
NAME=COMMAND` takes these adapters instead. `--record` puts the lines into results/stacks.jsonl, from which
`make docs` makes the table. A run that fails is a line, too.
"""

import argparse
import resource
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import quic_conform

import fullpipe as fp
from fullpipe import evidence
from fullpipe.measures.statistics import Estimate, estimate
from fullpipe.runs.worlds import quic_stacks, registry, stacks
from fullpipe.text import joined

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "results" / "stacks.jsonl"
WORLD = "quic"
RATE, RTT, ALONE_S, SEEDS = "50 Mbit/s", "50 ms", 20, 3
# The paths, by what the table calls them: what differs from the others, and whether a CUBIC flow shares it.
CELLS: dict[str, tuple[dict[str, str], bool]] = {
    "0.5 BDP": ({"buffer": "0.5 bdp"}, False),
    "1 BDP": ({"buffer": "1 bdp"}, False),
    "4 BDP": ({"buffer": "4 bdp"}, False),
    "1 % loss": ({"buffer": "1 bdp", "loss": "1 %"}, False),
    "beside CUBIC": ({"buffer": "1 bdp"}, True),
}
SHARED_S = 60
# Fullpipe's own, in the same world, so that the table has something to compare with.
OURS = ("bbr3", "bbr1", "cubic9438", "newreno")
MEASURES = {"goodput_mbps": ("goodput_bps", 1e-6), "queue_p95_ms": ("queue_delay_p95_ms", 1.0)}


def main() -> None:
    """Runs the cells, prints the table, and keeps the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("controllers", nargs="*", help="only these, e.g. noq:cubic")
    parser.add_argument("--stack", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--record", action="store_true", help="put the lines into results/stacks.jsonl")
    asked = parser.parse_args()
    if asked.record:
        evidence.read(FILE)  # A file that cannot be used is an error now.
    given = asked.stack or [
        f"{path.name.removeprefix('stack-')}={path}" for path in sorted((ROOT / ".venv/bin").glob("stack-*"))
    ]
    stacks.give([stacks.of_text(one) for one in given])
    known = {f"{one['name']}:{name}": one for one in quic_stacks.listed() for name in one["controllers"]}
    command = shlex.join(["python", "bench/stacks.py", *asked.controllers, "--record"])
    made = [
        line
        for controller in asked.controllers or [*OURS, *known]
        for line in lines(controller, known.get(controller), command)
    ]
    print(table(made), end="")
    if asked.record:
        evidence.replace(FILE, made)


def lines(controller: str, stack: Mapping[str, Any] | None, command: str) -> Iterator[evidence.Line]:
    """The evidence of a controller: a line for each path."""
    world = registry.named(WORLD)
    who = {
        "source": "Fullpipe" if stack is None else stack["source"],
        "policy": "" if stack is None else stack["policy"],
        "equal_packets": deterministic(controller),
    }
    for cell in CELLS:
        print(f"{controller}, {cell}", file=sys.stderr)
        made = evidence.made(command, {world.name: world.build()}, world.versions().split(", "))
        yield {
            "key": {"cell": cell, "controller": controller},
            "made": made,
            **who,
            **measured(controller, cell),
        }


def deterministic(controller: str) -> bool | None:
    """Whether equal seeds give equal packets, for a stack behind an adapter.

    None for one that is linked in, which the world's tests check.
    """
    found = stacks.behind([controller])
    if not found:
        return None
    try:
        return all(one.equal for one in quic_stacks.check(found[0], [controller.partition(":")[2]], "4 s"))
    except fp.WorldError as error:
        print(f"{controller}: {error}", file=sys.stderr)
        return False


def document(controller: str, cell: str) -> dict[str, Any]:
    """The scenario of a controller on a path."""
    path, shared = CELLS[cell]
    flows = [{"controller": controller, "label": "subject"}]
    flows += [{"controller": "cubic9438", "label": "CUBIC"}] if shared else []
    return {
        "name": f"{controller}, {cell}",
        "duration": f"{SHARED_S if shared else ALONE_S} s",
        "path": {"rate": RATE, "rtt": RTT, **path},
        "flows": flows,
    }


def measured(controller: str, cell: str) -> dict[str, Any]:
    """What the runs of a cell gave: means over seeds with the half-widths of their 95 % intervals."""
    before = spent()
    try:
        results = fp.run(document(controller, cell), world=WORLD, seeds=SEEDS)
    except fp.WorldError as error:
        none = dict.fromkeys((*MEASURES, "dropped_percent", "share_percent", "packets_per_cpu_s"))
        return {"seeds": SEEDS, "fails": str(error), **none}
    cpu = spent() - before
    sent = sum(flow["segments_sent"] for run in results.runs for flow in run.summary["flows"])
    (group,) = results.groups
    shares = [share for run in results.runs if (share := share_of(run)) is not None]
    return {
        "seeds": SEEDS,
        "fails": None,
        **{name: interval(group.measures[measure], factor) for name, (measure, factor) in MEASURES.items()},
        # The queue counts its drops; not every stack tells what it lost.
        "dropped_percent": interval(estimate([100 * dropped(run) for run in results.runs]), 1.0),
        "share_percent": interval(estimate(shares), 1.0) if shares else None,
        "packets_per_cpu_s": round(sent / max(cpu, 1e-3), -2),
    }


def dropped(run: fp.Run) -> float:
    """The share of packets that the queue dropped, start-up included; random loss is not counted."""
    (link,) = run.summary["links"]
    return float(link["drop_ratio"])


def share_of(run: fp.Run) -> float | None:
    """The subject's share of all that was delivered, in percent; None where it is alone."""
    by = {flow["label"]: flow["goodput_bps"] for flow in run.summary["flows"]}
    return 100 * by["subject"] / sum(by.values()) if len(by) > 1 else None


def interval(value: Estimate | None, factor: float) -> dict[str, float | None] | None:
    """A mean and half the width of its interval."""
    if value is None:
        return None
    half = value.half_width
    return {"mean": value.mean * factor, "half": None if half is None else half * factor}


def spent() -> float:
    """The CPU time of all ended processes that this one started, s: the world's program and its adapters."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(made: Sequence[evidence.Line], cases: Sequence[evidence.Line] = (), older: str = "") -> str:
    """A row for each controller: a column for each path, cases passed, and its speed; and which repeat."""
    if not made:
        return "Nothing is recorded yet: `python bench/stacks.py --record`.\n"
    by = {(one["key"]["controller"], one["key"]["cell"]): one for one in made}
    suites = {
        suite: {
            one.controller: count.replace(" of ", "/")
            for one in quic_conform.conformities(cases, suite)
            # Nothing applies to a controller of another kind.
            if (count := quic_conform.passed(one)) != "0 of 0"
        }
        for suite in quic_conform.OF_SUITE
    }
    heads = ["controller", *CELLS, f"cases: {', '.join(suites)}", "packets a CPU second"]
    rows = [
        " ".join(filter(None, [_repeats(made), quic_conform.made_by(made), older])),
        "",
        f"| {' | '.join(heads)} |",
        "|" + "---|" * len(heads),
    ]
    for controller in sorted({one["key"]["controller"] for one in made}, key=_rank):
        of = [by.get((controller, cell)) for cell in CELLS]
        shown = [f"`{controller}`", *map(_cell, of)]
        shown += [", ".join(found.get(controller, "–") for found in suites.values()), _speed(of)]
        rows.append(f"| {' | '.join(shown)} |")
    return "\n".join(rows) + "\n"


def _repeats(made: Sequence[evidence.Line]) -> str:
    """Which controllers behind adapters give equal packets for equal seeds."""
    of = {one["key"]["controller"]: one["equal_packets"] for one in made}
    differ = sorted(f"`{controller}`" for controller, equal in of.items() if equal is False)
    if differ:
        return f"Equal seeds do not give equal packets for {joined(differ)}."
    return "Equal seeds give equal packets."


def _rank(controller: str) -> tuple[bool, str]:
    """Fullpipe's own first."""
    return ":" in controller, controller


def _cell(one: evidence.Line | None) -> str:
    """Goodput or the share, the 95th percentile of the queue, and the share of packets that it dropped."""
    if one is None:
        return "–"
    if one["fails"] is not None:
        return "fails"
    main = "share_percent" if one["share_percent"] is not None else "goodput_mbps"
    numbers = ((main, 1), ("queue_p95_ms", 0), ("dropped_percent", 2))
    return "/".join(_number(one[name], digits) for name, digits in numbers)


def _number(value: Mapping[str, float | None] | None, digits: int) -> str:
    return "–" if value is None or value["mean"] is None else f"{value['mean']:.{digits}f}"


def _speed(of: Sequence[evidence.Line | None]) -> str:
    found = [one["packets_per_cpu_s"] or 0 for one in of if one is not None]
    return f"{max(found):.0f}" if any(found) else "–"


if __name__ == "__main__":
    main()
