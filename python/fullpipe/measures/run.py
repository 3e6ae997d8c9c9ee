"""A `Run` for each alternative, world and seed, and the `Runs` of a scenario side by side.

Tables are polars data frames. Time series keep the columns that every world writes (see `Run.flow_series`).
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from fullpipe import files
from fullpipe.measures.measures import MEASURES, MEDIA, SEEN, SIGNALS, Measure, estimates
from fullpipe.measures.statistics import Estimate
from fullpipe.scenario.scenario import Alternative, Scenario
from fullpipe.text import counted, joined

# The columns of every run's time series. Values that a world does not have are null.
FLOW_COLUMNS: dict[str, Any] = {
    "time_s": pl.Float64,
    "flow": pl.String,
    "controller": pl.String,
    "cwnd_segments": pl.Int64,
    "ssthresh_segments": pl.Int64,
    "pacing_bps": pl.Int64,
    "inflight_segments": pl.Int64,
    "srtt_ms": pl.Float64,
    "min_rtt_ms": pl.Float64,
    "delivery_bps": pl.Int64,
    "bandwidth_bps": pl.Int64,
    "goodput_bps": pl.Float64,
    "delivered_bytes": pl.Int64,
    "retransmits": pl.Int64,
    "phase": pl.String,
    "ca_state": pl.String,
}
LINK_COLUMNS: dict[str, Any] = {
    "time_s": pl.Float64,
    "link": pl.String,
    "queue_bytes": pl.Int64,
    "queue_delay_ms": pl.Float64,
    "dropped_packets": pl.Int64,
}


@dataclass(frozen=True)
class Run:
    """One run: an alternative of a scenario, a world, a seed."""

    alternative: Alternative
    world: str
    seed: int
    summary: dict[str, Any]
    flow_parquet: bytes = field(repr=False)
    link_parquet: bytes = field(repr=False)
    # The files that its packets were logged into, and what their reader must know.
    logs: tuple[Path, ...] = ()
    log_notes: tuple[str, ...] = ()

    @staticmethod
    def of(
        alternative: Alternative, world: str, seed: int, summary: str, flows: bytes, links: bytes
    ) -> "Run":
        """Builds a run from the native half's result."""
        return Run(alternative, world, seed, json.loads(summary), flows, links)

    @staticmethod
    def of_frames(
        alternative: Alternative,
        world: str,
        seed: int,
        summary: dict[str, Any],
        flows: Sequence[dict[str, Any]],
        links: Sequence[dict[str, Any]] = (),
    ) -> "Run":
        """Builds a run from rows of its series, as a world in Python does. Columns left out are null."""
        of_flows = files.parquet(pl.DataFrame(flows, schema=FLOW_COLUMNS))
        of_links = files.parquet(pl.DataFrame(links, schema=LINK_COLUMNS))
        return Run(alternative, world, seed, summary, of_flows, of_links)

    @property
    def label(self) -> str:
        """The alternative's name in the scenario; in a comparison, the controller."""
        return self.alternative.label

    @property
    def untrustworthy(self) -> list[str]:
        """Why this run cannot be trusted; empty when it can."""
        return list(self.summary["provenance"].get("untrustworthy") or [])

    @property
    def unsupported(self) -> list[str]:
        """What was asked for and not done, in sentences; empty if all was."""
        return list(self.summary["provenance"].get("unsupported") or [])

    def flow_series(self) -> pl.DataFrame:
        """Samples of every flow, one row for each time and flow: cwnd_segments, srtt_ms, phase and more."""
        return _frame(self.flow_parquet)

    def link_series(self) -> pl.DataFrame:
        """Samples of every queue, one row for each time and link: queue_bytes, queue_delay_ms and more."""
        return _frame(self.link_parquet)

    @property
    def size(self) -> int:
        """The approximate size of its files, in bytes."""
        return len(self.flow_parquet) + len(self.link_parquet)


@lru_cache(maxsize=2)
def _frame(parquet: bytes) -> pl.DataFrame:
    """A table of a run. The latest are kept, because several figures are drawn of one run."""
    return pl.read_parquet(io.BytesIO(parquet))


@dataclass(frozen=True)
class Group:
    """The runs of one alternative in one world, and every measure over the trusted ones.

    Without a trusted run every measure is None.
    """

    world: str
    label: str
    runs: list[Run]

    @cached_property
    def trusted(self) -> list[Run]:
        """The trusted runs. No mean or verdict uses the others."""
        return [run for run in self.runs if not run.untrustworthy]

    @cached_property
    def measures(self) -> dict[str, Estimate | None]:
        """Every measure over the trusted runs, by name."""
        return estimates([run.summary for run in self.trusted])

    @property
    def doubted(self) -> bool:
        """Whether no run is trusted. Its numbers are shown and marked, run by run, without means."""
        return not self.trusted

    @property
    def shown(self) -> list[Run]:
        """The runs whose numbers are shown: the trusted ones; if there are none, all."""
        return self.trusted or self.runs

    @property
    def count(self) -> str:
        """The number of trusted runs, and of all if there are more: "3", "2 of 3"."""
        trusted, ran = len(self.trusted), len(self.runs)
        return str(ran) if trusted == ran else f"{trusted} of {ran}"

    @property
    def untrustworthy(self) -> list[str]:
        """Each reason once, in the order of the seeds."""
        return list(dict.fromkeys(reason for run in self.runs for reason in run.untrustworthy))

    @property
    def unsupported(self) -> list[str]:
        """Each sentence once, in the order of the seeds."""
        return list(dict.fromkeys(sentence for run in self.runs for sentence in run.unsupported))


