"""What would change an answer of `fullpipe advise`, and how finely it looked."""

import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fullpipe.advisor import Question, crossings, goals, ranking, terminal
from fullpipe.advisor.advice import Advice, advise
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.question import Numbers, parsed
from fullpipe.advisor.trials import EXTRAS, Bench, Trials
from fullpipe.runs.worlds import registry

PATH = Question(rate="50mbit", rtt="80ms", buffer="100 KB", candidates=("a", "b"))
GOAL = goals.BULK
Winner = Callable[[Numbers], str | None]


@dataclass(frozen=True)
class Known(Bench):
    """A bench on which it is known who is best on a path: nobody if None."""

    best: Winner = lambda _path: "a"

    def run(
        self, questions: Sequence[Question], seeds: Sequence[int], extras: frozenset[str] = EXTRAS
    ) -> list[Trials]:
        return [self._of(question.numbers(), len(seeds)) for question in questions]

    def _of(self, path: Numbers, seeds: int) -> Trials:
        return {name: [_trial(0.9 if name == self.best(path) else 0.8)] * seeds for name in PATH.candidates}

    def takes_s(self, question: Question, seeds: Sequence[int], extras: frozenset[str] = EXTRAS) -> float:
        return 1.0


def _trial(score: float) -> Trial:
    return Trial(score * 1e6, 50, 0, None, None, used=score, short=0.8, ideal_fct_ms=50)


def _answer(best: Winner, question: Question = PATH, until_s: float = math.inf) -> Advice:
    bench = Known(registry.named("sim"), best=best)
    now = ranking.rank(bench, question, GOAL, most=4)
    found, looked = crossings.nearest(bench, question, GOAL, now, until_s=until_s)
    return Advice(question, "throughput", "sim", 0, (now,), (question,), tuple(found), tuple(looked))


def test_crossing_lies_at_winner_change() -> None:
    question = Question(rate="50mbit", rtt="80ms", buffer="200 KB", candidates=("bbr1", "cubic"))
    bench, goal = Bench.of("sim"), goals.named("throughput", sized=False)
    now = ranking.rank(bench, question, goal, until_s=0)
    found, looked = crossings.nearest(bench, question, goal, now)
    assert all(one.complete for one in looked)
    loss = next(one for one in found if one.quantity == "loss" and one.ahead is not None)
    assert (now.winner, loss.ahead, loss.behind, loss.below) == ("cubic", "bbr1", "cubic", False)
    above = ranking.rank(bench, question.moved("loss", 2 * loss.value), goal, until_s=0)
    under = ranking.rank(bench, question.moved("loss", loss.value / 4), goal, until_s=0)
    assert above.winner == "bbr1"
    assert under.winner != "bbr1"
    assert {one.ahead for one in found if one.quantity == "loss"} == {None, "bbr1"}, "between them, neither"
    assert "of random loss, bbr1 is ahead" in str(loss)


def test_temporary_winner_change_is_detected() -> None:
    """Between the doublings of the buffer, which all have the same winner."""
    found = _answer(lambda path: "b" if 125e3 < path.buffer_bytes < 165e3 else "a")
    (island,) = found.crossings
    assert (island.quantity, island.below, island.ahead, island.behind) == ("buffer", False, "b", "a")
    assert 125e3 < island.value < 137e3
    assert island.until is not None and 151e3 < island.until < 165e3
    assert (island.inner < 125e3 < island.value, island.until < 165e3 < (island.outer or 0)) == (True, True)
    assert (
        str(island) == "between 120–130 KB and 150–170 KB of buffer, b is ahead: a scores 11 % less at 150 KB"
    )


def test_two_islands_are_two_changes() -> None:
    found = _answer(lambda path: "b" if 30 < path.rtt_ms < 45 or 450 < path.rtt_ms < 700 else "a")
    assert [(one.quantity, one.below) for one in found.crossings] == [("rtt", True), ("rtt", False)]


def test_permanent_change_has_no_end() -> None:
    found = _answer(lambda path: "b" if path.rate_bps > 130e6 else "a")
    (one,) = found.crossings
    assert (one.until, 130e6 < one.value < 142e6) == (None, True)
    assert str(one).startswith("above 130–140 Mbit/s of rate, b is ahead")


