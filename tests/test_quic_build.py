"""Whether stored runs of the world `quic` are those of this program: the build script's fingerprint.

The script runs in a copy of the sources, as cargo would run it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COPIED = ("Cargo.toml", "crates", "quic")
# Stands for cargo: the script asks where its parent runs, and by which command line.
CARGO = "import subprocess, sys; sys.exit(subprocess.run([sys.argv[1]], cwd=sys.argv[2]).returncode)"

Reported = dict[str, str]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled build script."""
    if shutil.which("rustc") is None:
        pytest.skip("needs rustc")
    made = tmp_path_factory.mktemp("script") / "build"
    source = ROOT / "quic" / "world" / "build.rs"
    subprocess.run(["rustc", "--edition", "2024", str(source), "-o", str(made)], check=True)
    return made


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the script reads."""
    made = tmp_path / "copy"
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, made / name, ignore=shutil.ignore_patterns("target", "corpus"))
        else:
            made.mkdir(exist_ok=True)
            shutil.copy(source, made / name)
    return made


Report = Callable[..., Reported]


@pytest.fixture
def report(script: Path, copy: Path, tmp_path: Path) -> Report:
    """What the script tells rustc when cargo runs in a folder, with these words, and compiles into `out`."""

    def reported(*words: str, runs_in: Path | None = None, out: Path | None = None) -> Reported:
        world = copy / "quic" / "world"
        into = (out or copy / "quic" / "target") / "release" / "build" / "fullpipe-quic-0" / "out"
        into.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", CARGO, str(script), str(world), *words],
            cwd=runs_in or world,
            env={**os.environ, "OUT_DIR": str(into), "CARGO_CFG_GETRANDOM_BACKEND": "custom"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        pairs = (line.partition("rustc-env=")[2] for line in done.stdout.splitlines() if "rustc-env=" in line)
        return dict(pair.split("=", 1) for pair in pairs)

    return reported


def elsewhere(folder: Path, lock: str) -> Path:
    """A developer's project with this lock file."""
    folder.mkdir()
    (folder / "Cargo.toml").write_text("[workspace]\n", encoding="utf-8")
    (folder / "Cargo.lock").write_text(lock, encoding="utf-8")
    return folder


def test_same_sources_share_build_anywhere(report: Report, script: Path, copy: Path, tmp_path: Path) -> None:
    here = report()
    assert len(here["FULLPIPE_QUIC_BUILD"]) == 32 and here["FULLPIPE_QUIC_BUILD_IS"] == "whole"
    assert report(out=tmp_path / "shared") == here
    # From another folder, as in `cargo build --manifest-path quic/world/Cargo.toml`.
    (tmp_path / "anywhere").mkdir()
    for words in (
        ("--manifest-path", "../copy/quic/world/Cargo.toml"),
        (f"--manifest-path={copy}/quic/Cargo.toml",),
    ):
        assert report("build", *words, runs_in=tmp_path / "anywhere") == here
    moved = tmp_path / "moved"
    copy.rename(moved)
    copy.symlink_to(moved)
    assert report() == here


@pytest.mark.parametrize(
    "name",
    [
        "Cargo.toml",
        "quic/Cargo.toml",
        "quic/Cargo.lock",
        "quic/world/build.rs",
        "quic/world/Cargo.toml",
        "quic/world/.cargo/config.toml",
        "quic/world/src/world.rs",
        "quic/driver/src/driver.rs",
        "quic/noq/src/lib.rs",
        "quic/noq/Cargo.toml",
        "crates/units/Cargo.toml",
        "crates/scenario/Cargo.toml",
        "crates/scenario/src/spec.rs",
        "crates/cc/src/controllers/cubic.rs",
        "crates/files/Cargo.toml",
        "crates/export/src/qlog.rs",
    ],
)
def test_another_source_is_another_build(name: str, report: Report, copy: Path) -> None:
    before = report()["FULLPIPE_QUIC_BUILD"]
    with (copy / name).open("a", encoding="utf-8") as file:
        file.write("\nconst MORE: u8 = 0;\n" if name.endswith(".rs") else "\n# More.\n")
    assert report()["FULLPIPE_QUIC_BUILD"] != before


