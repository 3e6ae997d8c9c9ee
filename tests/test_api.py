"""The Python interface as a script or a notebook uses it."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fullpipe as fp
from conftest import SIMULATED
from fullpipe.report.results import Results
from fullpipe.scenario import scenario

FLOW_COLUMNS = {
    "time_s", "flow", "controller", "cwnd_segments", "ssthresh_segments", "pacing_bps", "inflight_segments",
    "srtt_ms", "min_rtt_ms", "delivery_bps", "bandwidth_bps", "goodput_bps", "delivered_bytes", "retransmits",
    "phase", "ca_state",
}  # fmt: skip


def test_summary_has_row_per_controller(small: Results) -> None:
    table = small.summary
    assert table["controller"].to_list() == ["bbr1", "cubic"]
    assert table["seeds"].to_list() == [3, 3]
    for row in table.iter_rows(named=True):
        assert 5e6 < row["goodput_bps"] < 10e6 * 1448 / 1500
        assert row["goodput_bps_ci95_low"] <= row["goodput_bps"] <= row["goodput_bps_ci95_high"]
        assert 20 <= row["rtt_mean_ms"] < 80
        assert row["rtt_p50_ms"] <= row["rtt_p95_ms"]


def test_seeds_differ_and_order_is_kept(small: Results) -> None:
    assert [(run.label, run.seed) for run in small.runs] == [
        (label, seed) for label in ("bbr1", "cubic") for seed in (1, 2, 3)
    ]
    bbr1 = [run.flow_parquet for run in small.runs if run.label == "bbr1"]
    assert len(set(bbr1)) == 3


def test_same_seed_gives_same_bytes(small: Results) -> None:
    again = fp.compare(
        ["bbr1", "cubic"], rate="10 Mbit/s", rtt="20 ms", buffer="2 bdp", duration="3 s", seeds=[1, 2, 3]
    )
    for first, second in zip(small.runs, again.runs, strict=True):
        assert first.summary == second.summary
        assert first.flow_parquet == second.flow_parquet
        assert first.link_parquet == second.link_parquet


def test_series_have_the_documented_columns(small: Results) -> None:
    series = small.series()
    assert set(series.columns) >= FLOW_COLUMNS | {"world", "alternative", "seed"}
    assert set(series["alternative"].unique()) == {"bbr1", "cubic"}
    queues = small.link_series()
    assert set(queues.columns) >= {"time_s", "link", "queue_bytes", "queue_delay_ms", "dropped_packets"}
    assert isinstance(small.flows, pl.DataFrame)
    assert small.links.height == len(small.runs)


def test_a_single_seed_has_no_interval() -> None:
    one = fp.compare("reno", rate="5 Mbit/s", rtt="10 ms", duration="1 s", seeds=1)
    assert one.summary["goodput_bps_ci95_low"].to_list() == [None]
    assert one.to_dict()["results"][0]["goodput_bps"]["ci95"] == [None, None]


def test_flows_of_one_controller_share_path() -> None:
    shared = fp.compare(["cubic"], rate="10 Mbit/s", rtt="20 ms", duration="2 s", flows=3, seeds=2)
    assert shared.flows.height == 6
    span_ns = pl.col("end_ns").max() - pl.col("start_ns").min()
    bps = (8e9 * pl.col("delivered_bytes").sum() / span_ns).alias("bps")
    total = shared.flows.group_by("seed").agg(bps)["bps"].mean()
    assert math.isclose(float(str(shared.summary["goodput_bps"][0])), float(str(total)), rel_tol=1e-9)


def test_scenario_runs_from_dict_or_file(tmp_path: Path) -> None:
    document = {
        "name": "tiny",
        "duration": "1 s",
        "path": {"rate": "5 Mbit/s", "rtt": "10 ms"},
        "flows": [{"controller": "bbr1"}, {"controller": "reno", "start": "200 ms"}],
    }
    file = tmp_path / "tiny.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    from_dict, from_file = fp.run(document, seed=4), fp.run(file, seed=4)
    assert from_dict.flows.equals(from_file.flows)
    assert from_dict.flows["controller"].to_list() == ["bbr1", "reno"]


TINY = {"duration": "1 s", "path": {"rate": "5 Mbit/s", "rtt": "10 ms"}, "flows": [{"controller": "reno"}]}


@pytest.mark.parametrize(
    ("message", "asked", "seed"),
    [({}, None, 1), ({"seed": 7}, None, 7), ({"seed": 7}, 3, 3), ({"seed": 7}, 0, 0)],
)
def test_explicit_seed_overrides_scenario_seed(message: dict[str, int], asked: int | None, seed: int) -> None:
    (run,) = fp.run({**TINY, **message}, seed=asked).runs
    assert run.seed == seed
    assert run.summary["provenance"]["seed"] == seed


def test_several_seeds_count_from_the_scenarios() -> None:
    from fullpipe import api

    what = api.load({**TINY, "seed": 7})
    runs, _ = api.execute(what, "sim", api.Repeats(seeds=3))
    assert [run.seed for run in runs] == [7, 8, 9]
    last = api.load({**TINY, "seed": 2**63 - 1})
    runs, _ = api.execute(last, "sim", api.Repeats(seeds=[5]))
    assert [run.seed for run in runs] == [5]


def test_scenario_name_comes_from_document(tmp_path: Path) -> None:
    file = tmp_path / "stem.TOML"
    text = 'name = "said"\nduration = "1 s"\ncompare = ["reno"]\n[path]\nrate = "5 Mbit/s"\nrtt = "10 ms"\n'
    file.write_text(text, encoding="utf-8")
    results = fp.run(file)
    assert results.scenario.name == "said"
    assert results.to_dict()["scenario"]["name"] == "said"


def test_suffix_case_does_not_affect_format(tmp_path: Path) -> None:
    for name in ("a.json", "a.JSON", "a.Json"):
        (tmp_path / name).write_text(json.dumps(TINY), encoding="utf-8")
        assert fp.run(tmp_path / name).runs


@pytest.mark.parametrize("path", SIMULATED, ids=lambda path: path.stem)
def test_every_shipped_scenario_resolves(path: Path) -> None:
    from fullpipe.scenario.scenario import from_file

    assert from_file(path).alternatives


def test_controllers_and_schema() -> None:
    names = {one["name"] for one in fp.controllers()}
    assert names >= {"bbr1", "cubic", "reno"}
    assert {"path", "flows", "duration"} <= set(fp.schema()["properties"])


def test_choices_and_parameter_profiles_are_listed() -> None:
    (bbr3,) = [one for one in fp.controllers() if one["name"] == "bbr3"]
    parameters = {one["name"]: one for one in bbr3["parameters"]}
    profile = parameters["profile"]
    assert (profile["kind"], profile["default"], profile["choices"]) == (
        "choice",
        "draft",
        ["draft", "linux"],
    )
    assert [parameters[name]["profile"] for name in ("profile", "beta", "ecn")] == [None, "draft", "linux"]


def test_profile_refuses_parameters_of_other() -> None:
    where = {"rate": "10 Mbit/s", "rtt": "20 ms", "duration": "2 s", "seeds": 1}
    results = fp.compare(["bbr3", "bbr3:fast_path=0,profile=linux"], **where)
    assert results.summary["controller"].to_list() == ["bbr3", "bbr3:profile=linux,fast_path=0"]
    with pytest.raises(fp.ScenarioError, match="is not one of its choices; expected one of draft, linux"):
        fp.compare(["bbr3:profile=google"], **where)
    with pytest.raises(fp.ScenarioError, match="is a parameter of profile=linux only") as caught:
        fp.compare(["bbr3:ecn=1"], **where)
    assert "write bbr3:profile=linux,ecn=" in str(caught.value)


def test_errors_name_their_parts() -> None:
    with pytest.raises(fp.ScenarioError) as caught:
        fp.compare(["bbr1"], rate="100 parsecs", rtt="40 ms")
    assert caught.value.field == "rate"
    assert "100 parsecs" in caught.value.given
    assert caught.value.expected
    assert caught.value.fix


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "1", float("nan")])
def test_invalid_seed_is_quoted(seed: object) -> None:
    with pytest.raises(fp.ScenarioError, match=r"^seed: .*expected a whole number from 0 to") as caught:
        fp.run(BUCKET, seed=seed)  # type: ignore[arg-type]
    assert caught.value.given == str(seed)


def test_seeds_past_maximum_are_refused() -> None:
    with pytest.raises(
        fp.ScenarioError, match=r"^seed: 18446744073709551615 cannot be used; expected at most"
    ):
        fp.run(BUCKET, seed=2**64 - 1, seeds=2)


BUCKET = {
    "duration": "10 ms",
    "path": {"rate": "50 Mbit/s", "rtt": "0 ms", "burst": 2**32 - 1, "buffer": "100 KB"},
    "flows": [{"controller": "cubic"}],
}


def test_bucket_bounds_bytes_without_delay() -> None:
    results = fp.run(BUCKET)
    sent = results.runs[0].summary["total_goodput_bps"] * 0.01 / 8
    assert sent <= 2**32 - 1 + 50e6 * 0.01 / 8
    assert results.notes == [
        "bottleneck: its bucket of 4.294967295 GB adds 68719 times what 50 Mbit/s carry in the run; while it "
        "has tokens, packets pass as fast as they come."
    ]


def test_assumed_buffer_of_ten_is_noted() -> None:
    slow: dict[str, Any] = {"rate": "300 kbit/s", "rtt": "40 ms", "duration": "60 s", "seeds": 1}
    results = fp.compare(["cubic", "bbr1"], **slow)
    assert results.notes == ["buffer: 10 packets (assumed; 1 BDP is 1.0 packets)"]
    assert all(run.summary["total_goodput_bps"] > 0.27e6 for run in results.runs)
    given = fp.compare("cubic", buffer="1 bdp", **slow)
    assert "path.buffer: the queue has room for 1 packet" in given.notes[0]
    assert given.runs[0].summary["total_goodput_bps"] < 0.2e6


def test_slow_delivery_trace_gets_ten_packets(tmp_path: Path) -> None:
    (tmp_path / "low.deliveries").write_text("100\n200\n")
    path = {"deliveries": "low.deliveries", "rtt": "40 ms"}
    cases: list[tuple[dict[str, str], str]]
    cases = [({}, "1 BDP is 0.4 packets"), ({"buffer": "1 bdp"}, "1 bdp is below one packet")]
    for buffer, message in cases:
        document = {"duration": "20 s", "path": path | buffer, "compare": ["bbr1", "cubic"]}
        results = fp.run(scenario.from_document(document, tmp_path))
        assert len(results.notes) == 1 and f"10 packets (assumed; {message})" in results.notes[0]
        assert all(run.summary["total_goodput_bps"] > 0.1e6 for run in results.runs)


def test_burst_loss_costs_below_packet_loss() -> None:
    path = {"rate": "100 Mbit/s", "rtt": "10.3 ms", "buffer": "1000 packets", "loss": "0.1 %"}

    def goodput(path: dict[str, object]) -> float:
        document = {"duration": "10 s", "path": path, "flows": [{"controller": "cubic"}]}
        return sum(run.summary["total_goodput_bps"] for run in fp.run(document, seeds=3).runs)

    bursts = goodput({**path, "unit": "burst"})
    assert bursts > 1.5 * goodput({**path, "unit": "segment"})
    element = {"kind": "loss", "probability": path.pop("loss"), "unit": "burst"}
    assert goodput({**path, "before": [element]}) == bursts


def test_error_of_one_run_stops_rest() -> None:
    from fullpipe.runs.engines import pool
    from fullpipe.runs.worlds import registry
    from fullpipe.runs.worlds.job import Job
    from fullpipe.scenario.scenario import Alternative

    with pytest.raises(fp.ScenarioError):
        pool.run(registry.named("sim"), [Job(Alternative("broken", "{}"), seed) for seed in range(8)])


def test_notebooks_show_the_table(small: Results) -> None:
    html = small._repr_html_()
    assert "<table" in html
    assert "bbr1" in html


def test_importing_costs_nothing() -> None:
    script = (
        "import sys, fullpipe, fullpipe.cli.app, fullpipe.runs.worlds._kernel_child;"
        "heavy = {'polars', 'altair', 'vl_convert', 'numpy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600)


def test_package_exports_only_listed_names() -> None:
    assert set(fp.__all__) <= set(dir(fp))
    for name in fp.__all__:
        assert getattr(fp, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        fp.nonsense  # type: ignore[attr-defined] # noqa: B018
