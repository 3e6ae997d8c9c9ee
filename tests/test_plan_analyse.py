"""`fullpipe plan analyse`: what it reads, what it refuses to compare, and the effect."""

import csv
import json
import math
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from conftest import command
from fullpipe._native import ScenarioError
from fullpipe.advisor.plan import picture, results
from fullpipe.advisor.plan.analysis import LEAST, MEASURES, Analysis, analyse, percent_of
from fullpipe.cli.commands import plan as cli_plan
from fullpipe.measures import statistics

HEADING = "arm,bytes,seconds,rtt_ms,retransmits"
SAMPLE = "{arm},{size:.0f},{seconds:.6f},{rtt:.3f},{lost}"


def table(rows: Sequence[str], heading: str = HEADING) -> str:
    return "\n".join([heading, *rows]) + "\n"


def drawn(
    gain: float = 1.0, count: int = 200, seed: int = 1, sizes: float = 1.0, faster: float = 1.0
) -> list[str]:
    """Connections of both arms in turn; the treatment has `gain` times the goodput, and RTTs / `faster`."""
    dice = random.Random(seed)
    rows = []
    for _ in range(count):
        for arm in ("new", "control"):
            new = arm == "new"
            size = 1e6 * math.exp(dice.gauss(0, 1)) * (sizes if new else 1)
            seconds = size / (2.5e6 * math.exp(dice.gauss(0, 0.3)) * (gain if new else 1))
            rtt = 40 * math.exp(dice.gauss(0, 0.2)) / (faster if new else 1)
            rows.append(SAMPLE.format(arm=arm, size=size, seconds=seconds, rtt=rtt, lost=dice.randrange(9)))
    return rows


def analysed(text: str, **more: Any) -> Analysis:
    return analyse(results.parse(text, "results.csv"), **more)


# The effect.


def test_effect_known_by_construction() -> None:
    """Each connection of the treatment is one of the control, but a quarter faster."""
    control = [f"control,{1000 * at},{at / 10},40,0" for at in range(10, 40)]
    new = [f"new,{1000 * at},{at / 12.5},40,0" for at in range(10, 40)]
    found = analysed(table([*control, *new]))
    (effect, *_) = found.effects
    assert effect.difference.mean == pytest.approx(25)
    assert (effect.treatment, effect.control) == (pytest.approx(0.1), pytest.approx(0.08))
    assert found.verdict == "better"
    # Only seconds, which are the size over a constant, vary within an arm; goodput does not.
    assert effect.difference.low == pytest.approx(25) and effect.spread == pytest.approx(0, abs=1e-9)


def test_interval_is_welchs_of_logarithms() -> None:
    found = analysed(table(drawn(1.3, 60)))
    sides = {
        arm: [size * 8e-6 / took for name, size, took in read(drawn(1.3, 60)) if name == arm]
        for arm in ("new", "control")
    }
    ratio = statistics.ratio(sides["new"], sides["control"])
    assert ratio.low is not None
    assert found.effects[0].difference.mean == pytest.approx(100 * (ratio.mean - 1))
    assert found.effects[0].difference.low == pytest.approx(100 * (ratio.low - 1))


def read(rows: Sequence[str]) -> list[tuple[str, float, float]]:
    return [(row[0], float(row[1]), float(row[2])) for row in csv.reader(rows)]


def test_intervals_cover_the_effect_as_often_as_they_say() -> None:
    covered = verdicts = 0
    for seed in range(200):
        found = analysed(table(drawn(1.2, 40, seed)))
        if found.reasons:
            continue
        low, high = found.effects[0].difference.low, found.effects[0].difference.high
        assert low is not None and high is not None
        covered += low <= 20 <= high
        verdicts += 1
    # Of 200, a thousandth of each check is refused. Three standard deviations around 95 % are 4.6 %.
    assert verdicts >= 195
    assert 0.90 <= covered / verdicts <= 0.995


def test_planned_number_has_its_power() -> None:
    """The number for 20 % and a spread of 0.3 shows 20 % in nine of ten experiments."""
    needed = statistics.needed(math.log(1.2), 0.3, 0.9)
    better = sum(
        analysed(table(drawn(1.2, needed, seed)), measure="goodput").verdict == "better"
        for seed in range(200)
    )
    assert 0.83 <= better / 200 <= 0.97


