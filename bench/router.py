"""Do routers drop bursts or segments? A model, a real router with our traffic, and one with iperf3.

    .venv/bin/python bench/router.py [--record]

A tc-tbf with a bucket that holds a burst of the host, and with one that does not and so splits it; and a host
that makes bursts, and one that makes none (gso_max_segs 1). Needs root, iproute2, sch_tbf and iperf3.
Takes five minutes, and longer where runs have to be repeated because they cannot be trusted. The real routers
and hosts are namespaces without names, which vanish with this process.
"""

import argparse
import itertools
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fullpipe as fp
from fullpipe import evidence
from fullpipe.runs.worlds import registry

BUCKETS = ("250 KB", "16 KB")
SEGMENTS = (65535, 1)
CONTROLLERS = {"cubic": "cubic", "bbr1": "bbr"}
IPERF3 = "iperf3"
WAYS = ("sim", "sim, Linux hosts", "kernel", IPERF3)
ROWS = list(itertools.product(BUCKETS, SEGMENTS, CONTROLLERS))
FILE = Path(__file__).resolve().parent.parent / "results" / "router.jsonl"
SETUP = ("rate", "rtt", "buffer", "seconds", "repetitions", "attempts")


@dataclass(frozen=True)
class Measured:
    """One run: the share of retransmitted segments, and why it cannot be trusted."""

    share: float
    doubts: Sequence[str] = ()


def main() -> None:
    """Measures, prints the table, and records what it is made of."""
    message = options().parse_args()
    if message.record:
        evidence.read(FILE)  # A file that cannot be used is an error now.
    lines = []
    for bucket, segments, controller in ROWS:
        for way in WAYS:
            runs = measured(way, message, bucket, segments, controller)
            lines.append(line(message, (bucket, segments, controller, way), runs))
            print(way, *list(lines[-1]["key"].values())[:3], shown(lines[-1]), flush=True)
    print(table(lines), end="")
    if message.record:
        evidence.replace(FILE, lines, size=None if message.replace_larger else size)


def size(line: Mapping[str, Any]) -> tuple[int, ...]:
    """How much was run for a line."""
    return line["setup"]["seconds"], line["setup"]["repetitions"]


