"""A grid as one HTML page: targets, heat map, and for each cell both worlds' time series."""

import re
from collections.abc import Sequence
from typing import Any

import fullpipe._native as _native
from fullpipe.agreement.grid.compare import NAMES, Compared, kernels
from fullpipe.agreement.grid.rules import TOLERANCES, VERDICTS
from fullpipe.agreement.grid.run import Found
from fullpipe.agreement.grid.summary import Target
from fullpipe.report.figures import theme
from fullpipe.report.figures.grid import Tile, heat_map, over_time
from fullpipe.report.figures.prepare import representative
from fullpipe.report.figures.svg import picture
from fullpipe.report.grid.tables import HEADINGS, mean, ranged
from fullpipe.report.page import Heading, figure, page, provenance, table, text
from fullpipe.report.provenance import now
from fullpipe.runs.store import Stored
from fullpipe.runs.worlds import registry
from fullpipe.text import capitalised, counted, ran_by

_LOOK_AT = (
    f"Look for strong colours: beyond one tolerance the difference is not tolerable ({TOLERANCES}). "
    "Purple: less in the {place}; green: more."
)


def html(found: Found) -> str:
    """The whole page."""
    drawn: list[tuple[str, dict[str, Any], str]] = []
    if tiles := _tiles(found.cells):
        look_at = _LOOK_AT.format(place=found.plan.pair[0].place)
        drawn.append(("map", heat_map(tiles, list(HEADINGS.values()), found.plan.worlds), look_at))
    sections = []
    for cell in found.cells:
        number = len(drawn)
        if (series := _series(cell)) is not None:
            drawn.append((cell.cell.slug, *series))
        sections.append((cell, number if series is not None else None))
    pictures = [
        figure(number, name, _linked(picture(spec, None if name == "map" else _label(name, found))), caption)
        for number, (name, spec, caption) in enumerate(drawn)
    ]
    body = [
        _header(found),
        _notes(found),
        _targets(found.targets),
        "<h2>Cells</h2>",
        f'<p class="quiet">{text(VERDICTS)}</p>',
        pictures[0] if tiles else "",
        *(_section(cell, found, None if number is None else pictures[number]) for cell, number in sections),
        _provenance(found),
    ]
    return page(f"Fullpipe: the grid {found.plan.grid.name}", body, [spec for _, spec, _ in drawn])


def _label(slug: str, found: Found) -> str:
    """What the figure of a cell shows."""
    name = next(cell.cell.name for cell in found.cells if cell.cell.slug == slug)
    worlds = " and ".join(map(theme.world_title, found.plan.worlds))
    return f"Goodput and smoothed RTT over time, {worlds}: {name}"


def _linked(svg: str) -> str:
    """Restores links within the page, to which the conversion adds an address."""
    return re.sub(r'href="https?://[^"#]*#', 'href="#', svg)


def _tiles(cells: Sequence[Compared]) -> list[Tile]:
    return [
        Tile(
            cell.cell.name,
            cell.cell.slug,
            HEADINGS[name],
            one.of_tolerance,
            one.message if one.apart is not None else f"{one.ours.mean:.0f} / {one.theirs.mean:.0f}",
            f"{mean(one)}, {ranged(one)} {one.quantity.unit}",
        )
        for cell in cells
        for name in NAMES
        if (one := cell.measured.get(name)) is not None
    ]


def _series(cell: Compared) -> tuple[dict[str, Any], str] | None:
    """Both worlds' time series, and the runs that they are from; None if a world has none."""
    if not cell.judged:
        return None
    runs = [_middle(kept).run() for kept in (cell.ours, cell.theirs)]
    if not all(run.flow_series().height for run in runs):
        return None
    shown = ", ".join(f"seed {run.seed} in the {registry.named(run.world).place}" for run in runs)
    return over_time(runs), f"The runs of median goodput: {shown}."


def _middle(runs: Sequence[Stored]) -> Stored:
    chosen = representative([run.light() for run in runs])
    return next(run for run in runs if run.task.job.seed == chosen.seed)


def _header(found: Found) -> str:
    grid = found.plan.grid
    name = f"{text(grid.name)}{', quick' if grid.quick else ''}"
    first, second = found.plan.pair
    worlds = capitalised(f"{first.short} and {second.short}")
    cells, times = counted(len(found.cells), "cell"), f"{_runs(found)} each"
    return (
        f"<header><h1>{text(worlds)} on the grid {name}</h1>"
        f'<p class="answer"><b>Verdict</b> {text(found.verdict)}</p>'
        f'<p class="quiet">{cells}, {times}</p></header>'
    )


def _runs(found: Found) -> str:
    plan = found.plan
    return " and ".join(
        f"{counted(plan.count(world), world.noun)} in the {world.place}" for world in plan.pair
    )


def _notes(found: Found) -> str:
    if not found.notes:
        return ""
    listed = "".join(f"<li>{text(note)}</li>" for note in found.notes)
    return f'<div class="note"><ul>{listed}</ul></div>'


def _targets(targets: Sequence[Target]) -> str:
    rows = [
        [
            text(one.title),
            str(one.cells),
            text(one.message),
            text(one.measured_text),
            "<b>missed</b>" if one.word == "missed" else one.word,
        ]
        for one in targets
    ]
    numbers = (Heading(name, number=True) for name in ("Cells", "Limit", "Measured"))
    return table([Heading("Target"), *numbers, Heading("Verdict")], rows)


def _section(cell: Compared, found: Found, picture: str | None) -> str:
    rows = [
        [
            f"{text(HEADINGS[name])}<small> {text(one.quantity.unit)}</small>",
            text(mean(one)),
            text(ranged(one)),
            text(one.message),
            "overlap" if one.overlaps else "apart",
        ]
        for name, one in cell.measured.items()
    ]
    ours, theirs = map(theme.world_heading, found.plan.worlds)
    numbers = (Heading(name, number=True) for name in (ours, f"{theirs} (range)", "Difference"))
    listed = table([Heading("Measure"), *numbers, Heading("Intervals")], rows) if rows else ""
    return (
        f'<section id="cell-{cell.cell.slug}"><h2>{text(cell.cell.name)} '
        f"<small>{text(cell.verdict)}</small></h2>{listed}{picture or ''}</section>"
    )


def _provenance(found: Found) -> str:
    plan = found.plan
    reported = ", ".join(map(ran_by, kernels(found.cells)))
    return provenance(
        [
            ("Command", f"<code>{text(plan.command)}</code>"),
            ("Written", f"{now()}, by Fullpipe {text(_native.version())}"),
            ("Runs", f"{_runs(found)} a cell"),
            *([("Ran by", text(reported))] if reported else []),
        ]
    )
