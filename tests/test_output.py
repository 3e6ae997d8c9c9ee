"""What commands do where output cannot go: full disks, removed folders, closed pipes, odd paths."""

import json
import os
import resource
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import fullpipe as fp
from conftest import PATH, answer_for_the_kernel, command
from fullpipe import _native, files
from fullpipe.cli import app as cli
from fullpipe.cli import options
from fullpipe.cli.sweep_progress import Watched
from fullpipe.conformance import recordings
from fullpipe.measures.run import Run
from fullpipe.runs.worlds import kernel, kernel_check

SHORT = (*PATH, "--duration", "300 ms", "--seeds", "1")
SCENARIO = 'duration = "300 ms"\n[path]\nrate = "5 Mbit/s"\nrtt = "10 ms"\n[[flows]]\ncontroller = "reno"\n'
GRID = (
    '[defaults]\nduration = "300 ms"\nrate = "5 Mbit/s"\nrtt = "20 ms"\n'
    '[[cells]]\nname = "one"\ncontroller = "reno"\n'
)


@pytest.fixture
def here(in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario, a grid and a document, and a kernel world that answers with what the simulator measures."""
    Path("one.toml").write_text(SCENARIO)
    Path("grid.toml").write_text(GRID)
    shutil.copytree(Path(__file__).parents[1] / "results", "results")

    answer_for_the_kernel(monkeypatch)
    recorded = recordings.Recording({"flows": [], "kernel": "", "calls": 0, "lost": 0}, b"x" * 1000)
    monkeypatch.setattr(recordings, "record", lambda *_, **__: recorded)
    monkeypatch.setattr("fullpipe.conformance.recording_tables.recording", lambda _: "recorded")
    monkeypatch.setattr("fullpipe.conformance.recording_tables.recording_total", lambda *_: "recorded")
    monkeypatch.setattr("fullpipe.report.figures.emulator.figure", lambda *_: None)
    monkeypatch.setattr(kernel_check, "run", lambda *_: [])
    monkeypatch.setattr("fullpipe.report.tables.emulator", lambda _: "checked")
    monkeypatch.setattr("fullpipe.report.tables.emulator_notes", lambda _: [])
    monkeypatch.setenv("XDG_CACHE_HOME", str(in_empty_folder / "cache"))
    return in_empty_folder


def contents(folder: Path) -> set[str]:
    return {str(one.relative_to(folder)) for one in folder.rglob("*")}


COMMANDS = {
    "compare": ("compare", "reno", *SHORT, "--out", "new"),
    "compare --json": ("compare", "reno", *SHORT, "--json", "--out", "new"),
    "run": ("run", "one.toml", "--out", "new"),
    "agree": ("agree", "one.toml", "--seeds", "1", "--repetitions", "1", "--out", "new"),
    "agree --grid": ("agree", "--grid", "grid.toml", "--seeds", "1", "--repetitions", "1", "--out", "new"),
    "kernel record": ("kernel", "record", "--cc", "bbr", *PATH, "--out", "new.recording"),
    "kernel check": ("kernel", "check", "--out", "new"),
    "deliveries": ("deliveries", "--mean", "10 Mbit/s", "--out", "new.trace"),
    "flows": ("flows", "--synthetic", "--flows", "20", "--out", "new.parquet"),
    "study run": ("study", "run", "queue16.fig4", "--quick", "--seeds", "1", "--out", "new"),
}


@pytest.mark.full_disk
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_unwritable_disk_is_an_error(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == options.MISTAKE, done.stdout + done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("fullpipe: cannot write new")
    assert "same command again" in last
    assert [one for one in Path().rglob("new*") if one.is_file()] == []
    assert list(Path().rglob("*.part")) == []
    # A sweep stops before it runs what it could not keep.
    if arguments[0] in ("compare", "run", "agree", "kernel") and not {"--json", "--grid"} & {*arguments}:
        assert done.stdout.strip(), "what was measured is printed, though it is not kept"
    if arguments[0] == "compare" and "--json" in arguments:
        assert json.loads(done.stdout)["results"]


@pytest.mark.full_disk
@pytest.mark.usefixtures("here")
def test_evidence_that_cannot_be_written_stays() -> None:
    before = Path("results/agreement.jsonl").read_text()
    done = CliRunner().invoke(cli.app, [*COMMANDS["agree --grid"], "--record"])
    assert done.exit_code == options.MISTAKE
    assert Path("results/agreement.jsonl").read_text() == before


def test_really_full_disk_keeps_fitting_runs(in_empty_folder: Path) -> None:
    """In a mount namespace of its own, so that the disk goes away with the process."""
    disk = in_empty_folder / "disk"
    disk.mkdir()
    kept = in_empty_folder / "kept"
    inside = (
        f'mount -t tmpfs -o size=200k none "{disk}" && "$@"; code=$?; '
        f'cp -r "{disk}/x" "{kept}" 2>/dev/null; exit $code'
    )
    enter = ["unshare", "--mount", "sh", "-c", inside, "sh"]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no right to mount a small disk")
    asked = ["compare", "reno", *PATH, "--duration", "2 s", "--seeds", "20", "--out", str(disk / "x")]
    done = subprocess.run(
        [*enter, sys.executable, "-m", "fullpipe", *asked], capture_output=True, text=True, check=False
    )
    assert done.returncode == options.MISTAKE, done.stderr
    assert "No space left on device; free about 1 MB on the disk of" in done.stderr
    assert "Traceback" not in done.stderr and "reno" in done.stdout
    number = int(done.stderr.split(" of 20 runs are in ")[0].split()[-1])
    whole = [json.loads(path.read_text()) for path in kept.glob("runs/*.json")]
    assert 0 < number == len(whole) < 20
    assert all(pl.read_parquet(path).width for path in kept.glob("runs/*.parquet"))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["study run", "agree --grid"])
def test_directory_removed_during_run_is_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watched, "__call__", lambda *_: shutil.rmtree("new", ignore_errors=True))
    done = CliRunner().invoke(cli.app, COMMANDS[name])
    assert done.exit_code == options.MISTAKE, done.stdout + done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert "the folder new does not exist" in last and "are kept" not in last


# Folders.


REFUSED = {
    "compare": ("compare", "bbr9", *SHORT, "--out", "new"),
    "compare, no kernel": ("compare", "reno", *SHORT, "--world", "kernel", "--out", "new/deep"),
    "compare, default": ("compare", "bbr9", *SHORT),
    "run": ("run", "one.toml", "--world", "mars", "--out", "new"),
    "run, default": ("run", "one.toml", "--world", "kernel"),
    "agree": ("agree", "one.toml", "--out", "new"),
    "agree, numbers": ("agree", "one.toml", "--seeds", "0", "--out", "new"),
    "agree --grid": COMMANDS["agree --grid"],
    "kernel check": ("kernel", "check", "--out", "new"),
    "study run": ("study", "run", "queue16.fig4", "--quick", "--seeds", "0", "--out", "new"),
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
def test_a_refused_command_leaves_no_folder(
    arguments: tuple[str, ...], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_kernel(*_: object, **__: object) -> Run:
        raise _native.WorldError("the kernel world cannot run here; ask root")

    monkeypatch.setattr(kernel.Kernel, "run", no_kernel)
    monkeypatch.setattr(kernel_check, "run", no_kernel)
    before = contents(here)
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == options.MISTAKE, done.stdout + done.stderr
    assert contents(here) == before


@pytest.mark.usefixtures("here")
def test_commands_of_same_second_separate_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda *_: "20250101-000000")
    for verb in (("compare", "reno", *SHORT), ("run", "one.toml")):
        message = [CliRunner().invoke(cli.app, verb).stderr for _ in range(3)]
        places = [one.strip().split("Report: ")[1] for one in message]
        assert len(set(places)) == 3 and all(Path(one).is_file() for one in places)
        assert places[1].endswith("20250101-000000-2/report.html")


def test_long_controller_name_shortens_file_name(here: Path) -> None:
    text = "bbr1:probe_gain=1.25" + "0" * 300
    done = CliRunner().invoke(cli.app, ["compare", text, *SHORT])
    assert done.exit_code == 0, done.stderr
    assert len(list(here.glob("out/*/runs/*.json"))) == 1


# Paths.


def path_parameters() -> list[tuple[str, object]]:
    """Every parameter of every command that is a path, with what parses it."""
    found = []
    groups = [typer.main.get_command(cli.app)]
    for group in groups:
        for one in group.commands.values():
            if hasattr(one, "commands"):
                groups.append(one)
                continue
            for name, hint in typing.get_type_hints(one.callback, include_extras=True).items():
                if "Path" in str(typing.get_args(hint)[:1]):
                    found.append((f"{one.name}.{name}", hint.__metadata__[0].parser))
    return found


def test_path_parameters_share_one_parser() -> None:
    found = path_parameters()
    assert len(found) >= 16
    assert [name for name, parser in found if parser is not options.path] == []


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("compare", "reno", *SHORT, "--out"), "--out"),
        (("agree", "--grid"), "--grid"),
        (("shell", "--rtt", "1 ms", "--deliveries"), "--deliveries"),
        (("deliveries", "--mean", "1mbit", "--out"), "--out"),
        (("run",), "SCENARIO"),
    ],
)
def test_empty_path_error_names_option(arguments: tuple[str, ...], option: str, here: Path) -> None:
    before = contents(here)
    for given, message in (("", '"" is no path'), ("~nosuchuser/x", 'write "./~nosuchuser/x"')):
        done = CliRunner().invoke(cli.app, [*arguments, given])
        assert done.exit_code == options.MISTAKE
        assert option in done.stderr and message in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert contents(here) == before


def test_a_tilde_is_the_home_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here / "home"))
    shutil.copytree(here, here / "home", ignore=lambda *_: ["home"])
    done = CliRunner().invoke(cli.app, ["run", "~/one.toml", "--out=~/x"])
    assert done.exit_code == 0, done.stderr
    assert (here / "home" / "x" / "report.html").is_file()
    assert not (here / "~").exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("study", "run", "queue16.fig4", "--out", "x" * 256), "over 255 bytes"),
        (("deliveries", "--mean", "1mbit", "--out", "x" * 256), "over 255 bytes"),
        (("run", "one.toml", "--out", "one.toml/x"), "one.toml is a file"),
    ],
)
def test_unwritable_output_fails_before_work(arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == options.MISTAKE, done.stdout + done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr and done.stdout == ""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_file_system_refusing_files_is_error() -> None:
    with pytest.raises(fp.OutputError, match="no file can be made in /proc; name another place"):
        files.make_folder(Path("/proc/none"))


# stdout and stderr.


def fullpipe(*arguments: str, **more: object) -> "subprocess.CompletedProcess[str]":
    asked = [sys.executable, "-m", "fullpipe", *arguments]
    return subprocess.run(asked, text=True, timeout=600, check=False, **more)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("name", ["controllers", "--help", "--version", "schema"])
def test_a_full_stdout_is_a_sentence(name: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = fullpipe(name, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == options.MISTAKE
    (line,) = done.stderr.splitlines()
    assert line.startswith("fullpipe: cannot write to stdout: No space left on device; ")


@pytest.mark.parametrize("full", [True, False], ids=["full", "closed"])
def test_report_is_written_with_stdout_closed(full: bool, in_empty_folder: Path) -> None:
    with Path("/dev/full").open("w") if full else closed_pipe() as nobody:
        done = fullpipe("compare", "reno", *SHORT, "--out", "here", stdout=nobody, stderr=subprocess.PIPE)
    assert done.returncode == (options.MISTAKE if full else 0), done.stderr
    assert done.stderr.splitlines()[0] == "Report: here/report.html"
    assert len(done.stderr.splitlines()) == (2 if full else 1)
    assert Path("here/report.html").is_file()


def closed_pipe() -> typing.IO[str]:
    """A pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_closed_streams_are_no_traceback(closed: str, in_empty_folder: Path) -> None:
    asked = [sys.executable, "-m", "fullpipe", "deliveries", "--mean", "1mbit", "--out", "x"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *asked], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    # No output went into a file that was opened with the number of a closed stream.
    assert set(Path("x").read_text().split()) <= {str(number) for number in range(1, 60_001)}


def test_undecodable_output_is_shown_escaped(in_empty_folder: Path) -> None:
    name = os.fsdecode(b"\xff.trace")
    done = command("deliveries", "--mean", "1mbit", "--out", name, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "\\udcff.trace: " in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("flows", "in.file", "--out", "in.file"),
        ("kernel", "record", "in.file", "--cc", "bbr", "--out", "in.file"),
    ],
    ids=["flows", "kernel record"],
)
def test_an_input_is_not_overwritten(arguments: tuple[str, ...], in_empty_folder: Path) -> None:
    content = 'compare = ["bbr1"]\nduration = "1 s"\n[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\n'
    Path("in.file").write_text(content, encoding="utf-8")
    done = CliRunner().invoke(cli.app, list(arguments))
    assert done.exit_code == options.MISTAKE and "itself; name another file" in done.stderr
    assert Path("in.file").read_text(encoding="utf-8") == content


