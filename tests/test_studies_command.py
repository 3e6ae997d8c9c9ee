"""`fullpipe study`: what it prints and writes, and what it makes of damaged files and of mistakes."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import command
from fullpipe import evidence
from fullpipe.runs.worlds import registry
from fullpipe_studies import catalogue, costs, document, gallery, write
from fullpipe_studies.claim import Size
from fullpipe_studies.run import cost, cost_file
from test_studies_document import imported


def test_command_lists_runs_and_writes_table(in_empty_folder: Path) -> None:
    listed = command("study", "list", "--json")
    rows = {row["id"]: row for row in json.loads(listed.stdout)}
    assert rows["queue16.fig4"]["worlds"]["kernel"]["expected_s"] > 0.2
    ran = command("study", "run", "queue16.fig4", "--quick", "--seeds", "2")
    assert ran.returncode == 0, ran.stderr
    assert "queue16.fig4" in ran.stdout and "inconclusive" in ran.stdout
    folder = in_empty_folder / "out" / "study-queue16-quick"
    assert {path.name for path in folder.iterdir()} >= {"data", "figures", "claims.json", "report.html"}
    text = command("study", "claims", "--out", str(folder)).stdout
    assert (
        "/queue16/fig4.py) | The first second of BBR and CUBIC | sim | inconclusive (quick, 2 of 3 seeds) |"
        in text
    )
    assert "| [rebbr.rate](" in text and "not run" in text
    assert "papers/ccwg25/queue1.py) |  | quic | not run |" in text
    done = command("study", "claims", "--out", str(folder), "--record")
    assert done.returncode != 0 and "results/schema" in done.stderr
    # What was not run here stays, and another verdict is told.
    schema = Path(__file__).parents[1] / "results" / "schema"
    shutil.copytree(schema, in_empty_folder / "results" / "schema")
    file = in_empty_folder / "results" / "claims.jsonl"
    other = imported("own expectation met", claim="rebbr.rate")
    evidence.replace(file, [other, imported("reproduced", claim="queue16.fig4")])
    same = ("study", "run", "queue16.fig4", "--quick", "--seeds", "2")
    for number, again in enumerate([("study", "claims", "--out", str(folder)), same]):
        done = command(*again, "--record")
        assert done.returncode == 0, done.stderr
        assert ("queue16.fig4, sim: reproduced before, inconclusive now" in done.stderr) is (number == 0)
        fig4, kept = evidence.read(file)
        assert kept == other
        (shown,) = (one for one in document.rows([fig4]) if one.line is not None)
        assert shown.verdict == "inconclusive (quick, 2 of 3 seeds)"
        assert fig4["made"]["command"] == "fullpipe study run queue16.fig4 --quick --seeds 2 --record"
        assert evidence.age(fig4, {"sim": {registry.named("sim").build()}}) == ""
        assert all(len(one["values"]) == 2 for one in fig4["checks"]) and (fig4["size"], fig4["seeds"]) == (
            "quick",
            2,
        )
    assert [one.name for one in (in_empty_folder / "docs" / "reference" / "gallery").iterdir()] == [
        "queue16-fig4.png"
    ]
    # A smaller run is no replacement, unless it is asked for.
    smaller = (*same[:-1], "1", "--record")
    done = command(*smaller)
    assert done.returncode == 2 and "--replace-larger" in done.stderr and evidence.read(file)[0] == fig4
    assert command(*smaller, "--replace-larger").returncode == 0
    assert evidence.read(file)[0]["seeds"] == 1


def test_verdicts_are_recomputed_from_values(two: Path, in_empty_folder: Path) -> None:
    other = shutil.copytree(two, in_empty_folder / "other")
    for file in ("claims.json", "results/fig4.json"):
        text = (other / file).read_text()
        (other / file).write_text(text.replace('"verdict": "inconclusive"', '"verdict": "reproduced"', 1))
    data = command("study", "claims", "--out", str(other)).stdout
    assert data.count("| inconclusive (quick, 1 of 3 seeds) |") == 2
    report = write.paper(catalogue.study("queue16"), other).read_text()
    assert report == (two / "report.html").read_text()


def test_non_regular_result_files_are_skipped(in_empty_folder: Path) -> None:
    for number, make in enumerate((os.mkfifo, lambda path: path.symlink_to("/dev/zero"))):
        folder = in_empty_folder / str(number)
        folder.mkdir()
        make(folder / "claims.json")
        done = command("study", "claims", "--out", str(folder))
        assert done.returncode == 0 and "a regular file" in done.stderr, done.stderr


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results with two claims."""
    folder = tmp_path_factory.mktemp("two")
    done = command(
        "study", "run", "queue16.fig4", "queue16.fig5", "--quick", "--seeds", "1", "--out", str(folder)
    )
    assert done.returncode == 0, done.stderr
    return folder


