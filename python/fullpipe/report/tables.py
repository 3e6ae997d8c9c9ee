"""Tables for the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.text import Text

from fullpipe.agreement import agreement
from fullpipe.measures.measures import (
    BY_NAME,
    SHARE,
    Column,
    Quantity,
    both_ways,
    columns,
    different_lifetimes,
    explained,
    flow_alone,
    flow_columns,
    known,
    shares,
)
from fullpipe.measures.run import Group, Runs
from fullpipe.report.counts import left_out, often, single, spread
from fullpipe.report.figures import theme
from fullpipe.report.fitting import Fitting
from fullpipe.report.unsupported import unsupported_runs
from fullpipe.runs import doctor
from fullpipe.runs.worlds import kernel_check
from fullpipe.text import counted, joined

MARK = " !"


def comparison(results: Runs) -> Fitting:
    """One row for each world and alternative: means, with confidence intervals over seeds."""
    table = Fitting("Controller", "World")
    table.add_numbers("Runs")
    shown = columns(run.summary for run in results.runs)
    for column in shown:
        table.add_numbers(column.heading, column.measure.unit, alone=column.measure.title)
    for group in results.groups:
        cells = [_value(group, column) for column in shown]
        table.add_row(Text(group.label, style="bold"), _world(group), group.count, *cells)
    return table


def comparison_notes(results: Runs) -> list[str]:
    """What the reader of the table must know."""
    notes = []
    if any(len(group.trusted) > 1 for group in results.groups):
        notes.append(f"± is the 95 % confidence interval of the mean ({_often(results)}).")
    if singles := single(results):
        notes.append(f"A single run gives no confidence interval ({', '.join(singles)}).")
    return notes + run_notes(results)


def _often(results: Runs) -> str:
    return ", ".join(f"{world} {count}" for world, count in often(results).items())


def how_often(results: Runs) -> str:
    """How often each world ran; where runs are not trusted, how many each alternative rests on."""
    if any(len(group.trusted) < len(group.runs) for group in results.groups):
        counts: dict[str, list[str]] = {}
        for group in results.groups:
            counts.setdefault(group.label, []).append(f"{group.world} {group.count}")
        message = [f"{label}: {', '.join(of)}" for label, of in counts.items()]
        return f"Trusted runs: {'; '.join(message)}."
    return f"Runs of each alternative: {_often(results)}."


def flow_notes(results: Runs) -> list[str]:
    """The total of flows that share a path, and what the goodputs of its flows are over."""
    notes = []
    shared = [group for group in results.groups if len(group.runs[0].summary["flows"]) > 1]
    goodput = BY_NAME["goodput_bps"]
    for group in shared:
        if (total := group.measures[goodput.name]) is not None:
            name = f"{group.label}, {group.world}"
            which = "Forward flows" if both_ways(group.runs[0].summary) else "All flows"
            notes.append(f"{which} of {name}: {goodput.show(total.mean)} {goodput.unit} of goodput.")
    if any(different_lifetimes(run.summary) for group in shared for run in group.shown):
        notes.append("Each flow's goodput is over its own lifetime; lifetimes differ, so they do not add up.")
    return notes


def run_notes(results: Runs) -> list[str]:
    """What short headings mean, which runs cannot be trusted, what was not supported, what did not run."""
    doubts = [
        f"{MARK.strip()} {run.label}, {run.world}, seed {run.seed} is untrustworthy: {reason}"
        for run in results.runs
        for reason in run.untrustworthy
    ]
    sentences = [sentence for group in results.groups if (sentence := left_out(group))]
    ignored = [one.note("the report lists them") for one in unsupported_runs(results)]
    return explained(run.summary for run in results.runs) + doubts + sentences + ignored + results.notes


def _value(group: Group, column: Column) -> str | Text:
    if group.doubted:
        return _doubted(column.measure, (column.measure.take(run.summary) for run in group.runs))
    value = group.measures[column.measure.name]
    shown = column.measure.show(value.mean if value else None)
    half_width = column.half_width(value)
    return f"{shown} ± {half_width}" if half_width else shown


def _doubted(quantity: Quantity, values: Iterable[float | None]) -> Text:
    """The numbers of runs that are not trusted; the mark is beside the world's name."""
    return Text(spread(quantity, values), style="red")


