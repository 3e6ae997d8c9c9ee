"""`fullpipe conform`: the cases hold a BBRv3 to the draft, and notice what is none."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from fullpipe import _native, evidence
from fullpipe.cli import app as cli
from fullpipe.conformance import pages, registry
from fullpipe.conformance.case import Case, Criterion, Measured, NotReachedError
from fullpipe.conformance.packet_logs import _job
from fullpipe.conformance.results import FAIL, NOT_APPLICABLE, PASS, Result
from fullpipe.conformance.run import conform
from fullpipe.conformance.stage import Lab
from fullpipe.report.figures.svg import Renderer
from fullpipe.runs.engines import pool
from fullpipe.runs.worlds import registry as worlds

ROOT = Path(__file__).parent.parent
# The draft's examples, A.1 to A.22.
EXAMPLES = range(1, 23)


@pytest.fixture(scope="module")
def bbr3() -> fp.ConformanceReport:
    return fp.conform("bbr3")


@pytest.fixture(scope="module")
def bbr1() -> fp.ConformanceReport:
    return fp.conform("bbr1")


@pytest.fixture(scope="module")
def cubic() -> fp.ConformanceReport:
    return fp.conform("cubic")


@pytest.fixture(scope="module")
def reno() -> fp.ConformanceReport:
    return fp.conform("reno")


def verdicts(of: fp.ConformanceReport) -> dict[str, str]:
    return {one.case.name: one.verdict for one in of.results}


def unexpected(of: fp.ConformanceReport) -> list[str]:
    """Cases that fail and should not, and the other way round."""
    name = of.controller
    return [
        f"{one.case.name}: {one.verdict} {one.reason}"
        for one in of.results
        if (one.verdict == FAIL) != (name in one.case.failed_by)
    ]


DROPS = ["rate-down-10x-1bdp", "rate-down-10x-4bdp"]


def test_bbr3_passes_every_case_but_the_known_bugs_of_the_draft(bbr3: fp.ConformanceReport) -> None:
    assert set(verdicts(bbr3).values()) == {PASS, FAIL}
    assert bbr3.failures == DROPS and unexpected(bbr3) == []


def test_a_repaired_bbr3_passes_the_known_bugs_of_the_draft() -> None:
    assert fp.conform("bbr3:profile=repaired", DROPS).passed


def test_bbr1_fails_exactly_where_documented(bbr1: fp.ConformanceReport) -> None:
    assert unexpected(bbr1) == []
    assert not bbr1.passed
    assert len(bbr1.failures) >= 15


def test_loss_based_controllers_fail_by_design(
    cubic: fp.ConformanceReport, reno: fp.ConformanceReport
) -> None:
    for found in (cubic, reno):
        assert unexpected(found) == []
        for one in found.results:
            assert (one.verdict == NOT_APPLICABLE) == one.case.phases, one.case.name
            assert (one.reason == f"{found.controller} has no phases of BBR") == one.case.phases
        assert 5 <= len(found.failures) <= 6


@pytest.mark.parametrize("controller", ["bbr3:profile=linux", "bbr3:profile=linux,ecn=1"])
def test_deliberate_profile_difference_is_not_judged(controller: str) -> None:
    found = fp.conform(controller, ["drain-time", "startup-plateau"])
    assert verdicts(found) == {"startup-plateau": PASS, "drain-time": NOT_APPLICABLE}
    assert found.results[1].reason == "Google's kernel drains until the queue is gone"


def test_google_kernel_passes_undiffering_cases() -> None:
    page = (
        (ROOT / "docs" / "how-to" / "conform.md")
        .read_text(encoding="utf-8")
        .partition("## Google's kernel")[2]
    )
    page = page.partition("\n## ")[0]
    name = "bbr3:profile=linux"
    found = fp.conform(name)
    marked = {case.name for case in registry.every() if name in case.differs}
    assert found.failures == DROPS and unexpected(found) == []
    assert {case for case, verdict in verdicts(found).items() if verdict == NOT_APPLICABLE} == marked
    applicable = len(found.results) - len(marked)
    assert f"passes {applicable - len(DROPS)} of the {applicable} that apply" in page
    assert set(re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE)) == marked


def as_changed(controller: str, name: str, **changes: object) -> fp.ConformanceReport:
    """How a controller fares in a case of which something is changed."""
    (case,) = [case for case in registry.every() if case.name == name]
    registry._registered["changed"] = replace(case, name="changed", **changes)  # type: ignore[arg-type]
    try:
        return fp.conform(controller, ["changed"])
    finally:
        del registry._registered["changed"]


def test_whoever_differs_would_fail() -> None:
    for case in registry.every():
        for name in case.differs:
            assert as_changed(name, case.name, differs={}).failures == ["changed"], case.name


def test_deeper_drain_cruises_with_stretched_acks() -> None:
    drains = "bbr3:profile=linux,probe_down_gain=0.85"
    assert as_changed(drains, "stretched-acks-64", differs={}).passed


@pytest.mark.parametrize("controller", ["bbr3", "bbr3:profile=linux"])
def test_probe_rtt_timing_decides_no_verdict(controller: str) -> None:
    # Seeds with which ProbeRTT comes in the second or third probe, of either profile.
    assert as_changed(controller, "up-loss", seeds=(1, 12, 13, 14, 16, 18, 20)).passed


def test_expected_failures_name_controller_and_section() -> None:
    known = {one["name"] for one in fp.controllers()}
    for case in registry.every():
        assert {name.partition(":")[0] for name in case.failed_by} <= known, case.name
        for why in case.failed_by.values():
            assert re.match(r"\d(\.\d+)*(, \d(\.\d+)*)?: ", why), why


def test_every_draft_example_has_case() -> None:
    sources = " ".join(case.source for case in registry.every())
    assert [number for number in EXAMPLES if not re.search(rf"\bA\.{number}\b", sources)] == []


def test_every_criterion_has_source() -> None:
    names = [case.name for case in registry.every()]
    assert len(set(names)) == len(names)
    for case in registry.every():
        assert re.fullmatch(r"[a-z0-9.-]+", case.name)
        assert case.title and case.source and case.about
        assert all(criterion.source for criterion in case.criteria)
        assert not case.phases or not {"cubic", "reno"} & set(case.failed_by)


MARKS = {PASS: "pass", FAIL: "**fail**", NOT_APPLICABLE: "–"}


def test_page_describes_cases_and_results(
    bbr3: fp.ConformanceReport,
    bbr1: fp.ConformanceReport,
    cubic: fp.ConformanceReport,
    reno: fp.ConformanceReport,
) -> None:
    page = (ROOT / "docs" / "how-to" / "conform.md").read_text(encoding="utf-8")
    for number, case in enumerate(registry.every()):
        marks = [MARKS[of.results[number].verdict] for of in (bbr3, bbr1, cubic, reno)]
        if case.name.startswith("law."):
            assert marks == ["pass"] * 4, case.name
            continue
        name = f'<a id="{case.name}"></a>`{case.name}`'  # Other pages link to it.
        cells = (name, case.title, *marks)
        assert f"| {' | '.join(cells)} |\n" in page, f"docs/how-to/conform.md lacks the line of {case.name}"
    laws = sum(case.name.startswith("law.") for case in registry.every())
    assert f"All four obey the {laws} laws" in page
    assert len(re.findall(r"^\| <a id=.*`[a-z0-9.-]+` \|.* \| (?:pass|–) \|$", page, re.MULTILINE)) > 40
    for of in (bbr3, bbr1, cubic, reno):
        count = {mark: list(verdicts(of).values()).count(mark) for mark in MARKS}
        applicable = count[PASS] + count[FAIL]
        assert f"| {of.controller} | {count[PASS]} of {applicable} | {count[NOT_APPLICABLE]} |\n" in page


def test_parameter_contradicting_draft_fails() -> None:
    for controller, case in (
        ("bbr3:headroom=0.5", "cruise-headroom"),
        ("bbr3:probe_rtt_interval_s=8", "probe-rtt"),
        ("bbr3:full_bw_rounds=1", "startup-plateau"),
        ("bbr3:drain_rounds=20", "drain-time"),
        ("bbr3:probe_down_pacing_gain=0.5", "down-inflight"),
        ("bbr3:probe_rtt_cwnd_gain=1", "probe-rtt"),
    ):
        found = fp.conform(controller, [case])
        assert found.failures == [case], controller
        assert fp.conform("bbr3", [case]).passed


def test_same_controller_repeats_values(bbr3: fp.ConformanceReport) -> None:
    again = fp.conform("bbr3", ["up-loss", "random-loss"])
    before = {one.case.name: one.checks for one in bbr3.results}
    assert all(before[one.case.name] == one.checks for one in again.results)


class Phased(fp.Controller):
    """It shows phases and no estimate of the bandwidth."""

    paced = True
    cwnd = 100
    pacing_rate_bps = 15e6
    phase = "startup"

    def on_ack(self, ack: _native.Ack) -> None:
        delivered = ack.connection.delivered
        self.phase = "startup" if delivered < 100 else "drain" if delivered < 400 else "probe_bw_down"


def test_hidden_quantity_is_not_measured() -> None:
    (found,) = fp.conform(Phased, ["drain-inflight"]).results
    gain, _, following = found.checks
    assert (found.verdict, found.reason) == (FAIL, "")
    assert (gain.value, gain.measured, following.met) == (None, "never", True)


def played(case: Case) -> Result:
    registry._registered[case.name] = case
    try:
        (one,) = conform("bbr3", [case.name]).results
    finally:
        del registry._registered[case.name]
    return one


def test_failure_reason_names_seed() -> None:
    def play(lab: Lab) -> Measured:
        if lab.seed == 2:
            raise NotReachedError("a probe")
        return {"x": None}

    reported = {"title": "t", "source": "s", "about": "a"}
    case = Case(name="of-seeds", criteria=(Criterion("x", "x", low=2),), play=play, seeds=(1, 2), **reported)
    one = played(case)
    assert one.checks[0].seed == 1 and "a probe" in one.reason and one.reason_seed == 2


def test_the_worst_seed_counts() -> None:
    values = {1: 3.0, 2: 9.0, 3: None}

    def made(seeds: tuple[int, ...]) -> Case:
        return Case(
            name="of-seeds",
            title="t",
            source="s",
            about="a",
            criteria=(Criterion("x", "x", low=2, high=8),),
            play=lambda lab: {"x": values[lab.seed]},
            seeds=seeds,
        )

    def judged(seeds: tuple[int, ...]) -> tuple[str, float | None, int]:
        one = played(made(seeds))
        return one.verdict, one.checks[0].value, one.checks[0].seed

    assert judged((1,)) == (PASS, 3.0, 1)
    assert judged((1, 2)) == (FAIL, 9.0, 2)
    assert judged((2, 3, 1)) == (FAIL, None, 3)


def test_unfailable_case_is_refused() -> None:
    reported = {"title": "t", "source": "s", "about": "a", "play": lambda _: {}}
    with pytest.raises(ValueError, match="without bounds"):
        Case(name="x", criteria=(Criterion("x", "x"),), **reported)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs criteria"):
        Case(name="x", criteria=(), **reported)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="needs a seed"):
        Case(name="x", criteria=(Criterion("x", "x", low=1),), seeds=(), **reported)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no criterion"):
        Case(name="x", criteria=(Criterion("x", "x", low=1),), main="y", **reported)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="own cases"):
        registry.register(next(iter(registry.every())))
    with pytest.raises(TypeError, match="is no Case"):
        registry.register("drain-time")  # type: ignore[arg-type]


def test_new_case_example_runs() -> None:
    readme = (ROOT / "python" / "fullpipe" / "conformance" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    try:
        exec(compile(block, "README.md", "exec"), {"__name__": "readme"})
        assert "half-rate-queue" in {case.name for case in registry.every()}
    finally:
        registry._registered.pop("half-rate-queue", None)


class Steady(fp.Controller):
    """A rate, and a window that does not limit it."""

    paced = True
    cwnd = 200
    pacing_rate_bps = 15e6


class Raises(fp.Controller):
    """It fails when the first loss is reported."""

    def on_lost(self, lost: object) -> None:
        raise ZeroDivisionError("a loss")


class RaisesAtOnce(fp.Controller):
    """It fails before the run."""

    def __init__(self) -> None:
        raise ValueError("no")


def test_custom_python_controller_is_judged() -> None:
    found = fp.conform(Steady, ["deep-buffer", "drain-time", "law.run", "law.jitter", "law.timeout"])
    assert verdicts(found) == {
        "deep-buffer": PASS,
        "drain-time": NOT_APPLICABLE,
        "law.run": PASS,
        "law.jitter": NOT_APPLICABLE,
        "law.timeout": FAIL,
    }
    assert found.controller == "Steady"
    (timeout,) = [one for one in found.results if one.case.name == "law.timeout"]
    assert timeout.reason.startswith("TimeoutCollapsesTheWindow at ")


def test_raising_controller_fails_only_that_case() -> None:
    found = fp.conform(Raises, ["random-loss", "law.losses", "law.idle"])
    assert verdicts(found) == {"random-loss": FAIL, "law.losses": FAIL, "law.idle": PASS}
    for one in found.results[:2]:
        assert "on_lost raised ZeroDivisionError: a loss" in one.reason


def test_unconstructible_controller_is_an_error() -> None:
    with pytest.raises(fp.ControllerError, match="no"):
        fp.conform(RaisesAtOnce, ["deep-buffer"])


@pytest.mark.parametrize("name", ["", "drain", "no-such-case", "../drain-time"])
def test_an_unknown_case_is_an_error(name: str) -> None:
    with pytest.raises(fp.ScenarioError, match="fullpipe conform --list") as raised:
        fp.conform("bbr3", ["drain-time", name])
    assert raised.value.field == "case"


def test_unknown_controllers_and_worlds_are_errors() -> None:
    with pytest.raises(fp.ScenarioError, match="bbr9"):
        fp.conform("bbr9")
    with pytest.raises(fp.ScenarioError, match="no_such"):
        fp.conform("bbr3:no_such=1")
    with pytest.raises(fp.ScenarioError, match="step by step"):
        conform("bbr3", world="kernel")


def invoke(*words: str) -> "tuple[int, str, str]":
    done = CliRunner().invoke(cli.app, ["conform", *words])
    return done.exit_code, done.stdout, done.stderr


def test_command_prints_verdicts_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = invoke("bbr3", "--case", "drain-inflight", "--case", "law.idle", "--out", "kept")
    assert code == 0, err
    assert "drain-inflight" in out and "pass" in out and "0.9 to 1.05" in out
    assert "bbr3 passes 2 of 2 applicable cases." in out
    code, out, err = invoke("bbr1", "--case", "drain-inflight", "--json")
    assert code == 1, err
    reported = json.loads(out)
    assert reported["passed"] is False
    assert reported["text"].startswith("draft-ietf-ccwg-bbr-06")
    (case,) = reported["cases"]
    assert case["verdict"] == "fail" and case["by_design"].startswith("5.3.2")
    assert not (tmp_path / "out").exists(), "--json writes nothing by itself"
    pages = sorted(
        path.relative_to(tmp_path / "kept").as_posix() for path in (tmp_path / "kept").rglob("*.*")
    )
    # Nothing failed, so that there is no scenario.
    assert pages == ["cases/drain-inflight.html", "cases/law.idle.html", "conformance.json", "index.html"]
    page = (tmp_path / "kept" / "cases" / "drain-inflight.html").read_text(encoding="utf-8")
    assert "<svg" in page and "../index.html" in page and "0.495 to 0.505" in page
    index = (tmp_path / "kept" / "index.html").read_text(encoding="utf-8")
    assert 'href="cases/drain-inflight.html"' in index


def test_inapplicable_cases_are_one_row_and_lead_to_other_suite(tmp_path: Path) -> None:
    names = ("drain-inflight", "startup-plateau", "law.idle")
    asked = [word for name in names for word in ("--case", name)]
    code, out, err = invoke("cubic", *asked, "--out", str(tmp_path / "kept"))
    assert code == 0, err
    assert "2 cases" in out and "cubic has no phases of BBR" in out and "startup-plateau" not in out
    assert "Cases for cubic: --suite loss" in out
    told = json.loads((tmp_path / "kept" / "conformance.json").read_text())
    assert {one["name"] for one in told["cases"]} == set(names)
    assert all(name in (tmp_path / "kept" / "index.html").read_text() for name in names)
    _, out, _ = invoke("copa", *asked)
    assert "If copa is loss-based: --suite loss --like cubic" in out
    # One case keeps its name, and a BBR needs no hint.
    _, out, _ = invoke("cubic", *asked[2:])
    assert "startup-plateau" in out and "--suite" not in out
    _, out, _ = invoke("bbr3", *asked)
    assert "drain-inflight" in out and "--suite" not in out


def test_results_keyed_by_case_controller_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("bbr3", "--case", "drain-inflight", "--record", "--json")
    code, _, err = invoke(*asked)
    assert code == 2 and "results/schema" in err
    code, _, err = invoke("--program", "x", "--server", "y", "--record")
    assert code == 2 and "--record is for controllers" in err
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "schema").symlink_to(Path(__file__).parents[1] / "results" / "schema")
    assert invoke(*asked)[0] == 0
    (line,) = evidence.read(tmp_path / "results" / "conformance.jsonl")
    assert line["key"] == {"case": "drain-inflight", "subject": "bbr3", "world": "sim"}
    assert line["made"]["command"] == "fullpipe conform bbr3 --case drain-inflight --record"
    assert evidence.age(line, {"sim": {worlds.named("sim").build()}}) == ""
    assert line["outcome"] == "judged" and all(one["value"] for one in line["criteria"])


def test_failure_scenario_reproduces_in_simulator(tmp_path: Path) -> None:
    found = fp.conform("cubic", ["deep-buffer"])
    found.write(tmp_path)
    played = found.results[0].played[0]
    (again,) = fp.run(str(tmp_path / "cases" / "deep-buffer.toml"), world="sim", seeds=[1]).runs
    assert again.summary["flows"] == played.runs.runs[0].summary["flows"]


def test_logs_repeat_what_was_played(tmp_path: Path) -> None:
    found = fp.conform("bbr3", ["drain-time", "up-loss", "law.idle"])
    logged, without = found.log(tmp_path / "logs")
    assert sorted(path.name for path in logged) == [
        "sim-bbr3-drain-time-1-seed1.qlog",
        "sim-bbr3-drain-time-1-seed1.sqlog",
        "sim-bbr3-drain-time-2-seed1.qlog",
        "sim-bbr3-drain-time-2-seed1.sqlog",
    ]
    assert without == ["up-loss"], "a schedule has no buffers"
    played = found.results[0].played[0]
    assert played.runs.runs[0].summary["flows"][0]["delivered_bytes"] > 0
    again = pool.run(worlds.named("sim"), [_job(played, None)])[0]
    assert again.summary["flows"] == played.runs.runs[0].summary["flows"]
    assert again.summary["flows"][0]["end_ns"] < 5e9, "no longer than it was played"


def test_controllers_do_not_mix_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ("--case", "drain-time", "--case", "policer", "--qlog", "logs", "--out")
    assert invoke("bbr3", *asked, "one")[0] == 0
    held = (tmp_path / "one" / "index.html").read_bytes()
    code, _, err = invoke("cubic", *asked, "one")
    assert code == 2 and '--out "one" holds results of the conformance of bbr3; name another folder' in err
    assert (tmp_path / "one" / "index.html").read_bytes() == held
    assert invoke("cubic", *asked, "two")[0] == 0
    assert sorted(path.name for path in (tmp_path / "logs").glob("*.qlog")) == [
        "sim-bbr3-drain-time-1-seed1.qlog",
        "sim-bbr3-drain-time-2-seed1.qlog",
        "sim-bbr3-policer-seed1.qlog",
        "sim-cubic-policer-seed1.qlog",
    ]


def test_one_has_no_plural() -> None:
    assert Criterion("k", "rounds", high=1, unit="rounds", source="").bounds == "at most 1 round"
    assert Criterion("k", "rounds", low=1, high=2, unit="rounds", source="").bounds == "1 to 2 rounds"
    one = Criterion("k", "time", high=1, unit="ms", source="")
    assert (one.bounds, one.show(1.0)) == ("at most 1 ms", "1 ms")


def test_zero_has_no_sign() -> None:
    """As the rounding error of an estimate that is exact: there is no "-0 %"."""
    one = Criterion("k", "too little", high=5, unit="%", source="")
    assert (one.show(-1e-14), one.show(-0.0), one.show(1e-14)) == ("0 %", "0 %", "0 %")


def test_unmeasurable_value_is_valid_json() -> None:
    """As the mean of nothing."""
    case = Case("of-nothing", "t", "s", "a", (Criterion("x", "x", high=8),), lambda _: {"x": math.nan})
    registry._registered[case.name] = case
    try:
        found = conform("bbr3", [case.name])
    finally:
        del registry._registered[case.name]
    assert [one.verdict for one in found.results] == [FAIL]
    assert found.results[0].checks[0].measured == "nothing to measure"
    assert json.loads(found.to_json())["cases"][0]["criteria"][0]["measured"] is None
    assert "NaN" not in found.to_json()


def test_parameter_order_does_not_matter() -> None:
    for controller in ("bbr3:profile=linux", "bbr3:ecn=0,profile=linux", "bbr3:profile=linux,ecn=0"):
        assert verdicts(fp.conform(controller, ["drain-time"])) == {"drain-time": NOT_APPLICABLE}, controller
    assert verdicts(fp.conform("bbr3:profile=draft", ["drain-time"])) == {"drain-time": PASS}


def test_an_index_has_all_its_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> str:
        raise KeyboardInterrupt

    found = fp.conform("bbr3", ["law.idle"])
    monkeypatch.setattr(pages, "_page", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.write(tmp_path)
    assert not (tmp_path / "index.html").exists()


def test_no_logs_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = invoke("bbr3", "--case", "law.idle", "--qlog", "logs", "--out", "kept")
    assert code == 0 and "Logs: none; the laws" in out + err
    code, out, err = invoke("cubic", "--case", "drain-time", "--qlog", "logs", "--out", "other")
    assert code == 0 and "Logs: none; the laws" in out + err


def test_command_lists_cases_without_controller() -> None:
    code, out, _ = invoke("--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [case.name for case in registry.every()]
    code, out, _ = invoke("--list", "--json", "--case", "drain-time")
    assert code == 0
    assert json.loads(out)[0]["criteria"][0].endswith("at least 1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name a controller, or give --list or --program"),
        (("bbr9",), 'fullpipe: "bbr9" is not available'),
        (("bbr3:profile=none",), 'fullpipe: "profile=none" is not one of'),
        (("bbr3", "--case", "drian-time"), 'drian-time" cannot be used'),
        (("bbr3", "--case", "drian-time"), "use drain-time"),
        (("bbr3", "--qlog", "/dev/null/x"), '--qlog "/dev/null/x" cannot be used'),
        (("mine.py:Missing",), "mine.py"),
        (("bbr3", "--case", "law.idle", "--out", "/dev/null/x"), "--out"),
    ],
)
def test_command_line_errors_are_one_sentence(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = invoke(*words)
    assert (code, out) == (2, "")
    assert message in err and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_command_line_accepts_controller_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import fullpipe as fp\n\n\nclass Mine(fp.Controller):\n    cwnd = 40\n")
    code, out, err = invoke(f"{file}:Mine", "--case", "tail-loss", "--json")
    assert code in (0, 1), err
    assert json.loads(out)["cases"][0]["verdict"] in ("pass", "fail")


def test_a_notebook_shows_a_table() -> None:
    found = fp.conform("bbr3", "drain-inflight")
    assert "<table" in found._repr_html_() and "drain-inflight" in found._repr_html_()
    assert repr(found) == "<ConformanceReport: bbr3 passes 1 of 1 applicable case.>"


@pytest.mark.parametrize(
    ("controller", "by_design"),
    [("newreno", True), ("cubic9438", True), ("cubic:fast_convergence=0", False)],
)
def test_expected_failure_covers_equivalent_specification(controller: str, by_design: bool) -> None:
    """Not with other parameters: then it is another controller."""
    found = fp.conform(controller, cases=["random-loss"])
    (result,) = found.results
    assert result.verdict == FAIL
    assert (found.expected(result) is not None) is by_design


def test_pages_repeat_whatever_was_drawn_before(tmp_path: Path) -> None:
    def drawn(*cases: str) -> str:
        with Renderer() as renderer:
            drawing = pages.Drawing(renderer)
            report = conform("bbr3", [*cases], workers=1, judged=drawing.begin)
            folder = report.write(tmp_path / cases[0], drawing)
        text = (folder / "cases" / "deep-buffer.html").read_text(encoding="utf-8")
        return text.partition("</main>")[0].rpartition("</figure>")[0]

    first = drawn("deep-buffer", "clean-path")
    assert 'clip-path="url(#f1-clip' in first
    assert drawn("clean-path", "deep-buffer") == first
