"""`fullpipe evaluate`: its rules, its report, a planted bad controller, and a command that is interrupted."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import fullpipe as fp
from conftest import command
from fullpipe import evidence
from fullpipe.measures.statistics import t_quantile
from fullpipe.runs import sweep
from fullpipe.runs.engines.local import Local
from fullpipe.runs.store import Store
from fullpipe_studies import run as running
from fullpipe_studies.evaluate import criteria, measures, recorded, report, scenes
from fullpipe_studies.evaluate.run import Plan, Result, Row, examine, row_of
from fullpipe_studies.evaluate.scene import START_JITTER, Made, Scene, Seen, Vary, made
from fullpipe_studies.evaluate.verdicts import Cell, Measure, Verdict, above, above_or_times, below, judge
from fullpipe_studies.evaluate.verdicts import overall as overall_of

RESULTS = Path(__file__).resolve().parents[1] / "results"


def unread(_seen: Seen) -> float:
    raise AssertionError("rules read no run")


GOODPUT = Measure("goodput", "%", unread, more=True)
DELAY = Measure("delay", "ms", unread, more=False, least=5)
# The standards' values; the candidate's are given beside them.
CUBIC, RENO = [50.0, 52, 51, 49, 50], [40.0, 41, 39, 40, 42]


def by_seed(values: list[float]) -> dict[int, float]:
    return dict(enumerate(values, 1))


def judged(ours: list[float], measure: Measure = GOODPUT, candidate: str = "mine") -> Cell:
    values = {candidate: ours, "cubic": CUBIC, "reno": RENO} | {candidate: ours}
    return judge("scene", measure, candidate, {name: by_seed(one) for name, one in values.items()})


@pytest.mark.parametrize(
    ("ours", "measure", "verdict"),
    [
        ([60.0, 62, 61, 59, 60], GOODPUT, Verdict.BETTER),
        ([60.0, 62, 61, 59, 60], DELAY, Verdict.WORSE),
        ([30.0, 31, 29, 30, 32], GOODPUT, Verdict.WORSE),
        ([30.0, 31, 29, 30, 32], DELAY, Verdict.BETTER),
        # Between the two standards.
        ([45.0, 46, 45, 44, 45], GOODPUT, Verdict.AS),
        # Above both, but by less than 10 %.
        ([53.0, 55, 54, 52, 53], GOODPUT, Verdict.AS),
        # Below both by more than 10 %, but by less than the least difference.
        ([35.5, 36, 35, 36, 37], DELAY, Verdict.AS),
        # The mean is 20 % above, and the interval includes zero.
        ([20.0, 120, 50, 30, 80], GOODPUT, Verdict.AS),
        # Too few seeds for an interval.
        ([90.0, 90], GOODPUT, Verdict.AS),
        ([], GOODPUT, Verdict.NOT_RUN),
    ],
)
def test_paired_differences_decide(ours: list[float], measure: Measure, verdict: Verdict) -> None:
    assert judged(ours, measure).verdict is verdict


def test_difference_has_paired_interval() -> None:
    """Paths that differ more than controllers hide nothing, because each difference is of one path."""
    paths = [10.0, 100, 1000, 400, 50]
    values = {"mine": [1.2 * one for one in paths], "cubic": paths, "reno": paths}
    cell = judge("scene", GOODPUT, "mine", {name: by_seed(one) for name, one in values.items()})
    pairs = [0.2 * one for one in paths]
    mean = sum(pairs) / 5
    spread = (sum((one - mean) ** 2 for one in pairs) / 4) ** 0.5
    difference = cell.differences["cubic"]
    assert difference.mean == pytest.approx(mean)
    assert difference.half_width == pytest.approx(t_quantile(4) * spread / 5**0.5)
    other_seeds = {
        name: {seed + 100: value for seed, value in by_seed(CUBIC).items()} for name in ("cubic", "reno")
    }
    assert judge("scene", GOODPUT, "mine", {"mine": by_seed(CUBIC), **other_seeds}).verdict is Verdict.AS


def test_standard_is_as_standards() -> None:
    assert judged(CUBIC, candidate="cubic").verdict is Verdict.AS


def test_worse_of_two_modes_decides() -> None:
    good, bad = [50.0, 52, 51, 49, 50], [10.0, 11, 10]
    cell = judge(
        "scene",
        GOODPUT,
        "mine",
        {"mine": by_seed(good + bad), "cubic": by_seed([50.0] * 8), "reno": by_seed([50.0, 51] * 4)},
    )
    assert cell.modes is not None and cell.verdict is Verdict.WORSE
    assert report.value(cell, "mine") == "two modes: 10.3 (3 runs) and 50.4 (5 runs)"


@pytest.mark.parametrize(
    ("flag", "ours", "flagged"),
    [
        (above(10, "x"), 10.1, True),
        (above(10, "x"), 10, False),
        (below(0.1, "x"), 0.09, True),
        (below(0.1, "x"), 0.1, False),
        (above_or_times(10, 5, 1, "x"), 2.6, True),  # More than five times the larger, 0.5.
        (above_or_times(10, 5, 1, "x"), 2.4, False),
        (above_or_times(10, 50, 1, "x"), 10.1, True),
        (above_or_times(10, 1, 3, "x"), 2.6, False),  # Too little to matter.
        (criteria.STANDING.flag, 81, False),  # CUBIC's is 200.
        (criteria.STANDING.flag, 161, True),
    ],
)
def test_flags(flag: object, ours: float, flagged: bool) -> None:
    assert callable(flag)
    cubic = 200 if flag is criteria.STANDING.flag else 0.5
    assert bool(flag(ours, {"cubic": cubic, "reno": 0.1})) is flagged


def test_bbr1_is_shown_and_decides_nothing() -> None:
    ours = {"mine": by_seed(CUBIC), "cubic": by_seed(CUBIC), "reno": by_seed(RENO)}
    for bbr1, outdone in (([90.0] * 5, True), ([51.0] * 5, False), ([20.0] * 5, False)):
        cell = judge("scene", GOODPUT, "mine", {**ours, "bbr1": by_seed(bbr1)})
        assert (cell.verdict, cell.outdone) == (Verdict.AS, outdone)
        result = Result(Plan("mine", "sim", 5), [row("5.1.2", [cell])], [])
        text = report.markdown(report.blocks(result, [], []))
        assert ("## Where only bbr1 is better" in text) is outdone


def test_flag_precedes_better() -> None:
    cell = judged([60.0, 62, 61, 59, 60], replace(GOODPUT, flag=above(55, "goodput")))
    assert cell.verdict is Verdict.FLAG and cell.reason == "goodput: 60.4, above 55"


def test_row_has_worst_verdict() -> None:
    better, worse, equal = (judged([60.0 * part] * 5) for part in (1, 0.5, 0.75))
    assert [one.verdict for one in (better, worse, equal)] == [Verdict.BETTER, Verdict.WORSE, Verdict.AS]
    assert overall_of([equal, better]) is Verdict.BETTER
    assert overall_of([equal, better, worse]) is Verdict.WORSE
    assert overall_of([]) is Verdict.NOT_RUN


# Criteria and scenes.


def test_every_section_has_row() -> None:
    """The sections of RFC 9743 that have criteria."""
    sections = {one.section.partition(" ")[0] for one in criteria.every()}
    expected = "3.1 3.2 4 5.1.1 5.1.2 5.1.3 5.1.4 5.1.5 5.2 5.2.1 5.2.2 5.2.3 5.3.1 5.3.2 6 6.1 6.2 6.3 6.4 8"
    assert sections == {*expected.split(), *(f"7.{number}" for number in range(1, 12)), "beyond"}
    assert criteria.RUNS.keys() <= {one.section for one in criteria.every()}
    for one in criteria.every():
        assert one.scenes or one.lacks or one.without is Verdict.FORM, f"{one.section} does not say why not"


def test_scenes_have_names_of_their_own() -> None:
    by_name: dict[str, set[int]] = {}
    for row in criteria.every():
        for one in row.scenes:
            by_name.setdefault(one.name, set()).add(id(one))
    assert [name for name, ids in by_name.items() if len(ids) > 1] == []
    assert len({report.slug(name) for name in by_name}) == len(by_name)


def test_name_of_a_measure_is_one_quantity_in_a_scene() -> None:
    takes: dict[tuple[str, str], set[int]] = {}
    for row in criteria.every():
        for scene in row.scenes:
            for measure in row.measures:
                takes.setdefault((scene.name, measure.name), set()).add(id(measure.take))
    assert [names for names, ids in takes.items() if len(ids) > 1] == []


def test_every_measure_has_a_scene() -> None:
    for row in criteria.every():
        facts = [set(one.made("cubic", 1).facts) for one in row.scenes]
        for measure in row.measures:
            assert not measure.needs or any(measure.needs in one for one in facts), measure.name


def test_seeds_vary_path_and_moment_for_all_alike() -> None:
    fall = next(one for one in scenes.FALLS if one.quick)
    drawn = [fall.made(name, seed) for name in ("cubic", "mine") for seed in (1, 2)]
    for ours, theirs in zip(drawn[:2], drawn[2:], strict=True):
        assert ours.document["path"] == theirs.document["path"] and ours.facts == theirs.facts
    (first, second) = (one.document["path"] for one in drawn[:2])
    assert first["rate"] != second["rate"] and first["rtt"] != second["rtt"]
    assert first["changes"][0]["at"] != second["changes"][0]["at"]


def test_buffer_has_floor() -> None:
    small = made(Vary("x", 1), [{"controller": "cubic"}], rate=0.1, rtt=10, bdp=0.1)
    assert small.document["path"]["buffer"] == "6000 B"
    assert small.document["flows"][0]["start_jitter"] == START_JITTER


def test_drops_are_those_after_the_start() -> None:
    """Two Reno in a long buffer drop only as slow start ends, which the whole run's share includes."""
    scene = scenes.alone("x", count=2, rate=20, bdp=16, seconds=20, after=12)
    one = scene.made("reno", 1)
    (run,) = fp.run(one.document, seed=1).runs
    assert run.summary["links"][0]["drop_ratio"] > 0.005
    assert measures.drops(Seen(run, one.facts)) == 0
    assert measures.drops(Seen(run, {**one.facts, "after": 0})) == pytest.approx(
        100 * run.summary["links"][0]["drop_ratio"], rel=0.05
    )


