"""The world `quic` from Python, with a program behind it that speaks the protocol and simulates.

test_quic_stacks.py has the tests of the real program.
"""

import json
import math
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from fullpipe import api, shipped
from fullpipe.cli import app as cli
from fullpipe.conformance import minimal, runners
from fullpipe.conformance import registry as cases
from fullpipe.conformance.case import Case, Criterion, Measured
from fullpipe.conformance.conformance_report import ConformanceReport
from fullpipe.conformance.results import (
    FAIL,
    NOT_APPLICABLE,
    Result,
)
from fullpipe.conformance.stage import Lab, Wait
from fullpipe.runs import doctor
from fullpipe.runs.engines import Failed
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task
from fullpipe.runs.worlds import Stop, child, quic, quic_program, registry
from fullpipe.runs.worlds.job import Job
from fullpipe.runs.worlds.logs import Logs

ABOUT = {"protocol": 4, "build": "x", "stacks": []}
STAND_IN = Path(__file__).parent / "quic_stand_in.py"
CANDIDATES = ("--candidates", "cubic", "--candidates", "noq:bbr3")
PATH: dict[str, Any] = {"rate": "10 Mbit/s", "rtt": "20 ms", "duration": "1 s"}
ON_PATH = ["--rate", "10 Mbit/s", "--rtt", "20 ms", "--duration", "1 s"]


def program(folder: Path, content: str) -> Path:
    path = folder / "fullpipe-quic"
    path.write_text(content, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program is there."""
    path = program(tmp_path, f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    monkeypatch.setenv(quic_program.VARIABLE, str(path))
    return path


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program is there."""
    monkeypatch.setenv(quic_program.VARIABLE, "")


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, arguments)
    return done.exit_code, " ".join(done.output.split())


# Without the program.


@pytest.mark.usefixtures("nowhere")
def test_missing_program_error_has_fix() -> None:
    assert "quic" not in registry.names() and registry.optional(there=False) == ["quic"]
    with pytest.raises(fp.WorldError, match=r"there is no program fullpipe-quic.*`make quic`"):
        fp.compare(["bbr3"], world="quic", **PATH)
    code, message = command("compare", "bbr3", *ON_PATH, "--world", "quic")
    assert (code, "`make quic`" in message) == (2, True), message
    code, message = command("conform", "noq:bbr3")
    assert (code, "`make quic`" in message) == (2, True), message
    code, message = command("controllers", "noq:bbr3")
    assert (code, "`make quic`" in message) == (2, True), message
    code, message = command("agree", "--grid", str(grid()), "--worlds", "sim,quic", "--seeds", "1", "--quick")
    assert (code, "`make quic`" in message) == (2, True), message
    (needs,) = quic.WORLD.checks()
    assert not needs["ok"] and "make quic" in needs["fix"]


