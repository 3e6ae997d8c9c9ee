"""No text of a file, a name or an exception reaches a terminal or a page as it is."""

import io
import json
import sys
import unicodedata
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.text import Text

import fullpipe as fp
from fullpipe import errors, plugins
from fullpipe.cli import app as cli
from fullpipe.errors import OutputError, SweepError, mistake
from fullpipe.report import page, streams
from fullpipe.report.figures import svg
from fullpipe.report.fitting import Fitting
from fullpipe.report.screen import Screen
from fullpipe.text import MOST_SENTENCE, MOST_SHOWN, cell, lines, printable, shown

# Escape sequences of a terminal, a change of direction, markup of rich, and anything else.
HOSTILE = "\x1b]8;;x\x07\x9b31m\x7f\u202e\u2066[red]x[/red][link=x]:smile:\u2028<b>|\r\udc80\U000e0041"
TEXTS = st.text(min_size=1) | st.lists(st.sampled_from(HOSTILE), min_size=1).map("".join)
FEW = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def obeyed(text: str) -> list[str]:
    """The characters that a terminal obeys or that disguise text."""
    bad = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [one for one in text if one not in "\n\t" and unicodedata.category(one) in bad]


class Ran:
    """What a command prints where it prints it: on the streams that `main` installs."""

    def __init__(self, *words: str) -> None:
        kept = sys.stdout, sys.stderr
        out, err = io.BytesIO(), io.BytesIO()
        sys.stdout = streams.Cleaned(out, encoding="utf-8", errors="backslashreplace")
        sys.stderr = streams.Cleaned(err, encoding="utf-8", errors="backslashreplace")
        try:
            self.code = cli.app(list(words), standalone_mode=False)
            sys.stdout.flush()
            sys.stderr.flush()
            self.out, self.err = out.getvalue().decode(), err.getvalue().decode()
        finally:
            sys.stdout, sys.stderr = kept


@given(TEXTS)
def test_cleaned_text_has_no_control_sequences(text: str) -> None:
    for clean in (printable, shown, lines, cell, page.text):
        assert obeyed(clean(text)) == []
        assert clean(clean(text)) == clean(text) or clean in (cell, page.text)
    assert "\n" not in shown(text) + cell(text)
    for unmarked in (page.text(text), cell(text)):
        assert "<b>" not in unmarked


@given(st.text())
def test_printed_json_keeps_its_data(text: str) -> None:
    assert json.loads(printable(json.dumps({"name": text}, ensure_ascii=False))) == {"name": text}


@pytest.mark.parametrize("one", ["a", "\x1b", "\u202e", "\U000e0041", "😀"])
def test_long_text_is_truncated_keeping_end(one: str) -> None:
    text = f"{one * 120_000}; write it shorter"
    assert len(shown(text)) == MOST_SHOWN
    assert shown(text).endswith("; write it shorter") and " ... " in shown(text)
    assert len(lines(f"{text}\n{text}").split("\n")[1]) == MOST_SENTENCE


@given(TEXTS)
def test_every_exception_is_one_printable_line(text: str) -> None:
    raised: list[BaseException] = [
        kind(text)
        for kind in (
            fp.ScenarioError,
            fp.WorldError,
            fp.RecordingError,
            fp.ControllerError,
            OutputError,
            SweepError,
        )
    ]
    raised += [mistake("path.rtt", text, "a time", "write 40 ms"), errors.unusable("--out", text, text)]
    for error in raised:
        assert obeyed(str(error)) == [] and "\n" not in str(error)
    assert obeyed(plugins.message(ValueError(text))) == []


def test_long_value_error_ends_with_fix() -> None:
    message = str(mistake("path.rtt", "\x1b" * 120_000, "a time", "write 40 ms"))
    assert len(message) <= MOST_SENTENCE and message.endswith("expected a time; write 40 ms")


@given(TEXTS)
def test_table_prints_markup_as_text(text: str) -> None:
    table = Fitting(text, "Value")
    table.add_row(text, Text(text, style="bold"))
    table.caption = text
    table.add_heading(Text(text))
    table.add_row(text, "1")
    out = Screen(file=io.StringIO(), width=60)
    out.print(table)
    out.print(text, soft_wrap=True)
    assert isinstance(out.file, io.StringIO)
    assert obeyed(out.file.getvalue()) == []


def test_brackets_of_a_name_are_printed() -> None:
    out = Screen(file=io.StringIO())
    out.print("[red]x[/red] :smile: [link=y]z[/link]")
    assert isinstance(out.file, io.StringIO)
    assert out.file.getvalue() == "[red]x[/red] :smile: [link=y]z[/link]\n"