def test_absent_change_reports_resolution() -> None:
    found = _answer(lambda path: "a")
    title, looked = terminal.crossings(found)
    assert title == "No change of the answer was seen, all else as it is:"
    assert looked == (
        "looked at: buffer from 6.2 KB to 1.6 MB, round-trip time from 5 ms to 1.3 s and rate from "
        "3.1 Mbit/s to 800 Mbit/s in steps of at most 1.4x; random loss from 0 % to 8.2 % in steps of at "
        "most 2.0x"
    )
    reported = found.to_dict()
    assert [(one["quantity"], one["complete"]) for one in reported["looked_at"]] == [
        ("buffer", True),
        ("rtt", True),
        ("rate", True),
        ("loss", True),
    ]
    assert reported["crossings_complete"] is True


def test_reported_resolution_matches_tried_values() -> None:
    """A change as wide as the largest step is seen wherever it lies."""
    step = max(one.step for one in _answer(lambda path: "a").looked if one.quantity == "buffer")
    low = 110e3
    while low * step < 1.5e6:
        found = _answer(lambda path, low=low: "b" if low <= path.buffer_bytes <= 1.01 * low * step else "a")
        assert any(one.quantity == "buffer" for one in found.crossings), low
        low *= 1.17


def test_unsearched_crossings_are_not_claimed() -> None:
    found = _answer(lambda path: "a", until_s=0.0)
    assert terminal.crossings(found) == []
    assert found.to_dict()["crossings_complete"] is False


def test_skipped_long_runs_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Known, "takes_s", lambda _self, question, *_: 10.0 if question.numbers().rate_bps > 300e6 else 0.0
    )
    found = _answer(lambda path: "a", until_s=crossings.time.monotonic() + 5)
    rate = next(one for one in found.looked if one.quantity == "rate")
    assert (rate.complete, 280e6 < rate.high < 300e6) == (False, True)
    assert terminal.crossings(found)[-1].endswith("; more would have taken too long")


def test_unrefined_crossing_shows_both_ends() -> None:
    one = crossings.Crossing("buffer", False, 200e3, 100e3, None, "b", "a", 0.1, 200e3)
    assert str(one).startswith("above 100–200 KB of buffer, b is ahead")
    one = crossings.Crossing("rtt", True, 5.0, 5.0, None, "b", "a", 0.1, 5.0)
    assert str(one).startswith("below 5 ms of round-trip time")


def test_lost_lead_is_a_change() -> None:
    found = _answer(lambda path: None if 130e3 < path.buffer_bytes < 240e3 else "a")
    (one,) = found.crossings
    assert (one.ahead, set(one.leaders), one.quantity) == (None, {"a", "b"}, "buffer")
    assert "of buffer, no clear winner: a and b lead at" in str(one)


def test_nearest_changes_of_each_quantity_are_printed() -> None:
    """Many changes of the buffer do not hide the one of the loss."""
    found = _answer(
        lambda path: "b" if path.loss > 1e-3 or math.floor(4 * math.log10(path.buffer_bytes)) % 2 else "a"
    )
    printed = terminal.crossings(found)
    assert len(found.crossings) > len(printed) - 3
    assert any("of random loss" in line for line in printed[1:-2])
    assert printed[-2].startswith("and ") and printed[-2].endswith("farther away (--json)")


