"""Records how fast something is: lines of JSON from a benchmark, into results/speed.jsonl.

    cargo run --release -p fullpipe-bench -- packets --json | python bench/record.py "fullpipe-bench packets"

What is no JSON is shown. `make docs` makes the tables of bench/README.md of the lines.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fullpipe import evidence
from fullpipe.runs.worlds import registry

FILE = Path(__file__).resolve().parent.parent / "results" / "speed.jsonl"
FLOWS = ("1", "10", "100", "1 000", "10 000")
PEER = "csg-htsim, NewReno"
RTTS = ("1 ms", "10 ms", "100 ms", "500 ms")

Lines = Mapping[tuple[str, str], Mapping[str, Any]]


def main() -> None:
    """Reads, shows and records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command", help="what measured: the words that a user types")
    parser.add_argument(
        evidence.LARGER, action="store_true", help="let fewer rounds replace more of the same code"
    )
    asked = parser.parse_args()
    found = lines(sys.stdin, asked.command)
    evidence.replace(FILE, found, size=None if asked.replace_larger else lambda line: [line["runs"] or 0])


def lines(printed: Iterable[str], command: str) -> list[evidence.Line]:
    """The evidence in what a benchmark prints, the last line of each case; the rest is printed again."""
    sim = registry.named("sim")
    made = evidence.made(command, {sim.name: sim.build()}, [cpu()])
    found = {}
    for one in printed:
        if not one.startswith("{"):
            print(one, end="", flush=True)
            continue
        message = json.loads(one)
        key = {name: message.pop(name) for name in ("benchmark", "case")}
        found[tuple(key.values())] = {"key": key, "made": made, **message}
    return list(found.values())


def cpu() -> str:
    """The processor's name."""
    message = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((one.partition(": ")[2] for one in message if one.startswith("model name")), "unknown")


def tables(found: Sequence[evidence.Line], builds: evidence.Builds) -> dict[str, str]:
    """The tables of bench/README.md, by their names there."""
    by_case = {(line["key"]["benchmark"], line["key"]["case"]): line for line in found}
    made = {name: make(by_case) for name, make in TABLES.items()}
    ages = {
        name: evidence.ages_sentence(
            [line for line in found if line["key"]["benchmark"] == name], "case", builds
        )
        for name in made
    }
    return {name: f"{ages[name]}\n\n{text}".lstrip() for name, text in made.items()}


def number(line: Mapping[str, Any] | None, name: str = "median") -> str:
    """A value: below 100, with a digit after the point, if it is no count."""
    if line is None or line[name] is None:
        return ""
    return f"{line[name]:.{1 if line['unit'].startswith('ns/') and line[name] < 100 else 0}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown."""
    lines = [f"| {' | '.join(one)} |\n" for one in (head, *rows)]
    return "".join([lines[0], "|" + "---|" * len(head) + "\n", *lines[1:]])


def _packets(by_case: Lines) -> str:
    controllers = ("bbr1", "cubic", "reno")
    rows = []
    for path in ("100 Mbit/s, 40 ms", "1 Gbit/s, 20 ms", "10 Gbit/s, 10 ms"):
        for loss in ("0 %", "1 %", "5 %"):
            each = [by_case.get(("packets", f"{one}, {path}, {loss}")) for one in controllers]
            shown = [number(one) if loss == "0 %" else _with_ratio(one) for one in each]
            rows.append([path if loss == "0 %" else "", loss, *shown])
    path = "100 Mbit/s, 40 ms"
    for loss in ("0 %", "1 %"):
        each = [by_case.get(("instructions", f"{one}, {path}, {loss}")) for one in controllers]
        rows.append([f"instructions, {path}" if loss == "0 %" else "", loss, *map(number, each)])
    return table(["path", "loss", *controllers], rows)


def _with_ratio(line: Mapping[str, Any] | None) -> str:
    return "" if line is None else f"{number(line)} ({line['ratio']:.2f})"


