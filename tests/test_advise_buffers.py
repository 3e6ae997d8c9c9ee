"""`fullpipe advise` without a buffer: several side by side; and a winner that harms a neighbour."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fullpipe.advisor import Question, advise, answer, candidates, chart, crossings, goals, many, ranking
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.question import parsed
from fullpipe.advisor.sources.source import Path as Source

OURS = ("cubic", "bbr1")
PATH: dict[str, Any] = {"rate": "5mbit", "rtt": "40ms", "candidates": OURS}


@pytest.fixture(autouse=True)
def fq_and_no_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine paces already, and nothing is looked for around the answers."""
    monkeypatch.setattr(candidates, "qdisc", lambda: "fq")
    monkeypatch.setattr(crossings, "nearest", lambda *_, **__: ([], []))


def test_unknown_buffer_has_three_answers() -> None:
    found = advise(Question(**PATH), goal="balance", seeds=4)
    assert [one.question.assumed_bdps for one in found.buffers] == [0.25, 1, 4]
    bdp = 5e6 * 0.04 / 8
    sizes = [path.numbers().buffer_bytes for path in found.paths]
    assert sizes == pytest.approx([15_000, bdp, 4 * bdp], rel=0.01), "at least 10 packets"
    for own, given in zip(found.buffers, ("15 KB", "1 bdp", "4 bdp"), strict=True):
        alone = advise(Question(**PATH, buffer=given), goal="balance", seeds=4)
        assert (own.answer, own.winner) == (alone.answer, alone.winner)
        assert own.confidence is not None
        assert own.confidence == alone.confidence
        line = f"Buffer {own.buffer}: {own.answer} ({own.confidence.word})"
        assert line in str(found).splitlines()
    reported = json.loads(found.to_json())
    assert [one["assumed"]["buffer"] for one in reported["buffers"]] == [
        f"{bdps} bdp (at least 10 packets)" for bdps in ("0.25", "1", "4")
    ]
    assert len({one["winner"] for one in reported["buffers"]}) > 1 and reported["winner"] is None
    assert found.answer.startswith("It depends on the buffer, which is not known: ")
    assert re.search(r"; bbr1 takes \d\d % of a cubic neighbour's fair share with 1 BDP", found.answer)
    assert not found.lines
    html = chart.html(found)
    assert html.count("<h3>Buffer ") == 3 and html.index("Assumed: buffer") < html.index("<h1>")


def test_winner_with_every_buffer_is_run() -> None:
    found = advise(Question(**PATH, loss="1 %"), goal="throughput", seeds=4)
    assert found.winner == "bbr1"
    assert found.answer.startswith("Run bbr1 (Linux's bbr): clearly best with buffers of 0.25, 1 and 4 BDP")
    assert found.lines


def test_equal_buffers_are_one_answer() -> None:
    """Four BDPs of this path are less than ten packets."""
    found = advise(Question(rate="1mbit", rtt="20ms", candidates=OURS), goal="delay", seeds=2)
    assert found.buffers == () and len(found.rankings) == 1
    assert found.paths[0].numbers().buffer_bytes == 15_000


def test_buffers_of_range_have_the_same_paths() -> None:
    asked = Question(**{**PATH, "rtt": parsed("rtt", "40..80ms")})
    found = advise(asked, goal="delay", seeds=2)
    assert [len(one.paths) for one in found.buffers] == [16, 16, 16] and found.whole
    rtts = [[path.numbers().rtt_ms for path in one.paths] for one in found.buffers]
    assert rtts[0] == rtts[1] == rtts[2]
    for path in found.buffers[2].paths:
        numbers = path.numbers()
        assert numbers.buffer_bytes == pytest.approx(4 * numbers.bdp_bytes, rel=0.01)


def test_file_without_buffers_is_answered(tmp_path: Path) -> None:
    paths = [Source("a", {"rate": "5mbit", "rtt": "40ms"})]
    found = many.answer(paths, {"candidates": OURS}, goal="balance", seeds=4)
    (one,) = found.answered
    assert len(one.advice.buffers) == 3
    assert found.share(None) == 1.0
    assert one.advice.answer in found.to_csv()


# Harm.


def told(harm: float | None, **more: Any) -> answer.Answer:
    """An answer whose winner, bbr1, does this harm."""

    def trial(score: float, own: float | None) -> Trial:
        return Trial(1e6, 50, 0, 100, own, used=score, short=0.8, ideal_fct_ms=50)

    scores = {"bbr1": [trial(0.9, harm)] * 4, "cubic": [trial(0.7, 0.5)] * 4}
    question = Question(**PATH, buffer="1 bdp")
    found = (ranking.ranked(goals.GOALS["neighbours"], scores),)
    return answer.Answer(question, "neighbours", "sim", 0, found, (question,), **more)


@pytest.mark.parametrize(
    ("harm", "end"),
    [
        # A fair share is half of what the neighbour has alone: here it keeps a quarter of that, and less.
        (0.74, " less."),
        (0.76, "; but it takes 52 % of a cubic neighbour's fair share."),
        (0.95, "; but it takes 90 % of a cubic neighbour's fair share."),
    ],
)
def test_harmful_winner_is_named_with_harm(harm: float, end: str) -> None:
    found = replace(told(harm), goal="throughput", rankings=(ranking.ranked(goals.BULK, _trials(harm)),))
    assert found.winner == "bbr1"
    assert found.answer.endswith(end), found.answer


def _trials(harm: float) -> dict[str, list[Trial]]:
    return {place.candidate: list(place.trials) for place in told(harm).ranking.places}


def test_unmeasured_harm_is_admitted() -> None:
    found = replace(
        told(0.9, brief=True),
        rankings=(
            ranking.ranked(
                goals.BULK,
                {name: [replace(one, harm=None) for one in own] for name, own in _trials(0.9).items()},
            ),
        ),
    )
    assert found.answer.endswith("; its harm to a neighbour was not measured.")


def test_simulated_winner_in_shallow_buffer_is_harmful() -> None:
    found = advise(
        Question(rate="20mbit", rtt="80ms", buffer="0.1 bdp", candidates=OURS), goal="throughput", seeds=4
    )
    assert found.winner == "bbr1"
    assert re.search(r"^Run bbr1 .*; but it takes \d\d % of a cubic neighbour's fair share\.$", found.answer)


def test_range_measures_harm_of_its_winner() -> None:
    asked = Question(
        rate="5mbit", rtt=parsed("rtt", "70..90 ms"), buffer="50 KB", loss="5 %", candidates=OURS
    )
    found = advise(asked, goal="throughput", seeds=2)
    assert found.winner == "bbr1"
    assert found.harm is not None and 0 <= found.harm <= 1
    assert ("fair share" in found.answer) is (found.harm > 0.75)


def test_goal_explains_its_threshold() -> None:
    found = advise(Question(**PATH, buffer="15 KB", loss="2 %"), goal="neighbours", seeds=2)
    line = next(one for one in str(found).splitlines() if one.startswith("Why 80 %: "))
    assert "a flow that sends little leaves its neighbour much" in line
    assert re.search(r"Below it here: .*cubic \(\d+ %\)", line)
    assert "Why 80 %" not in str(advise(Question(**PATH, buffer="15 KB"), goal="throughput", seeds=2))
