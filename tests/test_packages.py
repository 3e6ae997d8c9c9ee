"""What others can use: crates (`make package`) with their pages, and Python packages beside the core."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
CRATES = sorted(
    manifest.parent
    for manifest in (*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("quic/*/Cargo.toml"))
    if 'publish = ["crates-io"]' in manifest.read_text(encoding="utf-8")
)


def packaged(crate: Path, target: Path) -> set[str]:
    """The files of a crate's package."""
    done = subprocess.run(
        ["cargo", "package", "--list", "--allow-dirty", "--target-dir", target],
        cwd=crate,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_make_package_makes_all() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    made = " ".join(re.findall(r"^(?:QUIC_)?CRATES := (.*)$", makefile, re.MULTILINE)).split()
    manifests = "".join((crate / "Cargo.toml").read_text(encoding="utf-8") for crate in CRATES)
    assert sorted(made) == sorted(re.findall(r'^name = "(fullpipe-.*)"$', manifests, re.MULTILINE))


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs Rust")
@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_crate_package_has_licences_and_links(crate: Path, tmp_path: Path) -> None:
    files = packaged(crate, tmp_path)
    assert {"LICENSE-MIT", "LICENSE-APACHE", "README.md"} <= files
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (crate / licence).read_bytes() == (ROOT / licence).read_bytes()
    links = re.findall(r"\]\(([^)#]+)", (crate / "README.md").read_text(encoding="utf-8"))
    assert not [link for link in links if not link.startswith("https://") and link not in files]


def test_the_page_shows_the_shortest_program() -> None:
    program = (ROOT / "quic" / "noq" / "examples" / "loopback.rs").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "how-to" / "quic-stacks.md").read_text(encoding="utf-8")
    assert f"```rust\n{program}```\n" in page
    assert len(program.splitlines()) <= 30


def test_every_crate_says_its_oldest_rust() -> None:
    """Clippy's lint `incompatible_msrv` is silent without."""
    manifests = [
        ROOT / "bench" / "Cargo.toml",
        *ROOT.glob("crates/*/Cargo.toml"),
        *ROOT.glob("quic/*/Cargo.toml"),
    ]
    message = re.compile(r'^rust-version(?:\.workspace = true| = "[\d.]+")$', re.MULTILINE)
    assert not [one for one in manifests if not message.search(one.read_text(encoding="utf-8"))]


BESIDE = sorted(one.parent for one in ROOT.glob("packages/*/pyproject.toml"))


def project(folder: Path) -> dict[str, Any]:
    """The metadata of a Python package."""
    found = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    table: dict[str, Any] = found["project"]
    return table


@pytest.mark.parametrize("folder", BESIDE, ids=lambda folder: folder.name)
def test_python_package_matches_core_version_licences(folder: Path) -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    version = cargo["workspace"]["package"]["version"]
    about = project(folder)
    assert about["version"] == version and f"fullpipe=={version}" in about["dependencies"]
    assert f"{about['name']}=={version}" in project(ROOT)["optional-dependencies"][folder.name]
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (folder / licence).read_bytes() == (ROOT / licence).read_bytes()


@pytest.mark.parametrize("folder", BESIDE, ids=lambda folder: folder.name)
def test_wheel_has_every_package_file(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("flit_core", reason="needs flit_core, which builds the packages")
    make = "import sys; from flit_core import buildapi; print(buildapi.build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", make, tmp_path], cwd=folder, capture_output=True, text=True, check=True
    )
    module = folder / project(folder)["name"].replace("-", "_")
    ours = {
        one.relative_to(folder).as_posix()
        for one in module.rglob("*")
        if one.is_file() and one.suffix != ".pyc"
    }
    with zipfile.ZipFile(tmp_path / done.stdout.split()[-1]) as wheel:
        names = set(wheel.namelist())
    assert ours <= names