def test_short_time_looks_at_every_quantity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest values come first, and what was not looked at is named."""
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(crossings, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    run = Known.run

    def counted(self: Known, *given: Any) -> list[Trials]:
        clock.now_s += 1.0
        return run(self, *given)

    monkeypatch.setattr(Known, "run", counted)
    found = _answer(lambda path: "b" if path.buffer_bytes > 1e6 else "a", until_s=10.0)
    assert {one.quantity for one in found.looked if one.low < one.high} == {"buffer", "rtt", "rate", "loss"}
    clock.now_s = 0.0
    found = _answer(lambda path: "a", until_s=5.0)
    assert "; not at rate and random loss; more would" in terminal.crossings(found)[-1]


@pytest.fixture
def scanning() -> Iterator[ModuleType]:
    """The script bench/advice_changes.py."""
    script = Path(__file__).parents[1] / "bench" / "advice_changes.py"
    spec = importlib.util.spec_from_file_location("bench_advice_changes", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # A dataclass looks its module up.
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.long
def test_scan_of_random_paths_misses_nothing(scanning: ModuleType) -> None:
    found = [scanning.check(case) for case in scanning.draw(6, seed=2)]
    assert sum(stretches for stretches, _ in found) > 6
    assert [lost for _, lost in found] == [[]] * 6


def test_scan_notices_hidden_change(scanning: ModuleType) -> None:
    question = replace(PATH, candidates=("a", "b"))
    case = scanning.Case(question, GOAL, "buffer")
    known = Known(registry.named("sim"), best=lambda path: "b" if 125e3 < path.buffer_bytes < 190e3 else "a")
    now = ranking.rank(known, question, GOAL, most=4)
    stretches = scanning.scan(known, case, now, 25e3, 400e3)
    (one,) = stretches
    assert (one.label, 125e3 < one.low < 131e3, 180e3 < one.high < 190e3) == ("b", True, True)
    coarse, fine = (crossings.Looked("buffer", 25e3, 400e3, step, complete=True) for step in (2.0, 1.4))
    assert scanning.missed(stretches, [], fine) == [one]
    assert scanning.missed(stretches, [], coarse) == [], "narrower than the resolution that is stated"
    found, _ = crossings.nearest(known, question, GOAL, now, quantities=["buffer"])
    assert scanning.missed(stretches, found, fine) == []


# Ranges.


def _over(best: Winner, **ranges: str) -> crossings.Boundaries:
    question = Question(
        rate="50mbit",
        rtt=parsed("rtt", ranges.get("rtt", "80 ms")),
        buffer=parsed("buffer", ranges.get("buffer", "100 KB")),
    )
    many = len(question.ranges)
    places = [[number / 20, (7 * number % 21) / 20][:many] for number in range(21)]
    paths = [question.at(place) for place in places]
    known = Known(registry.named("sim"), best=best)
    return crossings.boundaries(
        question, paths, [ranking.ranked(GOAL, trials) for trials in known.run(paths, [1, 2])]
    )


def test_every_winner_change_is_named() -> None:
    found = _over(lambda path: "b" if 200e3 < path.buffer_bytes < 400e3 else "a", buffer="50 KB..1 MB")
    assert str(found) == "Where the winner changes, at 21 values of buffer, in steps of at most 1.16x:"
    assert [(one.below, one.above) for one in found.found] == [("a", "b"), ("b", "a")]
    assert [one.low < edge < one.high for one, edge in zip(found.found, (200e3, 400e3), strict=True)] == [
        True,
        True,
    ]
    assert str(found.found[0]) == "between 193 KB and 224 KB of buffer: a below, b above"


def test_unchanged_range_reports_step_size() -> None:
    found = _over(lambda path: "a", buffer="50 KB..1 MB")
    assert found.found == ()
    assert str(found) == (
        "No change of the winner was seen at 21 values of buffer, in steps of at most 1.16x."
    )


def test_buffer_in_bdp_has_bdp_boundaries() -> None:
    found = _over(lambda path: "b" if path.buffer_bytes > path.bdp_bytes else "a", buffer="0.5..4 bdp")
    assert str(found.found[0]) == "between 0.93 BDP and 1 BDP of buffer: a below, b above"


def test_two_ranges_name_separating_quantity() -> None:
    found = _over(lambda path: "b" if path.rtt_ms > 60 else None, buffer="50 KB..1 MB", rtt="20..120 ms")
    (one,) = found.found
    assert (one.quantity, one.below, one.above, one.low < 60 < one.high) == ("rtt", None, "b", True)
    assert one.paths_below == (13, 13) and one.paths_above == (8, 8)
    none = _over(lambda path: "a", buffer="50 KB..1 MB", rtt="20..120 ms")
    assert str(none) == "No value of round-trip time and buffer tells the winners on 21 paths apart."


def test_range_answer_prints_boundaries() -> None:
    question = Question(
        rate="10mbit", rtt="20ms", buffer=parsed("buffer", "4..400 KB"), candidates=("reno", "bbr1")
    )
    found = advise(question, goal="delay", seeds=2)
    assert found.boundaries is not None and found.boundaries.paths == 48
    assert str(found.boundaries) in str(found)
    assert found.to_dict()["boundaries"]["step"] == found.boundaries.step
