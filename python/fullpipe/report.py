"""The report: one HTML file that needs no network. `fullpipe.page` is its shell."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullpipe.answers import answers, together
from fullpipe.figures import theme
from fullpipe.measures import COLUMNS, FLOW_COLUMNS, SHARE, Column, flow_alone, known, shares
from fullpipe.page import figure, page
from fullpipe.page import text as _text
from fullpipe.page import variable as _variable
from fullpipe.results import Group, Results, Run

if TYPE_CHECKING:
    from fullpipe.figures import Drawing

_MANY_SYSCTLS = 12
# In the element itself, because a notebook has no style sheet of ours.
_DOT = "display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:8px;"


def html(results: Results, drawn: "Sequence[Drawing] | None" = None) -> str:
    """The whole page."""
    if drawn is None:
        from fullpipe.figures import drawings

        drawn = drawings(results)
    sections = [
        _header(results),
        *(f'<p class="note">{_text(note)}</p>' for note in results.notes),
        summary_table(results),
        _interval_note(results),
        *_untrustworthy(results),
        *_flows(results),
        _FIGURES_HEAD if drawn else "",
        *(
            figure(number, drawing.figure.name, drawing.svg, drawing.figure.look_at)
            for number, drawing in enumerate(drawn)
        ),
        _provenance(results),
    ]
    return page(f"Fullpipe: {_title(results)}", sections, [drawing.spec for drawing in drawn])


def summary_table(results: Results) -> str:
    """The table of means with intervals, as HTML; also what a notebook shows for results."""
    groups = results.groups
    heads = "".join(_number_head(column.heading, column.measure.unit) for column in COLUMNS)
    what = "Scenario" if results.labels == [results.scenario.name] else "Controller"
    colours = _colours(results)
    rows = []
    for group in groups:
        cells = "".join(f"<td>{_cell(group, column)}</td>" for column in COLUMNS)
        mark = ' <abbr class="untrustworthy" title="{}">untrustworthy</abbr>'
        doubt = mark.format(_text("; ".join(group.untrustworthy))) if group.untrustworthy else ""
        mixed = len({flow["controller"] for flow in group.runs[0].summary["flows"]}) > 1
        dot = "" if mixed else f'<i style="{_DOT}background:{_variable(colours[group.label])}"></i>'
        rows.append(
            f'<tr><th scope="row">{dot}{_text(group.label)}</th>'
            f"<td class=world>{_text(theme.world_title(group.world))}{doubt}</td>"
            f"<td>{len(group.runs)}</td>{cells}</tr>"
        )
    return (
        '<div class="wide"><table class="summary"><thead><tr>'
        f"<th>{what}</th><th class=world>World</th>"
        f"<th>Runs</th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _flows(results: Results) -> list[str]:
    """Flow by flow, where several share the path."""
    rows = [
        _flow_row(results, group, number)
        for group in results.groups
        if len(group.runs[0].summary["flows"]) > 1
        for number in range(len(group.runs[0].summary["flows"]))
    ]
    if not rows:
        return []
    heads = "<th>Flow</th><th class=world>Controller</th><th class=world>World</th>"
    heads += _number_head(SHARE.title, SHARE.unit)
    heads += "".join(_number_head(column.heading, column.measure.unit) for column in FLOW_COLUMNS)
    table = f'<table class="summary"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return ["<h2>Flows</h2>", f'<div class="wide">{table}</div>', '<p class="quiet">Means over runs.</p>']


def _flow_row(results: Results, group: Group, number: int) -> str:
    flow = group.runs[0].summary["flows"][number]
    label = flow["label"]
    share = known([shares(run.summary)[label] for run in group.runs])
    cells = [SHARE.show(share.mean if share else None)]
    for column in FLOW_COLUMNS:
        value = known([column.measure.take(flow_alone(run.summary, label)) for run in group.runs])
        cells.append(column.measure.show(value.mean if value else None))
    return (
        f'<tr><th scope="row">{_text(results.name_of(group.label, label))}</th>'
        f"<td class=world>{_text(flow['controller'])}</td>"
        f"<td class=world>{_text(theme.world_title(group.world))}</td>"
        f"{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    )


def _number_head(heading: str, unit: str) -> str:
    return f"<th>{_text(heading)}<small>{_text(unit)}</small></th>"


def _cell(group: Group, column: Column) -> str:
    value = group.measures[column.measure.name]
    half_width = column.half_width(value)
    shown = column.measure.show(value.mean if value else None)
    return f"{shown} <small>± {half_width}</small>" if half_width else shown


def _colours(results: Results) -> dict[str, str]:
    from fullpipe.figures.prepare import rows

    return {row.label: row.colour for row in reversed(rows(results))}


def _title(results: Results) -> str:
    labels = results.labels
    who = " against ".join(labels) if len(labels) == 2 else together(labels)
    path = _path(results.scenario.document.get("path", {}))
    return f"{who} on {path}" if path else who


def _path(path: dict[str, Any]) -> str:
    """The path in the user's own words."""
    words = {"rate": "{}", "trace": "the trace {}", "rtt": "RTT {}", "buffer": "buffer {}", "loss": "loss {}"}
    plain = {key: value for key, value in path.items() if not isinstance(value, (dict, list))}
    if "trace" in plain:
        plain["trace"] = Path(str(plain["trace"])).name
    said = [word.format(_plain(plain.pop(key))) for key, word in words.items() if key in plain]
    said += [f"{key.replace('_', ' ')} {_plain(value)}" for key, value in plain.items()]
    return ", ".join(said + (["with changes on the way"] if path.get("changes") else []))


