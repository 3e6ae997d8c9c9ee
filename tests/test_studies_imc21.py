"""The claims of imc21: judges against data that must fail, and how many flows are at each scale."""

import pytest

import judging
from fullpipe_studies.claim import Size, Verdict
from judging import Ideal, Measured, Wrong


def intra(factors: Measured) -> Measured:
    poor = factors["controller"] == "bbr1" and factors["scale"] == "core"
    return {"jain": 0.6 if poor else 0.98, "poorest_pct": 8.0, "richest_pct": 12.0}


def inter(factors: Measured) -> Measured:
    if factors["mix"] == "CUBIC, Reno":
        return {"share": 0.75, "times_fair": 1.5}
    alone = factors["mix"].startswith("one")
    return {"share": 0.3 if alone else 0.9, "times_fair": 30.0 if alone else 1.8}


IDEAL: dict[str, Ideal] = {"imc21.intra": intra, "imc21.inter": inter}

WRONG: list[Wrong] = [
    ("imc21.intra", "jain", {"controller": "cubic", "scale": "core"}, 0.8, Verdict.NOT),
    ("imc21.intra", "jain", {"controller": "bbr1", "scale": "core"}, 0.99, Verdict.NOT),
    ("imc21.intra", "jain", {"controller": "bbr1", "scale": "core"}, 0.85, Verdict.IN_SHAPE),
    ("imc21.intra", "jain", {"controller": "bbr1", "scale": "edge"}, 0.5, Verdict.NOT),
    ("imc21.intra", "jain", {"controller": "bbr1", "scale": "edge"}, 0.85, Verdict.IN_SHAPE),
    ("imc21.inter", "share", {"mix": "CUBIC, Reno"}, 0.6, Verdict.IN_SHAPE),
    ("imc21.inter", "share", {"mix": "CUBIC, Reno"}, 0.4, Verdict.NOT),
    ("imc21.inter", "share", {"mix": "BBR, Reno"}, 0.55, Verdict.IN_SHAPE),
    ("imc21.inter", "share", {"mix": "BBR, CUBIC"}, 0.3, Verdict.NOT),
    ("imc21.inter", "times_fair", {"mix": "one BBR, Reno"}, 1.5, Verdict.NOT),
    ("imc21.inter", "times_fair", {"mix": "one BBR, CUBIC"}, 5.0, Verdict.IN_SHAPE),
]


def test_ideal_paper_results_are_reproduced() -> None:
    judging.check_all_have_ideals("imc21", IDEAL)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong[0]}-{wrong[1]}-{wrong[3]}")
def test_a_judge_does_not_pass(wrong: Wrong) -> None:
    judging.check_wrong(IDEAL, wrong)


def counts(name: str) -> set[tuple[str, int]]:
    cells = judging.built(name).claim.grid.cells(Size.FULL)
    return {
        (cell.document["path"]["rate"], sum(flow["count"] for flow in cell.document["flows"]))
        for cell in cells
    }


def test_core_has_thousands_edge_has_tens() -> None:
    core = {("10 Gbit/s", 1000), ("10 Gbit/s", 5000)}
    assert counts("imc21.intra") == core | {("100 Mbit/s", 10), ("100 Mbit/s", 50)}
    assert counts("imc21.inter") == core
