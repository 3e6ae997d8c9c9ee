"""Tables for the terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from fullpipe import agreement, doctor, kernel_check, traces
from fullpipe.measures import COLUMNS, FLOW_COLUMNS, SHARE, Column, Quantity, flow_alone, shares
from fullpipe.results import Group, Results, Run

MARK = " !"
# With more, numbers of calls do not fit a terminal.
_TRACES_SIDE_BY_SIDE = 4


def comparison(results: Results) -> Table:
    """One row a world and alternative: means, with confidence intervals over seeds."""
    table = plain_table("Controller", "World", "Runs")
    for column in COLUMNS:
        _add_numbers(table, column.heading, column.measure.unit)
    for group in results.groups:
        cells = [_value(group, column) for column in COLUMNS]
        table.add_row(Text(group.label, style="bold"), _world(group), str(len(group.runs)), *cells)
    return table


def comparison_notes(results: Results) -> list[str]:
    """What the reader of the table must know."""
    notes = []
    of_world = {group.world: group for group in results.groups}
    said = ", ".join(f"{world} {group.times}" for world, group in of_world.items())
    singles = [world for world, group in of_world.items() if len(group.runs) == 1]
    if len(singles) < len(of_world):
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


def _value(group: Group, column: Column) -> str:
    value = group.measures[column.measure.name]
    shown = column.measure.show(value.mean if value else None)
    half_width = column.half_width(value)
    return f"{shown} ± {half_width}" if half_width else shown


def _world(of: Group | Run) -> Text:
    world = Text(of.world)
    if of.untrustworthy:
        world.append(MARK, style="bold red")
    return world


def flows(results: Results) -> Table:
    """One row a run and flow."""
    table = plain_table("Flow", "Controller", "World")
    _add_numbers(table, SHARE.title, SHARE.unit)
    for column in FLOW_COLUMNS:
        _add_numbers(table, column.heading, column.measure.unit)
    for run in results.runs:
        share = shares(run.summary)
        for flow in run.summary["flows"]:
            alone = flow_alone(run.summary, flow["label"])
            cells = [column.measure.show(column.measure.take(alone)) for column in FLOW_COLUMNS]
            name = Text(results.name_of(run.label, flow["label"]), style="bold")
            table.add_row(name, flow["controller"], _world(run), SHARE.show(share[flow["label"]]), *cells)
    return table


def links(results: Results) -> Table:
    """One row a run and queue."""
    table = plain_table("Queue", "World")
    for quantity in _OF_A_QUEUE:
        _add_numbers(table, quantity.title, quantity.unit)
    for run in results.runs:
        for link in run.summary["links"]:
            delay = link["queue_delay_ms"] or {}
            values = [
                *(delay.get(part) for part in ("mean", "p95", "max")),
                link["dropped_packets"],
                link["utilisation"],
            ]
            cells = [quantity.show(value) for quantity, value in zip(_OF_A_QUEUE, values, strict=True)]
            table.add_row(Text(results.name_of(run.label, link["name"]), style="bold"), _world(run), *cells)
    return table


_OF_A_QUEUE = (
    Quantity("Delay mean", "ms", 1, 1),
    Quantity("p95", "ms", 1, 1),
    Quantity("max", "ms", 1, 1),
    Quantity("Dropped", "packets", 1, 0),
    Quantity("Used", "%", 0.01, 1),
)


def checks(found: Sequence[agreement.Check]) -> Table:
    """One row a check of agreement."""
    table = plain_table("Alternative", "Measure")
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
    table = plain_table("", "", "")
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


def recording(made: traces.Recording) -> Table:
    """One row a recorded flow, in the order of their numbers in the trace."""
    table = plain_table("Flow", "In the scenario", "Controller")
    table.add_column("Calls", justify="right")
    for number, flow in enumerate(made.summary["flows"]):
        label = Text(flow["label"], style="bold")
        table.add_row(str(number), label, flow["controller"], f"{flow['calls']:,}")
    return table


def recording_total(made: traces.Recording, path: Path) -> str:
    """What was recorded in all."""
    calls, lost = made.summary["calls"], made.summary["lost"]
    return f"{path}: {calls:,} calls, {lost} lost, {len(made.trace):,} bytes"


def replays(reports: Sequence[dict[str, Any]]) -> Table:
    """One row a trace."""
    table = plain_table("Trace", "Algorithm", "Kernel")
    for heading in ("Flows", "Calls", "Replayed"):
        table.add_column(heading, justify="right", vertical="top")
    table.add_column("")
    for report in reports:
        verdict = Text("equal", style="green") if report["agrees"] else Text("DIFFERS", style="bold red")
        numbers = (f"{report[key]:,}" for key in ("flows", "calls", "replayed"))
        table.add_row(Text(report["trace"], style="bold"), report["cc"], report["kernel"], *numbers, verdict)
    return table


def replays_total(reports: Sequence[dict[str, Any]]) -> str:
    """All traces in a sentence."""
    calls, equal = (
        sum(report["calls"] for report in reports),
        sum(bool(report["agrees"]) for report in reports),
    )
    return f"{calls:,} calls in {len(reports)} traces; {equal} of {len(reports)} traces are equal."


def difference(report: dict[str, Any]) -> Table:
    """Both states after the first call that was decided otherwise, side by side."""
    table = plain_table("Field")
    for heading in ("Here", "Kernel"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in report["difference"]["state"]:
        differs = row["ours"] != row["kernel"]
        mark = Text("differs" if differs else "", style="bold red")
        table.add_row(Text(row["field"], style="bold"), str(row["ours"]), str(row["kernel"]), mark)
    return table


def disagreements(report: dict[str, Any]) -> list[str]:
    """The first call that was decided otherwise, in words; also of what each ACK shows for itself."""
    firsts = {
        "": report["difference"] and report["difference"]["sentence"],
        "the windowed maximum alone: ": report["filter"]["first"],
        "the delivery-rate sample alone: ": report["sampler"]["first"],
    }
    return [f"{report['trace']}: {what}{first}" for what, first in firsts.items() if first]


def coverage(reports: Sequence[dict[str, Any]]) -> list[Table]:
    """For each algorithm, how many calls reached each branch.

    Few traces stand side by side; of many the sum is shown, with a sign for each trace.
    """
    made = []
    for algorithm in dict.fromkeys(report["cc"] for report in reports):
        of_it = [report for report in reports if report["cc"] == algorithm]
        names = [Path(report["trace"]).stem for report in of_it]
        together = len(of_it) > _TRACES_SIDE_BY_SIDE
        table = plain_table(f"Branch of {algorithm}")
        for name in ["All calls"] if together else names:
            table.add_column(name, justify="right")
        if together:
            table.add_column(f"Traces 1 to {len(of_it)}")
            numbered = ", ".join(f"{number} {name}" for number, name in enumerate(names, 1))
            table.caption = f"Digits: how long the number of calls of the trace is. Traces: {numbered}."
            table.caption_justify = "left"
        table.add_column("")
        for branch in zip(*(report["coverage"] for report in of_it), strict=True):
            calls = [one["calls"] for one in branch]
            if together:
                signs = "".join(str(min(len(str(count)), 9)) if count else "·" for count in calls)
                cells = [f"{sum(calls):,}" if sum(calls) else "–", signs]
            else:
                cells = [f"{count:,}" if count else "–" for count in calls]
            table.add_row(branch[0]["branch"], *cells, Text(branch[0]["summary"], style="dim"))
        made.append(table)
    return made


def emulator(verdicts: Sequence[kernel_check.RateVerdict]) -> Table:
    """One row a rate: what was asked, what was measured from outside, and the verdict."""
    table = plain_table("Asked")
    for heading, unit, rare in _OF_THE_EMULATOR:
        if not rare:
            _add_numbers(table, heading, unit)
    table.add_column("", vertical="top")
    for one in verdicts:
        verdict = Text(one.word, style=_VERDICTS[one.word])
        cells = [cell for cell, of in zip(_emulator_cells(one), _OF_THE_EMULATOR, strict=True) if not of[2]]
        table.add_row(Text(kernel_check.mbit(one.rate_bps), style="bold"), *cells, verdict)
    return table


_VERDICTS = {
    "true": "green",
    kernel_check.OUT_OF_REACH: "yellow",
    kernel_check.LATE: "red",
    kernel_check.UNTRUE: "bold red",
}
# Heading, unit, and whether it is for documents only: a terminal has not the room.
_OF_THE_EMULATOR = (
    ("Packets", "", True),
    ("Late p50", "ms", False),
    ("p99", "ms", False),
    ("max", "ms", False),
    ("Late p99", "ms, full", False),
    ("Sent", "Mbit/s", False),
    ("Came", "Mbit/s", False),
    ("Queue", "ms\n(model)", False),
    ("Dropped", "%\n(model)", True),
    ("Dropped", "packets\n(model)", False),
    ("Dropped otherwise", "packets", False),
    ("Lost", "packets\n(model)", False),
    ("Lost otherwise", "packets", False),
    ("Own p99", "ms, full", True),
)


def emulator_markdown(verdicts: Sequence[kernel_check.RateVerdict]) -> str:
    """The same for documents."""
    headings = ["asked", *(_in_a_line(", ".join(filter(None, of[:2]))) for of in _OF_THE_EMULATOR)]
    rows = [[*headings, "verdict"], ["---"] * (len(headings) + 1)]
    for one in verdicts:
        verdict = ": ".join([one.word, "; ".join(one.wrong)]) if one.wrong else one.word
        rows.append([kernel_check.mbit(one.rate_bps), *map(_in_a_line, _emulator_cells(one)), verdict])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def emulator_notes(verdicts: Sequence[kernel_check.RateVerdict]) -> list[str]:
    """What the reader of the table must know."""
    notes = [
        f"{kernel_check.mbit(one.rate_bps)} is {one.word}: {'; '.join(one.wrong)}."
        + (" By the emulator's own record a run would not be marked for it." if one.unnoticed else "")
        for one in verdicts
        if not one.true
    ]
    light, heavy = kernel_check.LIGHT_LOAD, kernel_check.HEAVY_LOAD
    return [
        f"Late: how long after it should have each packet came, at {light:.0%} of the rate on a path of "
        f"{kernel_check.RTT_MS} ms, as random losses are; full, and all from there to drops: at {heavy:.0%}. "
        "Model: the path model, told when the sender sent. Otherwise: packets that it decides on otherwise; "
        "of random losses none may be.",
        *notes,
    ]


def _emulator_cells(one: kernel_check.RateVerdict) -> list[str]:
    light, heavy = one.light.measures, one.heavy.measures
    late, full_late, full = light["late"] or {}, heavy["late"] or {}, heavy["full"]
    queueing = [((full or {}).get(which) or {}).get("p50_ns") for which in ("queueing", "expected_queueing")]
    shares = kernel_check.drop_shares(one.heavy)
    drops, losses = heavy["decisions"], light["decisions"]
    return [
        f"{light['sent'] + heavy['sent']:,}",
        *(_ms(late.get(part)) for part in ("p50_ns", "p99_ns", "max_ns")),
        _ms(full_late.get("p99_ns")),
        *("–" if bps is None else f"{bps / 1e6:,.4g}" for bps in (heavy["sent_bps"], heavy["received_bps"])),
        f"{_ms(queueing[0])}\n({_ms(queueing[1])})",
        "–" if shares is None else f"{shares[0] * 100:.2f}\n({shares[1] * 100:.2f})",
        f"{drops['dropped']:,}\n({drops['expected']:,})",
        f"{drops['differently']:,}",
        f"{losses['dropped']:,}\n({losses['expected']:,})",
        f"{losses['differently']:,}",
        _ms(heavy["own_p99_ns"]),
    ]


def _in_a_line(cell: str) -> str:
    return cell.replace("\n", " ")


def _ms(ns: float | None) -> str:
    return "–" if ns is None else kernel_check.ms(ns)


def controllers(found: Sequence[dict[str, Any]]) -> Table:
    """One row a controller, its parameters below it."""
    table = plain_table("Controller", "In Linux", "")
    for one in found:
        table.add_row(Text(one["name"], style="bold"), one["kernel"] or "–", one["summary"])
        for parameter in one["parameters"]:
            default = f" (default {parameter['default']:g}{_unit(parameter)})"
            table.add_row(f"  :{parameter['name']}=", "", Text(parameter["summary"] + default, style="dim"))
    return table


def _unit(parameter: dict[str, Any]) -> str:
    return f" {parameter['unit']}" if parameter.get("unit") else ""


def _add_numbers(table: Table, heading: str, unit: str) -> None:
    table.add_column(f"{heading}\n{unit}", justify="right", vertical="top")


def plain_table(*headings: str) -> Table:
    """An empty table in the style of all of them."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for heading in headings:
        table.add_column(heading, vertical="top")
    return table