def changed(**parts: Any) -> Callable[[Path], object]:
    """Changes parts of a JSON file."""
    return lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), **parts}))


@pytest.mark.parametrize(
    ("file", "spoil", "wrong"),
    [
        ("results/fig4.json", lambda path: path.write_text("{garbage"), "not JSON"),
        ("results/fig4.json", lambda path: path.write_bytes(b"\x80\x81"), "not text in UTF-8"),
        ("results/fig4.json", lambda path: path.write_text('{"id": 5}'), "id has the wrong type"),
        ("results/fig4.json", lambda path: path.write_text("[]"), "the whole has the wrong type"),
        ("results/fig4.json", changed(findings=[{"world": "sim"}]), "findings[0].verdict is missing"),
        (
            "results/fig4.json",
            changed(
                findings=[{"world": "sim", "verdict": "reproduced", "reason": "", "checks": [{"what": "x"}]}]
            ),
            "findings[0].checks[0].paper is missing",
        ),
        ("results/fig4.json", changed(spec=5), "spec is"),
        ("results/fig4.json", changed(size="huge"), "size is 'huge'"),
        ("results/fig4.json", changed(seeds=-1), "seeds is -1, less than 1"),
        ("results/fig4.json", changed(seeds=True), "seeds has the wrong type"),
        ("results/fig4.json", changed(command=["x"]), "command has the wrong type"),
        (
            "results/fig4.json",
            changed(findings=[{"world": "sim", "verdict": "maybe | x", "reason": "", "checks": []}]),
            "findings[0].verdict is 'maybe | x'",
        ),
        (
            "results/fig4.json",
            lambda path: path.write_text(
                re.sub('"outcome": "[a-z]+"', '"outcome": "perhaps"', path.read_text())
            ),
            "findings[0].checks[0].outcome is 'perhaps'",
        ),
        ("results/fig4.json", changed(id="queue16.fig5"), "the result of queue16.fig5"),
        ("figures/fig4.svg", lambda path: path.unlink(), "is missing"),
        ("figures/fig4.svg", lambda path: path.write_text("<svg cut o"), "not a complete SVG"),
    ],
)
def test_damaged_result_is_skipped_and_reported(
    file: str, spoil: Callable[[Path], object], wrong: str, two: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(two, tmp_path / "two")
    spoil(folder / file)
    data: list[str] = []
    study = catalogue.study("queue16")
    write.paper(study, folder, data.append)
    (sentence,) = data
    assert sentence.startswith(str(folder / file)) and wrong in sentence
    assert f"`fullpipe study run queue16.fig4 --out {folder}`" in sentence
    page = (folder / "report.html").read_text()
    assert 'id="fig5"' in page and 'id="fig4"' not in page
    assert list(write.verdicts(folder, data.append)) == ["queue16.fig5"]
    names = {"queue16.fig4", "queue16.fig5"}
    gallery.pictures(tmp_path / "gallery.md", [(study, folder)], names, data.append)
    assert data == [sentence, sentence]
    assert [one.name for one in (tmp_path / "gallery").iterdir()] == ["queue16-fig5.png"]


def test_damaged_result_is_remade_others_reported(two: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(two, tmp_path / "two")
    (folder / "results" / "fig4.json").write_text("{")
    (folder / "results" / "fig5.json").write_text("{")
    run_fig5 = ("study", "run", "queue16.fig5", "--quick", "--seeds", "1", "--out", str(folder))
    done = command(*run_fig5)
    assert done.returncode == 0, done.stderr
    assert "fig4.json is damaged" in done.stderr and "fig5.json" not in done.stderr
    assert "0 runs to do" in done.stderr and "queue16.fig5" in done.stdout


@pytest.mark.parametrize(
    ("spoil", "wrong", "kept"),
    [
        (lambda _: [], "the whole has the wrong type", set()),
        (lambda _: {"paper": "queue16", "claims": {}}, "claims has the wrong type", set()),
        (lambda data: {"claims": data["claims"]}, "paper is missing", set()),
        (
            lambda data: {**data, "claims": [{**data["claims"][0], "findings": 5}, data["claims"][1]]},
            "claims[0].findings has the wrong type",
            {"queue16.fig5"},
        ),
        (
            lambda data: {**data, "claims": [{"id": "queue16.fig4"}, data["claims"][1]]},
            "claims[0].name is missing",
            {"queue16.fig5"},
        ),
        (
            lambda data: {**data, "claims": [None, data["claims"][1]]},
            "claims[0] has the wrong type",
            {"queue16.fig5"},
        ),
    ],
)
def test_damaged_verdicts_are_skipped_and_reported(
    spoil: Callable[[Any], Any], wrong: str, kept: set[str], two: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(two, tmp_path / "two")
    path = folder / "claims.json"
    path.write_text(json.dumps(spoil(json.loads(path.read_text()))))
    reported: list[str] = []
    assert set(write.verdicts(folder, reported.append)) == kept
    (sentence,) = reported
    assert str(path) in sentence and wrong in sentence and "`fullpipe study run " in sentence


def test_damaged_verdicts_are_reported_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "claims.json").write_text("[]")
    for arguments in (["list", "--json", "--quick"], ["claims"]):
        done = command("study", *arguments, "--out", str(tmp_path))
        assert done.returncode == 0 and "not run" in done.stdout
        (sentence,) = done.stderr.splitlines()
        assert sentence.startswith(f"fullpipe: {tmp_path / 'claims.json'} is damaged")


def test_list_falls_back_on_recorded_verdicts(in_empty_folder: Path) -> None:
    schema = Path(__file__).parents[1] / "results" / "schema"
    shutil.copytree(schema, in_empty_folder / "results" / "schema")
    file = in_empty_folder / "results" / "claims.jsonl"
    evidence.replace(file, [imported("not reproduced"), imported("reproduced", claim="queue16.fig4")])
    (in_empty_folder / "runs").mkdir()
    # A folder that is named is asked for itself.
    assert "recorded)" not in command("study", "list", "--out", "runs").stdout
    assert "reproduced (recorded)" in command("study", "list").stdout
    assert command("study", "run", "queue16.fig4", "--seeds", "1").returncode == 0
    rows = {row["id"]: row["worlds"]["sim"] for row in json.loads(command("study", "list", "--json").stdout)}
    assert rows["queue16.fig4"]["verdict"] == "inconclusive" and not rows["queue16.fig4"]["recorded"]
    other = rows["queue16.fig5"]
    assert (other["verdict"], other["reason"], other["recorded"]) == ("not reproduced", "R.", True)
    file.write_text("{}\n")
    done = command("study", "list")
    assert done.returncode == 0 and "claims.jsonl:1" in done.stderr


# As a machine without scikit-learn: sys.modules has None for a module that cannot be imported.
_WITHOUT = "import sys; sys.modules['sklearn'] = None; from fullpipe.__main__ import main; main()"


@pytest.mark.parametrize(
    ("claims", "code", "sentence"),
    [
        (("imc19.fig4",), 2, "fullpipe: imc19.fig4 needs the Python module sklearn; install it: pip install"),
        (("imc19.fig4", "queue16.fig4"), 0, "fullpipe: imc19.fig4 is left out: it needs the Python module"),
    ],
)
def test_claim_with_missing_module_is_skipped(
    claims: tuple[str, ...], code: int, sentence: str, in_empty_folder: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, "study", "run", *claims, "--quick", "--seeds", "1"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert ("queue16.fig4" in done.stdout) is (code == 0)


def test_file_as_output_directory_is_named(in_empty_folder: Path) -> None:
    Path("f").write_text("")
    done = command("study", "run", "queue16.fig4", "--quick", "--out", "f")
    assert done.returncode == 2
    assert "f is a file, and a folder is needed" in done.stderr and "writable" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (["queue16.fig99"], "queue16 has no claim fig99; see `fullpipe study list`"),
        (["queue99"], 'there is no paper "queue99"; give PAPER, PAPER.CLAIM or all'),
        (["fig8"], 'there is no paper "fig8"; give queue16.fig8'),
        (
            ["imc19.fig5a", "--world", "kernel"],
            "imc19.fig5a runs in the simulator only; leave out --world or give --world sim",
        ),
        (["queue16.fig4", "--seeds", "0"], "e.g. 3"),
        (["queue16.fig4", "--seeds", "100000000"], "give at most"),
        (["queue16.fig4", "--attempts", "0"], "attempts"),
        (["queue16.fig4", "--engine", "cloud"], "local or ray"),
        (["queue16.fig4", "--ray-address", "x:1"], "--engine ray"),
        (["queue16.fig4", "--engine", "ray", "--world", "kernel"], "--engine local"),
    ],
)
def test_mistakes_are_a_sentence(in_empty_folder: Path, arguments: list[str], fix: str) -> None:
    done = command("study", "run", *arguments)
    assert done.returncode == 2 and fix in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("claim", ["queue16.fig4", "pam24.cubic", "imc21.inter"])
def test_stored_cost_matches_scenarios(claim: str) -> None:
    built = catalogue.built(claim)
    assert built is not None
    for size in (Size.FULL, Size.QUICK):
        assert costs.known(claim, size) == cost(built, size), "run `make docs`"


@pytest.mark.long
def test_all_stored_costs_match_scenarios() -> None:
    assert cost_file() == costs.FILE.read_text(encoding="utf-8"), "run `make docs`"
