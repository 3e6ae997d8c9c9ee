"""The report: one HTML file that needs no network. `fullpipe.report.page` provides its frame."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fullpipe._native as _native
from fullpipe.agreement.agreement import TOLERANCES, Agreement, range_counts
from fullpipe.measures.measures import (
    SHARE,
    Column,
    Quantity,
    columns,
    explained,
    flow_alone,
    flow_columns,
    known,
    shares,
)
from fullpipe.measures.run import Group, Run, Runs
from fullpipe.report import provenance
from fullpipe.report.answers import answers
from fullpipe.report.counts import left_out, often, single, spread
from fullpipe.report.figures import theme
from fullpipe.report.page import Heading, figure, page, table
from fullpipe.report.page import provenance as listed_provenance
from fullpipe.report.page import text as _text
from fullpipe.report.page import variable as _variable
from fullpipe.report.unsupported import section, unsupported_runs
from fullpipe.text import joined, ran_by

if TYPE_CHECKING:
    from fullpipe.report.figures import Drawing

_MANY_SYSCTLS = 12
# In the element itself, because a notebook has no style sheet of ours.
_DOT = "display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:8px;"


def html(results: Runs, drawn: "Sequence[Drawing] | None" = None) -> str:
    """The whole page."""
    if drawn is None:
        from fullpipe.report.figures import drawings

        drawn = drawings(results)
    sections = [
        _header(results),
        *(f'<p class="note">{_text(note)}</p>' for note in results.notes),
        summary_table(results),
        _interval_note(results),
        *(f'<p class="quiet">{_text(note)}</p>' for note in explained(run.summary for run in results.runs)),
        *_untrustworthy(results),
        *_agreement(results),
        *_flows(results),
        section(unsupported_runs(results)),
        _FIGURES_HEAD if drawn else "",
        *(
            figure(number, drawing.figure.name, drawing.svg, drawing.caption)
            for number, drawing in enumerate(drawn)
        ),
        _provenance(results),
    ]
    return page(f"Fullpipe: {_title(results)}", sections, [drawing.spec for drawing in drawn])


def summary_table(results: Runs) -> str:
    """The table of means with intervals, as HTML; a notebook shows it for results, too."""
    shown = columns(run.summary for run in results.runs)
    what = "Scenario" if results.labels == [results.scenario.name] else "Controller"
    headings = [Heading(what), Heading("World"), Heading("Runs", number=True), *map(_heading, shown)]
    colours = _colours(results)
    rows = []
    for group in results.groups:
        mixed = len({flow["controller"] for flow in group.runs[0].summary["flows"]}) > 1
        dot = "" if mixed else f'<i style="{_DOT}background:{_variable(colours[group.label])}"></i>'
        rows.append(
            [
                f"{dot}{_text(group.label)}",
                _world(group),
                group.count,
                *(_cell(group, column) for column in shown),
            ]
        )
    return table(headings, rows)


def _heading(column: Column) -> Heading:
    return Heading(column.heading, column.measure.unit, number=True, alone=column.measure.title)


def _flows(results: Runs) -> list[str]:
    """The table of flows, if several share the path."""
    shown = flow_columns(run.summary for run in results.runs)
    rows = [
        _flow_row(results, group, number, shown)
        for group in results.groups
        if len(group.runs[0].summary["flows"]) > 1
        for number in range(len(group.runs[0].summary["flows"]))
    ]
    if not rows:
        return []
    share = Heading(SHARE.title, SHARE.unit, number=True)
    headings = [Heading("Flow"), Heading("Controller"), Heading("World"), share, *map(_heading, shown)]
    return ["<h2>Flows</h2>", table(headings, rows), f'<p class="quiet">{_text(FLOWS_NOTE)}</p>']


FLOWS_NOTE = (
    "Means over trusted runs; numbers of untrustworthy runs are marked. Each flow’s goodput is over its own "
    "lifetime; its share is its part of the bytes of all flows."
)


def _flow_row(results: Runs, group: Group, number: int, shown: Sequence[Column]) -> list[str]:
    flow = group.runs[0].summary["flows"][number]
    label = flow["label"]
    cells = [_mean(group, SHARE, [shares(run.summary)[label] for run in group.shown])]
    for column in shown:
        values = [column.measure.take(flow_alone(run.summary, label)) for run in group.shown]
        cells.append(_mean(group, column.measure, values))
    return [
        _text(results.name_of(group.label, label)),
        _text(flow["controller"]),
        _world(group),
        *cells,
    ]


def _world(group: Group) -> str:
    """The world, with a badge if the numbers of the row are of runs that are not trusted."""
    title = _text(theme.world_title(group.world))
    if not group.doubted:
        return title
    why = _text("; ".join(group.untrustworthy))
    return f'{title} <abbr class="untrustworthy" title="{why}">untrustworthy</abbr>'


def _mean(group: Group, quantity: Quantity, values: Sequence[float | None]) -> str:
    """The mean of a quantity over the shown runs of a group; if they are not trusted, their range."""
    if group.doubted:
        return spread(quantity, values)
    value = known(values)
    return quantity.show(value.mean if value else None)


def _cell(group: Group, column: Column) -> str:
    if group.doubted:
        return spread(column.measure, [column.measure.take(run.summary) for run in group.runs])
    value = group.measures[column.measure.name]
    half_width = column.half_width(value)
    shown = column.measure.show(value.mean if value else None)
    return f"{shown} <small>± {half_width}</small>" if half_width else shown


def _colours(results: Runs) -> dict[str, str]:
    from fullpipe.report.figures.prepare import rows

    return {row.label: row.colour for row in reversed(rows(results))}


def _title(results: Runs) -> str:
    labels = results.labels
    who = " against ".join(labels) if len(labels) == 2 else joined(labels)
    path = _path(results.scenario.document.get("path", {}))
    return f"{who} on {path}" if path else who


def _path(path: dict[str, Any]) -> str:
    """The path as the user wrote it."""
    words = {
        "rate": "{}",
        "deliveries": "the deliveries {}",
        "rtt": "RTT {}",
        "buffer": "buffer {}",
        "queue": "queue {}",
        "loss": "loss {}",
    }
    plain = {key: value for key, value in path.items() if not isinstance(value, (dict, list))}
    if (file := plain.pop("deliveries", None)) is not None:
        plain["deliveries"] = Path(str(file)).name
    message = [word.format(_plain(plain.pop(key))) for key, word in words.items() if key in plain]
    message += [f"{key.replace('_', ' ')} {_plain(value)}" for key, value in plain.items()]
    return ", ".join(message + (["with changes during the run"] if path.get("changes") else []))


def _header(results: Runs) -> str:
    message = [f"{results.scenario.alternatives[0].duration_s:g} s a run"]
    message += [f"{theme.world_title(world)}: {count}" for world, count in often(results).items()]
    answered = "".join(
        f'<p class="answer"><b>{_text(theme.world_heading(world))}</b> {_text(answer)}</p>'
        for world, answer in answers(results).items()
    )
    quiet = f'<p class="quiet">{_text(" · ".join(message))}</p>'
    return f"<header><h1>{_text(_title(results))}</h1>{answered}{quiet}</header>"


def _interval_note(results: Runs) -> str:
    singles = sorted(map(theme.world_title, single(results)))
    note = "± is a 95 % confidence interval of the mean over seeds or repetitions (Student’s t)."
    if not any(len(group.trusted) > 1 for group in results.groups):
        if not singles:
            return ""
        note = "Means of one run have no confidence interval."
    elif singles:
        note += f" One run gives no interval ({', '.join(singles)})."
    return f'<p class="quiet">{_text(note)}</p>'


def _untrustworthy(results: Runs) -> list[str]:
    message = [f"<li>{_text(one)}</li>" for group in results.groups if (one := left_out(group))]
    for group in results.groups:
        for run in group.runs:
            for reason in run.untrustworthy:
                which = f"{group.label}, {theme.world_title(group.world)}, seed {run.seed}"
                message.append(f"<li>{_text(which)}: {_text(reason)}</li>")
    if not message:
        return []
    return [f'<div class="note"><p>Untrustworthy runs:</p><ul>{"".join(message)}</ul></div>']


def _agreement(results: Runs) -> list[str]:
    """How far apart the worlds are, if two ran."""
    found = Agreement.between(results)
    if found is None:
        return []
    rule = f"Tolerances: {TOLERANCES}. {range_counts(found.worlds)} {found.few}"
    ours, theirs = map(theme.world_heading, found.worlds)
    headings = [Heading("Alternative"), Heading("Measure")]
    headings += [Heading(name, number=True) for name in (ours, f"{theirs} (range)")]
    headings += [Heading(name, number=True) for name in ("Difference", "Tolerance")]
    rows = [
        [
            _text(cell)
            for cell in (
                one.alternative,
                one.measure,
                one.ours,
                one.theirs,
                one.difference,
                one.tolerance,
                one.verdict,
            )
        ]
        for one in found.checks
    ]
    return [
        f"<h2>How far apart {_text(joined([*map(theme.world_title, found.worlds)]))} are</h2>",
        f"<p>{_text(found.verdict)}</p>",
        table([*headings, Heading("Verdict")], rows) if rows else "",
        f'<p class="quiet">{_text(rule.rstrip())}</p>',
    ]


_FIGURES_HEAD = (
    '<h2>Figures</h2><p class="quiet live">Zoom with the buttons below a figure; or drag it to move, turn '
    "the wheel with shift to zoom, and double-click to see the whole run.</p>"
)


def _provenance(results: Runs) -> str:
    document = json.dumps(results.scenario.document, indent=2, ensure_ascii=False)
    command = provenance.command()
    entries = [
        ("Command", f"<code>{_text(command)}</code>" if command else "called from Python"),
        ("Written", f"{provenance.now()}, by Fullpipe {_text(_native.version())}"),
        ("Scenario", f"<pre>{_text(document)}</pre>"),
    ]
    for world in results.worlds:
        runs = [run for run in results.runs if run.world == world]
        entries.append((theme.world_heading(world), _world_provenance(runs)))
    if logs := [one for run in results.runs for one in run.logs]:
        entries.append(("Logs", "<br>".join(f"<code>{_text(str(one))}</code>" for one in logs)))
    return listed_provenance(entries)


def _world_provenance(runs: list[Run]) -> str:
    first = runs[0].summary["provenance"]
    numbers = list(dict.fromkeys(run.seed for run in runs))
    seeds = ", ".join(map(str, numbers))
    facts = [f"Fullpipe {first['version']}", f"seed{'s' if len(numbers) > 1 else ''} {seeds}"]
    facts += [ran_by(first["kernel"])] if first.get("kernel") else []
    facts += [f"host {first['host']}"] if first.get("host") else []
    parts = [f"<p>{_text(', '.join(facts))}</p>"]
    late = [run for run in runs if run.summary["provenance"].get("lateness")]
    if late:
        parts.append(_lateness_table(late))
    if sysctls := first.get("sysctls"):
        settings = _text("\n".join(f"{name} = {value}" for name, value in sysctls))
        opened = " open" if len(sysctls) <= _MANY_SYSCTLS else ""
        parts.append(f"<details{opened}><summary>sysctls</summary><pre>{settings}</pre></details>")
    return "".join(parts)


def _lateness_table(runs: list[Run]) -> str:
    """How late the emulator released packets, run by run."""
    rows = []
    for run in runs:
        late: dict[str, Any] = run.summary["provenance"]["lateness"]
        times = (f"{late[key] / 1e3:,.0f}" for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns"))
        rows.append([_text(run.label), str(run.seed), f"{late['packets']:,}", *times])
    numbers = ("Seed", "Packets", "p50", "p99", "p99.9", "max")
    headings = [Heading("Run"), *(Heading(name, number=True) for name in numbers)]
    return f"<p>How late the emulator released packets, µs:</p>{table(headings, rows)}"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