@pytest.mark.parametrize(
    "scene", [one for one in scenes.LYING if "hides" in one.name], ids=lambda one: one.name
)
def test_flow_whose_receiver_hides_takes_from_honest_one(scene: Scene) -> None:
    one = scene.made("cubic", 1)
    lying, honest = one.document["flows"]
    assert "receiver" in lying and "receiver" not in honest
    told = {**one.document, "flows": [{key: lying[key] for key in lying if key != "receiver"}, honest]}
    shares = [
        measures.share("v")(Seen(fp.run(document, seed=1).runs[0], one.facts))
        for document in (one.document, told)
    ]
    assert shares[0] < 0.1 and shares[1] > 0.4, shares


def test_frames_of_media_are_measured() -> None:
    """Beside nobody all are in time; beside a flow that fills the queue of 160 ms, none or few."""
    one = criteria.RUNS["5.2.2"][0][0].made("cubic", 1)
    document = {**one.document, "duration": "6 s"}
    assert [flow["label"] for flow in document["flows"]] == ["c", "media"] and "media" in document["flows"][1]
    facts = {**one.facts, "end": 6}
    alone = Seen(fp.run({**document, "flows": document["flows"][1:]}, seed=1).runs[0], facts)
    full = {**document, "flows": [{"controller": "fixed:cwnd=2000"}, document["flows"][1]]}
    beside = Seen(fp.run(full, seed=1).runs[0], facts)
    assert measures.missed_frames(alone) == 0 and measures.missed_frames(beside) > 80
    delays = [measures.frames(0.5)(seen) for seen in (alone, beside)]
    assert delays[0] == pytest.approx(25, abs=2) and (delays[1] is None or delays[1] > 100), delays


