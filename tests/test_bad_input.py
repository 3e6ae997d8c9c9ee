"""Bad input: one sentence that names the field and the mend, exit code 2, no traceback, nothing on stdout."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import without_rights
from conftest import PATH, command
from fullpipe import cli

SIM = ("--duration", "1 s", "--seeds", "1", "--json")


def compare(*arguments: str) -> list[str]:
    return ["compare", *arguments, *SIM]


BAD_ARGUMENTS = {
    "unknown controller": (compare("bbr9", *PATH), "compare", "bbr9"),
    "unknown parameter": (compare("bbr1:probe_gian=1.5", *PATH), "probe_gian", "probe_gain"),
    "parameter without a value": (compare("bbr1:probe_gain", *PATH), "compare", "probe_gain"),
    "parameter that is no number": (compare("bbr1:probe_gain=much", *PATH), "probe_gain", "much"),
    "empty controller": (compare("", *PATH), "compare", '""'),
    "rate zero": (compare("bbr1", "--rate", "0 Mbit/s", "--rtt", "40 ms"), "path.rate", "0"),
    "negative rate": (compare("bbr1", "--rate", "-5 Mbit/s", "--rtt", "40 ms"), "path.rate", "-5"),
    "rate NaN": (compare("bbr1", "--rate", "NaN", "--rtt", "40 ms"), "path.rate", "NaN"),
    "rate infinite": (compare("bbr1", "--rate", "inf Mbit/s", "--rtt", "40 ms"), "path.rate", "inf"),
    "rate in parsecs": (compare("bbr1", "--rate", "100 parsecs", "--rtt", "40 ms"), "path.rate", "parsecs"),
    "rate without a unit": (compare("bbr1", "--rate", "100", "--rtt", "40 ms"), "path.rate", "100"),
    "rate empty": (compare("bbr1", "--rate", "", "--rtt", "40 ms"), "path.rate", '""'),
    "negative rtt": (compare("bbr1", "--rate", "10mbit", "--rtt", "-1 ms"), "path.rtt", "-1"),
    "rtt NaN": (compare("bbr1", "--rate", "10mbit", "--rtt", "nan ms"), "path.rtt", "nan"),
    "buffer below one packet": (compare("bbr1", *PATH, "--buffer", "100 B"), "path.buffer", "100 B"),
    "buffer negative": (compare("bbr1", *PATH, "--buffer", "-1 bdp"), "path.buffer", "-1"),
    "loss above one": (compare("bbr1", *PATH, "--loss", "150 %"), "path.loss", "150"),
    "loss negative": (compare("bbr1", *PATH, "--loss", "-1 %"), "path.loss", "-1"),
    "duration zero": (["compare", "bbr1", *PATH, "--duration", "0 s", "--json"], "duration", "0"),
    "no flows": (compare("bbr1", *PATH, "--flows", "0"), "flows", "0"),
    "no seeds": (["compare", "bbr1", *PATH, "--seeds", "0", "--json"], "seeds", "0"),
    "negative repetitions": (compare("bbr1", *PATH, "--repetitions", "-1"), "repetitions", "-1"),
    "unknown world": (compare("bbr1", *PATH, "--world", "mars"), "world", "mars"),
    "seeds that are no number": (["compare", "bbr1", *PATH, "--seeds", "many"], "--seeds", "integer"),
    "missing rtt": (["compare", "bbr1", "--rate", "10mbit"], "--rtt", "Missing"),
    "no controller": (["compare", *PATH], "CC", "Missing"),
    "unknown option": (["compare", "bbr1", *PATH, "--colour"], "--colour", "No such option"),
    "unknown command": (["comapre"], "comapre", "compare"),
    "shell without rate": (["shell", "--rtt", "40 ms", "--", "true"], "rate", "path"),
    "shell with a broken server": (["shell", *PATH, "--server", "echo 'x", "--", "true"], "server", "quot"),
}


@pytest.mark.parametrize(("arguments", "field", "given"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_a_bad_argument_is_one_sentence(
    arguments: list[str], field: str, given: str, in_empty_folder: Path
) -> None:
    done = CliRunner().invoke(cli.app, arguments)
    expect_one_sentence(done.exit_code, done.stdout, done.stderr, field, given)


PATH_TOML = '[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\n'

BAD_SCENARIOS = {
    "wrong key": (PATH_TOML + 'bufer = "1 bdp"\n[[flows]]\ncontroller = "bbr1"\n', "bufer", "buffer"),
    "wrong key at the top": ('compere = ["bbr1"]\n' + PATH_TOML, "compere", "compare"),
    "no path": ('compare = ["bbr1"]\n', "path", "nothing"),
    "no TOML": ("this is not TOML\n", "line 1", "TOML"),
    "empty file": ("", "path", "nothing"),
    "wrong type": ('compare = "bbr1"\n' + PATH_TOML, "compare", "bbr1"),
    "missing trace": (
        'compare = ["bbr1"]\n[path]\ntrace = "none.trace"\nrtt = "20 ms"\n',
        "path.trace",
        "none.trace",
    ),
    "empty trace": (
        'compare = ["bbr1"]\n[path]\ntrace = "empty.trace"\nrtt = "20 ms"\n',
        "path.trace",
        "empty",
    ),
    "malformed trace": (
        'compare = ["bbr1"]\n[path]\ntrace = "malformed.trace"\nrtt = "20 ms"\n',
        "path.trace",
        "line 2",
    ),
    "trace that goes back": (
        'compare = ["bbr1"]\n[path]\ntrace = "backwards.trace"\nrtt = "20 ms"\n',
        "path.trace",
        "line 2",
    ),
}


@pytest.mark.parametrize(("text", "field", "given"), BAD_SCENARIOS.values(), ids=BAD_SCENARIOS)
def test_a_bad_scenario_is_one_sentence(text: str, field: str, given: str, in_empty_folder: Path) -> None:
    for name, trace in (("empty", ""), ("malformed", "1\ntwo\n3\n"), ("backwards", "5\n3\n")):
        Path(f"{name}.trace").write_text(trace, encoding="utf-8")
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


def test_an_out_that_is_a_file_is_one_sentence(in_empty_folder: Path) -> None:
    Path("taken").write_text("", encoding="utf-8")
    done = CliRunner().invoke(cli.app, ["compare", "bbr1", *PATH, "--out", "taken"])
    expect_one_sentence(done.exit_code, done.stdout, done.stderr, "out", "taken")


@pytest.mark.parametrize(
    "arguments", [BAD_ARGUMENTS["rate in parsecs"][0], ["run", "nowhere.toml"], ["comapre"]]
)
def test_from_a_shell_it_is_the_same(arguments: list[str], in_empty_folder: Path) -> None:
    done = command(*arguments)
    expect_one_sentence(done.returncode, done.stdout, done.stderr, "", "")


def test_nan_as_a_number_names_its_field() -> None:
    import fullpipe as fp

    for value in (float("nan"), float("inf"), -1.0, 0):
        with pytest.raises(fp.ScenarioError) as caught:
            fp.compare(["bbr1"], rate=value, rtt="40 ms")
        assert caught.value.field == "path.rate"


def test_without_permission_the_kernel_world_says_what_to_do(in_empty_folder: Path) -> None:
    done = powerless("compare", "reno", *PATH, *SIM, "--world", "kernel", "--repetitions", "1")
    expect_one_sentence(done.returncode, done.stdout, done.stderr, "permit", "root")


def test_without_permission_all_still_simulates_and_says_so(in_empty_folder: Path) -> None:
    done = powerless("compare", "reno", *PATH, "--duration", "1 s", "--world", "all", "--out", "here")
    assert done.returncode == 0, done.stderr
    assert "The kernel world did not run" in done.stdout
    assert "root" in done.stdout
    assert "The kernel world did not run" in Path("here/report.html").read_text(encoding="utf-8")


def expect_one_sentence(code: int, stdout: str, stderr: str, field: str, given: str) -> None:
    assert code == cli.MISTAKE, stdout + stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert len(stderr.strip().splitlines()) == 1, stderr
    assert stderr.startswith("fullpipe: ")
    assert field.lower() in stderr.lower()
    assert given in stderr
    assert ";" in stderr, "a mend follows"


def powerless(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs `fullpipe` without any capability, and where no user namespace can be made either."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("without_rights.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == without_rights.CANNOT_DROP:
        pytest.skip(f"cannot take rights away here: {done.stderr.strip()}")
    return done
