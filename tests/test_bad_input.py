"""Bad input: one sentence that names the field and the fix, exit code 2, no traceback, nothing on stdout."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import without_rights
from conftest import PATH, command
from fullpipe.cli import app as cli
from fullpipe.cli import options

SIM = ("--duration", "1 s", "--seeds", "1", "--json")


def compare(*arguments: str) -> list[str]:
    return ["compare", *arguments, *SIM]


BAD_ARGUMENTS = {
    "unknown controller": (compare("brr9", *PATH), "controller", "brr9"),
    "unknown parameter": (compare("bbr1:probe_gian=1.5", *PATH), "probe_gian", "did you mean probe_gain"),
    "unknown version": (compare("bbr2", *PATH), 'bbr2" is not available', "use bbr1, bbr3"),
    "parameter without a value": (compare("bbr1:probe_gain", *PATH), "write for example", "probe_gain"),
    "parameter that is no number": (compare("bbr1:probe_gain=much", *PATH), "probe_gain", "much"),
    "empty controller": (compare("", *PATH), "controller", '""'),
    "rate zero": (compare("bbr1", "--rate", "0 Mbit/s", "--rtt", "40 ms"), '--rate "', "0"),
    "negative rate": (compare("bbr1", "--rate", "-5 Mbit/s", "--rtt", "40 ms"), '--rate "', "-5"),
    "rate NaN": (compare("bbr1", "--rate", "NaN", "--rtt", "40 ms"), '--rate "', "NaN"),
    "rate infinite": (compare("bbr1", "--rate", "inf Mbit/s", "--rtt", "40 ms"), '--rate "', "inf"),
    "rate in parsecs": (compare("bbr1", "--rate", "100 parsecs", "--rtt", "40 ms"), '--rate "', "parsecs"),
    "rate without a unit": (compare("bbr1", "--rate", "100", "--rtt", "40 ms"), '--rate "', "100"),
    "rate empty": (compare("bbr1", "--rate", "", "--rtt", "40 ms"), '--rate "', '""'),
    "negative rtt": (compare("bbr1", "--rate", "10mbit", "--rtt", "-1 ms"), '--rtt "', "-1"),
    "rtt NaN": (compare("bbr1", "--rate", "10mbit", "--rtt", "nan ms"), '--rtt "', "nan"),
    "buffer below one packet": (compare("bbr1", *PATH, "--buffer", "100 B"), '--buffer "', "100 B"),
    "buffer below one packet of a slow path": (
        compare("bbr1", "--rate", "1mbit", "--rtt", "10ms", "--buffer", "0.5bdp"),
        '--buffer "0.5bdp" is below one packet (625 B)',
        'write --buffer "20 packets"',
    ),
    "a range of round-trip times": (
        compare("bbr1", "--rate", "10mbit", "--rtt", "20..80ms"),
        '--rtt "20..80ms" is a range, not one value',
        'write --rtt "40 ms"',
    ),
    "a range with a dash": (
        compare("bbr1", "--rate", "10-20mbit", "--rtt", "20ms"),
        '--rate "10-20mbit" is a range, not one value',
        "expected a number with a unit",
    ),
    "buffer negative": (compare("bbr1", *PATH, "--buffer", "-1 bdp"), '--buffer "', "-1"),
    "unknown queue": (compare("bbr1", *PATH, "--queue", "fifoo"), '--queue "fifoo', "did you mean fifo"),
    "empty queue": (compare("bbr1", *PATH, "--queue", ""), "--queue", '""'),
    "setting of a queue without settings": (
        compare("bbr1", *PATH, "--queue", "fifo:flows=1000000000000"),
        "--queue",
        "is not a setting of fifo",
    ),
    "loss above one": (compare("bbr1", *PATH, "--loss", "150 %"), '--loss "', "150"),
    "loss negative": (compare("bbr1", *PATH, "--loss", "-1 %"), '--loss "', "-1"),
    "duration zero": (["compare", "bbr1", *PATH, "--duration", "0 s", "--json"], '--duration "0 s', "0"),
    "no flows": (compare("bbr1", *PATH, "--flows", "0"), "--flows", "0"),
    "no seeds": (["compare", "bbr1", *PATH, "--seeds", "0", "--json"], "--seeds", "0"),
    "negative repetitions": (compare("bbr1", *PATH, "--repetitions", "-1"), "--repetitions", "-1"),
    "unknown world": (compare("bbr1", *PATH, "--world", "mars"), '--world "mars', "mars"),
    "seeds that are no number": (["compare", "bbr1", *PATH, "--seeds", "many"], "--seeds", "whole number"),
    "missing rtt": (["compare", "bbr1", "--rate", "10mbit"], "--rtt", "add --rtt '40 ms'"),
    "no controller": (["compare", *PATH], "CC", "missing"),
    "missing parsecs": (
        ["shell", "--rate", "1mbit", "--rtt", "40 parsecs", "--", "true"],
        "--rtt",
        "parsecs",
    ),
    "too many seeds": (
        [*compare("bbr1", *PATH)[:-3], "--seeds", "100000000"],
        "--seeds",
        "at most 10000 runs",
    ),
    "too many runs": (
        ["compare", "bbr1", "cubic", *PATH, "--seeds", "6000"],
        "--seeds 6000",
        "2 alternatives with 6000 seeds each are 12000",
    ),
    "too many repetitions": (
        ["compare", "bbr1", *PATH, "--world", "kernel", "--repetitions", "10001"],
        "--repetitions",
        "at most 10000 runs",
    ),
    "too many flows": (compare("bbr1", *PATH, "--flows", "100001"), "--flows", "100000"),
    "unknown option": (["compare", "bbr1", *PATH, "--colour"], "--colour", "No such option"),
    "unknown command": (["comapre"], "comapre", "compare"),
    "shell without rate": (["shell", "--rtt", "40 ms", "--", "true"], "--rate is missing", "add --rate"),
    "shell with a broken server": (
        ["shell", *PATH, "--server", "echo 'x", "--", "true"],
        '--server "',
        "quot",
    ),
}


@pytest.mark.parametrize(("arguments", "field", "given"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_a_bad_argument_is_one_sentence(
    arguments: list[str], field: str, given: str, in_empty_folder: Path
) -> None:
    done = CliRunner().invoke(cli.app, arguments)
    expect_one_sentence(done.exit_code, done.stdout, done.stderr, field, given)


PATH_TOML = '[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\n'

BAD_SCENARIOS = {
    "wrong key": (
        PATH_TOML + 'bufer = "1 bdp"\n[[flows]]\ncontroller = "bbr1"\n',
        "bad.toml:4: path.bufer: ",
        "buffer",
    ),
    "unknown queue": (
        PATH_TOML + 'queue = "fifoo:target=5 ms"\n[[flows]]\ncontroller = "bbr1"\n',
        "bad.toml:4: path.queue: ",
        "did you mean fifo",
    ),
    "queue of a megabyte": (
        PATH_TOML + f'queue = "{"x" * 1_000_000}"\n[[flows]]\ncontroller = "bbr1"\n',
        "bad.toml:4: path.queue: ",
        "is not a queue discipline",
    ),
    "wrong key at the top": ('compere = ["bbr1"]\n' + PATH_TOML, "bad.toml:1: compere", "compare"),
    "no path": ('compare = ["bbr1"]\n', "bad.toml: path", "nothing"),
    # `run` has an option of the same name.
    "seed": ("seed = -1\n", "bad.toml:1: seed: ", "negative"),
    "no TOML": ("this is not TOML\n", "bad.toml:1:6: ", "TOML"),
    "empty file": ("", "path", "nothing"),
    "wrong type": ('compare = "bbr1"\n' + PATH_TOML, "compare", "bbr1"),
    "missing deliveries": (
        'compare = ["bbr1"]\n[path]\ndeliveries = "none.deliveries"\nrtt = "20 ms"\n',
        "bad.toml:3: path.deliveries: ",
        "none.deliveries",
    ),
    "empty deliveries": (
        'compare = ["bbr1"]\n[path]\ndeliveries = "empty.deliveries"\nrtt = "20 ms"\n',
        "path.deliveries",
        "empty",
    ),
    "malformed deliveries": (
        'compare = ["bbr1"]\n[path]\ndeliveries = "malformed.deliveries"\nrtt = "20 ms"\n',
        "path.deliveries",
        "line 2",
    ),
    "deliveries that go back": (
        'compare = ["bbr1"]\n[path]\ndeliveries = "backwards.deliveries"\nrtt = "20 ms"\n',
        "path.deliveries",
        "line 2",
    ),
}


@pytest.mark.parametrize(("text", "field", "given"), BAD_SCENARIOS.values(), ids=BAD_SCENARIOS)
def test_a_bad_scenario_is_one_sentence(text: str, field: str, given: str, in_empty_folder: Path) -> None:
    for name, times in (("empty", ""), ("malformed", "1\ntwo\n3\n"), ("backwards", "5\n3\n")):
        Path(f"{name}.deliveries").write_text(times, encoding="utf-8")
    Path("bad.toml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(cli.app, ["run", "bad.toml"])
    expect_one_sentence(done.exit_code, done.stdout, done.stderr, field, given)
    assert not Path("out").exists()


@pytest.mark.parametrize("kind", ["missing", "folder", "not text"])
def test_an_unreadable_file_is_one_sentence(kind: str, in_empty_folder: Path) -> None:
    if kind == "folder":
        Path("some.toml").mkdir()
    elif kind == "not text":
        Path("some.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("run", "agree"):
        done = CliRunner().invoke(cli.app, [name, "some.toml"])
        expect_one_sentence(done.exit_code, done.stdout, done.stderr, "scenario", "some.toml")


def test_out_file_path_is_an_error(in_empty_folder: Path) -> None:
    Path("taken").write_text("", encoding="utf-8")
    done = CliRunner().invoke(cli.app, ["compare", "bbr1", *PATH, "--out", "taken"])
    expect_one_sentence(done.exit_code, done.stdout, done.stderr, "out", "taken")


@pytest.mark.parametrize(
    "arguments", [BAD_ARGUMENTS["rate in parsecs"][0], ["run", "nowhere.toml"], ["comapre"]]
)
def test_shell_gives_same_errors(arguments: list[str], in_empty_folder: Path) -> None:
    done = command(*arguments)
    expect_one_sentence(done.returncode, done.stdout, done.stderr, "", "")


def test_nan_names_its_field() -> None:
    import fullpipe as fp

    for value in (float("nan"), float("inf"), -1.0, 0):
        with pytest.raises(fp.ScenarioError) as caught:
            fp.compare(["bbr1"], rate=value, rtt="40 ms")
        assert caught.value.field == "rate"
        assert str(caught.value).startswith("rate: ")


def test_unprivileged_kernel_world_suggests_fix(in_empty_folder: Path) -> None:
    done = powerless("compare", "reno", *PATH, *SIM, "--world", "kernel", "--repetitions", "1")
    expect_one_sentence(done.returncode, done.stdout, done.stderr, "permit", "root")


def test_unprivileged_all_worlds_still_simulates(in_empty_folder: Path) -> None:
    done = powerless("compare", "reno", *PATH, "--duration", "1 s", "--world", "all", "--out", "here")
    assert done.returncode == 0, done.stderr
    assert "The kernel world did not run" in done.stdout
    assert "root" in done.stdout
    assert "The kernel world did not run" in Path("here/report.html").read_text(encoding="utf-8")


def expect_one_sentence(code: int, stdout: str, stderr: str, field: str, given: str) -> None:
    assert code == options.MISTAKE, stdout + stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert len(stderr.strip().splitlines()) == 1, stderr
    assert stderr.startswith("fullpipe: ")
    assert field.lower() in stderr.lower()
    assert given in stderr
    assert ";" in stderr, "a fix follows"


def powerless(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs `fullpipe` without any capability, and where no user namespace can be made either."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("without_rights.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode == without_rights.CANNOT_DROP:
        pytest.skip(f"cannot take rights away here: {done.stderr.strip()}")
    return done


# What Rust's TOML 1.1 accepts and Python's tomllib refuses, at the head or in a flow.
DIALECTS = {
    "a byte order mark": ("\ufeff", ""),
    "a newline in an inline table": ("", 'bursts = {\n  size = "20 KB", every = "100 ms" }\n'),
    "a comma at the end of an inline table": ("", 'bursts = { size = "20 KB", every = "100 ms", }\n'),
    "a hexadecimal escape": ("", 'label = "\\x41"\n'),
    "an escape character": ("# \\e\n", 'start = "\\x30"\n'),
}


@pytest.mark.parametrize(("head", "tail"), DIALECTS.values(), ids=DIALECTS)
def test_cli_and_api_share_document_reader(head: str, tail: str, in_empty_folder: Path) -> None:
    import fullpipe as fp

    text = f'{head}duration = "300 ms"\n{PATH_TOML}[[flows]]\ncontroller = "reno"\n{tail}'
    Path("some.toml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(cli.app, ["run", "some.toml", "--out", "here"])
    assert done.exit_code == 0, done.stderr
    assert "20 ms" in Path("here/report.html").read_text(encoding="utf-8")
    results = fp.run("some.toml")
    assert results.scenario.document["path"] == {"rate": "10 Mbit/s", "rtt": "20 ms"}
    assert list(results.scenario.document) == ["duration", "path", "flows"]
    assert '"rtt": "20 ms"' in results.to_json()
    results.report("report.html")


@pytest.mark.parametrize(("head", "tail"), DIALECTS.values(), ids=DIALECTS)
def test_grid_uses_same_reader(head: str, tail: str, in_empty_folder: Path) -> None:
    cell = '[[cells]]\nname = "a"\nrate = "10 Mbit/s"\nrtt = "20 ms"\nduration = "1 s"\n'
    flow = tail or 'label = "A"\n'
    text = f'{head}{cell}[[cells.flows]]\ncontroller = "reno"\n{flow}'
    Path("grid.toml").write_text(text, encoding="utf-8")
    done = CliRunner().invoke(cli.app, ["agree", "--grid", "grid.toml", "--list", "--json"])
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("file", ["/dev/zero", "pipe", "huge", "/proc/self/status"])
def test_only_bounded_regular_files_are_read(file: str, in_empty_folder: Path) -> None:
    os.mkfifo("pipe")
    with Path("huge").open("wb") as huge:
        huge.truncate(3 << 30)
    Path("trace.toml").write_text(
        f'compare = ["reno"]\n[path]\ndeliveries = "{file}"\nrtt = "20 ms"\n', encoding="utf-8"
    )
    for arguments in (
        ["run", file],
        ["agree", "--grid", file if "/" in file else f"./{file}"],
        ["run", "trace.toml"],
        ["flows", file, "--out", "flows.parquet"],
    ):
        done = command(*arguments)
        assert (done.returncode, done.stdout) == (options.MISTAKE, ""), arguments
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_foreign_scenario_quotes_no_other_files(in_empty_folder: Path) -> None:
    Path("secret").write_text("1\nhidden:x:0\n", encoding="utf-8")
    Path("stranger").mkdir()
    Path("stranger/link").symlink_to(Path("secret").absolute())
    path = 'rtt = "20 ms"\npath.deliveries = '
    for name in ("../secret", "link", str(Path("secret").absolute())):
        Path("stranger/s.toml").write_text(f'compare = ["reno"]\npath.{path}"{name}"\n', encoding="utf-8")
        grid = f'[[cells]]\nname = "a"\ncontroller = "reno"\n{path}"{name}"\n'
        Path("stranger/g.toml").write_text(grid, encoding="utf-8")
        for arguments in (["run", "stranger/s.toml"], ["agree", "--grid", "stranger/g.toml"]):
            done = CliRunner().invoke(cli.app, arguments)
            expect_one_sentence(
                done.exit_code, done.stdout, done.stderr, "deliveries", "line 2 is not a time"
            )
            assert "hidden" not in done.stderr


def message(*arguments: str) -> str:
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 2, done.stdout
    return done.stderr.strip()


def test_invalid_numbers_give_own_messages() -> None:
    seeds = ["compare", "bbr1", *PATH, "--seeds"]
    help_of = "see `fullpipe compare --help`"
    assert message(*seeds, "many") == (
        f'fullpipe: --seeds "many" cannot be used; expected a whole number; {help_of}'
    )
    below = message("deliveries", "--mean", "1mbit", "--out", "x", "--seed=-1")
    assert below.startswith('fullpipe: --seed "-1" cannot be used; expected a number from 0; see ')


def test_a_suggestion_ends_with_one_mark() -> None:
    assert message("comprae") == (
        "fullpipe: No such command 'comprae'; did you mean 'compare'? See `fullpipe --help`"
    )


def test_missing_recording_option_is_named() -> None:
    record = ("kernel", "record", "--cc", "cubic", "--out", "x")
    assert message(*record, "--rate", "10mbit").startswith("fullpipe: --rtt is missing; ")
    assert message(*record, "--rtt", "10 ms").startswith("fullpipe: --rate is missing; ")


def test_missing_flow_list_names_variable(in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FULLPIPE_FLOWS", "nosuch")
    asked = ("study", "run", "ccwg25.short", "--quick", "--out", "here")
    assert 'FULLPIPE_FLOWS: "nosuch" cannot be used' in message(*asked)


def test_unused_repetition_count_is_reported(in_empty_folder: Path) -> None:
    short = ("compare", "reno", *PATH, "--duration", "300 ms", "--seeds", "1", "--json")
    done = CliRunner().invoke(cli.app, [*short, "--repetitions", "5"])
    assert done.exit_code == 0
    assert done.stderr.strip() == (
        "fullpipe: --repetitions has no effect with --world sim; it counts runs of kernel"
    )
    assert CliRunner().invoke(cli.app, short).stderr == ""


def test_missing_results_directory_is_reported() -> None:
    for verb in ("list", "claims"):
        assert message("study", verb, "--out", "nosuch").startswith('fullpipe: --out "nosuch" cannot be used')


def test_unnamed_scenario_results_use_file_name(in_empty_folder: Path) -> None:
    Path("mine.toml").write_text(f'duration = "300 ms"\ncompare = ["reno"]\n{PATH_TOML}', encoding="utf-8")
    done = CliRunner().invoke(cli.app, ["run", "mine.toml"])
    assert done.stderr.startswith("Report: out/mine-")
