"""How fast Fullpipe is from Python: start-up, one comparison, and independent runs on one thread and on two.

Run it with the interpreter that Fullpipe is installed for:

    .venv/bin/python bench/python.py
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import fullpipe
from fullpipe.ask import scenario
from fullpipe.worlds import sim
from fullpipe.worlds.job import jobs

ROUNDS = 7
STARTS = 15
RUNS = 8
SWEEPS = (
    ("bbr1", "100 Mbit/s", "40 ms", "60 s"),
    ("cubic", "100 Mbit/s", "40 ms", "60 s"),
)


def main() -> None:
    """Prints three tables."""
    if len(sys.argv) > 1:
        print("usage: python bench/python.py", file=sys.stderr)
        raise SystemExit(2)
    start_up()
    comparison()
    sweep()


def start_up() -> None:
    """What a process costs until its help stands on the screen."""
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import fullpipe'": [sys.executable, "-c", "import fullpipe"],
        "fullpipe --help": [sys.executable, "-m", "fullpipe", "--help"],
    }
    seconds = interleaved(STARTS, [lambda command=command: start(command) for command in commands.values()])
    print(f"Start of a process; median and least of {STARTS}.\n")
    print(f"{'command':<30} {'median':>9} {'min':>9}")
    for name, samples in zip(commands, seconds, strict=True):
        print(f"{name:<30} {statistics.median(samples) * 1e3:>6.0f} ms {min(samples) * 1e3:>6.0f} ms")


def start(command: Sequence[str]) -> None:
    """Runs a command to its end, its output thrown away."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def comparison() -> None:
    """What a comparison costs in an interpreter that is warm, time series included."""
    (samples,) = interleaved(
        ROUNDS,
        [lambda: fullpipe.compare(["bbr1"], rate="100 Mbit/s", rtt="40 ms", duration="10 s", seeds=1)],
    )
    print('\ncompare(["bbr1"], rate="100 Mbit/s", rtt="40 ms", duration="10 s", seeds=1), warm\n')
    print(f"median {statistics.median(samples) * 1e3:.0f} ms, least {min(samples) * 1e3:.0f} ms")


def sweep() -> None:
    """The same runs on one worker and on two."""
    print(f"\n{RUNS} independent runs on one thread and on two, in turn; medians of {ROUNDS} rounds.\n")
    print(f"{'each run':<34} {'1 thread':>9} {'2 threads':>10} {'speed-up':>9} {'of 2x':>7} {'best':>7}")
    for controller, rate, rtt, duration in SWEEPS:
        what = scenario.from_document(
            {
                "name": "bench",
                "duration": duration,
                "path": {"rate": rate, "rtt": rtt, "buffer": "1 bdp"},
                "record": {"series": False},
                "flows": [{"controller": controller}],
            }
        )
        work = jobs(what.alternatives, range(1, RUNS + 1))
        one, two = interleaved(
            ROUNDS,
            [lambda workers=workers, work=work: sim.run(work, workers=workers) for workers in (1, 2)],
        )
        speed_up = statistics.median(a / b for a, b in zip(one, two, strict=True))
        print(
            f"{f'{controller}, {rate}, {rtt}, {duration}':<34} {statistics.median(one):>7.3f} s"
            f" {statistics.median(two):>8.3f} s {speed_up:>9.2f} {speed_up * 50:>5.1f} %"
            f" {min(one) / min(two) * 50:>5.1f} %"
        )


def interleaved(rounds: int, subjects: Sequence[Callable[[], object]]) -> list[list[float]]:
    """Seconds of each subject in each round; all are measured in turn, after a round that only warms up."""
    seconds: list[list[float]] = [[] for _ in subjects]
    for number in range(rounds + 1):
        for samples, subject in zip(seconds, subjects, strict=True):
            begin = time.perf_counter()
            subject()
            if number > 0:
                samples.append(time.perf_counter() - begin)
    return seconds


if __name__ == "__main__":
    main()
