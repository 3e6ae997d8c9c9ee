"""`fullpipe advise --plan`: the experiment that would confirm an answer, and its number of connections."""

import json
import math
import random
import shlex
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fullpipe as fp
from conftest import command
from fullpipe.advisor import Question, candidates, goals, ranking
from fullpipe.advisor.advice import Advice
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.plan import analysis
from fullpipe.advisor.plan.design import ASSUMED_SPREAD, PILOT, NoPlan, Plan
from fullpipe.advisor.recipes import Line

PATH = ("--rate", "20mbit", "--rtt", "40ms", "--buffer", "8 bdp", "--candidates", "cubic")
PATH = (*PATH, "--candidates", "bbr1", "--for", "delay", "--seeds", "2")


def trial(goodput_mbps: float = 10.0, rtt_ms: float = 50.0, **more: Any) -> Trial:
    """A trial with these measures; the score of each goal follows from them."""
    one = Trial(
        goodput_bps=goodput_mbps * 1e6,
        rtt_p95_ms=rtt_ms,
        loss_ratio=0.01,
        fct_ms=100.0,
        harm=0.5,
        used=goodput_mbps / 20,
        short=40 / rtt_ms,
        ideal_fct_ms=50.0,
    )
    return replace(one, **more)


def answered(trials: Mapping[str, Sequence[Trial]], goal: str = "throughput", **more: Any) -> Advice:
    """The answer on one path from these trials."""
    question = Question(rate="20mbit", rtt="40ms", buffer="1 bdp", candidates=tuple(trials), **more)
    chosen = goals.named(goal, sized=question.flow_size is not None)
    found = ranking.ranked(chosen, {name: list(own) for name, own in trials.items()})
    return Advice(question, chosen.name, "sim", 0.0, (found,), (question,))


def planned(trials: Mapping[str, Sequence[Trial]], goal: str = "throughput", **more: Any) -> Plan:
    found = answered(trials, goal, **more).plan()
    assert isinstance(found, Plan), str(found)
    return found


@pytest.fixture(autouse=True)
def cubic_is_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """This machine's default is CUBIC; the file can say otherwise."""
    file = tmp_path / "tcp_congestion_control"
    file.write_text("cubic\n")
    monkeypatch.setattr(candidates, "DEFAULT", file)
    return file


def test_number_follows_from_difference_and_assumed_spread() -> None:
    found = planned({"cubic": [trial(10)] * 4, "bbr1": [trial(11)] * 4})
    assert (found.treatment, found.arms, found.why_control) == (
        "bbr1",
        ("bbr", "cubic"),
        "the default of this kernel",
    )
    one = found.predicted
    assert one.difference_percent == pytest.approx(10)
    assert (one.simulated_spread, one.spread) == (pytest.approx(0), ASSUMED_SPREAD)
    # By hand: 2 (1.95996 + 1.28155)^2 0.2^2 / 0.09531^2 + 0.96 = 93.5.
    assert (one.needed, found.per_arm) == (94, 94)
    assert "s = 0.2, their standard deviation (assumed: between seeds it is only 0)" in found.number
    assert found.command == (
        "fullpipe plan analyse results.csv --control cubic --measure goodput --difference 10"
    )


def test_spread_between_seeds_counts_if_larger() -> None:
    rates = [4.0, 8.0, 16.0] * 4
    found = planned({"cubic": [trial(one) for one in rates], "reno": [trial(one / 2) for one in rates]})
    # Logarithms to base 2 are one below, at, and one above the mean, four times each.
    spread = math.log(2) * math.sqrt(8 / 11)
    assert found.predicted.spread == found.predicted.simulated_spread == pytest.approx(spread)
    assert "assumed" not in found.number
    # 2 (3.24152)^2 8 / 11 + 0.96 = 16.2: the pilot's number is more.
    assert (found.predicted.needed, found.per_arm) == (17, PILOT)
    assert f"= 17 (at least {PILOT})" in found.number


