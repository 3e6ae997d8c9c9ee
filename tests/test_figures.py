"""What figures draw: thinned lines, phase bands, the path's own limits, one colour a controller."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as some

import fullpipe as fp
from fullpipe.figures import FIGURES, drawable, drawings, save, theme
from fullpipe.figures import prepare as p
from fullpipe.results import Results


def flow(values: list[float], name: str = "a") -> pl.DataFrame:
    """One sample each 10 ms."""
    return pl.DataFrame({"time_s": [i / 100 for i in range(len(values))], "flow": name, "x": values})


def test_short_lines_stay_as_they_are() -> None:
    values = [1.0, 5.0, 2.0]
    assert p.line(flow(values), "x", end_s=1)["value"].to_list() == values


def test_a_spike_survives_thinning() -> None:
    values = [1.0] * 20_000
    values[12_345] = 99.0
    thin = p.line(flow(values), "x", end_s=200)
    assert thin.height <= p.MAX_POINTS
    assert thin["value"].max() == 99
    assert thin.filter(pl.col("value") == 99)["time_s"].to_list() == [123.45]
    assert thin["time_s"].is_sorted()


def test_goodput_is_what_was_delivered(small: Results) -> None:
    for panel in p.panels(small):
        line = p.goodput_mbps(panel, panel.duration_s)
        assert 10 < line.height <= p.MAX_POINTS
        assert line["time_s"].is_sorted()
        delivered = panel.run.summary["flows"][0]["goodput_bps"] / 1e6
        mean = line["value"].mean()
        assert isinstance(mean, float)
        assert mean == pytest.approx(delivered, rel=0.1)


@given(some.integers(1, 6000), some.integers(1, 3))
def test_no_line_is_longer_than_the_limit(samples: int, flows: int) -> None:
    frame = pl.concat([flow([float(i % 17) for i in range(samples)], name) for name in "abc"[:flows]])
    thin = p.line(frame, "x", end_s=samples / 100)
    assert thin.group_by("flow").len()["len"].to_list() <= [p.MAX_POINTS] * flows
    assert thin["value"].max() == frame["x"].max()
    assert thin["value"].min() == frame["x"].min()


def test_bands_cover_the_run_without_gap_or_overlap(small: Results) -> None:
    for panel in p.panels(small):
        found = p.bands(panel, panel.duration_s, 400)
        assert found.height > 0
        assert found["end_s"].to_list()[:-1] == found["start_s"].to_list()[1:]
        assert found["end_s"].to_list()[-1] == panel.duration_s
        assert set(found["phase"]) <= set(theme.PHASE)


def test_a_cycle_too_fine_to_see_becomes_one_band(small: Results) -> None:
    bbr1 = next(panel for panel in p.panels(small) if panel.row.label == "bbr1")
    coarse, fine = (set(p.bands(bbr1, bbr1.duration_s, width)["phase"]) for width in (20, 4000))
    assert "probe_bw" in coarse
    assert not coarse & {"probe_bw_up", "probe_bw_down"}
    assert fine >= {"startup", "drain", "probe_bw_up", "probe_bw_down", "probe_bw_cruise"}


def test_every_phase_that_a_controller_can_be_in_has_a_band() -> None:
    listed = (Path(__file__).parent.parent / "crates/cc/src/controller.rs").read_text(encoding="utf-8")
    named = [
        line.split('"')[1]
        for line in listed.splitlines()
        if line.strip().startswith("Phase::") and '"' in line
    ]
    assert len(named) >= 11
    assert set(named) <= set(theme.PHASE)


def test_the_path_says_its_own_limits(small: Results) -> None:
    spec = small.scenario.alternatives[0].spec
    assert p.goodput_ceiling_mbps(spec) == [(0, pytest.approx(10 * 1448 / 1500))]
    assert p.base_rtt_ms(spec, None) == [(0, 20)]
    assert p.full_pipe_segments(spec, None) == [(0, pytest.approx(10e6 * 0.02 / 8 / 1500))]


def test_headers_are_as_large_as_in_the_worlds() -> None:
    spec = (Path(__file__).parent.parent / "crates/scenario/src/spec.rs").read_text(encoding="utf-8")
    assert f"HEADER_BYTES: u32 = {p.HEADER_BYTES};" in spec


def test_a_start_is_drawn_close_up_only_where_it_is_a_part() -> None:
    path = {"rate": "5 Mbit/s", "rtt": "20 ms"}
    for duration, there in (("1 s", False), ("3 s", True)):
        results = fp.run({"duration": duration, "path": path, "compare": ["reno"]})
        assert ("startup" in {figure.name for figure in drawable(results)}) is there


def test_the_limits_follow_the_schedule() -> None:
    results = fp.run(
        {
            "duration": "3 s",
            "path": {"rate": "5 Mbit/s", "rtt": "10 ms", "changes": [{"at": "1 s", "rate": "10 Mbit/s"}]},
            "flows": [{"controller": "reno"}],
        }
    )
    steps = p.goodput_ceiling_mbps(results.scenario.alternatives[0].spec)
    assert steps is not None
    assert [time_s for time_s, _ in steps] == [0, 1]
    assert steps[1][1] == pytest.approx(2 * steps[0][1])


def test_a_path_that_follows_a_trace_has_no_ceiling(tmp_path: Path) -> None:
    trace = tmp_path / "a.trace"
    trace.write_text("1\n2\n3\n", encoding="ascii")
    document = {"path": {"trace": str(trace), "rtt": "10 ms"}, "compare": ["reno"], "duration": "500 ms"}
    results = fp.run(document)
    assert p.goodput_ceiling_mbps(results.scenario.alternatives[0].spec) is None
    assert drawings(results)


def test_controllers_that_share_a_path_get_a_row_each() -> None:
    results = fp.run(
        {
            "duration": "1 s",
            "path": {"rate": "5 Mbit/s", "rtt": "10 ms"},
            "flows": [{"controller": "bbr1"}, {"controller": "cubic"}],
        }
    )
    assert [row.controller for row in p.rows(results)] == ["bbr1", "cubic"]
    assert [row.colour for row in p.rows(results)] == [theme.CONTROLLER["bbr1"], theme.CONTROLLER["cubic"]]


def test_flows_of_one_controller_share_a_panel_without_bands() -> None:
    results = fp.compare(["reno"], rate="5 Mbit/s", rtt="10 ms", duration="1 s", flows=2, seeds=1)
    (panel,) = p.panels(results)
    assert len(panel.flow_labels) == 2
    assert p.bands(panel, 1, 400).height == 0


def test_a_controller_has_one_colour_and_variants_another() -> None:
    colours = theme.controller_colours(["cubic", "bbr1", "bbr1:probe_gain=1.5", "mine"])
    assert colours["bbr1"] == theme.CONTROLLER["bbr1"]
    assert colours["cubic"] == theme.CONTROLLER["cubic"]
    assert len(set(colours.values())) == 4


def test_the_median_run_represents(small: Results) -> None:
    runs = [run for run in small.runs if run.label == "bbr1"]
    goodputs = sorted(run.summary["flows"][0]["goodput_bps"] for run in runs)
    assert p.representative(runs).summary["flows"][0]["goodput_bps"] == goodputs[1]


@pytest.mark.parametrize("name", [figure.name for figure in FIGURES])
def test_every_figure_names_axes_with_units(small: Results, name: str) -> None:
    spec = str(small.plot(name).to_dict())
    assert any(unit in spec for unit in ("Mbit/s", ", ms", "segments"))
    if name != "summary":
        assert "time, s" in spec


def test_an_unknown_figure_is_a_mistake(small: Results) -> None:
    with pytest.raises(fp.ScenarioError, match="throughput"):
        small.plot("everything")


def test_files_are_svg_and_png(small: Results, tmp_path: Path) -> None:
    for path in save(drawings(small), tmp_path):
        head = path.read_bytes()[:8]
        assert head.startswith(b"<svg" if path.suffix == ".svg" else b"\x89PNG")


def test_without_series_only_the_summary_is_drawn() -> None:
    results = fp.run(
        {
            "duration": "1 s",
            "path": {"rate": "5 Mbit/s", "rtt": "10 ms"},
            "compare": ["reno", "cubic"],
            "record": {"series": False},
        }
    )
    assert [drawing.figure.name for drawing in drawings(results)] == ["summary"]


def test_every_band_and_controller_has_a_colour_for_dark_pages() -> None:
    bands = {colour for _, colour in theme.PHASE.values()}
    assert bands | set(theme.CONTROLLER.values()) - {"#56b4e9"} <= set(theme.DARK)
