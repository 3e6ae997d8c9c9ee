"""How does BBRv3 answer a rate that falls, as drafted, as in Google's kernel, and with four changes?

    .venv/bin/python bench/drops.py [--quick] [--record] [--world quic | kernel]

A grid of drops (`GRID`) in the simulator, each at several moments of the cycle, with a seed of its own each;
and paths where nothing falls, for what a change costs (`COSTS`). Over QUIC, the same with fewer forms and
moments. In the kernel, a part of it (`IN_KERNEL`), which takes a quarter of an hour and needs root.
docs/reports/bbr3-rate-drop.md reads it.
"""

import argparse
import math
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

import fullpipe as fp
from fullpipe import evidence
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.world import World

FILE = Path(__file__).resolve().parent.parent / "results" / "drops.jsonl"
CONTROLLERS = {
    "bbr3": "draft",
    "bbr3:profile=linux": "Google",
    "bbr3:pr5_advance_on_down=1": "PR #5",
    "bbr3:issue109_one_min_rtt=1": "issue #109",
    "bbr3:cut_probe_advances=1": "cut probe",
    "bbr3:renewal_by_eighth=1": "eighth",
    # What `profile=repaired` is.
    "bbr3:cut_probe_advances=1,renewal_by_eighth=1": "repaired",
    "bbr3:pr5_advance_on_down=1,renewal_by_eighth=1": "PR #5, eighth",
    "bbr1": "BBRv1",
}
# The rate before the drop, bit/s, and the part of a packet that is payload.
RATE, PAYLOAD = 50e6, 1448 / 1500
FACTORS, BUFFERS, RTTS = (2, 5, 10, 20), (0.5, 1, 2, 4, 8, 16), (10, 100, 300)
# Moments of the drop: 20 s, and so much later for each; a cycle takes about three seconds.
FIRST_S, STEP_S, MOMENTS, QUICK = 20.0, 0.75, 8, 2
# After a drop: how long is looked at, and from when on the queue and the goodput count.
AFTER_S, LATE_S = 60.0, 20.0
# Two-sided 95 % of Student's t for n - 1 degrees of freedom.
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}


@dataclass(frozen=True)
class Cell:
    """A path and who is on it; without a factor nothing falls."""

    name: str
    factor: float | None = None
    bdps: float = 1
    rtt_ms: float = 40
    loss: str = "0 %"
    # When each flow of the controller starts, s.
    starts: tuple[float, ...] = (0,)
    cubic: bool = False

    def document(self, controller: str, drop_s: float) -> dict[str, Any]:
        """The scenario."""
        path: dict[str, Any] = {
            "rate": f"{RATE:.0f} bit/s",
            "rtt": f"{self.rtt_ms:g} ms",
            "buffer": f"{self.bdps * RATE * self.rtt_ms / 8e3:.0f} B",
            "loss": self.loss,
        }
        if self.factor is not None:
            path["changes"] = [{"at": f"{drop_s:g} s", "rate": f"{RATE / self.factor:.0f} bit/s"}]
        flows: list[dict[str, Any]] = [
            {"controller": controller, "start": f"{start:g} s", "label": f"flow {at}"}
            for at, start in enumerate(self.starts)
        ]
        if self.cubic:
            flows.append({"controller": "cubic", "label": "cubic"})
        return {
            "name": self.name,
            "duration": f"{drop_s + AFTER_S:g} s",
            "path": path,
            "flows": flows,
            "record": {"interval": "100 ms"},
        }


GRID = (
    *(Cell(f"{factor}-fold, {bdps:g} BDP", factor, bdps) for factor in FACTORS for bdps in BUFFERS),
    *(Cell(f"10-fold, {bdps} BDP, {rtt} ms", 10, bdps, rtt_ms=rtt) for rtt in RTTS for bdps in (1, 4)),
    *(
        Cell(f"10-fold, {bdps} BDP, {who}", 10, bdps, **more)
        for who, more in (
            ("two flows", {"starts": (0, 5)}),
            ("ten flows", {"starts": tuple(0.5 * at for at in range(10))}),
            ("beside CUBIC", {"cubic": True}),
            ("1 % loss", {"loss": "1 %"}),
        )
        for bdps in (1, 4)
    ),
)
COSTS = (
    Cell("steady, 1 BDP"),
    Cell("steady, 4 BDP", bdps=4),
    Cell("1 % loss", loss="1 %"),
    Cell("two flows, 5 s apart, 2 BDP", bdps=2, starts=(0, 5)),
    Cell("ten flows, 1 BDP", starts=tuple(0.5 * at for at in range(10))),
    Cell("beside CUBIC, 1 BDP", cubic=True),
    Cell("beside CUBIC, 4 BDP", bdps=4, cubic=True),
)
BY_NAME = {cell.name: cell for cell in (*GRID, *COSTS)}
# What runs in the kernel, too: one after the other in real time, so that it is few. These forms are loaded.
IN_KERNEL = (BY_NAME["10-fold, 1 BDP"], BY_NAME["10-fold, 4 BDP"])
LOADED = ("draft", "Google", "repaired")
KERNEL_MOMENTS = 2
# What noq carries over QUIC.
OVER_QUIC = (*LOADED, "BBRv1")
QUIC_MOMENTS = 4