def _header(results: Results) -> str:
    times = {group.world: group.times for group in results.groups}
    said = [f"{results.scenario.alternatives[0].duration_s:g} s a run"]
    said += [f"{theme.world_title(world)}: {often}" for world, often in times.items()]
    answered = "".join(
        f'<p class="answer"><b>{_text(theme.world_title(world).capitalize())}</b> {_text(answer)}</p>'
        for world, answer in answers(results).items()
    )
    quiet = f'<p class="quiet">{_text(" · ".join(said))}</p>'
    return f"<header><h1>{_text(_title(results))}</h1>{answered}{quiet}</header>"


def _interval_note(results: Results) -> str:
    single = sorted({theme.world_title(group.world) for group in results.groups if len(group.runs) == 1})
    note = "± is a 95 % confidence interval of the mean over seeds or repetitions (Student’s t)."
    if len(single) == len(results.worlds):
        note = "Means of one run have no confidence interval."
    elif single:
        note += f" One run gives no interval ({', '.join(single)})."
    return f'<p class="quiet">{_text(note)}</p>'


def _untrustworthy(results: Results) -> list[str]:
    said = []
    for group in results.groups:
        for run in group.runs:
            for reason in run.untrustworthy:
                which = f"{group.label}, {theme.world_title(group.world)}, seed {run.seed}"
                said.append(f"<li>{_text(which)}: {_text(reason)}</li>")
    if not said:
        return []
    return [f'<div class="note"><p>Not to be trusted:</p><ul>{"".join(said)}</ul></div>']


_FIGURES_HEAD = (
    '<h2>Figures</h2><p class="quiet live">Drag a figure over time to move, shift and wheel to zoom, '
    "double-click to go back.</p>"
)


def _provenance(results: Results) -> str:
    document = json.dumps(results.scenario.document, indent=2, ensure_ascii=False)
    entries = [("Scenario", f"<pre>{_text(document)}</pre>")]
    for world in results.worlds:
        runs = [run for run in results.runs if run.world == world]
        entries.append((theme.world_title(world).capitalize(), _world_provenance(runs)))
    listed = "".join(f"<dt>{_text(name)}</dt><dd>{value}</dd>" for name, value in entries)
    return f'<h2>Where this comes from</h2><dl class="provenance">{listed}</dl>'


def _world_provenance(runs: list[Run]) -> str:
    first = runs[0].summary["provenance"]
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(run.seed for run in runs))
    facts = [f"Fullpipe {first['version']}", f"seeds {seeds}"]
    facts += [f"Linux {first['kernel']}"] if first.get("kernel") else []
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
        times = "".join(
            f"<td>{late[key] / 1e3:,.0f}</td>" for key in ("p50_ns", "p99_ns", "p999_ns", "max_ns")
        )
        rows.append(
            f"<tr><td>{_text(run.label)}</td><td>{run.seed}</td><td>{late['packets']:,}</td>{times}</tr>"
        )
    heads = "".join(f"<th>{head}</th>" for head in ("Run", "Seed", "Packets", "p50", "p99", "p99.9", "max"))
    return (
        "<p>How late the emulator released packets, µs:</p>"
        f"<div class=wide><table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
