"""What is installed works where no checkout is: the package of these tests, and the wheel of `make wheel`."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
PATH = ("--rate", "10 Mbit/s", "--rtt", "20 ms")
RUN = (*PATH, "--duration", "1 s", "--seeds", "1", "--json")
# What each command prints, at least.
EVERYWHERE: dict[tuple[str, ...], str] = {
    ("--version",): "fullpipe ",
    ("--help",): "advise",
    ("doctor",): "Fullpipe",
    ("advise", *PATH, "--for", "throughput", "--seeds", "2"): "cubic",
    ("compare", "bbr1", "cubic", *RUN): '"goodput_bps"',
    ("run", "policer", "--json"): '"policer"',
    ("run", "scenarios/policer.toml", "--json"): '"policer"',
    ("agree", "--grid", "agreement", "--list"): "bbr1",
    ("conform", "bbr3", "--case", "startup-plateau", "--json"): '"startup-plateau"',
    ("study", "list", "--json"): "queue16.fig8",
    ("lab", "--help"): "browser",
}
# What a wheel has that is built on demand in a checkout.
IN_A_WHEEL: dict[tuple[str, ...], str] = {
    ("compare", "noq:bbr3", "quinn:cubic", *RUN, "--world", "quic"): '"quic"',
}


def outside(python: Path | str, words: tuple[str, ...], folder: Path, **more: str) -> str:
    """What `fullpipe` prints in a folder without a checkout, of the package that a Python has."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FULLPIPE"))}
    clean |= more
    done = subprocess.run(
        [python, "-m", "fullpipe", *words],
        cwd=folder,
        env=clean,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("words", EVERYWHERE, ids=" ".join)
def test_installed_package_works_without_checkout(words: tuple[str, ...], tmp_path: Path) -> None:
    assert EVERYWHERE[words] in outside(sys.executable, words, tmp_path)


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The wheel of `make wheel`."""
    found = sorted(DIST.glob("fullpipe-*.whl"))
    if not found and os.environ.get("FULLPIPE_REQUIRE_WHEEL"):
        pytest.fail("there is no wheel in dist/: make wheel")
    if not found:
        pytest.skip("there is no wheel in dist/ (make wheel)")
    return found[-1]


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--find-links", DIST]
    subprocess.run([*pip, f"fullpipe[studies] @ {wheel.as_uri()}"], check=True)
    return python


def test_wheel_supports_abi3_and_manylinux(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name and "manylinux_2_17_" in wheel.name


def test_wheel_carries_shipped_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        notices = opened.read("fullpipe/THIRD-PARTY-NOTICES.txt").decode()
    scenarios = {
        f"fullpipe/shipped/{one.relative_to(ROOT)}"
        for one in (ROOT / "scenarios").rglob("*")
        if one.is_file()
    }
    assert scenarios <= names
    assert {"fullpipe/cli/site/index.html", "fullpipe/shipped/bin/fullpipe-quic"} <= names
    # Of the native module, of the QUIC stacks, and of the page.
    assert all(f"\n{name} " in notices for name in ("parquet", "noq-proto", "quinn-proto", "uplot"))


def test_sources_are_built_and_work_without_a_checkout(tmp_path: Path) -> None:
    found = sorted(DIST.glob("fullpipe-[0-9]*.tar.gz"))
    if not os.environ.get("FULLPIPE_REQUIRE_SDIST"):
        pytest.skip("it compiles everything: make wheel test-sdist")
    assert found, "there are no sources in dist/: make wheel"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "environment"], check=True)
    python = tmp_path / "environment" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", found[-1]], check=True)
    for words in (("--version",), ("compare", "cubic", *RUN), ("run", "policer", "--json")):
        assert outside(python, words, tmp_path)


@pytest.mark.parametrize("words", [*EVERYWHERE, *IN_A_WHEEL], ids=" ".join)
def test_a_wheel_works_without_a_checkout(empty: Path, words: tuple[str, ...], tmp_path: Path) -> None:
    assert (EVERYWHERE | IN_A_WHEEL)[words] in outside(empty, words, tmp_path)


@pytest.mark.kernel
def test_a_wheel_loads_a_controller_without_a_compiler(
    kernel_world: None, empty: Path, tmp_path: Path
) -> None:
    iperf3 = shutil.which("iperf3")
    if iperf3 is None:
        pytest.skip("iperf3 is not installed")
    # Nothing else can be found.
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in (iperf3, "/bin/sh"):
        (programs / Path(program).name).symlink_to(program)
    name = f"fpw{os.getpid()}"

    def installed(*words: str) -> str:
        return outside(empty, words, tmp_path, PATH=str(programs))

    assert f"is loaded as {name}" in installed("kernel", "load", "bbr3", "--as", name)
    try:
        inside = f"iperf3 -c $FULLPIPE_SERVER -C {name} -t 2"
        sent = installed("shell", *PATH, "--server", "iperf3 -s", "--", "sh", "-c", inside)
        assert "sender" in sent
        assert "bbr3:profile=repaired" in installed("kernel", "status", name)
    finally:
        assert f"{name} is removed." in installed("kernel", "unload", name)
