"""`fullpipe conform --suite loss`: the cases hold CUBIC, Reno and HyStart++ to their RFCs, and notice mistakes."""

import json
import re
from pathlib import Path

import pytest
from loss_mistakes import Cubic, Reno
from typer.testing import CliRunner

import fullpipe as fp
from fullpipe.cli import app as cli
from fullpipe.conformance import registry as bbr3
from fullpipe.conformance.loss import registry
from fullpipe.conformance.loss.case import TRAITS, traits
from fullpipe.conformance.results import FAIL, NOT_APPLICABLE, PASS

# For each case a controller that makes a mistake, and what it is like.
MISTAKES: dict[str, tuple[object, str]] = {
    "slow-start-doubles": (Reno.using(mistake="half-pace"), "reno"),
    "batch-of-acks": (Reno.using(mistake="first-of-a-batch"), "reno"),
    "paced-is-used": (Reno.using(mistake="paced-is-unused"), "reno"),
    "few-acks": (Reno.using(mistake="counts-acks"), "reno"),
    "decrease-cubic": ("cubic9438:beta=0.5", "any"),
    "decrease-reno": ("newreno:loss_reduction=0.7", "any"),
    "one-reduction-cubic": (Cubic.using(mistake="cuts-each-loss"), "cubic"),
    "one-reduction-reno": (Reno.using(mistake="cuts-each-loss"), "reno"),
    "two-losses-two-reductions": (Reno.using(mistake="cuts-once"), "reno"),
    "minimum-window": (Reno.using(mistake="no-floor"), "reno"),
    "one-packet-a-round": ("cubic9438", "reno"),
    "big-window-grows": (Reno.using(mistake="integers"), "reno"),
    "cubic-concave": (Cubic.using(mistake="k-from-beta"), "cubic"),
    "cubic-k": ("cubic9438:c=0.3", "any"),
    "cubic-convex": ("cubic9438:c=0.5", "any"),
    "target-cap": (Cubic.using(mistake="no-cap"), "cubic"),
    "fast-convergence": ("cubic9438:fast_convergence=0", "any"),
    "no-fast-convergence": (Cubic.using(mistake="always-converges"), "cubic"),
    "never-down-the-curve": (Cubic.using(mistake="falls-to-the-curve"), "cubic"),
    "reno-friendly-slope": ("newreno", "cubic"),
    "reno-friendly-above": ("cubic", "any"),
    "credit-kept": (Reno.using(mistake="counts-acks"), "reno"),
    "limit-slow-start": (Reno.using(mistake="unused-grows"), "reno"),
    "limit-paced": (Reno.using(mistake="unused-grows"), "reno"),
    "limit-avoidance": (Cubic.using(mistake="unused-grows"), "cubic"),
    "limit-receiver": (Reno.using(mistake="unused-grows"), "reno"),
    "cubic-pause": (Cubic.using(mistake="time-runs-on"), "cubic"),
    "pause-adds-nothing": (Reno.using(mistake="grows-in-a-pause"), "reno"),
    "pause-no-burst": ("cubic9438:pace=0", "any"),
    "outage-window": (Reno.using(mistake="no-collapse"), "reno"),
    "outage-slow-start": (Reno.using(mistake="stays-at-the-floor"), "reno"),
    "outage-threshold-cubic": (Cubic.using(mistake="cuts-each-timeout"), "cubic"),
    "outage-threshold-reno": (Reno.using(mistake="cuts-each-timeout"), "reno"),
    "stops-at-threshold": (Reno.using(mistake="beyond-threshold"), "reno"),
    "outage-flat-curve": ("cubic", "any"),
    "undo-recovery": (Reno.using(mistake="no-undo"), "reno"),
    "undo-timeout": (Reno.using(mistake="no-undo"), "reno"),
    "few-losses-are-losses": (Reno.using(mistake="few-are-spurious"), "reno"),
    "mark-once-cubic": (Cubic.using(mistake="cuts-each-echo"), "cubic"),
    "mark-once-reno": (Reno.using(mistake="cuts-each-echo"), "reno"),
    "marks-bound-queue": (Reno.using(mistake="ignores-marks"), "reno"),
    "prr-ends-at-threshold": (Reno.using(mistake="grows-in-recovery"), "reno,prr"),
    "prr-no-silence": ("newreno", "reno,prr"),
    "prr-no-burst": ("newreno", "reno,prr"),
    "css-growth": (Cubic.using(mistake="css-twice"), "cubic,hystartpp"),
    "css-rounds": (Cubic.using(mistake="css-for-good"), "cubic,hystartpp"),
    "css-resumes": (Cubic.using(mistake="css-for-good"), "cubic,hystartpp"),
    "css-not-by-jitter": (Cubic.using(mistake="leaves-by-a-spike"), "cubic,hystartpp"),
    "css-least-rise": (Cubic.using(mistake="css-by-an-eighth"), "cubic,hystartpp"),
    "css-most-rise": (Cubic.using(mistake="css-by-an-eighth"), "cubic,hystartpp"),
    "css-flat-curve": (Cubic.using(mistake="exit-without-maximum"), "cubic,hystartpp"),
}
# What the controllers in Python do not do by themselves.
NOT_IN_PYTHON = {"pause-no-burst"}
NAMES = [case.name for case in registry.every()]


def verdicts(of: fp.Conformity) -> dict[str, str]:
    return {one.case.name: one.verdict for one in of.results}


def test_every_case_has_a_mistake_that_it_catches() -> None:
    assert set(MISTAKES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_fails_its_case(name: str) -> None:
    controller, like = MISTAKES[name]
    found = fp.conform(controller, [name], suite="loss", like=like)  # type: ignore[arg-type]
    assert found.failures == [name], found.results[0].checks
    # It fails by what is measured, not because the play did not come to it.
    assert any(check.value is not None for check in found.results[0].checks) or name == "css-rounds"


@pytest.mark.parametrize("controller", ["cubic9438", "newreno", "newreno:hystartpp=1"])
def test_controllers_by_the_rfcs_pass_every_case(controller: str) -> None:
    found = fp.conform(controller, suite="loss")
    assert found.passed, [(one.case.name, one.checks) for one in found.results if one.verdict == FAIL]


@pytest.mark.parametrize(("controller", "like"), [(Reno, "reno"), (Cubic, "cubic")])
def test_the_controllers_in_python_pass_without_a_mistake(controller: type[fp.Controller], like: str) -> None:
    names = [name for name in NAMES if name not in NOT_IN_PYTHON]
    found = fp.conform(controller, names, suite="loss", like=like)
    assert found.passed, [(one.case.name, one.checks) for one in found.results if one.verdict == FAIL]
