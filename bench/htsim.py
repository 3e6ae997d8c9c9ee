"""The simulator beside csg-htsim, many flows on one link, in turn: what a packet takes.

    python bench/htsim.py CHECKOUT OURS | python bench/record.py "bench/htsim.py CHECKOUT OURS"

CHECKOUT is a checkout of csg-htsim, which is compiled with -O3, as its Makefile does, and for this processor.
OURS is a program `fullpipe-bench`. Bulk flows on 10 Gbit/s, 20 ms, 1 bdp, for 5 s with start-up. The ratio is
htsim's time over ours.
"""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

from pairs import CONTROLLERS, FLOWS, nanos

DRIVER = Path(__file__).resolve().parent / "peers" / "htsim.cpp"
FLAGS = ["-std=c++17", "-O3", "-march=native"]
PEER = "csg-htsim, NewReno"
SECONDS = "5"


def main() -> None:
    """Compiles, measures and prints a line of JSON for each case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("ours")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    peer = build(asked.checkout / "sim")
    for flows in FLOWS:
        rounds = [
            {
                PEER: peer_nanos(peer, flows),
                **{one: nanos(asked.ours, one, "0 %", flows, f"{SECONDS} s") for one in CONTROLLERS},
            }
            for _ in range(asked.rounds + 1)
        ][1:]
        for name in rounds[0]:
            each = [one[name] for one in rounds]
            ratio = statistics.median(one[PEER] / one[name] for one in rounds)
            line = {
                "benchmark": "htsim",
                "case": f"{name}, {flows}",
                "unit": "ns/packet",
                "median": statistics.median(each),
                "low": min(each),
                "high": max(each),
                "runs": asked.rounds,
                "ratio": None if name == PEER else ratio,
            }
            print(json.dumps(line), flush=True)


def build(sources: Path) -> Path:
    """Compiles the library and the driver, beside the library's sources."""
    make_flags = f"CFLAGS={' '.join(FLAGS)} -fPIE"
    # What another `make` left may have been compiled otherwise.
    make = ["make", "--silent", "-B", f"-j{os.cpu_count()}", "libhtsim.a", make_flags]
    subprocess.run(make, cwd=sources, check=True, stdout=subprocess.DEVNULL)
    program = sources / "fullpipe-dumbbell"
    subprocess.run(
        ["g++", *FLAGS, "-I", sources, DRIVER, "-o", program, "-L", sources, "-lhtsim"], check=True
    )
    return program


def peer_nanos(program: Path, flows: str) -> float:
    """What a packet takes in one run of htsim."""
    run = subprocess.run([program, flows, SECONDS], capture_output=True, text=True, check=True)
    packets, took_ns = map(float, run.stdout.split())
    return took_ns / packets


if __name__ == "__main__":
    main()
