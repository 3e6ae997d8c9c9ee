"""Files are written completely or not at all, never through links of others, and errors say what to do."""

import errno
import os
import resource
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import fullpipe as fp
from fullpipe import files
from fullpipe.errors import OutputError
from fullpipe.measures.run import Run
from fullpipe.report.results import Results


def names(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*"))


# Whole or not at all.


@pytest.fixture(params=["without a name", "under another name"])
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has files without a name, and one that has not."""
    if request.param == "without a name":
        return
    opened = os.open

    def refuse(path: str, flags: int, *rest: int, **more: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return opened(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.usefixtures("file_system")
def test_streamed_file_is_renamed_when_complete(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    (tmp_path / "x").chmod(0o640)
    with files.streamed(tmp_path, "x") as file:
        os.write(file, b"new")
        assert (tmp_path / "x").read_text() == "old"
    assert (tmp_path / "x").read_text() == "new" and names(tmp_path) == ["x"]
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


@pytest.mark.usefixtures("file_system")
@pytest.mark.parametrize("raised", [KeyboardInterrupt, OSError(errno.ENOSPC, "full"), ValueError])
def test_failed_stream_leaves_nothing(raised: type[BaseException], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    with pytest.raises(BaseException), files.streamed(tmp_path, "x") as file:  # noqa: B017
        os.write(file, b"new")
        raise raised
    assert (tmp_path / "x").read_text() == "old" and names(tmp_path) == ["x"]


@pytest.mark.usefixtures("file_system")
def test_directory_removed_while_streaming_is_error(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    gone = pytest.raises(OutputError, match=r"cannot write .*new/x: .*same command again")
    with gone, files.streamed(tmp_path / "new", "x"):
        for one in (tmp_path / "new").iterdir():
            one.unlink()
        (tmp_path / "new").rmdir()


@pytest.mark.full_disk
@pytest.mark.parametrize("named", [False, True])
def test_failed_write_keeps_only_old_file(named: bool, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    with pytest.raises(OutputError, match=r"cannot write .*x: File too large; raise the limit.*ulimit -f"):
        files.write_named(tmp_path / "x", b"n" * 101) if named else files.write(tmp_path, "x", b"n" * 101)
    assert (tmp_path / "x").read_text() == "old"
    assert names(tmp_path) == ["x"]


@pytest.mark.full_disk
def test_append_is_atomic(tmp_path: Path) -> None:
    files.append(tmp_path, "log", b"a" * 60 + b"\n")
    with pytest.raises(OutputError):
        files.append(tmp_path, "log", b"b" * 60 + b"\n")
    assert (tmp_path / "log").read_bytes() == b"a" * 60 + b"\n"


@pytest.mark.parametrize("lasting", [False, True])
def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lasting: bool
) -> None:
    def interrupted(*_given: object, **_named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync" if lasting else "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write(tmp_path, "x", b"new", lasting=lasting)
    assert names(tmp_path) == []


@pytest.mark.parametrize("lasting", [False, True])
def test_only_a_lasting_file_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, lasting: bool
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    files.write(tmp_path, "below/x", b"new", lasting=lasting)
    # The file, its name in the folder, and the folder's name.
    assert len(synced) == (3 if lasting else 0)
    assert (tmp_path / "below" / "x").read_bytes() == b"new"


def test_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o664)
    files.write_named(path, b"new")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (0o664, b"new")


# Links.


@pytest.mark.parametrize("name", ["report.html", "runs/sim-reno-seed1.json", "figures/rtt.svg"])
def test_link_is_replaced_not_its_target(name: str, tmp_path: Path) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out"
    victim.write_text("precious")
    (out / name).parent.mkdir(parents=True)
    (out / name).symlink_to(victim)
    one_run().write(out)
    assert victim.read_text() == "precious"
    assert not (out / name).is_symlink() and (out / name).stat().st_size > 100


def test_linked_subdirectory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    (tmp_path / "real" / "runs").symlink_to(tmp_path / "elsewhere")
    files.write(tmp_path / "out", "report.html", b"x")
    with pytest.raises(OutputError, match=r"out/runs is a symbolic link.*; remove the link"):
        files.write(tmp_path / "out", "runs/x", b"x")
    assert names(tmp_path / "elsewhere") == []
    assert names(tmp_path / "real") == ["report.html", "runs"]


def test_incomplete_file_name_is_unpredictable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it is, a link there is not followed."""
    (tmp_path / "victim").write_text("precious")
    monkeypatch.setattr("secrets.token_hex", lambda _bytes: "guessed")
    (tmp_path / ".fullpipe-guessed.part").symlink_to("victim")
    with pytest.raises(OutputError):
        files.write(tmp_path, "x", b"new")
    assert (tmp_path / "victim").read_text() == "precious"


def test_user_named_file_may_be_link(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "claims.md").write_text("old")
    (tmp_path / "link.md").symlink_to("docs/claims.md")
    files.write_named(tmp_path / "link.md", b"new")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "docs" / "claims.md").read_bytes() == b"new"
    files.write_named(Path("/dev/null"), b"new")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(OutputError, match="cannot write /dev/full: No space left"):
        files.write_named(Path("/dev/full"), b"new")