@pytest.mark.parametrize(
    ("more", "measure", "verdict", "says"),
    [
        ({"gain": 1.3}, "goodput", "better", " % higher than that of control (95 % confidence interval: "),
        ({"gain": 0.7}, "goodput", "worse", " % lower than that of control"),
        ({"gain": 1.3}, "completion", "better", "completion time of new is "),
        ({"faster": 1.3}, "rtt", "better", "RTT of new is 2"),
        ({"faster": 0.7}, "rtt", "worse", " % higher"),
        ({}, "retransmissions", "undecided", "percentage points"),
    ],
)
def test_verdicts(more: dict[str, float], measure: str, verdict: str, says: str) -> None:
    found = analysed(table(drawn(**more)), measure=measure)  # type: ignore[arg-type]
    assert found.verdict == verdict
    assert found.answer.startswith(f"{verdict.capitalize()}: the ") and says in found.answer


def test_retransmissions_are_a_share_of_segments() -> None:
    rows = [f"control,{1448 * 95},1,40,5" for _ in range(20)] + [
        f"new,{1448 * 80},1,40,20" for _ in range(20)
    ]
    found = analysed(table(rows), measure="retransmissions")
    (effect, *_) = found.effects
    assert (effect.treatment, effect.control) == (pytest.approx(20), pytest.approx(5))
    assert (effect.difference.mean, found.verdict) == (pytest.approx(15), "worse")


def test_undecided_says_how_many_would_decide() -> None:
    few = analysed(table(drawn(1.0, 25)), difference=10)
    assert few.verdict == "undecided"
    needed = statistics.needed(math.log(1.1), few.effects[0].spread, 0.9)
    assert few.needed == needed > 25
    assert f"to see a difference of 10 % takes {needed} connections an arm." in few.answer
    enough = analysed(table(drawn(1.0, 300)), difference=20)
    assert "an arm are enough to see a difference of 20 %, it is probably smaller." in enough.answer
    unnamed = analysed(table(drawn(1.0, 300)))
    assert "--difference names the one that you look for." in unnamed.answer


def test_an_early_verdict_is_marked() -> None:
    early = analysed(table(drawn(1.5, 30)), difference=5)
    assert early.verdict == "better"
    assert any("who stops as soon as there is a difference often sees one" in one for one in early.remarks)


# Comparability.


def test_other_sizes_are_not_compared() -> None:
    found = analysed(table(drawn(1.5, sizes=3.0)))
    assert (found.verdict, found.effects, found.needed) == ("not comparable", (), None)
    assert found.answer.startswith("Not comparable: the distributions of sizes differ (medians: ")
    assert "effects" in found.to_dict() and found.to_dict()["effects"] == []


def test_sizes_of_equal_durations_are_results() -> None:
    """Those of a speed test: whoever is faster sends more within its ten seconds."""
    dice = random.Random(3)
    rows = [
        f"{arm},{1e7 * gain * math.exp(dice.gauss(0, 0.1)):.0f},{10 + 0.01 * dice.random():.3f},40,0"
        for _ in range(100)
        for arm, gain in (("new", 1.5), ("control", 1.0))
    ]
    found = analysed(table(rows))
    assert found.verdict == "better" and 40 < found.effects[0].difference.mean < 60
    assert any("as they do where all connections have the same duration" in one for one in found.remarks)
    assert analysed(table(rows), measure="completion").verdict == "not comparable"


def test_biased_assignment_is_not_compared() -> None:
    rows = [*drawn(count=100), *[row for row in drawn(count=100, seed=2) if row.startswith("new")]]
    found = analysed(table(rows))
    assert "200 of 300 connections are in new; with 50 % expected (--share)" in found.answer
    assert analysed(table(rows), share=2 / 3).verdict == "undecided"


@pytest.mark.parametrize(
    "form", [str, lambda at: f"2026-11-28T{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z"]
)
def test_arms_one_after_the_other_are_not_compared(form: Callable[[int], str]) -> None:
    rows = sorted(drawn(count=50))
    heading = f"{HEADING},time"
    after = [f"{row},{form(at)}" for at, row in enumerate(rows)]
    assert "they ran at different times" in analysed(table(after, heading)).answer
    beside = [f"{row},{form(at)}" for at, row in enumerate(drawn(count=50))]
    assert not analysed(table(beside, heading)).reasons