def _world(of: Group) -> Text:
    """The world, with a mark if the numbers of the row are of runs that are not trusted."""
    world = Text(of.world)
    if of.doubted:
        world.append(MARK, style="bold red")
    return world


def flows(results: Runs) -> Fitting:
    """One row for each world, alternative and flow: means over trusted runs; without any, marked numbers."""
    table = Fitting("Flow", "Controller", "World")
    table.add_numbers(SHARE.title, SHARE.unit)
    shown = flow_columns(run.summary for run in results.runs)
    for column in shown:
        table.add_numbers(column.heading, column.measure.unit, alone=column.measure.title)
    for group in results.groups:
        for flow in group.runs[0].summary["flows"]:
            label = flow["label"]
            cells = [_mean(group, SHARE, [shares(run.summary)[label] for run in group.shown])]
            alone = [flow_alone(run.summary, label) for run in group.shown]
            cells += [_mean(group, column.measure, map(column.measure.take, alone)) for column in shown]
            name = Text(results.name_of(group.label, label), style="bold")
            table.add_row(name, flow["controller"], _world(group), *cells)
    return table


def links(results: Runs) -> Fitting:
    """One row for each world, alternative and queue: means over trusted runs; without any, marked numbers."""
    table = Fitting("Queue", "World")
    for quantity, alone in zip(_OF_A_QUEUE, _QUEUE_ALONE, strict=True):
        table.add_numbers(quantity.title, quantity.unit, alone=alone)
    signals = [
        name
        for name in _SIGNALS
        if any(link.get(name) for run in results.runs for link in run.summary["links"])
    ]
    for name in signals:
        table.add_numbers(_SIGNALS[name].title, _SIGNALS[name].unit)
    for group in results.groups:
        for number, link in enumerate(group.runs[0].summary["links"]):
            rows = [_of_a_queue(run.summary["links"][number]) for run in group.shown]
            cells = [
                _mean(group, quantity, [row[place] for row in rows])
                for place, quantity in enumerate(_OF_A_QUEUE)
            ]
            for name in signals:
                values = [float(run.summary["links"][number].get(name, 0)) for run in group.shown]
                cells.append(_mean(group, _SIGNALS[name], values))
            shown = Text(results.name_of(group.label, link["name"]), style="bold")
            table.add_row(shown, _world(group), *cells)
    return table


def _mean(group: Group, quantity: Quantity, values: Iterable[float | None]) -> str | Text:
    """The mean of a quantity over the shown runs of a group; if they are not trusted, their range."""
    if group.doubted:
        return _doubted(quantity, values)
    value = known(list(values))
    return quantity.show(value.mean if value else None)


def _of_a_queue(link: dict[str, Any]) -> list[float | None]:
    delay = link["queue_delay_ms"] or {}
    return [
        *(delay.get(part) for part in ("mean", "p95", "max")),
        link["dropped_packets"],
        link["utilisation"],
    ]


_OF_A_QUEUE = (
    Quantity("Queue mean", "ms", 1, 1),
    Quantity("p95", "ms", 1, 1),
    Quantity("max", "ms", 1, 1),
    Quantity("Dropped", "packets", 1, 0),
    Quantity("Used", "%", 0.01, 1),
)
# Only where a queue discipline did so.
_SIGNALS = {
    "early_packets": Quantity("Early", "packets", 1, 0),
    "marked_packets": Quantity("Marked", "packets", 1, 0),
}
_QUEUE_ALONE = ("", "Queue p95", "Queue max", "", "")