def measured(cell: Cell, controller: str, moment: int) -> dict[str, float | None]:
    """One run."""
    drop_s = FIRST_S + STEP_S * moment
    simulation = fp.Simulation(cell.document(controller, drop_s), seed=moment + 1)
    simulation.advance()
    return _measures(cell, simulation.finish(), drop_s)


def in_world(world: str, cell: Cell, controller: str, moment: int) -> dict[str, float | None] | None:
    """The same in another world; None if no attempt can be trusted."""
    drop_s = FIRST_S + STEP_S * moment
    (run,) = fp.run(cell.document(controller, drop_s), world=world, seed=moment + 1).runs
    return None if run.untrustworthy else _measures(cell, run, drop_s)


def _measures(cell: Cell, run: fp.Run, drop_s: float) -> dict[str, float | None]:
    rate = RATE / (cell.factor or 1)
    queue = run.link_series().select(after=pl.col("time_s") - drop_s, ms=pl.col("queue_bytes") * 8e3 / rate)
    late = queue.filter(pl.col("after") >= LATE_S)
    goodputs = {label: _goodput(run, label, drop_s + LATE_S) for label in _labels(run)}
    own = [bps for label, bps in goodputs.items() if label != "cubic"]
    flows = run.summary["flows"]
    return {
        "settled_s": None if cell.factor is None else settled(queue, cell.rtt_ms),
        "queue_ms": float(late["ms"].mean() or 0),  # type: ignore[arg-type]
        "goodput": sum(own) / (rate * PAYLOAD),
        "fairness": sum(own) ** 2 / (len(own) * sum(bps**2 for bps in own)) if sum(own) else None,
        "retransmitted": sum(one["retransmits"] for one in flows)
        / max(1, sum(one["segments_sent"] for one in flows)),
    }


def settled(queue: pl.DataFrame, rtt_ms: float) -> float | None:
    """When the queue, in means of 5 s, is last above a round trip (20 ms at least); None: at the end.

    A probe's own queue, and that of a second after ProbeRTT, are no standing queue.
    """
    means = (
        queue.filter(pl.col("after") >= 0)
        .group_by(pl.col("after").floor().alias("second"), maintain_order=True)
        .agg(pl.col("ms").mean())["ms"]
        .to_list()
    )
    limit = max(rtt_ms, 20.0)
    high = [at for at in range(len(means) - 4) if statistics.fmean(means[at : at + 5]) > limit]
    last = float(high[-1] + 1) if high else 0.0
    return None if last > AFTER_S - 6 else last


def _labels(run: fp.Run) -> list[str]:
    return [one["label"] for one in run.summary["flows"]]


def _goodput(run: fp.Run, label: str, since_s: float) -> float:
    series = run.flow_series().filter(pl.col("flow") == label)
    part = series.filter(pl.col("time_s") >= since_s).select("time_s", "delivered_bytes").drop_nulls()
    (first, before), (last, after) = part.row(0), part.row(-1)
    return float((after - before) * 8 / max(last - first, 1e-9))


def mean(values: Iterable[float | None]) -> dict[str, float | None]:
    """Mean and the half-width of its 95 % interval."""
    known = [one for one in values if one is not None]
    if not known:
        return {"mean": None, "half": None}
    half = T95[len(known) - 1] * statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else None
    return {"mean": statistics.fmean(known), "half": half}


