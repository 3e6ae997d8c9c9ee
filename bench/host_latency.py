"""How long a real host takes to begin: the distributions behind `crates/sim/src/hosts/latency.rs`.

    python bench/host_latency.py scenario.toml ... [--runs 3]

Runs the scenarios in the kernel world while tracepoints record when packets leave and reach the two hosts
(`net_dev_start_xmit`, `netif_receive_skb`) and when TCP's timers are set and fire (`hrtimer_start`,
`hrtimer_expire_entry`). Prints quantiles in microseconds:

* arrival: of acknowledgements, from one host to the other, less the delay of the path, which must be all
  that there is on the way back. Processors that have slept for longer take longer to wake up: the classes are
  by the time from when a packet last reached one of the two hosts until this one was due. The first packet
  of a run, a SYN, is a class of its own; the way forth must be a link and a delay;
* tcp_pace_kick, tcp_compressed_ack_kick: from the time for which the pacing timer and that for compressed
  ACKs were set until they fired. The latter runs only where packets are lost or overtake each other; arrivals
  can only be measured where none are.

Times of a millisecond and more are left out: the path's time stands still then
(docs/explanation/fidelity.md). Needs root and tracefs.
"""

import argparse
import bisect
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fullpipe.scenario import scenario

INSTANCE = Path("/sys/kernel/tracing/instances/fullpipe")
NET = ("net/net_dev_start_xmit", "net/netif_receive_skb")
TIMER = ("timer/hrtimer_start", "timer/hrtimer_expire_entry")
TIMERS = ("tcp_pace_kick", "tcp_compressed_ack_kick")
LINE = re.compile(r" (\d+\.\d+): (\w+): (.*)")
# Acknowledgements are shorter than this, data is longer.
SHORT_BYTES = 200
STALL_US = 1000
# Length of a SYN as an IP packet.
SYN_BYTES = 60
# Up to these microseconds of silence, one class each. The emulator looks for packets again after the first.
SILENCES_US = (30, 1_500, 100_000)
PARTS = (0, 1, 5, 10, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.9, 100)


@dataclass(frozen=True)
class Way:
    """What the path alone takes, in microseconds: a SYN on its way forth, and an acknowledgement."""

    forth_us: float
    back_us: float

    @classmethod
    def of(cls, spec: dict[str, Any]) -> "Way":
        """That of a path of a link and a delay, and of a delay back."""
        kinds = [[element["kind"] for element in spec[way]] for way in ("forward", "reverse")]
        if kinds != [["link", "delay"], ["delay"]]:
            sys.exit("the way forth must be a link and a delay, and the way back a delay")
        link, delay = spec["forward"]
        syn_us = SYN_BYTES * 8e6 / link["rate_bps"]["initial"]
        return cls(
            syn_us + delay["delay_ns"]["initial"] / 1e3, spec["reverse"][0]["delay_ns"]["initial"] / 1e3
        )


@contextmanager
def traced() -> Iterator[None]:
    """Records the events meanwhile."""
    # It is still there if a former run was killed.
    INSTANCE.mkdir(exist_ok=True)
    try:
        symbols = (line.split() for line in Path("/proc/kallsyms").read_text().splitlines())
        kicks = " || ".join(f"function == 0x{line[0]}" for line in symbols if line[2] in TIMERS)
        for file, text in (("tracing_on", "0"), ("trace_clock", "mono"), ("buffer_size_kb", "40000")):
            (INSTANCE / file).write_text(text)
        for event in TIMER:
            (INSTANCE / "events" / event / "filter").write_text(kicks)
        for event in (*NET, *TIMER):
            (INSTANCE / "events" / event / "enable").write_text("1")
        (INSTANCE / "tracing_on").write_text("1")
        yield
    finally:
        (INSTANCE / "tracing_on").write_text("0")
        INSTANCE.rmdir()


def read(trace: str, path: Way) -> dict[str, list[float]]:
    """The arrivals and the timers of a trace, in microseconds."""
    expires: dict[str, int] = {}
    found: dict[str, list[float]] = {name: [] for name in TIMERS}
    sent: list[float] = []
    received: list[float] = []
    arrived: list[float] = []
    for line in map(LINE.search, trace.splitlines()):
        if not line:
            continue
        time, event, rest = float(line[1]), line[2], line[3]
        if event.startswith("hrtimer"):
            (timer,) = re.findall(r" (hrtimer=\w+)", f" {rest}")
            (name,) = re.findall(r" function=(\w+)", rest)
            if event == "hrtimer_start":
                expires[timer] = int(re.findall(r" softexpires=(\d+)", rest)[0])
            elif timer in expires:
                found[name].append((int(re.findall(r" now=(\d+)", rest)[0]) - expires.pop(timer)) / 1000)
        elif "dev=fullpipe" in rest:
            if event != "net_dev_start_xmit":
                arrived.append(time)
            if int(re.findall(r" len=(\d+)", rest)[0]) < SHORT_BYTES:
                (sent if event == "net_dev_start_xmit" else received).append(time)
    # Those that were on their way at the end have left and not arrived. The first is the SYN.
    late = [(end - start) * 1e6 for start, end in zip(sent, received, strict=False)]
    arrivals = [(end, micros - path.back_us) for end, micros in zip(received[1:], late[1:], strict=False)]
    if sum(not 0 <= micros < STALL_US for _, micros in arrivals) > len(arrivals) / 100:
        # One that was lost, or that the trace missed, would shift all that follow.
        print("no arrivals from this run: packets that left and that arrived do not match", file=sys.stderr)
        return found
    found["arrival, the first"] = [late[0] - path.forth_us]
    names = [f"arrival, silence below {limit} us" for limit in SILENCES_US]
    for end, micros in arrivals:
        due = end - micros / 1e6
        silence = (due - arrived[bisect.bisect_left(arrived, due) - 1]) * 1e6
        found.setdefault(names[bisect.bisect(SILENCES_US[:-1], silence)], []).append(micros)
    return found


def main() -> None:
    """Runs and prints."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("scenario", type=Path, nargs="+")
    options.add_argument("--runs", type=int, default=3)
    given = options.parse_args()
    ways = []
    for file in given.scenario:
        (alternative,) = scenario.from_file(file).alternatives
        ways.append((str(file), Way.of(alternative.spec)))
    found: dict[str, list[float]] = {}
    for file, way in ways * given.runs:
        with traced():
            command = [
                "fullpipe",
                "run",
                file,
                "--world",
                "kernel",
                "--attempts",
                "1",
                "--json",
            ]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            some = read((INSTANCE / "trace").read_text(), way)
        for name, values in some.items():
            found.setdefault(name, []).extend(values)
    for name, values in found.items():
        kept = sorted(value for value in values if 0 <= value < STALL_US)
        at = {part: kept[min(len(kept) - 1, int(part / 100 * len(kept)))] for part in PARTS} if kept else {}
        message = ", ".join(f"{part:g} %: {value:.0f}" for part, value in at.items())
        print(f"{name}: {len(kept)} of {len(values)} below a millisecond; {message}")


if __name__ == "__main__":
    main()
