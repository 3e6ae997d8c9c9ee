"""Sweeps in shards: merged, they are the sweep of one machine. What is missing or differs is an error."""

from pathlib import Path

import pytest

from conftest import command
from fullpipe.errors import ScenarioError, SweepError
from fullpipe.runs import pack, shards
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from fullpipe.runs.sweep import carry_out
from fullpipe.runs.worlds import kernel
from sweeping import Scripted, damage, kept_in, tasks

ASKED = tasks(7)


def filled(folder: Path, of: int = 3, asked: list[Task] = ASKED) -> list[Path]:
    """A folder for each shard of a sweep."""
    folders = [folder / str(number) for number in range(1, of + 1)]
    for number, one in enumerate(folders, 1):
        shards.carry_out(shards.Shard(number, of), asked, one, Scripted())
    return folders


def records(folder: Path) -> dict[str, pack.Record]:
    store = Store(folder)
    return {key: record for key in kept_in(folder) if (record := store._newest(key)) is not None}


def test_shards_have_every_run_once_in_equal_parts() -> None:
    parts = [[task.job.seed for task in shards.Shard(number, 3).part(ASKED)] for number in (1, 2, 3)]
    assert parts == [[1, 4, 7], [2, 5], [3, 6]]
    # A run that is asked for twice is one run.
    assert shards.Shard(2, 2).part([*ASKED[:2], *ASKED]) == ASKED[1::2]
    assert shards.Shard(9, 9).part(ASKED) == []


@pytest.mark.parametrize("given", ["", "3", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "a/b", "1 / 3"])
def test_what_is_no_shard_is_refused(given: str) -> None:
    with pytest.raises(ScenarioError, match="--shard 2/8"):
        shards.shard(given)


