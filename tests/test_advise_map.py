"""`fullpipe map`: its axes, its files, that it resumes, and the tree that says it in short."""

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from fullpipe._native import ScenarioError
from fullpipe.advisor import Question, goals, map_page, ranking
from fullpipe.advisor import map as maps
from fullpipe.advisor import tree as trees
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.question import Numbers, parsed
from fullpipe.runs.engines import Ended
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from sweeping import Scripted, logged


def trial(score: float) -> Trial:
    """A trial whose score by throughput is this."""
    return Trial(
        goodput_bps=score * 1e6,
        rtt_p95_ms=50,
        loss_ratio=0,
        fct_ms=None,
        harm=None,
        used=score,
        short=0.8,
        ideal_fct_ms=50,
    )


def ranked(**scores: float) -> ranking.Ranking:
    """The ranking of candidates with these scores on every seed."""
    return ranking.ranked(goals.BULK, {name: [trial(one)] * 3 for name, one in scores.items()})


def numbers(rate_mbps: float, rtt_ms: float, buffer_kb: float = 100) -> Numbers:
    return Numbers(rate_mbps * 1e6, rtt_ms, buffer_kb * 1e3, 0.0, {"jitter": 0.0})


GRID = [numbers(rate, rtt) for rate in (1, 2, 5, 10, 20, 50, 100) for rtt in (5, 10, 20, 50, 100, 200)]


def small(
    *, x: str = "rate=2mbit..8mbit", y: str = "rtt=10..40 ms", buffer: str = "100 KB", tree: bool = False
) -> maps.Asked:
    """The question of a small map."""
    axes = dict(maps.axis(name, given) for name, given in (("x", x), ("y", y)))
    fields = {"rate": "4mbit", "rtt": "20 ms", "buffer": parsed("buffer", buffer), **axes}
    question = Question(**fields, candidates=("cubic", "bbr1"))
    names = [maps.axis("axis", given)[0] for given in (x, y)]
    return maps.ask(question, *names, goal="throughput", steps=2, seeds=1, tree=tree)


# The short form.


def test_tree_learns_and_words_rule() -> None:
    seen = [
        (path, ranked(a=0.9, b=0.5) if path.bdp_bytes > 120_000 else ranked(a=0.5, b=0.9)) for path in GRID
    ]
    tree = trees.grow(seen, ("a", "b"))
    assert len(tree.nodes) == 3
    # Between the nearest products on the grid, 62.5 and 125 KB, on a logarithmic scale.
    assert tree.nodes[0].condition == "BDP ≤ 88 KB"
    assert [tree.decide(path) for path, _ in seen] == [ranks.winner for _, ranks in seen]
    first, second, third, fourth = tree.rules().splitlines()
    below = sum(path.bdp_bytes <= 88_000 for path in GRID)
    assert (first, second) == ("if BDP ≤ 88 KB:", f"    use b ({below} of {below} paths)")
    assert (third, fourth) == ("else:", f"    use a ({42 - below} of {42 - below} paths)")


def test_tree_omits_redundant_conditions() -> None:
    always = trees.grow([(path, ranked(a=0.9, b=0.5)) for path in GRID], ("b", "a"))
    assert always.rules() == "use a (42 of 42 paths)\n"
    nobody = trees.grow([(path, ranked(a=0.9, b=0.9)) for path in GRID], ("a", "b"))
    assert nobody.rules() == "use a (42 of 42 paths)\n"
    # Where both lead, a is as right as b: one condition suffices, although there are three regions.
    mixed = [
        (
            path,
            ranked(a=0.9, b=0.5)
            if path.rtt_ms > 40
            else ranked(a=0.9, b=0.9)
            if path.rtt_ms > 15
            else ranked(a=0.5, b=0.9),
        )
        for path in GRID
    ]
    assert len(trees.grow(mixed, ("a", "b")).nodes) == 3


def test_rare_outlier_forms_no_rule() -> None:
    many = [numbers(rate, rtt) for rate in range(1, 16) for rtt in range(1, 16)]
    odd = [
        (path, ranked(a=0.5, b=0.9) if path.rtt_ms == 7 and path.rate_bps == 7e6 else ranked(a=0.9, b=0.5))
        for path in many
    ]
    assert trees.grow(odd, ("a", "b")).rules() == "use a (224 of 225 paths)\n"


def test_derived_features_are_not_used() -> None:
    one_rate = [numbers(10, rtt) for rtt in (5, 10, 20, 50)]
    assert [feature.name for feature in trees._telling(one_rate)] == ["RTT"]
    # A buffer of one BDP, but for rounding.
    followed = [
        replace(path, buffer_bytes=path.bdp_bytes + at % 2) for at, path in enumerate(GRID) if path.bdp_bytes
    ]
    assert [feature.name for feature in trees._telling(followed)] == ["rate", "RTT", "buffer"]
    assert [feature.name for feature in trees._telling(GRID)] == ["rate", "RTT", "BDP"]
    both = [numbers(10, 20, buffer) for buffer in (10, 25, 50)] + [numbers(20, 20, 25)]
    assert [feature.name for feature in trees._telling(both)] == ["rate", "buffer", "buffer"]


