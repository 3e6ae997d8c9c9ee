"""Grids: how a file becomes cells, how a cell is judged, and what a whole grid is held against."""

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import fullpipe as fp
from conftest import SCENARIOS
from fullpipe.agreement import differences
from fullpipe.agreement.grid import compare, document, run, summary
from fullpipe.agreement.grid.document import Cell, Grid, load
from fullpipe.measures.measures import BY_NAME
from fullpipe.measures.statistics import estimate
from fullpipe.report.grid import tables
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Place, Stored
from fullpipe.runs.worlds.job import Job
from fullpipe.scenario.scenario import Alternative

PATH = 'rate = "10 Mbit/s"\nrtt = "20 ms"\ncontroller = "reno"\n'
CELL = '[[cells]]\nname = "a"\n' + PATH


def grid(folder: Path, text: str, *, quick: bool = False) -> document.Grid:
    path = folder / "g.toml"
    path.write_text(text, encoding="utf-8")
    return load(str(path), quick=quick)


# From a file to cells.


def test_lists_expand_to_all_combinations(tmp_path: Path) -> None:
    found = grid(
        tmp_path,
        '[defaults]\nduration = "2 s"\nbuffer = "1 bdp"\ntcp_memory = "linux"\n'
        '[[cells]]\nname = "{controller} at {rate}"\ncontroller = ["bbr1", "reno"]\n'
        'rate = ["1 Mbit/s", "10 Mbit/s"]\nrtt = "20 ms"\n',
    )
    assert [cell.name for cell in found.cells] == [
        "bbr1 at 1 Mbit/s",
        "reno at 1 Mbit/s",
        "bbr1 at 10 Mbit/s",
        "reno at 10 Mbit/s",
    ]
    assert found.cells[2].slug == "bbr1-at-10-mbit-s"
    assert found.cells[2].document == {
        "name": "bbr1 at 10 Mbit/s",
        "duration": "2 s",
        "path": {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "1 bdp"},
        "hosts": {"tcp_memory": "linux"},
        "flows": [{"controller": "bbr1"}],
    }
    spec = found.cells[2].alternative.spec
    assert (spec["duration_ns"], spec["forward"][0]["queue"]["bytes"]) == (2_000_000_000, 25_000)
    assert spec["hosts"]["tcp_wmem_bytes"][2] == 4 << 20


def test_cell_accepts_scenario_keys(tmp_path: Path) -> None:
    (found,) = grid(
        tmp_path,
        '[defaults]\ncontroller = "reno"\n[[cells]]\nname = "a"\nrate = "10 Mbit/s"\nrtt = "20 ms"\n'
        'flows = [{ controller = "bbr1" }, { controller = "cubic", rtt = "40 ms" }]\n'
        'path.changes = [{ at = "1 s", rate = "5 Mbit/s" }]\nseed = 7\n',
    ).cells
    assert (found.competing, found.seed) == (True, 7)
    assert found.alternative.spec["flows"][1]["extra_forward_ns"] == 10_000_000
    assert found.alternative.spec["forward"][0]["rate_bps"]["changes"] == [[1_000_000_000, 5_000_000]]


def test_deliveries_are_relative_to_grid(tmp_path: Path) -> None:
    (tmp_path / "t.deliveries").write_text("1\n2\n3\n", encoding="utf-8")
    (found,) = grid(
        tmp_path,
        '[[cells]]\nname = "a"\ncontroller = "reno"\nrtt = "20 ms"\npath.deliveries = "t.deliveries"\n',
    ).cells
    assert found.document["path"]["deliveries"] == str(tmp_path / "t.deliveries")


