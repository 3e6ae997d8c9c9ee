"""`fullpipe gate` for a stack behind an adapter. Runs need the program fullpipe-quic."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fullpipe.gate import document
from fullpipe.runs.worlds import stacks
from test_gate import case, gate, here, lines, write  # noqa: F401
from test_gate_revisions import commit, git, temporary  # noqa: F401

ADAPTER = Path(__file__).parent / "stack_stand_in.py"
GATE = 'subject = "toy:reno"\nworlds = ["quic"]\nseeds = 1\n' + case()
STACK = ("--stack", "toy=./adapter")


@pytest.fixture(autouse=True)
def only_here() -> Iterator[None]:
    """What a command is given stays with the process; here, with its test."""
    with stacks.using([]):
        yield


@pytest.fixture(autouse=True)
def adapter(here: Path) -> Path:  # noqa: F811
    """An adapter of what is beside it: the file `how` says how it misbehaves, and no command does."""
    path = here / "adapter"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {ADAPTER} $(cat "${{0%/*}}/how")\n', encoding="utf-8")
    path.chmod(0o755)
    (here / "how").write_text("")
    return path


def test_init_asks_the_adapter_for_its_controllers() -> None:
    code, out, errors = gate("init", *STACK)
    assert code == 0, errors
    assert "for toy:reno, toy:fixed" in out and "`fullpipe gate record --stack toy=./adapter`" in out
    found = document.load(Path("gate.toml")).cases
    assert {one.subject for one in found} == {"toy:reno", "toy:fixed"} and {one.world for one in found} == {
        "quic"
    }
    # By its name, one of the two is Reno.
    assert {one.subject for one in found if one.suite == "loss"} == {"toy:reno"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("init", "--stack", "toy=./gone"), "a program that can be run"),
        (("init", "--stack", "noq=./adapter"), "a name that no other stack and no controller has"),
        (("init", *STACK, "--controllers", "cubic"), "toy:cubic"),
        (("check", "--stack", "toy"), "expected NAME=COMMAND"),
        (("record", "--stack", "toy=./gone"), "a program that can be run"),
    ],
)
def test_a_stack_that_cannot_be_used_is_one_sentence(words: tuple[str, ...], why: str) -> None:
    write(GATE)
    code, out, errors = gate(*words, *(["--force"] if words[0] == "init" else []))
    assert (code, out) == (2, "") and why in errors and errors.count("fullpipe: ") == 1, errors


@pytest.mark.usefixtures("quic_stacks")
def test_a_stack_behind_an_adapter_is_recorded_and_checked() -> None:
    write(GATE + case("loss", kind="conform", path='suite = "loss"\nconform = "minimum-window"'))
    code, out, errors = gate("record", "--traces", *STACK)
    assert (code, out) == (0, "Recorded: 2 cases in gate-baseline.jsonl\n"), errors
    assert lines()[0]["verdict"] != "not applicable"
    assert gate("check", *STACK)[0] == 0
    code, out, _ = gate("check", *STACK, "--subject", "toy:fixed", "--only", "small")
    words = " ".join(out.split())
    assert code == 1 and "the runs part at" in words
    assert "fullpipe compare toy:fixed --duration '1 s' --rate '10 Mbit/s'" in words
    assert f"--stack toy={Path('adapter').absolute()}" in words


@pytest.mark.usefixtures("quic_stacks")
def test_without_its_adapter_the_answer_names_the_option() -> None:
    write(GATE)
    code, _, errors = gate("record")
    assert code == 2 and "toy is not a stack of this world" in errors and "--stack toy=./adapter" in errors
    assert not Path("gate-baseline.jsonl").exists()


@pytest.mark.usefixtures("quic_stacks")
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("random", "not deterministic: two runs with seed 1 differ"),
        ("die", "has ended (exit status: 1): the stack has failed an assertion"),
        ("hang", "does not answer within 2 s"),
        ("flood", "answers with 4294967295 bytes"),
    ],
)
def test_a_misbehaving_adapter_is_named(
    how: str,
    why: str,
    here: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(stacks.VARIABLE, "2")
    # Half of the adapters' defects show only then.
    write(GATE.replace("1 s", "2 s"))
    assert gate("record", *STACK)[0] == 0
    before = Path("gate-baseline.jsonl").read_bytes()
    (here / "how").write_text(how)
    # Nothing that was stored answers for it, although neither the command nor its file has changed.
    code, out, _ = gate("check", *STACK)
    assert code == 2 and why in " ".join(out.split()), out
    code, _, errors = gate("record", *STACK)
    assert code == 2 and why in errors
    assert Path("gate-baseline.jsonl").read_bytes() == before


@pytest.mark.usefixtures("quic_stacks")
def test_two_revisions_of_an_adapter_are_compared(temporary: Path, here: Path) -> None:  # noqa: F811
    build = '[build]\ncommand = "cp adapter how out/"\nprogram = "out/adapter"\nstack = "toy"\n'
    (here / "out").mkdir()
    Path("out/.gitkeep").write_text("")
    Path(".gitignore").write_text("cache\nout/adapter\nout/how\ntmp\n")
    git("init", "--quiet", "--initial-branch=main")
    commit(GATE.replace("1 s", "2 s") + build)
    code, out, errors = gate("diff", "--against", "git:main", "--allow-programs")
    assert code == 0, errors
    assert out.splitlines()[0] == "1 case equal"
    Path("how").write_text("die")
    code, out, _ = gate("diff", "--against", "git:main", "--allow-programs")
    assert code == 2 and "the stack has failed an assertion" in " ".join(out.split()), out
    Path("how").write_text("")
    code, out, _ = gate("diff", "--against", "git:main", "--allow-programs", "--only", "none")
    assert code == 2
