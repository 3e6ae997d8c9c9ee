"""The claims of imc19 and rebbr: judges against data that must fail, the tree, and what claims share."""

import dataclasses
import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import judging
from conftest import SCENARIOS
from fullpipe import api
from fullpipe._native import ScenarioError
from fullpipe.report.figures import theme
from fullpipe.report.figures import tree as tree_figure
from fullpipe.runs.store import Store
from fullpipe.scenario.scenario import from_document
from fullpipe_studies import catalogue, deliveries
from fullpipe_studies import run as running
from fullpipe_studies.catalogue import Built
from fullpipe_studies.checks import Outcome
from fullpipe_studies.claim import Check, Data, Finding, Over, Size, Trial, Verdict, more
from fullpipe_studies.papers.imc19 import (
    _draw,
    _grid,
    _heat,
    _loss,
    _metrics,
    _orders,
    _subset,
    _testbed,
    _tree,
    fig4,
)
from fullpipe_studies.run import Plan, Result

CLAIMS = [claim for name in ("imc19", "rebbr") for claim in catalogue.study(name).claims]
every_claim = pytest.mark.parametrize("built", CLAIMS, ids=lambda built: built.id)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """One for all, so that claims share their runs as a study does."""
    return Store(tmp_path_factory.mktemp("study"))


def tiny(built: Built, store: Store) -> Result:
    plan = Plan(built, Size.TINY, ("sim",), seeds=1, repetitions=1)
    return running.examine(plan, store, running.carry_out(plan.tasks, store))


def checks(built: Built, runs: pl.DataFrame) -> list[Check]:
    return list(built.claim.judge(running.by_setup(built.claim, Data(runs, pl.DataFrame()))))


def made(built: Built, columns: list[str], value: float) -> pl.DataFrame:
    """Runs of the whole grid in the judged set-up, three seeds, in which nothing makes a difference."""
    return pl.DataFrame(
        [
            {"world": "sim", "seed": seed, **cell.factors, **dict.fromkeys(columns, value)}
            for cell in built.claim.grid.cells(Size.FULL)
            if built.claim.setups is None or cell.factors["setup"] == built.claim.setups.judged
            for seed in (1, 2, 3)
        ],
        infer_schema_length=None,
    )


@every_claim
def test_miss_explanations_have_no_nan(built: Built, store: Store) -> None:
    result = tiny(built, store)
    assert not [line for line in result.because if "nan" in line]


@every_claim
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_uniform_data_reproduce_no_claim(built: Built, store: Store, value: float) -> None:
    result = tiny(built, store)
    if result.plan.waiting is not None:
        pytest.skip(result.plan.waiting)
    known = {"world", "seed", *built.claim.grid.factors}
    columns = [name for name in result.data.runs.columns if name not in known]
    runs = made(built, columns, value)
    if "scaled_bytes" in columns:  # The buffer by another name.
        runs = runs.with_columns(pl.col("buffer_bytes").alias("scaled_bytes"))
    found = Finding("sim", checks(built, runs))
    assert judging.mixed(found, 3) == []
    worst = Verdict.OWN_NOT if found.own else Verdict.NOT
    # Where nothing is delivered, there may be no ratio.
    assert found.verdict in (worst, Verdict.INCONCLUSIVE if value == 0 else worst), found.reason


PAPERS_RETX = {("bbr1", 100): 235_798, ("bbr1", 10_000): 0, ("cubic", 100): 1649, ("cubic", 10_000): 471}


@pytest.mark.parametrize(("exchanged", "verdict"), [(False, Verdict.REPRODUCED), (True, Verdict.NOT)])
def test_paper_counts_reproduce_exchanged_ones_fail(exchanged: bool, verdict: Verdict) -> None:
    built = catalogue.built("imc19.retx")
    assert built is not None
    other = {"bbr1": "cubic", "cubic": "bbr1"}
    rows = []
    for cell in built.claim.grid.cells(Size.FULL):
        name = cell.factors["controller"]
        counted = PAPERS_RETX[other[name] if exchanged else name, cell.factors["buffer_kb"]]
        rows += [{"world": "sim", "seed": seed, **cell.factors, "retransmits": counted} for seed in (1, 2, 3)]
    assert Finding("sim", checks(built, pl.DataFrame(rows))).verdict is verdict