def test_quick_selects_and_shortens_cells(tmp_path: Path) -> None:
    text = f'{CELL}[[cells]]\nname = "b"\n{PATH}[quick]\nduration = "1 s"\ncells = ["b"]\n'
    found = grid(tmp_path, text, quick=True)
    assert [(cell.name, cell.alternative.duration_s) for cell in found.cells] == [("b", 1.0)]
    assert len(grid(tmp_path, text).cells) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ["g.toml: cells", "at least one"]),
        ("cells = 5", ["g.toml:1: cells: ", "at least one"]),
        ("[[cells]\n", ["g.toml:1:9: ", "is not TOML"]),
        ("colour = 1\n" + CELL, ["g.toml:1: colour: ", "defaults, cells, quick"]),
        ("[[cells]]\n" + PATH, ["cells[0].name", "a name"]),
        (CELL + "buffr = 1\n", ["g.toml:6: cells[0].buffr: ", "did you mean 'buffer'?"]),
        ("[defaults]\nratte = 1\n" + CELL, ["g.toml:2: defaults.ratte: ", "did you mean 'rate'?"]),
        (CELL + "loss = []\n", ["cells[0].loss: ", "at least one value"]),
        (CELL + 'buffer = ["1 bdp", "2 bdp"]\n', ["g.toml:2: cells[0].name: ", '"a"', "lists into the name"]),
        (CELL + CELL, ["g.toml:7: cells[1].name: ", '"a"']),
        ('[[cells]]\nname = "{colour}"\n' + PATH, ["cells[0].name: ", "{rate}", "'colour'"]),
        ('[[cells]]\nname = "{rate.real}"\n' + PATH, ["cells[0]", "{rate}"]),
        ('[[cells]]\nname = "{rate"\n' + PATH, ["cells[0].name: "]),
        ('[[cells]]\nname = "{rate:{x}}"\n' + PATH, ["g.toml:2: cells[0].name: ", "{rate}"]),
        ('[[cells]]\nname = "{rate:d}"\n' + PATH, ["g.toml:2: cells[0].name: ", "not 'rate:d'"]),
        ('[[cells]]\nname = "{rate!r}"\n' + PATH, ["g.toml:2: cells[0].name: ", "not 'rate!r'"]),
        ('[[cells]]\nname = "{loss:d}"\nloss = [0.1]\n' + PATH, ["cells[0].name: ", "{loss}"]),
        ('[[cells]]\nname = "!"\n' + PATH, ["letters or digits"]),
        (CELL + 'loss = "5 ms"\n', ["g.toml:6: cells[0].loss: ", '"5 ms"']),
        (CELL + 'duration = "5 parsec"\n', ["g.toml:6: cells[0].duration: ", '"5 parsec"']),
        (CELL + 'tcp_memory = "huge"\n', ["g.toml:6: cells[0].tcp_memory: ", "max, linux"]),
        (CELL + 'path.colour = "red"\n', ["g.toml:6: cells[0].path.colour: "]),
        (CELL + 'path.loss = "1 %"\n', ["cells[0].path.loss: ", "write loss = ..."]),
        (
            "[defaults.hosts]\ntcp_memory = 1\n" + CELL,
            ["g.toml:2: defaults.hosts.tcp_memory: ", "write tcp_memory"],
        ),
        (CELL + "path = 5\n", ["cells[0].path: ", "a table"]),
        (CELL + 'flows = [{ controller = "reno" }]\n', ["cells[0].controller: ", "not both"]),
        (CELL.replace("[[cells]]", '[defaults]\nloss = "5 ms"\n[[cells]]'), ["g.toml:2: defaults.loss: "]),
        (CELL + f"count = {list(range(1, 102))}\nsize = {list(range(1, 101))}\n", ["10100 combinations"]),
        (CELL.replace('"a"', f'"{"a" * 201}"'), ["cells[0].name: ", "at most 200 characters"]),
        (CELL + 'compare = ["reno"]\n', ["cells[0].compare: "]),
        (CELL + "rate = [[1]]\n".replace("rate", "loss"), ["g.toml:6: cells[0].loss: "]),
    ],
)
def test_hostile_files_are_located_and_explained(text: str, message: list[str], tmp_path: Path) -> None:
    with pytest.raises(fp.ScenarioError) as caught:
        grid(tmp_path, text)
    for part in message:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CELL, ["quick", "a table that names"]),
        (CELL + "[quick]\ncells = []\n", ["quick.cells: ", "names of cells"]),
        (CELL + '[quick]\ncells = ["aa"]\n', ["quick.cells: ", "did you mean 'a'?"]),
        (CELL + '[quick]\ncells = [["a"]]\n', ["g.toml:7: quick.cells: ", "the name of a cell"]),
        (CELL + '[quick]\ncells = ["a"]\nduration = "0 s"\n', ["g.toml:8: quick.duration: "]),
    ],
)
def test_hostile_quick_tables(text: str, message: list[str], tmp_path: Path) -> None:
    with pytest.raises(fp.ScenarioError) as caught:
        grid(tmp_path, text, quick=True)
    for part in message:
        assert part in str(caught.value)