def test_too_little_address_space_is_error(monkeypatch: pytest.MonkeyPatch, in_empty_folder: Path) -> None:
    """The renderer would end the process."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8_000_000_000, resource.RLIM_INFINITY))
    done = CliRunner().invoke(cli.app, ["compare", "cubic", *PATH, "--duration", "1 s", "--out", "here"])
    assert done.exit_code == options.MISTAKE and "address space" in done.stderr
    assert list(Path("here", "runs").iterdir())


# A folder that holds results of another command.


def test_results_of_two_commands_never_mix(here: Path) -> None:
    def ask(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(cli.app, [*arguments, "--out", "same"])
        return done.exit_code, done.stderr.strip()

    study = ("study", "run", "queue16.fig4", "--quick", "--seeds", "1")
    first = ("compare", "reno", *PATH, "--duration", "300 ms")
    assert ask(*first, "--seeds", "2")[0] == 0
    held = contents(here / "same")
    for other in (
        ("compare", "cubic", *SHORT),
        ("compare", "reno", *SHORT, "--loss", "1 %"),
        ("run", "one.toml"),
        ("agree", "one.toml"),
        COMMANDS["agree --grid"][:-2],
        study,
        ("kernel", "check"),
    ):
        code, message = ask(*other)
        assert code == options.MISTAKE, other
        assert message == (
            'fullpipe: --out "same" holds results of the comparison of reno; name another folder'
        ), other
    assert contents(here / "same") == held
    assert ask(*first, "--seeds", "2")[0] == 0, "the same command may replace its own results"


def test_same_study_or_grid_reuses_directory(here: Path) -> None:
    for name in ("study run", "agree --grid"):
        for _ in range(2):
            assert CliRunner().invoke(cli.app, COMMANDS[name]).exit_code in (0, options.DISAGREE)
        done = CliRunner().invoke(cli.app, COMMANDS["run"])
        assert done.exit_code == options.MISTAKE and "holds results of the " in done.stderr
        shutil.rmtree("new")


def test_interrupted_study_refuses_other_runs(here: Path) -> None:
    assert CliRunner().invoke(cli.app, COMMANDS["study run"]).exit_code == 0
    for name in ("claims.json", "report.html"):
        Path("new", name).unlink()
    done = CliRunner().invoke(cli.app, COMMANDS["run"])
    assert done.exit_code == options.MISTAKE and "holds results of an unfinished study or grid" in done.stderr
    assert CliRunner().invoke(cli.app, COMMANDS["study run"]).exit_code == 0


# A folder that is not new.


def _compare(folder: Path, seeds: int) -> subprocess.CompletedProcess[str]:
    words = ["compare", "reno", "cubic", "--rate", "2mbit", "--rtt", "10ms", "--duration", "1s"]
    words += ["--seeds", str(seeds)]
    return command(*words, "--out", str(folder))


def test_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    done = _compare(tmp_path, 1)
    assert done.returncode == 2
    assert done.stderr.startswith(f'fullpipe: --out "{tmp_path}" cannot be used; ')
    assert "it has notes.txt" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


def test_earlier_runs_are_replaced_files_kept(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert _compare(folder, 2).returncode == 0
    (folder / "runs" / "notes.json").write_text("mine")
    (folder / "thesis.txt").write_text("mine")
    assert _compare(folder, 1).returncode == 0
    names = sorted(one.name for one in (folder / "runs").glob("*.json"))
    assert names == ["notes.json", "sim-cubic-seed1.json", "sim-reno-seed1.json"]
    assert (folder / "thesis.txt").read_text() == "mine"


def test_summary_prints_main_columns() -> None:
    found = fp.compare(["reno", "cubic"], rate="2mbit", rtt="10ms", duration="1s", seeds=1).summary
    first = str(found).splitlines()[2]
    assert "…" not in first and "goodput_bps" in first and "loss_ratio" in first
    assert str(found).splitlines()[-1] == f"and {len(found.columns) - 8} more columns: see .columns"
    assert "rtt_p50_ms" in found.columns and found["rtt_p50_ms"].len() == 2
    assert "goodput_bps" in found._repr_html_() and "more columns" in found._repr_html_()
    assert str(found.select("world")).startswith("shape: (2, 1)")


def test_answers_and_maps_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text("{}")
    (tmp_path / "paths.csv").write_text("rate,rtt\n2mbit,10ms\n")
    words = ["advise", "--from", str(tmp_path / "paths.csv"), "--seeds", "2", "--out", str(tmp_path)]
    done = command(*words)
    assert done.returncode == 2
    assert "holds results of `fullpipe map`; name another folder" in done.stderr
    assert not (tmp_path / "answers.json").exists()