def test_merged_shards_are_the_folder_of_one_machine(tmp_path: Path) -> None:
    carry_out(ASKED, Store(tmp_path / "whole"), Scripted())
    merged = shards.merge(filled(tmp_path), tmp_path / "all")
    assert merged == shards.Merged(shards=3, runs=7, new=7, failed=0, measured_twice=0)
    whole, parts = records(tmp_path / "whole"), records(tmp_path / "all")
    assert parts == whole and len(whole) == 7
    # Nothing is left to run, and nothing is copied twice.
    engine = Scripted()
    assert carry_out(ASKED, Store(tmp_path / "all"), engine).found == 7 and engine.given == []
    assert shards.merge([tmp_path / name for name in "312"], tmp_path / "all").new == 0
    assert set(kept_in(tmp_path / "all").values()) == {1}


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folders = filled(tmp_path)
    with pytest.raises(SweepError, match="no folder has 2/3 of the sweep"):
        shards.merge([folders[0], folders[2]], tmp_path / "all")
    with pytest.raises(SweepError, match="no folder has 2/3 and 3/3 of the sweep"):
        shards.merge([folders[0], folders[0]], tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_an_unfinished_shard_is_no_shard(tmp_path: Path) -> None:
    folders = filled(tmp_path)
    (folders[1] / "shard.json").unlink()
    with pytest.raises(SweepError, match=r"2 is no finished shard.*give the command of that shard again"):
        shards.merge(folders, tmp_path / "all")
    (folders[1] / "shard.json").write_text('{"number": 2}', encoding="utf-8")
    with pytest.raises(SweepError, match=r"shard\.json is damaged"):
        shards.merge(folders, tmp_path / "all")


def test_shards_of_different_sweeps_are_not_merged(tmp_path: Path) -> None:
    folders, others = filled(tmp_path / "one"), filled(tmp_path / "other", asked=tasks(8))
    with pytest.raises(SweepError, match="shards of different sweeps"):
        shards.merge([*folders[:2], others[2]], tmp_path / "all")
    with pytest.raises(SweepError, match="shards of different sweeps"):
        shards.merge([*folders, *filled(tmp_path / "halves", of=2)], tmp_path / "all")


def test_a_lost_run_is_missed(tmp_path: Path) -> None:
    folders = filled(tmp_path)
    packed = folders[2] / "runs" / "1.pack"
    damage(packed, packed.stat().st_size - 9)
    with pytest.raises(SweepError, match="3 lacks a run of its shard"):
        shards.merge(folders, tmp_path / "all")
    # As the message says.
    engine = Scripted()
    shards.carry_out(shards.Shard(3, 3), ASKED, folders[2], engine)
    assert len(engine.given) == 1
    assert shards.merge(folders, tmp_path / "all").runs == 7


def other_result(folder: Path, record: pack.Record, world: str, goodput: float) -> None:
    """Adds a newer record of a run, with another goodput."""
    summary = {**record.summary, "total_goodput_bps": goodput}
    about = {**record.about, "world": world}
    with (folder / "runs" / "1.pack").open("ab") as file:
        file.write(pack.encode(record.about["key"], about, summary, record.flows, record.links))


@pytest.mark.parametrize("world", ["sim", kernel.NAME, "no such world"])
def test_duplicates_must_be_equal_where_runs_repeat(world: str, tmp_path: Path) -> None:
    folders = filled(tmp_path)
    copy = tmp_path / "copy"
    shards.carry_out(shards.Shard(1, 3), ASKED, copy, Scripted())
    assert shards.merge([*folders, copy], tmp_path / "equal").measured_twice == 0
    key, record = next(iter(records(copy).items()))
    for folder, goodput in ((folders[0], 1.0), (copy, 2.0)):
        other_result(folder, record, world, goodput)
    if world != kernel.NAME:
        with pytest.raises(SweepError, match="different results of the run a, "):
            shards.merge([*folders, copy], tmp_path / "all")
        return
    assert shards.merge([*folders, copy], tmp_path / "all").measured_twice == 1
    assert records(tmp_path / "all")[key].summary["total_goodput_bps"] == 1.0


def test_failed_runs_are_counted_and_tried_again(tmp_path: Path) -> None:
    folders = filled(tmp_path, of=1)
    shards.carry_out(shards.Shard(1, 1), tasks(8), folders[0], Scripted(failing=[8]))
    merged = shards.merge(folders, tmp_path / "all")
    assert (merged.runs, merged.failed) == (7, 1)
    engine = Scripted()
    carry_out(tasks(8), Store(tmp_path / "all"), engine)
    assert [task.job.seed for task in engine.given] == [8]


WORDS = {
    "map": "map --x rate=1mbit..9mbit --y rtt=5ms..50ms --steps 2 --seeds 1 "
    "--candidates cubic --candidates reno",
    "study": "study run queue16.fig8 --quick --seeds 1",
}


@pytest.mark.parametrize("name", WORDS)
def test_a_command_in_shards_reports_what_it_reports_at_once(name: str, in_empty_folder: Path) -> None:
    words = WORDS[name].split()
    whole = command(*words, "--out", "whole")
    assert whole.returncode == 0, whole.stderr
    for number in (1, 2):
        done = command(*words, "--shard", f"{number}/2", "--out", f"part{number}")
        assert done.returncode == 0 and f"Shard {number}/2: " in done.stdout, done.stderr
        assert not list(Path(f"part{number}").glob("*.html"))
    merged = command("merge", "part1", "part2", "--out", "all")
    assert merged.returncode == 0 and "of 2 shards are in all" in merged.stdout, merged.stderr
    again = command(*words, "--out", "all")
    assert again.stdout == whole.stdout.replace("whole", "all"), again.stderr
    assert not Path("all/log.jsonl").exists(), "a run was not in the merged folder"


def test_a_shard_needs_a_grid_and_reports_nothing(in_empty_folder: Path) -> None:
    Path("one.toml").write_text(
        'duration = "1 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "10 ms"\n[[flows]]\ncontroller = "reno"\n',
        encoding="utf-8",
    )
    alone = command("agree", "one.toml", "--shard", "1/2")
    assert alone.returncode == 2 and "--shard needs a grid" in alone.stderr
    listed = command("study", "run", "queue16.fig8", "--quick", "--shard", "1/2", "--json")
    assert listed.returncode == 2 and "--json cannot be used with --shard" in listed.stderr
    wrong = command(*WORDS["map"].split(), "--shard", "3/2")
    assert wrong.returncode == 2 and "--shard" in wrong.stderr