def test_missing_grid_error_lists_available_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(SCENARIOS)
    with pytest.raises(fp.ScenarioError, match="one of agreement"):
        load("agremeent")
    with pytest.raises(fp.ScenarioError, match="No such file"):
        load("./nowhere.toml")


def test_only_simulated_worlds_get_modelled_hosts(tmp_path: Path) -> None:
    path = tmp_path / "g.toml"
    path.write_text(CELL + 'tcp_memory = "linux"\n', encoding="utf-8")
    (plain,), (asked,) = load(str(path)).cells, load(str(path), hosts="linux").cells
    plan = run.Plan(Grid("g", path, False, (asked,)), 1, 1, hosts="linux")
    (sim,), (kernel,) = plan.of("sim", asked), plan.of("kernel", asked)
    assert json.loads(sim.job.alternative.spec_json)["hosts"]["model"] == "linux"
    # The kernel's runs are found again, whatever hosts they are compared with.
    assert kernel.job.alternative == plain.alternative
    assert "--grid g --hosts linux" in plan.command
    with pytest.raises(
        fp.ScenarioError, match=r'^hosts: "perfect" cannot be used; expected one of ideal, linux'
    ):
        load(str(path), hosts="perfect")


# What the shipped grid promises.


def test_shipped_grid_covers_required_values() -> None:
    path = str(SCENARIOS / "grids" / "agreement.toml")
    found = load(path)
    assert len(found.cells) >= 120
    documents = [cell.document for cell in found.cells]

    def message(part: str, key: str) -> set[Any]:
        return {one.get(part, {}).get(key) for one in documents}

    assert {"1 Mbit/s", "10 Mbit/s", "100 Mbit/s", "500 Mbit/s", "1 Gbit/s"} <= message("path", "rate")
    assert {"5 ms", "20 ms", "100 ms", "200 ms"} <= message("path", "rtt")
    assert {"0.2 bdp", "1 bdp", "4 bdp", "16 bdp"} <= message("path", "buffer")
    assert {None, "0.01 %", "0.1 %", "1 %", "5 %", "10 %"} <= message("path", "loss")
    assert message("hosts", "tcp_memory") == {"max", "linux"}
    assert message("path", "jitter") == {None, "1 ms", "5 ms", "8 ms"}
    flows = [[flow["controller"] for flow in cell.alternative.spec["flows"]] for cell in found.cells]
    alone = (["bbr1"], ["cubic"], ["reno"])
    for who in (
        *alone,
        ["bbr1", "cubic"],
        ["bbr1"] * 2,
        ["cubic"] * 4,
        ["bbr1", *["cubic"] * 3],
        ["bbr1"] * 5,
    ):
        assert who in flows
    sizes = {flow.get("size") for one in documents for flow in one["flows"]}
    assert {"100 KB", "1 MB", "10 MB"} <= sizes
    assert any("rtt" in flow for one in documents for flow in one["flows"])
    assert any("changes" in one["path"] for one in documents)
    assert any(one["path"].get("jitter_reorders") for one in documents)
    for workload in ("requests", "bursts", "video"):
        assert any(workload in flow for one in documents for flow in one["flows"])
    assert any(one["path"].get("before") for one in documents)
    assert len(load(path, quick=True).cells) == 8


# How a cell is judged.


