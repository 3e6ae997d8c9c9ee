"""`fullpipe.advise` and `fullpipe.decision_map`; their progress; the answer in every form."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fullpipe as fp
from conftest import answer_for_the_kernel, command
from fullpipe._native import ScenarioError
from fullpipe.advisor import goals, interface, ranking
from fullpipe.advisor.answer import called
from fullpipe.advisor.question import percent
from fullpipe.measures.run import Run

OURS = ["reno", "cubic", "bbr1"]
PATH: dict[str, Any] = {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "8 bdp", "candidates": OURS}


@pytest.fixture(scope="module")
def deep() -> fp.Advice:
    """An answer that is clear: a deep buffer, for delay."""
    return fp.advise(**PATH, goal="delay", seeds=4)


def test_printed_answer_matches_command(deep: fp.Advice) -> None:
    words = ["advise", "--rate", "20 Mbit/s", "--rtt", "40 ms", "--buffer", "8 bdp", "--for", "delay"]
    words += [word for name in OURS for word in ("--candidates", name)]
    done = command(*words, "--seeds", "4")
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed == str(deep).splitlines()
    assert printed[2] == deep.answer
    assert done.stderr == ""


def test_seeds_alone_repeat_answer(deep: fp.Advice) -> None:
    reported, again = deep.to_dict(), fp.advise(**PATH, goal="delay", seeds=4).to_dict()
    del reported["seconds"], again["seconds"]
    assert reported == again
    assert reported["crossings_complete"] is True


def test_the_most_seeds_are_kept() -> None:
    """Three flows beside it leave it undecided for long."""
    found = fp.advise(
        rate="20mbit",
        rtt="40ms",
        buffer="1 bdp",
        competitors="cubic:3",
        goal="delay",
        candidates=OURS,
        pacing=False,
        seeds=6,
    )
    assert (found.ranking.seeds, found.ranking.settled) == (6, False)
    assert "may settle the ranking" in str(found)


def test_forms_of_an_answer(deep: fp.Advice, tmp_path: Path) -> None:
    assert json.loads(deep.to_json())["answer"] == deep.answer
    html = deep._repr_html_()
    assert deep.answer.replace("'", "&#x27;") in html
    assert html.count("<tr>") == 4
    drawn = deep.plot().to_dict()
    assert drawn["title"]["text"] == deep.answer
    assert "for delay" in drawn["title"]["subtitle"][0]
    page = deep.report(tmp_path / "new" / "answer.html").read_text()
    assert "tcp_congestion_control=bbr" in page
    assert "http" not in page.split("<script")[0].replace("http://www.w3.org", "")


def test_untrusted_runs_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(run: Run) -> Run:
        doubt = ["the host stalled"] if run.seed == 2 else []
        about = {**run.summary["provenance"], "untrustworthy": doubt}
        return replace(run, summary={**run.summary, "provenance": about})

    answer_for_the_kernel(monkeypatch, late)
    found = fp.advise(rate="2mbit", rtt="10ms", buffer="15 KB", candidates=OURS, seeds=2, world="kernel")
    # Alone, with short flows, beside a neighbour; and the neighbour alone.
    assert found.doubts == ("the host stalled",) * (3 + 3 + 3 + 1)
    assert "10 runs cannot be trusted" in str(found)
    assert found.to_dict()["untrustworthy"] == list(found.doubts)
    assert (found.crossings, found.trust) == ((), "")


def test_ranges_are_texts_or_two_ends() -> None:
    found = [
        fp.advise(
            rate="20mbit", rtt=rtt, buffer="1 bdp", goal="throughput", candidates=["cubic", "reno"], seeds=2
        )
        for rtt in ("10..20 ms", ("10 ms", "20 ms"))
    ]
    first, second = ({**one.to_dict(), "seconds": 0} for one in found)
    assert first == second
    assert first["paths"] == 48
    assert found[0].plot().to_dict()["title"]["text"] == found[0].answer
    assert "48 paths spread over the range, 2 seeds on each." in str(found[0])


def test_competitors_in_three_forms() -> None:
    forms: list[Any] = ["cubic:2", ["cubic:2"], {"cubic": 2}]
    found = [interface.ask(**PATH, competitors=form).competitors for form in forms]
    assert found == [(("cubic", 2),)] * 3


def test_sized_flows_rank_by_completion_time() -> None:
    found = fp.advise(**PATH, flow_size="200 KB", seeds=2)
    assert (found.goal, found.ranking.goal) == ("throughput", goals.QUICK)
    assert "mean completion time of 200 KB" in str(found)
    assert fp.advise(**PATH, flow_size="200 KB", goal="delay", seeds=2).goal == "delay"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rate": None}, "rate"),
        ({"rate": "20 parsecs"}, "rate"),
        ({"rtt": ("1 ms", "2 ms", "3 ms")}, "rtt"),
        ({"rtt": ("20 ms", "10 ms")}, "rtt"),
        ({"buffer": "-1 KB"}, "buffer"),
        ({"competitors": {"cubic": 0}}, "competitors"),
        ({"competitors": ["nobody"]}, "competitors"),
        ({"candidates": [1, 2]}, "candidates"),
        ({"candidates": "cubic"}, "candidates"),
        ({"goal": "fun"}, "goal"),
        ({"world": "moon"}, "world"),
        ({"budget": 0}, "budget"),
        ({"seeds": 1}, "seeds"),
        ({"flow_size": "10 GB"}, "flow_size"),
    ],
)
def test_a_mistake_names_the_argument(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        fp.advise(**{**PATH, **given})
    assert caught.value.field == named
    assert str(caught.value).startswith(f"{named}: ")


def test_a_map_is_of_two_ranges(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"buffer": "100 KB", "candidates": ["cubic", "bbr1"], "goal": "throughput"}
    asked |= {"rate": "2..8 Mbit/s", "rtt": ("10 ms", "40 ms"), "steps": 2, "seeds": 2}
    found = fp.decision_map(**asked, x="rtt", out=tmp_path / "runs")
    assert (found.x, found.y) == ("rtt", "rate")
    assert found.y_values == pytest.approx((2e6, 8e6))
    log = (tmp_path / "runs" / "log.jsonl").read_text()
    assert fp.decision_map(**asked, x="rtt", out=tmp_path / "runs") == found
    assert (tmp_path / "runs" / "log.jsonl").read_text() == log, "nothing ran a second time"
    assert fp.decision_map(**asked).x == "rate", "runs need no folder"
    assert str(found) in found.report(tmp_path / "map.html").read_text()
    assert found.write(tmp_path / "files") == tmp_path / "files" / "index.html"
    assert str(found) in found._repr_html_()
    assert found.plot().to_dict()["title"]["text"] == "Who is best where"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rate": "1..2 Mbit/s"}, "rate"),
        ({"rate": "1..2 Mbit/s", "rtt": "1..2 ms", "buffer": "10..20 KB"}, "rate"),
        ({"rate": "1..2 Mbit/s", "rtt": "10..20 ms", "x": "buffer"}, "x"),
        ({"rate": "1..2 Mbit/s", "rtt": "10..20 ms", "buffer": "100 KB", "steps": 1}, "steps"),
    ],
)
def test_map_error_names_argument(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        fp.decision_map(**given, candidates=OURS)
    assert caught.value.field == named


def test_progress_only_grows() -> None:
    reported: list[tuple[str, float]] = []
    begun: list[int] = []
    fp.advise(
        **PATH,
        seeds=4,
        watch=lambda doing, done: reported.append((doing, done)),
        begin=lambda runs, seconds: begun.append(runs),
    )
    parts = [done for _, done in reported]
    assert parts == sorted(parts)
    assert 0 <= parts[0] < parts[-1] <= 1
    assert next(doing for doing, _ in reported) == "ranking"
    assert reported[-1][0] == "what would change it: loss"
    # Alone, with short flows, beside a neighbour: three candidates each; and the neighbour alone; four seeds.
    assert begun == [4 * (3 + 3 + 3 + 1)]


def test_ctrl_c_ends_in_one_line() -> None:
    """The progress is drawn on a terminal only; it says that the runs have begun."""
    words = ["advise", "--rate", "1gbit", "--rtt", "20ms", "--seeds", "10000", "--candidates", "cubic"]
    words += ["--candidates", "reno", "--competitors", "cubic:3", "--for", "delay"]
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "fullpipe", *words],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        text=True,
    )
    os.close(theirs)
    drawn = b""
    try:
        while b"ranking" not in drawn:
            drawn += os.read(ours, 4096)
        child.send_signal(signal.SIGINT)
        # Linux ends a terminal whose other end is closed with an error.
        with contextlib.suppress(OSError):
            while more := os.read(ours, 4096):
                drawn += more
        out, _ = child.communicate(timeout=300)
    finally:
        child.kill()
        child.wait()
        os.close(ours)
    assert (child.returncode, out) == (130, "")
    assert drawn.decode().rstrip().endswith("fullpipe: interrupted")
    assert "Traceback" not in drawn.decode()


def test_differing_linux_name_is_shown() -> None:
    assert called("bbr1") == "bbr1 (Linux's bbr)"
    assert called("cubic") == "cubic"
    assert called("copa") == "copa"


@pytest.mark.parametrize(
    ("part", "message"), [(0.0123, "1.2 %"), (0.0996, "10 %"), (0.34, "34 %"), (0, "0.0 %")]
)
def test_small_parts_have_a_digit(part: float, message: str) -> None:
    assert percent(part) == message


def test_a_draw_says_why() -> None:
    def ranked(**scores: list[float]) -> ranking.Ranking:
        from fullpipe.advisor.goals import Trial

        trials = {
            name: [Trial(1, 1, 0, 1, 0, used=one, short=1, ideal_fct_ms=1) for one in own]
            for name, own in scores.items()
        }
        return ranking.ranked(goals.BULK, trials)

    from fullpipe.advisor.answer import _on_a_path

    level = ranked(a=[0.900, 0.901], b=[0.899, 0.900], c=[0.5, 0.501])
    assert _on_a_path(level) == (
        "No clear winner between a and b: their scores differ by less than 1 %; c scores 44 % less."
    )
    unsure = ranked(a=[0.9, 0.5, 0.9, 0.6], b=[0.5, 0.9, 0.6, 0.8])
    assert _on_a_path(unsure) == (
        "No clear winner between a and b: after 4 seeds, their scores cannot be told apart."
    )
    nothing = ranked(a=[0.0, 0.0], b=[0.0, 0.0])
    assert _on_a_path(nothing) == "No candidate: a and b all score zero here."


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("budget", "5"),
        ("budget", True),
        ("seeds", 2.0),
        ("seeds", "4"),
        ("competitors", 5),
        ("competitors", {"cubic": True}),
        ("candidates", 5),
        ("policer", 5),
        ("ecn", "no"),
    ],
)
def test_wrong_argument_type_is_named(name: str, given: Any) -> None:
    asked: dict[str, Any] = {"rate": "10 Mbit/s", "rtt": "20 ms", "candidates": ["cubic", "reno"], "seeds": 2}
    with pytest.raises(fp.ScenarioError) as caught:
        fp.advise(**(asked | {name: given}))
    assert caught.value.field == name


def test_kernel_names_are_those_of_scenarios() -> None:
    path: dict[str, Any] = {"rate": "10 Mbit/s", "rtt": "20 ms"}
    ours = interface.ask(**path, candidates=["bbr1", "cubic"], competitors=["bbr1:1"])
    assert interface.ask(**path, candidates=["bbr", "CUBIC"], competitors=["bbr:1"]) == ours