def options() -> argparse.ArgumentParser:
    """What can be given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rate", default="200 Mbit/s")
    parser.add_argument("--rtt", default="0.2 ms")
    parser.add_argument("--buffer", default="100 KB")
    parser.add_argument("--seconds", type=at_least_one, default=5)
    parser.add_argument(
        "--repetitions", type=at_least_one, default=3, help="runs, and seeds of the simulator"
    )
    parser.add_argument("--attempts", type=at_least_one, default=3, help="per run, until one can be trusted")
    parser.add_argument("--record", action="store_true", help="put the results into results/router.jsonl")
    parser.add_argument(
        evidence.LARGER, action="store_true", help="let a smaller run replace a larger one of the same code"
    )
    return parser


def at_least_one(given: str) -> int:
    """A whole number from 1."""
    number = int(given)
    if number < 1:
        raise ValueError(given)
    return number


def line(
    message: argparse.Namespace, key: tuple[str, int, str, str], runs: Sequence[Measured | None]
) -> evidence.Line:
    """The evidence of one cell of the table: the shares of the runs that can be trusted."""
    defaults = options().parse_args([])
    words = [
        word
        for name in SETUP
        if getattr(message, name) != getattr(defaults, name)
        for word in (f"--{name}", str(getattr(message, name)))
    ]
    command = shlex.join(["python", "bench/router.py", *words, "--record"])
    world = registry.named("sim" if key[-1].startswith("sim") else "kernel")
    shares = [one.share for one in runs if one is not None and not one.doubts]
    return {
        "key": dict(zip(("bucket", "gso_max_segs", "controller", "way"), key, strict=True)),
        "made": evidence.made(command, {world.name: world.build()}, [os.uname().release]),
        "setup": {name: getattr(message, name) for name in SETUP},
        "share": _spread(shares) if shares else None,
        "trusted": len(shares),
        "failed": sum(one is None for one in runs),
    }


def _spread(shares: Sequence[float]) -> dict[str, float]:
    return {"median": statistics.median(shares), "least": min(shares), "most": max(shares)}


def table(lines: Sequence[evidence.Line], older: str = "") -> str:
    """What was measured, how often, and a row for each bucket, host and controller."""
    made, setup = lines[0]["made"], lines[0]["setup"]
    cells = {tuple(one["key"].values()): shown(one) for one in lines}
    text = [
        f"Made by `{made['command']}`: {setup['rate']}, RTT {setup['rtt']}, limit {setup['buffer']}, "
        f"{setup['seconds']} s. "
        "Retransmitted segments as a share of those sent: the median of n runs (in the simulator, seeds) and "
        f"their range, of {setup['repetitions']} that were asked for. A run that cannot be trusted is made "
        f"up to {setup['attempts']} times, and then left out.",
        *(["", older] if older else []),
        "",
        f"| bucket | gso_max_segs | controller | {' | '.join(WAYS)} |",
        f"|---|---|---|{'---|' * len(WAYS)}",
    ]
    for row in ROWS:
        values = [cells.get((*row, way), "–") for way in WAYS]
        text.append(f"| {' | '.join([*map(str, row), *values])} |")
    return "\n".join([*text, ""])


def measured(
    way: str, message: argparse.Namespace, bucket: str, segments: int, controller: str
) -> list[Measured | None]:
    """Each run; None for one that failed."""
    if way == IPERF3:

        def once() -> Measured | None:
            return iperf3(message, bucket, segments, CONTROLLERS[controller])

        return [until_trusted(once, message.attempts) for _ in range(message.repetitions)]
    document = {
        "name": "bursts",
        "duration": f"{message.seconds} s",
        "path": {
            "rate": message.rate,
            "rtt": message.rtt,
            "buffer": message.buffer,
            "router": "tbf",
            "burst": bucket,
        },
        "hosts": {"gso_max_segs": segments, "model": "linux" if "Linux" in way else "ideal"},
        "flows": [{"controller": controller}],
    }
    counts = {"seeds": message.repetitions, "repetitions": message.repetitions, "attempts": message.attempts}
    runs = fp.run(document, world=way.partition(",")[0], **counts).runs
    flows = [(run.summary["flows"][0], run.untrustworthy) for run in runs]
    return [Measured(one["retransmits"] / max(1, one["segments_sent"]), doubts) for one, doubts in flows]


def until_trusted(once: Callable[[], Measured | None], attempts: int) -> Measured | None:
    """The first run that can be trusted; the last one if none can."""
    found = None
    for _ in range(attempts):
        found = once()
        if found is not None and not found.doubts:
            break
    return found


def iperf3(message: argparse.Namespace, bucket: str, segments: int, algorithm: str) -> Measured | None:
    """One run of iperf3 behind `fullpipe shell`."""
    # A socket that was BBR's stays paced when iperf3 changes its algorithm.
    script = (
        f"sysctl -qw net.ipv4.tcp_congestion_control={algorithm}; "
        f"ip link set fpnear gso_max_segs {segments}; "
        f'iperf3 -c "$FULLPIPE_SERVER" -t {message.seconds} -C {algorithm} -J'
    )
    path = ["--rate", message.rate, "--rtt", message.rtt, "--buffer", message.buffer]
    words = [sys.executable, "-m", "fullpipe", "shell", *path, "--router", "tbf", "--burst", bucket]
    words += ["--server", "iperf3 -s --logfile /dev/null", "--", "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = read(done.stdout, done.stderr)
    if found is None:
        print(f"{shlex.join(words)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return found


def read(report: str, message: str) -> Measured | None:
    """A run by iperf3's report and by what `fullpipe shell` said; None if either is not complete."""
    doubts = reasons(message)
    try:
        sent = json.loads(report)["end"]["sum_sent"]
        segments = sent["bytes"] / 1448 + sent["retransmits"]
        return None if doubts is None else Measured(sent["retransmits"] / segments, doubts)
    except (ValueError, KeyError, TypeError, ZeroDivisionError):
        return None


def reasons(message: str) -> list[str] | None:
    """Why a shell's packets cannot be trusted: what it says after it has counted those of the way down.

    None if it did not count them.
    """
    _, counted, after = message.rpartition("\nfullpipe: down ")
    if not re.match(r"[^\n]*: \d[\d,]* packets?\b", after) or not counted:
        return None
    lines = after.splitlines()[1:]
    return [line.removeprefix("fullpipe: ") for line in lines if line.startswith("fullpipe: ")]


def shown(line: evidence.Line) -> str:
    """Median and range in per cent over the runs that can be trusted, and how many these are."""
    share, trusted = line["share"], line["trusted"]
    if share is None:
        return "failed" if line["failed"] == line["setup"]["repetitions"] else "none trusted"
    spread = f"{100 * share['least']:.2f}..{100 * share['most']:.2f}, " if trusted > 1 else ""
    return f"{100 * share['median']:.2f} % ({spread}n = {trusted})"


if __name__ == "__main__":
    main()
