"""How long a real host takes to begin: the distributions behind `crates/sim/src/hosts/latency.rs`.

    python bench/host_latency.py scenario.toml [--runs 3]

Runs the scenario in the kernel world while tracepoints record when packets leave and reach the two hosts
(`net_dev_start_xmit`, `netif_receive_skb`) and when pacing timers are set and fire (`hrtimer_start`,
`hrtimer_expire_entry` of `tcp_pace_kick`). Prints quantiles in microseconds:

* arrival: of acknowledgements, from one host to the other, less the delay of the path, which must be all that
  there is on the way back;
* timer: from the time a pacing timer was set for until it fired.

Times of a millisecond and more are left out: the path's time stands still then (docs/fidelity.md). Needs root
and tracefs.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fullpipe.ask import scenario

INSTANCE = Path("/sys/kernel/tracing/instances/fullpipe")
NET = ("net/net_dev_start_xmit", "net/netif_receive_skb")
TIMER = ("timer/hrtimer_start", "timer/hrtimer_expire_entry")
LINE = re.compile(r" (\d+\.\d+): (\w+): (.*)")
# Acknowledgements are shorter than this, data is longer.
SHORT_BYTES = 200
STALL_US = 1000
PARTS = (0, 1, 5, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.9, 100)


@contextmanager
def traced() -> Iterator[None]:
    """Records the events meanwhile."""
    INSTANCE.mkdir()
    try:
        symbols = (line.split() for line in Path("/proc/kallsyms").read_text().splitlines())
        kick = next(line[0] for line in symbols if line[2] == "tcp_pace_kick")
        for file, text in (("tracing_on", "0"), ("trace_clock", "mono"), ("buffer_size_kb", "40000")):
            (INSTANCE / file).write_text(text)
        for event in TIMER:
            (INSTANCE / "events" / event / "filter").write_text(f"function == 0x{kick}")
        for event in (*NET, *TIMER):
            (INSTANCE / "events" / event / "enable").write_text("1")
        (INSTANCE / "tracing_on").write_text("1")
        yield
    finally:
        (INSTANCE / "tracing_on").write_text("0")
        INSTANCE.rmdir()


def read(trace: str, back_s: float) -> tuple[list[float], list[float]]:
    """The arrivals and the timers of a trace, in microseconds."""
    expires: int | None = None
    timers, sent, received = [], [], []
    for found in map(LINE.search, trace.splitlines()):
        if not found:
            continue
        time, event, rest = float(found[1]), found[2], found[3]
        if event == "hrtimer_start":
            expires = int(re.findall(r" expires=(\d+)", rest)[0])
        elif event == "hrtimer_expire_entry":
            if expires is not None:
                timers.append((int(re.findall(r"now=(\d+)", rest)[0]) - expires) / 1000)
            expires = None
        elif "dev=fullpipe" in rest and int(re.findall(r" len=(\d+)", rest)[0]) < SHORT_BYTES:
            (sent if event == "net_dev_start_xmit" else received).append(time)
    # The first is the SYN, on its way to the receivers.
    arrivals = [(end - start - back_s) * 1e6 for start, end in zip(sent[1:], received[1:], strict=False)]
    return arrivals, timers


def main() -> None:
    """Runs and prints."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("scenario", type=Path)
    options.add_argument("--runs", type=int, default=3)
    given = options.parse_args()
    (alternative,) = scenario.from_file(given.scenario).alternatives
    reverse = alternative.spec["reverse"]
    if [element["kind"] for element in reverse] != ["delay"]:
        sys.exit("the way back must be a delay and nothing else")
    back_s = reverse[0]["delay_ns"]["initial"] / 1e9
    arrivals, timers = [], []
    for _ in range(given.runs):
        with traced():
            command = [
                "fullpipe",
                "run",
                str(given.scenario),
                "--world",
                "kernel",
                "--attempts",
                "1",
                "--json",
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            some = read((INSTANCE / "trace").read_text(), back_s)
        arrivals += some[0]
        timers += some[1]
    for name, values in (("arrival", arrivals), ("timer", timers)):
        kept = sorted(value for value in values if 0 <= value < STALL_US)
        at = {part: kept[min(len(kept) - 1, int(part / 100 * len(kept)))] for part in PARTS} if kept else {}
        said = ", ".join(f"{part:g} %: {value:.0f}" for part, value in at.items())
        print(f"{name}: {len(kept)} of {len(values)} below a millisecond; {said}")


if __name__ == "__main__":
    main()
