"""A grid's tables for the terminal."""

from collections.abc import Sequence

from rich.text import Text

from fullpipe.agreement.grid.compare import Compared, Measured
from fullpipe.agreement.grid.document import Grid
from fullpipe.agreement.grid.lines import Value
from fullpipe.agreement.grid.summary import Target
from fullpipe.report.figures import theme
from fullpipe.report.fitting import Either, Fitting
from fullpipe.text import minutes

STYLE = {"agrees": "green", "close": "", "differs": "bold red"}
_TARGETS = {"met": "green", "missed": "bold red", "no cell": "yellow"}
HEADINGS = {
    "goodput_bps": "Goodput",
    "rtt_mean_ms": "RTT mean",
    "rtt_p95_ms": "RTT p95",
    "retransmits": "Retransmits",
    "share": "Share",
}
# The measures whose two values are shown; for the others the difference is enough.
_SHOWN = ("goodput_bps", "rtt_mean_ms", "retransmits")
_UNITS = {"goodput_bps": "Mbit/s", "rtt_mean_ms": "ms", "retransmits": "segments"}


def cells(found: Sequence[Compared], worlds: Sequence[str]) -> Either:
    """One row for each cell; in a narrow terminal, one for each cell and measure."""
    return Either(_a_row_a_cell(found, worlds), _a_row_a_measure(found, worlds))


def _a_row_a_cell(found: Sequence[Compared], worlds: Sequence[str]) -> Fitting:
    table = Fitting("Cell")
    for name in _SHOWN:
        table.add_numbers(HEADINGS[name], f"{worlds[0]}, {_UNITS[name]}")
        table.add_numbers(worlds[1], "(range)")
        table.add_numbers("", "apart")
    table.add_numbers("RTT p95", "apart")
    table.add_numbers("Share", "points apart")
    table.add_text("\n")
    for one in found:
        row: list[str | Text] = [Text(one.cell.name, style="bold")]
        for name in _SHOWN:
            row += _both(one.measured.get(name))
        row += [_apart(one.measured.get(name)) for name in ("rtt_p95_ms", "share")]
        table.add_row(*row, _verdict(one))
    return table


def _a_row_a_measure(found: Sequence[Compared], worlds: Sequence[str]) -> Fitting:
    """The narrow table: the name of a cell and its verdict are above its measures."""
    table = Fitting("Cell")
    ours, theirs = map(theme.world_short, worlds)
    for heading in (ours, f"{theirs} (range)", "Difference"):
        table.add_numbers(heading)
    for one in found:
        table.add_heading(Text(one.cell.name, style="bold"), Text(": "), _verdict(one))
        for name, each in one.measured.items():
            measure = f"  {HEADINGS[name]}, {each.quantity.unit}"
            table.add_row(measure, mean(each), ranged(each), _apart(each))
    return table


def _both(one: Measured | None) -> list[str | Text]:
    if one is None:
        return ["–", "–", "–"]
    return [mean(one), ranged(one), _apart(one)]


def mean(one: Measured | Value) -> str:
    """The first world's mean with half its interval."""
    if one.ours is None:
        return "–"
    half = one.ours.half_width
    return one.quantity.show(one.ours.mean) + (f" ± {one.quantity.show(half)}" if half is not None else "")


def ranged(one: Measured | Value) -> str:
    """The reference's mean with its range."""
    if one.theirs is None:
        return "–"
    middle, least, most = map(one.quantity.show, (one.theirs.mean, one.theirs.least, one.theirs.most))
    return f"{middle} ({least}..{most})"


def _apart(one: Measured | None) -> Text:
    if one is None:
        return Text("–", style="dim")
    message = one.message.removesuffix(" points")
    return Text(message, style="red" if not one.tolerable else "" if one.apart is not None else "dim")


def _verdict(one: Compared) -> Text:
    return Text(one.verdict, style=STYLE.get(one.verdict, "yellow"))


def targets(found: Sequence[Target]) -> Fitting:
    """One row for each target."""
    table = Fitting("Target")
    for heading in ("Cells", "Limit", "Measured"):
        table.add_numbers(heading)
    table.add_text("", alone="Verdict")
    for one in found:
        word = one.word.upper() if one.word == "missed" else one.word
        table.add_row(
            one.title, str(one.cells), one.message, one.measured_text, Text(word, style=_TARGETS[one.word])
        )
    return table


def listing(grid: Grid) -> Fitting:
    """The contents of a grid: one row for each cell."""
    table = Fitting("Cell")
    table.add_numbers("Length")
    table.add_numbers("Flows")
    table.add_text("TCP memory")
    for cell in grid.cells:
        spec = cell.alternative.spec
        memory = cell.document.get("hosts", {}).get("tcp_memory", "max")
        length = minutes(cell.alternative.duration_s)
        table.add_row(Text(cell.name, style="bold"), length, str(len(spec["flows"])), str(memory))
    return table
