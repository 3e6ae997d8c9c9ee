"""The report is one file that needs no network, and says what a reader must know."""

import importlib.util
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import fullpipe as fp
from fullpipe.report.figures import svg
from fullpipe.report.results import Results

LIMIT_BYTES = 5_000_000


@pytest.fixture(scope="module")
def page(small: Results, tmp_path_factory: pytest.TempPathFactory) -> str:
    return small.report(tmp_path_factory.mktemp("report") / "deep" / "report.html").read_text(
        encoding="utf-8"
    )


class Loads(HTMLParser):
    """Collects what a browser would fetch, and the ids."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data", "action") and not (
                value or ""
            ).startswith("#"):
                self.fetched.append(f"{tag} {name}={value}")
            if name == "id" and value:
                self.ids.append(value)


def test_nothing_is_fetched(page: str) -> None:
    found = Loads()
    found.feed(page)
    assert found.fetched == []
    assert "link" not in found.tags
    styles = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert "@import" not in styles
    assert "url(" not in styles


def test_page_size_stays_below_limit(page: str) -> None:
    assert len(page.encode()) < LIMIT_BYTES


def test_ids_are_unique_and_clips_resolve(page: str) -> None:
    found = Loads()
    found.feed(page)
    assert len(found.ids) == len(set(found.ids))
    for name in re.findall(r"url\(#([^)]+)\)", page.split("<script")[0]):
        assert name in found.ids


def test_pictures_work_without_scripts_and_dark(page: str) -> None:
    body = page.split("<script")[0]
    assert body.count("<svg") == 5
    assert "var(--c-2f3640" in body
    assert "prefers-color-scheme: dark" in body


def test_one_script_copy_serves_all_figures(page: str) -> None:
    assert page.count("<script") == page.count("</script") == 1
    assert page.count("vegaEmbed(drawn") == 1


def test_it_says_scenario_seeds_and_version(page: str, small: Results) -> None:
    body = page.split("<script")[0]
    for message in ("bbr1", "cubic", "10 Mbit/s", "2 bdp", "seeds 1, 2, 3", "Fullpipe 0.", "95 % confidence"):
        assert message in body


def test_report_starts_with_path_and_answer(page: str) -> None:
    body = page.split("<script")[0].split("<h2>")[0]
    assert "<h1>bbr1 against cubic on 10 Mbit/s, RTT 20 ms, buffer 2 bdp</h1>" in body
    message = " ".join(re.sub(r"<[^>]+>", " ", body).split())
    assert "Simulation" in message
    assert "bbr1 had less queueing delay" in message
    assert message.index("goodput (") < message.index("Controller"), "the answer, then the table"


def test_doubts_and_skipped_runs_are_reported(small: Results) -> None:
    from fullpipe.report.report import html

    first = small.runs[0]
    late = {"packets": 10, "p50_ns": 9_000, "p99_ns": 70_000, "p999_ns": 90_000, "max_ns": 3_000_000}
    provenance = {
        **first.summary["provenance"],
        "untrustworthy": ["late by <3 ms>"],
        "lateness": late,
        "kernel": "6.18",
        "sysctls": [["net.ipv4.tcp_rmem", "1 2 3"]],
    }
    doubtful = replace(first, summary={**first.summary, "provenance": provenance}, world="kernel")
    results = Results(small.scenario, [*small.runs, doubtful], ["The kernel world did not run. <Because>"])
    body = html(results).split("<script")[0]
    for message in (
        "untrustworthy",
        "late by &lt;3 ms&gt;",
        "&lt;Because&gt;",
        "net.ipv4.tcp_rmem = 1 2 3",
        "Linux 6.18",
    ):
        assert message in body
    assert "<Because>" not in body
    assert "3,000" in body, "lateness in microseconds"
    assert "the only repetition is not trusted; the numbers are shown and marked" in body


def test_notebook_table_is_readable_without_stylesheet(small: Results) -> None:
    table = small._repr_html_()
    heads = re.findall(r"<th scope=.col.[^>]*>(.*?)</th>", table)
    assert "Goodput <small>Mbit/s</small>" in heads
    assert all("<small>" not in head or " <small>" in head for head in heads)
    assert "text-align: right" in table


def test_narrow_card_names_measures_in_full(page: str) -> None:
    named = set(re.findall(r'data-heading="([^"]+)"', page))
    assert {"RTT p50, ms", "RTT p95, ms", "Queue mean, ms"} <= named
    assert not {"p50, ms", "p95, ms"} & named


def test_labels_cannot_break_the_page(small: Results, tmp_path: Path) -> None:
    evil = "</script><b>x"
    run = small.runs[0]
    named = replace(run, alternative=replace(run.alternative, label=evil))
    text = Results(small.scenario, [named]).report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<b>x" not in text.split("<script")[0]
    assert text.count("</script") == 1


def test_flows_sharing_path_are_listed() -> None:
    import fullpipe as fp
    from fullpipe.report.report import html

    path = {"rate": "5 Mbit/s", "rtt": "10 ms"}
    flows = [{"controller": "bbr1", "label": "first"}, {"controller": "cubic", "label": "second"}]
    body = html(fp.run({"duration": "1 s", "path": path, "flows": flows}), []).split("<script")[0]
    assert "<h2>Flows</h2>" in body
    assert "first" in body
    assert "second" in body


def test_every_picture_says_what_it_shows(page: str) -> None:
    pictures = re.findall(r"<svg[^>]*>", page.split("<script")[0])
    assert len(pictures) == 5
    for picture in pictures:
        assert 'role="img"' in picture
        assert len(re.findall(r'aria-label="([^"]+)"', picture)[0]) > 20
    assert "bbr1 · simulation" in "".join(pictures)


def test_print_is_light_with_full_tables(page: str) -> None:
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert re.findall(r"@media[^{]*dark\)", style) == ["@media screen and (prefers-color-scheme: dark)"] * 2
    assert 'name="color-scheme"' not in page
    printed = style[style.index("@media print") :]
    assert re.search(r"\.wide[^{]*\{ overflow: visible; \}", printed)


def test_cells_carry_headings_for_narrow_screens(page: str) -> None:
    cells = re.findall(r"<td[^>]*>", page.split("<script")[0])
    assert cells
    assert all("data-heading=" in cell for cell in cells)
    assert 'data-heading="Goodput, Mbit/s"' in page


def test_page_has_no_external_addresses(page: str) -> None:
    body, script = page.split("<script", 1)
    assert set(re.findall(r"https?://[^/\"' ]+", body)) <= {"http://www.w3.org"}
    # Vega names its schemas and namespaces; it fetches them only when asked to load data.
    assert "cdn" not in script.lower().replace("jsdelivr", "")
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)


def test_figures_can_be_zoomed_by_keyboard(page: str) -> None:
    for name in ("Zoom in", "Zoom out", "Earlier", "Later", "Whole run", "Open as SVG"):
        assert f'"{name}"' in page.split("<script")[1]


def test_provenance_has_command_date_and_version(small: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    from fullpipe.report import provenance
    from fullpipe.report.report import html

    monkeypatch.setattr(provenance, "_command", None)
    assert "called from Python" in html(small, [])
    provenance.began(["study", "run", "a b", "--ray-address", "ray://me:secret@host:10001"])
    body = html(small, [])
    assert "fullpipe study run &#x27;a b&#x27; --ray-address ray://host:10001" in body
    assert "secret" not in body
    for words in (["--token", "3f1c9d"], ["--token=3f1c9d"]):
        provenance.began(["probe", "there", *words, "--short"])
        assert "3f1c9d" not in html(small, []) and "--short" in html(small, [])
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, by Fullpipe \d", body)


def test_the_command_line_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from fullpipe.cli import app as cli
    from fullpipe.report import provenance

    monkeypatch.setattr(provenance, "_command", None)
    cli.app(["--version"], standalone_mode=False)
    assert provenance.command() == "fullpipe --version"


def test_two_world_report_states_their_difference(small: Results, tmp_path: Path) -> None:
    """Here the second world is the first under another name, so that they agree."""
    twins = [replace(run, world="kernel") for run in small.runs]
    text = Results(small.scenario, [*small.runs, *twins]).report(tmp_path / "both.html").read_text("utf-8")
    assert (
        "How far apart" in text
        and "The worlds agree: 6 of 6 comparisons agree (Goodput, RTT mean, Retransmits)." in text
    )
    alone = small.report(tmp_path / "one.html").read_text("utf-8")
    assert "How far apart" not in alone


def test_results_and_figures_have_short_repr(small: Results) -> None:
    assert repr(small) == "<Results: bbr1, cubic in sim, 6 runs>"
    assert repr(small.plot()) == "<figure 'Throughput'; .save('figure.svg') writes it, a notebook shows it>"


def _panic(*_: object, **__: object) -> None:
    # As the class of panics in native modules: no `Exception`.
    raise type("PanicException", (BaseException,), {})("no thread\x1b")


DOT = {"mark": "point", "data": {"values": []}, "title": "A dot"}


@pytest.fixture
def renderer(monkeypatch: pytest.MonkeyPatch) -> Iterator[svg._Process]:
    """A renderer of the test's own."""
    made = svg._Process()
    monkeypatch.setattr(svg, "_process", made)
    yield made
    made._end()