def checks(found: agreement.Agreement[Any]) -> Fitting:
    """One row for each check of agreement."""
    table = Fitting("Alternative", "Measure")
    ours, theirs = map(theme.world_short, found.worlds)
    for heading in (ours, f"{theirs} (range)", "Difference", "Tolerance"):
        table.add_numbers(heading)
    table.add_text("", alone="Verdict")
    for one in found.checks:
        verdict = Text("agrees", style="green") if one.agrees else Text("DIFFERS", style="bold red")
        if one.reason:
            verdict.append(f", {one.reason}", style="dim")
        table.add_row(
            Text(one.alternative, style="bold"),
            one.measure,
            one.ours,
            one.theirs,
            one.difference,
            one.tolerance,
            verdict,
        )
    return table


def diagnosis(found: Sequence[doctor.Requirement]) -> Fitting:
    """One row for each check of this machine."""
    table = Fitting("", "", "", "", show_header=False)
    group = ""
    for one in found:
        heading, group = (one.group if one.group != group else ""), one.group
        mark = Text("ok", style="green") if one.ok else Text("missing", style="bold red")
        if one.found.startswith("not measured"):
            mark = Text("–")
        what = Text(one.found)
        if not one.ok and one.fix:
            what.append(f"\nfix: {one.fix}", style="yellow")
        table.add_row(Text(heading, style="bold"), one.name, mark, what)
    return table


def emulator(verdicts: Sequence[kernel_check.RateVerdict]) -> Fitting:
    """One row for each rate: the requested rate, the measured values, and the verdict."""
    table = Fitting("Asked")
    for heading, unit, rare in _OF_THE_EMULATOR:
        if not rare:
            table.add_numbers(heading, unit, alone=_EMULATOR_ALONE.get(heading, ""))
    table.add_text("", alone="Verdict")
    for one in verdicts:
        verdict = Text(one.word, style=_VERDICTS[one.word])
        cells = [cell for cell, of in zip(_emulator_cells(one), _OF_THE_EMULATOR, strict=True) if not of[2]]
        table.add_row(Text(kernel_check.mbit(one.rate_bps), style="bold"), *cells, verdict)
    return table


_VERDICTS = {
    kernel_check.ACCURATE: "green",
    kernel_check.OUT_OF_REACH: "yellow",
    kernel_check.LATE: "red",
    kernel_check.INACCURATE: "bold red",
}
# Heading, unit, and whether it is for documents only, because a terminal is too narrow.
_OF_THE_EMULATOR = (
    ("Packets", "", True),
    ("Late p50", "ms", False),
    ("p99", "ms", False),
    ("max", "ms", False),
    ("Late p99", "ms, full", False),
    ("Sent", "Mbit/s", False),
    ("Delivered", "Mbit/s", False),
    ("Queue", "ms\n(model)", False),
    ("Dropped", "%\n(model)", True),
    ("Dropped", "packets\n(model)", False),
    ("Drops that differ", "packets", False),
    ("Lost", "packets\n(model)", False),
    ("Losses that differ", "packets", False),
    ("Own p99", "ms, full", True),
)

_EMULATOR_ALONE = {"p99": "Late p99", "max": "Late max"}


