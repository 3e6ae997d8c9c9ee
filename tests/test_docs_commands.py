"""Every command of `fullpipe` in the documents is one that the program takes. Nothing is run."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

import fullpipe as fp
from fullpipe.cli import app as cli
from fullpipe.conformance import registry as cases
from fullpipe.conformance.loss import registry as loss
from fullpipe.conformance.programs import registry as programs
from fullpipe.scenario.scenario import from_document
from fullpipe_studies import catalogue

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
# Files that a reader has, or that an earlier command of the page makes.
OF_THE_READER = {
    "CAPTURE.pcap",
    "FILE",
    "bbr.recording",
    "beside.toml",
    "mine.py",
    "paths.json",
    "report/cases/random-loss.toml",
    "test.json",
}
# Controllers that a page shows how to add.
OF_THE_READERS = {
    "mine.py:Aimd",
    "mine.py:MyController",
    "mine:bbr2",
    "mine:cubic",
    "noq:mine",
    "noq:newreno",
}
# Words in the place of which the reader writes his own.
BLANK = re.compile(r"[A-Z]{3,}")
ASSIGNMENT = re.compile(r"\w+=\S*")
GROUP = typer.main.get_command(cli.app)
# The keys of a scenario's path that have options with the same names and the same values.
PATH_KEYS = ("rate", "rtt", "buffer", "loss", "jitter", "queue")


@dataclass(frozen=True)
class Command:
    """A command in a document, and where it is."""

    page: str
    text: str
    # Part of a sentence: its options and arguments may be left to the reader.
    inline: bool = False

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def commands(page: str, text: str) -> Iterator[Command]:
    """Every command in blocks of code and between backquotes."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    blocks = [one[2] for one in fence.finditer(text) if one[1] in ("", "sh", "bash", "console", "text")]
    rest = fence.sub("", text)
    indented = re.compile(r"^(?: {4}[^\n]*\n)+", re.MULTILINE)
    blocks += [one[0] for one in indented.finditer(rest)]
    for block in blocks:
        for line in block.replace("\\\n", " ").splitlines():
            for one in _of_a_line(line.strip().removeprefix("$ ").removeprefix("# ")):
                yield Command(page, one)
    for one in re.findall(r"`(fullpipe [^`\n]+)`", indented.sub("", rest)):
        yield Command(page, one, inline=True)


def _of_a_line(line: str) -> Iterator[str]:
    """The parts of a shell's line that call `fullpipe`."""
    if "fullpipe " not in line:
        return
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # A sentence with an apostrophe.
        return
    part: list[str] = []
    for word in [*words, ";"]:
        if word.strip("|&;"):
            part.append(word)
            continue
        while part and ASSIGNMENT.fullmatch(part[0]):
            part.pop(0)
        if len(part) > 1 and part[0] in ("fullpipe", ".venv/bin/fullpipe"):
            yield shlex.join(["fullpipe", *part[1:]])
        part = []


def check(command: Command) -> None:
    """Parses a command as the program does, and looks at what the program would look at first.

    Raises `typer.TyperException` or `fp.ScenarioError` for what it would refuse.
    """
    words = shlex.split(command.text)[1:]
    found: Any = GROUP
    while hasattr(found, "commands") and words and not words[0].startswith("-"):
        name = words.pop(0)
        assert name in found.commands or BLANK.fullmatch(name), f"no command {name}"
        if name not in found.commands:
            return
        found = found.commands[name]
    if words in (["--help"], ["--version"]) or (command.inline and not words):
        return
    alone = getattr(found, "invoke_without_command", False)
    assert alone or not hasattr(found, "commands"), "a command is missing"
    last = next((one for one in found.params if words and words[-1] in one.opts), None)
    if command.inline and last is not None and not getattr(last, "is_flag", False):
        words.pop()
    try:
        context = found.make_context("fullpipe", words)
    except typer.TyperException as error:
        # A sentence leaves arguments to the reader; an option that does not exist is another error.
        if command.inline and type(error).__name__ == "MissingParameter":
            return
        raise
    values(found.name, context.params)


def values(name: str, given: dict[str, Any]) -> None:
    """Quantities, controllers, files, claims and cases of a parsed command."""
    path = {
        key: given[key] for key in PATH_KEYS if isinstance(given.get(key), str) and ".." not in given[key]
    }
    subjects = [one for one in given.get("controllers") or given.get("controller") or () if one != "-"]
    subjects = [subjects] if isinstance(subjects, str) else subjects
    known = [one for one in subjects if one not in OF_THE_READERS and not BLANK.fullmatch(one)]
    if path and name in ("compare", "advise", "shell", "map"):
        path = {"rate": "10 Mbit/s", "rtt": "40 ms"} | path
        document = {"path": path, "compare": [one for one in known if ":" not in one] or ["bbr1"]}
        from_document(document | ({"duration": given["duration"]} if given.get("duration") else {}))
    for key in ("scenario", "file"):
        if given.get(key) is not None and str(given[key]) not in OF_THE_READER:
            fp.load(str(given[key]))
    what = given.get("what") or ()
    for one in [what] if isinstance(what, str) else what:
        if not BLANK.fullmatch(one.rpartition(".")[2]):
            assert one in CLAIMS, f"no claim {one}"
    for one in given.get("cases") or given.get("case") or ():
        assert one in CASES or BLANK.fullmatch(one), f"no case {one}"


CLAIMS = {"all", *(one.name for one in catalogue.papers())}
CLAIMS |= {claim.id for paper in catalogue.papers() for claim in paper.claims}
CASES = {one.name for one in (*cases.every(), *loss.every(), *programs.every())}


@pytest.fixture
def in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the checkout's folders and the reader's files."""
    for folder in ("docs", "scenarios", "examples", "results"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for name in OF_THE_READER:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


FOUND = [one for page in PAGES for one in commands(str(page.relative_to(ROOT)), page.read_text())]


@pytest.mark.usefixtures("in_the_checkout")
def test_documented_commands_are_accepted() -> None:
    refused = []
    for one in dict.fromkeys(FOUND):
        try:
            check(one)
        except (typer.TyperException, fp.ScenarioError, AssertionError) as error:
            refused.append(f"{one}: {error}")
    assert not refused, "\n".join(refused)


def test_commands_of_every_kind_are_found() -> None:
    texts = {one.text for one in FOUND}
    assert len(texts) > 100
    assert "fullpipe lab" in texts and "fullpipe conform noq:bbr3" in texts
    assert any("--server" in one and one.startswith("fullpipe shell") for one in texts)


@pytest.mark.usefixtures("in_the_checkout")
@pytest.mark.parametrize(
    "text",
    [
        "fullpipe compare bbr1 --rate 10mbit --rtt 40ms --buffre 1bdp",
        "fullpipe compare bbr1 --rate 10parsecs --rtt 40ms",
        "fullpipe compare bbr9 --rate 10mbit --rtt 40ms",
        "fullpipe compare bbr1 --rate 10mbit --rtt 40ms --seeds many",
        "fullpipe comprae bbr1",
        "fullpipe run scenarios/none.toml",
        "fullpipe study run queue16.fig99",
        "fullpipe conform bbr3 --case none",
        "fullpipe agree --gird agreement",
        "fullpipe kernel chekc",
    ],
)
def test_invalid_documented_command_is_detected(text: str) -> None:
    (block,) = commands("page", f"    {text}  # why\n")
    (inline,) = commands("page", f"Call `{text}` here.\n")
    for one in (block, inline):
        with pytest.raises((typer.TyperException, fp.ScenarioError, AssertionError)):
            check(one)
