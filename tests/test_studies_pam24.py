"""The claims of pam24 and anrw24: judges against data that must fail; what late means."""

import pytest

import judging
from fullpipe_studies import catalogue
from fullpipe_studies.claim import Size, Verdict
from judging import Ideal, Measured, Wrong


def late(factors: Measured) -> Measured:
    slow = factors["start"] == "late" or not factors["controller"].startswith("bbr3")
    return {"converge_s": 30.0 if slow else 5.0, "last_jain": 0.97}


def ecn(factors: Measured) -> Measured:
    ignores = factors["case"] == "all, BBR ignores" and factors["queue"] == "codel"
    return {"bbr_share": 0.995 if ignores else 0.3}


PAM: dict[str, Ideal] = {
    "pam24.late": late,
    "pam24.rttfair": lambda _factors: {"long_share": 0.75},
    "pam24.cubic": lambda _factors: {"cubic_share": 0.1, "bbr_share": 0.9},
}
# What the paper measured.
GOOGLES = "bbr3:profile=linux"
ANRW: dict[str, Ideal] = {"anrw24.ecn": ecn}

WRONG: list[Wrong] = [
    ("pam24.late", "converge_s", {"controller": "bbr1", "start": "together"}, 3.0, Verdict.NOT),
    ("pam24.late", "converge_s", {"controller": "bbr3", "start": "late"}, 8.0, Verdict.IN_SHAPE),
    ("pam24.late", "converge_s", {"controller": "bbr3", "start": "late"}, 4.0, Verdict.NOT),
    ("pam24.late", "converge_s", {"controller": GOOGLES, "start": "late"}, 4.0, Verdict.NOT),
    (
        "pam24.rttfair",
        "long_share",
        {"first": "short", "buffer_bdp": 1, "controller": "bbr3"},
        0.3,
        Verdict.NOT,
    ),
    ("pam24.rttfair", "long_share", {"controller": "bbr3"}, 0.55, Verdict.IN_SHAPE),
    ("pam24.rttfair", "long_share", {"controller": "cubic"}, 0.1, Verdict.REPRODUCED),
    ("pam24.cubic", "cubic_share", {"buffer_bdp": 8, "controller": "bbr3"}, 0.95, Verdict.NOT),
    ("pam24.cubic", "cubic_share", {"controller": "bbr3"}, 0.4, Verdict.IN_SHAPE),
    ("pam24.cubic", "cubic_share", {"buffer_bdp": 8, "controller": GOOGLES}, 0.95, Verdict.NOT),
    ("pam24.cubic", "cubic_share", {"buffer_bdp": 16}, 0.95, Verdict.REPRODUCED),
    ("anrw24.ecn", "bbr_share", {"case": "all, BBR ignores"}, 0.9, Verdict.IN_SHAPE),
    ("anrw24.ecn", "bbr_share", {"case": "all, BBR ignores"}, 0.4, Verdict.NOT),
    ("anrw24.ecn", "bbr_share", {"case": "none"}, 0.999, Verdict.NOT),
]


def test_ideal_paper_results_are_reproduced() -> None:
    judging.check_all_have_ideals("pam24", PAM)
    judging.check_all_have_ideals("anrw24", ANRW)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong[0]}-{wrong[1]}-{wrong[3]}")
def test_a_judge_does_not_pass(wrong: Wrong) -> None:
    judging.check_wrong(PAM | ANRW, wrong)


def test_duration_counts_from_last_start() -> None:
    for cell in judging.built("pam24.late").claim.grid.cells(Size.FULL):
        (flows,) = cell.document["flows"]
        last_s = (flows["count"] - 1) * float(flows["stagger"].removesuffix(" s"))
        assert float(cell.document["duration"].removesuffix(" s")) - last_s == cell.factors["seconds"]
        assert (last_s == 60) is (cell.factors["start"] == "late")


def test_bbr_alone_negotiates_ecn_without_hosts() -> None:
    assert catalogue.built("anrw24.ecn") is not None
    cells = {cell.factors["case"]: cell.document for cell in judging.built("anrw24.ecn").claim.grid.cells()}
    asks = {
        case: (document["hosts"]["ecn"], "ecn=1" in document["flows"][0]["controller"])
        for case, document in cells.items()
    }
    assert asks == {
        "all, BBR ignores": (True, False),
        "all, BBR answers": (True, True),
        "BBR only": (False, True),
        "none": (False, False),
    }
    assert all(document["flows"][1]["count"] == 5 for document in cells.values())