@pytest.mark.parametrize(
    ("default", "control", "why"),
    [
        ("reno", "reno", "the default of this kernel"),
        ("bbr", "cubic", "the second candidate; bbr is the default of this kernel already"),
        ("dctcp", "cubic", "the second candidate; dctcp, the default of this kernel, was no candidate"),
        ("", "cubic", "the second candidate; this kernel's default cannot be read"),
    ],
)
def test_control_is_default_or_second(default: str, control: str, why: str, cubic_is_default: Path) -> None:
    cubic_is_default.write_text(default)
    found = planned({"reno": [trial(8)] * 2, "cubic": [trial(9)] * 2, "bbr1": [trial(11)] * 2})
    assert (found.control, found.why_control) == (control, why)


@pytest.mark.parametrize(
    ("trials", "goal", "measure"),
    [
        ({"cubic": trial(18, 80), "bbr1": trial(18, 45)}, "delay", "rtt"),
        # Its RTT is no merit: CUBIC, which hardly sends, has the same.
        ({"cubic": trial(4, 50), "bbr1": trial(18, 50)}, "delay", "goodput"),
        ({"cubic": trial(17, 80), "bbr1": trial(18, 45)}, "balance", "rtt"),
        ({"cubic": trial(8, 46), "bbr1": trial(18, 45)}, "balance", "goodput"),
    ],
)
def test_measure_follows_goal(trials: dict[str, Trial], goal: str, measure: str) -> None:
    found = planned({name: [one] * 2 for name, one in trials.items()}, goal)
    assert (found.treatment, found.predicted.measure) == ("bbr1", measure)
    assert MEASURE_BETTER[measure] == (found.predicted.difference_percent > 0)


MEASURE_BETTER = {one.name: one.more_is_better for one in analysis.MEASURES.values()}


def test_flows_of_a_size_are_measured_by_completion() -> None:
    quick = {"cubic": [trial(fct_ms=120.0)] * 2, "bbr1": [trial(fct_ms=90.0)] * 2}
    found = planned(quick, flow_size="100 KB")
    assert (found.predicted.measure, found.predicted.unit) == ("completion", "s")
    assert found.predicted.difference_percent == pytest.approx(-25)
    assert "--difference -25" in found.command


def test_harm_is_measured_on_neighbours_by_hour() -> None:
    found = planned({"cubic": [trial(18, harm=0.5)] * 2, "bbr1": [trial(18, harm=0.9)] * 2}, "neighbours")
    # A neighbour keeps half instead of a tenth.
    assert found.treatment == "cubic" and found.predicted.difference_percent == pytest.approx(400)
    assert [way.name for way in found.ways] == ["per host"]
    assert "one row for each connection of a cubic neighbour" in str(found)


@pytest.mark.parametrize(
    ("trials", "goal", "why"),
    [
        (
            {"cubic": trial(10), "bbr1": trial(10.01)},
            "throughput",
            "the answer has no clear winner to try",
        ),
        ({"cubic": trial(10), "bbr3": trial(12)}, "throughput", "Linux has no bbr3"),
        (
            {"cubic": trial(18, harm=0.0), "bbr1": trial(18, harm=1.0)},
            "neighbours",
            "predicts no better goodput",
        ),
    ],
)
def test_without_a_difference_to_show_there_is_no_plan(trials: dict[str, Trial], goal: str, why: str) -> None:
    found = answered({name: [one] * 2 for name, one in trials.items()}, goal).plan()
    assert isinstance(found, NoPlan)
    assert why in str(found) and str(found).count(".") <= 3
    assert found.to_dict() == {"possible": False, "why": found.why}


def test_lines_before_are_for_both_arms() -> None:
    lines = (Line("pacing", "sysctl -w net.core.default_qdisc=fq"), Line("now", "sysctl -w only.treatment=1"))
    answer = replace(answered({"cubic": [trial(10)] * 2, "bbr1": [trial(12)] * 2}), lines=lines)
    found = answer.plan()
    assert isinstance(found, Plan)
    assert found.before[:2] == ("modprobe tcp_bbr", "sysctl -w net.core.default_qdisc=fq")
    assert not any("only.treatment" in line for line in found.before)
    assert any(line.endswith(' bbr cubic"  # for programs without CAP_NET_ADMIN') for line in found.before)


