"""Do routers drop bursts or segments? A model, a real router with our traffic, and one with iperf3.

    .venv/bin/python bench/router.py [--write docs/router.md]

A tc-tbf with a bucket that holds a burst of the host, and with one that does not and so splits it; and a host
that makes bursts, and one that makes none (gso_max_segs 1). Needs root, iproute2, sch_tbf and iperf3.
Takes five minutes. The real routers and hosts are namespaces without names, which vanish with this process.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

import fullpipe as fp
from fullpipe.show.markers import Markers

BUCKETS = ("250 KB", "16 KB")
SEGMENTS = (65535, 1)
CONTROLLERS = {"cubic": "cubic", "bbr1": "bbr"}
WAYS = ("sim", "sim, Linux hosts", "kernel", "iperf3")


def main() -> None:
    """Measures, and prints or writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rate", default="200 Mbit/s")
    parser.add_argument("--rtt", default="0.2 ms")
    parser.add_argument("--buffer", default="100 KB")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--write", type=Path, help="a document with the lines <!-- bursts:begin --> and end")
    said = parser.parse_args()
    lines = [
        f"Made by `bench/router.py`: {said.rate}, RTT {said.rtt}, limit {said.buffer}, {said.seconds} s, "
        f"median (range) of {said.repetitions}: retransmitted segments as a share of those sent.",
        "",
        f"| bucket | gso_max_segs | controller | {' | '.join(WAYS)} |",
        f"|---|---|---|{'---|' * len(WAYS)}",
    ]
    print(*lines, sep="\n", flush=True)
    for bucket in BUCKETS:
        for segments in SEGMENTS:
            for controller in CONTROLLERS:
                shares = [shown(measured(way, said, bucket, segments, controller)) for way in WAYS]
                lines.append(f"| {bucket} | {segments} | {controller} | {' | '.join(shares)} |")
                print(lines[-1], flush=True)
    if said.write is not None:
        Markers("bursts").put("\n".join([*lines, ""]), said.write)


def measured(
    way: str, said: argparse.Namespace, bucket: str, segments: int, controller: str
) -> list[float | None]:
    """The share of each run; None for one that failed."""
    if way == "iperf3":
        return [iperf3(said, bucket, segments, CONTROLLERS[controller]) for _ in range(said.repetitions)]
    document = {
        "name": "bursts",
        "duration": f"{said.seconds} s",
        "path": {
            "rate": said.rate,
            "rtt": said.rtt,
            "buffer": said.buffer,
            "router": "tbf",
            "burst": bucket,
        },
        "hosts": {"gso_max_segs": segments, "model": "linux" if "Linux" in way else "ideal"},
        "flows": [{"controller": controller}],
    }
    world = way.partition(",")[0]
    flows = [
        run.summary["flows"][0]
        for run in fp.run(document, world=world, seeds=said.repetitions, repetitions=said.repetitions).runs
    ]
    return [flow["retransmits"] / max(1, flow["segments_sent"]) for flow in flows]


def iperf3(said: argparse.Namespace, bucket: str, segments: int, algorithm: str) -> float | None:
    """The share in one run of iperf3 behind `fullpipe shell`."""
    # A socket that was BBR's stays paced when iperf3 changes its algorithm.
    script = (
        f"sysctl -qw net.ipv4.tcp_congestion_control={algorithm}; "
        f"ip link set fpnear gso_max_segs {segments}; "
        f'iperf3 -c "$FULLPIPE_SERVER" -t {said.seconds} -C {algorithm} -J'
    )
    path = ["--rate", said.rate, "--rtt", said.rtt, "--buffer", said.buffer]
    words = [sys.executable, "-m", "fullpipe", "shell", *path, "--router", "tbf", "--burst", bucket]
    words += ["--server", "iperf3 -s --logfile /dev/null", "--", "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        sent = json.loads(done.stdout)["end"]["sum_sent"]
    except (ValueError, KeyError):
        print(f"{shlex.join(words)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    segments_sent = sent["bytes"] / 1448 + sent["retransmits"]
    return float(sent["retransmits"] / segments_sent)


def shown(shares: list[float | None]) -> str:
    """Median and range in per cent."""
    percent = sorted(100 * share for share in shares if share is not None)
    if not percent:
        return "failed"
    return f"{statistics.median(percent):.2f} % ({percent[0]:.2f}..{percent[-1]:.2f})"


if __name__ == "__main__":
    main()