# Sentences.


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, r"No space left on device; free about 7 MB on the disk of .*, then give the same"),
        (errno.EDQUOT, r"quota exceeded; free about 7 MB"),
        (errno.EACCES, r"Permission denied; make .* writable, or name another place, then give"),
        (errno.EROFS, r"Read-only file system; make .* writable"),
        (errno.EIO, r"Input/output error; check the disk of .*, then give the same command again"),
        (errno.ENAMETOOLONG, r"File name too long; name a shorter path"),
    ],
)
def test_each_cause_has_its_fix(
    number: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "write", fails)
    with pytest.raises(OutputError, match=rf"^cannot write {tmp_path}/x: .*{message}") as caught:
        files.write(tmp_path, "x", b"x", needed=7_000_000)
    assert isinstance(caught.value, OSError), "who catches OSError catches it"


def test_write_error_names_its_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file is a file, and a folder is needed; move that file away"):
        files.write(tmp_path / "file", "x", b"")
    with pytest.raises(OutputError, match=r"the folder .*none does not exist"):
        files.write(tmp_path / "none", "x", b"")
    (tmp_path / "x").mkdir()
    with pytest.raises(OutputError, match="Is a directory"):
        files.write(tmp_path, "x", b"")


# Folders.


def test_new_directory_never_exists_before(tmp_path: Path) -> None:
    made = [files.new_folder(tmp_path / "out" / "run") for _ in range(3)]
    assert [one.name for one in made] == ["run", "run-2", "run-3"]


def test_created_directories_are_recorded(tmp_path: Path) -> None:
    made = files.make_folder(tmp_path / "a" / "b")
    assert made == [tmp_path / "a", tmp_path / "a" / "b"]
    assert files.make_folder(tmp_path / "a" / "b") == []
    (tmp_path / "a" / "kept").write_text("")
    files.remove_empty(made)
    assert names(tmp_path) == ["a", "a/kept"]


