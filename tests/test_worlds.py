"""A third world, and everything that reads the registry of worlds, with no other change.

The world is the example of python/fullpipe/runs/worlds/README.md, as it stands there.
"""

import ast
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import fullpipe as fp
from fullpipe import _native, api
from fullpipe.agreement.grid import run as grid_run
from fullpipe.cli import app as cli
from fullpipe.cli.commands import agree_grid
from fullpipe.measures.run import FLOW_COLUMNS, LINK_COLUMNS, Run
from fullpipe.report.figures import summary, theme
from fullpipe.report.grid import write as grid_write
from fullpipe.report.results import Results
from fullpipe.runs import doctor
from fullpipe.runs.engines import Failed
from fullpipe.runs.engines.local import Local
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import carry_out
from fullpipe.runs.worlds import Stop, World, kernel, register, registry, sim
from fullpipe.runs.worlds.job import Job, Progress, ignore_progress
from fullpipe.scenario import path_facts, scenario

README = Path(registry.__file__).parent / "README.md"
PATH: dict[str, Any] = {"rate": "10 Mbit/s", "rtt": "20 ms", "duration": "2 s"}
DOCUMENT = {
    "name": "two",
    "duration": "2 s",
    "path": {"rate": "10 Mbit/s", "rtt": "20 ms"},
    "flows": [{"controller": "bbr1"}, {"controller": "cubic"}],
}


@pytest.fixture(autouse=True)
def only_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test leaves a world behind, and none finds one that is installed."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "load_installed", dict)


@pytest.fixture
def ideal() -> World:
    """The world of the README, registered by the README's own last line."""
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.splitlines()) <= 55
    exec(compile(code, str(README), "exec"), {"__name__": "readme"})
    return registry.named("ideal")


@pytest.fixture
def tiny(in_empty_folder: Path, ideal: World) -> Path:
    """A grid."""
    del ideal
    path = in_empty_folder / "tiny.toml"
    path.write_text(
        '[defaults]\nduration = "2 s"\nrate = "10 Mbit/s"\nrtt = "20 ms"\n'
        '[[cells]]\nname = "{controller} alone"\ncontroller = ["reno", "cubic"]\n'
        '[[cells]]\nname = "two"\nflows = [{ controller = "bbr1" }, { controller = "cubic" }]\n',
        encoding="utf-8",
    )
    return path


def command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, arguments)
    return done.exit_code, done.output


def legend(spec: Any) -> Any:
    """The colours of worlds in a figure."""
    if isinstance(spec, dict):
        if spec.get("field") == "world" and "domain" in (spec.get("scale") or {}):
            return dict(zip(spec["scale"]["domain"], spec["scale"]["range"], strict=True))
        spec = list(spec.values())
    found = (legend(one) for one in spec) if isinstance(spec, list) else ()
    return next((one for one in found if one), None)


# The simulator fills the columns that a world in Python may use.


def test_series_columns_match_simulator(small: Results) -> None:
    assert dict(small.runs[0].flow_series().schema) == FLOW_COLUMNS
    assert dict(small.runs[0].link_series().schema) == LINK_COLUMNS


# What a user does with a world.


@pytest.mark.usefixtures("ideal")
def test_a_comparison_in_the_third_world() -> None:
    found = fp.compare(["bbr1", "cubic"], world="ideal", **PATH)
    assert found.worlds == ["ideal"]
    # One run of each by default: the same seed gives the same run.
    assert found.summary["seeds"].to_list() == [1, 1]
    facts = path_facts.of(found.runs[0].alternative)
    assert found.summary["goodput_bps"].to_list() == pytest.approx([10e6 * facts.payload_share] * 2)
    assert found.summary["rtt_mean_ms"].to_list() == pytest.approx([20, 20])
    assert found.series()["world"].unique().to_list() == ["ideal"]


@pytest.mark.usefixtures("ideal", "no_kernel")
def test_all_worlds() -> None:
    found = fp.run(DOCUMENT, world="all")
    assert found.worlds == ["sim", "kernel", "ideal"]
    assert found.flows["world"].unique(maintain_order=True).to_list() == found.worlds
    # With more than two worlds, the verdict names those that it is about.
    assert found.agreement is not None
    assert found.agreement.verdict.startswith("Simulator and kernel world agree: ")


