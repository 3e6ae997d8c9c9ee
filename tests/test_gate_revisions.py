"""A change planted in a developer's repository: what `fullpipe gate` says of it, and of revisions."""

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fullpipe.runs.worlds import quic_program
from test_gate import HEAD, case, gate, here, write  # noqa: F401

STAND_IN = Path(__file__).parent / "quic_stand_in.py"
BUILD = '[build]\ncommand = "sh build.sh"\nprogram = "out/program"\n'
STACK = 'subject = "noq:cubic"\nworlds = ["quic"]\nseeds = 1\n'
# The program is what the folder says when it is built, as a compiled one is.
SCRIPT = f"""
set -e
mkdir -p out
inside=$(cat inside)
printf '%s\\n' '#!/bin/sh' "export STAND_IN_INSIDE='{{\\"noq:cubic\\": \\"$inside\\"}}'" \\
    "export STAND_IN_ABOUT='{{\\"build\\": \\"$inside\\"}}'" \\
    'exec {sys.executable} {STAND_IN} "$@"' > out/program
chmod +x out/program
"""
MINE = """
import fullpipe as fp


class Mine(fp.Controller):
    cwnd = {window}
"""


def git(*words: str) -> str:
    mail = "-c", "user.name=a", "-c", "user.email=a@b"
    return subprocess.run(["git", *mail, *words], check=True, capture_output=True, text=True).stdout.strip()


def commit(text: str) -> None:
    if not Path(".git").exists():
        git("init", "--quiet", "--initial-branch=main")
        Path(".gitignore").write_text("cache\nout\ntmp\n")
    write(text)
    git("add", "--all")
    git("commit", "--quiet", "--message", "x")


