"""`fullpipe gate`: files, baselines, verdicts, formats, and subjects that misbehave."""

import json
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from conftest import answer_for_the_kernel
from fullpipe._native import ScenarioError
from fullpipe.cli import app as cli
from fullpipe.gate import baseline, conforming, document, formats, judge, quantities, run, template
from fullpipe.gate.checking import Answer
from fullpipe.gate.judge import BETTER, BROKEN, CHANGED, EQUAL, FAILED, UNDECIDED, WORSE, Row, Verdict
from fullpipe.gate.measured import Measured, Value
from fullpipe.runs.worlds import quic_program

STAND_IN = Path(__file__).parent / "quic_stand_in.py"
ON_PATH = 'rate = "10 Mbit/s"\nrtt = "20 ms"\nduration = "1 s"'
HEAD = 'subject = "cubic"\nseeds = 2\n'


def case(name: str = "small", more: str = "", kind: str = "compare", path: str = ON_PATH) -> str:
    return f'[[case]]\nname = "{name}"\nkind = "{kind}"\n{path}\n{more}\n'


TOLERANT = 'within = { goodput_bps = "2 %", queue_delay_mean_ms = "3 %" }'
CUBIC = HEAD + case() + case("tolerant", TOLERANT, path=ON_PATH.replace("1 s", "2 s"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has a folder and a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return tmp_path


def write(text: str) -> None:
    Path("gate.toml").write_text(text, encoding="utf-8")


def gate(*words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    done = CliRunner().invoke(cli.app, ["gate", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


def record(text: str, *words: str) -> bytes:
    write(text)
    code, _, errors = gate("record", *words)
    assert code == 0, errors
    return Path("gate-baseline.jsonl").read_bytes()


def lines() -> list[dict[str, Any]]:
    return [json.loads(one) for one in Path("gate-baseline.jsonl").read_text().splitlines()]


# The gate file.


def test_a_gate_file_is_read() -> None:
    write(
        HEAD + 'worlds = ["sim"]\n' + case("a", 'at_least = { goodput_bps = "90 %" }') + case("b", TOLERANT)
    )
    first, second = document.load(Path("gate.toml")).cases
    assert (first.subject, first.world, first.seeds, first.judgement.exact) == ("cubic", "sim", (1, 2), True)
    assert first.scenario is not None
    assert first.judgement.at_least["goodput_bps"].value(first.scenario.alternatives[0]) == 9e6
    assert not second.judgement.exact
    assert second.judgement.within["goodput_bps"].of(100.0) == 2.0
    assert first.command.startswith("fullpipe compare cubic --duration '1 s' --rate '10 Mbit/s'")


def test_scenario_file_compare_becomes_subject() -> None:
    Path("two.toml").write_text(
        'duration = "1 s"\ncompare = ["reno", "vegas"]\n'
        '[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\n[[flows]]\n'
    )
    write(HEAD + case(path='scenario = "two.toml"'))
    (one,) = document.load(Path("gate.toml")).cases
    assert one.scenario is not None
    assert [of.label for of in one.scenario.alternatives] == ["cubic"]


def test_conformance_cases_have_a_case_each() -> None:
    write(HEAD + case("laws", kind="conform", path='conform = ["law.run", "law.idle"]'))
    found = document.load(Path("gate.toml")).cases
    assert [one.name for one in found] == ["laws/law.run", "laws/law.idle"]
    write(HEAD + case("all", kind="conform", path='conform = "all"'))
    assert len(document.load(Path("gate.toml")).cases) > 50


MISTAKES = [
    ("", "case", "add one"),
    ("case = 5", "case", "at least one [[case]]"),
    ("hello =", "gate.toml:1:8", "not TOML"),
    ('subjct = "cubic"\n' + case(), "subjct", "did you mean subject?"),
    (case(), "subject", 'e.g. subject = "bbr3"'),
    ('subject = "cubik"\n' + case(), "subject", "cubic"),
    ('subject = "cubic:bta=1"\n' + case(), "subject", "bta"),
    (HEAD + 'worlds = ["moon"]\n' + case(), "worlds", "sim"),
    (HEAD + "worlds = 5\n" + case(), "worlds", "a list of worlds"),
    ('subject = "cubic"\nseeds = 0\n' + case(), "seeds", "e.g. seeds = 3"),
    (HEAD + case(more="seeds = [1, 1]"), "case[0].seeds", "a list of different ones"),
    (HEAD + case(more="time_limit = 0"), "case[0].time_limit", "seconds above 0"),
    (HEAD + case(more="repetitions = 2"), "case[0].repetitions", "a whole number from 3"),
    (HEAD + case() + case(), "case[1].name", "rename it"),
    (HEAD + case(" x"), "case[0].name", "printable"),
    (HEAD + case(kind="compere"), "case[0].kind", "compare, run, conform"),
    (HEAD + case(more='rat = "1 Mbit/s"'), "case[0].rat", "did you mean rate?"),
    (HEAD + case(path='rtt = "20 ms"'), "case[0].rate", 'rate = "50 Mbit/s"'),
    (HEAD + case(path='rate = "10 parsecs"\nrtt = "1 ms"'), "case[0].rate", 'write rate = "100 Mbit/s"'),
    (HEAD + case(more="flows = 0"), "case[0].flows", ""),
    (HEAD + case(more='beside = ["cubik"]'), "case[0].beside", "cubic"),
    (HEAD + case(more='scenario = "x.toml"'), "case[0].rate", "no key beside scenario"),
    (HEAD + case(path='scenario = "x.toml"'), "case[0].scenario", "check the path"),
    (HEAD + case(kind="run"), "case[0].rate", "one of the keys name"),
    (
        HEAD + case(kind="run", path='scenario = "x.toml"\nsubject = "reno"'),
        "case[0].subject",
        "leave it out",
    ),
    (HEAD + case(kind="conform", path='conform = "law.runn"'), "case[0].conform", "law.run"),
    (HEAD + case(kind="conform", path='conform = "all"', more=TOLERANT), "case[0].within", "own criteria"),
    (HEAD + case(kind="conform", path='conform = "all"\nsuite = "lossy"'), "case[0].suite", "bbr3, loss"),
    (HEAD + case(kind="conform", path='conform = "all"\nlike = "cubic"'), "case[0].like", "leave it out"),
    (
        HEAD + case(kind="conform", path='conform = "all"\nsuite = "loss"\nlike = "cubik"'),
        "case[0].like",
        "hystartpp",
    ),
    (HEAD + case(kind="conform", path='conform = "all"\nseeds = 3'), "case[0].seeds", "has its own"),
    (HEAD + case(more="must_pass = true"), "case[0].must_pass", "kind conform"),
    (HEAD + case(more="exact = 1"), "case[0].exact", "true or false"),
    (HEAD + case(more="exact = false"), "case[0].exact", "promise"),
    (HEAD + case(more="exact = true\n" + TOLERANT), "case[0].exact", "leave one of the two out"),
    (HEAD + 'worlds = ["kernel"]\n' + case(more="exact = true"), "case[0].exact", "never equal"),
    (HEAD + case(more='within = { goodput = "1 %" }'), "case[0].within.goodput", "did you mean goodput_bps?"),
    (HEAD + case(more='within = { goodput_bps = "1 ms" }'), "case[0].within.goodput_bps", "Mbit/s"),
    (HEAD + case(more='within = { goodput_bps = "1 %, 1 %, 1 %" }'), "case[0].within.goodput_bps", "1 %"),
    (HEAD + case(more="within = 5"), "case[0].within", "a table of measures"),
    (HEAD + case(more='at_least = { rtt_p95_ms = "90 %" }'), "case[0].at_least.rtt_p95_ms", "bdp, rtt"),
    (HEAD + case(more="at_most = { goodput_bps = true }"), "case[0].at_most.goodput_bps", "a number"),
    (HEAD + case(more='not_worse_than = "cubik"'), "case[0].not_worse_than", "cubic"),
    (HEAD + case(more='not_worse_than = { controller = "reno" }'), "case[0].not_worse_than", "within"),
    (
        HEAD + case(more='not_worse_than = { controller = "reno", within = { share = "1 %" } }'),
        "case[0].not_worse_than.within.share",
        "remove it",
    ),
]


@pytest.mark.parametrize(("text", "field", "fragment"), MISTAKES)
def test_error_names_file_and_field(text: str, field: str, fragment: str) -> None:
    write(text)
    code, _, errors = gate("check")
    assert code == 2
    assert "gate.toml" in errors and field in errors and fragment in errors, errors
    assert errors.count("fullpipe: ") == 1


def test_a_mistake_has_its_line() -> None:
    write(HEAD + case(more='within = { goodput = "1 %" }'))
    with pytest.raises(ScenarioError) as caught:
        document.load(Path("gate.toml"))
    assert (caught.value.file, caught.value.line) == ("gate.toml", 9)


def test_bound_needs_path_with_it() -> None:
    changing = '[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\nchanges = [{ at = "500 ms", rate = "5 Mbit/s" }]\n'
    Path("changing.toml").write_text(f'duration = "1 s"\n{changing}\n[[flows]]\n')
    write(HEAD + case(path='scenario = "changing.toml"', more='at_least = { goodput_bps = "90 %" }'))
    code, _, errors = gate("check")
    assert code == 2 and "known and constant" in errors and "at_least.goodput_bps" in errors, errors


def test_code_in_gate_file_needs_consent() -> None:
    Path("mine.py").write_text("raise SystemExit\n")
    for one in (case(), case(kind="conform", path='conform = "clean-path"')):
        write('subject = "mine.py:Mine"\n' + one)
        code, _, errors = gate("record")
        assert code == 2 and "gate.toml:1: subject: " in errors, errors
        assert "is a Python program" in errors and "give the option --code" in errors


def test_what_a_scenario_starts_needs_consent() -> None:
    write(HEAD + case(more='beside = ["mine.py:Mine"]'))
    code, _, errors = gate("record")
    assert code == 2 and "case[0].beside" in errors and "give the option --code" in errors, errors
    Path("program.toml").write_text(
        'duration = "1 s"\n[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\n'
        '[[flows]]\nclient = "c {server}"\nserver = "s {port}"\n'
    )
    write('worlds = ["kernel"]\n' + case("p", TOLERANT, "run", 'scenario = "program.toml"'))
    code, _, errors = gate("record")
    assert code == 2 and "case[0].scenario" in errors and "give the option --allow-programs" in errors, errors


def test_controller_files_are_relative_to_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.py").write_text("import fullpipe as fp\n\n\nclass Mine(fp.Controller):\n    pass\n")
    write(
        'subject = "mine.py:Mine"\nseeds = 1\n' + case() + case("c", "", "conform", 'conform = "tail-loss"')
    )
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    code, out, errors = gate("record", "../gate.toml", "--code")
    assert (code, out) == (0, "Recorded: 2 cases in gate-baseline.jsonl\n"), errors


def test_a_missing_gate_file_is_named() -> None:
    code, _, errors = gate("check")
    assert code == 2 and "gate.toml" in errors and "check the path" in errors


def test_pattern_without_cases_is_an_error() -> None:
    write(CUBIC)
    code, _, errors = gate("check", "--only", "x*")
    assert code == 2 and errors.startswith('fullpipe: --only "x*"') and "small, tolerant" in errors, errors


# Amounts.


@pytest.mark.parametrize(
    ("name", "text", "before", "tolerated"),
    [
        ("goodput_bps", "1 %", 1e6, 1e4),
        ("goodput_bps", "1 %, 0.5 Mbit/s", 1e6, 5e5),
        ("rtt_p95_ms", "100 us", 50.0, 0.1),
        ("loss_ratio", "0.1 points", 0.02, 0.001),
        ("loss_ratio", "10 %", 0.02, 0.002),
        ("retransmits", "5 segments", 0.0, 5.0),
        ("retransmits", "5", 0.0, 5.0),
    ],
)
def test_tolerance_is_relative_or_absolute(name: str, text: str, before: float, tolerated: float) -> None:
    found = quantities.tolerance("x", text, quantities.MEASURES[name])
    assert found.of(before) == pytest.approx(tolerated)


@pytest.mark.parametrize(
    ("name", "given", "amount", "of_path"),
    [
        ("goodput_bps", "90 %", 0.9, "%"),
        ("goodput_bps", "45 Mbit/s", 45e6, ""),
        ("queue_delay_p95_ms", "1.5 bdp", 1.5, "bdp"),
        ("fct_mean_ms", "2 s", 2000.0, ""),
        ("loss_ratio", "1 %", 0.01, ""),
        ("retransmits", 40, 40.0, ""),
        ("jain_index", 0.8, 0.8, ""),
    ],
)
def test_bound_is_absolute_or_path_relative(name: str, given: Any, amount: float, of_path: str) -> None:
    found = quantities.bound("x", given, quantities.MEASURES[name])
    assert (found.amount, found.of_path) == (pytest.approx(amount), of_path)


# Recording and checking.


def test_unchanged_cases_pass_in_three_lines() -> None:
    record(CUBIC)
    code, out, _ = gate("check")
    assert code == 0
    assert out.splitlines() == [
        "2 cases equal",
        "cubic in sim, compared with gate-baseline.jsonl.",
        "The gate passes.",
    ]


def test_baseline_is_one_line_per_case() -> None:
    record(HEAD + case("b") + case("a"))
    first, second = lines()
    assert [first["key"], second["key"]] == [{"case": "a", "world": "sim"}, {"case": "b", "world": "sim"}]
    assert first["measures"]["goodput_bps"] > 8e6
    assert len(first["records"]) == 2
    assert set(first) == {"key", "gate", "subject", "setting", "seeds", "measures", "records"}


def test_injected_change_is_detected_and_rated() -> None:
    record(CUBIC, "--traces")
    code, out, errors = gate("check", "--subject", "cubic:beta=0.5", "--no-cache")
    assert code == 1, errors
    first, *_ = out.splitlines()
    assert re.fullmatch(r"0 cases equal, 2 changed: .*(worse|better).*", first), first
    words = " ".join(out.split())
    assert "the runs part at" in words and "window" in words, "a trace shows where"
    assert "fullpipe compare cubic:beta=0.5 --duration '1 s'" in words
    assert "The baseline is of another subject: cubic, not cubic:beta=0.5." in words


def test_without_traces_measures_are_shown() -> None:
    record(CUBIC)
    code, out, _ = gate("check", "--subject", "cubic:beta=0.5", "--only", "tolerant")
    assert code == 1
    words = " ".join(out.split())
    assert "Queue mean, ms" in words and "within 3 %" in words and "better" in words
    assert "--traces also shows where runs part" in words and "fullpipe compare cubic:beta=0.5" in words


def test_damaged_trace_hides_only_divergence_point(here: Path) -> None:
    record(CUBIC, "--traces")
    folder = here / "gate-baseline.traces"
    assert [one.name for one in sorted(folder.iterdir())] == ["small-sim.parquet", "tolerant-sim.parquet"]
    record(HEAD + case(), "--traces")
    (trace,) = folder.iterdir()
    planted = ("check", "--subject", "cubic:beta=0.5")
    assert "the runs part at" in gate(*planted)[1]
    trace.write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    code, out, _ = gate(*planted)
    assert code == 1 and "the runs part at" not in out


def test_better_fails_unless_it_is_allowed() -> None:
    text = HEAD + case(path=ON_PATH.replace("1 s", "2 s"), more='within = { queue_delay_mean_ms = "3 %" }')
    record(text)
    planted = ("check", "--subject", "cubic:beta=0.5")
    code, out, _ = gate(*planted)
    assert (code, "1 better" in out) == (1, True), out
    code, out, _ = gate(*planted, "--allow-better")
    assert (code, "1 better" in out) == (0, True), out


def test_broken_promise_fails_despite_recording() -> None:
    promise = 'exact = false\nat_least = { goodput_bps = "99 %" }\nat_most = { queue_delay_p95_ms = "9 bdp" }'
    write(HEAD + case(more=promise))
    code, _, errors = gate("record")
    assert code == 0 and "breaks a promise: Goodput" in errors and "at least 99 %" in errors
    code, out, _ = gate("check")
    assert code == 1
    assert out.startswith("0 cases equal, 1 breaks a promise")
    assert "at least 99 % (9.90)" in out and "at most" not in out


def test_not_worse_than_runs_other_controller() -> None:
    write('subject = "fixed:cwnd=2"\nseeds = 1\n' + case(more='not_worse_than = "cubic"'))
    code, _, errors = gate("record")
    assert code == 0 and "not worse than cubic by 1 %" in errors, errors
    code, out, _ = gate("check")
    assert code == 1 and "not worse than cubic by 1 %" in out
    record(HEAD + case(more='not_worse_than = "cubic"'))
    assert gate("check")[0] == 0


def test_must_pass_case_has_to_pass() -> None:
    text = HEAD + case("loss", kind="conform", path='conform = "random-loss"')
    record(text)
    assert lines()[0]["verdict"] == "fail"
    assert gate("check")[0] == 0, "as before"
    write(text + "must_pass = true\n")
    code, out, _ = gate("check")
    assert code == 1 and "must pass" in out


def test_cases_of_loss_based_control_are_a_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["decrease-cubic", "minimum-window"]
    record(HEAD + case("loss", kind="conform", path=f'suite = "loss"\nconform = {json.dumps(names)}'))
    assert [one["key"]["case"] for one in lines()] == [f"loss/{name}" for name in names]
    assert {one["verdict"] for one in lines()} == {"pass"}
    code, out, _ = gate("check", "--subject", "cubic:beta=0.5", "--only", "loss/decrease-cubic")
    assert code == 1 and "worse" in out
    assert "fullpipe conform cubic:beta=0.5 --case decrease-cubic --suite loss --world sim" in out
    monkeypatch.setattr("fullpipe.conformance.run.conform", lambda *_, **__: pytest.fail("it played again"))
    assert gate("check")[0] == 0, "they are kept"


def test_a_controller_of_ones_own_is_said_to_be_like_one() -> None:
    Path("mine.py").write_text("import fullpipe as fp\n\n\nclass Mine(fp.Controller):\n    cwnd = 30\n")
    path = 'suite = "loss"\nconform = "decrease-cubic"'
    for like, verdict in (("", "not applicable"), ('\nlike = "cubic"', "fail")):
        write('subject = "mine.py:Mine"\n' + case("loss", kind="conform", path=path + like))
        code, _, errors = gate("record", "--code")
        assert code == 0, errors
        assert lines()[0]["verdict"] == verdict


def test_names_of_controllers_are_no_behaviour() -> None:
    record(HEAD + case())
    assert gate("check", "--subject", "cubic:fast_convergence=1")[0] == 0


def test_changed_or_new_case_needs_recording() -> None:
    record(HEAD + case())
    write(HEAD + case(path=ON_PATH.replace("20 ms", "30 ms")) + case("new") + case("newer"))
    code, out, _ = gate("check")
    assert code == 2
    assert out.startswith("0 cases equal, 3 could not be compared")
    words = " ".join(out.split())
    assert "not those of the baseline; record it again" in words
    # One reason for several cases is said once.
    assert "new, sim and 1 more: could not be compared" in words
    assert words.count("the baseline has no line of it") == 1


def test_removed_case_is_noted() -> None:
    record(CUBIC)
    write(HEAD + case())
    code, out, _ = gate("check")
    assert code == 0 and "cases that the gate file does not have: tolerant" in out


def test_only_replaces_its_lines_alone() -> None:
    record(CUBIC)
    before = lines()
    record(CUBIC, "--only", "tol*", "--subject", "reno")
    after = lines()
    assert after[0] == before[0]
    assert (after[1]["subject"], before[1]["subject"]) == ("reno", "cubic")


def test_missing_or_damaged_baseline_is_refused() -> None:
    write(CUBIC)
    code, _, errors = gate("check")
    assert code == 2 and "gate-baseline.jsonl is missing" in errors and "`fullpipe gate record`" in errors
    whole = record(CUBIC).decode()
    path = Path("gate-baseline.jsonl")
    for damaged, why in (
        (whole[:-30], "is not JSON"),
        ("\n".join(reversed(whole.splitlines())), "keys are unique and sorted"),
        (whole.replace('"gate":1', '"gate":2'), "has version 2, and this Fullpipe reads version 1"),
        (whole.replace('"records"', '"recorded"'), "has no records"),
        ("<<<<<<< HEAD\n" + whole, "is not JSON"),
    ):
        path.write_text(damaged)
        code, _, errors = gate("check")
        assert code == 2 and why in errors and "`fullpipe gate record`" in errors, errors
        assert path.read_text() == damaged


def test_interrupted_record_keeps_old_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    before = record(CUBIC)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "not_deterministic", interrupted)
    done = CliRunner().invoke(cli.app, ["gate", "record", "--subject", "reno"])
    assert done.exit_code != 0
    assert Path("gate-baseline.jsonl").read_bytes() == before
    assert {one.name for one in Path().iterdir()} == {"gate.toml", "gate-baseline.jsonl", "cache"}


def test_job_count_does_not_change_bytes() -> None:
    text = HEAD + case() + case("lossy", path=f'{ON_PATH}\nloss = "1 %"\njitter = "1 ms"')
    found = {record(text, "--no-cache", "--jobs", str(1 + number % 2)) for number in range(10)}
    assert len(found) == 1


def test_finished_runs_are_cached(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(HEAD + case())
    assert any((here / "cache").rglob("*.pack"))
    monkeypatch.setattr("fullpipe.runs.worlds.sim.Simulator.run", lambda *_: pytest.fail("it ran again"))
    assert gate("check")[0] == 0


def test_conformance_cases_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    # One has whole numbers among its values, which JSON tells from others.
    text = case("some", kind="conform", path='conform = ["law.run", "startup-plateau"]')
    record('subject = "bbr3"\n' + text)
    assert all(conforming._is_ours("bbr3", name) for name in ("law.run", "clean-path"))
    monkeypatch.setattr("fullpipe.conformance.run.conform", lambda *_, **__: pytest.fail("it played again"))
    assert gate("check")[0] == 0


def test_baselines_are_compared_without_run(monkeypatch: pytest.MonkeyPatch) -> None:
    record(CUBIC)
    Path("gate-baseline.jsonl").rename("old.jsonl")
    record(CUBIC, "--subject", "cubic:beta=0.5")
    monkeypatch.setattr(run, "carry_out", lambda *_: pytest.fail("it ran"))
    code, out, _ = gate("diff", "old.jsonl", "gate-baseline.jsonl")
    assert code == 1 and out.startswith("0 cases equal, 2 changed") and "Queue mean" in out
    assert gate("diff", "old.jsonl", "old.jsonl")[0] == 0
    code, _, errors = gate("diff", "old.jsonl", "none.jsonl")
    assert code == 2 and "none.jsonl is missing" in errors


def test_answer_is_written_with_changed_figures(here: Path) -> None:
    record(HEAD + case(), "--traces")
    code, _, errors = gate("check", "--subject", "cubic:beta=0.5", "--only", "small", "--out", "out")
    assert code == 1
    assert {"gate.md", "gate.json", "gate.xml"} <= {one.name for one in (here / "out").iterdir()}
    assert "report.html" in errors
    assert list((here / "out").rglob("figures/*.svg"))
    drawn = {one.name for one in (here / "out").rglob("before-and-now/*")}
    assert drawn == {"throughput.svg", "rtt.svg", "inflight.svg"}
    assert gate("check", "--only", "small", "--out", "out")[0] == 0, "a folder with earlier results"


def test_init_writes_passing_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    # Short runs are enough to see that each case can run.
    monkeypatch.setattr(template, "_PATH", {**template._PATH, "rate": "5 Mbit/s", "duration": "500 ms"})
    monkeypatch.setattr(
        template,
        "_CASES",
        [(about, name, {k: v for k, v in more.items() if k not in ("duration", "rate", "at_least")})
         for about, name, more in template._CASES],
    )  # fmt: skip
    code, out, _ = gate("init", "--controllers", "cubic")
    assert code == 0 and "gate.toml" in out
    assert gate("init")[0] == 2, "it replaces no file"
    names = [one.name for one in document.load(Path("gate.toml")).cases]
    assert len(names) >= 20 and "loss/decrease-cubic" in names
    assert gate("record")[0] == 0
    assert gate("check")[0] == 0


def test_init_takes_several_or_refuses_unknown() -> None:
    assert gate("init", "--controllers", "bbr3,cubic")[0] == 0
    assert {one.subject for one in document.load(Path("gate.toml")).cases} == {"bbr3", "cubic"}
    code, _, errors = gate("init", "--controllers", "cubik", "--force")
    assert code == 2 and "cubik" in errors and "cubic" in errors
    code, _, errors = gate("init", "--stack", "noq", "--force")
    assert code == 2 and "make quic" in errors


# Verdicts.


def one_case(more: str) -> Any:
    write(HEAD + case(more=more))
    (found,) = document.load(Path("gate.toml")).cases
    return found


def measured(of: Any, mean: float, half: float = 0.0, *, records: tuple[str, ...] = ("a", "b")) -> Measured:
    values = {"goodput_bps": Value(mean, half)}
    return Measured(of.name, of.world, of.subject, of.setting, of.seeds, values, records)


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ((10e6, 0), (10.05e6, 0), EQUAL),
        ((10e6, 0), (9.5e6, 0), WORSE),
        ((10e6, 0), (10.5e6, 0), BETTER),
        ((10e6, 0.2e6), (9.5e6, 0.1e6), WORSE),
        ((10e6, 0.4e6), (9.5e6, 0.3e6), UNDECIDED),
        ((10e6, 0.5e6), (10e6, 0.5e6), UNDECIDED),
    ],
)
def test_within_compares_means_and_intervals(before: Any, after: Any, status: str) -> None:
    of = one_case('within = { goodput_bps = "1 %" }')
    assert judge.judged(of, measured(of, *before), measured(of, *after), None).status == status


@pytest.mark.parametrize(
    ("value", "status"),
    [((9.1e6, 0), EQUAL), ((8.9e6, 0), BROKEN), ((9.1e6, 0.2e6), UNDECIDED), ((8e6, 0.2e6), BROKEN)],
)
def test_promise_is_decided_by_interval(value: Any, status: str) -> None:
    of = one_case('exact = false\nat_least = { goodput_bps = "90 %" }')
    assert judge.judged(of, measured(of, 10e6), measured(of, *value), None).status == status


def test_promise_without_value_is_broken() -> None:
    of = one_case('exact = false\nat_most = { fct_mean_ms = "1 s" }')
    found = judge.judged(of, measured(of, 1e6), measured(of, 1e6), None)
    assert found.status == BROKEN and "no run has it" in found.rows[0].promise


def test_differing_record_alone_is_change() -> None:
    of = one_case("exact = true")
    found = judge.judged(of, measured(of, 1e6), measured(of, 1e6, records=("a", "c")), None)
    assert found.status == CHANGED
    assert (
        found.reason == "no measure differs as printed, but the records of the runs do; only seed 2 differs"
    )


def test_exit_code_follows_worst_case() -> None:
    def code(*statuses: str, **more: bool) -> int:
        return Answer(tuple(Verdict("a", "sim", "x", one) for one in statuses), "b", **more).code

    assert code(EQUAL, UNDECIDED) == 0
    assert code(UNDECIDED, strict=True) == 1
    assert code(EQUAL, CHANGED) == code(BROKEN) == code(WORSE) == code(BETTER) == 1
    assert code(BETTER, allow_better=True) == 0
    assert code(WORSE, FAILED) == 2


# Formats.

HOSTILE = 'a|b`c\x1b]0;x\x07<b> "q" %\n::error::x ]]> \ud800'


@pytest.fixture
def answer() -> Answer:
    row = Row("Goodput, Mbit/s", "9.1", "8.0", "-12.1 %", "within 1 %", WORSE, "goodput_bps")
    return Answer(
        (
            Verdict("same", "sim", "cubic", EQUAL),
            Verdict("slow", "sim", "cubic", WORSE, (row,), command="fullpipe compare cubic"),
            Verdict("open", "kernel", "cubic", UNDECIDED),
            Verdict(HOSTILE, "sim", "cubic", FAILED, reason=HOSTILE),
        ),
        "gate-baseline.jsonl",
    )


def test_junit_has_failures_errors_and_skipped(answer: Answer) -> None:
    suite = ElementTree.fromstring(formats.junit(answer))
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    (failure,) = suite.iter("failure")
    assert failure.get("type") == WORSE and "9.1 before, 8.0 now" in str(failure.text)


def test_json_has_every_case(answer: Answer) -> None:
    reported = json.loads(formats.as_json(answer))
    assert reported["exit_code"] == 2 and [one["status"] for one in reported["cases"]] == [
        EQUAL, WORSE, UNDECIDED, FAILED
    ]  # fmt: skip
    assert reported["cases"][1]["changes"][0]["after"] == "8.0"


def test_markdown_escapes_hostile_names(answer: Answer) -> None:
    text = formats.markdown(answer)
    assert "| slow | sim | Goodput, Mbit/s | 9.1 | 8.0 | -12.1 % | within 1 % | worse |" in text
    assert "`fullpipe compare cubic`" in text
    assert "\x1b" not in text and "<b>" not in text and "\n::error" not in text


def test_github_annotates_each_unequal_case(answer: Answer) -> None:
    annotations = [one for one in formats.github(answer).splitlines() if one.startswith("::")]
    assert [one.partition(" ")[0] for one in annotations] == ["::error", "::notice", "::error"]
    assert "title=Fullpipe gate%3A slow%2C sim is worse::" in annotations[0]


@pytest.mark.parametrize("form", formats.NAMES)
def test_the_command_prints_each_format(form: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    record(HEAD + case())
    code, out, _ = gate("check", "--subject", "cubic:beta=0.5", "--format", form)
    assert code == 1 and "small" in out
    match form:
        case "junit":
            assert ElementTree.fromstring(out).get("failures") == "1"
        case "json":
            assert json.loads(out)["exit_code"] == 1
        case "markdown":
            assert "|---|" in out
        case "github":
            assert out.startswith("::error file=gate.toml,line=4,title=")
    assert (here / "summary.md").exists() == (form == "github")
    assert gate("check", "--format", "html")[0] == 2


# Worlds of wall time, and subjects that misbehave.


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The kernel world answers with what the simulator says; lists the repetitions."""
    ran: list[int] = []

    def changed(one: Any) -> Any:
        ran.append(one.seed)
        # Every second repetition is slower by ten percent.
        goodput = one.summary["total_goodput_bps"] * (0.9 if one.seed % 2 else 1.0)
        return replace(one, summary={**one.summary, "total_goodput_bps": goodput})

    answer_for_the_kernel(monkeypatch, changed)
    monkeypatch.setattr("fullpipe.runs.worlds.kernel.Kernel.refuses", lambda *_: None)
    return ran


KERNEL = 'subject = "cubic"\nworlds = ["kernel"]\nseeds = 1\nrepetitions = 5\n'


def test_wall_time_is_repeated_until_decided(kernel: list[int]) -> None:
    record(KERNEL + case(more='within = { goodput_bps = "1 %" }'))
    assert "spread" in lines()[0] and not lines()[0]["records"]
    kernel.clear()
    code, out, _ = gate("check")
    assert (code, sorted(kernel)) == (0, [1, 2, 3, 4, 5])
    assert out.startswith("0 cases equal, 1 undecided")
    assert gate("check", "--strict")[0] == 1
    write(KERNEL + case(more='within = { goodput_bps = "90 %" }'))
    kernel.clear()
    assert gate("check")[0] == 0
    assert sorted(kernel) == [1, 2, 3], "three repetitions decide that"


def test_untrustworthy_repetitions_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    trusted = {1, 2, 3}

    def changed(one: Any) -> Any:
        doubts = [] if one.seed in trusted else ["the emulator was late"]
        provenance = {**one.summary["provenance"], "untrustworthy": doubts}
        # Goodputs differ by so much that three repetitions decide nothing.
        summary = {**one.summary, "provenance": provenance, "total_goodput_bps": 1e6 * one.seed}
        return replace(one, summary=summary)

    answer_for_the_kernel(monkeypatch, changed)
    monkeypatch.setattr("fullpipe.runs.worlds.kernel.Kernel.refuses", lambda *_: None)
    record(KERNEL + case(more='within = { goodput_bps = "1 %" }'))
    code, out, _ = gate("check")
    assert code == 0 and out.startswith("0 cases equal, 1 undecided"), out
    trusted.clear()
    code, out, _ = gate("check")
    assert code == 2 and "every run of it is untrustworthy" in out, out


@pytest.fixture
def stack(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program for the world quic that behaves as STAND_IN says."""
    path = here / "bin" / "fullpipe-quic"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n', encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(quic_program.VARIABLE, str(path))
    yield


QUIC = 'subject = "noq:bbr3"\nworlds = ["quic"]\nseeds = 1\n' + case()


@pytest.mark.usefixtures("stack")
def test_stack_subject_is_recorded_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    record(QUIC)
    assert gate("check", "--no-cache")[0] == 0
    # A program that was built again has another fingerprint, so that its runs are not those of the cache.
    monkeypatch.setenv("STAND_IN_ABOUT", '{"build": "stand-in 2"}')
    assert gate("check")[0] == 0


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("ends", "it ended with code 3: last words"),
        ("loud", "last words"),
        ("hangs", "it ran for more than 0.5 s, its time limit"),
        ("large", "it sends something else than answers"),
        ("not deterministic", "not deterministic: two runs with seed 1 differ; the runs part at"),
        ("hostile message", "rubbish"),
    ],
)
def test_misbehaving_subject_is_named_writing_nothing(
    how: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = record(QUIC)
    monkeypatch.setenv("STAND_IN", how)
    write(QUIC + ("time_limit = 0.5\n" if how == "hangs" else ""))
    code, _, errors = gate("record", "--no-cache")
    assert code == 2 and "small, quic" in errors and why in errors, errors
    assert "nothing was recorded" in errors and "\x1b" not in errors
    assert Path("gate-baseline.jsonl").read_bytes() == before
    code, out, _ = gate("check", "--no-cache")
    assert code == 2 and "could not be compared" in out and why in " ".join(out.split()), out


@pytest.mark.usefixtures("stack")
def test_a_conformance_case_that_hangs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN", "play hangs")
    monkeypatch.setattr("fullpipe.conformance.runners._PATIENCE_S", 0.5)
    conform = case("clean", kind="conform", path='conform = "clean-path"')
    write('subject = "noq:bbr3"\nworlds = ["quic"]\n' + conform)
    code, _, errors = gate("record")
    assert code == 2 and "clean, quic" in errors and "it does not answer within 0.5 s" in errors, errors


@pytest.mark.usefixtures("stack")
def test_unknown_stack_controller_is_named() -> None:
    write(QUIC.replace("noq:bbr3", "noq:bbr9"))
    code, _, errors = gate("record")
    assert code == 2 and "noq:bbr9" in errors and "noq:bbr3" in errors, errors


def test_missing_program_error_names_make_quic() -> None:
    write(QUIC)
    code, _, errors = gate("record")
    assert code == 2 and "`make quic`" in errors


@pytest.mark.usefixtures("stack")
def test_init_for_stack_uses_its_controllers() -> None:
    assert gate("init", "--stack", "noq")[0] == 0
    found = document.load(Path("gate.toml")).cases
    assert {one.subject for one in found} == {"noq:bbr3", "noq:cubic"}
    assert {one.world for one in found} == {"quic"}
    code, _, errors = gate("init", "--stack", "nox", "--force")
    assert code == 2 and "noq, quinn" in errors
    code, _, errors = gate("init", "--stack", "noq", "--controllers", "vegas", "--force")
    assert code == 2 and "noq:vegas" in errors and "noq:cubic" in errors


def test_baseline_survives_a_round_trip() -> None:
    record(CUBIC)
    found = baseline.read(Path("gate-baseline.jsonl"))
    baseline.write(Path("again.jsonl"), list(found.values()))
    assert Path("again.jsonl").read_bytes() == Path("gate-baseline.jsonl").read_bytes()


# The page, and the templates for CI.

ROOT = Path(__file__).parent.parent


def test_page_is_short_with_valid_example() -> None:
    text = (ROOT / "docs" / "how-to" / "gate.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1300
    *others, example = re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (build,) = [one for one in others if one.startswith("[build]")]
    write(example + build)
    assert [one.name for one in document.load(Path("gate.toml")).cases] == [
        "beside-cubic", "conform/law.run", "conform/law.losses"
    ]  # fmt: skip
    for kept in re.findall(r"^\| `(\w+ = .+?)` \|", text, re.MULTILINE):
        conform = kept.startswith("must_pass")
        kind, path = ("conform", 'conform = "law.run"') if conform else ("compare", ON_PATH)
        write(HEAD + case(more=kept, kind=kind, path=path))
        assert document.load(Path("gate.toml")).cases


@pytest.mark.parametrize("name", ["docs/how-to/gate.md", "README.md", "action.yml", ".gitlab/gate.yml"])
def test_documented_gate_options_exist(name: str) -> None:
    found = re.findall(r"fullpipe gate (\w+)([^`\n]*)", (ROOT / name).read_text(encoding="utf-8"))
    assert found
    for command, rest in found:
        shown = CliRunner().invoke(cli.app, ["gate", command, "--help"], env={"COLUMNS": "1000"}).stdout
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
            assert option in shown, (command, option)


def test_ci_templates_are_yaml() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", ""), "what a pull request names is no part of a script"
    job = yaml.safe_load((ROOT / ".gitlab" / "gate.yml").read_text(encoding="utf-8"))["fullpipe-gate"]
    assert job["artifacts"]["reports"]["junit"] == "gate-out/gate.xml"