def test_terminal_gets_colours_but_no_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", streams.Cleaned(raw, encoding="utf-8"))
    Screen().print(Text("\x1b[31mname", style="bold"))
    sys.stdout.flush()
    assert raw.getvalue().decode() == "\x1b[1m\\u001b[31mname\x1b[0m\n"


def test_traceback_and_warning_are_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    import traceback

    raw = io.BytesIO()
    stream = streams.Cleaned(raw, encoding="utf-8", errors="backslashreplace")
    stream.clean = lines
    monkeypatch.setattr(sys, "stderr", stream)
    try:
        raise RuntimeError(HOSTILE * 1000)
    except RuntimeError:
        traceback.print_exc()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        print(warnings.formatwarning(HOSTILE, UserWarning, "file", 1), file=sys.stderr)
    stream.flush()
    text = raw.getvalue().decode()
    assert "Traceback" in text and "UserWarning" in text
    assert obeyed(text) == [] and max(map(len, text.splitlines())) <= MOST_SENTENCE


@FEW
@given(TEXTS)
@pytest.mark.parametrize(
    "words",
    [
        lambda text: ("compare", "cubic", "--rtt", text),
        lambda text: ("compare", text),
        lambda text: ("run", text),
        lambda text: (text,),
        lambda text: ("compare", "cubic", f"--{text}"),
        lambda text: ("compare", "cubic", "--world", text),
        lambda text: ("compare", "cubic", "--seeds", text),
        lambda text: ("study", "run", text),
        lambda text: ("conform", text),
        lambda text: ("advise", "--from", text),
        lambda text: ("replay", text),
        lambda text: ("kernel", "check", "--rates", text),
    ],
)
def test_typed_text_is_cleaned_in_errors(
    in_empty_folder: Path, words: Callable[[str], tuple[str, ...]], text: str
) -> None:
    # No command takes such a word.
    hostile = HOSTILE[1:] + text.replace("\0", "").encode("utf-8", "replace").decode()
    done = Ran(*words(hostile))
    assert done.code == 2 and done.err
    assert obeyed(done.out + done.err) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", f"name,rate,rtt\n{HOSTILE[:20]},5mbit,{HOSTILE[:20]}\n"),
        ("a.csv", f"name,rate,rtt\n{'x' * 120_000},5mbit,{'y' * 120_000}\n"),
        ("a.json", json.dumps([{"network": HOSTILE[:20], "rate": HOSTILE[:20] * 9999}])),
        ("a.toml", f"[path]\nrate = '{HOSTILE[5:7] * 60_000}'\n"),
        ("a.toml", f'name = "{"x" * 120_000}"\n[path]\nrtt = "\\u202e\\u001b"\n'),
        ("a.toml", f"'{'k' * 120_000}' = 1\n[{HOSTILE[:9]}]\n"),
    ],
)
def test_file_contents_are_cleaned_and_bounded(in_empty_folder: Path, name: str, content: str) -> None:
    Path(name).write_text(content, encoding="utf-8", errors="replace")
    done = Ran("run", name) if name.endswith("toml") else Ran("advise", "--from", name, "--budget", "0")
    assert done.code == 2
    assert done.err.startswith("fullpipe: ") and done.err.count("\n") == 1
    assert obeyed(done.out + done.err) == [] and len(done.err) <= MOST_SENTENCE + len("fullpipe: \n")


def test_unknown_column_is_cleaned_and_bounded(in_empty_folder: Path) -> None:
    table = f"{HOSTILE[:20] * 1000},rate,rtt\nx,5mbit,40 ms\n"
    Path("a.csv").write_text(table, encoding="utf-8", errors="replace")
    done = Ran("advise", "--from", "a.csv", "--budget", "0")
    assert done.code == 0 and obeyed(done.out + done.err) == []
    (line,) = (line for line in done.out.splitlines() if line.startswith("Left out: columns not used"))
    assert len(line) <= MOST_SENTENCE


def test_figure_spec_has_no_number_that_json_lacks() -> None:
    spec = {"data": {"values": [{"x": float("nan"), "y": float("inf"), "z": 1.5, "name": "a\x07"}]}}
    (row,) = json.loads(svg.printable_json(spec))["data"]["values"]
    assert row == {"x": None, "y": None, "z": 1.5, "name": "a\\u0007"}


@given(st.text(alphabet=HOSTILE + "ab", min_size=1))
def test_figure_spec_has_printable_texts(text: str) -> None:
    spec = {"title": {"text": [text, "a"], "subtitle": text}, "data": {"values": [{"label": text, "x": 1.5}]}}
    clean = json.loads(svg.printable_json(spec))
    assert obeyed(json.dumps(clean, ensure_ascii=False)) == []
    assert clean["title"]["subtitle"] == printable(text)
    assert clean["data"]["values"][0]["x"] == 1.5
    assert obeyed(svg.labelled("<svg></svg>", text)) == []