def _queues(by_case: Lines) -> str:
    names = ("fifo", "codel", "fq_codel", "step", "pie", "red", "dualpi2")
    rows = []
    for controller in ("cubic", "bbr1"):
        each = {name: by_case.get(("queues", f"{controller}, {name}")) for name in names}
        first = each["fifo"]
        base = 0.0 if first is None else first["median"]
        more = (
            "" if one is None or one is first else f" (+{(one['ratio'] - 1) * base:.0f})"
            for one in each.values()
        )
        rows.append(
            [controller, *(f"{number(one)}{of}" for one, of in zip(each.values(), more, strict=True))]
        )
    return table(["", *names], rows)


def _flows(by_case: Lines) -> str:
    def row(name: str, benchmark: str, case: str, shown: Callable[[Any], str]) -> list[str]:
        return [name, *(shown(by_case.get((benchmark, case.format(one.replace(" ", ""))))) for one in FLOWS)]

    def least(line: Mapping[str, Any] | None) -> str:
        return "" if line is None else f"{number(line)} ({number(line, 'low')})"

    return table(
        ["flows", *FLOWS],
        [
            row("cubic", "flows", "cubic, {}", least),
            row("bbr1", "flows", "bbr1, {}", least),
            row("resent by bbr1", "resent", "bbr1, {}", lambda one: (one and f"{one['median']:.1f} %") or ""),
        ],
    )


def _htsim(by_case: Lines) -> str:
    def cell(name: str, flows: str) -> str:
        line = by_case.get(("htsim", f"{name}, {flows.replace(' ', '')}"))
        return number(line) if line is None or line["ratio"] is None else _with_ratio(line)

    names = (PEER, "reno", "cubic", "bbr1", "bbr3")
    return table(["flows", *FLOWS], [[name, *(cell(name, flows) for flows in FLOWS)] for name in names])


def _pairs(by_case: Lines) -> str:
    def cell(controller: str, flows: str, loss: str) -> str:
        case = f"{controller}, {flows.replace(' ', '')}, {loss}"
        before, after = (by_case.get(("pairs", f"{case}, {build}")) for build in ("before", "after"))
        return "" if after is None else f"{number(before)} → {number(after)} ({after['ratio']:.2f})"

    return table(
        ["flows", "loss", *FLOWS],
        [
            [controller, loss, *(cell(controller, flows, loss) for flows in FLOWS)]
            for controller in ("reno", "cubic", "bbr1", "bbr3")
            for loss in ("0 %", "1 %")
        ],
    )


def _scale(by_case: Lines) -> str:
    rows = []
    for rate in ("10 Mbit/s", "100 Mbit/s", "1 Gbit/s", "10 Gbit/s", "100 Gbit/s"):
        each = [
            " / ".join(f"{line['median']:.0f}" if line else "–" for line in found)
            for one in ("bbr1", "cubic")
            for found in [[by_case.get(("scale", f"{one}, {rate}, {rtt}")) for rtt in RTTS]]
        ]
        rows.append([rate, *each])
    return table(["rate", "bbr1", "cubic"], rows)


def _controllers(by_case: Lines) -> str:
    found = {case: line for (benchmark, case), line in by_case.items() if benchmark == "controllers"}
    rows = [
        [case, number(by_case.get(("state", case))), number(line) + _of_ours(line), number(line, "low")]
        for case, line in found.items()
    ]
    return table(["", "state", "ns/ACK", "least"], rows)


def _of_ours(line: Mapping[str, Any]) -> str:
    return "" if line["ratio"] is None else f" ({line['ratio']:.1f} of ours)"


TABLES = {
    "packets": _packets,
    "queues": _queues,
    "flows": _flows,
    "htsim": _htsim,
    "pairs": _pairs,
    "scale": _scale,
    "controllers": _controllers,
}


if __name__ == "__main__":
    main()