def test_scaled_counts_are_reproduced_in_shape() -> None:
    built = catalogue.built("imc19.retx")
    assert built is not None
    rows = [
        {"world": "sim", "seed": seed, **cell.factors, "retransmits": 100 * PAPERS_RETX[key]}
        for cell in built.claim.grid.cells(Size.FULL)
        for seed in (1, 2, 3)
        if (key := (cell.factors["controller"], cell.factors["buffer_kb"]))
    ]
    assert Finding("sim", checks(built, pl.DataFrame(rows))).verdict is Verdict.IN_SHAPE


def test_zero_and_missing_are_never_more() -> None:
    assert more("equal", [0.0], [0.0], paper="").outcome is Outcome.MISSED
    assert not more("equal", [2.0] * 3, [2.0] * 3, paper="").met
    for sides in (([], [1.0]), ([1.0], []), ([1.0], [math.nan]), ([0.0, 1.0], [0.0, 1.0])):
        assert more("missing", *sides, paper="").outcome is Outcome.UNDECIDED
    assert more("something over nothing", [1.0, 2.0, 3.0], [0.0] * 3, paper="", least=1000).met
    assert more("more", [2.1, 4.2, 6.3], [2.0, 4.0, 6.0], paper="").met


def test_every_listed_claim_is_built() -> None:
    for paper in ("imc19", "rebbr"):
        assert [
            one.id for one in catalogue.listed() if one.paper == paper and not catalogue.built(one.id)
        ] == []


def test_claims_on_same_path_share_runs() -> None:
    def keys(name: str) -> set[str]:
        built = catalogue.built(name)
        assert built is not None
        return {task.key for task in Plan(built, Size.QUICK, ("sim",), 1, 1).tasks}

    assert keys("imc19.fig5a") < keys("imc19.fig4")
    assert keys("imc19.fig5b") < keys("imc19.fig4")
    assert keys("imc19.fig5cd") - keys("imc19.fig5a") == keys("imc19.fig5b") & keys("imc19.fig5cd")
    assert keys("imc19.fig7a") == keys("imc19.fig7b")
    assert keys("imc19.table1") == keys("imc19.fig8a")


def test_full_grid_matches_paper() -> None:
    built = catalogue.built("imc19.headline")
    assert built is not None
    judged = [one for one in built.claim.grid.cells(Size.FULL) if one.factors["setup"] == _testbed.TESTBED]
    assert len(judged) == 640
    assert built.claim.seeds_of(Size.FULL) == 5
    assert built.claim.seeds_of(Size.QUICK) == 3


def test_each_setup_adds_testbed_details() -> None:
    def path(setup: str) -> dict[str, Any]:
        found: dict[str, Any] = _grid.document("bbr1", 500, 25, 100, _grid.MAX, 60, setup)["path"]
        return found

    link, virtual, interfaces, merged, *hosts = (path(setup) for setup in _testbed.STEPS)
    # tc-tbf(8): at least the rate by the timer's frequency, 100 Hz.
    assert virtual == {**link, "router": "tbf", "burst": "625000 B"}
    assert interfaces["before"][0]["rate"] == "975.3 Mbit/s" and len(interfaces["before"]) == 1
    assert merged["before"] == [
        *interfaces["before"],
        {"kind": "aggregate", "every": "100 us", "merge": True},
    ]
    assert hosts == [merged, merged]
    # The kernel world's hosts are the router's neighbours.
    built = catalogue.built("imc19.retx")
    assert built is not None
    scaled = [cell.document["path"] for cell in built.claim.grid.cells(Size.FULL, "kernel")]
    assert all("before" not in one and one["burst"] == "125000 B" for one in scaled)


def test_sender_setup_measures_last_write() -> None:
    built = catalogue.built("imc19.fig6")
    assert built is not None
    cells = [
        cell
        for cell in built.claim.grid.cells(Size.FULL)
        if (cell.factors["rate_mbps"], cell.factors["rtt_ms"]) == (100, 50)
        and cell.factors["size_mb"] == 10
        and cell.factors["setup"] in (_testbed.TESTBED, _testbed.SENDER)
    ]
    assert {cell.document["hosts"].get("model") for cell in cells} == {None, "linux"}
    for cell in cells:
        run = api.run(cell.document).runs[0]
        sender = cell.factors["setup"] == _testbed.SENDER
        read = built.claim.measure(Trial(cell.factors, run))
        assert isinstance(read, dict)
        assert read["completion_ms"] == run.summary["flows"][0]["write_ms" if sender else "completion_ms"]


