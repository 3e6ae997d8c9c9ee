"""The pure parts of bench/programs_conform.py: what its table says of results."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fullpipe import evidence
from fullpipe.conformance.programs import registry

SCRIPT = Path(__file__).resolve().parent.parent / "bench" / "programs_conform.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_programs_conform", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # A dataclass looks its module up.
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module


def criterion(measured: float | None, *, met: bool, says: str = "goodput") -> dict[str, Any]:
    reported = {"says": says, "measured": measured, "low": 85.0, "high": None, "unit": "%", "met": met}
    return {**reported, "values": [measured, 99.0, None]}


def keep(
    folder: Path, cases: list[dict[str, Any]], *, load: float = 0, measured_with: str | None = None
) -> None:
    """A result as the script keeps it, or as it did when it kept no `measured_with`."""
    folder.mkdir()
    reported = {"cases": cases, "program": {"load_a_core": load}}
    (folder / "conformance.json").write_text(json.dumps(reported), encoding="utf-8")
    if measured_with is not None:
        (folder / "machine.json").write_text(json.dumps({"measured_with": measured_with}), encoding="utf-8")
    (folder / "version.txt").write_text("iperf 3.12\n", encoding="utf-8")


def passes() -> list[dict[str, Any]]:
    reported = {"source": "", "verdict": "pass", "reason": "", "criteria": []}
    return [{**reported, "name": case.name} for case in registry.every()]


def table(bench: ModuleType, shown: list[Any], folder: Path, *, made_here: bool = False) -> str:
    read = {one.name: bench.read(folder / one.name) for one in shown}
    made = [line for one in shown for line in bench.lines(one, read[one.name], folder, made_here=made_here)]
    # As they are in the file.
    name = Path("results/conformance.jsonl")
    (folder / "results").mkdir(exist_ok=True)
    (folder / "results" / "schema").unlink(missing_ok=True)
    (folder / "results" / "schema").symlink_to(bench.FILE.parent / "schema")
    evidence.replace(folder / name, made, lambda _line: True)
    text: str = bench.table(evidence.read(folder / name), every=True)
    return text


def test_table_lists_cases_and_failure_reasons(bench: ModuleType, tmp_path: Path) -> None:
    shown = bench.programs(tmp_path)[:1]
    plain = {"verdict": "pass", "reason": "", "criteria": [criterion(94.2, met=True)]}
    cases = [{**plain, "name": case.name, "source": case.source} for case in registry.every()]
    cases[0] |= {
        "verdict": "fail",
        "criteria": [criterion(86.0, met=True), criterion(12.345, met=False, says="late")],
    }
    cases[1] |= {"verdict": "not applicable", "criteria": []}
    cases[2] |= {"verdict": "not judged", "reason": "the client ended with code 3", "criteria": []}
    cases[3] |= {"verdict": "fail", "criteria": [criterion(None, met=False)]}
    # In another order, and one that is no longer played.
    kept = [*reversed(cases), {**plain, "name": "outside.gone", "source": ""}]
    keep(tmp_path / "iperf3-cubic", kept, load=0.25)
    text = table(bench, shown, tmp_path)
    count = len(cases)
    assert f"| iperf 3.12 | cubic | {count - 4} of {count - 1} | 0.25 |" in text
    rows = [case.name.removeprefix("outside.") for case in registry.every()]
    main = "goodput: at least 85 %"
    assert f"| `{rows[0]}` | {main} | **fail**, 12.3 % (late) |\n" in text
    assert f"| `{rows[1]}` |  | – |\n| `{rows[2]}` |  | not judged |\n" in text
    assert f"| `{rows[3]}` | {main} | **fail**, never |\n" in text
    assert f"| `{rows[4]}` | {main} | 94.2 % |\n" in text
    why = "late: 12.3 %, of the repetitions 12.3, 99, never (expected at least 85 %)"
    assert f"* iperf3-cubic, `{registry.every()[0].name}`: {why}." in text
    assert f"* iperf3-cubic, `{registry.every()[2].name}`: not judged: the client ended with code 3." in text


def test_commands_contain_no_local_directory(bench: ModuleType, tmp_path: Path) -> None:
    shown = [one for one in bench.programs(tmp_path) if one.name.startswith(("ngtcp2", "quic"))]
    cases = [
        {"name": case.name, "source": "", "verdict": "not applicable", "reason": "", "criteria": []}
        for case in registry.every()
    ]
    for one in shown:
        keep(tmp_path / one.name, cases)
    text = table(bench, shown, tmp_path)
    assert str(tmp_path) not in text and "All applicable cases pass." in text
    assert "{port} key.pem certificate.pem" in text and "`bin/quic-go send" in text


def test_bounds_are_in_words(bench: ModuleType) -> None:
    reported = {"low": 1.0, "high": 2.0, "unit": "s"}
    assert bench.bounds(reported) == "1 to 2 s"
    assert bench.bounds({**reported, "low": None}) == "at most 2 s"
    assert bench.bounds({**reported, "high": None, "unit": ""}) == "at least 1"


def test_table_reports_measurement_origin(bench: ModuleType, tmp_path: Path) -> None:
    shown = bench.programs(tmp_path)[:3]
    for one, where in zip(
        shown, ("Fullpipe 0.0.9 on Linux 5", "Fullpipe 0.0.9 on Linux 5", None), strict=True
    ):
        keep(tmp_path / one.name, passes(), measured_with=where)

    def head(*programs: Any, made_here: bool = False) -> str:
        return table(bench, list(programs), tmp_path, made_here=made_here).partition("\n\n")[0]

    assert head(*shown[:2]) == "Measured with Fullpipe 0.0.9 on Linux 5."
    first = "* Measured with Fullpipe 0.0.9 on Linux 5: iperf3-cubic, iperf3-bbr."
    assert head(*shown) == f"{first}\n* With what and where was not noted: ngtcp2-cubic."
    assert head(*shown, made_here=True) == f"{first}\n* Measured with {bench.here()}: ngtcp2-cubic."
    assert head(shown[2]) == "With what and where was not noted."


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("conformance.json", "{", "cannot be read (JSONDecodeError"),
        ("conformance.json", "[]", "cannot be read (TypeError"),
        ("conformance.json", '{"cases": [{}]}', "cannot be read (KeyError('name'))"),
        ("conformance.json", '{"cases": [], "program": 1}', "cannot be read (AttributeError"),
        ("conformance.json", '{"cases": []}', "has no case outside.clean-goodput, outside.start"),
        ("machine.json", "{}", "cannot be read (KeyError('measured_with'))"),
    ],
)
def test_unusable_saved_result_is_an_error(
    bench: ModuleType, tmp_path: Path, file: str, text: str, reason: str
) -> None:
    keep(tmp_path / "one", passes(), measured_with="Fullpipe 0.0.9 on Linux 5")
    assert bench.read(tmp_path / "one").machine == "Fullpipe 0.0.9 on Linux 5"
    (tmp_path / "one" / file).write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        bench.read(tmp_path / "one")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'one'}: ") and reason in message
    assert message.endswith(f"; remove {tmp_path / 'one'} to measure the program again")


class Judged:
    """What judging a program comes to. It writes as `Conformity.write` does: a file after the other."""

    summary = "it passes"

    def __init__(self, *, interrupted: bool) -> None:
        self.interrupted = interrupted

    def write(self, folder: Path) -> None:
        (folder / "conformance.json").write_text(json.dumps({"cases": passes()}), encoding="utf-8")
        if self.interrupted:
            raise KeyboardInterrupt


def test_what_was_interrupted_is_measured_again(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = [Judged(interrupted=True), Judged(interrupted=False)]
    monkeypatch.setattr(bench, "conform_program", lambda *_, **__: judged.pop(0))
    monkeypatch.setattr(bench.shutil, "which", lambda _: None)
    arguments = ["programs_conform.py", "--only", "iperf3-cubic", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(KeyboardInterrupt):
        bench.main()
    assert (tmp_path / "iperf3-cubic" / "conformance.json").is_file()
    for _ in range(2):
        bench.main()
        assert f"Measured with {bench.here()}.\n" in capsys.readouterr().out
    assert judged == []
    # What somebody removed a part of is no result either.
    (tmp_path / "iperf3-cubic" / "conformance.json").unlink()
    judged.append(Judged(interrupted=True))
    with pytest.raises(KeyboardInterrupt):
        bench.main()
    assert not bench.is_complete(tmp_path / "iperf3-cubic")


def test_an_interrupted_preparation_is_made_again(
    bench: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ngtcp2, quic_go) = bench.programs(tmp_path)[2], bench.programs(tmp_path)[-1]
    fails = [True]

    def ran(command: list[str], **_: Any) -> SimpleNamespace:
        for option in ("-keyout", "-out", "-o"):
            if option in command:
                path = Path(command[command.index(option) + 1])
                path.parent.mkdir(exist_ok=True)
                path.write_text("partly", encoding="utf-8")
        if fails[0]:
            raise KeyboardInterrupt
        return SimpleNamespace()

    monkeypatch.setattr(bench.subprocess, "run", ran)
    made = [tmp_path / "certificate.pem", tmp_path / "bin" / "quic-go"]
    for one in (ngtcp2, quic_go):
        with pytest.raises(KeyboardInterrupt):
            bench.prepare(one, tmp_path)
    assert not any(path.exists() for path in made)
    fails[0] = False
    for one in (ngtcp2, quic_go):
        bench.prepare(one, tmp_path)
    assert all(path.is_file() for path in made)