def test_the_buffer_is_worded_in_bdp() -> None:
    paths = [numbers(rate, 40, times * rate * 5) for rate in (1, 10, 100) for times in (0.25, 0.5, 2, 4, 8)]
    seen = [
        (path, ranked(a=0.9, b=0.5) if path.buffer_bytes < path.bdp_bytes else ranked(a=0.5, b=0.9))
        for path in paths
    ]
    assert trees.grow(seen, ("a", "b")).nodes[0].condition == "buffer ≤ 1 BDP"


def test_threshold_has_few_digits() -> None:
    # The middle of 9.74 and 9.76 KB is next to 9.75 KB, where everybody leads and nothing is learnt.
    seen = [(numbers(1, 10, 9.74 - at / 100), ranked(a=0.9, b=0.5)) for at in range(5)]
    seen += [(numbers(1, 10, 9.76 + at / 100), ranked(a=0.5, b=0.9)) for at in range(5)]
    tree = trees.grow([*seen, (numbers(1, 10, 9.75), ranked(a=0.9, b=0.9))], ("a", "b"))
    assert tree.nodes[0].condition == "buffer ≤ 9.74 KB"
    assert all(tree.decide(path) == ranks.winner for path, ranks in seen)


def test_tree_accuracy_accepts_unbeaten_choices() -> None:
    seen = [(path, ranked(a=0.9, b=0.5) if path.rtt_ms > 30 else ranked(a=0.5, b=0.9)) for path in GRID]
    tree = trees.grow(seen, ("a", "b"))
    unseen = [
        (numbers(3, 100), ranked(a=0.8, b=0.4)),  # Right.
        (numbers(3, 150), ranked(a=0.8, b=0.8)),  # Right: nobody is better.
        (numbers(3, 8), ranked(a=0.8, b=0.4)),  # Wrong: it says b, which lacks half.
        (numbers(3, 9), ranked(a=0.9, b=0.72)),  # Wrong: b lacks a fifth.
    ]
    tree = replace(tree, tries=tuple(trees.Try(path, ranks, tree.decide(path)) for path, ranks in unseen))
    assert [one.right for one in tree.tries] == [True, True, False, False]
    assert tree.constant == ("a", 4)
    assert tree.lost == pytest.approx([0.5, 0.2])
    assert str(tree) == (
        "The tree is right on 2 of 4 random paths between the map's points (50 %, 95 % interval 15 to 85 %); "
        "a everywhere, the best single answer, on 100 %. Where it errs, it loses 35.0 % of the best score in "
        "the median and 50.0 % at most. Over all of them it loses 17.5 %, a everywhere 0.0 %."
    )
    reported = json.loads(json.dumps(tree.to_dict()))
    assert reported["unseen"]["accuracy"] == 0.5
    assert reported["unseen"]["constant"] == {"controller": "a", "right": 4, "accuracy": 1.0}
    assert [one["lacks"] for one in reported["unseen"]["tries"]] == pytest.approx([0, 0, 0.5, 0.2])


def test_unseen_paths_are_reproducible_and_interior() -> None:
    question = small().question
    paths = [one.numbers() for one in trees.unseen(question, 50)]
    assert paths == [one.numbers() for one in trees.unseen(question, 50)]
    assert all(2e6 <= path.rate_bps <= 8e6 and 10 <= path.rtt_ms <= 40 for path in paths)
    # Half of them below the middle of a logarithmic scale.
    assert 15 <= sum(path.rate_bps < 4e6 for path in paths) <= 35
    corners = {(2e6, 10.0), (8e6, 10.0), (2e6, 40.0), (8e6, 40.0)}
    assert not corners & {(path.rate_bps, path.rtt_ms) for path in paths}


def test_every_map_format_includes_tree(tmp_path: Path) -> None:
    found = maps.draw(small(tree=True), Store(tmp_path), Scripted(together=True))
    assert found.tree is not None
    assert len(found.tree.tries) == trees.UNSEEN
    index = map_page.write(found, tmp_path).read_text()
    assert str(found.tree).replace("'", "&#x27;") in index
    assert 'id="figure-tree"' in index
    assert json.loads((tmp_path / "map.json").read_text())["tree"]["rules"] == found.tree.rules()
    assert (tmp_path / "tree.png").read_bytes().startswith(b"\x89PNG")
    assert "Which to use" in (tmp_path / "tree.svg").read_text()


# As a machine without scikit-learn: sys.modules has None for a module that cannot be imported.
_WITHOUT = "import sys; sys.modules['sklearn'] = None; from fullpipe.__main__ import main; main()"


