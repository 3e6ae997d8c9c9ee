"""How fast Fullpipe is from Python: start-up, waits and interrupts, threads, and the runs that a sweep keeps.

Run it with the interpreter that Fullpipe is installed for:

    .venv/bin/python bench/python.py
"""

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import fullpipe
from fullpipe.runs.engines import Engine, pool
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.ray import Ray
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import carry_out
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.job import Job, jobs
from fullpipe.scenario import scenario

SIMULATOR = registry.named("sim")
ROUNDS = 7
STARTS = 15
RUNS = 8
KEPT_ROUNDS = 5
KEPT = 5000
# Runs of sweeps: how long, at which rate, how many in each sweep.
SWEPT = (
    ("200 ms", "5 Mbit/s", (1000, 2000, 10_000, 100_000)),
    ("2 s", "50 Mbit/s", (2000,)),
    ("5 s", "50 Mbit/s", (2000,)),
    ("10 s", "100 Mbit/s", (2000,)),
)
WAITS = 3
# What a person waits for, with its report, and when it is interrupted, as parts of the time that it takes.
WAITED_FOR = (
    ("study", "list"),
    ("compare", "bbr1", "cubic", "--rate", "100mbit", "--rtt", "40ms"),
    ("conform", "bbr3"),
)
INTERRUPTED = (0.15, 0.3, 0.5, 0.7, 0.9)
SWEEPS = (
    ("bbr1", "100 Mbit/s", "40 ms", "60 s"),
    ("cubic", "100 Mbit/s", "40 ms", "60 s"),
)


def main() -> None:
    """Prints six tables."""
    if len(sys.argv) > 1:
        print("usage: python bench/python.py", file=sys.stderr)
        raise SystemExit(2)
    start_up()
    waits()
    comparison()
    sweep()
    kept()
    curve()


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


def waits() -> None:
    """What a person waits for a command, from an empty folder, and for its end after an interrupt."""
    print(
        f"\nFrom start to end with the report, median of {WAITS}; the longest of {len(INTERRUPTED)} "
        "interrupts.\n"
    )
    print(f"{'command':<52} {'takes':>9} {'to stop':>9}")
    for words in WAITED_FOR:
        takes = [_waits(words)[0] for _ in range(WAITS)]
        stops = [_waits(words, part * min(takes))[1] for part in INTERRUPTED]
        print(f"{' '.join(words):<52} {statistics.median(takes):>7.2f} s {max(stops):>7.2f} s")


def _waits(words: Sequence[str], interrupted_s: float | None = None) -> tuple[float, float]:
    """Seconds until a command ended, and those since its interrupt."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        began = time.perf_counter()
        command = [sys.executable, "-m", "fullpipe", *words]
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as running:
            sent = began
            if interrupted_s is not None:
                time.sleep(interrupted_s)
                sent = time.perf_counter()
                running.send_signal(signal.SIGINT)
            running.wait()
            ended = time.perf_counter()
    return ended - began, ended - sent


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
            [
                lambda workers=workers, work=work: pool.run(SIMULATOR, work, workers=workers)
                for workers in (1, 2)
            ],
        )
        speed_up = statistics.median(a / b for a, b in zip(one, two, strict=True))
        print(
            f"{f'{controller}, {rate}, {rtt}, {duration}':<34} {statistics.median(one):>7.3f} s"
            f" {statistics.median(two):>8.3f} s {speed_up:>9.2f} {speed_up * 50:>5.1f} %"
            f" {min(one) / min(two) * 50:>5.1f} %"
        )


def kept() -> None:
    """What a sweep keeps a second, in a folder below the current one, so that its disk can be chosen."""
    what = scenario.from_document(
        {
            "duration": "1 ms",
            "path": {"rate": "5 Mbit/s", "rtt": "10 ms"},
            "record": {"series": False},
            "flows": [{"controller": "reno"}],
        }
    )
    tasks = [Task(SIMULATOR.name, Job(what.alternatives[0], seed)) for seed in range(1, KEPT + 1)]
    engines: dict[str, Callable[[], Engine]] = {"local": lambda: Local(cores=2)}
    if find_spec("ray") is not None:
        engines["ray, two workers"] = lambda: Ray(cores=2)
    print(f"\n{KEPT} runs of next to no work, kept in this folder; median and best of {KEPT_ROUNDS} rounds.")
    print("CPU time is that of this process. A cluster is timed from its first runs.\n")
    print(
        f"{'':<18} {'kept':>8} {'best':>8} {'writes':>8} {'CPU a run':>10} {'bytes a run':>12} {'found':>9}"
    )
    for name, engine in engines.items():
        rounds = [keeping(tasks, engine()) for _ in range(KEPT_ROUNDS)]
        rates, writes, cpu_s, sizes, found = zip(*rounds, strict=True)
        median = statistics.median
        print(
            f"{name:<18} {median(rates):>6.0f}/s {max(rates):>6.0f}/s {median(writes):>8.0f}"
            f" {median(cpu_s) * 1e6:>7.0f} us {sizes[0]:>12.0f} {median(found):>7.0f}/s"
        )


def curve() -> None:
    """What a sweep costs, over how many runs it has and how long they are."""
    print("\nSweeps on two cores, kept in this folder.\n")
    print(f"{'each run':<20} {'runs':>8} {'CPU':>9} {'CPU a run':>10} {'wall':>9} {'busy':>7}")
    for duration, rate, counts in SWEPT:
        what = scenario.from_document(
            {
                "duration": duration,
                "path": {"rate": rate, "rtt": "10 ms"},
                "record": {"series": False},
                "flows": [{"controller": "reno"}],
            }
        )
        for count in counts:
            tasks = [Task(SIMULATOR.name, Job(what.alternatives[0], seed)) for seed in range(1, count + 1)]
            with tempfile.TemporaryDirectory(dir=".", prefix="bench-") as folder:
                wall, cpu = time.perf_counter(), time.process_time()
                carry_out(tasks, Store(Path(folder)), Local(cores=2))
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            each, busy = f"{duration}, {rate}", f"{50 * cpu / wall:.0f} %"
            print(
                f"{each:<20} {count:>8} {cpu:>7.2f} s {cpu / count * 1e6:>7.0f} us {wall:>7.2f} s {busy:>7}"
            )


def keeping(tasks: Sequence[Task], engine: Engine) -> tuple[float, int, float, float, float]:
    """Runs kept a second, writes, CPU seconds and bytes of a run, and runs found again a second."""
    reported: list[tuple[float, int, float]] = []
    with tempfile.TemporaryDirectory(dir=".", prefix="bench-") as folder:
        carry_out(
            tasks,
            Store(Path(folder)),
            engine,
            watch=lambda one: reported.append((time.perf_counter(), one.runs, time.process_time())),
        )
        size = sum(path.stat().st_size for path in Path(folder, "runs").iterdir())
        began = time.perf_counter()
        carry_out(tasks, Store(Path(folder)), Local())
        found_s = time.perf_counter() - began
    # Local workers begin at once, a cluster after seconds.
    first, last = reported[0 if isinstance(engine, Local) else 1], reported[-1]
    runs = last[1] - first[1]
    return (
        runs / (last[0] - first[0]),
        len(reported) - 1,
        (last[2] - first[2]) / runs,
        size / len(tasks),
        len(tasks) / found_s,
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
