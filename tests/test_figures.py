"""What figures draw: thinned lines, phase bands, the path's own limits, one colour a controller."""

import json
from pathlib import Path

import altair as alt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as some

import fullpipe as fp
from conftest import SIMULATED
from fullpipe.report.figures import FIGURES, drawable, drawings, save, theme
from fullpipe.report.figures import prepare as p
from fullpipe.report.figures.svg import _numbered, described, labelled, picture, render
from fullpipe.report.results import Results
from fullpipe.scenario import path_facts


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
def test_lines_stay_within_point_limit(samples: int, flows: int) -> None:
    frame = pl.concat([flow([float(i % 17) for i in range(samples)], name) for name in "abc"[:flows]])
    thin = p.line(frame, "x", end_s=samples / 100)
    assert thin.group_by("flow").len()["len"].to_list() <= [p.MAX_POINTS] * flows
    assert thin["value"].max() == frame["x"].max()
    assert thin["value"].min() == frame["x"].min()


def test_bands_cover_run_without_gaps(small: Results) -> None:
    for panel in p.panels(small):
        found = p.bands(panel, panel.duration_s, 400)
        assert found.height > 0
        assert found["end_s"].to_list()[:-1] == found["start_s"].to_list()[1:]
        assert found["end_s"].to_list()[-1] == panel.duration_s
        assert set(found["phase"]) <= set(theme.PHASE)


def test_too_fine_cycle_becomes_one_band(small: Results) -> None:
    bbr1 = next(panel for panel in p.panels(small) if panel.row.label == "bbr1")
    coarse, fine = (set(p.bands(bbr1, bbr1.duration_s, width)["phase"]) for width in (20, 4000))
    assert "probe_bw" in coarse
    assert not coarse & {"probe_bw_up", "probe_bw_down"}
    assert fine >= {"startup", "drain", "probe_bw_up", "probe_bw_down", "probe_bw_cruise"}


def test_every_controller_phase_has_band() -> None:
    listed = (Path(__file__).parent.parent / "crates/cc/src/controller.rs").read_text(encoding="utf-8")
    named = [
        line.split('"')[1]
        for line in listed.splitlines()
        if line.strip().startswith("Phase::") and '"' in line
    ]
    assert len(named) >= 11
    assert set(named) <= set(theme.PHASE)


def test_the_path_has_its_own_limits(small: Results) -> None:
    for panel in p.panels(small):
        assert p.goodput_ceiling_mbps(panel) == [(0, pytest.approx(10 * 1448 / 1500))]
        assert p.base_rtt_ms(panel) == [(0, 20)]
        assert p.full_pipe_segments(panel) == [(0, pytest.approx(10e6 * 0.02 / 8 / 1500))]


def test_startup_is_plotted_for_long_runs() -> None:
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
    steps = path_facts.of(results.scenario.alternatives[0]).goodput_mbps()
    assert steps is not None
    assert [time_s for time_s, _ in steps] == [0, 1]
    assert steps[1][1] == pytest.approx(2 * steps[0][1])


def test_delivery_trace_ceiling_is_its_mean(tmp_path: Path) -> None:
    file = tmp_path / "a.deliveries"
    file.write_text("1\n2\n3\n", encoding="ascii")
    document = {"path": {"deliveries": str(file), "rtt": "10 ms"}, "compare": ["reno"], "duration": "500 ms"}
    results = fp.run(document)
    assert path_facts.of(results.scenario.alternatives[0]).rate_mbps() == [(0, pytest.approx(12))]
    assert drawings(results)


@pytest.mark.parametrize("file", SIMULATED, ids=lambda file: file.stem)
def test_shipped_scenarios_approach_their_plotted_ceiling(file: Path) -> None:
    loaded = fp.load(file)
    if not all(one.spec.get("keep_series", True) for one in loaded.alternatives):
        pytest.skip("it keeps no series to draw")
    results = fp.run(loaded)
    nearest = 0.0
    for panel in p.panels(results):
        steps = p.goodput_ceiling_mbps(panel)
        assert steps is not None and p.base_rtt_ms(panel) is not None
        together = p.goodput_mbps(panel, panel.duration_s).group_by("time_s").agg(pl.col("value").sum())
        nearest = max(nearest, float(together["value"].quantile(0.9)) / max(rate for _, rate in steps))
    # An application that waits for requests needs little of the path; of others, the best gets a fair part.
    flows = [flow for one in results.scenario.alternatives for flow in one.spec["flows"]]
    assert (0.15 if any(flow["workload"]["kind"] == "bulk" for flow in flows) else 0) < nearest < 1.3


def test_controllers_on_shared_path_get_rows() -> None:
    results = fp.run(
        {
            "duration": "1 s",
            "path": {"rate": "5 Mbit/s", "rtt": "10 ms"},
            "flows": [{"controller": "bbr1"}, {"controller": "cubic"}],
        }
    )
    assert [row.controller for row in p.rows(results)] == ["bbr1", "cubic"]
    assert [row.colour for row in p.rows(results)] == [theme.CONTROLLER["bbr1"], theme.CONTROLLER["cubic"]]


