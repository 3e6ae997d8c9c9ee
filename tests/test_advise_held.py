"""The advisor held to the kernel: which paths are drawn, and when an answer is met."""

import math

import pytest

from fullpipe.advisor import goals, held, ranking
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.held import Held, Lack, Table


def trial(score: float) -> Trial:
    """A trial whose score by throughput is this."""
    return Trial(score * 1e6, 50, 0, 100, 0.5, used=score, short=0.8, ideal_fct_ms=50)


def case_of(advised: str, **kernel: list[float]) -> Held:
    """A case in which the advisor put one candidate first, and these scores in the kernel."""
    order = [advised, *(name for name in kernel if name != advised)]
    simulated = {name: [trial(0.9 - 0.1 * at)] * 4 for at, name in enumerate(order)}
    return Held(held.draw(1)[0], ranking.ranked(goals.BULK, simulated), kernel)


def test_the_paths_follow_their_distribution() -> None:
    cases = held.draw(400)
    assert [case.name for case in held.draw(5)] == [case.name for case in cases[:5]], "the seed is fixed"
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
    assert all(case.question.candidates == held.CANDIDATES for case in cases)


@pytest.mark.parametrize(
    ("scores", "verdict"),
    [
        ({"cubic": [0.90, 0.91, 0.92], "bbr1": [0.80, 0.81, 0.82]}, "met"),
        # 2 % of the best one's score may be missing, and no more.
        ({"cubic": [0.981, 0.981, 0.981], "bbr1": [1.0, 1.0, 1.0]}, "met"),
        ({"cubic": [0.979, 0.979, 0.979], "bbr1": [1.0, 1.0, 1.0]}, "missed"),
        # Noise is no excuse: means decide.
        ({"cubic": [0.5, 0.9, 0.7], "bbr1": [0.9, 0.5, 0.8]}, "missed"),
        ({"cubic": [0.9, 0.9, 0.9], "bbr1": [0.9]}, "not judged"),
    ],
)
def test_means_decide_whether_an_answer_is_met(scores: dict[str, list[float]], verdict: str) -> None:
    assert case_of("cubic", **scores).verdict == verdict


def test_a_path_is_repeated_until_the_tolerance_is_outside_of_the_interval() -> None:
    assert case_of("cubic", cubic=[0.90, 0.90, 0.90], bbr1=[0.80, 0.81, 0.82]).settled
    assert case_of("cubic", cubic=[0.80, 0.81, 0.82], bbr1=[0.90, 0.90, 0.90]).settled
    assert not case_of("cubic", cubic=[0.90, 0.95, 0.85], bbr1=[0.9, 0.9, 0.9]).settled
    assert not case_of("cubic", cubic=[0.9, 0.9], bbr1=[0.8, 0.8]).settled, "a repetition was left out"


def test_the_interval_is_welch_s() -> None:
    """By hand: means 2 and 4, variances 1 and 4, three runs each; 2.94 degrees of freedom, t(2) = 4.303."""
    lack = Lack.of([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    width = 4.3027 * math.sqrt(1 / 3 + 4 / 3)
    assert (lack.mean, lack.low, lack.high) == pytest.approx(
        (0.5, (2 - width) / 4, (2 + width) / 4), abs=1e-4
    )


def test_nine_tenths_of_at_least_thirty_must_be_met() -> None:
    met = case_of("cubic", cubic=[0.9, 0.9, 0.9], bbr1=[0.8, 0.8, 0.8])
    missed = case_of("bbr1", cubic=[0.9, 0.9, 0.9], bbr1=[0.8, 0.8, 0.8])
    unknown = case_of("bbr1", cubic=[0.9, 0.9, 0.9], bbr1=[])
    for cases, passed in (
        ([met] * 27 + [missed] * 3, True),
        ([met] * 26 + [missed] * 4, False),
        ([met] * 29 + [unknown] * 7, False),
        ([met] * 30 + [unknown] * 6, True),
    ):
        assert Table(tuple(cases), "kernel", "").passed is passed
