"""The advisor held to the kernel: which paths are drawn, and when an answer is met."""

import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fullpipe as fp
from conftest import answer_for_the_kernel, command
from fullpipe import evidence
from fullpipe.advisor import Question, confidence, goals, kernel_check, kernel_lines, ranking
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.kernel_check import Held, Lack, Table
from fullpipe.cli.commands import kernel_advice
from fullpipe.measures.run import Run
from fullpipe.runs.store import Store


def trial(score: float) -> Trial:
    """A trial whose score by throughput is this."""
    return Trial(score * 1e6, 50, 0, 100, 0.5, used=score, short=0.8, ideal_fct_ms=50)


SEED = 14
# What an answer's lead is for each word.
LEADS = {"sure": 0.2, "likely": 0.05, "open": 0.001}


def case_of(advised: str, word: str = "sure", **kernel: list[float]) -> Held:
    """A case in which the advisor put one candidate first, and these scores in the kernel."""
    order = [advised, *(name for name in kernel if name != advised)]
    simulated = {name: [trial(0.9 * (1 - LEADS[word] * at))] * 4 for at, name in enumerate(order)}
    found = Held(kernel_check.draw(1, SEED)[0], ranking.ranked(goals.BULK, simulated), kernel)
    assert found.word == word
    return found


def test_the_paths_follow_their_distribution() -> None:
    cases = kernel_check.draw(400, SEED)
    assert [case.name for case in kernel_check.draw(5, SEED)] == [case.name for case in cases[:5]]
    assert not any(confidence.outside(case.question) for case in cases), "all may be sure"
    paths = [case.question.numbers() for case in cases]
    assert all(2e6 <= path.rate_bps <= 100e6 for path in paths)
    assert all(10 <= path.rtt_ms <= 150 for path in paths)
    assert all(path.buffer_bytes >= 15_000 for path in paths)
    bdps = [path.buffer_bytes / path.bdp_bytes for path in paths if path.buffer_bytes > 15_500]
    assert 0.24 < min(bdps) < 0.3
    assert 3.5 < max(bdps) < 4.1
    middle = sorted(path.rate_bps for path in paths)[200]
    assert middle == pytest.approx(math.sqrt(2e6 * 100e6), rel=0.25), "evenly on a logarithmic scale"
    assert 0.4 < sum(path.loss > 0 for path in paths) / 400 < 0.6
    assert max(path.loss for path in paths) <= 0.0101
    shared = [case for case in cases if case.question.competitors]
    assert 0.2 < len(shared) / 400 < 0.4
    assert {count for case in shared for _, count in case.question.competitors} == {1, 2, 3}
    named = [case.goal.name for case in cases if case.question.flow_size is None]
    assert set(named) == set(goals.GOALS)
    assert all(case.question.candidates == kernel_check.CANDIDATES for case in cases)


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ({"cubic": [0.90, 0.91, 0.92], "bbr1": [0.80, 0.81, 0.82]}, "agrees"),
        # 2 % of the best one's score may be missing, and no more.
        ({"cubic": [0.981, 0.981, 0.981], "bbr1": [1.0, 1.0, 1.0]}, "agrees"),
        ({"cubic": [0.979, 0.979, 0.979], "bbr1": [1.0, 1.0, 1.0]}, "disagrees"),
        # Noise is no excuse: means decide.
        ({"cubic": [0.5, 0.9, 0.7], "bbr1": [0.9, 0.5, 0.8]}, "disagrees"),
        ({"cubic": [0.9, 0.9, 0.9], "bbr1": [0.9]}, "not judged"),
    ],
)
def test_means_decide_verdict(scores: dict[str, list[float]], verdict: str) -> None:
    assert case_of("cubic", "sure", **scores).verdict == verdict


def test_path_repeats_until_interval_excludes_tolerance() -> None:
    assert case_of("cubic", cubic=[0.90, 0.90, 0.90], bbr1=[0.80, 0.81, 0.82]).settled
    assert case_of("cubic", cubic=[0.80, 0.81, 0.82], bbr1=[0.90, 0.90, 0.90]).settled
    assert not case_of("cubic", cubic=[0.90, 0.95, 0.85], bbr1=[0.9, 0.9, 0.9]).settled
    assert not case_of("cubic", cubic=[0.9], bbr1=[0.8]).settled, "a repetition was left out"