def test_same_controller_flows_share_one_panel() -> None:
    results = fp.compare(["reno"], rate="5 Mbit/s", rtt="10 ms", duration="1 s", flows=2, seeds=1)
    (panel,) = p.panels(results)
    assert len(panel.flow_labels) == 2
    assert p.bands(panel, 1, 400).height == 0


def test_controllers_and_variants_have_distinct_colours() -> None:
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


def test_figures_are_svg_and_optionally_png(small: Results, tmp_path: Path) -> None:
    drawn = drawings(small)
    assert {path.suffix for path in save(drawn, tmp_path)} == {".svg"}
    written = save(drawn, tmp_path, png=True)
    assert {path.suffix for path in written} == {".svg", ".png"}
    for path in written:
        head = path.read_bytes()[:8]
        assert head.startswith(b"<svg" if path.suffix == ".svg" else b"\x89PNG")


def test_picture_is_that_of_the_whole_specification(small: Results) -> None:
    """Zoom, which needs a script, is left out when a picture is drawn."""
    drawn = next(one for one in drawings(small) if one.figure.name == "throughput")
    assert [one["name"] for one in drawn.spec["params"]] == ["zoom"]
    whole = labelled(_numbered(render("vegalite_to_svg", drawn.spec)), described(drawn.spec))
    assert drawn.svg != whole
    assert drawn.svg.replace(_INERT, "") == whole.replace(_INERT, "")
    # A parameter on which colours depend stays.
    asked = {
        "params": [{"name": "chosen", "value": "#123456"}],
        "mark": {"type": "point", "fill": {"expr": "chosen"}},
    }
    assert "#123456" in picture({**asked, "data": {"values": [{}]}})


# What an interactive figure does not react to.
_INERT = ' pointer-events="none"'


def test_new_results_replace_old_figures(small: Results, tmp_path: Path) -> None:
    small.write(tmp_path, png=True)
    (tmp_path / "figures" / "mine.png").write_bytes(b"")
    small.write(tmp_path)
    left = {path.name for path in (tmp_path / "figures").iterdir()}
    assert left == {"mine.png", *(f"{one.figure.name}.svg" for one in drawings(small))}


def test_figures_match_vega_lite_schema(small: Results) -> None:
    for figure in FIGURES:
        spec = figure.draw(small)
        alt.ConcatChart.from_dict(spec, validate=True)
        # The control: a name that Vega-Lite does not have.
        spec["concat"][0]["layer"][0]["mark"]["colour"] = "red"
        with pytest.raises(alt.utils.schemapi.jsonschema.ValidationError):
            alt.ConcatChart.from_dict(spec, validate=True)


def test_without_series_only_summary_is_plotted() -> None:
    results = fp.run(
        {
            "duration": "1 s",
            "path": {"rate": "5 Mbit/s", "rtt": "10 ms"},
            "compare": ["reno", "cubic"],
            "record": {"series": False},
        }
    )
    assert [drawing.figure.name for drawing in drawings(results)] == ["summary"]


def test_summary_is_independent_of_series() -> None:
    document = {"duration": "1 s", "path": {"rate": "5 Mbit/s", "rtt": "10 ms"}, "compare": ["reno"]}
    kept, left_out = (fp.run({**document, "record": {"series": series}}).runs[0] for series in (True, False))
    for part in ("flows", "links"):
        assert left_out.summary[part] == kept.summary[part]
    assert left_out.summary["flows"][0]["rtt_ms"]["p50"] >= 10
    assert (
        kept.flow_series().height and not left_out.flow_series().height and not left_out.link_series().height
    )


def test_bands_and_controllers_have_dark_colours() -> None:
    bands = {colour for _, colour in theme.PHASE.values()}
    assert bands | set(theme.CONTROLLER.values()) - {"#56b4e9"} <= set(theme.DARK)


def test_notebook_shows_figures_offline(small: Results) -> None:
    for figure in FIGURES:
        shown = small.plot(figure.name)._repr_mimebundle_()
        assert set(shown) == {"image/svg+xml", "text/plain"}
        svg = shown["image/svg+xml"].replace("http://www.w3.org/", "")
        assert svg.startswith("<svg")
        assert "http" not in svg
    assert "http" not in small._repr_html_()


def test_changed_figure_stays_offline(small: Results) -> None:
    changed = small.plot("rtt").properties(background="#eeeeee")
    assert "image/svg+xml" in changed._repr_mimebundle_()


def test_colours_are_independent_of_other_lines() -> None:
    names = ["bbr1", "cubic", "reno", "bbr1:probe_gain=1.5", "cubic:beta=0.5"]
    for assign in (theme.controller_colours, theme.controller_dashes):
        alone = {name: assign([name])[name] for name in names}
        assert assign(names) == alone == assign(reversed(names))
        assert len({str(value) for value in alone.values()}) == len(names)


