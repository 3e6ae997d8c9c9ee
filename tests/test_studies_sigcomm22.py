"""The claims of sigcomm22: judges against data that must fail."""

import polars as pl
import pytest

import judging
from fullpipe_studies.claim import Data, Verdict
from fullpipe_studies.papers.sigcomm22 import delay
from judging import Ideal, Measured, Wrong

COPA = next(name for name in delay.CLAIM.grid.factors["controller"] if name.endswith("mode_switching=0"))


def bbr(factors: Measured) -> Measured:
    short = 8.3 if factors["jitter_ms"] else 30.0
    return {"short_mbps": short, "long_mbps": 115.3 - short, "ratio": (115.3 - short) / short}


def delayed(factors: Measured) -> Measured:
    ratio = 1.0 if factors["controller"] == "cubic" else 1.0 + 2 * factors["wrong_ms"]
    return {"misled_mbps": 115 / (1 + ratio), "other_mbps": 115 * ratio / (1 + ratio), "ratio": ratio}


IDEAL: dict[str, Ideal] = {"sigcomm22.bbr": bbr, "sigcomm22.delay": delayed}

WRONG: list[Wrong] = [
    ("sigcomm22.bbr", "ratio", {"controller": "bbr1", "jitter_ms": 4}, 3.0, Verdict.NOT),
    ("sigcomm22.bbr", "short_mbps", {"controller": "bbr1", "jitter_ms": 4}, 18.0, Verdict.IN_SHAPE),
    ("sigcomm22.bbr", "ratio", {"controller": "bbr1", "jitter_ms": 0}, 20.0, Verdict.IN_SHAPE),
    ("sigcomm22.bbr", "ratio", {"controller": "cubic"}, 50.0, Verdict.REPRODUCED),
    ("sigcomm22.delay", "ratio", {"controller": "vegas", "wrong_ms": 5}, 2.0, Verdict.NOT),
    ("sigcomm22.delay", "ratio", {"controller": COPA, "wrong_ms": 10}, 9.0, Verdict.IN_SHAPE),
    ("sigcomm22.delay", "ratio", {"controller": COPA, "wrong_ms": 0}, 30.0, Verdict.NOT),
    ("sigcomm22.delay", "ratio", {"controller": "cubic"}, 5.0, Verdict.NOT),
]


def test_ideal_paper_results_are_reproduced() -> None:
    judging.check_all_have_ideals("sigcomm22", IDEAL)


def test_opposite_delay_ratios_are_not_even() -> None:
    made = judging.rows("sigcomm22.delay", delayed)
    for row in made:
        if row["controller"] == "cubic" and row["wrong_ms"]:
            row["ratio"] = 8.0 if row["wrong_ms"] == 10 else 1 / 8
    assert judging.judged("sigcomm22.delay", made).verdict is Verdict.NOT


def test_runs_with_starving_flow_are_distinguished() -> None:
    rows = [
        {"controller": "vegas", "wrong_ms": 10, "misled_mbps": misled, "other_mbps": 115 - misled}
        for misled in (1.0, 1.0, 114.0)
    ]
    (message,) = delay.explain(Data(pl.DataFrame(rows), pl.DataFrame()))
    assert message == "Vegas, 10 ms, of 3 runs: 1 against 114 Mbit/s in 2; 114 against 1 Mbit/s in 1."


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong[0]}-{wrong[1]}-{wrong[3]}")
def test_a_judge_does_not_pass(wrong: Wrong) -> None:
    judging.check_wrong(IDEAL, wrong)
