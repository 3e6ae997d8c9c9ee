"""How a controller fares in the cases, as a table, in a notebook, as pages and as logs of packets."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fullpipe.conformance.results import FAIL, NOT_APPLICABLE, NOT_JUDGED, PASS, CaseResults, Result
from fullpipe.runs.worlds.logs import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console, ConsoleOptions, RenderResult

    from fullpipe import evidence
    from fullpipe.conformance.pages import Drawing


@dataclass(frozen=True, repr=False)
class ConformanceReport(CaseResults):
    """How a controller fares in the cases."""

    def write(self, folder: str | Path, drawing: "Drawing | None" = None) -> Path:
        """Writes index.html, a page for each case, and conformance.json into a folder.

        `drawing` has drawn figures while cases were played.

        Raises:
            OutputError: Something cannot be written. What was written stays.
        """
        from fullpipe.conformance.pages import write

        return write(self, Path(folder), drawing)

    def lines(
        self, command: str, scenario: "Callable[[Result], str | None]" = lambda _result: None
    ) -> "list[evidence.Line]":
        """A line of evidence for each case. `scenario` gives the file with that of a failure."""
        from fullpipe import evidence
        from fullpipe.runs.worlds import registry

        world = registry.named(self.world)
        versions = world.versions()
        made = evidence.made(command, {world.name: world.build()}, versions.split(", ") if versions else [])
        return [
            {
                "key": {"case": result.case.name, "subject": self.controller, "world": self.world},
                "made": made,
                "outcome": result.verdict if result.verdict in (NOT_APPLICABLE, NOT_JUDGED) else "judged",
                "reason": result.reason,
                "criteria": [
                    {name: getattr(check.criterion, name) for name in ("key", "says", "unit", "low", "high")}
                    | {"value": _finite(check.value), "seed": check.seed}
                    for check in result.checks
                ],
                "scenario": scenario(result),
            }
            for result in self.results
        ]

    def log(
        self,
        folder: str | Path,
        *,
        log_limit: str | int = LIMIT,
        begin: "Callable[[float], None] | None" = None,
    ) -> tuple[list[Path], list[str]]:
        """Writes a qlog for each stage; returns the files, and the cases without (their buffer changed).

        `begin` is called with the estimated size of all files. More than `log_limit` is a `ScenarioError`.
        """
        from fullpipe.conformance.packet_logs import write

        return write(self, Path(folder), log_limit=log_limit, begin=begin)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """The table in a terminal."""
        from rich.table import Table
        from rich.text import Text

        from fullpipe.report.unsupported import Unsupported

        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("Case", "Verdict", "Measured", "Criterion"):
            table.add_column(heading, overflow="fold", justify="right" if heading == "Measured" else "left")
        styles = {PASS: "green", FAIL: "bold red", NOT_APPLICABLE: "dim", NOT_JUDGED: "yellow"}
        for name, verdict, measured, wanted in self.folded():
            table.add_row(Text(name), Text(verdict, style=styles[verdict]), Text(measured), Text(wanted))
        yield table
        yield Text(self.summary)
        if self.hint:
            yield Text(self.hint)
        if self.unsupported:
            ignored = Unsupported([self.controller], self.world, self.unsupported)
            yield Text(ignored.note("the pages list them"), style="dim")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary}>"

    def _repr_html_(self) -> str:
        from fullpipe.conformance.pages import summary_table

        return summary_table(self)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
