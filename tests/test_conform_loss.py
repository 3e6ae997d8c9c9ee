"""`fullpipe conform --suite loss`: cases hold CUBIC, Reno and HyStart++ to the RFCs, and notice mistakes."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from fullpipe.cli import app as cli
from fullpipe.conformance import registry as bbr3
from fullpipe.conformance import runners
from fullpipe.conformance.loss import registry
from fullpipe.conformance.loss.case import TRAITS, traits
from fullpipe.conformance.loss.play import growths, rounds_from
from fullpipe.conformance.loss.replaced import REPLACED
from fullpipe.conformance.packet_logs import _job
from fullpipe.conformance.results import FAIL, NOT_APPLICABLE, NOT_JUDGED, PASS
from fullpipe.conformance.stage import Seen, Stage
from fullpipe.runs.engines import pool
from fullpipe.runs.worlds import registry as worlds
from loss_mistakes import Cubic, Reno

# For each case a controller that makes a mistake, and what it is like.
MISTAKES: dict[str, tuple[object, str]] = {
    "initial-window": (Reno.using(mistake="large-start"), "reno"),
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
    "prr-no-burst": (Reno, "reno,prr"),
    "css-growth": (Cubic.using(mistake="css-twice"), "cubic,hystartpp"),
    "css-rounds": (Cubic.using(mistake="css-for-good"), "cubic,hystartpp"),
    "css-resumes": (Cubic.using(mistake="css-for-good"), "cubic,hystartpp"),
    "css-not-by-jitter": (Cubic.using(mistake="leaves-by-a-spike"), "cubic,hystartpp"),
    "css-least-rise": (Cubic.using(mistake="css-by-an-eighth"), "cubic,hystartpp"),
    "css-most-rise": (Cubic.using(mistake="css-by-an-eighth"), "cubic,hystartpp"),
    "css-initial-only": (Cubic.using(mistake="css-again"), "cubic,hystartpp"),
    "css-flat-curve": (Cubic.using(mistake="exit-without-maximum"), "cubic,hystartpp"),
}
# What the controllers in Python do not do by themselves.
NOT_IN_PYTHON = {"pause-no-burst"}
NAMES = [case.name for case in registry.every()]


def verdicts(of: fp.ConformanceReport) -> dict[str, str]:
    return {one.case.name: one.verdict for one in of.results}


@pytest.fixture(scope="module")
def newreno() -> fp.ConformanceReport:
    return fp.conform("newreno", suite="loss")


def test_every_case_has_failing_controller() -> None:
    assert set(MISTAKES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_fails_its_case(name: str) -> None:
    controller, like = MISTAKES[name]
    found = fp.conform(controller, [name], suite="loss", like=like)  # type: ignore[arg-type]
    assert found.failures == [name], found.results[0].checks
    # It fails by what is measured, not because the play did not come to it.
    assert any(check.value is not None for check in found.results[0].checks) or name == "css-rounds"


def test_cubic9438_passes_every_case() -> None:
    found = fp.conform("cubic9438", suite="loss")
    assert found.passed, [(one.case.name, one.checks) for one in found.results if one.verdict == FAIL]


def test_newreno_passes_every_case(newreno: fp.ConformanceReport) -> None:
    names = [
        case.name for case in registry.every() if "hystartpp" in case.needs and "cubic" not in case.needs
    ]
    for found in (newreno, fp.conform("newreno:hystartpp=1", names, suite="loss")):
        assert found.passed, [(one.case.name, one.checks) for one in found.results if one.verdict == FAIL]


@pytest.mark.parametrize("controller", ["cubic", "reno"])
def test_linux_fails_where_rfc_differs(controller: str) -> None:
    found = fp.conform(controller, suite="loss")
    by_design = [case.name for case in registry.every() if controller in case.failed_by]
    assert found.failures == by_design


@pytest.mark.parametrize(("controller", "like"), [(Reno, "reno"), (Cubic, "cubic")])
def test_correct_python_controllers_pass(controller: type[fp.Controller], like: str) -> None:
    names = [name for name in NAMES if name not in NOT_IN_PYTHON]
    found = fp.conform(controller, names, suite="loss", like=like)
    assert found.passed, [(one.case.name, one.checks) for one in found.results if one.verdict == FAIL]


def test_cases_apply_by_controller_traits(newreno: fp.ConformanceReport) -> None:
    for one in newreno.results:
        lacking = set(one.case.needs) - {"loss", "reno"}
        assert (one.verdict == NOT_APPLICABLE) == bool(lacking), one.case.name
    reasons = {one.reason for one in newreno.results if one.verdict == NOT_APPLICABLE}
    assert reasons == {
        "newreno is not CUBIC",
        "newreno has no HyStart++",
        "newreno has no Proportional Rate Reduction",
    }


def test_non_loss_based_controllers_are_skipped() -> None:
    found = fp.conform("bbr3", ["decrease-cubic", "minimum-window"], suite="loss")
    assert [one.reason for one in found.results] == ["bbr3 is not loss-based"] * 2
    assert found.summary == "bbr3 passes 0 of 0 applicable cases; 2 are not applicable."


@pytest.mark.parametrize(
    ("name", "like", "expected"),
    [
        ("cubic9438", "any", {"cubic", "hystartpp"}),
        ("cubic9438:c=0.5, hystartpp=0", "any", {"cubic"}),
        ("newreno:hystartpp=1", "any", {"reno", "hystartpp"}),
        ("noq:cubic", "any", {"cubic"}),
        ("smoltcp:cubic", "any", {"cubic"}),
        ("aioquic:reno", "any", {"reno"}),
        ("aioquic:reno", "cubic,hystartpp", {"cubic", "hystartpp"}),
        ("reno", "any", {"reno", "prr"}),
        ("mine.py:Mine", "any", set()),
        ("mine.py:Mine", "cubic, hystartpp", {"cubic", "hystartpp"}),
    ],
)
def test_name_or_option_determines_traits(name: str, like: str, expected: set[str]) -> None:
    assert traits(name, like, own=name.startswith("mine")) == {"loss", *expected}


def test_unknown_words_are_errors() -> None:
    with pytest.raises(fp.ScenarioError, match="cubik"):
        fp.conform(Reno, suite="loss", like="cubik")
    with pytest.raises(fp.ScenarioError, match="choose one of these"):
        fp.conform("reno", suite="lossy")
    with pytest.raises(fp.ScenarioError, match="--suite loss --list"):
        fp.conform("reno", ["drain-time"], suite="loss")
    with pytest.raises(fp.ScenarioError, match="whose window is seen"):
        fp.conform(fp.Program("x", "y"), suite="loss")


def test_every_case_has_source() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 50
    assert not set(NAMES) & {case.name for case in bbr3.every()}, "evidence and pages go by the name"
    for case in registry.every():
        assert re.fullmatch(r"[a-z-]+", case.name)
        assert case.title and case.about
        assert re.search(r"RFC \d{4} |draft-ietf-ccwg-ratelimited-increase \d", case.source), case.name
        assert all(criterion.source for criterion in case.criteria)
        assert re.fullmatch(r"([\w-]+/[\w-]+#\d+(, )?)*", case.bugs)
        assert set(case.needs) <= set(TRAITS)
        assert set(case.failed_by) <= {one["name"] for one in fp.controllers()}


def test_replaced_entries_refer_to_cases() -> None:
    for one in REPLACED:
        assert set(one.case.split(", ")) <= set(NAMES)


def test_logs_repeat_what_was_played(tmp_path: Path) -> None:
    found = fp.conform("cubic9438", ["decrease-cubic", "css-growth"], suite="loss")
    logged, without = found.log(tmp_path / "logs")
    assert without == [] and len(logged) == 4
    for one in found.results:
        (played,) = one.played
        again = pool.run(worlds.named("sim"), [_job(played, None)])[0]
        assert again.summary["flows"] == played.runs.runs[0].summary["flows"]


def invoke(*words: str) -> "tuple[int, str, str]":
    done = CliRunner().invoke(cli.app, ["conform", *words])
    return done.exit_code, done.stdout, done.stderr


def test_command_runs_and_lists_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = invoke("--suite", "loss", "--list")
    assert code == 0 and [line.split()[0] for line in out.splitlines()] == NAMES
    code, out, _ = invoke("--suite", "loss", "--list", "--json", "--case", "decrease-cubic")
    (listed,) = json.loads(out)
    assert (code, listed["needs"], listed["bugs"]) == (0, ["cubic"], "microsoft/msquic#2231")
    code, out, err = invoke("cubic9438", "--suite", "loss", "--case", "decrease-cubic", "--json")
    assert code == 0, err
    reported = json.loads(out)
    assert reported["text"].startswith("RFC 9438") and reported["cases"][0]["verdict"] == PASS


def test_failure_has_pages_of_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = invoke("cubic", "--suite", "loss", "--case", "outage-flat-curve", "--out", "kept")
    assert code == 1, err
    assert "by design: 4.8: Linux forgets W_max" in " ".join(out.split())
    index = (tmp_path / "kept" / "index.html").read_text(encoding="utf-8")
    assert "cubic against the cases of loss-based control" in index and "RFC 9438 (CUBIC)" in index
    page = (tmp_path / "kept" / "cases" / "outage-flat-curve.html").read_text(encoding="utf-8")
    assert "Expected: 4.8: Linux forgets W_max" in page and "draft 4.8" not in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cubic", "--suite", "lossy"), '--suite: "lossy" cannot be used'),
        (("cubic", "--suite", "loss", "--record"), "--record"),
        (("cubic", "--suite", "loss", "--like", "cubik"), "cubik"),
        (("cubic", "--like", "cubic"), "--like"),
        (("--program", "x", "--server", "y", "--suite", "loss"), "--program"),
    ],
)
def test_command_line_errors_are_one_sentence(words: tuple[str, ...], message: str) -> None:
    code, out, err = invoke(*words)
    assert (code, out) == (2, "")
    assert message in err and err.count("\n") == 1


def test_what_an_adapter_loses_shows_its_recovery() -> None:
    columns = {
        "connected": [False, True, True, True, True, True, True],
        "phase": [None, *["startup"] * 4, "recovery", "startup"],
        "lost": [0, 0, 0, 5, 5, 5, 5],
        "segments_sent": [1, 20, 40, 60, 80, 100, 120],
        "delivered_segments": [0, 10, 30, 30, 54, 55, 90],
    }
    shown = [None, "open", "open", "recovery", "recovery", "recovery", "open"]
    assert runners._States(tells_losses=True).of(columns) == shown
    # The state is kept from one answer to the next.
    states = runners._States(tells_losses=True)
    halves = [{key: part[of] for key, part in columns.items()} for of in (slice(4), slice(4, None))]
    assert [one for half in halves for one in states.of(half)] == shown
    assert runners._States(tells_losses=False).of(columns) == [None] * 7


@pytest.mark.parametrize(
    ("behind_adapter", "said", "reason"),
    [
        (
            True,
            "stack mine (./mine) does not answer within 20 s; look for a loop",
            "stack mine is too slow: it does not answer within 20 s; look for a loop",
        ),
        (
            True,
            "fullpipe-quic: it does not answer within 60 s; build it again: `make quic`",
            "stack mine is too slow: it does not answer within 60 s",
        ),
        (
            False,
            "fullpipe-quic: it does not answer within 60 s; build it again: `make quic`",
            "the world quic is too slow: it does not answer within 60 s",
        ),
        (True, "stack mine (./mine) has ended (exit status: 1)", None),
    ],
)
def test_a_case_that_takes_too_long_is_not_judged(
    behind_adapter: bool, said: str, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tired(runners.Simulated):
        def steps(self, *asked: Any) -> tuple[Sequence[Seen], bool]:
            if self._simulation.now > 1.5:  # The survey is over.
                self.tired()
            return super().steps(*asked)

        def tired(self, *_asked: Any) -> NoReturn:
            raise fp.WorldError(said)

    monkeypatch.setitem(runners.BEDS, "sim", Tired)
    monkeypatch.setattr("fullpipe.conformance.run._name", lambda _controller: "mine:reno")
    monkeypatch.setattr(runners.stacks, "behind", lambda names: names if behind_adapter else [])
    found = fp.conform("reno", ["clean-path"])
    (one,) = found.results
    assert (one.verdict, one.reason) == ((FAIL, said) if reason is None else (NOT_JUDGED, reason))
    assert not found.passed
    # Before the cases, there is nothing to judge.
    monkeypatch.setattr(runners.Simulated, "steps", Tired.tired)
    with pytest.raises(fp.WorldError, match=f"^{re.escape(reason or said)}$"):
        fp.conform("reno", ["clean-path"])


@pytest.mark.parametrize("tells_acks", [False, True])
def test_rounds_last_a_round_trip_without_reported_acks(tells_acks: bool) -> None:
    """A bed that shows what has arrived; taken for acknowledged, rounds of slow start are too short."""

    class Arrivals(runners.Simulated):
        def steps(self, *asked: Any) -> tuple[Sequence[Seen], bool]:
            seen, goes_on = super().steps(*asked)
            return [one._replace(delivered_segments=one.delivered_bytes // 1448) for one in seen], goes_on

    path = {"rate": "180 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"}
    flows = [{"controller": "reno", "start_jitter": "0 s"}]
    hosts = {"pacing": True}
    bed = Arrivals({"name": "arrivals", "duration": "5 s", "path": path, "hosts": hosts, "flows": flows}, 1)
    bed.tells_acks = tells_acks
    stage = Stage(bed, rate_bps=180e6, rtt_s=0.04, step_s=0.001, name="arrivals")
    stage.until(lambda look: look.round >= 4 and look.inflight > 0, 5, "a fourth round")
    factors = growths(rounds_from(stage, stage.now, 3))
    assert (min(factors) >= 1.8) is not tells_acks, factors
