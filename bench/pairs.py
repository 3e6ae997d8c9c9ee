"""Two builds of the simulator on the same scenarios, in turn: which part of the time the second takes.

    python bench/pairs.py BEFORE AFTER [--rounds 7] | python bench/record.py "bench/pairs.py BEFORE AFTER"

BEFORE and AFTER are programs `fullpipe-bench`. Bulk flows on 10 Gbit/s, 20 ms, 1 bdp, for 2 s with start-up.
"""

import argparse
import json
import statistics
import subprocess

FLOWS = ("1", "10", "100", "1000", "10000")
CONTROLLERS = ("reno", "cubic", "bbr1", "bbr3")
LOSSES = ("0 %", "1 %")


def main() -> None:
    """Measures and prints a line of JSON for each build and case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=7)
    asked = parser.parse_args()
    for loss in LOSSES:
        for controller in CONTROLLERS:
            for flows in FLOWS:
                pairs = [
                    [nanos(one, controller, loss, flows) for one in (asked.before, asked.after)]
                    for _ in range(asked.rounds)
                ]
                ratio = statistics.median(after / before for before, after in pairs)
                for name, each in zip(("before", "after"), zip(*pairs, strict=True), strict=True):
                    line = {
                        "benchmark": "pairs",
                        "case": f"{controller}, {flows}, {loss}, {name}",
                        "unit": "ns/packet",
                        "median": statistics.median(each),
                        "low": min(each),
                        "high": max(each),
                        "runs": asked.rounds,
                        "ratio": ratio if name == "after" else None,
                    }
                    print(json.dumps(line), flush=True)


def nanos(program: str, controller: str, loss: str, flows: str, duration: str = "2 s") -> float:
    """What a packet costs in one run."""
    case = [controller, "10 Gbit/s", "20 ms", "1 bdp", loss, duration, flows]
    run = subprocess.run([program, "--once", *case], capture_output=True, text=True, check=True)
    return float(run.stdout.split(" ns a packet")[0].split()[-1])


if __name__ == "__main__":
    main()