def stored(
    cell: Cell,
    world: str,
    seed: int,
    goodputs: list[float],
    *,
    rtt_ms: float = 40.0,
    retransmits: int = 0,
    doubt: str = "",
) -> Stored:
    labels = [flow["label"] for flow in cell.alternative.spec["flows"]]
    rtt = {"mean": rtt_ms, "p50": rtt_ms, "p95": rtt_ms}
    flows = [
        {"label": label, "goodput_bps": goodput, "retransmits": retransmits, "rtt_ms": rtt}
        for label, goodput in zip(labels, goodputs, strict=True)
    ]
    shares = [
        {"label": label, "share": goodput / sum(goodputs)}
        for label, goodput in zip(labels, goodputs, strict=True)
    ]
    made = {
        "provenance": {"untrustworthy": [doubt] if doubt else [], "kernel": "6.18"},
        "flows": flows,
        "links": [],
        "total_goodput_bps": sum(flow["goodput_bps"] for flow in flows),
        "fct_ms": None,
        "fairness": {"shares": shares},
    }
    return Stored(Task(world, Job(cell.alternative, seed)), Place(Path("/nowhere")), 1, 1.0, made)


def cell(*labels: str, controllers: tuple[str, ...] = ()) -> Cell:
    names = controllers or ("bbr1",) * len(labels)
    flows = [{"label": label, "controller": name} for label, name in zip(labels, names, strict=True)]
    return Cell("a", {}, Alternative("a", json.dumps({"flows": flows})), 1)


def test_differences_by_hand() -> None:
    one = cell("f")
    sim = [
        stored(one, "sim", seed, [rate], rtt_ms=41, retransmits=75) for seed, rate in ((1, 9.6e6), (2, 10e6))
    ]
    kernel = [stored(one, "kernel", seed, [rate], retransmits=60) for seed, rate in ((1, 10e6), (2, 10e6))]
    found = compare.compare(one, sim, kernel)
    goodput, rtt, again = (found.measured[name] for name in ("goodput_bps", "rtt_mean_ms", "retransmits"))
    assert goodput.apart == pytest.approx(-0.02)
    assert (goodput.message, goodput.of_tolerance) == ("-2.0%", pytest.approx(-2 / 3))
    assert goodput.overlaps  # 9.6 to 10 meets 10.
    assert (rtt.apart, rtt.tolerable, rtt.overlaps) == (pytest.approx(0.025), True, False)
    assert (again.message, again.of_tolerance) == ("x 1.25", pytest.approx(1.0))
    assert "share" not in found.measured
    assert (found.agrees, found.verdict) == (False, "close")


@pytest.mark.parametrize(
    ("ours", "theirs", "message", "counts"),
    [(50, 0, "few", False), (51, 0, "x inf", True), (0, 51, "x inf", True), (30, 60, "x 0.50", True)],
)
def test_few_retransmissions_do_not_count(ours: int, theirs: int, message: str, counts: bool) -> None:
    one = cell("f")
    worlds = (("sim", ours), ("kernel", theirs))
    sim, kernel = ([stored(one, world, 1, [1e6], retransmits=number)] for world, number in worlds)
    found = compare.compare(one, sim, kernel).measured["retransmits"]
    assert (found.message, found.apart is not None) == (message, counts)
    assert found.tolerable is not counts


def test_untrustworthy_runs_are_excluded_and_counted() -> None:
    one = cell("f")
    sim = [stored(one, "sim", 1, [1e6])]
    good, bad = stored(one, "kernel", 1, [1e6]), stored(one, "kernel", 2, [5e6], doubt="late")
    found = compare.compare(one, sim, [good, bad])
    assert found.agrees
    assert found.doubted == [bad]
    alone = compare.compare(one, sim, [bad])
    assert (alone.judged, alone.agrees, alone.verdict, alone.measured) == (False, False, "untrusted", {})


@pytest.mark.parametrize("mute", ["sim", "kernel"])
def test_one_sided_measure_is_disagreement(mute: str) -> None:
    one = cell("f", "g")
    runs = {world: stored(one, world, 1, [1e6, 1e6]) for world in ("sim", "kernel")}
    assert compare.compare(one, [runs["sim"]], [runs["kernel"]]).agrees
    for flow in runs[mute].summary["flows"]:
        flow["rtt_ms"] = None
    found = compare.compare(one, [runs["sim"]], [runs["kernel"]])
    assert found.one_sided == ("rtt_mean_ms", "rtt_p95_ms")
    assert (found.agrees, found.verdict) == (False, "differs")
    for flow in runs[mute].summary["flows"]:
        flow["rtt_ms"] = {"mean": 40.0, "p50": 40.0, "p95": 40.0}
    for share in runs[mute].summary["fairness"]["shares"]:
        share["share"] = None
    found = compare.compare(one, [runs["sim"]], [runs["kernel"]])
    assert (found.one_sided, found.verdict) == (("share",), "differs")