def line(
    cell: Cell,
    controller: str,
    runs: Sequence[Mapping[str, float | None]],
    options: str,
    world: World,
) -> evidence.Line:
    """The evidence of one cell and controller."""
    command = f"python bench/drops.py{options} --record"
    carriers = {"kernel": lambda: [os.uname().release], "quic": lambda: world.versions().split(", ")}
    times = [one["settled_s"] for one in runs]
    known = sorted(math.inf if one is None else one for one in times)
    middle = known[(len(known) - 1) // 2]
    return {
        "key": {"cell": cell.name, "controller": controller, "world": world.name},
        "made": evidence.made(command, {world.name: world.build()}, carriers.get(world.name, list)()),
        "moments": len(runs),
        "settled_s": None
        if cell.factor is None
        else {
            "median": None if middle == math.inf else middle,
            "worst": None if known[-1] == math.inf else known[-1],
            "never": times.count(None),
        },
        **{
            name: mean(one[name] for one in runs)
            for name in ("queue_ms", "goodput", "fairness", "retransmitted")
        },
    }


def size(one: Mapping[str, Any]) -> tuple[int, ...]:
    """How much was run for a line."""
    return (one["moments"],)


# ---- the tables ----

# The columns of wide tables; the file has all forms.
FEW = ("draft", "Google", "PR #5", "cut probe", "repaired", "BBRv1")


def tables(lines: Sequence[evidence.Line], older: str = "") -> dict[str, str]:
    """The tables of the report by name."""
    if not any(one["key"]["world"] == "sim" for one in lines):
        none = "Nothing is recorded yet: `python bench/drops.py --record`.\n"
        return dict.fromkeys(("drops-summary", "drops-settled", "drops-costs", "drops-kernel"), none)
    loaded, over_quic = (
        _by_cell(one for one in lines if one["key"]["world"] == world) for world in ("kernel", "quic")
    )
    lines = [one for one in lines if one["key"]["world"] == "sim"]
    found = _by_cell(lines)
    made, moments = lines[0]["made"]["command"], lines[0]["moments"]
    head = f"Made by `{made}`, {moments} moments and seeds a cell.{f' {older}' if older else ''}\n\n"
    return {
        "drops-summary": head + _summary(found, over_quic),
        "drops-settled": _rows(
            found, [cell for cell in GRID if cell.factor == 10 and len(cell.name) < 18], _time
        )
        + "\n"
        + _rows(found, [cell for cell in GRID if cell.factor == 10 and len(cell.name) >= 18], _queue, FEW),
        "drops-costs": _rows(found, COSTS, _cost, FEW),
        "drops-kernel": _kernel(found, over_quic, loaded),
    }


Found: TypeAlias = Mapping[tuple[str, str], evidence.Line]  # By cell and controller.


def _by_cell(lines: Iterable[evidence.Line]) -> Found:
    return {(one["key"]["cell"], one["key"]["controller"]): one for one in lines}


def _kernel(simulated: Found, over_quic: Found, loaded: Found) -> str:
    """A row for each world."""
    if not loaded:
        return "Nothing is recorded yet: `python bench/drops.py --world kernel --record`.\n"
    rows = []
    for cell in IN_KERNEL:
        for name, found in (("kernel", loaded), ("QUIC", over_quic), ("simulator", simulated)):
            if not found:
                continue
            row = _rows(found, [cell], _both, LOADED)
            rows.append(row.splitlines()[-1].replace(f"| {cell.name} |", f"| {cell.name} | {name} |"))
    runs = sum(one["moments"] for one in loaded.values())
    head = f"| cell | world | {' | '.join(LOADED)} |\n|---|---|{'---|' * len(LOADED)}\n"
    kernel = next(iter(loaded.values()))["made"]["ran_by"][0]
    of = len(IN_KERNEL) * len(LOADED) * KERNEL_MOMENTS
    made = f"Made by `python bench/drops.py --world kernel --record`: Linux {kernel}"
    return f"{made}, {runs} of {of} runs can be trusted.\n\n{head}" + "\n".join(rows) + "\n"


def _rows(
    found: Found,
    cells: Sequence[Cell],
    shown: Any,
    forms: Sequence[str] = tuple(CONTROLLERS.values()),
) -> str:
    chosen = [controller for controller, form in CONTROLLERS.items() if form in forms]
    rows = [
        f"| {cell.name} | {' | '.join(shown(found.get((cell.name, one))) for one in chosen)} |"
        for cell in cells
    ]
    heads = f"| cell | {' | '.join(forms)} |\n|---|{'---|' * len(forms)}\n"
    return heads + "\n".join(rows) + "\n"


def _time(one: evidence.Line | None) -> str:
    if one is None:
        return "–"
    median, worst, never = (one["settled_s"][name] for name in ("median", "worst", "never"))
    if median is None:
        return f"never ({never} of {one['moments']})"
    return f"{median:.0f} s ({f'{never} never' if never else f'{worst:.0f}'})"


def _queue(one: evidence.Line | None) -> str:
    """The queue in ms and the goodput in %."""
    return "–" if one is None else f"{_ranged(one['queue_ms'], 1, 0)}, {_ranged(one['goodput'], 100, 0)}"


def _both(one: evidence.Line | None) -> str:
    return "–" if one is None else f"{_time(one)}, {_queue(one)}"


def _cost(one: evidence.Line | None) -> str:
    if one is None:
        return "–"
    fair = f", {one['fairness']['mean']:.2f}" if len(BY_NAME[one["key"]["cell"]].starts) > 1 else ""
    return f"{_ranged(one['goodput'], 100, 1)}, {one['queue_ms']['mean']:.1f}{fair}"


def _ranged(value: Mapping[str, float | None], times: float, digits: int) -> str:
    if value["mean"] is None:
        return "–"
    half = "" if value["half"] is None else f"{value['half'] * times:.{digits}f}"
    # Pages say that no interval means one that rounds to zero.
    shown = "" if not half or float(half) == 0 else f" ± {half}"
    return f"{value['mean'] * times:.{digits}f}{shown}"


def _summary(simulated: Found, over_quic: Found) -> str:
    rows = [
        "| controller | runs | settle within 10 s | within 30 s | never | median | mean queue, 20 to 60 s |",
        "|---|---|---|---|---|---|---|",
        *_counts(simulated, ""),
        *_counts(over_quic, ", over QUIC"),
    ]
    return "\n".join(rows) + "\n"


def _counts(found: Found, where: str) -> Iterable[str]:
    cells = [cell for cell in GRID if cell.name[-3:] == "BDP"]
    for controller, name in CONTROLLERS.items():
        lines = [found[cell.name, controller] for cell in cells if (cell.name, controller) in found]
        if not lines:
            continue
        runs = sum(one["moments"] for one in lines)
        medians = sorted(
            math.inf if one["settled_s"]["median"] is None else one["settled_s"]["median"] for one in lines
        )
        within = [sum(one <= bound for one in medians) for bound in (10, 30)]
        never = sum(one["settled_s"]["never"] for one in lines)
        middle = medians[(len(medians) - 1) // 2]
        queue = statistics.fmean(one["queue_ms"]["mean"] for one in lines)
        yield (
            f"| {name}{where} | {runs} | {within[0]} of {len(lines)} cells | {within[1]} | {never} runs | "
            f"{'never' if middle == math.inf else f'{middle:.0f} s'} | {queue:.0f} ms |"
        )


def main() -> None:
    """Measures, prints the tables, and records what they are made of."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} moments instead of {MOMENTS}")
    parser.add_argument("--world", choices=["sim", "quic", "kernel"], default="sim")
    parser.add_argument("--record", action="store_true", help="put the results into results/drops.jsonl")
    parser.add_argument(
        evidence.LARGER, action="store_true", help="let a smaller run replace a larger one of the same code"
    )
    message = parser.parse_args()
    kept = evidence.read(FILE)  # A file that cannot be used is an error now.
    world = registry.named(message.world)
    plans = {
        "sim": ((*GRID, *COSTS), tuple(CONTROLLERS.values()), MOMENTS, os.cpu_count()),
        "quic": ((*GRID, *COSTS), OVER_QUIC, QUIC_MOMENTS, os.cpu_count()),
        "kernel": (IN_KERNEL, LOADED, KERNEL_MOMENTS, 1),
    }
    cells, forms, moments, threads = plans[world.name]
    run: Callable[[Cell, str, int], dict[str, float | None] | None] = (
        measured if world.name == "sim" else partial(in_world, world.name)
    )
    options = "" if world.name == "sim" else f" --world {world.name}"
    if message.quick:
        options, moments = options + " --quick", QUICK
    work = [(cell, one) for cell in cells for one, form in CONTROLLERS.items() if form in forms]
    lines = []
    with ThreadPoolExecutor(threads) as pool:
        runs = {
            (cell.name, controller): [pool.submit(run, cell, controller, at) for at in range(moments)]
            for cell, controller in work
        }
        for number, (cell, controller) in enumerate(work):
            done = [one.result() for one in runs[cell.name, controller]]
            if trusted := [one for one in done if one is not None]:
                lines.append(line(cell, controller, trusted, options, world))
            print(f"\r{number + 1} of {len(work)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    # The tables of one world need what the file has of the other.
    other = [one for one in kept if one["key"]["world"] != world.name]
    print("\n".join(tables([*lines, *other]).values()), end="")
    if message.record:
        evidence.replace(FILE, lines, size=None if message.replace_larger else size)


if __name__ == "__main__":
    main()