def test_way_back_with_data_of_others_slows_a_flow() -> None:
    (scene,) = next(one for one in criteria.every() if one.section == "beyond b").scenes
    one = scene.made("cubic", 1)
    (forward, _) = one.document["flows"]
    alone = {**one.document, "flows": [forward]}
    used = [
        measures.use("c")(Seen(fp.run(document, seed=1).runs[0], one.facts))
        for document in (one.document, alone)
    ]
    assert used[0] is not None and used[1] is not None
    assert used[0] < 0.9 * used[1] and used[1] > 90, used


def test_share_of_marks_is_windowed() -> None:
    one = scenes.alone("x", rate=20, ecn=True, seconds=8, after=0, path={"queue": "step"}).made("dctcp", 1)
    (run,) = fp.run(one.document, seed=1).runs
    link = run.summary["links"][0]
    assert link["marked_packets"] > 10
    expected = 100 * link["marked_packets"] / link["arrived_packets"]
    assert measures.marks(Seen(run, one.facts)) == pytest.approx(expected, rel=0.05)


# Runs.

BAD = """
import fullpipe as fp


class Deaf(fp.Controller):
    def on_ack(self, ack):
        self.cwnd = min(self.cwnd + ack.newly_acked, 500)  # Never reduces.
"""


def few(section: str, *scenes_: Scene) -> criteria.Criterion:
    row = next(one for one in criteria.every() if one.section == section)
    return replace(row, scenes=scenes_)