def test_cell_without_goodput_does_not_agree() -> None:
    one = cell("f")
    runs = [stored(one, "sim", 1, [1e6])], [stored(one, "kernel", 1, [1e6])]
    found = replace(compare.compare(one, *runs), measured={})
    assert (found.agrees, found.verdict) == (False, "differs")


@pytest.mark.parametrize(("quick", "of"), [(False, "nine tenths of the cells"), (True, "the median cell")])
def test_passing_grid_explains_differing_cells(quick: bool, of: str) -> None:
    one = cell("f")
    kernel = [stored(one, "kernel", 1, [10e6])]
    fine, far = (compare.compare(one, [stored(one, "sim", 1, [rate])], kernel) for rate in (10e6, 8e6))
    assert (fine.verdict, far.verdict) == ("agrees", "differs")
    plan = run.Plan(Grid("g", Path("g.toml"), quick, (one,)), 1, 1)
    found = run.Found(plan, [fine, fine, far], [], [], [])
    assert found.met
    assert found.verdict.endswith(f" Targets are about {of}, not about each: 1 cell may differ.")
    assert "Targets are about" not in replace(found, cells=[fine]).verdict


def test_equal_flows_may_swap_shares() -> None:
    one = cell("f", "g")
    sim = [stored(one, "sim", 1, [7e6, 3e6])]
    found = compare.compare(one, sim, [stored(one, "kernel", 1, [3e6, 7e6])])
    assert found.measured["share"].apart == pytest.approx(0.0)
    mixed = cell("f", "g", controllers=("bbr1", "cubic"))
    found = compare.compare(mixed, sim, [stored(mixed, "kernel", 1, [3e6, 7e6])])
    assert found.measured["share"].message == "+40.0 points"
    assert found.verdict == "differs"


# What a whole grid is held against.


def compared(name: str, *apart: float | None) -> list[compare.Compared]:
    cells = []
    for number, value in enumerate(apart):
        some = estimate([1.0])
        tolerance = {"share": 0.05, "retransmits": math.log(1.5)}.get(name, 0.1)
        tolerable = value is None or abs(value) <= tolerance
        found = differences.Difference(value, tolerance, tolerable, "", "")
        one = compare.Measured(name, BY_NAME["goodput_bps"], some, some, found, True)
        place = Cell(f"c{number}", {}, Alternative("a", '{"flows": []}'), 1)
        cells.append(compare.Compared(place, [], [], [], {name: one}))
    return cells


def measured(cells: list[compare.Compared], title: str) -> summary.Target:
    return next(one for one in summary.targets(cells) if one.title.startswith(title))


def test_median_and_ninetieth_percentile_by_hand() -> None:
    # Sorted by size: 0.01 0.02 0.03 0.04 0.20. The 90th percentile lies 0.6 of the way from 0.04 to 0.20.
    cells = compared("goodput_bps", 0.03, -0.01, 0.02, -0.2, 0.04)
    median, ninetieth = measured(cells, "Goodput: median"), measured(cells, "Goodput: 90th")
    assert (median.measured, median.met) == (pytest.approx(0.03), False)
    assert (ninetieth.measured, ninetieth.met) == (pytest.approx(0.136), False)
    assert measured(compared("goodput_bps", 0.005), "Goodput: median").met
    assert not measured(compared("goodput_bps", 0.0051), "Goodput: median").met
    assert measured(cells, "Goodput: median").message == "at most 0.5%"


def test_p95_rtt_difference_is_limited() -> None:
    assert measured(compared("rtt_p95_ms", 0.0, -0.1), "p95 RTT").met
    assert not measured(compared("rtt_p95_ms", -0.12, -0.1), "p95 RTT").met


