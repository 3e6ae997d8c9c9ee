"""Controls: every claim has some, and a judge that lets a wrong controller through is found."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer

from conftest import command
from fullpipe import evidence
from fullpipe.runs.store import Store
from fullpipe.scenario.scenario import from_document
from fullpipe_studies import catalogue, controls, run
from fullpipe_studies import command as study
from fullpipe_studies.catalogue import About, Built
from fullpipe_studies.checks import Over, within
from fullpipe_studies.claim import Check, Claim, Control, Data, Finding, Grid, Row, Size, Trial
from fullpipe_studies.controls import Answer, Controlled

CLAIMS = catalogue.find(["all"])


@pytest.mark.parametrize("claim", CLAIMS, ids=[one.id for one in CLAIMS])
def test_every_claim_has_two_controls_that_change_its_runs(claim: Built) -> None:
    names = [one.name for one in claim.claim.controls]
    assert len(set(names)) == len(names)
    assert len(names) >= controls.FEWEST or claim.claim.uncontrolled
    for control in claim.claim.controls:
        changed = 0
        for cell in claim.claim.grid.cells(Size.TINY):
            before, after = (
                from_document(one).alternatives[0] for one in (cell.document, control.replaced(cell.document))
            )
            changed += before.digest != after.digest
        assert changed, control


def fills(least_mbps: float) -> Built:
    """A claim that one flow of CUBIC or a constant rate has so much of 10 Mbit/s."""

    def document(controller: str) -> dict[str, Any]:
        return {
            "duration": "2 s",
            "path": {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "2 bdp"},
            "flows": [{"controller": controller}],
        }

    def measure(trial: Trial) -> Row:
        return {"mbps": trial.run.summary["total_goodput_bps"] / 1e6}

    def judge(data: Data) -> Sequence[Check]:
        cubic = data.values("mbps", controller="cubic")
        return [within("goodput", cubic, paper="it fills the pipe", least=least_mbps, shape=True)]

    claim = Claim(
        source="here",
        says="it fills the pipe",
        grid=Grid(factors={"controller": ("cubic", "reno")}, document=document),
        look_at="",
        measure=measure,
        figure=lambda _data: None,  # type: ignore[arg-type,return-value]
        judge=judge,
        subject=("cubic",),
        wrong=("fixed:rate=1", "reno"),
    )
    return Built("paper", "fills", About("Fills", "q", "m", "p"), claim)


def answers(built: Built, folder: Path) -> dict[str, Controlled]:
    plans = controls.plans(built, Size.QUICK)
    store = Store(folder)
    outcome = run.carry_out([task for plan in plans for task in plan.tasks], store)
    own, *wrong = (run.examine(plan, store, outcome).findings[0] for plan in plans)
    names = [one.name for one in built.claim.controls]
    return {name: Controlled.of(built.id, name, own, one) for name, one in zip(names, wrong, strict=True)}


def test_a_judge_rejects_a_control_or_is_found_not_to(tmp_path: Path) -> None:
    strict, lenient = (answers(fills(least), tmp_path) for least in (8, 0.5))
    assert strict["fixed:rate=1"].answer is Answer.REJECTED
    assert strict["fixed:rate=1"].verdict == "not reproduced"
    assert [one.what for one in strict["fixed:rate=1"].by] == ["goodput"]
    # Reno fills the pipe, too, and the lenient judge asks for nothing.
    assert strict["reno"].answer is lenient["fixed:rate=1"].answer is Answer.PASSED


def test_long_names_do_not_make_two_scenarios_one(tmp_path: Path) -> None:
    long = replace(fills(8), name="fills" * 20)
    plan, store = run.Plan(long, Size.QUICK, ("sim",), 3, 1), Store(tmp_path)
    (finding,) = run.examine(plan, store, run.carry_out(plan.tasks[:3], store)).findings
    assert finding.missing is not None and finding.missing.startswith("1 of 2 cells")
    (finding,) = run.examine(plan, store, run.carry_out(plan.tasks, store)).findings
    assert finding.missing is None and finding.fewer is None


def checked(least: float, *, shape: bool, ours: float = 1.0) -> Check:
    return within(f"shape {shape}", [ours] * 3, paper="words", least=least, shape=shape)


@pytest.mark.parametrize(
    ("own", "wrong", "answer"),
    [
        ((0, 0), (2, 0), Answer.REJECTED),
        ((0, 0), (0, 2), Answer.NUMBER),
        ((0, 0), (0, 0), Answer.PASSED),
        # What the claim's own controller misses rejects nothing.
        ((2, 0), (2, 0), Answer.PASSED),
        ((2, 0), (2, 2), Answer.NUMBER),
    ],
)
def test_only_checks_that_the_claim_meets_reject(
    own: tuple[float, float], wrong: tuple[float, float], answer: Answer
) -> None:
    first, second = (
        Finding("sim", [checked(shape, shape=True), checked(number, shape=False)])
        for shape, number in (own, wrong)
    )
    assert Controlled.of("a.b", "vegas", first, second).answer is answer


def test_missing_runs_of_either_side_give_no_answer() -> None:
    whole, wrong = (Finding("sim", [checked(least, shape=True)]) for least in (0, 2))
    for own, control in (
        (replace(whole, missing="1 of 2 cells"), wrong),
        (whole, replace(wrong, missing="1")),
    ):
        one = Controlled.of("a.b", "vegas", own, control)
        assert one.answer is Answer.NOT_JUDGED and not one.by
    assert Controlled.of("a.b", "vegas", whole, wrong).answer is Answer.REJECTED


@pytest.mark.parametrize("seeds", [1, 2])
def test_too_few_seeds_leave_a_control_undecided(seeds: int) -> None:
    own, wrong = (
        Finding("sim", [within("shape", [1.0] * seeds, paper="words", least=least, shape=True)])
        for least in (0, 2)
    )
    assert Controlled.of("a.b", "vegas", own, wrong).answer is Answer.UNDECIDED
    # A check without chance is decided by one run; the other may still reject.
    constant = within("model", [1.0], paper="words", least=0, over=Over.NOTHING)
    both = Finding("sim", [*wrong.checks, constant])
    assert Controlled.of("a.b", "vegas", own, both).answer is Answer.UNDECIDED


def test_a_control_keeps_labels_other_flows_and_parameters() -> None:
    flows = [
        {"controller": "bbr1:probe_gain=1.1,lt_bw=0", "count": 2},
        {"controller": "cubic", "label": "other"},
        {"controller": "bbr1", "label": "mine"},
    ]
    document = {"path": {"rate": "1 Mbit/s"}, "flows": flows}

    def swapped(name: str) -> list[dict[str, Any]]:
        flows: list[dict[str, Any]] = Control(name, ("bbr1",)).replaced(document)["flows"]
        return flows

    assert swapped("vegas") == [
        {"label": "bbr1:probe_gain=1.1,lt_bw=0", "controller": "vegas", "count": 2},
        flows[1],
        {"label": "mine", "controller": "vegas"},
    ]
    assert [one["controller"] for one in swapped("bbr1:probe_gain=1.0")] == [
        "bbr1:probe_gain=1.0,lt_bw=0",
        "cubic",
        "bbr1:probe_gain=1.0",
    ]
    queue = Control("fifo", ("codel", "pie")).replaced(
        {"path": {"queue": "codel:target=1ms"}, "flows": flows}
    )
    assert queue["path"]["queue"] == "fifo" and queue["flows"] == flows


def test_controls_are_run_printed_and_recorded(in_empty_folder: Path) -> None:
    schema = Path(__file__).parents[1] / "results" / "schema"
    shutil.copytree(schema, in_empty_folder / "results" / "schema")
    asked = ("study", "controls", "queue16.fig4", "--json")
    done = command(*asked, "--record")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    built = catalogue.built("queue16.fig4")
    assert built is not None
    assert [one["control"] for one in printed] == list(built.claim.wrong)
    assert sum(one["answer"] == Answer.REJECTED.value for one in printed) >= controls.FEWEST
    assert all(one["by"] for one in printed if one["answer"] == Answer.REJECTED.value)
    lines = evidence.read(in_empty_folder / "results" / controls.FILE)
    assert {line["key"]["control"] for line in lines} == {None, *built.claim.wrong}
    assert lines[0]["made"]["command"] == "fullpipe study controls queue16.fig4 --record"
    assert [one.data() for one in controls.controlled(lines)] == sorted(
        printed, key=lambda one: [line["key"]["control"] for line in lines].index(one["control"])
    )
    # The same runs serve again, and what is no control any more is gone.
    path = in_empty_folder / "results" / controls.FILE
    key = {"claim": "queue16.fig4", "world": "sim", "control": "reno"}
    evidence.replace(path, [lines[0] | {"key": key}])
    again = command(*asked, "--record")
    assert "30 runs found" in again.stderr
    assert [line["key"] for line in evidence.read(path)] == [line["key"] for line in lines]


@pytest.mark.parametrize(
    ("options", "fix"),
    [(("--seeds", "1000000000"), "give at most"), (("--record",), "run it in the repository")],
)
def test_mistakes_are_named_before_the_runs(
    options: tuple[str, ...], fix: str, in_empty_folder: Path
) -> None:
    done = command("study", "controls", "queue16.fig4", *options)
    assert done.returncode == 2 and fix in done.stderr and "Traceback" not in done.stderr
    assert not list(in_empty_folder.iterdir())


@pytest.mark.parametrize("failed", [0, 1])
def test_failed_runs_are_not_recorded(
    failed: int, in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(Path(__file__).parents[1] / "results" / "schema", in_empty_folder / "results" / "schema")
    examined = study._examined
    monkeypatch.setattr(study, "_examined", lambda *given: (failed, examined(*given)[1]))
    if failed:
        with pytest.raises(typer.Exit):
            study.controls(["queue16.probertt"], seeds=1, record=True)
    else:
        study.controls(["queue16.probertt"], seeds=1, record=True)
    assert (in_empty_folder / "results" / controls.FILE).exists() is not bool(failed)


RECORDED = evidence.read(Path(__file__).parents[1] / "results" / controls.FILE)


# Those whose controls take long, and are not recorded yet.
NOT_RUN = {
    *(f"imc19.{one}" for one in ("fig4", "fig5b", "fig5cd", "fig7a", "fig7b", "headline")),
    *("imc21.intra", "imc21.inter"),
}


def test_recorded_controls_are_those_declared() -> None:
    found: dict[str, set[str | None]] = {}
    for line in RECORDED:
        found.setdefault(line["key"]["claim"], set()).add(line["key"]["control"])
    declared = {one.id: {None, *one.claim.wrong} for one in CLAIMS if one.id not in NOT_RUN}
    assert found == declared, "run `fullpipe study controls CLAIM --record`"


# Their checks read the phase or the estimate, which BBR alone has: without these, no run could pass.
OF_BBR_ALONE = ("queue16.probertt", "queue16.startup")


@pytest.mark.parametrize("claim", [*OF_BBR_ALONE, "queue16.fig6"])
def test_claims_about_states_of_bbr_reject_wrong_bbrs(claim: str) -> None:
    found = [one for one in controls.controlled(RECORDED) if one.claim == claim]
    wrong = [one for one in found if one.control.startswith("bbr1:")]
    assert sum(one.answer is Answer.REJECTED for one in wrong) >= controls.FEWEST
    # Flows of Vegas do not get fair shares either, so that queue16.fig6 may have it.
    if claim in OF_BBR_ALONE:
        assert wrong == found


def test_page_lists_claims_that_reject_too_few() -> None:
    answers = controls.controlled(RECORDED)
    few = {
        one.id
        for one in CLAIMS
        if sum((each.claim, each.answer) == (one.id, Answer.REJECTED) for each in answers) < controls.FEWEST
    }
    recorded = {one.claim for one in answers}
    short, whole = (controls.markdown(RECORDED, {}, every=every) for every in (False, True))
    assert f"{len(recorded - few)} of {len(CLAIMS)} claims reject at least 2 controls. Not run: " in short
    assert all(one in short for one in NOT_RUN)
    for page, claims in ((short, recorded & few), (whole, recorded)):
        assert {
            line.split(" | ")[0][2:] for line in page.splitlines() if "." in line.split(" | ")[0][:20]
        } >= claims
        assert page.count("\n| ") == len(claims) + 1
