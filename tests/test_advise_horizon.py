"""Over which time an answer holds, and what a choice loses over a range."""

import json
import math
from dataclasses import replace

import pytest

import fullpipe as fp
from fullpipe.advisor import Question, advise, goals, ranking, regret, terminal
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.horizon import Horizon
from fullpipe.advisor.question import parsed

OURS = ("reno", "cubic", "bbr1")
PATH = Question(rate="50 Mbit/s", rtt="40 ms", buffer="250 KB", candidates=OURS)


def slowest(*candidates: str, path: Question = PATH) -> float:
    cycle = Horizon.of(replace(path, candidates=candidates)).slowest
    assert cycle is not None
    return cycle.seconds


def test_cycles_follow_their_closed_forms() -> None:
    """By hand: 500 KB in flight are 345.3 segments, and 80 ms of the link."""
    window = 500_000 / 1448
    assert slowest("cubic") == pytest.approx((window * 0.3 / 0.4) ** (1 / 3), rel=1e-3)
    assert slowest("reno") == pytest.approx(window / 2 * 0.08, rel=1e-3)
    assert slowest("bbr1") == 10
    assert slowest("bbr3:profile=linux") == 5
    assert slowest("bbr3", "bbr1", "cubic") == 10, "the slowest counts"
    beside = replace(PATH, competitors=(("cubic", 3),))
    assert slowest("reno", path=beside) == pytest.approx(slowest("reno") / 4, rel=1e-3)
    # One loss in 10 000 segments: Reno's largest window is 163 segments.
    lossy = replace(PATH, loss="0.01 %")
    # Its queue is never full: 163 segments are 47.3 % of 80 ms, less than the empty path's 40.
    assert slowest("reno", path=lossy) == pytest.approx(math.sqrt(8 / 3e-4) / 2 * 0.04, rel=1e-3)
    shared = replace(lossy, competitors=(("cubic", 1),))
    assert slowest("reno", path=shared) == pytest.approx(math.sqrt(8 / 3e-4) / 2 * 0.08, rel=1e-3)
    assert slowest("cubic", path=lossy) < slowest("cubic")
    assert Horizon.of(replace(PATH, candidates=("vegas", "copa"))).slowest is None


@pytest.mark.parametrize(("duration", "enough"), [("49 s", False), ("50 s", True)])
def test_answer_says_if_it_has_five_cycles(duration: str, enough: bool) -> None:
    horizon = Horizon.of(replace(PATH, duration=duration, candidates=("cubic", "bbr1")))
    assert horizon.enough is enough
    assert ("--duration 50s has 5" in str(horizon)) is not enough
    assert "bbr1 (ProbeRTT every 10 s)" in str(horizon)
    assert horizon.start_s == 10


def test_advised_duration_is_enough() -> None:
    for buffer in ("20 KB", "250 KB", "1.3 MB"):
        short = Horizon.of(replace(PATH, buffer=buffer))
        assert not short.enough
        advised = str(short).partition("--duration ")[2].partition(" ")[0]
        assert Horizon.of(replace(PATH, buffer=buffer, duration=advised)).enough


def test_start_up_and_steady_state_are_those_of_the_whole() -> None:
    found = fp.advise(
        rate="20mbit",
        rtt="40ms",
        buffer="1 bdp",
        goal="throughput",
        candidates=OURS,
        seeds=2,
        duration="24 s",
    )
    seen = found.to_dict()["horizon"]
    start_s = seen["start_up_seconds"]
    assert start_s == 10
    for place in found.ranking.places:
        for trial in place.trials:
            assert trial.phases is not None
            start, steady = trial.phases
            # A flow begins after its handshake, and samples are 10 ms apart.
            mean_bps = (start.goodput_bps * start_s + steady.goodput_bps * (24 - start_s)) / 24
            assert mean_bps == pytest.approx(trial.goodput_bps, rel=0.01)
            assert min(start.rtt_p95_ms, steady.rtt_p95_ms) <= trial.rtt_p95_ms * 1.0001
            assert max(start.rtt_p95_ms, steady.rtt_p95_ms) >= trial.rtt_p95_ms * 0.9999
            assert start.harm == steady.harm == trial.harm
    assert json.loads(found.to_json())["horizon"] == seen
    assert "Scores in start-up (first 10 s): " in str(found)


def test_answer_of_start_up_alone_says_so() -> None:
    """Reno's windows grow too slowly for a run of 24 s: it is what came of slow start."""
    found = fp.advise(
        rate="100mbit", rtt="90ms", buffer="500KB", goal="throughput", candidates=["reno", "bbr1"], seeds=2
    )
    phases = found.phases
    assert phases is not None
    seen = found.to_dict()["horizon"]
    assert seen["phases_agree"] is (phases[0].winner == phases[1].winner)
    assert ("They disagree: " in found.over_time) is not seen["phases_agree"]
    assert ("in steady state, " in found.answer) is (phases[1].winner != found.winner)
    assert not seen["enough"]
    assert "only 0." in str(found)


def trial(score: float, *phases: float) -> Trial:
    own = Trial(score * 1e6, 50, 0, 100 / score, 0.5, used=score, short=0.8, ideal_fct_ms=50)
    parts = [replace(own, used=one) for one in phases]
    return replace(own, phases=(parts[0], parts[1]) if parts else None)


