"""The claims of ware19 and ifip25: the model of BBR's share, and judges against data that must fail."""

import pytest

import judging
from fullpipe_studies import capmodel
from fullpipe_studies.claim import Verdict
from judging import Ideal, Measured, Wrong


def near_model(factors: Measured) -> Measured:
    bbrs, buffer_bdp = factors["bbrs"], factors["buffer_bdp"]
    rate_mbps, rtt_ms = (50, 30) if factors.get("against", "").endswith("50 Mbit/s") else (10, 40)
    model = capmodel.share(rate_mbps, rtt_ms, buffer_bdp, bbrs)
    error = 4.0 + (factors.get("others", 1) > 1)
    if factors.get("controller", "").startswith("bbr3"):
        error = 50.0
    return {"bbr_share": model / (1 + error / 100), "model_share": model, "error_pct": error}


def share(factors: Measured) -> Measured:
    return {"bbr_share": capmodel.share(10, 40, factors["buffer_bdp"], 1)}


def window(factors: Measured) -> Measured:
    limited, filled = (0.95, 0.9) if factors["others"] else (0.01, 0.0)
    return {"limited": limited, "filled": filled, "bbr_share": capmodel.share(10, 40, 32, 1)}


WARE: dict[str, Ideal] = {"ware19.share": share, "ware19.model": near_model, "ware19.window": window}
IFIP: dict[str, Ideal] = {"ifip25.v1": near_model, "ifip25.v3": near_model}

WRONG: list[Wrong] = [
    ("ware19.share", "bbr_share", {"others": 16, "loss": "cubic"}, 0.15, Verdict.NOT),
    ("ware19.share", "bbr_share", {"others": 16, "loss": "reno"}, 0.28, Verdict.IN_SHAPE),
    ("ware19.share", "bbr_share", {"others": 1}, 0.95, Verdict.NOT),
    ("ware19.share", "bbr_share", {"others": 4}, 0.6, Verdict.IN_SHAPE),
    ("ware19.model", "error_pct", {"against": "reno"}, 10.0, Verdict.IN_SHAPE),
    ("ware19.model", "error_pct", {"against": "cubic"}, 20.0, Verdict.NOT),
    ("ware19.window", "limited", {"others": 16}, 0.7, Verdict.IN_SHAPE),
    ("ware19.window", "limited", {"others": 1}, 0.3, Verdict.NOT),
    ("ware19.window", "limited", {"others": 0}, 0.5, Verdict.IN_SHAPE),
    ("ware19.window", "filled", {"others": 1}, 0.1, Verdict.NOT),
    ("ifip25.v1", "error_pct", {"others": 1, "loss": "cubic"}, 4.9, Verdict.REPRODUCED),
    ("ifip25.v1", "error_pct", {"others": 1}, 40.0, Verdict.NOT),
    ("ifip25.v1", "error_pct", {"others": 16}, 1.0, Verdict.NOT),
    ("ifip25.v3", "error_pct", {"controller": "bbr3:profile=linux"}, 3.0, Verdict.NOT),
    ("ifip25.v3", "error_pct", {"controller": "bbr3:profile=linux"}, 12.0, Verdict.NOT),
    # The draft's, and the ratio to BBRv1's error, are our expectation.
    ("ifip25.v3", "error_pct", {"controller": "bbr3"}, 3.0, Verdict.REPRODUCED),
    ("ifip25.v3", "error_pct", {"controller": "bbr1"}, 30.0, Verdict.REPRODUCED),
]


def test_ideal_paper_results_are_reproduced() -> None:
    judging.check_all_have_ideals("ware19", WARE)
    judging.check_all_have_ideals("ifip25", IFIP)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong[0]}-{wrong[1]}-{wrong[3]}")
def test_a_judge_does_not_pass(wrong: Wrong) -> None:
    judging.check_wrong(WARE | IFIP, wrong)


@pytest.mark.parametrize(
    ("buffer_bdp", "bbrs", "expected"),
    [
        # With 10 Mbit/s and 40 ms a BDP is 33.3 packets. p = 1/2 - 1/64 - 4/1066.7; silent for 1.52 s of 10.
        (32, 1, (1 - 0.480625) * 0.848),
        # p = 1/2 - 1/128 - 4/2133.3; silent for 2.8 s.
        (64, 1, (1 - 0.4903125) * 0.72),
        # The cap exceeds queue and path: all of the link but for ProbeRTT, 0.28 s.
        (1, 1, 0.972),
        (64, 32, (1 - 0.4321875) * 0.72),
    ],
)
def test_model_matches_its_equations(buffer_bdp: float, bbrs: int, expected: float) -> None:
    assert capmodel.share(10, 40, buffer_bdp, bbrs) == pytest.approx(expected, abs=1e-6)


def test_error_is_relative_to_measurement() -> None:
    assert capmodel.error_pct(0.4, 0.5) == pytest.approx(25)
    assert capmodel.error_pct(None, 0.5) is None and capmodel.error_pct(0.0, 0.5) is None
