"""A grid as one HTML page: targets, heat map, and for each cell both worlds' time series."""

import re
from collections.abc import Sequence
from typing import Any

from fullpipe.figures.grid import Tile, heat_map, over_time
from fullpipe.figures.prepare import representative
from fullpipe.grid.compare import NAMES, Compared
from fullpipe.grid.run import Found
from fullpipe.grid.summary import Target
from fullpipe.grid.tables import HEADINGS, measured, simulated
from fullpipe.page import figure, page, text
from fullpipe.sweeps.store import Stored

_LOOK_AT = (
    "Look for strong colours: beyond one tolerance the difference is not tolerable (goodput 8 %, RTT 10 %, "
    "retransmissions a factor of 1.5, shares 5 percentage points). Blue: less in the simulator, orange: more."
)


def html(found: Found) -> str:
    """The whole page."""
    import vl_convert

    drawn: list[tuple[str, dict[str, Any], str]] = []
    if tiles := _tiles(found.cells):
        drawn.append(("map", heat_map(tiles, list(HEADINGS.values())), _LOOK_AT))
    sections = []
    for cell in found.cells:
        number = len(drawn)
        if (series := _series(cell)) is not None:
            drawn.append((cell.cell.slug, *series))
        sections.append((cell, number if series is not None else None))
    pictures = [
        figure(number, name, _linked(vl_convert.vegalite_to_svg(spec)), caption)
        for number, (name, spec, caption) in enumerate(drawn)
    ]
    body = [
        _header(found),
        _notes(found),
        _targets(found.targets),
        "<h2>Cells</h2>",
        pictures[0] if tiles else "",
        *(_section(cell, None if number is None else pictures[number]) for cell, number in sections),
    ]
    return page(f"Fullpipe: the grid {found.plan.grid.name}", body, [spec for _, spec, _ in drawn])


def _linked(svg: str) -> str:
    """Links within the page, which the conversion completes with an address of its own."""
    return re.sub(r'href="https?://[^"#]*#', 'href="#', svg)


def _tiles(cells: Sequence[Compared]) -> list[Tile]:
    return [
        Tile(
            cell.cell.name,
            cell.cell.slug,
            HEADINGS[name],
            one.of_tolerance,
            one.said if one.apart is not None else f"{one.sim.mean:.0f} / {one.kernel.mean:.0f}",
            f"{simulated(one)}, {measured(one)} {one.quantity.unit}",
        )
        for cell in cells
        for name in NAMES
        if (one := cell.differences.get(name)) is not None
    ]


def _series(cell: Compared) -> tuple[dict[str, Any], str] | None:
    """Both worlds' time series and what they are of; None where a world has none."""
    if not cell.judged:
        return None
    sim, kernel = (_middle(runs) for runs in (cell.sim, cell.kernel))
    runs = sim.run(), kernel.run()
    if not all(run.flow_series().height for run in runs):
        return None
    caption = (
        f"The runs of median goodput: seed {sim.task.job.seed} simulated, seed {kernel.task.job.seed} "
        "over the kernel."
    )
    return over_time(*runs), caption


def _middle(runs: Sequence[Stored]) -> Stored:
    chosen = representative([run.light() for run in runs])
    return next(run for run in runs if run.task.job.seed == chosen.seed)


def _header(found: Found) -> str:
    grid = found.plan.grid
    name = f"{text(grid.name)}{', quick' if grid.quick else ''}"
    times = f"{found.plan.seeds} seeds and {found.plan.repetitions} kernel repetitions each"
    return (
        f"<header><h1>Simulator and kernel on the grid {name}</h1>"
        f'<p class="answer"><b>Verdict</b> {text(found.verdict)}</p>'
        f'<p class="quiet">{len(found.cells)} cells, {times}</p></header>'
    )


def _notes(found: Found) -> str:
    if not found.notes:
        return ""
    listed = "".join(f"<li>{text(note)}</li>" for note in found.notes)
    return f'<div class="note"><ul>{listed}</ul></div>'


def _targets(targets: Sequence[Target]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{text(one.title)}</th><td>{one.cells}</td><td>{text(one.said)}</td>'
        f"<td>{text(one.measured_said)}</td>"
        f"<td>{'<b>missed</b>' if one.word == 'missed' else one.word}</td></tr>"
        for one in targets
    )
    heads = "".join(f"<th>{head}</th>" for head in ("Target", "Cells", "Limit", "Measured", ""))
    return _table(heads, rows)


def _section(cell: Compared, picture: str | None) -> str:
    rows = "".join(
        f'<tr><th scope="row">{text(HEADINGS[name])}<small> {text(one.quantity.unit)}</small></th>'
        f"<td>{text(simulated(one))}</td><td>{text(measured(one))}</td><td>{text(one.said)}</td>"
        f"<td>{'overlap' if one.overlaps else 'apart'}</td></tr>"
        for name, one in cell.differences.items()
    )
    heads = "".join(
        f"<th>{head}</th>" for head in ("", "Simulation", "Kernel (range)", "Difference", "Intervals")
    )
    return (
        f'<section id="cell-{cell.cell.slug}"><h2>{text(cell.cell.name)} '
        f"<small>{text(cell.verdict)}</small></h2>"
        f"{_table(heads, rows) if rows else ''}{picture or ''}</section>"
    )


def _table(heads: str, rows: str) -> str:
    return (
        f'<div class="wide"><table class="summary"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )
