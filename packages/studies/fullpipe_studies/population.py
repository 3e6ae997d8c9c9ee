"""Random populations of paths that never change, so that every run of a claim uses the same ones."""

import math
import random
from collections.abc import Callable
from typing import TypeVar

import polars as pl

from fullpipe_studies.claim import Data, Values

Path = TypeVar("Path")
# Draws a number between two bounds, log-uniformly.
Draw = Callable[[float, float], float]


def drawn(kind: str, count: int, seed: int, path: Callable[[Draw], Path]) -> dict[str, Path]:
    """This many paths, numbered by name. A larger population begins with the paths of a smaller one."""
    source = random.Random(seed)

    def log_uniform(low: float, high: float) -> float:
        return float(low * (high / low) ** source.random())

    return {f"{kind} {number}": path(log_uniform) for number in range(1, count + 1)}


def each_seed(
    data: Data, column: str, over: str, under: str, statistic: Callable[[dict[str, float]], float]
) -> Values:
    """A statistic of the ratios of `by_path`, once for each seed: NaN where there is no ratio."""

    def of(runs: pl.DataFrame) -> float:
        ratios = by_path(Data(runs, data.series), column, over, under)
        return statistic(ratios) if ratios else math.nan

    return data.each_seed(of)


def by_path(data: Data, column: str, over: str, under: str) -> dict[str, float]:
    """By path, the ratio of a controller's mean to another's. Paths without both values are left out."""
    if column not in data.runs.columns:
        return {}
    of = (pl.col("controller") == controller for controller in (over, under))
    means = data.runs.group_by("path", maintain_order=True).agg(
        pl.col(column).filter(one).mean().alias(name) for one, name in zip(of, ("over", "under"), strict=True)
    )
    return {
        path: float(above / below)
        for path, above, below in means.iter_rows()
        if above is not None and below is not None and above > 0 and below > 0
    }