def test_two_thirds_of_cells_must_agree() -> None:
    one = cell("f")
    sim, apart = ([stored(one, world, 1, [rate])] for world, rate in (("sim", 10e6), ("kernel", 9.9e6)))
    equal = [stored(one, "kernel", 1, [10e6])]
    # The one that nobody could judge does not count.
    for same, other, met in ((2, 1, True), (1, 1, False)):
        cells = [compare.compare(one, sim, run) for run in [equal] * same + [apart] * other + [[]]]
        found = measured(cells, "Cells that agree")
        assert (found.cells, found.met, found.message) == (same + other, met, "at least 67%")


def test_parts_by_hand() -> None:
    # Within a factor of 1.5 either way: 1.4, 1/1.4 and 1.5; not 1.6. The None had too few.
    factors = [math.log(one) for one in (1.4, 1 / 1.4, 1.5 - 1e-9, 1.6)]
    found = measured(compared("retransmits", *factors, None), "Retransmissions")
    assert (found.measured, found.cells, found.met) == (0.75, 4, False)
    assert measured(compared("retransmits", *[0.0] * 9, 1.0), "Retransmissions").met
    found = measured(compared("share", 0.05, -0.05, 0.04, 0.0, 0.06), "Shares")
    assert (found.measured, found.met) == (0.8, True)


def test_measurable_but_unmeasured_target_is_missed() -> None:
    two = cell("f", "g")
    untold = summary.targets([compare.compare(two, [stored(two, "sim", 1, [1e6, 1e6])], [])])
    assert {one.word for one in untold} == {"no cell"}
    # How much is sent again is not known before a run.
    assert [one.title.split()[0] for one in untold if one.met] == ["Retransmissions"]
    alone = summary.targets([compare.compare(cell("f"), [], [])])
    assert [one.title.split()[0] for one in alone if not one.counts] == ["Retransmissions", "Shares"]


@pytest.mark.parametrize(
    ("quick", "judged", "enough"), [(False, 9, True), (False, 8, False), (True, 5, True), (True, 4, False)]
)
def test_grid_passes_only_with_enough_cells(quick: bool, judged: int, enough: bool) -> None:
    one = cell("f")
    sim, kernel = [stored(one, "sim", 1, [1e6])], [stored(one, "kernel", 1, [1e6])]
    cells = [compare.compare(one, sim, kernel if number < judged else []) for number in range(10)]
    plan = run.Plan(document.Grid("g", Path("g.toml"), quick, (one,) * 10), 1, 1)
    found = run.Found(plan, cells, summary.targets(cells), [], [])
    assert found.met == enough
    assert f"{10 - judged} of 10 cells could not be compared" in found.verdict
    assert ("too many" in found.verdict) is not enough


def test_grid_command_is_complete() -> None:
    some = document.Grid("g", Path("my g.toml"), True, ())
    plan = run.Plan(some, run.SEEDS, run.REPETITIONS, named="my g.toml")
    assert plan.command == "fullpipe agree --grid 'my g.toml' --quick"
    plan = run.Plan(replace(some, quick=False), 2, 1, 1, named="g", only="b*")
    assert plan.command == "fullpipe agree --grid g --only 'b*' --seeds 2 --repetitions 1 --attempts 1"


@pytest.mark.parametrize(
    ("values", "part", "expected"),
    [([], 0.5, None), ([3.0], 0.9, 3.0), ([1.0, 2.0], 0.5, 1.5), ([1.0, math.inf], 0.0, 1.0)],
)
def test_percentiles(values: list[float], part: float, expected: float | None) -> None:
    assert summary.percentile(values, part) == expected


@pytest.mark.parametrize("width", [60, 80, 100, 250])
def test_grid_table_fits_every_terminal(width: int) -> None:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    for found in compared("goodput_bps", 0.01, -0.2):
        difference = found.measured["goodput_bps"]
        console.print(tables.cells([found], ("sim", "kernel")))
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
        for value in (found.cell.name, tables.mean(difference), tables.ranged(difference)):
            assert value in text