def emulator_markdown(verdicts: Sequence[kernel_check.RateVerdict]) -> str:
    """The same table in Markdown."""
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
        + (" The emulator's own record would not mark such a run." if one.unnoticed else "")
        for one in verdicts
        if not one.accurate
    ]
    light, heavy = kernel_check.LIGHT_LOAD, kernel_check.HEAVY_LOAD
    return [
        f"Late: how late packets arrive on a path of {kernel_check.RTT_MS} ms, at {light:.0%} of the rate. "
        f"Random losses are measured at the same load; full, sent, delivered, queue and drops at "
        f"{heavy:.0%}. "
        "Model: the expected value, computed by the path model from the times of sending. Differ: decisions "
        "that differ from the model; no random loss may differ.",
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


def controllers(found: Sequence[dict[str, Any]]) -> Fitting:
    """One row for each controller, with its parameters below it."""
    table = Fitting("Controller", "In Linux", "Description")
    for one in found:
        table.add_row(Text(one["name"], style="bold"), one["kernel"] or "–", one["summary"])
        for parameter in one["parameters"]:
            own = f", only with profile={parameter['profile']}" if parameter["profile"] else ""
            default = f" (default {_default(parameter)}{own})"
            table.add_row(f"  :{parameter['name']}=", "", Text(parameter["summary"] + default, style="dim"))
    return table


def stacks(found: Sequence[dict[str, Any]]) -> Fitting:
    """One row for each stack, with what it tells and its adapter's policy below it."""
    table = Fitting("Stack", "Controllers", "Description")
    for one in found:
        licence = f" ({one['licence']})" if one["licence"] else ""
        controllers = ", ".join(f"{one['name']}:{name}" for name in one["controllers"])
        table.add_row(Text(one["name"], style="bold"), controllers, one["source"] + licence)
        tells = ", ".join(one["tells"]) or "nothing of its connections but what is delivered"
        for text in (f"Tells: {tells}", one["policy"], one["command"]):
            if text:
                table.add_row("", "", Text(text, style="dim"))
    return table


def stack_checks(found: Sequence[Any]) -> Fitting:
    """One row for each run of a check of an adapter."""
    table = Fitting("Controller", "Run", "Packets", "Digest", "Equal")
    for one in found:
        equal = "yes" if one.same else one.differs if one.wanted else "no, as it may be"
        table.add_row(one.controller, one.way, f"{one.packets:,}", one.digest, equal)
    return table


def stack_notes(found: Sequence[Any], listing: Sequence[str]) -> list[str]:
    """Sentences about what an adapter tells; `listing`: how that differs from what it lists."""
    of_runs = [f"{one.controller}: the adapter {what}." for one in found for what in one.lacks + one.doubts]
    return of_runs + [f"The adapter {what}." for what in listing]


def stack_calls(controller: str, calls: Mapping[str, int] | None, reason: str) -> str:
    """What an adapter asks its machine for in a run of a controller; why that is not known, or not all."""
    if calls is None:
        return f"What the adapter asks its machine for cannot be seen here: {reason.rstrip('.')}."
    counts = [f"{name} ({counted(count, 'call')})" for name, count in calls.items()]
    harmless = (
        " Those of a language's runtime do no harm. If the stack itself asks for the time, its RTTs are the "
        "machine's."
        if counts
        else ""
    )
    asked = joined(counts) or "neither time nor random numbers"
    failed = reason and f" This run, in which calls are counted, fails: {reason.rstrip('.')}."
    return f"In a run of {controller}, the adapter asks its machine for {asked}.{harmless}{failed}"


def queues(found: Sequence[dict[str, Any]]) -> Fitting:
    """One row for each queue discipline, with its source and its settings below it."""
    table = Fitting("Queue", "In Linux", "Description")
    for one in found:
        table.add_row(Text(one["name"], style="bold"), one["kernel"] or "–", one["summary"])
        table.add_row("", "", Text(f"Source: {one['source']}", style="dim"))
        for setting in one["settings"]:
            numbers = f" (default {setting['default']}, {_range(setting)})"
            table.add_row(f"  :{setting['name']}=", "", Text(setting["summary"] + numbers, style="dim"))
    return table


def _range(setting: dict[str, Any]) -> str:
    if setting["kind"] == "switch":
        return "on or off"
    return f"{setting['min']} to {setting['max']}"


def _default(parameter: dict[str, Any]) -> str:
    if parameter["kind"] == "choice":
        return f"{parameter['default']} of {', '.join(parameter['choices'])}"
    value, unit = parameter["default"], parameter.get("unit") or ""
    if unit == "bit/s" and value >= 1e6:
        value, unit = value / 1e6, "Mbit/s"
    return f"{value:g} {unit.removesuffix('s') if value == 1 and unit == 'segments' else unit}".strip()
