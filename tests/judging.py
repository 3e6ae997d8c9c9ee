"""Judges held against data: what a paper says to the letter, and that with some values replaced."""

from collections.abc import Callable
from typing import Any

import polars as pl

from fullpipe_studies import catalogue
from fullpipe_studies.catalogue import Built
from fullpipe_studies.claim import Data, Finding, Over, Size, Verdict

Measured = dict[str, Any]
Ideal = Callable[[Measured], Measured]
# A claim, a column, factors, the value in its place, and the verdict that is left.
Wrong = tuple[str, str, Measured, float, Verdict]


def built(name: str) -> Built:
    """A claim by its id."""
    found = catalogue.built(name)
    assert found is not None
    return found


def rows(name: str, ideal: Ideal) -> list[Measured]:
    """Five seeds of the whole grid, as they are ideally."""
    return [
        {"world": "sim", "seed": seed, **cell.factors, **ideal(dict(cell.factors))}
        for cell in built(name).claim.grid.cells(Size.FULL)
        for seed in range(1, 6)
    ]


def mixed(finding: Finding, seeds: int) -> list[str]:
    """The checks that take values of unlike scenarios for runs of one: they have more values than seeds."""
    return [
        one.what
        for one in finding.checks
        if one.over is Over.SEEDS and one.ours is not None and one.ours.count > seeds
    ]


def judged(name: str, made: list[Measured]) -> Finding:
    """The finding on these rows."""
    claim = built(name).claim
    runs = pl.DataFrame(made, infer_schema_length=None)
    data = Data(runs, pl.DataFrame(), factors=tuple(claim.grid.factors))
    if claim.explain is not None:
        assert all(sentence.endswith(".") for sentence in claim.explain(data))
    return Finding("sim", claim.judge(data))


def check_all_have_ideals(paper: str, ideals: dict[str, Ideal]) -> None:
    """Every listed claim of a paper is built, and what the paper says of it is reproduced by its judge."""
    listed = [one.id for one in catalogue.listed() if one.paper == paper]
    assert [one for one in listed if catalogue.built(one) is None] == []
    assert set(listed) == set(ideals) == {one.id for one in catalogue.study(paper).claims}
    for name, ideal in ideals.items():
        finding = judged(name, rows(name, ideal))
        assert mixed(finding, 5) == []
        assert finding.verdict is Verdict.REPRODUCED, (name, finding.reason)


def check_wrong(ideals: dict[str, Ideal], wrong: Wrong) -> None:
    """A judge gives that verdict if the value is in the column of all rows with these factors."""
    name, column, where, value, best = wrong
    made = rows(name, ideals[name])
    hit = [row for row in made if all(row[factor] == given for factor, given in where.items())]
    assert hit
    for row in hit:
        row[column] = value
    finding = judged(name, made)
    assert finding.verdict is best, (finding.verdict, finding.checks)