def test_the_interval_is_welch_s() -> None:
    """By hand: means 2 and 4, variances 1 and 4, three runs each; 2.94 degrees of freedom, t(2) = 4.303."""
    lack = Lack.of([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    width = 4.3027 * math.sqrt(1 / 3 + 4 / 3)
    assert (lack.mean, lack.low, lack.high) == pytest.approx(
        (0.5, (2 - width) / 4, (2 + width) / 4), abs=1e-4
    )


def test_each_word_has_its_target() -> None:
    high, low = [0.9, 0.9], [0.8, 0.8]
    right = {word: case_of("cubic", word, cubic=high, bbr1=low) for word in LEADS}
    wrong = {word: case_of("bbr1", word, cubic=high, bbr1=low) for word in LEADS}
    unknown = case_of("bbr1", cubic=high, bbr1=[])
    likely = [right["likely"]] * 32 + [wrong["likely"]] * 8
    sure = [right["sure"]] * 57 + [wrong["sure"]] * 3
    for cases, passed in (
        (sure + likely, True),
        (sure + likely + [wrong["open"]] * 20, True),
        (sure[1:] + likely + [right["open"]], False),
        (sure + likely[1:] + [right["open"]], False),
        (sure + likely[:-1] + [unknown] * 21, False),
    ):
        assert Table(tuple(cases), "kernel", "").passed is passed, str(Table(tuple(cases), "kernel", ""))


def test_paths_of_a_version_are_its_own() -> None:
    seeds = [kernel_check.seed_of(version) for version in ("0.1.0", "0.1.0", "0.1.1")]
    assert seeds[0] == seeds[1] != seeds[2]


def words_of(question: Question, *scores: list[float]) -> str:
    trials = {name: [trial(one) for one in own] for name, own in zip("abc", scores, strict=False)}
    return str(confidence.of(question, ranking.ranked(goals.BULK, trials)))


def test_word_follows_lead_and_its_interval() -> None:
    path = Question(rate="50 Mbit/s", rtt="40 ms", buffer="250 KB", candidates=("cubic", "bbr1"))
    assert words_of(path, [0.9] * 4, [0.8] * 4) == "sure"
    assert words_of(path, [0.9] * 4, [0.83] * 4) == "likely: its lead is 7.7 % or more, and below 10 %"
    # The smallest lead decides.
    assert words_of(path, [0.9] * 4, [0.5] * 4, [0.85] * 4).startswith("likely")
    # On average 17 % ahead, but not surely 10 %.
    assert words_of(path, [0.9] * 4, [0.65, 0.75, 0.85, 0.75]).startswith("likely")
    assert words_of(path, [0.9] * 4, [0.9] * 4) == "open: no candidate is clearly best"


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"rate": "1 Gbit/s"}, "a rate of 1 Gbit/s"),
        ({"rtt": "400 ms"}, "a round-trip time of 400 ms"),
        ({"buffer": "20 bdp"}, "a buffer of 20 BDP"),
        ({"loss": "5 %"}, "random loss of 5 %"),
        ({"queue": "codel"}, "a queue discipline"),
        ({"policer": "20 Mbit/s, 500 KB"}, "policer"),
        ({"jitter": "5 ms"}, "jitter"),
        ({"candidates": ("cubic", "vegas")}, "vegas"),
        ({"competitors": (("cubic", 9),)}, "such competitors"),
        ({"pacing": False}, "hosts without pacing"),
        ({"duration": "5 s"}, "a duration of its own"),
        ({"flow_size": "5 MB"}, "flows of such a size"),
        ({"ecn": True}, "ECN"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_path_unlike_the_measured_ones_is_never_sure(changed: dict[str, Any], what: str) -> None:
    path = Question(rate="50 Mbit/s", rtt="40 ms", buffer="1 bdp", candidates=("cubic", "bbr1"))
    assert words_of(path, [0.9] * 4, [0.5] * 4) == "sure"
    found = words_of(replace(path, **changed), [0.9] * 4, [0.5] * 4)
    assert found == f"likely: no path with {what} was measured"


# Runs. The simulator answers for the kernel.


def _hold(folder: Path, cases: list[kernel_check.Case]) -> Table:
    return kernel_check.hold(cases, Store(folder), repetitions=(2, 3))


def _quick(number: int) -> kernel_check.Case:
    """A case whose runs are short, with a goal that needs more than the candidate alone."""
    case = kernel_check.draw(number, SEED)[-1]
    question = replace(case.question, rate="2 Mbit/s", rtt="10 ms", buffer="15 KB", competitors=())
    return replace(case, question=question)


def test_both_worlds_run_the_same_scenarios(no_kernel: None, tmp_path: Path) -> None:
    case = replace(_quick(1), goal=goals.GOALS["neighbours"])
    table = _hold(tmp_path, [case])
    (found,) = table.held
    asked = {job.alternative.digest for job in case.plan.jobs([1])}
    kept = {record.summary["provenance"]["spec_json"] for record in Store(tmp_path).records()}
    assert len(kept) == len(asked) == 3 + 3 + 1, "alone, beside a neighbour; and the neighbour alone"
    # The same seeds in the same world: the scores are those that the advisor saw.
    simulated = {place.candidate: place for place in found.answer.places}
    for name, scores in found.scores.items():
        seen = [case.goal.score(one) for one in simulated[name].trials]
        assert scores == seen[: len(scores)]
    assert found.agrees
    log = (tmp_path / "log.jsonl").read_text()
    assert _hold(tmp_path, [case]).to_json() == table.to_json()
    assert (tmp_path / "log.jsonl").read_text() == log, "nothing ran a second time"


def test_untrusted_runs_are_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def late(run: Run) -> Run:
        doubt = ["late"] if run.seed == 2 and run.summary["flows"][0]["controller"] == "bbr1" else []
        about = {**run.summary["provenance"], "untrustworthy": doubt}
        return replace(run, summary={**run.summary, "provenance": about})

    answer_for_the_kernel(monkeypatch, late)
    case = replace(_quick(4), goal=goals.BULK)
    table = _hold(tmp_path, [case])
    (found,) = table.held
    assert found.judged
    assert [len(found.scores[name]) for name in kernel_check.CANDIDATES] == [3, 3, 2]
    assert found.left_out == 1
    tried = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert max(one["attempts"] for one in tried) == kernel_check.ATTEMPTS
    assert "| 4 | 2 Mbit/s, 10 ms, 15 KB" in table.to_markdown()


def test_expired_time_counts_existing_runs(no_kernel: None, tmp_path: Path) -> None:
    case = replace(_quick(4), goal=goals.BULK)
    over = kernel_check.hold([case], Store(tmp_path), until_s=0.0)
    assert [one.verdict for one in over.held] == ["not judged"]
    assert not (tmp_path / "runs").exists()
    assert kernel_check.hold([case], Store(tmp_path)).held[0].judged
    again = kernel_check.hold([case], Store(tmp_path), until_s=0.0)
    assert again.held[0].judged, "the store has the runs"


def test_every_form_has_every_case(tmp_path: Path) -> None:
    cases = [
        case_of("cubic", "sure", reno=[0.5, 0.5], cubic=[0.9, 0.9], bbr1=[0.8, 0.8]),
        case_of("reno", reno=[0.5, 0.5], cubic=[0.9, 0.9], bbr1=[]),
    ]
    table = Table(tuple(cases), "kernel", "Fullpipe 1, Linux 6", ("x, kernel, seed 1: it broke",))
    kernel_check.write(table, tmp_path)
    reported = json.loads((tmp_path / "advice.json").read_text())
    assert [one["verdict"] for one in reported["cases"]] == ["agrees", "not judged"]
    assert len((tmp_path / "advice.csv").read_text().splitlines()) == 3
    page = (tmp_path / "table.md").read_text()
    assert '| advised with "sure" | 1 of 1 | 100 % |' in page
    assert "| always bbr1 | 0 of 1 | 0 % |" in page
    assert page.endswith("Failed: x, kernel, seed 1: it broke\n")


def test_the_command_s_defaults_and_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # Where there is no folder results.
    assert kernel_advice.PATHS == kernel_check.PATHS
    for words, message in (
        (["--paths", "0"], "--paths 0 "),
        (["--paths", "100000000"], "--paths "),
        (["--minutes", "-1"], "--minutes -1"),
        (["--record"], "--record "),
    ):
        done = command("kernel", "advice", "--out", str(tmp_path / "out"), *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"fullpipe: {message}"), done.stderr
    assert not (tmp_path / "out").exists()


def test_recorded_lines_reproduce_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("cubic", "sure", reno=[0.5, 0.5], cubic=[0.9, 0.8], bbr1=[0.88, 0.86])
    few = replace(case, case=replace(case.case, number=2), scores={**case.scores, "bbr1": []})
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(__file__).parents[1] / "results" / "schema", tmp_path / "results" / "schema")
    table = Table((case, few), "kernel", f"Fullpipe {fp.__version__}, Linux {os.uname().release}")
    path = kernel_lines.record(table, kernel_lines.set_of(None))
    kernel_lines.record(Table((case,), "kernel", ""), kernel_lines.set_of(7))
    assert len(evidence.read(path)) == 3
    assert kernel_lines.shown(kernel_lines.newest(evidence.read(path))).to_markdown() == table.to_markdown()
    assert table.to_markdown().count("| not judged |") == 1