def test_python_line_draws_both_arms() -> None:
    found = planned({"cubic": [trial(10)] * 2, "reno": [trial(12)] * 2})
    (line,) = [one for one in found.ways[0].lines if one.endswith("# Python")]
    drawn = set()
    dice = random.Random(1)
    for _ in range(20):
        with socket.socket() as sock:
            exec(line, {"sock": sock, "socket": socket, "random": dice})
            drawn.add(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0"))
    assert drawn == {b"reno", b"cubic"}


def test_harm_rule_is_beyond_prediction() -> None:
    lossy = {"cubic": [trial(10)] * 2, "bbr1": [trial(12, loss_ratio=0.13)] * 2}
    assert "more than 17 percentage points higher (predicted: 13 and 1 %)" in planned(lossy).stop[1]


def test_a_range_spreads_by_its_paths() -> None:
    found = fp.advise(
        rate="5..50 Mbit/s",
        rtt="40 ms",
        buffer="1 bdp",
        loss="1 %",
        candidates=["cubic", "bbr1"],
        goal="throughput",
        seeds=2,
    )
    assert found.winner == "bbr1"
    plan = found.plan()
    assert isinstance(plan, Plan)
    # Rates are even by logarithms, over a factor of ten, and bbr1 uses them: ln(10) / sqrt(12) = 0.66.
    assert 0.3 < plan.predicted.spread == plan.predicted.simulated_spread < 0.8


@pytest.fixture(scope="module")
def printed() -> tuple[str, dict[str, Any]]:
    """What the command prints, as text and as JSON."""
    texts = [command("advise", *PATH, "--plan", *more) for more in ((), ("--json",))]
    assert [one.returncode for one in texts] == [0, 0], texts[0].stderr
    return texts[0].stdout, json.loads(texts[1].stdout)


def test_command_prints_answer_then_plan(printed: tuple[str, dict[str, Any]]) -> None:
    text, reported = printed
    answer, _, plan = text.partition("\nPlan to try bbr1; Fullpipe itself sends nothing:\n")
    assert "Run bbr1" in answer and "To apply it:" in answer
    steps = [line for line in plan.splitlines() if line[:1].isdigit()]
    assert [line.partition(".")[0] for line in steps] == [str(number) for number in range(1, 10)]
    found = reported["plan"]
    assert reported["winner"] == found["treatment"]["controller"] == "bbr1"
    assert found["possible"] and found["predicted"]["measure"] == "rtt"
    assert f"{found['connections_per_arm']} connections, or units, an arm" in plan
    assert [way["name"] for way in found["ways"]] == ["per connection", "per route", "per host"]
    for way in found["ways"]:
        assert all(line in plan for line in way["lines"])


def test_plan_reads_its_own_results(printed: tuple[str, dict[str, Any]], tmp_path: Path) -> None:
    """An experiment as it is planned, with the predicted difference and spread, shows the difference."""
    plan = printed[1]["plan"]
    dice, one = random.Random(7), plan["predicted"]
    rows = ["arm,bytes,seconds,rtt_ms,retransmits"]
    for _ in range(plan["connections_per_arm"]):
        for arm in ("treatment", "control"):
            value = one[arm] * math.exp(dice.gauss(0, one["spread"]))
            rows.append(f"{plan[arm]['arm']},{round(1e6 * math.exp(dice.gauss(0, 1)))},1.5,{value:.3f},2")
    (tmp_path / "results.csv").write_text("\n".join(rows))
    words = shlex.split(plan["analyse"].replace("results.csv", str(tmp_path / "results.csv")))[1:]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Better: the RTT of bbr is ")


def test_plan_needs_one_path(tmp_path: Path) -> None:
    (tmp_path / "paths.csv").write_text("rate,rtt\n2mbit,10ms\n3mbit,10ms\n")
    done = command("advise", "--from", str(tmp_path / "paths.csv"), "--plan")
    assert done.returncode == 2
    assert "--plan needs one path, and" in done.stderr and "has 2; take one of them" in done.stderr


def test_plan_of_the_only_path_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "paths.csv").write_text("rate,rtt,buffer\n20mbit,40ms,8 bdp\n")
    words = ("--candidates", "cubic", "--candidates", "bbr1", "--for", "delay", "--seeds", "2")
    done = command("advise", "--from", str(tmp_path / "paths.csv"), *words, "--plan", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["plan"]["treatment"]["controller"] == "bbr1"
