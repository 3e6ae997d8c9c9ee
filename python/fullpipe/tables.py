"""Tables for the terminal."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from fullpipe import agree, doctor
from fullpipe.measures import BY_NAME
from fullpipe.results import Group, Results, Run

# Headings of the comparison and the measures under them; the first of them carry their interval.
_COLUMNS = (
    ("Goodput\nMbit/s", "goodput_bps", True),
    ("RTT mean\nms", "rtt_mean_ms", True),
    ("p50\nms", "rtt_p50_ms", False),
    ("p95\nms", "rtt_p95_ms", False),
    ("Queueing\nms", "queue_delay_mean_ms", True),
    ("Retransmits\nsegments", "retransmits", True),
    ("Loss\n%", "loss_ratio", False),
)
MARK = " !"


def comparison(results: Results) -> Table:
    """One row a world and alternative: means, with confidence intervals over seeds."""
    table = _table("Controller", "World", "Seeds")
    for heading, _, _ in _COLUMNS:
        table.add_column(heading, justify="right")
    for group in results.groups:
        cells = [_value(group, name, interval) for _, name, interval in _COLUMNS]
        world = Text(group.world)
        if group.untrustworthy:
            world.append(MARK, style="bold red")
        table.add_row(Text(group.label, style="bold"), world, str(len(group.runs)), *cells)
    return table


def comparison_notes(results: Results) -> list[str]:
    """What the reader of the table must know."""
    notes = []
    counts: dict[str, list[int]] = {}
    for group in results.groups:
        counts.setdefault(group.world, []).append(len(group.runs))
    said = ", ".join(f"{world} {_times(world, max(sizes))}" for world, sizes in counts.items())
    singles = [world for world, sizes in counts.items() if max(sizes) == 1]
    if len(singles) < len(counts):
        notes.append(f"± is the 95 % confidence interval of the mean ({said}).")
    if singles:
        notes.append(f"A single run gives no confidence interval ({', '.join(singles)}).")
    return notes + run_notes(results)


def run_notes(results: Results) -> list[str]:
    """Which runs cannot be trusted, and what did not run."""
    doubts = [
        f"{MARK.strip()} {run.label}, {run.world}, seed {run.seed} is untrustworthy: {reason}"
        for run in results.runs
        for reason in run.untrustworthy
    ]
    return doubts + results.notes


def _times(world: str, count: int) -> str:
    noun = "repetition" if world == "kernel" else "seed"
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _value(group: Group, name: str, interval: bool) -> str:
    value, measure = group.measures[name], BY_NAME[name]
    if value is None:
        return "–"
    if interval and value.half_width is not None:
        return f"{measure.show(value.mean)} ± {measure.show(value.half_width)}"
    return measure.show(value.mean)


def flows(results: Results) -> Table:
    """One row a run and flow."""
    table = _table("Flow", "Controller", "World")
    for heading in (
        "Goodput\nMbit/s",
        "Share\n%",
        "RTT mean\nms",
        "p50\nms",
        "p95\nms",
        "Retransmits\nsegments",
        "Loss\n%",
    ):
        table.add_column(heading, justify="right")
    for run in results.runs:
        total = sum(flow["goodput_bps"] or 0 for flow in run.summary["flows"])
        for flow in run.summary["flows"]:
            rtt = flow["rtt_ms"] or {}
            cells = [
                _number(flow["goodput_bps"], 1e6, 2),
                _number(flow["goodput_bps"], total / 100, 1) if total else "–",
                *(_number(rtt.get(part), 1, 1) for part in ("mean", "p50", "p95")),
                _number(flow["retransmits"], 1, 0),
                _number(flow["loss_ratio"], 0.01, 3),
            ]
            world = Text(run.world)
            if run.untrustworthy:
                world.append(MARK, style="bold red")
            table.add_row(
                Text(_flow_name(results, run, flow["label"]), style="bold"), flow["controller"], world, *cells
            )
    return table


def links(results: Results) -> Table:
    """One row a run and queue."""
    table = _table("Queue", "World")
    for heading in ("Delay mean\nms", "p95\nms", "max\nms", "Dropped\npackets", "Used\n%"):
        table.add_column(heading, justify="right")
    for run in results.runs:
        for link in run.summary["links"]:
            delay = link["queue_delay_ms"] or {}
            cells = [
                *(_number(delay.get(part), 1, 1) for part in ("mean", "p95", "max")),
                _number(link.get("dropped_packets"), 1, 0),
                _number(link.get("utilisation"), 0.01, 1),
            ]
            table.add_row(Text(_flow_name(results, run, link["name"]), style="bold"), run.world, *cells)
    return table


def _flow_name(results: Results, run: Run, name: str) -> str:
    return f"{run.label}: {name}" if len(results.labels) > 1 else name


def _number(value: float | None, scale: float, digits: int) -> str:
    return "–" if value is None else f"{value / scale:,.{digits}f}"


def agreement(found: Sequence[agree.Check]) -> Table:
    """One row a check."""
    table = _table("Alternative", "Measure")
    for heading in ("Simulator", "Kernel (range)", "Difference", "Tolerance"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in found:
        verdict = Text("agrees", style="green") if one.agrees else Text("DIFFERS", style="bold red")
        if one.reason:
            verdict.append(f", {one.reason}", style="dim")
        table.add_row(
            Text(one.alternative, style="bold"),
            one.measure,
            one.sim,
            one.kernel,
            one.difference,
            one.tolerance,
            verdict,
        )
    return table


def diagnosis(found: Sequence[doctor.Check]) -> Table:
    """One row a check of this machine."""
    table = _table("", "", "")
    table.show_header = False
    group = ""
    for one in found:
        heading, group = (one.group if one.group != group else ""), one.group
        mark = Text("ok", style="green") if one.ok else Text("missing", style="bold red")
        what = Text(one.found)
        if not one.ok and one.mend:
            what.append(f"\nmend: {one.mend}", style="yellow")
        table.add_row(Text(heading, style="bold"), one.name, mark, what)
    return table


def controllers(found: Sequence[dict[str, Any]]) -> Table:
    """One row a controller, its parameters below it."""
    table = _table("Controller", "In Linux", "")
    for one in found:
        table.add_row(Text(one["name"], style="bold"), one["kernel"] or "–", one["summary"])
        for parameter in one["parameters"]:
            default = f" (default {parameter['default']:g}{_unit(parameter)})"
            table.add_row(f"  :{parameter['name']}=", "", Text(parameter["summary"] + default, style="dim"))
    return table


def _unit(parameter: dict[str, Any]) -> str:
    return f" {parameter['unit']}" if parameter.get("unit") else ""


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        table.add_column(heading, vertical="top")
    return table
