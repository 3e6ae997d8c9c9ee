"""A grid's tables for the terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from fullpipe.grid.compare import Compared, Difference
from fullpipe.grid.document import Grid
from fullpipe.grid.summary import Target
from fullpipe.sweeps.watched import minutes
from fullpipe.tables import plain_table

STYLE = {"agrees": "green", "close": "", "differs": "bold red"}
_TARGETS = {"met": "green", "missed": "bold red", "no cell": "yellow"}
HEADINGS = {
    "goodput_bps": "Goodput",
    "rtt_mean_ms": "RTT mean",
    "rtt_p95_ms": "RTT p95",
    "retransmits": "Retransmits",
    "share": "Share",
}
# The measures of which both values are shown; of the others the difference says enough.
_SHOWN = ("goodput_bps", "rtt_mean_ms", "retransmits")


def cells(found: Sequence[Compared]) -> Table:
    """One row a cell."""
    table = plain_table()
    table.add_column("Cell", no_wrap=True)
    for name in _SHOWN:
        unit = {"goodput_bps": "Mbit/s", "rtt_mean_ms": "ms", "retransmits": "segments"}[name]
        for heading in (f"{HEADINGS[name]}\nsim, {unit}", "kernel\n(range)", "\n"):
            # A cut number would be another number.
            table.add_column(heading, justify="right", overflow="fold")
    table.add_column("p95\n", justify="right")
    table.add_column("Share\npoints", justify="right")
    table.add_column("\n")
    for one in found:
        row: list[str | Text] = [Text(one.cell.name, style="bold")]
        for name in _SHOWN:
            row += _both(one.differences.get(name))
        row += [_apart(one.differences.get(name)) for name in ("rtt_p95_ms", "share")]
        table.add_row(*row, _verdict(one))
    return table


def _both(one: Difference | None) -> list[str | Text]:
    if one is None:
        return ["–", "–", "–"]
    return [simulated(one), measured(one), _apart(one)]


def simulated(one: Difference) -> str:
    """The simulator's mean with half its interval."""
    half = one.sim.half_width
    return one.quantity.show(one.sim.mean) + (f" ± {one.quantity.show(half)}" if half is not None else "")


def measured(one: Difference) -> str:
    """The kernel's mean with its range."""
    mean, least, most = map(one.quantity.show, (one.kernel.mean, one.kernel.least, one.kernel.most))
    return f"{mean} ({least}..{most})"


def _apart(one: Difference | None) -> Text:
    if one is None:
        return Text("–", style="dim")
    said = one.said.removesuffix(" points")
    return Text(said, style="red" if not one.tolerable else "" if one.apart is not None else "dim")


def _verdict(one: Compared) -> Text:
    return Text(one.verdict, style=STYLE.get(one.verdict, "yellow"))


def targets(found: Sequence[Target]) -> Table:
    """One row a target."""
    table = plain_table("Target")
    for heading in ("Cells", "Limit", "Measured"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for one in found:
        word = one.word.upper() if one.word == "missed" else one.word
        table.add_row(
            one.title, str(one.cells), one.said, one.measured_said, Text(word, style=_TARGETS[one.word])
        )
    return table


def listing(grid: Grid) -> Table:
    """What a grid has: one row a cell."""
    table = plain_table("Cell")
    table.add_column("Length", justify="right")
    table.add_column("Flows", justify="right")
    table.add_column("TCP memory")
    for cell in grid.cells:
        spec = cell.alternative.spec
        memory = cell.document.get("hosts", {}).get("tcp_memory", "max")
        length = minutes(cell.alternative.duration_s)
        table.add_row(Text(cell.name, style="bold"), length, str(len(spec["flows"])), str(memory))
    return table
