"""What runs gave: a `Run` an alternative, world and seed, and the `Results` that they make together.

Tables are polars data frames. Time series keep the columns that every world writes (see `Run.flow_series`).
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fullpipe.measures import MEASURES, estimates
from fullpipe.scenario import Alternative, Scenario
from fullpipe.stats import Estimate

if TYPE_CHECKING:
    import altair as alt


@dataclass(frozen=True)
class Run:
    """One run: an alternative of a scenario, a world, a seed."""

    alternative: Alternative
    world: str
    seed: int
    summary: dict[str, Any]
    flow_parquet: bytes = field(repr=False)
    link_parquet: bytes = field(repr=False)

    @staticmethod
    def of(
        alternative: Alternative, world: str, seed: int, summary: str, flows: bytes, links: bytes
    ) -> "Run":
        """Takes what the native half returned."""
        return Run(alternative, world, seed, json.loads(summary), flows, links)

    @property
    def label(self) -> str:
        """What the scenario calls this alternative; in a comparison, the controller."""
        return self.alternative.label

    @property
    def untrustworthy(self) -> list[str]:
        """Why this run cannot be trusted; empty when it can."""
        return list(self.summary["provenance"].get("untrustworthy") or [])

    def flow_series(self) -> pl.DataFrame:
        """Samples of every flow, one row a time and flow: cwnd_segments, srtt_ms, phase and more."""
        return pl.read_parquet(io.BytesIO(self.flow_parquet))

    def link_series(self) -> pl.DataFrame:
        """Samples of every queue, one row a time and link: queue_bytes, queue_delay_ms and more."""
        return pl.read_parquet(io.BytesIO(self.link_parquet))

    @property
    def stem(self) -> str:
        """A file name for this run, without a suffix."""
        plain = "".join(letter if letter.isalnum() or letter in "._=-" else "-" for letter in self.label)
        return f"{self.world}-{plain}-seed{self.seed}"

    def write(self, folder: Path) -> None:
        """Writes the summary as JSON and both series as Parquet."""
        (folder / f"{self.stem}.json").write_text(json.dumps(self.summary, indent=1) + "\n", encoding="utf-8")
        (folder / f"{self.stem}.flows.parquet").write_bytes(self.flow_parquet)
        (folder / f"{self.stem}.links.parquet").write_bytes(self.link_parquet)


@dataclass(frozen=True)
class Group:
    """The runs of one alternative in one world, and every measure over their seeds."""

    world: str
    label: str
    runs: list[Run]
    measures: dict[str, Estimate | None]

    @property
    def times(self) -> str:
        """How often it ran, in words."""
        noun = "repetition" if self.world == "kernel" else "seed"
        return f"{len(self.runs)} {noun}{'' if len(self.runs) == 1 else 's'}"

    @property
    def untrustworthy(self) -> list[str]:
        """Each reason once, in the order of the seeds."""
        return list(dict.fromkeys(reason for run in self.runs for reason in run.untrustworthy))


@dataclass(frozen=True)
class Results:
    """Runs of one scenario, its alternatives side by side. `notes` says what could not be run, and why."""

    scenario: Scenario
    runs: list[Run]
    notes: list[str] = field(default_factory=list)

    @property
    def worlds(self) -> list[str]:
        """The worlds that ran, in order."""
        return list(dict.fromkeys(run.world for run in self.runs))

    @property
    def labels(self) -> list[str]:
        """The alternatives that ran, in the scenario's order."""
        return list(dict.fromkeys(run.label for run in self.runs))

    @cached_property
    def groups(self) -> list[Group]:
        """Runs that differ only in their seed, together; an alternative's worlds one after the other."""
        together: dict[tuple[str, str], list[Run]] = {}
        for label in self.labels:
            for run in self.runs:
                if run.label == label:
                    together.setdefault((run.world, label), []).append(run)
        return [
            Group(world, label, runs, estimates([run.summary for run in runs]))
            for (world, label), runs in together.items()
        ]

    def name_of(self, label: str, part: str) -> str:
        """What to call a flow or a queue of an alternative, where several alternatives may have it."""
        return part if part == label or len(self.labels) == 1 else f"{label}: {part}"

    @property
    def summary(self) -> pl.DataFrame:
        """One row a world and alternative: mean and 95 % confidence interval of each measure over seeds."""
        return pl.DataFrame(
            [_summary_row(group) for group in self.groups], schema=_SUMMARY_SCHEMA, orient="row"
        )

    @property
    def flows(self) -> pl.DataFrame:
        """One row a run and flow, with the totals of its summary."""
        rows = [
            {"world": run.world, "alternative": run.label, "seed": run.seed, **_flat(flow)}
            for run in self.runs
            for flow in run.summary["flows"]
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def links(self) -> pl.DataFrame:
        """One row a run and queue, with the totals of its summary."""
        rows = [
            {"world": run.world, "alternative": run.label, "seed": run.seed, **_flat(link)}
            for run in self.runs
            for link in run.summary["links"]
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def series(self) -> pl.DataFrame:
        """The flow series of every run, with columns world, alternative and seed in front."""
        return self._stacked([run.flow_series() for run in self.runs])

    def link_series(self) -> pl.DataFrame:
        """The link series of every run, with columns world, alternative and seed in front."""
        return self._stacked([run.link_series() for run in self.runs])

    def _stacked(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        named = [
            frame.select(
                pl.lit(run.world).alias("world"),
                pl.lit(run.label).alias("alternative"),
                pl.lit(run.seed, dtype=pl.UInt64).alias("seed"),
                pl.all(),
            )
            for run, frame in zip(self.runs, frames, strict=True)
        ]
        return pl.concat(named, how="vertical_relaxed")

    def plot(self, what: str = "throughput") -> "alt.TopLevelMixin":
        """A figure: throughput, rtt, inflight, startup or summary."""
        from fullpipe.figures import draw

        return draw(self, what)

    def report(self, path: str | Path) -> Path:
        """Writes one HTML file that needs no network, and returns its path."""
        from fullpipe.report import html

        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html(self), encoding="utf-8")
        return path

    def write(self, folder: str | Path) -> Path:
        """Writes report.html, figures/ (SVG and PNG) and runs/ (summary JSON and Parquet) into a folder."""
        from fullpipe.figures import drawings, save
        from fullpipe.report import html

        folder = Path(folder)
        for part in ("figures", "runs"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for run in self.runs:
            run.write(folder / "runs")
        drawn = drawings(self)
        save(drawn, folder / "figures")
        (folder / "report.html").write_text(html(self, drawn), encoding="utf-8")
        return folder

    def to_dict(self) -> dict[str, Any]:
        """The scenario and one result a world and alternative, in plain values."""
        return {
            "scenario": {**self.scenario.document, "name": self.scenario.name},
            "results": [_result(group) for group in self.groups],
        }

    def to_json(self) -> str:
        """`to_dict` as text: what `fullpipe compare --json` prints."""
        return json.dumps(self.to_dict(), indent=2)

    def _repr_html_(self) -> str:
        from fullpipe.report import summary_table

        return summary_table(self)


# Measures in which to look for an interval, under the names that `fullpipe compare --json` prints.
_NESTED = {
    "rtt_ms": {"mean": "rtt_mean_ms", "p50": "rtt_p50_ms", "p95": "rtt_p95_ms"},
    "queue_delay_ms": {
        "mean": "queue_delay_mean_ms",
        "p50": "queue_delay_p50_ms",
        "p95": "queue_delay_p95_ms",
    },
}

_SUMMARY_SCHEMA: dict[str, Any] = {
    "world": pl.String,
    "controller": pl.String,
    "seeds": pl.Int64,
    **{
        name: pl.Float64
        for measure in MEASURES
        for name in (measure.name, f"{measure.name}_ci95_low", f"{measure.name}_ci95_high")
    },
    "untrustworthy": pl.List(pl.String),
}


def _summary_row(group: Group) -> dict[str, Any]:
    row: dict[str, Any] = {"world": group.world, "controller": group.label, "seeds": len(group.runs)}
    for name, value in group.measures.items():
        row[name] = value.mean if value else None
        row[f"{name}_ci95_low"] = value.low if value else None
        row[f"{name}_ci95_high"] = value.high if value else None
    return {**row, "untrustworthy": group.untrustworthy}


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
        "goodput_bps": {"mean": mean("goodput_bps"), "ci95": interval("goodput_bps")},
    }
    for name, parts in _NESTED.items():
        result[name] = {key: mean(measure) for key, measure in parts.items()}
        result[name]["ci95"] = interval(parts["mean"])
    for name in ("retransmits", "loss_ratio"):
        result[name] = {"mean": mean(name), "ci95": interval(name)}
    return {**result, "untrustworthy": group.untrustworthy}


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """One level of names: {"rtt_ms": {"mean": 1}} becomes {"rtt_mean_ms": 1}."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            stem, _, unit = key.rpartition("_")
            flat.update({f"{stem}_{part}_{unit}": inner for part, inner in value.items()})
        else:
            flat[key] = value
    return flat