def test_missing_values_are_not_ignored() -> None:
    rows = drawn(count=100)
    failed = [row if at % 10 else "new,0,,," for at, row in enumerate(rows)]
    found = analysed(table(failed))
    assert "20 % of the connections of new have no goodput" in found.answer
    # A few do not matter.
    assert not analysed(table([*rows, "new,,,,"])).reasons


def test_too_few_are_not_compared() -> None:
    found = analysed(table(drawn(count=LEAST - 1)))
    assert f"new has {LEAST - 1} connections with goodput, and {LEAST} are the least" in found.answer
    assert not analysed(table(drawn(count=LEAST))).reasons


def test_units_are_what_counts() -> None:
    """Connections of one hour resemble each other: a hundred from each of twelve hours count as twelve."""
    dice = random.Random(4)
    rows = []
    for hour in range(24):
        arm, speed = ("new", "control")[hour % 2], math.exp(dice.gauss(0, 0.3))
        for _ in range(100):
            size = 1e6 * math.exp(dice.gauss(0, 0.1))
            rows.append(f"{arm},{size:.0f},{size / (2.5e6 * speed):.4f},40,0")
    alone = analysed(table(rows))
    units = analysed(table([f"{row},{at // 100}" for at, row in enumerate(rows)], f"{HEADING},unit"))
    assert (units.counts, units.noun) == ((12, 12), "unit")
    (one, *_), (other, *_) = alone.effects, units.effects
    assert one.difference.mean == pytest.approx(other.difference.mean)
    assert (other.difference.half_width or 0) > 5 * (one.difference.half_width or 0) > 0
    assert "Results: 12 units of new and 12 units of control." in units.remarks


# What is read.


