"""The claims of icnp17: judges against data that must fail."""

import pytest

import judging
from fullpipe_studies.claim import Verdict
from judging import Ideal, Measured, Wrong


def queue(factors: Measured) -> Measured:
    several = factors["flows"] > 1
    return {"queue_bdp": 1.2 if several else 0.02, "window_bdp": 2.2, "estimates": 1.1 if several else 1.0}


def rttfair(factors: Measured) -> Measured:
    ratio = factors["long_ms"] / 20
    return {"long_share": ratio / (1 + ratio) if factors["controller"] == "bbr1" else 1 / (1 + ratio)}


IDEAL: dict[str, Ideal] = {
    "icnp17.queue": queue,
    "icnp17.loss": lambda factors: {"loss_pct": 10.0 if factors["controller"] == "bbr1" else 0.1},
    "icnp17.rttfair": rttfair,
    "icnp17.cubic": lambda factors: {"bbr_share": 0.97 if factors["buffer_bdp"] < 1 else 0.4},
}

WRONG: list[Wrong] = [
    ("icnp17.queue", "queue_bdp", {"flows": 2}, 0.7, Verdict.REPRODUCED),
    ("icnp17.queue", "queue_bdp", {"flows": 2}, 0.3, Verdict.NOT),
    ("icnp17.queue", "queue_bdp", {"flows": 8}, 2.5, Verdict.NOT),
    ("icnp17.queue", "queue_bdp", {"flows": 1}, 1.0, Verdict.NOT),
    ("icnp17.loss", "loss_pct", {"controller": "cubic"}, 2.0, Verdict.NOT),
    ("icnp17.loss", "loss_pct", {"controller": "bbr1"}, 0.5, Verdict.NOT),
    ("icnp17.rttfair", "long_share", {"controller": "bbr1", "long_ms": 40}, 0.4, Verdict.NOT),
    ("icnp17.rttfair", "long_share", {"controller": "bbr1"}, 0.6, Verdict.IN_SHAPE),
    ("icnp17.rttfair", "long_share", {"controller": "cubic"}, 0.95, Verdict.NOT),
    ("icnp17.cubic", "bbr_share", {"buffer_bdp": 0.8, "each": 2}, 0.6, Verdict.NOT),
    ("icnp17.cubic", "bbr_share", {"buffer_bdp": 0.8}, 0.8, Verdict.IN_SHAPE),
    ("icnp17.cubic", "bbr_share", {"buffer_bdp": 8}, 0.99, Verdict.NOT),
]


def test_ideal_paper_results_are_reproduced() -> None:
    judging.check_all_have_ideals("icnp17", IDEAL)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong[0]}-{wrong[1]}-{wrong[3]}")
def test_a_judge_does_not_pass(wrong: Wrong) -> None:
    judging.check_wrong(IDEAL, wrong)