def as_renderer(monkeypatch: pytest.MonkeyPatch, code: str, folder: Path) -> None:
    """Starts a program in place of the renderer."""
    (folder / "renderer.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(svg, "_CHILD", folder / "renderer.py")


@pytest.mark.usefixtures("renderer")
@pytest.mark.parametrize(
    ("code", "why"),
    [
        (r"import os; os.read(0, 8); os.write(1, bytes(7) + b'\x0ano thread\x1b' + bytes(8))", "no thread"),
        ("import os; os.read(0, 8)", "it ended"),
        ("", "it ended"),
        (r"import os; os.write(1, bytes(7) + b'\x09cut')", "it ended"),
    ],
)
def test_renderer_that_fails_is_an_error_and_starts_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, why: str
) -> None:
    real = svg._CHILD
    as_renderer(monkeypatch, code, tmp_path)
    with pytest.raises(fp.OutputError, match=rf"cannot be drawn: the renderer failed \({why}"):
        svg.picture(DOT)
    svg._process._end()
    monkeypatch.setattr(svg, "_CHILD", real)
    assert 'aria-label="A dot"' in svg.picture(DOT)


def test_invalid_figure_is_an_error_and_the_next_is_drawn(renderer: svg._Process) -> None:
    with pytest.raises(fp.OutputError, match="the renderer failed"):
        svg.picture({"mark": 1})
    first = renderer._child
    assert first is not None and "<svg" in svg.picture(DOT)
    assert renderer._child is first


