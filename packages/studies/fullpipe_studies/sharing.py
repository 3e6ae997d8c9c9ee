"""How flows share a bottleneck: measures that the claims on fairness use."""

import math
from collections.abc import Iterable

import polars as pl

from fullpipe.measures.run import Run


def rates(run: Run, after_s: float, before_s: float = math.inf) -> dict[str, float]:
    """Application megabits a second of every flow in a period of the run, by label.

    The period ends with the run if that is earlier. A flow that starts within it counts as 0 before.
    """
    series = run.flow_series().filter((pl.col("time_s") >= after_s) & (pl.col("time_s") <= before_s))
    if not series.height:
        return {}
    ends = series.select(pl.col("time_s").min().alias("begin"), pl.col("time_s").max().alias("end"))
    begin_s, end_s = ends.row(0)
    if end_s <= begin_s:
        return {}
    grown = series.group_by("flow", maintain_order=True).agg(
        (pl.col("delivered_bytes").max() - pl.col("delivered_bytes").min()).alias("bytes")
    )
    return {name: amount * 8e-6 / (end_s - begin_s) for name, amount in grown.iter_rows()}


def share(by_flow: dict[str, float], label: str) -> float | None:
    """The part of all goodput that the flows with this label have together, numbered or not."""
    total = math.fsum(by_flow.values())
    own = [rate for name, rate in by_flow.items() if is_labelled(name, label)]
    return math.fsum(own) / total if own and total > 0 else None


def is_labelled(name: str, label: str) -> bool:
    """Whether a flow has that label: "bbr" is that of "bbr" and "bbr-12"."""
    head, _, number = name.rpartition("-")
    return name == label or (head == label and number.isdigit())


def jain(values: Iterable[float]) -> float | None:
    """Jain's index: 1 if all are equal, 1/n if one has everything. None without goodput."""
    given = list(values)
    squares = math.fsum(value * value for value in given)
    return math.fsum(given) ** 2 / len(given) / squares if squares > 0 else None


def binned(run: Run, bin_s: float, until_s: float) -> pl.DataFrame:
    """Goodput of every flow in each whole bin: columns time_s (the end of the bin), flow, mbps."""
    ends = (
        run.flow_series()
        .with_columns((pl.col("time_s") / bin_s).floor().alias("bin"))
        .group_by("flow", "bin", maintain_order=True)
        .agg(pl.col("delivered_bytes").last())
        .filter((pl.col("bin") + 1) * bin_s <= until_s)
    )
    before = pl.col("delivered_bytes").shift(1).fill_null(0).over("flow")
    return ends.select(
        ((pl.col("bin") + 1) * bin_s).alias("time_s"),
        "flow",
        ((pl.col("delivered_bytes") - before) * 8e-6 / bin_s).alias("mbps"),
    )


def acknowledged(run: Run, bin_s: float, until_s: float) -> pl.DataFrame:
    """Each flow's delivery rate as its ACKs tell, SACKs included, in each whole bin: time_s, flow, mbps.

    Means of the sender's samples, of payload. They stay within the link's rate, while goodput does not: the
    receiver's application gets nothing while a segment is missing, and then all that waited for it.
    """
    return (
        run.flow_series()
        .with_columns((pl.col("time_s") / bin_s).floor().alias("bin"))
        .group_by("flow", "bin", maintain_order=True)
        .agg(pl.col("delivery_bps").mean())
        .filter((pl.col("bin") + 1) * bin_s <= until_s)
        .select(
            ((pl.col("bin") + 1) * bin_s).alias("time_s"),
            "flow",
            (pl.col("delivery_bps") * 1e-6).alias("mbps"),
        )
    )


def converged_s(jains: Iterable[tuple[float, float]], fair: float) -> float | None:
    """The earliest time from which an index stays at or above `fair`; infinite if it ends below.

    Pairs of a time and the index from then on to the next one, in order. None without any.
    """
    given = list(jains)
    if not given:
        return None
    unfair = [place for place, (_, index) in enumerate(given) if index < fair]
    if not unfair:
        return given[0][0]
    return given[unfair[-1] + 1][0] if unfair[-1] + 1 < len(given) else math.inf