def test_a_bucket_holds_a_packet() -> None:
    assert _testbed.mininet(_testbed.MININET, 1)["burst"] == "1540 B"
    assert _testbed.mininet(_testbed.MININET, 100)["burst"] == "50000 B"  # 250 Hz.
    assert _testbed.mininet("bucket of 1 ms", 100)["burst"] == "12500 B"


def test_another_setup_changes_one_thing() -> None:
    judged = _testbed.SETUPS[_testbed.TESTBED]
    for name in _testbed.LAN[1:]:
        other = _testbed.SETUPS[name]
        changed = [
            field.name
            for field in dataclasses.fields(judged)
            if getattr(judged, field.name) != getattr(other, field.name)
        ]
        together = name == _testbed.DEEP_AND_WHOLE
        assert len(changed) == (2 if together else 1), (name, changed)
    paths = {json.dumps(_testbed.mininet(name, 100)) for name in _testbed.MININETS[:-2]}
    assert len(paths) == len(_testbed.MININETS) - 2
    assert _testbed.memory(_testbed.MININETS[-1]) != _testbed.memory(_testbed.MININET)


def test_bursts_are_merged_behind_interface() -> None:
    def lost(setup: str, gro_us: float) -> int:
        path = {**_testbed.path(setup, 100), "before": _testbed.before(gro_us)}
        document = _grid.document("cubic", 100, 50, 100, _grid.MAX, 10, setup)
        document["path"] = {**document["path"], **path}
        return int(api.run(document).runs[0].summary["flows"][0]["retransmits"])

    assert len({lost(_testbed.GRO, every) for every in (0, 100, 400)}) == 3


def test_host_interface_is_present_and_lossless() -> None:
    for rate in _grid.RATES_MBPS:
        path = _grid.document("bbr1", rate, 25, 100, _grid.MAX, 60, _testbed.TESTBED)["path"]
        assert path["before"] == _testbed.before() and path["router"] == "tbf"
    # At 1 Gbit/s the host waits for it, and the router of 100 KB drops nothing.
    document = _grid.document("cubic", 1000, 50, 100, _grid.MAX, 5, _testbed.TESTBED)
    flow = api.run(document).runs[0].summary["flows"][0]
    assert flow["retransmits"] == 0 and flow["goodput_bps"] > 800e6


def test_only_bbr_differs_only_cubic_inherits() -> None:
    assert _testbed.controller(_testbed.TESTBED, "cubic") == "cubic"
    assert _testbed.controller(_testbed.GRO, "bbr1") == "bbr1"
    for name in ("bbr1", "bbr1:probe_gain=1.1"):
        older = _testbed.controller(_testbed.TESTBED, name)
        assert older.startswith(name) and "extra_acked_gain=0" in older
        assert _testbed.controller(_testbed.PUNCTUAL, name) == f"{older},unpaced_header_bytes=52"
        document = {"path": {"rate": "10 Mbit/s", "rtt": "10 ms"}, "flows": [{"controller": older}]}
        assert from_document(document).alternatives
    for order in (_metrics.NONE, *_metrics.ORDERS):
        setup = _testbed.TESTBED if order == _metrics.NONE else order
        left = _metrics.threshold(order, "10 25 100")
        begun = {
            name: _grid.document(name, 10, 25, 100, _grid.MAX, 60, setup)["hosts"].get("metrics")
            for name in _grid.CONTROLLERS
        }
        assert begun["bbr1"] is None
        assert begun["cubic"] == ({"save_ssthresh": True, "ssthresh": left} if left else None)
        assert from_document(_grid.document("cubic", 10, 25, 100, _grid.MAX, 60, setup)).alternatives