@pytest.mark.usefixtures("nowhere")
def test_results_are_shown_without_program() -> None:
    world = registry.find("quic")
    assert world is not None and world.title == "QUIC"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("#!/bin/sh\necho hello\n", "it does not answer as a fullpipe-quic does"),
        ("#!/bin/sh\necho oh no >&2\nexit 7\n", "it ended with code 7: oh no"),
        ("#!/bin/sh\necho '[]'\n", "it does not answer as a fullpipe-quic does"),
        ('#!/bin/sh\necho \'{"protocol": 4, "build": "x", "stacks": [1]}\'\n', "it does not answer"),
        ("#!/bin/sh\necho '{\"protocol\": 1}'\n", "it speaks protocol 1, this Fullpipe 4"),
        ("no program", "Exec format error"),
        ("#!/bin/sh\nexec yes\n", "it does not answer as a fullpipe-quic does"),
        ("#!/bin/sh\nexec yes >&2\n", "it does not answer as a fullpipe-quic does"),
        (f"#!/bin/sh\nexec {sys.executable} -c 'print(\"[\" * 100_000)'\n", "it does not answer"),
    ],
)
def test_invalid_program_is_named(
    content: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = program(tmp_path, content)
    monkeypatch.setenv(quic_program.VARIABLE, str(path))
    with pytest.raises(fp.WorldError) as caught:
        fp.compare(["bbr3"], world="quic", **PATH)
    message = str(caught.value)
    assert f"FULLPIPE_QUIC names {path}, but" in message and reason in message
    assert message.endswith("correct FULLPIPE_QUIC, or unset it")
    # Nobody can list controllers of it, and the others are listed.
    assert {one["name"] for one in api.controllers()} >= {"bbr3", "cubic"}


def test_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(quic_program.VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(fp.WorldError, match="but No such file or directory; correct FULLPIPE_QUIC"):
        quic_program.about()


def test_program_search_order_is_fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(quic_program.VARIABLE, raising=False)
    monkeypatch.setattr(shipped, "_FOLDER", tmp_path / "package")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert shipped.quic() is None
    (tmp_path / "path").mkdir()
    on_path = program(tmp_path / "path", "#!/bin/sh\n")
    assert shipped.quic() == on_path
    (tmp_path / "package" / "bin").mkdir(parents=True)
    carried = program(tmp_path / "package" / "bin", "#!/bin/sh\n")
    assert shipped.quic() == carried
    (tmp_path / "bin").mkdir()
    beside = program(tmp_path / "bin", "#!/bin/sh\n")
    assert shipped.quic() == beside
    # What the environment names is a file, from here or from anywhere.
    monkeypatch.setenv(quic_program.VARIABLE, "./mine")
    assert shipped.quic() == Path.cwd() / "mine"


def test_replaced_program_is_queried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = {"protocol": 4, "stacks": []}
    path = program(tmp_path, f"#!/bin/sh\necho '{json.dumps({**reported, 'build': 'one'})}'\n")
    monkeypatch.setenv(quic_program.VARIABLE, str(path))
    assert quic.WORLD.build() == "one"
    program(tmp_path, f"#!/bin/sh\necho '{json.dumps({**reported, 'build': 'another'})}'\n")
    assert quic.WORLD.build() == "another"


# With it.


@pytest.mark.usefixtures("there")
def test_a_comparison_in_the_world() -> None:
    found = fp.compare(["bbr3", "noq:bbr3", "quinn:bbr"], world="quic", seeds=2, **PATH)
    assert found.worlds == ["quic"] and found.notes == []
    assert found.summary["seeds"].to_list() == [2, 2, 2]
    # The stand-in's controllers are the simulator's.
    simulated = fp.compare(["bbr3", "bbr1"], world="sim", seeds=2, **PATH).summary["goodput_bps"].to_list()
    assert found.summary["goodput_bps"].to_list() == [simulated[0], simulated[0], simulated[1]]
    assert set(found.series()["world"]) == {"quic"}


# What is not supported is in the results.


@pytest.mark.usefixtures("there")
def test_unsupported_settings_are_reported_once(in_empty_folder: Path) -> None:
    asked = ["compare", "bbr3", "bbr1", "noq:bbr3", "quinn:bbr", "--world", "quic", "--seeds", "2", *ON_PATH]
    done = CliRunner().invoke(cli.app, [*asked, "--out", "here"])
    assert done.exit_code == 0, done.output
    # Alternatives with the same sentences share a line, and many sentences are only counted.
    assert [line for line in done.output.splitlines() if "no failures" in line] == [
        "Limits of quic for bbr3 and bbr1, no failures: 3 things; the report lists them.",
        "Limits of quic for quinn:bbr, no failures: quinn's pacer takes no rate.",
    ]
    page = Path("here/report.html").read_text(encoding="utf-8").partition("<script")[0]
    listed = "".join(f"<li>{one}</li>" for one in ESCAPED)
    assert f"<p>bbr3 and bbr1, QUIC:</p><ul>{listed}</ul>" in page
    assert "<p>quinn:bbr, QUIC:</p><ul><li>quinn’s pacer takes no rate.</li></ul>" in page.replace(
        "&#x27;", "’"
    )
    assert "noq:bbr3, QUIC:" not in page
    (stored,) = Path("here/runs").glob("quic-quinn*-seed1.json")
    assert json.loads(stored.read_text())["provenance"]["unsupported"] == ["quinn's pacer takes no rate."]
    assert in_empty_folder.exists()


# As a page has the sentences of the stand-in.
ESCAPED = ("Marks are not counted.", "Bursts are &lt;large&gt;.", "What comes late is lost.")


@pytest.mark.usefixtures("there")
def test_json_lists_unsupported_settings() -> None:
    asked = ["compare", "bbr3", "noq:bbr3", "quinn:bbr", "--world", "quic", "--seeds", "1", *ON_PATH]
    code, message = command(*asked, "--json")
    assert code == 0 and {
        one["controller"]: one["unsupported"] for one in json.loads(message)["results"]
    } == {
        "bbr3": ["Marks are not counted.", "Bursts are <large>.", "What comes late is lost."],
        "noq:bbr3": [],
        "quinn:bbr": ["quinn's pacer takes no rate."],
    }
    (simulated,) = fp.compare(["bbr3"], world="sim", seeds=1, **PATH).to_dict()["results"]
    assert simulated["unsupported"] == []


@pytest.mark.usefixtures("there")
def test_ignored_setting_is_noted_below_table(in_empty_folder: Path) -> None:
    flows = '[[flows]]\ncontroller = "noq:cubic"\n'
    path = in_empty_folder / "paced.toml"
    document = 'name = "paced"\nduration = "1 s"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\n'
    path.write_text(f"{document}hosts = {{ pacing = true }}\n{flows}", encoding="utf-8")
    code, message = command("run", str(path), "--world", "quic", "--out", "here")
    assert code == 0 and "Limits of quic for paced, no failures: hosts.pacing is ignored." in message, message
    path.write_text(f"{document}{flows}", encoding="utf-8")
    code, message = command("run", str(path), "--world", "quic", "--out", "there")
    assert code == 0 and "not supported" not in message, message


@pytest.mark.usefixtures("there")
def test_case_pages_list_unsupported_settings(in_empty_folder: Path) -> None:
    del in_empty_folder
    asked = ("--case", "policer", "--case", "receive-window", "--out", "here")
    _, message = command("conform", "quinn:bbr", *asked)
    assert "Limits of quic for quinn:bbr, no failures: quinn's pacer takes no rate." in message
    reported = json.loads(Path("here/conformance.json").read_text(encoding="utf-8"))
    assert reported["unsupported"] == ["quinn's pacer takes no rate."]
    # The other case was not played.
    by_case = {one["name"]: one["unsupported"] for one in reported["cases"]}
    assert by_case == {"policer": reported["unsupported"], "receive-window": []}
    for name, has in (("index", True), ("cases/policer", True), ("cases/receive-window", False)):
        page = Path(f"here/{name}.html").read_text(encoding="utf-8")
        assert ("pacer takes no rate." in page) == ("<h2>Not supported</h2>" in page) == has, name
    assert fp.conform("bbr3", ["policer"], world="sim").to_dict()["unsupported"] == []


@pytest.mark.parametrize("message", ["all", [1], {"a": "b"}])
@pytest.mark.parametrize("name", ["unsupported", "untrustworthy"])
@pytest.mark.usefixtures("there")
def test_sentences_of_a_program_are_checked(
    name: str, message: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_PROVENANCE", json.dumps({name: message}))
    with pytest.raises(fp.WorldError, match=rf"summary\['provenance'\]\['{name}'\].*expected a list"):
        fp.compare(["bbr3"], world="quic", seeds=1, **PATH)


@pytest.mark.usefixtures("there")
def test_invalid_record_is_judged_by_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_PROVENANCE", json.dumps({"unsupported": [1]}))
    (found,) = fp.conform("quinn:bbr", ["policer"]).results
    assert found.checks and found.played == () and found.unsupported == []


@pytest.mark.usefixtures("there", "no_kernel")
def test_all_skips_unsupporting_worlds_and_notes() -> None:
    found = fp.compare(["bbr3", "noq:bbr3"], world="all", seeds=1, **PATH)
    assert {(run.label, run.world) for run in found.runs} >= {
        ("bbr3", "sim"),
        ("bbr3", "quic"),
        ("noq:bbr3", "quic"),
    }
    note = "noq:bbr3 did not run in the simulator: only the world quic runs noq:bbr3; choose --world quic"
    assert note in found.notes


def test_other_worlds_refuse_stack_controllers() -> None:
    (alternative,) = api.load({**DOCUMENT, "flows": [{"controller": "noq:bbr3"}]}).alternatives
    for name in ("sim", "kernel", "qdisc"):
        world = registry.named(name)
        assert world.refuses(alternative) == "only the world quic runs noq:bbr3; choose --world quic"
    with pytest.raises(fp.ScenarioError, match="only the world quic runs noq:bbr3"):
        fp.Simulation(alternative).advance("1 s")
    code, message = command("advise", "--rate", "10 Mbit/s", "--rtt", "20 ms", *CANDIDATES)
    assert code == 2 and "only the world quic runs noq:bbr3" in message, message


@pytest.mark.usefixtures("there")
def test_program_refusals_and_python_are_refused(tmp_path: Path) -> None:
    with pytest.raises(fp.WorldError, match="noq:elephant is not there; choose one of noq:bbr3"):
        fp.compare(["noq:elephant"], world="quic", **PATH)
    (tmp_path / "mine.py").write_text(
        "import fullpipe as fp\n\n\nclass Mine(fp.Controller):\n    cwnd = 20\n", encoding="utf-8"
    )
    with pytest.raises(fp.WorldError, match=r"only the simulator runs .*mine.py:Mine"):
        fp.compare([f"{tmp_path}/mine.py:Mine"], world="quic", **PATH)


@pytest.mark.usefixtures("there")
def test_a_spec_is_asked_about_once(monkeypatch: pytest.MonkeyPatch) -> None:
    (alternative,) = api.load({**DOCUMENT, "duration": "1.234 s"}).alternatives
    assert quic.WORLD.refuses(alternative) is None

    def never(_self: object, _what: str) -> None:
        raise AssertionError("it was asked again")

    monkeypatch.setattr(quic_program.Talk, "__init__", never)
    assert quic.WORLD.refuses(alternative) is None


def test_help_explains_how_to_get_quic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(quic_program.VARIABLE, "")
    code, printed = command("compare", "--help")
    assert code == 0
    words = " ".join(printed.replace("│", " ").split())
    assert "or all (all of these but qdisc); quic is one more, once `make quic` has built it." in words


@pytest.mark.usefixtures("there")
def test_lists_include_stack_controllers() -> None:
    code, message = command("controllers", "quinn:bbr", "bbr3", "--json")
    found = json.loads(message)
    assert code == 0 and [one["name"] for one in found] == ["quinn:bbr", "bbr3"]
    assert found[0]["source"] == "quinn-proto 0.11.19" and found[0]["kernel"] is None
    assert "quic (QUIC stacks in virtual time)" in command("compare", "--help")[1].replace("│ ", "")
    (needs,) = quic.WORLD.checks()
    assert needs["ok"] and needs["found"].startswith("noq-proto 1.4.0, quinn-proto 0.11.19 (")


@pytest.mark.usefixtures("there")
def test_the_doctor_has_the_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fullpipe.runs.worlds.kernel.doctor", list)
    monkeypatch.setattr("fullpipe.runs.worlds.kernel.qdisc_doctor", list)
    (found,) = [one for one in doctor.requirements() if one.name == "stacks"]
    assert found.group == "QUIC world" and found.ok


# A program that misbehaves costs its run.


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("ends", "it ended with code 3: last words"),
        ("half", "it ended with code 0: it printed nothing"),
        ("text", "it sends something else than answers"),
        ("list", "it sends something else than answers"),
        ("deep", "it sends something else than answers"),
        ("summary", "it sends something else than answers"),
        ("series", "it sends something else than answers: expected ident"),
        ("uneven", "it sends something else than answers: the series of"),
        ("utf-16", "it sends something else than answers"),
        ("half a pair", "it sends something else than answers"),
        ("far", "it ended with code 0: it printed nothing"),
        ("far beyond", "it sends something else than answers"),
        ("disk", "No space left on device"),
        ("disk of nothing", "{'a': [1]}"),
        ("empty", "answered with summary['flows'] = None; expected a value"),
        ("closes", "it closes its output and goes on"),
        ("errno", "it is broken in a way of its own"),
        ("fails", "it is broken; repair it"),
    ],
)
@pytest.mark.usefixtures("there")
def test_misbehaving_program_is_an_error(how: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN", how)
    (alternative,) = api.load(DOCUMENT).alternatives
    (failed,) = Local().run([Task("quic", Job(alternative, 1))])
    assert isinstance(failed, Failed) and reason in failed.reason
    # Not some other exception, which the engine would name.
    with pytest.raises(fp.WorldError):
        quic.WORLD.run(Job(alternative, 1), Stop())


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("untrustworthy", "summary['provenance']['untrustworthy'] = 5; expected a list"),
        (
            "untrustworthy numbers",
            "summary['provenance']['untrustworthy'] = [5]; expected a list of sentences",
        ),
        ("no links", "summary['links'] = ['x']; expected a list of tables"),
        ("rtt", "summary['flows'][0]['rtt_ms'] = 5.0; expected a dict"),
        ("rtt without", "summary = \"KeyError: 'mean'\"; expected all that measures need"),
        ("nested", "summary = '...'; expected fewer levels"),
    ],
)
@pytest.mark.usefixtures("there")
def test_lookalike_record_is_refused(how: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN", how)
    code, message = command("compare", "noq:bbr3", "--world", "quic", "--seeds", "1", *ON_PATH)
    assert code == 2 and message.startswith(f"fullpipe: the world quic answered with {reason}"), message


@pytest.mark.usefixtures("there")
def test_a_played_record_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quic_program.Talk, "record", lambda *_: ("{}", b"PAR1PAR1", b"PAR1PAR1"))
    with pytest.raises(fp.WorldError, match=r"answered with summary\['provenance'\] = None"):
        runners.OverQuic({**DOCUMENT, "flows": [{"controller": "noq:bbr3"}]}, 1).record()