def test_spare_colours_are_unique_and_dark() -> None:
    worlds = theme.world_colours(["sim", "kernel"])
    own = {*theme.CONTROLLER.values(), *worlds.values()}
    assert len(own) == len(theme.CONTROLLER) + len(worlds)
    assert not own & set(theme.SPARE)
    assert set(theme.SPARE) | set(theme.WORLD_SPARE) | set(worlds.values()) <= set(theme.DARK)


def test_panels_share_one_colour_scale() -> None:
    def panel(*names: str) -> dict[str, object]:
        colours = theme.controller_colours(names)
        scale = {"domain": list(colours), "range": list(colours.values())}
        return {"encoding": {"color": {"field": "controller", "type": "nominal", "scale": scale}}}

    spec = theme.settled({"hconcat": [panel("cubic"), panel("bbr1", "cubic")]})
    for part in spec["hconcat"]:
        scale = part["encoding"]["color"]["scale"]
        assert dict(zip(scale["domain"], scale["range"], strict=True)) == {
            name: theme.CONTROLLER[name] for name in ("cubic", "bbr1")
        }


def test_heat_maps_use_controller_colours() -> None:
    from fullpipe_studies.papers.imc19 import _draw, _heat
    from fullpipe_studies.papers.imc19._tree import CLASSES

    assert {name: _draw._COLOUR[name] for name in CLASSES} == {
        "BBR": theme.CONTROLLER["bbr1"],
        "CUBIC": theme.CONTROLLER["cubic"],
    }
    assert _heat._CUBIC_TO_BBR[0] == theme.tint(theme.CONTROLLER["cubic"], 0.98)
    assert _heat._CUBIC_TO_BBR[-1] == theme.tint(theme.CONTROLLER["bbr1"], 0.98)
    assert not set(_heat._CUBIC_TO_BBR) & set(theme.DARK), "a page would change the ends, not the text"


def _two_flows(**more: object) -> Results:
    path = {"rate": "5 Mbit/s", "rtt": "10 ms"}
    return fp.run({"duration": "2 s", "path": path, "flows": [{"controller": "reno", "count": 2}], **more})


@pytest.mark.parametrize("name", ["throughput", "rtt", "inflight"])
def test_no_line_leaves_its_plot(small: Results, name: str) -> None:
    for results in (small, _two_flows()):
        spec = results.plot(name).to_dict()
        for panel in spec["concat"]:
            layer = next(one for one in panel["layer"] if "detail" in one["encoding"])
            low, high = layer["encoding"]["y"]["scale"]["domain"]
            values = [row["value"] for row in layer["data"]["values"]]
            assert low <= min(values) and max(values) <= high


def test_same_controller_flows_are_distinguished() -> None:
    results = _two_flows()
    colours = p.flow_colours(p.panels(results))
    assert list(colours) == [flow["label"] for flow in results.runs[0].summary["flows"]]
    assert len(set(colours.values())) == 2
    assert set(colours.values()) <= set(theme.DARK)
    svg = next(one.svg for one in drawings(results) if one.figure.name == "rtt")
    assert all(name in svg for name in colours)


def test_untrustworthy_panel_is_marked() -> None:
    results = _two_flows()
    results.runs[0].summary["provenance"]["untrustworthy"] = ["late"]
    assert [panel.title.endswith("(untrustworthy)") for panel in p.panels(results)] == [True]


def test_captions_are_about_what_is_drawn(small: Results) -> None:
    alone, shared = (
        {figure.name: figure.look_at(results) for figure in FIGURES} for results in (small, _two_flows())
    )
    assert "reaches the dashed ceiling" in alone["throughput"] and "the link idles" in alone["inflight"]
    assert "all flows together" in shared["throughput"] and "the sum of all flows" in shared["inflight"]
    asked = [{"controller": "reno", "requests": {"size": "10 KB", "pause": "100 ms"}}]
    waits = {figure.name: figure.look_at(_two_flows(flows=asked)) for figure in FIGURES}
    assert "idles" not in waits["inflight"] and "reaches" not in waits["throughput"]


def test_text_on_uncoloured_tile_follows_theme() -> None:
    from fullpipe.report.figures import grid, svg

    tiles = [grid.Tile("a", "a", "Goodput", 0.5, "+4", ""), grid.Tile("a", "a", "Share", None, "1 / 2", "")]
    drawn = svg.picture(grid.heat_map(tiles, ["Goodput", "Share"], ["sim", "kernel"]))
    assert f'fill="{theme.INK}">1 / 2<' in drawn and f'fill="{grid._LABEL}">+4<' in drawn


def test_close_up_lists_only_its_flows() -> None:
    flows = [
        {"controller": "cubic", "label": "early", "start_jitter": "0 s"},
        {"controller": "cubic", "label": "late", "start": "5 s"},
    ]
    path = {"rate": "10 Mbit/s", "rtt": "20 ms"}
    results = fp.run({"duration": "10 s", "path": path, "flows": flows})
    start, whole = (json.dumps(results.plot(name).to_dict()) for name in ("startup", "inflight"))
    assert '"values": ["early"]' in start
    assert '"values": ["early", "late"]' in whole