@pytest.mark.parametrize(
    "text",
    [
        table(["a,1000,0.5,40,1", "b,2000,,41.5,0"]),
        table(["a;1000;0,5;40;1", "b;2000;;41,5;0"], HEADING.replace(",", ";")),
        table(["a\t1000\t0.5\t40\t1", "b\t2000\tn/a\t41.5\t0"], HEADING.replace(",", "\t")),
        "sep=|\n" + table(["a|1000|0.5|40|1", "b|2000|-|41.5|0"], HEADING.replace(",", "|")),
        '"Arm","Bytes","Seconds","RTT ms","Retransmits"\r\n"a","1000","0.5","40","1"\r\n\r\n'
        "b,2e3,NaN,41.5,0\r\n",
        "\n\nretransmits,rtt-ms,seconds,BYTES,arm\n1,40,0.5,1000, a \n0,41.5,?,2000,b",
    ],
)
def test_forms_of_the_same_rows(text: str, tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        file = tmp_path / "results.csv"
        file.write_text(text, encoding=encoding, newline="")
        found = results.read(file)
        first, second = found.arms
        assert (first.name, second.name) == ("a", "b")
        assert [list(first.columns[name]) for name in results.NUMBERS] == [[1000], [0.5], [40], [1]]
        assert list(second.columns["bytes"]) == [2000] and math.isnan(second.columns["seconds"][0])
        assert second.columns["rtt_ms"][0] == 41.5


TWO = "a,1,1,1,1\nb,1,1,1,1\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a heading with the column arm"),
        ("rate,rtt\n1,2\n", "a heading with the column arm"),
        ("arms,bytes\n", "rename arms"),
        ("arm,size\n", "a heading with the column bytes"),
        ("arm,bytes,bytes\n", "the column bytes once"),
        (f"{HEADING}\n", "it has no row below the heading"),
        (f"{HEADING}\na,1,1,1,1\n", "it has only a"),
        (
            f"{HEADING}\n{TWO}c,1,1,1,1\n",
            'results.csv:4: arm: "c" cannot be used; expected two arms; a and b',
        ),
        (f"{HEADING}\n,1,1,1,1\n", "results.csv:2: arm: "),
        (f"{HEADING}\n{TWO}a,-1,1,1,1\n", 'results.csv:4: bytes: "-1" cannot be used'),
        (f"{HEADING}\n{TWO}\n\na,1,1 s,1,1\n", 'results.csv:6: seconds: "1 s" cannot be used'),
        (f"{HEADING}\n{TWO}a,1,inf,1,1\n", 'seconds: "inf"'),
        (f"{HEADING}\n{TWO}a,1,1e999,1,1\n", 'seconds: "1e999"'),
        (f"{HEADING}\n{TWO}a,1,0x10,1,1\n", 'seconds: "0x10"'),
        (f"{HEADING}\n{TWO}a,1,١,1,1\n", "seconds: "),
        (
            f"{HEADING}\n{TWO}a,1,1,1,1,5\n",
            '"results.csv:4" cannot be used; expected 5 cells, as in the heading; it has 6',
        ),
        (
            f'{HEADING}\n{TWO}a,"1\n,1,1,1\n',
            '"results.csv:5" cannot be used; expected CSV (unexpected end of data)',
        ),
        (f"{HEADING},time\na,1,1,1,1,noon\n", 'results.csv:2: time: "noon" cannot be used'),
        (f"{HEADING},unit\na,1,1,1,1,\n", "results.csv:2: unit: "),
        ("," * 2_000 + "arm\n", "at most 1000 columns"),
        (f'{HEADING}\n"a\n\x1b[31m",1,1,1,1\nb\x07,1,1,1,1\nc,1,1,1,1\n', "results.csv:5: arm: "),
        ("arm;bytes\na;1,234\nb;5\nb;1,5\nb;1.5\n", "results.csv:2: bytes: "),
        (
            f"{HEADING}\n{TWO}a,{'1' * 200_000},1,1,1\n",
            '"results.csv:4" cannot be used; expected CSV (field larger than field limit',
        ),
    ],
)
def test_damaged_results_are_refused_with_a_place(text: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        results.parse(text, "results.csv")
    sentence = str(caught.value)
    assert says in sentence and "results.csv" in sentence, sentence
    assert sentence.isprintable() and len(sentence) < 500


def test_columns_that_are_not_used_are_a_note() -> None:
    found = results.parse("arm,bytes,seconds,host\na,1,1,x\nb,1,1,y\n", "results.csv")
    assert found.notes == ("columns not used: host",)


WORDS = some.sampled_from(
    [
        *HEADING.split(","),
        "time",
        "unit",
        "a",
        "b",
        "control",
        "1",
        "0",
        "-1",
        "1,5",
        "1.5",
        "nan",
        '"',
        "1e400",
    ]
)
GAPS = some.sampled_from([",", ";", "\t", "\n", "\r\n", " ", '"', ""])
TEXTS = some.lists(some.one_of(WORDS, some.text(max_size=3)).flatmap(lambda word: GAPS.map(word.__add__)))


@given(head=some.sampled_from(["", f"{HEADING}\n", "arm;bytes;time\n"]), text=TEXTS.map("".join))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_text_is_analysed_or_refused(head: str, text: str) -> None:
    try:
        found = analysed(head + text)
    except ScenarioError as error:
        assert len(str(error)) < 1_000
        return
    json.loads(found.to_json())


@pytest.mark.parametrize(
    "text",
    [
        table(drawn(count=20_000)),
        table(["a;1;0,5;40;1", "b;1;0,5;40;1"] * 20_000, HEADING.replace(",", ";")),
        table(['a,"' + "1 " * 60_000 + '",1,1,1']),
        table(["a,1,1,1,1", "b,1,1,1,1"] + ["a,,,,"] * 100_000),
        table([f"{'ab'[at % 2]},1,1,1,1,{at}" for at in range(50_000)], f"{HEADING},unit"),
        '"' * 100_000,
    ],
)
def test_hostile_results_take_bounded_time(text: str) -> None:
    began_s = time.process_time()
    try:
        analysed(text, control="b" if "\na" in text else None)
    except ScenarioError as error:
        assert len(str(error)) < 1_000
    # Of CPU time, so that other load does not count. Quadratic time would be minutes.
    assert time.process_time() - began_s < 30


# Options.


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"control": "old"}, 'control: "old" cannot be used; expected an arm of results.csv; it has new and'),
        ({"measure": "speed"}, "expected one of goodput, completion, rtt, retransmissions"),
        (
            {"measure": "rtt"},
            "expected the column rtt_ms in results.csv; add it, or choose goodput or completion",
        ),
        ({"difference": -100.0}, "expected per cent above -100"),
    ],
)
def test_wrong_options_are_refused(more: dict[str, Any], says: str) -> None:
    text = "arm,bytes,seconds\n" + "new,1,1\ncontrol,1,1\n" * 20
    with pytest.raises(ScenarioError) as caught:
        analysed(text, **more)
    assert says in str(caught.value)