@pytest.mark.parametrize("how", ["about", "protocol", "names", "refusal", "message", "end", "reason"])
@pytest.mark.usefixtures("there")
def test_program_text_is_cleaned_for_terminal(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN", f"hostile {how}")
    # What was asked before is not asked again.
    monkeypatch.setattr(quic_program, "_refusals", OrderedDict())
    arguments = ["compare", "noq:bbr3", "--world", "quic", "--seeds", "1", *ON_PATH]
    done = CliRunner().invoke(cli.app, ["controllers", "noq:red"] if how == "names" else arguments)
    assert "rubbish" in done.output and len(done.output) < 4000
    assert [one for one in done.output if one != "\n" and not one.isprintable()] == []


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(
    ("how", "kind", "reason"),
    [
        ("disk", fp.OutputError, "No space left on device"),
        # The number of no error.
        ("disk of nothing", fp.WorldError, "{'a': [1]}"),
    ],
)
def test_only_log_errors_name_files(
    how: str, kind: type[Exception], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", how)
    (alternative,) = api.load(DOCUMENT).alternatives
    with pytest.raises(kind, match=re.escape(reason)) as caught:
        quic.WORLD.run(Job(alternative, 1, Logs(qlog=tmp_path / "logs")), Stop())
    assert (str(tmp_path / "logs") in str(caught.value)) == (kind is fp.OutputError)


def test_unresponsive_program_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = '{"protocol": 4, "build": "x", "stacks": []}'
    path = program(tmp_path, f"#!/bin/sh\n[ $1 = about ] && echo '{about}' || exec sleep 600\n")
    monkeypatch.setenv(quic_program.VARIABLE, str(path))
    quic_program.about()
    monkeypatch.setattr(quic_program, "_PATIENCE_S", 0.2)
    with pytest.raises(fp.WorldError, match=r"it does not answer within 0\.2 s"):
        quic_program.refused("{}")
    # Nor is it one that sends byte after byte.
    drips = "printf '\\0\\0\\0\\0\\0\\020\\0\\0'; while printf x; do sleep 0.01; done"
    program(tmp_path, f"#!/bin/sh\n[ $1 = about ] && echo '{about}' || {{ {drips}; }}\n")
    with pytest.raises(fp.WorldError, match=r"it does not answer within 0\.305 s"):
        quic_program.refused("{}")
    path = program(tmp_path, f"#!/bin/sh\n[ $1 = about ] && echo '{about}' || exec sleep 600\n")
    # More than a pipe holds.
    with quic_program.Talk("run") as talk, pytest.raises(fp.WorldError, match="it does not read"):
        talk.report({"spec": "x" * (1 << 20)})


def test_overlong_answer_is_refused_immediately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = '{"protocol": 4, "build": "x", "stacks": []}'
    length = r"\0\0\0\001\0\0\0\0"
    says = f"#!/bin/sh\n[ $1 = about ] && echo '{about}' || {{ printf '{length}'; exec sleep 600; }}\n"
    monkeypatch.setenv(quic_program.VARIABLE, str(program(tmp_path, says)))
    with quic_program.Talk("run") as talk, pytest.raises(fp.WorldError, match="something else than answers"):
        talk.header()


@pytest.mark.parametrize(
    ("how", "reason"),
    [("stalls", "it does not answer within 0.2"), ("drips", "within 0.2"), ("large", "something else than")],
)
@pytest.mark.usefixtures("there")
def test_missing_record_times_out(how: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (alternative,) = api.load(DOCUMENT).alternatives
    assert quic.WORLD.refuses(alternative) is None
    monkeypatch.setenv("STAND_IN", how)
    monkeypatch.setattr(quic_program, "_LEAST_BYTES_S", 1e12)
    monkeypatch.setattr(quic_program, "_PATIENCE_S", 0.2)
    with pytest.raises(fp.WorldError, match=re.escape(reason)):
        quic.WORLD.run(Job(alternative, 1), Stop())


def test_series_limit_scales_with_duration() -> None:
    def most(**changes: Any) -> int:
        (alternative,) = api.load({**DOCUMENT, **changes}).alternatives
        return quic_program._most_of_series(alternative.spec_json)

    # A row is 256 bytes, for the flow and for each of three elements; a sample each 10 ms, and two more.
    assert most() == 102 * 4 * 256
    assert most(duration="100 s") == 10_002 * 4 * 256
    spec = {**api.load(DOCUMENT).alternatives[0].spec, "sample_interval_ns": None}
    assert quic_program._most_of_series(json.dumps(spec)) == 3 * 4 * 256


@pytest.mark.usefixtures("there")
def test_only_last_stderr_output_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN", "loud")
    (alternative,) = api.load(DOCUMENT).alternatives
    with quic_program.Talk("run") as talk:
        talk.report({"spec": alternative.spec_json, "seed": 1})
        with pytest.raises(fp.WorldError, match="it ended with code 1: last words"):
            talk.header()
    assert len(talk._complaints) <= quic_program._MOST_KEPT


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[int]:
    """A wrapper around a program that does not watch its input; a pipe that says "up" and ends with it."""
    about = json.dumps(ABOUT)
    os.mkfifo(tmp_path / "alive")
    alive = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    inner = f"exec 3>{tmp_path}/alive; echo up >&3; exec sleep 600"
    path = program(tmp_path, f"#!/bin/sh\n[ $1 = about ] && echo '{about}' || sh -c '{inner}'\nexit\n")
    monkeypatch.setenv(quic_program.VARIABLE, str(path))
    yield alive
    os.close(alive)


def has_ended(alive: int) -> bool:
    return bool(child.readable([alive], 10)) and os.read(alive, 1) == b""


def test_wrapper_ends_with_its_child(stuck: int) -> None:
    with quic_program.Talk("run"):
        assert child.readable([stuck], 60) and os.read(stuck, 3) == b"up\n"
    assert has_ended(stuck)


def test_an_interrupt_leaves_no_process(stuck: int) -> None:
    # In a shell's background, interrupts are ignored.
    script = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script += "from fullpipe.__main__ import main; main()"
    arguments = ["compare", "noq:cubic", "--world", "quic", *ON_PATH]
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], stderr=subprocess.PIPE)
    assert child.readable([stuck], 60) and os.read(stuck, 3) == b"up\n"
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert (process.returncode, message) == (130, b"fullpipe: interrupted\n")
    assert has_ended(stuck)


@pytest.mark.parametrize("how", ["hangs", "stalls", "drips"])
@pytest.mark.usefixtures("there")
def test_stopped_run_ends_its_process(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN", how)
    (alternative,) = api.load(DOCUMENT).alternatives
    stop, seen = Stop(), threading.Event()
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def watched(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(real(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(quic_program.subprocess, "Popen", watched)

    def progress(done: float) -> None:
        # What is no number is no progress.
        assert done == 0 or how != "hangs"
        if how == "hangs" or done > 0:
            seen.set()
            stop.set()

    with pytest.raises(fp.Cancelled):
        quic.WORLD.run(Job(alternative, 1), stop, progress)
    assert seen.is_set() and started[-1].poll() is not None


@pytest.mark.usefixtures("there", "many_files")
def test_many_open_files_allow_run() -> None:
    (alternative,) = api.load({**DOCUMENT, "duration": "1.1 s"}).alternatives
    assert quic.WORLD.refuses(alternative) is None
    assert quic.WORLD.run(Job(alternative, 1), Stop()).summary["flows"][0]["delivered_bytes"] > 0


@pytest.mark.usefixtures("many_files")
def test_many_open_files_allow_pipe_polling() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    assert reader > 1024
    assert child.readable([reader], 0) == [] and child.writable(writer, 0)
    os.write(writer, bytes(1 << 20))
    assert child.readable([reader], 0) == [reader] and not child.writable(writer, 0)
    # Who reads what has ended, and writes what nobody reads, is told so at once.
    os.close(reader)
    assert child.writable(writer, 0)
    os.close(writer)


@pytest.mark.usefixtures("there")
def test_dropped_conversation_ends_its_process() -> None:
    talk = quic_program.Talk("play")
    process = talk._process
    assert process.poll() is None
    del talk
    assert process.poll() is not None


# Grids, cases and claims.


def grid() -> Path:
    return Path(__file__).parent.parent / "scenarios" / "grids" / "quic.toml"


@pytest.mark.usefixtures("there")
def test_grid_is_judged_by_own_targets(in_empty_folder: Path) -> None:
    arguments = ["agree", "--grid", str(grid()), "--worlds", "sim,quic", "--quick", "--seeds", "3"]
    code, message = command(*arguments, "--out", "here")
    assert code == 0, message
    written = Path("here/table.md").read_text(encoding="utf-8")
    assert "| Goodput: median difference | 2 | at most 5% | 0.0% | met |" in written
    assert "| Goodput: 90th percentile | 2 | at most 10% | 0.0% | met |" in written
    assert written.count("| met |") == 2
    assert "Fullpipe 0.1.0, noq-proto 1.4.0, quinn-proto 0.11.19, 3 seeds, 3 QUIC seeds." in written
    assert "Linux" not in written.partition("tolerances of all grids")[0]
    page = Path("here/index.html").read_text(encoding="utf-8")
    assert "Linux" not in page and "noq-proto 1.4.0, quinn-proto 0.11.19" in page


@pytest.mark.parametrize(
    ("targets", "reason"),
    [
        ('goodput = "5 %"', "targets.goodput"),
        ("goodput = {}", "at least one of median, p90"),
        ('goodput = { p95 = "5 %" }', "one of the keys median, p90"),
        ('loss = { p90 = "5 %" }', "one of the keys goodput, rtt, rtt_p95"),
        ('goodput = { p90 = "0 %" }', "a share above 0 and up to 100 %"),
        ('goodput = { p90 = "101 %" }', "a share above 0 and up to 100 %"),
        ("goodput = { p90 = 5 }", "a share above 0 and up to 100 %"),
        ('goodput = { p90 = "nan %" }', "a share above 0 and up to 100 %"),
        ('goodput = { p90 = "5 %\\n" }', "a share above 0 and up to 100 %"),
    ],
)
def test_targets_that_cannot_be_are_named(targets: str, reason: str, in_empty_folder: Path) -> None:
    path = in_empty_folder / "bad.toml"
    cell = '[[cells]]\nname = "one"\ncontroller = "reno"\nrate = "1 Mbit/s"\nrtt = "20 ms"\n'
    path.write_text(f"{cell}[targets]\n{targets}\n", encoding="utf-8")
    code, message = command("agree", "--grid", str(path), "--list")
    assert code == 2 and reason in message and "bad.toml" in message, message


@pytest.mark.usefixtures("there")
def test_cases_run_where_controller_runs() -> None:
    found = fp.conform("noq:bbr3", ["policer", "receive-window", phases_case()])
    assert (found.world, found.versions) == ("quic", "noq-proto 1.4.0, quinn-proto 0.11.19")
    by_name = {one.case.name: one for one in found.results}
    assert by_name["policer"].verdict != NOT_APPLICABLE
    # What the world refuses says nothing of the controller.
    assert by_name["receive-window"].verdict == NOT_APPLICABLE
    assert by_name["receive-window"].reason.startswith("hosts.tcp_rmem: QUIC has no such buffer")
    # And nothing shows phases from outside.
    assert by_name[phases_case()].reason == "noq:bbr3 shows no phases of BBR"
    reported = json.loads(found.to_json())
    assert reported["versions"] == "noq-proto 1.4.0, quinn-proto 0.11.19" and reported["world"] == "quic"


@pytest.mark.parametrize(
    "state",
    [
        {"running": 1},
        {"now_ns": "soon"},
        {"flow": None},
        {"flow": {"cwnd": "large"}},
        {"flow": {"inflight": None}},
        {"flow": {"phase": 1}},
        {"flow": {"connected": 1}},
        {"flow": {"transfers_ms": [None]}},
        {"flow": {"rtt_ms": math.nan}},
        {"queues": {}},
        {"queues": [[]]},
        {"queues": [{"name": "one", "dropped_packets": 0}]},
        {"queues": [{"backlog_bytes": -1, "dropped_packets": 0}]},
    ],
)
@pytest.mark.usefixtures("there")
def test_invalid_state_ends_its_case(state: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_STATE", json.dumps(state))
    with pytest.raises(fp.WorldError, match="it sends something else than answers"):
        fp.conform("noq:bbr3", ["policer"])


@pytest.mark.parametrize(
    "looks",
    [
        {"cwnd": [1] * 1001},
        {"cwnd": ["large"]},
        {"cwnd": []},
        {"lost": [None]},
        {"lost": [-1]},
        {"inflight": [math.nan]},
        {"rtt_ms": [math.inf]},
        {"rtt_ms": [10**400]},
        {"connected": []},
        {"connected": [1]},
        {"connected": [[]]},
        {"connected": None},
        {"phase": [["startup", 2]]},
        {"phase": [["startup", 0]]},
        {"phase": [["startup", True]]},
        {"phase": [[1, 1]]},
        {"phase": []},
        {"state": "open"},
    ],
)
@pytest.mark.usefixtures("there")
def test_columns_of_looks_that_are_none_are_a_sentence(
    looks: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    bed = runners.OverQuic({**DOCUMENT, "flows": [{"controller": "noq:bbr3"}]}, 1)
    assert len(bed.steps(0.01, 3)[0]) == 3
    monkeypatch.setenv("STAND_IN_LOOKS", json.dumps(looks))
    bed = runners.OverQuic({**DOCUMENT, "flows": [{"controller": "noq:bbr3"}]}, 1)
    with pytest.raises(fp.WorldError, match="it sends something else than answers"):
        bed.steps(0.01, 1)


@pytest.mark.usefixtures("there")
def test_steps_end_where_a_phase_does() -> None:
    bed = runners.OverQuic({**DOCUMENT, "flows": [{"controller": "bbr3"}]}, 1)
    one_by_one = runners.Simulated({**DOCUMENT, "flows": [{"controller": "bbr3"}]}, 1)
    for wait in (Wait("startup", True), Wait("startup", False)):
        seen, goes_on = bed.steps(0.002, 1000, wait)
        assert (seen, goes_on) == one_by_one.steps(0.002, 1000, wait) and goes_on
        assert [wait.is_met(one) for one in seen] == [False] * (len(seen) - 1) + [True]
    assert bed.steps(100.0, 3)[1] is False and len(bed.steps(100.0, 3)[0]) == 1


def phases_case() -> str:
    """Some case that speaks of phases."""
    return next(case.name for case in cases.every() if case.phases)


@pytest.mark.usefixtures("there")
def test_own_controller_passes_as_in_simulator() -> None:
    names = [phases_case(), "policer"]
    over = fp.conform("bbr3", names, world="quic")
    simulated = fp.conform("bbr3", names)
    assert [one.verdict for one in over.results] == [one.verdict for one in simulated.results]
    assert over.passed and simulated.versions == ""


def test_other_stacks_get_no_algorithm_excuse() -> None:
    (policer,) = cases.chosen(["policer"])
    failed = Result(policer, FAIL)
    assert ConformanceReport("bbr1", "quic", (failed,)).expected(failed) is not None
    assert ConformanceReport("quinn:bbr", "quic", (failed,)).expected(failed) is None


@pytest.mark.usefixtures("there")
def test_failure_scenario_repeats_failure(in_empty_folder: Path) -> None:
    found = fp.conform("noq:cubic", ["deep-buffer", "rate-up-10x"])
    deep, up = sorted(found.results, key=lambda one: one.case.name)
    assert deep.verdict == up.verdict == FAIL and deep.decisive is not None
    # The stack's CUBIC is one, which fails by design.
    assert found.expected(deep) is not None
    stem = Path("some folder", "deep-buffer")
    ((path, text),) = minimal.scenarios(found, deep, stem).items()
    assert path == Path("some folder", "deep-buffer.toml")
    assert "\n#     fullpipe run 'some folder/deep-buffer.toml' --world quic --seed 1\n" in text
    assert f"# Measured: {deep.decisive.measured}, seed 1 (noq-proto 1.4.0, quinn-proto 0.11.19)." in text
    assert "# The case may judge only a part of the run;" in text and "In this run" not in text
    assert "\n# The draft is draft-ietf-ccwg-bbr-" in text
    reason = replace(deep, reason="it waits\n[path]\nfor a probe", reason_seed=1)
    (waited,) = minimal.scenarios(found, reason, stem).values()
    assert "\n# In this run: it waits [path] for a probe.\n" in waited
    # What another run waited for says nothing of this one.
    assert minimal.scenarios(found, replace(reason, reason_seed=2), stem) == {path: text}
    # No name of a folder ends the comment.
    (odd,) = minimal.scenarios(found, deep, Path("a\nb\udc80", "deep-buffer")).values()
    assert "run 'a b\ufffd/deep-buffer.toml' --world" in odd
    path = in_empty_folder / "deep-buffer.toml"
    path.write_text(text, encoding="utf-8")
    (again,) = fp.run(str(path), world="quic", seeds=[1]).runs
    (played,) = deep.played
    assert again.summary["flows"] == played.runs.runs[0].summary["flows"]
    # A buffer that was changed cannot be said.
    assert minimal.scenarios(found, up, stem) == {}


@pytest.mark.usefixtures("there")
def test_case_changes_are_in_its_scenario(in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def play(lab: Lab) -> Measured:
        stage = lab.stage(mbps=10, ms=20, name="a rate that halves")
        stage.run(2)
        stage.change(rate="5 Mbit/s")
        stage.run(2)
        return {"sent": stage.now.sent}

    never = Criterion("sent", "segments sent", high=0, source="ours: nothing meets it")
    case = Case("halves", "A rate halves", "ours", "", (never,), play, phases=False)
    monkeypatch.setattr(cases, "_registered", {case.name: case})
    found = fp.conform("noq:cubic", [case.name])
    (text,) = minimal.scenarios(found, found.results[0], Path("halves")).values()
    assert 'changes = [{ at = "2.000000 s", rate = "5 Mbit/s" }]' in text
    path = in_empty_folder / "halves.toml"
    path.write_text(text, encoding="utf-8")
    (again,) = fp.run(str(path), world="quic", seeds=[1]).runs
    (played,) = found.results[0].played
    assert again.summary["flows"] == played.runs.runs[0].summary["flows"]


@pytest.mark.usefixtures("there")
def test_case_of_two_runs_two_scenarios(in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def play(lab: Lab) -> Measured:
        lab.stage(mbps=10, ms=20, name="the first").run(1)
        stage = lab.stage(mbps=20, ms=20)
        stage.run(1)
        return {"sent": stage.now.sent}

    never = Criterion("sent", "segments sent", high=0, source="ours: nothing meets it")
    case = Case("two", "Two runs", "ours", "", (never,), play, phases=False)
    monkeypatch.setattr(cases, "_registered", {case.name: case})
    found = fp.conform("noq:cubic", [case.name])
    found.write("here")
    files = [in_empty_folder / "here" / "cases" / f"two-{number}.toml" for number in (1, 2)]
    assert sorted(in_empty_folder.glob("here/cases/*.toml")) == files
    first, second = (file.read_text(encoding="utf-8") for file in files)
    assert "# The case consists of 2 runs. This is run 1 (the first); run 2 is two-2.toml.\n" in first
    assert "# The case consists of 2 runs. This is run 2; run 1 (the first) is two-1.toml.\n" in second
    assert "#     fullpipe run here/cases/two-2.toml --world quic --seed 1\n" in second
    page = Path("here/cases/two.html").read_text(encoding="utf-8")
    assert all(f'<a href="{file.name}">' in page for file in files)
    for file, played in zip(files, found.results[0].played, strict=True):
        (again,) = fp.run(str(file), world="quic", seeds=[1]).runs
        assert again.summary["flows"] == played.runs.runs[0].summary["flows"]


@pytest.mark.usefixtures("there")
def test_pages_name_versions_and_failure_scenarios(in_empty_folder: Path) -> None:
    del in_empty_folder
    asked = ("--case", "deep-buffer", "--case", "rate-up-10x", "--case", "clean-path", "--out", "here")
    code, message = command("conform", "noq:cubic", *asked)
    assert code == 1, message
    page = Path("here/index.html").read_text(encoding="utf-8")
    assert "quic: noq-proto 1.4.0, quinn-proto 0.11.19" in page
    # One passes, and no scenario says what was done in another.
    (scenario,) = Path("here/cases").glob("*.toml")
    assert scenario.name == "deep-buffer.toml"
    case = Path("here/cases/deep-buffer.html").read_text(encoding="utf-8")
    assert '<a href="deep-buffer.toml">' in case
    assert "fullpipe run deep-buffer.toml --world quic --seed 1" in case
    code, message = command("run", str(scenario), "--world", "quic", "--seed", "1")
    assert code == 0, message


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(
    "full_at_s", ["soon", [1], True, math.nan, math.inf, -1, pytest.param(10**400, id="huge")]
)
def test_log_full_time_is_checked(full_at_s: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_HEADER", json.dumps({"full_at_s": full_at_s}))
    with pytest.raises(fp.WorldError, match="it sends something else than answers"):
        fp.compare(["noq:bbr3"], world="quic", seeds=1, qlog=tmp_path / "logs", **PATH)
    assert list((tmp_path / "logs").iterdir()) == []


@pytest.mark.usefixtures("there")
def test_captures_are_refused(tmp_path: Path) -> None:
    for more in ({}, {"qlog": tmp_path / "logs"}):
        with pytest.raises(fp.WorldError, match="the QUIC world writes no captures; leave out pcap"):
            fp.compare(["noq:bbr3"], world="quic", seeds=1, pcap=tmp_path / "logs", **more, **PATH)
    assert not (tmp_path / "logs").exists()


@pytest.mark.usefixtures("there")
def test_missing_controller_gives_no_verdict() -> None:
    with pytest.raises(fp.WorldError, match="noq:elephant is not there"):
        fp.conform("noq:elephant", ["policer"])
    with pytest.raises(fp.ScenarioError, match="only the world quic runs noq:bbr3"):
        fp.conform("noq:bbr3", ["policer"], world="sim")


@pytest.mark.usefixtures("there")
def test_a_claim_runs_in_the_world(in_empty_folder: Path) -> None:
    del in_empty_folder
    arguments = ["study", "run", "ccwg25.queue1", "--quick", "--world", "quic", "--seeds", "1"]
    code, message = command(*arguments, "--out", "here")
    assert code in (0, 1), message
    pages = [one.read_text(encoding="utf-8") for one in Path("here").rglob("*.html")]
    assert any("QUIC" in one for one in pages)


DOCUMENT = {
    "name": "one",
    "duration": "1 s",
    "path": {"rate": "10 Mbit/s", "rtt": "20 ms"},
    "flows": [{"controller": "bbr3"}],
}