def shortened(scene: Scene, factor: float) -> Scene:
    """The scene on a slower path, for a short time."""

    def build(controller: str, vary: Vary) -> Made:
        of = scene.build(controller, vary)
        document = {**of.document, "duration": f"{of.facts['after'] + 8} s"}
        path = {**document["path"], "rate": f"{of.facts['rate'] * factor:.6f} Mbit/s"}
        facts = {**of.facts, "rate": of.facts["rate"] * factor, "end": of.facts["after"] + 8}
        return Made({**document, "path": path}, facts)

    return replace(scene, build=build)


SMALL = shortened(next(one for one in scenes.SMALL if one.name == "10 flows, 0.1 BDP"), 0.2)
PAIR = shortened(next(one for one in scenes.PAIRS if one.name == "1 and 1 cubic, 1 BDP"), 0.2)
FEW = (few("5.1.1 c", SMALL), few("5.1.3", SMALL), few("5.2", PAIR), few("5.2.1", PAIR), few("7.2", SMALL))


def carried_out(plan: Plan, folder: Path) -> Result:
    store = Store(folder)
    outcome = running.carry_out([one.task for one in plan.planned], store, engine=Local())
    return examine(plan, store, outcome, lambda _at, _of: None)


def verdicts(result: Result) -> dict[str, Verdict]:
    return {row.criterion.section: row.verdict for row in result.rows}


def test_controller_that_never_reduces_is_flagged(in_empty_folder: Path) -> None:
    """The control that must fail: loss, collapse and harm to others."""
    Path("bad.py").write_text(BAD, encoding="utf-8")
    result = carried_out(Plan("bad.py:Deaf", "sim", 3, quick=True, criteria=FEW), in_empty_folder / "out")
    assert verdicts(result) == {
        "5.1.1 c": Verdict.WORSE,
        "5.1.3": Verdict.FLAG,
        "5.2": Verdict.FLAG,
        "5.2.1": Verdict.FLAG,
        "7.2": Verdict.FLAG,
    }
    text = report.markdown(report.blocks(result, [], []))
    general, special = text.split("In special environments")
    assert "- flag: 10 flows, 0.1 BDP: drops after the start-up" in general.split("## Where it is worse")[1]
    assert "7.2" in special.split("## Details")[0]


def test_standard_is_not_flagged(in_empty_folder: Path) -> None:
    """The control that must not fail."""
    result = carried_out(Plan("reno", "sim", 3, quick=True, criteria=FEW), in_empty_folder / "out")
    assert set(verdicts(result).values()) == {Verdict.AS}
    text = report.markdown(report.blocks(result, [], []))
    assert "Nowhere in what was run." in text and "is one of the standards" in text


def test_interrupted_evaluation_resumes(in_empty_folder: Path) -> None:
    plan = Plan("bbr3", "sim", 2, quick=True, criteria=FEW[1:2])
    tasks = [one.task for one in plan.planned]
    folder = in_empty_folder / "out"

    def interrupt(progress: sweep.Progress) -> None:
        if progress.runs >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep.carry_out(tasks, Store(folder), Local(), watch=interrupt)
    outcome = sweep.carry_out(tasks, Store(folder), Local())
    assert 3 <= outcome.found < len(tasks) == 8
    resumed = examine(plan, Store(folder), outcome, lambda _at, _of: None).data()
    assert resumed.equals(carried_out(plan, in_empty_folder / "whole").data())