def test_missing_replayed_thresholds_are_an_error() -> None:
    for name in ("reno", "cubic:hystart=0", "cubicle"):
        assert _metrics.begun(_metrics.NONE, name, "10 25 100") == 0
        with pytest.raises(ValueError, match=f"no thresholds were replayed for {name}"):
            _grid.document(name, 10, 25, 100, _grid.MAX, 60, _metrics.GRID)
    assert _metrics.begun(_metrics.GRID, "bbr1:probe_gain=1.1", "10 25 100") == 0


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "Expecting"),
        ("[]", "no paths of 'repetitions innermost'"),
        ("{}", "no paths of 'repetitions innermost'"),
        (json.dumps({order: {"10 25 100": -5} for order in _metrics.ORDERS}), "is -5"),
        (json.dumps({order: {"10 25 100": True} for order in _metrics.ORDERS}), "is True"),
        (json.dumps({order: {} for order in _metrics.ORDERS}), "no path '10 25 100'"),
    ],
)
def test_damaged_threshold_file_is_named(
    text: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "thresholds.json"
    file.write_text(text)
    monkeypatch.setattr(_metrics, "_file", lambda: file)
    _metrics._thresholds.cache_clear()
    try:
        with pytest.raises(ScenarioError) as caught:
            _metrics.threshold(_metrics.GRID, "10 25 100")
    finally:
        _metrics._thresholds.cache_clear()
    assert str(file) in str(caught.value) and wrong in str(caught.value)


def test_setups_are_compared_by_equal_seeds() -> None:
    def runs(setup: str, seeds: Sequence[int], world: str = "sim") -> pl.DataFrame:
        cells = itertools.product(_grid.CONTROLLERS, (100, 10_000), seeds)
        return pl.DataFrame(
            [
                {
                    **{"world": world, "seed": seed, "controller": name, "buffer_kb": buffer, "setup": setup},
                    **{"retransmits": 1000 * seed, "rate_mbps": 500, "seconds": 60},
                }
                for name, buffer, seed in cells
            ]
        )

    built = catalogue.built("imc19.retx")
    assert built is not None and built.claim.explain is not None
    judged = pl.concat([runs(_testbed.TESTBED, (1, 2, 3)), runs(_testbed.TESTBED, (1, 2, 3), "kernel")])
    parts = {
        _testbed.GRO: runs(_testbed.GRO, (1,)),
        _testbed.TESTBED: judged,
        _metrics.GRID: runs(_metrics.GRID, (1, 4)),
    }
    none = pl.DataFrame()
    data = Data(judged, none, {name: Data(frame, none) for name, frame in parts.items()})
    steps, _, orders = built.claim.explain(data)
    # No set-up does anything here, and seeds do.
    assert steps.startswith("With 100 KB, 1 seed of each set-up, ") and steps.count("1,000") == 4
    assert orders.count("BBR 1,000, CUBIC 1,000") == 2 and "2,000" not in steps + orders
    equal = _grid.of_same_seeds(data)
    assert equal[_testbed.TESTBED].of("kernel").runs["seed"].n_unique() == 3
    parts[_testbed.GRO] = runs(_testbed.GRO, (7,))
    other = Data(
        judged.filter(pl.col("world") == "sim"),
        none,
        {name: Data(frame, none) for name, frame in parts.items()},
    )
    assert built.claim.explain(other) == []


def test_method_states_seed_counts() -> None:
    message = catalogue.study("imc19").about.method
    words = {1: "one seed", 3: "three seeds", 5: "five"}
    built = catalogue.study("imc19").claims
    assert {one.claim.seeds_of(Size.QUICK) for one in built} == {3} and words[3] in message
    assert {one.claim.seeds_of(Size.FULL) for one in built} == {5} and words[5] in message
    assert {one.claim.setups.seeds for one in built if one.claim.setups is not None} == {1, 3, 5}
    assert words[1] in message


def test_orders_share_runs_and_have_thresholds() -> None:
    places = {_metrics.place(*path) for path in _orders.paths()}
    runs = {order: _orders.sequence(order) for order in _metrics.ORDERS}
    assert len(places) == 320
    for order, sequence in runs.items():
        assert Counter(sequence) == Counter(runs[_metrics.GRID])
        assert all(_metrics.threshold(order, place) > 0 for place in places)
    # Repetitions follow each other, or a whole grid lies between them.
    first, second = runs[_metrics.REPETITIONS][:2]
    assert first == second
    assert runs[_metrics.GRID].index(first) == runs[_metrics.GRID].index(first, 1) - 640


def test_replayed_run_starts_from_predecessor(monkeypatch: pytest.MonkeyPatch) -> None:
    path = _orders.Place(100, 25, 1000)
    monkeypatch.setattr(_orders, "paths", lambda: [path])
    monkeypatch.setattr(_orders, "_SECONDS", 5)
    began = _orders.replay(_metrics.REPETITIONS)[_metrics.place(*path)]
    document = _grid.document("cubic", *path, _grid.MAX, 5, _testbed.TESTBED)
    document["hosts"]["metrics"] = {"save_ssthresh": True}
    bbr = {**document, "flows": _grid.document("bbr1", *path, _grid.MAX, 5, _testbed.TESTBED)["flows"]}
    *_, last = api.run_in_order([bbr, bbr, document, document])
    assert last.scenario.document["hosts"]["metrics"]["ssthresh"] == began
    # CUBIC continued with 0.7 of what path, bucket and buffer hold.
    held = (100 * 25 / 8 + 1000 + 125) / 1.5
    assert 0.4 * held < began < held


def test_zero_is_not_ten_times_zero() -> None:
    built = catalogue.built("imc19.fig5cd")
    assert built is not None
    runs = made(built, ["retransmits", "loss_pct"], 0.0)
    often = [check for check in checks(built, runs) if "ten times" in check.what]
    assert len(often) == 1 and not often[0].met


def test_full_link_misses_low_utilisation_result() -> None:
    built = catalogue.built("imc19.fig8a")
    assert built is not None

    def used(percent: float) -> Check:
        runs = made(built, ["bbr_share", "bbr_mbps", "cubic_mbps", "share_low"], 1.0).with_columns(
            pl.lit(percent).alias("used_pct"), pl.col("buffer_bytes").alias("scaled_bytes")
        )
        return next(one for one in checks(built, runs) if one.what == "Goodput of both at 10 KB")

    assert used(8.0).met and not used(92.0).met


def behind_hidden(**wrong: dict[int, float]) -> Finding:
    """What figure 8(b) says to the letter, with other values at some of the router's buffers."""
    built = catalogue.built("imc19.fig8b")
    assert built is not None
    rows = []
    for cell in built.claim.grid.cells(Size.FULL):
        buffer = cell.factors["buffer_bytes"]
        row = {"bbr_mbps": 800.0 * min(1.0, buffer / 20e3), "cubic_mbps": 40.0, "bbr_share": 0.95}
        row |= {"bbr_retransmits": 500.0, "bbr_a_minute": 500.0}
        row |= {column: values[buffer] for column, values in wrong.items() if buffer in values}
        rows += [{"world": "sim", "seed": seed, **cell.factors, **row} for seed in (1, 2, 3)]
    return Finding("sim", checks(built, pl.DataFrame(rows, infer_schema_length=None)))


def test_goodput_plateaus_behind_hidden_bottleneck() -> None:
    assert behind_hidden().verdict is Verdict.REPRODUCED
    grows = {20_000: 155.0, 50_000: 386.0, 100_000: 878.0}
    assert behind_hidden(bbr_mbps=grows).verdict is Verdict.NOT
    assert behind_hidden(cubic_mbps={20_000: 5.0}).verdict is Verdict.NOT


def test_retransmissions_that_cease_have_not_settled() -> None:
    ceased = dict.fromkeys((100_000, 1_000_000, 10_000_000), 0.0)
    found = behind_hidden(bbr_retransmits=ceased)
    assert found.verdict is Verdict.NOT and "retransmissions" in found.reason


def paths(wins: pl.Expr) -> pl.DataFrame:
    """All 320 paths, with a rule for who wins."""
    rows = [
        {"rate_mbps": rate, "rtt_ms": rtt, "buffer_kb": buffer, "bdp_kb": rate * rtt / 8}
        for rate in _grid.RATES_MBPS
        for rtt in _grid.RTTS_MS
        for buffer in _grid.BUFFERS_KB
    ]
    return pl.DataFrame(rows).with_columns(wins.alias("bbr_wins"))


def test_tree_finds_existing_rule() -> None:
    tree = _tree.fit(paths(pl.col("bdp_kb") > 700))
    assert tree is not None
    assert tree.mean == tree.held_out == 1.0
    assert len(tree.nodes) == 3
    top = tree.nodes[0]
    assert top.condition is not None and top.condition.startswith("BDP ≤")
    assert (top.paths, top.gini > 0) == (240, True)  # Three quarters of the paths.
    low = tree.nodes[top.left or 0]
    assert (low.decision, low.counts["BBR"], low.gini) == ("CUBIC", 0, 0.0)
    assert tree.rules().splitlines()[0] == f"if {top.condition}:"
    assert tree.rules().splitlines()[1] == f"    use CUBIC ({low.paths} of {low.paths} paths)"
    assert json.loads(json.dumps(tree.about()))["nodes"][0]["condition"] == top.condition


def test_tree_finds_no_rule_in_chance() -> None:
    # As good as drawn by lot: the parity of a product that no condition can follow.
    chance = (pl.int_range(pl.len()) * 7919 % 101 % 2) == 0
    tree = _tree.fit(paths(chance))
    assert tree is not None
    assert tree.mean < 0.65
    assert tree.mean - tree.majority < 0.05


def test_accuracy_varies_most_with_ordered_rows() -> None:
    tree = _tree.fit(paths((pl.col("bdp_kb") > 2 * pl.col("buffer_kb")) & (pl.col("rate_mbps") < 1000)))
    assert tree is not None
    shuffled = [one.mean for one in tree.protocols if one.order == _tree.SHUFFLED and one.depth == 4]
    ordered = [one.mean for one in tree.protocols if one.order != _tree.SHUFFLED and one.depth == 4]
    assert len(tree.protocols) == 3 * 5 * 7
    assert max(ordered) - min(ordered) > 0.1 > max(shuffled) - min(shuffled)
    assert min(ordered) < min(shuffled)


def test_crossover_lies_between_opposite_winners() -> None:
    def at(ratios: dict[float, bool]) -> float:
        return fig4._crossover_bdp(
            pl.DataFrame({"buffer_bdp": list(ratios), "bbr_wins": list(ratios.values())})
        )

    assert at({0.1: True, 0.4: True, 1.6: False, 9.0: False}) == pytest.approx(0.8)
    assert at({0.1: True, 0.4: False, 0.8: True, 1.6: True, 6.4: False, 9.0: False}) == pytest.approx(3.2)
    for wins in (True, False):
        assert math.isnan(at({0.1: wins, 1.0: wins}))
    assert math.isnan(at({0.1: False, 1.0: True}))  # CUBIC below and BBR above.


def test_subset_keeps_grid_proportions() -> None:
    chosen = _subset.paths()
    assert len(set(chosen)) == _subset.PATHS and max(path.rate_mbps for path in chosen) <= 100
    grid = [
        _subset.Path(rate, rtt, buffer)
        for rate in _grid.RATES_MBPS
        for rtt in _grid.RTTS_MS
        for buffer in _grid.BUFFERS_KB
    ]
    assert set(chosen) < set(grid)
    whole, part = (Counter(map(_subset.of_class, some)) for some in (grid, chosen))
    for kind, count in whole.items():
        assert abs(part[kind] - count * len(chosen) / len(grid)) < 1


def test_sim_and_kernel_share_subset_scenarios() -> None:
    built = catalogue.built("imc19.fig4")
    assert built is not None
    cells = {world: built.claim.grid.cells(Size.FULL, world) for world in ("sim", "kernel")}
    assert len(cells["kernel"]) == 2 * _subset.PATHS
    # Both memories, and other set-ups with one of them.
    assert len(cells["sim"]) == 4 * 320 + 2 * 320 * (len(_testbed.LAN) - 1) + 2 * _subset.PATHS
    documents = [cell.document for cell in cells["sim"]]
    assert all(cell.document in documents for cell in cells["kernel"])
    assert len(built.claim.grid.cells(Size.QUICK, "kernel")) == 2 * _subset.PATHS


def test_small_class_makes_no_tree() -> None:
    assert _tree.fit(paths(pl.lit(True))) is None
    assert "too few" in json.dumps(_draw.draw(None, "title").to_dict())


def test_plotted_tree_has_all_node_counts() -> None:
    tree = _tree.fit(paths(pl.col("bdp_kb") > pl.col("buffer_kb")))
    assert tree is not None
    drawn = json.dumps(_draw.draw(tree, "title").to_dict())
    for node in tree.nodes:
        assert f"[{node.counts['BBR']}, {node.counts['CUBIC']}]" in drawn
    pure = next(node for node in tree.nodes if node.gini == 0 and node.decision == "BBR")
    assert pure.condition is None
    assert theme.tint(theme.CONTROLLER["bbr1"], tree_figure.STRONGEST) in drawn


def test_rules_and_trees_are_written() -> None:
    built = catalogue.built("imc19.fig4")
    assert built is not None and built.claim.texts is not None
    rows = []
    for cell in built.claim.grid.cells(Size.FULL):
        factors = cell.factors
        # BBR is ahead wherever the BDP exceeds the buffer.
        deep = factors["buffer_kb"] >= factors["rate_mbps"] * factors["rtt_ms"] / 8
        ahead = deep == (factors["controller"] == "cubic")
        rows.append({"world": "sim", "seed": 1, **factors, "goodput_mbps": 2.0 if ahead else 1.0})
    texts = built.claim.texts(Data(pl.DataFrame(rows), pl.DataFrame()))
    assert texts["rules.txt"].startswith("# sim, maximum TCP memory; right on ")
    assert "use BBR (" in texts["rules.txt"] and "use CUBIC (" in texts["rules.txt"]
    assert set(json.loads(texts["trees.json"])) == {"sim max", "sim ubuntu-18.10"}


OF_TREES = ("Accuracy with shuffled", "Median buffer", "Protocols with a higher")


@pytest.mark.parametrize(
    ("odd", "outcome"), [((), Outcome.MET), ((3,), Outcome.UNDECIDED), ((1, 2, 3), Outcome.MISSED)]
)
@pytest.mark.parametrize(("place", "known"), [(0, "lots"), (1, "opposite"), (2, "default memory")])
def test_each_seed_has_own_tree(place: int, known: str, odd: tuple[int, ...], outcome: Outcome) -> None:
    built = catalogue.built("imc19.fig4")
    assert built is not None
    rows = []
    for cell in built.claim.grid.cells(Size.FULL):
        rate, rtt, buffer = (cell.factors[name] for name in _grid.PATH)
        lot = (rate * rtt + buffer) * 7919 % 101 % 2 == 0
        rule = rate * rtt / 8 > buffer
        default = cell.factors["memory"] == _grid.DEFAULT
        for seed in (1, 2, 3):
            # With maximum memory, chance decides on the fast paths.
            bbr_ahead = lot if rate >= 500 and not default else rule
            if seed in odd and known == "lots":
                bbr_ahead = lot
            elif seed in odd and known == "opposite":
                bbr_ahead = not rule
            elif seed in odd and known == "default memory":
                bbr_ahead = lot if default else rule
            goodput = 2.0 if bbr_ahead == (cell.factors["controller"] == "bbr1") else 1.0
            rows.append({"world": "sim", "seed": seed, **cell.factors, "goodput_mbps": goodput})
    found = [one for one in checks(built, pl.DataFrame(rows)) if one.what.startswith(OF_TREES)]
    assert [one.over for one in found] == [Over.CONDITIONS] * 3
    assert found[place].outcome is outcome


def test_map_zero_is_unsigned_paper_bracketed() -> None:
    cells = pl.DataFrame(
        [
            {"rtt_ms": rtt, "rate_mbps": 500, "gain": gain, "bbr1": 1.0, "cubic": 1.0}
            for rtt, gain in ((5, -0.4), (200, 38.0))
        ]
    )
    drawn = json.dumps(_heat.gain(cells, "gain", "", paper={(200, 500): 115.0}).to_dict())
    assert '"0"' in drawn and '"-0"' not in drawn and '"(+115)"' in drawn
    # The scale covers the data and not much more.
    assert _heat.most(cells, "gain") == 50.0


def test_gains_are_those_of_formula_1() -> None:
    # The paper's own numbers for 500 Mbit/s, 200 ms.
    rows = [
        {"rate_mbps": 500, "rtt_ms": 200, "buffer_kb": 100, "controller": name, "goodput_mbps": value}
        for name, value in (("bbr1", 386.0), ("cubic", 179.6))
    ]
    found = _grid.gains(pl.DataFrame(rows)).row(0, named=True)
    assert round(found["gain_pct"]) == 115
    assert found["buffer_bdp"] == 100 / 12_500


def test_cliff_lies_between_two_points() -> None:
    assert _loss.cliff_pct(1.25) == pytest.approx(20)
    rows = [
        {"seed": 1, "controller": "bbr1", "loss_pct": loss, "of_ceiling": part}
        for loss, part in ((10, 0.9), (18, 0.8), (22, 0.2), (30, 0.1))
    ]
    data = Data(pl.DataFrame(rows), pl.DataFrame())
    assert _loss.cliffs_pct(data, "bbr1") == [20.0]


def test_shipped_trace_matches_generator() -> None:
    file = SCENARIOS / "deliveries" / "cellular-synthetic.deliveries"
    assert [int(line) for line in file.read_text().split()] == deliveries.opportunities_ms()
    assert Path(deliveries.file()).read_text() == file.read_text()