@pytest.mark.usefixtures("ideal")
def test_refusing_world_is_error_or_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    why = "the ideal fluid knows only flows without an end; leave out sizes"
    finite = {**DOCUMENT, "flows": [{"controller": "reno", "size": "100 KB"}]}
    with pytest.raises(fp.WorldError, match=re.escape(why)):
        fp.run(finite, world="ideal")

    def no_kernel(*_: object) -> Run:
        raise fp.WorldError("there is none")

    monkeypatch.setattr(kernel.Kernel, "run", no_kernel)
    found = fp.run(finite, world="all")
    assert found.worlds == ["sim"]
    assert found.notes == [
        "The kernel world did not run. there is none",
        f"The ideal world did not run. {why}",
    ]
    (failed,) = Local().run([Task("ideal", Job(api.load(finite).alternatives[0], 1))])
    assert isinstance(failed, Failed) and failed.reason == why


def test_refused_alternatives_do_not_affect_others(ideal: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_cubic(_self: World, alternative: scenario.Alternative) -> str | None:
        return "there is no cubic here" if alternative.label == "cubic" else None

    monkeypatch.setattr(type(ideal), "refuses", no_cubic)
    found = fp.compare(["cubic", "bbr1"], world="ideal", **PATH)
    assert [run.label for run in found.runs] == ["bbr1"]
    assert found.notes == ["cubic did not run in the ideal world: there is no cubic here"]


@pytest.mark.usefixtures("ideal")
def test_two_worlds_agree_or_not() -> None:
    found = fp.agree(DOCUMENT, worlds=("sim", "ideal"), seeds=2)
    assert found.results.worlds == ["sim", "ideal"]
    assert found.worlds == ("sim", "ideal")
    reported = found.to_dict()
    rtt = next(one for one in reported["checks"] if one["measure"].startswith("RTT mean"))
    assert list(rtt) == [
        "alternative",
        "measure",
        "sim",
        "ideal",
        "difference",
        "tolerance",
        "agrees",
        "reason",
    ]
    assert rtt["ideal"] == "20.0 (20.0 to 20.0)" and float(rtt["sim"]) > 20 and not rtt["agrees"]
    assert found.verdict.startswith("The worlds do not agree: ")
    # The reference is the second world: its range counts, and differences are relative to it.
    other = fp.agree(DOCUMENT, worlds=("ideal", "sim"), seeds=2)
    rtt = next(one for one in other.to_dict()["checks"] if one["measure"].startswith("RTT mean"))
    assert list(rtt)[2:4] == ["ideal", "sim"] and rtt["difference"].startswith("-") and " to " in rtt["sim"]


@pytest.mark.usefixtures("ideal")
@pytest.mark.parametrize("worlds", ["sim", ("sim",), ("sim", "sim"), ("sim", "nowhere")])
def test_invalid_world_pair_is_an_error(worlds: Sequence[str]) -> None:
    with pytest.raises(fp.ScenarioError):
        fp.agree(DOCUMENT, worlds=worlds)


@pytest.mark.usefixtures("ideal")
def test_figures_have_world_name_and_colour() -> None:
    both = Results(
        api.load(DOCUMENT), [run for name in ("sim", "ideal") for run in fp.run(DOCUMENT, world=name).runs]
    )
    opacities = legend(summary.figure(both))
    assert opacities == {"simulation": 1.0, "ideal fluid": 0.7}
    for what in ("throughput", "rtt"):
        assert "ideal fluid" in json.dumps(both.plot(what).to_dict())
    colours = theme.world_colours(["sim", "kernel", "ideal"])
    assert len(set(colours.values())) == 3
    assert colours == theme.world_colours(["ideal", "kernel", "sim"])
    assert not set(colours.values()) & set(theme.CONTROLLER.values())


@pytest.mark.usefixtures("ideal")
def test_the_report_has_it(tmp_path: Path) -> None:
    found = fp.agree(DOCUMENT, worlds=("sim", "ideal"), seeds=1)
    page = found.results.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "How far apart simulation and ideal fluid are" in page
    assert "Ideal fluid (range)" in page
    assert "ideal fluid: 1 seed" in page


def test_uninstalled_world_data_are_still_shown(ideal: World, tmp_path: Path) -> None:
    found = fp.run(DOCUMENT, world=ideal.name)
    registry._registered.clear()
    page = found.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "ideal: 1 run" in page
    assert found.plot("summary") is not None


# Grids and sweeps.


def test_a_grid_with_the_third_world(tiny: Path) -> None:
    plan = agree_grid.plan(
        str(tiny), worlds=("sim", "ideal"), quick=False, only=None, seeds=2, repetitions=None, attempts=None
    )
    data: list[str] = []
    found = grid_run.carry_out(plan, Path("here"), say=data.append)
    assert data[0].startswith("tiny: 3 cells, ideal hosts; 6 simulator runs and 6 ideal runs to do, ")
    assert found.judged == 3
    page = grid_write.everything(found, Path("here")).read_text(encoding="utf-8")
    assert "Simulator and ideal on the grid tiny" in page
    assert "2 seeds in the simulator and 2 seeds in the ideal world each" in page
    assert theme.world_colours(["ideal"])["ideal"] in page
    cells = pl.read_parquet("here/cells.parquet")
    assert {"sim_mean", "sim_ci95_low", "ideal_mean", "ideal_least", "ideal_runs"} <= set(cells.columns)
    reported = json.loads(Path("here/grid.json").read_text(encoding="utf-8"))
    assert reported["worlds"] == ["sim", "ideal"] and reported["builds"]["ideal"] == "1"
    assert set(reported["cells"][0]["measures"]["goodput_bps"]) >= {"sim", "ideal"}
    # A second time, nothing is run.
    data.clear()
    grid_run.carry_out(plan, Path("here"), say=data.append)
    assert data == ["tiny: all 12 runs are already in here"]


def test_grid_command_names_worlds(tiny: Path) -> None:
    arguments = ["agree", "--grid", str(tiny), "--worlds", "sim,ideal", "--seeds", "1", "--out", "here"]
    code, printed = command(*arguments)
    assert code == 1, printed
    assert "RTT p95" in printed or "p95" in printed
    assert "--worlds sim,ideal" in Path("here/table.md").read_text(encoding="utf-8")


def test_sweep_resumes_unless_build_changes(
    ideal: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alternative = api.load(DOCUMENT).alternatives[0]
    tasks = [Task(name, Job(alternative, seed)) for name in ("sim", "ideal") for seed in (1, 2)]
    first = carry_out(tasks, Store(tmp_path), Local())
    assert (first.found, len(first.stored), first.failed) == (0, 4, [])
    again = carry_out(tasks, Store(tmp_path), Local())
    assert again.found == 4
    assert [one.run().flow_series().height > 0 for one in again.of(tasks)] == [True] * 4
    monkeypatch.setattr(type(ideal), "build", lambda _self: "2")
    changed = carry_out([replace(task) for task in tasks], Store(tmp_path), Local())
    assert changed.found == 2
    monkeypatch.setattr(type(ideal), "surroundings", lambda _self: {"library": "3.1"})
    moved = carry_out([replace(task) for task in tasks], Store(tmp_path), Local())
    assert moved.found == 2


# A world in wall time.


class Restless(World):
    """The simulator as if it measured: each repetition is untrustworthy once."""

    name = "restless"
    wall_time = True
    deterministic = False
    runs = 2

    def __init__(self) -> None:
        self.tried: list[int] = []

    def build(self) -> str:
        return "1"

    def run(self, job: Job, stop: Stop, progress: Progress = ignore_progress) -> Run:
        progress(0.5)
        self.tried.append(job.seed)
        run = replace(sim.WORLD.run(job, stop), world=self.name)
        if self.tried.count(job.seed) == 1:
            run.summary["provenance"]["untrustworthy"] = ["it was the first attempt"]
        return run


def test_wall_time_world_repeats_until_trusted() -> None:
    restless = Restless()
    register(restless)
    seen: list[tuple[str, float, int]] = []
    found = fp.compare(
        ["reno"], world="restless", seeds=9, **PATH, watch=lambda *progress: seen.append(progress)
    )
    assert sorted(restless.tried) == [1, 1, 2, 2]
    assert found.summary["trusted"].to_list() == [2]
    assert ("restless", 0.5, 2) in seen
    doubted = fp.compare(["reno"], world="restless", repetitions=[7], attempts=1, **PATH)
    (note,) = re.findall("reno, restless: .*", command_notes(doubted))
    assert note.startswith("reno, restless: the only repetition is not trusted")


def command_notes(results: Results) -> str:
    from fullpipe.report import tables

    return "\n".join(tables.run_notes(results))


def test_wall_time_runs_exclude_other_worlds() -> None:
    register(Restless())
    engine = Local(cores=2)
    alternative = api.load(DOCUMENT).alternatives[0]
    simulated, restless, kernels = (Task(name, Job(alternative, 1)) for name in ("sim", "restless", "kernel"))
    assert not engine._fits(restless, [simulated])
    assert not engine._fits(simulated, [restless])
    assert not engine._fits(restless, [kernels])
    assert engine._fits(restless, [restless])
    assert not engine._fits(replace(restless, alone=True), [restless])
    assert engine.takes_s([restless] * 3) == 2 * alternative.duration_s


# The command line.


@pytest.mark.usefixtures("ideal")
def test_the_command_line_takes_it(in_empty_folder: Path) -> None:
    del in_empty_folder
    path = ["--rate", "10 Mbit/s", "--rtt", "20 ms", "--duration", "1 s"]
    code, printed = command("compare", "bbr1", "cubic", *path, "--world", "ideal", "--out", "here")
    assert code == 0, printed
    assert "A single run gives no confidence interval (ideal)." in printed
    assert "ideal fluid" in Path("here/report.html").read_text(encoding="utf-8")
    assert {one.name.partition("-")[0] for one in Path("here/runs").iterdir()} == {"ideal"}


@pytest.mark.usefixtures("ideal")
@pytest.mark.parametrize("arguments", [["compare"], ["run"], ["study", "run"]])
def test_help_lists_it(arguments: list[str]) -> None:
    code, printed = command(*arguments, "--help")
    assert code == 0
    assert "path and queue), ideal, qdisc (as kernel" in " ".join(printed.replace("│", " ").split())


@pytest.mark.usefixtures("ideal")
def test_unknown_world_error_lists_names() -> None:
    with pytest.raises(fp.ScenarioError, match="expected sim, kernel, ideal, qdisc or all"):
        fp.run(DOCUMENT, world="elsewhere")


# Registration.


class Named(Restless):
    """A world with any name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


@pytest.mark.parametrize("name", ["sim", "kernel", "all", "", "a b", "../x", "a,b", "x" * 33])
def test_names_that_a_world_cannot_have(name: str) -> None:
    with pytest.raises(fp.ScenarioError, match=r"^world: "):
        register(Named(name))


@pytest.mark.parametrize("name", ["SIM", "All", None, 7])
def test_invalid_or_lookalike_names_are_refused(name: Any) -> None:
    with pytest.raises(fp.ScenarioError, match=r"^world: "):
        register(Named(name))


def test_a_class_is_no_world() -> None:
    no_world: Any = Named
    with pytest.raises(fp.ScenarioError, match=r"an instance of the class; write register\(Named\(\)\)"):
        register(no_world)
    no_world = Path()
    with pytest.raises(fp.ScenarioError, match="a world, with the method build"):
        register(no_world)
    register(Named("x"))
    with pytest.raises(fp.ScenarioError, match="a name that no other world has"):
        register(Named("X"))


# Worlds that misbehave.


class MuteError(Exception):
    """It cannot say what is wrong."""

    def __str__(self) -> str:
        raise SystemExit(0)


def raises(error: BaseException) -> Any:
    raise error


class Bad(World):
    """The simulator, spoilt at one seed."""

    name = "bad"

    def __init__(self, spoil: Any) -> None:
        self.spoil = spoil

    def build(self) -> str:
        return "1"

    def run(self, job: Job, stop: Stop, progress: Progress = ignore_progress) -> Run:
        run = replace(sim.WORLD.run(job, stop), world=self.name)
        if job.seed != 2:
            return run
        spoilt: Run = self.spoil(run)
        return spoilt


def in_flow(**fields: Any) -> Any:
    def spoil(run: Run) -> Run:
        run.summary["flows"][0].update(fields)
        return run

    return spoil


def reordered(run: Run) -> Run:
    run.summary["flows"].reverse()
    return run


def in_summary(**fields: Any) -> Any:
    return lambda run: replace(run, summary={**run.summary, **fields})


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda _run: raises(SystemExit(0)), "bad: the run raised SystemExit: 0"),
        (lambda _run: raises(KeyboardInterrupt()), "bad: the run raised KeyboardInterrupt"),
        (lambda _run: raises(MuteError()), "MuteError"),
        (lambda _run: raises(_native.Cancelled()), "cancelled, which nobody asked for"),
        (lambda _run: None, "run() = None"),
        (in_flow(goodput_bps=float("nan")), "summary['flows'][0]['goodput_bps'] = nan"),
        (in_flow(goodput_bps=-1), "summary['flows'][0]['goodput_bps'] = -1"),
        (in_flow(goodput_bps="x"), "summary['flows'][0]['goodput_bps'] = 'x'"),
        (in_flow(goodput_bps=None), "summary['flows'][0]['goodput_bps'] = None"),
        (in_flow(goodput_bps=True), "summary['flows'][0]['goodput_bps'] = True"),
        (in_flow(rtt_ms={"mean": float("inf")}), "summary['flows'][0]['rtt_ms']['mean'] = inf"),
        (in_flow(label="who"), "summary['flows'] = ['who', "),
        (in_summary(flows=[]), "summary['flows'] = []"),
        (
            reordered,
            "the world bad answered with summary['flows'] = ['cubic', 'bbr1']; "
            "expected a summary of each flow, in the scenario's order: ['bbr1', 'cubic']; correct the world",
        ),
        (
            in_summary(
                fairness={"shares": [{"label": "cubic", "share": 1.0}, {"label": "bbr1", "share": 0.0}]}
            ),
            "['shares'] = ['cubic', 'bbr1']; expected the share of each flow, in the scenario's order",
        ),
        (in_summary(fairness={"jain_index": 1.0}), "summary['fairness']['shares'] = None"),
        (in_summary(total_goodput_bps=10**400), "summary['total_goodput_bps'] = 1000"),
        (in_summary(provenance=None), "summary['provenance'] = None"),
        (
            lambda run: replace(run, summary={**run.summary, "flows": 3 * run.summary["flows"]}),
            "['flows'] = ",
        ),
        (lambda run: replace(run, summary=None), "summary = None"),
        (lambda run: replace(run, world="sim"), "world = 'sim'"),
        (lambda run: replace(run, seed=9), "seed = 9"),
        (lambda run: replace(run, flow_parquet=None), "flow_parquet = None"),
        (
            lambda run: replace(run, flow_parquet=b"PAR1PAR1"),
            "flow_parquet = 'parquet: File out of specification",
        ),
        (
            lambda run: replace(run, flow_parquet=run.link_parquet),
            "flow_parquet['flow'] = None; expected a column of String",
        ),
    ],
)
def test_misbehaving_world_fails_one_run(spoil: Any, reason: str) -> None:
    register(Bad(spoil))
    (alternative,) = scenario.from_document(DOCUMENT).alternatives
    ended = list(Local().run(Task("bad", Job(alternative, seed)) for seed in (1, 2, 3)))
    (failed,) = [one for one in ended if isinstance(one, Failed)]
    assert len(ended) == 3 and failed.task.job.seed == 2
    assert reason in failed.reason and ("bad" in failed.reason or "answered" not in failed.reason)


POINTS_THAT_FAIL = "[{group}]\nleaves = leaves:World\nmute = mute:World\n"
GROUPS = ("commands", "worlds", "studies")


@pytest.mark.parametrize("arguments", [["doctor"], ["run", "--help"], ["study", "list"]])
def test_no_installed_package_ends_a_command(
    installed: dict[str, str], tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    mute = "class E(Exception):\n    def __str__(self):\n        raise SystemExit(3)\nraise E\n"
    (tmp_path / "mute.py").write_text(mute, encoding="utf-8")
    points = "".join(POINTS_THAT_FAIL.format(group=f"fullpipe.{group}") for group in GROUPS)
    (tmp_path / "outsider-1.0.dist-info" / "entry_points.txt").write_text(points, encoding="utf-8")
    done = outside(installed, *arguments)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    assert done.stdout
    if arguments == ["doctor"]:
        data = " ".join(done.stdout.split())
        assert "leaves:World cannot be loaded" in data and "mute:World cannot be loaded" in data, data


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ("outsider:missing", "outsider:missing cannot be loaded"),
        ("outsider:Far", "<class 'outsider.Far'> is no"),
    ],
)
def test_unusable_package_command_explains_why(
    installed: dict[str, str], tmp_path: Path, point: str, reason: str
) -> None:
    points = f"[fullpipe.commands]\nbroken = {point}\ncontrollers = {point}\n"
    (tmp_path / "outsider-1.0.dist-info" / "entry_points.txt").write_text(points, encoding="utf-8")
    done = outside(installed, "broken", "whatever", "--option")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"fullpipe: the command broken cannot be used: {reason}")
    assert outside(installed, "controllers").returncode == 0


def test_function_of_package_is_a_command(installed: dict[str, str], tmp_path: Path) -> None:
    greets = "def greet(whom: str, loud: bool = False) -> None:\n    print(whom.upper() if loud else whom)\n"
    (tmp_path / "outsider.py").write_text(greets, encoding="utf-8")
    points = "[fullpipe.commands]\ngreet = outsider:greet\n"
    (tmp_path / "outsider-1.0.dist-info" / "entry_points.txt").write_text(points, encoding="utf-8")
    done = outside(installed, "greet", "you", "--loud")
    assert (done.returncode, done.stdout) == (0, "YOU\n"), done.stderr
    assert outside(installed, "greet", "--nix").stderr.startswith("fullpipe: ")


def test_duplicate_name_needs_same_class() -> None:
    register(Named("x"))
    again = Named("x")
    register(again)
    assert registry.named("x") is again
    with pytest.raises(fp.ScenarioError, match="a name that no other world has"):
        register(type("Other", (Named,), {})("x"))


PACKAGE = """
from fullpipe.runs.worlds.sim import Simulator

class Far(Simulator):
    name = "far"
    title = "far side"

    def build(self):
        return "far 1"

    def run(self, job, stop, progress=None):
        from dataclasses import replace
        return replace(super().run(job, stop), world=self.name)
"""
POINTS = "[fullpipe.worlds]\nfar = outsider:Far\nbroken = outsider:missing\n"


@pytest.fixture
def installed(tmp_path: Path) -> Generator[dict[str, str]]:
    """The environment of a process in which a package with a world is installed."""
    (tmp_path / "outsider.py").write_text(PACKAGE, encoding="utf-8")
    about = tmp_path / "outsider-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outsider\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    places = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    yield {**os.environ, "PYTHONPATH": os.pathsep.join(places), "COLUMNS": "120"}


def outside(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fullpipe", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_world_of_an_installed_package(installed: dict[str, str], in_empty_folder: Path) -> None:
    del in_empty_folder
    path = ["--rate", "10 Mbit/s", "--rtt", "20 ms", "--duration", "500 ms", "--json"]
    done = outside(installed, "compare", "reno", *path, "--world", "far", "--seeds", "1")
    assert done.returncode == 0, done.stderr
    assert [one["world"] for one in json.loads(done.stdout)["results"]] == ["far"]
    helped = outside(installed, "compare", "--help")
    assert "path and queue), far, qdisc (as kernel" in " ".join(helped.stdout.replace("│", " ").split())
    wrong = outside(installed, "compare", "reno", *path, "--world", "broken")
    assert wrong.returncode == 2
    assert "outsider:missing cannot be loaded" in wrong.stderr


def test_packages_are_loaded_only_when_needed(installed: dict[str, str]) -> None:
    script = (
        "import sys, fullpipe.api; from fullpipe.runs.worlds import registry;"
        "registry.named('sim'); assert 'outsider' not in sys.modules;"
        "assert registry.names() == ['sim', 'kernel', 'far']; assert 'outsider' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], env=installed, check=True, timeout=60)


def test_doctor_names_unloadable_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load_installed", lambda: {"far": "outsider:Far cannot be loaded: no"})
    monkeypatch.setattr(kernel, "doctor", list)
    (found,) = [one for one in doctor.requirements() if one.name == "far"]
    assert not found.ok and "cannot be loaded" in found.found


def test_the_doctor_asks_each_world(ideal: World, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"name": "library", "ok": True, "found": "3.1", "fix": ""}
    monkeypatch.setattr(type(ideal), "checks", lambda _self: [needs])
    monkeypatch.setattr(kernel, "doctor", list)
    (found,) = [one for one in doctor.requirements() if one.name == "library"]
    assert found.group == "Ideal world"


def test_only_worlds_room_uses_world_names() -> None:
    package = Path(scenario.__file__).parent.parent
    found = set()
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else ""
            name = node.arg if isinstance(node, ast.arg) else name
            name = node.name if isinstance(node, ast.FunctionDef) else name
            if name in ("sim", "kernel") and path.parent.name != "worlds":
                found.add(f"{path.relative_to(package)}: {name}")
    assert not found


def test_a_world_that_another_thread_imports_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its module is in `sys.modules` before it has its world."""
    name = "world_that_is_imported_slowly"
    begun, go_on = threading.Event(), threading.Event()
    source = "import slow_gates\nslow_gates.begun.set()\nslow_gates.go_on.wait()\nWORLD = 'it'\n"
    (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "slow_gates", SimpleNamespace(begun=begun, go_on=go_on))
    monkeypatch.setitem(registry._HOME, "slow", name)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(registry.find, "slow")
        assert begun.wait(timeout=60)
        second = pool.submit(registry.find, "slow")
        # Without waiting, it would end now, with an error; the wait only gives it the time for that.
        wait([second], timeout=0.2)
        go_on.set()
        assert first.result() == second.result() == "it"
    sys.modules.pop(name)
