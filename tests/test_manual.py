"""Help, the manual page and completion follow the command tree."""

import os
import shutil
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from fullpipe.cli import app as cli
from fullpipe.cli.commands import manual


def invoke(*words: str) -> str:
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("help",), ("--help",)),
        (("help", "compare"), ("compare", "--help")),
        (("compare", "help"), ("compare", "--help")),
        (("help", "study", "run"), ("study", "run", "--help")),
        (("study", "help"), ("study", "--help")),
        (("help", "help"), ("help", "--help")),
    ],
)
def test_help_works_before_and_after_command(words: tuple[str, ...], same: tuple[str, ...]) -> None:
    assert invoke(*words) == invoke(*same)


def test_usage_and_defaults_have_single_brackets() -> None:
    assert "Usage: fullpipe compare [OPTIONS] [CC...] " in invoke("compare", "--help")
    assert "[OPTIONS] PAPER[.CLAIM]... " in invoke("study", "run", "--help")
    assert "[OPTIONS] [-- COMMAND...] " in invoke("shell", "--help")
    assert "[default: 5; for a grid 10]" in " ".join(invoke("agree", "--help").split())


def test_help_paragraphs_wrap_only_at_width() -> None:
    wide = CliRunner().invoke(cli.app, ["kernel", "check", "--help"], env={"COLUMNS": "1000"}).stdout
    assert "Sends numbered packets" in wide
    assert "told to do. `fullpipe doctor` then" in " ".join(wide.split())
    (paragraph,) = [line for line in wide.splitlines() if "Sends numbered packets" in line]
    assert "inaccurate at one rate or more." in paragraph


def test_help_for_unknown_command_is_refused() -> None:
    done = CliRunner().invoke(cli.app, ["help", "comapre"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "comapre" in done.stderr
    # Behind arguments it is an argument.
    assert manual.as_option(typer.main.get_command(cli.app), ["compare", "bbr1", "help"]) == [
        "compare",
        "bbr1",
        "help",
    ]


def leaves(command: object, path: str = "fullpipe") -> list[tuple[str, object]]:
    children = getattr(command, "commands", None)
    if children is None:
        return [(path, command)]
    shown = {name: child for name, child in children.items() if not child.hidden}
    return [leaf for name, child in shown.items() for leaf in leaves(child, f"{path} {name}")]


def test_manual_page_has_commands_and_options() -> None:
    page = invoke("man").replace("\\-", "-").replace("\\&", "")
    found = leaves(typer.main.get_command(cli.app))
    assert len(found) > 10
    for path, command in found:
        section = page.partition(f'.SS "{path} ')[2].partition(".SS")[0]
        assert section, path
        for parameter in command.params:  # type: ignore[attr-defined]
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert max(parameter.opts, key=len) in section, (path, parameter.opts)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_troff_has_nothing_to_complain_about() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"],
        input=invoke("man"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("shell", manual.SHELLS)
def test_each_shell_has_a_script(shell: str) -> None:
    assert manual.COMPLETE_VARIABLE in invoke("completion", shell)


def test_unsupported_completion_shell_is_refused() -> None:
    done = CliRunner().invoke(cli.app, ["completion", "tcsh"])
    assert done.exit_code == 2
    assert "bash, zsh, fish" in done.stderr


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("fullpipe comp", {"compare", "completion"}),
        ("fullpipe compare cu", {"cubic", "cubic9438"}),
        ("fullpipe run --world ", {"sim", "kernel", "all"}),
        ("fullpipe run --rep", {"--repetitions"}),
    ],
)
def test_bash_is_offered(line: str, offered: set[str]) -> None:
    words = line.split(" ")
    asked = {
        manual.COMPLETE_VARIABLE: "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "fullpipe"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert set(done.stdout.split()) == offered
    # Each Tab starts Python: what is heavy must not be imported.
    imported = {row.rpartition("|")[2].strip() for row in done.stderr.splitlines()}
    assert not imported & {"polars", "altair", "numpy"}


@pytest.mark.parametrize("command", [one for one, _ in leaves(typer.main.get_command(cli.app))])
def test_no_help_shows_pythons_types(command: str) -> None:
    words = command.split()[1:]
    shown = invoke(*words, "--help")
    assert not {"<bool>", "<str>", "<int>", "<float>", "<list[str]>", "<Path>"} & set(shown.split())
    assert "range>" not in shown
    assert "<bool>" not in invoke(*words[:-1], "--help")


def test_help_names_the_values_of_options() -> None:
    shown = " ".join(invoke("compare", "--help").split())
    assert "--rate RATE " in shown and "--seeds NUMBER " in shown and "--out PATH " in shown
    assert "--json Print JSON" in shown, "a flag takes no value"


@pytest.mark.parametrize("words", [(), ("kernel",), ("study",)])
def test_a_missing_command_is_said(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 2
    group = " ".join(("fullpipe", *words))
    assert done.stderr.strip() == f"fullpipe: a command is missing; see `{group} --help`"