def test_disagreement_is_in_the_first_sentence() -> None:
    trials = {"cubic": [trial(0.9, 0.95, 0.7)] * 3, "bbr1": [trial(0.8, 0.75, 0.9)] * 3}
    found = advise(replace(PATH, rate="2mbit", candidates=("cubic", "bbr1")), goal="throughput", seeds=2)
    found = replace(found, rankings=(ranking.ranked(goals.BULK, trials),))
    assert found.answer.startswith(
        "Run cubic: bbr1 scores 11 % less; but after the first 10 s, in steady state, bbr1"
    )
    assert found.over_time.endswith("bbr1 0.900, cubic 0.700. They disagree: cubic, then bbr1.")
    same = {name: [replace(one, phases=(one, one)) for one in own] for name, own in trials.items()}
    found = replace(found, rankings=(ranking.ranked(goals.BULK, same),))
    assert "steady state, " not in found.answer
    assert "disagree" not in found.over_time


def test_goal_of_other_flows_has_no_phases() -> None:
    found = fp.advise(
        rate="2mbit", rtt="20ms", buffer="1 bdp", candidates=["reno", "bbr1"], seeds=2, goal="neighbours"
    )
    assert (found.phases, found.over_time) == (None, "")
    assert "seconds" in found.to_dict()["horizon"]


# Regret.


def test_regret_is_in_the_goals_unit() -> None:
    paths = [
        ranking.ranked(goals.BULK, {"a": [trial(0.9)] * 2, "b": [trial(0.8)] * 2}),
        ranking.ranked(goals.BULK, {"a": [trial(0.5)] * 2, "b": [trial(0.9)] * 2}),
    ]
    found = {one.candidate: one for one in regret.of(goals.BULK, paths)}
    assert (found["a"].mean, found["a"].worst) == pytest.approx((0.2, 0.4))
    assert (found["b"].mean, found["b"].worst) == pytest.approx((0.05, 0.1))
    assert [found[name].worst_path for name in "ab"] == [1, 0]
    assert regret.least(regret.of(goals.BULK, paths)) == (
        "Least regret: b (0.05 Mbit/s on average, 0.10 Mbit/s at worst)"
    )


def test_regret_of_completion_is_lost_time() -> None:
    quick = {"a": [trial(1.0)] * 2, "b": [trial(0.5)] * 2}
    found = {one.candidate: one for one in regret.of(goals.QUICK, [ranking.ranked(goals.QUICK, quick)])}
    assert found["b"].unit == "ms"
    assert found["b"].worst == pytest.approx(100)
    never = {**quick, "b": [replace(trial(0.5), fct_ms=None)] * 2}
    found = {one.candidate: one for one in regret.of(goals.QUICK, [ranking.ranked(goals.QUICK, never)])}
    assert found["b"].unit == "score"
    assert found["b"].worst == pytest.approx(0.5)


def test_least_regret_may_differ_on_average_and_at_worst() -> None:
    balance = goals.GOALS["balance"]
    often = [ranking.ranked(balance, {"a": [trial(0.9)] * 2, "b": [trial(0.85)] * 2})] * 9
    once = [ranking.ranked(balance, {"a": [trial(0.6)] * 2, "b": [trial(0.9)] * 2})]
    assert regret.least(regret.of(balance, often + once)) == (
        "Least regret at worst: b (0.036 on average, 0.040 at worst); "
        "on average: a (0.024 on average, 0.240 at worst)"
    )


def test_range_is_drawn_and_has_regrets() -> None:
    found = advise(
        Question(
            rate="10mbit", rtt="20ms", buffer=parsed("buffer", "4..400 KB"), candidates=("reno", "bbr1")
        ),
        goal="balance",
        seeds=2,
    )
    drawn, legend = terminal.where(found)
    strip = drawn.split(" ")[3]
    pairs = sorted(
        zip((path.numbers().buffer_bytes for path in found.paths), found.rankings, strict=True),
        key=lambda pair: pair[0],
    )
    letters = {"reno": "r", "bbr1": "b", None: "·"}
    assert strip == "".join(letters[one.winner] for _, one in pairs)
    assert drawn.startswith("buffer 4")
    assert legend.startswith("(who is best there: ")
    assert drawn in str(found)
    seen = {one["controller"]: one for one in found.to_dict()["regret"]}
    for name in ("reno", "bbr1"):
        lost = [one.places[0].score.mean - one.place(name).score.mean for one in found.rankings]
        assert seen[name]["worst"] == pytest.approx(max(lost))
        assert seen[name]["mean"] == pytest.approx(sum(lost) / 48)
    spec = found.plot().to_dict()
    assert len(spec["concat"]) == 2
    assert "Worst regret" in found._repr_html_()


def test_letters_of_similar_names_differ() -> None:
    names = ["bbr1", "bbr3", "cubic", "cubic9438", "copa"]
    letters = terminal.letters(names)
    assert len(set(letters.values())) == len(names)
    assert all(letters[name] in name for name in ("bbr1", "bbr3", "cubic"))


def test_no_number_has_an_exponent() -> None:
    text = str(Horizon.of(replace(PATH, duration="1250 s", candidates=("bbr1",))))
    assert text.startswith("the first 1,250 s of long flows, 120 cycles")


@pytest.mark.parametrize("without", [{"competitors": (("cubic", 5),)}, {"rtt": "0.1 ms", "loss": "1 %"}])
def test_start_up_is_left_out_where_it_cannot_be_seen(without: dict[str, object]) -> None:
    path = replace(PATH, candidates=("reno", "newreno"), **without)
    found = advise(path, goal="throughput", seeds=2)
    assert found.phases is None
    assert found.over_time == ""


def test_regret_is_a_number_where_no_flow_completes() -> None:
    never = {name: [replace(trial(0.9), fct_ms=None)] * 3 for name in ("cubic", "bbr1")}
    found = regret.of(goals.QUICK, [ranking.ranked(goals.QUICK, never)])
    assert all(math.isfinite(one.worst) for one in found)
