"""Our controllers in this kernel: do they decide as in the simulator, and what do they cost?

    python bench/kernel_prove.py [--seconds 12] [--only replay|cost] [--record]

`replay` records each call over 18 paths a controller and repeats it in user space against the same Rust (as
`fullpipe kernel prove`); exit code 1: a decision differs, or a call was not recorded. `cost` sends one flow
over the loopback device of a network namespace, as fast as it can, in turn with the kernel's own controllers,
and reads what the kernel counts of the time in our program for ACKs. Needs root, bpftool and iperf3.
`--record` puts the lines into results/kernel.jsonl.
"""

import argparse
import itertools
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import evidence
from fullpipe.runs.worlds import registry

FILE = Path(__file__).resolve().parent.parent / "results" / "kernel.jsonl"
CONTROLLERS = ("bbr3", "bbr3:profile=linux", "bbr3:profile=repaired", "bbr1:probe_gain=1.5")
PATHS = [
    ("--rate", f"{mbps} Mbit/s", "--rtt", f"{rtt} ms", "--loss", loss)
    for mbps, rtt, loss in itertools.product((20, 100, 200), (10, 40, 100), ("0 %", "1 %"))
]
# What is loaded for `cost`, beside the kernel's own.
LOADED, OWN = ("bbr3", "bbr3:profile=linux", "bbr1"), ("bbr", "cubic")
ROUNDS, ROUND_S = 7, 3
UNSHAPED = "loopback, unshaped"


def main() -> int:
    """Measures, prints and records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=12, help="of each recorded run")
    parser.add_argument("--only", choices=("replay", "cost"))
    parser.add_argument("--record", action="store_true", help=f"put the lines into results/{FILE.name}")
    asked = parser.parse_args()
    missing = [one for one in ("bpftool", "iperf3", "ss") if shutil.which(one) is None]
    if missing and asked.only != "replay":
        sys.exit(f"{', '.join(missing)} is missing (Debian, Ubuntu: bpftool, iperf3, iproute2)")
    lines = [] if asked.only == "cost" else replayed(asked.seconds)
    lines += [] if asked.only == "replay" else costs()
    if asked.record:
        evidence.replace(FILE, lines)
    print(*tables(lines).values(), sep="\n")
    return int(any(one["different"] or one["lost"] for one in lines))


def line(controller: str, path: str, **measured: Any) -> evidence.Line:
    """A line of results/kernel.jsonl; what its kind does not measure is null."""
    world = registry.named("kernel")
    empty = dict.fromkeys(("calls", "different", "lost", "unknown", "verified", "gbps", "of_bbr", "ack_ns"))
    command = shlex.join(["python", "bench/kernel_prove.py", *sys.argv[1:]])
    return {
        "key": {"controller": controller, "path": path},
        "made": evidence.made(command, {world.name: world.build()}, [os.uname().release]),
        "load": round(os.getloadavg()[0], 1),
        **empty,
        **measured,
    }


def replayed(seconds: int) -> list[evidence.Line]:
    """A line for each controller and path: how many calls, and how many decisions differ."""
    found = []
    for controller, path in itertools.product(CONTROLLERS, PATHS):
        words = ["kernel", "prove", controller, *path, "--duration", f"{seconds} s", "--json"]
        done = subprocess.run([sys.executable, "-m", "fullpipe", *words], capture_output=True, text=True)
        if not done.stdout.startswith("{"):
            sys.exit(done.stderr)
        proof = json.loads(done.stdout)
        counters = proof["counters"]
        found.append(
            line(
                controller,
                ", ".join(path[1::2]),
                calls=proof["calls"],
                different=proof["different"],
                lost=proof["lost"],
                unknown=counters["sends_unknown"] + counters["losses_unknown"],
                verified=max(proof["verified"].values()),
            )
        )
        print(f"{controller}, {', '.join(path[1::2])}: {proof['calls']} calls", file=sys.stderr)
    return found


def costs() -> list[evidence.Line]:
    """A line for each controller: its throughput without a bottleneck, in turn with the kernel's `bbr`."""
    ours = {f"prove_{at}": one for at, one in enumerate(LOADED)}
    names = ours | {one: one for one in OWN}
    gbps: dict[str, list[float]] = defaultdict(list)
    spent = {}
    counting = Path("/proc/sys/kernel/bpf_stats_enabled")
    with ExitStack() as held:
        held.callback(counting.write_text, counting.read_text(encoding="ascii"), encoding="ascii")
        for name, controller in ours.items():
            _native.kernel_load(controller, name, as_default=False)
            held.callback(_native.kernel_unload, name)
        for _ in range(ROUNDS):
            for name in names:
                gbps[name].append(throughput(name))
        # Counting takes time, so nothing else is measured meanwhile.
        counting.write_text("1", encoding="ascii")
        for name in ours:
            earlier = programs()
            throughput(name)
            spent[name] = nanoseconds(earlier, programs())
    return [
        line(
            controller,
            UNSHAPED,
            gbps={"median": statistics.median(gbps[name]), "low": min(gbps[name]), "high": max(gbps[name])},
            of_bbr=statistics.median(a / b for a, b in zip(gbps[name], gbps["bbr"], strict=True)),
            ack_ns=spent.get(name),
        )
        for name, controller in names.items()
    ]


