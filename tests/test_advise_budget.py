"""The budget of `fullpipe advise`: what it leaves out, what it refuses, what it says beforehand.

Time is counted and not measured: a clock goes on by what the runs cost by the world's estimate.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from conftest import command
from fullpipe._native import ScenarioError
from fullpipe.advisor import (
    Question,
    advice,
    advise,
    crossings,
    goals,
    many,
    ranking,
    sources,
    terminal,
)
from fullpipe.advisor.question import parsed
from fullpipe.advisor.trials import EXTRAS, Bench
from fullpipe.cli import app as cli
from fullpipe.cli import options
from fullpipe.runs.engines.local import Local
from fullpipe.runs.worlds.job import Job

OURS = ("reno", "cubic", "bbr1")
SMALL: dict[str, Any] = {"rate": "2mbit", "rtt": "10ms", "candidates": OURS}
FAST: dict[str, Any] = {"rate": "119gbit", "rtt": "362ms", "candidates": OURS}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that goes on by the cost of runs; each costs `slower` times what it costs here."""
    made = SimpleNamespace(now_s=1000.0, slower=1.0, runs=0)
    carry_out, takes_s = Bench._carry_out, Local.takes_s
    stopped = SimpleNamespace(monotonic=lambda: made.now_s)
    for module in (advice, crossings, many, ranking):
        monkeypatch.setattr(module, "time", stopped)

    def counted(self: Bench, wanted: list[Job]) -> Any:
        made.now_s += Local().takes_s(self._tasks(wanted))
        made.runs += len(wanted)
        return carry_out(self, wanted)

    monkeypatch.setattr(Bench, "_carry_out", counted)
    monkeypatch.setattr(Local, "takes_s", lambda self, tasks: made.slower * takes_s(self, tasks))
    return made


@pytest.mark.parametrize(
    ("budget_s", "seeds", "extras"),
    [(40, 4, EXTRAS), (39, 4, frozenset()), (12, 4, frozenset()), (11, 2, frozenset()), (6, 2, frozenset())],
)
def test_budget_sets_first_round_size(
    monkeypatch: pytest.MonkeyPatch, budget_s: float, seeds: int, extras: frozenset[str]
) -> None:
    monkeypatch.setattr(Local, "takes_s", lambda _self, tasks: float(len(list(tasks))))
    bench, goal = Bench.of("sim"), goals.named("balance", sized=False)
    assert advice._first_round(bench, Question(**SMALL), goal, 4, budget_s) == (seeds, extras)
    with pytest.raises(ScenarioError, match=r"budget: 5 s is too short: .* take about 6 s .*; give 8"):
        advice._first_round(bench, Question(**SMALL), goal, 4, 5)


@pytest.mark.parametrize("goal", ["balance", "neighbours"])
@pytest.mark.parametrize("budget_s", [0.3, 1.0, 3.0, 20.0])
def test_runs_stay_within_budget(clock: SimpleNamespace, goal: str, budget_s: float) -> None:
    clock.slower = 10.0
    try:
        found = advise(Question(**SMALL), goal=goal, budget_s=budget_s)
    except ScenarioError as error:
        assert (error.field, clock.runs) == ("budget", 0)
        assert budget_s < 3
    else:
        assert clock.now_s - 1000 <= budget_s
        assert found.brief is ("The budget was too short for a measure without values" in str(found))


def test_short_budget_is_refused_before_runs(clock: SimpleNamespace) -> None:
    with pytest.raises(ScenarioError) as caught:
        advise(Question(**FAST), budget_s=1)
    assert (caught.value.field, clock.runs) == ("budget", 0)
    assert "the fewest runs that answer this path take about" in str(caught.value)
    enough = int(caught.value.fix.removeprefix("give ").partition(",")[0])
    bench, goal = Bench.of("sim"), goals.named(None, sized=False)
    advice._first_round(bench, Question(**FAST), goal, 4, enough)


def test_budget_limits_runs_of_range(clock: SimpleNamespace) -> None:
    clock.slower = 100.0
    asked = Question(**{**SMALL, "rtt": "10ms", "buffer": parsed("buffer", "5..50 KB")})
    found = advise(asked, budget_s=15)
    assert 4 <= len(found.paths) < 48
    assert clock.now_s - 1000 <= 15
    assert "the time was over before the others" in str(found)
    clock.runs = 0
    with pytest.raises(ScenarioError, match=r"budget: 0\.1 s is too short"):
        advise(asked, budget_s=0.1)
    assert clock.runs == 0


def test_underestimated_first_round_ends_unanswered(clock: SimpleNamespace) -> None:
    """A busy machine: everything takes ten times as long as the runs were estimated to."""
    meter = advice._Meter(lambda _doing, _done: None, clock.now_s, 1.0, kept=True)
    meter.at("ranking", 0.0, 0.5)
    clock.now_s += 1.5
    meter.ran(0.1)
    clock.now_s += 1.0
    with pytest.raises(ScenarioError, match=r"budget: 1 s is too short: .* give 15"):
        meter.ran(0.2)
    advice._Meter(lambda _doing, _done: None, 0.0, 1.0, kept=False).ran(0.2)


def _paths(*given: dict[str, Any]) -> list[sources.Path]:
    return [
        sources.Path(f"path {number}", {name: one[name] for name in ("rate", "rtt")})
        for number, one in enumerate(given, 1)
    ]


ASKED: dict[str, Any] = {"buffer": "1 bdp", "candidates": OURS}


