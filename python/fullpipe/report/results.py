"""Results as people use them: the runs of a scenario that can be printed, drawn, judged and written."""

import json
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fullpipe import files
from fullpipe.agreement.agreement import Agreement
from fullpipe.measures.measures import MEASURES, MEDIA, SEEN, SIGNALS
from fullpipe.measures.run import Group, Run, Runs

if TYPE_CHECKING:
    import altair as alt


class Results(Runs):
    """Runs of one scenario, with its alternatives side by side.

    `notes` lists what the scenario means where its words hide it, and what could not run, and why.
    """

    @cached_property
    def agreement(self) -> "Agreement[Results] | None":
        """How far the first two worlds that ran are apart; None unless two did."""
        return Agreement.between(self)

    def plot(self, what: str = "throughput") -> "alt.TopLevelMixin":
        """A figure: throughput, rtt, inflight, startup or summary."""
        from fullpipe.report.figures import draw

        return draw(self, what)

    def report(self, path: str | Path) -> Path:
        """Writes one HTML file that needs no network, and returns its path."""
        from fullpipe.report.report import html

        path = Path(path)
        files.make_folder(path.parent)
        files.write_named(path, html(self).encode(errors="replace"))
        return path

    def write(self, folder: str | Path, *, png: bool = False) -> Path:
        """Writes scenario.json, report.html, figures/ and runs/ (summary JSON and Parquet) into a folder.

        Figures are SVG, and with `png` also PNG.

        Raises:
            OutputError: Something cannot be written, e.g. because the disk is full. What was written stays.
        """
        from fullpipe.report.figures import drawings, figure_file, save
        from fullpipe.report.report import html

        folder = Path(folder)
        files.make_folder(folder)
        self._write_runs(folder)
        with files.adding(self._kept(len(self.runs), folder)):
            drawn = drawings(self)
            figures = save(drawn, folder, "figures", png=png)
            files.write(folder, "report.html", html(self, drawn).encode(errors="replace"))
        files.remove_others(folder / "figures", [one.name for one in figures], figure_file())
        return folder

    def _write_runs(self, folder: Path) -> None:
        names = files.file_names(self.labels)
        needed = sum(run.size for run in self.runs)
        with files.adding(self._kept(0, folder)):
            message = json.dumps(self.scenario.named, indent=1, ensure_ascii=False) + "\n"
            files.write(folder, "scenario.json", message.encode(errors="replace"), needed=needed)
        written: list[str] = []
        for number, run in enumerate(self.runs):
            with files.adding(self._kept(number, folder)):
                for name, data in _files_of(run, names[run.label]).items():
                    files.write(folder, f"runs/{name}", data, needed=needed)
                    written.append(name)
            needed -= run.size
        # Runs of earlier results in this folder would be mistaken for some of these.
        files.remove_others(folder / "runs", written, _RUN_FILE)

    def _kept(self, number: int, folder: Path) -> str:
        return f"{number} of {len(self.runs)} runs are in {folder / 'runs'}; report.html is not written"

    def to_dict(self) -> dict[str, Any]:
        """The scenario, and one result for each world and alternative, in plain values.

        An alternative without a trusted run has `untrusted`: each measure's values, run by run. With
        `agreement` if two worlds ran, `logs` if packets were logged, and `notes` if something did not run.
        """
        reported: dict[str, Any] = {
            "scenario": self.scenario.named,
            "results": [_result(group) for group in self.groups],
        }
        if self.agreement is not None:
            reported["agreement"] = self.agreement.to_dict()
        if logs := [str(one) for run in self.runs for one in run.logs]:
            reported["logs"] = logs
        if self.notes:
            reported["notes"] = self.notes
        return reported

    def to_json(self) -> str:
        """`to_dict` as text: what compare, run and agree print with `--json`."""
        return json.dumps(self.to_dict(), indent=2)

    def _repr_html_(self) -> str:
        from fullpipe.report.report import summary_table

        return _NOTEBOOK_STYLE + summary_table(self)


# A notebook has no style sheet of ours, and aligns numbers with the text.
_NOTEBOOK_STYLE = (
    "<style>table.summary .number { text-align: right } "
    "table.summary th, table.summary td { padding: 0.2em 0.6em }</style>"
)


# The name of any file of `_files_of`.
_RUN_FILE = re.compile(r".+-seed\d+\.(flows\.parquet|links\.parquet|json)")


def _files_of(run: Run, name: str) -> dict[str, bytes]:
    """Both series as Parquet and the summary as JSON, by file name. `name` stands for the alternative."""
    stem = f"{run.world}-{name}-seed{run.seed}"
    return {
        f"{stem}.flows.parquet": run.flow_parquet,
        f"{stem}.links.parquet": run.link_parquet,
        f"{stem}.json": (json.dumps(run.summary, indent=1) + "\n").encode(),
    }


# Measures that have an interval, by their names in `fullpipe compare --json`.
_NESTED = {
    "rtt_ms": {"mean": "rtt_mean_ms", "p50": "rtt_p50_ms", "p95": "rtt_p95_ms"},
    "queue_delay_ms": {
        "mean": "queue_delay_mean_ms",
        "p50": "queue_delay_p50_ms",
        "p95": "queue_delay_p95_ms",
    },
    "fct_ms": {"mean": "fct_mean_ms", "p50": "fct_p50_ms", "p95": "fct_p95_ms"},
}


def _result(group: Group) -> dict[str, Any]:
    def mean(name: str) -> float | None:
        value = group.measures[name]
        return value.mean if value else None

    def interval(name: str) -> list[float | None]:
        value = group.measures[name]
        return [value.low, value.high] if value else [None, None]

    result: dict[str, Any] = {
        "world": group.world,
        "controller": group.label,
        "seeds": len(group.runs),
        "trusted": len(group.trusted),
        "goodput_bps": {"mean": mean("goodput_bps"), "ci95": interval("goodput_bps")},
    }
    for name, parts in _NESTED.items():
        result[name] = {key: mean(measure) for key, measure in parts.items()}
        result[name]["ci95"] = interval(parts["mean"])
    for name in ("retransmits", "loss_ratio", "rebuffer_ms"):
        result[name] = {"mean": mean(name), "ci95": interval(name)}
    for signal in (*SIGNALS, *SEEN, *MEDIA):
        if group.measures[signal.name] is not None:
            result[signal.name] = {"mean": mean(signal.name), "ci95": interval(signal.name)}
    if group.doubted:
        result["untrusted"] = {
            measure.name: [measure.take(run.summary) for run in group.runs] for measure in MEASURES
        }
    return {**result, "untrustworthy": group.untrustworthy, "unsupported": group.unsupported}
