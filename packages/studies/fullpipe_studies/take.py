"""Measures of a run that several claims use."""

import math
from typing import Any

import polars as pl

from fullpipe.measures.run import Run
from fullpipe.scenario import path_facts
from fullpipe_studies.claim import Trial, number


def flow(run: Run, label: str | None = None) -> dict[str, Any]:
    """A flow's totals: the flow with that label, or the first.

    Without another, its label is its controller, whose parameters need not be given.
    """
    for one in run.summary["flows"]:
        if label in (None, one["label"], one["label"].partition(":")[0]):
            found: dict[str, Any] = one
            return found
    raise LookupError(f"{run.label} has no flow {label}")


def goodput_mbps(run: Run, label: str | None = None) -> float:
    """Application megabits a second that the receiver delivered, over the flow's measured interval."""
    return float(flow(run, label)["goodput_bps"] or 0.0) / 1e6


def samples(run: Run, *, after_s: float = 0.0, before_s: float = math.inf) -> pl.DataFrame:
    """The flows' samples within a period of the run; `rtt_ms` is `srtt_ms` without NaN."""
    return run.flow_series().filter((pl.col("time_s") >= after_s) & (pl.col("time_s") < before_s))


def link(run: Run, name: str = "bottleneck", *, after_s: float = 0.0) -> pl.DataFrame:
    """A queue's samples from a time of the run on."""
    return run.link_series().filter((pl.col("link") == name) & (pl.col("time_s") >= after_s))


def over_time(run: Run, label: str | None = None, name: str = "bottleneck") -> pl.DataFrame:
    """A flow's samples beside those of a queue, with time_s counted from when the flow begins to connect.

    Adds queue_bytes and rtt_ms: the round trip of a packet that reaches the queue at that time. Records also
    have the sender's smoothed RTT (srtt_ms), which lags a round trip or more behind.
    """
    one = flow(run, label)
    base = path_facts.of(run.alternative).base_rtt_ms(one["label"])
    assert base is not None, "the path has a delay"
    queue = run.link_series().filter(pl.col("link") == name).select("time_s", "queue_bytes", "queue_delay_ms")
    joined = (
        run.flow_series()
        .filter(pl.col("flow") == one["label"])
        .sort("time_s")
        .join_asof(queue.sort("time_s"), on="time_s")
    )
    return joined.with_columns(
        (pl.col("time_s") - one["start_ns"] / 1e9),
        (pl.col("queue_delay_ms").fill_null(0.0) + base[0][1]).alias("rtt_ms"),
        (pl.col("inflight_segments") * run.alternative.spec["mtu_bytes"] / 1e3).alias("inflight_kb"),
    )


def mean(frame: pl.DataFrame, column: str) -> float | None:
    """The mean of a column; None if there are no values."""
    value = frame[column].mean()
    return float(value) if isinstance(value, int | float) else None


def median(frame: pl.DataFrame, column: str) -> float | None:
    """The median of a column; None if there are no values."""
    value = frame[column].median()
    return float(value) if isinstance(value, int | float) else None


def most(frame: pl.DataFrame, column: str) -> float | None:
    """The largest value of a column; None if there are no values."""
    value = frame[column].max()
    return float(value) if isinstance(value, int | float) else None


def least(frame: pl.DataFrame, column: str) -> float | None:
    """The smallest value of a column; None if there are no values."""
    value = frame[column].min()
    return float(value) if isinstance(value, int | float) else None


def grown(frame: pl.DataFrame, column: str) -> float:
    """By how much a counter grew; 0 where nothing was sampled."""
    return (most(frame, column) or 0.0) - (least(frame, column) or 0.0)


def span(frame: pl.DataFrame, column: str) -> str:
    """The range from the smallest to the largest value, as text."""
    return f"{number(least(frame, column) or 0.0)} to {number(most(frame, column) or 0.0)}"


def ratio(over: float | None, under: float | None) -> float | None:
    """The ratio of two values; None if either is missing or the divisor is zero."""
    return over / under if over is not None and under else None


def quantile(frame: pl.DataFrame, column: str, part: float) -> float | None:
    """A quantile of a column."""
    value = frame[column].quantile(part, "linear")
    return None if value is None else float(value)


def payload_share(trial: Trial) -> float:
    """The share of a full packet that is payload."""
    return path_facts.of(trial.run.alternative).payload_share


def delivered_mbps(frame: pl.DataFrame) -> float | None:
    """Application megabits a second over one flow's samples, from the first to the last."""
    if frame.height < 2:
        return None
    ends = frame.sort("time_s").select("time_s", "delivered_bytes")
    (begin_s, before), (end_s, after) = ends.row(0), ends.row(-1)
    return float((after - before) * 8e-6 / (end_s - begin_s)) if end_s > begin_s else None


def stretches(frame: pl.DataFrame, column: str = "phase") -> pl.DataFrame:
    """Periods with an equal value in a flow's samples: columns start_s, end_s and the column.

    A period lasts until the next begins; the last until the last sample.
    """
    ordered = frame.filter(pl.col(column).is_not_null()).sort("time_s")
    begins = ordered.filter((pl.col(column) != pl.col(column).shift(1)).fill_null(True))
    return begins.select(
        pl.col("time_s").alias("start_s"),
        pl.col("time_s").shift(-1).fill_null(ordered["time_s"].max()).alias("end_s"),
        column,
    )


def thinned(frame: pl.DataFrame, columns: list[str], *, step_s: float) -> pl.DataFrame:
    """The columns of every flow, one sample for each step: the last in it."""
    steps = (pl.col("time_s") / step_s).floor().alias("step")
    return (
        frame.group_by("flow", steps, maintain_order=True).agg(pl.col("time_s", *columns).last()).drop("step")
    )


def bdp_bytes(rate_mbps: float, rtt_ms: float) -> float:
    """The bandwidth-delay product of a path."""
    return rate_mbps * 1e6 / 8 * rtt_ms / 1e3
