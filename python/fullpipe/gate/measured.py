"""The result of a case: its measures over the seeds, and a hash of each run's whole record.

A hash covers what the runs did: counts, times and series. It does not cover names of controllers, the
machine, or versions, so that it changes only when behaviour does.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fullpipe.gate.cases import Case
from fullpipe.gate.quantities import values_of
from fullpipe.measures.run import Run
from fullpipe.measures.statistics import estimate

_HASH_DIGITS = 16


@dataclass(frozen=True)
class Value:
    """A mean over the runs; of worlds in wall time, also half its 95 % interval."""

    mean: float
    half: float = 0.0


@dataclass(frozen=True)
class Measured:
    """The result of a case in one world: a line of a baseline."""

    name: str
    world: str
    subject: str
    setting: str
    seeds: tuple[int, ...]
    measures: Mapping[str, Value]
    # The hash of each seed's record; none in worlds whose runs are never equal.
    records: tuple[str, ...] = ()
    # Of a conformance case.
    verdict: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from other lines."""
        return self.name, self.world


def of_runs(case: Case, runs: Sequence[Run], *, exact: bool) -> Measured:
    """The result of these trusted runs of a case. `exact`: equal seeds give equal runs in this world."""
    found = [values_of(run.summary) for run in runs]
    names = [name for name in found[0] if all(name in one for one in found)]
    measures = {name: _value([one[name] for one in found], exact=exact) for name in names}
    records = tuple(map(record_of, runs)) if exact else ()
    # The repetitions of a world in wall time are as many as the answer needed.
    seeds = tuple(run.seed for run in runs) if exact else ()
    return Measured(case.name, case.world, case.subject, case.setting, seeds, measures, records)


def of_conform(case: Case, verdict: str, values: Mapping[str, float | None]) -> Measured:
    """The result of a conformance case. Its hash covers the values; None is what was never measured."""
    known = {key: Value(value) for key, value in values.items() if value is not None}
    digest = _digest([verdict, sorted((key, repr(value)) for key, value in values.items())])
    return Measured(case.name, case.world, case.subject, case.setting, case.seeds, known, (digest,), verdict)


def record_of(run: Run) -> str:
    """The hash of what a run did: of values, and not of a file's bytes, which another version may change."""
    series = [[one.columns, one.rows()] for one in (plain_series(run), run.link_series())]
    return _digest([_plain_summary(run.summary), *series])


def plain_series(run: Run) -> pl.DataFrame:
    """The flows' series, with a number for each flow in place of its name and its controller's."""
    labels = {flow["label"]: str(number) for number, flow in enumerate(run.summary["flows"])}
    series = run.flow_series()
    return series.with_columns(pl.col("flow").replace(labels)).drop("controller", strict=False)


def _plain_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    nameless = {"label", "controller"}
    flows = [{key: one for key, one in flow.items() if key not in nameless} for flow in summary["flows"]]
    shares = [one["share"] for one in summary["fairness"]["shares"]]
    left = {key: one for key, one in summary.items() if key not in ("provenance", "fairness")}
    return {**left, "flows": flows, "shares": shares}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_HASH_DIGITS]


def _value(values: Sequence[float], *, exact: bool) -> Value:
    found = estimate(values)
    half = 0.0 if exact else math.inf if found.half_width is None else found.half_width
    return Value(found.mean, half)
