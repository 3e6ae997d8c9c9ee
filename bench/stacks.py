"""Stacks behind adapters, beside those that are linked in: what each controller does on the same paths.

    .venv/bin/python bench/stacks.py NAME=COMMAND... [--seconds 20] [--record]

Each controller alone at 50 Mbit/s and 50 ms with 0.5, 1 and 4 bdp of buffer, with 1 % loss, and beside CUBIC
of noq with 1 bdp; and whether its packets repeat. Without a stack, only those that are linked in.
"""

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fullpipe as fp
from fullpipe import evidence
from fullpipe.runs.worlds import quic, quic_program, quic_stacks, stacks

FILE = Path(__file__).resolve().parent.parent / "results" / "stacks.jsonl"
SEED = 1
# Behind it, a flow has left slow start.
SETTLED_S = 5
PATHS: dict[str, dict[str, Any]] = {
    "0.5 bdp": {"buffer": "0.5 bdp"},
    "1 bdp": {"buffer": "1 bdp"},
    "4 bdp": {"buffer": "4 bdp"},
    "1 % loss": {"buffer": "1 bdp", "loss": "1 %"},
}
BESIDE = "beside CUBIC"
_CUBIC = "noq:cubic"


def main() -> None:
    """Measures, prints the table, and records what it is made of."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("stack", nargs="*", metavar="NAME=COMMAND")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--record", action="store_true", help="put the results into results/stacks.jsonl")
    said = parser.parse_args()
    given = [stacks.of_text(one) for one in said.stack]
    with stacks.using(given):
        lines = []
        for name, stack in subjects(given):
            lines.append(line(name, stack, said.seconds))
            print(row(lines[-1]), flush=True)
    print(table(lines), end="")
    if said.record:
        evidence.replace(FILE, lines, size=lambda one: (one["setup"]["seconds"],))


def subjects(given: Sequence[stacks.Stack]) -> list[tuple[str, stacks.Stack | None]]:
    """Every controller of every stack, and the stack if it is behind an adapter."""
    linked = [
        (f"{one['name']}:{two['name']}", None)
        for one in quic_program.about().stacks
        for two in one["controllers"]
    ]
    return [*linked, *((f"{one.name}:{name}", one) for one in given for name in one.about["controllers"])]


def line(name: str, stack: stacks.Stack | None, seconds: int) -> evidence.Line:
    """What one controller did."""
    values: dict[str, Any] = {}
    began = os.times()
    packets = 0
    for path, more in PATHS.items():
        values[path], sent = measured([name], more, seconds)
        packets += sent
    spent = os.times()
    values[BESIDE], _ = measured([name, _CUBIC], PATHS["1 bdp"], seconds)
    cpu_s = sum(spent[:4]) - sum(began[:4])
    checks = [] if stack is None else quic_stacks.check(stack, [name.partition(":")[2]], "4 s")
    command = shlex.join(
        ["python", "bench/stacks.py", *([] if stack is None else [f"{stack.name}=..."]), "--record"]
    )
    return {
        "key": {"controller": name},
        "made": evidence.made(command, {quic.NAME: quic_program.about().build}, [quic.WORLD.versions()]),
        "setup": {"rate": "50 Mbit/s", "rtt": "50 ms", "seconds": seconds, "seed": SEED},
        "stack": version(name, stack),
        "policy": "" if stack is None else stack.about["policy"],
        "values": values,
        "repeats": all(one.equal for one in checks),
        "differs": next((one.differs for one in checks if not one.equal), ""),
        "packets_per_cpu_s": packets / cpu_s if cpu_s else None,
    }


def version(name: str, stack: stacks.Stack | None) -> str:
    """The stack with its version and licence."""
    if stack is not None:
        return f"{stack.about['name']} {stack.about['version']} ({stack.about['licence']})"
    (crate,) = [one["crate"] for one in quic_program.about().stacks if one["name"] == name.partition(":")[0]]
    return f"{crate} (MIT OR Apache-2.0)"


def measured(names: Sequence[str], path: Mapping[str, Any], seconds: int) -> tuple[dict[str, Any], int]:
    """Goodput of the first flow, Mbit/s, its share, the queue's p95, ms, its losses, %; and packets sent.

    A run that fails has its reason instead.
    """
    document = {
        "name": "stacks",
        "duration": f"{seconds} s",
        "path": {"rate": "50 Mbit/s", "rtt": "50 ms", **path},
        "flows": [{"controller": name, "start_jitter": "0 s"} for name in names],
        "record": {"warmup": f"{SETTLED_S} s"},
    }
    try:
        (run,) = fp.run(document, world="quic", seed=SEED).runs
    except fp.WorldError as error:
        return {"error": str(error)}, 0
    flows, (link, *_) = run.summary["flows"], run.summary["links"]
    goodput = flows[0]["goodput_bps"] / 1e6
    return {
        "goodput_mbps": goodput,
        "share": goodput * 1e6 / sum(flow["goodput_bps"] for flow in flows),
        "queue_p95_ms": link["delay_p95_ms"],
        "loss_percent": 100 * link["dropped_packets"] / max(1, link["arrived_packets"]),
    }, sum(flow["segments_sent"] for flow in flows)


def row(one: evidence.Line) -> str:
    """A row of the table."""
    cells = []
    for path in PATHS:
        value = one["values"][path]
        cells.append(
            "fails"
            if "error" in value
            else f"{value['goodput_mbps']:.1f} | {value['queue_p95_ms']:.0f} | {value['loss_percent']:.2f}"
        )
    beside = one["values"][BESIDE]
    cells.append("fails" if "error" in beside else f"{beside['share']:.0%}")
    cells.append("yes" if one["repeats"] else "no")
    rate = one["packets_per_cpu_s"]
    cells.append("–" if rate is None else f"{rate / 1e3:,.0f}")
    return f"| {one['key']['controller']} | {' | '.join(cells)} |"


def table(lines: Sequence[evidence.Line], older: str = "") -> str:
    """A row for each controller, and the stacks with their adapters' policies."""
    if not lines:
        return ""
    setup = lines[0]["setup"]
    of_path = " | ".join(f"{path}: Mbit/s | p95 queue, ms | loss, %" for path in PATHS)
    settled = f"of which the first {SETTLED_S} are left out; seed {setup['seed']}"
    text = [
        f"{setup['rate']}, {setup['rtt']}, {setup['seconds']} s, {settled}. Share: of the goodput beside "
        f"`{_CUBIC}`, with 1 bdp. Repeats: `fullpipe stacks check`. The last column is thousands of packets of "
        "the sender's a second of CPU, of all processes.",
        *(["", older] if older else []),
        "",
        f"| controller | {of_path} | share | repeats | packets |",
        f"|---|{'---|' * (3 * len(PATHS) + 3)}",
        *map(row, lines),
        "",
    ]
    for described in dict.fromkeys((one["stack"], one["policy"]) for one in lines if one["policy"]):
        text.append(f"* {described[0]}: {described[1]}.")
    return "\n".join([*text, ""])


if __name__ == "__main__":
    main()