def test_interrupted_figure_is_not_taken_for_the_next(
    renderer: svg._Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_running: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(renderer, "_read", interrupted)
        svg.picture({**DOT, "title": "Another"})
    assert ">A dot<" in svg.picture(DOT)


def test_no_renderer_survives_its_killed_process() -> None:
    code = "from fullpipe.report.figures import svg; svg.warm_up(); print(svg._process._child.pid); input()"
    running = subprocess.Popen(
        [sys.executable, "-P", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    renderer = os.pidfd_open(int(running.stdout.readline()))
    running.kill()
    assert select.select([renderer], [], [], 60)[0] == [renderer], "it still runs"
    os.close(renderer)
    running.communicate()


@pytest.mark.usefixtures("renderer")
def test_missing_proc_fails_before_rendering(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(svg, "_PROC", tmp_path / "self")
    as_renderer(monkeypatch, "", tmp_path)
    with pytest.raises(fp.OutputError, match="needs /proc, which is not mounted; mount it"):
        svg.picture({})


def built_by(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The build backend, without maturin."""
    build = Path(__file__).parent.parent / "python" / "build_backend.py"
    spec = importlib.util.spec_from_file_location("build_backend", build)
    assert spec is not None and spec.loader is not None
    monkeypatch.setitem(sys.modules, "maturin", types.ModuleType("maturin"))
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    return backend


def test_notices_name_linked_and_bundled_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed, so that no notices can be made")
    root = Path(__file__).parent.parent
    backend = built_by(monkeypatch)
    backend.notices(tmp_path / "notices.txt")
    text = (tmp_path / "notices.txt").read_text(encoding="utf-8")
    lock = tomllib.loads((root / "Cargo.lock").read_text(encoding="utf-8"))
    known = {f"{one['name']} {one['version']}" for one in lock["package"] if "source" in one}
    pages = json.loads((root / "lab" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    known |= {f"{name.removeprefix('node_modules/')} {one.get('version')}" for name, one in pages.items()}
    named = set(re.findall(r"^={80}\n(\S+ \S+): \S.*$", text, re.MULTILINE))
    assert named <= known and {"pyo3", "parquet", "serde"} <= {one.split()[0] for one in named}
    assert "Permission is hereby granted" in text
    # The page is no part of a package that is built without it.
    assert ("solid-js" in {one.split()[0] for one in named}) == (root / "lab" / "node_modules").is_dir()


def test_built_package_bundles_renderer_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    backend = built_by(monkeypatch)
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda _: "bundled()")
    (tmp_path / "vega-0.1.js").touch()
    made = backend.bundle(tmp_path)
    assert [made] == list(tmp_path.iterdir()) and made.read_text() == "bundled()"
    monkeypatch.setattr("vl_convert.javascript_bundle", _panic)
    assert backend.bundle(tmp_path) == made
    made.unlink()
    assert backend.bundle(tmp_path) is None
    # The page looks for the very name.
    assert made.name == f"vega-{svg.renderer_version()}.js"