def test_the_control_has_to_be_known() -> None:
    text = "arm,bytes,seconds\n" + "bbr,1,1\ncubic,1,1\n" * 20
    with pytest.raises(ScenarioError, match="none is called control; give --control bbr or --control cubic"):
        analysed(text)
    assert (analysed(text, control="cubic").treatment, analysed(text, control="bbr").treatment) == (
        "bbr",
        "cubic",
    )
    with pytest.raises(ScenarioError, match="add seconds, rtt_ms or retransmits"):
        analysed("arm,bytes\ncontrol,1\nb,1\n")


@pytest.mark.parametrize(("typed", "value"), [("12", 12.0), (" -30 % ", -30.0), ("0.5%", 0.5)])
def test_percent_is_read(typed: str, value: float) -> None:
    assert percent_of("difference", typed) == value


@pytest.mark.parametrize("typed", ["", "0", "nan", "inf", "12 points", "1e9"])
def test_no_percent_is_refused(typed: str) -> None:
    with pytest.raises(ScenarioError, match="expected per cent other than 0"):
        percent_of("difference", typed)


# The command.


def test_measures_are_those_of_the_option() -> None:
    assert tuple(MEASURES) == cli_plan.MEASURES


def test_command_writes_answer_figure_and_data(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(table(drawn(1.3)))
    words = ("plan", "analyse", str(tmp_path / "results.csv"), "--difference", "-30")
    done = command(*words, "--measure", "completion", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Better: the completion time of new is ")
    assert "Completion time, s (geometric mean)" in done.stdout and "Goodput, Mbit/s" in done.stdout
    assert "an arm show a difference of -30 % with a power of 90 %" in done.stdout
    assert {one.name for one in (tmp_path / "out").iterdir()} == {"analysis.json", "figure.csv", "figure.svg"}
    reported = json.loads((tmp_path / "out" / "analysis.json").read_text())
    assert done.stdout.startswith(reported["answer"])
    rows = list(csv.reader((tmp_path / "out" / "figure.csv").read_text().splitlines()))
    assert rows[0] == ["arm", "completion_s", "share"] and len(rows) == 401
    assert rows[-1][2] == "1" and "<svg" in (tmp_path / "out" / "figure.svg").read_text()
    again = command(*words, "--json", "--out", str(tmp_path / "out"))
    assert json.loads(again.stdout)["measure"] == "goodput"
    mixed = command("advise", "--from", "x.csv", "--out", str(tmp_path / "out"))
    assert "holds results of `fullpipe plan analyse`" in mixed.stderr


def test_incomparable_arms_exit_with_1(tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(table(drawn(sizes=5)))
    done = command("plan", "analyse", str(tmp_path / "results.csv"))
    assert (done.returncode, done.stdout.partition(":")[0]) == (1, "Not comparable")
    assert "interval" not in done.stdout


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--share", "100"), '--share "100" cannot be used'),
        (("--difference", "much"), '--difference "much" cannot be used'),
        (("--measure", "speed"), '--measure "speed" cannot be used'),
        (("--control", "old"), '--control "old" cannot be used'),
    ],
)
def test_errors_name_the_option(more: tuple[str, ...], says: str, tmp_path: Path) -> None:
    (tmp_path / "results.csv").write_text(table(drawn(count=20)))
    done = command("plan", "analyse", str(tmp_path / "results.csv"), *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\x00\x01\xff")
    for path, says in (("bytes", "text in UTF-8"), ("none", "No such file"), (".", "regular file")):
        done = command("plan", "analyse", str(tmp_path / path))
        assert done.returncode == 2 and says in done.stderr, done.stderr


def test_figure_keeps_hostile_names_as_text() -> None:
    rows = [row.replace("new", "<script>") for row in drawn()]
    found = analysed(table(rows))
    drawing = picture.spec(found)
    assert drawing["encoding"]["color"]["scale"]["domain"] == ["<script>", "control"]
    assert "<script" not in picture.picture(drawing)


def test_figure_without_values_is_drawn() -> None:
    found = analysed(table(["control,0,,,"] * 20 + ["new,0,,,"] * 20))
    assert found.verdict == "not comparable" and found.values == ((), ())
    assert "<svg" in picture.picture(picture.spec(found))
