"""A claim outside Fullpipe: the example of the README of fullpipe_studies, as it stands there."""

import json
import re
import sys
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fullpipe as fp
import fullpipe_studies
from fullpipe.cli import app as cli
from fullpipe.measures.run import Run
from fullpipe.runs.worlds import Stop, World, registry, sim
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe_studies import catalogue

README = Path(str(fullpipe_studies.__file__)).parent / "README.md"


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The package of the README, where Python finds it."""
    text = README.read_text(encoding="utf-8")
    found = re.findall(r"^`(my_paper/\w+\.py)`\n\n```python\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in found] == ["my_paper/__init__.py", "my_paper/fills.py"]
    (tmp_path / "my_paper").mkdir()
    for name, code in found:
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalogue, "_registered", {})
    monkeypatch.setattr(catalogue, "load_installed", dict)
    catalogue.papers.cache_clear()
    yield tmp_path
    catalogue.papers.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_paper"]:
        del sys.modules[name]


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, arguments)
    return done.exit_code, done.output


@pytest.mark.usefixtures("paper")
def test_external_claim_runs_like_builtin() -> None:
    fullpipe_studies.register("my_paper")
    code, printed = command("study", "run", "my_paper.fills", "--quick", "--out", "here")
    assert code == 0, printed
    assert "reproduced" in printed
    assert Path("here/figures/fills.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "Reno fills a pipe that has a buffer" in Path("here/report.html").read_text(encoding="utf-8")
    (claim,) = json.loads(Path("here/claims.json").read_text(encoding="utf-8"))["claims"]
    assert (claim["id"], claim["findings"][0]["verdict"]) == ("my_paper.fills", "reproduced")
    code, listed = command("study", "list", "--quick", "--out", "here")
    assert "my_paper.fills" in listed
    # A second time, the kept runs are used.
    assert "6 runs found in here" in command("study", "run", "my_paper.fills", "--quick", "--out", "here")[1]


class Mirror(World):
    """A third world, in virtual time: the simulator by another name."""

    name = "mirror"
    title = "mirror image"

    def build(self) -> str:
        return "1"

    def run(self, job: Job, stop: Stop, progress: Progress = ignore_progress) -> Run:
        del progress
        return replace(sim.WORLD.run(job, stop), world=self.name)


@pytest.mark.usefixtures("paper")
def test_claim_runs_in_unknown_world(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {"mirror": Mirror()})
    monkeypatch.setattr(registry, "load_installed", dict)
    fullpipe_studies.register("my_paper")
    for world in ("sim", "mirror"):
        arguments = ["my_paper.fills", "--quick", "--world", world, "--seeds", "1", "--out", "here"]
        code, printed = command("study", "run", *arguments)
        assert code == 0, printed
    (claim,) = json.loads(Path("here/claims.json").read_text(encoding="utf-8"))["claims"]
    # The simulator's runs are kept, so both are judged.
    assert [one["world"] for one in claim["findings"]] == ["sim", "mirror"]
    page = Path("here/report.html").read_text(encoding="utf-8")
    assert "Mirror image" in page and "1 seed in the mirror world" in page
    assert "Mirror image" in Path("here/figures/fills.svg").read_text(encoding="utf-8")
    code, listed = command("study", "list", "--quick", "--out", "here")
    assert "mirror" in listed


@pytest.mark.usefixtures("paper")
def test_an_own_claim_runs_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {"mirror": Mirror()})
    monkeypatch.setattr(registry, "load_installed", dict)
    built = catalogue.built("queue16.fig5")
    assert built is not None
    assert built.claim.runs_in(["mirror"]) == ("mirror",)
    assert built.claim.runs_in(registry.names()) == (*built.claim.worlds, "mirror")


@pytest.mark.usefixtures("paper")
def test_invalid_paper_fails_immediately(paper: Path) -> None:
    with pytest.raises(ModuleNotFoundError):
        fullpipe_studies.register("nothing_of_that_name")
    with pytest.raises(fp.ScenarioError, match="a name that no other paper has"):
        fullpipe_studies.register("fullpipe_studies.papers.queue16")
    (paper / "my_paper/fills.py").write_text('"""No method."""\nCLAIM = None\n', encoding="utf-8")
    with pytest.raises(ValueError, match="lacks Question, Method, Prediction"):
        fullpipe_studies.register("my_paper")


@pytest.mark.usefixtures("paper")
def test_claim_without_judge_is_an_error(paper: Path) -> None:
    file = paper / "my_paper/fills.py"
    file.write_text(file.read_text(encoding="utf-8").replace("def judge", "def _judge"), encoding="utf-8")
    with pytest.raises(ValueError, match="lacks the function judge"):
        fullpipe_studies.register("my_paper")


@pytest.mark.usefixtures("paper")
def test_entry_point_registers_paper(monkeypatch: pytest.MonkeyPatch, paper: Path) -> None:
    monkeypatch.undo()
    monkeypatch.syspath_prepend(paper)
    monkeypatch.chdir(paper)
    about = paper / "my_paper-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-paper\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(
        "[fullpipe.studies]\nmy_paper = my_paper\nother = my_paper.missing\n", encoding="utf-8"
    )
    monkeypatch.setattr(catalogue, "_registered", {})
    catalogue.load_installed.cache_clear()
    catalogue.papers.cache_clear()
    try:
        assert catalogue.built("my_paper.fills") is not None
        assert list(catalogue.load_installed()) == ["other"]
        code, listed = command("study", "list")
        assert code == 0 and "my_paper.fills" in listed
        assert "my_paper.missing cannot be loaded" in listed
    finally:
        catalogue.load_installed.cache_clear()