# What a summary shows of its columns.
_SHOWN = (
    "world",
    "controller",
    "seeds",
    "goodput_bps",
    "rtt_mean_ms",
    "rtt_p95_ms",
    "retransmits",
    "loss_ratio",
)


class Summary(pl.DataFrame):
    """A data frame of many columns that shows the important ones, where printed and in a notebook."""

    def _short(self) -> pl.DataFrame:
        shown = [name for name in _SHOWN if name in self.columns]
        whole = len(shown) < len(_SHOWN)
        return pl.DataFrame(self.get_columns() if whole else [self[name] for name in shown])

    def _rest(self) -> str:
        more = self.width - self._short().width
        return f"and {more} more columns: see .columns" if more else ""

    def __str__(self) -> str:
        with pl.Config(tbl_cols=-1):
            return "\n".join(filter(None, (str(self._short()), self._rest())))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self, **options: Any) -> str:
        return f"{self._short()._repr_html_(**options)}<p>{self._rest()}</p>"


@dataclass(frozen=True)
class Runs:
    """Runs of one scenario, with its alternatives side by side.

    `notes` lists what the scenario means where its words hide it, and what could not run, and why.
    """

    scenario: Scenario
    runs: list[Run]
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        ran = f"{', '.join(self.labels)} in {joined(self.worlds)}" if self.runs else "nothing"
        return f"<{type(self).__name__}: {ran}, {counted(len(self.runs), 'run')}>"

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
        """Runs grouped so that members differ only in seed; an alternative's worlds follow each other."""
        together: dict[tuple[str, str], list[Run]] = {}
        for label in self.labels:
            for run in self.runs:
                if run.label == label:
                    together.setdefault((run.world, label), []).append(run)
        return [Group(world, label, runs) for (world, label), runs in together.items()]

    def name_of(self, label: str, part: str) -> str:
        """The name of a flow or a queue, with its alternative if several alternatives have it."""
        return part if part == label or len(self.labels) == 1 else f"{label}: {part}"

    @property
    def summary(self) -> pl.DataFrame:
        """One row for each world and alternative: mean and 95 % confidence interval of each measure.

        It shows the columns that people read first; `columns` names all of them.
        """
        signals = [
            one for one in (*SIGNALS, *SEEN, *MEDIA) if any(group.measures[one.name] for group in self.groups)
        ]
        shown = (*MEASURES, *signals)
        rows = [_summary_row(group, shown) for group in self.groups]
        return Summary(rows, schema=_summary_schema(shown), orient="row")

    @property
    def flows(self) -> pl.DataFrame:
        """One row for each run and flow, with the totals of its summary."""
        rows = [
            {"world": run.world, "alternative": run.label, "seed": run.seed, **_flat(flow)}
            for run in self.runs
            for flow in run.summary["flows"]
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def links(self) -> pl.DataFrame:
        """One row for each run and queue, with the totals of its summary."""
        rows = [
            {"world": run.world, "alternative": run.label, "seed": run.seed, **_flat(link)}
            for run in self.runs
            for link in run.summary["links"]
        ]
        return _without_gaps(pl.DataFrame(rows, infer_schema_length=None))

    def series(self) -> pl.DataFrame:
        """The flow series of every run, with columns world, alternative and seed in front."""
        return self._stacked([run.flow_series() for run in self.runs])

    def link_series(self) -> pl.DataFrame:
        """The link series of every run, with columns world, alternative and seed in front."""
        return _without_gaps(self._stacked([run.link_series() for run in self.runs]))

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
        return pl.concat(named, how="diagonal_relaxed")


def _without_gaps(links: pl.DataFrame) -> pl.DataFrame:
    """Zero where a run has no column of a signal because no queue gave it."""
    signals = [signal.name for signal in SIGNALS if signal.name in links.columns]
    return links.with_columns(pl.col(signals).fill_null(0)) if signals else links


def _summary_schema(shown: Sequence[Measure]) -> dict[str, Any]:
    names = [measure.name for measure in shown]
    return {
        "world": pl.String,
        "controller": pl.String,
        "seeds": pl.Int64,
        "trusted": pl.Int64,
        **{name: pl.Float64 for one in names for name in (one, f"{one}_ci95_low", f"{one}_ci95_high")},
        "untrustworthy": pl.List(pl.String),
    }


def _summary_row(group: Group, shown: Sequence[Measure]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "world": group.world,
        "controller": group.label,
        "seeds": len(group.runs),
        "trusted": len(group.trusted),
    }
    for name, value in ((one.name, group.measures[one.name]) for one in shown):
        row[name] = value.mean if value else None
        row[f"{name}_ci95_low"] = value.low if value else None
        row[f"{name}_ci95_high"] = value.high if value else None
    return {**row, "untrustworthy": group.untrustworthy}


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


def left_metrics(run: Run) -> dict[str, Any]:
    """The entry that a run left for the next, as values of `hosts.metrics`; empty if none was kept."""
    left = [flow["metrics"] for flow in run.summary["flows"] if flow.get("metrics")]
    if not left:
        return {}
    # Of connections that are open at the end, each leaves an entry that has those of the flows before it.
    _, last = max(enumerate(left), key=lambda one: (int(one[1]["at_ns"]), one[0]))
    counts = {name: last[name] for name in ("ssthresh", "cwnd", "reordering")}
    return {**counts, "rtt": f"{last['rtt_ns']} ns", "rttvar": f"{last['rttvar_ns']} ns"}
