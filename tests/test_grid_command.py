"""`fullpipe agree --grid`: what it prints and leaves. Mostly with the simulator in place of the kernel."""

import json
import re
import shlex
import shutil
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

import fullpipe as fp
from conftest import answer_for_the_kernel, command
from fullpipe import _native, evidence
from fullpipe.agreement.grid import lines
from fullpipe.cli import app as cli
from fullpipe.cli import options
from fullpipe.measures.measures import goodput_bps
from fullpipe.measures.run import Run
from fullpipe.report.grid import write
from fullpipe.runs.store import Store
from fullpipe.runs.worlds import kernel, registry

TWO = """
[defaults]
duration = "2 s"
rate = "10 Mbit/s"
rtt = "20 ms"

[[cells]]
name = "{controller} alone"
controller = "cubic"

[[cells]]
name = "two"
flows = [{ controller = "bbr1" }, { controller = "cubic" }]

[quick]
duration = "1 s"
cells = ["cubic alone"]
"""
RUNS = ("--seeds", "2", "--repetitions", "2", "--out", "here")


@pytest.fixture
def tiny(in_empty_folder: Path) -> Path:
    path = in_empty_folder / "tiny.toml"
    path.write_text(TWO, encoding="utf-8")
    return path


def agree(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.app(["agree", "--grid", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.mark.usefixtures("no_kernel")
def test_a_grid_in_shards_is_the_grid(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (str(tiny), *RUNS[:-2])
    for number in ("1", "2", "3"):
        assert agree(*words, "--shard", f"{number}/3", "--out", number) == 0
    assert "Shard 3/3: 2 runs in 3" in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        cli.app(["merge", "1", "2", "3", "--out", "here"])
    assert left.value.code == 0 and "8 runs of 3 shards are in here" in capsys.readouterr().out
    assert agree(*words, "--out", "here") == 0
    out, err = capsys.readouterr()
    assert "all 8 runs are already in here" in err and "2 of 2 cells agree" in out


@pytest.mark.usefixtures("no_kernel")
def test_what_a_grid_prints_and_leaves(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert agree(str(tiny), *RUNS) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    for data in (
        "cubic alone",
        "two",
        "agrees",
        "Goodput: median difference",
        "2 of 2 cells agree",
        "8 of 8",
        "Otherwise, if each difference of means is within its tolerance, Close; if not, Differs.",
        "Tolerances of a cell: goodput 3%, mean RTT 5%, p95 RTT 10%, retransmissions a factor of 1.25",
    ):
        assert data in out
    assert "Targets are about" not in out, "nothing differs"
    assert "2 cells, ideal hosts; 4 simulator runs and 4 kernel runs to do, the latter 8 s in all" in err
    assert "Report: here/index.html" in err
    made = json.loads(Path("here/grid.json").read_text(encoding="utf-8"))
    assert made["met"] is True
    assert [one["verdict"] for one in made["cells"]] == ["agrees", "agrees"]
    assert set(made["cells"][1]["measures"]) == {
        "goodput_bps",
        "rtt_mean_ms",
        "rtt_p95_ms",
        "retransmits",
        "share",
    }
    cells, runs = (pl.read_parquet(f"here/{name}.parquet") for name in ("cells", "runs"))
    assert cells.height == 4 + 5
    assert runs.height == 4 * 1 + 4 * 2
    assert all((Path("here") / file).is_file() for file in runs["file"])
    # The flows of a run have its place in common.
    assert runs.select("file", "byte").unique().height == 8
    scenario = Path("here/scenarios/two.json")
    assert json.loads(scenario.read_text(encoding="utf-8"))["flows"][1] == {"controller": "cubic"}

    # Once more: nothing is run again, and the same comes out.
    assert agree(str(tiny), *RUNS) == 0
    again = capsys.readouterr()
    assert "all 8 runs are already in here" in again.err
    assert again.out == out


@pytest.mark.usefixtures("no_kernel")
def test_map_cells_link_to_their_series(tiny: Path) -> None:
    agree(str(tiny), *RUNS)
    page = Path("here/index.html").read_text(encoding="utf-8")
    assert len(page) < 3_000_000
    body = page.split("<script")[0]

    class Ids(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.ids: list[str] = []
            self.links: set[str] = set()

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            for name, value in attrs:
                if name == "id" and value:
                    self.ids.append(value)
                elif name in ("href", "xlink:href"):
                    assert value is not None
                    assert value.startswith("#"), value
                    self.links.add(value[1:])

    found = Ids()
    found.feed(body)
    assert len(found.ids) == len(set(found.ids))
    assert found.links == {"cell-cubic-alone", "cell-two"} <= set(found.ids)
    for cell in ("cubic-alone", "two"):
        section = body.split(f'<section id="cell-{cell}">')[1].split("</section>")[0]
        assert section.count("<figure") == 1
        assert "goodput, Mbit/s" in section
        assert "smoothed RTT, ms" in section
        assert "seed 1 in the simulator" in section or "seed 2 in the simulator" in section


@pytest.mark.usefixtures("no_kernel")
def test_only_quick_list_and_json(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert agree(str(tiny), "--only", "t*", "--json", *RUNS) == 0
    assert [one["cell"] for one in json.loads(capsys.readouterr().out)["cells"]] == ["two"]
    assert agree(str(tiny), "--quick", *RUNS) == 0
    assert "2 of 2 targets are met" in capsys.readouterr().out
    assert agree(str(tiny), "--list", "--out", "there") == 0
    out, err = capsys.readouterr()
    assert "cubic alone" in out and "2 cells, ideal hosts; " in out
    assert err == "fullpipe: --out has no effect with --list, which writes nothing\n"
    assert agree(str(tiny), "--list", "--json", "--only", "two", "--hosts", "linux", "--out", "there") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["hosts"] == ["linux"]
    (listed,) = data["cells"]
    assert (listed["cell"], listed["duration_s"], listed["flows"]) == ("two", 2.0, 2)
    assert not Path("there").exists()


def test_worlds_with_real_hosts_skip_modelling(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert agree(str(tiny), "--list", "--worlds", "kernel,qdisc", "--hosts", "linux") == 0
    out, err = capsys.readouterr()
    assert err == "fullpipe: --hosts has no effect with --worlds kernel,qdisc, which have real hosts\n"
    assert "2 cells; " in out


@pytest.mark.usefixtures("no_kernel")
def test_recording_grid_replaces_its_lines(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = Path("results")
    shutil.copytree(Path(__file__).parents[1] / "results", results)
    before = evidence.read(results / "agreement.jsonl")
    for _ in range(2):
        assert agree(str(tiny), *RUNS, "--record") == 0
        assert "make docs" in capsys.readouterr().err
    after = evidence.read(results / "agreement.jsonl")
    assert [line for line in after if line["key"]["grid"] != "tiny"] == before
    (whole,) = lines.wholes([line for line in after if line["key"]["grid"] == "tiny"])
    assert [row.name for row in whole.rows] == ["cubic alone", "two"]
    assert {row.verdict for row in whole.rows} == {"agrees"}
    assert write.markdown(whole) == Path("here/table.md").read_text(encoding="utf-8")
    builds = {world: {registry.named(world).build()} for world in ("sim", "kernel")}
    assert evidence.ages_sentence(whole.cells, "cell", builds) == ""
    assert evidence.ages_sentence(whole.cells, "cell", {}) == (
        "Measured with older code than today's: the whole table."
    )


def test_a_missed_target_ends_with_1(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def halved(run: Run) -> Run:
        for flow in run.summary["flows"]:
            flow["goodput_bps"] /= 2
        run.summary["total_goodput_bps"] /= 2
        return run

    answer_for_the_kernel(monkeypatch, halved)
    assert agree(str(tiny), *RUNS) == options.DISAGREE
    out = capsys.readouterr().out
    assert "MISSED" in out
    assert "+100.0%" in out
    assert "0 of 2 cells agree" in out


def test_untrustworthy_runs_are_excluded_and_reported(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def late(run: Run) -> Run:
        run.summary["provenance"]["untrustworthy"] = ["it was late"]
        return run

    answer_for_the_kernel(monkeypatch, late)
    assert agree(str(tiny), *RUNS, "--attempts", "2") == options.DISAGREE
    out = capsys.readouterr().out
    assert "two: 2 of 2 kernel runs are untrustworthy after 2 attempts and left out; the first: it was" in out
    assert "Left out: 4 kernel runs. Without a kernel run that can be trusted: 2 cells." in out
    verdict = (
        "0 of 0 cells agree; 0 of 7 targets are met; 2 of 2 cells could not be compared, "
        "too many for the grid to pass."
    )
    assert verdict in out
    assert len(re.findall(r"– +no cell", out)) == 8
    table, page = (Path("here", name).read_text(encoding="utf-8") for name in ("table.md", "index.html"))
    assert table.startswith("Made by `fullpipe agree --grid ")
    assert "--seeds 2 --repetitions 2 --attempts 2`: Fullpipe" in table
    assert "0 of 2 cells, 2 seeds, 2 kernel repetitions" in table
    assert (table.count("| no cell |"), page.count("no cell</")) == (8, 8)


def test_failed_run_reports_its_repeat_command(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails_once(run: Run) -> Run:
        if run.seed == 2 and len(run.summary["flows"]) == 2:
            raise _native.WorldError("the machine sneezed")
        return run

    answer_for_the_kernel(monkeypatch, fails_once)
    assert agree(str(tiny), *RUNS) == options.DISAGREE
    out = capsys.readouterr().out
    assert "two, kernel, seed 2 failed: the machine sneezed; repeat it with: " in out
    assert "2 of 2 cells agree; 8 of 8 targets are met; 1 run failed." in out
    found = re.search(r"repeat it with: fullpipe (run .*)", out)
    assert found is not None
    verb, path, _, world, _, seed = shlex.split(found[1])
    assert (verb, world, seed) == ("run", "kernel", "2")
    (repeated,) = fp.run(path, seed=2).runs
    one = json.loads(Path("here/grid.json").read_text(encoding="utf-8"))["cells"][1]
    least, most = one["measures"]["goodput_bps"]["sim"]["range"]
    assert least <= goodput_bps(repeated.summary) <= most


def test_unusable_kernel_fails_before_simulation(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> Run:
        raise _native.WorldError("no right to make namespaces; run as root")

    monkeypatch.setattr(kernel.Kernel, "run", refused)
    assert agree(str(tiny), *RUNS) == options.MISTAKE
    assert "no right to make namespaces; run as root" in capsys.readouterr().err
    assert not Path("here/log.jsonl").exists()


@pytest.mark.usefixtures("no_kernel")
def test_directory_of_another_sweep_is_untouched(tiny: Path) -> None:
    with Store(Path("here")).held():
        assert agree(str(tiny), *RUNS) == options.MISTAKE
        assert [path.name for path in Path("here").iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("arguments", "data"),
    [
        (["agree"], "agree: give a scenario or --grid"),
        (["agree", "s.toml", "--grid", "g"], "agree: give either a scenario or --grid, not both"),
        (["agree", "s.toml", "--quick"], "quick"),
        (["agree", "s.toml", "--only", "x"], "--only needs a grid"),
        (["agree", "s.toml", "--list"], "fullpipe: --list needs a grid; name one with --grid"),
        (["compare", "reno", "--rate", "10mbit", "--rtt", "20ms", "--attempts", "0"], "attempts"),
        (
            ["agree", "--grid", "tiny.toml", "--only", "t*", "--record"],
            "--record cannot be",
        ),
        (
            ["agree", "--grid", "tiny.toml", "--hosts", "solaris"],
            'fullpipe: --hosts "solaris" cannot be used',
        ),
        (["agree", "--grid", "tiny.toml", "--hosts="], "expected one of ideal, linux"),
        (["agree", "--grid", "tiny"], '--grid "tiny" cannot be used; expected '),
        (["agree", "--grid", "tiny.toml", "--only", "x"], "some cell's name matches"),
        (["agree", "--grid", "tiny.toml", "--seeds", "0"], "--seeds 0 "),
        (["agree", "--grid", "tiny.toml", "--seeds", "100000000", "--list"], "--seeds 100000000 "),
        (["agree", "--grid", "tiny.toml", "--attempts", "0"], "attempts"),
        (["agree", "--grid", "tiny.toml", "--record"], "a folder results/schema here or above"),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_mistakes_are_one_sentence(
    arguments: list[str], data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.app(arguments)
    assert left.value.code == options.MISTAKE
    err = capsys.readouterr().err
    assert data in err
    assert len(err.splitlines()) == 1


@pytest.mark.usefixtures("kernel_world")
def test_a_grid_in_both_worlds(tiny: Path) -> None:
    done = command("agree", "--grid", str(tiny), *RUNS)
    assert done.returncode in (0, 1), done.stderr
    assert "targets are met" in done.stdout
    made = json.loads(Path("here/grid.json").read_text(encoding="utf-8"))
    assert not made["failed"]
    assert sum(one["kernel_runs"] + one["untrustworthy_runs"] for one in made["cells"]) == 4