@pytest.mark.parametrize("name", ["quic/world/src/world.rs", "crates/cc/src/controller.rs"])
def test_comments_and_layout_keep_build(name: str, report: Report, copy: Path) -> None:
    before = report()
    source = copy / name
    code = source.read_text(encoding="utf-8")
    source.write_text(code.replace("\n}\n", "\n\n  } // More.\n"), encoding="utf-8")
    assert report() == before


def test_new_source_changes_build_unlike_tests(report: Report, copy: Path) -> None:
    before = report()
    for name in ("quic/noq/tests/more.rs", "crates/path/src/tests.rs", "quic/s2n/src/more.rs"):
        (copy / name).write_text("// more", encoding="utf-8")
    assert report() == before
    (copy / "quic/noq/src/more.rs").write_text("// more", encoding="utf-8")
    assert report() != before


def test_a_patched_stack_is_not_covered(report: Report, copy: Path) -> None:
    lock = copy / "quic" / "Cargo.lock"
    before = lock.read_text(encoding="utf-8")
    # As `[patch.crates-io] noq-proto = { path = "..." }` leaves it.
    for name in ("noq-proto", "rustls"):
        first, rest = before.split(f'[[package]]\nname = "{name}"\n')
        its, others = rest.split("[[package]]", 1)
        lines = [one for one in its.split("\n") if not one.startswith(("source = ", "checksum = "))]
        assert len(lines) == len(its.split("\n")) - 2
        its = "\n".join(lines)
        lock.write_text(f'{first}[[package]]\nname = "{name}"\n{its}[[package]]{others}', encoding="utf-8")
        assert report()["FULLPIPE_QUIC_BUILD_IS"] == "part"
    lock.write_text(before, encoding="utf-8")
    assert report()["FULLPIPE_QUIC_BUILD_IS"] == "whole"


def test_developer_program_uses_own_lock_versions(report: Report, copy: Path, tmp_path: Path) -> None:
    ours = report()
    lock = (copy / "quic" / "Cargo.lock").read_text(encoding="utf-8")
    version = ours["FULLPIPE_NOQ_PROTO"]
    newer = lock.replace(
        f'name = "noq-proto"\nversion = "{version}"', 'name = "noq-proto"\nversion = "1.99.0"'
    )
    assert newer != lock
    mine = elsewhere(tmp_path / "mine", newer)
    expected = {**ours, "FULLPIPE_NOQ_PROTO": "1.99.0", "FULLPIPE_QUIC_BUILD_IS": "part"}
    # Into its own folder, a shared one, and that of another workspace, whose lock file is not meant.
    other = elsewhere(tmp_path / "other", lock)
    (tmp_path / "shared").mkdir()
    for out in (mine / "target", tmp_path / "shared", other / "target"):
        for words, folder in (((), mine), (("--manifest-path", f"{mine}/Cargo.toml"), other)):
            found = report(*words, runs_in=folder, out=out)
            assert found.pop("FULLPIPE_QUIC_BUILD") != ours["FULLPIPE_QUIC_BUILD"]
            assert found == {name: one for name, one in expected.items() if name != "FULLPIPE_QUIC_BUILD"}
    # Where cargo cannot be asked, it is the workspace of the target folder.
    (tmp_path / "anywhere").mkdir()
    assert report(runs_in=tmp_path / "anywhere", out=mine / "target")["FULLPIPE_NOQ_PROTO"] == "1.99.0"
    # The same versions elsewhere: features and profiles may be others.
    assert report(runs_in=other)["FULLPIPE_QUIC_BUILD_IS"] == "part"