@pytest.fixture
def stack() -> None:
    """A repository with a stack whose controller is `cubic`, as its file `inside` says."""
    Path("inside").write_text("cubic")
    Path("build.sh").write_text(SCRIPT)
    commit(STACK + BUILD + case())


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable that names the program is as it was, after the test."""
    monkeypatch.setenv(quic_program.VARIABLE, "")


def left(temporary: Path) -> Sequence[str]:
    """What is in the repository and where temporary folders are, beside what belongs there."""
    assert git("status", "--porcelain") == ""
    assert not Path(".git/worktrees").exists()
    assert git("branch", "--format=%(refname)") == "refs/heads/main"
    return [one.name for one in temporary.iterdir()]


# A constant of the stack's controller changes: recorded before, checked after.


@pytest.mark.usefixtures("stack")
def test_a_constant_changed_in_a_stack_is_seen_in_every_format(monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["sh", "build.sh"], check=True)
    monkeypatch.setenv(quic_program.VARIABLE, str(Path("out/program").absolute()))
    code, _, errors = gate("record", "--traces")
    assert code == 0, errors
    assert gate("check")[0] == 0
    Path("inside").write_text("cubic:beta=0.5")
    subprocess.run(["sh", "build.sh"], check=True)
    data = {form: gate("check", "--format", form) for form in ("text", "markdown", "junit", "json", "github")}
    assert {code for code, _, _ in data.values()} == {1}
    for form, (_, out, _) in data.items():
        words = " ".join(out.split()).replace("%2C", ",").replace("%25", "%")
        assert "the runs part at" in words and "window" in words, form
        assert "fullpipe compare noq:cubic" in words and "--world quic" in words, form
    (test,) = ElementTree.fromstring(data["junit"][1]).iter("failure")
    reported = json.loads(data["json"][1])["cases"][0]
    assert test.get("type") == reported["status"]
    assert any(f"| {one['before']} | {one['after']} |" in data["markdown"][1] for one in reported["changes"])


# Against a revision.


@pytest.mark.usefixtures("stack", "program")
def test_a_revision_is_built_and_compared(temporary: Path) -> None:
    diff = ("diff", "--against", "git:main", "--allow-programs")
    code, out, errors = gate(*diff)
    assert code == 0, errors
    assert out.splitlines()[0] == "1 case equal"
    assert f"compared with git:main ({git('rev-parse', 'HEAD')[:8]})." in out
    Path("inside").write_text("cubic:beta=0.5")
    code, out, _ = gate(*diff)
    assert code == 1 and "the runs part at" in out
    commit(STACK + BUILD + case())
    assert gate(*diff)[0] == 0
    code, out, _ = gate(*diff[:2], "git:main~1", *diff[3:])
    assert code == 1 and "compared with git:main~1 (" in out
    assert left(temporary) == []


@pytest.mark.usefixtures("program")
def test_a_controller_in_a_file_needs_no_build(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.py").write_text(MINE.format(window=10))
    commit(
        'subject = "mine.py:Mine"\nseeds = 1\n'
        + case()
        + case("long", path='rate = "5 Mbit/s"\nrtt = "9 ms"')
    )
    Path("mine.py").write_text(MINE.format(window=5))
    write(Path("gate.toml").read_text() + 'within = { goodput_bps = "99 %" }\n')
    Path("below").mkdir()
    monkeypatch.chdir("below")
    code, out, errors = gate("diff", "../gate.toml", "--against", "git:main", "--code")
    assert code == 1, errors
    # The cases are those of the gate file here, with its tolerances; the controller is the revision's.
    assert out.startswith("1 case equal, 1 changed: 1 neither") and "small" in out
    code, out, _ = gate("diff", "../gate.toml", "--against", "git:main", "--code", "--only", "long")
    assert code == 0 and out.startswith("1 case equal")


@pytest.mark.usefixtures("stack", "program")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--against", "main"), "e.g. git:main"),
        (("--against", "git:gone"), "it names no commit of"),
        (("--against", "git:--all"), "it names no commit of"),
        (("--against", "git:main", "x", "y"), "leave AFTER out"),
        ((), "name two baselines, or give --against"),
    ],
)
def test_a_revision_that_cannot_be_used_is_one_sentence(
    words: tuple[str, ...], why: str, temporary: Path
) -> None:
    code, out, errors = gate("diff", *words, "--allow-programs")
    assert (code, out) == (2, "") and why in errors, errors
    assert left(temporary) == []


@pytest.mark.usefixtures("stack", "program")
def test_a_build_needs_consent_and_its_failure_is_named(
    temporary: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = gate("diff", "--against", "git:main")
    assert code == 2 and "sh build.sh" in errors and "--allow-programs" in errors
    write(STACK + BUILD.replace("out/program", "out/other") + case())
    code, _, errors = gate("diff", "--against", "git:main", "--allow-programs")
    assert code == 2 and "made no program out/other" in errors and "build.program" in errors
    write(STACK + BUILD.replace("sh build.sh", "echo broken; exit 7") + case())
    code, out, errors = gate("diff", "--against", "git:main", "--allow-programs")
    assert code == 2 and out == "" and "the build of git:main (" in errors and "code 7" in errors
    assert "broken" in capfd.readouterr().err, "what the build prints is not hidden"
    git("checkout", "--quiet", ".")
    assert left(temporary) == []


@pytest.mark.usefixtures("program")
def test_a_gate_that_tests_nothing_of_the_repository_is_refused() -> None:
    commit(HEAD + case())
    code, _, errors = gate("diff", "--against", "git:main")
    assert code == 2 and "no case of gate.toml depends on this repository" in errors


@pytest.mark.usefixtures("program")
def test_outside_a_repository_git_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    write(STACK + BUILD + case())
    code, _, errors = gate("diff", "--against", "git:main", "--allow-programs")
    assert code == 2 and "not a git repository" in errors
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, errors = gate("diff", "--against", "git:main", "--allow-programs")
    assert code == 2 and "install git" in errors


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing(number: signal.Signals, temporary: Path) -> None:
    Path("build.sh").write_text("echo begun >&2\nsleep 600\n")
    commit(STACK + BUILD + case())
    command = [sys.executable, "-m", "fullpipe", "gate", "diff", "--against", "git:main", "--allow-programs"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "begun\n" in process.stderr
        assert [*temporary.iterdir()]
        process.send_signal(number)
        # Whoever still ran would hold it open.
        assert process.stderr.read() == ("fullpipe: interrupted\n" if number == signal.SIGINT else "")
        assert process.wait() in (128 + number, 130)
    assert left(temporary) == []


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[build]\n", "build.command"),
        ('[build]\ncommand = "make"\n', "build.program"),
        ('[build]\ncommand = "make"\nprogram = 5\n', "build.program"),
        ('[build]\ncommand = "make"\nprogramme = "x"\n', "build.programme"),
    ],
)
def test_a_mistake_in_build_is_named(text: str, field: str) -> None:
    write(STACK + text + case())
    code, _, errors = gate("check")
    assert code == 2 and f": {field}: " in errors and "gate.toml" in errors, errors