def test_path_over_budget_reports_its_need(clock: SimpleNamespace) -> None:
    begun: list[tuple[int, float, bool]] = []
    found = many.answer(
        _paths(FAST, SMALL, SMALL), ASKED, budget_s=1, begin=lambda *message: begun.append(message)
    )
    assert begun == [(3, 3.0, True)]
    assert clock.now_s - 1000 <= 3
    assert [one.path.name for one in found.answered] == ["path 2", "path 3"]
    (refused,) = found.refused
    assert refused.path.name == "path 1"
    assert refused.why.startswith("the fewest runs that answer this path take about")
    assert "2 of 3 paths could be answered." in str(found)
    assert found.to_dict()["not_answered"][0]["name"] == "path 1"
    assert found.to_csv().splitlines()[-1].startswith('path 1,1,,,"not answered: the fewest runs')


def test_unused_time_goes_to_other_paths(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    medium = {"rate": "200mbit", "rtt": "40ms"}
    needs_s = Bench.of("sim").takes_s(Question(**medium, candidates=OURS), [1, 2], frozenset())
    # Nothing is looked for around the answers, so that small paths leave nearly all of their time.
    monkeypatch.setattr(crossings, "nearest", lambda *_, **__: ([], []))
    found = many.answer(_paths(medium, SMALL, SMALL), ASKED, budget_s=0.6 * needs_s)
    assert [one.path.name for one in found.answered] == ["path 1", "path 2", "path 3"]
    assert clock.now_s - 1000 <= 3 * 0.6 * needs_s


def test_unanswerable_file_is_an_error(clock: SimpleNamespace) -> None:
    with pytest.raises(ScenarioError, match="budget: 1 s is too short"):
        many.answer(_paths(FAST), ASKED, budget_s=1)
    assert clock.runs == 0


def test_work_is_announced_before_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(options, "say", lambda line: order.append(line))
    monkeypatch.setattr(many, "advise", lambda *_, **__: order.append("a run") or _answered())
    (tmp_path / "paths.csv").write_text("rate,rtt\n" + "2mbit,10ms\n" * 12)
    done = CliRunner().invoke(cli.app, ["advise", "--from", str(tmp_path / "paths.csv"), "--budget", "1"])
    assert done.exit_code == 0, done.output
    assert order == ["fullpipe: 12 paths to answer, at most 12 s", *["a run"] * 12]


def _answered() -> advice.Advice:
    """An answer that costs nothing."""
    question = Question(**SMALL)
    trial = goals.Trial(1e6, 20, 0, None, None, used=0.5, short=0.5, ideal_fct_ms=50)
    ranks = ranking.ranked(goals.BULK, {name: [trial, trial] for name in OURS})
    return advice.Advice(question, "throughput", "sim", 0, (ranks,), (question,))


def test_seeds_alone_estimate_file_time(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[int, float, bool]] = []
    monkeypatch.setattr(many, "advise", lambda *_, **__: _answered())
    many.answer(_paths(*[SMALL] * 7), ASKED, seeds=4, begin=lambda *message: begun.append(message))
    many.answer(_paths(*[SMALL] * 14), ASKED, seeds=4, begin=lambda *message: begun.append(message))
    (seven, seven_s, at_most), (fourteen, fourteen_s, _) = begun
    assert (seven, fourteen, at_most) == (7, 14, False)
    assert fourteen_s == pytest.approx(2 * seven_s)


def test_progress_of_a_file_only_grows() -> None:
    reported: list[tuple[str, float]] = []
    many.answer(
        _paths(SMALL, SMALL), ASKED, seeds=2, watch=lambda doing, done: reported.append((doing, done))
    )
    parts = [done for _, done in reported]
    assert parts == sorted(parts) and 0 <= parts[0] < parts[-1] <= 1
    assert reported[0][0] == "path 1 of 2: ranking"
    assert reported[-1][0].startswith("path 2 of 2: ")


@pytest.mark.parametrize("form", ["options", "file"])
def test_short_budget_names_option_and_need(tmp_path: Path, form: str) -> None:
    (tmp_path / "paths.csv").write_text("rate,rtt\n119gbit,362ms\n")
    given = {
        "options": ["--rate", "119gbit", "--rtt", "362ms"],
        "file": ["--from", str(tmp_path / "paths.csv")],
    }[form]
    done = command("advise", *given, "--budget", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fullpipe: --budget 1 s is too short: ")
    assert "; give " in done.stderr


@pytest.mark.parametrize("rtt", ["362ms", "300..362ms"])
def test_short_budget_is_the_given_one_however_late(clock: SimpleNamespace, rtt: str) -> None:
    def begin(*_: object) -> None:
        clock.now_s += 0.4

    # Time that passes before the first run leaves less than was given.
    with pytest.raises(ScenarioError, match=r"^budget: 1 s is too short: "):
        many.answer(_paths({**FAST, "rtt": rtt}), ASKED, budget_s=1.0, begin=begin)


def test_measures_without_values_are_explained(clock: SimpleNamespace) -> None:
    clock.slower = 10.0
    bench, goal = Bench.of("sim"), goals.named(None, sized=False)
    enough_s = bench.takes_s(Question(**SMALL), range(1, 5), goal.needs)
    found = advise(Question(**SMALL), budget_s=1.01 * enough_s)
    assert found.brief
    assert [row[-1] for row in terminal.rows(found)] == ["–"] * 3
    assert json.loads(found.to_json())["ranking"][0]["measures"]["harm"] is None