def test_obstacles_are_found_without_creating_anything(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert files.obstacle(tmp_path / "a" / "b") is None
    assert "is a file" in str(files.obstacle(tmp_path / "file" / "b"))
    assert "a symbolic link to nothing" in str(files.obstacle(tmp_path / "dangling"))
    assert "over 255 bytes" in str(files.obstacle(tmp_path / ("x" * 256)))
    assert "over 255 bytes" in str(files.file_obstacle(tmp_path / ("x" * 256)))
    assert files.file_obstacle(tmp_path) == "it is a folder"
    assert files.file_obstacle(tmp_path / "a" / "b") == "its folder does not exist"
    assert files.file_obstacle(tmp_path / "file") is None
    assert files.file_obstacle(Path("/dev/null")) is None
    assert names(tmp_path) == ["dangling", "file"]


def test_only_incomplete_files_are_removed(tmp_path: Path) -> None:
    for name in ("ab/.fullpipe-00.part", "ab/.notes.part", "ab/x.zip", "elsewhere/.fullpipe-00.part"):
        (tmp_path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / name).write_text("")
    (tmp_path / "runs" / "elsewhere").rename(tmp_path / "elsewhere")
    (tmp_path / "runs" / "cd").symlink_to(tmp_path / "elsewhere")
    files.remove_parts(tmp_path / "runs")
    assert names(tmp_path / "runs" / "ab") == [".notes.part", "x.zip"]
    assert names(tmp_path / "elsewhere") == [".fullpipe-00.part"]


def test_linked_directory_is_not_cleaned(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / ".fullpipe-00.part").write_text("")
    (tmp_path / "runs").symlink_to(tmp_path / "elsewhere")
    files.remove_parts(tmp_path / "runs")
    assert names(tmp_path / "elsewhere") == [".fullpipe-00.part"]


def test_removed_lock_file_is_locked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, taken = files.fcntl.flock, []

    def removed_after_it_was_opened(descriptor: int, how: int) -> None:
        whole(descriptor, how)
        taken.append(descriptor)
        if len(taken) == 1:
            (tmp_path / "lock").unlink()

    monkeypatch.setattr(files.fcntl, "flock", removed_after_it_was_opened)
    with files.locked(tmp_path, "lock") as first:
        assert first and len(taken) == 2
        with files.locked(tmp_path, "lock") as second:
            assert not second


# Names.


def test_different_texts_have_different_short_names() -> None:
    long = "bbr1:probe_gain=1." + "5" * 300
    texts = ["a b", "a/b", "a:b", "A:B", "c", long, long + "5", "ж" * 200, "\udcff", "..", "x" * 96]
    made = files.file_names(texts)
    assert len({name.casefold() for name in made.values()}) == len(texts)
    assert all(len(name.encode()) <= 96 and "/" not in name for name in made.values())
    assert made["c"] == "c"
    assert files.file_names(["bbr1:probe_gain=1.5"]) == {"bbr1:probe_gain=1.5": "bbr1-probe_gain=1.5"}


def one_run(label: str = "reno") -> Results:
    made = fp.compare(["reno"], rate="5 Mbit/s", rtt="10 ms", duration="300 ms", seeds=1)
    return replace(made, runs=[labelled(run, label) for run in made.runs])


def labelled(run: Run, label: str) -> Run:
    return replace(run, alternative=replace(run.alternative, label=label))


def test_similar_labels_get_separate_files(tmp_path: Path) -> None:
    results = one_run()
    labels = ["a b", "a/b", "x" * 300]
    replace(results, runs=[labelled(results.runs[0], label) for label in labels]).write(tmp_path)
    written = names(tmp_path / "runs")
    assert len(written) == 3 * 3
    assert all(len(name) < 200 for name in written)


def test_failed_report_keeps_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = one_run()
    monkeypatch.setattr("fullpipe.report.report.html", lambda *_: "x" * 10**7)
    most = 10**6
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        with pytest.raises(OutputError, match=r"report.html: File too large.*1 of 1 runs are in .*/runs"):
            results.write(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(names(tmp_path / "runs")) == 3
    assert not (tmp_path / "report.html").exists()


@pytest.mark.full_disk
@pytest.mark.parametrize("write", [lambda r, f: r.write(f), lambda r, f: r.report(f / "page.html")])
def test_python_gets_an_output_error(write: Callable[[Results, Path], object], tmp_path: Path) -> None:
    with pytest.raises(fp.OutputError):
        write(one_run(), tmp_path / "out")
    assert not [one for one in (tmp_path / "out").rglob("*") if one.is_file()]