def test_runs_that_fail_are_reported(in_empty_folder: Path) -> None:
    Path("bad.py").write_text(f"{BAD}        raise ValueError('no idea')\n", encoding="utf-8")
    result = carried_out(
        Plan("bad.py:Deaf", "sim", 1, quick=True, criteria=FEW[1:2]), in_empty_folder / "out"
    )
    assert verdicts(result) == {"5.1.3": Verdict.NOT_RUN}
    (note,) = result.notes
    assert note.startswith("bad.py:Deaf: ") and "no idea" in note and note.endswith("(1 run)")
    assert f"Runs without a result: {note}" in report.markdown(report.blocks(result, [], []))


def test_candidate_is_first_also_if_its_first_run_failed() -> None:
    """Seed 1 has no run of the candidate."""
    plan = Plan("bbr3", "sim", 3, quick=True, criteria=FEW[1:2])
    found = {name: by_seed([1.0] * 3) for name in ("cubic", "reno", "bbr1")} | {"bbr3": {2: 3.0, 3: 3.1}}
    (cell,) = row_of(plan, FEW[1], {(SMALL.name, "drops"): found}).cells
    assert list(cell.values) == ["bbr3", "cubic", "reno", "bbr1"]
    assert report.because(Row(FEW[1], [replace(cell, verdict=Verdict.WORSE)], {})).startswith(
        "10 flows, 0.1 BDP: drops 3.05 % (cubic 1, reno 1, bbr1 1)"
    )


# The report.


def row(section: str, cells: list[Cell], left_out: Mapping[str, list[str]] | None = None) -> Row:
    of = next(one for one in criteria.every() if one.section == section)
    return Row(of, cells, left_out or {})


def test_markdown_names_verdicts_and_limits() -> None:
    worse = replace(judged([30.0, 31, 29, 30, 32]), scene="a | b <i>")
    rows = [
        row("3.1", []),
        row("5.1.2", [worse, judged([45.0, 46, 45, 44, 45])], {"only full": ["x", "y"]}),
        row("6.2", []),
        row("7.10", []),
    ]
    text = report.markdown(
        report.blocks(Result(Plan("mine", "sim", 5, quick=True), rows, [], ["noq hides x."]), [], [])
    )
    lines = text.splitlines()
    assert lines[0] == "# mine by the criteria of RFC 9743"
    assert "The quick form has fewer scenes and seeds; its verdicts are about these only." in lines
    summary = (
        r"| 5.1.2 | should | Standing queues | worse | a \| b &lt;i>: goodput 30.4 % (cubic 50.4, reno 40.4)"
    )
    assert f"{summary}; 1 of 2 comparisons |" in lines
    reason = "encapsulation that copies or drops ECN marks is not built"
    assert f"| 6.2 | MUST if signals | Tunnels | not run | {reason} |" in lines
    assert any(
        one.startswith("| 7.10 | MUST/SHOULD | Multipath | not applicable | it is run over") for one in lines
    )
    assert any(
        one.startswith("- 3.1 Experience (SHOULD): Which experience") and one.endswith("Answer: …")
        for one in lines
    )
    assert "- 2 scenes: only full." in lines and "- noq hides x." in lines
    assert any("not compared with its text" in one for one in lines)
    assert not re.search(r"\b(pass|passed|fail|failed)\b", text.replace("nothing here passes or fails", ""))