def throughput(name: str) -> float:
    """Gbit/s of one flow of iperf3 over the loopback device of a namespace of its own."""
    inside = (
        "ip link set lo up; iperf3 -s -1 > /dev/null & until ss -ltn | grep -q :5201; do sleep 0.05; done; "
        f"iperf3 -c 127.0.0.1 -C {name} -t {ROUND_S} -J"
    )
    # All processes of the namespace end with this command.
    words = ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", inside]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=ROUND_S + 30)
    found = json.loads(done.stdout)
    if "error" in found:
        sys.exit(f"iperf3 -C {name}: {found['error']}")
    return float(found["end"]["sum_received"]["bits_per_second"]) / 1e9


def programs() -> dict[int, tuple[int, int]]:
    """Of each of our programs for ACKs: nanoseconds and runs."""
    shown = subprocess.run(["bpftool", "prog", "show", "-j"], capture_output=True, text=True, check=True)
    return {
        one["id"]: (one.get("run_time_ns", 0), one.get("run_cnt", 0))
        for one in json.loads(shown.stdout)
        if one.get("name") == "on_ack"
    }


def nanoseconds(before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]) -> float:
    """What an ACK took in the mean."""
    took = sum(after[one][0] - before.get(one, (0, 0))[0] for one in after)
    runs = sum(after[one][1] - before.get(one, (0, 0))[1] for one in after)
    return took / runs


def tables(lines: Sequence[evidence.Line], older: str = "") -> dict[str, str]:
    """What docs/how-to/bbr3-on-your-kernel.md shows."""
    head = [older, ""] if older else []
    replay = [one for one in lines if one["calls"] is not None]
    rows = ["| controller | calls | differ | not recorded | packet's state unknown | verified |"]
    rows += ["|---|---|---|---|---|---|"]
    for controller in dict.fromkeys(one["key"]["controller"] for one in replay):
        of = [one for one in replay if one["key"]["controller"] == controller]
        counts = [sum(one[name] for one in of) for name in ("calls", "different", "lost", "unknown")]
        shown = (
            f"`{controller}`",
            *(f"{one:,}" for one in counts),
            f"{max(one['verified'] for one in of):,}",
        )
        rows.append(f"| {' | '.join(map(str, shown))} |")
    fast = ["| controller | Gbit/s | of `bbr` | an ACK, ns |", "|---|---|---|---|"]
    for one in sorted((one for one in lines if one["gbps"] is not None), key=lambda one: -one["of_bbr"]):
        rate, name = one["gbps"], one["key"]["controller"]
        took = "–" if one["ack_ns"] is None else f"{one['ack_ns']:.0f}"
        fast.append(
            f"| `{name}` | {rate['median']:.1f} ({rate['low']:.1f} to {rate['high']:.1f}) | "
            f"{one['of_bbr']:.2f} | {took} |"
        )
    cost = fast if len(fast) > 2 else ["Not measured yet."]
    return {"kernel-replay": "\n".join([*head, *rows]) + "\n", "kernel-cost": "\n".join(cost) + "\n"}


if __name__ == "__main__":
    sys.exit(main())