def command(folder: Path, *more: str, code: str = "") -> subprocess.CompletedProcess[str]:
    words = ["map", "--x", "rate=2mbit..8mbit", "--y", "rtt=10..40 ms", "--for", "throughput"]
    words += ["--candidates", "cubic", "--candidates", "bbr1", "--steps", "2", "--seeds", "1"]
    program = ["-c", code] if code else ["-m", "fullpipe"]
    return subprocess.run(
        [sys.executable, *program, *words, "--out", str(folder), *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_missing_scikit_learn_disables_only_tree(tmp_path: Path) -> None:
    refused = command(tmp_path / "map", "--tree", code=_WITHOUT)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("fullpipe: --tree: it needs scikit-learn"), refused.stderr
    assert "pip install 'scikit-learn>=1.5'" in refused.stderr
    assert not (tmp_path / "map").exists()
    done = command(tmp_path / "map", code=_WITHOUT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Clear winner on 4 paths: ")


def test_the_command_prints_the_tree(tmp_path: Path) -> None:
    done = command(tmp_path / "map", "--tree")
    assert done.returncode == 0, done.stderr
    reported = json.loads((tmp_path / "map" / "map.json").read_text())
    assert (
        done.stdout == f"{reported['answer']}\n\n{reported['tree']['rules']}\n{reported['tree']['answer']}\n"
    )


# The map itself.


def test_buffer_in_bdp_has_bdp_axis(tmp_path: Path) -> None:
    found = maps.draw(small(y="buffer=0.5..2 bdp"), Store(tmp_path), Scripted(together=True))
    assert found.y_values == pytest.approx([0.5, 2.0], rel=1e-3)
    buffers = {(point.x, point.y): point.path.buffer_bytes for point in found.points}
    # 2 and 8 Mbit/s times 20 ms.
    assert buffers == pytest.approx({(0, 0): 2500, (1, 0): 10_000, (0, 1): 10_000, (1, 1): 40_000}, rel=1e-3)
    map_page.write(found, tmp_path)
    assert (tmp_path / "map.csv").read_text().startswith("rate_bps,buffer_bdp,")
    reported = json.loads((tmp_path / "map.json").read_text())
    assert reported["y"]["unit"] == "BDP"
    assert reported["points"][3]["path"]["buffer_bytes"] == pytest.approx(40_000, rel=1e-3)
    assert "0.5 BDP" in (tmp_path / "map.svg").read_text()
    with pytest.raises(ScenarioError, match="both ends in bdp"):
        small(y="buffer=50KB..2bdp")


def judged(**scores: float) -> maps.DecisionMap:
    """A map of two paths: the first with these scores, on the second nobody is clearly better."""
    asked = small()
    points = tuple(
        maps.Point(x, 0, numbers(rate, 10), ranks)
        for x, rate, ranks in ((0, 2, ranked(**scores)), (1, 8, ranked(cubic=0.9, bbr1=0.896)))
    )
    values = asked.values("rate")
    return maps.DecisionMap(asked.question, asked.goal, "sim", "rate", "rtt", values, (10.0,), points, 3)


def test_every_map_format_shows_margins(tmp_path: Path) -> None:
    found = judged(cubic=0.9, bbr1=0.72)
    map_page.write(found, tmp_path)
    reported = json.loads((tmp_path / "map.json").read_text())
    clear, unclear = reported["points"]
    assert (clear["winner"], clear["verdict"]) == ("cubic", "cubic by 20 %")
    assert clear["ahead"] == pytest.approx(0.2)
    assert clear["ahead_ci95"] == pytest.approx([0.2, 0.2])
    assert unclear["winner"] is None
    assert unclear["verdict"] == "no clear winner between cubic and bbr1, within 0.4 %"
    assert (reported["unclear"], reported["shares"]) == (0.5, {"cubic": 0.5, "bbr1": 0.0})
    with (tmp_path / "map.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["winner"], first["ahead"], first["leaders"]) == ("cubic", "0.2", "cubic")
    assert (second["winner"], second["leaders"]) == ("no clear winner", "cubic bbr1")
    assert float(second["ahead_high"]) == pytest.approx(0.0044, abs=1e-4)
    svg = (tmp_path / "map.svg").read_text()
    assert ">20</text>" in svg and ">=</text>" in svg, "each cell says by how much"
    assert "none 50 %" in svg
    index = (tmp_path / "index.html").read_text()
    assert "leaders within 0.4 % in the median, 0.4 % at most" in index
    assert "by 20 % in the median" in index


def test_large_map_has_readable_labels() -> None:
    found = judged(cubic=0.9, bbr1=0.72)
    spec = map_page.spec(replace(found, x_values=tuple(2e6 * 1.02**step for step in range(100))))
    assert len(found.shown("rate")) == 2
    labels = replace(found, x_values=tuple(2e6 * 1.02**step for step in range(100))).shown("rate")
    assert len(set(labels)) == 100, "two columns of one name would be drawn as one"
    assert labels[:2] == ["2 Mbit/s", "2.04 Mbit/s"]
    assert len(spec["layer"]) == 1, "no numbers in cells that are too small for them"
    assert "% 5" in spec["layer"][0]["encoding"]["x"]["axis"]["labelExpr"]


@pytest.mark.parametrize(
    ("pacing", "message"), [(True, "every flow paced by fq"), (False, "hosts without pacing")]
)
def test_map_title_reports_pacing(pacing: bool, message: str) -> None:
    found = judged(cubic=0.9, bbr1=0.72)
    asked = replace(found.question, pacing=pacing, buffer=None)
    subtitle = " ".join(map_page.spec(replace(found, question=asked))["title"]["subtitle"])
    assert message in subtitle and subtitle.count("buffer") == 1


class Stopping(Scripted):
    """Is interrupted after a number of runs, as by Ctrl-C."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        for number, ended in enumerate(super().run(tasks)):
            if number == self._after:
                raise KeyboardInterrupt
            yield ended


def test_interrupted_map_resumes(tmp_path: Path) -> None:
    whole = maps.draw(small(), Store(tmp_path / "whole"), Scripted())
    runs = sum(logged(tmp_path / "whole").values())
    assert runs == 8
    folder = tmp_path / "parts"
    for done in range(1, runs):
        with pytest.raises(KeyboardInterrupt):
            maps.draw(small(), Store(folder), Stopping(1))
        assert sum(logged(folder).values()) == done
    assert maps.draw(small(), Store(folder), Scripted()).to_dict() == whole.to_dict()
    assert maps.draw(small(), Store(folder), Stopping(0)).to_dict() == whole.to_dict()
    assert set(logged(folder).values()) == {1}, "nothing ran twice"


def test_interrupted_write_keeps_complete_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = maps.draw(small(), Store(tmp_path), Scripted())
    map_page.write(found, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    write = map_page.files.write
    names = ("map.json", "map.csv", "map.svg", "map.png", "index.html")
    for stop in names:

        def stopping(folder: Path, name: str, data: bytes, stop: str = stop) -> None:
            if name == stop:
                raise KeyboardInterrupt
            write(folder, name, data)

        monkeypatch.setattr(map_page.files, "write", stopping)
        with pytest.raises(KeyboardInterrupt):
            map_page.write(found, tmp_path)
        after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        assert {name: after[name] for name in names[:4]} == {name: before[name] for name in names[:4]}
        assert after["index.html"] == before["index.html"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_ended_resumes(tmp_path: Path, how: signal.Signals) -> None:
    """It is ended by itself when its first run is stored."""
    folder = tmp_path / "map"
    code = (
        "import os, sys\n"
        "from fullpipe.runs import store\n"
        "keep = store.Store.keep\n"
        "def kept(self, *all, **more):\n"
        "    found = keep(self, *all, **more)\n"
        f"    os.kill(os.getpid(), {int(how)})\n"
        "    return found\n"
        "store.Store.keep = kept\n"
        "from fullpipe.runs.engines import local\n"
        "local._AHEAD = 1\n"
        "from fullpipe.__main__ import main; main()"
    )
    ended = command(folder, code=code)
    assert ended.returncode != 0
    if how == signal.SIGINT:
        assert "the same command resumes" in ended.stderr
    assert 0 < len(logged(folder)) < 8
    again = command(folder)
    assert again.returncode == 0, again.stderr
    assert len(logged(folder)) == 8
    assert set(logged(folder).values()) == {1}
    other = command(tmp_path / "other")
    assert again.stdout == other.stdout
    csvs = [(one / "map.csv").read_text() for one in (folder, tmp_path / "other")]
    assert csvs[0] == csvs[1]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_a_cluster_draws_the_same_map(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray>=2.48'")
    from fullpipe.runs.engines import ray

    here = maps.draw(small(), Store(tmp_path / "here"))
    there = maps.draw(small(), Store(tmp_path / "there"), ray.Ray(cores=2))
    assert there.to_dict() == here.to_dict()


def test_axis_values_are_rounded_between_ends() -> None:
    from fullpipe.advisor.map import _rounded

    even = [1e6 * 1000 ** (step / 11) for step in range(12)]
    assert [one / 1e6 for one in _rounded(even)] == pytest.approx(
        [1, 2, 4, 6, 12, 25, 40, 80, 150, 300, 500, 1000]
    )
    assert _rounded([3.3, 9.9]) == (3.3, 9.9), "the ends are as given"
    near = [100.0, 101.0, 102.0, 103.0]
    assert _rounded(near) == tuple(near), "too near each other to be rounded"