def test_recorded_report_is_that_of_the_last_run(tmp_path: Path) -> None:
    (tmp_path / "schema").symlink_to(RESULTS / "schema")
    path, cell = tmp_path / recorded.FILE, judged([30.0, 31, 29, 30, 32])
    rows = [row("3.1", []), row("5.1.2", [replace(cell, scene="a | b"), judged([45.0, 46, 45, 44, 45])])]
    for name in ("mine", "other:k=1"):
        recorded.record(path, Result(Plan(name, "sim", 5), rows, []), "the command", larger=False)
    kept = evidence.read(path)
    assert [(one["key"]["controller"], one["key"]["section"], one["verdict"]) for one in kept] == [
        (name, *verdict)
        for name in ("mine", "other:k=1")
        for verdict in (("3.1", "for the author"), ("5.1.2", "worse"))
    ]
    assert [(one["scene"], one["verdict"]) for one in kept[1]["cells"]] == [("a | b", "worse")]
    shown = recorded.table(kept, "Old.")
    assert shown.startswith("`mine` and `other:k=1`: 5 seeds. Old.\n\n| controller |")
    assert "| `mine` | 0 | 0 | 1 | 0 | – | 5.1.2 |" in shown
    text = recorded.markdown(kept)
    assert "| 5.1.2 | Standing queues | **worse** | **worse** |" in text
    assert r"| 5.1.2 | a \| b | goodput, % | mine 30.4 ± 1.4; cubic 50.4 ± 1.4" in text
    # Fewer seeds do not replace it, unless that was asked for; and what is no criterion any more goes.
    smaller = Result(Plan("mine", "sim", 4), rows[1:], [])
    with pytest.raises(fp.ScenarioError, match="--replace-larger"):
        recorded.record(path, smaller, "the command", larger=False)
    recorded.record(path, smaller, "the command", larger=True)
    assert [one["seeds"] for one in evidence.read(path)] == [4, 5, 5]


def test_command_writes_report(in_empty_folder: Path) -> None:
    done = command("evaluate", "cubic", "--quick", "--seeds", "1")
    assert done.returncode == 0, done.stderr
    assert "5.2.1" in done.stdout and "as the standards" in done.stdout
    folder = in_empty_folder / "out" / "evaluate-cubic-quick"
    facts = json.loads((folder / "evaluation.json").read_text())
    assert (facts["controller"], facts["world"], facts["seeds"], facts["quick"]) == ("cubic", "sim", 1, True)
    # With one seed there is no interval, and so nothing is better or worse.
    assert {one["verdict"] for one in facts["rows"]} & {"better", "worse"} == set()
    assert "# cubic by the criteria of RFC 9743" in (folder / "report.md").read_text()
    for one in re.findall(r"figures/[^)]+\.svg", (folder / "report.md").read_text()):
        assert (folder / one).read_text().startswith("<svg"), one
    assert "<h1>cubic by the criteria of RFC 9743</h1>" in (folder / "report.html").read_text()
    page = (folder / "report.html").read_text()
    assert '<a href="#5.2.1-b">5.2.1 b</a>' in page and '<h3 id="5.2.1-b">' in page
    values = pl.read_parquet(folder / "data.parquet")
    assert set(values["controller"]) == {"cubic", "reno", "bbr1"} and values["value"].is_finite().all()
    written = sorted((folder / "scenarios").glob("*.toml"))
    assert len(written) == len({one.name for row in criteria.every() for one in row.scenes if one.quick})
    assert all(fp.load(one).alternatives for one in written)
    other = command("evaluate", "reno", "--quick", "--out", str(folder))
    assert other.returncode == 2
    assert other.stderr.startswith(f'fullpipe: --out "{folder}" holds results of the evaluation of cubic')


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nosuch"], '"nosuch" is not a controller; expected one of reno, cubic,'),
        (["bbr3:nix=1"], '"nix" is not a parameter of bbr3;'),
        (["bbr3", "--world", "moon"], '--world "moon" cannot be used; expected sim'),
        (
            ["bbr3", "--world", "kernel"],
            '--world "kernel" cannot be used; expected one world in virtual time (sim',
        ),
        (["bbr3", "--seeds", "0"], "--seeds 0 cannot be used; expected a whole number from 1; e.g. 8"),
        (["noq:bbr3", "--world", "sim"], "only the world quic runs noq:bbr3; choose --world quic"),
        (["none.py:X"], '"none.py:X" cannot be used; expected a Python file that can be read;'),
    ],
)
def test_mistakes_name_option_and_fix(in_empty_folder: Path, words: list[str], sentence: str) -> None:
    done = command("evaluate", *words)
    assert done.returncode == 2 and done.stderr.startswith(f"fullpipe: {sentence}"), done.stderr
    assert list(in_empty_folder.iterdir()) == []
